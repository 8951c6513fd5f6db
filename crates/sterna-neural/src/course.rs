//! A training under way: batches of a lesson, steps of the optimiser, and what is noted of them (App. E.2).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sterna::acceleration::{FitReport, Fitted, Fitting};
use sterna::accelerators::Identity;

use crate::fit::{Training, into_library};
use crate::looks::{Look, Looks};
use crate::parameters::{Layout, Parameters};
use crate::recipe::Recipe;
use crate::training::Trainer;
use crate::weights::{from_bytes, to_bytes};
use crate::{Error, Result};

/// What is particular to one kind of transport in training.
pub trait Lesson: Send {
    /// Rows of a batch.
    fn rows(&self) -> usize;
    /// Inputs of the recorded loss.
    fn inputs(&self) -> usize;
    /// Writes the inputs of a step, which come empty.
    fn fill(&mut self, step: u64, inputs: &mut [Vec<f32>]);
    /// How batches are drawn, where a device can do it without this lesson.
    fn recipe(&self) -> Option<Recipe> {
        None
    }
    /// Points at which a step evaluates the target, and the network.
    fn cost(&self) -> (u64, u64);
    /// What samples that training does not see say of these weights, always by the same journeys; nothing, where there are none.
    fn look(&mut self, _weights: &Parameters<f32>) -> Result<Option<Look>> {
        Ok(None)
    }
    /// Points at which a look evaluates the target, and the network.
    fn cost_of_look(&self) -> (u64, u64) {
        (0, 0)
    }
    /// Why the last inputs could not be written, if they could not.
    fn trouble(&mut self) -> Option<sterna::Error> {
        None
    }
    /// What is left if training diverges: plain swaps.
    fn failed(&self) -> sterna::Result<Fitted> {
        let (accelerator, record) = (Arc::new(Identity), Arc::new([]));
        Ok(Fitted { accelerator, path: None, record, report: FitReport::default() })
    }

    /// Whether there is a weight whose round-trip loss can be made small.
    fn can_fine_tune(&self) -> bool {
        false
    }
    /// Turns to the round-trip loss, from these weights: rows, inputs and costs are from now on its own.
    ///
    /// # Panics
    /// Where this is impossible.
    fn fine_tune(&mut self, _weights: Parameters<f32>) -> Result<Trainer<f32>> {
        unreachable!("asked of a lesson that cannot")
    }
    /// The accelerator of these weights, judged, and its file.
    fn graduate(&self, weights: &Parameters<f32>, report: &mut FitReport) -> sterna::Result<Fitted>;
}

/// A training under way: steps of the optimiser on batches of a lesson.
pub struct Course<L> {
    lesson: L,
    training: Training,
    trainer: Trainer<f32>,
    layout: Layout,
    buffers: Vec<Vec<f32>>,
    report: FitReport,
    notes: Notes,
    /// The weights of the best look so far.
    best: Option<Parameters<f32>>,
}

/// Where a course stands, beside the optimiser's own counters.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Notes {
    steps: u64,
    window: (f64, u64),
    losses: Vec<f64>,
    /// Whether the round-trip loss is trained on by now, and its losses.
    fine: bool,
    fine_losses: Vec<f64>,
    /// The step from which the round-trip loss went on, where later weights of the loss before it were surely worse.
    fine_from: Option<u64>,
    /// Points at which the target, and the network, were evaluated, and steps left out, before that.
    earlier_cost: (u64, u64),
    earlier_alarm: Option<String>,
    /// Why it came to nothing.
    failed: Option<String>,
    /// Looks at held-out samples, of the loss in training, and how many there were of any.
    looks: Looks,
    looked: u64,
    /// The number of steps after which the loss gave way to the round-trip loss, or that was left to its end.
    ended: Option<u64>,
    fine_ended: Option<u64>,
}

impl Notes {
    /// The mean loss since the last one that was noted is noted, too.
    fn close_window(&mut self) {
        let (sum, steps) = std::mem::take(&mut self.window);
        if steps > 0 {
            let losses = if self.fine { &mut self.fine_losses } else { &mut self.losses };
            losses.push(sum / steps as f64);
        }
    }
}

