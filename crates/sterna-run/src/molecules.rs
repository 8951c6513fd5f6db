//! Molecules in configs: the target, its tempered path, its local moves and its transports.

use crate::accelerators::{self, Plan};
use crate::config::{Config, TargetConfig, known};
use crate::error::JobError;
use crate::files::write_whole;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sterna::acceleration::{Acceleration, Fit};
use sterna::{Batch, Evaluation};
use sterna_molecule::{
    FitConditionalAffine, FitScaling, InternalCoordinates, Molecule, MoleculeError, TemperedPath,
    alanine_dipeptide,
};
use sterna_molecule_neural::{FitControlled, TrainMoleculeFlow};
use sterna_neural::{Compute, Hidden, Training};

/// Steps of a flow's training in each round.
const FLOW_STEPS: u64 = 2500;
/// K of a controlled diffusion, where the config does not say: the paper's largest.
const CONTROLLED_STEPS: usize = 5;
/// Kelvin, where the config does not say.
const TEMPERATURE: f64 = 300.0;
/// Kelvin of the reference, where the config does not say.
pub(crate) const REFERENCE_TEMPERATURE: f64 = 1200.0;

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
pub const TABLE_SETTINGS: [(&str, &str); 5] = [
    ("target.kind", "alanine-dipeptide"),
    ("chains.count", "4"),
    ("chains.ensembles", "4"),
    ("schedule.criterion", "fixed"),
    ("run.iterations", "50000"),
];

/// The molecule that a config names, in coordinates that know no masses.
pub fn molecule(config: &TargetConfig) -> Result<Molecule, JobError> {
    let temperature = config.temperature.unwrap_or(TEMPERATURE);
    if config.precision.is_some() || config.mean.is_some() {
        return wrong(format!(
            "target.precision and target.mean belong to kind = \"normal\", not \"{}\"",
            config.kind
        ));
    }
    let molecule = if config.kind == "alanine-dipeptide" {
        for (field, file) in [("system", &config.system), ("positions", &config.positions)] {
            if file.is_some() {
                return wrong(format!(
                    "target.{field} belongs to kind = \"molecule\"; alanine dipeptide is built in"
                ));
            }
        }
        alanine_dipeptide(temperature).map_err(refused)?
    } else {
        let file = |field: &str, file: &Option<PathBuf>, what: &str| {
            file.clone().ok_or_else(|| {
                JobError::Config(format!("target.kind = \"molecule\" needs target.{field}: {what}"))
            })
        };
        let system =
            file("system", &config.system, "the XML that OpenMM's XmlSerializer writes of a System")?;
        let positions = file("positions", &config.positions, "a .pdb, .json or .csv file to start from")?;
        Molecule::read(system, positions, temperature).map_err(refused)?
    };
    let dim = 3 * molecule.atoms() - 3;
    match config.dim {
        Some(given) if given != dim => wrong(format!(
            "target.dim = {given} is impossible: {} atoms without their centre have {dim} coordinates",
            molecule.atoms()
        )),
        _ => Ok(molecule),
    }
}

fn wrong<T>(message: String) -> Result<T, JobError> {
    Err(JobError::Config(message))
}

/// A molecule that cannot be had is wrong input.
fn refused(error: MoleculeError) -> JobError {
    JobError::Config(error.to_string())
}

