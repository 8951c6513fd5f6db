//! What the draws say of each quantity: parameters, observables, and how well ladders have mixed for them.

use super::number;
use crate::alarms::Looked;
use crate::problem::{Constrain, Observable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sterna::estimates::{Mixing, effective_sample_size, mixing, quantile};
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
    /// Independent draws that they are worth for the mean.
    #[serde(deserialize_with = "number::one")]
    pub ess: f64,
    /// Quantiles, and what ranks say.
    #[serde(flatten)]
    pub ranks: Ranks,
}

/// What the ranks of draws say of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranks {
    /// Quantile of 5%.
    #[serde(default = "nan", deserialize_with = "number::one")]
    pub q05: f64,
    /// Median.
    #[serde(default = "nan", deserialize_with = "number::one")]
    pub q50: f64,
    /// Quantile of 95%.
    #[serde(default = "nan", deserialize_with = "number::one")]
    pub q95: f64,
    /// Independent draws in the bulk.
    #[serde(default = "nan", deserialize_with = "number::one")]
    pub ess_bulk: f64,
    /// Independent draws in the tails.
    #[serde(default = "nan", deserialize_with = "number::one")]
    pub ess_tail: f64,
    /// R̂ of halves of ladders.
    #[serde(default = "nan", deserialize_with = "number::one")]
    pub r_hat: f64,
}

fn nan() -> f64 {
    f64::NAN
}

/// Numbers of all quantities together that are kept at a time, and those whose ranks are looked at: beyond, draws are taken
/// at even distances.
const MOST_KEPT: usize = 1 << 25;
const MOST_RANKED: usize = 1 << 22;

/// Draws of a ladder that remain in any case.
const FEWEST: usize = 1000;

/// A draw in so many is taken of `draws` in each of `ladders`, for so many quantities.
fn stride(most: usize, quantities: usize, ladders: usize, draws: usize) -> usize {
    let each = (most / quantities.saturating_mul(ladders).max(1)).max(FEWEST);
    draws.div_ceil(each).max(1)
}

/// Draws of the shortest ladder.
fn length(draws: &[Draws]) -> usize {
    draws.iter().map(|d| d.log_density.len()).min().unwrap_or(0)
}

fn thinned(ladders: &[Vec<f64>], stride: usize) -> Vec<Vec<f64>> {
    ladders.iter().map(|l| l.iter().copied().step_by(stride).collect()).collect()
}

fn views(ladders: &[Vec<f64>]) -> Vec<&[f64]> {
    ladders.iter().map(|l| &l[..]).collect()
}

/// One coordinate, ladder by ladder.
fn column(draws: &[Draws], dim: usize, j: usize, stride: usize) -> Vec<Vec<f64>> {
    let of = |d: &Draws| d.x.chunks_exact(dim).step_by(stride).map(|x| x[j]).collect();
    draws.iter().map(of).collect()
}

impl Ranks {
    fn of(ladders: &[Vec<f64>], mixing: &Mixing) -> Self {
        let mut all = ladders.concat();
        all.sort_unstable_by(f64::total_cmp);
        let [q05, q50, q95] = match all.is_empty() {
            true => [f64::NAN; 3],
            false => [0.05, 0.5, 0.95].map(|share| quantile(&all, share)),
        };
        Self { q05, q50, q95, ess_bulk: mixing.bulk, ess_tail: mixing.tail, r_hat: mixing.r_hat }
    }
}

/// All that is looked at: rows for people, and what alarms are judged by.
#[derive(Default)]
pub(super) struct Quantities {
    /// Those with names.
    pub parameters: Vec<Quantity>,
    /// Functions that the problem watches.
    pub observables: Vec<Quantity>,
    /// How well each is mixed, and the log density.
    pub looked: Vec<Looked>,
}

