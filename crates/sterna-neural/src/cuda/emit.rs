//! CUDA C for the launches of a schedule.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;

use super::Precision;
use super::compiler::HEADER;
use super::schedule::{Product, Schedule, Spot, THREADS, Task, View, Work};
use crate::Real;
use crate::graph::Id;
use crate::op::{Binary, Op, Rows, Shape, Unary};
use crate::plan::elementwise_inputs;

const ROW_PRODUCT: &str = include_str!("kernels/row_product.cu");
const TILES: &str = include_str!("kernels/tiles.cu");
const SUMS: &str = include_str!("kernels/sums.cu");

/// Threads of a tile's block.
pub(super) const TILE_THREADS: usize = 512;

/// A kernel's source and how it is launched.
pub(super) struct Source {
    pub name: String,
    pub text: String,
    pub blocks: [usize; 2],
    pub threads: usize,
    pub shared: usize,
}

/// What all sources of a number type begin with.
pub(super) fn preamble<T: Real>(precision: Precision, long: bool) -> String {
    let number = if T::BYTES == 4 { "float" } else { "double" };
    let terms = if precision == Precision::Tf32 { 1 } else { 3 };
    let index = if long { "long long" } else { "int" };
    format!("typedef {number} T;\ntypedef {index} I;\n#define TERMS {terms}\n{HEADER}")
}

/// The kernels that need no generated code: sums over the batch and transposed copies.
pub(super) fn tables<T: Real>(precision: Precision, long: bool) -> String {
    format!("{}{TILES}{SUMS}", preamble::<T>(precision, long))
}

/// Bytes of shared memory of a tile of `rows` rows.
pub(super) fn tile_bytes<T: Real>(rows: usize) -> usize {
    if T::BYTES == 8 {
        return 16 * (rows + 64 + 2) * 8;
    }
    let side = |n: usize| (n * 68).max(64 * (n + 8));
    3 * (side(rows) + side(64)) * 4
}

/// The source of work `w`, if it is a kernel with code of its own.
pub(super) fn source<T: Real>(schedule: &Schedule, w: usize, precision: Precision) -> Option<Source> {
    let long = schedule.arena > i32::MAX as usize / 2;
    let name = String::from("work");
    match &schedule.works[w] {
        Work::Rows(tasks) => {
            let body = Body::new(schedule, true).write(tasks);
            let scratch = schedule.block_rows * THREADS;
            let shared = schedule.shared.get(&w).copied().unwrap_or(0) * schedule.block_rows;
            let text =
                format!("{}{ROW_PRODUCT}{}", preamble::<T>(precision, long), frame(&name, &body, schedule));
            let blocks = [schedule.rows.div_ceil(schedule.block_rows), 1];
            let shared = (scratch + shared) * T::BYTES;
            Some(Source { name, text, blocks, threads: THREADS, shared })
        }
        Work::Fixed(tasks) => {
            let body = Body::new(schedule, false).write(tasks);
            let text =
                format!("{}{ROW_PRODUCT}{}", preamble::<T>(precision, long), frame(&name, &body, schedule));
            let shared = schedule.block_rows * THREADS * T::BYTES;
            Some(Source { name, text, blocks: [1, 1], threads: THREADS, shared })
        }
        Work::Product(product, group) => {
            let rows = schedule.rows * schedule.shape(product.out).rows.group();
            // Small tiles where large ones would leave most of the GPU idle.
            let tile = if rows.div_ceil(64) * product.n.div_ceil(64) < 100 { 32 } else { 64 };
            let text = format!(
                "{}{TILES}{}",
                preamble::<T>(precision, long),
                large_product(schedule, &name, product, group, tile, T::BYTES)
            );
            let blocks = [product.n.div_ceil(64), rows.div_ceil(tile)];
            Some(Source { name, text, blocks, threads: TILE_THREADS, shared: tile_bytes::<T>(tile) })
        }
        Work::Sums(_) | Work::Host(..) | Work::Copy(..) => None,
    }
}