/// Fields of `[target]` that belong to molecules are errors elsewhere.
pub(crate) fn refuse_fields(config: &TargetConfig) -> Result<(), JobError> {
    let given = [
        ("temperature", config.temperature.is_some()),
        ("system", config.system.is_some()),
        ("positions", config.positions.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((field, _)) => wrong(format!("target.{field} belongs to molecules, not to \"{}\"", config.kind)),
        None => Ok(()),
    }
}

/// Settings of other sections that belong to molecules are errors elsewhere.
pub(crate) fn refuse_settings(config: &Config) -> Result<(), JobError> {
    let output = &config.output;
    let given = [
        ("reference.temperature", config.reference.temperature.is_some()),
        ("explorer.torsion_moves", config.explorer.torsion_moves > 0),
        ("accelerator.kind = \"scaling\"", config.accelerator.kind == "scaling"),
        ("output.trajectories", output.trajectories),
        ("output.distances", !output.distances.is_empty()),
        ("output.dihedrals", !output.dihedrals.is_empty()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((field, _)) => wrong(format!("{field} belongs to molecules, not to \"{}\"", config.target.kind)),
        None => Ok(()),
    }
}

/// The molecule in the coordinates that the run uses: weighted by masses where the moves are to have them.
pub fn run_molecule(config: &Config) -> Result<Molecule, JobError> {
    let molecule = molecule(&config.target)?;
    let weighted = config.explorer.masses == "atoms";
    Ok(if weighted { molecule.mass_weighted() } else { molecule })
}

/// Path and accelerator of a molecule.
pub(crate) fn plan(config: &Config) -> Result<Plan, JobError> {
    let molecule = Arc::new(run_molecule(config)?);
    check_output(config, &molecule)?;
    if config.reference.scale != 1.0 {
        return wrong(format!(
            "reference.scale = {} is impossible for a molecule: its reference is the same energy at a higher \
             temperature",
            config.reference.scale
        ));
    }
    let reference = config.reference.temperature.unwrap_or(REFERENCE_TEMPERATURE);
    if reference <= molecule.temperature() {
        return wrong(format!(
            "reference.temperature = {reference} is impossible: it must be higher than the target's, {} K",
            molecule.temperature()
        ));
    }
    let moves = config.explorer.torsion_moves;
    if moves > 32 {
        return wrong(format!("explorer.torsion_moves = {moves} is impossible: at most 32 an iteration"));
    }
    let path = TemperedPath::new(molecule.clone(), reference).map_err(refused)?;
    let path = Arc::new(path.with_torsion_moves(moves).map_err(refused)?);
    let temperatures = path.temperatures();
    let accelerator = &config.accelerator;
    known("accelerator.kind", &accelerator.kind, &["none", "scaling", "affine", "flow", "cmcd"])?;
    if accelerator.transport.is_some() {
        return wrong(
            "accelerator.transport is not known for molecules: their transports are fitted anew".into(),
        );
    }
    let steps = steps(config)?;
    let fit: Option<Arc<dyn Fit>> = match accelerator.kind.as_str() {
        "scaling" => Some(Arc::new(FitScaling { molecule: molecule.clone(), temperatures })),
        "affine" => Some(Arc::new(FitConditionalAffine { molecule: molecule.clone(), temperatures })),
        "flow" => {
            let (layers, width) = accelerators::size(config, (3, 24), (9, 128))?;
            Some(Arc::new(TrainMoleculeFlow {
                molecule: molecule.clone(),
                temperatures,
                path: path.clone(),
                layers,
                hidden: Hidden::new(2, width),
                training: on_cpu(accelerators::training(config, FLOW_STEPS, 0)?)?,
            }))
        }
        "cmcd" => Some(Arc::new(FitControlled {
            molecule: molecule.clone(),
            temperatures,
            path: path.clone(),
            steps,
            seed: config.seed,
            guard: config.training.guard,
        })),
        _ => None,
    };
    if fit.is_some() {
        // Refused here rather than after the samples have been collected.
        InternalCoordinates::new(molecule.system()).map_err(refused)?;
    }
    let acceleration = fit.map_or(Acceleration::None, Acceleration::Fitted);
    Ok(Plan { path, acceleration, steps })
}

/// K: what the config says of a controlled diffusion, else that of the kind.
fn steps(config: &Config) -> Result<usize, JobError> {
    let accelerator = &config.accelerator;
    if let Some(drift) = &accelerator.drift {
        return wrong(format!(
            "accelerator.drift = \"{drift}\" is not known for molecules: theirs follows from their coordinates"
        ));
    }
    let only = usize::from(accelerator.kind != "none");
    let allowed = if accelerator.kind == "cmcd" { 1..=10_000 } else { only..=only };
    let default = if accelerator.kind == "cmcd" { CONTROLLED_STEPS } else { only };
    match accelerator.steps.unwrap_or(default) {
        steps if allowed.contains(&steps) => Ok(steps),
        steps => wrong(format!(
            "accelerator.steps = {steps} is impossible for kind = \"{}\": it must lie between {} and {}",
            accelerator.kind,
            allowed.start(),
            allowed.end()
        )),
    }
}

/// Chosen atoms must exist.
fn check_output(config: &Config, molecule: &Molecule) -> Result<(), JobError> {
    let check = |field: &str, atoms: &[usize]| {
        let twice = (1..atoms.len()).any(|i| atoms[..i].contains(&atoms[i]));
        if twice || atoms.iter().any(|&atom| atom >= molecule.atoms()) {
            return wrong(format!(
                "output.{field}: {atoms:?} are not different atoms of the molecule, numbered from 0 to {}",
                molecule.atoms() - 1
            ));
        }
        Ok(())
    };
    config.output.distances.iter().try_for_each(|atoms| check("distances", atoms))?;
    config.output.dihedrals.iter().try_for_each(|atoms| check("dihedrals", atoms))
}

/// Log density and score at Cartesian points of all atoms (nm).
pub(crate) fn evaluate(config: &TargetConfig, points: &Batch) -> Result<Evaluation, JobError> {
    let molecule = molecule(config)?;
    let (atoms, found) = (molecule.atoms(), points.dim());
    if found != 3 * atoms {
        return wrong(format!(
            "a point has {found} coordinates, but {atoms} atoms need {}: x, y, z of each, in nm",
            3 * atoms
        ));
    }
    let mut out = Evaluation::zeros(points.rows(), found);
    molecule.evaluate_cartesian(points, &mut out)?;
    Ok(out)
}

/// Copies the molecule's files into the run folder, so that the config there is enough to repeat the run, and
/// returns that config; names in it are relative to the folder.
pub(crate) fn keep_files(config: &Config, folder: &Path) -> Result<Config, JobError> {
    let mut config = config.clone();
    let files = [(&mut config.target.system, "system"), (&mut config.target.positions, "positions")];
    for (file, stem) in files {
        if let Some(file) = file {
            let mut name = PathBuf::from(stem);
            if let Some(ending) = file.extension() {
                name.set_extension(ending);
            }
            let bytes = std::fs::read(&*file).map_err(JobError::file("read", &*file))?;
            write_whole(&folder.join(&name), &bytes)?;
            *file = name;
        }
    }
    Ok(config)
}

/// Flows of molecules have no recorded target, so they train on the CPU alone.
fn on_cpu(training: Training) -> Result<Training, JobError> {
    if training.compute == Compute::Cpu {
        return Ok(training);
    }
    Err(JobError::Config(
        "training.device = \"cuda\" is impossible for molecules: their flows are trained on the CPU".into(),
    ))
}