impl<L: Lesson> Course<L> {
    /// `report` is that of earlier rounds.
    pub fn new(
        lesson: L,
        training: Training,
        mut trainer: Trainer<f32>,
        layout: Layout,
        report: FitReport,
    ) -> Self {
        let training =
            Training { fine_tune: if lesson.can_fine_tune() { training.fine_tune } else { 0 }, ..training };
        let buffers = vec![Vec::new(); lesson.inputs()];
        trainer.draw_from(|| lesson.recipe());
        Self { lesson, training, trainer, layout, buffers, report, notes: Notes::default(), best: None }
    }

    /// The steps on the loss, and those on the round-trip loss that follow: as planned, or as many as there were.
    fn planned(&self) -> (u64, u64) {
        let Notes { ended, fine_ended, .. } = &self.notes;
        (ended.unwrap_or(self.training.steps), fine_ended.unwrap_or(self.training.fine_tune))
    }

    /// Steps of the loss in training that were made, and how many of it there are.
    fn stage(&self) -> (u64, u64) {
        let ((main, fine), steps) = (self.planned(), self.notes.steps);
        if self.notes.fine { (steps - main, fine) } else { (steps, main) }
    }

    /// The weights that held-out samples like best, where those are surely better than the present ones.
    fn chosen(&self) -> &Parameters<f32> {
        let better = self.best.as_ref().filter(|_| self.notes.looks.better_step().is_some());
        better.unwrap_or_else(|| self.trainer.averaged())
    }

    /// Looks at held-out samples where it is time to, and ends what only gets worse.
    fn look(&mut self) -> sterna::Result<()> {
        let (done, planned) = self.stage();
        if self.notes.failed.is_some() || done == 0 || Looks::next(done - 1, planned) != Some(done) {
            return Ok(());
        }
        let weights = self.trainer.averaged();
        let Some(look) = self.lesson.look(weights).map_err(into_library)? else { return Ok(()) };
        self.notes.looked += 1;
        if self.notes.looks.note(self.notes.steps, look) {
            self.best = Some(weights.clone());
        }
        if self.notes.looks.is_over() {
            let ended = if self.notes.fine { &mut self.notes.fine_ended } else { &mut self.notes.ended };
            *ended = Some(done);
            self.notes.close_window();
        }
        Ok(())
    }

    /// Turns to the round-trip loss.
    fn begin_fine_tuning(&mut self, weights: Parameters<f32>) -> sterna::Result<()> {
        self.notes.earlier_cost = self.cost();
        self.notes.earlier_alarm = self.trainer.alarm();
        self.notes.fine = true;
        self.notes.fine_from = self.notes.looks.better_step();
        (self.notes.looks, self.notes.looked, self.best) = (Looks::default(), 0, None);
        self.trainer = self.lesson.fine_tune(weights).map_err(into_library)?;
        self.buffers.resize(self.lesson.inputs(), Vec::new());
        let first_step = self.notes.steps;
        self.trainer.draw_from(|| self.lesson.recipe().map(|recipe| Recipe { first_step, ..recipe }));
        Ok(())
    }

    /// Points at which the target, and the network, were evaluated so far.
    fn cost(&self) -> (u64, u64) {
        let (target, network) = self.lesson.cost();
        let (target_of_look, network_of_look) = self.lesson.cost_of_look();
        let Notes { looked, earlier_cost: earlier, .. } = &self.notes;
        let (steps, _) = self.stage();
        (
            earlier.0 + steps * target + looked * target_of_look,
            earlier.1 + steps * network + looked * network_of_look,
        )
    }

    /// One step, or as many of `most` as a device can do by itself.
    fn step(&mut self, most: u64) -> sterna::Result<()> {
        if !self.notes.fine && self.notes.steps == self.planned().0 {
            self.begin_fine_tuning(self.chosen().clone())?;
        }
        if self.trainer.draws() {
            let (done, planned) = self.stage();
            let next = Looks::next(done, planned).unwrap_or(planned);
            let made = self.trainer.steps(most.min(next - done));
            return self.note(made);
        }
        self.buffers.iter_mut().for_each(Vec::clear);
        self.lesson.fill(self.notes.steps, &mut self.buffers);
        if let Some(error) = self.lesson.trouble() {
            return Err(error);
        }
        let inputs: Vec<&[f32]> = self.buffers.iter().map(|b| &b[..]).collect();
        let made = self.trainer.step(self.lesson.rows(), &inputs).map(|made| vec![made.loss]);
        self.note(made)
    }

