//! `kind = "phi4"`: lattice φ⁴ theory in two dimensions.

use super::{About, Kind};
use crate::error::JobError;
use crate::problem::{Constrain, Parameter, Problem};
use serde::{Deserialize, Serialize};
use sterna::paths::Reference;
use sterna::targets::Phi4InModes;

const POSSIBLE: &str = "length², a square of 3 or more";
const LENGTH: usize = 6;
const MOST_LENGTH: usize = 256;
const MASS_SQUARED: f64 = -4.0;
/// Couplings in use at m² = −4, by the length of an edge: the correlation length is a quarter of it.
const COUPLINGS: [(usize, f64); 5] = [(6, 6.975), (12, 5.276), (20, 4.807), (32, 4.572), (64, 4.398)];
/// What bounds a number that is not about 1.
const MOST: f64 = 1e6;

/// Fields of `kind = "phi4"`.
///
/// ```
/// use sterna_run::targets::{Phi4, TargetKind};
///
/// let lattice: TargetKind = Phi4 { length: Some(12), ..Phi4::default() }.into();
/// assert_eq!(lattice.problem()?.dim(), 144);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Phi4 {
    /// Sites along an edge, 6 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<usize>,
    /// m², −4 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass_squared: Option<f64>,
    /// λ; if not given, what is in use for an edge of 6, 12, 20, 32 or 64 sites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coupling: Option<f64>,
}

impl Kind for Phi4 {
    fn about(&self) -> About {
        About { possible: POSSIBLE, about: "a field on a periodic square lattice, of either sign" }
    }

    /// Sampled in the modes of the free field that comes nearest, where its path begins; values are those of sites.
    fn problem(&self) -> Result<Problem, JobError> {
        let lattice = self.lattice()?;
        let length = lattice.length();
        let in_modes = Phi4InModes::new(lattice);
        let prior = Some(Reference::standard_normal(length * length));
        let problem = Problem { prior, ..Problem::recorded(in_modes.clone()) };
        let problem = problem.with_values(Sites(in_modes), [Parameter::array("phi", [length, length])]);
        let energy = move |field: &[f64]| lattice.action_per_site(field);
        let magnetisation = move |field: &[f64]| lattice.magnetisation(field);
        let size = move |field: &[f64]| lattice.magnetisation(field).abs();
        let problem = problem.observe("magnetisation", magnetisation).observe("energy", energy);
        Ok(problem.observe("absolute_magnetisation", size))
    }
}

/// The field of modes.
struct Sites(Phi4InModes);

impl Constrain for Sites {
    fn values(&self) -> usize {
        self.0.modes().sites()
    }

    fn constrain(&self, point: &[f64], values: &mut [f64]) {
        self.0.field(point, values);
    }
}

impl Phi4 {
    fn lattice(&self) -> Result<sterna::targets::Phi4, JobError> {
        let length = self.length.unwrap_or(LENGTH);
        if !(3..=MOST_LENGTH).contains(&length) {
            let reason = format!("an edge has 3 to {MOST_LENGTH} sites");
            return Err(JobError::setting("target.length", length, reason));
        }
        let mass_squared = self.mass_squared.unwrap_or(MASS_SQUARED);
        if !(-MOST..=MOST).contains(&mass_squared) {
            return Err(JobError::setting(
                "target.mass_squared",
                mass_squared,
                "it lies between -1e6 and 1e6",
            ));
        }
        let known = COUPLINGS.iter().find(|(of, _)| *of == length).map(|(_, coupling)| *coupling);
        let Some(coupling) = self.coupling.or(known) else {
            let reason = "give target.coupling: a value is known for 6, 12, 20, 32 and 64 sites alone";
            return Err(JobError::setting("target.length", length, reason));
        };
        if !(1e-6..=MOST).contains(&coupling) {
            return Err(JobError::setting("target.coupling", coupling, "it lies between 1e-6 and 1e6"));
        }
        Ok(sterna::targets::Phi4::new(length, mass_squared, coupling))
    }
}
