//! A run among several ranks: each moves its own ladders, or rows of one, and decisions are taken from all of them.

use super::ladder::{Ladder, Shard};
use super::progress::Asked;
use super::saved::rebuild;
use super::{Run, Stage, StoppedBy};
use crate::acceleration::{Acceleration, FitReport, Fitted, Fitting};
use crate::error::BadState;
use crate::exchange::{Exchange, ladders_of};
use crate::fitted::Place;
use crate::path::AnnealingPath;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

impl Run {
    /// The same run among several ranks, which all hold it in the same state: each moves its share of the ladders, and every result
    /// has the bits of a run on one. Only the first rank has all records, and those after [`gather`](Self::gather).
    ///
    /// Whole ladders are shared out, and where ranks are more than ladders the rows of each over several ranks. Climbs and changes
    /// between rounds are made by every rank alike; transports are trained by the first.
    ///
    /// # Errors
    /// If an engine carries out the run, which moves whole ladders, and ranks are more than these.
    pub fn among(mut self, exchange: Arc<dyn Exchange>) -> Result<Self> {
        if exchange.ranks() > self.settings.ensembles && self.by_engine.maker.is_some() {
            let cure = "an engine, as a GPU, moves whole ladders; start as many ranks as ladders at most";
            return Err(Error::setting("Settings.ensembles", self.settings.ensembles, cure));
        }
        let shards = std::mem::take(&mut self.ladder.shards);
        self.ladder.shards =
            Ladder::share_out(shards, self.settings.ensembles, &*self.ladder.sampler.path, &*exchange);
        self.ladder.exchange = exchange;
        if let Some((collected, fitting)) = self.fits.under_way.take() {
            self.fits.under_way = Some((collected, self.begin_on_first(|| Ok(fitting))?));
        }
        Ok(self)
    }

    /// Brings all records to the first rank, with all that is to be saved. Every rank calls it.
    pub fn gather(&mut self) -> Result<()> {
        let exchange = self.ladder.exchange.clone();
        self.gathered(|own| exchange.gather_to_first(own))
    }

    /// Before something changes: in sampling only the first rank looks, in all other stages every rank does.
    pub(super) fn gather_for_change(&mut self) -> Result<()> {
        let exchange = self.ladder.exchange.clone();
        match self.progress.stage {
            Stage::Sampling => self.gather(),
            _ => self.gathered(|own| exchange.gather(own)),
        }
    }

    fn gathered(&mut self, gather: impl FnOnce(&[u8]) -> Result<Vec<Vec<u8>>>) -> Result<()> {
        let exchange = self.ladder.exchange.clone();
        if exchange.ranks() == 1 {
            self.unsaid = Asked::default();
            return Ok(());
        }
        let own = self.ladder.own();
        let (held, others): (Vec<Shard>, Vec<Shard>) =
            std::mem::take(&mut self.ladder.shards).into_iter().partition(|shard| shard.is_of(&own));
        let heard = gather(&written(&(std::mem::take(&mut self.unsaid), self.stood_out(), &held))?)?;
        if heard.is_empty() {
            // Only the first rank was told; what this one knew of others stays.
            let mut shards: Vec<Shard> = held.into_iter().chain(others).collect();
            shards.sort_by_key(|shard| shard.ensemble.first_copy());
            self.ladder.shards = shards;
            return Ok(());
        }
        let mut held = Some(held);
        for (rank, words) in heard.iter().enumerate() {
            if rank == exchange.rank() {
                self.ladder.shards.extend(held.take().into_iter().flatten());
                continue;
            }
            let (asked, stood_out, shards): (Asked, Vec<Place>, Vec<Shard>) = read(words)?;
            self.progress.asked.add_elsewhere(asked);
            if let Some(reference) = &self.reference {
                reference.hear(&stood_out);
            }
            self.ladder.shards.extend(shards);
        }
        Ok(())
    }

    /// Why sampling ends now, if it does: the first rank says so, which alone has all records.
    pub(super) fn ends_on_all(&mut self, done: u64) -> Result<Option<StoppedBy>> {
        let exchange = self.ladder.exchange.clone();
        if exchange.ranks() == 1 {
            return Ok(self.ends(done));
        }
        if !self.is_looked_at(done) {
            return Ok(None);
        }
        let reason = if exchange.rank() == 0 { self.ends(done) } else { None };
        read(&exchange.hear_first(&written(&reason)?)?)
    }

