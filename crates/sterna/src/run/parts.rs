//! How ladders are cut into the parts that threads share out.

use crate::exchange::{Exchange, ladders_moved_by};
use crate::path::AnnealingPath;

/// Coordinates of ladders that a thread advances side by side: all that a run keeps of their points then stays in a core's cache.
const COORDINATES_AT_ONCE: usize = 1 << 15;

/// How many ladders of so many chains a thread advances side by side.
pub(super) fn ladders_at_once(path: &dyn AnnealingPath, chains: usize) -> usize {
    match path.takes_blocks(chains) {
        true => (COORDINATES_AT_ONCE / (chains * path.dim()).max(1)).max(1),
        false => usize::MAX,
    }
}

/// How ladders are cut: each thread has as many parts, of at most so many ladders; those of other ranks stay in one piece before,
/// and one after.
pub(super) fn parts(ensembles: usize, at_once: usize, exchange: &dyn Exchange) -> Vec<usize> {
    let own = ladders_moved_by(exchange.rank(), exchange.ranks(), ensembles);
    let threads = rayon::current_num_threads();
    let parts = own.len().div_ceil(at_once).next_multiple_of(threads).min(own.len());
    let of_threads = (0..parts).map(|part| own.len() * (part + 1) / parts - own.len() * part / parts);
    let all = [own.start].into_iter().chain(of_threads).chain([ensembles - own.end]);
    all.filter(|copies| *copies > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Alone;
    use crate::paths::Geometric;
    use crate::targets::ManyWell;

    #[test]
    fn large_ladders_are_advanced_one_by_one_and_small_ones_side_by_side() {
        let (large, small) = (ManyWell::new(3200), ManyWell::new(32));
        let [large, small] = [large, small].map(Geometric::from_standard_normal);
        assert_eq!((ladders_at_once(&large, 30), ladders_at_once(&small, 30)), (1, 34));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let cut = |ensembles, at_once| pool.install(|| parts(ensembles, at_once, &Alone));
        assert_eq!(cut(8, usize::MAX), [2, 3, 3]);
        assert_eq!(cut(2, usize::MAX), [1, 1]);
        assert_eq!(cut(4, 1), [1; 4]);
        assert_eq!(cut(8, 2), [1, 1, 2, 1, 1, 2]);
    }
}
