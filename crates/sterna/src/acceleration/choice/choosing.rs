//! A choice under way: plain swaps are judged first, then closed forms one after the other, then what is trained, slice by slice.

use super::balance::Balance;
use super::judges::{Judged, Judges};
use super::slices::{Hope, PATIENCE, Slice, hoped};
use super::{Choice, Choose, LEAD, PLAIN, Trainee, Weighed};
use crate::acceleration::guarded::finished;
use crate::acceleration::{Collected, FitReport, Fitted, Fitting};
use crate::accelerators::Identity;
use crate::error::BadState;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Share of the evaluations to come that judging all closed forms may take.
const JUDGING: f64 = 0.02;
/// Judges of a pair in each direction.
const JUDGES: std::ops::RangeInclusive<f64> = 100.0..=1000.0;

/// Where it stands.
pub(super) struct Choosing {
    pub fit: Choose,
    pub collected: Arc<Collected>,
    notes: Notes,
    /// The slice under way.
    current: Option<Box<dyn Fitting>>,
}

/// What has been seen so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Notes {
    /// Plain swaps, and closed forms.
    closed: Vec<Judged>,
    /// Slices of each trainee that was begun.
    slices: Vec<Vec<Slice>>,
    /// Steps of the slice under way.
    steps: Option<u64>,
    /// Whether no more slices are worth it.
    done: bool,
}

impl Choosing {
    pub fn new(fit: Choose, collected: Arc<Collected>) -> Self {
        Self { fit, collected, notes: Notes::default(), current: None }
    }

    /// Samples that fit, and samples that judge: as in every other fit, the last eighth.
    fn held_out(&self) -> (usize, usize) {
        let rows = self.collected.samples[0].rows();
        let held_out = (rows / 8).clamp(1, rows - 1);
        (rows - held_out, rows)
    }

