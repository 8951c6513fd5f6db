//! From a plan to launches: which steps share a kernel, and where each value lives on the GPU.
//!
//! Steps of a phase touch each row on its own, so one kernel takes a few rows through many of them. A product with
//! a large matrix is a kernel of its own, which also computes the elementwise values that follow it. What one
//! kernel alone needs stays in registers or shared memory; everything else has a place in one arena.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::graph::{Graph, Id, Value};
use crate::op::{Binary, Op, Shape, Unary};
use crate::plan::{Kernel, Plan, elementwise_inputs};
use crate::{Real, Result};

/// A product by a matrix with more numbers than this is a kernel of its own.
const SMALL_MATRIX: usize = 20_000;
/// Most steps of one kernel: more take too long to compile.
const MOST_STEPS: usize = 120;
/// Most threads of a row kernel's block.
pub(super) const THREADS: usize = 512;
/// The GPU generation whose matrix units read shared memory.
const HOPPER: u32 = 90;
/// Rows from which on even rather small matrices are kernels of their own.
const MANY_ROWS: usize = 4096;

/// Threads that take a narrow row of their own through a row kernel, and the most columns that are narrow.
pub(super) const LANES: usize = 8;
const NARROW: usize = 64;

/// a · b (+ init); b is k × n after transposing.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub out: Id,
    pub a: Id,
    pub b: Id,
    pub transposed: bool,
    pub init: Option<Id>,
    pub k: usize,
    pub n: usize,
}

/// Terms aᵀ·b of a sum over rows, or b where there is no a.
pub(super) type Terms = Vec<(Option<Id>, Id)>;

/// One step of a kernel.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// Elementwise values of one shape.
    Group(Vec<Id>),
    Product(Product),
    /// Any other single operation.
    Single(Id),
    /// Sums over fixed rows.
    Reduce(Id, Terms),
}

/// One launch, or one call on the host.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// A few rows of the batch through many steps.
    Rows(Vec<Task>),
    /// Values that do not depend on the batch.
    Fixed(Vec<Task>),
    /// A large product and the elementwise values that follow.
    Product(Product, Vec<Id>),
    /// Sums over the batch.
    Sums(Vec<(Id, Terms)>),
    /// A host function.
    Host(Id, usize, Vec<Id>),
    /// A value copied to an output.
    Copy(Id, usize),
}

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Spot {
    /// Offset in the arena, in numbers.
    Memory(usize),
    /// Offset in a block's shared memory, in numbers per row.
    Shared(usize),
    Register,
    /// Offset in the arena, in numbers, of the tiles that the matrix units read (`kernels/tiled.cu`).
    Tiles(usize),
    /// A number known when the kernel is made.
    Literal(f64),
}

/// A value as part of the memory of another: row r, column c lies at r · stride + start + c.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub root: Id,
    pub start: usize,
    pub stride: usize,
    pub shape: Shape,
}

/// A small weight matrix that is kept transposed too.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turned {
    pub source: Id,
    pub to: usize,
}

/// A weight matrix that is kept as tiles too.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tiling {
    pub source: Id,
    pub transposed: bool,
    pub k: usize,
    pub n: usize,
    /// Columns of the product that one tile serves.
    pub width: usize,
    pub to: usize,
}

/// All launches of a computation for one number of rows.
pub(super) struct Schedule {
    pub nodes: Vec<(Op, Shape)>,
    pub works: Vec<Work>,
    pub spots: HashMap<Id, Spot>,
    pub turned: Vec<Turned>,
    pub tilings: Vec<Tiling>,
    pub rows: usize,
    /// Rows of a block of a row kernel, or of a few threads where these have rows of their own.
    pub block_rows: usize,
    /// Whether a few threads of a row kernel take a row of their own: many narrow rows, none of which waits for another.
    pub by_lanes: bool,
    /// Whether the GPU has matrix units that read shared memory, and the numbers are f32.
    pub hopper: bool,
    /// Numbers per row of shared memory of each row kernel.
    pub shared: HashMap<usize, usize>,
    pub outputs: Vec<(usize, Shape)>,
    pub inputs: Vec<usize>,
    pub constants: Vec<(usize, Vec<f64>)>,
    /// Parameters come first in the arena.
    pub parameters: usize,
    /// Numbers in the arena.
    pub arena: usize,
    solid: HashSet<Id>,
}

