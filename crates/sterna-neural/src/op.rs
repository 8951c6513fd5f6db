//! The operations, and beside each its derivative rule, which emits operations again.
//!
//! A value is a matrix. Its rows are either a fixed number (parameters, sums over the batch) or a
//! multiple of the batch's rows; operations never mix rows of different batch members, except the
//! two sums over the batch, `SumRows` and the transposed product.

use crate::graph::{Id, Value};

/// Number of rows of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rows {
    /// So many, whatever the batch.
    Fixed(usize),
    /// So many for each row of the batch: 1, or the particles or edges of a point.
    Batch(usize),
}

impl Rows {
    /// Rows of one group: of the whole value if fixed, of one batch member otherwise.
    pub fn group(self) -> usize {
        match self {
            Self::Fixed(n) | Self::Batch(n) => n,
        }
    }

    /// The same kind with another group size.
    pub fn with_group(self, n: usize) -> Self {
        match self {
            Self::Fixed(_) => Self::Fixed(n),
            Self::Batch(_) => Self::Batch(n),
        }
    }

    /// Whether the number of rows follows the batch.
    pub fn is_batch(self) -> bool {
        matches!(self, Self::Batch(_))
    }
}

/// Rows and columns of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows.
    pub rows: Rows,
    /// Columns.
    pub cols: usize,
}

impl Shape {
    /// A fixed matrix.
    pub fn fixed(rows: usize, cols: usize) -> Self {
        Self { rows: Rows::Fixed(rows), cols }
    }

    /// One row per row of the batch.
    pub fn batch(cols: usize) -> Self {
        Self { rows: Rows::Batch(1), cols }
    }

    /// Numbers in one group of rows.
    pub fn group_len(self) -> usize {
        self.rows.group() * self.cols
    }

    /// Shape of an elementwise operation on two values, if they fit.
    pub fn broadcast(self, other: Self) -> Option<Self> {
        let cols = match (self.cols, other.cols) {
            (a, b) if a == b => a,
            (1, b) => b,
            (a, 1) => a,
            _ => return None,
        };
        let rows = match (self.rows, other.rows) {
            (a, b) if a == b => a,
            (Rows::Fixed(1), b) => b,
            (a, Rows::Fixed(1)) => a,
            _ => return None,
        };
        Some(Self { rows, cols })
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.rows {
            Rows::Fixed(n) => write!(f, "{n}×{}", self.cols),
            Rows::Batch(1) => write!(f, "batch×{}", self.cols),
            Rows::Batch(n) => write!(f, "({n}·batch)×{}", self.cols),
        }
    }
}

/// A number that can be compared and hashed by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bits(u64);

impl From<f64> for Bits {
    fn from(x: f64) -> Self {
        Self(x.to_bits())
    }
}

impl From<Bits> for f64 {
    fn from(x: Bits) -> Self {
        Self::from_bits(x.0)
    }
}

/// Functions of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Unary {
    Exp,
    Log,
    Tanh,
    Sigmoid,
    Softplus,
    /// x · sigmoid(x).
    Silu,
    Sqrt,
    /// 1/x.
    Recip,
    Sin,
    Cos,
    Abs,
    /// −1, 0 or 1.
    Sign,
    /// 1 where x > 0, else 0.
    Step,
    /// x, or 0 where x is not finite.
    FiniteOrZero,
}

impl Unary {
    /// g · f′(x), where `y` = f(x).
    fn pull_back<'g>(self, x: Value<'g>, y: Value<'g>, g: Value<'g>) -> Option<Value<'g>> {
        Some(match self {
            Self::Exp => g * y,
            Self::Log => g * x.recip(),
            Self::Tanh => g * (1.0 - y * y),
            Self::Sigmoid => g * (y - y * y),
            Self::Softplus => g * x.sigmoid(),
            Self::Silu => {
                let s = x.sigmoid();
                g * (s + y * (1.0 - s))
            }
            Self::Sqrt => g * (y.recip() * 0.5),
            Self::Recip => g * -(y * y),
            Self::Sin => g * x.cos(),
            Self::Cos => g * -x.sin(),
            Self::Abs => g * x.sign(),
            Self::FiniteOrZero => g * x.is_finite(),
            Self::Sign | Self::Step => return None,
        })
    }
}

/// Functions of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
}

