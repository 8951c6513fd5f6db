//! Chains of products of many rows on Hopper: values and weights as the tiles of `kernels/tiled.cu`.

use super::Precision;
use super::emit::{Source, preamble};
use super::large_product::{follow_up, memory};
use super::placement::HOPPER_ROWS;
use super::schedule::{Product, Schedule, Spot, Tiling, Work};
use crate::Real;
use crate::graph::Id;
use crate::op::{Op, Rows};

const KERNELS: &str = include_str!("kernels/tiled.cu");

/// Columns of a tile.
const COLUMNS: usize = 32;
/// The widest value that may lie as it is: a block reads all its columns at once.
const PLAIN_COLUMNS: usize = 2 * COLUMNS;
/// The narrowest matrix that such a value may be multiplied by.
const PLAIN_WIDTH: usize = 128;
/// The shortest sum that is worth tiles where the matrix is narrow.
const LONG_SUM: usize = 128;
/// Bytes of shared memory of a block.
const SHARED: usize = 224 << 10;
/// Most rows of a block: its threads hold half as many numbers each.
const MOST_ROWS: usize = 160;
/// Multiprocessors of such a GPU.
const PROCESSORS: usize = 132;

/// Columns of a product that one tile of its matrix serves.
fn width(n: usize) -> usize {
    if n > 64 { 128 } else { 64 }
}

impl Schedule {
    /// Rows of a value's tile: so many that blocks, two of which share rows where there are 512 columns, fill the GPU a
    /// whole number of times.
    fn tile_rows(&self) -> usize {
        let blocks = PROCESSORS / 2;
        let times = self.rows.div_ceil(blocks * MOST_ROWS);
        self.rows.div_ceil(blocks * times).next_multiple_of(16)
    }

    /// Whether the matrix of a product can be laid out as tiles, once for many rows.
    fn takes_tiles(&self, p: &Product) -> bool {
        let b = self.view(p.b);
        let is_whole = b.start == 0 && b.stride == if p.transposed { p.k } else { p.n };
        let is_given = matches!(self.op(b.root), Op::Parameter(_) | Op::Constant(_));
        self.hopper
            && self.rows >= HOPPER_ROWS
            && self.shape(p.out).rows == Rows::Batch(1)
            && is_whole
            && is_given
    }

    /// Whether a product with a narrow matrix ends a chain of large ones.
    pub fn ends_tiles(&self, p: &Product) -> bool {
        let a = self.view(p.a).root;
        let makes = |w: &Work| matches!(w, Work::Product(q, group) if q.out == a || group.contains(&a));
        self.takes_tiles(p) && p.k >= LONG_SUM && p.k.is_multiple_of(COLUMNS) && self.works.iter().any(makes)
    }

    /// Marks the values that are read as tiles alone, and the weights that multiply them.
    pub(super) fn place_tiles(&mut self) {
        let uses = self.uses();
        for w in 0..self.works.len() {
            let Work::Product(p, group) = self.works[w].clone() else { continue };
            if !self.takes_tiles(&p) || self.plain_or_tiles(&p).is_none() {
                continue;
            }
            if self.tiling_at(&p).is_none() {
                let (source, width) = (self.view(p.b).root, width(p.n));
                // Twice, since factors may be split; a block may read two tiles.
                let to = self.take(2 * p.k.next_multiple_of(COLUMNS) * p.n.next_multiple_of(2 * width));
                self.tilings.push(Tiling { source, transposed: p.transposed, k: p.k, n: p.n, width, to });
            }
            let as_tiles = |id: &Id| {
                let shape = self.shape(*id);
                let others = uses.get(id).into_iter().flatten().filter(|u| **u != (w, 0));
                let mut others = others.peekable();
                others.peek().is_some()
                    && !self.spots.contains_key(id)
                    && shape.cols.is_multiple_of(COLUMNS)
                    && others.all(|&(reader, step)| match &self.works[reader] {
                        Work::Product(q, _) if step == 1 => self.takes_tiles(q) && self.reads_whole(q, *id),
                        _ => false,
                    })
            };
            if let Some(id) = [p.out].iter().chain(&group).copied().find(as_tiles) {
                let rows = self.rows.next_multiple_of(self.tile_rows());
                let at = self.take(2 * rows * self.shape(id).cols);
                self.spots.insert(id, Spot::Tiles(at));
            }
        }
    }

