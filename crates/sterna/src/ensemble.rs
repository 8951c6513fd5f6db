//! X_t: the replicas of one or several independent ladders, and who sits where.

use crate::index_process::{IndexProcess, Legs};
use crate::path::{AnnealingPath, Points};
use crate::streams::{Phase, Streams};
use crate::swap::Swap;
use crate::{Batch, Error, Result, Schedule};
use std::ops::Range;

/// The state of `copies` independent ladders advanced as one batch. Row `copy · chains + m` is
/// replica m of a copy.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Ensemble {
    first_copy: usize,
    chains: usize,
    /// Replicas, evaluated at the β of the chain each sits on.
    pub points: Points,
    /// One index process per copy.
    pub index: Vec<IndexProcess>,
    /// Of a ladder whose rows move one by one: the one that moves now.
    #[serde(skip)]
    held: Option<Held>,
}

/// A row of a ladder, and the chain that it sits on: the index process may wait for news of others.
#[derive(Clone, Copy, Debug)]
struct Held {
    row: usize,
    chain: usize,
}

impl Ensemble {
    /// Replicas drawn from the reference; those of copy c have the streams of copy `first_copy + c`,
    /// so a copy's fate does not depend on which others share its batch.
    pub fn start(
        path: &dyn AnnealingPath,
        streams: &Streams,
        schedule: &Schedule,
        first_copy: usize,
        copies: usize,
    ) -> Result<Self> {
        let chains = schedule.chains();
        let rows = copies * chains;
        let mut points = Points::zeros(rows, path.dim());
        let keys: Vec<u32> = (0..rows).map(|row| (first_copy * chains + row) as u32).collect();
        path.draw_reference(0.0, streams, Phase::Start.into(), 0, &keys, &mut points.x);
        let index = vec![IndexProcess::of(Legs::new(chains, schedule.target())); copies];
        let mut ensemble = Self { first_copy, chains, points, index, held: None };
        let betas: Vec<f64> = (0..rows).map(|row| schedule.betas()[ensemble.chain(row)]).collect();
        path.evaluate(&betas, &mut ensemble.points)?;
        Ok(ensemble)
    }

    /// Ladders of which nothing is known but their size.
    pub(crate) fn unborn(dim: usize, schedule: &Schedule, first_copy: usize, copies: usize) -> Self {
        let chains = schedule.chains();
        let index = vec![IndexProcess::of(Legs::new(chains, schedule.target())); copies];
        Self { first_copy, chains, points: Points::zeros(copies * chains, dim), index, held: None }
    }

    /// The same ladders on another schedule of any number of chains: each takes the point of the chain that lay nearest on
    /// its leg, without asking the target again. Who came from where is forgotten.
    pub(crate) fn laid_out(&self, path: &dyn AnnealingPath, from: &Schedule, to: &Schedule) -> Result<Self> {
        let away = |chain: &usize, beta: f64| (from.betas()[*chain] - beta).abs();
        let nearest = |&beta: &f64| {
            let chains = 0..from.chains();
            chains.min_by(|a, b| away(a, beta).total_cmp(&away(b, beta))).expect("a ladder has chains")
        };
        let sources: Vec<usize> = to.betas().iter().map(nearest).collect();
        let mut new = Self::unborn(path.dim(), to, self.first_copy, self.copies());
        let rows: Vec<usize> = (0..self.copies())
            .flat_map(|copy| sources.iter().map(move |&chain| self.row(copy, chain)))
            .collect();
        new.points.gather(&self.points, &rows);
        new.reschedule(path, to)?;
        Ok(new)
    }

    /// The first replica whose target answered NaN or +∞ where it starts: what is wrong, if nobody has a density.
    pub(crate) fn bad_start(&self) -> Option<Error> {
        let points = &self.points;
        let row = (0..points.rows()).find(|&row| points.is_bad(row))?;
        let (replica, value) = (self.key(row) as usize, points.target.log_density[row]);
        Some(Error::BadStart { replica, value, point: points.x.row(row).to_vec() })
    }

    /// Whether the density vanishes at every replica, but for those at a reference, where it cannot.
    pub fn is_lost(&self) -> bool {
        let vanishes = |row: usize| self.points.log_density[row] == f64::NEG_INFINITY;
        (0..self.points.rows()).all(|row| self.legs().is_reference(self.chain(row)) || vanishes(row))
    }

    /// Where the target lies, and what rests.
    pub fn legs(&self) -> Legs {
        self.index[0].legs()
    }

    /// The leg beyond the target moves in every so many iterations from now on, and a target that is alone with its reference in
    /// one of so many.
    pub fn rest(&mut self, every: u64, alone: u64) {
        self.index.iter_mut().for_each(|index| index.rest(every, alone));
    }

    /// Number of ladders.
    pub fn copies(&self) -> usize {
        self.index.len()
    }

    /// Which of all ladders of a run the first one here is.
    pub fn first_copy(&self) -> usize {
        self.first_copy
    }

    /// Chains of each ladder.
    pub fn chains(&self) -> usize {
        self.chains
    }

    /// Chain on which a row sits.
    pub fn chain(&self, row: usize) -> usize {
        match self.held {
            Some(held) if held.row == row => held.chain,
            _ => self.index[row / self.chains].chain(row % self.chains),
        }
    }

    /// Rows that move now: all of them, but for one that is [held](Self::hold).
    pub(crate) fn held(&self) -> Range<usize> {
        self.held.map_or(0..self.points.rows(), |held| held.row..held.row + 1)
    }

    /// Row that sits on a chain of a copy, where it moves now.
    pub(crate) fn held_row(&self, copy: usize, chain: usize) -> Option<usize> {
        match self.held {
            Some(held) => (held.chain == chain).then_some(held.row),
            None => Some(self.row(copy, chain)),
        }
    }

