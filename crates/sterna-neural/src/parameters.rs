//! Parameters of networks: names and shapes in one flat vector, so that an optimiser sees one array.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use sterna::streams::{Phase, Streams};

use crate::graph::{Graph, Value};
use crate::{Real, Result};

/// The "iteration" of starting values: no training step has this number.
const INITIALISE: u64 = u64::MAX;

/// One named matrix within the flat vector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Unique name, with dots between its parts.
    pub name: String,
    /// First number.
    pub offset: usize,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
}

impl Slot {
    /// Records the matrix as a value.
    pub fn record<'g>(&self, graph: &'g Graph) -> Value<'g> {
        graph.parameter(self.offset, self.rows, self.cols)
    }

    /// Numbers in the matrix.
    pub fn len(&self) -> usize {
        self.rows * self.cols
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How a matrix starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// All the same number.
    Constant(f64),
    /// Uniform with variance 1/rows: keeps the size of activations.
    FanIn,
    /// Uniform with variance scale²/rows.
    Scaled(f64),
}

/// Which parameters there are: networks add theirs, one after the other.
///
/// ```
/// use sterna_neural::{Init, Layout};
///
/// let mut layout = Layout::new();
/// let weight = layout.add("layer.weight", 3, 2, Init::FanIn);
/// let bias = layout.add("layer.bias", 1, 2, Init::Constant(0.0));
/// let parameters = layout.initialise::<f32>(7);
/// assert_eq!(parameters.values().len(), 8);
/// assert_eq!(bias.offset, 6);
/// assert_eq!(parameters.values()[6..], [0.0, 0.0]);
/// # let _ = weight;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    slots: Vec<(Slot, Init)>,
    len: usize,
}

impl Layout {
    /// No parameters yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a matrix.
    ///
    /// # Panics
    /// If the name is taken.
    pub fn add(&mut self, name: impl Into<String>, rows: usize, cols: usize, init: Init) -> Slot {
        let slot = Slot { name: name.into(), offset: self.len, rows, cols };
        assert!(self.slots.iter().all(|(s, _)| s.name != slot.name), "two parameters named {}", slot.name);
        self.len += slot.len();
        self.slots.push((slot.clone(), init));
        slot
    }

    /// All matrices, in order.
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().map(|(slot, _)| slot)
    }

    /// Numbers in total.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All matrices as values of `graph`, in order: what to differentiate a loss by.
    pub fn record<'g>(&self, graph: &'g Graph) -> Vec<Value<'g>> {
        self.slots().map(|slot| slot.record(graph)).collect()
    }

    /// Starting values, a function of the seed and each number's position alone.
    pub fn initialise<T: Real>(&self, seed: u64) -> Parameters<T> {
        let streams = Streams::new(seed);
        let mut values = Vec::with_capacity(self.len);
        for (slot, init) in &self.slots {
            let half_width = match init {
                Init::Constant(_) => 0.0,
                Init::FanIn => (3.0 / slot.rows as f64).sqrt(),
                Init::Scaled(scale) => scale * (3.0 / slot.rows as f64).sqrt(),
            };
            let offset = if let Init::Constant(c) = init { *c } else { 0.0 };
            for first in (0..slot.len()).step_by(UNIFORMS_PER_STREAM) {
                let mut stream = streams.row(Phase::Training, INITIALISE, (slot.offset + first) as u32);
                values.extend(
                    (first..slot.len().min(first + UNIFORMS_PER_STREAM))
                        .map(|_| T::from_f64(offset + half_width * (2.0 * stream.uniform() - 1.0))),
                );
            }
        }
        Parameters::new(values)
    }
}

/// Uniforms that are taken from one stream; a larger matrix takes several.
const UNIFORMS_PER_STREAM: usize = 1 << 17;

/// Parameter values with a version, by which programs notice that packed weights are stale.
#[derive(Clone, Debug)]
pub struct Parameters<T> {
    values: Vec<T>,
    version: u64,
}

static VERSION: AtomicU64 = AtomicU64::new(1);

impl<T: Real> Parameters<T> {
    /// These values.
    pub fn new(values: Vec<T>) -> Self {
        Self { values, version: VERSION.fetch_add(1, Ordering::Relaxed) }
    }

    /// For computations without parameters.
    pub fn empty() -> Self {
        Self::new(vec![])
    }

    /// All values.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// All values, to change; programs repack at their next run.
    pub fn values_mut(&mut self) -> &mut [T] {
        self.version = VERSION.fetch_add(1, Ordering::Relaxed);
        &mut self.values
    }

    /// Copies values of the same number.
    ///
    /// # Errors
    /// If there are more or fewer.
    pub fn set(&mut self, values: &[T]) -> Result<()> {
        if values.len() != self.values.len() {
            return Err(crate::Error::ParameterCount { expected: self.values.len(), given: values.len() });
        }
        self.values_mut().copy_from_slice(values);
        Ok(())
    }

    /// Changes whenever the values may have changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The same values in another number type.
    pub fn convert<U: Real>(&self) -> Parameters<U> {
        Parameters::new(self.values.iter().map(|x| U::from_f64(x.to_f64())).collect())
    }
}
