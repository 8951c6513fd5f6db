//! A DCD file per chain: `trajectory-<chain>.dcd`, and with several ensembles `trajectory-<chain>-<ensemble>.dcd`.

use crate::error::JobError;
use crate::files::replace;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use sterna::run::Run;
use sterna_molecule::{DcdWriter, Molecule};

/// Frames that the run kept, chain by chain.
pub(super) fn write(folder: &Path, molecule: &Molecule, run: &Run) -> Result<(), JobError> {
    let (chains, ensembles) = (run.settings().chains, run.settings().ensembles);
    let dim = molecule.mean_free().dim();
    let mut x = vec![0.0; 3 * molecule.atoms()];
    for (place, points) in run.records().flat_map(|record| &record.trajectories).enumerate() {
        let (ensemble, chain) = (place / chains, place % chains);
        let name = match ensembles {
            1 => format!("trajectory-{chain}.dcd"),
            _ => format!("trajectory-{chain}-{ensemble}.dcd"),
        };
        let path = folder.join(name);
        let frames = |beside: &Path| -> io::Result<()> {
            let mut file = DcdWriter::new(BufWriter::new(File::create(beside)?), molecule.atoms())?;
            for point in points.chunks_exact(dim) {
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
