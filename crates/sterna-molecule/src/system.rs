//! A molecule's force field as a list of terms, in OpenMM's units and conventions:
//! nm, kJ/mol, radian, dalton, elementary charge. U = bonds + angles + torsions + nonbonded.

use crate::MoleculeError;

/// Boltzmann's constant in kJ/(mol K), as OpenMM has it.
pub const BOLTZMANN: f64 = 0.008_314_462_618_153_24;

/// Coulomb's constant in kJ nm/(mol e²), as OpenMM has it.
pub const COULOMB: f64 = 138.935_457_644_381_98;

/// ½ k (r − r₀)².
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bond {
    /// The two atoms.
    pub atoms: [usize; 2],
    /// r₀ in nm.
    pub length: f64,
    /// k in kJ/mol/nm².
    pub stiffness: f64,
}

/// ½ k (θ − θ₀)², θ the angle at the middle atom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Angle {
    /// The three atoms, the vertex in the middle.
    pub atoms: [usize; 3],
    /// θ₀ in radian.
    pub angle: f64,
    /// k in kJ/mol/radian².
    pub stiffness: f64,
}

/// k (1 + cos(nφ − φ₀)), proper and improper alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Torsion {
    /// The four atoms of the dihedral φ.
    pub atoms: [usize; 4],
    /// n.
    pub periodicity: u32,
    /// φ₀ in radian.
    pub phase: f64,
    /// k in kJ/mol.
    pub stiffness: f64,
}

/// An atom's own nonbonded parameters; pairs combine them by Lorentz and Berthelot's rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Particle {
    /// Charge in elementary charges.
    pub charge: f64,
    /// σ in nm.
    pub sigma: f64,
    /// ε in kJ/mol.
    pub epsilon: f64,
}

/// A pair whose nonbonded parameters replace the combined ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exception {
    /// The two atoms.
    pub atoms: [usize; 2],
    /// Product of charges.
    pub charge_product: f64,
    /// σ in nm.
    pub sigma: f64,
    /// ε in kJ/mol.
    pub epsilon: f64,
}

/// All terms of a molecule in vacuum.
///
/// ```
/// use sterna_molecule::{Bond, Particle, System};
///
/// // Two atoms on a spring, nothing else.
/// let neutral = Particle { charge: 0.0, sigma: 0.3, epsilon: 0.0 };
/// let system = System {
///     masses: vec![1.0, 16.0],
///     bonds: vec![Bond { atoms: [0, 1], length: 0.1, stiffness: 4e5 }],
///     particles: vec![neutral; 2],
///     ..System::default()
/// };
/// system.validate()?;
/// assert_eq!(system.atoms(), 2);
/// # Ok::<(), sterna_molecule::MoleculeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct System {
    /// Mass of each atom in dalton.
    pub masses: Vec<f64>,
    /// Bond terms.
    pub bonds: Vec<Bond>,
    /// Angle terms.
    pub angles: Vec<Angle>,
    /// Proper and improper torsion terms.
    pub torsions: Vec<Torsion>,
    /// One per atom, or none where the system has no nonbonded force.
    pub particles: Vec<Particle>,
    /// Pairs treated apart.
    pub exceptions: Vec<Exception>,
}

impl System {
    /// Number of atoms.
    pub fn atoms(&self) -> usize {
        self.masses.len()
    }

    /// Do the terms name atoms that exist, with finite parameters?
    pub fn validate(&self) -> Result<(), MoleculeError> {
        if self.masses.is_empty() {
            return Err(MoleculeError::TooFewAtoms { found: 0, needed: 1 });
        }
        for (i, &mass) in self.masses.iter().enumerate() {
            positive(&format!("atom {i}"), "mass", mass)?;
        }
        for (i, bond) in self.bonds.iter().enumerate() {
            let term = format!("bond {i}");
            self.check_atoms(&term, &bond.atoms)?;
            finite(&term, "length", bond.length)?;
            finite(&term, "k", bond.stiffness)?;
        }
        for (i, angle) in self.angles.iter().enumerate() {
            let term = format!("angle {i}");
            self.check_atoms(&term, &angle.atoms)?;
            finite(&term, "angle", angle.angle)?;
            finite(&term, "k", angle.stiffness)?;
        }
        for (i, torsion) in self.torsions.iter().enumerate() {
            let term = format!("torsion {i}");
            self.check_atoms(&term, &torsion.atoms)?;
            let multiple = f64::from(torsion.periodicity);
            check(multiple <= 64.0, &term, "periodicity", multiple, "at most 64")?;
            finite(&term, "phase", torsion.phase)?;
            finite(&term, "k", torsion.stiffness)?;
        }
        if !self.particles.is_empty() && self.particles.len() != self.atoms() {
            return Err(MoleculeError::ParticleCount { found: self.particles.len(), atoms: self.atoms() });
        }
        for (i, particle) in self.particles.iter().enumerate() {
            let term = format!("nonbonded particle {i}");
            finite(&term, "charge", particle.charge)?;
            not_negative(&term, "sigma", particle.sigma)?;
            not_negative(&term, "epsilon", particle.epsilon)?;
        }
        for (i, exception) in self.exceptions.iter().enumerate() {
            let term = format!("nonbonded exception {i}");
            self.check_atoms(&term, &exception.atoms)?;
            finite(&term, "chargeProd", exception.charge_product)?;
            not_negative(&term, "sigma", exception.sigma)?;
            not_negative(&term, "epsilon", exception.epsilon)?;
        }
        Ok(())
    }

    fn check_atoms(&self, term: &str, atoms: &[usize]) -> Result<(), MoleculeError> {
        for (i, &atom) in atoms.iter().enumerate() {
            if atom >= self.atoms() {
                return Err(MoleculeError::AtomOutOfRange { term: term.into(), atom, atoms: self.atoms() });
            }
            if atoms[..i].contains(&atom) {
                return Err(MoleculeError::AtomTwice { term: term.into(), atom });
            }
        }
        Ok(())
    }
}

fn check(
    ok: bool,
    term: &str,
    parameter: &'static str,
    value: f64,
    expected: &'static str,
) -> Result<(), MoleculeError> {
    if ok { Ok(()) } else { Err(MoleculeError::Parameter { term: term.into(), parameter, value, expected }) }
}

fn finite(term: &str, parameter: &'static str, value: f64) -> Result<(), MoleculeError> {
    check(value.is_finite(), term, parameter, value, "finite")
}

fn positive(term: &str, parameter: &'static str, value: f64) -> Result<(), MoleculeError> {
    check(value.is_finite() && value > 0.0, term, parameter, value, "positive and finite")
}

fn not_negative(term: &str, parameter: &'static str, value: f64) -> Result<(), MoleculeError> {
    check(value.is_finite() && value >= 0.0, term, parameter, value, "finite and at least 0")
}
