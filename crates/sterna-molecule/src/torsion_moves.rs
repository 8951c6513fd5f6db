//! Metropolis moves that turn soft torsions: they cross barriers which Hamiltonian moves climb slowly.
//!
//! The volume element Π r² Π sin θ does not know the torsions, and the proposal is symmetric, so that the
//! acceptance is the ratio of densities.

use crate::bond_graph::TorsionKind;
use crate::internal::{CoordinateKind, InternalCoordinates, with_block};
use crate::kernel::Atom;
use crate::lane_math::gather;
use crate::mean_free::{MeanFree, ToCartesian, ToMeanFree};
use crate::{Molecule, MoleculeError};
use std::cell::RefCell;
use std::f64::consts::PI;
use sterna::call::{Call, Scratch};
use sterna::explorer::{Explorer, Moved};
use sterna::lanes::one::{exp, ln};
use sterna::lanes::{WIDTH, dispatch};
use sterna::path::Points;
use sterna::streams::RowStream;
use sterna::{Batch, Result};

/// Largest turn of a small move, radian.
const SMALL_TURN: f64 = 0.5;

/// Turns one soft torsion per move, half of the time by any angle, else by a small one.
///
/// ```
/// use sterna_molecule::{TorsionMoves, alanine_dipeptide};
///
/// let moves = TorsionMoves::new(&alanine_dipeptide(300.0)?, 4)?;
/// # let _ = moves;
/// # Ok::<(), sterna_molecule::MoleculeError>(())
/// ```
///
/// A [`TemperedPath`](crate::TemperedPath) brings them along: [`with_torsion_moves`](crate::TemperedPath::with_torsion_moves).
#[derive(Clone, Debug)]
pub struct TorsionMoves {
    internal: InternalCoordinates,
    mean_free: MeanFree,
    slots: Vec<(usize, usize)>,
    moves: usize,
}

impl TorsionMoves {
    /// `moves` a time (at most 32), of all soft torsions of a molecule but methyl groups, which turn easily.
    ///
    /// # Panics
    /// If `moves` is more than 32.
    pub fn new(molecule: &Molecule, moves: usize) -> std::result::Result<Self, MoleculeError> {
        let all = [TorsionKind::Phi, TorsionKind::Psi, TorsionKind::Omega, TorsionKind::Other];
        Self::of_kinds(molecule, moves, &all)
    }

    /// As [`new`](Self::new), of torsions of some kinds only.
    ///
    /// # Panics
    /// If `moves` is more than 32.
    pub fn of_kinds(
        molecule: &Molecule,
        moves: usize,
        kinds: &[TorsionKind],
    ) -> std::result::Result<Self, MoleculeError> {
        assert!(moves <= 32, "at most 32 torsion moves a time");
        let internal = InternalCoordinates::new(molecule.system())?;
        let wanted = |kind| matches!(kind, CoordinateKind::Torsion(kind) if kinds.contains(&kind));
        let coordinates = internal.coordinates().iter().enumerate();
        let slots: Vec<_> =
            coordinates.filter(|(_, c)| wanted(c.kind)).map(|(i, _)| internal.slot(i)).collect();
        if slots.is_empty() {
            return Err(MoleculeError::NoTorsion);
        }
        Ok(Self { slots, mean_free: molecule.mean_free().clone(), internal, moves })
    }

    /// Turns one torsion of each row; rows that have no internal coordinates stay.
    fn propose(&self, streams: impl Fn(usize) -> RowStream, x: &mut Batch) {
        thread_local! {
            static SCRATCH: RefCell<Vec<Atom>> = const { RefCell::new(Vec::new()) };
        }
        let dim = self.mean_free.dim();
        SCRATCH.with_borrow_mut(|coordinates| {
            coordinates.resize(dim / 3, Atom::default());
            with_block(dim / 3 + 1, |block| {
                for (b, x) in x.as_mut_slice().chunks_mut(WIDTH * dim).enumerate() {
                    gather(x, dim, coordinates.as_flattened_mut());
                    let basis = &self.mean_free;
                    dispatch(ToCartesian { basis, mean_free: coordinates, cartesian: &mut block.cartesian });
                    self.internal.block_to_internal(block);
                    for lane in 0..x.len() / dim {
                        let mut stream = streams(b * WIDTH + lane);
                        let slot = self.slots[stream.below(self.slots.len())];
                        let most = if stream.uniform() < 0.5 { PI } else { SMALL_TURN };
                        block.internal[slot.0][slot.1].0[lane] += most * (2.0 * stream.uniform() - 1.0);
                    }
                    self.internal.block_to_cartesian(block);
                    dispatch(ToMeanFree { basis, cartesian: &block.cartesian, mean_free: coordinates });
                    for (lane, row) in x.chunks_exact_mut(dim).enumerate() {
                        if block.log_jacobian.0[lane].is_finite() {
                            let values = coordinates.as_flattened().iter().map(|values| values.0[lane]);
                            row.iter_mut().zip(values).for_each(|(x, value)| *x = value);
                        }
                    }
                }
            });
        });
    }
}

impl Explorer for TorsionMoves {
    fn explore(
        &self,
        call: &Call,
        points: &mut Points,
        moved: &mut Moved,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if self.slots.is_empty() {
            return Ok(());
        }
        let rows = call.rows;
        let (proposal, uniforms) = scratch.get::<(Points, Vec<f64>)>();
        uniforms.resize(rows.len(), 0.0);
        for _ in 0..self.moves {
            let (turn, accept) = (call.slots.take(), call.slots.take());
            proposal.gather(points, &rows.row);
            self.propose(|i| call.stream(turn, i), &mut proposal.x);
            call.path.evaluate(&rows.beta, proposal)?;
            call.uniforms(accept, uniforms);
            for (i, &row) in rows.row.iter().enumerate() {
                let log_ratio = proposal.log_density[i] - points.log_density[row];
                moved.rows[i].proposed += 1;
                moved.rows[i].acceptance += if log_ratio.is_nan() { 0.0 } else { exp(log_ratio.min(0.0)) };
                // Positive where the move is accepted; never for NaN.
                uniforms[i] = log_ratio - ln(uniforms[i]);
            }
            points.scatter(&rows.row, proposal, |i| uniforms[i] > 0.0);
        }
        Ok(())
    }
}