impl Schedule {
    /// `parameters`: how many there are, if more than the computation reads.
    pub fn new<T: Real>(
        graph: &Graph,
        outputs: &[Value],
        rows: usize,
        parameters: usize,
        arch: u32,
    ) -> Result<Self> {
        let plan = Plan::new(graph, outputs)?;
        let block_rows = match rows {
            0..256 => 1,
            256..512 => 2,
            512..2048 => 4,
            _ => 8,
        };
        let mut schedule = Self {
            nodes: plan.nodes.clone(),
            works: vec![],
            spots: HashMap::new(),
            turned: vec![],
            tilings: vec![],
            rows,
            block_rows,
            by_lanes: false,
            hopper: arch == HOPPER && T::BYTES == 4,
            shared: HashMap::new(),
            outputs: vec![],
            inputs: vec![],
            constants: vec![],
            parameters,
            arena: 0,
            solid: HashSet::new(),
        };
        let outputs: Vec<Id> = outputs.iter().map(|v| schedule.undetached(v.id())).collect();
        schedule.find_literals(graph);
        schedule.find_solid(&plan, &outputs);
        for phase in &plan.phases {
            schedule.add_phase(&plan, phase);
        }
        if rows >= MANY_ROWS && schedule.works.iter().all(|w| schedule.is_narrow(w)) {
            (schedule.by_lanes, schedule.block_rows) = (true, 1);
        }
        schedule.place(graph, &plan, &outputs, T::BYTES);
        Ok(schedule)
    }

    /// Whether a launch is one of rows with few numbers each.
    fn is_narrow(&self, work: &Work) -> bool {
        let Work::Rows(tasks) = work else { return matches!(work, Work::Fixed(_) | Work::Copy(..)) };
        let numbers = |task: &Task| Self::writes(task).iter().map(|id| self.shape(*id).group_len()).max();
        tasks.iter().all(|task| !matches!(task, Task::Product(_)) && numbers(task) <= Some(NARROW))
    }

    fn undetached(&self, mut id: Id) -> Id {
        while let Op::Detach(x) = self.nodes[id.index()].0 {
            id = x;
        }
        id
    }

    pub fn shape(&self, id: Id) -> Shape {
        self.nodes[id.index()].1
    }

    pub fn op(&self, id: Id) -> &Op {
        &self.nodes[id.index()].0
    }

    /// Single numbers that follow from constants and the number of rows alone.
    fn find_literals(&mut self, graph: &Graph) {
        for i in 0..self.nodes.len() {
            let (op, shape) = &self.nodes[i];
            if *shape != Shape::fixed(1, 1) {
                continue;
            }
            let known = |id: &Id| match self.spots.get(id) {
                Some(Spot::Literal(x)) => Some(*x),
                _ => None,
            };
            let value = match op {
                Op::RowCount => Some(self.rows as f64),
                Op::Constant(c) => Some(graph.constant_values(*c)[0]),
                Op::Detach(x) | Op::Broadcast(x) => known(x),
                Op::Affine(x, scale, offset) => known(x).map(|x| f64::from(*scale) * x + f64::from(*offset)),
                Op::Unary(Unary::Recip, x) => known(x).map(f64::recip),
                Op::Unary(Unary::Sqrt, x) => known(x).map(f64::sqrt),
                Op::Binary(f, a, b) => known(a).zip(known(b)).map(|(a, b)| match f {
                    Binary::Add => a + b,
                    Binary::Sub => a - b,
                    Binary::Mul => a * b,
                }),
                _ => None,
            };
            if let Some(value) = value {
                self.spots.insert(Id(i as u32), Spot::Literal(value));
            }
        }
    }

