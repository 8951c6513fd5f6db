//! Where climbs start: over-dispersed draws of the anchor, at which the density is finite.

use super::climb::{Place, places};
use crate::streams::Phase;
use crate::{Batch, Error, Result, Streams, Target};
use std::ops::Range;

/// How many times as far as the anchor's draws each pair of starts lies.
///
/// From far away the modes of a target lie side by side, so that starts there, in opposite directions, find those that the
/// anchor is too narrow for.
const SCALES: [f64; 8] = [1.0, 16.0, 2.0, 64.0, 1.0, 8.0, 4.0, 32.0];

/// Draws that are tried for one start.
const ATTEMPTS: u64 = 40;

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

    /// Start number `climb`, at a given attempt. Climbs come in pairs on opposite sides; later attempts are draws of their
    /// own, nearer and nearer.
    fn draw(&self, streams: &Streams, climb: usize, attempt: u64) -> Vec<f64> {
        let (pair, row) = (climb / 2, if attempt == 0 { climb / 2 } else { climb });
        let mut z = Batch::zeros(1, self.mean.len());
        streams.normals(Phase::Climb, attempt, &[row as u32], &mut z);
        let nearer = 0.5f64.powi((attempt / 2) as i32).max(1e-3);
        let side = if attempt == 0 && climb % 2 == 1 { -1.0 } else { 1.0 };
        let far = side * SCALES[pair % SCALES.len()] * nearer;
        let coordinates = self.mean.iter().zip(self.deviation).zip(z.row(0));
        coordinates.map(|((mean, deviation), z)| mean + far * deviation * z).collect()
    }
}

/// Starts of the climbs with these numbers: the first attempt of each that is finite, or else the last.
pub(super) fn find_starts(
    target: &dyn Target,
    anchor: Starts,
    streams: &Streams,
    climbs: Range<usize>,
) -> Result<Vec<Place>> {
    let first = climbs.start;
    let mut starts = places(target, climbs.map(|climb| anchor.draw(streams, climb, 0)).collect())?;
    for attempt in 1..ATTEMPTS {
        let open: Vec<usize> = (0..starts.len()).filter(|&i| !starts[i].is_finite()).collect();
        let points = open.iter().map(|i| anchor.draw(streams, first + i, attempt)).collect();
        for (i, place) in open.into_iter().zip(places(target, points)?) {
            starts[i] = place;
        }
    }
    Ok(starts)
}
