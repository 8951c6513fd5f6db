//! A run as bytes, and back: it goes on as if it had never stopped, on any number of threads.
//!
//! What a run is made of (path, settings, acceleration) comes from its owner again; the bytes hold what the
//! run has made of it: its progress and its shards as they are, explorers and fits as they save themselves.

use super::by_engine::ByEngine;
use super::first_block::{carries, watched};
use super::fits::{AsTuned, Fits, PlainStage};
use super::ladder::{Barrier, Ladder, Shard};
use super::progress::{Asked, Progress};
use super::{Run, Settings, Stage, reference};
use crate::acceleration::{Acceleration, Collected, FitReport, Fitted};
use crate::accelerators::Identity;
use crate::error::BadState;
use crate::exchange::Alone;
use crate::iteration::Sampler;
use crate::path::AnnealingPath;
use crate::paths::{Geometric, Knot, Spline};
use crate::records::Ladders;
use crate::schedule::Schedule;
use crate::streams::Streams;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is kept of a run, which owns some parts or borrows them.
#[derive(Serialize, Deserialize)]
struct State<Shards, Samples> {
    settings: Settings,
    /// The explorer of the settings.
    first_explorer: Vec<u8>,
    progress: Progress,
    schedule: Schedule,
    explorer: Vec<u8>,
    barrier: Barrier,
    shards: Shards,
    fits: SavedFits<Samples>,
    /// Where the reference is fitted.
    reference: Option<reference::State>,
    /// Where the path goes over knots that tuning has moved.
    knots: Vec<Knot>,
    engine_replaced: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct SavedFits<Samples> {
    done: usize,
    collect: u64,
    plain: Option<PlainStage>,
    /// Samples that the fit under way sees, and how far it is.
    under_way: Option<(Samples, Vec<u8>)>,
    /// Record and report of the last fit.
    fitted: Option<(Vec<u8>, FitReport)>,
    learned: Learned,
    before: Option<AsTuned>,
}

/// Record of the last fit that brought a path.
#[derive(Serialize, Deserialize)]
enum Learned {
    /// None did.
    Nothing,
    /// It is that of the last fit.
    Last,
    /// It was an earlier one.
    Earlier(Vec<u8>),
}

impl Run {
    /// All that is needed to go on later. Draws that were taken out are not in it.
    pub fn save(&self) -> Result<Vec<u8>> {
        let sampler = &self.ladder.sampler;
        let asked = self.progress.asked.settled(&*sampler.path);
        let state = State {
            settings: self.settings.clone(),
            first_explorer: self.settings.explorer.save(),
            progress: Progress { asked, ..self.progress.clone() },
            schedule: sampler.schedule.clone(),
            explorer: sampler.explorer.save(),
            barrier: self.ladder.barrier.clone(),
            shards: &self.ladder.shards,
            fits: self.fits.save()?,
            reference: self.reference.as_ref().map(reference::Fitted::saved),
            knots: sampler.path.as_spline().map_or(Vec::new(), |path| path.knots().to_vec()),
            engine_replaced: self.by_engine.replaced.clone(),
        };
        postcard::to_allocvec(&state).map_err(|e| BadState::Unreadable(e.to_string()).into())
    }

    /// Goes on from what [`save`](Self::save) gave, with the same path, settings and acceleration. Only `iterations` may differ,
    /// as long as it is not less than what has been sampled, and `until`: a run whose goals are raised goes on as if they
    /// had been so from the start; one whose goals are lowered keeps what it has, and ends at its next look.
    ///
    /// ```
    /// use sterna::{acceleration::Acceleration, paths::Geometric, run::{Run, Settings}, targets::Normal};
    /// let path = || std::sync::Arc::new(Geometric::from_standard_normal(Normal::isotropic(2, 4.0)));
    /// let settings = Settings { chains: 3, rounds: 2, iterations: 500, ..Settings::default() };
    /// let mut run = Run::new(path(), settings.clone()).unwrap();
    /// run.advance(100).unwrap();
    /// let mut again = Run::restore(path(), settings, Acceleration::None, &run.save().unwrap()).unwrap();
    /// run.complete().unwrap();
    /// again.complete().unwrap();
    /// assert_eq!(run.results().log_z, again.results().log_z);
    /// ```
    pub fn restore(
        path: Arc<dyn AnnealingPath>,
        settings: Settings,
        acceleration: Acceleration,
        saved: &[u8],
    ) -> Result<Self> {
        Self::restored(path, None, settings, acceleration, saved)
    }

