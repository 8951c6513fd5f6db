//! Alarms of local moves.

use super::Evidence;
use sterna::explorers::{STEP_SIZE_BOUNDS as BOUNDS, StepSize};
use sterna::run::Run;

/// Acceptance that a run adapts its step sizes to, if it does.
pub(crate) fn wanted_acceptance(run: &Run) -> Option<f64> {
    match run.settings().explorer.as_hmc()?.step_size {
        StepSize::Adapt { acceptance } => Some(acceptance),
        _ => None,
    }
}

impl Evidence<'_> {
    pub(super) fn step_size_bound(&self) -> Option<String> {
        let wanted = self.wanted_acceptance?;
        let r = self.results;
        let chains = r.step_size.iter().zip(&r.acceptance).enumerate();
        let at_bound = |size: f64| size <= 2.0 * BOUNDS.0 || size >= 0.5 * BOUNDS.1;
        let far = |(_, (size, acceptance)): &(usize, (&f64, &f64))| {
            // Exact draws have no acceptance and no step.
            !acceptance.is_nan() && (at_bound(**size) || **acceptance < 0.5 * wanted)
        };
        let (chain, (size, acceptance)) = chains.clone().find(far)?;
        let count = chains.filter(far).count();
        let others = if count > 1 { format!(" (and on {} other chains)", count - 1) } else { String::new() };
        Some(format!(
            "step sizes did not settle: on chain {chain}{others} the step is {size:.2e} and {:.0}% of moves are accepted \
             where {:.0}% were wanted; check the score with `sterna verify`, rescale coordinates, or tune longer \
             (schedule.rounds)",
            100.0 * acceptance,
            100.0 * wanted
        ))
    }
}
