//! CUDA C for the launches of a schedule.

use std::collections::HashSet;
use std::fmt::Write;

use super::Precision;
use super::compiler::HEADER;
use super::large_product::{hopper_product, large_product};
use super::row_kernel::row_kernel;
use super::schedule::{LANES, Schedule, THREADS, View, Work};
use super::tiled;
use crate::Real;
use crate::graph::Id;
use crate::op::{Binary, Op, Rows, Shape, Unary};
use crate::plan::elementwise_inputs;

const TILES: &str = include_str!("kernels/tiles.cu");
const HOPPER: &str = include_str!("kernels/hopper.cu");
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
            let room = schedule.shared.get(&w).copied().unwrap_or(0) * schedule.block_rows;
            let (threads, scratch, groups, room) = match schedule.by_lanes {
                // Groups of threads begin half of the banks apart.
                true => (128, 0, 128 / LANES, room.next_multiple_of(16) + 8),
                false => {
                    let threads = schedule.threads(tasks);
                    (threads, schedule.block_rows * threads, 1, room)
                }
            };
            let text =
                preamble::<T>(precision, long) + &row_kernel(schedule, &name, tasks, threads, room, true);
            let blocks = [schedule.rows.div_ceil(schedule.block_rows * groups), 1];
            let shared = (scratch + groups * room) * T::BYTES;
            Some(Source { name, text, blocks, threads, shared })
        }
        Work::Fixed(tasks) => {
            let text =
                preamble::<T>(precision, long) + &row_kernel(schedule, &name, tasks, THREADS, 0, false);
            let shared = schedule.block_rows * THREADS * T::BYTES;
            Some(Source { name, text, blocks: [1, 1], threads: THREADS, shared })
        }
        Work::Product(product, group) if schedule.tiling(product).is_some() => {
            Some(tiled::source::<T>(schedule, name, product, group, precision))
        }
        Work::Product(product, group) if schedule.on_hopper(product) => {
            let rows = schedule.rows * schedule.shape(product.out).rows.group();
            let groups = if rows.div_ceil(128) * product.n.div_ceil(64) < 132 { 1 } else { 2 };
            let text = format!(
                "{}{TILES}{HOPPER}{}",
                preamble::<T>(precision, long),
                hopper_product(schedule, &name, product, group, groups)
            );
            let blocks = [product.n.div_ceil(64), rows.div_ceil(64 * groups)];
            let stages = if precision == Precision::Tf32 { 4 } else { 7 };
            let shared = stages * (64 * groups + 64) * 32 * 4 + 1024;
            Some(Source { name, text, blocks, threads: 128 * groups, shared })
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

/// A number as CUDA C.
pub(super) fn number(x: f64) -> String {
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
        Unary::FiniteOrZero => "f_finite_or_zero",
    }
}

/// Code of elementwise values at one place (row `r`, column `c`); `known` are those that are already variables.
pub(super) fn elementwise(
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
pub(super) fn index(view: View, shape: Shape) -> String {
    let row = if view.shape.rows == shape.rows && shape.rows != Rows::Fixed(1) {
        format!("r * {}", view.stride)
    } else {
        "0".into()
    };
    let col = if view.shape.cols == shape.cols && shape.cols > 1 { " + c" } else { "" };
    format!("{row} + {}{col}", view.start)
}
