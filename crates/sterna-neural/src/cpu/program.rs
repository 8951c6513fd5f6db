//! Runs a plan on the CPU: blocks of rows travel through a whole phase, then the sums over the batch are
//! split by columns of their results. Neither split can change a bit of the outcome.

use std::cell::UnsafeCell;
use std::sync::Arc;

use super::aligned::Aligned;
use super::group::{self, Cursor, Group};
use super::pool::Pool;
use super::product::{self, Start};
use super::{Level, Shared, rows};
use crate::device::Program;
use crate::graph::{Graph, Id, Value};
use crate::host::HostFunction;
use crate::op::{Op, Rows, Shape};
use crate::parameters::Parameters;
use crate::plan::{Kernel, Phase, Place, Plan, Step};
use crate::{Error, Real, Result};

/// Most rows of a block: large enough for full tiles, small enough for the second cache. Each block reads all
/// weights, so where those do not fit the cache, blocks are larger.
const BLOCK_ROWS: [usize; 2] = [64, 256];
/// Bytes of the second cache, roughly.
const CACHE: usize = 2 << 20;
/// Multiply-adds below which a second thread costs more than it brings.
const PARALLEL_WORK: f64 = 2e6;

/// Memory of one thread.
struct Worker<T> {
    local: Aligned<T>,
    scratch: Aligned<T>,
    cursors: Vec<Cursor<T>>,
}

// SAFETY: cursors are pointers set anew within each step by the thread that uses them.
unsafe impl<T: Send> Send for Worker<T> {}

/// A part of a sum over the batch: columns of one result.
#[derive(Clone, Copy, Debug)]
struct SumTask {
    step: usize,
    from: usize,
    to: usize,
}

/// A compiled computation on the CPU.
pub struct CpuProgram<T: Real> {
    plan: Plan,
    groups: Vec<Option<Group>>,
    sums: Vec<Vec<SumTask>>,
    functions: Vec<(usize, Arc<dyn HostFunction>)>,
    pool: Arc<Pool>,
    level: Level,
    constants: Aligned<T>,
    packed: Vec<Aligned<T>>,
    packed_version: u64,
    fixed: Aligned<T>,
    global: Aligned<T>,
    workers: Vec<UnsafeCell<Worker<T>>>,
    inputs: Vec<*const T>,
    row_count: [T; 1],
    rows: usize,
    block: usize,
    host: Vec<Vec<f64>>,
}

// SAFETY: the pointers in `inputs` are only read during `run`, where the slices are borrowed.
unsafe impl<T: Real> Send for CpuProgram<T> {}
// SAFETY: shared only among the threads of one `run`, each of which uses one worker.
unsafe impl<T: Real> Sync for CpuProgram<T> {}

/// Where everything begins during a run, for one block of rows.
#[derive(Clone, Copy)]
struct Bases<T> {
    inputs: *const *const T,
    parameters: *const T,
    constants: *const T,
    row_count: *const T,
    fixed: *mut T,
    global: *mut T,
    local: *mut T,
    /// Rows that global and local values have room for.
    global_rows: usize,
    local_rows: usize,
    /// First row of the block, and how many.
    first: usize,
    rows: usize,
}

// SAFETY: blocks write disjoint rows, and each thread has its own local memory.
unsafe impl<T: Send> Send for Bases<T> {}
unsafe impl<T: Sync> Sync for Bases<T> {}

impl<T: Real> Bases<T> {
    /// For some of the rows.
    fn block(&self, first: usize, rows: usize, local: *mut T) -> Self {
        Self { first, rows, local, ..*self }
    }

    /// For all rows.
    fn all(&self) -> &Self {
        self
    }

    /// First number of this block of a value.
    unsafe fn at(&self, place: Place, shape: Shape) -> *mut T {
        let skip = if shape.rows.is_batch() { self.first * shape.group_len() } else { 0 };
        unsafe {
            match place {
                Place::Input(k) => (*self.inputs.add(k)).cast_mut().add(skip),
                Place::Parameter(offset) => self.parameters.cast_mut().add(offset),
                Place::Constant(offset) => self.constants.cast_mut().add(offset),
                Place::RowCount => self.row_count.cast_mut(),
                Place::Fixed(offset) => self.fixed.add(offset),
                Place::Global(unit) => self.global.add(unit * self.global_rows + skip),
                Place::Local(unit) => self.local.add(unit * self.local_rows),
            }
        }
    }
}