    /// Notes the losses of steps that were made.
    fn note(&mut self, made: Result<Vec<f64>>) -> sterna::Result<()> {
        let made = match made {
            Ok(made) => made,
            Err(error @ Error::Diverged { .. }) => {
                self.notes.failed = Some(error.to_string());
                return Ok(());
            }
            Err(error) => return Err(into_library(error)),
        };
        let (main, fine_steps) = self.planned();
        let (before, planned) = if self.notes.fine { (main, fine_steps) } else { (0, main) };
        for loss in made {
            let notes = &mut self.notes;
            notes.steps += 1;
            if loss.is_finite() {
                notes.window = (notes.window.0 + loss, notes.window.1 + 1);
            }
            let done = notes.steps - before;
            if done.is_multiple_of(planned.div_ceil(20)) || done == planned {
                notes.close_window();
            }
        }
        Ok(())
    }
}

impl<L: Lesson> Fitting for Course<L> {
    fn progress(&self) -> (u64, u64) {
        let (steps, (main, fine)) = (self.notes.steps, self.planned());
        // A failed course is at its end.
        (steps, if self.notes.failed.is_some() { steps } else { main + fine })
    }

    /// The mean over the last twentieth of the steps, or over those that there are.
    fn loss(&self) -> Option<f64> {
        let Notes { window, losses, fine, fine_losses, .. } = &self.notes;
        let last = if *fine { fine_losses } else { losses }.last().copied();
        last.or((window.1 > 0).then(|| window.0 / window.1 as f64))
    }

    fn advance(&mut self, most: u64) -> sterna::Result<()> {
        let done = self.notes.steps;
        let end = |course: &Self| course.progress().1.min(done.saturating_add(most));
        while self.notes.failed.is_none() && self.notes.steps < end(self) {
            self.step(end(self) - self.notes.steps)?;
            self.look()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> sterna::Result<Fitted> {
        let (target, network) = self.cost();
        self.report.steps += self.notes.steps;
        self.report.target_evaluations += target;
        self.report.network_evaluations += network;
        self.report.losses = self.notes.losses.clone();
        self.report.fine_tuning_losses = self.notes.fine_losses.clone();
        for message in [self.notes.earlier_alarm.take(), self.trainer.alarm()].into_iter().flatten() {
            self.report.alarms.push(("training-skipped".into(), message));
        }
        if let Some(reason) = &self.notes.failed {
            let message = format!("training failed and plain swaps are used: {reason}");
            self.report.alarms.push(("training-diverged".into(), message));
            self.report.pairs.clear();
            return Ok(Fitted { report: self.report, ..self.lesson.failed()? });
        }
        self.report.kept_step = self.notes.looks.better_step().or(self.notes.fine_from);
        let mut report = std::mem::take(&mut self.report);
        let mut fitted = self.lesson.graduate(self.chosen(), &mut report)?;
        fitted.report = report;
        Ok(fitted)
    }

    fn save(&self) -> sterna::Result<Vec<u8>> {
        let state = self.trainer.state();
        let now = to_bytes(&self.notes, &self.layout, self.trainer.parameters(), Some(&state))
            .map_err(into_library)?;
        let best = match &self.best {
            Some(best) => to_bytes(&(), &self.layout, best, None).map_err(into_library)?,
            None => Vec::new(),
        };
        Ok([&(now.len() as u64).to_le_bytes()[..], &now, &best].concat())
    }

    fn restore(&mut self, saved: &[u8]) -> sterna::Result<()> {
        let cut = || sterna::BadState::OfFit("its training state breaks off");
        let (length, rest) = saved.split_first_chunk::<8>().ok_or_else(cut)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok();
        let (now, best) = length.and_then(|n| rest.split_at_checked(n)).ok_or_else(cut)?;
        let stored = from_bytes::<Notes>(now.to_vec(), "training state").map_err(into_library)?;
        let state = stored.state(&self.layout).map_err(into_library)?;
        let state = state.ok_or(sterna::BadState::OfFit("it holds no state of an optimiser"))?;
        if stored.description.fine && !self.notes.fine {
            // A device's batches of the round-trip loss follow those of the loss before it.
            self.notes.steps = stored.description.ended.unwrap_or(self.training.steps);
            self.begin_fine_tuning(stored.parameters(&self.layout).map_err(into_library)?)?;
        }
        self.trainer.restore(&state).map_err(into_library)?;
        self.notes = stored.description;
        let read = |best: &[u8]| from_bytes::<()>(best.to_vec(), "best weights")?.parameters(&self.layout);
        self.best = (!best.is_empty()).then(|| read(best)).transpose().map_err(into_library)?;
        Ok(())
    }
}
