//! One move of all rows of a call: search for a step, travel, decide, check the way back. Each evaluation serves the rows
//! that still need one.

use super::AutoSizes;
use crate::call::Call;
use crate::explorer::Moved;
use crate::fitted::{Mixture, Shape};
use crate::lanes::{Kernel, Lanes, dispatch, exp, ln};
use crate::path::Points;
use crate::{Batch, Result};

/// Slots of a move: momenta, the row's uniforms, the share of the longest trajectory.
pub(super) const SLOTS: usize = 3;

/// How often a base step may be halved.
const MOST_HALVINGS: i32 = 10 + AutoSizes::MOST_DOUBLINGS as i32;

/// Share of moves that have the chain's own shape where the target has parts.
const WHOLE: f64 = 0.125;

/// Halvings up to which a trajectory is as long as at the base step, in more steps.
const KEPT_LENGTH: i32 = 2;

/// Points in motion.
#[derive(Default)]
struct Particles {
    points: Points,
    momentum: Batch,
    /// Fᵀ∇log π.
    force: Batch,
    /// log π − ½|p|².
    log_joint: Vec<f64>,
}

impl Particles {
    fn set_size(&mut self, rows: usize, dim: usize) {
        self.points.set_size(rows, dim);
        self.momentum.set_size(rows, dim);
        self.force.set_size(rows, dim);
        self.log_joint.resize(rows, 0.0);
    }

    /// Force and energy of row i.
    fn weigh(&mut self, i: usize, shape: &Shape) {
        let force = self.force.row_mut(i);
        force.copy_from_slice(self.points.score.row(i));
        shape.apply_transposed(force);
        self.measure(i);
    }

    /// Energy of row i.
    fn measure(&mut self, i: usize) {
        let square: f64 = self.momentum.row(i).iter().map(|p| p * p).sum();
        self.log_joint[i] = self.points.log_density[i] - 0.5 * square;
    }

    /// Row `places[k]` becomes row k of `other`, where it is wanted.
    fn take(&mut self, places: &[usize], other: &Self, wanted: &[bool]) {
        self.points.scatter(places, &other.points, |k| wanted[k]);
        for (k, &i) in places.iter().enumerate().filter(|(k, _)| wanted[*k]) {
            self.momentum.row_mut(i).copy_from_slice(other.momentum.row(k));
            self.force.row_mut(i).copy_from_slice(other.force.row(k));
            self.log_joint[i] = other.log_joint[k];
        }
    }
}

/// p += ½ε Fᵀ∇log π.
fn kick(momentum: &mut [f64], step: f64, force: &[f64]) {
    momentum.iter_mut().zip(force).for_each(|(p, f)| *p += 0.5 * step * f);
}

/// log x and e^x with the same bits on every processor.
struct Log(f64);
impl Kernel for Log {
    type Output = f64;
    #[inline(always)]
    fn run<L: Lanes>(self) -> f64 {
        ln(L::splat(self.0)).to_array()[0]
    }
}
struct Exp(f64);
impl Kernel for Exp {
    type Output = f64;
    #[inline(always)]
    fn run<L: Lanes>(self) -> f64 {
        exp(L::splat(self.0)).to_array()[0]
    }
}

/// A row's move.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// Base step ε.
    step: f64,
    /// How often that is the chain's own step, doubled.
    doublings: i32,
    /// The part of the target whose shape it has; none for the chain's own.
    part: Option<usize>,
    /// log of the probability with which that part is chosen where the row is.
    log_choice: f64,
    /// τ; infinite where the density is zero, from where any way leads on.
    bound: f64,
    /// log u of the Metropolis test.
    log_uniform: f64,
    /// L.
    leaps: usize,
    /// log π − ½|p|² at the start.
    log_joint: f64,
    /// Halvings of the step, once they are found.
    halvings: i32,
    /// Change of energy in the last step.
    last_error: f64,
    state: State,
    /// Whether the target answered NaN or +∞.
    bad: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// No step is short enough yet.
    Searching,
    /// On its way, or at its end.
    Moving,
    /// The row stays where it was.
    Staying,
}

