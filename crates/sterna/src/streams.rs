//! Random numbers keyed by (seed, phase, iteration, row): nothing to store, nothing to send.
//!
//! A number is a function of its key alone (Philox4x32-10, Salmon et al. 2011), so results do not
//! depend on threads, processes, batch sizes or interruptions. Each block of the cipher gives two
//! 64-bit words: two uniforms, or two normals by Box and Muller. Blocks are made eight at a time.

use crate::Batch;
use crate::lanes::{Bits, Kernel, Lanes, WIDTH, cos_sin_turns, dispatch, ln};

/// What a random number is for. Part of the key, so no two uses ever share numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Phase {
    /// Starting points.
    Start = 1,
    /// Exact draws from the reference on chain 0.
    Reference = 2,
    /// Acceptance of swaps; the row is the pair.
    Swap = 3,
    /// Exact draws from a target.
    Exact = 4,
    /// Checks and diagnostics.
    Check = 5,
    /// Initial weights and training batches.
    Training = 6,
    /// Where climbs start; the iteration is the attempt.
    Climb = 7,
    /// Local moves; the n-th use in an iteration is `Phase::Local.number(n)`.
    Local = 1 << 8,
    /// Noise of step k of forward accelerators.
    Forward = 1 << 14,
    /// Noise of step k of backward accelerators.
    Backward = 1 << 15,
}

/// A phase, and how often it has occurred within the iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseKey(u16);

impl Phase {
    /// Key of the `n`-th use of a phase within an iteration.
    ///
    /// # Panics
    /// If the phase is used once only, or `n` is too large.
    pub fn number(self, n: usize) -> PhaseKey {
        let first = self as usize;
        assert!(first >= Phase::Local as usize && n < first.min(1 << 14), "no use {n} of {self:?}");
        PhaseKey((first + n) as u16)
    }
}

impl From<Phase> for PhaseKey {
    fn from(phase: Phase) -> Self {
        PhaseKey(phase as u16)
    }
}

/// All random numbers of a run: a seed.
///
/// ```
/// use sterna::streams::{Phase, Streams};
/// let streams = Streams::new(7);
/// let mut a = streams.row(Phase::Check, 3, 0);
/// let mut b = streams.row(Phase::Check, 3, 0);
/// assert_eq!(a.uniform(), b.uniform());
/// assert_ne!(a.uniform(), streams.row(Phase::Check, 3, 1).uniform());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// Normals that [`normals`](Streams::normals) gives a row at most, and so coordinates that a target may have.
    pub const MOST_NORMALS: usize = 1 << 17;

    /// Streams of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed, for devices that draw for themselves.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The stream of one row in one phase of one iteration.
    pub fn row(&self, phase: impl Into<PhaseKey>, iteration: u64, row: u32) -> RowStream {
        RowStream {
            key: Key { seed: self.seed, phase: phase.into(), iteration },
            row,
            block: 0,
            spare_word: None,
            spare_normal: None,
        }
    }

    /// Row i of `out`: the first normals of the stream of `rows[i]`.
    ///
    /// # Panics
    /// If a row is longer than [`MOST_NORMALS`](Streams::MOST_NORMALS).
    pub fn normals(&self, phase: impl Into<PhaseKey>, iteration: u64, rows: &[u32], out: &mut Batch) {
        let key = Key { seed: self.seed, phase: phase.into(), iteration };
        dispatch(FillNormals { key, rows, out });
    }

    /// `out[i]`: the first uniform of the stream of `rows[i]`.
    pub fn uniforms(&self, phase: impl Into<PhaseKey>, iteration: u64, rows: &[u32], out: &mut [f64]) {
        let key = Key { seed: self.seed, phase: phase.into(), iteration };
        dispatch(FillUniforms { key, rows, out });
    }
}

#[derive(Clone, Copy, Debug)]
struct Key {
    seed: u64,
    phase: PhaseKey,
    iteration: u64,
}

/// Random numbers of one row, one after the other.
#[derive(Clone, Debug)]
pub struct RowStream {
    key: Key,
    row: u32,
    block: u32,
    spare_word: Option<u64>,
    spare_normal: Option<f64>,
}

