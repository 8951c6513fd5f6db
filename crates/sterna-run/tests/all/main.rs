//! Tests of what `sterna-run` offers, one module per subject, in one binary.

mod among;
mod auto;
mod boxed;
mod calibration;
#[cfg(feature = "cuda")]
mod cuda_run;
mod device;
mod draws_file;
mod fitted;
mod molecules;
mod own_target;
mod physics;
mod prior;
mod report;
mod reproduce;
mod skeletons;
mod stan;
mod supports;
mod trained;
mod until;
mod verify;
mod zoo;
