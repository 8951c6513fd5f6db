//! The shape of a normal: a square root F of its covariance F Fᵀ.

use super::numbers::{add, dot, ln};
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
    /// Low rank plus diagonal: F = D (I + V (S − I) Vᵀ), with orthonormal columns of V.
    LowRank {
        /// D: standard deviations before directions are stretched.
        deviations: Vec<f64>,
        /// V: unit vectors, one after the other.
        directions: Vec<f64>,
        /// S: how much each direction is stretched.
        stretches: Vec<f64>,
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

    /// The shape of a normal with this precision (the inverse of its covariance), given row by row; none if it is not
    /// positive definite.
    ///
    /// With the coordinates in reverse order, Cholesky's factor of the precision is the inverse of F, transposed.
    pub fn of_precision(precision: &[f64], dim: usize) -> Option<Self> {
        let reversed: Vec<f64> = precision.iter().rev().copied().collect();
        let factor = Self::of_covariance(&reversed, dim)?;
        let mut lower = vec![0.0; dim * (dim + 1) / 2];
        let mut column = vec![0.0; dim];
        for j in 0..dim {
            column.fill(0.0);
            column[j] = 1.0;
            factor.solve(&mut column);
            // Column j of the factor's inverse is row j of its transpose; both orders reversed.
            for i in j..dim {
                lower[triangle(dim - 1 - j) + dim - 1 - i] = column[i];
            }
        }
        lower.iter().all(|x| x.is_finite()).then_some(Self::Dense { dim, lower })
    }

    /// Length of a point.
    pub fn dim(&self) -> usize {
        match self {
            Self::Diagonal(deviations) | Self::LowRank { deviations, .. } => deviations.len(),
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
            Self::LowRank { deviations, directions, stretches } => {
                stretch(x, directions.chunks_exact(x.len()).zip(stretches.iter().copied()));
                x.iter_mut().zip(deviations).for_each(|(x, s)| *x *= s);
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
                    add(&mut x[..=i], value, row);
                }
            }
            Self::LowRank { deviations, directions, stretches } => {
                x.iter_mut().zip(deviations).for_each(|(x, s)| *x *= s);
                stretch(x, directions.chunks_exact(x.len()).zip(stretches.iter().copied()).rev());
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
            Self::LowRank { deviations, directions, stretches } => {
                x.iter_mut().zip(deviations).for_each(|(x, s)| *x /= s);
                let inverse = stretches.iter().map(|s| 1.0 / s);
                stretch(x, directions.chunks_exact(x.len()).zip(inverse).rev());
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
                    add(&mut x[..i], -value, row);
                }
            }
            Self::LowRank { deviations, directions, stretches } => {
                let inverse = stretches.iter().map(|s| 1.0 / s);
                stretch(x, directions.chunks_exact(x.len()).zip(inverse));
                x.iter_mut().zip(deviations).for_each(|(x, s)| *x /= s);
            }
        }
    }

    /// log |det F|.
    pub fn log_volume(&self) -> f64 {
        let logs = |numbers: &[f64]| numbers.iter().map(|s| ln(*s)).sum::<f64>();
        match self {
            Self::Diagonal(deviations) => logs(deviations),
            Self::Dense { dim, lower } => (0..*dim).map(|i| ln(row(lower, i)[i])).sum(),
            Self::LowRank { deviations, stretches, .. } => logs(deviations) + logs(stretches),
        }
    }

    /// Standard deviation of each coordinate.
    pub fn deviations(&self) -> Vec<f64> {
        match self {
            Self::Diagonal(deviations) => deviations.clone(),
            Self::Dense { dim, lower } => {
                (0..*dim).map(|i| dot(row(lower, i), row(lower, i)).sqrt()).collect()
            }
            Self::LowRank { deviations, directions, stretches } => {
                let dim = deviations.len();
                let variance = |j: usize| {
                    let along = directions.chunks_exact(dim).zip(stretches);
                    1.0 + along.map(|(v, s)| (s * s - 1.0) * v[j] * v[j]).sum::<f64>()
                };
                (0..dim).map(|j| deviations[j] * variance(j).sqrt()).collect()
            }
        }
    }

    /// How narrow a coordinate is where those before it are known, beside how wide it is by itself: near 0 where the covariance is all
    /// but degenerate.
    ///
    /// ```
    /// use sterna::fitted::Shape;
    /// let ridge = Shape::of_covariance(&[1.0, 0.6, 0.6, 1.0], 2).unwrap();
    /// assert!((ridge.narrowest() - 0.8).abs() < 1e-15);
    /// assert_eq!(Shape::Diagonal(vec![1e9, 1e-9]).narrowest(), 1.0);
    /// ```
    pub fn narrowest(&self) -> f64 {
        match self {
            Self::Dense { dim, lower } => {
                let ratio = |(i, width): (usize, &f64)| row(lower, i)[i] / width;
                self.deviations()[..*dim].iter().enumerate().map(ratio).fold(1.0, f64::min)
            }
            Self::Diagonal(_) | Self::LowRank { .. } => 1.0,
        }
    }

    /// F Fᵀ, row by row.
    pub fn covariance(&self) -> Vec<f64> {
        let dim = self.dim();
        let mut out = vec![0.0; dim * dim];
        for (j, column) in out.chunks_exact_mut(dim).enumerate() {
            column[j] = 1.0;
            self.apply_transposed(column);
            self.apply(column);
        }
        out
    }

    /// The same shape, so many times as wide.
    pub fn widened(mut self, factor: f64) -> Self {
        let (Self::Diagonal(numbers)
        | Self::Dense { lower: numbers, .. }
        | Self::LowRank { deviations: numbers, .. }) = &mut self;
        numbers.iter_mut().for_each(|x| *x *= factor);
        self
    }

    /// The shape as a triangle.
    pub fn dense(&self) -> Self {
        let dim = self.dim();
        match self {
            Self::Dense { .. } => self.clone(),
            Self::Diagonal(deviations) => {
                let mut lower = vec![0.0; triangle(dim)];
                (0..dim).for_each(|i| lower[triangle(i) + i] = deviations[i]);
                Self::Dense { dim, lower }
            }
            Self::LowRank { .. } => Self::of_covariance(&self.covariance(), dim)
                .unwrap_or_else(|| Self::Diagonal(self.deviations()).dense()),
        }
    }

    /// F G for another shape G, which lives in the coordinates of this one; a triangle.
    pub fn around(&self, inner: &Self) -> Self {
        let (Self::Dense { dim, lower: outer }, Self::Dense { lower: inner, .. }) =
            (self.dense(), inner.dense())
        else {
            unreachable!("both are triangles")
        };
        let mut lower = vec![0.0; triangle(dim)];
        for i in 0..dim {
            let (begin, end) = (triangle(i), triangle(i + 1));
            for (k, &by) in outer[begin..end].iter().enumerate() {
                add(&mut lower[begin..end], by, row(&inner, k));
            }
        }
        Self::Dense { dim, lower }
    }

    /// Says what is wrong with numbers that came from elsewhere.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let positive = |numbers: &[f64]| numbers.iter().all(|s| s.is_finite() && *s > 0.0);
        let sound = match self {
            Self::Diagonal(deviations) => positive(deviations),
            Self::Dense { dim, lower } => {
                dim.checked_add(1).and_then(|n| n.checked_mul(*dim)).map(|n| n / 2) == Some(lower.len())
                    && lower.iter().all(|x| x.is_finite())
                    && (0..*dim).all(|i| row(lower, i)[i] > 0.0)
            }
            Self::LowRank { deviations, directions, stretches } => {
                let dim = deviations.len();
                positive(deviations)
                    && positive(stretches)
                    && dim.checked_mul(stretches.len()) == Some(directions.len())
                    && directions.chunks_exact(dim.max(1)).all(|v| (dot(v, v) - 1.0).abs() < 1e-9)
            }
        };
        if sound { Ok(()) } else { Err("lengths must agree, numbers be finite, deviations positive") }
    }
}

