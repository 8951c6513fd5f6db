//! Where the values of a schedule live: registers, a block's shared memory, or the arena.

use std::collections::HashMap;

use super::schedule::{LANES, Product, Schedule, Spot, THREADS, Task, Turned, View, Work};
use crate::graph::{Graph, Id};
use crate::op::{Op, Rows};
use crate::plan::{Plan, pack_intervals};

/// Sums of so few terms read a transposed matrix well enough as it is.
const SHORT_SUM: usize = 16;
/// Bytes of shared memory that the values of a row kernel may take.
const SHARED_BYTES: usize = 72 << 10;
/// The fewest rows that are worth matrix units that read shared memory.
pub(super) const HOPPER_ROWS: usize = 4096;

impl Schedule {
    /// Numbers that a value takes in the arena.
    fn len(&self, id: Id) -> usize {
        let shape = self.shape(id);
        let rows = if shape.rows.is_batch() { self.padded_rows() } else { 1 };
        rows * shape.group_len()
    }

    /// Rows that batch values have room for: whole blocks.
    pub fn padded_rows(&self) -> usize {
        self.rows.next_multiple_of(16)
    }

    pub(super) fn take(&mut self, len: usize) -> usize {
        let at = self.arena;
        // Whole cache lines.
        self.arena += len.next_multiple_of(32);
        at
    }

    pub(super) fn place(&mut self, graph: &Graph, plan: &Plan, outputs: &[Id], bytes: usize) {
        self.parameters = plan.parameters.max(self.parameters);
        self.take(self.parameters);
        for (_, cols) in graph.inputs() {
            let at = self.take(cols * self.padded_rows());
            self.inputs.push(at);
        }
        for i in 0..self.nodes.len() {
            let id = Id(i as u32);
            match self.nodes[i].0 {
                Op::Input(k) => {
                    self.spots.insert(id, Spot::Memory(self.inputs[k]));
                }
                Op::Parameter(offset) => {
                    self.spots.insert(id, Spot::Memory(offset));
                }
                Op::Constant(c) if !self.spots.contains_key(&id) => {
                    let values = graph.constant_values(c);
                    let at = self.take(values.len());
                    self.constants.push((at, values.to_vec()));
                    self.spots.insert(id, Spot::Memory(at));
                }
                _ => {}
            }
        }
        self.place_outputs(outputs);
        self.place_tiles();
        self.place_values(bytes);
        self.place_turned();
    }

    /// Fixed outputs lie one after the other, so that gradients form one vector.
    fn place_outputs(&mut self, outputs: &[Id]) {
        let fixed: usize =
            outputs.iter().filter(|id| !self.shape(**id).rows.is_batch()).map(|id| self.len(*id)).sum();
        let mut next = self.take(fixed);
        for (k, &id) in outputs.iter().enumerate() {
            let shape = self.shape(id);
            let at = if shape.rows.is_batch() {
                self.take(self.len(id))
            } else {
                next += shape.group_len();
                next - shape.group_len()
            };
            self.outputs.push((at, shape));
            let produced = self.works.iter().any(|w| self.produces(w, id));
            if produced && !matches!(self.spots.get(&id), Some(Spot::Memory(_))) {
                self.spots.insert(id, Spot::Memory(at));
            } else {
                self.works.push(Work::Copy(id, k));
            }
        }
    }

    fn produces(&self, work: &Work, id: Id) -> bool {
        match work {
            Work::Rows(tasks) | Work::Fixed(tasks) => tasks.iter().any(|t| Self::writes(t).contains(&id)),
            Work::Product(p, group) => p.out == id || group.contains(&id),
            Work::Sums(sums) => sums.iter().any(|(out, _)| *out == id),
            Work::Host(out, ..) => *out == id,
            Work::Copy(..) => false,
        }
    }

    /// Work and step at which each value is read; steps of a row kernel count, of others not.
    pub(super) fn uses(&self) -> HashMap<Id, Vec<(usize, usize)>> {
        let mut uses: HashMap<Id, Vec<(usize, usize)>> = HashMap::new();
        for (w, work) in self.works.iter().enumerate() {
            let mut add = |ids: Vec<Id>, step: usize| {
                for id in ids {
                    uses.entry(id).or_default().push((w, step));
                }
            };
            let roots = |ids: &[Id]| ids.iter().map(|&id| self.view(id).root).collect::<Vec<_>>();
            match work {
                Work::Rows(tasks) | Work::Fixed(tasks) => {
                    tasks.iter().enumerate().for_each(|(s, task)| add(self.reads(task), s));
                }
                Work::Product(p, group) => {
                    add(self.reads(&Task::Product(p.clone())), 1);
                    add(self.reads(&Task::Group(group.clone())), 0);
                }
                Work::Sums(sums) => {
                    sums.iter()
                        .for_each(|(out, terms)| add(self.reads(&Task::Reduce(*out, terms.clone())), 0));
                }
                Work::Host(_, _, inputs) => add(roots(inputs), 0),
                Work::Copy(id, _) => add(roots(&[*id]), 0),
            }
        }
        uses
    }

