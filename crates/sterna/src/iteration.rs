//! One iteration of Accelerated Parallel Tempering: Algorithm 1, line by line. Rows of many coordinates make it in blocks, so that
//! what a move needs of them stays in a core's cache.

use crate::accelerator::{Accelerator, Direction, Journey};
use crate::call::{Call, Rows, Scratch, Slots};
use crate::ensemble::Ensemble;
use crate::explorer::{Explorer, Moved, Moves};
use crate::lanes::WIDTH;
use crate::path::{AnnealingPath, Points};
use crate::streams::{Phase, Streams};
use crate::swap::{Swap, decide};
use crate::{Result, Schedule};
use std::sync::Arc;

/// Everything that stays frozen while a round runs.
///
/// ```
/// use std::sync::Arc;
/// use sterna::explorers::{Hmc, StepSizes};
/// use sterna::{Ensemble, Sampler, Schedule, Streams, Workspace, iterate};
/// use sterna::{accelerators::Identity, paths::Geometric, targets::Normal};
/// let sampler = Sampler {
///     path: Arc::new(Geometric::from_standard_normal(Normal::isotropic(2, 4.0))),
///     schedule: Schedule::uniform(3),
///     explorer: Arc::new(Hmc::with_sizes(1, 5, StepSizes::fixed(3, 2, 0.3), 0.0)),
///     accelerator: Arc::new(Identity),
///     streams: Streams::new(1),
/// };
/// let mut ensemble = Ensemble::start(&*sampler.path, &sampler.streams, &sampler.schedule, 0, 1).unwrap();
/// let mut work = Workspace::new(&ensemble);
/// for t in 1..=10 {
///     iterate(t, &mut ensemble, &sampler, &mut work, &mut ()).unwrap();
/// }
/// ```
#[derive(Clone)]
pub struct Sampler {
    /// From reference to target.
    pub path: Arc<dyn AnnealingPath>,
    /// β of each chain.
    pub schedule: Schedule,
    /// Local moves.
    pub explorer: Arc<dyn Explorer>,
    /// What carries the proposals of swaps.
    pub accelerator: Arc<dyn Accelerator>,
    /// All randomness.
    pub streams: Streams,
}

/// What an iteration did, for whoever keeps records.
pub struct Step<'a> {
    /// t.
    pub iteration: u64,
    /// The state after it.
    pub ensemble: &'a Ensemble,
    /// What was frozen.
    pub sampler: &'a Sampler,
    /// Local moves of each row that moves here; all zero for an exact draw.
    pub moves: &'a [Moves],
    /// The chain each row's local move was made on.
    pub explored_chain: &'a [usize],
    /// The swaps proposed, at least one side of which moves here.
    pub swaps: &'a [Swap],
    /// A proposal at which the target answered NaN or +∞: chain, row and point.
    pub bad_point: Option<(usize, usize, &'a [f64])>,
}

/// Keeps what it needs of an iteration.
pub trait Recorder {
    /// Called once after each iteration.
    fn record(&mut self, step: &Step) -> Result<()>;
}

/// Coordinates of rows that move at once: with those of their proposals, momenta and scores they fit into a core's cache.
const COORDINATES_AT_ONCE: usize = 1 << 13;

/// Rows that move at once, of so many: all, where the path does not take blocks.
fn rows_at_once(path: &dyn AnnealingPath, rows: usize) -> usize {
    match path.takes_blocks(rows) {
        true => (COORDINATES_AT_ONCE / path.dim().max(1) / WIDTH * WIDTH).max(WIDTH),
        false => usize::MAX,
    }
}

/// Buffers of an iteration: made once, so that the loop allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// Rows that start anew, at either end of the path.
    ends: [Rows; 2],
    /// A block of those that move locally.
    local: Rows,
    moves: LocalWork,
    row_moves: Vec<Moves>,
    explored_chain: Vec<usize>,
    fresh: Points,
    /// Both sides of a block of pairs.
    lower: Rows,
    upper: Rows,
    up: Journey,
    down: Journey,
    /// Of the accelerator.
    travelling: Scratch,
    swaps: SwapWork,
    /// Chain, row and point at which the target answered NaN or +∞.
    bad_point: Option<(usize, usize, Vec<f64>)>,
}