    fn judges(&self) -> Result<Judges<'_>> {
        let Collected { schedule, prospect, .. } = &*self.collected;
        let each = schedule.chains() + 2 * schedule.pairs() * self.fit.candidates.len();
        let affordable = JUDGING * prospect.evaluations_ahead() / each as f64;
        let most = affordable.clamp(*JUDGES.start(), *JUDGES.end()) as usize;
        let (from, rows) = self.held_out();
        let held_out = self.collected.of_rows(from..rows, (rows - from).div_ceil(most)).samples;
        // Evaluated anew each time, so that a choice can stop between any two.
        Judges::new(&*self.fit.path, schedule, held_out, self.fit.seed)
    }

    fn closed_left(&self) -> usize {
        1 + self.fit.candidates.len() - self.notes.closed.len()
    }

    /// Judges the next of the closed forms, or first of all plain swaps.
    fn judge_next(&mut self) -> Result<()> {
        let judges = self.judges()?;
        let judged = match self.notes.closed.len().checked_sub(1) {
            None => judges.judge(&Identity)?,
            Some(next) => {
                let twin = Arc::new(self.collected.of_rows(0..self.held_out().0, 1));
                match self.fit.candidates[next].fit.begin(twin, None).and_then(finished) {
                    Ok(twin) => judges.judge(&*twin.accelerator)?,
                    // Too few samples for so many numbers, for one.
                    Err(error @ Error::Setting { .. }) => Judged::refused(error.to_string()),
                    Err(error) => return Err(error),
                }
            }
        };
        self.notes.closed.push(judged);
        Ok(())
    }

    /// What to hope of a trainee: the share of the odds that others of its kind have left lets expect, and what hope has cost so far.
    fn hope(&self, number: usize) -> Hope {
        let Notes { closed, slices, .. } = &self.notes;
        let trainees = &self.fit.trainees;
        let (family, steps) = &trainees[number].family;
        let known = |(trainee, own): (&Trainee, &Vec<Slice>)| {
            let last =
                own.last().filter(|last| trainee.family.0 == *family && last.judged.refused.is_none())?;
            Some((trainee.family.1, last.judged.odds() / closed[0].odds()))
        };
        let known: Vec<(usize, f64)> = trainees[..number].iter().zip(slices).filter_map(known).collect();
        let cost = |trainee: &Trainee, own: &[Slice]| -> f64 {
            let of =
                |slice: &Slice| trainee.cost(slice.steps, self.fit.evaluation) + slice.judged.asked as f64;
            own.iter().map(of).sum()
        };
        let all = || trainees.iter().zip(slices);
        let spent = all().map(|(trainee, own)| cost(trainee, &own[..own.len().min(PATIENCE)])).sum();
        let trained = all().map(|(trainee, own)| cost(trainee, own)).sum();
        Hope { share: hoped(&known, *steps), spent, trained }
    }

    /// Steps of the next slice, of this trainee or the one after it; none where no more is worth it.
    fn next_slice(&mut self) -> Option<u64> {
        if self.notes.slices.is_empty() {
            self.notes.slices.push(Vec::new());
        }
        while let Some(number) = self.notes.slices.len().checked_sub(1) {
            let (trainee, slices) = (self.fit.trainees.get(number)?, &self.notes.slices[number]);
            let has_learned =
                |other: usize| self.notes.slices[other].iter().any(|slice| slice.judged.refused.is_none());
            let wanted = !trainee.instead.is_some_and(has_learned);
            let way = (!slices.is_empty()).then_some(self.notes.closed.len() + number);
            // A closed form that asks once in a journey took as many evaluations to judge.
            let judging = self.notes.closed.iter().map(|judged| judged.asked).max().unwrap_or(0);
            let ways = (&self.balance(), way);
            let costs = (self.fit.evaluation, judging);
            if let Some(steps) = trainee.next(slices, ways, costs, self.hope(number)).filter(|_| wanted) {
                return Some(steps);
            }
            self.notes.slices.push(Vec::new());
        }
        None
    }

    /// Begins a slice of so many steps, from where the last one ended.
    fn slice(&self, steps: u64) -> Result<Box<dyn Fitting>> {
        let number = self.notes.slices.len() - 1;
        let fit = self.fit.trainees[number].training.slice(steps)?;
        let earlier = match self.notes.slices[number].last() {
            Some(last) => Some(fit.rebuild(&last.record)?),
            None => None,
        };
        fit.begin(self.collected.clone(), earlier.as_ref())
    }

    /// A slice is over: it is judged like all others.
    fn end_slice(&mut self, slice: Box<dyn Fitting>) -> Result<()> {
        let fitted = slice.finish()?;
        let FitReport { target_evaluations, network_evaluations, losses, steps, seen, .. } = fitted.report;
        let judged = match fitted.record.is_empty() {
            false => self.judges()?.judge(&*fitted.accelerator)?,
            true => Judged::refused("its training diverged".into()),
        };
        let asked = (target_evaluations, network_evaluations);
        let (record, diverged) = (fitted.record.to_vec(), judged.refused.is_some());
        let slices = &mut self.notes.slices;
        if let Some(own) = slices.last_mut() {
            own.iter_mut().for_each(|earlier| earlier.seen = None);
            own.push(Slice { steps, judged, record, asked, losses, seen });
        }
        if diverged {
            slices.push(Vec::new());
        }
        self.notes.steps = None;
        Ok(())
    }

    /// Makes at most so many steps of training; what is left of them.
    fn train(&mut self, most: u64) -> Result<u64> {
        if self.current.is_none() {
            self.notes.steps = self.next_slice();
            self.current = match self.notes.steps {
                Some(steps) => Some(self.slice(steps)?),
                None => {
                    self.notes.done = true;
                    return Ok(0);
                }
            };
        }
        let Some(mut slice) = self.current.take() else { return Ok(0) };
        let before = slice.progress().0;
        slice.advance(most)?;
        let (done, all) = slice.progress();
        match done < all {
            true => self.current = Some(slice),
            false => self.end_slice(slice)?,
        }
        Ok(most - (done - before).min(most))
    }

    fn weighed(&self) -> Vec<Weighed> {
        let Notes { closed, slices, .. } = &self.notes;
        let plain = &closed[0];
        let of = |name: &str, operations: f64, judged: &Judged, trained: u64| Weighed {
            name: name.into(),
            steps: judged.steps,
            rejection_rates: judged.mean(),
            uncertainty: judged.uncertainty(plain),
            evaluations: judged.evaluations,
            operations,
            trained,
            gain: f64::NAN,
            refused: judged.refused.clone(),
        };
        let names = std::iter::once((PLAIN, 0.0));
        let names = names.chain(self.fit.candidates.iter().map(|c| (&c.name[..], c.operations)));
        let closed = names.zip(closed).map(|((name, operations), judged)| of(name, operations, judged, 0));
        let idle = Judged::refused("what it may save does not cover its training".into());
        let trained = self.fit.trainees.iter().enumerate().map(|(number, trainee)| {
            let own = slices.get(number).map_or(&[][..], |own| own);
            let steps = own.iter().map(|slice| slice.steps).sum();
            of(&trainee.name, trainee.operations, own.last().map_or(&idle, |last| &last.judged), steps)
        });
        closed.chain(trained).collect()
    }

    fn balance(&self) -> Balance {
        let Collected { schedule, prospect, .. } = &*self.collected;
        Balance::new(prospect, schedule, &self.weighed(), self.fit.evaluation)
    }

    fn choice(&self) -> Choice {
        let pairs = self.collected.schedule.pairs();
        let (mut weighed, balance) = (self.weighed(), self.balance());
        for (way, weighed) in weighed.iter_mut().enumerate() {
            weighed.gain = balance.gain(&vec![way; pairs]);
        }
        let best = balance.best();
        let gain = balance.gain(&best);
        let (of_pair, gain) = if gain >= LEAD { (best, gain) } else { (vec![0; pairs], 1.0) };
        let slices = || self.notes.slices.iter().flatten();
        let judged = self.notes.closed.iter().chain(slices().map(|slice| &slice.judged));
        let evaluation = self.fit.evaluation;
        Choice {
            weighed,
            of_pair,
            gain,
            evaluation,
            evaluations: judged.map(|j| j.asked).sum(),
            reason: None,
            moved: None,
            first_block: None,
            prospect: self.collected.prospect.clone(),
        }
    }

    /// What training did, over all slices.
    fn report(&self) -> FitReport {
        let slices = || self.notes.slices.iter().flatten();
        FitReport {
            steps: slices().map(|slice| slice.steps).sum(),
            losses: slices().last().map_or(Vec::new(), |slice| slice.losses.clone()),
            seen: slices().last().and_then(|slice| slice.seen.clone()),
            target_evaluations: slices().map(|slice| slice.asked.0).sum(),
            network_evaluations: slices().map(|slice| slice.asked.1).sum(),
            ..FitReport::default()
        }
    }

    /// What carries a way that is in use, made of all samples.
    fn made(&self, way: usize) -> Result<Fitted> {
        let fit = self.fit.maker(way)?;
        match way.checked_sub(self.notes.closed.len()) {
            None => finished(fit.begin(self.collected.clone(), None)?),
            Some(number) => {
                let last = self.notes.slices.get(number).and_then(|own| own.last());
                fit.rebuild(&last.ok_or(BadState::Contradiction)?.record)
            }
        }
    }
}

