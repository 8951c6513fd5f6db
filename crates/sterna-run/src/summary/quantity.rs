//! Named quantities: parameters and observables.

use super::number;
use crate::problem::Observable;
use serde::{Deserialize, Serialize};
use sterna::estimates::effective_sample_size;
use sterna::records::Draws;
use sterna::run::Results;

/// What the draws say of a named quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantity {
    /// Its name.
    pub name: String,
    /// Mean of the draws.
    #[serde(deserialize_with = "number::one")]
    pub mean: f64,
    /// Their standard deviation.
    #[serde(deserialize_with = "number::one")]
    pub sd: f64,
    /// Standard error of the mean.
    #[serde(deserialize_with = "number::one")]
    pub mcse: f64,
    /// Independent draws that they are worth.
    #[serde(deserialize_with = "number::one")]
    pub ess: f64,
}

impl Quantity {
    /// One for each coordinate, where they have names.
    pub(super) fn parameters(names: &[String], results: &Results, draws: &[Draws]) -> Vec<Self> {
        let dim = results.means.len();
        if names.len() != dim {
            return Vec::new();
        }
        let quantity = |(j, name): (usize, &String)| {
            let column = draws.iter().flat_map(|d| d.x.chunks_exact(dim)).map(|x| x[j]);
            let (mean, mcse) = results.means[j];
            Self { name: name.clone(), mean, sd: deviation(column), mcse, ess: results.ess[j] }
        };
        names.iter().enumerate().map(quantity).collect()
    }

    /// One for each observable of points of this dimension.
    pub(super) fn observables(observables: &[Observable], dim: usize, draws: &[Draws]) -> Vec<Self> {
        let quantity = |observable: &Observable| {
            let of = |d: &Draws| d.x.chunks_exact(dim).map(|x| (observable.value)(x)).collect();
            let ladders: Vec<Vec<f64>> = draws.iter().map(of).collect();
            let ess = effective_sample_size(&ladders.iter().map(|l| &l[..]).collect::<Vec<_>>());
            let all = || ladders.iter().flatten().copied();
            let sd = deviation(all());
            let mean = all().sum::<f64>() / all().count() as f64;
            Self { name: observable.name.clone(), mean, sd, mcse: sd / ess.sqrt(), ess }
        };
        observables.iter().map(quantity).collect()
    }
}

/// Standard deviation, in two passes.
fn deviation(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    (values.map(|x| (x - mean) * (x - mean)).sum::<f64>() / (count - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_observable_has_the_moments_of_its_values() {
        let x: Vec<f64> = (0..1000).map(|i| f64::from(i * 7919 % 1000) / 1000.0).collect();
        let draws = [Draws { x, ..Draws::default() }];
        let square = Observable { name: "square".into(), value: Arc::new(|x| x[0] * x[0]) };
        let found = &Quantity::observables(&[square], 1, &draws)[0];
        // Uniform on [0, 1): 1/3, and 4/45 for the variance.
        assert!((found.mean - 1.0 / 3.0).abs() < 1e-3, "{found:?}");
        assert!((found.sd - (4f64 / 45.0).sqrt()).abs() < 1e-3, "{found:?}");
        assert!((found.mcse * found.ess.sqrt() - found.sd).abs() < 1e-12);
    }
}
