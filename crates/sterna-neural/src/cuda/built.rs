//! A computation on the GPU for one number of rows: its arena, its kernels, and their order.

use std::marker::PhantomData;
use std::sync::Arc;

use super::Precision;
use super::emit::{self, Source};
use super::gpu::{Buffer, Gpu, Kernel, argument};
use super::schedule::{Schedule, Spot, Terms, Work};
use super::tiled;
use crate::graph::HostFunction;
use crate::graph::{Graph, Id, Value};
use crate::{Real, Result};

/// One entry of the launch order.
enum Launch {
    Kernel(Kernel),
    Sums { kernel: Kernel, tasks: Buffer, sums: Buffer, terms: Buffer, partial: Buffer, tickets: Buffer },
    Host { out: usize, cols: usize, inputs: Vec<(usize, usize)>, function: Arc<dyn HostFunction> },
    Copy { from: usize, to: usize, len: usize },
}

/// A compiled computation with its memory.
pub(super) struct Built<T> {
    gpu: Arc<Gpu>,
    schedule: Schedule,
    launches: Vec<Launch>,
    /// Transposed copies of weights, and tiles of them: kernels and their tables.
    copies: Vec<(Kernel, Vec<Buffer>)>,
    arena: Buffer,
    number: PhantomData<T>,
}

/// The tables of `kernels/sums.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Term {
    a: i64,
    b: i64,
    lda: i32,
    ldb: i32,
    rows: i32,
    wide: i32,
}
#[repr(C)]
#[derive(Clone, Copy)]
struct Sum {
    out: i64,
    m: i32,
    n: i32,
    first: i32,
    count: i32,
}
#[repr(C)]
#[derive(Clone, Copy)]
struct TileTask {
    sum: i32,
    m0: i32,
    n0: i32,
    part: i32,
    parts: i32,
    slot: i32,
}

/// Blocks that fill a GPU: where sums have fewer tiles, their rows are shared out.
const BLOCKS: usize = 400;
/// Rows that are worth a part.
const PART_ROWS: usize = 256;
#[repr(C)]
#[derive(Clone, Copy)]
struct Turn {
    from: i64,
    to: i64,
    rows: i32,
    cols: i32,
    r0: i32,
    c0: i32,
}

/// All sources of a computation, for whoever only wants to compile them.
pub(super) fn sources<T: Real>(schedule: &Schedule, precision: Precision) -> Vec<String> {
    let own = (0..schedule.works.len()).filter_map(|w| emit::source::<T>(schedule, w, precision));
    let tables = emit::tables::<T>(precision, is_long(schedule));
    let tiles =
        (!schedule.tilings.is_empty()).then(|| tiled::weights_source::<T>(precision, is_long(schedule)));
    own.map(|s| s.text).chain([tables]).chain(tiles).collect()
}

fn is_long(schedule: &Schedule) -> bool {
    schedule.arena > i32::MAX as usize / 2
}

impl<T: Real> Built<T> {
    pub fn new(
        gpu: &Arc<Gpu>,
        graph: &Graph,
        outputs: &[Value],
        rows: usize,
        parameters: usize,
        precision: Precision,
    ) -> Result<Self> {
        let schedule = Schedule::new::<T>(graph, outputs, rows, parameters, gpu.arch())?;
        let own: Vec<Option<Source>> =
            (0..schedule.works.len()).map(|w| emit::source::<T>(&schedule, w, precision)).collect();
        let tables = emit::tables::<T>(precision, is_long(&schedule));
        let mut texts: Vec<&str> = own.iter().flatten().map(|s| &s.text[..]).collect();
        texts.push(&tables);
        let tiles = tiled::weights_source::<T>(precision, is_long(&schedule));
        if !schedule.tilings.is_empty() {
            texts.push(&tiles);
        }
        gpu.compile(&texts)?;
        let arena = gpu.allocate(schedule.arena * T::BYTES)?;
        for (at, values) in &schedule.constants {
            let values: Vec<T> = values.iter().map(|&x| T::from_f64(x)).collect();
            arena.write(*at, &values)?;
        }
        let mut built =
            Self { gpu: gpu.clone(), schedule, launches: vec![], copies: vec![], arena, number: PhantomData };
        for (w, source) in own.into_iter().enumerate() {
            let launch = match source {
                Some(source) => {
                    let module = gpu.load(&source.text)?;
                    Launch::Kernel(module.kernel(
                        &source.name,
                        source.blocks,
                        source.threads,
                        source.shared,
                    )?)
                }
                None => built.other(w, graph, &tables)?,
            };
            built.launches.push(launch);
        }
        built.copies = built.turns(&tables)?.into_iter().chain(built.tilings(precision)?).collect();
        Ok(built)
    }

    fn memory(&self, id: Id) -> usize {
        match self.schedule.spots[&id] {
            Spot::Memory(at) => at,
            other => unreachable!("{other:?} where memory is needed"),
        }
    }