/// What quantities are made of.
pub(super) struct Source<'a> {
    /// Names of the parameters, where they have some.
    pub names: &'a [String],
    /// Coordinates of a draw.
    pub dim: usize,
    /// Draws of each ladder.
    pub draws: &'a [Draws],
    /// Estimates of the run.
    pub results: &'a Results,
    /// The values of a draw, where those are not its coordinates.
    pub values: Option<&'a dyn Constrain>,
    /// Functions of a draw.
    pub observables: &'a [Observable],
    /// What stands for the coordinates, where these mean nothing by themselves: angles of a molecule.
    pub features: &'a [(String, Vec<Vec<f64>>)],
}

impl Source<'_> {
    pub fn quantities(&self) -> Quantities {
        let named = match self.values {
            Some(values) => self.of_values(values),
            None => self.of_coordinates(),
        };
        let (parameters, mut looked): (Vec<_>, Vec<_>) = named.into_iter().unzip();
        if !self.features.is_empty() {
            looked =
                self.features.par_iter().map(|(name, ladders)| self.looked(name, ladders, false)).collect();
        } else {
            let log_density: Vec<Vec<f64>> = self.draws.iter().map(|d| d.log_density.clone()).collect();
            looked.push(self.looked("the log density", &log_density, false));
        }
        Quantities {
            parameters: parameters.into_iter().flatten().collect(),
            observables: self.observables.iter().map(|o| self.observable(o)).collect(),
            looked,
        }
    }

    fn ranked(&self, quantities: usize) -> usize {
        stride(MOST_RANKED, quantities, self.draws.len(), length(self.draws))
    }

    fn looked(&self, name: &str, ladders: &[Vec<f64>], moves: bool) -> Looked {
        let stride = self.ranked(self.features.len().max(1));
        Looked { name: name.into(), mixing: mixing(&views(&thinned(ladders, stride))), moves }
    }

    /// A row for each coordinate that has a name, and how well it is mixed.
    fn of_coordinates(&self) -> Vec<(Option<Quantity>, Looked)> {
        let (dim, results) = (self.dim, self.results);
        let is_named = self.names.len() == dim;
        let stride = self.ranked(dim);
        let of = |j: usize| {
            let ladders = column(self.draws, dim, j, stride);
            let name = if is_named { self.names[j].clone() } else { format!("coordinate {j}") };
            let mixing = mixing(&views(&ladders));
            let (mean, mcse) = results.means[j];
            let quantity = is_named.then(|| Quantity {
                name: name.clone(),
                mean,
                sd: deviation(self.draws.iter().flat_map(|d| d.x.chunks_exact(dim)).map(|x| x[j])),
                mcse,
                ess: results.ess[j],
                ranks: Ranks::of(&ladders, &mixing),
            });
            (quantity, Looked { name, mixing, moves: true })
        };
        (0..dim).into_par_iter().map(of).collect()
    }

    /// The same of named values of points.
    fn of_values(&self, values: &dyn Constrain) -> Vec<(Option<Quantity>, Looked)> {
        let count = values.values();
        if self.names.len() != count {
            return Vec::new();
        }
        let (ladders, draws) = (self.draws.len(), length(self.draws));
        let kept = stride(MOST_KEPT, count, ladders, draws);
        let mut columns = vec![vec![Vec::with_capacity(draws / kept + 1); ladders]; count];
        let mut of_point = vec![0.0; count];
        for (ladder, draws) in self.draws.iter().enumerate() {
            for point in draws.x.chunks_exact(self.dim).step_by(kept) {
                values.constrain(point, &mut of_point);
                columns.iter_mut().zip(&of_point).for_each(|(column, x)| column[ladder].push(*x));
            }
        }
        let ranked = self.ranked(count).div_ceil(kept);
        let of = |(name, ladders): (&String, Vec<Vec<f64>>)| {
            let (quantity, mixing) = Quantity::of(name, &ladders, ranked);
            (Some(quantity), Looked { name: name.clone(), mixing, moves: false })
        };
        self.names.par_iter().zip(columns).map(of).collect()
    }

    fn observable(&self, observable: &Observable) -> Quantity {
        let of = |d: &Draws| d.x.chunks_exact(self.dim).map(|x| (observable.value)(x)).collect();
        let ladders: Vec<Vec<f64>> = self.draws.iter().map(of).collect();
        Quantity::of(&observable.name, &ladders, self.ranked(1)).0
    }
}