/// Rows that buffers are spaced by: whole cache lines for any number of columns.
fn spaced(rows: usize) -> usize {
    rows.next_multiple_of(16)
}

impl<T: Real> CpuProgram<T> {
    pub fn new(graph: &Graph, outputs: &[Value], pool: Arc<Pool>, level: Level) -> Result<Self> {
        let plan = Plan::new(graph, outputs)?;
        let mut groups = vec![None; plan.nodes.len()];
        let (mut tiles, mut operands) = (0, 1);
        let mut functions = Vec::new();
        let mut sums = Vec::new();
        for phase in &plan.phases {
            for step in phase.prologue.iter().chain(&phase.rows) {
                if let Kernel::Group(members) = &step.kernel {
                    let group = Group::compile(&plan.nodes, &plan.places, members);
                    tiles = tiles.max(group.scratch_tiles());
                    operands = operands.max(group.memory.len());
                    groups[step.out.index()] = Some(group);
                }
            }
            for step in &phase.hosts {
                if let Kernel::Host(f, _) = step.kernel {
                    functions.push((f, graph.host_function(f)));
                }
            }
            sums.push(Self::split_sums(phase, pool.threads()));
        }
        let mut scratch = tiles * group::tile_len::<T>();
        for step in plan.phases.iter().flat_map(|p| p.prologue.iter().chain(&p.sums)) {
            if let Kernel::Reduce(_) = step.kernel {
                scratch = scratch.max(product::sum_scratch::<T>(step.shape.rows.group()));
            }
        }
        let workers = (0..pool.threads())
            .map(|_| Worker {
                local: Aligned::new(0),
                scratch: Aligned::new(scratch),
                cursors: vec![Cursor::new(std::ptr::null_mut()); operands],
            })
            .map(UnsafeCell::new)
            .collect();
        let mut constants = Aligned::<T>::new(plan.constants.len());
        for (i, &c) in plan.constants.iter().enumerate() {
            // SAFETY: within the buffer just made.
            unsafe { *constants.as_mut_ptr().add(i) = T::from_f64(c) };
        }
        let packed = plan.packs.iter().map(|p| Aligned::new(product::packed_len::<T>(p.k, p.n))).collect();
        let bytes_per_row = (plan.local_units * T::BYTES).max(1);
        let weights: usize = plan.packs.iter().map(|p| product::packed_len::<T>(p.k, p.n) * T::BYTES).sum();
        let block = if weights < CACHE {
            (CACHE / 2 / bytes_per_row).clamp(8, BLOCK_ROWS[0])
        } else {
            (2 * CACHE / bytes_per_row).clamp(8, BLOCK_ROWS[1])
        };
        Ok(Self {
            fixed: Aligned::new(plan.fixed_len),
            inputs: vec![std::ptr::null(); plan.inputs.len()],
            block,
            global: Aligned::new(0),
            packed_version: 0,
            row_count: [T::ZERO],
            rows: 0,
            host: vec![],
            groups,
            sums,
            functions,
            pool,
            level,
            constants,
            packed,
            workers,
            plan,
        })
    }

    fn split_sums(phase: &Phase, threads: usize) -> Vec<SumTask> {
        let mut tasks = Vec::new();
        for (step, s) in phase.sums.iter().enumerate() {
            let Kernel::Reduce(terms) = &s.kernel else { continue };
            let n = s.shape.cols;
            let product = terms.iter().any(|(a, _)| a.is_some());
            // Large results are split between threads; small ones are not worth laying out twice.
            let width = if product { product::sum_columns::<T>() / threads.min(2) } else { n };
            let mut from = 0;
            while from < n {
                let to = (from + width).min(n);
                tasks.push(SumTask { step, from, to });
                from = to;
            }
        }
        tasks
    }

    fn place(&self, id: Id) -> Place {
        self.plan.places[id.index()].expect("stored values have a place")
    }

    fn shape(&self, id: Id) -> Shape {
        self.plan.nodes[id.index()].1
    }

    fn check(&self, parameters: &Parameters<T>, rows: usize, inputs: &[&[T]]) -> Result<()> {
        if inputs.len() != self.plan.inputs.len() {
            return Err(Error::InputCount { expected: self.plan.inputs.len(), given: inputs.len() });
        }
        for ((name, cols), input) in self.plan.inputs.iter().zip(inputs) {
            if input.len() != rows * cols {
                let (name, cols, len) = (name.clone(), *cols, input.len());
                return Err(Error::InputLength { name, rows, cols, len });
            }
        }
        let given = parameters.values().len();
        if given < self.plan.parameters {
            return Err(Error::ParameterCount { expected: self.plan.parameters, given });
        }
        Ok(())
    }

