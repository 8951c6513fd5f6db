//! A run as bytes, and back: it goes on as if it had never stopped, on any number of threads.
//!
//! What a run is made of (path, settings, acceleration) comes from its owner again; the bytes hold what the
//! run has made of it. To keep something more, give [`Shard`] or one of its records another field.

use super::{PlainStage, Run, Settings, Shard, Stage, StepSizes, explorer, parts};
use crate::acceleration::{Acceleration, Collected, FitReport, Fitted};
use crate::accelerators::Identity;
use crate::iteration::{Sampler, Workspace};
use crate::path::AnnealingPath;
use crate::records::{Ladders, MOST_COUNTED};
use crate::schedule::Schedule;
use crate::streams::Streams;
use crate::trace::RoundTrace;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is kept of a run, which owns some parts or borrows them.
#[derive(Serialize, Deserialize)]
struct State<Shards, Samples> {
    settings: Settings,
    stage: Stage,
    stage_iterations: u64,
    iteration: u64,
    schedule: Schedule,
    sizes: StepSizes,
    local_barriers: Vec<f64>,
    barrier_schedule: Schedule,
    evaluations: u64,
    evaluations_before_sampling: u64,
    network_evaluations: u64,
    network_evaluations_before_sampling: u64,
    rounds: Vec<RoundTrace>,
    plain: Option<PlainStage>,
    fits: usize,
    /// Samples that the fit under way sees, and how far it is.
    fitting: Option<(Samples, Vec<u8>)>,
    /// Record and report of the last fit.
    fitted: Option<(Vec<u8>, FitReport)>,
    /// Record of the last fit that brought a path, where it was an earlier one.
    path_record: Option<Vec<u8>>,
    engine_replaced: Option<String>,
    shards: Shards,
}

impl Run {
    /// All that is needed to go on later. Draws that were taken out are not in it.
    pub fn save(&self) -> Result<Vec<u8>> {
        let fitting = match (&self.fitting, &self.collected) {
            (Some(fitting), Some(collected)) => Some((&**collected, fitting.save()?)),
            _ => None,
        };
        let is_last = |record: &Arc<[u8]>| self.fitted.as_ref().is_some_and(|f| f.record == *record);
        let state = State {
            settings: self.settings.clone(),
            stage: self.stage,
            stage_iterations: self.stage_iterations,
            iteration: self.iteration,
            schedule: self.sampler.schedule.clone(),
            sizes: self.sizes.clone(),
            local_barriers: self.local_barriers.clone(),
            barrier_schedule: self.barrier_schedule.clone(),
            evaluations: self.evaluations(),
            evaluations_before_sampling: self.evaluations_before_sampling,
            network_evaluations: self.network_evaluations(),
            network_evaluations_before_sampling: self.network_evaluations_before_sampling,
            rounds: self.rounds.clone(),
            plain: self.plain.clone(),
            fits: self.fits,
            fitting,
            fitted: self.fitted.as_ref().map(|f| (f.record.to_vec(), f.report.clone())),
            path_record: self.path_record.as_ref().filter(|r| !is_last(r)).map(|r| r.to_vec()),
            engine_replaced: self.engine_replaced.clone(),
            shards: &self.shards,
        };
        postcard::to_allocvec(&state).map_err(|e| Error::Saved(e.to_string()))
    }

    /// Goes on from what [`save`](Self::save) gave, with the same path, settings and acceleration; only
    /// `iterations` may differ, as long as it is not less than what has been sampled.
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
        settings.check()?;
        let wrong = |what: &str| Error::Saved(what.into());
        let (state, rest): (State<Vec<Shard>, Collected>, _) =
            postcard::take_from_bytes(saved).map_err(|e| Error::Saved(format!("it does not read ({e})")))?;
        if !rest.is_empty() {
            return Err(wrong("it is longer than it should be"));
        }
        if (Settings { iterations: settings.iterations, ..state.settings.clone() }) != settings {
            return Err(wrong("it belongs to a run with other settings"));
        }
        check(&state, &settings, path.dim())?;

