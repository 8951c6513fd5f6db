//! A zoo of densities of which the truth is known, hard and easy: what a sampler and its verdicts are held against.
//!
//! Each is a density as users write them, by one function, with log Z and expectations that are known exactly (in closed
//! form, by symmetry, or by quadrature in one dimension). Those without an integral have no truth: whoever claims one is wrong.

mod aside;
mod easy;
mod edges;
mod hidden;
mod later;
mod lawless;
mod modes;
mod others;
mod ridges;
mod tails;

use crate::p_values::normal_cdf;
use std::fmt;
use std::sync::Arc;
use sterna::{Batch, Evaluation, Target};

/// What a density is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// One mode, of any place and width.
    Easy,
    /// Several modes.
    Modes,
    /// Tails that fall off by a power.
    Tails,
    /// Widths that hang on another coordinate.
    Funnels,
    /// Bent, or narrow in a direction that turns.
    Ridges,
    /// Jumps, kinks, poles.
    Edges,
    /// No integral.
    Lawless,
    /// Modes that nobody can see: what no evaluation came near, nobody knows of.
    Hidden,
    /// Of any kind: kept aside while settings and thresholds were chosen.
    Aside,
}

/// A density by one function, which writes the score and returns the log density.
pub struct Density {
    dim: usize,
    function: Box<Function>,
    log_z: Option<f64>,
}

/// Writes the score and returns the log density.
pub type Function = dyn Fn(&[f64], &mut [f64]) -> f64 + Send + Sync;

impl Density {
    /// Of points of this length.
    pub fn new(dim: usize, function: impl Fn(&[f64], &mut [f64]) -> f64 + Send + Sync + 'static) -> Self {
        Self { dim, function: Box::new(function), log_z: None }
    }

    /// One that says what its log Z is.
    pub fn with_log_z(self, log_z: f64) -> Self {
        Self { log_z: Some(log_z), ..self }
    }
}

impl fmt::Debug for Density {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Density").field("dim", &self.dim).finish_non_exhaustive()
    }
}

impl Target for Density {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        for i in 0..x.rows() {
            out.log_density[i] = (self.function)(x.row(i), out.score.row_mut(i));
        }
        Ok(())
    }

    fn log_z(&self) -> Option<f64> {
        self.log_z
    }
}

/// A function of a point.
pub type OfPoint = dyn Fn(&[f64]) -> f64 + Send + Sync;

/// An expectation that is known.
#[derive(Clone)]
pub struct Expectation {
    /// Of what.
    pub name: String,
    /// Its value at a point.
    pub function: Arc<OfPoint>,
    /// Its mean.
    pub value: f64,
    /// The standard deviation of one draw, where that is known: a share has one, whatever draws say.
    pub deviation: Option<f64>,
}

impl fmt::Debug for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} = {}", self.name, self.value)
    }
}

impl Expectation {
    /// The mean of a function.
    pub fn mean(
        name: impl Into<String>,
        value: f64,
        function: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), function: Arc::new(function), value, deviation: None }
    }

    /// The probability of a set.
    pub fn share(
        name: impl Into<String>,
        probability: f64,
        set: impl Fn(&[f64]) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            function: Arc::new(move |x| f64::from(u8::from(set(x)))),
            value: probability,
            deviation: Some((probability * (1.0 - probability)).sqrt()),
        }
    }

    /// The probability that a coordinate is below a threshold.
    pub fn below(coordinate: usize, threshold: f64, probability: f64) -> Self {
        Self::share(
            format!("P(x{coordinate} < {})", (1e4 * threshold).round() / 1e4),
            probability,
            move |x| x[coordinate] < threshold,
        )
    }

    /// Mean and quantiles of a coordinate that is normal.
    pub fn normal(coordinate: usize, mean: f64, deviation: f64) -> Vec<Self> {
        let below = |z: f64| Self::below(coordinate, mean + z * deviation, normal_cdf(z));
        vec![
            Self::mean(format!("E[x{coordinate}]"), mean, move |x| x[coordinate]),
            below(-1.3),
            below(0.0),
            below(1.3),
        ]
    }
}

/// A density with what is known of it.
#[derive(Clone, Debug)]
pub struct Specimen {
    /// What it is called.
    pub name: &'static str,
    /// What it is like.
    pub class: Class,
    /// What it is.
    pub about: &'static str,
    /// The density.
    pub density: Arc<Density>,
    /// log ∫ π̃; none where there is no integral.
    pub log_z: Option<f64>,
    /// Expectations that are known.
    pub expectations: Vec<Expectation>,
}

