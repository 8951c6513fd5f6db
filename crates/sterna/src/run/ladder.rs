//! The ladders of a run: what is frozen while they move, and their state, shared out over threads.

use super::{Settings, Stage};
use crate::acceleration::{Acceleration, CollectRecord};
use crate::accelerator::Accelerator;
use crate::ensemble::Ensemble;
use crate::explorer::Tuning;
use crate::iteration::{Recorder, Sampler, Step, Workspace, iterate};
use crate::path::{AnnealingPath, Points};
use crate::records::{Counts, Ladders, SamplingRecord, TuningRecord};
use crate::schedule::{Schedule, cumulative_barrier};
use crate::streams::{Phase, Streams};
use crate::{Batch, Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// All ladders, and what is frozen while they move.
pub(super) struct Ladder {
    pub sampler: Sampler,
    pub barrier: Barrier,
    pub shards: Vec<Shard>,
}

/// λ(β) at each chain of the schedule that it was last measured on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Barrier {
    pub schedule: Schedule,
    pub local: Vec<f64>,
}

impl Barrier {
    /// (β, λ) at each chain.
    pub fn local(&self) -> impl Iterator<Item = (f64, f64)> {
        self.schedule.betas().iter().copied().zip(self.local.iter().copied())
    }

    /// (β, ∫₀^β λ) at each chain.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let betas = self.schedule.betas();
        betas.iter().copied().zip(cumulative_barrier(betas, &self.local)).collect()
    }
}

/// Some of the ladders with all they need: the unit that threads share out.
#[derive(Serialize, Deserialize)]
pub(super) struct Shard {
    pub ensemble: Ensemble,
    #[serde(skip)]
    work: Workspace,
    pub tuning: TuningRecord,
    pub collecting: CollectRecord,
    pub sampling: Option<SamplingRecord>,
}

impl Ladder {
    /// Replicas drawn from the reference, on the path's first schedule or that which the accelerator was made for.
    pub fn start(
        path: Arc<dyn AnnealingPath>,
        settings: &Settings,
        acceleration: &Acceleration,
    ) -> Result<Self> {
        let (chains, dim) = (settings.chains, path.dim());
        let schedule = match acceleration {
            Acceleration::Kept(_, schedule) if schedule.chains() != chains => {
                let cure = "the accelerator was made for a schedule of another number of chains";
                return Err(Error::setting("Settings.chains", chains, cure));
            }
            Acceleration::Kept(_, schedule) => schedule.clone(),
            _ => path.first_schedule(chains),
        };
        let sampler = Sampler {
            schedule: schedule.clone(),
            explorer: settings.explorer.begin(chains, dim)?.unwrap_or_else(|| settings.explorer.clone()),
            path,
            accelerator: acceleration.at_start(),
            streams: Streams::new(settings.seed),
        };
        let mut shards = Vec::new();
        let mut first = 0;
        for copies in parts(settings.ensembles) {
            let ensemble = Ensemble::start(&*sampler.path, &sampler.streams, &schedule, first, copies)?;
            let work = Workspace::new(&ensemble);
            let tuning = TuningRecord::new(copies, chains, dim, settings.round_iterations as usize);
            let collecting = CollectRecord::new(copies, chains);
            shards.push(Shard { ensemble, work, tuning, collecting, sampling: None });
            first += copies;
        }
        // Asked of all ladders at once: how they are shared out must not matter.
        if shards.iter().all(|shard| shard.ensemble.is_lost()) {
            look_for_support(&*sampler.path, &sampler.streams, settings.ensembles * chains)?;
        }
        let barrier = Barrier { schedule, local: vec![f64::NAN; chains] };
        Ok(Self { sampler, barrier, shards })
    }

    pub fn chains(&self) -> usize {
        self.sampler.schedule.chains()
    }

    pub fn dim(&self) -> usize {
        self.sampler.path.dim()
    }

    /// So many iterations after `done`, each thread its own ladders.
    pub fn advance(&mut self, stage: Stage, done: u64, block: u64) -> Result<()> {
        let sampler = &self.sampler;
        self.shards.par_iter_mut().try_for_each(|shard| -> Result<()> {
            let Shard { ensemble, work, tuning, collecting, sampling } = shard;
            let mut nothing = ();
            let out: &mut dyn Recorder = match stage {
                Stage::Tuning(_) | Stage::Retuning(_) => tuning,
                Stage::Collecting => &mut Both(tuning, collecting),
                Stage::Sampling => sampling.as_mut().expect("made on entering the stage"),
                Stage::Fitting | Stage::BurnIn | Stage::Finished => &mut nothing,
            };
            (done + 1..=done + block).try_for_each(|t| iterate(t, ensemble, sampler, work, out))
        })
    }

    /// No replica may stay where it started for want of moves: checked after each round, and halfway through burn-in.
    pub fn free_stranded(&mut self) -> Result<()> {
        let Sampler { path, streams, schedule, .. } = &self.sampler;
        self.shards.iter_mut().try_for_each(|shard| shard.ensemble.free_stranded(&**path, streams, schedule))
    }

