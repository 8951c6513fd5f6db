//! Controlled diffusions of a molecule (§5.2) in the coordinates of a [`ConditionalAffine`].
//!
//! There a conformation is (z, soft): deviations of the stiff coordinates from their means given the soft torsions,
//! divided by their growth with temperature, and the torsions themselves. With y = L⁻¹z, L Lᵀ the covariance of z, every
//! chain's y is nearly standard normal. So the drift that follows the path of temperatures is mostly the motion of these
//! coordinates themselves, and what is left of a step is a relaxation in y towards the law at its temperature:
//!
//! P_k: y + δ ∇log π(y) at k − 1,   Q_{k−1}: y + δ ∇log π(y) at k,   both with variance δ(2 − δ),
//!
//! which keeps the standard normal exactly (an exponential integrator). Soft torsions move by the affine transport's own
//! maps, once: steps beyond the first point see those of the pair's upper end, which both directions know. log π is the
//! path's density times the volume of (y, soft), and forces are pulled back through the placement of the atoms. A path
//! through a point that is no conformation (r ≤ 0, θ outside (0, π), a dihedral beyond half a turn from its mean) is
//! rejected, whichever way it is walked.

use super::conditional_affine::Whitening;
use super::refined::Rows as Block;
use super::triangle::Triangle;
use super::{ChainSamples, ConditionalAffine, Direction as Side, Ends};
use crate::kernel::Atom;
use crate::lane_math::{Lane, gather, scatter};
use crate::mean_free::GradientToCartesian;
use crate::{Molecule, MoleculeError};
use std::sync::Arc;
use sterna::accelerator::{Accelerator, Direction, Journey};
use sterna::accelerators::{Gaussian, GaussianSteps};
use sterna::call::{Call, Rows, Scratch};
use sterna::lanes::one::{ln, power};
use sterna::lanes::{WIDTH, dispatch};
use sterna::path::{AnnealingPath, Points};
use sterna::streams::{PhaseKey, Streams};
use sterna::transport::Interval;
use sterna::{Batch, Error, Result};

/// The coordinates y of a [`ControlledDiffusion`]: a conditional affine transport, and L.
#[derive(Clone, Debug)]
pub struct Standardised {
    affine: ConditionalAffine,
    factor: Triangle,
}

impl Standardised {
    /// L from the samples that the affine transport was fitted to, pooled: y then has the same covariance, the unit
    /// matrix, on all chains together.
    pub fn fit(
        affine: ConditionalAffine,
        samples: &[ChainSamples],
    ) -> std::result::Result<Self, MoleculeError> {
        let (dim, stiff) = (affine.chart().mean_free.dim(), affine.stiff());
        let (mut rows, mut whitening) = (Block::default(), Whitening::default());
        let (mut covariance, mut count) = (vec![0.0; stiff * stiff], 0.0);
        for ChainSamples { beta, points } in samples {
            for x in points.as_slice().chunks(WIDTH * dim) {
                let ends = Ends::between(affine.chart().temperatures, &[*beta], &[*beta]);
                rows.enter(affine.chart(), x);
                affine.whiten(&ends, &rows.block.internal, &mut whitening);
                for lane in (0..x.len() / dim).filter(|&lane| rows.before.0[lane].is_finite()) {
                    count += 1.0;
                    for (i, a) in whitening.deviations.iter().enumerate() {
                        for (j, b) in whitening.deviations[..=i].iter().enumerate() {
                            covariance[i * stiff + j] += a.0[lane] * b.0[lane];
                        }
                    }
                }
            }
        }
        covariance.iter_mut().for_each(|sum| *sum /= count);
        let singular = || MoleculeError::Fit("the samples do not determine the covariance".into());
        let factor = Triangle::cholesky(&covariance, stiff).ok_or_else(singular)?;
        Ok(Self { affine, factor })
    }

    /// The affine transport.
    pub fn affine(&self) -> &ConditionalAffine {
        &self.affine
    }

