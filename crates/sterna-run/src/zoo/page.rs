//! The zoo's part of `trust.md`: how often a wrong result was called sound, and a right one unsound.

use super::{Case, Class, EVALUATIONS, Outcome, Results, cases};
use crate::error::JobError;
use crate::files::write_whole;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Where the zoo's part begins and ends; what stands outside is left as it is.
const BEGIN: &str = "<!-- zoo: written by `sterna zoo` -->";
const END: &str = "<!-- end of zoo -->";

const TITLE: &str = "# What a verdict is worth\n";

/// Puts the zoo's part into the page.
pub fn write(results: &Results, out: &Path) -> Result<(), JobError> {
    let path = out.join("trust.md");
    let before = match std::fs::read_to_string(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => format!("{TITLE}\n{BEGIN}\n{END}\n"),
        other => other.map_err(JobError::file("read", &path))?,
    };
    write_whole(&path, with_part(&before, &part(results)).as_bytes())
}

fn with_part(before: &str, part: &str) -> String {
    match (before.split_once(BEGIN), before.split_once(END)) {
        (Some((head, _)), Some((_, tail))) => format!("{head}{BEGIN}\n{part}{END}{tail}"),
        _ => format!("{before}\n{BEGIN}\n{part}{END}\n"),
    }
}

/// How often something was, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Times that it was.
    pub times: usize,
    /// Times that it could have been.
    pub of: usize,
}

impl Rate {
    fn among<'a>(cells: impl Iterator<Item = &'a Outcome>, was: impl Fn(&Outcome) -> bool) -> Self {
        cells.fold(Self::default(), |rate, cell| Self {
            times: rate.times + usize::from(was(cell)),
            of: rate.of + 1,
        })
    }

    /// As a share.
    pub fn share(self) -> f64 {
        self.times as f64 / self.of.max(1) as f64
    }

    fn text(self) -> String {
        format!("{} of {} ({:.1}%)", self.times, self.of, 100.0 * self.share())
    }
}

/// The two figures that the zoo is for, outside the class of modes that nobody can see and of what was kept aside: wrong results that
/// were called sound and right ones that were called unsound or refused, each of all cells.
pub fn rates(results: &Results) -> [Rate; 2] {
    rates_among(|| results.all().filter(|cell| !cell.hidden && !cell.aside))
}

fn rates_among<'a, I: Iterator<Item = &'a Outcome>>(cells: impl Fn() -> I) -> [Rate; 2] {
    [Rate::among(cells(), Outcome::fooled), Rate::among(cells(), Outcome::false_alarm)]
}

fn part(results: &Results) -> String {
    let [fooled, alarmed] = rates(results);
    let [aside_fooled, aside_alarmed] = rates_among(|| results.all().filter(|cell| cell.aside));
    let hidden = Rate::among(results.all().filter(|cell| cell.hidden), Outcome::fooled);
    let doubtful = results
        .all()
        .filter(|cell| !cell.hidden && !cell.aside && cell.is_right() && cell.told.verdict == "doubtful");
    let right = results.all().filter(|cell| !cell.hidden && !cell.aside && cell.is_right()).count();
    let mut out = format!(
        "\n## The zoo\n\nTargets of which the truth is known, each with several seeds, run as a user would run them: with the defaults, or with \
         what the case says, and told to end at {EVALUATIONS} evaluations, which is looked at now and then, and not while a round of tuning \
         lasts: some runs take more. A result is *wrong* if log Z, or a mean or a quantile that is known exactly, is more than four of its standard errors off, or if its draws are worth fewer than 100; a target without a law, or one that \
         lies, has no right result. `sterna zoo --out docs` makes this page (`--seeds`, `--only`, `--jobs`; it goes on where it stopped, \
         `--again` runs all anew, and `--keep` leaves what each run had).\n\n\
         | | |\n|---|---|\n\
         | wrong, and called `sound` | {} |\n\
         | right, and called `unsound` or refused | {} |\n\
         | right, and called `doubtful` | {} |\n\
         | modes that nobody can see, called `sound` | {} |\n\
         | kept aside while settings and thresholds were chosen: wrong, and called `sound` | {} |\n\
         | kept aside: right, and called `unsound` or refused | {} |\n",
        fooled.text(),
        alarmed.text(),
        Rate { times: doubtful.count(), of: right }.text(),
        hidden.text(),
        aside_fooled.text(),
        aside_alarmed.text()
    );
    let mut by_class: BTreeMap<Class, Vec<Case>> = BTreeMap::new();
    cases().into_iter().for_each(|case| by_class.entry(case.class).or_default().push(case));
    for (class, cases) in by_class {
        let rows: String = cases.iter().filter_map(|case| row(case, results)).collect();
        if !rows.is_empty() {
            let _ = write!(
                out,
                "\n### {}\n\n| target | what it is | sound | doubtful | unsound | refused | right | wrong and `sound` | right and `unsound` | \
                 farthest off | alarms |\n|---|---|---|---|---|---|---|---|---|---|---|\n{rows}",
                capital(&class.to_string())
            );
        }
    }
    out.push('\n');
    out
}

fn row(case: &Case, results: &Results) -> Option<String> {
    let cells: Vec<&Outcome> = results.of(case.name).collect();
    let count = |was: &dyn Fn(&Outcome) -> bool| {
        let times = cells.iter().filter(|cell| was(cell)).count();
        if times == 0 { "·".to_string() } else { times.to_string() }
    };
    let told = |word: &'static str| count(&|cell: &Outcome| cell.told.verdict == word);
    let known = cells.iter().filter(|cell| !cell.told.off.is_nan());
    let worst = known.max_by(|a, b| a.told.off.total_cmp(&b.told.off));
    let far = worst.map_or("·".into(), |cell| match cell.told.off {
        off if off > 999.0 => format!("> 999 ({})", cell.told.of),
        off => format!("{off:.1} ({})", cell.told.of),
    });
    (!cells.is_empty()).then(|| {
        format!(
            "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            case.name,
            case.about.replace('|', "\\|"),
            told("sound"),
            told("doubtful"),
            told("unsound"),
            count(&|cell: &Outcome| ["refused", "panicked"].contains(&cell.told.verdict.as_str())),
            count(&Outcome::is_right),
            count(&Outcome::fooled),
            count(&Outcome::false_alarm),
            far.replace('|', "\\|"),
            alarms(&cells)
        )
    })
}

/// Alarms of all cells with how often each was raised; notes, which no verdict follows from, left out.
fn alarms(cells: &[&Outcome]) -> String {
    use crate::alarms::{Class, Code};
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let raised = cells.iter().filter(|cell| ["doubtful", "unsound"].contains(&cell.told.verdict.as_str()));
    for code in raised
        .flat_map(|cell| &cell.told.because)
        .filter(|code| Code::from(code.as_str()).class() != Class::Note)
    {
        *counts.entry(code).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    counts.iter().map(|(code, count)| format!("{code} {count}")).collect::<Vec<_>>().join(", ")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_outside_stays() {
        let page = format!("# Title\n\nby hand\n\n{BEGIN}\nold\n{END}\n\nmore by hand\n");
        let new = with_part(&page, "new\n");
        assert_eq!(new, format!("# Title\n\nby hand\n\n{BEGIN}\nnew\n{END}\n\nmore by hand\n"));
        assert_eq!(with_part(&new, "new\n"), new);
        assert!(with_part("# Other\n", "new\n").starts_with("# Other\n"));
    }
}
