//! Names of run folders, and dates.

use crate::config::Config;
use std::path::PathBuf;
use std::time::SystemTime;

/// A folder name that says what ran and when.
pub fn default_folder(config: &Config) -> PathBuf {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (target, accelerator) = (config.target.kind(), config.accelerator.kind());
    PathBuf::from("runs").join(format!("{target}-{accelerator}-{}", date(seconds)))
}

/// Seconds since 1970 as yyyymmdd-hhmmss, UTC.
pub(crate) fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Civil date from day count: years begin in March, so leap days come last.
    let z = days as i64 + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates() {
        assert_eq!(super::date(0), "19700101-000000");
        assert_eq!(super::date(951_827_696), "20000229-123456");
        assert_eq!(super::date(1_767_225_599), "20251231-235959");
    }
}