impl Quantity {
    /// Of numbers, ladder by ladder, one in so many of which is ranked.
    fn of(name: &str, ladders: &[Vec<f64>], ranked: usize) -> (Self, Mixing) {
        let ess = effective_sample_size(&views(ladders));
        let all = || ladders.iter().flatten().copied();
        let sd = deviation(all());
        let mean = all().sum::<f64>() / all().count() as f64;
        let thin = thinned(ladders, ranked);
        let mixing = mixing(&views(&thin));
        let ranks = Ranks::of(&thin, &mixing);
        (Self { name: name.into(), mean, sd, mcse: sd / ess.sqrt(), ess, ranks }, mixing)
    }
}

/// Standard deviation, in two passes.
fn deviation(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    (values.map(|x| (x - mean) * (x - mean)).sum::<f64>() / (count - 1.0)).sqrt()
}

/// The worst of all quantities that were looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorstMixing {
    /// Fewest independent draws in the bulk of a quantity, by ranks.
    #[serde(deserialize_with = "number::one")]
    pub ess_bulk: f64,
    /// Fewest in the tails of one.
    #[serde(deserialize_with = "number::one")]
    pub ess_tail: f64,
    /// Largest R̂ of halves of ladders.
    #[serde(deserialize_with = "number::one")]
    pub r_hat: f64,
    /// What has it.
    pub r_hat_of: String,
}

impl WorstMixing {
    pub(super) fn of(looked: &[Looked]) -> Option<Self> {
        let known =
            |of: fn(&Mixing) -> f64| looked.iter().map(move |l| (of(&l.mixing), l)).filter(|x| !x.0.is_nan());
        let least = |of| known(of).map(|x| x.0).fold(f64::NAN, f64::min);
        let (r_hat, worst) = known(|m| m.r_hat).max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Self {
            ess_bulk: least(|m| m.bulk),
            ess_tail: least(|m| m.tail),
            r_hat,
            r_hat_of: worst.name.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrambled(n: i32) -> Vec<f64> {
        (0..n).map(|i| f64::from(i * 7919 % n) / f64::from(n)).collect()
    }

    #[test]
    fn an_observable_has_the_moments_of_its_values() {
        let squares: Vec<f64> = scrambled(1000).iter().map(|x| x * x).collect();
        let (found, _) = Quantity::of("square", &[squares], 1);
        // Uniform on [0, 1): 1/3, and 4/45 for the variance.
        assert!((found.mean - 1.0 / 3.0).abs() < 1e-3, "{found:?}");
        assert!((found.sd - (4f64 / 45.0).sqrt()).abs() < 1e-3, "{found:?}");
        assert!((found.mcse * found.ess.sqrt() - found.sd).abs() < 1e-12);
        assert!(
            (found.ranks.q05 - 0.0025).abs() < 1e-3 && (found.ranks.q50 - 0.25).abs() < 2e-3,
            "{found:?}"
        );
        assert!(found.ranks.ess_bulk > 500.0 && found.ranks.r_hat < 1.02, "{found:?}");
    }

    /// Many quantities of many draws are thinned, not held whole.
    #[test]
    fn memory_is_bounded() {
        assert_eq!(stride(MOST_RANKED, 10, 4, 100_000), 1);
        assert_eq!(stride(MOST_RANKED, 1000, 4, 131_072), 126);
        assert_eq!(stride(MOST_RANKED, 1_000_000, 4, 131_072), 132);
        assert_eq!(stride(MOST_RANKED, 1, 1, 0), 1);
    }
}
