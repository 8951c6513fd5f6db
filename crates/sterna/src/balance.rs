//! How many local moves a chain makes between two swaps: as many as bring most independent draws of the target for the work.
//!
//! **The model.** A replica goes up and down the ladder, turning back where a swap is rejected, as often as rejection rates say
//! (App. A). Local moves on chain n leave a part of a quantity's autocorrelation, those of chain 0 nothing where it draws anew. So
//! the autocorrelation of the target's chain after t iterations is the chance that the replica of then is there again, times
//! what moves on its way have left; summed over t it is two linear recursions along the ladder, solved from chain 0 upwards.
//! What m moves leave is measured on rows that stayed on a chain for so many iterations, and not extrapolated: between two modes
//! the first move leaves little of what is fast, and a hundred leave all of what is slow.
//!
//! It is a model: swaps are taken to be rejected independently of what moves did. It only chooses how much work is done where,
//! from numbers that are counted and not timed; draws are right whatever it says.

use crate::lanes::one;

/// What tuning has seen of moves and swaps of the first leg.
///
/// ```
/// use sterna::balance::Balance;
/// // Hardly a swap passes; a move at the target leaves 0.9 of what is slow, and each further one as much of the rest.
/// let balance = |left: f64| Balance {
///     rejections: vec![0.99; 3],
///     left: vec![vec![vec![0.0]], vec![vec![0.4]], vec![vec![0.6]], (0..4).map(|k| vec![left.powi(1 << k)]).collect()],
///     shares: vec![0.0, 1.0, 1.0, 1.0],
///     alone: false,
///     fixed: 1.0,
///     each: 5.0,
/// };
/// assert_eq!(balance(0.1).best(&[1; 4]), [1; 4]);
/// let slow = balance(0.9);
/// let moves = slow.best(&[1; 4]);
/// assert!(moves[3] > 1 && slow.work_of_a_draw(&moves) < slow.work_of_a_draw(&[1; 4]));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Balance {
    /// Rejection rate of each pair.
    pub rejections: Vec<f64>,
    /// What is left of autocorrelations on each chain, after 1, 2, 4, … moves as far as that is known, of each quantity.
    pub left: Vec<Vec<Vec<f64>>>,
    /// The share of iterations in which each chain makes local moves.
    pub shares: Vec<f64>,
    /// Whether the only pair is proposed in every iteration.
    pub alone: bool,
    /// Evaluations of an iteration that are none of local moves.
    pub fixed: f64,
    /// Evaluations of a local move.
    pub each: f64,
}

/// A gain that is not an accident of what a round has seen.
const WORTH_IT: f64 = 0.85;
/// What an iteration may cost of what it costs with one move on each chain: draws of local moves alone know nothing of modes that
/// only round trips find. More where the target is alone with its reference and mostly rests.
const MOST_WORK: f64 = 2.0;
const MOST_WORK_ALONE: f64 = 4.0;
/// Less than this is not worth looking further.
const LITTLE: f64 = 0.98;
/// Quantities that are looked at: the slowest ones.
const MOST_QUANTITIES: usize = 32;

impl Balance {
    /// Moves of each chain; chains beyond those of the first leg keep what they have.
    pub fn best(&self, present: &[u32]) -> Vec<u32> {
        let chains = self.left.len();
        let once = vec![1; chains];
        let mut out: Vec<u32> = present.to_vec();
        let slowest = self.slowest(&once);
        let alone = slowest.work_of_a_draw(&once);
        let (mut moves, mut work) = (once, alone);
        while let Some(better) = slowest.step(&moves).filter(|(_, less)| *less < LITTLE * work) {
            (moves, work) = better;
        }
        // What is no number is no gain.
        let pays = work < WORTH_IT * alone;
        if !pays {
            moves.fill(1);
        }
        out[..chains].copy_from_slice(&moves);
        out
    }