impl Move {
    fn step(&self) -> f64 {
        self.step * 0.5f64.powi(self.halvings)
    }

    fn leaps(&self) -> usize {
        self.leaps << self.shorter().min(KEPT_LENGTH)
    }

    /// Halvings of the chain's own step.
    fn shorter(&self) -> i32 {
        (self.halvings - self.doublings).max(0)
    }
}

/// What a call needs; kept for the next one.
#[derive(Default)]
pub(super) struct Memory {
    moves: Vec<Move>,
    start: Particles,
    here: Particles,
    tried: Tried,
    near: Near,
}

/// Which part of the target is chosen at a point.
#[derive(Default)]
struct Near {
    choices: Vec<f64>,
    standard: Vec<f64>,
}

impl Near {
    /// The part that `uniform` chooses, with log of its probability.
    fn choose(&mut self, parts: &Mixture, x: &[f64], uniform: f64) -> (usize, f64) {
        self.find(parts, x);
        let mut rest = uniform;
        let chosen = self.choices.iter().position(|share| {
            rest -= share;
            rest < 0.0
        });
        // Rounding may leave a sliver above all of them.
        let most =
            (0..self.choices.len()).reduce(|a, b| if self.choices[b] > self.choices[a] { b } else { a });
        let part = chosen.or(most).unwrap_or(0);
        (part, dispatch(Log(self.choices[part])))
    }

    /// log of the probability with which a part is chosen.
    fn log_choice(&mut self, parts: &Mixture, x: &[f64], part: usize) -> f64 {
        self.find(parts, x);
        dispatch(Log(self.choices[part]))
    }

    fn find(&mut self, parts: &Mixture, x: &[f64]) {
        self.choices.resize(parts.components().len(), 0.0);
        self.standard.resize(parts.components().len() * x.len(), 0.0);
        parts.nearness(x, &mut self.choices, &mut self.standard);
    }
}

/// A step that some of the rows try.
#[derive(Default)]
struct Tried {
    /// The rows.
    places: Vec<usize>,
    betas: Vec<f64>,
    /// Where it leads each of them.
    there: Particles,
    work: Vec<f64>,
    wanted: Vec<bool>,
}

/// What a step needs to know.
struct Leap<'a> {
    call: &'a Call<'a>,
    sizes: &'a AutoSizes,
}

impl Leap<'_> {
    fn shape(&self, i: usize, part: Option<usize>) -> &Shape {
        match (part, &self.sizes.parts) {
            (Some(part), Some(parts)) => &parts.components()[part].shape,
            _ => &self.sizes.shapes[self.call.rows.chain[i]],
        }
    }
}

impl Tried {
    /// The rows that a step is for.
    fn choose(&mut self, moves: &[Move], wanted: impl Fn(&Move) -> bool) -> bool {
        self.places.clear();
        self.places.extend((0..moves.len()).filter(|&i| wanted(&moves[i])));
        !self.places.is_empty()
    }

    /// One leapfrog step from `from`; a negative one goes back.
    fn leap(
        &mut self,
        leap: &Leap,
        from: &Particles,
        moves: &[Move],
        step: impl Fn(&Move) -> f64,
    ) -> Result<()> {
        let Self { places, betas, there, work, .. } = self;
        let dim = from.points.x.dim();
        there.set_size(places.len(), dim);
        there.points.gather_state(&from.points, places);
        betas.clear();
        betas.extend(places.iter().map(|&i| leap.call.rows.beta[i]));
        work.resize(dim, 0.0);
        for (k, &i) in places.iter().enumerate() {
            let step = step(&moves[i]);
            let momentum = there.momentum.row_mut(k);
            momentum.copy_from_slice(from.momentum.row(i));
            kick(momentum, step, from.force.row(i));
            work.copy_from_slice(momentum);
            leap.shape(i, moves[i].part).apply(work);
            there.points.x.row_mut(k).iter_mut().zip(&*work).for_each(|(x, v)| *x += step * v);
        }
        leap.call.path.evaluate(betas, &mut there.points)?;
        for (k, &i) in places.iter().enumerate() {
            there.weigh(k, leap.shape(i, moves[i].part));
            kick(there.momentum.row_mut(k), step(&moves[i]), there.force.row(k));
            there.measure(k);
        }
        Ok(())
    }

