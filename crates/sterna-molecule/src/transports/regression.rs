//! Ridge regression by normal equations, summed row by row.

use rayon::prelude::*;

/// Rows of the equations that a thread sums at once: what it reads of a row serves all of them.
const AT_ONCE: usize = 2;

/// Least squares with a penalty, output by output and each on some of the inputs: minimises
/// Σ w (y − x b)² + λ |b|², the coefficient of input 0 (the constant) left free.
#[derive(Clone, Debug)]
pub(super) struct Ridge {
    /// XᵀWX, lower triangle by rows.
    gram: Vec<Vec<f64>>,
    /// XᵀWY.
    cross: Vec<Vec<f64>>,
}

impl Ridge {
    /// Nothing seen yet.
    pub(super) fn new(inputs: usize, outputs: usize) -> Self {
        let gram = (0..inputs).map(|i| vec![0.0; i + 1]).collect();
        Self { gram, cross: vec![vec![0.0; outputs]; inputs] }
    }

    /// Inputs and outputs of a row.
    pub(super) fn width(&self) -> usize {
        self.gram.len() + self.cross.first().map_or(0, Vec::len)
    }

    /// More rows of one weight: inputs, then outputs of each. Threads share the sums, each of which is made in the order of rows.
    pub(super) fn add(&mut self, weight: f64, rows: &[f64]) {
        let (width, inputs) = (self.width(), self.gram.len());
        let sums = self.gram.par_chunks_mut(AT_ONCE).zip(self.cross.par_chunks_mut(AT_ONCE));
        sums.enumerate().for_each(|(first, (gram, cross))| {
            for row in rows.chunks_exact(width) {
                let (x, y) = row.split_at(inputs);
                for ((gram, cross), xi) in gram.iter_mut().zip(&mut *cross).zip(&x[AT_ONCE * first..]) {
                    let scaled = weight * xi;
                    gram.iter_mut().zip(x).for_each(|(g, &xj)| *g += scaled * xj);
                    cross.iter_mut().zip(y).for_each(|(c, &y)| *c += scaled * y);
                }
            }
        });
    }

    /// The coefficients of `inputs` (increasing) for one output; none if the equations are singular.
    pub(super) fn solve(&self, output: usize, inputs: &[usize], penalty: f64) -> Option<Vec<f64>> {
        let entry = |&i: &usize| {
            let penalty = if i == 0 { 0.0 } else { penalty };
            let row = inputs.iter().take_while(|&&j| j <= i).map(|&j| self.gram[i][j]);
            let mut row: Vec<f64> = row.collect();
            if let Some(diagonal) = row.last_mut() {
                *diagonal += penalty;
            }
            row
        };
        let gram = inputs.iter().map(entry).collect();
        solve_positive_definite(gram, inputs.iter().map(|&i| self.cross[i][output]).collect())
    }
}

/// Solves A x = b for a positive definite A, of which the lower triangle is read.
pub(super) fn solve_positive_definite(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Option<Vec<f64>> {
    cholesky(&mut a)?;
    substitute(&a, &mut b);
    Some(b)
}

/// Replaces the lower triangle of A by L with L Lᵀ = A; none if A is not positive definite.
fn cholesky(a: &mut [Vec<f64>]) -> Option<()> {
    for i in 0..a.len() {
        for j in 0..=i {
            let (before, rest) = a.split_at_mut(i);
            let row = &mut rest[0];
            let other = if j < i { &before[j] } else { &row[..] };
            let mut sum = row[j];
            for k in 0..j {
                sum -= row[k] * other[k];
            }
            if j < i {
                row[j] = sum / before[j][j];
            } else if sum > 0.0 {
                row[i] = sum.sqrt();
            } else {
                return None;
            }
        }
    }
    Some(())
}

/// Solves L Lᵀ x = b in place.
fn substitute(l: &[Vec<f64>], x: &mut [f64]) {
    let n = x.len();
    for i in 0..n {
        for k in 0..i {
            x[i] -= l[i][k] * x[k];
        }
        x[i] /= l[i][i];
    }
    for i in (0..n).rev() {
        for k in i + 1..n {
            x[i] -= l[k][i] * x[k];
        }
        x[i] /= l[i][i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_relation_is_found() {
        let mut ridge = Ridge::new(3, 2);
        for i in 0..50 {
            let (a, b) = ((i as f64 * 0.7).sin(), (i as f64 * 1.3).cos());
            ridge.add(1.0 + a * a, &[1.0, a, b, 2.0 - a + 3.0 * b, 0.5 * b]);
        }
        for (output, expected) in [[2.0, -1.0, 3.0], [0.0, 0.0, 0.5]].iter().enumerate() {
            let found = ridge.solve(output, &[0, 1, 2], 0.0).unwrap();
            assert!(found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-12), "{found:?}");
        }
        let part = ridge.solve(1, &[0, 2], 0.0).unwrap();
        assert!(part[0].abs() < 1e-12 && (part[1] - 0.5).abs() < 1e-12);
        let shrunk = ridge.solve(1, &[0, 2], 1e3).unwrap();
        assert!(shrunk[1] > 0.0 && shrunk[1] < 0.1, "{shrunk:?}");
        assert!(Ridge::new(2, 1).solve(0, &[0, 1], 0.0).is_none());
    }
}
