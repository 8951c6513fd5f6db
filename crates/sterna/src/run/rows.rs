//! A ladder whose rows several ranks move: each writes down what its own rows did, and the one that keeps the records reads it into
//! them, iteration by iteration, as if all rows had moved there.

use super::among::{read, written};
use crate::exchange::Exchange;
use crate::explorer::Moves;
use crate::iteration::{Recorder, Sampler, Step, Workspace, meet, set_out};
use crate::partners::{Talk, Team};
use crate::path::Points;
use crate::swap::Swap;
use crate::{Ensemble, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What records want of the state after an iteration, beside moves, swaps and log densities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Wanted {
    Nothing,
    /// The point on the target chain.
    Target,
    /// The points of all chains.
    All,
}

/// Numbers of all rows that are written down at most before they are read.
const MOST_WRITTEN: usize = 1 << 22;

/// A ladder, and what moves its rows here.
pub(super) struct Rows<'a> {
    pub team: Team,
    pub exchange: &'a Arc<dyn Exchange>,
    pub sampler: &'a Sampler,
    pub ensemble: &'a mut Ensemble,
    /// Of each row that moves here.
    pub work: &'a mut Vec<Workspace>,
}

impl Rows<'_> {
    /// So many iterations after `done`. Where it fails the others of the team hear of it.
    pub fn advance(mut self, wanted: Wanted, done: u64, block: u64, out: &mut dyn Recorder) -> Result<()> {
        let (team, exchange) = (self.team.clone(), self.exchange.clone());
        let mut farewell = Farewell { team, exchange, why: "a panic".into() };
        let outcome = self.advance_by_pieces(wanted, done, block, out);
        self.ensemble.hold_all();
        farewell.why = outcome.as_ref().err().map_or(String::new(), ToString::to_string);
        outcome
    }

    /// As many at once as may be written down.
    fn advance_by_pieces(
        &mut self,
        wanted: Wanted,
        mut done: u64,
        block: u64,
        out: &mut dyn Recorder,
    ) -> Result<()> {
        let Self { team, exchange, sampler, ensemble, .. } = self;
        let mut talk = Talk::new(team.clone(), exchange.clone(), sampler.streams, ensemble, done);
        let end = done + block;
        let of_iteration = ensemble.points.rows() * (3 * ensemble.points.x.dim() + 8);
        let most = (MOST_WRITTEN / of_iteration).max(1) as u64;
        while done < end {
            let piece = most.min(end - done);
            self.piece(&mut talk, wanted, done, piece, out)?;
            done += piece;
        }
        Ok(())
    }

    fn piece(
        &mut self,
        talk: &mut Talk,
        wanted: Wanted,
        done: u64,
        piece: u64,
        out: &mut dyn Recorder,
    ) -> Result<()> {
        let logs = self.move_rows(talk, wanted, done, done + piece)?;
        let Self { team, sampler, ensemble, .. } = self;
        if !team.keeps_records() {
            ensemble.index[0] = talk.index().clone();
            return talk.hand_in(&written(&logs)?);
        }
        let mut all = logs;
        for words in talk.collect()? {
            all.extend(read::<Vec<Log>>(&words)?);
        }
        let swaps = talk.take_decided();
        Reading::new(&all, &swaps, ensemble.points.rows()).replay(sampler, ensemble, done, piece, out)?;
        debug_assert!(ensemble.index[0] == *talk.index(), "all ranks decide alike");
        Ok(())
    }

    /// Each row by itself, the one that is furthest behind first of those that know their partner; until all rows of the ladder have
    /// come to the end. What the rows that move here did.
    fn move_rows(&mut self, talk: &mut Talk, wanted: Wanted, done: u64, end: u64) -> Result<Vec<Log>> {
        let Self { team, sampler, ensemble, work, .. } = self;
        work.resize_with(team.own_rows().len(), || Workspace::of_a_row(ensemble));
        let begin = |row| OnItsWay {
            row,
            chain: ensemble.chain(row),
            next: done + 1,
            is_out: false,
            log: Log::new(wanted, row, ensemble),
        };
        let mut rows: Vec<OnItsWay> = team.own_rows().map(begin).collect();
        while !talk.has_settled(end) {
            talk.listen(false)?;
            let mut moved = false;
            for (row, work) in rows.iter_mut().zip(&mut **work).filter(|(row, _)| row.is_out) {
                moved |= row.comes_back(talk, sampler, ensemble, work)?;
            }
            let able = rows.iter_mut().zip(&mut **work).filter(|(row, _)| !row.is_out && row.next <= end);
            if let Some((row, work)) = able.min_by_key(|(row, _)| row.next) {
                row.sets_out(talk, sampler, ensemble, work)?;
                moved = true;
            }
            if !moved && !talk.has_settled(end) {
                talk.listen(true)?;
            }
        }
        for (row, work) in rows.iter_mut().zip(&mut **work).filter(|(row, _)| row.is_out) {
            row.comes_back(talk, sampler, ensemble, work)?;
        }
        ensemble.hold_all();
        Ok(rows.into_iter().map(|row| row.log.ended(ensemble)).collect())
    }
}

/// A row between two iterations, or in the midst of one.
struct OnItsWay {
    row: usize,
    chain: usize,
    /// The iteration that it is in, or makes next.
    next: u64,
    /// Whether it waits for its partner.
    is_out: bool,
    log: Log,
}

impl OnItsWay {
    /// Does what it can do by itself, and tells what it weighs.
    fn sets_out(
        &mut self,
        talk: &mut Talk,
        sampler: &Sampler,
        ensemble: &mut Ensemble,
        work: &mut Workspace,
    ) -> Result<()> {
        ensemble.hold(self.row, self.chain);
        set_out(self.next, ensemble, sampler, work)?;
        let weight = work.swaps().first().map_or(0.0, |swap| match self.chain == swap.pair {
            true => swap.log_backward,
            false => swap.log_forward,
        });
        self.is_out = true;
        talk.tell(self.next, self.row, weight)
    }

