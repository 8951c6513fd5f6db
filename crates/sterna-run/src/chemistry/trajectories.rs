//! A DCD file per chain: `trajectory-<chain>.dcd`, and with several ensembles `trajectory-<chain>-<ensemble>.dcd`.

use crate::error::JobError;
use std::fs::{self, File};
use std::io::BufWriter;
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
        let beside = path.with_extension("partial");
        let mut frames = || {
            let mut file = DcdWriter::new(BufWriter::new(File::create(&beside)?), molecule.atoms())?;
            for point in points.chunks_exact(dim) {
                molecule.mean_free().to_cartesian(point, &mut x);
                file.write(&x)?;
            }
            file.finish()?;
            fs::rename(&beside, &path)
        };
        frames().map_err(JobError::file("write", &path))?;
    }
    Ok(())
}