    /// Of a single ladder, only this row moves from now on, which sits on this chain: `index` stays as it is.
    pub(crate) fn hold(&mut self, row: usize, chain: usize) {
        self.held = Some(Held { row, chain });
    }

    /// All rows move again.
    pub(crate) fn hold_all(&mut self) {
        self.held = None;
    }

    /// Partners take each other's chains where their swap was accepted. The swaps are those of an iteration, ladder by ladder.
    pub(crate) fn take_seats(&mut self, t: u64, swaps: &[Swap]) {
        if let Some(held) = &mut self.held {
            let accepted = swaps.iter().filter(|swap| swap.accepted);
            accepted.for_each(|swap| held.chain = 2 * swap.pair - 1 - held.chain);
            return;
        }
        let mut swaps = swaps.iter();
        for index in &mut self.index {
            // They are in the order in which the index process asks for pairs.
            index.advance(t, |_pair| swaps.next().is_some_and(|swap| swap.accepted));
        }
    }

    /// Key of a swap's random numbers: the pair's number among all pairs of a run.
    pub(crate) fn pair_key(&self, copy: usize, pair: usize) -> u32 {
        ((self.first_copy + copy) * self.chains + pair) as u32
    }

    /// Row that sits on a chain of a copy.
    pub fn row(&self, copy: usize, chain: usize) -> usize {
        copy * self.chains + self.index[copy].replica(chain)
    }

    /// The row's number among all rows of a run: part of the key of its random numbers.
    pub fn key(&self, row: usize) -> u32 {
        (self.first_copy * self.chains + row) as u32
    }

    /// Leads replicas that nothing has moved since the start uphill. Where densities are steep local moves may be too
    /// long and journeys end nowhere, and to wait longer would not help. Not part of any kernel: this is for tuning and
    /// burn-in alone.
    pub(crate) fn free_stranded(
        &mut self,
        path: &dyn AnnealingPath,
        streams: &Streams,
        schedule: &Schedule,
    ) -> Result<()> {
        let keys: Vec<u32> = (0..self.points.rows()).map(|row| self.key(row)).collect();
        let mut start = Batch::zeros(keys.len(), path.dim());
        path.draw_reference(0.0, streams, Phase::Start.into(), 0, &keys, &mut start);
        let unmoved = |&row: &usize| self.chain(row) > 0 && self.points.x.row(row) == start.row(row);
        let stranded: Vec<usize> = (0..keys.len()).filter(unmoved).collect();
        if !stranded.is_empty() {
            let betas: Vec<f64> = stranded.iter().map(|&row| schedule.betas()[self.chain(row)]).collect();
            let mut freed = Points::zeros(stranded.len(), path.dim());
            freed.gather(&self.points, &stranded);
            climb(path, &betas, &mut freed)?;
            self.points.scatter(&stranded, &freed, |_| true);
        }
        Ok(())
    }

    /// Round trips of all ladders since the beginning.
    pub fn round_trips(&self) -> u64 {
        self.index.iter().map(IndexProcess::round_trips).sum()
    }

    /// Adds ladders that follow on these.
    pub(crate) fn append(&mut self, other: Self) {
        self.points.append(other.points);
        self.index.extend(other.index);
    }

    /// Takes away the ladders from `copies` on.
    pub(crate) fn split_off(&mut self, copies: usize) -> Self {
        Self {
            first_copy: self.first_copy + copies,
            chains: self.chains,
            points: self.points.split_off(copies * self.chains),
            index: self.index.split_off(copies),
            held: None,
        }
    }

    /// Whether all parts belong to so many ladders: a file may claim anything.
    pub(crate) fn is_sound(&self, first_copy: usize, chains: usize, dim: usize) -> bool {
        self.first_copy == first_copy
            && self.chains == chains
            && self.points.is_sound(self.index.len() * chains, dim)
            && self.index.iter().all(|index| index.is_sound(chains) && index.legs() == self.legs())
    }

    /// The same replicas on a ladder with another schedule, evaluated at their new β.
    pub fn reschedule(&mut self, path: &dyn AnnealingPath, schedule: &Schedule) -> Result<()> {
        let betas: Vec<f64> = (0..self.points.rows()).map(|row| schedule.betas()[self.chain(row)]).collect();
        path.move_to(&betas, &mut self.points)
    }
}

/// Steps of a climb: enough to find a length that suits, and to come near a mode.
const STEPS: usize = 100;

/// Steps along the score, twice as long after each that went uphill, a quarter as long after one that did not.
fn climb(path: &dyn AnnealingPath, betas: &[f64], points: &mut Points) -> Result<()> {
    let mut next = points.clone();
    let all: Vec<usize> = (0..points.rows()).collect();
    let mut length = vec![1e-3; all.len()];
    for _ in 0..STEPS {
        for (row, length) in length.iter().enumerate() {
            let score = points.score.row(row);
            let norm = score.iter().map(|s| s * s).sum::<f64>().sqrt();
            for (x, (here, score)) in next.x.row_mut(row).iter_mut().zip(points.x.row(row).iter().zip(score))
            {
                *x = here + if norm > 0.0 && norm.is_finite() { length * score / norm } else { 0.0 };
            }
        }
        path.evaluate(betas, &mut next)?;
        // Neither NaN nor +∞ is uphill.
        let uphill = |row: usize| {
            let (here, there) = (points.log_density[row], next.log_density[row]);
            there > here && there < f64::INFINITY
        };
        let uphill: Vec<bool> = all.iter().map(|&row| uphill(row)).collect();
        points.scatter(&all, &next, |row| uphill[row]);
        length.iter_mut().zip(uphill).for_each(|(length, uphill)| *length *= if uphill { 2.0 } else { 0.25 });
    }
    Ok(())
}
