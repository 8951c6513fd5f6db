//! Recording a computation: values, their shapes, and the simplifications made on the way.
//!
//! Equal operations on equal values are recorded once. A graph holds no numbers except constants; it is
//! compiled for a number type and a device (see [`Device`](crate::Device)) and then run many times.

mod value;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::op::{Op, Rows, Shape};

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
}

/// A function of batch values that runs on the host in f64, inside a graph: a user's own target, for one. It is called with the whole batch at once.
///
/// A result for a row must depend on that row alone.
pub trait HostFunction: Send + Sync {
    /// Writes `rows` rows of the result; each input holds `rows` rows.
    fn call(&self, rows: usize, inputs: &[&[f64]], output: &mut [f64]) -> crate::Result<()>;

    /// The derivative rule: for each input gᵀ·∂y/∂input, or none where that vanishes.
    fn pull_back<'g>(&self, inputs: &[Value<'g>], y: Value<'g>, g: Value<'g>) -> Vec<Option<Value<'g>>>;
}