    /// Lays out the weights, each by one thread.
    fn pack_parameters(&mut self, bases: &Bases<T>) {
        let (plan, level) = (&self.plan, self.level);
        let targets = Shared(self.packed.as_mut_ptr());
        let bases = *bases;
        self.pool.run(plan.packs.len(), &|i, _| {
            let pack = &plan.packs[i];
            let place = plan.places[pack.source.index()].expect("stored");
            if !matches!(place, Place::Parameter(_) | Place::Constant(_)) {
                return;
            }
            // SAFETY: each task has its own target, and sizes were fixed at compilation.
            unsafe {
                let target = targets.get().add(i);
                let source = bases.all().at(place, plan.nodes[pack.source.index()].1);
                let ldb = if pack.transposed { pack.k } else { pack.n };
                product::pack(level, pack.k, pack.n, source, ldb, pack.transposed, (*target).as_mut_ptr());
            }
        });
    }

    fn run_phase(&mut self, p: usize, bases: Bases<T>, threads: usize) -> Result<()> {
        for s in 0..self.plan.phases[p].prologue.len() {
            if let Kernel::Pack(i) = self.plan.phases[p].prologue[s].kernel {
                let pack = &self.plan.packs[i];
                let source = self.place(pack.source);
                let ldb = if pack.transposed { pack.k } else { pack.n };
                let (k, n, transposed) = (pack.k, pack.n, pack.transposed);
                // SAFETY: sizes were fixed at compilation.
                unsafe {
                    let from = bases.at(source, self.shape(self.plan.packs[i].source));
                    product::pack(self.level, k, n, from, ldb, transposed, self.packed[i].as_mut_ptr());
                }
                continue;
            }
            // SAFETY: fixed values are computed by this thread alone.
            unsafe {
                let worker = &mut *self.workers[0].get();
                self.execute(&self.plan.phases[p].prologue[s], &bases, worker);
            }
        }
        let total = bases.rows;
        let phase = &self.plan.phases[p];
        if !phase.rows.is_empty() && total > 0 {
            let mut blocks = total.div_ceil(self.block);
            if threads > 1 {
                blocks = blocks.next_multiple_of(threads).min(total);
            }
            let this = &*self;
            let task = |block: usize, worker: usize| {
                let first = block * total / blocks;
                let rows = (block + 1) * total / blocks - first;
                // SAFETY: a worker's number is used by one thread at a time; blocks are disjoint.
                unsafe {
                    let worker = &mut *this.workers[worker].get();
                    let bases = bases.block(first, rows, worker.local.as_mut_ptr());
                    for step in &this.plan.phases[p].rows {
                        this.execute(step, &bases, worker);
                    }
                }
            };
            if threads > 1 { self.pool.run(blocks, &task) } else { (0..blocks).for_each(|b| task(b, 0)) }
        }
        if !phase.sums.is_empty() {
            let this = &*self;
            let tasks = &self.sums[p];
            let task = |task: usize, worker: usize| {
                let SumTask { step, from, to } = tasks[task];
                // SAFETY: as above; tasks write disjoint columns.
                unsafe {
                    let scratch = (*this.workers[worker].get()).scratch.as_mut_ptr();
                    this.reduce(&this.plan.phases[p].sums[step], bases.all(), from, to, scratch);
                }
            };
            if threads > 1 {
                self.pool.run(tasks.len(), &task)
            } else {
                (0..tasks.len()).for_each(|t| task(t, 0))
            }
        }
        for s in 0..self.plan.phases[p].hosts.len() {
            self.call_host(p, s, &bases)?;
        }
        Ok(())
    }

