//! A training under way: batches of a lesson, steps of the optimiser, and what is noted of them (App. E.2).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sterna::acceleration::{FitReport, Fitted, Fitting};
use sterna::accelerators::Identity;

use crate::fit::{Training, into_library};
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
    /// Points at which the target, and the network, were evaluated, and steps left out, before that.
    earlier_cost: (u64, u64),
    earlier_alarm: Option<String>,
    /// Why it came to nothing.
    failed: Option<String>,
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
        Self { lesson, training, trainer, layout, buffers, report, notes: Notes::default() }
    }

    /// Turns to the round-trip loss.
    fn begin_fine_tuning(&mut self, weights: Parameters<f32>) -> sterna::Result<()> {
        self.notes.earlier_cost = self.cost();
        self.notes.earlier_alarm = self.trainer.alarm();
        self.notes.fine = true;
        self.trainer = self.lesson.fine_tune(weights).map_err(into_library)?;
        self.buffers.resize(self.lesson.inputs(), Vec::new());
        let first_step = self.notes.steps;
        self.trainer.draw_from(|| self.lesson.recipe().map(|recipe| Recipe { first_step, ..recipe }));
        Ok(())
    }

    /// Points at which the target, and the network, were evaluated so far.
    fn cost(&self) -> (u64, u64) {
        let (target, network) = self.lesson.cost();
        let Notes { fine, steps, earlier_cost: earlier, .. } = &self.notes;
        let steps = if *fine { steps - self.training.steps } else { *steps };
        (earlier.0 + steps * target, earlier.1 + steps * network)
    }

    /// One step, or as many of `most` as a device can do by itself.
    fn step(&mut self, most: u64) -> sterna::Result<()> {
        if self.notes.steps == self.training.steps && !self.notes.fine {
            self.begin_fine_tuning(self.trainer.averaged().clone())?;
        }
        if self.trainer.draws() {
            let end = self.training.steps + if self.notes.fine { self.training.fine_tune } else { 0 };
            let made = self.trainer.steps(most.min(end - self.notes.steps));
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
        let Notes { steps, window, losses, fine, fine_losses, .. } = &mut self.notes;
        let (losses, before, planned) = match fine {
            false => (losses, 0, self.training.steps),
            true => (fine_losses, self.training.steps, self.training.fine_tune),
        };
        for loss in made {
            *steps += 1;
            if loss.is_finite() {
                *window = (window.0 + loss, window.1 + 1);
            }
            let done = *steps - before;
            let ends = done.is_multiple_of(planned.div_ceil(20)) || done == planned;
            if ends && window.1 > 0 {
                losses.push(window.0 / window.1 as f64);
                *window = (0.0, 0);
            }
        }
        Ok(())
    }
}

impl<L: Lesson> Fitting for Course<L> {
    fn progress(&self) -> (u64, u64) {
        let steps = self.notes.steps;
        // A failed course is at its end.
        let all = self.training.steps + self.training.fine_tune;
        (steps, if self.notes.failed.is_some() { steps } else { all })
    }

    /// The mean over the last twentieth of the steps, or over those that there are.
    fn loss(&self) -> Option<f64> {
        let Notes { window, losses, fine, fine_losses, .. } = &self.notes;
        let last = if *fine { fine_losses } else { losses }.last().copied();
        last.or((window.1 > 0).then(|| window.0 / window.1 as f64))
    }

    fn advance(&mut self, most: u64) -> sterna::Result<()> {
        let (done, total) = self.progress();
        let end = done + most.min(total - done);
        while self.notes.failed.is_none() && self.notes.steps < end {
            self.step(end - self.notes.steps)?;
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
        let mut fitted = self.lesson.graduate(self.trainer.averaged(), &mut self.report)?;
        fitted.report = self.report;
        Ok(fitted)
    }

    fn save(&self) -> sterna::Result<Vec<u8>> {
        let state = self.trainer.state();
        to_bytes(&self.notes, &self.layout, self.trainer.parameters(), Some(&state)).map_err(into_library)
    }

    fn restore(&mut self, saved: &[u8]) -> sterna::Result<()> {
        let stored = from_bytes::<Notes>(saved.to_vec(), "training state").map_err(into_library)?;
        let state = stored.state(&self.layout).map_err(into_library)?;
        let state = state.ok_or(sterna::BadState::OfFit("it holds no state of an optimiser"))?;
        if stored.description.fine && !self.notes.fine {
            self.begin_fine_tuning(stored.parameters(&self.layout).map_err(into_library)?)?;
        }
        self.trainer.restore(&state).map_err(into_library)?;
        self.notes = stored.description;
        Ok(())
    }
}
