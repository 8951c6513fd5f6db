//! Points of particle systems: mean-free coordinates in an orthonormal (Helmert) basis (errata E11).
//!
//! A system of n particles in D dimensions without its centre of mass is a point of (n − 1)·D numbers;
//! particle i sits at Σₖ basis[k][i] · (y_{kD}, …, y_{kD+D−1}).

use serde::{Deserialize, Serialize};

use crate::graph::Value;

/// Number and dimension of particles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Particles {
    /// How many.
    pub count: usize,
    /// Dimension of space.
    pub space: usize,
}

impl Particles {
    /// DW-4: four particles in the plane.
    pub const DW4: Self = Self { count: 4, space: 2 };

    /// Length of a mean-free point.
    pub fn dim(self) -> usize {
        (self.count - 1) * self.space
    }

    /// Orthonormal rows that sum to zero: row k is (1, …, 1, −k, 0, …)/√(k(k+1)) with k = 1, 2, … ones.
    pub fn basis(self) -> Vec<Vec<f64>> {
        (1..self.count)
            .map(|k| {
                let norm = ((k * (k + 1)) as f64).sqrt();
                (0..self.count)
                    .map(|i| match i {
                        i if i < k => 1.0 / norm,
                        i if i == k => -(k as f64) / norm,
                        _ => 0.0,
                    })
                    .collect()
            })
            .collect()
    }

    /// The matrix from mean-free coordinates to all positions, dim × (count · space).
    fn lift_matrix(self) -> Vec<f64> {
        let mut matrix = vec![0.0; self.dim() * self.count * self.space];
        for (k, row) in self.basis().iter().enumerate() {
            for (i, &b) in row.iter().enumerate() {
                for axis in 0..self.space {
                    let at = (k * self.space + axis) * self.count * self.space + i * self.space + axis;
                    matrix[at] = b;
                }
            }
        }
        matrix
    }

    /// Records the positions: `count` rows of `space` numbers per point.
    pub fn lift(self, y: Value<'_>) -> Value<'_> {
        let matrix = y.graph().constant(self.count * self.space, &self.lift_matrix());
        y.matmul(matrix).reshape(self.count, self.space)
    }

    /// Records the mean-free coordinates of positions or displacements; their mean drops out.
    pub fn project(self, positions: Value<'_>) -> Value<'_> {
        let matrix = positions.graph().constant(self.count * self.space, &self.lift_matrix());
        positions.reshape(1, self.count * self.space).matmul_transposed(matrix)
    }

    /// All ordered pairs (i, j), i ≠ j, as two lists.
    pub fn edges(self) -> (Vec<usize>, Vec<usize>) {
        let all = (0..self.count).flat_map(|i| (0..self.count).map(move |j| (i, j)));
        all.filter(|(i, j)| i != j).unzip()
    }
}
