//! The formulas of the log-weight ([`sterna::weight`]) and of the path ([`sterna::path_formula`]) as CUDA C.

use std::ops::{Add, Div, Mul, Neg, Sub};

use sterna::accelerator::Direction;
use sterna::path_formula::{Blend, path_log_density, path_score};
use sterna::weight::{Term, step_log_ratio, step_mean};

/// An expression of doubles.
#[derive(Clone)]
struct Source(String);

macro_rules! operator {
    ($trait:ident, $method:ident, $sign:literal) => {
        impl $trait for Source {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self(format!("({} {} {})", self.0, $sign, other.0))
            }
        }
    };
}
operator!(Add, add, "+");
operator!(Sub, sub, "-");
operator!(Mul, mul, "*");
operator!(Div, div, "/");

impl Mul<f64> for Source {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self(format!("({} * {factor:e})", self.0))
    }
}

impl Term for Source {
    fn ln(self) -> Self {
        Self(format!("log({})", self.0))
    }
}

impl Neg for Source {
    type Output = Self;
    fn neg(self) -> Self {
        Self(format!("(-{})", self.0))
    }
}

impl Blend for Source {
    fn blend(self, other: Self, share: Self) -> Self {
        Self(format!("((1.0 - {share}) * {} + {share} * {})", self.0, other.0, share = share.0))
    }
}

/// A device function of doubles, and of `first` before them.
fn function<const N: usize>(
    name: &str,
    first: &str,
    arguments: [&str; N],
    body: impl FnOnce([Source; N]) -> Source,
) -> String {
    let list = arguments.map(|a| format!("double {a}")).join(", ");
    let Source(value) = body(arguments.map(|a| Source(a.into())));
    format!("static __device__ __forceinline__ double {name}({first}{list}) {{ return {value}; }}\n")
}

/// Device functions `step_mean`, `step_log_ratio` and `log_weight` for points of this length, `path_log_density` and
/// `path_score`.
pub(super) fn source(dim: usize) -> String {
    let mean =
        function("step_mean", "", ["x", "variance", "score", "shift"], |[x, v, s, b]| step_mean(x, v, s, b));
    let arguments = ["noise_squared", "miss_squared", "variance", "return_variance"];
    let ratio = function("step_log_ratio", "", arguments, |[z, m, v, u]| step_log_ratio(dim, z, m, v, u));
    let weight = function("log_weight", "bool forward, ", ["start", "end"], |[start, end]| {
        let [there, back] =
            [Direction::Forward, Direction::Backward].map(|d| d.log_weight(start.clone(), end.clone()).0);
        Source(format!("forward ? {there} : {back}"))
    });
    let density = function("path_log_density", "", ["beta", "log_reference", "log_target"], |[b, r, t]| {
        path_log_density(b, r, t)
    });
    let score = function("path_score", "", ["beta", "pull", "target_score"], |[b, x, t]| path_score(b, x, t));
    mean + &ratio + &weight + &density + &score
}

#[cfg(test)]
mod tests {
    #[test]
    fn formulas_read_as_the_library_has_them() {
        let text = super::source(10);
        for line in [
            "double step_mean(double x, double variance, double score, double shift) \
             { return ((x + ((variance * 5e-1) * score)) + shift); }",
            "return (((noise_squared - (miss_squared / return_variance)) * 5e-1) + \
             (log((variance / return_variance)) * 5e0)); }",
            "double log_weight(bool forward, double start, double end) \
             { return forward ? (end - start) : (start - end); }",
            "double path_log_density(double beta, double log_reference, double log_target) \
             { return ((1.0 - beta) * log_reference + beta * log_target); }",
            "double path_score(double beta, double pull, double target_score) \
             { return ((1.0 - beta) * (-pull) + beta * target_score); }",
        ] {
            assert!(text.contains(line), "{line}\nis not in\n{text}");
        }
    }
}
