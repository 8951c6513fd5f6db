//! Places that stood out: of all points at which a target was asked, those where the density is too high for the reference, or rises
//! too steeply.
//!
//! A narrow mode that no chain lives in may have been touched all the same: by a move that was taken back, since it would have ended
//! where the density changes too fast, or by a draw of the reference that was not swapped. What was paid for is not forgotten: a few
//! such places are kept, and climbs begin there. Which ones are kept does not hang on the order in which they were seen.

use super::Mixture;
use super::climb::Place;
use crate::last_look::reach;
use std::cmp::Ordering;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Coordinates at most: in more of them nothing narrow is come upon by chance.
pub(crate) const MOST_COORDINATES: usize = 20;

/// Places that are kept by each measure.
const KEPT: usize = 32;

/// log π − log η exceeds log Z by so many nats where the density is too high.
const TOO_HIGH: f64 = 2.0;

/// Beside the slope of the reference there, or where that is flat the slope at a usual draw, the score is off by so much, squared,
/// where it rises too steeply.
const TOO_STEEP: f64 = 4.0;

/// Places nearer to each other than this, squared and in standard deviations, are one.
const APART: f64 = 0.25;

/// What stood out beside a reference.
#[derive(Debug)]
pub(crate) struct Standouts {
    mixture: Mixture,
    has_score: bool,
    log_z: f64,
    /// log η is as low as this nowhere near a component.
    outside: f64,
    /// Standard deviations of the reference as a whole.
    deviations: Vec<f64>,
    /// By log π − log η, by log π, by the score.
    kept: [Kept; 3],
}

/// The places with the largest keys.
#[derive(Debug)]
struct Kept {
    /// Bits of the least key, once there are as many as are kept.
    least: AtomicU64,
    places: Mutex<Vec<(f64, Place)>>,
}

impl Kept {
    fn new() -> Self {
        Self { least: AtomicU64::new(f64::NEG_INFINITY.to_bits()), places: Mutex::new(Vec::new()) }
    }

    fn all(&self) -> Vec<(f64, Place)> {
        self.places.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    fn offer(&self, key: f64, place: impl FnOnce() -> Place) {
        if key.is_nan() || key < f64::from_bits(self.least.load(Relaxed)) {
            return;
        }
        let new = (key, place());
        let mut places = self.places.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Err(at) = places.binary_search_by(|old| order(old, &new)) else { return };
        places.insert(at, new);
        places.truncate(KEPT);
        if let [.., (least, _)] = &places[..]
            && places.len() == KEPT
        {
            self.least.store(least.to_bits(), Relaxed);
        }
    }
}

/// The largest keys first, and of equal ones by their points: the same whoever comes first.
fn order(a: &(f64, Place), b: &(f64, Place)) -> Ordering {
    let points = || {
        let each = a.1.point.iter().zip(&b.1.point).map(|(a, b)| a.total_cmp(b));
        each.fold(Ordering::Equal, Ordering::then)
    };
    b.0.total_cmp(&a.0).then_with(points)
}

impl Standouts {
    /// Beside this reference and its log Z; places that stood out beside another are looked at again.
    pub fn beside(mixture: Mixture, has_score: bool, log_z: f64, before: Vec<Place>) -> Self {
        let dim = mixture.dim();
        let lowest = mixture.components().iter().map(|c| c.height()).fold(f64::INFINITY, f64::min);
        let standouts = Self {
            deviations: mixture.whole_shape().deviations(),
            outside: lowest - 0.5 * reach(dim),
            kept: std::array::from_fn(|_| Kept::new()),
            mixture,
            has_score,
            log_z,
        };
        before.iter().for_each(|place| standouts.look_again(place));
        standouts
    }

    /// One more place: what the target says of it, and the reference.
    pub fn see(&self, x: &[f64], target: (f64, &[f64]), reference: (f64, &[f64])) {
        let (log_density, score) = target;
        let gap = log_density - reference.0 - self.log_z;
        let steepness = if self.has_score { self.steepness(score, reference.1) } else { 0.0 };
        let (high, steep) = (gap > TOO_HIGH, steepness > TOO_STEEP && steepness < f64::INFINITY);
        if !(high || steep) || !log_density.is_finite() || reference.0 < self.outside {
            return;
        }
        let score = || if self.has_score { score.to_vec() } else { vec![0.0; x.len()] };
        let place = || Place { point: x.to_vec(), log_density, score: score() };
        if high {
            self.kept[0].offer(gap, place);
            self.kept[1].offer(log_density, place);
        }
        if steep {
            self.kept[2].offer(steepness, place);
        }
    }

    /// How far the score is off what the reference says, beside that.
    fn steepness(&self, target: &[f64], reference: &[f64]) -> f64 {
        let (mut off, mut usual) = (0.0, target.len() as f64);
        for ((target, reference), deviation) in target.iter().zip(reference).zip(&self.deviations) {
            off += ((target - reference) * deviation).powi(2);
            usual += (reference * deviation).powi(2);
        }
        off / usual
    }