impl Specimen {
    fn new(name: &'static str, class: Class, about: &'static str, density: Density) -> Self {
        Self { name, class, about, density: Arc::new(density), log_z: None, expectations: Vec::new() }
    }

    fn with_log_z(self, log_z: f64) -> Self {
        Self { log_z: Some(log_z), ..self }
    }

    fn knowing(mut self, expectations: impl IntoIterator<Item = Expectation>) -> Self {
        self.expectations.extend(expectations);
        self
    }

    /// Whether there is a law to be sampled.
    pub fn has_law(&self) -> bool {
        self.class != Class::Lawless && self.log_z.is_some()
    }
}

/// All of them.
///
/// ```
/// let zoo = sterna_testkit::zoo::specimens();
/// assert!(zoo.iter().any(|specimen| specimen.name == "two-normals"));
/// assert!(zoo.iter().all(|specimen| specimen.log_z.is_some() == specimen.has_law()));
/// ```
pub fn specimens() -> Vec<Specimen> {
    let all = [
        easy::specimens(),
        modes::specimens(),
        tails::specimens(),
        ridges::specimens(),
        edges::specimens(),
        lawless::specimens(),
        hidden::specimens(),
        aside::specimens(),
        later::specimens(),
        others::specimens(),
    ];
    all.into_iter().flatten().collect()
}

/// ln 2π.
const LN_2_PI: f64 = 1.837_877_066_409_345_5;

/// ∫ f by Simpson's rule, with so many intervals.
fn integral(f: impl Fn(f64) -> f64, from: f64, to: f64, intervals: usize) -> f64 {
    let (n, width) = (2 * intervals, (to - from) / (2 * intervals) as f64);
    let weight = |i: usize| match i {
        0 => 1.0,
        i if i == n => 1.0,
        i if i.is_multiple_of(2) => 2.0,
        _ => 4.0,
    };
    (0..=n).map(|i| weight(i) * f(from + i as f64 * width)).sum::<f64>() * width / 3.0
}

/// log Σ exp of all.
fn log_sum_exp(all: &[f64]) -> f64 {
    let top = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY { top } else { top + all.iter().map(|l| (l - top).exp()).sum::<f64>().ln() }
}

/// A normal of one width in all directions, as part of a mixture.
#[derive(Clone, Debug)]
struct Hump {
    weight: f64,
    centre: Vec<f64>,
    deviation: f64,
}

impl Hump {
    fn new(weight: f64, centre: Vec<f64>, deviation: f64) -> Self {
        Self { weight, centre, deviation }
    }

    fn log_density(&self, x: &[f64]) -> f64 {
        let square: f64 = x.iter().zip(&self.centre).map(|(x, m)| (x - m) * (x - m)).sum();
        let d = x.len() as f64;
        self.weight.ln() - 0.5 * square / self.deviation.powi(2) - d * (self.deviation.ln() + 0.5 * LN_2_PI)
    }
}

/// A mixture of normals, normalised.
fn mixture(humps: Vec<Hump>) -> Density {
    Density::new(humps[0].centre.len(), move |x, score| {
        let logs: Vec<f64> = humps.iter().map(|hump| hump.log_density(x)).collect();
        let all = log_sum_exp(&logs);
        score.fill(0.0);
        for (hump, log) in humps.iter().zip(&logs) {
            let pull = (log - all).exp() / hump.deviation.powi(2);
            score.iter_mut().zip(x.iter().zip(&hump.centre)).for_each(|(s, (x, m))| *s += pull * (m - x));
        }
        all
    })
}

/// P(x₀ < threshold) and the mean of x₀ of such a mixture.
fn of_first(humps: &[Hump], thresholds: &[f64]) -> Vec<Expectation> {
    let mean = humps.iter().map(|h| h.weight * h.centre[0]).sum();
    let below = |t: f64| humps.iter().map(|h| h.weight * normal_cdf((t - h.centre[0]) / h.deviation)).sum();
    let mut all = vec![Expectation::mean("E[x0]", mean, |x| x[0])];
    all.extend(thresholds.iter().map(|&t| Expectation::below(0, t, below(t))));
    all
}

#[cfg(test)]
mod tests;
