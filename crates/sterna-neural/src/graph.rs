//! Recording a computation: values, their shapes, and the simplifications made on the way.
//!
//! Equal operations on equal values are recorded once. A graph holds no numbers except constants; it is
//! compiled for a number type and a device (see [`Device`](crate::Device)) and then run many times.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::Arc;

use crate::host::HostFunction;
use crate::op::{Binary, Op, Rows, Shape, Transpose, Unary};

/// Position of a value in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub(crate) u32);

impl Id {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A recorded computation over batched matrices.
///
/// ```
/// use sterna_neural::{Cpu, Device, Graph, Parameters};
///
/// let graph = Graph::new();
/// let x = graph.input("x", 2);
/// let energy = (x * x).sum_cols() * 0.5 + x.slice(0, 1).cos();
/// let slope = graph.gradient(energy, &[x])[0];
/// // The gradient is a value like any other, so it differentiates again.
/// let curvature = graph.gradient(slope.slice(0, 1), &[x])[0];
///
/// let device: &dyn Device<f64> = &Cpu::new(1);
/// let mut program = device.compile(&graph, &[slope, curvature]).unwrap();
/// program.run(&Parameters::empty(), 1, &[&[0.0, 3.0]]).unwrap();
/// assert_eq!(program.output(0), [0.0, 3.0]);
/// assert_eq!(program.output(1), [0.0, 0.0]); // 1 − cos 0
/// ```
#[derive(Default)]
pub struct Graph {
    records: RefCell<Records>,
}

#[derive(Clone, Default)]
struct Records {
    nodes: Vec<(Op, Shape)>,
    known: HashMap<(Op, Shape), Id>,
    inputs: Vec<(String, usize)>,
    constants: Vec<Arc<[f64]>>,
    functions: Vec<Arc<dyn HostFunction>>,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("values", &self.len()).finish()
    }
}

impl Graph {
    /// Nothing recorded yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy, for devices that compile once they know the number of rows.
    #[cfg(feature = "cuda")]
    pub(crate) fn snapshot(&self) -> Self {
        Self { records: RefCell::new(self.records.borrow().clone()) }
    }

    /// Number of recorded values.
    pub fn len(&self) -> usize {
        self.records.borrow().nodes.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next input: one row of `cols` numbers per row of the batch.
    pub fn input(&self, name: &str, cols: usize) -> Value<'_> {
        let position = {
            let inputs = &mut self.records.borrow_mut().inputs;
            inputs.push((name.to_owned(), cols));
            inputs.len() - 1
        };
        self.record(Op::Input(position), Shape::batch(cols))
    }

