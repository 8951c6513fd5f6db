//! Parameters with supports: a density is written in values that people speak of, which are positive, within bounds or on a
//! simplex, and the sampler sees free coordinates, all of ℝⁿ.

mod columns;
mod constrained;
mod ordered;
mod parameters;
mod scalars;
mod simplex;
mod sphere;
#[cfg(test)]
mod tests;

pub use constrained::{Constrained, RowByRow};
pub use parameters::{Parameter, Parameters};
pub(crate) use simplex::{gather, log_constant as simplex_constant, spread};

use crate::{Error, Result};
use columns::{Columns, ColumnsMut};
use std::fmt;
use std::str::FromStr;

/// Where the values of a parameter lie.
///
/// ```
/// use sterna::supports::Support;
/// assert_eq!("interval(0, 1)".parse::<Support>()?, Support::Interval { lower: 0.0, upper: 1.0 });
/// assert_eq!(Support::UnitVector.to_string(), "unit-vector");
/// # Ok::<(), sterna::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Support {
    /// Any number: free as it is.
    Real,
    /// Numbers above 0: x = eʸ.
    Positive,
    /// Numbers between two bounds, one of which may be infinite: x = lower + (upper − lower)/(1 + e⁻ʸ), lower + eʸ, or
    /// upper − eʸ.
    Interval {
        /// Lower bound, or −∞.
        lower: f64,
        /// Upper bound, or +∞.
        upper: f64,
    },
    /// Positive numbers whose sum is 1: the softmax of y's isometric coordinates, one coordinate fewer than values. The volume is
    /// that of all values but the last.
    Simplex,
    /// Increasing numbers: the first, and the logarithms of the steps.
    Ordered,
    /// A vector of length 1: the direction of y, whose length has a law of its own and tells nothing. The volume is the area
    /// of the sphere.
    UnitVector,
    /// Angles in (−π, π]: each the direction of two coordinates.
    Circle,
}

/// What is wrong with a support's text.
const KNOWN: &str =
    "it must be real, positive, interval(lower, upper), simplex, ordered, unit-vector or circle";

impl Support {
    /// Free coordinates of so many values.
    pub fn free(self, size: usize) -> usize {
        match self {
            Self::Simplex => size.saturating_sub(1),
            Self::Circle => 2 * size,
            _ => size,
        }
    }

    /// Refuses supports that hold nothing, and sizes that have no meaning.
    pub fn check(self, size: usize) -> Result<()> {
        if let Self::Interval { lower, upper } = self
            && !(lower < upper && lower < f64::INFINITY && upper > f64::NEG_INFINITY)
        {
            let cure = "its lower bound must lie below its upper one";
            return Err(Error::setting("Parameter.support", self, cure));
        }
        match self {
            _ if size == 0 => Err(Error::setting("Parameter.size", size, "a parameter has at least 1 value")),
            Self::Simplex if size == 1 => {
                let cure = "a simplex has at least 2 values: a single one could only be 1";
                Err(Error::setting("Parameter.size", size, cure))
            }
            Self::UnitVector if size == 1 => {
                let cure = "a unit vector has at least 2 values: a single one could only be −1 or 1, which nothing leads between";
                Err(Error::setting("Parameter.size", size, cure))
            }
            _ => Ok(()),
        }
    }

    /// The part of the log volume that is the same everywhere.
    fn log_constant(self, size: usize) -> f64 {
        match self {
            Self::Interval { lower, upper } if (upper - lower).is_finite() => {
                size as f64 * crate::lanes::one::ln(upper - lower)
            }
            Self::Simplex => simplex::log_constant(size),
            Self::UnitVector => sphere::log_constant(size),
            _ => 0.0,
        }
    }

    /// Writes values of free coordinates, and returns the log of the volume that the map makes of a unit, without its constant.
    #[inline(always)]
    fn constrain<L: crate::lanes::Lanes>(self, size: usize, y: Columns, x: &mut ColumnsMut) -> L {
        match self {
            Self::Real => scalars::copy::<L>(size, y, x),
            Self::Positive => scalars::beyond::<L>(0.0, 1.0, size, y, x),
            Self::Interval { lower, upper } => scalars::between::<L>([lower, upper], size, y, x),
            Self::Simplex => simplex::constrain::<L>(size, y, x),
            Self::Ordered => ordered::constrain::<L>(size, y, x),
            Self::UnitVector => sphere::constrain::<L>(size, y, x),
            Self::Circle => sphere::angles::<L>(size, y, x),
        }
    }

    /// Writes the score of the free coordinates: that of the density in values, pulled back, and that of the volume.
    #[inline(always)]
    fn pull_back<L: crate::lanes::Lanes>(self, size: usize, at: At, score: &mut ColumnsMut) {
        match self {
            Self::Real => scalars::copy_back::<L>(size, at, score),
            Self::Positive => scalars::beyond_back::<L>(0.0, 1.0, size, at, score),
            Self::Interval { lower, upper } => scalars::between_back::<L>([lower, upper], size, at, score),
            Self::Simplex => simplex::pull_back::<L>(size, at, score),
            Self::Ordered => ordered::pull_back::<L>(size, at, score),
            Self::UnitVector => sphere::pull_back::<L>(size, at, score),
            Self::Circle => sphere::angles_back::<L>(size, at, score),
        }
    }

    /// Free coordinates of values; where many give the same, those of length 1.
    fn unconstrain(self, x: &[f64], y: &mut [f64]) {
        match self {
            Self::Real => y.copy_from_slice(x),
            Self::Positive => scalars::unconstrain([0.0, f64::INFINITY], x, y),
            Self::Interval { lower, upper } => scalars::unconstrain([lower, upper], x, y),
            Self::Simplex => simplex::unconstrain(x, y),
            Self::Ordered => ordered::unconstrain(x, y),
            Self::UnitVector => y.copy_from_slice(x),
            Self::Circle => sphere::points(x, y),
        }
    }
}

/// Where a score is pulled back: coordinates, their values, and the gradient of the density in values.
#[derive(Clone, Copy)]
struct At<'a> {
    y: Columns<'a>,
    x: Columns<'a>,
    gradient: Columns<'a>,
    /// 1 where the volume's gradient belongs to the score, else 0.
    volume: f64,
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Real => f.write_str("real"),
            Self::Positive => f.write_str("positive"),
            Self::Interval { lower, upper } => write!(f, "interval({lower}, {upper})"),
            Self::Simplex => f.write_str("simplex"),
            Self::Ordered => f.write_str("ordered"),
            Self::UnitVector => f.write_str("unit-vector"),
            Self::Circle => f.write_str("circle"),
        }
    }
}

impl FromStr for Support {
    type Err = Error;

    /// Reads what [`Display`](fmt::Display) writes; bounds may be `-inf` and `inf`.
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let wrong = || Error::setting("Parameter.support", format_args!("{text:?}"), KNOWN);
        Ok(match text {
            "real" => Self::Real,
            "positive" => Self::Positive,
            "simplex" => Self::Simplex,
            "ordered" => Self::Ordered,
            "unit-vector" => Self::UnitVector,
            "circle" => Self::Circle,
            other => {
                let bounds = other.strip_prefix("interval").map(str::trim_start).ok_or_else(wrong)?;
                let bounds =
                    bounds.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).ok_or_else(wrong)?;
                let (lower, upper) = bounds.split_once(',').ok_or_else(wrong)?;
                let number = |text: &str| text.trim().parse::<f64>().map_err(|_| wrong());
                Self::Interval { lower: number(lower)?, upper: number(upper)? }
            }
        })
    }
}
