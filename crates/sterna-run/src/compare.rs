//! Runs side by side: log Z, effective draws for their cost, barriers. Made from their summaries alone.

use crate::alarms::Verdict;
use crate::error::JobError;
use crate::report::chart::{Axis, Chart, Key};
use crate::report::format::{count, number, significant, with_error};
use crate::report::{SCRIPT, STYLE, escape, fill};
use crate::summary::Summary;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("report/compare.html");

/// What is compared of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Its folder.
    pub folder: PathBuf,
    /// The target's kind.
    pub target: String,
    /// Coordinates of a point.
    pub dim: usize,
    /// The accelerator's kind.
    pub accelerator: String,
    /// Chains of a ladder.
    pub chains: usize,
    /// Ladders.
    pub ensembles: usize,
    /// Seed of all randomness.
    pub seed: u64,
    /// What its alarms come to.
    pub verdict: Verdict,
    /// By Bennett's ratio.
    pub log_z: f64,
    /// Of `log_z`.
    pub log_z_error: f64,
    /// Effective draws of the slowest quantity, in its bulk or its tails, whichever are fewer.
    pub ess: f64,
    /// Evaluations of the target, all of them.
    pub evaluations: u64,
    /// Effective draws for a thousand evaluations.
    pub ess_per_1000_evaluations: f64,
    /// Λ: the sum of rejection rates.
    pub barrier: f64,
    /// Of all ladders.
    pub round_trips: u64,
}

impl Compared {
    /// Of the summary in a folder.
    pub fn of(folder: &Path, summary: &Summary) -> Self {
        let (setup, evaluations) = (&summary.setup, summary.cost.evaluations.target);
        let ess = match &summary.mixing {
            Some(worst) => worst.ess_bulk.min(worst.ess_tail),
            None => summary.target_chain.ess.minimum,
        };
        Self {
            folder: folder.into(),
            target: setup.target.kind.clone(),
            dim: setup.target.dim,
            accelerator: setup.accelerator.kind.clone(),
            chains: setup.chains,
            ensembles: setup.ensembles,
            seed: setup.seed,
            verdict: summary.verdict,
            log_z: summary.log_z.bar,
            log_z_error: summary.log_z.standard_error,
            ess,
            evaluations,
            ess_per_1000_evaluations: 1000.0 * ess / evaluations as f64,
            barrier: summary.swaps.global_barrier,
            round_trips: summary.swaps.round_trips,
        }
    }

    /// Its folder's own name.
    pub fn name(&self) -> String {
        let last = self.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        last.unwrap_or_else(|| self.folder.display().to_string())
    }

    /// What a table shows, below [`HEADER`].
    pub fn row(&self) -> [String; 8] {
        [
            self.name(),
            format!("{:?}", self.verdict).to_lowercase(),
            with_error(self.log_z, self.log_z_error),
            number(self.ess.round()),
            count(self.evaluations),
            significant(self.ess_per_1000_evaluations, 3),
            significant(self.barrier, 3),
            count(self.round_trips),
        ]
    }
}

/// A large number in few characters: 7.17M.
pub fn in_short(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..1_000_000 => format!("{}k", significant(n as f64 / 1e3, 3)),
        1_000_000..1_000_000_000 => format!("{}M", significant(n as f64 / 1e6, 3)),
        _ => format!("{}G", significant(n as f64 / 1e9, 3)),
    }
}

/// Columns of a table of runs.
pub const HEADER: [&str; 8] = ["run", "verdict", "log Z", "ESS", "evaluations", "ESS/1000", "Λ", "trips"];

/// Reads the runs in some folders.
pub fn read(folders: &[PathBuf]) -> Result<Vec<Compared>, JobError> {
    folders.iter().map(|folder| Ok(Compared::of(folder, &Summary::read(folder)?))).collect()
}

/// Whether log Z of two runs can be held against each other: they sampled the same kind in as many dimensions.
pub fn are_of_one_target(runs: &[Compared]) -> bool {
    runs.windows(2).all(|pair| (&pair[0].target, pair[0].dim) == (&pair[1].target, pair[1].dim))
}

/// The page.
pub fn page(runs: &[Compared]) -> String {
    let charts = [
        log_z(runs),
        bars("efficiency", "Effective draws for 1,000 evaluations", runs, |run| run.ess_per_1000_evaluations),
        bars("barriers", "Barrier Λ", runs, |run| run.barrier),
    ];
    let note = match are_of_one_target(runs) {
        true => "log Z should agree within its errors.",
        false => {
            "They are of different targets: log Z and draws for their cost say nothing of one beside another."
        }
    };
    let figures: String = charts.iter().map(Chart::figure).collect();
    let parts = [
        ("style", STYLE.to_string()),
        ("note", escape(&format!("{} runs. {note}", runs.len()))),
        ("table", table(runs)),
        ("figures", figures),
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("script", SCRIPT.to_string()),
    ];
    fill(PAGE, &parts)
}

