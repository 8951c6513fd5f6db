//! Defaults that hang on the problem: a density of which nothing is known gets a fitted reference, and all that suits it.

use super::{Config, Count, ExplorerKind, ReferenceKind, TargetKind, Until};
use crate::error::JobError;
use crate::problem::Problem;
use crate::{explorers, no_score};
use std::fmt;
use sterna::run::Settings;

/// What a text or overrides said: only the rest follows from the problem. Two configs are the same whatever was said.
#[derive(Clone, Default)]
pub struct Given {
    table: toml::Table,
    /// What a user should know of how it was read.
    pub(super) notes: Vec<String>,
    /// What a run is yet to decide, in lines.
    pub(super) open: Vec<String>,
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Given")
    }
}

impl PartialEq for Given {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Given {
    pub(super) fn new(table: toml::Table) -> Self {
        Self { table, ..Self::default() }
    }

    fn has(&self, section: &str, field: &str) -> bool {
        self.table
            .get(section)
            .and_then(toml::Value::as_table)
            .is_some_and(|fields| fields.contains_key(field))
    }
}

impl Config {
    /// The same, with all that follows from the problem.
    pub fn settled(mut self, problem: &Problem) -> Result<Self, JobError> {
        self.target = match problem.kind.clone() {
            TargetKind::Library(library) => library.with_absolute_path().into(),
            TargetKind::Stan(stan) => stan.with_absolute_path().into(),
            other => other,
        };
        self.accelerator.name_transport_from_the_root();
        self.reference = self.reference.settled(problem, &self)?;
        if !problem.target.has_score() {
            let is_open = !self.given.has("explorer", "kind") && self.explorer == ExplorerKind::default();
            no_score::suit(&mut self, is_open);
            no_score::check(&self)?;
        }
        if matches!(self.reference, ReferenceKind::Fitted(_)) {
            if let Some(sizes) = self.explorer.step_sizes() {
                let reason = "the number of chains follows from tuning: give one number, or \"adapt\"";
                let (sizes, with) = (format!("{sizes:?}"), "with reference.kind = \"fitted\"");
                return Err(JobError::combination("explorer.step_size", sizes, with, reason));
            }
            self.suit_a_fitted_reference();
        }
        if matches!(self.reference, ReferenceKind::Prior(_)) {
            self.suit_a_prior(problem.target.has_score());
        }
        self.training.rounds = Some(self.fits(problem.molecule.is_some()));
        Ok(self.with_all_in_force(problem))
    }

    /// What was not said becomes what suits a fitted reference: chains as the barrier asks for, four ladders, moves that find
    /// their step, rounds that double, and an end when there are draws enough.
    fn suit_a_fitted_reference(&mut self) {
        let suits = Settings::fitted();
        self.suit(&suits, true);
    }

    /// The same for a prior, which stays as it is: rounds of one length, as many as a schedule needs. Longer ones cost more than they
    /// bring: with 250 iterations a round, shells, LogGamma and eggbox took twice the evaluations to the same error.
    fn suit_a_prior(&mut self, has_score: bool) {
        let (rounds, round_iterations, round_burn_in) = (5, 60, 10);
        let suits = Settings { rounds, round_iterations, round_burn_in, burn_in: 100, ..Settings::fitted() };
        self.suit(&suits, has_score);
    }

