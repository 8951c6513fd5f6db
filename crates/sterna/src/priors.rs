//! Priors by name: laws of parameters before any data, normalised, in the free coordinates of their supports.

mod cube;
mod draws;
mod gamma;
mod independent;
#[cfg(test)]
mod tests;

pub use cube::{Cube, normal_distribution};
pub use independent::Independent;

use crate::lanes::one::{exp, ln, softplus};
use crate::supports::{self, Support};
use crate::{Error, Result};
use gamma::ln_gamma;
use std::cell::Cell;
use std::f64::consts::{PI, TAU};
use std::fmt;
use std::str::FromStr;

/// A law of a parameter's values; those with one name are independent, but for Dirichlet's.
///
/// ```
/// use sterna::{priors::Law, supports::Support};
/// let law: Law = "gamma(2, 0.5)".parse()?;
/// assert_eq!((law.to_string(), law.support()), ("gamma(2, 0.5)".to_string(), Support::Positive));
/// # Ok::<(), sterna::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// Mean and standard deviation.
    Normal(f64, f64),
    /// Bounds.
    Uniform(f64, f64),
    /// Mean and standard deviation of the logarithm.
    LogNormal(f64, f64),
    /// Shape and rate.
    Gamma(f64, f64),
    /// The two shapes.
    Beta(f64, f64),
    /// Rate.
    Exponential(f64),
    /// Standard deviation of the normal whose magnitude it is.
    HalfNormal(f64),
    /// Median and half the width between quartiles.
    Cauchy(f64, f64),
    /// Concentrations, one for each value, or one for all.
    Dirichlet(Vec<f64>),
}

const KNOWN: &str = "it must be normal(mean, sd), uniform(lower, upper), log-normal(mean, sd), gamma(shape, rate), beta(a, b), \
                     exponential(rate), half-normal(sd), cauchy(median, scale) or dirichlet(concentration, …)";

thread_local! {
    /// Logarithms of the values of a simplex.
    static ROOM: Cell<Vec<f64>> = const { Cell::new(Vec::new()) };
}

impl Law {
    /// Where its values lie.
    pub fn support(&self) -> Support {
        match *self {
            Self::Normal(..) | Self::Cauchy(..) => Support::Real,
            Self::LogNormal(..) | Self::Gamma(..) | Self::Exponential(_) | Self::HalfNormal(_) => {
                Support::Positive
            }
            Self::Uniform(lower, upper) => Support::Interval { lower, upper },
            Self::Beta(..) => Support::Interval { lower: 0.0, upper: 1.0 },
            Self::Dirichlet(_) => Support::Simplex,
        }
    }

    /// Refuses numbers that make no law of so many values.
    pub fn check(&self, size: usize) -> Result<()> {
        let refused = |cure| Err(Error::setting("Parameter.prior", self, cure));
        let positive = |x: f64| x > 0.0 && x.is_finite();
        match self {
            Self::Normal(mean, sd) | Self::LogNormal(mean, sd) | Self::Cauchy(mean, sd)
                if !(mean.is_finite() && positive(*sd)) =>
            {
                refused("its first number must be finite, its second positive")
            }
            Self::Uniform(lower, upper) if !(lower < upper && (upper - lower).is_finite()) => {
                refused("its bounds must be finite, the lower one below the upper one")
            }
            Self::Gamma(a, b) | Self::Beta(a, b) if !(positive(*a) && positive(*b)) => {
                refused("its numbers must be positive")
            }
            Self::Exponential(x) | Self::HalfNormal(x) if !positive(*x) => {
                refused("its number must be positive")
            }
            Self::Dirichlet(all) if !all.iter().all(|x| positive(*x)) => {
                refused("its concentrations must be positive")
            }
            Self::Dirichlet(all) if all.len() != 1 && all.len() != size => {
                refused("give one concentration for all values, or as many as there are")
            }
            _ => self.support().check(size),
        }
    }

    /// The law with a number for each of so many values.
    fn of_size(self, size: usize) -> Self {
        match self {
            Self::Dirichlet(all) if all.len() == 1 => Self::Dirichlet(vec![all[0]; size]),
            other => other,
        }
    }

    /// The constant of its density in free coordinates.
    fn log_constant(&self, size: usize) -> f64 {
        let normal = -0.5 * ln(TAU);
        let each = match self {
            Self::Normal(_, sd) | Self::LogNormal(_, sd) => normal - ln(*sd),
            Self::Uniform(..) => 0.0,
            Self::Gamma(a, b) => a * ln(*b) - ln_gamma(*a),
            Self::Beta(a, b) => ln_gamma(a + b) - ln_gamma(*a) - ln_gamma(*b),
            Self::Exponential(rate) => ln(*rate),
            Self::HalfNormal(sd) => ln(2.0) + normal - ln(*sd),
            Self::Cauchy(_, scale) => -ln(PI * scale),
            Self::Dirichlet(all) => {
                let parts: f64 = all.iter().map(|a| ln_gamma(*a)).sum();
                return ln_gamma(all.iter().sum()) - parts + supports::simplex_constant(size);
            }
        };
        each * size as f64
    }

