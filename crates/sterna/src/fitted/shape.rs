//! The shape of a normal: a square root F of its covariance F Fᵀ.

use serde::{Deserialize, Serialize};

/// A square root F of a covariance F Fᵀ, which standard normals are multiplied with.
///
/// Its own plain loops rather than a crate for matrices: those choose their instructions by the processor, and with them
/// the last bits of every draw.
///
/// ```
/// use sterna::fitted::Shape;
/// let shape = Shape::of_covariance(&[4.0, 2.0, 2.0, 2.0], 2).expect("positive definite");
/// let mut x = [1.0, 1.0];
/// shape.apply(&mut x);
/// assert_eq!(x, [2.0, 2.0]);
/// shape.solve(&mut x);
/// assert_eq!(x, [1.0, 1.0]);
/// assert!((shape.log_volume() - 2f64.ln()).abs() < 1e-15);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    /// Standard deviations.
    Diagonal(Vec<f64>),
    /// A lower triangle, row by row: row i has i + 1 numbers.
    Dense {
        /// Length of a point.
        dim: usize,
        /// The triangle.
        lower: Vec<f64>,
    },
}

impl Shape {
    /// Cholesky's factor of a symmetric matrix, given row by row; none if it is not positive definite.
    pub fn of_covariance(covariance: &[f64], dim: usize) -> Option<Self> {
        let mut lower = Vec::with_capacity(dim * (dim + 1) / 2);
        for i in 0..dim {
            let row = lower.len();
            for j in 0..=i {
                let other = j * (j + 1) / 2;
                let known: f64 = (0..j).map(|k| lower[row + k] * lower[other + k]).sum();
                let rest = covariance[i * dim + j] - known;
                if i > j {
                    lower.push(rest / lower[other + j]);
                } else if rest > 0.0 && rest.is_finite() {
                    lower.push(rest.sqrt());
                } else {
                    return None;
                }
            }
        }
        Some(Self::Dense { dim, lower })
    }

    /// Length of a point.
    pub fn dim(&self) -> usize {
        match self {
            Self::Diagonal(deviations) => deviations.len(),
            Self::Dense { dim, .. } => *dim,
        }
    }

    /// x becomes F x.
    pub fn apply(&self, x: &mut [f64]) {
        match self {
            Self::Diagonal(deviations) => x.iter_mut().zip(deviations).for_each(|(x, s)| *x *= s),
            Self::Dense { dim, lower } => {
                for i in (0..*dim).rev() {
                    x[i] = dot(row(lower, i), x);
                }
            }
        }
    }

    /// x becomes Fᵀ x.
    pub fn apply_transposed(&self, x: &mut [f64]) {
        match self {
            Self::Diagonal(_) => self.apply(x),
            Self::Dense { dim, lower } => {
                for i in 0..*dim {
                    let (row, value) = (row(lower, i), x[i]);
                    x[i] = 0.0;
                    x.iter_mut().zip(row).for_each(|(x, l)| *x += l * value);
                }
            }
        }
    }

    /// x becomes F⁻¹ x.
    pub fn solve(&self, x: &mut [f64]) {
        match self {
            Self::Diagonal(deviations) => x.iter_mut().zip(deviations).for_each(|(x, s)| *x /= s),
            Self::Dense { dim, lower } => {
                for i in 0..*dim {
                    let row = row(lower, i);
                    x[i] = (x[i] - dot(&row[..i], x)) / row[i];
                }
            }
        }
    }

    /// x becomes F⁻ᵀ x.
    pub fn solve_transposed(&self, x: &mut [f64]) {
        match self {
            Self::Diagonal(_) => self.solve(x),
            Self::Dense { dim, lower } => {
                for i in (0..*dim).rev() {
                    let row = row(lower, i);
                    let value = x[i] / row[i];
                    x[i] = value;
                    x[..i].iter_mut().zip(row).for_each(|(x, l)| *x -= l * value);
                }
            }
        }
    }

    /// log |det F|.
    pub fn log_volume(&self) -> f64 {
        match self {
            Self::Diagonal(deviations) => deviations.iter().map(|s| s.ln()).sum(),
            Self::Dense { dim, lower } => (0..*dim).map(|i| row(lower, i)[i].ln()).sum(),
        }
    }

    /// The same shape, so many times as wide.
    pub fn widened(mut self, factor: f64) -> Self {
        let (Self::Diagonal(numbers) | Self::Dense { lower: numbers, .. }) = &mut self;
        numbers.iter_mut().for_each(|x| *x *= factor);
        self
    }
}

/// Row i of a lower triangle.
fn row(lower: &[f64], i: usize) -> &[f64] {
    let begin = i * (i + 1) / 2;
    &lower[begin..begin + i + 1]
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_solutions_undo_each_other() {
        let covariance = [4.0, 1.0, -0.5, 1.0, 3.0, 0.7, -0.5, 0.7, 2.0];
        let dense = Shape::of_covariance(&covariance, 3).unwrap();
        for shape in [dense.clone(), Shape::Diagonal(vec![0.5, 2.0, 3.0]), dense.clone().widened(2.0)] {
            let x = [0.3, -1.2, 2.0];
            let there_and_back: [fn(&Shape, &mut [f64]); 4] =
                [Shape::apply, Shape::solve, Shape::apply_transposed, Shape::solve_transposed];
            for pair in there_and_back.chunks(2) {
                let mut y = x;
                pair[0](&shape, &mut y);
                assert!(y != x);
                pair[1](&shape, &mut y);
                assert!(x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-14), "{y:?}");
            }
        }
        // F Fᵀ is the covariance.
        for j in 0..3 {
            let mut column = [0.0; 3];
            column[j] = 1.0;
            dense.apply_transposed(&mut column);
            dense.apply(&mut column);
            let wanted = &covariance[3 * j..3 * j + 3];
            assert!(column.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-14), "{column:?}");
        }
        assert_eq!(Shape::of_covariance(&[1.0, 2.0, 2.0, 1.0], 2), None);
    }
}