/// What the explorer's moves and the path's own did, and what they keep.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalWork {
    pub(crate) moved: Moved,
    exploring: Scratch,
    /// Of the path's own moves.
    aside: Moved,
    own: Scratch,
}

#[derive(Clone, Debug, Default)]
struct SwapWork {
    proposed: Vec<Swap>,
    /// Where those of the block begin that is under way.
    first: usize,
    /// The swap of each row on its way up, and of each on its way down.
    of_lower: Vec<usize>,
    of_upper: Vec<usize>,
    keys: Vec<u32>,
    uniforms: Vec<f64>,
}

impl Workspace {
    /// Buffers for an ensemble.
    pub fn new(ensemble: &Ensemble) -> Self {
        let (rows, dim) = (ensemble.points.rows(), ensemble.points.x.dim());
        Self {
            fresh: Points::zeros(rows, dim),
            up: Journey::new(rows, dim),
            down: Journey::new(rows, dim),
            ..Self::default()
        }
    }

    /// Buffers for one of its rows.
    pub(crate) fn of_a_row(ensemble: &Ensemble) -> Self {
        let dim = ensemble.points.x.dim();
        Self {
            fresh: Points::zeros(1, dim),
            up: Journey::new(1, dim),
            down: Journey::new(1, dim),
            ..Self::default()
        }
    }

    /// The swaps that were proposed.
    pub(crate) fn swaps(&mut self) -> &mut [Swap] {
        &mut self.swaps.proposed
    }
}

/// Iteration t of Algorithm 1.
pub fn iterate(
    t: u64,
    ensemble: &mut Ensemble,
    sampler: &Sampler,
    work: &mut Workspace,
    out: &mut dyn Recorder,
) -> Result<()> {
    explore(t, ensemble, sampler, work)?; // line 3
    let (mut pairs, at_once) = (pairs(t, ensemble), rows_at_once(&*sampler.path, ensemble.points.rows()));
    work.swaps.proposed.clear();
    while propose(pairs.by_ref().take(at_once), ensemble, sampler, work) {
        // Of this block of pairs:
        travel(t, ensemble, sampler, work)?; // lines 5–10
        exchange(t, ensemble, sampler, work); // lines 11–13
    }
    settle(t, ensemble, sampler, work, out)
}

/// What rows do by themselves.
pub(crate) fn set_out(
    t: u64,
    ensemble: &mut Ensemble,
    sampler: &Sampler,
    work: &mut Workspace,
) -> Result<()> {
    explore(t, ensemble, sampler, work)?;
    work.swaps.proposed.clear();
    propose(pairs(t, ensemble), ensemble, sampler, work);
    travel(t, ensemble, sampler, work)
}

/// What hangs on both partners: [`swaps`](Workspace::swaps) must know the weights of both by now.
pub(crate) fn meet(
    t: u64,
    ensemble: &mut Ensemble,
    sampler: &Sampler,
    work: &mut Workspace,
    out: &mut dyn Recorder,
) -> Result<()> {
    exchange(t, ensemble, sampler, work);
    settle(t, ensemble, sampler, work, out)
}

/// All replicas take the seats that they have won, and the iteration is over.
fn settle(
    t: u64,
    ensemble: &mut Ensemble,
    sampler: &Sampler,
    work: &mut Workspace,
    out: &mut dyn Recorder,
) -> Result<()> {
    ensemble.take_seats(t, &work.swaps.proposed);
    out.record(&Step {
        iteration: t,
        ensemble,
        sampler,
        moves: &work.row_moves,
        explored_chain: &work.explored_chain,
        swaps: &work.swaps.proposed,
        bad_point: work.bad_point.as_ref().map(|(chain, row, point)| (*chain, *row, &point[..])),
    })
}

