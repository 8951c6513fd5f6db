//! CUDA C of a kernel that takes a few rows of the batch through many steps.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use sterna::lanes::one;

use super::emit::{elementwise, index, number};
use super::schedule::{LANES, Product, Schedule, Spot, Task, View};
use crate::graph::Id;
use crate::op::{Op, Rows, Shape};
use crate::plan::elementwise_inputs;

const ROW_PRODUCT: &str = include_str!("kernels/row_product.cu");

/// A kernel that does all `tasks`; `batch` tells blocks of rows from a single block. Values of the rows of a block, or of a
/// warp, take `room` numbers of shared memory.
pub(super) fn row_kernel(
    schedule: &Schedule,
    name: &str,
    tasks: &[Task],
    threads: usize,
    room: usize,
    batch: bool,
) -> String {
    frame(name, room, &Body::new(schedule, batch, threads).write(tasks))
}

fn frame(name: &str, room: usize, body: &Body) -> String {
    let (threads, rows) = (body.threads, body.schedule.block_rows);
    let sharing = body.sharing();
    let (number, shared, end) = match body.by_lanes() {
        true => (
            format!("((I)blockIdx.x * {} + threadIdx.x / {sharing})", threads / sharing),
            format!("threadIdx.x / {sharing} * {room}"),
            format!("if (row0 >= {}) return;\n", body.schedule.padded_rows()),
        ),
        // A block keeps room for parts of sums.
        false => ("(I)blockIdx.x".into(), (rows * threads).to_string(), String::new()),
    };
    format!(
        "#define THREADS {sharing}\n{ROW_PRODUCT}{}\n\
         extern \"C\" __global__ void __launch_bounds__({threads}, 1024 / {threads}) {name}(T *A) {{\n\
         wait_for_kernel_before();\n\
         extern __shared__ __align__(16) unsigned char shared_bytes[];\n\
         T *const scratch = (T *)shared_bytes;\nT *const S = scratch + {shared};\n\
         const int t = threadIdx.x % {sharing}, lane = t & 31, warp = t >> 5;\n\
         const I row0 = {number} * {rows};\n(void)lane; (void)warp; (void)row0; (void)S; (void)scratch;\n{end}{}{}}}\n",
        body.tables, body.pointers, body.text
    )
}

/// The text of a kernel that takes a few rows through its steps.
struct Body<'s> {
    schedule: &'s Schedule,
    text: String,
    /// Index tables, before the kernel.
    tables: String,
    /// Where values begin, at the kernel's top.
    pointers: String,
    named: BTreeSet<u32>,
    batch: bool,
    threads: usize,
    /// Values and shared memory touched since the last barrier.
    written: HashSet<Id>,
    touched: Vec<(usize, usize)>,
    scratch_used: bool,
}

impl<'s> Body<'s> {
    fn new(schedule: &'s Schedule, batch: bool, threads: usize) -> Self {
        Self {
            schedule,
            text: String::new(),
            tables: String::new(),
            pointers: String::new(),
            named: BTreeSet::new(),
            batch,
            threads,
            written: HashSet::new(),
            touched: Vec::new(),
            scratch_used: false,
        }
    }

    /// Whether a few neighbouring threads have a row of their own.
    fn by_lanes(&self) -> bool {
        self.batch && self.schedule.by_lanes
    }

    /// Threads that take rows together.
    fn sharing(&self) -> usize {
        if self.by_lanes() { LANES } else { self.threads }
    }

    fn write(mut self, tasks: &[Task]) -> Self {
        for task in tasks {
            self.barrier(task);
            match task {
                Task::Group(members) => self.group(members),
                Task::Product(product) => self.product(product),
                Task::Single(id) => self.single(*id),
                Task::Reduce(out, terms) => self.reduce(*out, terms),
            }
        }
        self
    }

    /// Shared memory of a value.
    fn range(&self, id: Id) -> Option<(usize, usize)> {
        match self.schedule.spots.get(&id) {
            Some(Spot::Shared(offset)) => Some((*offset, offset + self.schedule.shape(id).group_len())),
            _ => None,
        }
    }

    /// Waits for all threads of the block, where the step reads what others wrote or overwrites what they read.
    fn barrier(&mut self, task: &Task) {
        let own = match task {
            Task::Group(members) => members.iter().copied().collect(),
            _ => HashSet::new(),
        };
        let reads: Vec<Id> = self.schedule.reads(task).into_iter().filter(|id| !own.contains(id)).collect();
        let writes = Schedule::writes(task);
        let overlaps = |range: Option<(usize, usize)>| {
            range.is_some_and(|(from, to)| self.touched.iter().any(|&(a, b)| a < to && from < b))
        };
        let waits = reads.iter().any(|id| self.written.contains(id))
            || writes.iter().any(|&id| overlaps(self.range(id)))
            || (matches!(task, Task::Product(_)) && self.scratch_used);
        if waits {
            self.text.push_str(if self.by_lanes() { "__syncwarp();\n" } else { "__syncthreads();\n" });
            self.written.clear();
            self.touched.clear();
            self.scratch_used = false;
        }
        self.scratch_used |= matches!(task, Task::Product(_));
        let ranges: Vec<_> = reads.iter().chain(&writes).filter_map(|&id| self.range(id)).collect();
        self.touched.extend(ranges);
        self.written.extend(writes);
    }