/// Numbers before row i of a lower triangle.
fn triangle(i: usize) -> usize {
    i * (i + 1) / 2
}

/// Row i of a lower triangle.
fn row(lower: &[f64], i: usize) -> &[f64] {
    &lower[triangle(i)..triangle(i + 1)]
}

/// x along each direction becomes so many times as long, one direction after the other.
fn stretch<'a>(x: &mut [f64], along: impl Iterator<Item = (&'a [f64], f64)>) {
    for (direction, by) in along {
        let part = (by - 1.0) * dot(direction, x);
        add(x, part, direction);
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::near;
    use super::*;

    #[test]
    fn products_and_solutions_undo_each_other() {
        let covariance = [4.0, 1.0, -0.5, 1.0, 3.0, 0.7, -0.5, 0.7, 2.0];
        let dense = Shape::of_covariance(&covariance, 3).unwrap();
        let low_rank = Shape::LowRank {
            deviations: vec![0.5, 2.0, 3.0],
            directions: vec![0.6, 0.8, 0.0, 0.0, 0.0, 1.0],
            stretches: vec![0.01, 30.0],
        };
        let precision = Shape::of_precision(&covariance, 3).unwrap();
        for shape in [
            dense.clone(),
            Shape::Diagonal(vec![0.5, 2.0, 3.0]),
            dense.clone().widened(2.0),
            low_rank.clone(),
            low_rank.clone().widened(0.3),
            precision,
        ] {
            let x = [0.3, -1.2, 2.0];
            let there_and_back: [fn(&Shape, &mut [f64]); 4] =
                [Shape::apply, Shape::solve, Shape::apply_transposed, Shape::solve_transposed];
            for pair in there_and_back.chunks(2) {
                let mut y = x;
                pair[0](&shape, &mut y);
                assert!(y != x);
                pair[1](&shape, &mut y);
                assert!(x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-13), "{y:?}");
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

    #[test]
    fn every_kind_knows_its_covariance_its_volume_and_its_triangle() {
        let covariance = [4.0, 1.0, -0.5, 1.0, 3.0, 0.7, -0.5, 0.7, 2.0];
        let low_rank = Shape::LowRank {
            deviations: vec![0.5, 2.0, 3.0],
            directions: vec![0.6, 0.8, 0.0, 0.0, 0.0, 1.0],
            stretches: vec![0.1, 30.0],
        };
        let dense = Shape::of_covariance(&covariance, 3).unwrap();
        let product = low_rank.around(&dense);
        for shape in [dense.clone(), low_rank.clone(), Shape::Diagonal(vec![0.5, 2.0, 3.0]), product.clone()]
        {
            let all = shape.covariance();
            let deviations: Vec<f64> = (0..3).map(|j| all[4 * j].sqrt()).collect();
            assert!(near(&shape.deviations(), &deviations, 1e-13));
            let triangle = shape.dense();
            assert!(near(&triangle.covariance(), &all, 1e-13));
            assert!((triangle.log_volume() - shape.log_volume()).abs() < 1e-13);
            // A precision's shape is that of the inverse.
            let inverse = Shape::of_precision(&all, 3).unwrap();
            assert!((inverse.log_volume() + shape.log_volume()).abs() < 1e-12);
            let mut x = [0.3, -1.0, 2.0];
            inverse.apply_transposed(&mut x);
            inverse.apply(&mut x);
            shape.apply_transposed(&mut x);
            shape.apply(&mut x);
            assert!(near(&x, &[0.3, -1.0, 2.0], 1e-10), "{x:?}");
            assert_eq!(shape.check(), Ok(()));
        }
        assert!((product.log_volume() - low_rank.log_volume() - dense.log_volume()).abs() < 1e-13);
    }

    #[test]
    fn bad_numbers_are_noticed() {
        for bad in [
            Shape::Diagonal(vec![1.0, 0.0]),
            Shape::Diagonal(vec![f64::NAN]),
            Shape::Dense { dim: 2, lower: vec![1.0; 2] },
            Shape::Dense { dim: usize::MAX, lower: vec![] },
            Shape::Dense { dim: 1, lower: vec![-1.0] },
            Shape::LowRank { deviations: vec![1.0], directions: vec![2.0], stretches: vec![1.0] },
            Shape::LowRank { deviations: vec![1.0], directions: vec![], stretches: vec![1.0] },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
