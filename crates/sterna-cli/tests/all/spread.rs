//! A program of one's own on several ranks, as the book's page on clusters has it: it compiles. Started by `mpirun`, tests/python/test_mpi.py
//! has the command line do the same.

use sterna_run::Config;

#[expect(dead_code, reason = "it is to be started by mpirun")]
fn on_all_ranks(
    my_target: impl sterna::Target + 'static,
    config: Config,
) -> Result<(), Box<dyn std::error::Error>> {
    let world = std::sync::Arc::new(sterna_mpi::World::start()?);
    let problem = sterna_run::Problem::new(my_target).among(world.clone());
    let summary = sterna_run::Job::start_or_resume(problem, config, "runs/mine")?.run(&mut ())?;
    world.end(0);
    println!("{}", summary.verdict.name());
    Ok(())
}
