//! The steps of a plan, compiled: what the threads of a run share, and do to one block of rows.

use super::Level;
use super::group::{self, Cursor, Group};
use super::memory::Aligned;
use super::memory::Bases;
use super::product::{self, Start};
use super::rows;
use crate::Real;
use crate::graph::Id;
use crate::op::{Op, Rows, Shape};
use crate::plan::{Kernel, Pack, Place, Plan, Step};

/// Memory of one thread.
pub struct Worker<T> {
    pub local: Aligned<T>,
    pub scratch: Aligned<T>,
    cursors: Vec<Cursor<T>>,
}

// SAFETY: cursors are pointers set anew within each step by the thread that uses them.
unsafe impl<T: Send> Send for Worker<T> {}

/// A plan with its kernels.
pub struct Steps<T: Real> {
    pub plan: Plan,
    groups: Vec<Option<Group>>,
    /// The laid out matrices of products.
    pub packed: Vec<Aligned<T>>,
    level: Level,
}

impl<T: Real> Steps<T> {
    pub fn new(plan: Plan, level: Level) -> Self {
        let mut groups = vec![None; plan.nodes.len()];
        for step in plan.phases.iter().flat_map(|p| p.prologue.iter().chain(&p.rows)) {
            if let Kernel::Group(members) = &step.kernel {
                groups[step.out.index()] = Some(Group::compile(&plan.nodes, &plan.places, members));
            }
        }
        let packed = plan.packs.iter().map(|p| Aligned::new(product::packed_len::<T>(p.k, p.n))).collect();
        Self { plan, groups, packed, level }
    }

    /// Memory that one thread needs.
    pub fn worker(&self) -> Worker<T> {
        let groups = || self.groups.iter().flatten();
        let tiles = groups().map(Group::scratch_tiles).max().unwrap_or(0);
        let operands = groups().map(|group| group.memory.len()).max().unwrap_or(0);
        let sums = self.plan.phases.iter().flat_map(|p| p.prologue.iter().chain(&p.sums));
        let of_sum = |step: &Step| match step.kernel {
            Kernel::Reduce(_) => product::sum_scratch::<T>(step.shape.rows.group()),
            _ => 0,
        };
        let scratch = sums.map(of_sum).max().unwrap_or(0).max(tiles * group::tile_len::<T>());
        Worker {
            local: Aligned::new(0),
            scratch: Aligned::new(scratch),
            cursors: vec![Cursor::new(std::ptr::null_mut()); operands],
        }
    }

    /// Bytes of all laid out matrices.
    pub fn packed_bytes(&self) -> usize {
        self.plan.packs.iter().map(|p| product::packed_len::<T>(p.k, p.n) * T::BYTES).sum()
    }

    pub fn place(&self, id: Id) -> Place {
        self.plan.places[id.index()].expect("stored values have a place")
    }

    pub fn shape(&self, id: Id) -> Shape {
        self.plan.nodes[id.index()].1
    }

