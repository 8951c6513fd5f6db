//! Defaults that hang on the problem: a density of which nothing is known gets a fitted reference, and all that suits it.

use super::{
    AcceleratorKind, Config, Count, Device, ExplorerKind, PathShape, ReferenceKind, TargetKind, Until,
};
use crate::error::JobError;
use crate::explorers::Steps;
use crate::problem::Problem;
use crate::trial::is_of_a_user;
use crate::{accelerators, explorers, no_score};
use std::fmt;
use sterna::run::{Criterion, Settings};
use sterna_molecule::{Molecule, TorsionMoves};

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
        self.value(section, field).is_some()
    }

    fn number(&self, section: &str, field: &str) -> Option<f64> {
        let value = self.value(section, field)?;
        value.as_float().or_else(|| value.as_integer().map(|n| n as f64))
    }

    fn value(&self, section: &str, field: &str) -> Option<&toml::Value> {
        self.table.get(section)?.as_table()?.get(field)
    }
}

/// Atoms of a molecule whose maps are fitted unasked: those of many more ask for more samples than are collected, and more memory than
/// there may be.
const MOST_MAPPED: usize = 300;

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
        self.check_path()?;
        if !problem.target.has_score() {
            if let Some(steps) = self.steps_of_any_moves() {
                self.explorer = explorers::Slice { steps, ..explorers::Slice::default() }.into();
            }
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
            if matches!(problem.kind, TargetKind::LennardJones(_)) {
                self.suit_particles_that_overlap();
            }
            self.suit_a_prior(problem.target.has_score());
        }
        if let (TargetKind::Molecule(_), Some(molecule)) = (&problem.kind, &problem.molecule) {
            self.suit_a_molecule(molecule);
        }
        self.training.rounds = Some(self.fits(problem.molecule.is_some()));
        let choosing = self.choosing(problem);
        Ok(choosing.unwrap_or(self).with_all_in_force(problem))
    }

    /// The same with the transport that pays, where nothing was said of one: for targets of users, that cores sample, unless its samples
    /// would take more memory than there may be.
    fn choosing(&self, problem: &Problem) -> Option<Self> {
        let said = self.given.has("accelerator", "kind") || self.accelerator != AcceleratorKind::default();
        if said
            || self.schedule.path == PathShape::Spline
            || !is_of_a_user(problem)
            || self.run.device != Device::Cpu
        {
            return None;
        }
        let evaluation_cost_s = self.given.number("accelerator", "evaluation_cost_s");
        let choosing = Self { accelerator: accelerators::Auto { evaluation_cost_s }.into(), ..self.clone() };
        let mut counted = choosing.clone();
        if self.chains.count == Count::Auto && !matches!(self.reference, ReferenceKind::Fitted(_)) {
            // As many as a pilot run, which is still to come, may ask for.
            counted.chains.count = Count::Number(Settings::fitted().chains);
        }
        counted.settings(problem).is_ok().then_some(choosing)
    }

    /// Whether the rest of the config goes with the shape of the path.
    fn check_path(&self) -> Result<(), JobError> {
        if self.schedule.path == PathShape::Geometric {
            return Ok(());
        }
        let refused = |key, value: &str, reason| {
            Err(JobError::combination(key, value, "with schedule.path = \"spline\"", reason))
        };
        match &self.reference {
            ReferenceKind::Fitted(_) => {
                let reason = "its knots need a reference that stays: give \"standard-normal\" or \"prior\"";
                return refused("reference.kind", "\"fitted\"", reason);
            }
            ReferenceKind::Tempered(_) => {
                return refused(
                    "reference.kind",
                    "\"tempered\"",
                    "a molecule's path has one energy, not two",
                );
            }
            _ => {}
        }
        if self.run.device != Device::Cpu {
            return refused("run.device", "\"cuda\"", "a GPU walks straight paths alone");
        }
        if !matches!(self.accelerator, AcceleratorKind::None(_)) {
            let kind = format!("\"{}\"", self.accelerator.kind());
            return refused("accelerator.kind", &kind, "transports know the straight path alone");
        }
        Ok(())
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

    /// A molecule of one's own, with torsions to turn: moves that turn them, and swaps that a fitted map of bonds, angles and torsions
    /// carries. Four ladders of a tenth of the usual length then cost no more than one did, and are worth many times as much: of
    /// alanine dipeptide 5,669 independent draws of the slowest dihedral beside 138.
    fn suit_a_molecule(&mut self, molecule: &Molecule) {
        if TorsionMoves::new(molecule, 1).is_err() || self.run.device != Device::Cpu {
            return;
        }
        let (usual, given) = (Self::default(), self.given.clone());
        let open = |section: &str, field: &str| !given.has(section, field);
        if let ExplorerKind::Hmc(hmc) = &mut self.explorer
            && open("explorer", "torsion_moves")
            && hmc.torsion_moves == 0
        {
            hmc.torsion_moves = 4;
        }
        if open("chains", "count") && self.chains.count == usual.chains.count {
            self.chains.count = Count::Number(8);
        }
        if open("chains", "ensembles") && self.chains.ensembles == usual.chains.ensembles {
            self.chains.ensembles = Settings::fitted().ensembles;
        }
        self.suit_rounds(6, 400, 100);
        let is_open = open("run", "iterations") && self.run.iterations == usual.run.iterations;
        if is_open && self.run.until.is_empty() {
            self.run.iterations = 10_000;
        }
        let is_open = open("accelerator", "kind") && self.accelerator == usual.accelerator;
        if is_open && molecule.atoms() <= MOST_MAPPED {
            self.accelerator = accelerators::Affine::default().into();
            self.training.rounds = self.training.rounds.or(Some(2));
            self.training.collect = self.training.collect.or(Some(2000));
        }
    }

    /// Particles that the trap alone draws overlap, their energies have no variance, and neither has what a slope of log π by β
    /// tells of swaps: chains are counted and placed by swaps themselves, in rounds enough for them to come near to β = 0.
    fn suit_particles_that_overlap(&mut self) {
        if !self.given.has("schedule", "criterion") && self.schedule.criterion == Criterion::Barrier {
            self.schedule.criterion = Criterion::Rejection;
        }
        self.suit_rounds(12, 100, 20);
    }

    /// So many rounds of tuning, of so many iterations with such a burn-in, as far as nothing was said of them.
    fn suit_rounds(&mut self, rounds: usize, iterations: u64, burn_in: u64) {
        let open = |field: &str| !self.given.has("schedule", field);
        let (schedule, usual) = (&mut self.schedule, Self::default().schedule);
        if open("rounds") && schedule.rounds == usual.rounds {
            schedule.rounds = rounds;
        }
        if open("iterations") && schedule.iterations == usual.iterations {
            schedule.iterations = iterations;
            if open("burn_in") && schedule.burn_in == usual.burn_in {
                schedule.burn_in = burn_in;
            }
        }
    }

    /// How many moves an iteration makes, where nothing was said of their kind: their number says nothing of it.
    fn steps_of_any_moves(&self) -> Option<Steps> {
        let ExplorerKind::Hmc(hmc) = &self.explorer else { return None };
        let usual = explorers::Hmc { steps: hmc.steps, ..explorers::Hmc::default() };
        (!self.given.has("explorer", "kind") && *hmc == usual).then_some(hmc.steps)
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
        if let Some(steps) = self.steps_of_any_moves().filter(|_| has_score) {
            self.explorer = explorers::Auto { steps, ..explorers::Auto::default() }.into();
        }
        self.suit_rounds(suits.rounds, suits.round_iterations, suits.round_burn_in);
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
    fn overlapping_particles_count_swaps() {
        let problem = || TargetKind::from(crate::targets::LennardJones::default()).problem().unwrap();
        let of = |text: &str| Config::parse(text, &[]).unwrap().settled(&problem()).unwrap().schedule;
        let usual = of("[target]\nkind = \"lennard-jones\"");
        assert_eq!((usual.criterion, usual.rounds, usual.iterations), (Criterion::Rejection, 12, 100));
        let said = of("[target]\nkind = \"lennard-jones\"\n[schedule]\ncriterion = \"fixed\"\nrounds = 3");
        assert_eq!((said.criterion, said.rounds, said.iterations), (Criterion::Fixed, 3, 100));
        let burn_in = of("[target]\nkind = \"lennard-jones\"\n[schedule]\nburn_in = 30");
        assert_eq!((burn_in.iterations, burn_in.burn_in), (100, 30));
        // What a program said in Rust stays as well.
        let mut config = Config::parse("[target]\nkind = \"lennard-jones\"", &[]).unwrap();
        (config.schedule.rounds, config.schedule.iterations, config.schedule.burn_in) = (7, 300, 50);
        let said = config.settled(&problem()).unwrap().schedule;
        assert_eq!((said.rounds, said.iterations, said.burn_in), (7, 300, 50));
    }

    #[test]
    fn molecules_turn_their_torsions() {
        let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/alanine-dipeptide");
        let files = format!(
            "[target]\nkind = \"molecule\"\nsystem = \"{assets}/system.xml\"\npositions = \"{assets}/topology.pdb\"\n"
        );
        let of = |more: &str| {
            let config = Config::parse(&format!("{files}{more}"), &[]).unwrap();
            config.clone().settled(&config.problem().unwrap()).unwrap()
        };
        let usual = of("");
        assert_eq!(
            (usual.explorer.torsion_moves(), usual.accelerator.kind(), usual.chains.ensembles),
            (4, "affine", 4)
        );
        assert_eq!(
            (usual.run.iterations, usual.training.rounds, usual.training.collect),
            (10_000, Some(2), Some(2000))
        );
        // Goals have room.
        let goals = of("[run.until]\ness = 5000");
        assert_eq!(goals.run.iterations, Config::default().run.iterations);
        let said = of(
            "[explorer]\ntorsion_moves = 0\n[accelerator]\nkind = \"none\"\n[chains]\nensembles = 1\n[run]\niterations = 100000",
        );
        assert_eq!(
            (said.explorer.torsion_moves(), said.accelerator.kind(), said.chains.ensembles),
            (0, "none", 1)
        );
        assert_eq!(said.run.iterations, 100_000);
        // The paper's is what it is.
        let paper = Config::parse("[target]\nkind = \"alanine-dipeptide\"", &[]).unwrap();
        let paper = paper.clone().settled(&paper.problem().unwrap()).unwrap();
        assert_eq!(
            (paper.explorer.torsion_moves(), paper.accelerator.kind(), paper.run.iterations),
            (0, "none", 100_000)
        );
    }

    #[test]
    fn a_path_over_knots_keeps_its_ends() {
        let spline = "[schedule]\npath = \"spline\"\n";
        let usual = settled(spline);
        assert_eq!((usual.reference.kind(), usual.accelerator.kind()), ("standard-normal", "none"));
        assert!(usual.to_toml().contains("path = \"spline\"") && !settled("").to_toml().contains("path ="));
        for (more, parts) in [
            ("[reference]\nkind = \"fitted\"", ["reference.kind = \"fitted\"", "standard-normal"]),
            ("[accelerator]\nkind = \"flow\"", ["accelerator.kind = \"flow\"", "straight"]),
            ("[run]\ndevice = \"cuda\"", ["run.device = \"cuda\"", "straight"]),
        ] {
            let config = Config::parse(&format!("{spline}{more}"), &[]).unwrap();
            let refused = config.settled(&Problem::new(Banana::new(2))).unwrap_err().to_string();
            let says = |part: &&str| refused.contains(*part);
            assert!(parts.iter().all(says) && refused.contains("schedule.path"), "{refused}");
        }
    }

    #[test]
    fn what_was_said_stays() {
        let usual = settled("");
        assert!(matches!(usual.reference, ReferenceKind::Fitted(_)));
        assert_eq!((usual.chains.count, usual.chains.ensembles), (Count::Auto, 4));
        assert_eq!((usual.explorer.kind(), usual.run.until.ess), ("auto", Some(1000.0)));
        // What carries swaps is chosen, unless it was said, or a GPU is to make them.
        assert_eq!(usual.accelerator.kind(), "auto");
        let cost = settled("[accelerator]\nevaluation_cost_s = 1e-3").accelerator;
        assert_eq!(cost, accelerators::Auto { evaluation_cost_s: Some(1e-3) }.into());
        for said in ["[accelerator]\nkind = \"none\"", "[run]\ndevice = \"cuda\""] {
            assert_eq!(settled(said).accelerator.kind(), "none");
        }
        let wide = Config::default().settled(&Problem::new(Banana::new(5000))).unwrap();
        assert_eq!(wide.accelerator.kind(), "none");
        let paper = Config::parse("[target]\nkind = \"banana\"", &[]).unwrap();
        let paper = paper.clone().settled(&paper.problem().unwrap()).unwrap();
        assert_eq!(paper.accelerator.kind(), "none");
        // A resolved config stays as it is.
        let again = Config::parse(&usual.to_toml(), &[]).unwrap();
        assert_eq!(again.clone().settled(&Problem::new(Banana::new(2))).unwrap(), usual);
        // Their number goes with moves of any kind.
        for steps in ["4", "\"auto\""] {
            let said = settled(&format!("[explorer]\nsteps = {steps}"));
            assert!(said.explorer.kind() == "auto" && said.to_toml().contains(&format!("steps = {steps}")));
        }
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
