//! A molecule at a temperature as a target: log π = −U/(kB T) on coordinates without the centre of mass.

use crate::force_field::{ForceField, with_block};
use crate::kernel::Atom;
use crate::lane_math::{Lane, gather, scatter};
use crate::mean_free::{GradientToMeanFree, MeanFree, ToCartesian};
use crate::system::{BOLTZMANN, System};
use crate::{MoleculeError, Topology};
use std::cell::RefCell;
use std::path::Path;
use sterna::lanes::{WIDTH, dispatch};
use sterna::{Batch, Evaluation, Target};

/// A molecule in vacuum at a temperature.
///
/// As a [`Target`] it lives on the 3n − 3 coordinates of [`MeanFree`] (nm); Cartesian points of all atoms
/// are evaluated by [`evaluate_cartesian`](Self::evaluate_cartesian).
///
/// ```
/// use sterna::{Batch, Evaluation, Target};
///
/// let molecule = sterna_molecule::alanine_dipeptide(300.0).unwrap();
/// assert_eq!(molecule.dim(), 63);
/// let start = Batch::from_vec(63, molecule.start().to_vec());
/// let mut out = Evaluation::zeros(1, 63);
/// molecule.evaluate(&start, &mut out).unwrap();
/// assert!((out.log_density[0] - 36.59).abs() < 0.01); // the minimum: 91.27 kJ/mol over kB T
/// ```
#[derive(Clone)]
pub struct Molecule {
    system: System,
    force_field: ForceField,
    mean_free: MeanFree,
    temperature: f64,
    start: Vec<f64>,
    topology: Option<Topology>,
}

impl Molecule {
    /// A molecule at `temperature` (K), with a conformation (Cartesian, nm) to start from.
    pub fn new(system: System, positions: &[f64], temperature: f64) -> Result<Self, MoleculeError> {
        if !(temperature.is_finite() && temperature > 0.0) {
            return Err(MoleculeError::Temperature(temperature));
        }
        let force_field = ForceField::new(&system)?;
        let atoms = system.atoms();
        if atoms < 2 {
            return Err(MoleculeError::TooFewAtoms { found: atoms, needed: 2 });
        }
        if positions.len() != 3 * atoms {
            return Err(MoleculeError::PositionCount {
                what: "the start conformation".into(),
                found: positions.len(),
                unit: "coordinates",
                atoms,
                expected: 3 * atoms,
            });
        }
        let mut forces = vec![0.0; 3 * atoms];
        let mut energy = [0.0];
        force_field.evaluate(positions, &mut energy, &mut forces);
        if !energy[0].is_finite() {
            return Err(MoleculeError::Positions {
                what: "the start conformation".into(),
                problem: format!(
                    "its energy is {} kJ/mol; are atoms on top of each other, or the positions not in nm?",
                    energy[0]
                ),
            });
        }
        let mean_free = MeanFree::new(atoms);
        let mut start = vec![0.0; mean_free.dim()];
        mean_free.to_mean_free(positions, &mut start);
        Ok(Self { system, force_field, mean_free, temperature, start, topology: None })
    }

    /// From a serialized System and a file of positions (see [`read_positions`](crate::read_positions)),
    /// of which the first conformation is the start. A PDB file also names the atoms.
    pub fn read(
        system: impl AsRef<Path>,
        positions: impl AsRef<Path>,
        temperature: f64,
    ) -> Result<Self, MoleculeError> {
        let (system, positions) = (system.as_ref(), positions.as_ref());
        let system = System::read_xml(system).map_err(|error| error.in_file(system))?;
        let dim = 3 * system.atoms();
        let found =
            crate::read_positions(positions, system.atoms()).map_err(|error| error.in_file(positions))?;
        let molecule = Self::new(system, &found[..dim], temperature)?;
        if positions.extension().is_some_and(|e| e.eq_ignore_ascii_case("pdb")) {
            let (topology, _) = Topology::read_pdb(positions)?;
            return Ok(molecule.with_topology(topology));
        }
        Ok(molecule)
    }

    /// The same molecule with its atoms named.
    pub fn with_topology(mut self, topology: Topology) -> Self {
        self.topology = Some(topology);
        self
    }

    /// The same molecule in coordinates weighted by √mass (nm √dalton): moves with unit masses are then moves
    /// with the atoms' masses.
    pub fn mass_weighted(mut self) -> Self {
        let mut cartesian = vec![0.0; self.mean_free.cartesian_dim()];
        self.mean_free.to_cartesian(&self.start, &mut cartesian);
        self.mean_free = MeanFree::with_masses(&self.system.masses);
        self.mean_free.to_mean_free(&cartesian, &mut self.start);
        self
    }

    /// The same molecule at another temperature (K).
    pub fn at_temperature(mut self, temperature: f64) -> Result<Self, MoleculeError> {
        if !(temperature.is_finite() && temperature > 0.0) {
            return Err(MoleculeError::Temperature(temperature));
        }
        self.temperature = temperature;
        Ok(self)
    }