    /// One step for one block of rows.
    unsafe fn execute(&self, step: &Step, bases: &Bases<T>, worker: &mut Worker<T>) {
        let (out, shape, level) = (step.out, step.shape, self.level);
        let groups = if shape.rows.is_batch() { bases.rows } else { 1 };
        let count = groups * shape.rows.group();
        let at = |id: Id| unsafe { bases.at(self.place(id), self.shape(id)) };
        unsafe {
            match &step.kernel {
                Kernel::Product { a, pack, init } => {
                    let pack_at = &self.packed[*pack];
                    let (k, n) = (self.plan.packs[*pack].k, shape.cols);
                    let start = match init {
                        None => Start::Zero,
                        Some(id) if self.shape(*id).rows == Rows::Fixed(1) => {
                            Start::Row(at(*id).cast_const())
                        }
                        Some(id) => Start::Full(at(*id).cast_const(), n),
                    };
                    product::product(level, count, k, n, at(*a), pack_at.as_ptr(), start, at(out));
                }
                Kernel::Group(_) => {
                    let group = self.groups[out.index()].as_ref().expect("compiled group");
                    for (cursor, (id, _)) in worker.cursors.iter_mut().zip(&group.memory) {
                        *cursor = Cursor::new(at(*id));
                    }
                    group::run(level, group, count, &mut worker.cursors, worker.scratch.as_mut_ptr());
                }
                Kernel::Reduce(_) => {
                    let mut from = 0;
                    while from < shape.cols {
                        let to = (from + product::sum_columns::<T>()).min(shape.cols);
                        self.reduce(step, bases, from, to, worker.scratch.as_mut_ptr());
                        from = to;
                    }
                }
                Kernel::Single => match &self.plan.nodes[out.index()].0 {
                    Op::SumCols(_) => {
                        let x = self.input(out, 0);
                        rows::sum_cols(level, count, self.shape(x).cols, at(x), at(out));
                    }
                    Op::LogSumExp(_) => {
                        let x = self.input(out, 0);
                        rows::log_sum_exp(level, count, self.shape(x).cols, at(x), at(out));
                    }
                    Op::Slice(_, start) => {
                        let x = self.input(out, 0);
                        rows::slice(count, shape.cols, self.shape(x).cols, *start, at(x), at(out));
                    }
                    Op::Pad(_, start) => {
                        let x = self.input(out, 0);
                        std::slice::from_raw_parts_mut(at(out), count * shape.cols).fill(T::ZERO);
                        rows::place(count, self.shape(x).cols, shape.cols, *start, at(x), at(out));
                    }
                    Op::Concat(parts) => {
                        let mut start = 0;
                        for part in 0..parts.len() {
                            let x = self.input(out, part);
                            let cols = self.shape(x).cols;
                            rows::place(count, cols, shape.cols, start, at(x), at(out));
                            start += cols;
                        }
                    }
                    Op::Gather(_, index) => {
                        let x = self.input(out, 0);
                        let from = self.shape(x).rows.group();
                        rows::gather(groups, from, shape.cols, index, at(x), at(out));
                    }
                    Op::Scatter(_, index) => {
                        let x = self.input(out, 0);
                        let to = shape.rows.group();
                        rows::scatter(level, groups, to, shape.cols, index, at(x), at(out));
                    }
                    other => unreachable!("{other:?} as a single step"),
                },
                Kernel::Pack(_) | Kernel::Host(..) => unreachable!("not a row step"),
            }
        }
    }

    /// Input `k` of a value, looking through detached values.
    fn input(&self, id: Id, k: usize) -> Id {
        let nodes = &self.plan.nodes;
        let op = &nodes[id.index()].0;
        let mut id = match op {
            Op::Concat(parts) => parts[k],
            Op::SumCols(x)
            | Op::LogSumExp(x)
            | Op::Slice(x, _)
            | Op::Pad(x, _)
            | Op::Gather(x, _)
            | Op::Scatter(x, _) => *x,
            other => unreachable!("{other:?} as a single step"),
        };
        while let Op::Detach(x) = nodes[id.index()].0 {
            id = x;
        }
        id
    }

    /// Columns `from .. to` of a sum over rows.
    unsafe fn reduce(&self, step: &Step, bases: &Bases<T>, from: usize, to: usize, scratch: *mut T) {
        let Kernel::Reduce(terms) = &step.kernel else { unreachable!("a sum") };
        let (m, n) = (step.shape.rows.group(), step.shape.cols);
        for (t, (a, b)) in terms.iter().enumerate() {
            let rows = match self.shape(*b).rows {
                Rows::Fixed(rows) => rows,
                Rows::Batch(group) => bases.rows * group,
            };
            unsafe {
                let c = bases.at(self.place(step.out), step.shape);
                let b_at = bases.at(self.place(*b), self.shape(*b));
                match a {
                    Some(a) => {
                        let a = bases.at(self.place(*a), self.shape(*a));
                        product::sum_products(self.level, rows, m, n, a, b_at, c, from, to, t == 0, scratch);
                    }
                    None => product::sum_rows(self.level, rows, n, b_at, c, t == 0),
                }
            }
        }
    }

