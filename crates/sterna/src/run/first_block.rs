//! The run's first block: burn-in, of which a run that carries its swaps by transports that were chosen is shown how they fare. Halfway
//! chains move once more; at its end what does not pay goes back to plain swaps. None of its draws counts, so no choice bends an estimate.

use super::{Criterion, Run, Settings, Stage};
use crate::acceleration::{Acceleration, Choice, Fitted, SwapsSeen, Verdict};
use crate::accelerators::InTurn;
use crate::records::{ENOUGH_SWAPS, LOOKING_TURNS};
use crate::schedule::Schedule;
use crate::{Result, accelerator::Accelerator};
use std::sync::Arc;

/// Share of the iterations to come that the second part of it has, which judges.
const JUDGING: f64 = 0.02;
/// Swaps of either kind, beyond which more would hardly change a judgement.
const MOST_SWAPS: u64 = 1000;

/// Iterations in which each pair on the way to the target has so many swaps of either kind, of all ladders together. It is proposed in
/// every second one, and kinds take turns.
fn that_show(swaps: u64, settings: &Settings) -> u64 {
    2 * LOOKING_TURNS * swaps.div_ceil(settings.ensembles as u64)
}

/// Iterations of the two parts of a burn-in that is looked at.
pub(super) fn watched(settings: &Settings, choice: &Choice) -> [u64; 2] {
    let enough = that_show(ENOUGH_SWAPS, settings) + 1;
    let judging = ((JUDGING * choice.prospect.ahead) as u64).min(that_show(MOST_SWAPS, settings));
    let half = settings.burn_in / 2;
    [half.max(enough), (settings.burn_in - half).max(enough).max(judging)]
}

/// Whether a choice has fallen on a transport for some pair.
pub(super) fn carries(choice: &Choice) -> bool {
    choice.moved.is_some() || choice.of_pair.iter().any(|way| *way > 0)
}

impl Run {
    /// What was weighed and chosen, where something was.
    pub(super) fn choice(&self) -> Option<&Choice> {
        self.fits.fitted.as_ref()?.report.choice.as_ref()
    }

    /// Whether a choice has fallen on a transport for some pair.
    pub(super) fn carries(&self) -> bool {
        self.choice().is_some_and(carries)
    }

    /// Iterations of burn-in, as two parts.
    fn parts_of_burn_in(&self) -> [u64; 2] {
        let half = self.settings.burn_in / 2;
        match self.choice().filter(|choice| carries(choice)) {
            Some(choice) => watched(&self.settings, choice),
            None => [half, self.settings.burn_in - half],
        }
    }

    /// Iterations of burn-in: where transports were chosen for what held-out samples promise, enough to see twice how often their swaps
    /// are rejected.
    pub(super) fn burn_in(&self) -> u64 {
        self.parts_of_burn_in().iter().sum()
    }

    /// Those after which chains that have followed a transport move once more.
    pub(super) fn half_of_burn_in(&self) -> u64 {
        self.parts_of_burn_in()[0]
    }

    /// Whether burn-in is recorded, so that it can be looked at.
    pub(super) fn watches_burn_in(&self) -> bool {
        self.looks_again_at_fits() && self.carries()
    }

    pub(super) fn looks_again_at_fits(&self) -> bool {
        matches!(&self.acceleration, Acceleration::Fitted(fit) if fit.looks_again())
    }

    /// What was fitted carries swaps; while it is looked at, in every other proposal.
    pub(super) fn take_turns(&mut self) {
        let Some(fitted) = &self.fits.fitted else { return };
        let looking = self.progress.stage == Stage::BurnIn && self.watches_burn_in();
        let accelerator: Arc<dyn Accelerator> = match looking {
            true => Arc::new(InTurn::new(fitted.accelerator.clone(), LOOKING_TURNS)),
            false => fitted.accelerator.clone(),
        };
        self.ladder.sampler.accelerator = accelerator;
    }

    /// Chains move to where all pairs would be rejected equally often, if what was fitted can be had there: as held-out samples promise,
    /// or by the swaps that were seen. Whether they have.
    pub(super) fn follow_transport(&mut self, seen: Option<&SwapsSeen>) -> Result<bool> {
        let Acceleration::Fitted(fit) = &self.acceleration else { return Ok(false) };
        let Some(fitted) = &self.fits.fitted else { return Ok(false) };
        if self.settings.criterion == Criterion::Fixed {
            return Ok(false);
        }
        match fit.follow(fitted, &self.ladder.sampler.schedule, seen)? {
            Some((schedule, fitted)) => self.take_up(schedule, fitted).map(|()| true),
            None => Ok(false),
        }
    }