    /// Its log density in free coordinates, volume and all, but without its constant; the score is written.
    fn evaluate(&self, y: &[f64], score: &mut [f64]) -> f64 {
        if let Self::Dirichlet(all) = self {
            return dirichlet(all, y, score);
        }
        let mut sum = 0.0;
        for (y, score) in y.iter().zip(score) {
            let (log_density, slope) = self.of_one(*y);
            (sum, *score) = (sum + log_density, slope);
        }
        sum
    }

    /// The same of one coordinate: y = log x for positive x, y = log (x − lower)/(upper − x) within bounds.
    fn of_one(&self, y: f64) -> (f64, f64) {
        match *self {
            Self::Normal(mean, sd) | Self::LogNormal(mean, sd) => {
                let away = (y - mean) / sd;
                (-0.5 * away * away, -away / sd)
            }
            Self::Cauchy(median, scale) => {
                let away = (y - median) / scale;
                let square = 1.0 + away * away;
                (-ln(square), -2.0 * away / (scale * square))
            }
            Self::Gamma(shape, rate) => {
                let x = rate * exp(y);
                (shape * y - x, shape - x)
            }
            Self::Exponential(rate) => {
                let x = rate * exp(y);
                (y - x, 1.0 - x)
            }
            Self::HalfNormal(sd) => {
                let away = exp(y) / sd;
                let square = away * away;
                (y - 0.5 * square, 1.0 - square)
            }
            Self::Uniform(..) => of_logit(1.0, 1.0, y),
            Self::Beta(a, b) => of_logit(a, b, y),
            Self::Dirichlet(_) => unreachable!("its values hang together"),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Normal(..) => "normal",
            Self::Uniform(..) => "uniform",
            Self::LogNormal(..) => "log-normal",
            Self::Gamma(..) => "gamma",
            Self::Beta(..) => "beta",
            Self::Exponential(_) => "exponential",
            Self::HalfNormal(_) => "half-normal",
            Self::Cauchy(..) => "cauchy",
            Self::Dirichlet(_) => "dirichlet",
        }
    }
}

/// a log σ(y) + b log σ(−y), and its slope.
fn of_logit(a: f64, b: f64, y: f64) -> (f64, f64) {
    let (up, down) = (softplus(y), softplus(-y));
    (-a * down - b * up, a * exp(-up) - b * exp(-down))
}

/// Σ aₖ log xₖ, where log x = z − log Σ exp z and z = V y; the slope by z is a − x Σ a.
fn dirichlet(all: &[f64], y: &[f64], score: &mut [f64]) -> f64 {
    let mut z = ROOM.take();
    z.resize(all.len(), 0.0);
    supports::spread(y, &mut z);
    let top = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let log_sum = top + ln(z.iter().map(|z| exp(z - top)).sum());
    let total: f64 = all.iter().sum();
    let log_density = all.iter().zip(&z).map(|(a, z)| a * (z - log_sum)).sum();
    supports::gather(all.iter().zip(&z).map(|(a, z)| a - total * exp(z - log_sum)), score);
    ROOM.set(z);
    log_density
}

/// As a config has it.
impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let numbers = match self {
            Self::Normal(a, b) | Self::Uniform(a, b) | Self::LogNormal(a, b) => vec![*a, *b],
            Self::Gamma(a, b) | Self::Beta(a, b) | Self::Cauchy(a, b) => vec![*a, *b],
            Self::Exponential(a) | Self::HalfNormal(a) => vec![*a],
            Self::Dirichlet(all) => all.clone(),
        };
        let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
        write!(f, "{}({})", self.name(), numbers.join(", "))
    }
}

impl FromStr for Law {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::setting("Parameter.prior", format_args!("{text:?}"), KNOWN);
        let (name, rest) = text.trim().split_once('(').ok_or_else(wrong)?;
        let numbers =
            rest.strip_suffix(')').ok_or_else(wrong)?.split(',').map(|number| number.trim().parse::<f64>());
        let numbers: Vec<f64> = numbers.collect::<std::result::Result<_, _>>().map_err(|_| wrong())?;
        Ok(match (name.trim(), &numbers[..]) {
            ("normal", &[a, b]) => Self::Normal(a, b),
            ("uniform", &[a, b]) => Self::Uniform(a, b),
            ("log-normal", &[a, b]) => Self::LogNormal(a, b),
            ("gamma", &[a, b]) => Self::Gamma(a, b),
            ("beta", &[a, b]) => Self::Beta(a, b),
            ("exponential", &[a]) => Self::Exponential(a),
            ("half-normal", &[a]) => Self::HalfNormal(a),
            ("cauchy", &[a, b]) => Self::Cauchy(a, b),
            ("dirichlet", all) => Self::Dirichlet(all.to_vec()),
            _ => return Err(wrong()),
        })
    }
}
