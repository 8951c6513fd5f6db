//! What can be done with a value: each operation is recorded, simplified where that is free.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::Value;
use crate::op::{Binary, Op, Rows, Shape, Transpose, Unary};

impl<'g> Value<'g> {
    fn unary(self, f: Unary) -> Self {
        self.graph.record(Op::Unary(f, self.id), self.shape())
    }

    /// eˣ.
    pub fn exp(self) -> Self {
        self.unary(Unary::Exp)
    }

    /// log x.
    pub fn log(self) -> Self {
        self.unary(Unary::Log)
    }

    /// tanh x.
    pub fn tanh(self) -> Self {
        self.unary(Unary::Tanh)
    }

    /// 1/(1 + e⁻ˣ).
    pub fn sigmoid(self) -> Self {
        self.unary(Unary::Sigmoid)
    }

    /// log(1 + eˣ).
    pub fn softplus(self) -> Self {
        self.unary(Unary::Softplus)
    }

    /// x/(1 + e⁻ˣ).
    pub fn silu(self) -> Self {
        self.unary(Unary::Silu)
    }

    /// √x.
    pub fn sqrt(self) -> Self {
        self.unary(Unary::Sqrt)
    }

    /// 1/x.
    pub fn recip(self) -> Self {
        self.unary(Unary::Recip)
    }

    /// sin x.
    pub fn sin(self) -> Self {
        self.unary(Unary::Sin)
    }

    /// cos x.
    pub fn cos(self) -> Self {
        self.unary(Unary::Cos)
    }

    /// |x|.
    pub fn abs(self) -> Self {
        self.unary(Unary::Abs)
    }

    /// −1, 0 or 1.
    pub fn sign(self) -> Self {
        self.unary(Unary::Sign)
    }

    /// 1 where x > 0, else 0.
    pub fn step(self) -> Self {
        self.unary(Unary::Step)
    }

    /// x, or 0 where x is NaN or infinite.
    pub fn finite_or_zero(self) -> Self {
        self.unary(Unary::FiniteOrZero)
    }

    /// 1 where x is finite, 0 where it is NaN or infinite.
    pub fn is_finite(self) -> Self {
        self.abs().recip().step()
    }

    /// x².
    pub fn square(self) -> Self {
        self * self
    }

    /// scale · x + offset.
    pub fn affine(self, scale: f64, offset: f64) -> Self {
        if scale == 1.0 && offset == 0.0 {
            return self;
        }
        if scale == 0.0 {
            return self.graph.scalar(offset).broadcast(self.shape());
        }
        if let Some(x) = self.graph.uniform(self.id) {
            return self.graph.scalar(scale * x + offset).broadcast(self.shape());
        }
        if let (Op::Affine(x, s, o), _) = self.graph.node(self.id) {
            return self.graph.value(x).affine(scale * f64::from(s), scale * f64::from(o) + offset);
        }
        self.graph.record(Op::Affine(self.id, scale.into(), offset.into()), self.shape())
    }

    fn binary(self, f: Binary, other: Self) -> Self {
        let (a, b) = (self.shape(), other.shape());
        let shape = a.broadcast(b).unwrap_or_else(|| panic!("{f:?} of {a} and {b}"));
        // A uniform constant becomes part of an affine map.
        let fold = |x: Self, c: f64, scale: f64| {
            let y = match f {
                Binary::Mul => x.affine(c, 0.0),
                _ => x.affine(scale, c),
            };
            y.broadcast(shape)
        };
        if let Some(c) = self.graph.uniform(other.id) {
            return fold(self, if f == Binary::Sub { -c } else { c }, 1.0);
        }
        if let Some(c) = self.graph.uniform(self.id) {
            return fold(other, c, if f == Binary::Sub { -1.0 } else { 1.0 });
        }
        match f {
            Binary::Add if self.id == other.id => self.affine(2.0, 0.0),
            // The smaller one first, so that a + b and b + a are one value.
            Binary::Add | Binary::Mul if other.id < self.id => {
                self.graph.record(Op::Binary(f, other.id, self.id), shape)
            }
            _ => self.graph.record(Op::Binary(f, self.id, other.id), shape),
        }
    }

