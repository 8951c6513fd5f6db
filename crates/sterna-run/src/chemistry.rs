//! What chemists look at: dihedrals and distances of each draw, populations of named basins, the φ/ψ free-energy map,
//! a watch on chirality and peptide bonds, and trajectories that mdtraj and VMD open.

mod map;
mod molecule;
mod observe;
mod parts;

pub use map::{FreeEnergyMap, PhiPsi, ResidueMap};
pub use molecule::{Basins, Chirality, Molecule, PeptideBond, Population, WatchedSeries};
pub use observe::{Observed, Series, observe};
pub use parts::Apart;

use crate::error::JobError;
use crate::files::{replace, write_whole};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use sterna::run::Run;
use sterna_molecule::DcdWriter;

/// Writes a molecule's own files: `topology.pdb`, `phi_psi.json` and `phi_psi.svg` where there are φ and ψ, and
/// the trajectories that the config asks for.
pub fn write_files(folder: &Path, run: &Run, observed: &Observed) -> Result<(), JobError> {
    let molecule = &observed.coordinates;
    let mut x = vec![0.0; 3 * molecule.atoms()];
    molecule.mean_free().to_cartesian(molecule.start(), &mut x);
    let mut topology = Vec::new();
    molecule.write_pdb(&mut topology, &x).map_err(JobError::file("write", folder.join("topology.pdb")))?;
    write_whole(&folder.join("topology.pdb"), &topology)?;
    if !observed.maps.is_empty() {
        let file = PhiPsi::of(&observed.maps, molecule.temperature());
        let text = serde_json::to_string(&file).expect("plain data");
        write_whole(&folder.join("phi_psi.json"), text.as_bytes())?;
        write_whole(&folder.join("phi_psi.svg"), FreeEnergyMap::figure(&observed.maps).as_bytes())?;
    }
    write_trajectories(folder, molecule, run)
}

/// Frames that the run kept, chain by chain: a file `trajectory-<chain>.dcd` each, and with several ensembles
/// `trajectory-<chain>-<ensemble>.dcd`.
fn write_trajectories(
    folder: &Path,
    molecule: &sterna_molecule::Molecule,
    run: &Run,
) -> Result<(), JobError> {
    let (chains, ensembles) = (run.sampler().schedule.chains(), run.settings().ensembles);
    let dim = molecule.mean_free().dim();
    let mut x = vec![0.0; 3 * molecule.atoms()];
    for (place, draws) in run.records().flat_map(|record| &record.trajectories).enumerate() {
        let (ensemble, chain) = (place / chains, place % chains);
        let name = match ensembles {
            1 => format!("trajectory-{chain}.dcd"),
            _ => format!("trajectory-{chain}-{ensemble}.dcd"),
        };
        let path = folder.join(name);
        let frames = |beside: &Path| -> io::Result<()> {
            let mut file = DcdWriter::new(BufWriter::new(File::create(beside)?), molecule.atoms())?;
            for point in draws.x.chunks_exact(dim) {
                molecule.mean_free().to_cartesian(point, &mut x);
                file.write(&x)?;
            }
            file.finish()?;
            Ok(())
        };
        replace(&path, frames, |e| e).map_err(JobError::file("write", &path))?;
    }
    Ok(())
}