    /// A launch without generated code.
    fn other(&self, w: usize, graph: &Graph, tables: &str) -> Result<Launch> {
        let schedule = &self.schedule;
        Ok(match &schedule.works[w] {
            Work::Sums(sums) => self.sums(sums, tables)?,
            Work::Host(out, f, inputs) => Launch::Host {
                out: self.memory(*out),
                cols: schedule.shape(*out).cols,
                inputs: inputs
                    .iter()
                    .map(|&id| (self.memory(schedule.view(id).root), schedule.shape(id).cols))
                    .collect(),
                function: graph.host_function(*f),
            },
            Work::Copy(id, k) => {
                let (to, shape) = schedule.outputs[*k];
                let rows = if shape.rows.is_batch() { schedule.rows } else { 1 };
                let len = rows * shape.group_len();
                match schedule.literal(*id) {
                    // Written once, here: nothing changes it.
                    Some(x) => {
                        self.arena.write(to, &vec![T::from_f64(x); len])?;
                        Launch::Copy { from: to, to, len: 0 }
                    }
                    None => Launch::Copy { from: self.memory(schedule.view(*id).root), to, len },
                }
            }
            Work::Rows(_) | Work::Fixed(_) | Work::Product(..) => unreachable!("generated"),
        })
    }

    fn sums(&self, all: &[(Id, Terms)], tables: &str) -> Result<Launch> {
        let schedule = &self.schedule;
        let (mut tasks, mut sums, mut terms) = (vec![], vec![], vec![]);
        let numbers = 16 / T::BYTES;
        for (out, parts) in all {
            let shape = schedule.shape(*out);
            let (m, n) = (shape.rows.group(), shape.cols);
            let product = parts[0].0.is_some();
            let sum = sums.len() as i32;
            sums.push(Sum {
                out: self.memory(*out) as i64,
                m: m as i32,
                n: n as i32,
                first: terms.len() as i32,
                count: parts.len() as i32,
            });
            for (a, b) in parts {
                let right = schedule.view(*b);
                let place = |view: super::schedule::View| self.memory(view.root) + view.start;
                let wide = |view: super::schedule::View| {
                    place(view).is_multiple_of(numbers) && view.stride.is_multiple_of(numbers)
                };
                let left = a.map(|a| schedule.view(a));
                terms.push(Term {
                    a: left.map_or(-1, |v| place(v) as i64),
                    b: place(right) as i64,
                    lda: left.map_or(0, |v| v.stride as i32),
                    ldb: right.stride as i32,
                    rows: (schedule.rows * right.shape.rows.group()) as i32,
                    wide: i32::from(left.is_some_and(wide)) + 2 * i32::from(wide(right)),
                });
            }
            let (tall, broad) = if product { (64, 64) } else { (m.max(1), 8) };
            for m0 in (0..m).step_by(tall) {
                for n0 in (0..n).step_by(broad) {
                    let (m0, n0) = (m0 as i32, n0 as i32);
                    tasks.push(TileTask { sum, m0, n0, part: 0, parts: 1, slot: 0 });
                }
            }
        }
        let is_product = |t: &TileTask| terms[sums[t.sum as usize].first as usize].a >= 0;
        let tiles = tasks.iter().filter(|t| is_product(t)).count();
        let (mut split, mut slots) = (Vec::new(), 0);
        for task in &tasks {
            let s = &sums[task.sum as usize];
            let own = &terms[s.first as usize..(s.first + s.count) as usize];
            let rows: usize = own.iter().map(|t: &Term| t.rows as usize).sum();
            let most = (rows / own.len() / PART_ROWS).min(BLOCKS / tiles.max(1)).clamp(1, 8);
            let parts = if is_product(task) { most as i32 } else { 1 };
            for part in 0..parts {
                split.push(TileTask { part, parts, slot: slots, ..*task });
            }
            slots += if parts > 1 { parts } else { 0 };
        }
        let mut tasks = split;
        // The long ones first, so that short ones fill the gaps.
        tasks.sort_by_key(|t: &TileTask| (!is_product(t), -sums[t.sum as usize].count));
        let kernel = self.gpu.load(tables)?.kernel(
            "sums",
            [tasks.len(), 1],
            emit::TILE_THREADS,
            emit::tile_bytes::<T>(64),
        )?;
        Ok(Launch::Sums {
            kernel,
            tasks: upload(&self.gpu, &tasks)?,
            sums: upload(&self.gpu, &sums)?,
            terms: upload(&self.gpu, &terms)?,
            partial: self.gpu.allocate(slots as usize * 4096 * T::BYTES)?,
            tickets: self.gpu.allocate(slots as usize * 4)?,
        })
    }

