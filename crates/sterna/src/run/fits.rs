//! A run fits an accelerator: samples go to the fit, the path may change to a learned one, and back if that does worse.

use super::among::{read, written};
use super::ladder::{Barrier, Ladder, Shard};
use super::progress::Asked;
use super::{Criterion, Run, Stage};
use crate::Result;
use crate::acceleration::{
    Acceleration, Attempt, CollectRecord, Collected, Fitted, Fitting, PairReport, Prospect,
};
use crate::accelerators::Identity;
use crate::estimates::{bulk_draws, round_trip_rate};
use crate::path::AnnealingPath;
use crate::records::{Counts, TuningRecord};
use crate::schedule::Schedule;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Fits that were made, and the one under way.
#[derive(Default)]
pub(super) struct Fits {
    /// How many are done.
    pub done: usize,
    /// Iterations whose samples the one to come is fitted to.
    pub collect: u64,
    /// The one under way, and what it sees.
    pub under_way: Option<(Arc<Collected>, Box<dyn Fitting>)>,
    /// What the last one made.
    pub fitted: Option<Fitted>,
    /// Record of the last one that brought a path.
    pub path_record: Option<Arc<[u8]>>,
    /// Plain swaps before the first one; while that stage lasts, what had been counted when it began.
    pub plain: Option<PlainStage>,
    /// Where tuning has left the run, while it is open whether anything comes of fits that may choose plain swaps.
    pub before: Option<AsTuned>,
}

/// The ladders as tuning has left them.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct AsTuned {
    iteration: u64,
    barrier: Barrier,
    /// As they save themselves.
    shards: Vec<u8>,
}

impl AsTuned {
    /// Whether it may belong to a run that has come so far: a file may claim anything.
    pub fn is_sound(&self, iteration: u64, shards_are: impl Fn(&[Shard]) -> bool) -> bool {
        let shards: Result<Vec<Shard>> = read(&self.shards);
        self.iteration <= iteration
            && self.barrier.local.len() == self.barrier.schedule.chains()
            && shards.is_ok_and(|shards| shards_are(&shards))
    }
}

/// Round trips that make a count of them trustworthy.
const ENOUGH: u64 = 20;
/// Plain swaps on the tuned ladder, as the first samples for a fit were collected: what an accelerator is
/// held against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlainStage {
    /// Iterations.
    pub iterations: u64,
    /// Round trips of all ladders.
    pub round_trips: u64,
    /// Target evaluations.
    pub evaluations: u64,
    /// Target evaluations of the tuning before.
    pub tuning_evaluations: u64,
    /// Rejection rate of each pair.
    pub rejection_rates: Vec<f64>,
    /// The tuned schedule.
    pub schedule: Schedule,
    /// The tuned local moves, as they save themselves.
    pub explorer: Vec<u8>,
    /// λ(β) at each chain.
    pub local_barriers: Vec<f64>,
    /// The leg beyond the target moves in every so many iterations.
    pub every: u64,
    /// A target that is alone with its reference makes local moves in one of so many; 0 where it is not.
    pub alone: u64,
}

impl PlainStage {
    /// Round trips an iteration and ladder: as counted, where local moves kept their number below what the
    /// rejections allow.
    fn round_trip_rate(&self, ladders: usize) -> f64 {
        let allowed = round_trip_rate(&self.rejection_rates);
        if self.round_trips < ENOUGH {
            return allowed;
        }
        allowed.min(self.round_trips as f64 / (self.iterations * ladders as u64) as f64)
    }
}

impl Run {
    /// Plain swaps begin, for the first samples.
    pub(super) fn begin_plain_stage(&mut self) {
        let sampler = &self.ladder.sampler;
        self.fits.plain = Some(PlainStage {
            iterations: 0,
            round_trips: self.round_trips(),
            evaluations: 0,
            tuning_evaluations: self.asked().target,
            rejection_rates: Vec::new(),
            schedule: sampler.schedule.clone(),
            explorer: sampler.explorer.save(),
            local_barriers: Vec::new(),
            every: self.ladder.shards.first().map_or(1, |shard| shard.ensemble.legs().every()),
            alone: self.ladder.shards.first().map_or(0, |shard| shard.ensemble.legs().alone()),
        });
    }

