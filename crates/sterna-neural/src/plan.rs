//! From a graph to an order of work: what is computed when, and what is fused with what.
//!
//! Only values that an output needs are kept. Work falls into phases. Within a phase every batch step
//! touches each row on its own, so a device may take a block of rows through the whole phase; sums over
//! the batch (and host calls) end a phase. An MLP's forward and backward pass are one phase together,
//! followed by the sums that give the parameters' gradients. Elementwise values of one shape that can be
//! computed at the same point form one group.

mod places;

use std::collections::BTreeMap;

use crate::graph::{Graph, Id, Value};
use crate::op::{Binary, Op, Shape, Transpose};
use crate::{Error, Result};
#[cfg(feature = "cuda")]
pub(crate) use places::pack_intervals;

/// What a step computes.
#[derive(Clone, Debug)]
pub(crate) enum Kernel {
    /// a · (packed matrix) + init.
    Product { a: Id, pack: usize, init: Option<Id> },
    /// Elementwise values, in order.
    Group(Vec<Id>),
    /// Lays out a fixed matrix for products.
    Pack(usize),
    /// Σ over terms of aᵀ·b, or of the rows of b where there is no a.
    Reduce(Vec<(Option<Id>, Id)>),
    /// Any other single operation.
    Single,
    /// A host function.
    Host(usize, Vec<Id>),
}

/// One step; `out` names its result (of a group: its last member).
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub out: Id,
    pub shape: Shape,
    pub kernel: Kernel,
}

/// A fixed matrix (k × n after transposing) that products multiply by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pack {
    pub source: Id,
    pub transposed: bool,
    pub k: usize,
    pub n: usize,
}

/// Steps between two barriers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    /// Fixed values, computed once.
    pub prologue: Vec<Step>,
    /// Batch values, row by row.
    pub rows: Vec<Step>,
    /// Sums over the batch.
    pub sums: Vec<Step>,
    /// Host functions.
    pub hosts: Vec<Step>,
}

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    Input(usize),
    Parameter(usize),
    Constant(usize),
    RowCount,
    /// Offset among the fixed values.
    Fixed(usize),
    /// Offset in numbers per batch row; lives across phases.
    Global(usize),
    /// Offset in numbers per batch row; lives within one block of rows.
    Local(usize),
}

/// The plan of a computation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub inputs: Vec<(String, usize)>,
    pub nodes: Vec<(Op, Shape)>,
    pub phases: Vec<Phase>,
    pub packs: Vec<Pack>,
    pub places: Vec<Option<Place>>,
    pub constants: Vec<f64>,
    /// Place and shape of each output.
    pub outputs: Vec<(Place, Shape)>,
    /// Values to be copied into outputs at the end: (value, output).
    pub copies: Vec<(Id, usize)>,
    pub fixed_len: usize,
    pub global_units: usize,
    pub local_units: usize,
    pub parameters: usize,
    /// Multiply-adds per batch row, roughly.
    pub work: f64,
}

#[derive(Clone, Debug)]
enum Kind {
    Leaf,
    Alias(Id),
    Elementwise(Vec<Id>),
    Product { a: Id, b: Id, transposed: bool, init: Option<Id> },
    Reduce(Vec<(Option<Id>, Id)>),
    Single(Vec<Id>),
    Host(usize, Vec<Id>),
}

impl Kind {
    fn inputs(&self) -> Vec<Id> {
        match self {
            Self::Leaf => vec![],
            Self::Alias(a) => vec![*a],
            Self::Elementwise(all) | Self::Single(all) | Self::Host(_, all) => all.clone(),
            Self::Product { a, b, init, .. } => [*a, *b].into_iter().chain(*init).collect(),
            Self::Reduce(terms) => terms.iter().flat_map(|(a, b)| a.iter().copied().chain([*b])).collect(),
        }
    }
}

/// When a value is computed.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    phase: usize,
    stage: usize,
    /// The value is there only in the next phase.
    barrier: bool,
}

struct Planner {
    nodes: Vec<(Op, Shape)>,
    kinds: Vec<Kind>,
    alive: Vec<bool>,
    slots: Vec<Slot>,
    outputs: Vec<Id>,
}

impl Plan {
    pub fn new(graph: &Graph, outputs: &[Value]) -> Result<Self> {
        let outputs: Vec<Id> = outputs.iter().map(|v| v.id()).collect();
        let last = outputs.iter().max().map_or(0, |id| id.index() + 1);
        let nodes: Vec<_> = (0..last).map(|i| graph.node(Id(i as u32))).collect();
        let mut planner = Planner { kinds: vec![], alive: vec![], slots: vec![], nodes, outputs };
        planner.classify()?;
        planner.mark_alive();
        planner.fuse_sums();
        planner.mark_alive();
        planner.assign_slots();
        let mut plan = Self { inputs: graph.inputs(), ..Self::default() };
        planner.build_steps(&mut plan);
        planner.place(graph, &mut plan);
        plan.nodes = planner.nodes;
        Ok(plan)
    }
}