    fn turns(&self, tables: &str) -> Result<Option<(Kernel, Vec<Buffer>)>> {
        let mut all = Vec::new();
        for turned in &self.schedule.turned {
            let shape = self.schedule.shape(turned.source);
            let (rows, cols) = (shape.rows.group(), shape.cols);
            for r0 in (0..rows).step_by(32) {
                for c0 in (0..cols).step_by(32) {
                    all.push(Turn {
                        from: self.memory(turned.source) as i64,
                        to: turned.to as i64,
                        rows: rows as i32,
                        cols: cols as i32,
                        r0: r0 as i32,
                        c0: c0 as i32,
                    });
                }
            }
        }
        if all.is_empty() {
            return Ok(None);
        }
        let kernel = self.gpu.load(tables)?.kernel("turn", [all.len(), 1], 256, 0)?;
        Ok(Some((kernel, vec![upload(&self.gpu, &all)?])))
    }

    fn tilings(&self, precision: Precision) -> Result<Option<(Kernel, Vec<Buffer>)>> {
        let (matrices, tiles) = tiled::tables(&self.schedule);
        if tiles.is_empty() {
            return Ok(None);
        }
        let source = tiled::weights_source::<T>(precision, is_long(&self.schedule));
        let kernel = self.gpu.load(&source)?.kernel("tile_weights", [tiles.len(), 1], 256, 0)?;
        Ok(Some((kernel, vec![upload(&self.gpu, &matrices)?, upload(&self.gpu, &tiles)?])))
    }

    /// Whether the host takes part, so that the whole cannot be recorded.
    pub fn calls_host(&self) -> bool {
        self.launches.iter().any(|l| matches!(l, Launch::Host { .. }))
    }

    /// Rows that it was made for.
    pub fn rows(&self) -> usize {
        self.schedule.rows
    }

    /// Everything it computes with.
    pub fn arena(&self) -> &Buffer {
        &self.arena
    }

    /// Where input `k` lies in the arena.
    pub fn input(&self, k: usize) -> usize {
        self.schedule.inputs[k]
    }

    /// Where output `k` lies in the arena, and its shape in numbers.
    pub fn output(&self, k: usize) -> (usize, usize) {
        let (at, shape) = self.schedule.outputs[k];
        (at, if shape.rows.is_batch() { self.schedule.rows } else { 1 } * shape.group_len())
    }

    /// Parameters read, from the arena's beginning on.
    pub fn parameters(&self) -> usize {
        self.schedule.parameters
    }

    /// Queues what depends on parameters alone.
    pub fn queue_weights(&self) -> Result<()> {
        self.gpu.enter()?;
        for (kernel, tables) in &self.copies {
            let mut pointers = vec![self.arena.pointer()];
            pointers.extend(tables.iter().map(Buffer::pointer));
            let mut arguments: Vec<_> = pointers.iter_mut().map(argument).collect();
            self.gpu.launch(kernel, &mut arguments)?;
        }
        Ok(())
    }

    /// Queues the whole computation; host functions are waited for.
    pub fn queue(&self) -> Result<()> {
        self.gpu.enter()?;
        let mut arena = self.arena.pointer();
        for launch in &self.launches {
            match launch {
                Launch::Kernel(kernel) => self.gpu.launch(kernel, &mut [argument(&mut arena)])?,
                Launch::Sums { kernel, tasks, sums, terms, partial, tickets } => {
                    let [mut tasks, mut sums, mut terms, mut partial, mut tickets] =
                        [tasks, sums, terms, partial, tickets].map(Buffer::pointer);
                    self.gpu.launch(
                        kernel,
                        &mut [
                            argument(&mut arena),
                            argument(&mut tasks),
                            argument(&mut sums),
                            argument(&mut terms),
                            argument(&mut partial),
                            argument(&mut tickets),
                        ],
                    )?;
                }
                Launch::Copy { from, to, len } => {
                    let bytes = T::BYTES;
                    self.gpu.copy(arena + (from * bytes) as u64, arena + (to * bytes) as u64, len * bytes)?;
                }
                Launch::Host { out, cols, inputs, function } => {
                    self.call_host(*out, *cols, inputs, &**function)?;
                }
            }
        }
        Ok(())
    }

    /// One round trip: the whole batch to the host, the answer back.
    fn call_host(
        &self,
        out: usize,
        cols: usize,
        inputs: &[(usize, usize)],
        function: &dyn HostFunction,
    ) -> Result<()> {
        let rows = self.rows();
        let mut values = Vec::new();
        for &(at, cols) in inputs {
            let mut from = vec![T::ZERO; rows * cols];
            self.arena.read(at, &mut from)?;
            values.push(from.iter().map(|x| x.to_f64()).collect::<Vec<f64>>());
        }
        let slices: Vec<&[f64]> = values.iter().map(|v| &v[..]).collect();
        let mut answer = vec![0.0; rows * cols];
        function.call(rows, &slices, &mut answer)?;
        let answer: Vec<T> = answer.iter().map(|&x| T::from_f64(x)).collect();
        self.arena.write(out, &answer)
    }
}

/// A table in the GPU's memory.
pub(super) fn upload<T: Copy>(gpu: &Arc<Gpu>, values: &[T]) -> Result<Buffer> {
    let buffer = gpu.allocate(size_of_val(values))?;
    buffer.write(0, values)?;
    Ok(buffer)
}
