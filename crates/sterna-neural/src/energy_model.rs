//! The energy model of App. D.3: a path of densities from N(0, I) to the target.
//!
//!   log π_s(x) = Σᵢ Bᵢ(s) Nᵢ(x, s) xᵢ + c(s) log π̃(√s x) − ½ Σᵢ pᵢ(s) xᵢ².
//!
//! The paper has one scalar network r and pᵢ = 1 − s c, c = 1 + r(1) − r(s). Here c and p come from precisions
//! Eᵢ(s) of one mode of the target and a retreat b(s) > 0, all learned, with E₀ the largest of them:
//!
//!   c = h / (s + (1 − s) E₀),   h = (1 + (1 − s) E₀)^−b,   pᵢ = Eᵢ (1/(s + (1 − s) Eᵢ) − s c).
//!
//! For any b this is exact, without N, for a normal of precisions Eᵢ. With b = 0 it is the paper's. Far from
//! s = 1 the target's own landscape is too sharp: between modes its logarithm has edges that no smooth N can
//! mend. With b > 0 the target retreats there, and N, which has no edges, takes over.
//!
//! Bᵢ = s(1 − s)/(1 − s + s/Eᵢ)², with the first guess of Eᵢ: N is then of the order of the modes' places at any s. With
//! E₀ in place of Eᵢ, Nᵢ of a wide coordinate weighs so much near s = 1 that, far from all samples, it can dig a well.
//!
//! At s = 1 the model is the target (c = 1, p = 0, B = 0), at s = 0 a normal of unknown mass (errata E13). It
//! can be normalised at every s whatever the parameters (errata E14): c > 0, p > 0 below s = 1, N is squashed to
//! a ball.

use std::f64::consts::FRAC_PI_2;
use sterna::lanes::one::{self, LN_TAU};

use serde::{Deserialize, Serialize};

use crate::additive::Additive;
use crate::conditions::waves;
use crate::egnn::{Egnn, check_species};
use crate::graph::Value;
use crate::mlp::{Hidden, Mlp};
use crate::parameters::Layout;
use crate::particles::Particles;
use crate::target::GraphTarget;
use crate::{Error, Result};

/// Frequencies of s and of log(1 − s).
const FREQUENCIES: usize = 4;
/// The largest precision is taken as a norm of this order: smooth, and never too small.
const ORDER: f64 = 8.0;

/// A network of time alone: the paper's scalar r, or anything else that depends on s.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeNetwork {
    mlp: Mlp,
    shortest: f64,
}

impl TimeNetwork {
    /// Adds the parameters of a network with `outputs` outputs, zero at the start. Its features tell apart
    /// times 1 − s down to `shortest`.
    pub fn new(layout: &mut Layout, name: &str, hidden: Hidden, outputs: usize, shortest: f64) -> Self {
        Self { mlp: Mlp::new(layout, name, time_features(), hidden, outputs), shortest }
    }

    /// Records the output at `time` (one column).
    pub fn record<'g>(&self, time: Value<'g>) -> Value<'g> {
        self.mlp.record(record_time(time, self.shortest))
    }
}

fn time_features() -> usize {
    2 + 4 * FREQUENCIES
}

