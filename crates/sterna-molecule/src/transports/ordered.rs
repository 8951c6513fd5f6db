//! Sums over many rows by all threads, with the bits of one: whatever is added up is added in the order of rows.

use rayon::prelude::*;
use sterna::lanes::one::{self, sin_cos};

/// Rows whose terms are worked out before they are added up: worth waking threads for, and few enough for a cache.
const BLOCK: usize = 256;

/// Rows that a thread takes at least.
const SHARE: usize = 8;

/// Hands over what `write` makes of each row of `length` numbers, `width` numbers of it, block after block.
pub(super) fn for_blocks<T: Sync>(
    rows: &[T],
    length: usize,
    width: usize,
    write: impl Fn(&[T], &mut [f64]) + Sync,
    mut add: impl FnMut(&[f64]),
) {
    let mut terms = vec![0.0; BLOCK.min(rows.len() / length) * width];
    for rows in rows.chunks(BLOCK * length) {
        let terms = &mut terms[..rows.len() / length * width];
        let each = rows.par_chunks_exact(length).zip(terms.par_chunks_exact_mut(width));
        each.with_min_len(SHARE).for_each(|(row, terms)| write(row, terms));
        add(terms);
    }
}

/// Adds to `sums` what `write` makes of each row of `length` numbers.
pub(super) fn add_up<T: Sync>(
    rows: &[T],
    length: usize,
    sums: &mut [f64],
    write: impl Fn(&[T], &mut [f64]) + Sync,
) {
    let width = sums.len();
    for_blocks(rows, length, width, write, |terms| {
        for terms in terms.chunks_exact(width) {
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
    });
}

/// The mean of each of some coordinates over all chains' rows, which are `dim` long; on the circle where it is an angle of a
/// whole turn.
pub(super) fn means<'a>(
    chains: impl Iterator<Item = &'a [f64]>,
    dim: usize,
    coordinates: &[(usize, bool)],
) -> Vec<f64> {
    let (mut sums, mut count) = (vec![0.0; 2 * coordinates.len()], 0);
    for rows in chains {
        count += rows.len() / dim;
        add_up(rows, dim, &mut sums, |row, out| {
            for (&(c, on_circle), out) in coordinates.iter().zip(out.chunks_exact_mut(2)) {
                let (a, b) = if on_circle { sin_cos(row[c]) } else { (row[c], 0.0) };
                out.copy_from_slice(&[a, b]);
            }
        });
    }
    let mean = |(sums, &(_, on_circle)): (&[f64], &(usize, bool))| match on_circle {
        true => one::atan2(sums[0], sums[1]),
        false => sums[0] / count as f64,
    };
    sums.chunks_exact(2).zip(coordinates).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_the_bits_of_one_thread() {
        let rows: Vec<f64> = (0..3 * 1500).map(|i| (f64::from(i) * 0.37).sin() * 1e3).collect();
        let mut expected = [0.0; 2];
        for row in rows.chunks(3) {
            expected[0] += row[0] * row[1];
            expected[1] += row[2];
        }
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut sums = [0.0; 2];
            pool.install(|| {
                add_up(&rows, 3, &mut sums, |row, out| out.copy_from_slice(&[row[0] * row[1], row[2]]));
            });
            assert_eq!(sums, expected);
        }
    }

    #[test]
    fn means_of_angles_know_no_cut() {
        let about = [3.1, -3.1, 3.13, -3.13];
        let found = means([&about[..2], &about[2..]].into_iter(), 1, &[(0, true)]);
        assert!((found[0].abs() - std::f64::consts::PI).abs() < 1e-12);
        assert!(means([&about[..]].into_iter(), 1, &[(0, false)])[0].abs() < 1e-12);
    }
}
