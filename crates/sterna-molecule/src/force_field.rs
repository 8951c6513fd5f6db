//! The energy of a molecule in vacuum, and its forces, for many conformations at once.

use crate::MoleculeError;
use crate::kernel::{Atom, EnergyAndForces};
use crate::lane_math::{Lane, gather, scatter};
use crate::system::System;
use crate::terms::Terms;
use std::cell::RefCell;
use sterna::lanes::{WIDTH, dispatch};

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
#[derive(Clone)]
pub struct ForceField {
    atoms: usize,
    terms: Terms,
}

impl ForceField {
    /// Compiles a system's terms.
    pub fn new(system: &System) -> Result<Self, MoleculeError> {
        system.validate()?;
        Ok(Self { atoms: system.atoms(), terms: Terms::new(system) })
    }

    /// Its torsion terms about these bonds alone; none where there are none.
    pub(crate) fn torsions_about(&self, is_wanted: impl Fn(usize, usize) -> bool) -> Option<Self> {
        let about = |atoms: &[u32; 4]| is_wanted(atoms[1] as usize, atoms[2] as usize);
        let torsions: Vec<_> =
            self.terms.torsions.iter().filter(|term| about(&term.atoms)).cloned().collect();
        let terms = Terms { torsions, ..Terms::default() };
        (!terms.torsions.is_empty()).then_some(Self { atoms: self.atoms, terms })
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
        dispatch(EnergyAndForces { terms: &self.terms, positions, forces, energy });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna::lanes::{Kernel, Lanes, on_every_instruction_set};

    #[derive(Clone)]
    struct OneBlock<'a>(&'a ForceField, &'a [Atom]);

    impl Kernel for OneBlock<'_> {
        type Output = Vec<[u64; WIDTH]>;
        #[inline(always)]
        fn run<L: Lanes>(self) -> Self::Output {
            let mut forces = vec![Atom::default(); self.1.len()];
            let mut energy = [Lane::default(); 4];
            let kernel = EnergyAndForces {
                terms: &self.0.terms,
                positions: self.1,
                forces: &mut forces,
                energy: &mut energy,
            };
            kernel.run::<L>();
            forces.as_flattened().iter().chain(&energy).map(|lane| lane.0.map(f64::to_bits)).collect()
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let system = System::from_xml(include_str!("../assets/system.xml")).unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/reference.json");
        let conformations = crate::read_positions(path, 22).unwrap();
        let force_field = ForceField::new(&system).unwrap();
        for rows in conformations.chunks(WIDTH * 66) {
            let mut positions = vec![Atom::default(); 22];
            gather(rows, 66, positions.as_flattened_mut());
            let runs = on_every_instruction_set(&OneBlock(&force_field, &positions));
            for (name, bits) in &runs {
                assert!(*bits == runs[0].1, "{name} differs from {}", runs[0].0);
            }
        }
    }
}