    /// A fit that the first rank makes, and of which the others hear.
    pub(super) fn begin_on_first(
        &self,
        begin: impl FnOnce() -> Result<Box<dyn Fitting>>,
    ) -> Result<Box<dyn Fitting>> {
        let exchange = self.ladder.exchange.clone();
        if exchange.ranks() == 1 {
            return begin();
        }
        let own = if exchange.rank() == 0 { Some(begin()) } else { None };
        let (own, told) = match own {
            Some(Ok(fitting)) => (Some(fitting), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        let mut led = Led { own, exchange, acceleration: self.acceleration.clone(), state: Led::unknown() };
        led.hear(told)?;
        Ok(Box::new(led))
    }

    /// What the first rank asked of the path since counts on all of them.
    pub(super) fn count_as_first(&mut self, before: Asked) -> Result<()> {
        let exchange = self.ladder.exchange.clone();
        if exchange.ranks() > 1 {
            let mut own = Asked::default();
            own.add_since(before, &*self.ladder.sampler.path);
            let first: Asked = read(&exchange.hear_first(&written(&own)?)?)?;
            if exchange.rank() > 0 {
                self.progress.asked.add_elsewhere(first);
            }
        }
        Ok(())
    }
}

impl Ladder {
    /// The ladders whose records this rank keeps.
    pub fn own(&self) -> Range<usize> {
        ladders_of(self.exchange.rank(), self.exchange.ranks(), self.ladders())
    }
}

impl Shard {
    /// Whether its ladders are among these.
    pub fn is_of(&self, ladders: &Range<usize>) -> bool {
        ladders.contains(&self.ensemble.first_copy())
    }
}

/// A fit that the first rank makes; the others know how far it is, and in the end what it made.
struct Led {
    /// On the first rank.
    own: Option<Box<dyn Fitting>>,
    exchange: Arc<dyn Exchange>,
    acceleration: Acceleration,
    state: Heard,
}

/// How far a fit is, or what went wrong; and what it made.
#[derive(Serialize, Deserialize)]
struct Heard {
    progress: (u64, u64),
    loss: Option<f64>,
    error: Option<String>,
    made: Option<(Vec<u8>, FitReport)>,
}

impl Led {
    fn unknown() -> Heard {
        Heard { progress: (0, 0), loss: None, error: None, made: None }
    }

    /// The first rank says how far it is, or what went wrong.
    fn hear(&mut self, error: Option<Error>) -> Result<()> {
        if let Some(own) = &self.own {
            self.state = Heard { progress: own.progress(), loss: own.loss(), ..Self::unknown() };
        }
        self.state.error = error.as_ref().map(|error| format!("{}: {error}", self.exchange.name()));
        self.state = read(&self.exchange.hear_first(&written(&self.state)?)?)?;
        match (error, &self.state.error) {
            (Some(error), _) => Err(error),
            (None, Some(text)) => Err(Error::Elsewhere(text.clone())),
            (None, None) => Ok(()),
        }
    }
}

impl Fitting for Led {
    fn progress(&self) -> (u64, u64) {
        self.state.progress
    }

    fn loss(&self) -> Option<f64> {
        self.state.loss
    }

    fn advance(&mut self, most: u64) -> Result<()> {
        let error = self.own.as_mut().and_then(|own| own.advance(most).err());
        self.hear(error)
    }

    fn finish(self: Box<Self>) -> Result<Fitted> {
        self.finished(|own| own.finish())
    }

    fn finish_on(self: Box<Self>, path: &dyn AnnealingPath) -> Result<Fitted> {
        self.finished(|own| own.finish_on(path))
    }

    fn save(&self) -> Result<Vec<u8>> {
        self.own.as_ref().map_or(Ok(Vec::new()), |own| own.save())
    }

    fn restore(&mut self, saved: &[u8]) -> Result<()> {
        let error = self.own.as_mut().and_then(|own| own.restore(saved).err());
        self.hear(error)
    }
}

impl Led {
    fn finished(mut self, finish: impl FnOnce(Box<dyn Fitting>) -> Result<Fitted>) -> Result<Fitted> {
        let made = self.own.take().map(finish);
        let (made, error) = match made {
            Some(Ok(fitted)) => (Some(fitted), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        self.state.made = made.as_ref().map(|fitted| (fitted.record.to_vec(), fitted.report.clone()));
        self.hear(error)?;
        match (made, self.state.made.take()) {
            (Some(fitted), _) => Ok(fitted),
            (None, Some((record, report))) => Ok(Fitted { report, ..rebuild(&self.acceleration, record)? }),
            (None, None) => Err(BadState::Contradiction.into()),
        }
    }
}

pub(super) fn written<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    postcard::to_allocvec(value).map_err(|e| BadState::Unreadable(e.to_string()).into())
}

pub(super) fn read<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|e| BadState::Unreadable(e.to_string()).into())
}