/// Local exploration: exact draws at the ends of the path where it can, the explorer elsewhere.
fn explore(t: u64, ensemble: &mut Ensemble, sampler: &Sampler, work: &mut Workspace) -> Result<()> {
    let path = &*sampler.path;
    let (exact, legs) = (path.draws_reference(), ensemble.legs());
    let at_once = rows_at_once(path, ensemble.points.rows());
    work.ends.iter_mut().for_each(Rows::clear);
    work.local.clear();
    work.bad_point = None;
    work.row_moves.clear();
    work.row_moves.resize(ensemble.points.rows(), Moves::default());
    work.explored_chain.resize(ensemble.points.rows(), 0);
    for row in ensemble.held() {
        let chain = ensemble.chain(row);
        work.explored_chain[row] = chain;
        if legs.explores(t, chain) {
            let starts_anew = exact && legs.is_reference(chain);
            let rows = if starts_anew { &mut work.ends[usize::from(chain > 0)] } else { &mut work.local };
            rows.push_staying(row, ensemble.key(row), chain, sampler.schedule.betas()[chain]);
            if work.local.len() == at_once {
                move_block(t, ensemble, sampler, work)?;
            }
        }
    }
    move_block(t, ensemble, sampler, work)?;
    for rows in work.ends.iter().filter(|rows| !rows.is_empty()) {
        work.fresh.set_rows(rows.len());
        let (end, phase) = (rows.beta[0], Phase::Reference.into());
        path.draw_reference(end, &sampler.streams, phase, t, &rows.key, &mut work.fresh.x);
        path.evaluate(&rows.beta, &mut work.fresh)?;
        let chain = rows.chain[0];
        note_bad(&work.fresh, &rows.row, |_| chain, &mut work.row_moves, &mut work.bad_point);
        ensemble.points.scatter(&rows.row, &work.fresh, |_| true);
    }
    Ok(())
}

/// Local moves of the rows that are gathered, which are none afterwards.
fn move_block(t: u64, ensemble: &mut Ensemble, sampler: &Sampler, work: &mut Workspace) -> Result<()> {
    move_locally(t, &mut ensemble.points, sampler, &work.local, &mut work.moves)?;
    let moved = &mut work.moves.moved;
    for (&row, &moves) in work.local.row.iter().zip(&moved.rows) {
        work.row_moves[row] = moves;
    }
    if let Some((i, point)) = moved.bad_point.take() {
        let row = work.local.row[i];
        if work.bad_point.as_ref().is_none_or(|(_, first, _)| row < *first) {
            work.bad_point = Some((work.local.chain[i], row, point));
        }
    }
    work.local.clear();
    Ok(())
}

/// The explorer's moves, then those that only the path knows; step sizes adapt to the acceptances of the former.
pub(crate) fn move_locally(
    t: u64,
    points: &mut Points,
    sampler: &Sampler,
    rows: &Rows,
    work: &mut LocalWork,
) -> Result<()> {
    let LocalWork { moved, exploring, aside, own } = work;
    let mut call = Call::new(&*sampler.path, &sampler.streams, t, rows);
    moved.begin(rows.len());
    if rows.is_empty() {
        // No target is asked about nothing.
        return Ok(());
    }
    sampler.explorer.explore(&call, points, moved, exploring)?;
    if let Some(moves) = sampler.path.own_moves() {
        call.slots = Slots::of_path();
        aside.begin(rows.len());
        moves.explore(&call, points, aside, own)?;
        moved.add_bad_of(aside);
    }
    Ok(())
}

/// Counts the rows at which the target answered NaN or +∞, and keeps one of them.
fn note_bad(
    points: &Points,
    rows: &[usize],
    chain: impl Fn(usize) -> usize,
    moves: &mut [Moves],
    bad_point: &mut Option<(usize, usize, Vec<f64>)>,
) {
    for (i, &row) in rows.iter().enumerate().filter(|(i, _)| points.is_bad(*i)) {
        moves[row].bad += 1;
        if bad_point.as_ref().is_none_or(|(_, first, _)| row < *first) {
            *bad_point = Some((chain(i), row, points.x.row(i).to_vec()));
        }
    }
}