    /// All that was fitted, as plain numbers: that of the affine transport, then L row by row.
    pub fn parameters(&self) -> [Vec<f64>; 2] {
        [self.affine.parameters(), self.factor.values().to_vec()]
    }

    /// The coordinates with the given [`parameters`](Self::parameters), of the same molecule.
    pub fn from_parameters(
        molecule: &Molecule,
        temperatures: super::Temperatures,
        [affine, factor]: &[Vec<f64>; 2],
    ) -> std::result::Result<Self, MoleculeError> {
        let affine = ConditionalAffine::from_parameters(molecule, temperatures, affine)?;
        let factor = Triangle::new(affine.stiff(), factor.clone()).ok_or_else(super::Parameters::wrong)?;
        Ok(Self { affine, factor })
    }
}

/// K Gaussian steps in standardised internal coordinates.
pub struct ControlledDiffusion {
    coordinates: Arc<Standardised>,
    steps: usize,
    /// δ of each pair.
    relaxation: Vec<f64>,
}

/// What the journeys of one call need; kept for the next one.
#[derive(Default)]
struct Memory {
    torsions: Torsions,
    /// In y; its points keep what [`View`] needs of them.
    journey: Journey,
    of_steps: Scratch,
}

/// What lies behind points in y, kept in their scratch.
#[derive(Default)]
struct Behind {
    state: State,
    /// The same rows in the molecule's coordinates.
    outer: Points,
}

/// Soft torsions of each row at the ends of its pair.
#[derive(Default)]
struct Torsions {
    lower: Vec<f64>,
    upper: Vec<f64>,
}

/// Rows on their way.
#[derive(Default)]
struct State {
    blocks: Vec<Block>,
    whitening: Whitening,
    growth: Vec<Lane>,
    y: Vec<Lane>,
    score: Vec<Atom>,
    adjoint: Vec<Atom>,
    pulled: Vec<Atom>,
    /// Of the map of the soft torsions, from a row's start to its end.
    log_slope: Vec<f64>,
    /// Rows that have been where there is no conformation.
    lost: Vec<bool>,
}

impl ControlledDiffusion {
    /// `steps` steps a journey; `relaxation[n − 1]` is δ of pair n, in (0, 1].
    pub fn new(coordinates: Arc<Standardised>, steps: usize, relaxation: Vec<f64>) -> Result<Self> {
        let wrong = |setting, value: String, cure| Err(Error::Setting { setting, value, cure });
        if steps == 0 {
            return wrong(
                "ControlledDiffusion.steps",
                "0".into(),
                "a controlled diffusion needs at least one step",
            );
        }
        if let Some(bad) = relaxation.iter().find(|&&r| !(r > 0.0 && r <= 1.0)) {
            return wrong("ControlledDiffusion.relaxation", bad.to_string(), "it must lie in (0, 1]");
        }
        Ok(Self { coordinates, steps, relaxation })
    }

