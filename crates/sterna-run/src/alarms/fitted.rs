//! Alarms of runs whose reference was fitted, and of those that were to reach something.

use super::Evidence;
use crate::closing::EXPECTED;
use sterna::fitted::Optimum;
use sterna::last_look::{CutTail, LeftOut, reach};
use sterna::run::{Leg, StoppedBy, Until};

/// Coordinates whose correlations leave less than this of their width are beyond what numbers can tell apart for long.
const DEGENERATE: f64 = 1e-6;

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

    /// An optimum of weight that no draw came near: as the last look has it, or before that as the first climbs do.
    pub(super) fn unvisited_optimum(&self) -> Option<String> {
        let first = || {
            let optima =
                self.optima.iter().filter(|optimum| self.is_weighty(optimum) && !self.is_near(optimum));
            optima.max_by(|a, b| a.log_evidence.total_cmp(&b.log_evidence))
        };
        let optimum = match self.unvisited {
            Some(all) => all.first()?,
            None => first()?,
        };
        let shown: Vec<String> = optimum.mean.iter().take(8).map(|x| format!("{x:.4}")).collect();
        let more = if self.dim > 8 { ", …" } else { "" };
        let share = (optimum.log_evidence - self.results.log_z.bar).exp().min(1.0);
        Some(format!(
            "no draw came near an optimum that a climb found, at [{}{more}] with log density {:.2}: by its curvature, {} of the mass \
             that was sampled may lie there besides; begin from a reference that covers it (reference.mean and reference.scale, or \
             reference.kind = \"fitted\" with its anchor)",
            shown.join(", "),
            optimum.log_density,
            if share < 0.995 { format!("{:.0}%", (100.0 * share).max(1.0)) } else { "as much as all".into() }
        ))
    }

    /// Mass where the reference is far too low, of which draws have too little.
    pub(super) fn left_out(&self) -> Option<String> {
        let LeftOut { share, drawn } = self.left_out?;
        Some(format!(
            "points asked all around the draws say that {} lies where the reference is far lower than the density, and {:.1}% of the \
             draws do: some of it was not found, such as a ridge through what was; begin from a reference that covers it \
             (reference.mean and reference.scale), with more ladders (chains.ensembles), then sample longer (run.until.ess)",
            if share < 0.995 {
                format!("{:.0}% of the mass", 100.0 * share)
            } else {
                "as much as all mass".into()
            },
            100.0 * drawn
        ))
    }

    /// Draws that end where the density goes on.
    pub(super) fn cut_tail(&self) -> Option<String> {
        let CutTail { coordinate, end, share } = self.cut_tail?;
        Some(format!(
            "the outermost draw of {} lies at {end:.4}, and by the density beyond it {:.2}% of the mass should lie \
             farther out: local moves do not get to the end of a tail or a ridge; other coordinates, in which it is neither so \
             narrow nor so bent, help most, then a longer run (run.until.ess); means and standard deviations may be off",
            (self.name_of)(coordinate),
            100.0 * share
        ))
    }

    /// Whether so much mass lies around an optimum, as far as its curvature tells, that draws should have come to it.
    fn is_weighty(&self, optimum: &Optimum) -> bool {
        let ess = self.results.ess.iter().copied().fold(f64::INFINITY, f64::min);
        let expected = (optimum.log_evidence - self.results.log_z.bar).exp() * ess;
        expected > EXPECTED
    }

    /// Whether a draw is as near as draws of the normal around an optimum are.
    fn is_near(&self, optimum: &Optimum) -> bool {
        let near = |x: &[f64]| {
            let mut away: Vec<f64> = x.iter().zip(&optimum.mean).map(|(x, m)| x - m).collect();
            optimum.shape.solve(&mut away);
            away.iter().map(|a| a * a).sum::<f64>() < reach(self.dim)
        };
        self.draws.iter().any(|draws| draws.x.chunks_exact(self.dim).any(near))
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
        let narrowest = self.optima.first().map_or(1.0, |best| best.shape.narrowest());
        let cure = match narrowest < DEGENERATE {
            true => format!(
                "the target is all but degenerate, in some direction {narrowest:.0e} times as wide as its coordinates are: \
                 give it other ones"
            ),
            false => "go on with more".into(),
        };
        (!missing.is_empty()).then(|| {
            format!("the run had no more {ended} when it had reached {}: {cure}", missing.join(" and "))
        })
    }
}