fn frame(name: &str, body: &Body, schedule: &Schedule) -> String {
    let scratch = schedule.block_rows * THREADS;
    format!(
        "{}\nextern \"C\" __global__ void __launch_bounds__({THREADS}, 2) {name}(T *A) {{\n\
         extern __shared__ __align__(16) unsigned char shared_bytes[];\n\
         T *const scratch = (T *)shared_bytes;\nT *const S = scratch + {scratch};\n\
         const int t = threadIdx.x, lane = t & 31, warp = t >> 5;\n\
         const I row0 = (I)blockIdx.x * {};\n(void)lane; (void)warp; (void)row0; (void)S; (void)scratch;\n{}{}}}\n",
        body.tables, schedule.block_rows, body.pointers, body.text
    )
}

/// A number as CUDA C.
fn number(x: f64) -> String {
    match x {
        x if x.is_nan() => "T(0) / T(0)".into(),
        x if x == f64::INFINITY => "(T(1) / T(0))".into(),
        x if x == f64::NEG_INFINITY => "(-T(1) / T(0))".into(),
        x => format!("T({x:e})"),
    }
}

fn unary(f: Unary) -> &'static str {
    match f {
        Unary::Exp => "f_exp",
        Unary::Log => "f_log",
        Unary::Tanh => "f_tanh",
        Unary::Sigmoid => "f_sigmoid",
        Unary::Softplus => "f_softplus",
        Unary::Silu => "f_silu",
        Unary::Sqrt => "f_sqrt",
        Unary::Recip => "f_recip",
        Unary::Sin => "f_sin",
        Unary::Cos => "f_cos",
        Unary::Abs => "f_abs",
        Unary::Sign => "f_sign",
        Unary::Step => "f_step",
    }
}

/// Code of elementwise values at one place (row `r`, column `c`); `known` are those that are already variables.
fn elementwise(
    schedule: &Schedule,
    members: &[Id],
    shape: Shape,
    mut known: HashSet<Id>,
    mut load: impl FnMut(View, Shape) -> String,
    mut store: impl FnMut(Id) -> Option<String>,
) -> String {
    let mut text = String::new();
    let mut loaded: HashSet<String> = HashSet::new();
    for &id in members {
        let mut operands = Vec::new();
        for input in elementwise_inputs(&schedule.nodes, id) {
            if let Some(x) = schedule.literal(input) {
                operands.push(number(x));
                continue;
            }
            let plain = schedule.view(input);
            let same = plain.root == input || schedule.shape(plain.root) == plain.shape && plain.start == 0;
            if same && known.contains(&plain.root) {
                operands.push(format!("v{}", plain.root.index()));
                continue;
            }
            // A loaded operand is a variable too; its name tells views of one value apart.
            let name = format!("o{}_{}_{}", plain.root.index(), plain.start, input.index());
            if loaded.insert(name.clone()) {
                let _ = writeln!(text, "const T {name} = {};", load(plain, shape));
            }
            operands.push(name);
        }
        let value = match schedule.op(id) {
            Op::Unary(f, _) => format!("{}({})", unary(*f), operands[0]),
            Op::Affine(_, scale, offset) => {
                let (scale, offset) = (f64::from(*scale), f64::from(*offset));
                match (scale, offset) {
                    (s, 0.0) => format!("{} * {}", operands[0], number(s)),
                    (1.0, o) => format!("{} + {}", operands[0], number(o)),
                    (s, o) => format!("f_fma({}, {}, {})", operands[0], number(s), number(o)),
                }
            }
            Op::Binary(f, ..) => {
                let sign = match f {
                    Binary::Add => '+',
                    Binary::Sub => '-',
                    Binary::Mul => '*',
                };
                format!("{} {sign} {}", operands[0], operands[1])
            }
            Op::Broadcast(_) => operands[0].clone(),
            other => unreachable!("{other:?} in an elementwise group"),
        };
        let _ = writeln!(text, "const T v{} = {value};", id.index());
        known.insert(id);
        if let Some(at) = store(id) {
            let _ = writeln!(text, "{at} = v{};", id.index());
        }
    }
    text
}

/// Index of row `r`, column `c` of a view within a value of `shape`, single rows and columns repeated.
fn index(view: View, shape: Shape) -> String {
    let row = if view.shape.rows == shape.rows && shape.rows != Rows::Fixed(1) {
        format!("r * {}", view.stride)
    } else {
        "0".into()
    };
    let col = if view.shape.cols == shape.cols && shape.cols > 1 { " + c" } else { "" };
    format!("{row} + {}{col}", view.start)
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
    /// Values and shared memory touched since the last barrier.
    written: HashSet<Id>,
    touched: Vec<(usize, usize)>,
    scratch_used: bool,
}