    /// Keeps the ladders as they are, where fits may come to nothing.
    pub(super) fn keep_as_tuned(&mut self) {
        if self.looks_again_at_fits() {
            let shards = written(&self.ladder.shards).expect("memory takes what is written");
            let (iteration, barrier) = (self.progress.iteration, self.ladder.barrier.clone());
            self.fits.before = Some(AsTuned { iteration, barrier, shards });
        }
    }

    /// Swaps stay plain: the run goes on from where tuning has left it, with the bits of one that has tried nothing.
    fn go_on_as_tuned(&mut self) -> Result<()> {
        let (Some(before), Some(plain)) = (self.fits.before.take(), &self.fits.plain) else { return Ok(()) };
        self.ladder.sampler.schedule = plain.schedule.clone();
        self.ladder.sampler.explorer =
            self.settings.restore_explorer(&plain.explorer, plain.schedule.chains(), self.ladder.dim())?;
        self.ladder.barrier = before.barrier;
        let shards = read(&before.shards)?;
        let Ladder { sampler, exchange, .. } = &self.ladder;
        self.ladder.shards = Ladder::share_out(shards, self.settings.ensembles, &*sampler.path, &**exchange);
        self.progress.iteration = before.iteration;
        Ok(())
    }

    /// What plain swaps cost and brought in this stage.
    fn prospect(&self, rejection_rates: Vec<f64>, schedule: &[f64], effective: Option<f64>) -> Prospect {
        let (before, trips) = self.progress.before_stage;
        let legs = self.ladder.shards.first().map(|shard| shard.ensemble.legs());
        let rates = Prospect {
            ladders: self.settings.ensembles,
            iterations: self.progress.stage_iterations,
            evaluations: self.asked().target.saturating_sub(before.target),
            round_trips: self.round_trips().saturating_sub(trips),
            effective,
            rejection_rates,
            target: schedule.partition_point(|&beta| beta < 1.0),
            turns: legs.map_or(1, |legs| legs.turns()),
            every: legs.map_or(1, |legs| legs.every()),
            ahead: f64::NAN,
        };
        // What an earlier choice has carried asked for journeys: a choice adds those of each way by itself.
        let carried =
            self.choice().filter(|_| self.fits.done > 0).map_or(0.0, |choice| choice.journeys(&rates));
        let carried = carried * (rates.iterations * rates.ladders as u64) as f64;
        let rates = Prospect { evaluations: rates.evaluations.saturating_sub(carried as u64), ..rates };
        Prospect { ahead: self.iterations_ahead(&rates), ..rates }
    }

    /// Effective draws among what was collected on a chain, of the coordinate that has fewest.
    fn collected_draws(&self, chain: usize) -> f64 {
        let dim = self.ladder.dim();
        let ladders = CollectRecord::of_chain(self.ladder.shards.iter().map(|s| &s.collecting), chain);
        let of_coordinate = |j: usize| {
            let series = |points: &[f64]| points.iter().skip(j).step_by(dim).copied().collect::<Vec<f64>>();
            let all: Vec<Vec<f64>> = ladders.iter().map(|(points, _)| series(points)).collect();
            bulk_draws(&all.iter().map(|series| &series[..]).collect::<Vec<_>>())
        };
        (0..dim).map(of_coordinate).filter(|draws| draws.is_finite()).fold(f64::INFINITY, f64::min)
    }

    /// Whether samples for a fit are not worth collecting: then it is left at that.
    pub(super) fn leaves_fit(&mut self) -> bool {
        if let Some(choice) = self.choice().filter(|_| self.fits.done > 0) {
            // Nothing has been sampled since.
            let prospect =
                Prospect { ahead: self.iterations_ahead(&choice.prospect), ..choice.prospect.clone() };
            return self.leaves(&prospect);
        }
        let last = self.progress.rounds.last();
        let rates = last.map_or(Vec::new(), |round| {
            round.rejection_rates.iter().map(|rate| rate.unwrap_or(f64::NAN)).collect()
        });
        // Where the reference is fitted, draws of the last round were counted.
        let each = self.reference.as_ref().map(|reference| reference.state.effective_each);
        let effective = each.map(|each| each * self.progress.stage_iterations as f64);
        // A first look at few samples is for the first fit alone.
        let effective = effective.or((self.fits.done > 0).then_some(0.0));
        let prospect = self.prospect(rates, last.map_or(&[], |round| &round.schedule), effective);
        self.leaves(&prospect)
    }