    fn enter(
        &self,
        direction: Direction,
        pairs: &[Interval],
        points: &Points,
        state: &mut State,
        memory: &mut Memory,
    ) -> Result<()> {
        let affine = &self.coordinates.affine;
        let chart = affine.chart();
        let (dim, stiff, soft, count) = (chart.mean_free.dim(), affine.stiff(), affine.soft(), points.rows());
        if points.x.dim() != dim {
            let what = "a point of the transport";
            return Err(Error::Dimension { what, found: points.x.dim(), expected: dim });
        }
        let Memory { torsions, journey, .. } = memory;
        state.resize(count, dim / 3 + 1, stiff);
        torsions.lower.resize(count * soft, 0.0);
        torsions.upper.resize(count * soft, 0.0);
        journey.points.set_size(count, stiff);
        journey.log_weight.resize(count, 0.0);
        let side = if direction == Direction::Forward { Side::Forward } else { Side::Inverse };
        let rows = points.x.as_slice().chunks(WIDTH * dim).zip(pairs.chunks(WIDTH));
        for (b, (x, pairs)) in rows.enumerate() {
            let ends = Ends::new(chart.temperatures, side, pairs);
            state.blocks[b].enter(chart, x);
            affine.whiten(&ends, &state.blocks[b].block.internal, &mut state.whitening);
            self.coordinates.factor.solve(&mut state.whitening.deviations);
            let here = b * WIDTH..b * WIDTH + pairs.len();
            let y = &mut journey.points.x.as_mut_slice()[here.start * stiff..here.end * stiff];
            scatter(&state.whitening.deviations, stiff, y);
            // The score where the journey starts, before the torsions move on.
            state.pull_back(&self.coordinates, b, &ends.from, points, &mut journey.points);
            let block = &mut state.blocks[b];
            let (from, to) = match direction {
                Direction::Forward => (&mut torsions.lower, &mut torsions.upper),
                Direction::Backward => (&mut torsions.upper, &mut torsions.lower),
            };
            for (lane, i) in here.clone().enumerate() {
                affine.read_soft(&block.block.internal, lane, &mut from[i * soft..(i + 1) * soft]);
            }
            let slope = affine.map_soft(&ends, &mut block.block.internal);
            for (lane, i) in here.enumerate() {
                affine.read_soft(&block.block.internal, lane, &mut to[i * soft..(i + 1) * soft]);
                state.log_slope[i] = ln(slope.0[lane]);
                let log_density = points.log_density[i] + block.before.0[lane];
                state.lost[i] |= !(log_density.is_finite() && state.log_slope[i].is_finite());
                journey.points.log_density[i] = log_density;
            }
        }
        Ok(())
    }
}

impl Accelerator for ControlledDiffusion {
    fn steps(&self) -> usize {
        self.steps
    }

    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let memory = scratch.get::<Memory>();
        let pairs = &call.rows.interval[..];
        // Out of the points' scratch while both are at work, and back.
        let mut state = std::mem::take(&mut memory.journey.points.scratch.get::<Behind>().state);
        self.enter(direction, pairs, &journey.points, &mut state, memory)?;
        let Memory { torsions, journey: inner, of_steps } = memory;
        let behind = inner.points.scratch.get::<Behind>();
        behind.state = state;
        std::mem::swap(&mut behind.outer, &mut journey.points);
        let view = View { coordinates: &self.coordinates, path: call.path, direction, pairs, torsions };
        let kernels = Gaussian { steps: Kernels { diffusion: self } };
        kernels.travel(direction, &call.on(&view), inner, of_steps)?;
        let Behind { state, outer } = inner.points.scratch.get();
        std::mem::swap(outer, &mut journey.points);
        for (i, log_weight) in journey.log_weight.iter_mut().enumerate() {
            let slope = direction.log_weight(0.0, state.log_slope[i]);
            *log_weight = inner_weight(direction, inner.log_weight[i] + slope, state.lost[i]);
        }
        Ok(())
    }
}

/// What is no number, or has been nowhere, is rejected.
fn inner_weight(direction: Direction, log_weight: f64, lost: bool) -> f64 {
    if lost || log_weight.is_nan() { direction.log_weight(0.0, f64::NEG_INFINITY) } else { log_weight }
}

impl State {
    fn resize(&mut self, count: usize, atoms: usize, stiff: usize) {
        let blocks = count.div_ceil(WIDTH);
        self.blocks.resize_with(self.blocks.len().max(blocks), Block::default);
        for lanes in [&mut self.growth, &mut self.y] {
            lanes.resize(stiff, Lane::default());
        }
        self.score.resize(atoms - 1, Atom::default());
        self.adjoint.resize(atoms, Atom::default());
        self.pulled.resize(atoms - 1, Atom::default());
        self.log_slope.resize(count, 0.0);
        self.lost.clear();
        self.lost.resize(count, false);
    }