    /// The best of what doubles the moves of one chain, or of one and all beyond it.
    fn step(&self, moves: &[u32]) -> Option<(Vec<u32>, f64)> {
        let chains = moves.len();
        let doubled = |which: std::ops::Range<usize>| {
            // What is not known of more moves is not tried.
            let known = |n: usize, m: u32| self.left[n].len() > m.ilog2() as usize;
            let double = |(n, &m): (usize, &u32)| {
                if which.contains(&n) && known(n, 2 * m) { 2 * m } else { m }
            };
            moves.iter().enumerate().map(double).collect::<Vec<_>>()
        };
        let most_work = if self.alone { MOST_WORK_ALONE } else { MOST_WORK } * self.work(&vec![1; chains]);
        let ways = (0..chains).flat_map(|n| [doubled(n..n + 1), doubled(n..chains)]);
        let bounded = ways.filter(|moves| self.work(moves) <= most_work);
        let weighed = bounded.map(|moves| (self.work_of_a_draw(&moves), moves));
        weighed.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(work, moves)| (moves, work))
    }

    /// Evaluations for an independent draw of the slowest quantity.
    pub fn work_of_a_draw(&self, moves: &[u32]) -> f64 {
        let quantities = self.quantities();
        let slowest = (0..quantities).map(|k| self.time(moves, k)).fold(1.0, f64::max);
        slowest * self.work(moves)
    }

    /// Evaluations of an iteration.
    fn work(&self, moves: &[u32]) -> f64 {
        let local: f64 = moves.iter().zip(&self.shares).map(|(&m, share)| f64::from(m) * share).sum();
        self.fixed + self.each * local
    }

    /// The same of the slowest quantities alone.
    fn slowest(&self, moves: &[u32]) -> Self {
        let quantities = self.quantities();
        let mut all: Vec<(f64, usize)> = (0..quantities).map(|k| (self.time(moves, k), k)).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let few = |all_left: &Vec<f64>| all.iter().take(MOST_QUANTITIES).map(|&(_, k)| all_left[k]).collect();
        let of_chain = |lags: &Vec<Vec<f64>>| lags.iter().map(few).collect();
        Self { left: self.left.iter().map(of_chain).collect(), ..self.clone() }
    }

    fn quantities(&self) -> usize {
        self.left.first().and_then(|lags| lags.first()).map_or(0, Vec::len)
    }

    /// Iterations between independent draws of a quantity: 1 + 2 Σ autocorrelations of the target's chain.
    fn time(&self, moves: &[u32], quantity: usize) -> f64 {
        let target = self.left.len() - 1;
        let left = |n: usize| match self.left[n][moves[n].ilog2() as usize][quantity] {
            left if self.shares[n] > 0.0 => one::power(left, self.shares[n]),
            left => left,
        };
        if self.alone {
            let stays = left(target) * self.rejections[0];
            return 1.0 + 2.0 * stays / (1.0 - stays);
        }
        // Expected visits to the target, each weighted by what is left of the quantity: `down` for a replica on its way
        // down, up for one on its way up. Below the chain that has been reached, down = a + b up.
        let (mut a, mut b) = (0.0, left(0));
        for n in 1..=target {
            let (r, below) = (self.rejections[n - 1], left(n - 1));
            let there = if n == target { 1.0 } else { 0.0 };
            // up of the chain below = alpha + beta up.
            let whole = 1.0 - below * r * b;
            let (alpha, beta) = (below * ((1.0 - r) * there + r * a) / whole, below * (1.0 - r) / whole);
            let here = left(n);
            (a, b) = (here * ((1.0 - r) * (a + b * alpha) + r * there), here * ((1.0 - r) * b * beta + r));
        }
        let here = left(target);
        let up = here * (1.0 + a) / (1.0 - here * b);
        1.0 + up + (a + b * up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    fn balance(rejections: &[f64], left: &[f64]) -> Balance {
        Balance {
            rejections: rejections.to_vec(),
            left: left.iter().map(|left| (0..5).map(|k| vec![left.powi(1 << k)]).collect()).collect(),
            shares: vec![1.0; left.len()],
            alone: false,
            fixed: 1.0,
            each: 1.0,
        }
    }

    #[test]
    fn the_recursions_are_a_walk_along_the_ladder() {
        let (rejections, left) = ([0.3, 0.5, 0.2], [0.0, 0.7, 0.8, 0.95]);
        let balance = balance(&rejections, &left);
        let mut stream = Streams::new(1).row(Phase::Exact, 0, 0);
        let (walks, mut sum, mut squares) = (40_000, 0.0, 0.0);
        for walk in 0..walks {
            let (mut chain, mut up) = (3usize, walk % 2 == 0);
            let (mut weight, mut visits) = (1.0, 0.0);
            while weight > 1e-6 {
                weight *= left[chain];
                let pair = if up { chain + 1 } else { chain };
                if (1..=3).contains(&pair) && stream.uniform() >= rejections[pair - 1] {
                    chain = if up { chain + 1 } else { chain - 1 };
                } else {
                    up = !up;
                }
                visits += if chain == 3 { weight } else { 0.0 };
            }
            sum += visits;
            squares += visits * visits;
        }
        let mean = sum / f64::from(walks);
        let error = 2.0 * ((squares / f64::from(walks) - mean * mean) / f64::from(walks)).sqrt();
        let time = balance.time(&[1; 4], 0);
        assert!(
            (time - (1.0 + 2.0 * mean)).abs() < 5.0 * error,
            "{time} is not {} ± {error}",
            1.0 + 2.0 * mean
        );
    }

    #[test]
    fn moves_are_made_where_they_pay() {
        // Two modes: local moves never leave one, whatever they cost.
        let modes = balance(&[0.5; 4], &[0.0, 0.2, 0.9, 0.9999, 0.9999]);
        assert_eq!(modes.best(&[1; 5]), [1; 5]);
        // Swaps bring little, and moves at the target are all there is.
        let far = balance(&[0.99; 4], &[0.0, 0.5, 0.5, 0.5, 0.9]);
        let moves = far.best(&[1; 6]);
        assert!(moves[4] >= 4 && moves[..4].iter().all(|&m| m == 1) && moves[5] == 1, "{moves:?}");
        assert!(far.work_of_a_draw(&moves[..5]) < 0.5 * far.work_of_a_draw(&[1; 5]));
        // What is not known changes nothing.
        let unknown = balance(&[f64::NAN; 4], &[0.5; 5]);
        assert_eq!(unknown.best(&[1; 5]), [1; 5]);
    }
}