    fn leaves(&mut self, prospect: &Prospect) -> bool {
        let Acceleration::Fitted(fit) = &self.acceleration else { return true };
        let most = self.settings.collect << self.fits.done;
        match fit.collects(most, &self.ladder.sampler.schedule, prospect) {
            Attempt::Collect(iterations) => {
                self.fits.collect = iterations.clamp(10, most);
                false
            }
            Attempt::Leave(fitted) => {
                // What an earlier round made stays.
                match self.fits.done {
                    0 => self.fits.fitted = Some(*fitted),
                    _ => self.fits.before = None,
                }
                self.fits.done = self.settings.fits;
                true
            }
        }
    }

    /// What swaps cost and brought while samples were collected.
    fn prospect_of_samples(&self) -> Prospect {
        let rates = Counts::rejection_rates(self.ladder.tuning_counts(), self.ladder.chains());
        let schedule = &self.ladder.sampler.schedule;
        self.prospect(rates, schedule.betas(), Some(self.collected_draws(schedule.target())))
    }

    /// As many samples are there as were wanted: they may show that more are, or that none were worth it.
    pub(super) fn end_collecting(&mut self) -> Result<()> {
        let prospect = self.prospect_of_samples();
        if self.fits.done == 0 && self.leaves(&prospect) {
            self.go_on_as_tuned()?;
            self.fits.plain = None;
            self.enter_after_fit();
        } else if self.progress.stage_iterations >= self.fits.collect {
            self.fits.collect = self.progress.stage_iterations;
            self.begin_fit(prospect)?;
            self.enter(Stage::Fitting);
        }
        Ok(())
    }

    /// End of collecting: the samples go to the fit.
    fn begin_fit(&mut self, prospect: Prospect) -> Result<()> {
        self.acceleration = self.acceleration.on(&self.own_path()?);
        let Acceleration::Fitted(fit) = &self.acceleration else { return Ok(()) };
        let (chains, dim) = (self.ladder.chains(), self.ladder.dim());
        self.ladder.measure_barrier();
        let mut local_variance = TuningRecord::information(self.ladder.tuning(), chains, dim);
        local_variance.as_mut_slice().iter_mut().for_each(|v| *v = v.recip());
        if let Some(before) = self.fits.plain.clone().filter(|_| self.fits.done == 0) {
            self.fits.plain = Some(PlainStage {
                iterations: self.progress.stage_iterations,
                round_trips: self.round_trips() - before.round_trips,
                evaluations: self.asked().target - before.tuning_evaluations,
                rejection_rates: Counts::rejection_rates(self.ladder.tuning_counts(), chains),
                local_barriers: self.ladder.barrier.local.clone(),
                ..before
            });
        }
        let shards = &mut self.ladder.shards;
        let collected = Arc::new(Collected {
            round: self.fits.done,
            schedule: self.ladder.sampler.schedule.clone(),
            samples: CollectRecord::samples(shards.iter().map(|s| &s.collecting), chains, dim),
            scores: CollectRecord::path_scores(shards.iter().map(|s| &s.collecting), chains, dim),
            local_barrier: self.ladder.barrier.local.clone(),
            local_variance,
            prospect,
        });
        for shard in shards {
            shard.collecting = CollectRecord::new(shard.ensemble.copies(), chains);
        }
        let fitting = self.begin_on_first(|| fit.begin(collected.clone(), self.fits.fitted.as_ref()))?;
        self.fits.under_way = Some((collected, fitting));
        Ok(())
    }