    /// The same for a run [`from_anchor`](Self::from_anchor).
    pub fn restore_from_anchor(
        ground: Arc<Geometric>,
        settings: Settings,
        acceleration: Acceleration,
        saved: &[u8],
    ) -> Result<Self> {
        Self::restored(ground.clone(), Some(reference::Fitted::new(ground)?), settings, acceleration, saved)
    }

    fn restored(
        given: Arc<dyn AnnealingPath>,
        mut reference: Option<reference::Fitted>,
        settings: Settings,
        acceleration: Acceleration,
        saved: &[u8],
    ) -> Result<Self> {
        settings.check()?;
        let (state, rest): (State<Vec<Shard>, Collected>, _) =
            postcard::take_from_bytes(saved).map_err(|e| BadState::Unreadable(e.to_string()))?;
        if !rest.is_empty() {
            return Err(BadState::TooLong.into());
        }
        let dim = given.dim();
        state.check(&settings, dim)?;
        reference = match (reference, state.reference) {
            (Some(reference), Some(state)) => Some(reference.with(state)),
            (None, None) => None,
            _ => return Err(BadState::Contradiction.into()),
        };
        let path = match &reference {
            Some(reference) => reference.path(&settings)?,
            None => over(state.knots, &given)?,
        };
        let acceleration = acceleration.on(&path);
        let fits = Fits::restore(state.fits, &acceleration)?;
        let learned = fits.learned_path(&acceleration)?;
        if learned.as_ref().is_some_and(|learned| learned.dim() != dim) {
            return Err(BadState::Contradiction.into());
        }
        let sampler = Sampler {
            explorer: settings.restore_explorer(&state.explorer, state.schedule.chains(), dim)?,
            schedule: state.schedule,
            accelerator: match &fits.fitted {
                Some(fitted) => fitted.accelerator.clone(),
                None => acceleration.at_start(),
            },
            path: learned.unwrap_or(path),
            streams: Streams::new(settings.seed),
        };
        let mut progress = state.progress;
        progress.asked.resume(&*sampler.path);
        let shards = Ladder::share_out(state.shards, settings.ensembles, &*sampler.path, &Alone);
        let mut run = Self {
            ladder: Ladder { sampler, barrier: state.barrier, shards, exchange: Arc::new(Alone) },
            unsaid: Asked::default(),
            by_engine: ByEngine { replaced: state.engine_replaced, ..ByEngine::default() },
            last_look: None,
            slowest: None,
            first_path: given,
            progress,
            fits,
            reference,
            settings,
            acceleration,
        };
        run.take_turns();
        run.go_on()?;
        Ok(run)
    }

    /// Makes room for what is left to be sampled, which may be more than the run was once to have.
    fn go_on(&mut self) -> Result<()> {
        let done = self.records().next().map(|record| record.counts.iterations);
        let wanted = self.settings.iterations;
        if let Some(done) = done.filter(|&done| done > wanted) {
            let value = format!("{wanted}, with {done} sampled already,");
            return Err(Error::setting(
                "Settings.iterations",
                value,
                "a run can be made longer, not shorter",
            ));
        }
        let left = wanted - done.unwrap_or(0);
        self.ladder.shards.iter_mut().filter_map(|s| s.sampling.as_mut()).for_each(|s| s.reserve(left));
        if self.progress.stage == Stage::Finished {
            self.progress.stage_iterations = done.unwrap_or(0);
            self.progress.stage = Stage::Sampling;
            self.progress.stopped_by = None;
            self.change()?;
        }
        Ok(())
    }
}

impl Fits {
    fn save(&self) -> Result<SavedFits<&Collected>> {
        let under_way = match &self.under_way {
            Some((collected, fitting)) => Some((&**collected, fitting.save()?)),
            None => None,
        };
        let is_last = |record: &Arc<[u8]>| self.fitted.as_ref().is_some_and(|f| f.record == *record);
        Ok(SavedFits {
            done: self.done,
            collect: self.collect,
            plain: self.plain.clone(),
            under_way,
            fitted: self.fitted.as_ref().map(|f| (f.record.to_vec(), f.report.clone())),
            learned: match &self.path_record {
                None => Learned::Nothing,
                Some(record) if is_last(record) => Learned::Last,
                Some(record) => Learned::Earlier(record.to_vec()),
            },
            before: self.before.clone(),
        })
    }

