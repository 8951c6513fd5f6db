//! Which replica sits on which chain, where it is heading, and its round trips (App. A, errata E3).

/// Replicas' chains, directions and round trips in one ladder.
///
/// ```
/// use sterna::IndexProcess;
/// // When every swap is accepted each replica needs 2·chains iterations for a round trip.
/// let mut index = IndexProcess::new(5);
/// for iteration in 1..=1000 {
///     index.advance(iteration, |_pair| true);
/// }
/// // The first arrival at the reference starts the count.
/// assert_eq!(index.round_trips(), 5 * 99);
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct IndexProcess {
    chain_of_replica: Vec<usize>,
    replica_of_chain: Vec<usize>,
    direction: Vec<i8>,
    leg: Vec<Leg>,
    round_trips: u64,
}

/// What a replica is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Leg {
    /// Its first arrival at the reference.
    Start,
    /// The target.
    Up,
    /// The reference again.
    Down,
}

/// Pairs n ∈ 1..=N that are proposed at an iteration: n ≡ t mod 2 (Algorithm 1, line 4).
pub fn even_odd(iteration: u64, n_pairs: usize) -> impl Iterator<Item = usize> {
    let first = if iteration.is_multiple_of(2) { 2 } else { 1 };
    (first..=n_pairs).step_by(2)
}

impl IndexProcess {
    /// I₀ is the identity; even replicas are heading up, since iteration 1 proposes odd pairs.
    pub fn new(chains: usize) -> Self {
        Self {
            chain_of_replica: (0..chains).collect(),
            replica_of_chain: (0..chains).collect(),
            direction: (0..chains).map(|m| if m % 2 == 0 { 1 } else { -1 }).collect(),
            leg: vec![Leg::Start; chains],
            round_trips: 0,
        }
    }

    /// Whether this is a permutation of so many chains: a file may claim anything.
    pub(crate) fn is_sound(&self, chains: usize) -> bool {
        let lengths = [self.replica_of_chain.len(), self.direction.len(), self.leg.len()];
        self.chain_of_replica.len() == chains
            && self.round_trips < crate::records::MOST_COUNTED
            && lengths == [chains; 3]
            && self.direction.iter().all(|d| d.abs() == 1)
            && self.chain_of_replica.iter().enumerate().all(|(replica, &chain)| {
                self.replica_of_chain.get(chain).is_some_and(|&back| back == replica)
            })
    }

    /// Chain of replica m.
    pub fn chain(&self, replica: usize) -> usize {
        self.chain_of_replica[replica]
    }

    /// Replica on chain n.
    pub fn replica(&self, chain: usize) -> usize {
        self.replica_of_chain[chain]
    }

    /// ε of replica m: +1 towards the target.
    pub fn direction(&self, replica: usize) -> i8 {
        self.direction[replica]
    }

    /// Round trips completed since the beginning.
    pub fn round_trips(&self) -> u64 {
        self.round_trips
    }

    /// Applies the swaps of an iteration: `accepted(n)` says whether pair n was swapped.
    pub fn advance(&mut self, iteration: u64, mut accepted: impl FnMut(usize) -> bool) {
        let last = self.chain_of_replica.len() - 1;
        // A replica that does not move turns round; the accepted pairs turn back below.
        for direction in &mut self.direction {
            *direction = -*direction;
        }
        for pair in even_odd(iteration, last) {
            if accepted(pair) {
                self.replica_of_chain.swap(pair - 1, pair);
                for chain in [pair - 1, pair] {
                    let replica = self.replica_of_chain[chain];
                    self.chain_of_replica[replica] = chain;
                    self.direction[replica] = -self.direction[replica];
                }
            }
        }
        for (chain, direction, next) in [(0, -1, Leg::Up), (last, 1, Leg::Down)] {
            let replica = self.replica_of_chain[chain];
            if self.direction[replica] == direction {
                match (self.leg[replica], next) {
                    (Leg::Down, Leg::Up) => {
                        self.round_trips += 1;
                        self.leg[replica] = Leg::Up;
                    }
                    (Leg::Start, Leg::Up) => self.leg[replica] = Leg::Up,
                    (Leg::Up, Leg::Down) => self.leg[replica] = Leg::Down,
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// App. A written out: I and ε of one machine follow the printed recursion.
    #[test]
    fn follows_the_recursion_of_the_appendix() {
        let chains = 7;
        let mut index = IndexProcess::new(chains);
        let stream = crate::streams::Streams::new(3);
        let mut i: Vec<i64> = (0..chains as i64).collect();
        let mut epsilon: Vec<i64> = (0..chains).map(|m| if m % 2 == 0 { 1 } else { -1 }).collect();
        for t in 1..=5000 {
            let swap: Vec<bool> = (0..=chains)
                .map(|n| stream.row(crate::streams::Phase::Check, t, n as u32).uniform() < 0.6)
                .collect();
            for m in 0..chains {
                let to = i[m] + epsilon[m];
                let pair = i[m].max(to);
                let moves = (0..chains as i64).contains(&to) && swap[pair as usize];
                assert!(
                    !(0..chains as i64).contains(&to) || pair as u64 % 2 == t % 2,
                    "parity of ε is wrong"
                );
                if moves { i[m] = to } else { epsilon[m] = -epsilon[m] }
            }
            index.advance(t, |n| swap[n]);
            for m in 0..chains {
                assert_eq!((index.chain(m) as i64, i64::from(index.direction(m))), (i[m], epsilon[m]));
                assert_eq!(index.replica(index.chain(m)), m);
            }
        }
    }

    #[test]
    fn nothing_moves_when_nothing_is_accepted() {
        let mut index = IndexProcess::new(4);
        (1..100).for_each(|t| index.advance(t, |_| false));
        assert_eq!(index.round_trips(), 0);
        assert!((0..4).all(|m| index.chain(m) == m));
    }
}
