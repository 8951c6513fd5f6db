//! Which runs a table is made of.

use super::Budget;
use super::cell::{Cell, Keep};
use crate::config::{Config, TrainingConfig};

/// A target of the tables, with the paper's local moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// 40 modes in 10 dimensions.
    Gmm,
    /// ManyWell-32.
    ManyWell,
    /// Four particles in the plane.
    Dw4,
    /// Alanine dipeptide, from 1200 to 300 K.
    Alanine,
}

/// How proposals of swaps are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A trained flow.
    Flow,
    /// The same with spline couplings.
    Spline,
    /// A trained controlled diffusion.
    Cmcd,
    /// A trained diffusion; K = 0 is plain swaps along the learned path.
    Diffusion,
    /// Plain swaps.
    Plain,
    /// Plain swaps with adapted moves, and the ladder tuned by the barrier.
    Adapted,
    /// Langevin steps without a drift: nothing is trained.
    NoDrift,
    /// Molecules: stiff coordinates scaled by the root of the temperatures' ratio.
    Scaling,
    /// Molecules: the same about means that know the soft torsions.
    Affine,
}

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The method.
    pub method: Method,
    /// K.
    pub steps: usize,
}

const fn row(method: Method, steps: usize) -> Row {
    Row { method, steps }
}

impl Row {
    /// As tables print it.
    pub fn title(&self) -> String {
        let steps = self.steps;
        match self.method {
            Method::Flow => "NF-APT".into(),
            Method::Spline => "NF-APT, splines".into(),
            Method::Cmcd => format!("CMCD-APT, K = {steps}"),
            Method::Diffusion if steps == 0 => "Diff-PT".into(),
            Method::Diffusion => format!("Diff-APT, K = {steps}"),
            Method::Plain => "PT".into(),
            Method::Adapted => "PT, adapted moves".into(),
            Method::NoDrift => format!("CMCD without drift, K = {steps}"),
            Method::Scaling => "temperature scaling".into(),
            Method::Affine => "conditional affine".into(),
        }
    }

    /// Its name in the paper's tables, where they have it.
    pub fn in_paper(&self) -> Option<&'static str> {
        match self.method {
            Method::Flow => Some("nf"),
            Method::Cmcd => Some("cmcd"),
            Method::Diffusion => Some("diff"),
            Method::Plain => Some("pt"),
            _ => None,
        }
    }

    /// Whether a network is trained.
    pub fn is_trained(&self) -> bool {
        matches!(self.method, Method::Flow | Method::Spline | Method::Cmcd | Method::Diffusion)
    }

    fn name(&self) -> String {
        let steps = self.steps;
        match self.method {
            Method::Flow => "flow".into(),
            Method::Spline => "spline".into(),
            Method::Cmcd => format!("cmcd-k{steps}"),
            Method::Diffusion => format!("diffusion-k{steps}"),
            Method::Plain => "plain".into(),
            Method::Adapted => "adapted".into(),
            Method::NoDrift => format!("no-drift-k{steps}"),
            Method::Scaling => "scaling".into(),
            Method::Affine => "affine".into(),
        }
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let steps = ("accelerator.steps", self.steps.to_string());
        let kind = |kind: &str| ("accelerator.kind", kind.to_string());
        match self.method {
            Method::Flow => vec![kind("flow")],
            Method::Spline => vec![kind("flow"), ("accelerator.coupling", "spline".into())],
            Method::Cmcd => vec![kind("cmcd"), steps],
            Method::Diffusion => vec![kind("diffusion"), steps],
            Method::Plain | Method::Adapted => vec![],
            Method::NoDrift => vec![kind("cmcd"), steps, ("accelerator.drift", "none".into())],
            Method::Scaling => vec![kind("scaling")],
            Method::Affine => vec![kind("affine")],
        }
    }
}

