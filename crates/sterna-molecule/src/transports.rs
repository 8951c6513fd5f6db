//! Transports between temperatures in closed form: flows (§5.1) that act in internal coordinates, where the
//! energy is nearly a sum of stiff harmonic terms and a few soft torsions.
//!
//! - [`TemperatureScaling`]: stiff coordinates scaled about their means;
//! - [`ConditionalAffine`]: about means that follow the soft torsions, and monotone maps of some torsions;
//! - [`Refined`]: the same with a learned map of soft torsions and standardised stiff coordinates inside;
//! - [`ControlledDiffusion`]: Gaussian steps of those coordinates (§5.2), an accelerator rather than a flow.
//!
//! Each keeps the orientation of the first three atoms, so that a map q ↦ q′ of internal coordinates has
//! log |det| = log |∂q′/∂q| + log J(q′) − log J(q) on the coordinates without the centre. Rows without an image
//! (r ≤ 0, θ outside (0, π), a dihedral beyond half a turn from its mean) stay as they are, with log |det| = −∞:
//! rejected moves.

mod circle;
mod conditional_affine;
mod controlled;
mod exponential_family;
mod ordered;
mod refined;
mod regression;
mod scaling;
mod torus;
mod triangle;

pub use conditional_affine::ConditionalAffine;
pub use controlled::{ControlledDiffusion, Standardised};
pub use refined::{Densities, InnerMap, Journeys, Refined};
pub use scaling::TemperatureScaling;

use crate::internal::{InternalBlock, InternalCoordinates, with_block};
use crate::kernel::Atom;
use crate::lane_math::{Lane, gather};
use crate::mean_free::{MeanFree, ToCartesian, ToMeanFree};
use crate::{Molecule, MoleculeError};
use rayon::prelude::*;
use std::cell::RefCell;
use sterna::Batch;
use sterna::lanes::{WIDTH, dispatch};
use sterna::transport::Interval;

/// The temperatures of a tempered path, in kelvin: log π^β = −U/(kB T) with 1/T linear in β.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperatures {
    /// At β = 0.
    pub reference: f64,
    /// At β = 1.
    pub target: f64,
}

impl Temperatures {
    /// Temperature at β: 1/T = (1 − β)/T_reference + β/T_target.
    ///
    /// ```
    /// use sterna_molecule::Temperatures;
    ///
    /// let path = Temperatures { reference: 1200.0, target: 300.0 };
    /// assert!((path.at(0.0) - 1200.0).abs() < 1e-12 && (path.at(1.0) - 300.0).abs() < 1e-12);
    /// assert!((path.at(path.beta(600.0)) - 600.0).abs() < 1e-9);
    /// ```
    pub fn at(&self, beta: f64) -> f64 {
        1.0 / ((1.0 - beta) / self.reference + beta / self.target)
    }

    /// β at a temperature.
    pub fn beta(&self, temperature: f64) -> f64 {
        (1.0 / temperature - 1.0 / self.reference) / (1.0 / self.target - 1.0 / self.reference)
    }
}

/// Draws of one chain, to fit a transport to.
#[derive(Clone, Copy, Debug)]
pub struct ChainSamples<'a> {
    /// Where on the path.
    pub beta: f64,
    /// Rows in the molecule's coordinates (without the centre).
    pub points: &'a Batch,
}

/// Both kinds of coordinates of a molecule, on its path of temperatures.
#[derive(Clone, Debug)]
struct Chart {
    internal: InternalCoordinates,
    mean_free: MeanFree,
    temperatures: Temperatures,
}

/// Rows that a thread turns into internal coordinates at once.
const PART: usize = 32 * WIDTH;

thread_local! {
    /// Coordinates without the centre, of a block.
    static SCRATCH: RefCell<Vec<Atom>> = const { RefCell::new(Vec::new()) };
}

impl Chart {
    fn new(molecule: &Molecule, temperatures: Temperatures) -> Result<Self, MoleculeError> {
        for temperature in [temperatures.reference, temperatures.target] {
            if !(temperature.is_finite() && temperature > 0.0) {
                return Err(MoleculeError::Temperature(temperature));
            }
        }
        let internal = InternalCoordinates::new(molecule.system())?;
        Ok(Self { internal, mean_free: molecule.mean_free().clone(), temperatures })
    }

    /// Where the stiff coordinates are.
    fn stiff(&self) -> Vec<usize> {
        let coordinates = self.internal.coordinates();
        (0..coordinates.len()).filter(|&c| coordinates[c].kind.is_stiff()).collect()
    }

    /// Internal coordinates of all points, as rows; rows that have none are left out.
    fn internal_rows(&self, points: &Batch) -> Result<Vec<f64>, MoleculeError> {
        if points.dim() != self.mean_free.dim() {
            return Err(MoleculeError::Fit(format!(
                "samples have {} coordinates, but the molecule has {}",
                points.dim(),
                self.mean_free.dim()
            )));
        }
        let (cartesian_dim, dim) = (self.mean_free.cartesian_dim(), self.internal.dim());
        let mut rows = vec![0.0; points.rows() * dim];
        let mut log_jacobian = vec![0.0; points.rows()];
        let parts = points.as_slice().par_chunks(PART * points.dim());
        let parts = parts.zip(rows.par_chunks_mut(PART * dim)).zip(log_jacobian.par_chunks_mut(PART));
        parts.for_each(|((points, rows), log_jacobian)| {
            let mut cartesian = vec![0.0; log_jacobian.len() * cartesian_dim];
            self.mean_free.to_cartesian(points, &mut cartesian);
            self.internal.to_internal(&cartesian, rows, log_jacobian);
        });
        let mut kept = 0;
        for (row, log_jacobian) in log_jacobian.iter().enumerate() {
            if log_jacobian.is_finite() {
                rows.copy_within(row * dim..(row + 1) * dim, kept * dim);
                kept += 1;
            }
        }
        rows.truncate(kept * dim);
        Ok(rows)
    }

