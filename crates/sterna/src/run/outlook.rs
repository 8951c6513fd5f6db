//! What of a run is still to come, for those who watch it.

use super::{Run, Stage};
use crate::acceleration::Acceleration;

impl Run {
    /// How often an accelerator is fitted.
    fn planned_fits(&self) -> usize {
        if matches!(self.acceleration, Acceleration::Fitted(_)) { self.settings.fits } else { 0 }
    }

    /// Which stage this is, from 1, and how many there are: climbs, tuning, collecting and fitting for each fit, burn-in and
    /// sampling, as far as there are such. Retuning belongs to the fit before it.
    pub fn stage_number(&self) -> (usize, usize) {
        let (settings, done) = (&self.settings, self.fits.done);
        let tuned = usize::from(self.reference.is_some()) + usize::from(settings.rounds > 0);
        let all = tuned + 2 * self.planned_fits() + usize::from(settings.burn_in > 0) + 1;
        let number = match self.progress.stage {
            Stage::Climbing => 1,
            Stage::Tuning(_) => tuned,
            Stage::Collecting => tuned + 2 * done + 1,
            Stage::Fitting => tuned + 2 * done + 2,
            Stage::Retuning(_) => tuned + 2 * done,
            Stage::BurnIn => all - 1,
            Stage::Sampling | Stage::Finished => all,
        };
        (number, all)
    }

    /// What follows this stage: iterations, which nobody knows where goals end the run, and fits.
    pub fn ahead(&self) -> (Option<u64>, usize) {
        let (settings, fits, done, stage) =
            (&self.settings, self.planned_fits(), self.fits.done, self.progress.stage);
        let under_way = usize::from(matches!(stage, Stage::Collecting | Stage::Fitting));
        let is_late = matches!(stage, Stage::BurnIn | Stage::Sampling | Stage::Finished);
        let collecting: u64 = (done + under_way..fits).map(|fit| settings.collect << fit).sum();
        let sampling = match stage {
            Stage::Sampling | Stage::Finished => Some(0),
            _ => settings.until.is_none().then_some(settings.iterations),
        };
        let before = if is_late { 0 } else { collecting + settings.burn_in };
        let left = if is_late { 0 } else { fits.saturating_sub(done + usize::from(stage == Stage::Fitting)) };
        (sampling.map(|sampling| before + sampling), left)
    }

    /// The loss of the training under way, where it has one.
    pub fn loss(&self) -> Option<f64> {
        self.fits.under_way.as_ref().and_then(|(_, fitting)| fitting.loss())
    }
}
