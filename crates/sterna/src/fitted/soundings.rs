//! Soundings: what a target says at draws of broad normals, and what of it no climb has told.

use super::climb::{Place, places};
use super::numbers::{ln, shares};
use super::optima::Found;
use super::refit::{Present, fit};
use super::{Component, Covariance, Mixture, Shape, Starts};
use crate::lanes::one::exp;
use crate::streams::Phase;
use crate::{Batch, Result, Streams, Target};

/// Draws of the anchor, and of each normal around optima.
const DRAWS: [usize; 2] = [128, 64];

/// Around optima that are known, soundings are drawn from normals so many times as wide as these together.
const AROUND: [f64; 2] = [2.5, 5.0];

/// A mixture leaves a point out where log π − log η is so much more than log Z.
const LEFT_OUT: f64 = 4.0;

/// Points of those left out that are worth a climb, by what is missing there and by height.
const CLIMBS: usize = 4;

/// A component is made of soundings that hold a larger share of the mass than this.
const LEAST_SHARE: f64 = 0.02;

/// Draws of broad normals, with what the target says there.
#[derive(Clone, Debug, Default)]
pub struct Soundings {
    /// Means, standard deviations and numbers of draws.
    laws: Vec<(Vec<f64>, Vec<f64>, usize)>,
    places: Vec<Place>,
}

/// log of the mean of π̃ over the anchor's density, over some draws of the anchor: a lower bound of log Z, more or less. An optimum
/// that holds less is no place to begin from.
///
/// ```
/// use sterna::{Streams, fitted::{Starts, sound}, targets::Normal};
/// let anchor = Starts { mean: &[0.0; 2], deviation: &[1.0; 2] };
/// let log_z = sound(&Normal::isotropic(2, 1.0), anchor, &Streams::new(1)).unwrap();
/// // The target is the anchor, and normalised.
/// assert!(log_z.abs() < 1e-12);
/// ```
pub fn sound(target: &dyn Target, anchor: Starts, streams: &Streams) -> Result<f64> {
    Ok(Soundings::default().and_of(target, anchor, streams)?.log_z())
}

impl Soundings {
    /// The same and draws of one more normal.
    pub(crate) fn and_of(self, target: &dyn Target, law: Starts, streams: &Streams) -> Result<Self> {
        // Numbers of draws before these are those of a ladder's start.
        let number = 2 + self.laws.len() as u64;
        let draws = DRAWS[usize::from(!self.laws.is_empty())];
        self.and_draws(target, law, streams, number, draws)
    }

    /// The same and so many draws of one more normal, with the random numbers of this number.
    pub(crate) fn and_draws(
        mut self,
        target: &dyn Target,
        law: Starts,
        streams: &Streams,
        number: u64,
        count: usize,
    ) -> Result<Self> {
        law.check(target.dim())?;
        let mut z = Batch::zeros(count, target.dim());
        streams.normals(Phase::Start, number, &(0..count as u32).collect::<Vec<_>>(), &mut z);
        let point = |z: &[f64]| {
            let coordinates = law.mean.iter().zip(law.deviation).zip(z);
            coordinates.map(|((mean, deviation), z)| mean + deviation * z).collect()
        };
        self.places.extend(places(target, z.iter_rows().map(point).collect())?);
        self.laws.push((law.mean.to_vec(), law.deviation.to_vec(), count));
        Ok(self)
    }

    /// The same and draws around optima, broader than these.
    pub(crate) fn and_around(
        mut self,
        target: &dyn Target,
        (mean, deviation): &(Vec<f64>, Vec<f64>),
        streams: &Streams,
    ) -> Result<Self> {
        for times in AROUND {
            let deviation: Vec<f64> = deviation.iter().map(|s| times * s).collect();
            self = self.and_of(target, Starts { mean, deviation: &deviation }, streams)?;
        }
        Ok(self)
    }

    /// All that was seen.
    pub(crate) fn into_places(self) -> Vec<Place> {
        self.places
    }

    /// log of the mean of π̃ over the density that they were drawn from.
    pub fn log_z(&self) -> f64 {
        let mut weights = self.log_weights();
        shares(&mut weights) - ln(self.places.len() as f64)
    }

    /// log π̃ less the log density of the normals together; −∞ where the target has no answer.
    fn log_weights(&self) -> Vec<f64> {
        let weight = |place: &Place| {
            let log_density = |(mean, deviation, count): &(Vec<f64>, Vec<f64>, usize)| {
                Starts { mean, deviation }.log_density(&place.point) + ln(*count as f64)
            };
            let mut laws: Vec<f64> = self.laws.iter().map(log_density).collect();
            let log_law = shares(&mut laws) - ln(self.places.len() as f64);
            let weight = place.log_density - log_law;
            if weight < f64::INFINITY { weight } else { f64::NEG_INFINITY }
        };
        self.places.iter().map(weight).collect()
    }

    /// What a mixture leaves out: the soundings and log π − log η there.
    fn left_out(&self, mixture: &Mixture, log_z: f64) -> Vec<(usize, f64)> {
        let (mut score, mut work) = (vec![0.0; mixture.dim()], Vec::new());
        let mut gap = |i: usize| {
            let Place { point, log_density, .. } = &self.places[i];
            log_density - mixture.evaluate(point, &mut score, &mut work)
        };
        let gaps = (0..self.places.len()).map(|i| (i, gap(i)));
        gaps.filter(|(i, gap)| *gap > log_z + LEFT_OUT && self.places[*i].is_finite()).collect()
    }

