//! What chemists look at: dihedrals and distances of each draw, populations of named basins, the φ/ψ free-energy map,
//! a watch on chirality and peptide bonds, and trajectories that mdtraj and VMD open.

mod map;
mod observe;
mod trajectories;

pub use map::FreeEnergyMap;
pub use observe::{Basins, Observed, Population, Series, Watch, observe};

use crate::checkpoint::write_whole;
use crate::error::JobError;
use crate::summary::Summary;
use serde_json::json;
use std::path::Path;
use sterna::run::Run;

/// Writes a molecule's own files: `topology.pdb`, `phi_psi.json` and `phi_psi.svg` where there are φ and ψ, and
/// the trajectories that the config asks for. Other targets have none.
pub fn write_files(folder: &Path, run: &Run, summary: &Summary) -> Result<(), JobError> {
    let Some(observed) = &summary.molecule else { return Ok(()) };
    let molecule = crate::molecules::run_molecule(&summary.config)?;
    let mut x = vec![0.0; 3 * molecule.atoms()];
    molecule.mean_free().to_cartesian(molecule.start(), &mut x);
    let mut topology = Vec::new();
    molecule.write_pdb(&mut topology, &x).map_err(JobError::file("write", folder.join("topology.pdb")))?;
    write_whole(&folder.join("topology.pdb"), &topology)?;
    if !observed.maps.is_empty() {
        let maps: Vec<_> = observed.maps.iter().map(FreeEnergyMap::to_value).collect();
        let text = json!({"temperature": molecule.temperature(), "residues": maps}).to_string();
        write_whole(&folder.join("phi_psi.json"), text.as_bytes())?;
        write_whole(&folder.join("phi_psi.svg"), FreeEnergyMap::figure(&observed.maps).as_bytes())?;
    }
    trajectories::write(folder, &molecule, run)
}