    /// Number of atoms.
    pub fn atoms(&self) -> usize {
        self.system.atoms()
    }

    /// The terms of the force field.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// The force field.
    pub fn force_field(&self) -> &ForceField {
        &self.force_field
    }

    /// Names of the atoms, where they are known.
    pub fn topology(&self) -> Option<&Topology> {
        self.topology.as_ref()
    }

    /// The coordinates that the target lives on.
    pub fn mean_free(&self) -> &MeanFree {
        &self.mean_free
    }

    /// Temperature in kelvin.
    pub fn temperature(&self) -> f64 {
        self.temperature
    }

    /// kB T in kJ/mol.
    pub fn thermal_energy(&self) -> f64 {
        BOLTZMANN * self.temperature
    }

    /// The start conformation in the target's coordinates.
    pub fn start(&self) -> &[f64] {
        &self.start
    }

    /// Log density and score at Cartesian points of all atoms (rows of 3n, nm).
    pub fn evaluate_cartesian(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        self.check_dim(x.dim(), 3 * self.atoms())?;
        let score = out.score.as_mut_slice();
        self.force_field.evaluate(x.as_slice(), &mut out.log_density, score);
        let factor = 1.0 / self.thermal_energy();
        for (i, log_density) in out.log_density.iter_mut().enumerate() {
            *log_density = log_density_or_nothing(*log_density, factor);
            let row = out.score.row_mut(i);
            if *log_density == f64::NEG_INFINITY {
                row.fill(0.0);
            }
            row.iter_mut().for_each(|s| *s *= factor);
        }
        Ok(())
    }

    fn check_dim(&self, found: usize, expected: usize) -> sterna::Result<()> {
        if found == expected {
            return Ok(());
        }
        Err(sterna::Error::Dimension { what: "a point of the molecule", found, expected })
    }
}

/// −U/(kB T), and −∞ where atoms overlap so far that U is no number.
fn log_density_or_nothing(energy: f64, factor: f64) -> f64 {
    let log_density = -energy * factor;
    if log_density.is_finite() { log_density } else { f64::NEG_INFINITY }
}

thread_local! {
    /// Mean-free coordinates, then scores, of a block.
    static SCRATCH: RefCell<Vec<Atom>> = const { RefCell::new(Vec::new()) };
}

impl Target for Molecule {
    fn dim(&self) -> usize {
        self.mean_free.dim()
    }

    /// Rows whose atoms overlap get log density −∞ and score 0.
    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        let dim = self.dim();
        self.check_dim(x.dim(), dim)?;
        let factor = 1.0 / self.thermal_energy();
        SCRATCH.with_borrow_mut(|coordinates| {
            coordinates.resize(self.atoms() - 1, [Lane::default(); 3]);
            with_block(self.atoms(), |block| {
                let blocks = x.as_slice().chunks(WIDTH * dim);
                let scores = out.score.as_mut_slice().chunks_mut(WIDTH * dim);
                let densities = out.log_density.chunks_mut(WIDTH);
                for ((x, score), log_density) in blocks.zip(scores).zip(densities) {
                    gather(x, dim, coordinates.as_flattened_mut());
                    dispatch(ToCartesian {
                        basis: &self.mean_free,
                        mean_free: coordinates,
                        cartesian: &mut block.positions,
                    });
                    self.force_field.evaluate_block(block);
                    dispatch(GradientToMeanFree {
                        basis: &self.mean_free,
                        factor,
                        cartesian: &block.forces,
                        mean_free: coordinates,
                    });
                    scatter(coordinates.as_flattened(), dim, score);
                    for (lane, log_density) in log_density.iter_mut().enumerate() {
                        *log_density = log_density_or_nothing(block.energy(lane).total(), factor);
                        if *log_density == f64::NEG_INFINITY {
                            score[lane * dim..(lane + 1) * dim].fill(0.0);
                        }
                    }
                }
            });
        });
        Ok(())
    }
}

const ALANINE_SYSTEM: &str = include_str!("../assets/system.xml");
const ALANINE_TOPOLOGY: &str = include_str!("../assets/topology.pdb");

/// Alanine dipeptide, ACE-ALA-NME, in vacuum with amber14/protein.ff14SB at `temperature` (K): the paper's molecule (§6.5),
/// built in. 22 atoms, 63 coordinates without the centre of mass. It starts in
/// its lowest minimum (C7eq).
pub fn alanine_dipeptide(temperature: f64) -> Result<Molecule, MoleculeError> {
    let system = System::from_xml(ALANINE_SYSTEM)?;
    let (topology, positions) = Topology::from_pdb("the built-in alanine dipeptide", ALANINE_TOPOLOGY)?;
    Ok(Molecule::new(system, &positions, temperature)?.with_topology(topology))
}
