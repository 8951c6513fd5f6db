//! Alarms of results that are known exactly: log Z, and where the mass lies.

use super::Evidence;
use sterna::estimates::effective_sample_size;
use sterna::records::Draws;
use sterna::streams::{Phase, Streams};
use sterna::{Batch, Target};
use sterna_testkit::p_values::normal_two_sided;

/// Standard errors between an estimate and the truth that chance does not explain: 6·10⁻⁵ for a normal error, about 10⁻³
/// for one that is known from as few as 20 round trips.
const FAR: f64 = 4.0;

/// Probability that draws which are right are told to be wrong, over all coordinates and quartiles. Their errors are estimates
/// too, hence so little.
const FALSE_ALARM: f64 = 1e-6;

/// Exact draws, and coordinates that are held against them.
const EXACT: usize = 4096;
const COORDINATES: usize = 256;
/// Numbers that are held against them.
const MOST_NUMBERS: usize = 1 << 22;

/// Exact draws of a target; none where it cannot draw.
pub fn exact_draws(target: &dyn Target) -> Option<Batch> {
    let dim = target.dim();
    let streams = Streams::new(29);
    let mut all = Batch::zeros(EXACT, dim);
    for i in 0..EXACT {
        if !target.draw(&mut streams.row(Phase::Exact, 0, i as u32), all.row_mut(i)) {
            return None;
        }
    }
    Some(all)
}

impl Evidence<'_> {
    /// log Z, or the draws, against what is known to be true.
    pub(super) fn truth_missed(&self) -> Option<String> {
        self.log_z_missed().or_else(|| self.mass_missed())
    }

    fn log_z_missed(&self) -> Option<String> {
        let (z, truth) = (&self.results.log_z, self.results.log_z_truth?);
        let off = (z.bar - truth).abs();
        // Rounding of a sum over pairs is no fault.
        let rounding = 1e-9 * truth.abs().max(1.0);
        (off > FAR * z.standard_error + rounding || off.is_nan()).then(|| {
            format!(
                "log Z is {:.4} ± {:.4}, but truly {truth:.4}: parts of the target were missed, or the truth that it was told \
                 is not its own; look for modes beyond the reference (a wider one: reference.scale, or more ladders: \
                 chains.ensembles), then sample longer",
                z.bar, z.standard_error
            )
        })
    }

    /// Shares of draws below the quartiles of exact ones.
    fn mass_missed(&self) -> Option<String> {
        let exact = self.exact.as_ref()?;
        let coordinates: Vec<usize> = (0..self.dim).step_by(self.dim.div_ceil(COORDINATES)).collect();
        let comparisons = 3.0 * coordinates.len() as f64;
        let numbers = coordinates.len() * self.draws.iter().map(|d| d.x.len() / self.dim).sum::<usize>();
        let stride = numbers.div_ceil(MOST_NUMBERS).max(1);
        for j in coordinates {
            let mut column: Vec<f64> = exact.iter_rows().map(|x| x[j]).collect();
            column.sort_unstable_by(f64::total_cmp);
            for quarter in 1..4 {
                let (threshold, expected) = (column[quarter * EXACT / 4], quarter as f64 / 4.0);
                let below = |x: &[f64]| f64::from(u8::from(x[j] < threshold));
                let points = |d: &&Draws| d.x.chunks_exact(self.dim).step_by(stride).map(below).collect();
                let ladders: Vec<Vec<f64>> = self.draws.iter().map(points).collect();
                let count = ladders.iter().map(Vec::len).sum::<usize>() as f64;
                let share = ladders.iter().flatten().sum::<f64>() / count;
                let ess = effective_sample_size(&ladders.iter().map(|l| &l[..]).collect::<Vec<_>>());
                // All on one side: as many independent draws as there are at most, and few at least.
                let ess = if ess.is_nan() { 1.0 } else { ess };
                let error = (expected * (1.0 - expected) * (ess.recip() + (EXACT as f64).recip())).sqrt();
                if comparisons * normal_two_sided((share - expected) / error) < FALSE_ALARM {
                    return Some(format!(
                        "{:.1}% of the draws have {} below {threshold:.4}, and {:.0}% should, as exact draws of \
                         the target tell: modes were missed, or their weights are off; begin from a reference that covers \
                         them, with more chains, then sample longer",
                        100.0 * share,
                        (self.name_of)(j),
                        100.0 * expected
                    ));
                }
            }
        }
        None
    }
}
