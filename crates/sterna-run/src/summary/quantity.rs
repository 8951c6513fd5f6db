//! What the draws say of each quantity: parameters, observables, and how well ladders have mixed for them.

use super::number;
use crate::alarms::{Looked, coordinate};
use crate::problem::{Constrain, Observable};
use crate::report::format::by_error;
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
    /// Their histogram in a line of text, `▁▂▅█▆▃▁`, between the quantiles of 0.5% and 99.5%.
    #[serde(default)]
    pub shape: String,
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

/// The variable of `draws.nc` that holds coordinates without names, and so many of them at most have rows.
pub(crate) const UNNAMED: &str = "x";
const MOST_UNNAMED: usize = 10_000;

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

/// Heights of a histogram as letters.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Letters of a shape.
const LETTERS: usize = 24;

/// All draws, from the least to the largest.
fn sorted(ladders: &[Vec<f64>]) -> Vec<f64> {
    let mut all = ladders.concat();
    all.sort_unstable_by(f64::total_cmp);
    all
}

/// A histogram of sorted numbers, a letter for each bin; nothing where they are none, or all the same.
fn shape(sorted: &[f64]) -> String {
    if sorted.is_empty() {
        return String::new();
    }
    let [low, high] = [0.005, 0.995].map(|share| quantile(sorted, share));
    let width = (high - low) / LETTERS as f64;
    if !(width > 0.0 && width.is_finite()) {
        return String::new();
    }
    let mut counts = [0u64; LETTERS];
    for x in sorted.iter().filter(|x| **x >= low && **x <= high) {
        counts[(((x - low) / width) as usize).min(LETTERS - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let letter = |count: &u64| HEIGHTS[((count * 8).div_ceil(most) as usize).clamp(1, 8) - 1];
    counts.iter().map(letter).collect()
}

/// Heights of a shape between 0 and 1, as far as its letters are known.
pub(crate) fn heights(shape: &str) -> Vec<f64> {
    let height = |c: char| HEIGHTS.iter().position(|h| *h == c);
    shape.chars().filter_map(height).map(|i| (i + 1) as f64 / HEIGHTS.len() as f64).collect()
}

impl Quantity {
    /// A number of its row for people, with as many decimals as the standard error of its mean asks for.
    pub fn shown(&self, value: f64) -> String {
        if value.is_nan() { "–".into() } else { by_error(value, self.mcse) }
    }
}

impl Ranks {
    fn of(sorted: &[f64], mixing: &Mixing) -> Self {
        let [q05, q50, q95] = match sorted.is_empty() {
            true => [f64::NAN; 3],
            false => [0.05, 0.5, 0.95].map(|share| quantile(sorted, share)),
        };
        Self { q05, q50, q95, ess_bulk: mixing.bulk, ess_tail: mixing.tail, r_hat: mixing.r_hat }
    }
}

/// What people call a coordinate: its name, or the value that moves with it at a point.
pub(crate) fn coordinate_name(
    j: usize,
    point: &[f64],
    names: &[String],
    values: Option<&dyn Constrain>,
) -> String {
    let Some(constrain) = values else {
        return match names.len() == point.len() {
            true => names[j].clone(),
            false if point.len() <= MOST_UNNAMED => format!("{UNNAMED}[{j}]"),
            false => coordinate(j),
        };
    };
    let mut moved = point.to_vec();
    moved[j] += 1e-3 * (1.0 + point[j].abs());
    let [mut here, mut there] = [(); 2].map(|()| vec![f64::NAN; constrain.values()]);
    constrain.constrain(point, &mut here);
    constrain.constrain(&moved, &mut there);
    let first = (0..here.len().min(names.len())).find(|k| here[*k] != there[*k]);
    match first {
        Some(k) if here[k] == point[j] && there[k] == moved[j] => names[k].clone(),
        Some(k) => format!("{} (as it is sampled, without bounds)", names[k]),
        None => coordinate(j),
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

    /// A row for each coordinate, and how well it is mixed. One without a name is called as in `draws.nc`; those of
    /// molecules, and of very many, have no rows.
    fn of_coordinates(&self) -> Vec<(Option<Quantity>, Looked)> {
        let (dim, results) = (self.dim, self.results);
        let is_named = self.names.len() == dim;
        let has_row = is_named || (self.features.is_empty() && dim <= MOST_UNNAMED);
        let stride = self.ranked(dim);
        let of = |j: usize| {
            let ladders = column(self.draws, dim, j, stride);
            let mixing = mixing(&views(&ladders));
            let (mean, mcse) = results.means[j];
            let name = match (is_named, has_row) {
                (true, _) => self.names[j].clone(),
                (false, true) => format!("{UNNAMED}[{j}]"),
                (false, false) => format!("coordinate {j}"),
            };
            let quantity = has_row.then(|| {
                let sorted = sorted(&ladders);
                let sd = deviation(self.draws.iter().flat_map(|d| d.x.chunks_exact(dim)).map(|x| x[j]));
                let ess = results.ess[j];
                Quantity {
                    name: name.clone(),
                    mean,
                    sd,
                    // Where ladders disagree, what each says of itself is too little.
                    mcse: mcse.max(sd / ess.sqrt()),
                    ess,
                    ranks: Ranks::of(&sorted, &mixing),
                    shape: shape(&sorted),
                }
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
    pub(crate) fn of(name: &str, ladders: &[Vec<f64>], ranked: usize) -> (Self, Mixing) {
        let ess = effective_sample_size(&views(ladders));
        let all = || ladders.iter().flatten().copied();
        let sd = deviation(all());
        let mean = all().sum::<f64>() / all().count() as f64;
        let thin = thinned(ladders, ranked);
        let mixing = mixing(&views(&thin));
        let sorted = sorted(&thin);
        let (ranks, shape) = (Ranks::of(&sorted, &mixing), shape(&sorted));
        (Self { name: name.into(), mean, sd, mcse: sd / ess.sqrt(), ess, ranks, shape }, mixing)
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
    pub(crate) fn of(looked: &[Looked]) -> Option<Self> {
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

    #[test]
    fn a_shape_has_the_heights_of_its_histogram() {
        // Three of four numbers in the upper half.
        let even = |n: i32| (0..n).map(move |i| (f64::from(i) + 0.5) / f64::from(n));
        let halves: Vec<f64> = even(1000).map(|u| 0.5 * u).chain(even(3000).map(|u| 0.5 + 0.5 * u)).collect();
        let found = heights(&shape(&halves));
        assert_eq!(found.len(), LETTERS);
        assert!(found[..11].iter().all(|h| *h <= 0.5) && found[13..].iter().all(|h| *h == 1.0), "{found:?}");
        assert_eq!((shape(&[]), shape(&[1.0, 1.0]), heights("ab")), (String::new(), String::new(), vec![]));
    }

    /// A location, and the logarithm of a scale.
    struct Located;

    impl Constrain for Located {
        fn values(&self) -> usize {
            3
        }

        fn constrain(&self, point: &[f64], values: &mut [f64]) {
            values.copy_from_slice(&[point[0], point[1].exp(), point[0] + point[1].exp()]);
        }
    }

    #[test]
    fn coordinates_are_called_as_people_do() {
        let names = ["mu", "sigma", "sum"].map(String::from);
        let of = |j: usize, names: &[String], values| coordinate_name(j, &[0.5, -1.0], names, values);
        assert_eq!(of(0, &names, Some(&Located)), "mu");
        assert!(of(1, &names, Some(&Located)).starts_with("sigma ("));
        assert_eq!((of(1, &names[..2], None), of(1, &[], None)), ("sigma".into(), "x[1]".into()));
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