    fn restore(saved: SavedFits<Collected>, acceleration: &Acceleration) -> Result<Self> {
        let fitted = match (acceleration, saved.fitted) {
            (Acceleration::Fitted(_), Some((record, report))) => {
                Some(Fitted { report, ..rebuild(acceleration, record)? })
            }
            (_, None) => None,
            _ => return Err(BadState::NothingToFit.into()),
        };
        let path_record = match (saved.learned, &fitted) {
            (Learned::Earlier(record), _) => Some(record.into()),
            (Learned::Last, Some(fitted)) => Some(fitted.record.clone()),
            (Learned::Nothing, _) => None,
            (Learned::Last, None) => return Err(BadState::Contradiction.into()),
        };
        let under_way = match (acceleration, saved.under_way) {
            (Acceleration::Fitted(fit), Some((collected, saved))) => {
                let collected = Arc::new(collected);
                let mut fitting = fit.begin(collected.clone(), fitted.as_ref())?;
                fitting.restore(&saved)?;
                Some((collected, fitting))
            }
            (_, None) => None,
            _ => return Err(BadState::NothingToFit.into()),
        };
        Ok(Self {
            done: saved.done,
            collect: saved.collect,
            under_way,
            fitted,
            path_record,
            plain: saved.plain,
            before: saved.before,
        })
    }

    /// The path of the last fit that brought one.
    fn learned_path(&self, acceleration: &Acceleration) -> Result<Option<Arc<dyn AnnealingPath>>> {
        Ok(match (&self.path_record, &self.fitted) {
            (Some(record), Some(fitted)) if *record == fitted.record => fitted.path.clone(),
            (Some(record), _) => rebuild(acceleration, record.to_vec())?.path,
            (None, _) => None,
        })
    }
}

/// The path over such knots; as it was given, where it goes over none.
fn over(knots: Vec<Knot>, given: &Arc<dyn AnnealingPath>) -> Result<Arc<dyn AnnealingPath>> {
    match given.as_spline() {
        Some(path) => Ok(Arc::new(Spline::new(path.ground().clone(), knots)?)),
        None if knots.is_empty() => Ok(given.clone()),
        None => Err(BadState::Contradiction.into()),
    }
}

/// What a finished fit made. One that failed left no record: swaps are plain.
pub(super) fn rebuild(acceleration: &Acceleration, record: Vec<u8>) -> Result<Fitted> {
    match acceleration {
        Acceleration::Fitted(fit) if !record.is_empty() => fit.rebuild(&record),
        _ => Ok(Fitted {
            accelerator: Arc::new(Identity),
            path: None,
            record: record.into(),
            report: FitReport::default(),
        }),
    }
}

/// Bytes from a file may claim anything: sizes must agree with each other, and the stage with what there is.
impl State<Vec<Shard>, Collected> {
    fn check(&self, settings: &Settings, dim: usize) -> Result<()> {
        let theirs = Settings {
            iterations: settings.iterations,
            until: settings.until.clone(),
            explorer: settings.explorer.clone(),
            ..self.settings.clone()
        };
        if theirs != *settings || self.first_explorer != settings.explorer.save() {
            return Err(BadState::OtherSettings.into());
        }
        let ladder = match settings.fit {
            // Chains may have followed a transport; λ(β) was measured before.
            None => {
                let as_set = |schedule: &Schedule| schedule.chains() == settings.chains;
                self.fits.done > 0 || (as_set(&self.schedule) && as_set(&self.barrier.schedule))
            }
            Some(_) => self.reference.as_ref().is_some_and(|reference| reference.is_sound(dim)),
        };
        let sound = ladder
            && self.barrier.local.len() == self.barrier.schedule.chains()
            && self.progress.is_sound()
            && self.shards_are_sound(settings, dim)
            && self.shards.iter().all(|shard| shard.ensemble.legs().target() == self.schedule.target())
            && self.fits_are_sound(settings, dim)
            && self.stage_is_sound(settings);
        if sound { Ok(()) } else { Err(BadState::Contradiction.into()) }
    }

