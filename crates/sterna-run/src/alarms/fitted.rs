//! Alarms of runs whose reference was fitted, and of those that were to reach something.

use super::Evidence;
use sterna::fitted::Optimum;
use sterna::run::{Leg, StoppedBy, Until};

impl Evidence<'_> {
    /// Two legs estimate one number.
    pub(super) fn legs_disagree(&self) -> Option<String> {
        let [first, second] = &self.results.legs[..] else { return None };
        let known = |leg: &Leg| leg.round_trips >= 20 && leg.log_z.standard_error > 0.0;
        let error = first.log_z.standard_error.hypot(second.log_z.standard_error);
        let gap = (first.log_z.bar - second.log_z.bar).abs();
        (known(first) && known(second) && gap > 0.05 + 4.0 * error).then(|| {
            format!(
                "log Z is {:.3} ± {:.3} from the fitted reference and {:.3} ± {:.3} from the anchor: one of them has not \
                 seen all of the target; sample longer (run.until.ess), or widen the anchor (reference.scale)",
                first.log_z.bar, first.log_z.standard_error, second.log_z.bar, second.log_z.standard_error
            )
        })
    }

    /// An optimum of weight, farther from every draw than draws of a normal ever are from its middle.
    pub(super) fn unvisited_optimum(&self) -> Option<String> {
        let best = self.optima.iter().map(|o| o.log_evidence).fold(f64::NEG_INFINITY, f64::max);
        let far = |optimum: &&Optimum| {
            let dim = self.dim as f64;
            let limit = dim + 8.0 * (2.0 * dim).sqrt() + 8.0;
            let near = |x: &[f64]| {
                let mut away: Vec<f64> = x.iter().zip(&optimum.mean).map(|(x, m)| x - m).collect();
                optimum.shape.solve(&mut away);
                away.iter().map(|a| a * a).sum::<f64>() < limit
            };
            !self.draws.iter().any(|draws| draws.x.chunks_exact(self.dim).any(near))
        };
        let weighty = self.optima.iter().filter(|o| o.log_evidence > best - 7.0);
        let optimum = weighty.filter(far).max_by(|a, b| a.log_evidence.total_cmp(&b.log_evidence))?;
        let shown: Vec<String> = optimum.mean.iter().take(8).map(|x| format!("{x:.4}")).collect();
        let more = if self.dim > 8 { ", …" } else { "" };
        Some(format!(
            "no draw came near an optimum that a climb had found, at [{}{more}] with log density {:.2}: a mode may be \
                 missing; sample longer, or allow an anchor (reference.anchor)",
            shown.join(", "),
            optimum.log_density
        ))
    }

    /// What is missing of what the run was asked for.
    pub(super) fn not_reached(&self) -> Option<String> {
        let (until, reached, by) = self.unreached.as_ref()?;
        let mut missing = Vec::new();
        if let Some(ess) = until.ess {
            if reached.ess < ess {
                missing.push(format!("{:.0} of {ess:.0} effective draws", reached.ess));
            } else if reached.tail_ess < ess.min(Until::TAIL) {
                missing.push(format!(
                    "{:.0} of {:.0} effective draws in the tails",
                    reached.tail_ess,
                    ess.min(Until::TAIL)
                ));
            }
        }
        if let Some(error) =
            until.log_z_error.filter(|error| reached.log_z_error.is_nan() || reached.log_z_error > *error)
        {
            missing.push(match reached.log_z_error.is_finite() {
                true => format!("log Z to {:.3}, not to {error}", reached.log_z_error),
                false => format!("log Z to nobody knows what, not to {error}"),
            });
        }
        let ended = match by {
            StoppedBy::Evaluations => "evaluations (run.until.evaluations)",
            StoppedBy::Time => "minutes (run.until.minutes)",
            _ => "iterations (run.iterations)",
        };
        (!missing.is_empty()).then(|| {
            format!(
                "the run had no more {ended} when it had reached {}: go on with more",
                missing.join(" and ")
            )
        })
    }
}
