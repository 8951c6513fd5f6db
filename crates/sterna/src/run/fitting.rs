//! A run fits an accelerator: samples go to the fit, the path may change to a learned one, and back if that does worse.

use super::{Criterion, Run, Shard, Stage, explorer};
use crate::acceleration::{Acceleration, CollectRecord, Collected, Fitted, PairReport};
use crate::accelerator::Accelerator;
use crate::accelerators::Identity;
use crate::estimates::round_trip_rate;
use crate::explorers::StepSizes;
use crate::iteration::Sampler;
use crate::records::{Counts, TuningRecord};
use crate::schedule::Schedule;
use crate::streams::Phase;
use crate::{Batch, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    /// The tuned step sizes.
    pub sizes: StepSizes,
    /// λ(β) at each chain.
    pub local_barriers: Vec<f64>,
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
    /// End of collecting: the samples go to the fit.
    pub(super) fn begin_fit(&mut self) -> Result<()> {
        let Acceleration::Fitted(fit) = &self.acceleration else { return Ok(()) };
        let (chains, dim) = (self.settings.chains, self.sampler.path.dim());
        let records = self.shards.iter().map(|s| &s.tuning);
        self.local_barriers = TuningRecord::local_barriers(records.clone(), chains);
        self.barrier_schedule = self.sampler.schedule.clone();
        let mut local_variance = TuningRecord::information(records, chains, dim);
        local_variance.as_mut_slice().iter_mut().for_each(|v| *v = v.recip());
        if let Some(before) = self.plain.clone().filter(|_| self.fits == 0) {
            self.plain = Some(PlainStage {
                iterations: self.stage_iterations,
                round_trips: self.round_trips() - before.round_trips,
                evaluations: self.evaluations() - before.tuning_evaluations,
                rejection_rates: Counts::rejection_rates(self.tuning_counts(), chains),
                local_barriers: self.local_barriers.clone(),
                ..before
            });
        }
        let collected = Arc::new(Collected {
            round: self.fits,
            schedule: self.sampler.schedule.clone(),
            samples: CollectRecord::samples(self.shards.iter().map(|s| &s.collecting), chains, dim),
            local_barrier: self.local_barriers.clone(),
            local_variance,
        });
        for shard in &mut self.shards {
            shard.collecting = CollectRecord::new(shard.ensemble.copies(), chains);
        }
        self.fitting = Some(fit.begin(collected.clone(), self.fitted.as_ref())?);
        self.collected = Some(collected);
        Ok(())
    }

    /// The accelerator is made and frozen; a learned path is tuned again.
    pub(super) fn finish_fit(&mut self) -> Result<()> {
        let Some(fitting) = self.fitting.take() else { return Ok(()) };
        let fitted = fitting.finish()?;
        let collected = self.collected.take();
        self.fits += 1;
        self.sampler.accelerator = fitted.accelerator.clone();
        let path = fitted.path.clone();
        let record = fitted.record.clone();
        self.fitted = Some(fitted);
        let Some(path) = path else {
            self.spread_chains()?;
            self.enter_after_fit();
            return Ok(());
        };
        self.evaluations_elsewhere = self.evaluations();
        self.network_evaluations_on_earlier_paths = self.network_evaluations();
        self.sampler.explorer = explorer(&self.settings, &self.sizes, &*path);
        self.sampler.path = path;
        self.path_record = Some(record);
        self.sampler.schedule = self.sampler.path.first_schedule(self.settings.chains);
        let Sampler { path, schedule, streams, .. } = &self.sampler;
        let samples = collected.as_ref().and_then(|collected| collected.samples.last());
        for Shard { ensemble, .. } in &mut self.shards {
            let rows = 0..ensemble.points.rows();
            let at: Vec<f64> = rows.clone().map(|row| schedule.betas()[ensemble.chain(row)]).collect();
            if let Some(samples) = samples {
                let keys: Vec<u32> = rows.clone().map(|row| ensemble.key(row)).collect();
                let mut x = Batch::zeros(rows.len(), samples.dim());
                for (row, &key) in keys.iter().enumerate() {
                    let chosen = streams.row(Phase::Exact, self.iteration, key).below(samples.rows());
                    x.row_mut(row).copy_from_slice(samples.row(chosen));
                }
                if path.begin_from(&at, streams, self.iteration, &keys, &mut x) {
                    ensemble.points.x = x;
                }
            }
            path.evaluate(&at, &mut ensemble.points)?;
        }
        self.enter(Stage::Retuning(0));
        Ok(())
    }

    /// Between rounds of fitting, chains move to where the swaps of the accelerator so far would be rejected equally
    /// often: where it has learned much they may lie farther apart.
    fn spread_chains(&mut self) -> Result<()> {
        let Some(fitted) = self.fitted.as_ref().filter(|_| self.fits < self.settings.fits) else {
            return Ok(());
        };
        let rejections: Vec<f64> = fitted.report.pairs.iter().map(PairReport::used).collect();
        let known = rejections.len() == self.sampler.schedule.pairs();
        if !known || self.settings.criterion == Criterion::Fixed {
            return Ok(());
        }
        self.move_chains(self.sampler.schedule.equalise_rejections(&rejections))
    }

    /// Goes back to plain swaps on the first path if a learned one, tuned, allows fewer round trips than they made: judged on
    /// held-out samples a model may look well and still lead its chains astray. The result is exact either way.
    pub(super) fn guard_path(&mut self) -> Result<()> {
        let (Some(plain), Some(fitted)) = (&self.plain, &self.fitted) else { return Ok(()) };
        let rates = Counts::rejection_rates(self.tuning_counts(), self.settings.chains);
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
        let accelerator: Arc<dyn Accelerator> = Arc::new(Identity);
        self.evaluations_elsewhere = self.evaluations();
        self.network_evaluations_on_earlier_paths = self.network_evaluations();
        self.sizes = plain.sizes.clone();
        self.sampler.schedule = plain.schedule.clone();
        self.barrier_schedule = plain.schedule.clone();
        self.local_barriers = plain.local_barriers.clone();
        // What the first path has counted is in the sum already.
        self.evaluations_elsewhere = self.evaluations_elsewhere.wrapping_sub(self.first_path.evaluations());
        self.network_evaluations_on_earlier_paths =
            self.network_evaluations_on_earlier_paths.wrapping_sub(self.first_path.network_evaluations());
        self.sampler.path = self.first_path.clone();
        self.sampler.accelerator = accelerator.clone();
        self.sampler.explorer = explorer(&self.settings, &self.sizes, &*self.first_path);
        self.fitted = Some(Fitted { accelerator, path: None, record: Arc::new([]), report });
        self.path_record = None;
        for Shard { ensemble, .. } in &mut self.shards {
            let rows = 0..ensemble.points.rows();
            let at: Vec<f64> = rows.map(|row| self.sampler.schedule.betas()[ensemble.chain(row)]).collect();
            self.first_path.evaluate(&at, &mut ensemble.points)?;
        }
        Ok(())
    }
}