    fn shards_are_sound(&self, settings: &Settings, dim: usize) -> bool {
        let samples = matches!(self.progress.stage, Stage::Sampling | Stage::Finished);
        are_sound(&self.shards, settings.ensembles, (self.schedule.chains(), dim), samples)
    }

    fn fits_are_sound(&self, settings: &Settings, dim: usize) -> bool {
        let (fits, chains, stage) = (&self.fits, self.schedule.chains(), self.progress.stage);
        let plain = fits.plain.as_ref().is_none_or(|plain| {
            // A learned path may have another number of chains than a ladder from a fitted reference had, and so may chains that
            // have followed a transport.
            let chains = if settings.fit.is_some() { plain.schedule.chains() } else { settings.chains };
            let finished = fits.done > 0 || stage == Stage::Fitting;
            let wanted = if finished { (chains, chains - 1) } else { (0, 0) };
            let trips = self.shards.iter().map(|shard| shard.ensemble.round_trips());
            let counts = plain.tuning_evaluations <= self.progress.asked.before().target
                && plain.round_trips <= trips.sum();
            (finished || counts)
                && plain.schedule.chains() == chains
                && settings.restore_explorer(&plain.explorer, chains, dim).is_ok()
                && (plain.local_barriers.len(), plain.rejection_rates.len()) == wanted
        });
        let before = fits.before.as_ref().is_none_or(|before| {
            let chains = fits.plain.as_ref().map_or(0, |plain| plain.schedule.chains());
            let are = |shards: &[Shard]| are_sound(shards, settings.ensembles, (chains, dim), false);
            before.is_sound(self.progress.iteration, are)
        });
        plain
            && before
            && fits.done <= settings.fits
            && fits.under_way.is_some() == (stage == Stage::Fitting)
            && fits.under_way.as_ref().is_none_or(|(collected, _)| collected.is_sound(chains, dim))
    }

    fn stage_is_sound(&self, settings: &Settings) -> bool {
        let (done, fits) = (self.progress.stage_iterations, self.fits.done);
        match self.progress.stage {
            Stage::Tuning(round) | Stage::Retuning(round) => {
                round < settings.rounds && done < settings.round(round).0
            }
            Stage::Climbing => done == 0 && settings.fit.is_some(),
            Stage::Collecting => {
                let most = settings.collect.checked_shl(fits as u32).unwrap_or(0);
                fits < settings.fits && done < self.fits.collect && self.fits.collect <= most
            }
            Stage::Fitting => fits < settings.fits,
            Stage::BurnIn => {
                let choice = self.fits.fitted.as_ref().and_then(|(_, report)| report.choice.as_ref());
                let watched = choice.filter(|choice| carries(choice)).map(|choice| watched(settings, choice));
                done < watched.map_or(settings.burn_in, |parts| parts.iter().sum())
            }
            Stage::Sampling => {
                self.shards.iter().all(|s| s.sampling.as_ref().is_some_and(|s| s.counts.iterations == done))
            }
            Stage::Finished => true,
        }
    }
}

/// Whether these are all ladders, of so many chains in so many dimensions, with records of sampling or without.
fn are_sound(shards: &[Shard], ensembles: usize, (chains, dim): (usize, usize), samples: bool) -> bool {
    let (mut copies, mut sound) = (0, true);
    for shard in shards {
        let own = shard.ensemble.copies();
        sound &= own > 0
            && shard.ensemble.is_sound(copies, chains, dim)
            && shard.tuning.is_sound(own, chains, dim)
            && shard.turns.is_sound(own, chains, dim)
            && shard.collecting.is_sound(own, chains, dim)
            && shard.warmup.is_sound(own, chains, dim)
            && shard.sampling.is_some() == samples
            && shard
                .sampling
                .as_ref()
                .is_none_or(|s| s.is_sound(own, chains, dim) && s.follows(&shard.ensemble));
        copies += own;
    }
    sound && copies == ensembles
}