    /// Columns of a value that must lie together: those that are read as a whole.
    fn find_solid(&mut self, plan: &Plan, outputs: &[Id]) {
        self.solid.extend(outputs);
        for i in 0..self.nodes.len() {
            if let Op::Reshape(x) = self.nodes[i].0 {
                let x = self.undetached(x);
                self.solid.insert(x);
            }
        }
        let hosts = plan.phases.iter().flat_map(|p| &p.hosts);
        for step in hosts {
            if let Kernel::Host(_, inputs) = &step.kernel {
                let inputs: Vec<Id> = inputs.iter().map(|&x| self.undetached(x)).collect();
                self.solid.extend(inputs);
            }
        }
    }

    /// Whether a value is only a way of looking at another.
    fn is_view(&self, id: Id) -> bool {
        match self.op(id) {
            Op::Detach(_) | Op::Reshape(_) => true,
            Op::Slice(..) => !self.solid.contains(&id),
            _ => false,
        }
    }

    pub fn view(&self, id: Id) -> View {
        let shape = self.shape(id);
        let mut view = View { root: id, start: 0, stride: shape.cols, shape };
        while self.is_view(view.root) {
            match *self.op(view.root) {
                Op::Slice(x, start) => {
                    view.start += start;
                    view.stride = self.shape(x).cols;
                    view.root = x;
                }
                Op::Detach(x) | Op::Reshape(x) => view.root = x,
                _ => unreachable!("views are slices and reshapes"),
            }
        }
        view
    }

    pub fn literal(&self, id: Id) -> Option<f64> {
        match self.spots.get(&self.view(id).root) {
            Some(Spot::Literal(x)) => Some(*x),
            _ => None,
        }
    }

    /// What a task reads, as roots.
    pub fn reads(&self, task: &Task) -> Vec<Id> {
        let ids: Vec<Id> = match task {
            Task::Group(members) => {
                members.iter().flat_map(|&m| elementwise_inputs(&self.nodes, m)).collect()
            }
            Task::Product(p) => [p.a, p.b].into_iter().chain(p.init).collect(),
            Task::Single(id) => self.op(*id).inputs(),
            Task::Reduce(_, terms) => terms.iter().flat_map(|(a, b)| a.iter().copied().chain([*b])).collect(),
        };
        ids.into_iter().map(|id| self.view(id).root).collect()
    }

    /// What a task computes.
    pub fn writes(task: &Task) -> Vec<Id> {
        match task {
            Task::Group(members) => members.clone(),
            Task::Product(p) => vec![p.out],
            Task::Single(id) | Task::Reduce(id, _) => vec![*id],
        }
    }

    fn task(&self, plan: &Plan, step: &crate::plan::Step) -> Option<Task> {
        Some(match &step.kernel {
            Kernel::Group(members) => {
                let needed = |id: &Id| self.literal(*id).is_none() || self.solid.contains(id);
                let members: Vec<Id> = members.iter().copied().filter(needed).collect();
                if members.is_empty() {
                    return None;
                }
                Task::Group(members)
            }
            Kernel::Product { a, pack, init } => {
                let pack = &plan.packs[*pack];
                let (b, transposed, k, n) = (pack.source, pack.transposed, pack.k, pack.n);
                Task::Product(Product { out: step.out, a: *a, b, transposed, init: *init, k, n })
            }
            Kernel::Reduce(terms) => Task::Reduce(step.out, terms.clone()),
            Kernel::Single if self.is_view(step.out) => return None,
            Kernel::Single => Task::Single(step.out),
            Kernel::Pack(_) | Kernel::Host(..) => return None,
        })
    }

