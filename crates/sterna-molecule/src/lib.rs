//! Molecules as targets: force fields in vacuum read from OpenMM, internal coordinates, and transports
//! between temperatures in closed form (the paper's alanine dipeptide, §6 and App. E).

mod error;
mod force_field;
mod kernel;
mod lane_math;
mod lanes;
mod positions;
mod system;
mod system_xml;
mod terms;
mod topology;

pub use error::MoleculeError;
pub use force_field::{Energy, ForceField};
pub use positions::read_positions;
pub use system::{Angle, BOLTZMANN, Bond, COULOMB, Exception, Particle, System, Torsion};
pub use topology::{AtomLabel, Topology};