    /// Calls a host function with the whole batch, in f64.
    fn call_host(&mut self, p: usize, s: usize, bases: &Bases<T>) -> Result<()> {
        let step = &self.plan.phases[p].hosts[s];
        let Kernel::Host(f, inputs) = &step.kernel else { unreachable!("a host step") };
        let function = &self.functions.iter().find(|(k, _)| k == f).expect("stored function").1;
        let rows = bases.rows;
        if self.host.len() <= inputs.len() {
            self.host.resize(inputs.len() + 1, vec![]);
        }
        let (output, buffers) = self.host.split_first_mut().expect("at least one buffer");
        for (buffer, id) in buffers.iter_mut().zip(inputs) {
            let shape = self.plan.nodes[id.index()].1;
            // SAFETY: a batch value that lives across phases, all rows written.
            let values = unsafe {
                let place = self.plan.places[id.index()].expect("stored values have a place");
                std::slice::from_raw_parts(bases.at(place, shape), rows * shape.cols)
            };
            buffer.clear();
            buffer.extend(values.iter().map(|x| x.to_f64()));
        }
        output.clear();
        output.resize(rows * step.shape.cols, 0.0);
        let mut slices: [&[f64]; 8] = [&[]; 8];
        for (slice, buffer) in slices.iter_mut().zip(buffers.iter()) {
            *slice = buffer;
        }
        function.call(rows, &slices[..inputs.len()], output)?;
        // SAFETY: as above.
        let target = unsafe {
            let place = self.plan.places[step.out.index()].expect("stored values have a place");
            std::slice::from_raw_parts_mut(bases.at(place, step.shape), rows * step.shape.cols)
        };
        for (to, from) in target.iter_mut().zip(output.iter()) {
            *to = T::from_f64(*from);
        }
        Ok(())
    }
}

impl<T: Real> Program<T> for CpuProgram<T> {
    fn run(&mut self, parameters: &Parameters<T>, rows: usize, inputs: &[&[T]]) -> Result<()> {
        self.check(parameters, rows, inputs)?;
        for (to, from) in self.inputs.iter_mut().zip(inputs) {
            *to = from.as_ptr();
        }
        self.rows = rows;
        self.row_count = [T::from_f64(rows as f64)];
        let block = self.block.min(rows);
        self.global.reserve(self.plan.global_units * spaced(rows));
        for worker in &mut self.workers {
            worker.get_mut().local.reserve(self.plan.local_units * spaced(block));
        }
        let bases = Bases {
            inputs: self.inputs.as_ptr(),
            parameters: parameters.values().as_ptr(),
            constants: self.constants.as_ptr(),
            row_count: self.row_count.as_ptr(),
            fixed: self.fixed.as_mut_ptr(),
            global: self.global.as_mut_ptr(),
            local: std::ptr::null_mut(),
            global_rows: spaced(rows),
            local_rows: spaced(block),
            first: 0,
            rows,
        };
        if self.packed_version != parameters.version() {
            self.pack_parameters(&bases);
            self.packed_version = parameters.version();
        }
        let busy = self.plan.work * rows as f64 >= PARALLEL_WORK;
        let threads = if busy { self.pool.threads() } else { 1 };
        for p in 0..self.plan.phases.len() {
            self.run_phase(p, bases, threads)?;
        }
        for &(id, k) in &self.plan.copies {
            let (place, shape) = self.plan.outputs[k];
            let len = if shape.rows.is_batch() { rows } else { 1 } * shape.group_len();
            // SAFETY: outputs have places of their own.
            unsafe {
                let from = bases.at(self.place(id), shape);
                std::ptr::copy_nonoverlapping(from, bases.at(place, shape), len);
            }
        }
        Ok(())
    }

    fn output(&self, k: usize) -> &[T] {
        let (place, shape) = self.plan.outputs[k];
        match place {
            Place::Fixed(offset) => self.fixed.slice(offset, shape.group_len()),
            Place::Global(unit) => self.global.slice(unit * spaced(self.rows), self.rows * shape.group_len()),
            other => unreachable!("output at {other:?}"),
        }
    }

    fn fixed_outputs(&self, first: usize, last: usize) -> &[T] {
        let mut len = 0;
        let mut from = 0;
        for k in first..last {
            let (place, shape) = self.plan.outputs[k];
            let Place::Fixed(offset) = place else { panic!("output {k} is a batch") };
            from = if k == first { offset } else { from };
            len += shape.group_len();
        }
        self.fixed.slice(from, len)
    }
}
