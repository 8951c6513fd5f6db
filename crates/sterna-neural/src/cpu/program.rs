//! Runs a plan on the CPU: blocks of rows travel through a whole phase, then the sums over the batch are
//! split by columns of their results. Neither split can change a bit of the outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::Level;
use super::memory::{Aligned, Bases, reserve, spaced};
use super::product;
use super::steps::{Steps, Worker};
use crate::device::Program;
use crate::graph::{Graph, HostFunction, Value};
use crate::parameters::Parameters;
use crate::plan::{Kernel, Phase, Place, Plan};
use crate::{Error, Real, Result};

/// Most rows of a block: large enough for full tiles, small enough for the second cache. Each block reads all
/// weights, so where those do not fit the cache, blocks are larger.
const BLOCK_ROWS: [usize; 2] = [64, 256];
/// Bytes of the second cache, roughly.
const CACHE: usize = 2 << 20;
/// Multiply-adds below which a second thread costs more than it brings.
const PARALLEL_WORK: f64 = 2e6;

/// A part of a sum over the batch: columns of one result.
#[derive(Clone, Copy, Debug)]
struct SumTask {
    step: usize,
    from: usize,
    to: usize,
}

/// A compiled computation on the CPU.
pub struct CpuProgram<T: Real> {
    steps: Steps<T>,
    sums: Vec<Vec<SumTask>>,
    functions: Vec<(usize, Arc<dyn HostFunction>)>,
    constants: Aligned<T>,
    packed_version: u64,
    fixed: Aligned<T>,
    global: Aligned<T>,
    /// Memory of each thread.
    workers: Vec<Worker<T>>,
    inputs: Vec<*const T>,
    row_count: [T; 1],
    rows: usize,
    block: usize,
    host: Vec<Vec<f64>>,
}

// SAFETY: the pointers in `inputs` are only read during `run`, where the slices are borrowed.
unsafe impl<T: Real> Send for CpuProgram<T> {}

impl<T: Real> CpuProgram<T> {
    pub fn new(graph: &Graph, outputs: &[Value], threads: usize, level: Level) -> Result<Self> {
        let steps = Steps::<T>::new(Plan::new(graph, outputs)?, level);
        let plan = &steps.plan;
        let mut functions = Vec::new();
        for step in plan.phases.iter().flat_map(|phase| &phase.hosts) {
            if let Kernel::Host(f, _) = step.kernel {
                functions.push((f, graph.host_function(f)));
            }
        }
        let mut constants = Aligned::<T>::new(plan.constants.len());
        for (to, &c) in constants.slice_mut().iter_mut().zip(&plan.constants) {
            *to = T::from_f64(c);
        }
        let bytes_per_row = (plan.local_units * T::BYTES).max(1);
        let block = if steps.packed_bytes() < CACHE {
            (CACHE / 2 / bytes_per_row).clamp(8, BLOCK_ROWS[0])
        } else {
            (2 * CACHE / bytes_per_row).clamp(8, BLOCK_ROWS[1])
        };
        Ok(Self {
            sums: plan.phases.iter().map(|phase| split_sums::<T>(phase, threads)).collect(),
            fixed: Aligned::new(plan.fixed_len),
            inputs: vec![std::ptr::null(); plan.inputs.len()],
            workers: (0..threads).map(|_| steps.worker()).collect(),
            block,
            global: Aligned::new(0),
            packed_version: 0,
            row_count: [T::ZERO],
            rows: 0,
            host: vec![],
            functions,
            constants,
            steps,
        })
    }

    fn check(&self, parameters: &Parameters<T>, rows: usize, inputs: &[&[T]]) -> Result<()> {
        let plan = &self.steps.plan;
        if inputs.len() != plan.inputs.len() {
            return Err(Error::InputCount { expected: plan.inputs.len(), given: inputs.len() });
        }
        for ((name, cols), input) in plan.inputs.iter().zip(inputs) {
            if rows.checked_mul(*cols) != Some(input.len()) {
                let (name, cols, len) = (name.clone(), *cols, input.len());
                return Err(Error::InputLength { name, rows, cols, len });
            }
        }
        let given = parameters.values().len();
        if given < plan.parameters {
            return Err(Error::ParameterCount { expected: plan.parameters, given });
        }
        Ok(())
    }

    /// Makes room for `rows` rows and says where everything lies.
    fn prepare(&mut self, parameters: &Parameters<T>, rows: usize, inputs: &[&[T]]) -> Bases<T> {
        for (to, from) in self.inputs.iter_mut().zip(inputs) {
            *to = from.as_ptr();
        }
        self.rows = rows;
        self.row_count = [T::from_f64(rows as f64)];
        let block = self.block.min(rows);
        reserve(&mut self.global, self.steps.plan.global_units, rows);
        for worker in &mut self.workers {
            reserve(&mut worker.local, self.steps.plan.local_units, block);
        }
        Bases {
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
        }
    }

    fn run_phase(&mut self, p: usize, bases: Bases<T>, threads: usize) -> Result<()> {
        self.prologue(p, &bases);
        let (steps, workers) = (&self.steps, &mut self.workers[..threads]);
        let (phase, total) = (&steps.plan.phases[p], bases.rows);
        if !phase.rows.is_empty() && total > 0 {
            let mut blocks = total.div_ceil(self.block);
            if threads > 1 {
                blocks = blocks.next_multiple_of(threads).min(total);
            }
            share(workers, blocks, |block, worker| {
                let first = block * total / blocks;
                let rows = (block + 1) * total / blocks - first;
                let bases = bases.block(first, rows, worker.local.as_mut_ptr());
                for step in &phase.rows {
                    // SAFETY: `prepare` made the bases for this plan, and blocks are disjoint.
                    unsafe { steps.execute(step, &bases, worker) };
                }
            });
        }
        let tasks = &self.sums[p];
        share(workers, tasks.len(), |task, worker| {
            let SumTask { step, from, to } = tasks[task];
            // SAFETY: as above; tasks write disjoint columns.
            unsafe { steps.reduce(&phase.sums[step], &bases, from, to, worker.scratch.as_mut_ptr()) };
        });
        for s in 0..self.steps.plan.phases[p].hosts.len() {
            self.call_host(p, s, &bases)?;
        }
        Ok(())
    }

