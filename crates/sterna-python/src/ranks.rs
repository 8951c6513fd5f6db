//! The ranks of a script that `mpirun` or `srun` started several times. MPI begins when somebody first asks, and ends with the script.

use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use sterna::exchange::{Alone, Exchange};

use crate::errors::ConfigError;

/// Whether a run is under way; one on several ranks must be the only one, since all of them speak of the same.
static BUSY: AtomicBool = AtomicBool::new(false);

/// Holds the ranks for one run.
pub struct Held(pub Arc<dyn Exchange>);

impl Held {
    /// For a run that begins.
    pub fn take() -> PyResult<Self> {
        let exchange = exchange()?;
        if exchange.ranks() > 1 && BUSY.swap(true, Ordering::SeqCst) {
            let message =
                "with several ranks there is one run at a time: wait for the one before, or abort it";
            return Err(ConfigError::new_err(message));
        }
        Ok(Self(exchange))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        BUSY.store(false, Ordering::SeqCst);
    }
}

/// This process's number among those that share runs, and how many these are.
#[pyfunction]
pub fn ranks() -> PyResult<(usize, usize)> {
    let exchange = exchange()?;
    Ok((exchange.rank(), exchange.ranks()))
}

/// What the first rank says; every rank calls it.
#[pyfunction]
pub fn of_first(py: Python<'_>, own: &str) -> PyResult<String> {
    let exchange = exchange()?;
    let heard = py.detach(|| exchange.hear_first(own.as_bytes()));
    let heard = heard.map_err(|error| crate::errors::RunError::new_err(error.to_string()))?;
    Ok(String::from_utf8_lossy(&heard).into_owned())
}

/// Whether a signal that launchers pass on has asked this rank to stop.
pub fn is_asked_to_stop() -> bool {
    world::is_asked_to_stop()
}

/// The last call: all ranks leave together, or one that leaves by itself ends them all.
#[pyfunction]
pub fn leave(py: Python<'_>) {
    py.detach(world::leave);
}

fn exchange() -> PyResult<Arc<dyn Exchange>> {
    world::exchange()
}

#[cfg(feature = "mpi")]
mod world {
    use super::*;
    use std::sync::OnceLock;
    use sterna_mpi::World;

    static WORLD: OnceLock<Result<Option<Arc<World>>, String>> = OnceLock::new();

    pub fn exchange() -> PyResult<Arc<dyn Exchange>> {
        let start = || match World::is_launched() {
            false => Ok(None),
            true => World::start().map(|world| Some(Arc::new(world))).map_err(|error| error.to_string()),
        };
        match WORLD.get_or_init(start) {
            Ok(Some(world)) => Ok(world.clone()),
            Ok(None) => Ok(Arc::new(Alone)),
            Err(why) => Err(ConfigError::new_err(why.clone())),
        }
    }

    fn begun() -> Option<&'static Arc<World>> {
        WORLD.get().and_then(|world| world.as_ref().ok()?.as_ref())
    }

    pub fn is_asked_to_stop() -> bool {
        begun().is_some_and(|world| world.is_asked_to_stop())
    }

    pub fn leave() {
        let Some(world) = begun() else { return };
        if let Err(error) = world.leave() {
            if world.speaks() {
                eprintln!("error: {error}");
            }
        }
        world.end(0);
    }
}

#[cfg(not(feature = "mpi"))]
mod world {
    use super::*;

    pub fn exchange() -> PyResult<Arc<dyn Exchange>> {
        if sterna_run::ranks::are_several() {
            return Err(ConfigError::new_err(
                "several processes of this script were started as one, but this package was built without MPI: build it from its sources with \
                 MATURIN_PEP517_ARGS=\"--features cuda,mpi\" pip install .",
            ));
        }
        Ok(Arc::new(Alone))
    }

    pub fn is_asked_to_stop() -> bool {
        false
    }

    pub fn leave() {}
}