impl Planner {
    fn shape(&self, id: Id) -> Shape {
        self.nodes[id.index()].1
    }

    /// Looks through detached values and, where asked, repeated ones.
    fn resolve(&self, mut id: Id, through_broadcast: bool) -> Id {
        loop {
            match &self.nodes[id.index()].0 {
                Op::Detach(x) => id = *x,
                Op::Broadcast(x) if through_broadcast => id = *x,
                _ => return id,
            }
        }
    }

    fn classify(&mut self) -> Result<()> {
        self.outputs = self.outputs.iter().map(|&id| self.resolve(id, false)).collect();
        for i in 0..self.nodes.len() {
            let (op, _) = &self.nodes[i];
            let plain = |id: &Id| self.resolve(*id, false);
            let kind = match op {
                Op::Input(_) | Op::Parameter(_) | Op::Constant(_) | Op::RowCount => Kind::Leaf,
                Op::Detach(x) => Kind::Alias(plain(x)),
                Op::Reshape(x) => Kind::Alias(plain(x)),
                _ if op.is_elementwise() => {
                    Kind::Elementwise(op.inputs().iter().map(|&x| self.resolve(x, true)).collect())
                }
                Op::MatMul(a, b, Transpose::First) => Kind::Reduce(vec![(Some(plain(a)), plain(b))]),
                Op::MatMul(a, b, transpose) => {
                    let (a, b) = (plain(a), plain(b));
                    if self.shape(b).rows.is_batch() {
                        let what = format!("{} by {}", self.shape(a), self.shape(b));
                        return Err(Error::MixesRows { what });
                    }
                    Kind::Product { a, b, transposed: *transpose == Transpose::Second, init: None }
                }
                Op::SumRows(x) => Kind::Reduce(vec![(None, plain(x))]),
                Op::Host(f, inputs) => Kind::Host(*f, inputs.iter().map(plain).collect()),
                _ => Kind::Single(op.inputs().iter().map(plain).collect()),
            };
            self.kinds.push(kind);
        }
        Ok(())
    }

    fn mark_alive(&mut self) {
        self.alive = vec![false; self.nodes.len()];
        for id in &self.outputs {
            self.alive[id.index()] = true;
        }
        for i in (0..self.nodes.len()).rev() {
            if self.alive[i] {
                for input in self.kinds[i].inputs() {
                    self.alive[input.index()] = true;
                }
            }
        }
    }

    /// Turns sums of products into products that start from the other term, and sums of sums over the
    /// batch into one sum.
    fn fuse_sums(&mut self) {
        let mut uses = vec![0usize; self.nodes.len()];
        for i in (0..self.nodes.len()).filter(|&i| self.alive[i]) {
            for input in self.kinds[i].inputs() {
                uses[input.index()] += 1;
            }
        }
        for id in &self.outputs {
            uses[id.index()] += 1;
        }
        for i in (0..self.nodes.len()).filter(|&i| self.alive[i]) {
            let (Op::Binary(Binary::Add, ..), shape) = self.nodes[i] else { continue };
            let Kind::Elementwise(terms) = &self.kinds[i] else { continue };
            let (x, y) = (terms[0], terms[1]);
            let own = |id: Id| uses[id.index()] == 1 && self.shape(id) == shape;
            let over_batch = |terms: &[(Option<Id>, Id)]| self.shape(terms[0].1).rows.is_batch();
            if let (Kind::Reduce(a), Kind::Reduce(b)) = (&self.kinds[x.index()], &self.kinds[y.index()])
                && own(x)
                && own(y)
                && over_batch(a) == over_batch(b)
            {
                self.kinds[i] = Kind::Reduce(a.iter().chain(b).copied().collect());
                continue;
            }
            for (product, other) in [(y, x), (x, y)] {
                let fits = self.shape(other) == shape || self.shape(other) == Shape::fixed(1, shape.cols);
                if let Kind::Product { a, b, transposed, init: None } = self.kinds[product.index()]
                    && own(product)
                    && fits
                {
                    self.kinds[i] = Kind::Product { a, b, transposed, init: Some(other) };
                    break;
                }
            }
        }
    }

    fn assign_slots(&mut self) {
        self.slots = vec![Slot::default(); self.nodes.len()];
        for i in 0..self.nodes.len() {
            let inputs = self.kinds[i].inputs();
            if !self.alive[i] || inputs.is_empty() {
                continue;
            }
            let available = |id: &Id| self.slots[id.index()].phase + self.slots[id.index()].barrier as usize;
            let phase = inputs.iter().map(available).max().unwrap_or(0);
            let batch = self.nodes[i].1.rows.is_batch();
            let barrier = match &self.kinds[i] {
                Kind::Host(..) => true,
                Kind::Reduce(terms) => self.shape(terms[0].1).rows.is_batch(),
                _ => false,
            };
            // Inputs of the same section of the same phase decide how early this can run.
            let stage = inputs
                .iter()
                .filter(|id| available(id) == phase && self.shape(**id).rows.is_batch() == batch)
                .filter(|id| !self.slots[id.index()].barrier)
                .map(|id| self.slots[id.index()].stage)
                .max()
                .unwrap_or(0);
            let later = !matches!(self.kinds[i], Kind::Elementwise(_)) as usize;
            self.slots[i] = Slot { phase, stage: stage + later, barrier };
        }
    }