    /// Whether a value is the first factor of a product, all its columns, and nothing else.
    fn reads_whole(&self, p: &Product, id: Id) -> bool {
        let a = self.view(p.a);
        a.root == id && a.start == 0 && a.stride == p.k && p.init.is_none_or(|i| self.view(i).root != id)
    }

    /// The tiles of a product's first factor, or none where it is narrow enough to lie as it is.
    fn plain_or_tiles(&self, p: &Product) -> Option<Option<usize>> {
        match self.spots.get(&self.view(p.a).root) {
            Some(Spot::Tiles(at)) => Some(Some(*at)),
            Some(Spot::Literal(_)) => None,
            _ => (p.k <= PLAIN_COLUMNS && p.n >= PLAIN_WIDTH).then_some(None),
        }
    }

    fn tiling_at(&self, p: &Product) -> Option<usize> {
        let source = self.view(p.b).root;
        let same = |t: &&Tiling| t.source == source && t.transposed == p.transposed && t.n == p.n;
        self.tilings.iter().find(same).map(|t| t.to)
    }

    /// Where the tiles of a product's matrix lie, if the product reads tiles.
    pub fn tiling(&self, p: &Product) -> Option<usize> {
        if !self.takes_tiles(p) {
            return None;
        }
        self.plain_or_tiles(p).and_then(|_| self.tiling_at(p))
    }
}

/// The instruction that multiplies 64 columns of a matrix by `rows` rows.
fn multiply(rows: usize) -> String {
    let count = rows / 2;
    let list = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(", ");
    format!(
        "static __device__ __forceinline__ void MULTIPLY(float (&d)[{count}], unsigned long long a, unsigned long long b) {{\n\
         asm volatile(\"wgmma.mma_async.sync.aligned.m64n{rows}k8.f32.tf32.tf32 {{{}}}, %{count}, %{}, 1, 1, 1;\" : {} : \"l\"(a), \"l\"(b));\n}}\n",
        list(&|i| format!("%{i}")),
        count + 1,
        list(&|i| format!("\"+f\"(d[{i}])")),
    )
}

