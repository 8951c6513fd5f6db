//! Who carries out iterations: the cores of this machine, or an engine elsewhere that makes many in a row and writes
//! down what they did. What it wrote is then read into the same records as the cores' own iterations.

use crate::acceleration::Fitted;
use crate::ensemble::Ensemble;
use crate::explorer::Moves;
use crate::index_process::even_odd;
use crate::iteration::{Recorder, Sampler, Step};
use crate::swap::Swap;
use crate::{Batch, Evaluation, Result};
use std::ops::Range;

/// What an engine is made for. All of it stays as it is.
pub struct Frozen<'a> {
    /// Path, schedule, local moves, accelerator and streams.
    pub sampler: &'a Sampler,
    /// The ladders that it moves, by their numbers among all of the run: those of this process.
    pub ladders: Range<usize>,
    /// What the last fit made, where there was one: its record knows the accelerator.
    pub fitted: Option<&'a Fitted>,
}

/// Makes an engine once all that it needs is frozen: when burn-in begins, or when a run goes on after it.
pub trait MakeEngine: Send + Sync {
    /// An engine, or why the cores are to do its work. An error stops the run.
    fn make(&self, frozen: &Frozen) -> Result<Made>;
}

/// What came of asking for an engine.
pub enum Made {
    /// It is there.
    Engine(Box<dyn Engine>),
    /// The cores do its work, for this reason.
    Replaced(String),
}

/// Carries out iterations of the ladders that it was made for, of a frozen sampler.
pub trait Engine: Send {
    /// Goes on from `ladders`, which have made `done` iterations and follow on each other, by at least one and at most
    /// `most` iterations, and writes down what they did, over what the journal held before. It remembers nothing: how a
    /// run is cut never changes a bit.
    fn advance(&mut self, done: u64, most: u64, ladders: &[&Ensemble], journal: &mut Journal) -> Result<()>;
}

/// What one ladder did in one iteration, as numbers in a row: which of them say what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Chains of the ladder.
    pub chains: usize,
    /// Length of a point.
    pub dim: usize,
}

impl Page {
    /// Acceptance probabilities of the local moves on each chain, summed.
    pub fn acceptance(self) -> Range<usize> {
        0..self.chains
    }

    /// Proposals on each chain at which the target answered NaN or +∞.
    pub fn bad(self) -> Range<usize> {
        self.chains..2 * self.chains
    }

    /// The target's log density at each replica's point after the iteration.
    pub fn log_target(self) -> Range<usize> {
        2 * self.chains..3 * self.chains
    }

    /// The k-th swap proposed: log w of the forward and of the backward path, |tanh(Δ/2)|, and 1 if it was accepted.
    pub fn swap(self, k: usize) -> Range<usize> {
        let first = 3 * self.chains + 4 * k;
        first..first + 4
    }

    /// The point on the target chain after the iteration.
    pub fn draw(self) -> Range<usize> {
        // An iteration proposes every other pair.
        let first = 3 * self.chains + 4 * (self.chains / 2);
        first..first + self.dim
    }

    /// Numbers of a page.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.draw().end
    }
}

/// What an engine writes down of some iterations.
#[derive(Clone, Debug)]
pub struct Journal {
    page: Page,
    ladders: Range<usize>,
    /// A page of each ladder, iteration after iteration.
    pub pages: Vec<f64>,
    /// Where the target answered NaN or +∞: at least the first proposal of the first iteration that had any, with the
    /// first replica of every ladder that had one.
    pub bad_points: Vec<BadProposal>,
    /// All replicas after the last iteration …
    pub x: Batch,
    /// … and the target's answers there.
    pub target: Evaluation,
    /// Local moves of a replica in an iteration; none where it is drawn anew.
    pub moves: u32,
    /// Points at which the target was evaluated.
    pub evaluations: u64,
}

/// A proposal at which the target answered NaN or +∞.
#[derive(Clone, Debug, PartialEq)]
pub struct BadProposal {
    /// In which iteration.
    pub iteration: u64,
    /// To which replica, counted over the ladders of the journal.
    pub replica: usize,
    /// Which point.
    pub point: Vec<f64>,
}

impl Journal {
    /// Empty, for these ladders.
    pub fn new(page: Page, ladders: Range<usize>) -> Self {
        let rows = ladders.len() * page.chains;
        Self {
            page,
            ladders,
            pages: Vec::new(),
            bad_points: Vec::new(),
            x: Batch::zeros(rows, page.dim),
            target: Evaluation::zeros(rows, page.dim),
            moves: 0,
            evaluations: 0,
        }
    }

    /// Which number of a page says what.
    pub fn page(&self) -> Page {
        self.page
    }

    /// Ladders that have pages.
    pub fn ladders(&self) -> usize {
        self.ladders.len()
    }