    /// Those from which climbs may find what is missing.
    pub(crate) fn to_climb_from(&self, found: &Found) -> Vec<Vec<f64>> {
        let Some(mixture) = found.mixture() else { return Vec::new() };
        let out = self.left_out(&mixture.with_rim(), found.log_z());
        let keyed = |by: &dyn Fn(&(usize, f64)) -> f64| out.iter().map(|o| (by(o), o.0)).collect();
        let height = |o: &(usize, f64)| self.places[o.0].log_density;
        let chosen = of_either(keyed(&|o| o.1), keyed(&height), CLIMBS);
        chosen.into_iter().map(|i| self.places[i].point.clone()).collect()
    }

    /// A component for mass that belongs to no optimum, such as a broad part around a spike; its weight is its share.
    pub(crate) fn component(&self, mixture: &Mixture, log_z: f64, kind: Covariance) -> Option<Component> {
        let log_weights = self.log_weights();
        let out = self.left_out(&mixture.with_rim(), log_z);
        let mut share: Vec<f64> = out.iter().map(|(i, _)| log_weights[*i]).collect();
        let log_mass = shares(&mut share) - ln(self.places.len() as f64);
        let weight = 1.0 / (1.0 + exp(log_z - log_mass));
        let effective = 1.0 / share.iter().map(|s| s * s).sum::<f64>();
        // As many draws as a normal needs, or it would be one of chance.
        let enough = effective > 2.0 * mixture.dim() as f64 + 4.0;
        if !(weight > LEAST_SHARE && enough) {
            return None;
        }
        let rows: Vec<&[f64]> = out.iter().map(|(i, _)| &self.places[*i].point[..]).collect();
        let (mean, deviation, _) = self.laws[0].clone();
        let broad = Component { weight, mean, shape: kind.kind_of(&Shape::Diagonal(deviation)) };
        let part = share.iter().sum::<f64>() / rows.len() as f64;
        let fitted = fit(&broad, &rows, &share, (effective / part).into(), Present::Guess);
        Some(Component { weight, ..fitted })
    }
}

/// The first few of two orders, each once: largest keys first.
pub(crate) fn of_either(a: Vec<(f64, usize)>, b: Vec<(f64, usize)>, most: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    for mut keyed in [a, b] {
        keyed.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, i) in keyed.into_iter().take(most) {
            if !chosen.contains(&i) {
                chosen.push(i);
            }
        }
    }
    chosen
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::optima::find_optima;
    use super::*;
    use crate::{Evaluation, Result, Target};

    /// A mixture as a target.
    pub(in crate::fitted) struct Known(pub Mixture);

    impl Target for Known {
        fn dim(&self) -> usize {
            self.0.dim()
        }

        fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
            for i in 0..x.rows() {
                out.log_density[i] = self.0.evaluate(x.row(i), out.score.row_mut(i), &mut Vec::new());
            }
            Ok(())
        }
    }

    fn normals(parts: &[(f64, f64, f64)], dim: usize) -> Known {
        let component = |&(weight, at, width): &(f64, f64, f64)| Component {
            weight,
            mean: vec![at; dim],
            shape: Shape::Diagonal(vec![width; dim]),
        };
        Known(Mixture::new(parts.iter().map(component).collect()).unwrap())
    }

    fn sounded(target: &Known, seed: u64) -> (Found, Soundings) {
        let (mean, deviation) = (vec![0.0; target.dim()], vec![1.0; target.dim()]);
        let (anchor, streams) = (Starts { mean: &mean, deviation: &deviation }, Streams::new(seed));
        let soundings = Soundings::default().and_of(target, anchor, &streams).unwrap();
        let found = find_optima(target, anchor, &streams, Covariance::Dense, soundings.log_z()).unwrap();
        (found, soundings)
    }

    #[test]
    fn a_spike_that_climbs_pass_by_is_climbed_to_from_a_sounding() {
        let target = normals(&[(0.5, 6.0, 1.0), (0.5, 0.0, 0.1)], 3);
        for seed in 1..9 {
            let (found, soundings) = sounded(&target, seed);
            let anchor = Starts { mean: &[0.0; 3], deviation: &[1.0; 3] };
            let all = found.and_left_out(&target, anchor, Covariance::Dense, &soundings).unwrap();
            assert_eq!(all.that_matter().count(), 2, "seed {seed}");
        }
    }

    #[test]
    fn a_broad_part_around_a_spike_becomes_a_component() {
        let target = normals(&[(0.5, 0.0, 1.0), (0.5, 0.0, 0.05)], 4);
        let (found, soundings) = sounded(&target, 1);
        let mixture = found.mixture().unwrap();
        let broad = soundings.component(&mixture, found.log_z(), Covariance::Dense).unwrap();
        assert!((broad.weight - 0.5).abs() < 0.1, "{}", broad.weight);
        assert!(broad.shape.deviations().iter().all(|s| (s - 1.0).abs() < 0.3), "{broad:?}");
        // Nothing is left out of one normal.
        let (found, soundings) = sounded(&normals(&[(1.0, 0.0, 0.7)], 4), 1);
        assert!(soundings.component(&found.mixture().unwrap(), found.log_z(), Covariance::Dense).is_none());
        assert!(soundings.to_climb_from(&found).is_empty());
    }
}
