//! Where fuzzers come in. Whatever the bytes: an answer or an error, no panic, no hang, no vast allocation.
//!
//! `tests/fuzz.rs` drives these with mutations of a corpus; `fuzz/` hands them to libFuzzer.

use crate::config::Config;
use crate::{accelerators, checkpoint};
use std::sync::Arc;
use sterna::acceleration::{Acceleration, FitAffine};
use sterna::paths::Geometric;
use sterna::run::{Run, Settings};
use sterna::targets::Normal;
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