    /// Meets its partner, if that is known by now; whether it did.
    fn comes_back(
        &mut self,
        talk: &Talk,
        sampler: &Sampler,
        ensemble: &mut Ensemble,
        work: &mut Workspace,
    ) -> Result<bool> {
        if !talk.is_met(self.next, self.chain, work.swaps().first_mut()) {
            return Ok(false);
        }
        ensemble.hold(self.row, self.chain);
        meet(self.next, ensemble, sampler, work, &mut self.log)?;
        self.chain = ensemble.chain(self.row);
        (self.next, self.is_out) = (self.next + 1, false);
        Ok(true)
    }
}

/// Tells the others of a team why this rank is no longer with them, where it has failed or panicked.
struct Farewell {
    team: Team,
    exchange: Arc<dyn Exchange>,
    why: String,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        if !self.why.is_empty() {
            let why = format!("{}: {}", self.exchange.name(), self.why);
            self.team.others().for_each(|rank| self.exchange.warn(rank, &why));
        }
    }
}

/// What a row did in some iterations.
#[derive(Serialize, Deserialize)]
struct Log {
    wanted: Wanted,
    row: usize,
    /// Of each iteration.
    did: Vec<Did>,
    /// Points that are wanted, as they came.
    points: Points,
    /// The first proposal at which the target answered NaN or +∞: iteration, chain and point.
    bad: Option<(u64, usize, Vec<f64>)>,
    /// Where it is after the last iteration.
    last: Points,
}

/// What is always written down of an iteration.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Did {
    moves: Moves,
    log_density: f64,
    log_target: f64,
}

impl Log {
    fn new(wanted: Wanted, row: usize, ensemble: &Ensemble) -> Self {
        let none = || Points::zeros(0, ensemble.points.x.dim());
        Self { wanted, row, did: Vec::new(), points: none(), bad: None, last: none() }
    }

    /// Whether the point on a chain is written down.
    fn wants(&self, chain: usize, target: usize) -> bool {
        match self.wanted {
            Wanted::Nothing => false,
            Wanted::Target => chain == target,
            Wanted::All => true,
        }
    }

    fn ended(mut self, ensemble: &Ensemble) -> Self {
        self.last.push(&ensemble.points, self.row);
        self
    }
}

impl Recorder for Log {
    fn record(&mut self, step: &Step) -> Result<()> {
        let (ensemble, points, row) = (step.ensemble, &step.ensemble.points, self.row);
        let (log_density, log_target) = (points.log_density[row], points.target.log_density[row]);
        self.did.push(Did { moves: step.moves[row], log_density, log_target });
        if self.wants(ensemble.chain(row), ensemble.legs().target()) {
            self.points.push(points, row);
        }
        if let (None, Some((chain, _, point))) = (&self.bad, step.bad_point) {
            self.bad = Some((step.iteration, chain, point.to_vec()));
        }
        Ok(())
    }
}

/// What was written down of all rows, on its way into records.
struct Reading<'a> {
    logs: &'a [Log],
    swaps: &'a [Swap],
    /// How many points of each log have been read.
    read: Vec<usize>,
    moves: Vec<Moves>,
    explored_chain: Vec<usize>,
}

impl<'a> Reading<'a> {
    fn new(logs: &'a [Log], swaps: &'a [Swap], rows: usize) -> Self {
        let (moves, explored_chain) = (vec![Moves::default(); rows], vec![0; rows]);
        Self { logs, swaps, read: vec![0; logs.len()], moves, explored_chain }
    }

    /// While it reads, of the points only those are kept up that are wanted, and all log densities; at the end all are.
    fn replay(
        mut self,
        sampler: &Sampler,
        ensemble: &mut Ensemble,
        done: u64,
        piece: u64,
        out: &mut dyn Recorder,
    ) -> Result<()> {
        let mut rest = self.swaps;
        for (number, t) in (done + 1..=done + piece).enumerate() {
            for (row, chain) in self.explored_chain.iter_mut().enumerate() {
                *chain = ensemble.chain(row);
            }
            let (swaps, later) = rest.split_at(ensemble.legs().pairs(t).count());
            rest = later;
            ensemble.take_seats(t, swaps);
            self.read_rows(number, ensemble);
            let bad = self.logs.iter().filter_map(|log| Some((log.row, log.bad.as_ref()?)));
            let bad = bad.filter(|(_, bad)| bad.0 == t).min_by_key(|(row, _)| *row);
            out.record(&Step {
                iteration: t,
                ensemble,
                sampler,
                moves: &self.moves,
                explored_chain: &self.explored_chain,
                swaps,
                bad_point: bad.map(|(row, (_, chain, point))| (*chain, row, &point[..])),
            })?;
        }
        for log in self.logs {
            ensemble.points.set(log.row, &log.last, 0);
        }
        Ok(())
    }

    /// What rows did in an iteration of the piece.
    fn read_rows(&mut self, number: usize, ensemble: &mut Ensemble) {
        let target = ensemble.legs().target();
        for (log, read) in self.logs.iter().zip(&mut self.read) {
            let (row, did) = (log.row, log.did[number]);
            if log.wants(ensemble.chain(row), target) {
                ensemble.points.set(row, &log.points, *read);
                *read += 1;
            }
            self.moves[row] = did.moves;
            ensemble.points.log_density[row] = did.log_density;
            ensemble.points.target.log_density[row] = did.log_target;
        }
    }
}
