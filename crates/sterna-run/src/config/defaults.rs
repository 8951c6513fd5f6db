//! Defaults that hang on the problem: a density of which nothing is known gets a fitted reference, and all that suits it.

use super::{Config, Count, ExplorerKind, ReferenceKind, TargetKind, Until};
use crate::error::JobError;
use crate::explorers;
use crate::problem::Problem;
use std::fmt;
use sterna::run::Settings;

/// What a text or overrides said: only the rest follows from the problem. Two configs are the same whatever was said.
#[derive(Clone, Default)]
pub struct Given(toml::Table);

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
        Self(table)
    }

    fn has(&self, section: &str, field: &str) -> bool {
        self.0.get(section).and_then(toml::Value::as_table).is_some_and(|fields| fields.contains_key(field))
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
        self.reference = self.reference.settled(problem, &self)?;
        if matches!(self.reference, ReferenceKind::Fitted(_)) {
            if !self.moves_find_their_step() {
                let (kind, reason) =
                    (self.explorer.kind(), "its moves must find their step: explorer.kind = \"auto\"");
                let with = "with reference.kind = \"fitted\"";
                return Err(JobError::combination("explorer.kind", format!("\"{kind}\""), with, reason));
            }
            self.suit_a_fitted_reference();
        }
        self.training.rounds = Some(self.fits(problem.molecule.is_some()));
        Ok(self)
    }

    /// Whether local moves are `auto`, or nothing was said of them.
    pub(crate) fn moves_find_their_step(&self) -> bool {
        let unsaid = !self.given.has("explorer", "kind") && self.explorer == ExplorerKind::default();
        unsaid || matches!(self.explorer, ExplorerKind::Auto(_))
    }

    /// What was not said becomes what suits a fitted reference: chains as the barrier asks for, four ladders, moves that find
    /// their step, rounds that double, and an end when there are draws enough.
    fn suit_a_fitted_reference(&mut self) {
        let (usual, suits) = (Self::default(), Settings::fitted());
        let given = self.given.clone();
        let open = |section: &str, field: &str| !given.has(section, field);
        if open("chains", "count") && self.chains.count == usual.chains.count {
            self.chains.count = Count::Auto;
        }
        if open("chains", "ensembles") && self.chains.ensembles == usual.chains.ensembles {
            self.chains.ensembles = suits.ensembles;
        }
        if open("explorer", "kind") && self.explorer == usual.explorer {
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
                let goals = suits.until.unwrap_or_default();
                let (ess, log_z_error) = (goals.ess, goals.log_z_error);
                self.run.until = Until { ess, log_z_error, ..self.run.until.clone() };
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
        // Another reference keeps what goes with it.
        let old = settled("[reference]\nkind = \"standard-normal\"");
        assert_eq!((old.chains.count, old.explorer.kind()), (Count::Number(10), "hmc"));
    }
}