    /// Chains elsewhere, maybe more or fewer of them, and what was made for them there.
    fn take_up(&mut self, schedule: Schedule, fitted: Fitted) -> Result<()> {
        self.fits.fitted = Some(fitted);
        self.take_turns();
        if schedule.chains() == self.ladder.chains() {
            return self.ladder.move_chains(schedule);
        }
        self.ladder.lay_out(self.ladder.sampler.path.clone(), schedule)?;
        if let Some(plain) = self.fits.plain.as_ref().filter(|_| self.reference.is_some()) {
            self.ladder.rest(plain.every, plain.alone);
        }
        self.hand_over_masses();
        Ok(())
    }

    /// Halfway through burn-in: chains that have followed a transport move once more, by what was seen of its swaps.
    pub(super) fn follow_burn_in(&mut self) -> Result<()> {
        if !self.watches_burn_in() {
            return Ok(());
        }
        let seen = self.ladder.swaps_seen();
        let known = (0..self.ladder.sampler.schedule.target()).all(|pair| seen.knows(pair));
        if known && self.choice().is_some_and(|choice| choice.moved.is_some()) {
            self.follow_transport(Some(&seen))?;
        }
        // What is to judge sees the second part alone.
        self.ladder.clear_tuning(self.settings.round_iterations);
        Ok(())
    }

    /// End of burn-in: what does not pay by what it has shown goes back to plain swaps. Chains that had moved in vain go back, and
    /// burn-in begins anew: whether they do.
    pub(super) fn look_again(&mut self) -> Result<bool> {
        let Acceleration::Fitted(fit) = &self.acceleration else { return Ok(false) };
        let Some(fitted) = self.fits.fitted.as_ref().filter(|_| self.watches_burn_in()) else {
            return Ok(false);
        };
        match fit.look_again(fitted, &self.ladder.sampler.schedule, &self.ladder.swaps_seen())? {
            Verdict::Here(fitted) => self.fits.fitted = Some(fitted),
            Verdict::Back(schedule, fitted) => {
                self.take_up(schedule, fitted)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Legs;

    /// However many ladders share the swaps, whatever rests, and whichever pairs come first.
    #[test]
    fn each_part_of_a_burn_in_that_is_watched_shows_enough_swaps() {
        let ladders = [
            Legs::new(5, 4),
            Legs::new(7, 3).resting(9),
            Legs::new(4, 1).resting(9),
            Legs::new(4, 1).resting(9).with_no_idle_turns(2),
        ];
        let parts = |ensembles: usize| {
            let settings = Settings { ensembles, burn_in: 0, ..Settings::default() };
            watched(&settings, &Choice::default())
        };
        for (ensembles, legs) in (1..=120).flat_map(|ensembles| ladders.map(|legs| (ensembles, legs))) {
            let [half, rest] = parts(ensembles);
            for (first, pair) in (1..10).flat_map(|first| (1..=legs.target()).map(move |pair| (first, pair)))
            {
                for part in [first..first + half, first + half..first + half + rest] {
                    for plain in [false, true] {
                        let kind = |t: &u64| InTurn::is_plain_turn(LOOKING_TURNS, *t) == plain;
                        let proposed = part.clone().filter(kind);
                        let proposed = proposed.filter(|t| legs.pairs(*t).any(|other| other == pair)).count();
                        let seen = (ensembles * proposed) as u64;
                        assert!(seen >= ENOUGH_SWAPS, "{ensembles}: {legs:?}, {pair}, {seen}");
                    }
                }
            }
        }
        assert_eq!([1, 4].map(parts), [[201, 201], [53, 53]]);
    }

    /// Long runs judge by more, up to where more would hardly tell.
    #[test]
    fn the_block_that_judges_grows_with_the_run() {
        let settings = Settings { burn_in: 100, ensembles: 2, ..Settings::default() };
        let judging = |ahead: f64| {
            let mut choice = Choice::default();
            choice.prospect.ahead = ahead;
            watched(&settings, &choice)
        };
        assert_eq!(
            [1e3, 5e4, 1e9, f64::NAN].map(judging),
            [[101, 101], [101, 1000], [101, 2000], [101, 101]]
        );
    }
}
