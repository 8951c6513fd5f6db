//! The ladders of a run: what is frozen while they move, and their state, shared out over threads.

use super::parts::{ladders_at_once, parts};
use super::rows::{Rows, Wanted};
use super::{Settings, Stage};
use crate::acceleration::{Acceleration, CollectRecord};
use crate::accelerator::Accelerator;
use crate::ensemble::Ensemble;
use crate::exchange::{Alone, Exchange, agree};
use crate::explorer::Tuning;
use crate::iteration::{Recorder, Sampler, Step, Workspace, iterate};
use crate::partners::Team;
use crate::path::{AnnealingPath, Points};
use crate::records::{Counts, Ladders, SamplingRecord, SwapsSeen, TuningRecord, TurnsRecord, WarmupRecord};
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
    /// Who holds which of them.
    pub exchange: Arc<dyn Exchange>,
}

/// λ(β) at each chain of the schedule that it was last measured on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Barrier {
    pub schedule: Schedule,
    pub local: Vec<f64>,
    /// At the target on the leg beyond it; NaN where there is none.
    pub beyond: f64,
}

impl Barrier {
    /// (β, λ) at each chain.
    pub fn local(&self) -> impl Iterator<Item = (f64, f64)> {
        self.schedule.betas().iter().copied().zip(self.local.iter().copied())
    }

    /// Not measured yet.
    pub fn unknown(schedule: Schedule) -> Self {
        Self { local: vec![f64::NAN; schedule.chains()], schedule, beyond: f64::NAN }
    }

    /// (β, ∫₀^β λ) at each chain, leg after leg.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let betas = self.schedule.betas();
        let mut curve = cumulative_barrier(&betas[..=self.schedule.target()], &self.of_leg(0));
        if self.schedule.legs() == 2 {
            let beyond = cumulative_barrier(self.schedule.leg(1).betas(), &self.of_leg(1));
            let (all, so_far) = (beyond[beyond.len() - 1], curve[curve.len() - 1]);
            curve.extend(beyond.iter().rev().skip(1).map(|rest| so_far + all - rest));
        }
        betas.iter().copied().zip(curve).collect()
    }

    /// λ at the chains of a leg, from its reference to the target.
    fn of_leg(&self, leg: usize) -> Vec<f64> {
        let target = self.schedule.target();
        match leg {
            0 => self.local[..=target].to_vec(),
            _ => self.local[target + 1..].iter().rev().copied().chain([self.beyond]).collect(),
        }
    }

    /// ∫λ of each leg; of the second, nothing where there is none.
    pub fn of_legs(&self) -> [f64; 2] {
        let curve = self.curve();
        let (first, all) = (curve[self.schedule.target()].1, curve[curve.len() - 1].1);
        [first, all - first]
    }

    /// So many chains with equal shares of a leg's barrier.
    pub fn equalised(&self, leg: usize, chains: usize) -> Schedule {
        self.schedule.leg(leg).equalise_barrier(&self.of_leg(leg), chains)
    }
}

/// Some of the ladders with all they need: the unit that threads share out.
#[derive(Serialize, Deserialize)]
pub(super) struct Shard {
    pub ensemble: Ensemble,
    #[serde(skip)]
    work: Work,
    pub tuning: TuningRecord,
    pub turns: TurnsRecord,
    pub collecting: CollectRecord,
    pub warmup: WarmupRecord,
    pub sampling: Option<SamplingRecord>,
}

/// Buffers of iterations.
#[derive(Default)]
struct Work {
    /// Of whole ladders.
    whole: Workspace,
    /// Of each row that moves here, where others move on other ranks.
    rows: Vec<Workspace>,
}