/// The pairs n ≡ t mod 2 of every ladder, but for a leg that rests: (ladder, pair). Line 4.
fn pairs(t: u64, ensemble: &Ensemble) -> impl Iterator<Item = (usize, usize)> + use<> {
    let legs = ensemble.legs();
    (0..ensemble.copies()).flat_map(move |copy| legs.pairs(t).map(move |pair| (copy, pair)))
}

/// Who would travel over these pairs; false where there is nobody.
fn propose(
    pairs: impl Iterator<Item = (usize, usize)>,
    ensemble: &Ensemble,
    sampler: &Sampler,
    work: &mut Workspace,
) -> bool {
    work.lower.clear();
    work.upper.clear();
    let SwapWork { proposed, first, of_lower, of_upper, keys, uniforms } = &mut work.swaps;
    *first = proposed.len();
    of_lower.clear();
    of_upper.clear();
    keys.clear();
    for (copy, pair) in pairs {
        let interval = sampler.schedule.interval(pair);
        let (lower, upper) = (ensemble.held_row(copy, pair - 1), ensemble.held_row(copy, pair));
        if let Some(row) = lower {
            work.lower.push_leaving(row, ensemble.key(row), pair, interval, Direction::Forward);
            of_lower.push(proposed.len());
        }
        if let Some(row) = upper {
            work.upper.push_leaving(row, ensemble.key(row), pair, interval, Direction::Backward);
            of_upper.push(proposed.len());
        }
        if lower.or(upper).is_some() {
            proposed.push(Swap { copy, pair, ..Swap::default() });
            // Both partners can derive the swap's uniform: its key is the pair, not a row.
            keys.push(ensemble.pair_key(copy, pair));
        }
    }
    uniforms.resize(keys.len(), 0.0);
    !keys.is_empty()
}

/// Forward from the lower chains, backward from the upper ones.
fn travel(t: u64, ensemble: &Ensemble, sampler: &Sampler, work: &mut Workspace) -> Result<()> {
    let ways =
        [(Direction::Forward, &work.lower, &mut work.up), (Direction::Backward, &work.upper, &mut work.down)];
    for (direction, rows, journey) in ways {
        journey.begin(&ensemble.points, &rows.row);
        if !rows.is_empty() {
            let call = Call::new(&*sampler.path, &sampler.streams, t, rows);
            sampler.accelerator.travel(direction, &call, journey, &mut work.travelling)?;
        }
    }
    let target = ensemble.legs().target();
    // A path that came out as no number weighs nothing in its own direction: the swap is refused,
    // and estimates go on without it.
    let number = |w: f64, otherwise: f64| if w.is_nan() { otherwise } else { w };
    // A replica that started where the density vanishes weighs nothing, not 0/0: it sinks to
    // chain 0, where it is drawn anew, and its partner rises; beyond the target it rises to the anchor.
    let vanishes = |row: usize| ensemble.points.log_density[row] == f64::NEG_INFINITY;
    let SwapWork { proposed, of_lower, of_upper, .. } = &mut work.swaps;
    for ((&i, &w), &row) in of_lower.iter().zip(&work.up.log_weight).zip(&work.lower.row) {
        let lost = proposed[i].pair > target && vanishes(row);
        proposed[i].log_forward = if lost { f64::INFINITY } else { number(w, f64::NEG_INFINITY) };
    }
    for ((&i, &w), &row) in of_upper.iter().zip(&work.down.log_weight).zip(&work.upper.row) {
        let lost = proposed[i].pair <= target && vanishes(row);
        proposed[i].log_backward = if lost { f64::NEG_INFINITY } else { number(w, f64::INFINITY) };
    }
    Ok(())
}

/// On acceptance each replica keeps its own end point; it takes its partner's chain when all have met.
fn exchange(t: u64, ensemble: &mut Ensemble, sampler: &Sampler, work: &mut Workspace) {
    let SwapWork { proposed, first, of_lower, of_upper, keys, uniforms } = &mut work.swaps;
    decide(&sampler.streams, t, keys, uniforms, &mut proposed[*first..]);
    ensemble.points.scatter(&work.lower.row, &work.up.points, |i| proposed[of_lower[i]].accepted);
    ensemble.points.scatter(&work.upper.row, &work.down.points, |i| proposed[of_upper[i]].accepted);
}
