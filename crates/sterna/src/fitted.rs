//! References that are fitted to the target: a mixture of normals, started where climbs end and refitted to draws.

mod shape;

pub use shape::Shape;
