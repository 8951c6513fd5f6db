//! CUDA C of a product with a large matrix, and of the elementwise values that follow it.

use std::collections::HashSet;
use std::fmt::Write;

use super::emit::{elementwise, index, number};
use super::schedule::{Product, Schedule, Spot, View};
use crate::graph::Id;

/// Where a value lies that a large product reads.
pub(super) fn memory(schedule: &Schedule, id: Id) -> usize {
    match schedule.spots[&id] {
        Spot::Memory(at) => at,
        other => unreachable!("{other:?} read by a large product"),
    }
}

/// What becomes of a number of a large product, at row `r` and column `c`: elementwise values that follow are computed
/// as it comes out, and stored, but for the value `later`.
pub(super) fn follow_up(schedule: &Schedule, p: &Product, group: &[Id], later: Option<Id>) -> String {
    let shape = schedule.shape(p.out);
    let at = |view: View| format!("A[(I){} + {}]", memory(schedule, view.root), index(view, shape));
    let init = p.init.map_or(String::new(), |id| match schedule.literal(id) {
        Some(x) => format!(" + {}", number(x)),
        None => format!(" + {}", at(schedule.view(id))),
    });
    let store = |id: Id| match schedule.spots[&id] {
        _ if later == Some(id) => None,
        Spot::Memory(at) => Some(format!("A[(I){at} + r * {} + c]", shape.cols)),
        _ => None,
    };
    let mut text = format!("const T v{} = value{init};\n", p.out.index());
    if let Some(to) = store(p.out) {
        let _ = writeln!(text, "{to} = v{};", p.out.index());
    }
    text + &elementwise(schedule, group, shape, HashSet::from([p.out]), |view, _| at(view), store)
}

/// A kernel for a large product on any GPU.
pub(super) fn large_product(
    schedule: &Schedule,
    name: &str,
    p: &Product,
    group: &[Id],
    tile: usize,
    bytes: usize,
) -> String {
    let (a, b) = (schedule.view(p.a), schedule.view(p.b));
    let rows = schedule.rows * schedule.shape(p.out).rows.group();
    let numbers = 16 / bytes;
    let wide = |view: View, at: usize| {
        u8::from((at + view.start).is_multiple_of(numbers) && view.stride.is_multiple_of(numbers))
    };
    let (a_at, b_at) = (memory(schedule, a.root), memory(schedule, b.root));
    let (a_wide, b_wide) = (wide(a, a_at), wide(b, b_at));
    let text = follow_up(schedule, p, group, None);
    let (k, n, stride_a, stride_b, along) = (p.k, p.n, a.stride, b.stride, p.transposed);
    let b_first = if p.transposed { format!("(I)n0 * {stride_b}") } else { "n0".into() };
    format!(
        "extern \"C\" __global__ void __launch_bounds__(TILE_THREADS, 2) {name}(T *A) {{\n\
         wait_for_kernel_before();\n\
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

/// A kernel for a large product of many rows on Hopper.
pub(super) fn hopper_product(
    schedule: &Schedule,
    name: &str,
    p: &Product,
    group: &[Id],
    groups: usize,
) -> String {
    let (a, b) = (schedule.view(p.a), schedule.view(p.b));
    let rows = schedule.rows * schedule.shape(p.out).rows.group();
    let (b_at, stride_b) = match p.transposed {
        true => (memory(schedule, b.root) + b.start, b.stride),
        false => (schedule.turned_at(p.b).expect("placed with the schedule"), p.k),
    };
    let text = follow_up(schedule, p, group, None);
    let (k, n, stride_a, tall) = (p.k, p.n, a.stride, 64 * groups);
    format!(
        "extern \"C\" __global__ void __launch_bounds__(128 * {groups}) {name}(T *A) {{\n\
         wait_for_kernel_before();\n\
         extern __shared__ __align__(1024) unsigned char shared_bytes[];\n\
         float *const shared = (float *)(((unsigned long long)shared_bytes + 1023) / 1024 * 1024);\n\
         const int n0 = blockIdx.x * HOPPER_BN, m0 = blockIdx.y * {tall};\n\
         HopperTile<{groups}> tile;\n\
         const Side a{{A + (I){} + (I)m0 * {stride_a}, {stride_a}, {rows} - m0, 1}};\n\
         const Side b{{A + (I){b_at} + (I)n0 * {stride_b}, {stride_b}, {n} - n0, 1}};\n\
         tile.run(a, b, {k}, shared);\n\
         tile.each([&](int m, int n, T value) {{\nconst I r = m0 + m; const int c = n0 + n;\n\
         if (r >= {rows} || c >= {n}) return;\n{text}}});\n}}\n",
        memory(schedule, a.root) + a.start,
    )
}
