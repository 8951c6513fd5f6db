//! A lower triangle L that turns independent coordinates into dependent ones, for eight rows at once.

use crate::lane_math::Lane;
use sterna::lanes::{Kernel, Lanes, dispatch};

/// L with a positive diagonal.
#[derive(Clone, Debug)]
pub(super) struct Triangle {
    dim: usize,
    /// Row by row, up to the diagonal.
    values: Vec<f64>,
}

/// What to do with L.
#[derive(Clone, Copy)]
enum Product {
    /// L v.
    Plain,
    /// Lᵀ v.
    Transposed,
    /// L⁻¹ v.
    Inverse,
}

impl Triangle {
    /// None unless all are finite numbers, the right many of them, with a positive diagonal.
    pub(super) fn new(dim: usize, values: Vec<f64>) -> Option<Self> {
        let sound = values.len() == dim * (dim + 1) / 2 && values.iter().all(|v| v.is_finite());
        let triangle = Self { dim, values };
        (sound && (0..dim).all(|i| triangle.row(i)[i] > 0.0)).then_some(triangle)
    }

    /// The factor of a symmetric positive matrix, given by its lower half.
    pub(super) fn cholesky(matrix: &[f64], dim: usize) -> Option<Self> {
        let mut l = Self { dim, values: vec![0.0; dim * (dim + 1) / 2] };
        for i in 0..dim {
            for j in 0..=i {
                let dot: f64 = l.row(i)[..j].iter().zip(&l.row(j)[..j]).map(|(a, b)| a * b).sum();
                let left = matrix[i * dim + j] - dot;
                let value = if i == j { left.sqrt() } else { left / l.row(j)[j] };
                l.values[i * (i + 1) / 2 + j] = value;
            }
        }
        Self::new(dim, l.values)
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    #[inline(always)]
    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * (i + 1) / 2..(i + 1) * (i + 2) / 2]
    }

    pub(super) fn multiply(&self, v: &mut [Lane]) {
        dispatch(Apply { triangle: self, product: Product::Plain, v });
    }

    pub(super) fn multiply_transposed(&self, v: &mut [Lane]) {
        dispatch(Apply { triangle: self, product: Product::Transposed, v });
    }

    pub(super) fn solve(&self, v: &mut [Lane]) {
        dispatch(Apply { triangle: self, product: Product::Inverse, v });
    }
}

struct Apply<'a> {
    triangle: &'a Triangle,
    product: Product,
    v: &'a mut [Lane],
}

impl Kernel for Apply<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { triangle, product, v } = self;
        let zero = L::splat(0.0);
        match product {
            Product::Plain => {
                for i in (0..triangle.dim).rev() {
                    let terms = triangle.row(i).iter().zip(&*v);
                    let sum = terms.fold(zero, |sum, (l, v)| L::load(&v.0).mul_add(L::splat(*l), sum));
                    sum.store(&mut v[i].0);
                }
            }
            Product::Transposed => {
                // Row i adds to all before it, and itself becomes the diagonal's share.
                for i in 0..triangle.dim {
                    let (row, here) = (triangle.row(i), L::load(&v[i].0));
                    for (l, v) in row[..i].iter().zip(v.iter_mut()) {
                        here.mul_add(L::splat(*l), L::load(&v.0)).store(&mut v.0);
                    }
                    (here * L::splat(row[i])).store(&mut v[i].0);
                }
            }
            Product::Inverse => {
                for i in 0..triangle.dim {
                    let row = triangle.row(i);
                    let start = L::load(&v[i].0);
                    let terms = row[..i].iter().zip(&*v);
                    let left = terms.fold(start, |sum, (l, v)| L::load(&v.0).mul_add(L::splat(-*l), sum));
                    (left * L::splat(1.0 / row[i])).store(&mut v[i].0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_products_and_solutions_agree() {
        let matrix = [4.0, 0.0, 0.0, 1.0, 3.0, 0.0, -0.5, 0.7, 2.0];
        let l = Triangle::cholesky(&matrix, 3).unwrap();
        let column = |j: usize| {
            let mut v: Vec<Lane> = (0..3).map(|i| Lane([f64::from(u8::from(i == j)); 8])).collect();
            // L Lᵀ e_j.
            l.multiply_transposed(&mut v);
            l.multiply(&mut v);
            v
        };
        for j in 0..3 {
            for (i, found) in column(j).iter().enumerate() {
                assert!((found.0[3] - matrix[i.max(j) * 3 + i.min(j)]).abs() < 1e-14);
            }
        }
        let start: Vec<Lane> = [0.3, -1.0, 2.0].map(|x| Lane([x; 8])).to_vec();
        let mut v = start.clone();
        l.multiply(&mut v);
        l.solve(&mut v);
        assert!(v.iter().zip(&start).all(|(a, b)| (a.0[0] - b.0[0]).abs() < 1e-14));
        assert!(Triangle::cholesky(&[1.0, 0.0, 1.0, 1.0], 2).is_none(), "a singular matrix has no factor");
        assert!(Triangle::new(2, vec![1.0, 0.0]).is_none());
    }
}