    /// What does not depend on rows, by this thread alone.
    fn prologue(&mut self, p: usize, bases: &Bases<T>) {
        for s in 0..self.steps.plan.phases[p].prologue.len() {
            if let Kernel::Pack(i) = self.steps.plan.phases[p].prologue[s].kernel {
                self.steps.pack(i, bases);
                continue;
            }
            let step = &self.steps.plan.phases[p].prologue[s];
            // SAFETY: `prepare` made the bases for this plan; no other thread is at work.
            unsafe { self.steps.execute(step, bases, &mut self.workers[0]) };
        }
    }

    /// Calls a host function with the whole batch, in f64.
    fn call_host(&mut self, p: usize, s: usize, bases: &Bases<T>) -> Result<()> {
        let step = &self.steps.plan.phases[p].hosts[s];
        let Kernel::Host(f, inputs) = &step.kernel else { unreachable!("a host step") };
        let function = &self.functions.iter().find(|(k, _)| k == f).expect("stored function").1;
        let rows = bases.rows;
        if self.host.len() <= inputs.len() {
            self.host.resize(inputs.len() + 1, vec![]);
        }
        let (output, buffers) = self.host.split_first_mut().expect("at least one buffer");
        for (buffer, &id) in buffers.iter_mut().zip(inputs) {
            let shape = self.steps.shape(id);
            // SAFETY: a batch value that lives across phases, all rows written.
            let values = unsafe {
                std::slice::from_raw_parts(bases.at(self.steps.place(id), shape), rows * shape.cols)
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
        // SAFETY: as above, and nothing else holds this value.
        let target = unsafe {
            let to = bases.at(self.steps.place(step.out), step.shape);
            std::slice::from_raw_parts_mut(to, rows * step.shape.cols)
        };
        for (to, from) in target.iter_mut().zip(output.iter()) {
            *to = T::from_f64(*from);
        }
        Ok(())
    }
}

fn split_sums<T: Real>(phase: &Phase, threads: usize) -> Vec<SumTask> {
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

impl<T: Real> Program<T> for CpuProgram<T> {
    fn run(&mut self, parameters: &Parameters<T>, rows: usize, inputs: &[&[T]]) -> Result<()> {
        self.check(parameters, rows, inputs)?;
        let bases = self.prepare(parameters, rows, inputs);
        let busy = self.steps.plan.work * rows as f64 >= PARALLEL_WORK;
        let threads = if busy { self.workers.len() } else { 1 };
        if self.packed_version != parameters.version() {
            self.steps.pack_parameters(&bases, threads);
            self.packed_version = parameters.version();
        }
        for p in 0..self.steps.plan.phases.len() {
            self.run_phase(p, bases, threads)?;
        }
        for &(id, k) in &self.steps.plan.copies {
            let (place, shape) = self.steps.plan.outputs[k];
            let len = if shape.rows.is_batch() { rows } else { 1 } * shape.group_len();
            // SAFETY: outputs have places of their own.
            unsafe {
                let from = bases.at(self.steps.place(id), shape);
                std::ptr::copy_nonoverlapping(from, bases.at(place, shape), len);
            }
        }
        Ok(())
    }

    fn output(&self, k: usize) -> &[T] {
        let (place, shape) = self.steps.plan.outputs[k];
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
            let (place, shape) = self.steps.plan.outputs[k];
            let Place::Fixed(offset) = place else { panic!("output {k} is a batch") };
            from = if k == first { offset } else { from };
            len += shape.group_len();
        }
        self.fixed.slice(from, len)
    }
}

/// Shares tasks out over threads, rayon's in the caller's pool: calls `f(task, worker)` for every task, on as many threads as there are workers, each of which has one to itself.
/// Whoever is free takes the next task; a thread that comes late finds none left.
fn share<W: Send>(workers: &mut [W], tasks: usize, f: impl Fn(usize, &mut W) + Sync) {
    let threads = workers.len().min(tasks);
    if threads < 2 {
        (0..tasks).for_each(|task| f(task, &mut workers[0]));
        return;
    }
    let next = AtomicUsize::new(0);
    workers[..threads].par_iter_mut().with_max_len(1).for_each(|worker| {
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                return;
            }
            f(task, worker);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        for (workers, tasks) in [(1, 0), (1, 5), (3, 0), (3, 1), (3, 2), (3, 7), (3, 100)] {
            let counts: Vec<_> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
            let mut made = vec![0; workers];
            share(&mut made, tasks, |task, made: &mut usize| {
                *made += 1;
                counts[task].fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            assert_eq!(made.iter().sum::<usize>(), tasks);
        }
    }

    #[test]
    fn tasks_may_share_out_tasks() {
        let inner = AtomicUsize::new(0);
        share(&mut [(); 2], 4, |_, ()| {
            share(&mut [(); 2], 4, |_, ()| {
                inner.fetch_add(1, Ordering::Relaxed);
            })
        });
        assert_eq!(inner.load(Ordering::Relaxed), 16);
    }
}
