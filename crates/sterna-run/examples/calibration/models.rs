//! Models whose evidence and posterior means are known: parameters are drawn from the prior N(0, I), data from the parameters.

use sterna::streams::RowStream;
use sterna::{Batch, Evaluation, Result, Target};

/// What is simulated and sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// y = θ₁ + θ₂ t + noise: conjugate.
    Line,
    /// Counts whose log rate is 0.5 + 0.7 θ₁ + 0.5 θ₂ t.
    Counts,
    /// y = θ₁² + θ₂/2 + noise: two modes.
    Fold,
}

/// Where lines and rates are looked at.
const TIMES: [f64; 6] = [-1.0, -0.6, -0.2, 0.2, 0.6, 1.0];

/// Standard deviations of the noise.
const LINE_NOISE: f64 = 0.7;
const FOLD_NOISE: f64 = 0.5;

/// Observations of a fold.
const FOLDS: usize = 4;

impl Model {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Line, Self::Counts, Self::Fold];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Counts => "counts",
            Self::Fold => "fold",
        }
    }

    /// Parameters from the prior, data from the parameters, and the posterior of these.
    pub fn simulate(self, stream: &mut RowStream) -> ([f64; 2], Posterior) {
        let theta = [stream.normal(), stream.normal()];
        let data = match self {
            Self::Line => {
                TIMES.iter().map(|t| theta[0] + theta[1] * t + LINE_NOISE * stream.normal()).collect()
            }
            Self::Counts => {
                let rate = |t: &f64| (0.5 + 0.7 * theta[0] + 0.5 * theta[1] * t).exp();
                TIMES.iter().map(|t| poisson(rate(t), stream)).collect()
            }
            Self::Fold => {
                let mean = theta[0] * theta[0] + 0.5 * theta[1];
                (0..FOLDS).map(|_| mean + FOLD_NOISE * stream.normal()).collect()
            }
        };
        (theta, Posterior { model: self, data })
    }
}

/// By the times between events.
fn poisson(rate: f64, stream: &mut RowStream) -> f64 {
    let (mut count, mut time) = (0.0, -stream.uniform().ln());
    while time < rate {
        count += 1.0;
        time -= stream.uniform().ln();
    }
    count
}

/// Prior times likelihood, both normalised, so that its integral is the evidence.
#[derive(Clone, Debug)]
pub struct Posterior {
    model: Model,
    data: Vec<f64>,
}

const LOG_TWO_PI: f64 = 1.837_877_066_409_345_5;

impl Posterior {
    /// log likelihood, and its derivatives.
    pub fn log_likelihood(&self, theta: &[f64]) -> (f64, [f64; 2]) {
        let (mut value, mut slope) = (0.0, [0.0; 2]);
        let normal = |off: f64, noise: f64| -0.5 * (off / noise).powi(2) - noise.ln() - 0.5 * LOG_TWO_PI;
        match self.model {
            Model::Line => {
                for (t, y) in TIMES.iter().zip(&self.data) {
                    let off = y - theta[0] - theta[1] * t;
                    value += normal(off, LINE_NOISE);
                    let pull = off / (LINE_NOISE * LINE_NOISE);
                    slope = [slope[0] + pull, slope[1] + pull * t];
                }
            }
            Model::Counts => {
                for (t, y) in TIMES.iter().zip(&self.data) {
                    let log_rate = 0.5 + 0.7 * theta[0] + 0.5 * theta[1] * t;
                    let factorial: f64 = (1..=*y as u64).map(|k| (k as f64).ln()).sum();
                    value += y * log_rate - log_rate.exp() - factorial;
                    let pull = y - log_rate.exp();
                    slope = [slope[0] + 0.7 * pull, slope[1] + 0.5 * pull * t];
                }
            }
            Model::Fold => {
                for y in &self.data {
                    let off = y - theta[0] * theta[0] - 0.5 * theta[1];
                    value += normal(off, FOLD_NOISE);
                    let pull = off / (FOLD_NOISE * FOLD_NOISE);
                    slope = [slope[0] + 2.0 * theta[0] * pull, slope[1] + 0.5 * pull];
                }
            }
        }
        (value, slope)
    }

    /// log evidence and the means of both parameters, by the trapezoid rule, which is exact here to many digits.
    pub fn exact(&self) -> (f64, [f64; 2]) {
        const STEP: f64 = 0.04;
        const SIDE: i32 = 180;
        let places = || (-SIDE..=SIDE).map(|i| STEP * f64::from(i));
        let log_density = |theta: [f64; 2]| {
            self.log_likelihood(&theta).0 - 0.5 * (theta[0] * theta[0] + theta[1] * theta[1]) - LOG_TWO_PI
        };
        let points: Vec<[f64; 2]> = places().flat_map(|a| places().map(move |b| [a, b])).collect();
        let log_densities: Vec<f64> = points.iter().map(|theta| log_density(*theta)).collect();
        let most = log_densities.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (mut mass, mut first) = (0.0, [0.0; 2]);
        for (theta, log_density) in points.iter().zip(&log_densities) {
            let weight = (log_density - most).exp();
            mass += weight;
            first = [first[0] + weight * theta[0], first[1] + weight * theta[1]];
        }
        (most + (mass * STEP * STEP).ln(), first.map(|sum| sum / mass))
    }
}

impl Target for Posterior {
    fn dim(&self) -> usize {
        2
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        for i in 0..x.rows() {
            let theta = x.row(i);
            let (value, slope) = self.log_likelihood(theta);
            out.log_density[i] = value - 0.5 * (theta[0] * theta[0] + theta[1] * theta[1]) - LOG_TWO_PI;
            out.score.row_mut(i).copy_from_slice(&[slope[0] - theta[0], slope[1] - theta[1]]);
        }
        Ok(())
    }
}