    /// Notes where the target had no answer: once a move, however many steps tried there.
    fn note_bad(&self, moves: &mut [Move], moved: &mut Moved) {
        for (k, &i) in self.places.iter().enumerate() {
            if self.there.points.is_bad(k) && !moves[i].bad {
                moves[i].bad = true;
                moved.note_bad(i, self.there.points.x.row(k));
            }
        }
    }
}

impl Memory {
    /// One move of all rows of a call.
    pub(super) fn make_move(
        &mut self,
        sizes: &AutoSizes,
        call: &Call,
        points: &mut Points,
        moved: &mut Moved,
    ) -> Result<()> {
        let leap = Leap { call, sizes };
        self.begin(&leap, points);
        self.search(&leap, moved)?;
        self.travel(&leap, moved)?;
        self.decide(&leap, moved);
        self.check_the_way_back(&leap, moved)?;
        for (moves, m) in moved.rows.iter_mut().zip(&self.moves) {
            moves.proposed += 1;
            if m.halvings > 0 && m.state == State::Moving {
                moves.acceptance += 0.5f64.powi(m.shorter());
            }
        }
        points.scatter(&call.rows.row, &self.here.points, |i| self.moves[i].state == State::Moving);
        Ok(())
    }

    /// Draws all that is random.
    fn begin(&mut self, leap: &Leap, points: &Points) {
        let (call, start, near) = (leap.call, &mut self.start, &mut self.near);
        let (rows, dim) = (call.rows.len(), points.x.dim());
        let [momenta, uniforms, length] = [(); SLOTS].map(|()| call.slots.take());
        start.set_size(rows, dim);
        self.here.set_size(rows, dim);
        start.points.gather_state(points, &call.rows.row);
        call.normals(momenta, &mut start.momentum);
        // One for all rows, so that they travel together, in this batch or in others.
        let share = call.streams.row(length, call.iteration, 0).uniform();
        self.moves.clear();
        for i in 0..rows {
            let nowhere = start.points.log_density[i] == f64::NEG_INFINITY;
            if nowhere {
                // What a score says there is of no use.
                start.points.score.row_mut(i).fill(0.0);
            }
            let mut stream = call.stream(uniforms, i);
            let [jitter, bound, accept, longer] = [(); 4].map(|()| stream.uniform());
            let chain = call.rows.chain[i];
            let parts = leap.sizes.parts.as_ref().filter(|_| stream.uniform() >= WHOLE);
            let chosen = parts.map(|parts| near.choose(parts, start.points.x.row(i), stream.uniform()));
            let part = chosen.map(|(part, _)| part);
            start.weigh(i, leap.shape(i, part));
            let doublings = if part.is_none() { leap.sizes.doublings_of(longer) } else { 0 };
            let unit = if part.is_none() { 1.0 } else { leap.sizes.widening[chain] };
            self.moves.push(Move {
                step: leap.sizes.step_size[chain] * unit * (0.8 + 0.4 * jitter) * 2f64.powi(doublings),
                doublings,
                part,
                log_choice: chosen.map_or(0.0, |(_, log_choice)| log_choice),
                bound: if nowhere { f64::INFINITY } else { -dispatch(Log(0.05 + 0.45 * bound)) },
                log_uniform: dispatch(Log(accept)),
                leaps: 1 + (share * leap.sizes.most_leaps(chain) as f64) as usize,
                log_joint: start.log_joint[i],
                halvings: 0,
                last_error: f64::NAN,
                state: State::Searching,
                bad: false,
            });
        }
    }