    fn build_steps(&self, plan: &mut Plan) {
        // Within a stage: packing, then single steps, then groups with one column, then wider groups
        // (which may repeat that column).
        type Key = (usize, usize, usize, Rows2, usize);
        type Rows2 = (bool, usize);
        let mut prologue: BTreeMap<(usize, Key), Step> = BTreeMap::new();
        let mut rows: BTreeMap<(usize, Key), Step> = BTreeMap::new();
        let phases = (0..self.nodes.len()).filter(|&i| self.alive[i]).map(|i| self.slots[i].phase).max();
        plan.phases = vec![Phase::default(); phases.map_or(0, |p| p + 1)];
        for i in (0..self.nodes.len()).filter(|&i| self.alive[i]) {
            let (id, shape, slot) = (Id(i as u32), self.nodes[i].1, self.slots[i]);
            let section = if shape.rows.is_batch() { &mut rows } else { &mut prologue };
            let single = (slot.stage, 1, i, (false, 0), 0);
            let step = |kernel| Step { out: id, shape, kernel };
            match &self.kinds[i] {
                Kind::Leaf | Kind::Alias(_) => {}
                Kind::Elementwise(_) => {
                    let domain = (shape.rows.is_batch(), shape.rows.group());
                    let key = (slot.stage, 2, shape.cols.min(2), domain, shape.cols);
                    let group =
                        section.entry((slot.phase, key)).or_insert_with(|| step(Kernel::Group(vec![])));
                    group.out = id;
                    if let Kernel::Group(members) = &mut group.kernel {
                        members.push(id);
                    }
                    if shape.rows.is_batch() {
                        plan.work += 2.0 * shape.group_len() as f64;
                    }
                }
                Kind::Product { a, b, transposed, init } => {
                    let (k, n) = (self.shape(*a).cols, shape.cols);
                    let pack = Pack { source: *b, transposed: *transposed, k, n };
                    let index = plan.packs.iter().position(|p| *p == pack).unwrap_or_else(|| {
                        plan.packs.push(pack);
                        plan.packs.len() - 1
                    });
                    let kernel = Kernel::Product { a: *a, pack: index, init: *init };
                    section.insert((slot.phase, single), step(kernel));
                    if shape.rows.is_batch() {
                        plan.work += (shape.group_len() * k) as f64;
                    }
                    // A matrix that is computed, not given, is packed as soon as it is known.
                    let source = self.slots[b.index()];
                    if !matches!(self.storage_op(*b), Op::Parameter(_) | Op::Constant(_)) {
                        let phase = source.phase + source.barrier as usize;
                        let stage = if source.barrier { 0 } else { source.stage + 1 };
                        let key = (stage, 0, index, (false, 0), 0);
                        prologue.insert(
                            (phase, key),
                            Step { out: *b, shape: self.shape(*b), kernel: Kernel::Pack(index) },
                        );
                    }
                }
                Kind::Reduce(terms) => {
                    let kernel = Kernel::Reduce(terms.clone());
                    if slot.barrier {
                        plan.phases[slot.phase].sums.push(step(kernel));
                        for (a, b) in terms {
                            let rows = self.shape(*b).group_len();
                            plan.work += (rows * a.map_or(1, |a| self.shape(a).cols)) as f64;
                        }
                    } else {
                        prologue.insert((slot.phase, single), step(kernel));
                    }
                }
                Kind::Host(f, inputs) => {
                    plan.phases[slot.phase].hosts.push(step(Kernel::Host(*f, inputs.clone())))
                }
                Kind::Single(_) => {
                    section.insert((slot.phase, single), step(Kernel::Single));
                }
            }
        }
        for ((phase, _), step) in prologue {
            plan.phases[phase].prologue.push(step);
        }
        for ((phase, _), step) in rows {
            plan.phases[phase].rows.push(step);
        }
    }
}

/// Inputs of an elementwise value as its group reads them: looking through detached and repeated values.
pub(crate) fn elementwise_inputs(nodes: &[(Op, Shape)], id: Id) -> Vec<Id> {
    let through = |mut id: Id| {
        while let Op::Detach(x) | Op::Broadcast(x) = &nodes[id.index()].0 {
            id = *x;
        }
        id
    };
    nodes[id.index()].0.inputs().into_iter().map(through).collect()
}
