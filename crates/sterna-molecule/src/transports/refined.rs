//! A conditional affine transport with a learned map inside: what a network adds to a closed form.
//!
//! In the coordinates of a [`ConditionalAffine`] a conformation is (z, soft): z the deviations of the stiff coordinates
//! from their means given the soft torsions, divided by their growth with temperature, and soft the torsions
//! themselves. The affine transport keeps z and moves the torsions by fitted maps. Here an [`InnerMap`] moves both, at the
//! pair's upper end: going up it follows the fitted maps, going down it comes before them.

use super::conditional_affine::Whitening;
use super::{Chart, Direction, Ends};
use crate::internal::InternalBlock;
use crate::kernel::Atom;
use crate::lane_math::{Lane, gather};
use crate::{ConditionalAffine, Molecule};
use std::sync::Arc;
use sterna::Batch;
use sterna::call::Scratch;
use sterna::lanes::WIDTH;
use sterna::lanes::one::ln;
use sterna::transport::{Flow, Interval};

/// An invertible map of the soft torsions and the standardised stiff coordinates at a pair's upper end.
///
/// Rows of `soft` have [`ConditionalAffine::soft`] numbers, rows of `z` [`ConditionalAffine::stiff`].
pub trait InnerMap: Send + Sync {
    /// Moves rows from the lower chain's law, as the affine transport brings it, towards the upper one's, and writes
    /// log |det|.
    fn forward(
        &self,
        pairs: &[Interval],
        soft: &mut [f64],
        z: &mut [f64],
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()>;

    /// Undoes it, and writes log |det| of the way back.
    fn inverse(
        &self,
        pairs: &[Interval],
        soft: &mut [f64],
        z: &mut [f64],
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()>;
}

/// A conditional affine transport and a map of its coordinates.
#[derive(Clone)]
pub struct Refined {
    affine: ConditionalAffine,
    map: Arc<dyn InnerMap>,
}

/// Eight rows on their way.
#[derive(Default)]
pub(super) struct Rows {
    pub block: InternalBlock,
    /// Without the centre.
    pub coordinates: Vec<Atom>,
    /// log |∂x/∂q| where they came in.
    pub before: Lane,
    log_det: Lane,
}

/// What a call needs; kept for the next one.
#[derive(Default)]
struct Memory {
    rows: Vec<Rows>,
    z: Vec<f64>,
    soft: Vec<f64>,
    log_det: Vec<f64>,
    whitening: Whitening,
    of_map: [Scratch; 2],
}

impl Refined {
    /// `map` inside `affine`.
    pub fn new(affine: ConditionalAffine, map: Arc<dyn InnerMap>) -> Self {
        Self { affine, map }
    }

    fn apply(
        &self,
        direction: Direction,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        memory: &mut Memory,
    ) -> sterna::Result<()> {
        let chart = self.affine.chart();
        let (dim, count) = (chart.mean_free.dim(), x.rows());
        if x.dim() != dim {
            let what = "a point of the transport";
            return Err(sterna::Error::Dimension { what, found: x.dim(), expected: dim });
        }
        let (stiff, soft) = (self.affine.stiff(), self.affine.soft());
        let Memory { rows, z, soft: torsions, log_det: inner, whitening, of_map } = memory;
        rows.resize_with(rows.len().max(count.div_ceil(WIDTH)), Rows::default);
        z.resize(count * stiff, 0.0);
        torsions.resize(count * soft, 0.0);
        inner.resize(count, 0.0);
        for (b, (x, pairs)) in x.as_slice().chunks(WIDTH * dim).zip(pairs.chunks(WIDTH)).enumerate() {
            let ends = Ends::new(chart.temperatures, direction, pairs);
            let row = &mut rows[b];
            row.enter(chart, x);
            self.affine.whiten(&ends, &row.block.internal, whitening);
            // The map acts at the upper end.
            row.log_det = match direction {
                Direction::Forward => self.affine.map_soft(&ends, &mut row.block.internal),
                Direction::Inverse => Lane([1.0; WIDTH]),
            };
            for lane in 0..pairs.len() {
                let i = b * WIDTH + lane;
                let z = z[i * stiff..(i + 1) * stiff].iter_mut();
                z.zip(&whitening.deviations).for_each(|(z, from)| *z = from.0[lane]);
                let torsions = &mut torsions[i * soft..(i + 1) * soft];
                self.affine.read_soft(&row.block.internal, lane, torsions);
            }
        }
        match direction {
            Direction::Forward => self.map.forward(pairs, torsions, z, inner, &mut of_map[0])?,
            Direction::Inverse => self.map.inverse(pairs, torsions, z, inner, &mut of_map[1])?,
        }
        let blocks = x.as_mut_slice().chunks_mut(WIDTH * dim).zip(pairs.chunks(WIDTH));
        for (b, ((x, pairs), log_det)) in blocks.zip(log_det.chunks_mut(WIDTH)).enumerate() {
            let ends = Ends::new(chart.temperatures, direction, pairs);
            let row = &mut rows[b];
            for lane in 0..pairs.len() {
                let i = b * WIDTH + lane;
                let from = z[i * stiff..(i + 1) * stiff].iter();
                whitening.deviations.iter_mut().zip(from).for_each(|(to, z)| to.0[lane] = *z);
                self.affine.write_soft(&mut row.block.internal, lane, &torsions[i * soft..(i + 1) * soft]);
            }
            if direction == Direction::Inverse {
                row.log_det = self.affine.map_soft(&ends, &mut row.block.internal);
            }
            let outer = self.affine.unwhiten(&ends, row.log_det, &mut row.block.internal, whitening);
            row.leave(chart);
            for (lane, log_det) in log_det.iter_mut().enumerate() {
                let change = row.block.log_jacobian.0[lane] - row.before.0[lane];
                let total = inner[b * WIDTH + lane] + (outer.0[lane] + change);
                *log_det = if total.is_finite() { total } else { f64::NEG_INFINITY };
                if total.is_finite() {
                    let row_x = &mut x[lane * dim..(lane + 1) * dim];
                    for (value, values) in row_x.iter_mut().zip(row.coordinates.as_flattened()) {
                        *value = values.0[lane];
                    }
                }
            }
        }
        Ok(())
    }
}

impl Rows {
    pub(super) fn enter(&mut self, chart: &Chart, x: &[f64]) {
        let dim = chart.mean_free.dim();
        self.coordinates.resize(dim / 3, Atom::default());
        self.block.cartesian.resize(dim / 3 + 1, Atom::default());
        self.block.internal.resize(dim / 3, Atom::default());
        gather(x, dim, self.coordinates.as_flattened_mut());
        chart.enter(&self.coordinates, &mut self.block);
        self.before = self.block.log_jacobian;
    }

    pub(super) fn leave(&mut self, chart: &Chart) {
        chart.leave(&mut self.block, &mut self.coordinates);
    }
}

impl Flow for Refined {
    fn forward(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        self.apply(Direction::Forward, pairs, x, log_det, scratch.get())
    }

    fn inverse(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        self.apply(Direction::Inverse, pairs, x, log_det, scratch.get())
    }
}

/// Samples of one chain in the coordinates of a transport, with all that a loss needs of their journeys.
#[derive(Clone, Debug, Default)]
pub struct Journeys {
    /// Standardised stiff coordinates where the journey starts.
    pub z: Vec<f64>,
    /// Soft torsions at the pair's upper end: going up, where the fitted maps bring them.
    pub soft: Vec<f64>,
    /// Log density of (z, soft) where the journey starts, in these torsions.
    pub start: Vec<f64>,
}

/// Log densities of rows (z, soft) and their gradients.
#[derive(Clone, Debug, Default)]
pub struct Densities {
    /// −∞ where there is no such conformation; gradients are 0 there.
    pub log_density: Vec<f64>,
    /// In z.
    pub stiff: Vec<f64>,
    /// In the soft torsions.
    pub soft: Vec<f64>,
}

impl ConditionalAffine {
    /// Journeys of a pair from samples of its lower end (forward) or of its upper end. Samples without internal
    /// coordinates are left out.
    pub fn journeys(
        &self,
        molecule: &Molecule,
        pair: Interval,
        forward: bool,
        samples: &Batch,
    ) -> sterna::Result<Journeys> {
        use sterna::{Evaluation, Target};
        let chart = self.chart();
        let direction = if forward { Direction::Forward } else { Direction::Inverse };
        let dim = chart.mean_free.dim();
        let mut out = Journeys::default();
        let mut whitening = Whitening::default();
        let mut rows = Rows::default();
        let mut now = Evaluation::zeros(samples.rows(), dim);
        molecule.evaluate(samples, &mut now)?;
        let from = if forward { pair.lower } else { pair.upper };
        let factor = chart.temperatures.target / chart.temperatures.at(from);
        let mut held = Evaluation::zeros(samples.rows(), dim);
        if molecule.evaluate_held(samples, &mut held)? {
            let share = molecule.share_held(chart.temperatures.at(from));
            now.log_density.iter_mut().zip(&held.log_density).for_each(|(now, held)| *now += share * held);
        }
        let mut torsions = vec![0.0; self.soft()];
        for (b, x) in samples.as_slice().chunks(WIDTH * dim).enumerate() {
            let count = x.len() / dim;
            let ends = Ends::new(chart.temperatures, direction, &vec![pair; count]);
            rows.enter(chart, x);
            self.whiten(&ends, &rows.block.internal, &mut whitening);
            let slope = match direction {
                Direction::Forward => self.map_soft(&ends, &mut rows.block.internal),
                Direction::Inverse => Lane([1.0; WIDTH]),
            };
            let growth = self.log_growth(chart.temperatures.at(from));
            for (lane, slope) in slope.0.iter().enumerate().take(count) {
                let density = factor * now.log_density[b * WIDTH + lane] + rows.before.0[lane] + growth;
                let start = density - ln(*slope);
                if !start.is_finite() {
                    continue;
                }
                out.z.extend(whitening.deviations.iter().map(|d| d.0[lane]));
                self.read_soft(&rows.block.internal, lane, &mut torsions);
                out.soft.extend(&torsions);
                out.start.push(start);
            }
        }
        Ok(out)
    }

    /// Log densities of (z, soft) under π^β and their gradients, for rows at their own β. Torsions are those at `from`,
    /// from where the fitted maps bring them to β: the density has these maps' determinant. Their slopes are taken by
    /// differences over a few of the maps' cells, between which they jump.
    pub fn log_density(
        &self,
        molecule: &Molecule,
        from: &[f64],
        betas: &[f64],
        soft: &[f64],
        z: &[f64],
        out: &mut Densities,
    ) {
        let chart = self.chart();
        let internal = &chart.internal;
        let (dim, stiff, torsions, rows) = (internal.dim(), self.stiff(), self.soft(), betas.len());
        let atoms = molecule.atoms();
        let mut q = vec![0.0; rows * dim];
        let mut growth = vec![0.0; rows * stiff];
        let (mut brought, mut log_slope) = (soft.to_vec(), vec![0.0; rows]);
        for (i, &beta) in betas.iter().enumerate() {
            let t = chart.temperatures.at(beta);
            let brought = &mut brought[i * torsions..(i + 1) * torsions];
            log_slope[i] = self.map_row(from[i], beta, brought);
            let q = &mut q[i * dim..(i + 1) * dim];
            let growth = &mut growth[i * stiff..(i + 1) * stiff];
            self.place(t, brought, &z[i * stiff..(i + 1) * stiff], q, growth);
        }
        let mut x = vec![0.0; rows * 3 * atoms];
        out.log_density.resize(rows, 0.0);
        internal.to_cartesian(&q, &mut x, &mut out.log_density);
        let (mut energy, mut forces) = (vec![0.0; rows], vec![0.0; x.len()]);
        let temperatures: Vec<f64> = betas.iter().map(|&beta| chart.temperatures.at(beta)).collect();
        molecule.energy_at(&temperatures, &x, &mut energy, &mut forces);
        let mut pulled = vec![0.0; dim];
        out.stiff.clear();
        out.stiff.resize(rows * stiff, 0.0);
        out.soft.clear();
        out.soft.resize(rows * torsions, 0.0);
        for (i, (&beta, &t)) in betas.iter().zip(&temperatures).enumerate() {
            let factor = 1.0 / (crate::BOLTZMANN * t);
            let total = out.log_density[i] - factor * energy[i] + self.log_growth(t) + log_slope[i];
            if !total.is_finite() {
                out.log_density[i] = f64::NEG_INFINITY;
                continue;
            }
            out.log_density[i] = total;
            let row = i * 3 * atoms..(i + 1) * 3 * atoms;
            let q = &q[i * dim..(i + 1) * dim];
            internal.pull_back(&x[row.clone()], q, &forces[row], &mut pulled);
            for (c, pulled) in pulled.iter_mut().enumerate() {
                *pulled = factor * *pulled + internal.volume_slope(c, q[c]);
            }
            for k in 0..stiff {
                out.stiff[i * stiff + k] = growth[i * stiff + k] * pulled[self.stiff_coordinate(k)];
            }
            let here = i * torsions..(i + 1) * torsions;
            let gradient = &mut out.soft[here.clone()];
            self.soft_gradient(&brought[here.clone()], &pulled, gradient);
            self.pull_back_row(from[i], beta, &soft[here], gradient);
        }
    }
}
