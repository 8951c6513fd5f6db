//! A run that changes its path: along a learned one once that is fitted, and back if it does worse.

use super::{PlainStage, Run, Shard, Stage, explorer};
use crate::acceleration::Fitted;
use crate::accelerator::Accelerator;
use crate::accelerators::Identity;
use crate::estimates::round_trip_rate;
use crate::iteration::Sampler;
use crate::records::Counts;
use crate::streams::Phase;
use crate::{Batch, Result};
use std::sync::Arc;

/// Round trips that make a count of them trustworthy.
const ENOUGH: u64 = 20;

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