    fn suit(&mut self, suits: &Settings, has_score: bool) {
        let usual = Self::default();
        let given = self.given.clone();
        let open = |section: &str, field: &str| !given.has(section, field);
        if open("chains", "count") && self.chains.count == usual.chains.count {
            self.chains.count = Count::Auto;
        }
        if open("chains", "ensembles") && self.chains.ensembles == usual.chains.ensembles {
            self.chains.ensembles = suits.ensembles;
        }
        if has_score && open("explorer", "kind") && self.explorer == usual.explorer {
            self.explorer = ExplorerKind::Auto(explorers::Auto::default());
        }
        let (schedule, before) = (&mut self.schedule, usual.schedule);
        if open("schedule", "rounds") && schedule.rounds == before.rounds {
            schedule.rounds = suits.rounds;
        }
        if open("schedule", "iterations") && schedule.iterations == before.iterations {
            (schedule.iterations, schedule.burn_in) = (suits.round_iterations, suits.round_burn_in);
        }
        if open("run", "burn_in") && self.run.burn_in == usual.run.burn_in {
            self.run.burn_in = suits.burn_in;
        }
        if open("run", "iterations") && self.run.iterations == usual.run.iterations {
            self.run.iterations = suits.iterations;
            if self.run.until.ess.is_none() && self.run.until.log_z_error.is_none() {
                let goals = suits.until.clone().unwrap_or_default();
                let (ess, log_z_error) = (goals.ess, goals.log_z_error);
                self.run.until = Until { ess, log_z_error, ..self.run.until };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna::targets::Banana;

    fn settled(text: &str) -> Config {
        Config::parse(text, &[]).unwrap().settled(&Problem::new(Banana::new(2))).unwrap()
    }

    #[test]
    fn what_was_said_stays() {
        let usual = settled("");
        assert!(matches!(usual.reference, ReferenceKind::Fitted(_)));
        assert_eq!((usual.chains.count, usual.chains.ensembles), (Count::Auto, 4));
        assert_eq!((usual.explorer.kind(), usual.run.until.ess), ("auto", Some(1000.0)));
        // A resolved config stays as it is.
        let again = Config::parse(&usual.to_toml(), &[]).unwrap();
        assert_eq!(again.clone().settled(&Problem::new(Banana::new(2))).unwrap(), usual);
        // Defaults that were said are no defaults.
        let said = settled(
            "[chains]\ncount = 10\nensembles = 1\n[explorer]\nkind = \"hmc\"\n[run]\niterations = 100000\nburn_in = 1000",
        );
        assert_eq!((said.chains.count, said.chains.ensembles), (Count::Number(10), 1));
        assert_eq!((said.explorer.kind(), said.run.iterations, said.run.burn_in), ("hmc", 100_000, 1000));
        assert!(said.run.until.is_empty());
        let goals = settled("[run.until]\ness = 50");
        assert_eq!((goals.run.until.ess, goals.run.until.log_z_error), (Some(50.0), None));
        // Moves of any kind go with it; a step size for each chain needs chains that are counted.
        let slices = settled("[explorer]\nkind = \"slice\"");
        assert!(matches!(slices.reference, ReferenceKind::Fitted(_)) && slices.explorer.kind() == "slice");
        let counted = "[chains]\ncount = 2\n[explorer]\nstep_size = [0.1, 0.2]\n";
        assert!(matches!(settled(counted).reference, ReferenceKind::StandardNormal(_)));
        let fitted = Config::parse(&format!("{counted}[reference]\nkind = \"fitted\""), &[]).unwrap();
        let refused = fitted.settled(&Problem::new(Banana::new(2))).unwrap_err().to_string();
        assert!(
            refused.contains("explorer.step_size = [0.1, 0.2]") && refused.contains("adapt"),
            "{refused}"
        );
        // Transports that are fitted follow the reference; one from elsewhere has its own.
        for kind in ["affine", "flow", "cmcd", "diffusion"] {
            let with = settled(&format!("[accelerator]\nkind = \"{kind}\""));
            // Of a transport it tells more.
            let Config { accelerator, network, training, .. } = usual.clone();
            let alike = Config { accelerator, network, training, ..with.clone() };
            assert_eq!(alike, usual, "{kind}");
        }
        let kept = settled("[accelerator]\nkind = \"flow\"\ntransport = \"old.safetensors\"");
        assert!(matches!(kept.reference, ReferenceKind::StandardNormal(_)));
        // Another reference keeps what goes with it.
        let old = settled("[reference]\nkind = \"standard-normal\"");
        assert_eq!((old.chains.count, old.explorer.kind()), (Count::Number(10), "hmc"));
    }
}