    /// Halves steps until one changes energy little enough; it is the first of the trajectory.
    fn search(&mut self, leap: &Leap, moved: &mut Moved) -> Result<()> {
        let Self { moves, start, here, tried, .. } = self;
        for halvings in 0..=MOST_HALVINGS {
            if !tried.choose(moves, |m| m.state == State::Searching) {
                return Ok(());
            }
            moves.iter_mut().filter(|m| m.state == State::Searching).for_each(|m| m.halvings = halvings);
            tried.leap(leap, start, moves, Move::step)?;
            tried.note_bad(moves, moved);
            tried.wanted.clear();
            for (k, &i) in tried.places.iter().enumerate() {
                let error = (tried.there.log_joint[k] - moves[i].log_joint).abs();
                let suits = error <= moves[i].bound;
                if suits {
                    (moves[i].state, moves[i].last_error) = (State::Moving, error);
                }
                tried.wanted.push(suits);
            }
            here.take(&tried.places, &tried.there, &tried.wanted);
        }
        moves.iter_mut().filter(|m| m.state == State::Searching).for_each(|m| m.state = State::Staying);
        Ok(())
    }

    /// The other steps of all trajectories.
    fn travel(&mut self, leap: &Leap, moved: &mut Moved) -> Result<()> {
        let Self { moves, here, tried, .. } = self;
        for done in 1.. {
            if !tried.choose(moves, |m| m.state == State::Moving && m.leaps() > done) {
                break;
            }
            tried.leap(leap, here, moves, Move::step)?;
            tried.note_bad(moves, moved);
            tried.wanted.clear();
            for (k, &i) in tried.places.iter().enumerate() {
                let error = (tried.there.log_joint[k] - here.log_joint[i]).abs();
                moves[i].last_error = error;
                // What has no density is not travelled through, in either direction.
                if !error.is_finite() {
                    moves[i].state = State::Staying;
                }
                tried.wanted.push(error.is_finite());
            }
            here.take(&tried.places, &tried.there, &tried.wanted);
        }
        Ok(())
    }

    /// The Metropolis test, and that of the last step, which is the first of the way back. Steps adapt to what energy alone says.
    fn decide(&mut self, leap: &Leap, moved: &mut Moved) {
        let Self { moves, here, near, .. } = self;
        for (i, m) in moves.iter_mut().enumerate().filter(|(_, m)| m.state == State::Moving) {
            let mut log_ratio = here.log_joint[i] - m.log_joint;
            let suits = m.last_error <= m.bound;
            if suits && m.halvings == 0 {
                moved.rows[i].acceptance += dispatch(Exp(log_ratio.min(0.0)));
            }
            if let (Some(part), Some(parts)) = (m.part, &leap.sizes.parts) {
                log_ratio += near.log_choice(parts, here.points.x.row(i), part) - m.log_choice;
            }
            if !suits || log_ratio.is_nan() || m.log_uniform >= log_ratio {
                m.state = State::Staying;
            }
        }
    }

    /// Longer steps must be too long at the end as well.
    fn check_the_way_back(&mut self, leap: &Leap, moved: &mut Moved) -> Result<()> {
        let Self { moves, here, tried, .. } = self;
        for longer in 1..=MOST_HALVINGS {
            let asked =
                |m: &Move| m.state == State::Moving && m.halvings >= longer && m.bound < f64::INFINITY;
            if !tried.choose(moves, asked) {
                break;
            }
            tried.leap(leap, here, moves, |m| -m.step() * 2f64.powi(longer))?;
            tried.note_bad(moves, moved);
            for (k, &i) in tried.places.iter().enumerate() {
                if (tried.there.log_joint[k] - here.log_joint[i]).abs() <= moves[i].bound {
                    moves[i].state = State::Staying;
                }
            }
        }
        Ok(())
    }
}