/// One recorded operation. Its shape is stored beside it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// An input of the computation, by position.
    Input(usize),
    /// Parameters from this offset on.
    Parameter(usize),
    /// A fixed matrix, by position in the graph's store.
    Constant(usize),
    /// The number of rows of the batch, 1×1.
    RowCount,
    /// f(x), element by element.
    Unary(Unary, Id),
    /// scale · x + offset.
    Affine(Id, Bits, Bits),
    /// f(x, y), element by element; single rows and columns are repeated.
    Binary(Binary, Id, Id),
    /// Rows and columns repeated up to the value's shape.
    Broadcast(Id),
    /// Σ over the columns: one column.
    SumCols(Id),
    /// Σ over all rows, in order: one row.
    SumRows(Id),
    /// log Σ exp over the columns: one column.
    LogSumExp(Id),
    /// A·B, A·Bᵀ or Aᵀ·B.
    MatMul(Id, Id, Transpose),
    /// Columns from this one on.
    Slice(Id, usize),
    /// Zeros around columns that begin at this one.
    Pad(Id, usize),
    /// Columns side by side.
    Concat(Vec<Id>),
    /// The same numbers in rows of another length.
    Reshape(Id),
    /// Row j of a group is row index[j] of the same group.
    Gather(Id, Vec<usize>),
    /// Row j of a group is added to row index[j] of the same group.
    Scatter(Id, Vec<usize>),
    /// The same values, with no derivative.
    Detach(Id),
    /// A function on the host, by position in the graph's store.
    Host(usize, Vec<Id>),
}

/// Which factor of a product is transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transpose {
    /// A·B.
    No,
    /// A·Bᵀ.
    Second,
    /// Aᵀ·B: sums over rows.
    First,
}

impl Op {
    /// The values that the operation reads.
    pub fn inputs(&self) -> Vec<Id> {
        match self {
            Self::Input(_) | Self::Parameter(_) | Self::Constant(_) | Self::RowCount => vec![],
            Self::Unary(_, a)
            | Self::Affine(a, ..)
            | Self::Broadcast(a)
            | Self::SumCols(a)
            | Self::SumRows(a)
            | Self::LogSumExp(a)
            | Self::Slice(a, _)
            | Self::Pad(a, _)
            | Self::Reshape(a)
            | Self::Gather(a, _)
            | Self::Scatter(a, _)
            | Self::Detach(a) => vec![*a],
            Self::Binary(_, a, b) | Self::MatMul(a, b, _) => vec![*a, *b],
            Self::Concat(all) | Self::Host(_, all) => all.clone(),
        }
    }

    /// Whether each element of the result comes from the same element of the inputs.
    pub fn is_elementwise(&self) -> bool {
        matches!(self, Self::Unary(..) | Self::Affine(..) | Self::Binary(..) | Self::Broadcast(_))
    }

    /// The derivative rule: for each input gᵀ·∂y/∂input, or none where that vanishes.
    /// `y` is this operation's own result.
    pub(crate) fn pull_back<'g>(&self, y: Value<'g>, g: Value<'g>) -> Vec<Option<Value<'g>>> {
        let graph = y.graph();
        let at = |id: Id| graph.value(id);
        match self {
            Self::Input(_) | Self::Parameter(_) | Self::Constant(_) | Self::RowCount => vec![],
            Self::Unary(f, x) => vec![f.pull_back(at(*x), y, g)],
            Self::Affine(_, scale, _) => vec![Some(g * f64::from(*scale))],
            Self::Binary(f, a, b) => {
                let (a, b) = (at(*a), at(*b));
                let (to_a, to_b) = match f {
                    Binary::Add => (g, g),
                    Binary::Sub => (g, -g),
                    Binary::Mul => (g * b, g * a),
                };
                vec![Some(to_a.sum_to(a.shape())), Some(to_b.sum_to(b.shape()))]
            }
            Self::Broadcast(x) => vec![Some(g.sum_to(at(*x).shape()))],
            Self::SumCols(x) | Self::SumRows(x) => vec![Some(g.broadcast(at(*x).shape()))],
            Self::LogSumExp(x) => vec![Some(g * (at(*x) - y).exp())],
            Self::MatMul(a, b, transpose) => {
                let (a, b) = (at(*a), at(*b));
                match transpose {
                    Transpose::No => vec![Some(g.matmul_transposed(b)), Some(a.transposed_matmul(g))],
                    Transpose::Second => vec![Some(g.matmul(b)), Some(g.transposed_matmul(a))],
                    Transpose::First => vec![Some(b.matmul_transposed(g)), Some(a.matmul(g))],
                }
            }
            Self::Slice(x, start) => vec![Some(g.pad(*start, at(*x).shape().cols))],
            Self::Pad(x, start) => vec![Some(g.slice(*start, at(*x).shape().cols))],
            Self::Concat(parts) => {
                let mut start = 0;
                parts
                    .iter()
                    .map(|&part| {
                        let cols = at(part).shape().cols;
                        start += cols;
                        Some(g.slice(start - cols, cols))
                    })
                    .collect()
            }
            Self::Reshape(x) => vec![Some(g.reshape(at(*x).shape().rows.group(), at(*x).shape().cols))],
            Self::Gather(x, index) => vec![Some(g.scatter(index, at(*x).shape().rows.group()))],
            Self::Scatter(_, index) => vec![Some(g.gather(index))],
            Self::Detach(_) => vec![None],
            Self::Host(f, inputs) => {
                let inputs: Vec<_> = inputs.iter().map(|&id| at(id)).collect();
                graph.host_function(*f).pull_back(&inputs, y, g)
            }
        }
    }
}
