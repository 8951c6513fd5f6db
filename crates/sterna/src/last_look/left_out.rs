//! What a reference leaves out, told twice: by draws, and by points whose law is known. Both say how much of the mass lies where the density
//! is far too high for the reference; mass that no draw came to is in the second number alone, whatever it looks like: a ridge through a
//! mode that is known, for instance, has no optimum of its own.

use crate::fitted::{Mixture, Place, Starts};
use crate::lanes::one::{LN_TAU, exp, ln, power};

/// The reference leaves a place out where log π − log η exceeds log Z by so much.
const TOO_HIGH: f64 = 3.0;

/// What points say has to exceed what draws say by so many standard errors, which takes some six points that weigh alike. Weights are skewed:
/// where a heavy one makes the share large it makes its error large too, so that chance goes beyond this less often than once in two hundred
/// times.
const SURE: f64 = 2.5;

/// And by so much: less of the mass nobody misses.
const LEAST: f64 = 0.02;

/// Points count in units of the run's own Z, which may be off by a part of itself.
const UNSURE_OF_Z: f64 = 0.5;

/// Draws that are looked at.
const DRAWS: usize = 4000;

/// Distances at which the law of the points is asked.
const DISTANCES: usize = 48;

/// Mass that a reference leaves out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeftOut {
    /// Its share of all mass, by points whose law is known.
    pub share: f64,
    /// Share of the draws that lie there.
    pub drawn: f64,
}

/// A law of points: normals about two places in turn, from once to so many times as wide, as many at every scale.
pub(super) struct Around<'a> {
    pub centres: [Starts<'a>; 2],
    pub farthest: f64,
}

impl Around<'_> {
    /// log of its density.
    fn log_density(&self, x: &[f64]) -> f64 {
        let dim = x.len() as f64;
        let mut logs = Vec::with_capacity(2 * DISTANCES);
        for Starts { mean, deviation } in &self.centres {
            let (mut square, mut log_volume) = (0.0, 0.5 * dim * LN_TAU);
            for ((x, mean), deviation) in x.iter().zip(*mean).zip(*deviation) {
                square += ((x - mean) / deviation).powi(2);
                log_volume += ln(*deviation);
            }
            logs.extend((0..DISTANCES).map(|i| {
                let far = power(self.farthest, (i as f64 + 0.5) / DISTANCES as f64);
                -0.5 * square / (far * far) - dim * ln(far) - log_volume
            }));
        }
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        top + ln(logs.iter().map(|log| exp(log - top)).sum::<f64>() / logs.len() as f64)
    }
}

/// Holds what points of this law say against what draws do, which are worth so many independent ones.
pub(super) fn left_out<'a>(
    mixture: &Mixture,
    log_z: f64,
    (law, asked): (&Around, &[Place]),
    (draws, effective): (impl Iterator<Item = (&'a [f64], f64)> + Clone, f64),
) -> Option<LeftOut> {
    let reference = mixture.with_rim();
    let (mut score, mut work) = (vec![0.0; mixture.dim()], Vec::new());
    let mut is_left_out =
        |x: &[f64], height: f64| height - reference.evaluate(x, &mut score, &mut work) > log_z + TOO_HIGH;
    let weight =
        |place: &Place| match place.log_density.is_finite() && is_left_out(&place.point, place.log_density) {
            true => exp(place.log_density - log_z - law.log_density(&place.point)),
            false => 0.0,
        };
    let weights: Vec<f64> = asked.iter().map(weight).collect();
    let count = weights.len() as f64;
    let share = weights.iter().sum::<f64>() / count;
    let square: f64 = weights.iter().map(|w| (w - share).powi(2)).sum();
    let error = (square / (count * (count - 1.0))).sqrt();
    let least = share - SURE * error;
    if least.is_nan() || least <= LEAST {
        return None;
    }
    let stride = draws.clone().count().div_ceil(DRAWS).max(1);
    let (mut there, mut all) = (0.0, 0.0);
    for (x, height) in draws.step_by(stride) {
        all += 1.0;
        there += f64::from(u8::from(is_left_out(x, height)));
    }
    let drawn = there / all;
    // As if one more draw had come there and one had not: none at all is no certainty.
    let smoothed = (drawn * effective + 1.0) / (effective + 2.0);
    let of_draws = (smoothed * (1.0 - smoothed) / effective).sqrt();
    let explained = (1.0 + UNSURE_OF_Z) * drawn + LEAST + SURE * (error * error + of_draws * of_draws).sqrt();
    (share > explained).then_some(LeftOut { share, drawn })
}
