//! Which kind of shape a fit makes.

use super::Shape;
use super::eigen;
use super::numbers::dot;
use serde::{Deserialize, Serialize};

/// Directions that a low-rank shape stretches, at most.
pub(super) const RANK: usize = 30;

/// The kind of covariance that fits make.
///
/// ```
/// use sterna::fitted::Covariance;
/// assert_eq!(Covariance::for_dim(10), Covariance::Dense);
/// assert_eq!(serde_json::to_string(&Covariance::for_dim(5000)).unwrap(), "\"low-rank\"");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Covariance {
    /// All correlations.
    Dense,
    /// Standard deviations, and some directions that are stretched.
    LowRank,
    /// Standard deviations only.
    Diagonal,
}

impl Covariance {
    /// Dimensions up to which dense matrices are cheap beside what they save.
    pub const MOST_DENSE: usize = 512;

    /// What serves in this dimension.
    pub fn for_dim(dim: usize) -> Self {
        if dim <= Self::MOST_DENSE { Self::Dense } else { Self::LowRank }
    }

    /// A shape as this kind has it: coordinates keep their standard deviations.
    pub fn kind_of(self, shape: &Shape) -> Shape {
        match (self, shape) {
            (Self::Dense, _) => shape.dense(),
            (Self::Diagonal, _) => Shape::Diagonal(shape.deviations()),
            (Self::LowRank, Shape::LowRank { .. }) => shape.clone(),
            (Self::LowRank, Shape::Diagonal(deviations)) => Shape::LowRank {
                deviations: deviations.clone(),
                directions: Vec::new(),
                stretches: Vec::new(),
            },
            (Self::LowRank, Shape::Dense { .. }) => low_rank(shape),
        }
    }
}

/// The correlations' largest eigenvalues, which are the directions in which a normal is widest.
fn low_rank(shape: &Shape) -> Shape {
    let (dim, deviations) = (shape.dim(), shape.deviations());
    let mut correlations = shape.covariance();
    for (row, a) in correlations.chunks_exact_mut(dim).zip(&deviations) {
        row.iter_mut().zip(&deviations).for_each(|(entry, b)| *entry /= a * b);
    }
    let product = |v: &[f64], out: &mut [f64]| {
        out.iter_mut().zip(correlations.chunks_exact(dim)).for_each(|(out, row)| *out = dot(row, v));
    };
    let (values, vectors) = eigen::largest(dim, RANK.min(dim / 2), product);
    let (mut directions, mut stretches) = (Vec::new(), Vec::new());
    for (value, vector) in values.iter().zip(vectors.chunks_exact(dim)) {
        if *value > 1.2 {
            directions.extend_from_slice(vector);
            stretches.push(value.sqrt());
        }
    }
    Shape::LowRank { deviations, directions, stretches }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::near;
    use super::*;

    #[test]
    fn a_low_rank_shape_stays_itself_and_a_dense_one_keeps_its_wide_directions() {
        let dim = 20;
        // Unit deviations and one direction of variance 100.
        let mut covariance = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in 0..dim {
                covariance[i * dim + j] = f64::from(u8::from(i == j)) + 99.0 / dim as f64;
            }
        }
        let dense = Shape::of_covariance(&covariance, dim).unwrap();
        let low = Covariance::LowRank.kind_of(&dense);
        assert_eq!(Covariance::LowRank.kind_of(&low), low);
        let Shape::LowRank { directions, stretches, .. } = &low else { panic!() };
        assert_eq!(stretches.len(), 1);
        assert!(near(&directions.iter().map(|v| v * v).collect::<Vec<_>>(), &[0.05; 20], 1e-9));
        assert_eq!(low.check(), Ok(()));
        let diagonal = Covariance::Diagonal.kind_of(&dense);
        assert!(near(&diagonal.deviations(), &[5.95f64.sqrt(); 20], 1e-9));
    }
}
