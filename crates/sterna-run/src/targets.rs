//! `[target]`: what a config can sample, one file for each kind.

mod alanine_dipeptide;
mod banana;
mod boxed;
mod correlated_normal;
mod dw4;
mod eggbox;
mod funnel;
mod galaxies;
mod gmm;
mod lennard_jones;
mod library;
mod log_gamma;
mod many_well;
mod molecule;
mod mrna;
mod normal;
mod own;
mod phi4;
mod rosenbrock;
mod shells;
mod spike_and_slab;
mod stan;

pub use alanine_dipeptide::AlanineDipeptide;
pub use banana::Banana;
pub use correlated_normal::CorrelatedNormal;
pub use dw4::Dw4;
pub use eggbox::Eggbox;
pub use funnel::Funnel;
pub use galaxies::Galaxies;
pub use gmm::Gmm;
pub use lennard_jones::LennardJones;
pub use library::Library;
pub use log_gamma::LogGamma;
pub use many_well::ManyWell;
pub use molecule::{MOST_KELVIN, MoleculeFiles};
pub use mrna::Mrna;
pub use normal::Normal;
pub use own::Own;
pub use phi4::Phi4;
pub use rosenbrock::Rosenbrock;
pub use shells::Shells;
pub use spike_and_slab::SpikeAndSlab;
pub use stan::{Data, Stan};

use crate::config::kinds::kinds;
use crate::error::JobError;
use crate::problem::Problem;
use std::path::PathBuf;
use sterna::Streams;

/// What a kind of target does.
pub trait Kind {
    /// What `sterna targets` says of it.
    fn about(&self) -> About;

    /// What is sampled.
    fn problem(&self) -> Result<Problem, JobError>;

    /// Files that it names.
    fn files(&mut self) -> Vec<File<'_>> {
        Vec::new()
    }

    /// What holds where the config does not say.
    fn in_force(&self, problem: &Problem) -> Vec<(&'static str, toml::Value)> {
        vec![("dim", (problem.dim() as i64).into())]
    }
}

/// A file that a target names.
#[derive(Debug)]
pub struct File<'a> {
    /// Where it is.
    pub path: &'a mut PathBuf,
    /// What a copy of it is called in the run folder, before its ending; without one, the run needs the file itself.
    pub kept_as: Option<&'static str>,
}

/// A line of the list that `sterna targets` prints.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Which dimensions are possible.
    pub possible: &'static str,
    /// What it is.
    pub about: &'static str,
}

kinds! {
    /// What is sampled.
    pub enum TargetKind: dyn Kind, by default Gmm {
        /// A mixture of normals.
        Gmm(Gmm) = "gmm",
        /// Four particles.
        Dw4(Dw4) = "dw4",
        /// Independent double wells.
        ManyWell(ManyWell) = "many-well",
        /// A normal.
        Normal(Normal) = "normal",
        /// Neal's funnel.
        Funnel(Funnel) = "funnel",
        /// A bent normal.
        Banana(Banana) = "banana",
        /// mRNA transfection.
        Mrna(Mrna) = "mrna",
        /// A mixture for velocities of galaxies.
        Galaxies(Galaxies) = "galaxies",
        /// Gaussian shells in a box.
        Shells(Shells) = "shells",
        /// Narrow peaks in a regular pattern in a box.
        Eggbox(Eggbox) = "eggbox",
        /// Modes with heavy tails in a box.
        LogGamma(LogGamma) = "log-gamma",
        /// Curved valleys in a box.
        Rosenbrock(Rosenbrock) = "rosenbrock",
        /// A normal with equal correlations in a box.
        CorrelatedNormal(CorrelatedNormal) = "correlated-normal",
        /// A narrow mode and a wide one in a box.
        SpikeAndSlab(SpikeAndSlab) = "spike-slab",
        /// A cluster of particles.
        LennardJones(LennardJones) = "lennard-jones",
        /// A field on a lattice.
        Phi4(Phi4) = "phi4",
        /// Alanine dipeptide, built in.
        AlanineDipeptide(AlanineDipeptide) = "alanine-dipeptide",
        /// A molecule from files.
        Molecule(MoleculeFiles) = "molecule",
        /// A target in a shared library.
        Library(Library) = "library",
        /// A model of Stan.
        Stan(Stan) = "stan",
        /// A target in a program that uses this library.
        Own(Own) = "own",
    }
}

impl TargetKind {
    /// What `sterna targets` says of it.
    pub fn about(&self) -> About {
        self.role().about()
    }

    /// What is sampled.
    pub fn problem(&self) -> Result<Problem, JobError> {
        Ok(Problem { kind: self.clone(), ..self.role().problem()? })
    }

    /// Files that it names.
    pub fn files(&mut self) -> Vec<File<'_>> {
        self.as_mut().files()
    }

    /// What holds where the config does not say.
    pub(crate) fn in_force(&self, problem: &Problem) -> Vec<(&'static str, toml::Value)> {
        self.role().in_force(problem)
    }
}

/// Fields of another kind are errors here: a target that ignores one would not be what was meant.
pub(crate) fn refuse_misplaced(target: &TargetKind, given: &[&str]) -> Result<(), JobError> {
    let Some(field) = given.iter().find(|field| **field != "kind" && !target.has(field)) else {
        return Ok(());
    };
    let kind = target.kind();
    let belongs = |what: &str, to: &str| {
        let here = format!("\"{kind}\"");
        Err(JobError::Belongs { what: what.into(), to: format!("kind = \"{to}\""), here })
    };
    match *field {
        "precision" | "mean" => belongs("target.precision and target.mean", "normal"),
        "library" | "symbol" => belongs("target.library and target.symbol", "library"),
        "gradient" => belongs("target.gradient", "library"),
        "system" | "positions" if kind == "alanine-dipeptide" => Err(JobError::Config(format!(
            "target.{field} belongs to kind = \"molecule\"; alanine dipeptide is built in"
        ))),
        "model" | "data" => belongs("target.model and target.data", "stan"),
        "seed" | "quantities" | "bridgestan" => belongs(&format!("target.{field}"), "stan"),
        "name" => belongs("target.name", "own"),
        "particles" => belongs("target.particles", "lennard-jones"),
        "length" | "mass_squared" | "coupling" => {
            belongs("target.length, target.mass_squared and target.coupling", "phi4")
        }
        _ => Err(JobError::of_molecules(&format!("target.{field}"), kind)),
    }
}

/// The dimension given, or the default; `possible` says in words what `is_possible` tests.
fn dimension(
    kind: &str,
    given: Option<usize>,
    default: usize,
    possible: &str,
    is_possible: fn(usize) -> bool,
) -> Result<usize, JobError> {
    let dim = given.unwrap_or(default);
    if is_possible(dim) && dim <= Streams::MOST_NORMALS {
        return Ok(dim);
    }
    let reason = match is_possible(dim) {
        true => format!("its dimension must be at most {}", Streams::MOST_NORMALS),
        false => format!("its dimension must be {possible}"),
    };
    Err(JobError::combination("target.dim", dim, format!("for {kind}"), reason))
}
