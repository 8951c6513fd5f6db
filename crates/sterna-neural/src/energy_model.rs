//! The energy model of App. D.3: a path of densities from N(0, I) to the target.
//!
//!   log π_s(x) = [r(1) − r(s)][r(s) − r(0)] ⟨N(x, s), x⟩ + c(s) log g₁(√s x) − ½|x|²,
//!   c(s) = 1 + r(1) − r(s),   log g₁(x) = log π̃(x) + ½|x|².
//!
//! At s = 1 it is the target, at s = 0 a normal of unknown mass (errata E13). It can be normalised at every
//! s if 0 < c(s), s·c(s) < 1 and N is bounded (errata E14). All three hold for any parameters here: with a
//! scalar network κ we set c(s) = 1/(s + (1 − s) e^κ), which is exact for a Gaussian of variance e^−κ, and
//! r(1) = 0; N is squashed to a ball, whose radius absorbs the constant 1/c(0).

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use crate::conditions::waves;
use crate::egnn::{Egnn, check_species};
use crate::graph::{Graph, Value};
use crate::mlp::{Hidden, Mlp};
use crate::parameters::{Init, Layout};
use crate::particles::Particles;
use crate::target::GraphTarget;
use crate::{Error, Result};

/// Smallest 1 − s that the features tell apart.
const SHORTEST: f64 = 1e-4;
/// Frequencies of s and of log(1 − s).
const FREQUENCIES: usize = 4;

/// A network of time alone: the paper's scalar r, or anything else that depends on s.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeNetwork {
    mlp: Mlp,
}

impl TimeNetwork {
    /// Adds the parameters of a network with `outputs` outputs, zero at the start.
    pub fn new(layout: &mut Layout, name: &str, hidden: Hidden, outputs: usize) -> Self {
        Self { mlp: Mlp::new(layout, name, time_features(), hidden, outputs) }
    }

    /// Records the output at `time` (one column).
    pub fn record<'g>(&self, time: Value<'g>) -> Value<'g> {
        self.mlp.record(record_time(time))
    }
}

fn time_features() -> usize {
    2 + 4 * FREQUENCIES
}

/// Features of s and of log(1 − s): near s = 1 the densities change on ever shorter scales.
fn record_time(time: Value<'_>) -> Value<'_> {
    let closeness = (1.0 + SHORTEST - time).log() * (1.0 / SHORTEST.ln());
    let mut parts = vec![time, closeness];
    parts.extend(waves(time, FREQUENCIES));
    parts.extend(waves(closeness, FREQUENCIES));
    time.graph().concat(&parts)
}

/// What computes the vector N.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Field {
    /// An MLP of points of this length.
    Mlp {
        /// Length of a point.
        dim: usize,
    },
    /// An EGNN of mean-free particle positions.
    Egnn {
        /// The particles.
        particles: Particles,
        /// Kind of each particle; empty if all are alike.
        species: Vec<usize>,
    },
}

/// Size of an [`EnergyNetwork`].
///
/// ```
/// use sterna_neural::{EnergyConfig, Layout};
///
/// let network = EnergyConfig::paper_gmm(10).build(&mut Layout::new(), "energy").unwrap();
/// assert_eq!(network.dim(), 10);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnergyConfig {
    /// What computes N.
    pub field: Field,
    /// Its hidden layers.
    pub hidden: Hidden,
    /// Hidden layers of the scalar network.
    pub scalar_hidden: Hidden,
    /// Radius of the ball that N is squashed to.
    pub bound: f64,
    /// κ at the start: minus the log of the variance of one mode of the target.
    pub log_precision: f64,
}

impl EnergyConfig {
    fn with(field: Field, hidden: Hidden) -> Self {
        Self { field, hidden, scalar_hidden: Hidden::new(2, 64), bound: 30.0, log_precision: 1.0 }
    }

    /// The paper's for GMM-d: 3 layers of 128; a component's standard deviation is 1/40.
    pub fn paper_gmm(dim: usize) -> Self {
        Self { log_precision: 1600f64.ln(), ..Self::with(Field::Mlp { dim }, Hidden::new(3, 128)) }
    }

    /// The paper's for MW-32: 3 layers of 256.
    pub fn paper_many_well(dim: usize) -> Self {
        Self { log_precision: 2.0, ..Self::with(Field::Mlp { dim }, Hidden::new(3, 256)) }
    }

    /// The paper's for DW-4: an EGNN of 3 layers of 128.
    pub fn paper_dw4() -> Self {
        let field = Field::Egnn { particles: Particles::DW4, species: vec![] };
        Self::with(field, Hidden::new(3, 128))
    }

