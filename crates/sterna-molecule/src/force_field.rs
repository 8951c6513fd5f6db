//! The energy of a molecule in vacuum, and its forces, for many conformations at once.

use crate::MoleculeError;
use crate::kernel::{Atom, EnergyAndForces};
use crate::lanes::{Lane, Level, WIDTH, dispatch};
use crate::system::System;
use crate::terms::Terms;
use std::cell::RefCell;

/// An energy in kJ/mol, by term.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// Bonds.
    pub bond: f64,
    /// Angles.
    pub angle: f64,
    /// Proper and improper torsions.
    pub torsion: f64,
    /// Lennard-Jones and Coulomb, exceptions included.
    pub nonbonded: f64,
}

impl Energy {
    /// The sum of all terms.
    pub fn total(&self) -> f64 {
        (self.bond + self.angle) + (self.torsion + self.nonbonded)
    }
}

/// Positions, forces and energy of eight conformations.
#[derive(Default)]
pub(crate) struct Block {
    pub positions: Vec<Atom>,
    pub forces: Vec<Atom>,
    pub energy: [Lane; 4],
}

impl Block {
    /// Room for `atoms` atoms; allocates only beyond the largest number so far.
    pub(crate) fn set_atoms(&mut self, atoms: usize) {
        self.positions.resize(atoms, Atom::default());
        self.forces.resize(atoms, Atom::default());
    }

    /// The energy of one conformation.
    pub(crate) fn energy(&self, lane: usize) -> Energy {
        let [bond, angle, torsion, nonbonded] = self.energy.map(|term| term.0[lane]);
        Energy { bond, angle, torsion, nonbonded }
    }
}

thread_local! {
    static BLOCK: RefCell<Block> = RefCell::default();
}

/// Runs `f` with this thread's block, made large enough.
pub(crate) fn with_block<R>(atoms: usize, f: impl FnOnce(&mut Block) -> R) -> R {
    BLOCK.with_borrow_mut(|block| {
        block.set_atoms(atoms);
        f(block)
    })
}

/// A force field, ready to be evaluated.
///
/// Conformations are rows of 3n coordinates in nm, atom after atom. Eight are computed at a time with
/// the widest vectors this processor has; a row's bits depend neither on the others nor on the processor.
///
/// ```
/// use sterna_molecule::{Bond, ForceField, System};
///
/// let system = System {
///     masses: vec![1.0, 1.0],
///     bonds: vec![Bond { atoms: [0, 1], length: 0.1, stiffness: 1000.0 }],
///     ..System::default()
/// };
/// let force_field = ForceField::new(&system).unwrap();
/// let (mut energy, mut forces) = ([0.0], [0.0; 6]);
/// force_field.evaluate(&[0.0, 0.0, 0.0, 0.3, 0.0, 0.0], &mut energy, &mut forces);
/// assert!((energy[0] - 20.0).abs() < 1e-12);
/// assert!((forces[0] - 200.0).abs() < 1e-12 && (forces[3] + 200.0).abs() < 1e-12);
/// ```
pub struct ForceField {
    atoms: usize,
    terms: Terms,
    level: Level,
}

impl ForceField {
    /// Compiles a system's terms.
    pub fn new(system: &System) -> Result<Self, MoleculeError> {
        system.validate()?;
        Ok(Self { atoms: system.atoms(), terms: Terms::new(system), level: Level::best() })
    }

    /// Number of atoms.
    pub fn atoms(&self) -> usize {
        self.atoms
    }

    /// Writes the total energy in kJ/mol and the forces in kJ/mol/nm of each row of `positions`.
    /// Overlapping atoms give an energy that is infinite or no number.
    ///
    /// # Panics
    /// If the lengths are not those of the same number of rows.
    pub fn evaluate(&self, positions: &[f64], energy: &mut [f64], forces: &mut [f64]) {
        self.evaluate_by_term(positions, |row, by_term| energy[row] = by_term.total(), forces);
    }

    /// As [`evaluate`](Self::evaluate), handing the energy of each row by term to `energy`.
    ///
    /// # Panics
    /// If the lengths are not those of the same number of rows.
    pub fn evaluate_by_term(
        &self,
        positions: &[f64],
        mut energy: impl FnMut(usize, Energy),
        forces: &mut [f64],
    ) {
        let dim = 3 * self.atoms;
        assert!(positions.len().is_multiple_of(dim), "{} values are no rows of {dim}", positions.len());
        assert_eq!(positions.len(), forces.len(), "as many forces as positions");
        with_block(self.atoms, |block| {
            let blocks = positions.chunks(WIDTH * dim).zip(forces.chunks_mut(WIDTH * dim));
            for (b, (positions, forces)) in blocks.enumerate() {
                gather(positions, dim, block.positions.as_flattened_mut());
                self.evaluate_block(block);
                for lane in 0..positions.len() / dim {
                    energy(b * WIDTH + lane, block.energy(lane));
                }
                scatter(block.forces.as_flattened(), dim, forces);
            }
        });
    }

    /// Energy and forces at the block's positions.
    pub(crate) fn evaluate_block(&self, block: &mut Block) {
        let Block { positions, forces, energy } = block;
        dispatch(self.level, EnergyAndForces { terms: &self.terms, positions, forces, energy });
    }

    #[cfg(test)]
    pub(crate) fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

/// Up to eight rows into lanes; missing rows repeat the first.
pub(crate) fn gather(rows: &[f64], dim: usize, lanes: &mut [Lane]) {
    let count = rows.len() / dim;
    let rows: [&[f64]; WIDTH] = std::array::from_fn(|lane| {
        let row = if lane < count { lane } else { 0 };
        &rows[row * dim..(row + 1) * dim]
    });
    for (c, lane) in lanes[..dim].iter_mut().enumerate() {
        for (value, row) in lane.0.iter_mut().zip(&rows) {
            *value = row[c];
        }
    }
}

/// Lanes back into as many rows as there are.
pub(crate) fn scatter(lanes: &[Lane], dim: usize, rows: &mut [f64]) {
    for (lane, row) in rows.chunks_exact_mut(dim).enumerate() {
        for (value, values) in row.iter_mut().zip(lanes) {
            *value = values.0[lane];
        }
    }
}