    /// Rows and columns repeated up to `shape`.
    ///
    /// # Panics
    /// If the value does not repeat to that shape.
    pub fn broadcast(self, shape: Shape) -> Self {
        let own = self.shape();
        if own == shape {
            return self;
        }
        assert_eq!(own.broadcast(shape), Some(shape), "{own} does not repeat to {shape}");
        let id = match self.graph.node(self.id).0 {
            Op::Broadcast(inner) => inner,
            _ => self.id,
        };
        self.graph.record(Op::Broadcast(id), shape)
    }

    /// The opposite of [`broadcast`](Self::broadcast): sums the repeated rows and columns.
    pub fn sum_to(self, shape: Shape) -> Self {
        let mut y = self;
        if shape.cols == 1 {
            y = y.sum_cols();
        }
        if shape.rows == Rows::Fixed(1) {
            y = y.sum_rows();
        }
        assert_eq!(y.shape(), shape, "{} does not sum to {shape}", self.shape());
        y
    }

    /// Σ over the columns.
    pub fn sum_cols(self) -> Self {
        let shape = self.shape();
        if shape.cols == 1 {
            return self;
        }
        if let (Op::Broadcast(x), _) = self.graph.node(self.id) {
            let x = self.graph.value(x);
            if x.cols() == 1 {
                return x.affine(shape.cols as f64, 0.0).broadcast(Shape { cols: 1, ..shape });
            }
        }
        self.graph.record(Op::SumCols(self.id), Shape { cols: 1, ..shape })
    }

    /// Σ over all rows, first to last.
    pub fn sum_rows(self) -> Self {
        let shape = self.shape();
        if shape.rows == Rows::Fixed(1) {
            return self;
        }
        self.graph.record(Op::SumRows(self.id), Shape::fixed(1, shape.cols))
    }

    /// Mean over the batch (each member's rows summed).
    pub fn mean_rows(self) -> Self {
        self.sum_rows() * self.graph.row_count().recip()
    }

    /// log Σ exp over the columns.
    pub fn log_sum_exp(self) -> Self {
        self.graph.record(Op::LogSumExp(self.id), Shape { cols: 1, ..self.shape() })
    }

    /// self · b.
    ///
    /// # Panics
    /// If the shapes do not fit, or `b` is a batch.
    pub fn matmul(self, b: Self) -> Self {
        let (a, s) = (self.shape(), b.shape());
        assert!(!s.rows.is_batch() && a.cols == s.rows.group(), "product of {a} and {s}");
        self.graph.record(Op::MatMul(self.id, b.id, Transpose::No), Shape { rows: a.rows, cols: s.cols })
    }

    /// self · bᵀ.
    ///
    /// # Panics
    /// If the shapes do not fit, or `b` is a batch.
    pub fn matmul_transposed(self, b: Self) -> Self {
        let (a, s) = (self.shape(), b.shape());
        assert!(!s.rows.is_batch() && a.cols == s.cols, "product of {a} and the transpose of {s}");
        let shape = Shape { rows: a.rows, cols: s.rows.group() };
        self.graph.record(Op::MatMul(self.id, b.id, Transpose::Second), shape)
    }

    /// selfᵀ · b: sums over rows, first to last.
    ///
    /// # Panics
    /// If the rows differ.
    pub fn transposed_matmul(self, b: Self) -> Self {
        let (a, s) = (self.shape(), b.shape());
        assert_eq!(a.rows, s.rows, "product of the transpose of {a} and {s}");
        self.graph.record(Op::MatMul(self.id, b.id, Transpose::First), Shape::fixed(a.cols, s.cols))
    }