    /// Iterations written down.
    pub fn iterations(&self) -> u64 {
        (self.pages.len() / (self.ladders() * self.page.len())) as u64
    }

    /// Forgets what was written down.
    pub fn clear(&mut self) {
        self.pages.clear();
        self.bad_points.clear();
        self.evaluations = 0;
    }

    /// Reads what the ladders of `ensemble` did after `done` iterations into a record. While it reads, of the points
    /// only those on target chains and the target's log densities are kept up; at the end all are.
    pub(crate) fn replay(
        &self,
        done: u64,
        sampler: &Sampler,
        ensemble: &mut Ensemble,
        out: &mut dyn Recorder,
    ) -> Result<()> {
        let (chains, length) = (self.page.chains, self.page.len());
        let (first, copies) = (ensemble.first_copy() - self.ladders.start, ensemble.copies());
        let mut reading = Reading::new(copies * chains, sampler.path.draws_reference());
        for (t, pages) in (done + 1..).zip(self.pages.chunks_exact(self.ladders() * length)) {
            let pages = &pages[first * length..(first + copies) * length];
            reading.swaps.clear();
            for (copy, page) in pages.chunks_exact(length).enumerate() {
                reading.moves(self, copy, page, ensemble);
                reading.swaps(t, self.page, copy, page, ensemble);
            }
            let own = first * chains..(first + copies) * chains;
            let bad = self.bad_points.iter().filter(|b| b.iteration == t && own.contains(&b.replica));
            let bad = bad.min_by_key(|b| b.replica).map(|b| (b.replica - own.start, &b.point[..]));
            out.record(&Step {
                iteration: t,
                ensemble,
                sampler,
                moves: &reading.moves,
                explored_chain: &reading.explored_chain,
                swaps: &reading.swaps,
                bad_point: bad.map(|(row, point)| (reading.explored_chain[row], row, point)),
            })?;
        }
        let points = &mut ensemble.points;
        for row in 0..copies * chains {
            let from = first * chains + row;
            points.x.row_mut(row).copy_from_slice(self.x.row(from));
            points.target.score.row_mut(row).copy_from_slice(self.target.score.row(from));
            points.target.log_density[row] = self.target.log_density[from];
        }
        ensemble.reschedule(&*sampler.path, &sampler.schedule)
    }
}

/// What a [`Step`] borrows, of one iteration after the other.
struct Reading {
    exact: bool,
    moves: Vec<Moves>,
    explored_chain: Vec<usize>,
    swaps: Vec<Swap>,
}

impl Reading {
    fn new(rows: usize, exact: bool) -> Self {
        let (moves, explored_chain) = (vec![Moves::default(); rows], vec![0; rows]);
        Self { exact, moves, explored_chain, swaps: Vec::new() }
    }

    /// Local moves were made before the swaps.
    fn moves(&mut self, journal: &Journal, copy: usize, page: &[f64], ensemble: &Ensemble) {
        let (acceptance, bad) = (&page[journal.page.acceptance()], &page[journal.page.bad()]);
        for row in copy * journal.page.chains..(copy + 1) * journal.page.chains {
            let chain = ensemble.chain(row);
            let drawn = chain == 0 && self.exact;
            self.explored_chain[row] = chain;
            self.moves[row] = Moves {
                acceptance: if drawn { 0.0 } else { acceptance[chain] },
                proposed: if drawn { 0 } else { journal.moves },
                bad: bad[chain] as u32,
            };
        }
    }

    /// Swaps, and what they and the moves left behind.
    fn swaps(&mut self, t: u64, of: Page, copy: usize, page: &[f64], ensemble: &mut Ensemble) {
        let before = self.swaps.len();
        for (k, pair) in even_odd(t, of.chains - 1).enumerate() {
            let [log_forward, log_backward, rejection, accepted] = page[of.swap(k)] else {
                unreachable!("four numbers of a swap")
            };
            let accepted = accepted > 0.0;
            self.swaps.push(Swap { copy, pair, log_forward, log_backward, rejection, accepted });
        }
        let mut swaps = self.swaps[before..].iter();
        ensemble.index[copy].advance(t, |_pair| swaps.next().is_some_and(|swap| swap.accepted));
        let (rows, target) = (copy * of.chains..(copy + 1) * of.chains, ensemble.row(copy, of.chains - 1));
        let points = &mut ensemble.points;
        points.target.log_density[rows].copy_from_slice(&page[of.log_target()]);
        points.x.row_mut(target).copy_from_slice(&page[of.draw()]);
        let log_target = points.target.log_density[target];
        points.log_density[target] = if log_target < f64::INFINITY { log_target } else { f64::NEG_INFINITY };
    }
}