    /// One step for one block of rows.
    ///
    /// # Safety
    /// The bases must hold what this plan laid out, and no other thread may touch this block's results.
    pub unsafe fn execute(&self, step: &Step, bases: &Bases<T>, worker: &mut Worker<T>) {
        let (out, shape, level) = (step.out, step.shape, self.level);
        let groups = if shape.rows.is_batch() { bases.rows } else { 1 };
        let count = groups * shape.rows.group();
        // SAFETY: the caller's bases are those of this plan.
        let at = |id: Id| unsafe { bases.at(self.place(id), self.shape(id)) };
        // SAFETY: shapes and places come from one plan, so every pointer is good for its shape; the level was found
        // on this machine.
        unsafe {
            match &step.kernel {
                Kernel::Product { a, pack, init } => {
                    let (k, n) = (self.plan.packs[*pack].k, shape.cols);
                    let start = match init {
                        None => Start::Zero,
                        Some(id) if self.shape(*id).rows == Rows::Fixed(1) => {
                            Start::Row(at(*id).cast_const())
                        }
                        Some(id) => Start::Full(at(*id).cast_const(), n),
                    };
                    product::product(level, count, k, n, at(*a), self.packed[*pack].as_ptr(), start, at(out));
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
                Kernel::Single => self.single(step, bases, groups, count),
                Kernel::Pack(_) | Kernel::Host(..) => unreachable!("not a row step"),
            }
        }
    }

    /// A step that moves or sums columns or rows.
    ///
    /// # Safety
    /// As for [`execute`](Self::execute).
    unsafe fn single(&self, step: &Step, bases: &Bases<T>, groups: usize, count: usize) {
        let (out, cols, level) = (step.out, step.shape.cols, self.level);
        // SAFETY: the caller's bases are those of this plan.
        let at = |id: Id| unsafe { bases.at(self.place(id), self.shape(id)) };
        let op = &self.plan.nodes[out.index()].0;
        let x = self.input(out, 0);
        let own = self.shape(x).cols;
        // SAFETY: as in `execute`.
        unsafe {
            match op {
                Op::SumCols(_) => rows::sum_cols(level, count, own, at(x), at(out)),
                Op::LogSumExp(_) => rows::log_sum_exp(level, count, own, at(x), at(out)),
                Op::Slice(_, start) => rows::slice(count, cols, own, *start, at(x), at(out)),
                Op::Pad(_, start) => {
                    std::slice::from_raw_parts_mut(at(out), count * cols).fill(T::ZERO);
                    rows::place(count, own, cols, *start, at(x), at(out));
                }
                Op::Concat(parts) => {
                    let mut start = 0;
                    for part in 0..parts.len() {
                        let x = self.input(out, part);
                        let own = self.shape(x).cols;
                        rows::place(count, own, cols, start, at(x), at(out));
                        start += own;
                    }
                }
                Op::Gather(_, index) => {
                    rows::gather(groups, self.shape(x).rows.group(), cols, index, at(x), at(out))
                }
                Op::Scatter(_, index) => {
                    rows::scatter(level, groups, step.shape.rows.group(), cols, index, at(x), at(out))
                }
                other => unreachable!("{other:?} as a single step"),
            }
        }
    }

    /// Input `k` of a value, looking through detached values.
    fn input(&self, id: Id, k: usize) -> Id {
        let nodes = &self.plan.nodes;
        let mut id = match &nodes[id.index()].0 {
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
    ///
    /// # Safety
    /// As for [`execute`](Self::execute); `scratch` is that of a worker.
    pub unsafe fn reduce(&self, step: &Step, bases: &Bases<T>, from: usize, to: usize, scratch: *mut T) {
        let Kernel::Reduce(terms) = &step.kernel else { unreachable!("a sum") };
        let (m, n) = (step.shape.rows.group(), step.shape.cols);
        for (t, (a, b)) in terms.iter().enumerate() {
            let rows = match self.shape(*b).rows {
                Rows::Fixed(rows) => rows,
                Rows::Batch(group) => bases.rows * group,
            };
            // SAFETY: as in `execute`.
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

    /// Lays out matrix `i` from where its source lies.
    pub fn pack(&mut self, i: usize, bases: &Bases<T>) {
        let place = self.place(self.plan.packs[i].source);
        lay_out(&self.plan, self.level, &self.plan.packs[i], place, bases, &mut self.packed[i]);
    }

    /// Lays out the weights, each by one thread.
    pub fn pack_parameters(&mut self, bases: &Bases<T>, threads: usize) {
        let (plan, level, bases) = (&self.plan, self.level, *bases);
        let one = |(pack, to): (&Pack, &mut Aligned<T>)| {
            let place = plan.places[pack.source.index()].expect("stored");
            if matches!(place, Place::Parameter(_) | Place::Constant(_)) {
                lay_out(plan, level, pack, place, &bases, to);
            }
        };
        if threads > 1 && plan.packs.len() > 1 {
            use rayon::prelude::*;
            plan.packs.par_iter().zip(&mut self.packed).with_max_len(1).for_each(one);
        } else {
            plan.packs.iter().zip(&mut self.packed).for_each(one);
        }
    }
}

fn lay_out<T: Real>(
    plan: &Plan,
    level: Level,
    pack: &Pack,
    place: Place,
    bases: &Bases<T>,
    to: &mut Aligned<T>,
) {
    let ldb = if pack.transposed { pack.k } else { pack.n };
    // SAFETY: the source lies where the plan says; the target was made for this size.
    unsafe {
        let source = bases.at(place, plan.nodes[pack.source.index()].1);
        product::pack(level, pack.k, pack.n, source, ldb, pack.transposed, to.as_mut_ptr());
    }
}