        let fitted = match (&acceleration, state.fitted) {
            (Acceleration::Fitted(_), Some((record, report))) => {
                Some(Fitted { report, ..rebuild(&acceleration, record)? })
            }
            (_, None) => None,
            _ => return Err(wrong("it holds a fitted accelerator, but none is to be fitted")),
        };
        let path_record = match (state.path_record, &fitted) {
            (Some(record), _) => Some(record.into()),
            (None, Some(fitted)) => fitted.path.as_ref().map(|_| fitted.record.clone()),
            (None, None) => None,
        };
        let learned = match (&path_record, &fitted) {
            (Some(record), Some(fitted)) if *record == fitted.record => fitted.path.clone(),
            (Some(record), _) => rebuild(&acceleration, record.to_vec())?.path,
            (None, _) => None,
        };
        if learned.as_ref().is_some_and(|learned| learned.dim() != path.dim()) {
            return Err(wrong("its learned path has another dimension"));
        }
        let collected = state.fitting.as_ref().map(|(samples, _)| Arc::new(samples.clone()));
        let fitting = match (&acceleration, &collected, state.fitting) {
            (Acceleration::Fitted(fit), Some(collected), Some((_, saved))) => {
                let mut fitting = fit.begin(collected.clone(), fitted.as_ref())?;
                fitting.restore(&saved)?;
                Some(fitting)
            }
            (_, _, None) => None,
            _ => return Err(wrong("it is in the middle of a fit, but nothing is to be fitted")),
        };
        let first_path = path.clone();
        let path = learned.unwrap_or(path);
        let sampler = Sampler {
            schedule: state.schedule,
            explorer: explorer(&settings, &state.sizes, &*path),
            path,
            accelerator: fitted.as_ref().map_or_else(|| acceleration.at_start(), |f| f.accelerator.clone()),
            streams: Streams::new(settings.seed),
        };
        let mut run = Self {
            shards: share_out(state.shards, settings.ensembles),
            local_barriers: state.local_barriers,
            barrier_schedule: state.barrier_schedule,
            // The path may have counted before, and making the accelerator again may have asked it.
            evaluations_elsewhere: state.evaluations.wrapping_sub(sampler.path.evaluations()),
            evaluations_before_sampling: state.evaluations_before_sampling,
            network_evaluations_on_earlier_paths: state
                .network_evaluations
                .wrapping_sub(sampler.path.network_evaluations()),
            network_evaluations_before_sampling: state.network_evaluations_before_sampling,
            rounds: state.rounds,
            plain: state.plain,
            engine_maker: None,
            engine: None,
            engine_replaced: state.engine_replaced,
            stage: state.stage,
            stage_iterations: state.stage_iterations,
            fits: state.fits,
            collected,
            fitting,
            fitted,
            path_record,
            iteration: state.iteration,
            settings,
            first_path,
            acceleration,
            sampler,
            sizes: state.sizes,
        };
        let done = run.records().next().map(|record| record.counts.iterations);
        if let Some(done) = done.filter(|&done| done > run.settings.iterations) {
            let value = format!("{}, with {done} sampled already,", run.settings.iterations);
            return Err(Error::Setting {
                field: "run.iterations",
                value,
                cure: "a run can be made longer, not shorter",
            });
        }
        let left = run.settings.iterations - done.unwrap_or(0);
        run.shards.iter_mut().filter_map(|s| s.sampling.as_mut()).for_each(|s| s.reserve(left));
        if run.stage == Stage::Finished {
            run.stage_iterations = done.unwrap_or(0);
            run.stage = Stage::Sampling;
            run.change()?;
        }
        Ok(run)
    }
}

