//! Burn-in and sampling by an engine in place of the cores.

use super::ladder::Shard;
use super::{Run, Stage};
use crate::engine::{Engine, Frozen, Journal, Made, MakeEngine, Page};
use crate::exchange::agree;
use crate::iteration::Recorder;
use crate::{Ensemble, Error, Result};
use rayon::prelude::*;
use std::sync::Arc;

/// What carries out burn-in and sampling, where that is not the cores.
#[derive(Default)]
pub(super) struct ByEngine {
    pub maker: Option<Arc<dyn MakeEngine>>,
    pub engine: Option<(Box<dyn Engine>, Journal)>,
    /// Why the cores do its work.
    pub replaced: Option<String>,
}

impl Run {
    /// Has an engine carry out burn-in and sampling. Tuning, collecting and fitting stay with the cores, since they
    /// change what is sampled.
    ///
    /// # Errors
    /// If trajectories of all chains are to be kept: engines write down the target chain alone.
    pub fn with_engine(mut self, maker: Arc<dyn MakeEngine>) -> Result<Self> {
        if let Some(every) = self.settings.trajectories {
            let cure = "points of all chains are kept by the cores alone";
            return Err(Error::setting("Settings.trajectories", every, cure));
        }
        self.by_engine.maker = Some(maker);
        Ok(self)
    }

    /// Why the cores do the work of an engine that was asked for, where they do. A run that was begun by them is ended
    /// by them.
    pub fn engine_replaced(&self) -> Option<&str> {
        self.by_engine.replaced.as_deref()
    }

    /// Whether sampling is not the cores' work.
    pub fn samples_by_engine(&self) -> bool {
        self.by_engine.maker.is_some() && self.by_engine.replaced.is_none()
    }

    /// Whether an engine carries out the present stage; made when it is first needed.
    pub(super) fn has_engine(&mut self) -> Result<bool> {
        if !matches!(self.progress.stage, Stage::BurnIn | Stage::Sampling) {
            return Ok(false);
        }
        let Some(maker) = self.by_engine.maker.as_ref().filter(|_| self.samples_by_engine()) else {
            return Ok(false);
        };
        if self.by_engine.engine.is_none() {
            let ladders = self.ladder.own();
            let frozen = Frozen {
                sampler: &self.ladder.sampler,
                ladders: ladders.clone(),
                fitted: self.fits.fitted.as_ref(),
            };
            let exchange = &*self.ladder.exchange;
            let (made, failed) = match maker.make(&frozen) {
                Ok(made) => (Some(made), Ok(())),
                Err(error) => (None, Err(error)),
            };
            agree(exchange, failed)?;
            // Where the cores do the work of one rank they do that of all.
            let own = match &made {
                Some(Made::Replaced(reason)) => &reason[..],
                _ => "",
            };
            let reasons = exchange.gather(own.as_bytes())?;
            match (reasons.iter().find(|reason| !reason.is_empty()), made) {
                (Some(reason), _) => {
                    self.by_engine.replaced = Some(String::from_utf8_lossy(reason).into_owned());
                }
                (None, Some(Made::Engine(engine))) => {
                    let page = Page { chains: self.ladder.chains(), dim: self.ladder.dim() };
                    self.by_engine.engine = Some((engine, Journal::new(page, ladders)));
                }
                (None, _) => {}
            }
        }
        Ok(self.by_engine.engine.is_some())
    }

    /// So many iterations after `done`, each rank its own ladders.
    pub(super) fn advance_by_engine(&mut self, done: u64, block: u64) -> Result<()> {
        let moved = self.advance_own_by_engine(done, block);
        agree(&*self.ladder.exchange, moved)
    }

    fn advance_own_by_engine(&mut self, mut done: u64, block: u64) -> Result<()> {
        let Some((engine, journal)) = &mut self.by_engine.engine else { return Ok(()) };
        let (end, own, sampler) = (done + block, self.ladder.own(), &self.ladder.sampler);
        while done < end {
            let held = self.ladder.shards.iter().filter(|shard| shard.is_of(&own));
            let ladders: Vec<&Ensemble> = held.map(|shard| &shard.ensemble).collect();
            engine.advance(done, end - done, &ladders, journal)?;
            let journal = &*journal;
            self.ladder.shards.par_iter_mut().filter(|shard| shard.is_of(&own)).try_for_each(|shard| {
                let Shard { ensemble, warmup, sampling, .. } = shard;
                let out: &mut dyn Recorder = match sampling {
                    Some(sampling) => sampling,
                    None => warmup,
                };
                journal.replay(done, sampler, ensemble, out)
            })?;
            done += journal.iterations();
            self.progress.asked.add(journal.evaluations);
            self.unsaid.target += journal.evaluations;
        }
        Ok(())
    }
}