    /// The name of the pointer to this block's part of a value.
    fn pointer(&mut self, root: Id) -> String {
        let name = format!("p{}", root.index());
        if self.named.insert(root.index() as u32) {
            let shape = self.schedule.shape(root);
            let line = match self.schedule.spots[&root] {
                Spot::Memory(offset) if shape.rows.is_batch() => {
                    format!("T *const {name} = A + (I){offset} + row0 * {};\n", shape.group_len())
                }
                Spot::Memory(offset) => format!("T *const {name} = A + (I){offset};\n"),
                Spot::Shared(offset) => {
                    format!("T *const {name} = S + {};\n", offset * self.schedule.block_rows)
                }
                other => unreachable!("a pointer to {other:?}"),
            };
            self.pointers.push_str(&line);
        }
        name
    }

    /// Rows of a value in one block.
    fn rows(&self, shape: Shape) -> usize {
        self.schedule.rows_in_block(shape.rows)
    }

    /// A loop over the numbers of a value: `i`, and row `r` and column `c` of it.
    fn each(&mut self, shape: Shape, inner: &str) {
        let (count, cols) = (self.rows(shape) * shape.cols, shape.cols);
        let (times, rest) = (count.div_ceil(self.sharing()), count % self.sharing());
        // Few turns are written out, so that none waits for the one before.
        let (turns, inside) = match self.by_lanes() {
            true => (
                format!(
                    "#pragma unroll\nfor (int turn = 0; turn < {times}; turn++) {{\nconst int i = t + turn * THREADS;\n"
                ),
                if rest > 0 { format!("if (i >= {count}) break;\n") } else { String::new() },
            ),
            false => (format!("for (int i = t; i < {count}; i += THREADS) {{\n"), String::new()),
        };
        let _ = write!(
            self.text,
            "{turns}{inside}const int r = i / {cols}, c = i % {cols}; (void)r; (void)c;\n{inner}}}\n"
        );
    }

    fn group(&mut self, members: &[Id]) {
        let schedule = self.schedule;
        let shape = schedule.shape(members[0]);
        let mut roots = Vec::new();
        for &id in members {
            for input in elementwise_inputs(&schedule.nodes, id) {
                roots.push(schedule.view(input).root);
            }
            roots.push(id);
        }
        let mut names: HashMap<Id, String> = HashMap::new();
        for root in roots {
            if matches!(schedule.spots[&root], Spot::Memory(_) | Spot::Shared(_)) {
                let name = self.pointer(root);
                names.insert(root, name);
            }
        }
        let load = |view: View, shape: Shape| format!("{}[{}]", names[&view.root], index(view, shape));
        let store = |id: Id| match schedule.spots[&id] {
            Spot::Memory(_) | Spot::Shared(_) => Some(format!("{}[i]", names[&id])),
            _ => None,
        };
        let inner = elementwise(schedule, members, shape, HashSet::new(), load, store);
        self.each(shape, &inner);
    }

    fn product(&mut self, p: &Product) {
        let schedule = self.schedule;
        let (a, shape) = (schedule.view(p.a), schedule.shape(p.out));
        let b = schedule.view(p.b);
        let (x, out) = (self.pointer(a.root), self.pointer(p.out));
        let turned = schedule.turned_at(p.b).filter(|_| self.batch && p.transposed);
        let (w, sk, sn) = match turned {
            Some(at) => (format!("A + (I){at}"), p.n, 1),
            None if p.transposed => (format!("{} + {}", self.pointer(b.root), b.start), 1, b.stride),
            None => (format!("{} + {}", self.pointer(b.root), b.start), b.stride, 1),
        };
        let (init, li) = match p.init {
            None => ("(const T *)0".into(), 0),
            Some(id) => {
                let view = schedule.view(id);
                let repeated = view.shape.rows == Rows::Fixed(1);
                (
                    format!("{} + {}", self.pointer(view.root), view.start),
                    if repeated { 0 } else { view.stride },
                )
            }
        };
        let rows = self.rows(shape);
        let at_once = if rows.is_multiple_of(8) {
            8
        } else {
            [4, 2, 1].into_iter().find(|n| rows.is_multiple_of(*n)).unwrap_or(1)
        };
        let at_once = at_once.min(schedule.block_rows);
        let wide = 4;
        let vector =
            p.k.is_multiple_of(wide) && a.stride.is_multiple_of(wide) && a.start.is_multiple_of(wide);
        let (k, n, lx, start) = (p.k, p.n, a.stride, a.start);
        let _ = writeln!(
            self.text,
            "row_product<{at_once}, {k}, {n}, {sk}, {sn}, {vector}>({rows}, {x} + {start}, {lx}, {w}, {init}, {li}, {out}, {n}, scratch);"
        );
    }

