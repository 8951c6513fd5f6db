//! Eigenvalues of symmetric matrices: all of them by Jacobi's rotations, the largest by iterating on a subspace.

use super::numbers::{add, dot};

/// Eigenvalues and eigenvectors (one row each) of a symmetric matrix, given row by row, by cyclic rotations.
pub(super) fn symmetric(mut matrix: Vec<f64>, dim: usize) -> (Vec<f64>, Vec<f64>) {
    let mut vectors = vec![0.0; dim * dim];
    (0..dim).for_each(|i| vectors[i * dim + i] = 1.0);
    let size = dot(&matrix, &matrix);
    for _sweep in 0..40 {
        let mut off = 0.0;
        for p in 0..dim {
            for q in p + 1..dim {
                off += matrix[p * dim + q] * matrix[p * dim + q];
                rotate(&mut matrix, &mut vectors, dim, p, q);
            }
        }
        if off <= 1e-30 * size {
            break;
        }
    }
    ((0..dim).map(|i| matrix[i * dim + i]).collect(), vectors)
}

/// The rotation of coordinates p and q that makes their entry vanish.
fn rotate(matrix: &mut [f64], vectors: &mut [f64], dim: usize, p: usize, q: usize) {
    let entry = matrix[p * dim + q];
    if entry == 0.0 {
        return;
    }
    let theta = (matrix[q * dim + q] - matrix[p * dim + p]) / (2.0 * entry);
    let tangent = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    let sine = tangent * cosine;
    for k in 0..dim {
        let (a, b) = (matrix[k * dim + p], matrix[k * dim + q]);
        (matrix[k * dim + p], matrix[k * dim + q]) = (cosine * a - sine * b, sine * a + cosine * b);
    }
    for numbers in [matrix, vectors] {
        for k in 0..dim {
            let (a, b) = (numbers[p * dim + k], numbers[q * dim + k]);
            (numbers[p * dim + k], numbers[q * dim + k]) = (cosine * a - sine * b, sine * a + cosine * b);
        }
    }
}

/// Largest eigenvalues of a symmetric matrix with their vectors, one row each; `product` writes matrix × vector.
pub(super) fn largest(
    dim: usize,
    count: usize,
    mut product: impl FnMut(&[f64], &mut [f64]),
) -> (Vec<f64>, Vec<f64>) {
    let count = count.min(dim);
    // Any vectors do that are far from special: the fractional parts of multiples of the golden ratio.
    let start = |i: usize| (((i + 1) as f64) * 0.618_033_988_749_894_9).fract() - 0.5;
    let mut vectors: Vec<f64> = (0..count * dim).map(start).collect();
    let mut images = vec![0.0; count * dim];
    orthonormalise(&mut vectors, dim);
    for _ in 0..30 {
        for (vector, image) in vectors.chunks_exact(dim).zip(images.chunks_exact_mut(dim)) {
            product(vector, image);
        }
        std::mem::swap(&mut vectors, &mut images);
        orthonormalise(&mut vectors, dim);
    }
    rotated(vectors, dim, product)
}

/// The matrix within the span of orthonormal vectors: its eigenvalues there and their vectors.
pub(super) fn rotated(
    vectors: Vec<f64>,
    dim: usize,
    mut product: impl FnMut(&[f64], &mut [f64]),
) -> (Vec<f64>, Vec<f64>) {
    let count = vectors.len() / dim;
    let mut image = vec![0.0; dim];
    let mut small = vec![0.0; count * count];
    for (i, vector) in vectors.chunks_exact(dim).enumerate() {
        product(vector, &mut image);
        for (j, other) in vectors.chunks_exact(dim).enumerate().take(i + 1) {
            small[i * count + j] = dot(other, &image);
            small[j * count + i] = small[i * count + j];
        }
    }
    let (values, turns) = symmetric(small, count);
    let mut out = vec![0.0; count * dim];
    for (out, turn) in out.chunks_exact_mut(dim).zip(turns.chunks_exact(count)) {
        for (vector, &by) in vectors.chunks_exact(dim).zip(turn) {
            add(out, by, vector);
        }
    }
    (values, out)
}

/// Gram and Schmidt, twice over for the sake of rounding; rows that depend on those before become zero.
pub(super) fn orthonormalise(vectors: &mut [f64], dim: usize) {
    for i in 0..vectors.len() / dim {
        let (before, rest) = vectors.split_at_mut(i * dim);
        let vector = &mut rest[..dim];
        let length = dot(vector, vector).sqrt();
        for _ in 0..2 {
            for other in before.chunks_exact(dim) {
                let by = -dot(other, vector);
                add(vector, by, other);
            }
        }
        let left = dot(vector, vector).sqrt();
        let scale = if left > 1e-10 * length { 1.0 / left } else { 0.0 };
        vector.iter_mut().for_each(|x| *x *= scale);
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::near;
    use super::*;

    /// Σ λ v vᵀ with v the columns of a rotation.
    fn matrix(dim: usize, value: impl Fn(usize) -> f64) -> (Vec<f64>, Vec<f64>) {
        let mut vectors: Vec<f64> = (0..dim * dim).map(|i| ((i * i + 3 * i) as f64).sin()).collect();
        orthonormalise(&mut vectors, dim);
        let mut out = vec![0.0; dim * dim];
        for (k, v) in vectors.chunks_exact(dim).enumerate() {
            for i in 0..dim {
                add(&mut out[i * dim..(i + 1) * dim], value(k) * v[i], v);
            }
        }
        (out, vectors)
    }

    #[test]
    fn rotations_find_all_eigenvalues_and_iterations_the_largest() {
        for dim in [1, 2, 7, 30] {
            let (m, _) = matrix(dim, |k| 10f64.powi(k as i32 % 7) - 3.0);
            let (values, vectors) = symmetric(m.clone(), dim);
            for (value, v) in values.iter().zip(vectors.chunks_exact(dim)) {
                let image: Vec<f64> = m.chunks_exact(dim).map(|row| dot(row, v)).collect();
                let wanted: Vec<f64> = v.iter().map(|v| v * value).collect();
                assert!(near(&image, &wanted, 1e-8), "{dim}: {value}");
                assert!((dot(v, v) - 1.0).abs() < 1e-12);
            }
        }
        let (m, truth) = matrix(40, |k| if k < 3 { 50.0 * (k + 1) as f64 } else { 1.0 });
        let product = |v: &[f64], out: &mut [f64]| {
            out.iter_mut().zip(m.chunks_exact(40)).for_each(|(out, row)| *out = dot(row, v));
        };
        let (values, vectors) = largest(40, 5, product);
        let mut found: Vec<f64> = values.iter().copied().filter(|v| *v > 2.0).collect();
        found.sort_by(f64::total_cmp);
        assert!(near(&found, &[50.0, 100.0, 150.0], 1e-10), "{values:?}");
        let best = (0..5).max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap();
        assert!((dot(&vectors[best * 40..][..40], &truth[80..120]).abs() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn vectors_that_depend_on_others_vanish() {
        let mut vectors = vec![1.0, 1.0, 0.0, 2.0, 2.0, 0.0, 0.0, 0.0, 3.0];
        orthonormalise(&mut vectors, 3);
        assert_eq!(vectors[3..6], [0.0; 3]);
        assert_eq!(vectors[6..], [0.0, 0.0, 1.0]);
    }
}