    fn place_values(&mut self, bytes: usize) {
        let uses = self.uses();
        let none = Vec::new();
        for w in 0..self.works.len() {
            let work = self.works[w].clone();
            let used = |id: Id| uses.get(&id).unwrap_or(&none);
            match &work {
                Work::Rows(tasks) | Work::Fixed(tasks) => {
                    let rows = matches!(work, Work::Rows(_));
                    let mut shared = Vec::new();
                    for (s, task) in tasks.iter().enumerate() {
                        for id in Self::writes(task) {
                            if self.spots.contains_key(&id) {
                                continue;
                            }
                            let used = used(id);
                            if matches!(task, Task::Group(_)) && used.iter().all(|u| *u == (w, s)) {
                                self.spots.insert(id, Spot::Register);
                            } else if rows && used.iter().all(|u| u.0 == w) {
                                let last = used.iter().map(|u| u.1).max().unwrap_or(s);
                                let units = self.shape(id).group_len().next_multiple_of(4);
                                shared.push((id, units, s, last));
                            } else {
                                self.place_in_memory(id);
                            }
                        }
                    }
                    self.place_shared(w, shared, bytes);
                }
                Work::Product(p, group) => {
                    for &id in [p.out].iter().chain(group) {
                        if self.spots.contains_key(&id) {
                            continue;
                        }
                        if used(id).iter().all(|u| *u == (w, 0)) {
                            self.spots.insert(id, Spot::Register);
                        } else {
                            self.place_in_memory(id);
                        }
                    }
                }
                Work::Sums(sums) => sums.iter().for_each(|(out, _)| self.place_in_memory(*out)),
                Work::Host(out, ..) => self.place_in_memory(*out),
                Work::Copy(..) => {}
            }
        }
    }

    fn place_in_memory(&mut self, id: Id) {
        if !self.spots.contains_key(&id) {
            let at = self.take(self.len(id));
            self.spots.insert(id, Spot::Memory(at));
        }
    }

    /// Shared memory for as many values as fit; those that are kept longest go to memory.
    fn place_shared(&mut self, work: usize, mut items: Vec<(Id, usize, usize, usize)>, bytes: usize) {
        let rows = if self.by_lanes { 128 / LANES } else { self.block_rows };
        let most = SHARED_BYTES / bytes / rows;
        items.sort_by_key(|&(_, units, first, last)| (last - first + 1) * units);
        loop {
            let (offsets, total) = pack_intervals(&items, 0);
            if total <= most {
                for ((id, ..), offset) in items.iter().zip(offsets) {
                    self.spots.insert(*id, Spot::Shared(offset));
                }
                self.shared.insert(work, total);
                return;
            }
            let keep = items.len() - items.len().div_ceil(16);
            for (id, ..) in items.split_off(keep) {
                self.place_in_memory(id);
            }
        }
    }

    /// Whether a large product can use matrix units that want both factors contiguous along the sum.
    pub fn on_hopper(&self, p: &Product) -> bool {
        let rows = self.rows * self.shape(p.out).rows.group();
        let (a, b) = (self.view(p.a), self.view(p.b));
        let wide = |view: View| {
            let Some(Spot::Memory(at)) = self.spots.get(&view.root) else { return false };
            (at + view.start).is_multiple_of(4) && view.stride.is_multiple_of(4)
        };
        let b_fits = if p.transposed { wide(b) } else { matches!(self.op(p.b), Op::Parameter(_)) };
        self.hopper && rows >= HOPPER_ROWS && p.n >= 32 && p.k.is_multiple_of(4) && wide(a) && b_fits
    }

    /// Weights that are needed transposed: small ones by row kernels, large ones by Hopper's matrix units.
    fn place_turned(&mut self) {
        let mut wanted = Vec::new();
        for work in &self.works {
            if let Work::Product(p, _) = work
                && !p.transposed
                && self.tiling(p).is_none()
                && self.on_hopper(p)
                && !wanted.contains(&p.b)
            {
                wanted.push(p.b);
            }
            if let Work::Rows(tasks) = work {
                for task in tasks {
                    if let Task::Product(p) = task
                        && p.transposed
                        && p.k > SHORT_SUM
                        && matches!(self.op(p.b), Op::Parameter(_) | Op::Constant(_))
                        && !wanted.contains(&p.b)
                    {
                        wanted.push(p.b);
                    }
                }
            }
        }
        for source in wanted {
            let to = self.take(self.shape(source).group_len());
            self.turned.push(Turned { source, to });
        }
    }

    /// Where the transposed copy of a matrix lies, if there is one.
    pub fn turned_at(&self, source: Id) -> Option<usize> {
        self.turned.iter().find(|t| t.source == source).map(|t| t.to)
    }

    /// Threads of a row kernel: few where its values are narrow, so that more blocks run side by side.
    pub fn threads(&self, tasks: &[Task]) -> usize {
        let widest = tasks.iter().map(|task| match task {
            Task::Product(p) => 4 * self.block_rows * p.n.max(p.k),
            other => Self::writes(other)
                .iter()
                .map(|&id| self.rows_in_block(self.shape(id).rows) * self.shape(id).cols)
                .max()
                .unwrap_or(0),
        });
        let widest = widest.max().unwrap_or(0);
        if widest <= 512 {
            128
        } else if widest <= 1024 {
            256
        } else {
            THREADS
        }
    }

    /// Rows of a value in one block of a row kernel.
    pub fn rows_in_block(&self, rows: Rows) -> usize {
        match rows {
            Rows::Fixed(n) => n,
            Rows::Batch(group) => group * self.block_rows,
        }
    }
}