    /// Forgets what tuning has seen.
    pub fn clear_tuning(&mut self, round_iterations: u64) {
        for shard in &mut self.shards {
            let (copies, chains) = (shard.ensemble.copies(), shard.ensemble.chains());
            let dim = shard.ensemble.points.x.dim();
            shard.tuning = TuningRecord::new(copies, chains, dim, round_iterations as usize);
        }
    }

    pub fn tuning_counts(&self) -> impl Iterator<Item = &Counts> + Clone {
        self.shards.iter().map(|s| &s.tuning.counts)
    }

    pub fn tuning(&self) -> impl Iterator<Item = &TuningRecord> + Clone {
        self.shards.iter().map(|s| &s.tuning)
    }

    /// Records of sampling, ladder after ladder.
    pub fn records(&self) -> impl Iterator<Item = &SamplingRecord> + Clone {
        self.shards.iter().filter_map(|s| s.sampling.as_ref())
    }

    /// Round trips since sampling began (before that, since the start).
    pub fn round_trips(&self) -> u64 {
        let of = |s: &Shard| match &s.sampling {
            Some(record) => record.round_trips.iter().sum(),
            None => s.ensemble.round_trips(),
        };
        self.shards.iter().map(of).sum()
    }

    /// Local moves change, where they want to.
    pub fn adapt(&mut self, tuning: &Tuning) {
        if let Some(adapted) = self.sampler.explorer.adapt(tuning) {
            self.sampler.explorer = adapted;
        }
    }

    /// λ(β) from what tuning has seen.
    pub fn measure_barrier(&mut self) {
        let local = TuningRecord::local_barriers(self.tuning(), self.chains());
        self.barrier = Barrier { schedule: self.sampler.schedule.clone(), local };
    }

    /// The same replicas on another schedule; local moves are read at the new β.
    pub fn move_chains(&mut self, new: Schedule) -> Result<()> {
        let old = self.sampler.schedule.clone();
        self.adapt(&Tuning::Schedule { from: &old, to: &new });
        self.sampler.schedule = new;
        let Sampler { path, schedule, .. } = &self.sampler;
        self.shards.iter_mut().try_for_each(|shard| shard.ensemble.reschedule(&**path, schedule))
    }

    /// Another path and schedule. Where there are samples of the target and the path knows what to make of them, replicas
    /// begin from those.
    pub fn change_path(
        &mut self,
        path: Arc<dyn AnnealingPath>,
        schedule: Schedule,
        accelerator: Arc<dyn Accelerator>,
        samples: Option<(&Batch, u64)>,
    ) -> Result<()> {
        (self.sampler.path, self.sampler.schedule) = (path, schedule);
        self.sampler.accelerator = accelerator;
        let Sampler { path, schedule, streams, .. } = &self.sampler;
        for Shard { ensemble, .. } in &mut self.shards {
            let rows = 0..ensemble.points.rows();
            let at: Vec<f64> = rows.clone().map(|row| schedule.betas()[ensemble.chain(row)]).collect();
            if let Some((samples, iteration)) = samples {
                let keys: Vec<u32> = rows.clone().map(|row| ensemble.key(row)).collect();
                let mut x = Batch::zeros(rows.len(), samples.dim());
                for (row, &key) in keys.iter().enumerate() {
                    let chosen = streams.row(Phase::Exact, iteration, key).below(samples.rows());
                    x.row_mut(row).copy_from_slice(samples.row(chosen));
                }
                if path.begin_from(&at, streams, iteration, &keys, &mut x) {
                    ensemble.points.x = x;
                }
            }
            path.evaluate(&at, &mut ensemble.points)?;
        }
        Ok(())
    }

    /// The same ladders, cut for the threads that there are now.
    pub fn share_out(shards: Vec<Shard>, ensembles: usize) -> Vec<Shard> {
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
}

/// How many ladders each thread advances.
fn parts(ensembles: usize) -> impl Iterator<Item = usize> {
    let parts = rayon::current_num_threads().min(ensembles);
    (0..parts).map(move |part| ensembles * (part + 1) / parts - ensembles * part / parts)
}

/// Two records of one iteration.
struct Both<'a>(&'a mut TuningRecord, &'a mut CollectRecord);

impl Recorder for Both<'_> {
    fn record(&mut self, step: &Step) -> Result<()> {
        self.0.record(step)?;
        self.1.record(step)
    }
}

/// One draw of the reference with a positive density is enough to go on: exact draws on chain 0 will
/// find more, and swaps carry them up. `drawn` had none; neither have a thousand others if this fails.
fn look_for_support(path: &dyn AnnealingPath, streams: &Streams, drawn: usize) -> Result<()> {
    let more = 1000;
    let mut points = Points::zeros(more, path.dim());
    let keys: Vec<u32> = (0..more as u32).collect();
    path.draw_reference(streams, Phase::Start.into(), 1, &keys, &mut points.x);
    path.evaluate(&vec![1.0; more], &mut points)?;
    if points.log_density.iter().all(|&l| l == f64::NEG_INFINITY) {
        return Err(Error::NoStart { draws: drawn + more });
    }
    Ok(())
}
