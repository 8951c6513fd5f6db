//! What `docs/alarms.md` says of each alarm: the one text, for readers of the document and of a report.

use super::Code;

/// The document, linked into the crate.
const DOCUMENT: &str = include_str!("alarms.md");

/// Stands before what to do.
const WHAT_TO_DO: &str = "**What to do:**";

/// The section of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained {
    /// What it says.
    pub about: &'static str,
    /// What would help, the most helpful first.
    pub what_to_do: &'static str,
}

impl Code {
    /// What the document says of it, in Markdown; none of codes that this version does not know.
    ///
    /// ```
    /// use sterna_run::alarms::Code;
    /// let explained = Code::FewDraws.explained().unwrap();
    /// assert!(explained.what_to_do.starts_with("begin from a reference nearer to the target"));
    /// ```
    pub fn explained(&self) -> Option<Explained> {
        let (_, section) = DOCUMENT.split_once(&format!("\n## `{}`\n", self.name()))?;
        let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
        let (about, what_to_do) = section.split_once(WHAT_TO_DO)?;
        Some(Explained { about: about.trim(), what_to_do: what_to_do.trim() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_says_what_to_do() {
        for code in Code::ALL {
            let explained = code.explained().unwrap_or_else(|| panic!("{code} has no section, or no remedy"));
            assert!(explained.about.len() > 40 && explained.what_to_do.len() > 20, "{code}: {explained:?}");
            assert!(!explained.what_to_do.contains("## "), "{code}");
        }
        assert_eq!(Code::Other("of-tomorrow".into()).explained(), None);
    }
}