    /// The accelerator is made and frozen; a learned path is tuned again.
    pub(super) fn finish_fit(&mut self) -> Result<()> {
        let Some((collected, fitting)) = self.fits.under_way.take() else { return Ok(()) };
        let before = Asked::by(&*self.ladder.sampler.path);
        let fitted = fitting.finish_on(&*self.ladder.sampler.path)?;
        self.count_as_first(before)?;
        self.fits.done += 1;
        let (accelerator, path, record) =
            (fitted.accelerator.clone(), fitted.path.clone(), fitted.record.clone());
        self.fits.fitted = Some(fitted);
        let Some(path) = path else {
            self.ladder.sampler.accelerator = accelerator;
            self.spread_chains()?;
            self.follow_transport(None)?;
            if self.fits.done == self.settings.fits {
                match self.carries() {
                    true => self.fits.before = None,
                    false => self.go_on_as_tuned()?,
                }
            }
            self.enter_after_fit();
            return Ok(());
        };
        self.progress.asked.learn(&*self.ladder.sampler.path);
        self.fits.path_record = Some(record);
        let schedule = path.first_schedule(self.ladder.chains());
        if self.reference.is_some() {
            self.ladder.renew(&schedule);
        }
        let samples = collected
            .samples
            .get(collected.schedule.target())
            .map(|samples| (samples, self.progress.iteration));
        self.ladder.change_path(path, schedule, accelerator, samples)?;
        self.enter(Stage::Retuning(0));
        Ok(())
    }

    /// Between rounds of fitting, chains move to where the swaps of the accelerator so far would be rejected equally
    /// often: where it has learned much they may lie farther apart.
    fn spread_chains(&mut self) -> Result<()> {
        let Acceleration::Fitted(fit) = &self.acceleration else { return Ok(()) };
        let may_move = self.fits.done < self.settings.fits && fit.moves_chains();
        let Some(fitted) = self.fits.fitted.as_ref().filter(|_| may_move) else {
            return Ok(());
        };
        let rejections: Vec<f64> = fitted.report.pairs.iter().map(PairReport::used).collect();
        let schedule = &self.ladder.sampler.schedule;
        if rejections.len() != schedule.pairs() || self.settings.criterion == Criterion::Fixed {
            return Ok(());
        }
        self.ladder.move_chains(schedule.equalise_rejections(&rejections))
    }

    /// Goes back to plain swaps on the first path if a learned one, tuned, allows fewer round trips than they made: judged on
    /// held-out samples a model may look well and still lead its chains astray. The result is exact either way.
    pub(super) fn guard_path(&mut self) -> Result<()> {
        let (Some(plain), Some(fitted)) = (&self.fits.plain, &self.fits.fitted) else { return Ok(()) };
        let rates = Counts::rejection_rates(self.ladder.tuning_counts(), self.ladder.chains());
        let ours = round_trip_rate(&rates);
        let theirs = plain.round_trip_rate(self.settings.ensembles);
        // A tie is no reason to change back.
        if ours > 0.9 * theirs {
            return Ok(());
        }
        let mut report = fitted.report.clone();
        report.pairs.iter_mut().for_each(|pair| pair.plain = true);
        report.alarms.push((
            "transport-replaced".into(),
            format!(
                "on the learned path, tuned, swaps allow {ours:.2e} round trips an iteration, and plain ones on the first \
                 path make {theirs:.2e}: the run goes on without it; more samples (training.collect), more steps \
                 (training.steps) or adapted moves (explorer.step_size = \"adapt\") may help"
            ),
        ));
        let (schedule, every, alone) = (plain.schedule.clone(), plain.every, plain.alone);
        let explorer =
            self.settings.restore_explorer(&plain.explorer, schedule.chains(), self.ladder.dim())?;
        self.ladder.barrier =
            Barrier { local: plain.local_barriers.clone(), ..Barrier::unknown(schedule.clone()) };
        let path = self.own_path()?;
        self.progress.asked.go_back(&*self.ladder.sampler.path, &*path);
        let accelerator = Arc::new(Identity);
        self.fits.fitted =
            Some(Fitted { accelerator: accelerator.clone(), path: None, record: Arc::new([]), report });
        self.fits.path_record = None;
        if self.reference.is_some() {
            self.ladder.lay_out(path.clone(), schedule.clone())?;
            self.ladder.rest(every, alone);
        }
        self.ladder.sampler.explorer = explorer;
        self.ladder.change_path(path, schedule, accelerator, None)
    }

    /// The path that the run was given, or that between the reference it has fitted, the target and the anchor.
    fn own_path(&self) -> Result<Arc<dyn AnnealingPath>> {
        match &self.reference {
            Some(reference) => reference.path(&self.settings),
            None => Ok(self.first_path.clone()),
        }
    }
}