    /// For CPUs: an MLP of 3 layers of 64.
    pub fn small(dim: usize) -> Self {
        Self::with(Field::Mlp { dim }, Hidden::new(3, 64))
    }

    /// For CPUs: an EGNN of 2 layers of 32.
    pub fn small_particles(particles: Particles) -> Self {
        Self::with(Field::Egnn { particles, species: vec![] }, Hidden::new(2, 32))
    }

    /// Adds the parameters.
    ///
    /// # Errors
    /// If a size is zero, the bound not positive, or the kinds do not fit the particles.
    pub fn build(&self, layout: &mut Layout, name: &str) -> Result<EnergyNetwork> {
        if !(self.bound > 0.0 && self.bound.is_finite()) {
            let value = self.bound.to_string();
            return Err(Error::Config { field: "bound", value, reason: "must be positive and finite" });
        }
        let hidden = self.hidden.check()?;
        let vector = format!("{name}.vector");
        let field = match &self.field {
            Field::Mlp { dim } => {
                FieldNetwork::Mlp(Mlp::new(layout, &vector, dim + time_features(), hidden, *dim))
            }
            Field::Egnn { particles, species } => {
                check_species(*particles, species)?;
                FieldNetwork::Egnn(Egnn::new(layout, &vector, *particles, time_features(), hidden, species))
            }
        };
        let scalar = TimeNetwork::new(layout, &format!("{name}.scalar"), self.scalar_hidden.check()?, 1);
        let offset = layout.add(format!("{name}.log_precision"), 1, 1, Init::Constant(self.log_precision));
        Ok(EnergyNetwork { config: self.clone(), field, scalar, offset })
    }
}

#[derive(Clone, Debug, PartialEq)]
enum FieldNetwork {
    Mlp(Mlp),
    Egnn(Egnn),
}

/// The learned path of densities; see the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub struct EnergyNetwork {
    config: EnergyConfig,
    field: FieldNetwork,
    scalar: TimeNetwork,
    offset: crate::parameters::Slot,
}

impl EnergyNetwork {
    /// Length of a point.
    pub fn dim(&self) -> usize {
        match &self.config.field {
            Field::Mlp { dim } => *dim,
            Field::Egnn { particles, .. } => particles.dim(),
        }
    }

    /// Records c(s) = 1 + r(1) − r(s).
    pub fn record_share<'g>(&self, time: Value<'g>) -> Value<'g> {
        let kappa = self.scalar.record(time) + self.offset.record(time.graph());
        (time + (1.0 - time) * kappa.exp()).recip()
    }

    /// Records r(s), with r(1) = 0: the paper's scalar network.
    pub fn record_r<'g>(&self, time: Value<'g>) -> Value<'g> {
        1.0 - self.record_share(time)
    }

    /// Records the bounded vector N(x, s).
    pub fn record_vector<'g>(&self, time: Value<'g>, x: Value<'g>) -> Value<'g> {
        let features = record_time(time);
        let raw = match &self.field {
            FieldNetwork::Mlp(mlp) => mlp.record(x.graph().concat(&[x, features])),
            FieldNetwork::Egnn(egnn) => egnn.record(features, x),
        };
        // v/√(1 + |v|²/R²) has length below R and keeps v's direction, hence its symmetry.
        let radius = self.config.bound;
        raw * (raw.dot(raw) * (radius * radius).recip() + 1.0).sqrt().recip()
    }

    /// Records log π_s(x), one column.
    pub fn record<'g>(&self, target: &dyn GraphTarget, time: Value<'g>, x: Value<'g>) -> Value<'g> {
        let graph: &'g Graph = x.graph();
        let share = self.record_share(time);
        let at_zero = self.record_share(graph.scalar(0.0));
        // [r(1) − r(s)][r(s) − r(0)] up to the constant −c(0), which N's radius absorbs.
        let switch = (1.0 - share) * (share - at_zero) / at_zero;
        let square = x.dot(x);
        let log_g = target.log_density(x * time.sqrt()) + time * square * 0.5;
        switch * self.record_vector(time, x).dot(x) + share * log_g - square * 0.5
    }

    /// log ∫ exp(−½|x|²) dx: what [`record`](Self::record) at s = 0 and x = 0 lacks of log Z̃₀ (errata E13).
    pub fn log_normal_mass(&self) -> f64 {
        0.5 * self.dim() as f64 * TAU.ln()
    }
}
