//! What holds where nothing was said: a resolved config says it all, so that its reader need not know any default.

use super::{Config, ReferenceKind, Sight};
use crate::accelerators::{Seen, Usual};
use crate::problem::Problem;
use crate::references::{PeptideBonds, TEMPERATURE};
use sterna::run::Settings;
use toml::{Table, Value};

impl Config {
    /// The same, with every value that is in force where none was said. What a run is yet to decide stays open, and is told in
    /// words.
    pub(super) fn with_all_in_force(self, problem: &Problem) -> Self {
        // TOML has no numbers beyond 2⁶³: a seed may be one, any other will be refused where it is used.
        let (seed, plain) = (self.seed, Self { seed: 0, ..self.clone() });
        let Ok(mut table) = Table::try_from(&plain) else { return self };
        let seen = self.seen(problem);
        let all = [
            self.of_target(problem),
            self.of_reference(problem),
            self.of_accelerator(problem),
            self.of_network(problem, &seen),
        ];
        for (section, field, value) in all.into_iter().flatten() {
            let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
            section.as_table_mut().expect("a section").entry(field).or_insert(value);
        }
        let mut given = self.given.clone();
        given.open = self.still_open(problem, &seen);
        Self { seed, given, ..table.try_into().expect("fields of the kinds in use") }
    }

    fn of_target(&self, problem: &Problem) -> Vec<Said> {
        let of = |(field, value)| ("target", field, value);
        self.target.in_force(problem).into_iter().map(of).collect()
    }

    fn of_reference(&self, problem: &Problem) -> Vec<Said> {
        match &self.reference {
            ReferenceKind::Tempered(_) => vec![
                ("reference", "temperature", TEMPERATURE.into()),
                ("reference", "peptide_bonds", PeptideBonds::usual(self).name().into()),
            ],
            // A program's own normal comes first.
            ReferenceKind::StandardNormal(_) | ReferenceKind::Fitted(_) if problem.reference.is_none() => {
                vec![("reference", "mean", 0.0.into())]
            }
            _ => Vec::new(),
        }
    }

    fn of_accelerator(&self, problem: &Problem) -> Vec<Said> {
        let steps =
            self.accelerator.usual_steps().map(|steps| ("accelerator", "steps", number(steps as u64)));
        let collected = self.collected(problem).map(|all| ("training", "collect", number(all)));
        steps.into_iter().chain(collected).collect()
    }

    /// Iterations whose samples an accelerator is fitted to, where nobody said; none where nothing is fitted.
    pub(super) fn collected(&self, problem: &Problem) -> Option<u64> {
        let all = self.accelerator.collect(problem.molecule.is_some())?;
        // From a fitted reference every ladder brings samples that are nearly independent.
        let is_fitted = matches!(self.reference, ReferenceKind::Fitted(_));
        Some(if is_fitted { all.div_ceil(self.chains.ensembles.max(1) as u64) } else { all })
    }

    /// What a network may see; both, where a trial is to decide.
    fn seen(&self, problem: &Problem) -> Vec<Seen> {
        let particles = problem.particles.is_some() && self.network.equivariant != Some(false);
        match self.network.coordinates {
            _ if particles => vec![Seen::Particles],
            Some(Sight::Together) => vec![Seen::Together],
            Some(Sight::Apart) => vec![Seen::Apart],
            None => vec![Seen::Together, Seen::Apart],
        }
    }

    fn of_network(&self, problem: &Problem, seen: &[Seen]) -> Vec<Said> {
        let usual = |seen| self.accelerator.usual(problem, seen);
        let Some(first) = usual(seen[0]) else { return Vec::new() };
        let batch = self.accelerator.batch(self.chains.count) as u64;
        let mut all = vec![("training", "fine_tune", number(0)), ("training", "batch", number(batch))];
        if seen.iter().all(|seen| usual(*seen) == Some(first)) {
            let (layers, width) = first.of(self.network.preset);
            let sizes = [("network", "layers", layers as u64), ("network", "width", width as u64)];
            let numbers = sizes.into_iter().chain([("training", "steps", first.steps)]);
            all.extend(numbers.map(|(section, field, value)| (section, field, number(value))));
        }
        // Flows see coordinates in one way.
        let looks = usual(Seen::Particles) != usual(Seen::Together);
        let particles = seen[0] == Seen::Particles;
        if looks && problem.particles.is_some() {
            all.push(("network", "equivariant", particles.into()));
        }
        if self.accelerator.has("drift") {
            all.push(("network", "along_score", (!particles).into()));
        }
        all
    }

    /// What the run is yet to decide, in lines.
    fn still_open(&self, problem: &Problem, seen: &[Seen]) -> Vec<String> {
        let usual = |seen: &Seen| self.accelerator.usual(problem, *seen);
        let all: Vec<Usual> = seen.iter().filter_map(usual).collect();
        let [together, apart] = all[..] else { return Vec::new() };
        if together == apart {
            return Vec::new();
        }
        let size = |usual: Usual| {
            let (layers, width) = usual.of(self.network.preset);
            format!(
                "layers = {}, width = {}, steps = {}",
                self.network.layers.unwrap_or(layers),
                self.network.width.unwrap_or(width),
                self.training.steps.unwrap_or(usual.steps)
            )
        };
        vec![
            "network.coordinates is found by a short training of two networks. The better one goes on:"
                .into(),
            format!("  together: {}", size(together)),
            format!("  apart: {}", size(apart)),
        ]
    }

