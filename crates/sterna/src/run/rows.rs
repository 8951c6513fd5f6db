//! A ladder whose rows several ranks move: each writes down what its own rows did, and the one that keeps the records reads it into
//! them, iteration by iteration, as if all rows had moved there.

use super::among::{read, written};
use crate::exchange::Exchange;
use crate::explorer::Moves;
use crate::iteration::{Recorder, Sampler, Step, Workspace, iterate_among};
use crate::partners::{Talk, Team};
use crate::path::Points;
use crate::swap::Swap;
use crate::{Ensemble, Result};
use serde::{Deserialize, Serialize};
use std::ops::Range;
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

/// A ladder, and what moves it.
pub(super) struct Rows<'a> {
    pub team: Team,
    pub exchange: &'a Arc<dyn Exchange>,
    pub sampler: &'a Sampler,
    pub ensemble: &'a mut Ensemble,
    pub work: &'a mut Workspace,
}

impl Rows<'_> {
    /// So many iterations after `done`. Where it fails the others of the team hear of it.
    pub fn advance(mut self, wanted: Wanted, done: u64, block: u64, out: &mut dyn Recorder) -> Result<()> {
        self.work.make_ready(self.ensemble);
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
        let (end, points) = (done + block, &self.ensemble.points);
        let most = (MOST_WRITTEN / (points.rows() * (3 * points.x.dim() + 8))).max(1) as u64;
        while done < end {
            let piece = most.min(end - done);
            self.piece(wanted, done, piece, out)?;
            done += piece;
        }
        Ok(())
    }

    fn piece(&mut self, wanted: Wanted, done: u64, piece: u64, out: &mut dyn Recorder) -> Result<()> {
        let Self { team, exchange, sampler, ensemble, work } = self;
        let mut talk = Talk::new(team.clone(), exchange.clone(), sampler.streams, ensemble, done);
        let mut log = Log::new(wanted, team.own_rows(), ensemble);
        ensemble.hold(team.own_rows());
        let mut moved = done + 1..=done + piece;
        moved.try_for_each(|t| iterate_among(t, ensemble, sampler, work, &mut talk, &mut log))?;
        ensemble.hold_all();
        log.end(ensemble);
        let (index, swaps) = talk.settle(done + piece)?;
        if !team.keeps_records() {
            ensemble.index[0] = index;
            return exchange.tell(team.rank_of(0), &written(&log)?);
        }
        let mut logs = vec![log];
        for member in team.others() {
            logs.push(read(&exchange.hear(team.rank_of(member))?)?);
        }
        Reading::new(&logs, &swaps, ensemble.points.rows()).replay(sampler, ensemble, done, piece, out)?;
        debug_assert!(ensemble.index[0] == index, "all members decide alike");
        Ok(())
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
            self.team.others().for_each(|member| self.exchange.warn(self.team.rank_of(member), &why));
        }
    }
}

/// What a rank's rows did in some iterations.
#[derive(Serialize, Deserialize)]
struct Log {
    wanted: Wanted,
    rows: Range<usize>,
    /// Of each row in each iteration.
    of_rows: Vec<OfRow>,
    /// Points that are wanted, as they came.
    points: Points,
    /// The first proposal at which the target answered NaN or +∞: iteration, chain, row and point.
    bad: Option<(u64, usize, usize, Vec<f64>)>,
    /// The rows after the last iteration.
    last: Points,
}

/// What is always written down of a row.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct OfRow {
    moves: Moves,
    log_density: f64,
    log_target: f64,
}

impl Log {
    fn new(wanted: Wanted, rows: Range<usize>, ensemble: &Ensemble) -> Self {
        let none = || Points::zeros(0, ensemble.points.x.dim());
        Self { wanted, rows, of_rows: Vec::new(), points: none(), bad: None, last: none() }
    }

    /// Whether the point on a chain is written down.
    fn wants(&self, chain: usize, target: usize) -> bool {
        match self.wanted {
            Wanted::Nothing => false,
            Wanted::Target => chain == target,
            Wanted::All => true,
        }
    }

    fn end(&mut self, ensemble: &Ensemble) {
        self.rows.clone().for_each(|row| self.last.push(&ensemble.points, row));
    }
}

impl Recorder for Log {
    fn record(&mut self, step: &Step) -> Result<()> {
        let (ensemble, target) = (step.ensemble, step.ensemble.legs().target());
        let points = &ensemble.points;
        for row in self.rows.clone() {
            let (log_density, log_target) = (points.log_density[row], points.target.log_density[row]);
            self.of_rows.push(OfRow { moves: step.moves[row], log_density, log_target });
            if self.wants(ensemble.chain(row), target) {
                self.points.push(points, row);
            }
        }
        if let (None, Some((chain, row, point))) = (&self.bad, step.bad_point) {
            self.bad = Some((step.iteration, chain, row, point.to_vec()));
        }
        Ok(())
    }
}

/// What all members wrote down, on its way into records.
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
            let bad = self.logs.iter().filter_map(|log| log.bad.as_ref()).filter(|bad| bad.0 == t);
            let bad = bad.min_by_key(|(_, _, row, _)| *row);
            out.record(&Step {
                iteration: t,
                ensemble,
                sampler,
                moves: &self.moves,
                explored_chain: &self.explored_chain,
                swaps,
                bad_point: bad.map(|(_, chain, row, point)| (*chain, *row, &point[..])),
            })?;
        }
        for log in self.logs {
            log.rows.clone().enumerate().for_each(|(i, row)| ensemble.points.set(row, &log.last, i));
        }
        Ok(())
    }

    /// What rows did in an iteration of the piece.
    fn read_rows(&mut self, number: usize, ensemble: &mut Ensemble) {
        let target = ensemble.legs().target();
        for (log, read) in self.logs.iter().zip(&mut self.read) {
            for (i, row) in log.rows.clone().enumerate() {
                if log.wants(ensemble.chain(row), target) {
                    ensemble.points.set(row, &log.points, *read);
                    *read += 1;
                }
                let of_row = log.of_rows[number * log.rows.len() + i];
                self.moves[row] = of_row.moves;
                ensemble.points.log_density[row] = of_row.log_density;
                ensemble.points.target.log_density[row] = of_row.log_target;
            }
        }
    }
}
