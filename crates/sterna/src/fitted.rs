//! References that are fitted to the target: a mixture of normals, started where climbs end and refitted to draws.

mod anchor;
mod by_scores;
mod climb;
mod covariance;
mod eigen;
mod follow;
mod hunt;
mod laplace;
mod masses;
mod mixture;
mod modes;
mod numbers;
mod optima;
mod overlap;
mod refit;
mod shape;
mod soundings;
mod split;
mod standouts;
mod starts;
mod tails;

pub use anchor::{broaden, widen};
pub use climb::{Climb, End, Place, Way, climb, places};
pub use covariance::Covariance;
pub use follow::Drawn;
pub use laplace::{Laplace, laplace};
pub use mixture::{Component, Mixture};
pub use modes::Modes;
pub use optima::{Found, Further, Optimum, find_optima};
pub use refit::Worth;
pub use shape::Shape;
pub(crate) use soundings::of_either;
pub use soundings::{Soundings, sound};
pub(crate) use standouts::{MOST_COORDINATES, Standouts};
pub use starts::Starts;
pub use tails::{Endless, endless};