/// Features of s and of log(1 − s): near s = 1 the densities change on ever shorter scales.
fn record_time(time: Value<'_>, shortest: f64) -> Value<'_> {
    let closeness = (1.0 + shortest - time).log() * (1.0 / one::ln(shortest));
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
    /// A network of each coordinate alone, with the same weights for all.
    Additive {
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
    /// Radius of the ball that N is squashed to; of the interval that each Nᵢ is, where they are independent.
    pub bound: f64,
    /// log Eᵢ at the start, one for each coordinate or one for all (particles: one): minus the log of the
    /// variance of one mode of the target.
    pub log_precision: Vec<f64>,
    /// Sines and cosines of each coordinate that an MLP sees beside it: frequencies π/2, π, 2π, …
    pub waves: usize,
}

impl EnergyConfig {
    fn with(field: Field, hidden: Hidden) -> Self {
        let (scalar_hidden, log_precision) = (Hidden::new(2, 64), vec![1.0]);
        Self { field, hidden, scalar_hidden, bound: 30.0, log_precision, waves: 0 }
    }

    /// The paper's for GMM-d: 3 layers of 128; a component's standard deviation is 1/40.
    pub fn paper_gmm(dim: usize) -> Self {
        Self { log_precision: vec![one::ln(1600.0)], ..Self::with(Field::Mlp { dim }, Hidden::new(3, 128)) }
    }

    /// The paper's for MW-32: 3 layers of 256.
    pub fn paper_many_well(dim: usize) -> Self {
        Self { log_precision: vec![2.0], ..Self::with(Field::Mlp { dim }, Hidden::new(3, 256)) }
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

    /// Length of a point.
    pub fn dim(&self) -> usize {
        match &self.field {
            Field::Mlp { dim } | Field::Additive { dim } => *dim,
            Field::Egnn { particles, .. } => particles.dim(),
        }
    }

    /// Eᵢ at the start, one for each coordinate.
    pub fn precisions(&self) -> Vec<f64> {
        let one_for_all = self.log_precision.len() == 1;
        (0..self.dim()).map(|i| one::exp(self.log_precision[if one_for_all { 0 } else { i }])).collect()
    }

    /// The largest precision at the start, as the model takes it.
    fn largest(&self) -> f64 {
        let highest = self.log_precision.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = self.log_precision.iter().map(|k| one::exp(ORDER * (k - highest))).sum();
        one::exp(highest + one::ln(sum) / ORDER)
    }

    /// Times with 1 − s below this look alike: a tenth of a mode's variance.
    pub fn shortest(&self) -> f64 {
        (0.1 / self.largest()).clamp(1e-6, 0.1)
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
        let allowed = if matches!(self.field, Field::Egnn { .. }) { 1 } else { self.dim() };
        let count = self.log_precision.len();
        let usable = self.log_precision.iter().all(|k| k.abs() < 60.0);
        if (count != 1 && count != allowed) || !usable {
            let (value, reason) = (format!("{:?}", self.log_precision), "one, or one for each coordinate");
            return Err(Error::Config { field: "log_precision", value, reason });
        }
        let hidden = self.hidden.check()?;
        let vector = format!("{name}.vector");
        let field = match &self.field {
            Field::Mlp { dim } => {
                let inputs = dim * (1 + 2 * self.waves) + time_features();
                FieldNetwork::Mlp(Mlp::new(layout, &vector, inputs, hidden, *dim))
            }
            Field::Additive { dim } => {
                FieldNetwork::Additive(Additive::new(layout, &vector, *dim, time_features(), hidden))
            }
            Field::Egnn { particles, species } => {
                check_species(*particles, species)?;
                FieldNetwork::Egnn(Egnn::new(layout, &vector, *particles, time_features(), hidden, species))
            }
        };
        let (time, scalar_hidden) = (format!("{name}.scalar"), self.scalar_hidden.check()?);
        let scalar = TimeNetwork::new(layout, &time, scalar_hidden, count + 2, self.shortest());
        Ok(EnergyNetwork { config: self.clone(), field, scalar })
    }
}

#[derive(Clone, Debug, PartialEq)]
enum FieldNetwork {
    Mlp(Mlp),
    Additive(Additive),
    Egnn(Egnn),
}

/// The learned path of densities; see the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub struct EnergyNetwork {
    config: EnergyConfig,
    field: FieldNetwork,
    scalar: TimeNetwork,
}

/// What the model adds up to, at each row.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'g> {
    /// c(s), one column: the share of the target's log density at √s x.
    pub share: Value<'g>,
    /// pᵢ(s), one column for each coordinate or one for all.
    pub pull: Value<'g>,
    /// Σᵢ Bᵢ(s) Nᵢ(x, s) xᵢ, one column.
    pub learned: Value<'g>,
}

impl EnergyNetwork {
    /// Length of a point.
    pub fn dim(&self) -> usize {
        self.config.dim()
    }

    /// What it was built from.
    pub fn config(&self) -> &EnergyConfig {
        &self.config
    }

    /// Records c(s) and pᵢ(s).
    fn record_shares<'g>(&self, time: Value<'g>) -> (Value<'g>, Value<'g>) {
        let (graph, count) = (time.graph(), self.config.log_precision.len());
        let scalars = self.scalar.record(time);
        let start = graph.constant(count, &self.config.log_precision);
        let log_precision = scalars.slice(0, count) + start;
        let largest = match count {
            1 => log_precision.exp(),
            _ => ((log_precision * ORDER).log_sum_exp() * (1.0 / ORDER)).exp(),
        };
        let retreat = scalars.slice(count, 1).softplus();
        let rest = 1.0 - time;
        let kept = (retreat * (rest * largest + 1.0).log() * -1.0).exp();
        let share = kept / (time + rest * largest);
        let precision = log_precision.exp();
        let pull = precision * ((time + rest * precision).recip() - time * share);
        (share, pull)
    }

    /// Records a number for each time that training needs and the density does not: how fast log Z grows, in
    /// whatever units the loss has.
    pub(crate) fn record_growth<'g>(&self, time: Value<'g>) -> Value<'g> {
        self.scalar.record(time).slice(self.config.log_precision.len() + 1, 1)
    }

    /// Records the bounded vector N(x, s).
    pub fn record_vector<'g>(&self, time: Value<'g>, x: Value<'g>) -> Value<'g> {
        let features = record_time(time, self.config.shortest());
        let radius = self.config.bound;
        // v/√(1 + |v|²/R²) has length below R and keeps v's direction, hence its symmetry.
        let within =
            |v: Value<'g>, square: Value<'g>| v * (square * (radius * radius).recip() + 1.0).sqrt().recip();
        let raw = match &self.field {
            FieldNetwork::Mlp(mlp) => {
                let mut inputs = vec![x];
                for k in 0..self.config.waves {
                    let phase = x * (FRAC_PI_2 * 2f64.powi(k as i32));
                    inputs.extend([phase.sin(), phase.cos()]);
                }
                inputs.push(features);
                mlp.record(x.graph().concat(&inputs))
            }
            FieldNetwork::Egnn(egnn) => egnn.record(features, x),
            // Each coordinate by itself, lest they feel each other after all.
            FieldNetwork::Additive(network) => {
                let each = network.record(features, x);
                return within(each, each.square());
            }
        };
        within(raw, raw.dot(raw))
    }

    /// Records all that the model needs beside the target.
    pub fn record_parts<'g>(&self, time: Value<'g>, x: Value<'g>) -> Parts<'g> {
        let (share, pull) = self.record_shares(time);
        let variances: Vec<f64> = self.config.log_precision.iter().map(|k| one::exp(-k)).collect();
        let rest = 1.0 - time;
        let width = rest + time * time.graph().constant(variances.len(), &variances);
        let weight = time * rest / width.square();
        let learned = (weight * self.record_vector(time, x)).dot(x);
        Parts { share, pull, learned }
    }

    /// Records log π_s(x), one column.
    pub fn record<'g>(&self, target: &dyn GraphTarget, time: Value<'g>, x: Value<'g>) -> Value<'g> {
        let Parts { share, pull, learned } = self.record_parts(time, x);
        learned + share * target.log_density(x * time.sqrt()) - (pull * x.square()).sum_cols() * 0.5
    }

    /// log ∫ exp(−½|x|²) dx: what [`record`](Self::record) at s = 0 and x = 0 lacks of log Z̃₀ (errata E13).
    pub fn log_normal_mass(&self) -> f64 {
        0.5 * self.dim() as f64 * LN_TAU
    }
}
