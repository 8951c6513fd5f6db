//! A job on several ranks: the first one leads it and writes all files, the others do as it says.

use super::Observer;
use super::work::{Work, caught};
use crate::checkpoint;
use crate::config::{Config, Count};
use crate::error::JobError;
use crate::summary::Summary;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sterna::exchange::Exchange;
use sterna::records::Draws;

/// What all ranks do next, as the first one says.
#[derive(Serialize, Deserialize)]
pub(super) enum Next {
    /// So many iterations at most.
    Advance(u64),
    /// All records and draws go to the first rank.
    Gather,
    /// Sampling ends, for want of time.
    EndForTime,
    /// The job is over; its summary, where it has one.
    End(Option<String>),
}

/// What a rank says in turn.
#[derive(Default, Serialize, Deserialize)]
struct Reply {
    /// Somebody asked it to stop.
    stop: bool,
    /// Seconds of processors since it was last asked.
    processor_s: f64,
}

/// The ranks of a job, as each of them sees them.
pub(super) struct Ranks {
    exchange: Arc<dyn Exchange>,
    /// Whether one of the others was asked to stop.
    pub stop: bool,
    /// Seconds of processors that the others have spent and nobody has counted yet.
    pub processor_s: f64,
}

impl Ranks {
    pub fn new(exchange: Arc<dyn Exchange>) -> Self {
        Self { exchange, stop: false, processor_s: 0.0 }
    }

    /// The first rank says what is next.
    pub fn say(&mut self, next: Next) -> Result<(), JobError> {
        if self.exchange.ranks() == 1 {
            return Ok(());
        }
        let heard = self.exchange.gather(&written(&next))?;
        for words in &heard[1..] {
            let reply: Reply = read(words)?;
            self.stop |= reply.stop;
            self.processor_s += reply.processor_s;
        }
        Ok(())
    }

    /// Another rank hears it.
    fn hear(&self, reply: &Reply) -> Result<Next, JobError> {
        read(&self.exchange.gather(&written(reply))?[0])
    }
}

impl Work {
    /// All draws since they were last taken, of every rank; the run can be saved afterwards.
    pub fn take_draws(&mut self) -> Result<Vec<Draws>, JobError> {
        self.ranks.say(Next::Gather)?;
        self.run.gather()?;
        Ok(self.run.take_draws())
    }

    /// Does what the first rank says until the job is over.
    pub fn follow(mut self, observer: &mut dyn Observer) -> Result<Option<Summary>, JobError> {
        let mut counted = 0.0;
        loop {
            let spent = self.times.processor_s();
            let reply = Reply { stop: observer.should_stop(), processor_s: spent - counted };
            counted = spent;
            match self.ranks.hear(&reply)? {
                Next::Advance(block) => self.advance_by(block)?,
                Next::Gather => {
                    self.run.gather()?;
                    // The first rank has them now.
                    drop(self.run.take_draws());
                }
                Next::EndForTime => self.run.stop_for_time(),
                Next::End(None) => return Ok(None),
                Next::End(Some(text)) => return Summary::parse(&text).map(Some).map_err(JobError::Config),
            }
        }
    }
}

/// The config, once it is sure that every rank has the same; what the first rank knows of a run that goes on holds for all.
pub(super) fn agreed(mut config: Config, exchange: &dyn Exchange) -> Result<Config, JobError> {
    if exchange.ranks() == 1 {
        return Ok(config);
    }
    let text = exchange.hear_first(config.to_toml().as_bytes())?;
    if exchange.rank() > 0 {
        let first = Config::parse(&String::from_utf8_lossy(&text), &[])?;
        if config.chains.count == Count::Auto {
            config.chains.count = first.chains.count;
        }
        config.run.iterations = first.run.iterations;
        config.run.until = first.run.until;
        if let Some(what) = checkpoint::difference(&config, &first) {
            return Err(JobError::Config(format!(
                "this rank reads another config than the first one: {what}; give all of them the same file"
            )));
        }
    }
    Ok(config)
}

/// Work that fails on one rank, or panics, fails on all; none goes on before all have done it.
pub(super) fn together<T>(
    exchange: &dyn Exchange,
    work: impl FnOnce() -> Result<T, JobError>,
) -> Result<T, JobError> {
    let done = caught(|| {
        let done = work()?;
        exchange.gather(&[])?;
        Ok(done)
    });
    done.inspect_err(|error| exchange.fail(&format!("{}: {error}", exchange.name())))
}

/// The same for work that ranks that are left do again where others have died, as long as that is possible.
pub(super) fn by_all_left<T>(
    exchange: &dyn Exchange,
    mut work: impl FnMut() -> Result<T, JobError>,
) -> Result<T, JobError> {
    loop {
        let done = together(exchange, &mut work);
        if exchange.regroup()?.is_none() {
            return done;
        }
    }
}

/// Of several folders that of the first rank: it is the one that writes.
pub(super) fn agreed_folder(folder: &Path, exchange: &dyn Exchange) -> Result<PathBuf, JobError> {
    let heard = exchange.hear_first(folder.to_str().unwrap_or_default().as_bytes())?;
    Ok(match String::from_utf8_lossy(&heard) {
        said if said.is_empty() => folder.to_owned(),
        said => PathBuf::from(said.into_owned()),
    })
}

/// Whether the first rank sees a run in a folder.
pub(super) fn has_begun(folder: &Path, exchange: &dyn Exchange) -> Result<bool, JobError> {
    let begun = exchange.rank() == 0 && folder.join("config.toml").exists();
    Ok(exchange.hear_first(&[u8::from(begun)])? == [1])
}

/// The config in a run folder, which the first rank reads.
pub(super) fn read_config(folder: &Path, exchange: &dyn Exchange) -> Result<Config, JobError> {
    let path = folder.join("config.toml");
    let text = match exchange.rank() {
        0 => fs::read_to_string(&path).map_err(JobError::file("read", &path))?,
        _ => String::new(),
    };
    let text = exchange.hear_first(text.as_bytes())?;
    Config::parse(&String::from_utf8_lossy(&text), &[]).map_err(JobError::within(path))
}

fn written<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data")
}

fn read<T: for<'a> Deserialize<'a>>(words: &[u8]) -> Result<T, JobError> {
    serde_json::from_slice(words).map_err(|e| {
        JobError::Sampler(sterna::Error::Elsewhere(format!("another rank speaks otherwise: {e}")))
    })
}
