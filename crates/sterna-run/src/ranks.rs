//! What launchers tell their processes, for programs that were built without MPI.

/// Whether a launcher started this process as one of several: each would take the run for its own.
#[expect(
    clippy::disallowed_methods,
    reason = "launchers tell their processes so, and how many there are changes no result"
)]
pub fn are_several() -> bool {
    let number = |name: &str| std::env::var(name).ok().and_then(|size| size.parse::<u64>().ok());
    ["OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS"].into_iter().filter_map(number).any(|size| size > 1)
}