impl Work {
    fn new(ensemble: &Ensemble) -> Self {
        Self { whole: Workspace::new(ensemble), rows: Vec::new() }
    }
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
        let shards = Shard::start(&sampler, settings.ensembles, settings.round_iterations, &Alone)?;
        // Asked of all ladders at once: how they are shared out must not matter.
        if shards.iter().all(|shard| shard.ensemble.is_lost()) {
            let found = look_for_support(&*sampler.path, &sampler.streams, settings.ensembles * chains);
            found
                .map_err(|none| shards.iter().find_map(|shard| shard.ensemble.bad_start()).unwrap_or(none))?;
        }
        Ok(Self { sampler, barrier: Barrier::unknown(schedule), shards, exchange: Arc::new(Alone) })
    }

    /// What a run has before climbs have told it where to begin: as few chains as can be, never moved.
    pub fn before_climbs(
        path: Arc<dyn AnnealingPath>,
        settings: &Settings,
        acceleration: &Acceleration,
    ) -> Result<Self> {
        let schedule = Schedule::uniform(2);
        let explorer = settings.explorer.begin(2, path.dim())?.unwrap_or_else(|| settings.explorer.clone());
        let streams = Streams::new(settings.seed);
        let barrier = Barrier::unknown(schedule.clone());
        let sampler = Sampler { schedule, explorer, path, accelerator: acceleration.at_start(), streams };
        let shards = Shard::unborn(&sampler, settings.ensembles);
        Ok(Self { sampler, barrier, shards, exchange: Arc::new(Alone) })
    }

    /// Replicas drawn anew from the reference of another path, on another schedule.
    pub fn begin_again(&mut self, path: Arc<dyn AnnealingPath>, schedule: Schedule) -> Result<()> {
        let ensembles = self.shards.iter().map(|shard| shard.ensemble.copies()).sum();
        self.adapt(&Tuning::Schedule { from: &self.sampler.schedule.clone(), to: &schedule });
        (self.sampler.path, self.sampler.schedule) = (path, schedule);
        let shards = Shard::start(&self.sampler, ensembles, 0, &*self.exchange)?;
        self.replace_shards(shards);
        self.barrier = Barrier::unknown(self.sampler.schedule.clone());
        Ok(())
    }

    /// Another path to the same target and another schedule, with as many chains as it has: each takes the point of the
    /// chain that lay nearest.
    pub fn lay_out(&mut self, path: Arc<dyn AnnealingPath>, schedule: Schedule) -> Result<()> {
        let old = self.sampler.schedule.clone();
        self.adapt(&Tuning::Schedule { from: &old, to: &schedule });
        (self.sampler.path, self.sampler.schedule) = (path, schedule);
        let Sampler { path, schedule, .. } = &self.sampler;
        for shard in &mut self.shards {
            shard.ensemble = shard.ensemble.laid_out(&**path, &old, schedule)?;
            let warmup = std::mem::take(&mut shard.warmup);
            *shard = Shard::around(std::mem::take(&mut shard.ensemble), 0, warmup);
        }
        Ok(())
    }

    /// Ladders of another schedule, whose points are still to come.
    pub fn renew(&mut self, schedule: &Schedule) {
        self.adapt(&Tuning::Schedule { from: &self.sampler.schedule.clone(), to: schedule });
        let dim = self.dim();
        for shard in &mut self.shards {
            let (first, copies) = (shard.ensemble.first_copy(), shard.ensemble.copies());
            let warmup = std::mem::take(&mut shard.warmup);
            *shard = Shard::around(Ensemble::unborn(dim, schedule, first, copies), 0, warmup);
        }
    }

    /// Other ladders in the place of these, which go on with what is remembered of tuning.
    fn replace_shards(&mut self, mut shards: Vec<Shard>) {
        let mut all = WarmupRecord::default();
        for (i, shard) in self.shards.iter_mut().enumerate() {
            let warmup = std::mem::take(&mut shard.warmup);
            if i == 0 { all = warmup } else { all.append(warmup) }
        }
        for shard in &mut shards {
            let rest = all.split_off(shard.ensemble.copies());
            shard.warmup = std::mem::replace(&mut all, rest);
        }
        self.shards = shards;
    }

    pub fn chains(&self) -> usize {
        self.sampler.schedule.chains()
    }

    pub fn dim(&self) -> usize {
        self.sampler.path.dim()
    }

    /// How many there are.
    pub fn ladders(&self) -> usize {
        self.shards.iter().map(|shard| shard.ensemble.copies()).sum()
    }

    /// So many iterations after `done`, each rank and each thread its own ladders, or each rank its own rows of one; `records` samples in
    /// tuning and counts in burn-in too, or not.
    pub fn advance(&mut self, stage: Stage, records: bool, done: u64, block: u64) -> Result<()> {
        let moved = match Team::of(&*self.exchange, self.ladders(), self.chains()) {
            Some(team) => self.advance_rows(team, stage, records, done, block),
            None => self.advance_ladders(stage, records, done, block),
        };
        agree(&*self.exchange, moved)
    }

    fn advance_ladders(&mut self, stage: Stage, records: bool, done: u64, block: u64) -> Result<()> {
        let sampler = &self.sampler;
        let own = self.own();
        self.shards.par_iter_mut().filter(|shard| shard.is_of(&own)).try_for_each(|shard| {
            shard.recorded(stage, records, |ensemble, work, out| {
                (done + 1..=done + block)
                    .try_for_each(|t| iterate(t, ensemble, sampler, &mut work.whole, out))
            })
        })
    }

    fn advance_rows(&mut self, team: Team, stage: Stage, records: bool, done: u64, block: u64) -> Result<()> {
        let (sampler, exchange) = (&self.sampler, &self.exchange);
        let shard = self.shards.iter_mut().find(|shard| shard.ensemble.first_copy() == team.ladder);
        let shard = shard.expect("every rank knows all ladders");
        let wanted = shard.wanted(stage);
        shard.recorded(stage, records, |ensemble, work, out| {
            Rows { team, exchange, sampler, ensemble, work: &mut work.rows }.advance(wanted, done, block, out)
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
            shard.turns = TurnsRecord::new(copies, chains);
        }
    }

    pub fn tuning_counts(&self) -> impl Iterator<Item = &Counts> + Clone {
        self.shards.iter().map(|s| &s.tuning.counts)
    }

    /// What plain and carried swaps in turn have shown of each other.
    pub fn swaps_seen(&self) -> SwapsSeen {
        TurnsRecord::seen(self.shards.iter().map(|s| &s.turns), self.chains())
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
        let beyond = TuningRecord::barrier_beyond(self.tuning());
        self.barrier = Barrier { schedule: self.sampler.schedule.clone(), local, beyond };
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
    pub fn share_out(
        shards: Vec<Shard>,
        ensembles: usize,
        path: &dyn AnnealingPath,
        exchange: &dyn Exchange,
    ) -> Vec<Shard> {
        let mut shards = shards.into_iter();
        let mut all = shards.next().expect("there is at least one ladder");
        for shard in shards {
            all.ensemble.append(shard.ensemble);
            all.tuning.append(shard.tuning);
            all.turns.append(shard.turns);
            all.collecting.append(shard.collecting);
            all.warmup.append(shard.warmup);
            if let (Some(all), Some(more)) = (&mut all.sampling, shard.sampling) {
                all.append(more);
            }
        }
        let at_once = ladders_at_once(path, all.ensemble.chains());
        parts(ensembles, at_once, exchange)
            .into_iter()
            .map(|copies| {
                let rest = Shard {
                    ensemble: all.ensemble.split_off(copies),
                    work: Work::default(),
                    tuning: all.tuning.split_off(copies),
                    turns: all.turns.split_off(copies),
                    collecting: all.collecting.split_off(copies),
                    warmup: all.warmup.split_off(copies),
                    sampling: all.sampling.as_mut().map(|s| s.split_off(copies)),
                };
                let mut shard = std::mem::replace(&mut all, rest);
                shard.work = Work::new(&shard.ensemble);
                shard
            })
            .collect()
    }
}

impl Shard {
    /// Moves the ladders by `work`, and keeps what records of the stage want to know.
    fn recorded<T>(
        &mut self,
        stage: Stage,
        records: bool,
        moved: impl FnOnce(&mut Ensemble, &mut Work, &mut dyn Recorder) -> T,
    ) -> T {
        let Self { ensemble, work, tuning, turns, collecting, warmup, sampling } = self;
        let out: &mut dyn Recorder = match stage {
            Stage::Tuning(_) if records => &mut Both(warmup, &mut Both(tuning, collecting)),
            Stage::Tuning(_) | Stage::Retuning(_) => &mut Both(warmup, tuning),
            Stage::BurnIn if records => &mut Both(warmup, turns),
            Stage::Collecting => &mut Both(warmup, &mut Both(tuning, collecting)),
            Stage::Sampling => sampling.as_mut().expect("made on entering the stage"),
            Stage::Climbing | Stage::Fitting | Stage::BurnIn | Stage::Finished => warmup,
        };
        moved(ensemble, work, out)
    }

    /// What the records of a stage look at.
    fn wanted(&self, stage: Stage) -> Wanted {
        let all = self.sampling.as_ref().is_some_and(|record| !record.trajectories.is_empty());
        match stage {
            Stage::Tuning(_) | Stage::Retuning(_) | Stage::Collecting => Wanted::All,
            Stage::Sampling if all => Wanted::All,
            Stage::Sampling | Stage::BurnIn => Wanted::Target,
            Stage::Climbing | Stage::Fitting | Stage::Finished => Wanted::Nothing,
        }
    }

    /// Ladders drawn from the reference, cut for the threads that there are.
    fn start(
        sampler: &Sampler,
        ensembles: usize,
        round_iterations: u64,
        exchange: &dyn Exchange,
    ) -> Result<Vec<Self>> {
        let mut first = 0;
        let start = |copies| {
            let Sampler { path, streams, schedule, .. } = sampler;
            let ensemble = Ensemble::start(&**path, streams, schedule, first, copies)?;
            first += copies;
            let warmup = WarmupRecord::new(copies, ensembles, path.dim());
            Ok(Self::around(ensemble, round_iterations, warmup))
        };
        let at_once = ladders_at_once(&*sampler.path, sampler.schedule.chains());
        parts(ensembles, at_once, exchange).into_iter().map(start).collect()
    }

    /// Ladders without a density: nothing has been asked of the target yet.
    fn unborn(sampler: &Sampler, ensembles: usize) -> Vec<Self> {
        let mut first = 0;
        let unborn = |copies| {
            let ensemble = Ensemble::unborn(sampler.path.dim(), &sampler.schedule, first, copies);
            first += copies;
            Self::around(ensemble, 0, WarmupRecord::new(copies, ensembles, sampler.path.dim()))
        };
        let at_once = ladders_at_once(&*sampler.path, sampler.schedule.chains());
        parts(ensembles, at_once, &Alone).into_iter().map(unborn).collect()
    }

    fn around(ensemble: Ensemble, round_iterations: u64, warmup: WarmupRecord) -> Self {
        let (copies, chains, dim) = (ensemble.copies(), ensemble.chains(), ensemble.points.x.dim());
        Self {
            work: Work::new(&ensemble),
            tuning: TuningRecord::new(copies, chains, dim, round_iterations as usize),
            turns: TurnsRecord::new(copies, chains),
            collecting: CollectRecord::new(copies, chains),
            warmup,
            sampling: None,
            ensemble,
        }
    }
}

/// Two records of one iteration.
struct Both<'a>(&'a mut dyn Recorder, &'a mut dyn Recorder);

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
    path.draw_reference(0.0, streams, Phase::Start.into(), 1, &keys, &mut points.x);
    path.evaluate(&vec![1.0; more], &mut points)?;
    if points.log_density.iter().all(|&l| l == f64::NEG_INFINITY) {
        return Err(Error::NoStart { draws: drawn + more });
    }
    Ok(())
}