    /// The score in y of block `b`, from that of its rows in the molecule's coordinates.
    fn pull_back(
        &mut self,
        coordinates: &Standardised,
        b: usize,
        temperature: &Lane,
        outer: &Points,
        inner: &mut Points,
    ) {
        let Standardised { affine, factor } = coordinates;
        let chart = affine.chart();
        let (dim, stiff) = (chart.mean_free.dim(), affine.stiff());
        let here = b * WIDTH..(b * WIDTH + WIDTH).min(outer.rows());
        gather(&outer.score.as_slice()[here.start * dim..here.end * dim], dim, self.score.as_flattened_mut());
        let (mean_free, cartesian) = (&self.score[..], &mut self.adjoint[..]);
        dispatch(GradientToCartesian { basis: &chart.mean_free, mean_free, cartesian });
        let block = &self.blocks[b].block;
        chart.internal.block_pull_back(block, &mut self.adjoint, &mut self.pulled);
        affine.growth(temperature, &mut self.growth);
        for k in 0..stiff {
            let c = affine.stiff_coordinate(k);
            let (place, part) = chart.internal.slot(c);
            for lane in 0..here.len() {
                let volume = chart.internal.volume_slope(c, block.internal[place][part].0[lane]);
                let gradient = self.pulled[place][part].0[lane] + volume;
                self.y[k].0[lane] = self.growth[k].0[lane] * gradient;
            }
        }
        factor.multiply_transposed(&mut self.y);
        scatter(&self.y, stiff, &mut inner.score.as_mut_slice()[here.start * stiff..here.end * stiff]);
        for i in here {
            let score = inner.score.row_mut(i);
            if score.iter().any(|s| !s.is_finite()) {
                self.lost[i] = true;
                score.fill(0.0);
            }
        }
    }
}

/// The path as the steps see it: points are y, given each row's torsions and orientation.
struct View<'a> {
    coordinates: &'a Standardised,
    path: &'a dyn AnnealingPath,
    direction: Direction,
    pairs: &'a [Interval],
    torsions: &'a Torsions,
}

impl View<'_> {
    fn start(&self, i: usize) -> f64 {
        if self.direction == Direction::Forward { self.pairs[i].lower } else { self.pairs[i].upper }
    }

    /// Builds the conformations of block `b` at their βs; rows that are none keep the last one.
    fn place(
        &self,
        state: &mut State,
        b: usize,
        betas: &[f64],
        y: &Batch,
        outer: &mut Points,
        log_volume: &mut [f64],
    ) {
        let Standardised { affine, factor } = self.coordinates;
        let chart = affine.chart();
        let (dim, stiff, soft) = (chart.mean_free.dim(), affine.stiff(), affine.soft());
        let here = b * WIDTH..b * WIDTH + betas.len();
        let mut from = [0.0; WIDTH];
        from.iter_mut().zip(here.clone()).for_each(|(from, i)| *from = self.start(i));
        let ends = Ends::between(chart.temperatures, &from[..betas.len()], betas);
        let State { blocks, whitening, lost, .. } = state;
        let block = &mut blocks[b];
        gather(&y.as_slice()[here.start * stiff..here.end * stiff], stiff, &mut whitening.deviations);
        factor.multiply(&mut whitening.deviations);
        for (lane, i) in here.clone().enumerate() {
            let Torsions { lower, upper } = self.torsions;
            let side = if betas[lane] == self.pairs[i].lower { lower } else { upper };
            affine.write_soft(&mut block.block.internal, lane, &side[i * soft..(i + 1) * soft]);
        }
        let log_det = affine.unwhiten(&ends, Lane([1.0; WIDTH]), &mut block.block.internal, whitening);
        block.leave(chart);
        for (lane, i) in here.enumerate() {
            let volume = log_det.0[lane] + block.block.log_jacobian.0[lane];
            if volume.is_finite() {
                let x = &mut outer.x.as_mut_slice()[i * dim..(i + 1) * dim];
                for (value, values) in x.iter_mut().zip(block.coordinates.as_flattened()) {
                    *value = values.0[lane];
                }
            } else {
                lost[i] = true;
            }
            log_volume[lane] = volume;
        }
    }
}