    /// The same where nobody has asked the reference yet; what it says is written over `score`.
    pub fn look_at(&self, x: &[f64], target: (f64, &[f64]), score: &mut [f64], work: &mut Vec<f64>) {
        let log_reference = self.mixture.evaluate(x, score, work);
        self.see(x, target, (log_reference, score));
    }

    /// A place that was seen before.
    pub fn look_again(&self, place: &Place) {
        let mut score = vec![0.0; place.point.len()];
        self.look_at(&place.point, (place.log_density, &place.score), &mut score, &mut Vec::new());
    }

    /// log Z beside which places stood out.
    pub fn log_z(&self) -> f64 {
        self.log_z
    }

    /// All that are kept, each once.
    pub fn places(&self) -> Vec<Place> {
        let mut all: Vec<Place> = Vec::new();
        for (_, place) in self.kept.iter().flat_map(Kept::all) {
            if !all.iter().any(|known| known.point == place.point) {
                all.push(place);
            }
        }
        all
    }

    /// Those from which climbs may find what is missing: so many by each measure, no two of them near each other.
    pub fn to_climb_from(&self, most: usize) -> Vec<Vec<f64>> {
        let mut chosen: Vec<Vec<f64>> = Vec::new();
        for kept in &self.kept {
            let before = chosen.len();
            for (_, place) in kept.all() {
                if chosen.len() < before + most && chosen.iter().all(|known| self.apart(known, &place.point))
                {
                    chosen.push(place.point);
                }
            }
        }
        chosen
    }

    fn apart(&self, a: &[f64], b: &[f64]) -> bool {
        let square: f64 =
            a.iter().zip(b).zip(&self.deviations).map(|((a, b), s)| ((a - b) / s).powi(2)).sum();
        square > APART
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Component, Shape, places};
    use super::*;
    use crate::streams::{Phase, Streams};
    use crate::{Batch, Evaluation, Result, Target};

    /// A hill, and a spike on it.
    struct Spiked(Mixture);

    impl Target for Spiked {
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

    fn normal(weight: f64, at: f64, width: f64) -> Component {
        Component { weight, mean: vec![at; 3], shape: Shape::Diagonal(vec![width; 3]) }
    }

    fn seen(target: &Spiked, seed: u64, count: u32) -> Vec<Place> {
        let mut z = Batch::zeros(count as usize, 3);
        Streams::new(seed).normals(Phase::Check, 0, &(0..count).collect::<Vec<_>>(), &mut z);
        places(target, z.iter_rows().map(<[f64]>::to_vec).collect()).unwrap()
    }

    fn hill() -> Mixture {
        Mixture::new(vec![normal(1.0, 0.0, 1.0)]).unwrap()
    }

    /// Of 10,000 draws of the hill some ten fall where the spike is felt; with fixed seeds.
    #[test]
    fn a_spike_that_draws_touched_stands_out_and_a_hill_alone_does_not() {
        let spiked = Spiked(Mixture::new(vec![normal(0.5, 0.0, 1.0), normal(0.5, 1.0, 0.05)]).unwrap());
        for seed in 1..6 {
            let standouts = Standouts::beside(hill(), true, 0.5f64.ln(), seen(&spiked, seed, 10_000));
            let starts = standouts.to_climb_from(4);
            assert!(!starts.is_empty(), "seed {seed}");
            let near = |x: &Vec<f64>| x.iter().map(|x| (x - 1.0) * (x - 1.0)).sum::<f64>() < 0.1;
            assert!(starts.iter().all(near), "{starts:?}");
            let alone = Standouts::beside(hill(), true, 0.0, seen(&Spiked(hill()), seed, 10_000));
            assert!(alone.places().is_empty());
        }
    }

    #[test]
    fn what_is_kept_does_not_hang_on_the_order_nor_on_what_was_looked_at_twice() {
        let target = Spiked(Mixture::new(vec![normal(1.0, 0.5, 0.4)]).unwrap());
        let mut all = seen(&target, 7, 2000);
        let first = Standouts::beside(hill(), true, -3.0, all.clone());
        assert_eq!(first.kept.each_ref().map(|kept| kept.all().len()), [KEPT, KEPT, KEPT]);
        all.reverse();
        all.extend_from_slice(&all.clone()[..100]);
        let again = Standouts::beside(hill(), true, -3.0, all);
        assert_eq!(first.places(), again.places());
        // And what was kept is kept again.
        assert_eq!(Standouts::beside(hill(), true, -3.0, first.places()).places(), first.places());
    }

    #[test]
    fn places_without_a_density_or_far_from_the_reference_do_not_stand_out() {
        let standouts = Standouts::beside(hill(), true, 0.0, Vec::new());
        let look_at = |x: f64, log_density: f64| {
            standouts.look_at(&[x; 3], (log_density, &[50.0; 3]), &mut [0.0; 3], &mut Vec::new());
        };
        for nothing in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            look_at(0.0, nothing);
        }
        look_at(50.0, 0.0);
        assert!(standouts.places().is_empty());
        look_at(1.0, 0.0);
        let wanted = Place { point: vec![1.0; 3], log_density: 0.0, score: vec![50.0; 3] };
        assert_eq!(standouts.places(), [wanted]);
    }
}
