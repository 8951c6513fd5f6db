//! Where climbs start: over-dispersed draws of the anchor, at which the density is finite and not absurdly low.

use super::climb::{Place, places};
use super::numbers::{dot, ln};
use crate::lanes::one::LN_TAU;
use crate::streams::Phase;
use crate::{Batch, Error, Result, Streams, Target};
use std::ops::Range;

/// How many times as far as the anchor's draws each pair of starts around it lies.
///
/// From far away the modes of a target lie side by side, so that starts there, on opposite sides, find those that the
/// anchor is too narrow for.
pub(super) const FAR: [f64; 8] = [1.0, 16.0, 2.0, 64.0, 1.0, 8.0, 4.0, 32.0];

/// The same for starts around optima that are known.
pub(super) const NEAR: [f64; 3] = [1.0, 2.0, 1.5];

/// Draws of which the best is a start.
const CANDIDATES: usize = 16;

/// Distances along the first draw of a start, each half of the one before; and points that are tried for a start in all.
const HALVINGS: usize = 8;
const ATTEMPTS: usize = 48;

/// Twice as far, a log density may lie so many times as far below that of the anchor's mean; a normal's lies four times.
const STEEPEST: f64 = 8.0;

/// A normal with independent coordinates that climbs start around.
#[derive(Clone, Copy, Debug)]
pub struct Starts<'a> {
    /// Its mean.
    pub mean: &'a [f64],
    /// Its standard deviations.
    pub deviation: &'a [f64],
}

impl Starts<'_> {
    /// Refuses numbers that no climb could start from.
    pub(super) fn check(&self, dim: usize) -> Result<()> {
        for (what, numbers) in [("the anchor's mean", self.mean), ("the anchor's deviation", self.deviation)]
        {
            if numbers.len() != dim {
                return Err(Error::Dimension { what, found: numbers.len(), expected: dim });
            }
        }
        if let Some(bad) = self.mean.iter().find(|m| !m.is_finite()) {
            return Err(Error::setting("Starts::mean", bad, "means must be finite"));
        }
        match self.deviation.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
            Some(bad) => {
                Err(Error::setting("Starts::deviation", bad, "deviations must be positive and finite"))
            }
            None => Ok(()),
        }
    }

    /// A point of start number `climb`. The first draws of climbs come in pairs, on opposite sides of the mean; further
    /// ones are each climb's own.
    fn point(&self, streams: &Streams, climb: usize, scale: f64, attempt: usize) -> Vec<f64> {
        let (draw, halvings) = draw_and_halvings(attempt);
        let row = if draw == 0 { climb / 2 } else { climb };
        let mut z = Batch::zeros(1, self.mean.len());
        streams.normals(Phase::Climb, draw as u64, &[row as u32], &mut z);
        let side = if draw == 0 && climb % 2 == 1 { -1.0 } else { 1.0 };
        let far = side * scale * 0.5f64.powi(halvings as i32);
        let coordinates = self.mean.iter().zip(self.deviation).zip(z.row(0));
        coordinates.map(|((mean, deviation), z)| mean + far * deviation * z).collect()
    }

    /// log of the normal's density.
    pub(super) fn log_density(&self, x: &[f64]) -> f64 {
        let coordinates = x.iter().zip(self.mean).zip(self.deviation);
        let z: Vec<f64> = coordinates.map(|((x, m), s)| (x - m) / s).collect();
        let log_volume: f64 = self.deviation.iter().map(|s| ln(*s)).sum();
        -0.5 * dot(&z, &z) - log_volume - 0.5 * x.len() as f64 * LN_TAU
    }
}

/// The first attempts go along one draw, nearer and nearer to the mean; each two of the others along a draw of their own.
fn draw_and_halvings(attempt: usize) -> (usize, usize) {
    if attempt < HALVINGS { (0, attempt) } else { (attempt / 2 - HALVINGS / 2 + 1, attempt % HALVINGS) }
}

/// Starts of the climbs with these numbers; where there is none, the last point that was tried.
pub(super) fn find_starts(
    target: &dyn Target,
    anchor: Starts,
    scales: &[f64],
    streams: &Streams,
    climbs: Range<usize>,
) -> Result<Vec<Place>> {
    let middle = places(target, vec![anchor.mean.to_vec()])?.remove(0).log_density;
    let mut starts: Vec<Start> =
        climbs.map(|climb| Start::new(climb, scales[climb / 2 % scales.len()])).collect();
    for attempt in 0..ATTEMPTS {
        let open: Vec<&mut Start> = starts.iter_mut().filter(|s| !s.found).collect();
        let points = open.iter().map(|s| anchor.point(streams, s.climb, s.scale, attempt)).collect();
        for (start, place) in open.into_iter().zip(places(target, points)?) {
            start.see(place, middle, attempt == 0 || attempt >= HALVINGS && attempt % 2 == 0);
        }
    }
    Ok(starts.into_iter().filter_map(|s| s.candidate).collect())
}

/// For each of these climbs, the best of some draws of the anchor: where much of it is a plateau, most draws lead nowhere.
pub(super) fn best_starts(
    target: &dyn Target,
    anchor: Starts,
    streams: &Streams,
    climbs: Range<usize>,
) -> Result<Vec<Place>> {
    let candidate =
        |k: usize| anchor.point(streams, climbs.start + k / CANDIDATES, 1.0, own_draw(k % CANDIDATES));
    let points = (0..climbs.len() * CANDIDATES).map(candidate).collect();
    let mut places = places(target, points)?.into_iter();
    let height = |place: &Place| if place.is_finite() { place.log_density } else { f64::NEG_INFINITY };
    let higher = |a: Place, b: Place| if height(&b) > height(&a) { b } else { a };
    Ok(climbs.filter_map(|_| places.by_ref().take(CANDIDATES).reduce(higher)).collect())
}

/// The attempt that is draw k of a climb's own, at its full distance.
fn own_draw(k: usize) -> usize {
    HALVINGS * (k + 1)
}

/// The search for one start.
struct Start {
    climb: usize,
    scale: f64,
    /// The last point that was seen, which is the start once it was found.
    candidate: Option<Place>,
    found: bool,
}

impl Start {
    fn new(climb: usize, scale: f64) -> Self {
        Self { climb, scale, candidate: None, found: false }
    }

    /// Takes the next point, on a new draw or half as far out as the one before.
    fn see(&mut self, nearer: Place, middle: f64, new_draw: bool) {
        if !new_draw && let Some(farther) = self.candidate.take_if(|p| p.is_finite()) {
            let fall = |place: &Place| middle.max(nearer.log_density) - place.log_density;
            if nearer.is_finite() && fall(&farther) <= STEEPEST * fall(&nearer).max(1.0) {
                self.found = true;
                self.candidate = Some(farther);
                return;
            }
        }
        self.found = self.scale <= 2.0 && nearer.is_finite();
        self.candidate = Some(nearer);
    }
}