fn table(runs: &[Compared]) -> String {
    let mut out = String::from("<div class=\"scroll\"><table class=\"quantities\"><thead><tr>");
    HEADER.iter().for_each(|name| out += &format!("<th scope=\"col\">{}</th>", escape(name)));
    out += "</tr></thead><tbody>";
    for run in runs {
        let [name, rest @ ..] = run.row();
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&name));
        let mood = match run.verdict {
            Verdict::Sound => "good",
            Verdict::Doubtful => "doubtful",
            Verdict::Unsound => "bad",
        };
        for (i, cell) in rest.iter().enumerate() {
            let class = if i == 0 { format!(" class=\"mood {mood}\"") } else { String::new() };
            let _ = write!(out, "<td{class}>{}</td>", escape(cell));
        }
        out += "</tr>";
    }
    out + "</tbody></table></div>"
}

/// Runs from top to bottom.
fn axis_of(runs: &[Compared]) -> Axis {
    let last = runs.len() as f64 - 1.0;
    let ticks = runs.iter().enumerate().map(|(i, run)| (last - i as f64, run.name())).collect();
    Axis::linear("", -0.6, last + 0.6).ticks(ticks).no_grid()
}

fn height(runs: &[Compared]) -> f64 {
    110.0 + 26.0 * runs.len() as f64
}

fn log_z(runs: &[Compared]) -> Chart {
    let ends = runs
        .iter()
        .flat_map(|run| [run.log_z, run.log_z - 2.0 * run.log_z_error, run.log_z + 2.0 * run.log_z_error]);
    let x = Axis::around("log Z", ends, false);
    let words: Vec<String> = runs
        .iter()
        .map(|run| format!("{}: {}", run.name(), with_error(run.log_z, run.log_z_error)))
        .collect();
    let mut chart = Chart::new("log-z", "log Z", x, axis_of(runs))
        .wide()
        .height(height(runs))
        .description(words.join("; "));
    chart.key(Key::Line, "c1", "one and two standard errors");
    for (i, run) in runs.iter().enumerate() {
        let at = (runs.len() - 1 - i) as f64;
        for (class, k) in [("heavy c1", 1.0), ("c1", 2.0)] {
            let reach = k * run.log_z_error;
            chart.line(class, &[(run.log_z - reach, at), (run.log_z + reach, at)]);
        }
        chart.dot("c1", run.log_z, at, 5.0);
        chart.tip(run.log_z, at, &*words[i]);
    }
    chart
}

fn bars(id: &str, title: &str, runs: &[Compared], of: fn(&Compared) -> f64) -> Chart {
    let most = runs.iter().map(of).filter(|x| x.is_finite()).fold(0.0, f64::max);
    let words: Vec<String> =
        runs.iter().map(|run| format!("{}: {}", run.name(), significant(of(run), 3))).collect();
    let x = Axis::linear(title, 0.0, if most > 0.0 { 1.25 * most } else { 1.0 });
    let mut chart =
        Chart::new(id, title, x, axis_of(runs)).height(height(runs)).description(words.join("; "));
    for (i, run) in runs.iter().enumerate() {
        let at = (runs.len() - 1 - i) as f64;
        chart.bar("c1", (0.0, at - 0.3), (of(run), at + 0.3));
        chart.text("value", of(run) + 0.02 * most, at - 0.12, "start", &significant(of(run), 3));
        chart.tip(of(run), at, &*words[i]);
    }
    chart
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::sound;

    #[test]
    fn runs_stand_side_by_side() {
        let (mut first, mut second) = (sound(), sound());
        second.setup.target.dim += 1;
        first.log_z.bar = f64::NAN;
        second.mixing = None;
        let runs = [Compared::of(Path::new("a/one"), &first), Compared::of(Path::new("<two>"), &second)];
        assert!(!are_of_one_target(&runs) && are_of_one_target(&runs[..1]));
        assert_eq!(runs[0].name(), "one");
        assert_eq!([9_999, 157_979, 7_168_048].map(in_short), ["9999", "158k", "7.17M"]);
        let page = page(&runs);
        for part in [
            "one",
            "&lt;two&gt;",
            "id=\"log-z\"",
            "id=\"efficiency\"",
            "id=\"barriers\"",
            "different targets",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("NaN") && !page.contains("<two>") && !page.contains("://"));
    }
}