impl Problem {
    /// As files name it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gmm => "gmm",
            Self::ManyWell => "mw",
            Self::Dw4 => "dw",
            Self::Alanine => "alanine",
        }
    }

    /// Its table in the paper.
    pub fn in_paper(&self) -> &'static str {
        match self {
            Self::Gmm => "gmm10",
            Self::ManyWell => "mw32",
            Self::Dw4 => "dw4",
            Self::Alanine => "alanine_dipeptide",
        }
    }

    /// As tables print it.
    pub fn title(&self) -> &'static str {
        match self {
            Self::Gmm => "GMM-10",
            Self::ManyWell => "ManyWell-32",
            Self::Dw4 => "DW-4",
            Self::Alanine => "alanine dipeptide",
        }
    }

    /// Numbers of chains.
    pub fn chains(&self, budget: Budget) -> Vec<usize> {
        match (self, budget) {
            (Self::Alanine, _) => vec![4],
            (_, Budget::Quick) => vec![10],
            (Self::Gmm, _) => vec![6, 10, 30],
            _ => vec![5, 10, 30],
        }
    }

    /// Rows of the table, the paper's and then ours.
    pub fn rows(&self, budget: Budget) -> Vec<Row> {
        use Method::*;
        let cmcd = [row(Cmcd, 1), row(Cmcd, 2), row(Cmcd, 5)];
        let diffusion = [row(Diffusion, 0), row(Diffusion, 1), row(Diffusion, 2), row(Diffusion, 5)];
        let plain = [row(Plain, 0), row(Adapted, 0)];
        match (self, budget) {
            (Self::Alanine, Budget::Quick) => vec![row(Plain, 0), row(Scaling, 1), row(Affine, 1)],
            (Self::Alanine, _) => {
                [&[row(Plain, 0), row(Scaling, 1), row(Affine, 1), row(Flow, 1)][..], &cmcd].concat()
            }
            (Self::Gmm, Budget::Quick) => vec![row(Flow, 1), row(Cmcd, 5), row(Diffusion, 5), row(Plain, 0)],
            (_, Budget::Quick) => vec![row(Cmcd, 5), row(Plain, 0)],
            (Self::Gmm, _) => {
                let flows = [row(Flow, 1), row(Spline, 1)];
                let flows = if budget == Budget::Full { &flows[..1] } else { &flows };
                let own = [row(NoDrift, 1), row(NoDrift, 5)];
                [flows, &cmcd, &diffusion, &plain, &own].concat()
            }
            _ => [&cmcd[..], &diffusion, &plain, &[row(NoDrift, 1), row(NoDrift, 5)]].concat(),
        }
    }

    /// The target, and the paper's local moves for a row.
    fn settings(&self, row: Row) -> Vec<(&'static str, String)> {
        let mut out = match self {
            Self::Gmm => vec![("target.kind", "gmm".into()), ("explorer.step_size", "0.03".into())],
            Self::ManyWell => {
                vec![("target.kind", "many-well".into()), ("explorer.step_size", "0.22".into())]
            }
            Self::Dw4 => vec![("target.kind", "dw4".into()), ("explorer.step_size", "0.22".into())],
            Self::Alanine => vec![("target.kind", "alanine-dipeptide".into())],
        };
        let diffusion = row.method == Method::Diffusion && *self != Self::Gmm;
        if diffusion {
            out.push(("explorer.steps", "2".into()));
        }
        if diffusion && *self == Self::Dw4 {
            out.push(("explorer.step_size", "0.2".into()));
        }
        let criterion = if *self == Self::Alanine { "fixed" } else { "rejection" };
        out.push(("schedule.criterion", criterion.into()));
        if row.method == Method::Adapted {
            out.push(("explorer.step_size", "adapt".into()));
            out.push(("schedule.criterion", "barrier".into()));
        }
        out
    }

    /// What training may cost.
    fn training(&self, row: Row, chains: usize, budget: Budget) -> Vec<(&'static str, String)> {
        let molecule = *self == Self::Alanine;
        let rounds = ("training.rounds", if budget == Budget::Quick { "1" } else { "3" }.to_string());
        if molecule && !row.is_trained() {
            return if row.method == Method::Plain { vec![] } else { vec![rounds] };
        }
        if !row.is_trained() {
            return vec![];
        }
        match budget {
            Budget::Quick => {
                let steps = match (self, row.method) {
                    (Self::Dw4, Method::Cmcd) => 200,
                    (Self::ManyWell, Method::Cmcd) => 500,
                    (_, Method::Flow) => 400,
                    (_, Method::Cmcd) => 700,
                    _ => 2000,
                };
                vec![("training.steps", steps.to_string()), ("training.collect", "5000".into())]
            }
            Budget::Standard if molecule => vec![rounds],
            Budget::Standard => {
                let steps = standard_steps(*self, row).map(|n| ("training.steps", n.to_string()));
                // With 30 chains a short trial does not tell the two kinds of drift apart.
                let apart = *self == Self::ManyWell && row.method == Method::Cmcd;
                let apart = apart.then(|| ("network.coordinates", "apart".to_string()));
                // The paper's drift is a network alone.
                let alone = row.method == Method::Cmcd && *self != Self::Dw4;
                let alone = alone.then(|| ("network.along_score", "false".to_string()));
                steps.into_iter().chain(apart).chain(alone).collect()
            }
            // Networks of molecules are small, and trained on the CPU: what helps them is fresh samples.
            Budget::Full if molecule => vec![("training.rounds", "4".into())],
            Budget::Full => {
                // Where there is no GPU, a CPU does it: slowly.
                let common =
                    [("network.preset", "paper"), ("training.device", "cuda"), ("training.fallback", "true")];
                let own: &[(&str, &str)] = match row.method {
                    // The chains move between the rounds.
                    Method::Flow => &[
                        ("training.precision", "tf32"),
                        ("training.batch", "512"),
                        ("training.rounds", "2"),
                        ("training.collect", "50000"),
                        ("training.steps", "26000"),
                        ("training.fine_tune", "8000"),
                    ],
                    // Long trainings learn few samples by heart, and a batch is shared by all pairs. Where little is
                    // left to be learned for each, that matters.
                    Method::Cmcd if chains > self.middle(budget) && row.steps == 5 => &[
                        ("training.precision", "tf32"),
                        ("training.batch", "1024"),
                        ("training.collect", "200000"),
                        ("training.steps", "80000"),
                        ("network.along_score", "true"),
                        ("run.device", "cuda"),
                        ("run.fallback", "true"),
                    ],
                    Method::Cmcd => &[
                        ("training.precision", "tf32"),
                        ("training.batch", "512"),
                        ("training.collect", "100000"),
                        ("training.steps", "60000"),
                        ("network.along_score", "true"),
                        ("run.device", "cuda"),
                        ("run.fallback", "true"),
                    ],
                    // After 100,000 steps in TF32 most paths were worse, and some led nowhere.
                    _ => &[
                        ("training.batch", "512"),
                        ("training.collect", "100000"),
                        ("training.steps", "24000"),
                    ],
                };
                let together = *self == Self::Gmm && row.method != Method::Flow;
                let together = together.then_some(("network.coordinates", "together"));
                let all = common.iter().chain(own).copied().chain(together);
                all.map(|(key, value)| (key, value.to_string())).collect()
            }
        }
    }

    /// Iterations of sampling.
    pub fn iterations(&self, budget: Budget) -> u64 {
        let printed = if *self == Self::Alanine { 50_000 } else { 100_000 };
        if budget == Budget::Quick { printed / 10 } else { printed }
    }

    /// The run of one place in the table. A learned path serves any K and any number of chains, so one training of
    /// each seed serves all rows of diffusions.
    pub fn cell(&self, row: Row, chains: usize, seed: u64, budget: Budget) -> Cell {
        let mut settings = self.settings(row);
        settings.extend(row.settings());
        settings.extend(self.training(row, chains, budget));
        settings.push(("seed", seed.to_string()));
        settings.push(("chains.count", chains.to_string()));
        settings.push(("run.iterations", self.iterations(budget).to_string()));
        let keep = if seed == 1 { self.keep(row, chains, budget) } else { Keep::default() };
        let mut out = cell(format!("{}-{}-n{chains}-s{seed}", self.name(), row.name()), &settings, keep);
        let trained = (Row { method: Method::Diffusion, steps: 5 }, self.middle(budget));
        if row.method == Method::Diffusion && (row, chains) != trained {
            out.config.training = trained_elsewhere();
            out.transport_of = Some(self.cell(trained.0, trained.1, seed, budget).as_source());
        }
        out
    }

    /// What figures show of a run of the first seed.
    fn keep(&self, row: Row, chains: usize, budget: Budget) -> Keep {
        use Method::*;
        let columns = self.chains(budget);
        let (fewest, most) = (Some(&chains) == columns.first(), Some(&chains) == columns.last());
        let carried = row.method == Cmcd || (row.method == Diffusion && row.steps > 0);
        let overview = *self == Self::Gmm && fewest && super::overview::ROWS.contains(&row);
        let scattered = *self == Self::ManyWell && carried && matches!(row.steps, 1 | 5);
        Keep {
            subsets: matches!(self, Self::ManyWell | Self::Dw4)
                && matches!(row.method, Plain | Cmcd | Diffusion),
            distances: *self == Self::Dw4 && most && carried,
            coordinates: if scattered { 4 } else { 2 * usize::from(overview) },
            round_trips: overview,
            map: *self == Self::Alanine && row.method == Affine,
            ladders: false,
        }
    }

    /// The number of chains in the middle of the table.
    pub fn middle(&self, budget: Budget) -> usize {
        let columns = self.chains(budget);
        columns[columns.len() / 2]
    }

    /// All runs of the table.
    pub fn cells(&self, budget: Budget) -> Vec<Cell> {
        let mut out = Vec::new();
        for row in self.rows(budget) {
            for n in self.chains(budget) {
                out.extend(self.seeds(row, n, budget).map(|seed| self.cell(row, n, seed, budget)));
            }
        }
        out
    }

    /// Seeds of one place in the table.
    pub fn seeds(&self, row: Row, chains: usize, budget: Budget) -> std::ops::RangeInclusive<u64> {
        // Many chains on a learned path of many coordinates or particles take the longest.
        let is_long = row.method == Method::Diffusion && *self != Self::Gmm && chains > self.middle(budget);
        match (self, budget) {
            (_, Budget::Quick) => 1..=1,
            (Self::Alanine, _) => 1..=4,
            (_, Budget::Full) if row.is_trained() => 1..=1,
            _ if is_long => 1..=1,
            _ if row.method == Method::Spline => 1..=4,
            _ if row.is_trained() => 1..=2,
            _ => 1..=4,
        }
    }
}

