//! The threads that a job works with.

use crate::config::{Config, Device};
use crate::error::JobError;
use crate::problem::Problem;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZero;
use std::thread::available_parallelism;
use sterna::exchange::ladders_of;

/// As many threads as the config asks for, one per core if it does not say, but no more than are of use: one for each
/// ladder, and one for each core, which share the rows of a dear target, fit transports and train networks.
/// Ranks on one machine share its cores, where their launcher has not given each its own; the one that trains has all of them, since
/// the others wait.
pub(super) fn pool(problem: &Problem, config: &Config) -> Result<ThreadPool, JobError> {
    let cores = available_parallelism().map_or(1, NonZero::get);
    let exchange = &*problem.exchange;
    let ladders = own_ladders(problem, config);
    let wanted = match config.threads {
        0 => cores,
        threads => threads,
    };
    // Flows of molecules are networks too.
    let network =
        config.accelerator.trains() && (problem.molecule.is_none() || config.accelerator.kind() == "flow");
    let trains = network && config.training.device == Device::Cpu && exchange.rank() == 0;
    let most = ladders.max(cores);
    let threads = match config.threads {
        0 if !trains => (cores / exchange.neighbours()).min(most),
        _ => wanted.min(most),
    };
    let threads = threads.max(1);
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|e| JobError::setting("threads", config.threads, e.to_string()))
}

/// Ladders that this rank moves.
pub(crate) fn own_ladders(problem: &Problem, config: &Config) -> usize {
    let exchange = &*problem.exchange;
    ladders_of(exchange.rank(), exchange.ranks(), config.chains.ensembles).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_threads_than_are_of_use() {
        let cores = available_parallelism().map_or(1, NonZero::get);
        let flow = ("accelerator.kind", "flow");
        for (more, most) in [
            (&[("chains.ensembles", "3")][..], cores.max(3)),
            (&[("chains.ensembles", "3"), flow], cores.max(3)),
            (&[("chains.ensembles", "3"), flow, ("training.device", "cuda")], cores.max(3)),
            (&[("target.kind", "alanine-dipeptide"), ("chains.ensembles", "3")], cores.max(3)),
            (&[("target.kind", "alanine-dipeptide"), ("accelerator.kind", "cmcd")], cores),
        ] {
            let mut config = Config::parse("", more).unwrap();
            let problem = config.problem().unwrap();
            for threads in [10_000, usize::MAX] {
                config.threads = threads;
                assert_eq!(pool(&problem, &config).unwrap().current_num_threads(), most, "{more:?}");
            }
            config.threads = 2;
            assert_eq!(pool(&problem, &config).unwrap().current_num_threads(), most.min(2), "{more:?}");
            config.threads = 0;
            assert!(pool(&problem, &config).unwrap().current_num_threads() <= most.min(cores), "{more:?}");
        }
    }
}
