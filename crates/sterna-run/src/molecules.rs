//! Molecules in jobs: their coordinates, their files, and the rows of the paper's table.

use crate::config::{Config, ExplorerKind};
use crate::error::JobError;
use crate::files::write_whole;
use crate::problem::Problem;
use crate::targets::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sterna::{Batch, Evaluation};
use sterna_molecule::Molecule;

/// The table of alanine dipeptide: names of rows with their configs, at 50,000 iterations each. All have four chains on a
/// ladder geometric in temperature and five leapfrog steps; the paper prints 199 round trips for plain parallel tempering
/// and 465, 597 and 627 for its controlled diffusions.
pub const TABLE_ROWS: [(&str, &str); 7] = [
    ("parallel tempering", "[accelerator]\nkind = \"none\"\n"),
    ("temperature scaling", "[accelerator]\nkind = \"scaling\"\n[training]\nrounds = 3\n"),
    ("conditional affine", "[accelerator]\nkind = \"affine\"\n[training]\nrounds = 3\n"),
    ("flow", "[accelerator]\nkind = \"flow\"\n[training]\nrounds = 3\n"),
    ("controlled diffusion, K = 1", "[accelerator]\nkind = \"cmcd\"\nsteps = 1\n[training]\nrounds = 3\n"),
    ("controlled diffusion, K = 2", "[accelerator]\nkind = \"cmcd\"\nsteps = 2\n[training]\nrounds = 3\n"),
    ("controlled diffusion, K = 5", "[accelerator]\nkind = \"cmcd\"\nsteps = 5\n[training]\nrounds = 3\n"),
];

/// What the rows of [`TABLE_ROWS`] have in common.
pub const TABLE_SETTINGS: [(&str, &str); 6] = [
    ("target.kind", "alanine-dipeptide"),
    // All of the molecule is heated.
    ("reference.peptide_bonds", "heated"),
    ("chains.count", "4"),
    ("chains.ensembles", "4"),
    ("schedule.criterion", "fixed"),
    ("run.iterations", "50000"),
];

/// A molecule in the coordinates that a run uses: weighted by masses where the moves are to have them.
pub fn in_run(molecule: &Arc<Molecule>, explorer: &ExplorerKind) -> Arc<Molecule> {
    match explorer.weighs_atoms() {
        true => Arc::new(Molecule::clone(molecule).mass_weighted()),
        false => molecule.clone(),
    }
}

/// What is written of molecules alone, and of atoms that exist.
pub(crate) fn check_output(problem: &Problem, config: &Config) -> Result<(), JobError> {
    let output = &config.output;
    let Some(molecule) = &problem.molecule else {
        let given = [
            ("output.distances", !output.distances.is_empty()),
            ("output.dihedrals", !output.dihedrals.is_empty()),
        ];
        return match given.iter().find(|(_, given)| *given) {
            Some((field, _)) => Err(JobError::of_molecules(field, problem.kind.kind())),
            None => Ok(()),
        };
    };
    let check = |field: &str, atoms: &[usize]| {
        let twice = (1..atoms.len()).any(|i| atoms[..i].contains(&atoms[i]));
        if twice || atoms.iter().any(|&atom| atom >= molecule.atoms()) {
            return Err(JobError::Config(format!(
                "output.{field}: {atoms:?} are not different atoms of the molecule, numbered from 0 to {}",
                molecule.atoms() - 1
            )));
        }
        Ok(())
    };
    output.distances.iter().try_for_each(|atoms| check("distances", atoms))?;
    output.dihedrals.iter().try_for_each(|atoms| check("dihedrals", atoms))
}

/// Log density and score at Cartesian points of all atoms (nm).
pub(crate) fn evaluate(molecule: &Molecule, points: &Batch) -> Result<Evaluation, JobError> {
    let (atoms, found) = (molecule.atoms(), points.dim());
    if found != 3 * atoms {
        return Err(JobError::Config(format!(
            "a point has {found} coordinates, but {atoms} atoms need {}: x, y, z of each, in nm",
            3 * atoms
        )));
    }
    let mut out = Evaluation::zeros(points.rows(), found);
    molecule.evaluate_cartesian(points, &mut out)?;
    Ok(out)
}

/// Copies the files that a target names into the run folder, so that the config there is enough to repeat the run, and
/// returns that config; names in it are relative to the folder.
pub(crate) fn keep_files(config: &Config, folder: &Path) -> Result<Config, JobError> {
    let mut config = config.clone();
    for File { path, kept_as } in config.target.files() {
        let Some(stem) = kept_as else { continue };
        let mut name = PathBuf::from(stem);
        if let Some(ending) = path.extension() {
            name.set_extension(ending);
        }
        let bytes = std::fs::read(&*path).map_err(JobError::file("read", &*path))?;
        write_whole(&folder.join(&name), &bytes)?;
        *path = name;
    }
    Ok(config)
}
