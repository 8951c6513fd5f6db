//! `kind = "lennard-jones"`: a cluster of Lennard-Jones particles in a harmonic trap (LJ-13, LJ-55).

use super::{About, Kind};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use sterna::paths::Reference;
use sterna_neural::Particles;

const POSSIBLE: &str = "3·(particles − 1)";
const PARTICLES: usize = 13;
/// Pairs grow with the square of their number.
const MOST: usize = 1000;

/// Fields of `kind = "lennard-jones"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LennardJones {
    /// How many particles, 13 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub particles: Option<usize>,
}

impl Kind for LennardJones {
    fn about(&self) -> About {
        let about = "a cluster of particles in space (13 if not said), centre of mass removed";
        About { possible: POSSIBLE, about }
    }

    /// The trap is the prior: chain 0 draws a gas without forces, and the path turns these on.
    fn problem(&self) -> Result<Problem, JobError> {
        let count = self.particles.unwrap_or(PARTICLES);
        if !(2..=MOST).contains(&count) {
            let reason = format!("a cluster has 2 to {MOST} particles");
            return Err(JobError::setting("target.particles", count, reason));
        }
        let cluster = sterna::targets::LennardJones::new(count);
        let problem = Problem {
            particles: Some(Particles { count, space: 3 }),
            prior: Some(Reference::standard_normal(3 * (count - 1))),
            ..Problem::recorded(cluster)
        };
        Ok(problem.observe("radius", move |y| cluster.radius(y)))
    }
}