impl Fitting for Choosing {
    fn progress(&self) -> (u64, u64) {
        let made = self.notes.slices.iter().flatten().map(|slice| slice.steps).sum::<u64>();
        let under_way = self.current.as_ref().map_or(0, |slice| slice.progress().0);
        let done = self.notes.closed.len() as u64 + made + under_way;
        let left = self.closed_left() as u64 + self.notes.steps.map_or(0, |steps| steps - under_way);
        // One more, until it is known that nothing more is worth it.
        (done + u64::from(self.notes.done), done + left + 1)
    }

    fn loss(&self) -> Option<f64> {
        self.current.as_ref()?.loss()
    }

    fn advance(&mut self, most: u64) -> Result<()> {
        let mut left = most;
        while left > 0 && self.closed_left() > 0 {
            self.judge_next()?;
            left -= 1;
        }
        while left > 0 && !self.notes.done {
            left = self.train(left)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Fitted> {
        let choice = self.choice();
        let used = (1..choice.weighed.len()).filter(|way| choice.of_pair.contains(way));
        let fits = used.map(|way| Ok((way, self.made(way)?))).collect::<Result<_>>()?;
        self.fit.made(choice, fits, self.report())
    }

    fn save(&self) -> Result<Vec<u8>> {
        let current = self.current.as_ref().map(|slice| slice.save()).transpose()?;
        postcard::to_allocvec(&(&self.notes, current)).map_err(|e| BadState::Unreadable(e.to_string()).into())
    }

    fn restore(&mut self, saved: &[u8]) -> Result<()> {
        let (notes, current): (Notes, Option<Vec<u8>>) =
            postcard::from_bytes(saved).map_err(|e| BadState::Unreadable(e.to_string()))?;
        let pairs = self.collected.schedule.pairs();
        let judged = notes.closed.iter().chain(notes.slices.iter().flatten().map(|slice| &slice.judged));
        let begun = notes.slices.len() <= self.fit.trainees.len() + 1;
        let consistent = current.is_some() == notes.steps.is_some()
            && (current.is_none() || (1..=self.fit.trainees.len()).contains(&notes.slices.len()));
        if notes.closed.len() > 1 + self.fit.candidates.len()
            || !(begun && consistent)
            || !judged.into_iter().all(|judged| judged.is_sound(pairs))
        {
            return Err(BadState::Contradiction.into());
        }
        self.notes = notes;
        self.current = match (self.notes.steps, current) {
            (Some(steps), Some(saved)) => {
                let mut slice = self.slice(steps)?;
                slice.restore(&saved)?;
                Some(slice)
            }
            _ => None,
        };
        Ok(())
    }
}