    /// Columns `start .. start + cols`.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn slice(self, start: usize, cols: usize) -> Self {
        let shape = self.shape();
        assert!(cols > 0 && start + cols <= shape.cols, "columns {start}+{cols} of {shape}");
        if cols == shape.cols {
            return self;
        }
        if let Some(c) = self.graph.uniform(self.id) {
            return self.graph.scalar(c).broadcast(Shape { cols, ..shape });
        }
        self.graph.record(Op::Slice(self.id, start), Shape { cols, ..shape })
    }

    /// The columns placed at `start` among `cols`, zeros elsewhere.
    ///
    /// # Panics
    /// If there is no room.
    pub fn pad(self, start: usize, cols: usize) -> Self {
        let shape = self.shape();
        assert!(start + shape.cols <= cols, "{shape} at column {start} of {cols}");
        if cols == shape.cols {
            return self;
        }
        if self.graph.uniform(self.id) == Some(0.0) {
            return self.graph.scalar(0.0).broadcast(Shape { cols, ..shape });
        }
        self.graph.record(Op::Pad(self.id, start), Shape { cols, ..shape })
    }

    /// The same numbers as groups of `group` rows of `cols`.
    ///
    /// # Panics
    /// If a group does not hold as many numbers as before.
    pub fn reshape(self, group: usize, cols: usize) -> Self {
        let shape = self.shape();
        let new = Shape { rows: shape.rows.with_group(group), cols };
        assert_eq!(shape.group_len(), new.group_len(), "{shape} reshaped to {new}");
        if new == shape {
            return self;
        }
        if let Some(c) = self.graph.uniform(self.id) {
            return self.graph.scalar(c).broadcast(new);
        }
        if let (Op::Reshape(x), _) = self.graph.node(self.id) {
            return self.graph.value(x).reshape(group, cols);
        }
        self.graph.record(Op::Reshape(self.id), new)
    }

    /// Row j of each group becomes row `index[j]` of the same group.
    ///
    /// # Panics
    /// If an index lies outside the group.
    pub fn gather(self, index: &[usize]) -> Self {
        let shape = self.shape();
        assert!(index.iter().all(|&i| i < shape.rows.group()), "{index:?} of {shape}");
        let rows = shape.rows.with_group(index.len());
        self.graph.record(Op::Gather(self.id, index.to_vec()), Shape { rows, ..shape })
    }

    /// Row j of each group is added to row `index[j]` of a group of `group` rows.
    ///
    /// # Panics
    /// If an index lies outside the new group, or rows and indices differ in number.
    pub fn scatter(self, index: &[usize], group: usize) -> Self {
        let shape = self.shape();
        assert_eq!(index.len(), shape.rows.group(), "scattering {shape}");
        assert!(index.iter().all(|&i| i < group), "{index:?} in groups of {group}");
        let rows = shape.rows.with_group(group);
        self.graph.record(Op::Scatter(self.id, index.to_vec()), Shape { rows, ..shape })
    }

    /// The sum of the rows of each group.
    pub fn sum_group(self) -> Self {
        let n = self.shape().rows.group();
        if n == 1 { self } else { self.scatter(&vec![0; n], 1) }
    }

    /// The same values, seen by no derivative.
    pub fn detach(self) -> Self {
        self.graph.record(Op::Detach(self.id), self.shape())
    }

    /// Σ over columns of self · other: the inner product of rows.
    pub fn dot(self, other: Self) -> Self {
        (self * other).sum_cols()
    }
}

impl sterna::weight::Term for Value<'_> {
    fn ln(self) -> Self {
        self.log()
    }
}

impl sterna::path_formula::Blend for Value<'_> {
    fn blend(self, other: Self, share: Self) -> Self {
        match self.graph.node(self.id).0 {
            // a − (−x) is a + x: one value less, and one derivative.
            Op::Affine(x, scale, offset) if (f64::from(scale), f64::from(offset)) == (-1.0, 0.0) => {
                let x = self.graph.value(x);
                share * (other + x) - x
            }
            _ => self + share * (other - self),
        }
    }
}

impl Neg for Value<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.affine(-1.0, 0.0)
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, |$a:ident, $b:ident| $both:expr, $right:expr, $left:expr) => {
        impl $trait for Value<'_> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $both
            }
        }
        impl $trait<f64> for Value<'_> {
            type Output = Self;
            fn $method(self, other: f64) -> Self {
                let ($a, $b) = (self, other);
                $right
            }
        }
        impl<'g> $trait<Value<'g>> for f64 {
            type Output = Value<'g>;
            fn $method(self, other: Value<'g>) -> Value<'g> {
                let ($a, $b) = (self, other);
                $left
            }
        }
    };
}
operator!(Add, add, |a, b| a.binary(Binary::Add, b), a.affine(1.0, b), b.affine(1.0, a));
operator!(Sub, sub, |a, b| a.binary(Binary::Sub, b), a.affine(1.0, -b), b.affine(-1.0, a));
operator!(Mul, mul, |a, b| a.binary(Binary::Mul, b), a.affine(b, 0.0), b.affine(a, 0.0));
operator!(
    Div,
    div,
    |a, b| a.binary(Binary::Mul, b.recip()),
    a.affine(1.0 / b, 0.0),
    b.recip().affine(a, 0.0)
);
