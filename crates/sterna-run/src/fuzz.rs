//! Where fuzzers come in. Whatever the bytes: an answer or an error, no panic, no hang, no vast allocation.
//!
//! `tests/fuzz.rs` drives these with mutations of a corpus; `fuzz/` hands them to libFuzzer.

use crate::config::Config;
use crate::draws_store::StoredDraws;
use crate::files::write_in_passing;
use crate::{accelerators, checkpoint, points_file, report};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sterna::acceleration::{Acceleration, FitAffine};
use sterna::paths::Geometric;
use sterna::run::{Run, Settings};
use sterna::targets::Normal;
use sterna_molecule::{InternalCoordinates, Molecule, System, TemperedPath, read_positions};
use sterna_neural::Layout;
use sterna_neural::weights::{self, NetworkConfig};

/// The bytes as a config file. Whether it was accepted.
pub fn config(data: &[u8]) -> bool {
    let Ok(config) = Config::parse(&String::from_utf8_lossy(data), &[]) else { return false };
    let again = Config::parse(&config.to_toml(), &[]).expect("what was read can be written and read");
    // NaN is not itself.
    assert_eq!(format!("{config:?}"), format!("{again:?}"));
    // Large targets are slow to make, and a library is not ours.
    let table: toml::Table = toml::from_str(&config.to_toml()).expect("just read");
    let is_large = table["target"].get("dim").and_then(toml::Value::as_integer).is_some_and(|dim| dim > 64);
    if is_large || ["library", "stan"].contains(&config.target.kind()) || config.accelerator.trains() {
        return false;
    }
    config.problem().and_then(|p| config.settings(&p).and(accelerators::plan(&p, &config))).is_ok()
}

/// A run of the kind whose saved states are in the corpus.
pub fn small_settings() -> Settings {
    Settings {
        chains: 3,
        ensembles: 2,
        rounds: 2,
        round_iterations: 8,
        round_burn_in: 3,
        collect: 12,
        fits: 2,
        burn_in: 5,
        iterations: 20,
        thin: 2,
        ..Settings::default()
    }
}

/// Path and acceleration of that run.
pub fn small_parts() -> (Arc<Geometric>, Acceleration) {
    let path = Arc::new(Geometric::from_standard_normal(Normal::isotropic(2, 4.0)));
    (path, Acceleration::Fitted(Arc::new(FitAffine { full: false })))
}

/// The bytes as a checkpoint file, and as a saved state without the checksum around it. Whether one was
/// accepted; a state that is accepted must go on.
pub fn checkpoint(data: &[u8]) -> bool {
    let (state, whole) = match checkpoint::decode(data) {
        Ok((description, state)) => {
            let _ = Config::parse(&description.config, &[]);
            (state, true)
        }
        Err(_) => (data, false),
    };
    let (path, acceleration) = small_parts();
    let Ok(mut run) = Run::restore(path, small_settings(), acceleration, state) else { return whole };
    let _ = run.advance(3);
    true
}

/// The bytes as a file of weights. Whether it was accepted.
pub fn weights(data: &[u8]) -> bool {
    let Ok(stored) = weights::from_bytes::<NetworkConfig>(data.to_vec(), "the input") else { return false };
    let mut layout = Layout::new();
    if stored.description.build(&mut layout, "net").is_err() {
        return false;
    }
    let state = stored.state::<f32>(&layout);
    stored.parameters::<f32>(&layout).is_ok() && state.is_ok()
}

/// The bytes in a file of this name, for readers that want a path; files of other processes and threads are others.
fn as_file<T>(data: &[u8], name: &str, read: impl FnOnce(&Path) -> T) -> T {
    let own = format!("sterna-fuzz-{}-{:?}-{name}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(own);
    write_in_passing(&path, data).expect("room for a temporary file");
    let out = read(&path);
    let _ = std::fs::remove_file(&path);
    out
}

/// The bytes as OpenMM's System. Whether it was accepted; then it is a molecule with a force field and coordinates, or an error.
pub fn xml(data: &[u8]) -> bool {
    let Ok(system) = System::from_xml(&String::from_utf8_lossy(data)) else { return false };
    // Atoms on a helix, none on another.
    let place = |i: usize| [0.1 * (i as f64).cos(), 0.1 * (i as f64).sin(), 0.05 * i as f64];
    let positions: Vec<f64> = (0..system.atoms()).flat_map(place).collect();
    let _ = InternalCoordinates::new(&system);
    if let Ok(molecule) = Molecule::new(system, &positions, 300.0) {
        let _ = TemperedPath::new(Arc::new(molecule), 900.0);
    }
    true
}

/// The bytes as a file of points, in each format, and as conformations of two atoms in one of them. Whether one took it.
pub fn points(data: &[u8]) -> bool {
    let are_points =
        ["json", "csv", "npy"].map(|kind| points_file::points(data, kind).is_ok()).contains(&true);
    let kind = ["json", "csv", "pdb"][data.len() % 3];
    are_points || as_file(data, &format!("positions.{kind}"), |path| read_positions(path, 2).is_ok())
}

/// The bytes as `draws.nc`, as a report reads it: points of three coordinates, or these by their names. Whether it was accepted.
pub fn draws(data: &[u8]) -> bool {
    let names: [&[&str]; 2] = [&[], &["mu", "theta[1]", "theta[2]"]];
    as_file(data, "draws.nc", |path| names.map(|names| report::draws::read(path, &[2, 0, 1], names).is_ok()))
        .contains(&true)
}

/// The bytes as `checkpoint/draws` of two ladders of points of three coordinates. Whether all of them were accepted.
pub fn stored_draws(data: &[u8]) -> bool {
    let bytes = data.len() as u64;
    as_file(data, "draws", |path| {
        let Ok(draws) = StoredDraws::open(path.into(), 3, 2, bytes) else { return false };
        (0..2).all(|ladder| draws.x(ladder, 0..draws.draws()).is_ok())
    })
}

/// A run folder, its `summary.json` and its `traces.json`, in one list: a report reads them. Whether there is a page.
pub fn report(data: &[u8]) -> bool {
    let Ok((folder, summary, traces)) = serde_json::from_slice::<(PathBuf, Value, Value)>(data) else {
        return false;
    };
    for (name, content) in [("summary.json", summary), ("traces.json", traces)] {
        write_in_passing(&folder.join(name), content.to_string().as_bytes())
            .expect("room for a temporary file");
    }
    report::page(&folder).is_ok()
}
