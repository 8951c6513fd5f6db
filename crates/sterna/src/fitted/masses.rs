//! Shapes between two others.

use super::Shape;

impl Shape {
    /// The shape whose precision is (1 − share) of this one's and `share` of the other's: what local moves see on a
    /// geometric path between two normals.
    ///
    /// ```
    /// use sterna::fitted::Shape;
    /// let (narrow, wide) = (Shape::Diagonal(vec![1.0]), Shape::Diagonal(vec![10.0]));
    /// let Shape::Diagonal(deviation) = narrow.towards(&wide, 0.5) else { unreachable!() };
    /// assert!((deviation[0] - 0.505f64.sqrt().recip()).abs() < 1e-12);
    /// ```
    pub fn towards(&self, other: &Self, share: f64) -> Self {
        let dim = self.dim();
        if let (Self::Diagonal(own), Self::Diagonal(others)) = (self, other) {
            let between = |(a, b): (&f64, &f64)| ((1.0 - share) / (a * a) + share / (b * b)).sqrt().recip();
            return Self::Diagonal(own.iter().zip(others).map(between).collect());
        }
        let mut precision = vec![0.0; dim * dim];
        for (shape, weight) in [(self, 1.0 - share), (other, share)] {
            for j in 0..dim {
                let column = &mut precision[j * dim..(j + 1) * dim];
                let mut unit = vec![0.0; dim];
                unit[j] = 1.0;
                shape.solve(&mut unit);
                shape.solve_transposed(&mut unit);
                column.iter_mut().zip(&unit).for_each(|(sum, x)| *sum += weight * x);
            }
        }
        Self::of_precision(&precision, dim).unwrap_or_else(|| self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precisions_are_mixed() {
        let covariance = [4.0, 1.0, -0.5, 1.0, 3.0, 0.7, -0.5, 0.7, 2.0];
        let dense = Shape::of_covariance(&covariance, 3).unwrap();
        let wide = Shape::Diagonal(vec![3.0, 5.0, 7.0]);
        let precision = |shape: &Shape, x: [f64; 3]| {
            let mut y = x;
            shape.solve(&mut y);
            shape.solve_transposed(&mut y);
            y
        };
        let between = dense.towards(&wide, 0.3);
        for x in [[1.0, 0.0, 0.0], [0.2, -1.0, 0.4]] {
            let (a, b, mixed) = (precision(&dense, x), precision(&wide, x), precision(&between, x));
            for j in 0..3 {
                assert!((0.7 * a[j] + 0.3 * b[j] - mixed[j]).abs() < 1e-13);
            }
        }
    }
}