    /// Applies `map` to the internal coordinates of each row. It gets the temperatures' β of eight rows, from
    /// and to, and changes the block's internal coordinates; it returns log |∂q′/∂q|, or −∞.
    fn transport(
        &self,
        direction: Direction,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        mut map: impl FnMut(&Ends, &mut [Atom]) -> Lane,
    ) -> sterna::Result<()> {
        let dim = self.mean_free.dim();
        if x.dim() != dim {
            return Err(sterna::Error::Dimension {
                what: "a point of the transport",
                found: x.dim(),
                expected: dim,
            });
        }
        SCRATCH.with_borrow_mut(|coordinates| {
            coordinates.resize(dim / 3, Atom::default());
            with_block(dim / 3 + 1, |block| {
                let rows = x.as_mut_slice().chunks_mut(WIDTH * dim);
                let ends = pairs.chunks(WIDTH).zip(log_det.chunks_mut(WIDTH));
                for (x, (pairs, log_det)) in rows.zip(ends) {
                    let ends = Ends::new(self.temperatures, direction, pairs);
                    gather(x, dim, coordinates.as_flattened_mut());
                    self.enter(coordinates, block);
                    let before = block.log_jacobian.0;
                    let inner = map(&ends, &mut block.internal).0;
                    self.leave(block, coordinates);
                    for (lane, log_det) in log_det.iter_mut().enumerate() {
                        let total = inner[lane] + (block.log_jacobian.0[lane] - before[lane]);
                        *log_det = if total.is_finite() { total } else { f64::NEG_INFINITY };
                        if total.is_finite() {
                            let row = &mut x[lane * dim..(lane + 1) * dim];
                            for (value, values) in row.iter_mut().zip(coordinates.as_flattened()) {
                                *value = values.0[lane];
                            }
                        }
                    }
                }
            });
        });
        Ok(())
    }

    /// To internal coordinates.
    fn enter(&self, coordinates: &[Atom], block: &mut InternalBlock) {
        let basis = &self.mean_free;
        dispatch(ToCartesian { basis, mean_free: coordinates, cartesian: &mut block.cartesian });
        self.internal.block_to_internal(block);
    }

    /// And back.
    fn leave(&self, block: &mut InternalBlock, coordinates: &mut [Atom]) {
        self.internal.block_to_cartesian(block);
        let basis = &self.mean_free;
        dispatch(ToMeanFree { basis, cartesian: &block.cartesian, mean_free: coordinates });
    }
}

/// Which way a transport is used.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Direction {
    /// From the reference's side to the target's.
    Forward,
    /// Back.
    Inverse,
}

/// Where eight rows come from and go to.
struct Ends {
    from_beta: [f64; WIDTH],
    to_beta: [f64; WIDTH],
    from: Lane,
    to: Lane,
}

impl Ends {
    /// Rows that are missing repeat the first.
    fn new(temperatures: Temperatures, direction: Direction, pairs: &[Interval]) -> Self {
        let pair = |lane: usize| pairs.get(lane).unwrap_or(&pairs[0]);
        let lower: [f64; WIDTH] = std::array::from_fn(|lane| pair(lane).lower);
        let upper: [f64; WIDTH] = std::array::from_fn(|lane| pair(lane).upper);
        match direction {
            Direction::Forward => Self::between(temperatures, &lower, &upper),
            Direction::Inverse => Self::between(temperatures, &upper, &lower),
        }
    }

    /// From one β of each row to another. Rows that are missing repeat the first.
    fn between(temperatures: Temperatures, from: &[f64], to: &[f64]) -> Self {
        let eight = |betas: &[f64]| std::array::from_fn(|lane| *betas.get(lane).unwrap_or(&betas[0]));
        let (from_beta, to_beta): ([f64; WIDTH], [f64; WIDTH]) = (eight(from), eight(to));
        let from = Lane(from_beta.map(|beta| temperatures.at(beta)));
        let to = Lane(to_beta.map(|beta| temperatures.at(beta)));
        Self { from_beta, to_beta, from, to }
    }
}

/// Numbers that are still to be read.
struct Parameters<'a>(&'a [f64]);

impl<'a> Parameters<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [f64], MoleculeError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(Self::wrong)?;
        if taken.iter().any(|value| !value.is_finite()) {
            return Err(MoleculeError::Fit("a stored parameter is not finite; fit it again".into()));
        }
        self.0 = rest;
        Ok(taken)
    }

    fn one(&mut self) -> Result<f64, MoleculeError> {
        Ok(self.take(1)?[0])
    }

    fn rows(&mut self, rows: usize, length: usize) -> Result<Vec<Vec<f64>>, MoleculeError> {
        (0..rows).map(|_| Ok(self.take(length)?.to_vec())).collect()
    }

    fn end(&self) -> Result<(), MoleculeError> {
        if self.0.is_empty() { Ok(()) } else { Err(Self::wrong()) }
    }

    fn wrong() -> MoleculeError {
        MoleculeError::Fit("the stored parameters are not of this molecule; fit it again".into())
    }
}

/// An angle brought to [−π, π).
fn wrap(angle: f64) -> f64 {
    angle - std::f64::consts::TAU * (angle / std::f64::consts::TAU).round()
}