impl RowStream {
    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        if let Some(word) = self.spare_word.take() {
            return word;
        }
        let (first, second) = self.next_block();
        self.spare_word = Some(second);
        first
    }

    /// Uniform on the open interval (0, 1).
    pub fn uniform(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// An integer below `n`, by multiplication (bias below n/2⁶⁴).
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// Standard normal. Uses a block for two of them, whatever else was drawn.
    pub fn normal(&mut self) -> f64 {
        if let Some(z) = self.spare_normal.take() {
            return z;
        }
        let (a, b) = self.next_block();
        let (first, second) = dispatch(OneNormalPair(a, b));
        self.spare_normal = Some(second);
        first
    }

    fn next_block(&mut self) -> (u64, u64) {
        let counter = self.key.counter(self.row, self.block);
        self.block += 1;
        philox(self.key.seed, counter)
    }
}

impl Key {
    /// Counter words: iteration (2), row, phase (16 bits) and block (16 bits). Blocks beyond 2¹⁶ are counted in the highest
    /// 16 bits of the iteration, which no run reaches.
    fn counter(&self, row: u32, block: u32) -> [u32; 4] {
        let (carry, block) = (block >> 16, block & 0xFFFF);
        [self.iteration as u32, (self.iteration >> 32) as u32 ^ carry << 16, row, self.tag() | block]
    }

    fn tag(&self) -> u32 {
        u32::from(self.phase.0) << 16
    }
}

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;

fn philox(seed: u64, mut c: [u32; 4]) -> (u64, u64) {
    for round in 0..ROUNDS {
        let [k0, k1] = round_key(seed, round);
        let a = u64::from(MULTIPLIERS[0]) * u64::from(c[0]);
        let b = u64::from(MULTIPLIERS[1]) * u64::from(c[2]);
        c = [(b >> 32) as u32 ^ c[1] ^ k0, b as u32, (a >> 32) as u32 ^ c[3] ^ k1, a as u32];
    }
    (u64::from(c[0]) | u64::from(c[1]) << 32, u64::from(c[2]) | u64::from(c[3]) << 32)
}

#[inline(always)]
fn round_key(seed: u64, round: u32) -> [u32; 2] {
    [
        (seed as u32).wrapping_add(WEYL[0].wrapping_mul(round)),
        ((seed >> 32) as u32).wrapping_add(WEYL[1].wrapping_mul(round)),
    ]
}

/// Eight blocks at once; `rows` and `tagged_blocks` hold one 32-bit value per 64-bit lane.
#[inline(always)]
fn philox_lanes<L: Lanes>(key: Key, rows: L::Bits, tagged_blocks: L::Bits) -> (L::Bits, L::Bits) {
    let m0 = L::Bits::splat(u64::from(MULTIPLIERS[0]));
    let m1 = L::Bits::splat(u64::from(MULTIPLIERS[1]));
    let mut c0 = L::Bits::splat(key.iteration & u64::from(u32::MAX));
    let mut c1 = L::Bits::splat(key.iteration >> 32);
    let (mut c2, mut c3) = (rows, tagged_blocks);
    // Only the low halves of lanes matter on the way: what gathers in the high ones is cut off at the end.
    for round in 0..ROUNDS {
        let [k0, k1] = round_key(key.seed, round);
        let a = m0.times_low(c0);
        let b = m1.times_low(c2);
        c0 = b.shift_right::<32>().xor(c1).xor(L::Bits::splat(u64::from(k0)));
        c1 = b;
        c2 = a.shift_right::<32>().xor(c3).xor(L::Bits::splat(u64::from(k1)));
        c3 = a;
    }
    let low = L::Bits::splat(u64::from(u32::MAX));
    (c0.and(low).or(c1.shift_left::<32>()), c2.and(low).or(c3.shift_left::<32>()))
}

/// The middle of one of 2⁵² equal cells of (0, 1): never 0, never 1.
fn unit(word: u64) -> f64 {
    f64::from_bits(word >> 12 | ONE) - BELOW_ONE
}

const ONE: u64 = 0x3FF0_0000_0000_0000;
const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

#[inline(always)]
fn unit_lanes<L: Lanes>(words: L::Bits) -> L {
    L::from_bits(words.shift_right::<12>().or(L::Bits::splat(ONE))) - L::splat(BELOW_ONE)
}

/// Box and Muller.
#[inline(always)]
fn normal_pair<L: Lanes>(a: L::Bits, b: L::Bits) -> (L, L) {
    let radius = (L::splat(-2.0) * ln(unit_lanes::<L>(a))).sqrt();
    let (cos, sin) = cos_sin_turns(unit_lanes::<L>(b));
    (radius * cos, radius * sin)
}

