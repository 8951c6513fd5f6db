//! Ranks of a run as processes of MPI, started by `mpirun` or `srun`. Without the feature `mpi` this crate is empty.

#[cfg(feature = "mpi")]
mod shim;
#[cfg(feature = "mpi")]
mod world;

#[cfg(feature = "mpi")]
pub use world::World;