    fn add_phase(&mut self, plan: &Plan, phase: &crate::plan::Phase) {
        let fixed: Vec<Task> = phase.prologue.iter().filter_map(|s| self.task(plan, s)).collect();
        if !fixed.is_empty() {
            self.works.push(Work::Fixed(fixed));
        }
        let mut queue: VecDeque<(Task, Option<Vec<Id>>)> =
            phase.rows.iter().filter_map(|s| self.task(plan, s)).map(|task| (task, None)).collect();
        let mut together: Vec<Task> = Vec::new();
        let small = if self.rows < MANY_ROWS { SMALL_MATRIX } else { SMALL_MATRIX / 2 };
        while let Some((task, followers)) = queue.pop_front() {
            let product = match &task {
                Task::Product(p) if p.k * p.n > small || self.ends_tiles(p) => p.clone(),
                _ => {
                    together.push(task);
                    if together.len() == MOST_STEPS {
                        self.works.push(Work::Rows(std::mem::take(&mut together)));
                    }
                    continue;
                }
            };
            if followers.is_none()
                && let Some((at, group)) = self.follower(&product, &queue)
            {
                // What does not wait for the product goes first, then the product with its group.
                queue.remove(at);
                let later = self.dependents(&product, &queue, at);
                let mut reordered: Vec<_> = Vec::new();
                let mut waiting: Vec<_> = Vec::new();
                for (u, entry) in queue.drain(..at).enumerate() {
                    if later.contains(&u) { waiting.push(entry) } else { reordered.push(entry) }
                }
                reordered.push((task, Some(group)));
                for entry in reordered.into_iter().chain(waiting).rev() {
                    queue.push_front(entry);
                }
                continue;
            }
            if !together.is_empty() {
                self.works.push(Work::Rows(std::mem::take(&mut together)));
            }
            self.works.push(Work::Product(product, followers.unwrap_or_default()));
        }
        if !together.is_empty() {
            self.works.push(Work::Rows(together));
        }
        let sums: Vec<_> = phase
            .sums
            .iter()
            .filter_map(|s| match &s.kernel {
                Kernel::Reduce(terms) => Some((s.out, terms.clone())),
                _ => None,
            })
            .collect();
        if !sums.is_empty() {
            self.works.push(Work::Sums(sums));
        }
        for step in &phase.hosts {
            if let Kernel::Host(f, inputs) = &step.kernel {
                self.works.push(Work::Host(step.out, *f, inputs.clone()));
            }
        }
    }

    /// The group that can be computed as soon as a number of the product is known, if there is one.
    fn follower(
        &self,
        product: &Product,
        queue: &VecDeque<(Task, Option<Vec<Id>>)>,
    ) -> Option<(usize, Vec<Id>)> {
        let shape = self.shape(product.out);
        let at = queue.iter().position(|(task, _)| match task {
            Task::Group(members) => {
                self.shape(members[0]) == shape && self.reads(task).contains(&product.out)
            }
            _ => false,
        })?;
        let (Task::Group(members), _) = &queue[at] else { return None };
        let mut waiting: HashSet<Id> = HashSet::new();
        for u in self.dependents(product, queue, at) {
            waiting.extend(Self::writes(&queue[u].0));
        }
        let free = self.reads(&queue[at].0).iter().all(|id| !waiting.contains(id));
        free.then(|| (at, members.clone()))
    }

    /// Which of the first `end` tasks wait for the product.
    fn dependents(
        &self,
        product: &Product,
        queue: &VecDeque<(Task, Option<Vec<Id>>)>,
        end: usize,
    ) -> Vec<usize> {
        let mut known: HashSet<Id> = HashSet::from([product.out]);
        let mut found = Vec::new();
        for (u, (task, followers)) in queue.iter().take(end).enumerate() {
            let mut reads = self.reads(task);
            if let Some(group) = followers {
                reads.extend(self.reads(&Task::Group(group.clone())));
            }
            if reads.iter().any(|id| known.contains(id)) {
                known.extend(Self::writes(task));
                known.extend(followers.iter().flatten());
                found.push(u);
            }
        }
        found
    }
}