/// The kernel of a product that reads tiles, and the elementwise values that follow it.
pub(super) fn source<T: Real>(
    schedule: &Schedule,
    name: String,
    p: &Product,
    group: &[Id],
    precision: Precision,
) -> Source {
    let (rows, n, a) = (schedule.rows, p.n, schedule.view(p.a));
    let tall = schedule.tile_rows();
    let parts = if precision == Precision::Tf32 { 1 } else { 2 };
    // Two tiles of the matrix where there is one part, so that there is room for three stages.
    let wide = width(n) * if n > 128 && parts == 1 { 2 } else { 1 };
    let (groups, across) = (wide / 64, n.div_ceil(wide));
    // Half a tile, where no other block shares its rows.
    let halves = if across == 1 { 2 } else { 1 };
    let own = tall / halves;
    let count = p.k.div_ceil(COLUMNS);
    let stage = parts * (own + wide) * COLUMNS * 4;
    let tiles = schedule.plain_or_tiles(p).expect("a product that reads tiles");
    let stages = if tiles.is_some() { (SHARED / stage).min(count) } else { count };
    // Where this block's rows of a value of so many columns begin.
    let rows_at = |at: usize, columns: usize| {
        let tile = parts * tall * columns;
        format!(
            "A + (I){at} + (I)(blockIdx.y / {halves}) * {tile} + blockIdx.y % {halves} * {}",
            own * COLUMNS
        )
    };
    let (first, plain) = match tiles {
        Some(at) => (rows_at(at, count * COLUMNS), "{}".into()),
        None => {
            let from = memory(schedule, a.root) + a.start;
            let plain = format!("{{A + (I){from} + (I)m0 * {0}, {0}, {rows} - m0, {1}}}", a.stride, p.k);
            ("(const float *)0".into(), plain)
        }
    };
    let checks = [(rows % own, format!("r >= {rows}")), (n % wide, format!("c >= {n}"))];
    let checks: String = checks
        .iter()
        .filter(|(rest, _)| *rest > 0)
        .map(|(_, outside)| format!("if ({outside}) return value;\n"))
        .collect();
    // All values first, then the tiles, or else the last that is kept: a store would make the next value wait.
    let find =
        |is: fn(Spot) -> bool| [p.out].iter().chain(group).rfind(|id| is(schedule.spots[*id])).copied();
    let kept =
        find(|spot| matches!(spot, Spot::Tiles(_))).or_else(|| find(|spot| matches!(spot, Spot::Memory(_))));
    let (result, store) = match kept.map(|id| (id.index(), schedule.spots[&id])) {
        Some((id, Spot::Tiles(at))) => {
            (format!("v{id}"), format!("tile.store({}, n0, {n}, shared);\n", rows_at(at, n)))
        }
        Some((id, Spot::Memory(at))) => (
            format!("v{id}"),
            format!(
                "tile.each(m0, n0, [&](long long r, long long c, T value) -> T {{\n\
                 {checks}A[(I){at} + r * {n} + c] = value;\nreturn value;\n}});\n"
            ),
        ),
        _ => ("value".into(), String::new()),
    };
    let (b_at, is_plain) = (schedule.tiling_at(p).expect("placed with the schedule"), tiles.is_none());
    let threads = 128 * groups;
    let text = format!(
        "{}{}#define TALL {tall}\n{KERNELS}\n\
         extern \"C\" __global__ void __launch_bounds__({threads}, 1) {name}(T *A) {{\n\
         extern __shared__ __align__(1024) unsigned char shared_bytes[];\n\
         float *const shared = (float *)(shared_bytes + (-shared_at(shared_bytes) & 1023));\n\
         const int n0 = blockIdx.x * {wide}, m0 = blockIdx.y * {own};\n\
         TiledProduct<{groups}, {own}, {stages}, {is_plain}> tile;\n\
         tile.run(A + (I){b_at} + (I)blockIdx.x * {}, {first}, PlainRows{plain}, {count}, shared);\n\
         tile.each(m0, n0, [&](long long r, long long c, T value) -> T {{\n{checks}{}return {result};\n}});\n{store}}}\n",
        preamble::<T>(precision, schedule.arena > i32::MAX as usize / 2),
        multiply(own),
        count * parts * wide * COLUMNS,
        follow_up(schedule, p, group, kept),
    );
    // Results that are stored as tiles lie there too, at the end.
    let shared = (stages * stage).max(own * wide * 4) + 1024;
    Source { name, text, blocks: [across, rows.div_ceil(own)], threads, shared }
}

/// A matrix of `kernels/tiled.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct TilingTable {
    from: i64,
    to: i64,
    sizes: [i32; 5],
}

/// The matrices of a schedule, and each of their tiles.
pub(super) fn tables(schedule: &Schedule) -> (Vec<TilingTable>, Vec<[i32; 2]>) {
    let (mut matrices, mut tiles) = (Vec::new(), Vec::new());
    for t in &schedule.tilings {
        let [along_k, along_n] = if t.transposed { [1, t.k] } else { [t.n, 1] };
        let count = t.k.div_ceil(COLUMNS) * t.n.div_ceil(t.width);
        tiles.extend((0..count).map(|tile| [matrices.len() as i32, tile as i32]));
        matrices.push(TilingTable {
            from: memory(schedule, t.source) as i64,
            to: t.to as i64,
            sizes: [t.k, t.n, along_k, along_n, t.width].map(|x| x as i32),
        });
    }
    (matrices, tiles)
}

/// The kernel that lays weights out as tiles.
pub(super) fn weights_source<T: Real>(precision: Precision, long: bool) -> String {
    preamble::<T>(precision, long) + &multiply(8) + "#define TALL 8\n" + KERNELS
}
