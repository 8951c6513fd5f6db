//! Molecules as targets: force fields in vacuum read from OpenMM, internal coordinates, and transports
//! between temperatures in closed form (the paper's alanine dipeptide, §6.5 and App. E).
//!
//! - [`System`] holds the terms, read from the XML that OpenMM's `XmlSerializer` writes; [`ForceField`] evaluates them
//!   for eight conformations at a time;
//! - [`Molecule`] is a [`sterna::Target`] at a temperature, on coordinates without the centre of mass ([`MeanFree`]);
//!   [`alanine_dipeptide`] is built in; [`TemperedPath`] leads to it from a hotter reference;
//! - [`InternalCoordinates`] are bonds, angles and torsions with their exact Jacobian; [`TorsionMoves`] turn torsions;
//! - [`TemperatureScaling`] and [`ConditionalAffine`] are flows between temperatures, [`ControlledDiffusion`] goes there in
//!   Gaussian steps;
//! - [`dihedral`], [`Basin`], [`ChiralCentre`], [`DcdWriter`] and [`Molecule::write_pdb`] are what chemists look at.
//!
//! Units are OpenMM's: nm, kJ/mol, radian, dalton, elementary charge, kelvin.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests compare with the functions of the standard library")
)]

mod backbone;
mod bond_graph;
mod error;
mod fits;
mod force_field;
mod geometry;
mod internal;
mod internal_kernel;
mod kernel;
mod lane_math;
mod mean_free;
mod molecule;
mod positions;
mod system;
mod system_xml;
mod tempered;
mod terms;
mod topology;
mod torsion_moves;
mod trajectory;
mod transports;

pub use backbone::{Backbone, Residue};
pub use bond_graph::TorsionKind;
pub use error::MoleculeError;
pub use fits::{FitConditionalAffine, FitScaling};
pub use force_field::{Energy, ForceField};
pub use geometry::{Basin, ChiralCentre, dihedral, distance};
pub use internal::{Coordinate, CoordinateKind, InternalCoordinates};
pub use mean_free::MeanFree;
pub use molecule::{Molecule, alanine_dipeptide};
pub use positions::read_positions;
pub use system::{Angle, BOLTZMANN, Bond, COULOMB, Exception, Particle, System, Torsion};
pub use tempered::TemperedPath;
pub use topology::{AtomLabel, Topology};
pub use torsion_moves::TorsionMoves;
pub use trajectory::DcdWriter;
pub use transports::{
    ChainSamples, ConditionalAffine, ControlledDiffusion, Densities, InnerMap, Journeys, Refined,
    Standardised, TemperatureScaling, Temperatures,
};