/// Steps of training where what `sterna run` does by default would be too long for a whole table.
fn standard_steps(problem: Problem, row: Row) -> Option<u64> {
    match (problem, row.method, row.steps) {
        (Problem::Gmm, Method::Cmcd, 1) => Some(10_000),
        (Problem::Gmm, Method::Cmcd, 2) => Some(8000),
        (Problem::Gmm, Method::Cmcd, _) => Some(6000),
        (Problem::Dw4, Method::Cmcd, 1) => Some(3000),
        (Problem::Dw4, Method::Cmcd, _) => Some(2500),
        (Problem::ManyWell, Method::Cmcd, 1) => Some(5000),
        (Problem::ManyWell, Method::Cmcd, 2) => Some(4000),
        (Problem::ManyWell, Method::Cmcd, _) => Some(3000),
        _ => None,
    }
}

/// Batches are those that the tables were made with, however many chains share them.
const BATCH: usize = 256;

/// What stands under `training` where the transport is that of another cell.
pub fn trained_elsewhere() -> TrainingConfig {
    TrainingConfig { batch: Some(BATCH), ..TrainingConfig::default() }
}

/// A cell from settings that are known to be right.
pub fn cell(name: String, settings: &[(&'static str, String)], keep: Keep) -> Cell {
    let batch = BATCH.to_string();
    let given = settings.iter().map(|(key, value)| (*key, value.as_str()));
    let settings: Vec<(&str, &str)> =
        std::iter::once(("training.batch", batch.as_str())).chain(given).collect();
    let config = Config::parse("", &settings).expect("settings of experiments are sound");
    Cell { name, config, transport_of: None, keep }
}