struct OneNormalPair(u64, u64);
impl Kernel for OneNormalPair {
    type Output = (f64, f64);
    #[inline(always)]
    fn run<L: Lanes>(self) -> (f64, f64) {
        let (a, b) = normal_pair::<L>(L::Bits::splat(self.0), L::Bits::splat(self.1));
        (a.to_array()[0], b.to_array()[0])
    }
}

struct FillNormals<'a> {
    key: Key,
    rows: &'a [u32],
    out: &'a mut Batch,
}
impl Kernel for FillNormals<'_> {
    type Output = ();
    /// Lanes are rows; block b gives columns 2b and 2b + 1.
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let dim = self.out.dim();
        debug_assert_eq!(self.rows.len(), self.out.rows());
        assert!(dim <= Streams::MOST_NORMALS, "a row has at most {} normals", Streams::MOST_NORMALS);
        let tag = u64::from(self.key.tag());
        for (rows, out) in self.rows.chunks(WIDTH).zip(self.out.as_mut_slice().chunks_mut(WIDTH * dim)) {
            let keys = load_keys::<L>(rows);
            for block in 0..dim.div_ceil(2) {
                let (a, b) = philox_lanes::<L>(self.key, keys, L::Bits::splat(tag | block as u64));
                let (first, second) = normal_pair::<L>(a, b);
                first.store_column(out, dim, 2 * block);
                if 2 * block + 1 < dim {
                    second.store_column(out, dim, 2 * block + 1);
                }
            }
        }
    }
}

#[inline(always)]
fn load_keys<L: Lanes>(rows: &[u32]) -> L::Bits {
    let mut keys = [0; WIDTH];
    for (key, row) in keys.iter_mut().zip(rows) {
        *key = u64::from(*row);
    }
    L::Bits::load(&keys)
}

struct FillUniforms<'a> {
    key: Key,
    rows: &'a [u32],
    out: &'a mut [f64],
}
impl Kernel for FillUniforms<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let tag = L::Bits::splat(u64::from(self.key.tag()));
        for (rows, out) in self.rows.chunks(WIDTH).zip(self.out.chunks_mut(WIDTH)) {
            let (words, _) = philox_lanes::<L>(self.key, load_keys::<L>(rows), tag);
            unit_lanes::<L>(words).store_some(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_published_answers() {
        // Known answers of Random123 for philox4x32-10.
        let words = |(a, b): (u64, u64)| [a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32];
        assert_eq!(words(philox(0, [0; 4])), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            words(philox(u64::MAX, [u32::MAX; 4])),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
    }

    #[test]
    fn a_stream_does_not_end_or_repeat() {
        let streams = Streams::new(3);
        let mut stream = streams.row(Phase::Local, 5, 2);
        let mut words: Vec<u64> = (0..1 << 18).map(|_| stream.next_u64()).collect();
        let mut next = streams.row(Phase::Local, 6, 2);
        words.extend((0..1 << 10).map(|_| next.next_u64()));
        words.sort_unstable();
        assert!(words.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn batches_hold_the_numbers_of_the_single_streams() {
        let streams = Streams::new(0x1234_5678_9abc_def0);
        let rows: Vec<u32> = (0..13).map(|i| 3 * i + 1).collect();
        for dim in [1, 2, 5, 10, 16] {
            let mut out = Batch::zeros(rows.len(), dim);
            streams.normals(Phase::Local.number(2), 1 << 40, &rows, &mut out);
            let mut uniforms = vec![0.0; rows.len()];
            streams.uniforms(Phase::Swap, 9, &rows, &mut uniforms);
            for (i, &row) in rows.iter().enumerate() {
                let mut single = streams.row(Phase::Local.number(2), 1 << 40, row);
                let expected: Vec<f64> = (0..dim).map(|_| single.normal()).collect();
                assert_eq!(out.row(i), expected);
                assert_eq!(uniforms[i], streams.row(Phase::Swap, 9, row).uniform());
            }
        }
    }

    #[test]
    fn moments_are_those_of_the_law() {
        // 2·10⁵ draws a moment, bounds at 4.9 standard errors: false alarm below 10⁻⁵ in all.
        let mut out = Batch::zeros(20_000, 10);
        let rows: Vec<u32> = (0..20_000).collect();
        Streams::new(1).normals(Phase::Check, 0, &rows, &mut out);
        let n = out.as_slice().len() as f64;
        let moment = |k: i32| out.as_slice().iter().map(|z| z.powi(k)).sum::<f64>() / n;
        for (k, mean, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            assert!((moment(k) - mean).abs() < 4.9 * (variance / n).sqrt(), "moment {k}: {}", moment(k));
        }
    }
}