    /// Parameters from `offset` on, as a matrix.
    pub fn parameter(&self, offset: usize, rows: usize, cols: usize) -> Value<'_> {
        self.record(Op::Parameter(offset), Shape::fixed(rows, cols))
    }

    /// A fixed matrix.
    ///
    /// # Panics
    /// If `values` is not a whole number of rows.
    pub fn constant(&self, cols: usize, values: &[f64]) -> Value<'_> {
        assert!(
            cols > 0 && values.len().is_multiple_of(cols),
            "{} values are no rows of {cols}",
            values.len()
        );
        let position = {
            let constants = &mut self.records.borrow_mut().constants;
            let same = |c: &Arc<[f64]>| {
                c.len() == values.len() && c.iter().zip(values).all(|(a, b)| a.to_bits() == b.to_bits())
            };
            constants.iter().position(same).unwrap_or_else(|| {
                constants.push(values.into());
                constants.len() - 1
            })
        };
        self.record(Op::Constant(position), Shape::fixed(values.len() / cols, cols))
    }

    /// A single number.
    pub fn scalar(&self, x: f64) -> Value<'_> {
        self.constant(1, &[x])
    }

    /// The number of rows of the batch.
    pub fn row_count(&self) -> Value<'_> {
        self.record(Op::RowCount, Shape::fixed(1, 1))
    }

    /// Columns side by side.
    ///
    /// # Panics
    /// If `parts` is empty or their rows differ.
    pub fn concat<'g>(&'g self, parts: &[Value<'g>]) -> Value<'g> {
        let rows = parts[0].shape().rows;
        assert!(parts.iter().all(|p| p.shape().rows == rows), "concatenated values need equal rows");
        if parts.len() == 1 {
            return parts[0];
        }
        let cols = parts.iter().map(|p| p.shape().cols).sum();
        self.record(Op::Concat(parts.iter().map(|p| p.id).collect()), Shape { rows, cols })
    }

    /// A function on the host, of batch values to a batch value of `cols` columns.
    pub fn host<'g>(&'g self, f: Arc<dyn HostFunction>, inputs: &[Value<'g>], cols: usize) -> Value<'g> {
        assert!(inputs.iter().all(|x| x.shape().rows == Rows::Batch(1)), "host functions take batch rows");
        let position = {
            let functions = &mut self.records.borrow_mut().functions;
            functions.iter().position(|known| Arc::ptr_eq(known, &f)).unwrap_or_else(|| {
                functions.push(f);
                functions.len() - 1
            })
        };
        self.record(Op::Host(position, inputs.iter().map(|x| x.id).collect()), Shape::batch(cols))
    }

    pub(crate) fn host_function(&self, position: usize) -> Arc<dyn HostFunction> {
        self.records.borrow().functions[position].clone()
    }

    /// Whether a function on the host was recorded.
    pub(crate) fn calls_host(&self) -> bool {
        !self.records.borrow().functions.is_empty()
    }

    pub(crate) fn value(&self, id: Id) -> Value<'_> {
        Value { graph: self, id }
    }

    pub(crate) fn node(&self, id: Id) -> (Op, Shape) {
        self.records.borrow().nodes[id.index()].clone()
    }

    /// Names and columns of the inputs, in order.
    pub fn recorded_inputs(&self) -> Vec<(String, usize)> {
        self.inputs()
    }

    pub(crate) fn inputs(&self) -> Vec<(String, usize)> {
        self.records.borrow().inputs.clone()
    }

    pub(crate) fn constant_values(&self, position: usize) -> Arc<[f64]> {
        self.records.borrow().constants[position].clone()
    }

    fn record(&self, op: Op, shape: Shape) -> Value<'_> {
        let mut records = self.records.borrow_mut();
        let key = (op, shape);
        if let Some(&id) = records.known.get(&key) {
            return self.value(id);
        }
        let id = Id(records.nodes.len() as u32);
        records.nodes.push(key.clone());
        records.known.insert(key, id);
        self.value(id)
    }

    /// The number that fills the whole value, if it is such a constant.
    fn uniform(&self, id: Id) -> Option<f64> {
        let records = self.records.borrow();
        match &records.nodes[id.index()] {
            (Op::Constant(c), shape) if *shape == Shape::fixed(1, 1) => Some(records.constants[*c][0]),
            (Op::Broadcast(x), _) => match &records.nodes[x.index()] {
                (Op::Constant(c), shape) if *shape == Shape::fixed(1, 1) => Some(records.constants[*c][0]),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A value of a [`Graph`]: copy it freely, combine it with operators.
///
/// In elementwise operations a single row or column is repeated to fit the other value.
#[derive(Clone, Copy)]
pub struct Value<'g> {
    graph: &'g Graph,
    id: Id,
}

impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "value {} ({}) = {:?}", self.id.0, self.shape(), self.graph.node(self.id).0)
    }
}

impl<'g> Value<'g> {
    /// The graph it belongs to.
    pub fn graph(self) -> &'g Graph {
        self.graph
    }

    /// Its position there.
    pub fn id(self) -> Id {
        self.id
    }

    /// Rows and columns.
    pub fn shape(self) -> Shape {
        self.graph.node(self.id).1
    }

    /// Columns.
    pub fn cols(self) -> usize {
        self.shape().cols
    }

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
