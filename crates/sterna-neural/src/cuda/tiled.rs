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

/// Rows of a value's tile, and columns of any.
const TILE: [usize; 2] = [128, 32];
/// Threads of a block: two groups that multiply, and a warp that fetches.
const THREADS: usize = 288;
/// The widest value that may lie as it is: a block reads all its columns at once.
const PLAIN_COLUMNS: usize = 2 * TILE[1];
/// The shortest sum that is worth tiles where the matrix is narrow.
const LONG_SUM: usize = 128;
/// Bytes of shared memory of a block, where two or one of them share a multiprocessor.
const SHARED: [usize; 2] = [110 << 10, 224 << 10];

/// Multiprocessors of such a GPU.
const PROCESSORS: usize = 132;

/// Columns of a product that one block makes.
fn width(n: usize) -> usize {
    if n > 64 { 128 } else { n.next_multiple_of(8) }
}

impl Schedule {
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
        self.takes_tiles(p) && p.k >= LONG_SUM && p.k.is_multiple_of(TILE[1]) && self.works.iter().any(makes)
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
                // Twice, since factors may be split.
                let to = self.take(2 * p.k.next_multiple_of(TILE[1]) * p.n.next_multiple_of(width));
                self.tilings.push(Tiling { source, transposed: p.transposed, k: p.k, n: p.n, width, to });
            }
            let as_tiles = |id: &Id| {
                let shape = self.shape(*id);
                let others = uses.get(id).into_iter().flatten().filter(|u| **u != (w, 0));
                let mut others = others.peekable();
                others.peek().is_some()
                    && !self.spots.contains_key(id)
                    && shape.cols.is_multiple_of(TILE[1])
                    && others.all(|&(reader, step)| match &self.works[reader] {
                        Work::Product(q, _) if step == 1 => self.takes_tiles(q) && self.reads_whole(q, *id),
                        _ => false,
                    })
            };
            if let Some(id) = [p.out].iter().chain(&group).copied().find(as_tiles) {
                let rows = self.rows.next_multiple_of(TILE[0]);
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
            _ => (p.k <= PLAIN_COLUMNS && p.n >= TILE[0]).then_some(None),
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

/// The instruction that multiplies 64 rows by `width` columns.
fn multiply(width: usize) -> String {
    let count = width / 2;
    let list = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(", ");
    format!(
        "static __device__ __forceinline__ void MULTIPLY(float (&d)[{count}], unsigned long long a, unsigned long long b) {{\n\
         asm volatile(\"wgmma.mma_async.sync.aligned.m64n{width}k8.f32.tf32.tf32 {{{}}}, %{count}, %{}, 1, 1, 1;\" : {} : \"l\"(a), \"l\"(b));\n}}\n",
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
    let (rows, n, wide, a) = (schedule.rows, p.n, width(p.n), schedule.view(p.a));
    let count = p.k.div_ceil(TILE[1]);
    let parts = if precision == Precision::Tf32 { 1 } else { 2 };
    let stage = parts * (TILE[0] + wide) * TILE[1] * 4;
    let tiles = schedule.plain_or_tiles(p).expect("a product that reads tiles");
    let blocks = [n.div_ceil(wide), rows.div_ceil(TILE[0])];
    let at_once = if 2 * stage < SHARED[0] && blocks[0] * blocks[1] > PROCESSORS { 2 } else { 1 };
    let stages = if tiles.is_some() { (SHARED[2 - at_once] / stage).min(count) } else { count };
    let (first, plain) = match tiles {
        Some(at) => {
            (format!("A + (I){at} + (I)blockIdx.y * {}", count * parts * TILE[0] * TILE[1]), "{}".into())
        }
        None => {
            let from = memory(schedule, a.root) + a.start;
            let plain = format!("{{A + (I){from} + (I)m0 * {0}, {0}, {rows} - m0, {1}}}", a.stride, p.k);
            ("(const float *)0".into(), plain)
        }
    };
    let tiled = [p.out].iter().chain(group).find_map(|id| match schedule.spots[id] {
        Spot::Tiles(at) => Some((*id, at)),
        _ => None,
    });
    // All values first, then what is stored as tiles: a store would make the next value wait.
    let (result, store) = match tiled {
        Some((id, at)) => (
            format!("v{}", id.index()),
            format!(
                "tile.store(A + (I){at} + (I)blockIdx.y * {}, m0, n0, {rows}, {n});\n",
                parts * n * TILE[0]
            ),
        ),
        None => ("value".into(), String::new()),
    };
    let checks = [(rows % TILE[0], format!("r >= {rows}")), (n % wide, format!("c >= {n}"))];
    let checks: String = checks
        .iter()
        .filter(|(rest, _)| *rest > 0)
        .map(|(_, outside)| format!("if ({outside}) return value;\n"))
        .collect();
    let (b_at, is_plain) = (schedule.tiling_at(p).expect("placed with the schedule"), tiles.is_none());
    let text = format!(
        "{}{}{KERNELS}\n\
         extern \"C\" __global__ void __launch_bounds__({THREADS}, {at_once}) {name}(T *A) {{\n\
         extern __shared__ __align__(1024) unsigned char shared_bytes[];\n\
         float *const shared = (float *)(((unsigned long long)shared_bytes + 1023) / 1024 * 1024);\n\
         const int n0 = blockIdx.x * {wide}, m0 = blockIdx.y * {};\n\
         TiledProduct<{wide}, {stages}, {is_plain}> tile;\n\
         tile.run({first}, PlainRows{plain}, A + (I){b_at} + (I)blockIdx.x * {}, {count}, shared);\n\
         tile.each(m0, n0, [&](long long r, long long c, T value) -> T {{\n{checks}{}return {result};\n}});\n{store}}}\n",
        preamble::<T>(precision, schedule.arena > i32::MAX as usize / 2),
        multiply(wide),
        TILE[0],
        count * parts * wide * TILE[1],
        follow_up(schedule, p, group),
    );
    Source { name, text, blocks, threads: THREADS, shared: stages * stage + 1024 }
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
        let count = t.k.div_ceil(TILE[1]) * t.n.div_ceil(t.width);
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
    preamble::<T>(precision, long) + &multiply(8) + KERNELS
}
