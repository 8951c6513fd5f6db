//! Fourier transforms of real series whose length is a power of two, for autocovariances. They are our own since effective draws decide
//! how references are fitted: those of a library have the bits of the system's sines, and of the processor.

use crate::lanes::{Kernel, Lanes, WIDTH, cos_sin_turns, dispatch, for_each_chunk};
use std::cell::RefCell;
use std::mem::swap;

/// Real and imaginary parts.
#[derive(Clone, Debug, Default)]
struct Complexes {
    re: Vec<f64>,
    im: Vec<f64>,
}

impl Complexes {
    fn zeros(n: usize) -> Self {
        Self { re: vec![0.0; n], im: vec![0.0; n] }
    }
}

/// Autocovariances at all lags, divided by n (biased, hence positive definite).
pub(super) fn autocovariance(series: &[f64]) -> Vec<f64> {
    let n = series.len();
    let mean = series.iter().sum::<f64>() / n as f64;
    let size = (2 * n).next_power_of_two().max(2);
    let mut padded: Vec<f64> = series.iter().map(|x| x - mean).collect();
    padded.resize(size, 0.0);
    let spectrum = transform(&padded);
    // The power spectrum is real and even, so transforming it forward again is the inverse up to size.
    for k in 0..=size / 2 {
        let power = spectrum.re[k] * spectrum.re[k] + spectrum.im[k] * spectrum.im[k];
        padded[k] = power;
        if k > 0 {
            padded[size - k] = power;
        }
    }
    let mut back = transform(&padded).re;
    back.truncate(n);
    back.iter_mut().for_each(|c| *c /= size as f64 * n as f64);
    back
}

/// The first half of the spectrum of a real series, and the middle: even and odd places are transformed as the two parts of one complex
/// series of half the length.
fn transform(series: &[f64]) -> Complexes {
    let size = series.len();
    let half = size / 2;
    with_turns(size, |turns, stride| {
        let packed = Complexes {
            re: series.iter().step_by(2).copied().collect(),
            im: series.iter().skip(1).step_by(2).copied().collect(),
        };
        let z = dispatch(Stages { from: packed, to: Complexes::zeros(half), turns, stride: 2 * stride });
        let mut out = Complexes::zeros(half + 1);
        for k in 0..=half {
            // The remainder by a power of two.
            let (a, b) = (k & (half - 1), (half - k) & (half - 1));
            // Of the even places, and of the odd ones.
            let (even_re, even_im) = (0.5 * (z.re[a] + z.re[b]), 0.5 * (z.im[a] - z.im[b]));
            let (odd_re, odd_im) = (0.5 * (z.im[a] + z.im[b]), 0.5 * (z.re[b] - z.re[a]));
            let (cos, sin) = if k == half { (-1.0, 0.0) } else { turns.at(k * stride) };
            out.re[k] = even_re + (odd_re * cos + odd_im * sin);
            out.im[k] = even_im + (odd_im * cos - odd_re * sin);
        }
        out
    })
}

/// Cosines and sines of k/n turns, for the first half of a circle.
#[derive(Default)]
struct Turns {
    cos: Vec<f64>,
    sin: Vec<f64>,
}

impl Turns {
    fn at(&self, k: usize) -> (f64, f64) {
        (self.cos[k], self.sin[k])
    }
}

/// Those of a circle of `size`, each so many places from the next in a table that is kept for the longest series.
fn with_turns<T>(size: usize, of: impl FnOnce(&Turns, usize) -> T) -> T {
    thread_local! {
        static KEPT: RefCell<Turns> = RefCell::default();
    }
    KEPT.with_borrow_mut(|kept| {
        if 2 * kept.cos.len() < size {
            *kept = dispatch(Circle(size));
        }
        of(kept, 2 * kept.cos.len() / size)
    })
}

struct Circle(usize);

impl Kernel for Circle {
    type Output = Turns;

    #[inline(always)]
    fn run<L: Lanes>(self) -> Turns {
        let half = self.0 / 2;
        let mut turns = Turns { cos: vec![0.0; half], sin: vec![0.0; half] };
        for_each_chunk!(half, |chunk| {
            // Exact, since the size is a power of two.
            let places: [f64; WIDTH] = std::array::from_fn(|i| (chunk.start + i) as f64 / self.0 as f64);
            let (cos, sin) = cos_sin_turns(L::load_some(&places[..chunk.len()]));
            cos.store_some(&mut turns.cos[chunk.clone()]);
            sin.store_some(&mut turns.sin[chunk]);
        });
        turns
    }
}

/// Stockham's transform: in each stage pairs from two halves become neighbours, so that what comes out is in order.
struct Stages<'a> {
    from: Complexes,
    to: Complexes,
    turns: &'a Turns,
    stride: usize,
}

