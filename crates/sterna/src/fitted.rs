//! References that are fitted to the target: a mixture of normals, started where climbs end and refitted to draws.

mod anchor;
mod climb;
mod covariance;
mod eigen;
mod laplace;
mod masses;
mod mixture;
mod numbers;
mod optima;
mod refit;
mod shape;
mod starts;

pub use anchor::widen;
pub use climb::{Climb, End, Place, Way, climb, places};
pub use covariance::Covariance;
pub use laplace::{Laplace, laplace};
pub use mixture::{Component, Mixture};
pub use optima::{Found, Optimum, find_optima, optimum_near};
pub use shape::Shape;
pub use starts::Starts;