/// What a finished fit made. One that failed left no record: swaps are plain.
fn rebuild(acceleration: &Acceleration, record: Vec<u8>) -> Result<Fitted> {
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

/// Whether sizes agree with each other and the stage with what there is: a file may claim anything.
fn check(state: &State<Vec<Shard>, Collected>, settings: &Settings, dim: usize) -> Result<()> {
    let chains = settings.chains;
    let sizes = &state.sizes;
    let ladder = sizes.step_size.len() == chains
        && sizes.scale.rows() == chains
        && sizes.scale.dim() == dim
        && state.schedule.chains() == chains
        && state.barrier_schedule.chains() == chains
        && state.local_barriers.len() == chains;
    let mut copies = 0;
    let mut records = true;
    let samples = matches!(state.stage, Stage::Sampling | Stage::Finished);
    for shard in &state.shards {
        let own = shard.ensemble.copies();
        records &= own > 0
            && shard.ensemble.is_sound(copies, chains, dim)
            && shard.tuning.is_sound(own, chains, dim)
            && shard.collecting.is_sound(own, chains, dim)
            && shard.sampling.is_some() == samples
            && shard
                .sampling
                .as_ref()
                .is_none_or(|s| s.is_sound(own, chains, dim) && s.follows(&shard.ensemble));
        copies += own;
    }
    let fit = state.fitting.as_ref().is_none_or(|(collected, _)| collected.is_sound(chains, dim));
    let counts = state.iteration < MOST_COUNTED
        && state.stage_iterations < MOST_COUNTED
        && state.evaluations < MOST_COUNTED
        && state.evaluations_before_sampling <= state.evaluations;
    let plain = state.plain.as_ref().is_none_or(|plain| {
        let finished = state.fits > 0 || state.stage == Stage::Fitting;
        let wanted = if finished { (chains, chains - 1) } else { (0, 0) };
        plain.schedule.chains() == chains
            && plain.sizes.step_size.len() == chains
            && (plain.sizes.scale.rows(), plain.sizes.scale.dim()) == (chains, dim)
            && (plain.local_barriers.len(), plain.rejection_rates.len()) == wanted
    });
    let done = state.stage_iterations;
    let stage = match state.stage {
        Stage::Tuning(round) | Stage::Retuning(round) => {
            round < settings.rounds && done < settings.round_iterations
        }
        Stage::Collecting => state.fits < settings.fits && done < settings.collect << state.fits,
        Stage::Fitting => state.fits < settings.fits,
        Stage::BurnIn => done < settings.burn_in,
        Stage::Sampling => {
            state.shards.iter().all(|s| s.sampling.as_ref().is_some_and(|s| s.counts.iterations == done))
        }
        Stage::Finished => true,
    };
    let fits = state.fits <= settings.fits && state.fitting.is_some() == (state.stage == Stage::Fitting);
    if ladder && counts && records && copies == settings.ensembles && fit && plain && stage && fits {
        Ok(())
    } else {
        Err(Error::Saved("its parts contradict each other".into()))
    }
}

/// The same ladders, cut for the threads that there are now.
fn share_out(shards: Vec<Shard>, ensembles: usize) -> Vec<Shard> {
    let mut shards = shards.into_iter();
    let mut all = shards.next().expect("there is at least one ladder");
    for shard in shards {
        all.ensemble.append(shard.ensemble);
        all.tuning.append(shard.tuning);
        all.collecting.append(shard.collecting);
        if let (Some(all), Some(more)) = (&mut all.sampling, shard.sampling) {
            all.append(more);
        }
    }
    parts(ensembles)
        .map(|copies| {
            let rest = Shard {
                ensemble: all.ensemble.split_off(copies),
                work: Workspace::default(),
                tuning: all.tuning.split_off(copies),
                collecting: all.collecting.split_off(copies),
                sampling: all.sampling.as_mut().map(|s| s.split_off(copies)),
            };
            let mut shard = std::mem::replace(&mut all, rest);
            shard.work = Workspace::new(&shard.ensemble);
            shard
        })
        .collect()
}