impl Kernel for Stages<'_> {
    type Output = Complexes;

    #[inline(always)]
    fn run<L: Lanes>(self) -> Complexes {
        let Self { mut from, mut to, turns, stride } = self;
        let size = from.re.len();
        // So many series of so many points, side by side.
        let (mut points, mut beside) = (size, 1);
        while points > 1 {
            let half = points / 2;
            for p in 0..half {
                let (cos, sin) = turns.at(p * beside * stride);
                let (a, b) = (beside * p..beside * (p + 1), beside * (p + half)..beside * (p + half + 1));
                let (a_re, a_im, b_re, b_im) =
                    (&from.re[a.clone()], &from.im[a], &from.re[b.clone()], &from.im[b]);
                let both = 2 * beside * p..2 * beside * (p + 1);
                let (sum_re, turned_re) = to.re[both.clone()].split_at_mut(beside);
                let (sum_im, turned_im) = to.im[both].split_at_mut(beside);
                if beside < WIDTH {
                    for q in 0..beside {
                        let (re, im) = (a_re[q] - b_re[q], a_im[q] - b_im[q]);
                        (sum_re[q], sum_im[q]) = (a_re[q] + b_re[q], a_im[q] + b_im[q]);
                        (turned_re[q], turned_im[q]) = (re * cos + im * sin, im * cos - re * sin);
                    }
                    continue;
                }
                let (cos, sin) = (L::splat(cos), L::splat(sin));
                for_each_chunk!(beside, |chunk| {
                    let take = |all: &[f64]| L::load_some(&all[chunk.clone()]);
                    let (a_re, a_im, b_re, b_im) = (take(a_re), take(a_im), take(b_re), take(b_im));
                    let (re, im) = (a_re - b_re, a_im - b_im);
                    (a_re + b_re).store_some(&mut sum_re[chunk.clone()]);
                    (a_im + b_im).store_some(&mut sum_im[chunk.clone()]);
                    (re * cos + im * sin).store_some(&mut turned_re[chunk.clone()]);
                    (im * cos - re * sin).store_some(&mut turned_im[chunk]);
                });
            }
            swap(&mut from, &mut to);
            (points, beside) = (half, 2 * beside);
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::on_every_instruction_set;
    use std::f64::consts::TAU;

    fn series(n: usize) -> Vec<f64> {
        (0..n).map(|i| (0.37 * i as f64).sin() + ((i * i) % 7) as f64).collect()
    }

    #[test]
    fn spectra_are_those_of_the_definition() {
        for size in [2, 4, 8, 64, 256] {
            let x = series(size);
            let found = transform(&x);
            for k in 0..=size / 2 {
                let of = |f: fn(f64) -> f64| -> f64 {
                    x.iter().enumerate().map(|(i, x)| x * f(TAU * (i * k % size) as f64 / size as f64)).sum()
                };
                let off = (found.re[k] - of(f64::cos)).abs() + (found.im[k] + of(f64::sin)).abs();
                assert!(off < 1e-12 * size as f64, "{size} {k}: {off}");
            }
        }
    }

    #[test]
    fn autocovariances_are_the_sums_that_define_them() {
        for n in [1, 2, 3, 17, 100] {
            let x = series(n);
            let mean = x.iter().sum::<f64>() / n as f64;
            let found = autocovariance(&x);
            assert_eq!(found.len(), n);
            for (lag, found) in found.iter().enumerate() {
                let sum: f64 = (lag..n).map(|i| (x[i] - mean) * (x[i - lag] - mean)).sum();
                assert!((found - sum / n as f64).abs() < 1e-12, "{n} {lag}: {found}");
            }
        }
    }

    /// A table that was made for a longer series has the same numbers.
    #[test]
    fn bits_hang_neither_on_the_processor_nor_on_what_came_before() {
        #[derive(Clone)]
        struct Whole;
        impl Kernel for Whole {
            type Output = Vec<u64>;
            #[inline(always)]
            fn run<L: Lanes>(self) -> Vec<u64> {
                let turns = Circle(256).run::<L>();
                let (from, to) = (Complexes { re: series(128), im: series(128) }, Complexes::zeros(128));
                let found = Stages { from, to, turns: &turns, stride: 2 }.run::<L>();
                found.re.iter().chain(&found.im).map(|x| x.to_bits()).collect()
            }
        }
        let all = on_every_instruction_set(&Whole);
        assert!(all.iter().all(|(_, bits)| *bits == all[0].1));
        let before = autocovariance(&series(100));
        autocovariance(&series(5000));
        assert_eq!(autocovariance(&series(100)), before);
    }
}