impl<'s> Body<'s> {
    fn new(schedule: &'s Schedule, batch: bool) -> Self {
        Self {
            schedule,
            text: String::new(),
            tables: String::new(),
            pointers: String::new(),
            named: BTreeSet::new(),
            batch,
            written: HashSet::new(),
            touched: Vec::new(),
            scratch_used: false,
        }
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
            self.text.push_str("__syncthreads();\n");
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
        let _ = write!(
            self.text,
            "for (int i = t; i < {count}; i += {THREADS}) {{\nconst int r = i / {cols}, c = i % {cols}; (void)r; (void)c;\n{inner}}}\n"
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
            [4, 2, 1].into_iter().find(|n| rows % n == 0).unwrap_or(1)
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
                let of = match from {
                    Operand::Number(x) => {
                        let sum = if f == "row_sum" { x * cols as f64 } else { x + (cols as f64).ln() };
                        number(sum)
                    }
                    Operand::Pointer(p) => {
                        format!("{f}({p} + r * {} + {}, {cols})", view.stride, view.start)
                    }
                };
                let warps = THREADS / 32;
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

/// A kernel for a large product; elementwise values that follow are computed as its numbers come out.
fn large_product(
    schedule: &Schedule,
    name: &str,
    p: &Product,
    group: &[Id],
    tile: usize,
    bytes: usize,
) -> String {
    let shape = schedule.shape(p.out);
    let memory = |id: Id| match schedule.spots[&id] {
        Spot::Memory(at) => at,
        other => unreachable!("{other:?} read by a large product"),
    };
    let (a, b) = (schedule.view(p.a), schedule.view(p.b));
    let rows = schedule.rows * shape.rows.group();
    let numbers = 16 / bytes;
    let wide = |view: View, at: usize| {
        u8::from((at + view.start).is_multiple_of(numbers) && view.stride.is_multiple_of(numbers))
    };
    let (a_at, b_at) = (memory(a.root), memory(b.root));
    let (a_wide, b_wide) = (wide(a, a_at), wide(b, b_at));
    let at = |view: View| format!("A[(I){} + {}]", memory(view.root), index(view, shape));
    let init = p.init.map_or(String::new(), |id| match schedule.literal(id) {
        Some(x) => format!(" + {}", number(x)),
        None => format!(" + {}", at(schedule.view(id))),
    });
    let store = |id: Id| match schedule.spots[&id] {
        Spot::Memory(at) => Some(format!("A[(I){at} + r * {} + c]", shape.cols)),
        _ => None,
    };
    let mut text = format!("const T v{} = value{init};\n", p.out.index());
    if let Some(to) = store(p.out) {
        let _ = writeln!(text, "{to} = v{};", p.out.index());
    }
    text += &elementwise(schedule, group, shape, HashSet::from([p.out]), |view, _| at(view), store);
    let (k, n, stride_a, stride_b, along) = (p.k, p.n, a.stride, b.stride, p.transposed);
    let b_first = if p.transposed { format!("(I)n0 * {stride_b}") } else { "n0".into() };
    format!(
        "extern \"C\" __global__ void __launch_bounds__(TILE_THREADS, 2) {name}(T *A) {{\n\
         extern __shared__ __align__(16) unsigned char shared_bytes[];\n\
         const int n0 = blockIdx.x * BN, m0 = blockIdx.y * {tile};\n\
         typename TileOf<T, {tile}>::Type tile;\ntile.clear();\n\
         const Side a{{A + (I){} + (I)m0 * {stride_a}, {stride_a}, {rows} - m0, {a_wide}}};\n\
         const Side b{{A + (I){} + {b_first}, {stride_b}, {n} - n0, {b_wide}}};\n\
         tile.template add<true, {along}>(a, b, {k}, (T *)shared_bytes);\n\
         tile.each((T *)shared_bytes, [&](int m, int n, T value) {{\nconst I r = m0 + m; const int c = n0 + n;\n\
         if (r >= {rows} || c >= {n}) return;\n{text}}});\n}}\n",
        a_at + a.start,
        b_at + b.start,
    )
}
