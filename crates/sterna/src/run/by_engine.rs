//! Burn-in and sampling by an engine in place of the cores.

use super::{Run, Shard, Stage, hmc};
use crate::engine::{Frozen, Journal, Made, MakeEngine, Page};
use crate::iteration::Recorder;
use crate::{Ensemble, Error, Result};
use rayon::prelude::*;
use std::sync::Arc;

impl Run {
    /// Has an engine carry out burn-in and sampling. Tuning, collecting and fitting stay with the cores, since they
    /// change what is sampled.
    ///
    /// # Errors
    /// If trajectories of all chains are to be kept: engines write down the target chain alone.
    pub fn with_engine(mut self, maker: Arc<dyn MakeEngine>) -> Result<Self> {
        if let Some(every) = self.settings.trajectories {
            let cure = "points of all chains are kept by the cores alone (run.device = \"cpu\")";
            return Err(Error::Setting { field: "output.every", value: every.to_string(), cure });
        }
        self.engine_maker = Some(maker);
        Ok(self)
    }

    /// Why the cores do the work of an engine that was asked for, where they do. A run that was begun by them is ended
    /// by them.
    pub fn engine_replaced(&self) -> Option<&str> {
        self.engine_replaced.as_deref()
    }

    /// Whether sampling is not the cores' work.
    pub fn samples_by_engine(&self) -> bool {
        self.engine_maker.is_some() && self.engine_replaced.is_none()
    }

    /// Whether an engine carries out the present stage; made when it is first needed.
    pub(super) fn has_engine(&mut self) -> Result<bool> {
        if !matches!(self.stage, Stage::BurnIn | Stage::Sampling) {
            return Ok(false);
        }
        let Some(maker) = self.engine_maker.as_ref().filter(|_| self.samples_by_engine()) else {
            return Ok(false);
        };
        if self.engine.is_none() {
            let frozen = Frozen {
                sampler: &self.sampler,
                moves: &hmc(&self.settings, &self.sizes),
                ladders: self.settings.ensembles,
                fitted: self.fitted.as_ref(),
            };
            match maker.make(&frozen)? {
                Made::Replaced(reason) => self.engine_replaced = Some(reason),
                Made::Engine(engine) => {
                    let page = Page { chains: self.settings.chains, dim: self.sampler.path.dim() };
                    self.engine = Some((engine, Journal::new(page, self.settings.ensembles)));
                }
            }
        }
        Ok(self.engine.is_some())
    }

    /// So many iterations after `done`.
    pub(super) fn advance_by_engine(&mut self, mut done: u64, block: u64) -> Result<()> {
        let Some((engine, journal)) = &mut self.engine else { return Ok(()) };
        let (end, sampler) = (done + block, &self.sampler);
        while done < end {
            let ladders: Vec<&Ensemble> = self.shards.iter().map(|shard| &shard.ensemble).collect();
            engine.advance(done, end - done, &ladders, journal)?;
            let journal = &*journal;
            self.shards.par_iter_mut().try_for_each(|Shard { ensemble, sampling, .. }| {
                let mut nothing = ();
                let out: &mut dyn Recorder = match sampling {
                    Some(sampling) => sampling,
                    None => &mut nothing,
                };
                journal.replay(done, sampler, ensemble, out)
            })?;
            done += journal.iterations();
            let evaluations = self.evaluations_elsewhere.wrapping_add(journal.evaluations);
            self.evaluations_elsewhere = evaluations;
        }
        Ok(())
    }
}