    /// Samples to fit to, as settings want a number in any case.
    pub(super) fn to_collect(&self, problem: &Problem) -> u64 {
        let usual = Settings::default().collect;
        self.training.collect.unwrap_or_else(|| self.collected(problem).unwrap_or(usual))
    }
}

/// Section, field and value.
type Said = (&'static str, &'static str, Value);

fn number(n: u64) -> Value {
    Value::Integer(n.try_into().unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna::targets::Banana;

    fn resolved(text: &str) -> Config {
        let config = Config::parse(text, &[]).unwrap();
        let problem = config.problem().unwrap();
        let resolved = config.settled(&problem).unwrap();
        // It reads as itself, and what it says changes nothing of what it means.
        let again = Config::parse(&resolved.to_toml(), &[]).unwrap();
        assert_eq!(again, resolved);
        assert_eq!(again.clone().settled(&problem).unwrap(), resolved);
        resolved
    }

    #[test]
    fn every_value_is_there() {
        let dim = "[target]\nkind = \"gmm\"\n";
        for (kind, parts) in [
            ("none", &["dim = 10", "mean = 0.0"][..]),
            ("affine", &["steps = 1", "collect = 5000"]),
            (
                "flow",
                &[
                    "steps = 1",
                    "collect = 20000",
                    "layers = 8",
                    "width = 48",
                    "steps = 6000",
                    "fine_tune = 0",
                ],
            ),
            ("cmcd", &["steps = 5", "collect = 20000", "along_score = true"]),
            ("diffusion", &["steps = 5", "collect = 50000"]),
        ] {
            let resolved = resolved(&format!("{dim}[accelerator]\nkind = \"{kind}\""));
            let text = resolved.to_toml();
            parts
                .iter()
                .for_each(|part| assert!(text.contains(part), "{kind}: {part} is missing in\n{text}"));
            let trial = ["cmcd", "diffusion"].contains(&kind);
            assert_eq!(!resolved.given.open.is_empty(), trial, "{kind}");
            assert_eq!(resolved.network.layers.is_some(), kind == "flow", "{text}");
        }
        let told = resolved(&format!("{dim}[accelerator]\nkind = \"cmcd\"")).given.open.join("\n");
        assert!(told.contains("together: layers = 3, width = 96, steps = 24000"), "{told}");
        assert!(told.contains("apart: layers = 2, width = 32, steps = 4000"), "{told}");
    }

    #[test]
    fn more_pairs_have_larger_batches() {
        let batch = |kind: &str, chains: &str| {
            let text = format!("[chains]\ncount = {chains}\n[accelerator]\nkind = \"{kind}\"");
            resolved(&text).training.batch
        };
        assert_eq!(["6", "10", "\"auto\"", "30"].map(|n| batch("cmcd", n)), [256, 256, 256, 824].map(Some));
        assert_eq!((batch("flow", "30"), batch("none", "30")), (Some(256), None));
    }

    #[test]
    fn what_is_decided_has_its_sizes() {
        let apart = "[accelerator]\nkind = \"cmcd\"\nsteps = 2\n[network]\ncoordinates = \"apart\"\npreset = \"paper\"";
        let config = resolved(apart);
        let (network, training) = (&config.network, &config.training);
        assert_eq!((network.layers, network.width, training.steps), (Some(3), Some(64), Some(8000)));
        let particles = resolved("[target]\nkind = \"dw4\"\n[accelerator]\nkind = \"diffusion\"");
        assert_eq!((particles.network.equivariant, particles.network.width), (Some(true), Some(16)));
        let plain = resolved("[target]\nkind = \"dw4\"\n[accelerator]\nkind = \"flow\"");
        assert_eq!((plain.network.equivariant, plain.network.along_score), (None, None));
        let own = resolved("[accelerator]\nkind = \"flow\"\n[network]\nwidth = 7\n[training]\nsteps = 9");
        assert_eq!((own.network.layers, own.network.width, own.training.steps), (Some(8), Some(7), Some(9)));
    }

    #[test]
    fn numbers_beyond_those_of_toml_are_no_trouble() {
        let config = Config { seed: u64::MAX, ..Config::default() };
        let problem = config.problem().unwrap();
        let resolved = config.settled(&problem).unwrap();
        assert_eq!((resolved.seed, resolved.target.has("dim")), (u64::MAX, true));
        let mut config = Config::default();
        config.run.iterations = u64::MAX;
        assert_eq!(config.settled(&problem).unwrap().run.iterations, u64::MAX);
    }

    #[test]
    fn molecules_and_fitted_references() {
        let molecule =
            resolved("[target]\nkind = \"alanine-dipeptide\"\n[accelerator]\nkind = \"flow\"").to_toml();
        let sizes = ["dim = 63", "temperature = 300.0", "temperature = 1200.0", "layers = 3", "steps = 2500"];
        for part in sizes.into_iter().chain(["peptide_bonds = \"held\""]) {
            assert!(molecule.contains(part), "{part} is missing in\n{molecule}");
        }
        let plain = resolved("[target]\nkind = \"alanine-dipeptide\"").to_toml();
        assert!(plain.contains("peptide_bonds = \"heated\""), "{plain}");
        // Four ladders bring a quarter of the samples each.
        let problem = Problem::new(Banana::new(2));
        let fitted = Config::parse("[accelerator]\nkind = \"flow\"", &[]).unwrap().settled(&problem).unwrap();
        assert_eq!(fitted.training.collect, Some(5000));
        assert_eq!(fitted.to_collect(&problem), 5000);
    }
}