    fn single(&mut self, id: Id) {
        let schedule = self.schedule;
        let shape = schedule.shape(id);
        let out = self.pointer(id);
        let op = schedule.op(id).clone();
        match &op {
            Op::SumCols(x) | Op::LogSumExp(x) => {
                let view = schedule.view(*x);
                let from = self.operand(*x, view);
                let f = if matches!(op, Op::SumCols(_)) { "row_sum" } else { "row_log_sum_exp" };
                let (rows, cols) = (self.rows(shape), view.shape.cols);
                let (lanes, warps) = (self.sharing().min(32), self.sharing().div_ceil(32));
                let of = match from {
                    Operand::Number(x) => {
                        let sum = if f == "row_sum" { x * cols as f64 } else { x + one::ln(cols as f64) };
                        number(sum)
                    }
                    Operand::Pointer(p) => {
                        format!("{f}<{lanes}>({p} + r * {} + {}, {cols})", view.stride, view.start)
                    }
                };
                let _ = writeln!(
                    self.text,
                    "for (int r = warp; r < {rows}; r += {warps}) {{ const T s = {of}; if (lane == 0) {out}[r] = s; }}"
                );
            }
            Op::Slice(x, start) => {
                let view = schedule.view(*x);
                let at = self.element(*x, view, &format!("{start} + c"));
                self.each(shape, &format!("{out}[i] = {at};\n"));
            }
            Op::Pad(x, start) => {
                let view = schedule.view(*x);
                let at = self.element(*x, view, &format!("c - {start}"));
                let end = start + view.shape.cols;
                self.each(shape, &format!("{out}[i] = c >= {start} && c < {end} ? {at} : T(0);\n"));
            }
            Op::Concat(parts) => {
                let mut start = 0;
                for &part in parts {
                    let view = schedule.view(part);
                    let at = self.element(part, view, "c");
                    let width = shape.cols;
                    self.each(view.shape, &format!("{out}[r * {width} + {start} + c] = {at};\n"));
                    start += view.shape.cols;
                }
            }
            Op::Gather(x, places) => {
                let view = schedule.view(*x);
                let (from, to) = (view.shape.rows.group(), shape.rows.group());
                let table = self.table(id, places);
                let row = format!("(r / {to} * {from} + {table}[r % {to}])");
                let at = self.element_at(*x, view, &row, "c");
                self.each(shape, &format!("{out}[i] = {at};\n"));
            }
            Op::Scatter(x, places) => {
                let view = schedule.view(*x);
                let (from, to) = (view.shape.rows.group(), shape.rows.group());
                let table = self.table(id, places);
                let row = format!("(r / {to} * {from} + j)");
                let at = self.element_at(*x, view, &row, "c");
                let inner = format!(
                    "T sum = T(0);\nfor (int j = 0; j < {from}; j++) if ({table}[j] == r % {to}) sum += {at};\n{out}[i] = sum;\n"
                );
                self.each(shape, &inner);
            }
            other => unreachable!("{other:?} as a single step"),
        }
    }

    fn reduce(&mut self, out: Id, terms: &[(Option<Id>, Id)]) {
        let (schedule, shape) = (self.schedule, self.schedule.shape(out));
        let to = self.pointer(out);
        let mut inner = String::from("T sum = T(0);\n");
        for (a, b) in terms {
            let right = schedule.view(*b);
            let rows = right.shape.rows.group();
            let second = self.element_at(*b, right, "k", "c");
            let first = match a {
                Some(a) => format!("{} * ", self.element_at(*a, schedule.view(*a), "k", "r")),
                None => String::new(),
            };
            let _ = writeln!(inner, "for (int k = 0; k < {rows}; k++) sum += {first}{second};");
        }
        let _ = writeln!(inner, "{to}[i] = sum;");
        self.each(shape, &inner);
    }

    fn operand(&mut self, id: Id, view: View) -> Operand {
        match self.schedule.literal(id) {
            Some(x) => Operand::Number(x),
            None => Operand::Pointer(self.pointer(view.root)),
        }
    }

    /// The number in row `r` and a given column of a view.
    fn element(&mut self, id: Id, view: View, column: &str) -> String {
        self.element_at(id, view, "r", column)
    }

    fn element_at(&mut self, id: Id, view: View, row: &str, column: &str) -> String {
        match self.operand(id, view) {
            Operand::Number(x) => number(x),
            Operand::Pointer(p) => format!("{p}[{row} * {} + {} + {column}]", view.stride, view.start),
        }
    }

    fn table(&mut self, id: Id, places: &[usize]) -> String {
        let name = format!("places{}", id.index());
        let list: Vec<String> = places.iter().map(usize::to_string).collect();
        let _ = writeln!(self.tables, "static __device__ const int {name}[] = {{{}}};", list.join(", "));
        name
    }
}

enum Operand {
    Number(f64),
    Pointer(String),
}
