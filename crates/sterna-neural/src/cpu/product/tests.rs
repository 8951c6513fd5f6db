//! Products against their own definition.

use super::*;
use sterna::lanes::Level;

fn number<T: Real>(i: usize) -> T {
    T::from_f64(((i * 7919) % 1009) as f64 / 504.0 - 1.0)
}

fn matrix<T: Real>(rows: usize, cols: usize) -> Vec<T> {
    (0..rows * cols).map(number).collect()
}

/// The kernel's own definition: one chain of fused multiply-adds per element.
fn chain<T: Real>(k: usize, start: T, a: impl Fn(usize) -> T, b: impl Fn(usize) -> T) -> f64 {
    (0..k).fold(start.to_f64(), |sum, i| {
        if T::BYTES == 4 {
            (a(i).to_f64() as f32).mul_add(b(i).to_f64() as f32, sum as f32) as f64
        } else {
            a(i).to_f64().mul_add(b(i).to_f64(), sum)
        }
    })
}

fn check<T: Real>(level: Level) {
    for (rows, k, n) in [(1, 1, 1), (3, 17, 5), (14, 33, 16), (15, 40, 31), (31, 64, 33), (29, 20, 100)] {
        let (a, b, start) = (matrix::<T>(rows, k), matrix::<T>(k, n), matrix::<T>(1, n));
        let turned: Vec<T> = (0..n * k).map(|i| b[i % k * n + i / k]).collect();
        for (source, ldb, transposed) in [(&b, n, false), (&turned, k, true)] {
            let mut packed = vec![T::ZERO; packed_len::<T>(k, n)];
            let mut c = vec![T::ZERO; rows * n];
            // SAFETY: within the shapes that the caller promised.
            unsafe {
                pack(level, k, n, source.as_ptr(), ldb, transposed, packed.as_mut_ptr());
                let from = Start::Row(start.as_ptr());
                product(level, rows, k, n, a.as_ptr(), packed.as_ptr(), from, c.as_mut_ptr());
            }
            for (i, x) in c.iter().enumerate() {
                let (r, j) = (i / n, i % n);
                let known = chain(k, start[j], |l| a[r * k + l], |l| b[l * n + j]);
                assert_eq!(x.to_f64(), known, "{level:?}: {rows}·{k}·{n}, transposed {transposed}");
            }
        }
    }
    // More rows than one block of the sum, in two parts of the columns.
    for (rows, m, n) in [(5, 1, 1), (300, 20, 70), (513, 15, 33)] {
        let (a, b) = (matrix::<T>(rows, m), matrix::<T>(rows, n));
        let mut c = vec![number::<T>(3); m * n];
        let mut scratch = vec![T::ZERO; sum_scratch::<T>(m)];
        let half = n / 2;
        for (from, to) in [(0, half), (half, n)] {
            if from < to {
                // SAFETY: within the shapes that the caller promised.
                unsafe {
                    let (a, b, s) = (a.as_ptr(), b.as_ptr(), scratch.as_mut_ptr());
                    sum_products(level, rows, m, n, a, b, c.as_mut_ptr(), from, to, true, s);
                }
            }
        }
        for (i, x) in c.iter().enumerate() {
            let known = chain(rows, T::ZERO, |r| a[r * m + i / n], |r| b[r * n + i % n]);
            assert_eq!(x.to_f64(), known, "{level:?}: sum over {rows}, {m}×{n}");
        }
    }
}

#[test]
fn every_element_is_one_chain_of_multiply_adds() {
    for level in Level::available() {
        check::<f32>(level);
        check::<f64>(level);
    }
}