impl AnnealingPath for View<'_> {
    fn dim(&self) -> usize {
        self.coordinates.affine.stiff()
    }

    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        // Out of the points' scratch while they are written to, and back.
        let Behind { mut state, mut outer } = std::mem::take(points.scratch.get());
        let Points { x: y, log_density, .. } = points;
        for (b, (betas, log_volume)) in betas.chunks(WIDTH).zip(log_density.chunks_mut(WIDTH)).enumerate() {
            self.place(&mut state, b, betas, y, &mut outer, log_volume);
        }
        self.path.evaluate(betas, &mut outer)?;
        for (b, betas) in betas.chunks(WIDTH).enumerate() {
            let ends = Ends::between(self.coordinates.affine.chart().temperatures, betas, betas);
            state.pull_back(self.coordinates, b, &ends.to, &outer, points);
        }
        points.log_density.iter_mut().zip(&outer.log_density).for_each(|(all, outer)| *all += outer);
        *points.scratch.get() = Behind { state, outer };
        Ok(())
    }

    fn slopes(&self, _: &[f64], _: &Points, _: &mut [f64], _: &mut Scratch) -> Result<()> {
        unreachable!("steps ask for densities and scores alone")
    }

    fn draw_reference(&self, _: f64, _: &Streams, _: PhaseKey, _: u64, _: &[u32], _: &mut Batch) {
        unreachable!("steps ask for densities and scores alone")
    }

    fn draws_reference(&self) -> bool {
        false
    }

    fn log_z(&self) -> Option<f64> {
        None
    }

    fn evaluations(&self) -> u64 {
        self.path.evaluations()
    }
}

/// The Gaussian steps of one call.
struct Kernels<'a> {
    diffusion: &'a ControlledDiffusion,
}

impl Kernels<'_> {
    /// Pairs beyond the fitted ones relax like the last.
    fn relaxation(&self, pair: usize) -> f64 {
        let all = &self.diffusion.relaxation;
        all[(pair - 1).min(all.len() - 1)]
    }

    /// y + δ score: the same for P and Q.
    fn means(&self, rows: &Rows, points: &Points, out: &mut Batch) {
        for (i, &pair) in rows.pair.iter().enumerate() {
            let relaxation = self.relaxation(pair);
            let moved = points.x.row(i).iter().zip(points.score.row(i));
            out.row_mut(i).iter_mut().zip(moved).for_each(|(out, (y, score))| *out = y + relaxation * score);
        }
    }
}

impl GaussianSteps for Kernels<'_> {
    fn steps(&self) -> usize {
        self.diffusion.steps
    }

    /// Geometric in temperature, like the ladder itself.
    fn betas(&self, rows: &Rows, k: usize, out: &mut [f64]) {
        let temperatures = self.diffusion.coordinates.affine.chart().temperatures;
        for (out, interval) in out.iter_mut().zip(&rows.interval) {
            *out = match k {
                0 => interval.lower,
                k if k == self.diffusion.steps => interval.upper,
                k => {
                    let (hot, cold) = (temperatures.at(interval.lower), temperatures.at(interval.upper));
                    let along = k as f64 / self.diffusion.steps as f64;
                    temperatures.beta(hot * power(cold / hot, along))
                }
            };
        }
    }

    fn variances(&self, rows: &Rows, _k: usize, out: &mut [f64]) {
        for (out, &pair) in out.iter_mut().zip(&rows.pair) {
            let relaxation = self.relaxation(pair);
            *out = relaxation * (2.0 - relaxation);
        }
    }

    fn forward_means(
        &self,
        rows: &Rows,
        _k: usize,
        points: &Points,
        _control: &Batch,
        out: &mut Batch,
    ) -> Result<()> {
        self.means(rows, points, out);
        Ok(())
    }

    fn backward_means(
        &self,
        rows: &Rows,
        _k: usize,
        points: &Points,
        _control: &Batch,
        out: &mut Batch,
    ) -> Result<()> {
        self.means(rows, points, out);
        Ok(())
    }
}
