//! `kind = "galaxies"`: velocities of galaxies as a mixture of three normals, six modes that weigh the same.

use super::{About, Kind, dimension};
use crate::error::JobError;
use crate::problem::{Constrain, Parameter, Problem};
use serde::{Deserialize, Serialize};
use sterna::targets::galaxies::COMPONENTS;

const POSSIBLE: &str = "9";

/// Fields of `kind = "galaxies"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Galaxies {
    /// Dimension, which is 9.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for Galaxies {
    fn about(&self) -> About {
        let about = "velocities of galaxies as a mixture of three normals, a posterior: six equal modes";
        About { possible: POSSIBLE, about }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        dimension("galaxies", self.dim, 9, POSSIBLE, |dim| dim == 9)?;
        let names =
            sterna::targets::Galaxies::NAMES.map(|name| Parameter::vector(name, COMPONENTS).counted_from(1));
        Ok(Problem::new(sterna::targets::Galaxies).with_values(Values, names))
    }
}

struct Values;

impl Constrain for Values {
    fn values(&self) -> usize {
        3 * COMPONENTS
    }

    fn constrain(&self, point: &[f64], values: &mut [f64]) {
        values.copy_from_slice(&sterna::targets::Galaxies::values(point));
    }
}
