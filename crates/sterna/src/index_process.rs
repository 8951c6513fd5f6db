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
    legs: Legs,
    chain_of_replica: Vec<usize>,
    replica_of_chain: Vec<usize>,
    direction: Vec<i8>,
    journey: Vec<Journey>,
    round_trips: [u64; 2],
}

/// Where the target lies in a ladder, and how often what lies beyond it moves.
///
/// With one leg the target is the last chain. With two it lies between its reference (chain 0) and an anchor (the last
/// chain), and the leg to the anchor may rest: it moves in every so many iterations, an odd number, so that its pairs
/// still take turns and never meet a swap of the first leg at the target.
///
/// ```
/// use sterna::Legs;
/// let legs = Legs::new(6, 2).resting(3);
/// assert_eq!(legs.pairs(3).collect::<Vec<_>>(), [1, 3, 5]);
/// assert_eq!(legs.pairs(4).collect::<Vec<_>>(), [2]);
/// assert!(legs.moves(3, 5) && !legs.moves(4, 5) && legs.moves(4, 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Legs {
    chains: usize,
    target: usize,
    every: u64,
    /// Where the first leg is one pair: its target makes local moves in every so many iterations; 0 where it has turns.
    alone: u64,
}

impl Legs {
    /// So many chains, one of them the target.
    ///
    /// # Panics
    /// If there is no such chain.
    pub fn new(chains: usize, target: usize) -> Self {
        assert!(target < chains);
        Self { chains, target, every: 1, alone: 0 }
    }

    /// The leg beyond the target moves in every so many iterations, one more where that is even.
    pub fn resting(self, every: u64) -> Self {
        Self { every: every.max(1) | 1, ..self }
    }

    /// A first leg of one pair is proposed in every iteration in which no other pair moves, instead of every second one: there
    /// is none to take turns with. The target then makes local moves in one of so many iterations: swaps bring it new draws.
    ///
    /// ```
    /// use sterna::Legs;
    /// let legs = Legs::new(4, 1).resting(3).with_no_idle_turns(2);
    /// let pairs = |t| legs.pairs(t).collect::<Vec<_>>();
    /// assert_eq!([pairs(1), pairs(2), pairs(3), pairs(6)], [vec![1], vec![1], vec![1, 3], vec![2]]);
    /// assert!(legs.explores(2, 1) && !legs.explores(3, 1) && legs.explores(3, 0) && legs.explores(3, 2));
    /// ```
    pub fn with_no_idle_turns(self, moves_in_one_of: u64) -> Self {
        Self { alone: if self.target == 1 { moves_in_one_of.max(1) } else { 0 }, ..self }
    }

    /// Chain of the target.
    pub fn target(&self) -> usize {
        self.target
    }

    /// The leg beyond the target moves in every so many iterations.
    pub fn every(&self) -> u64 {
        self.every
    }

    /// How often a pair of the first leg is proposed in two iterations: twice where it is alone.
    pub fn turns(&self) -> u64 {
        if self.alone > 0 { 2 } else { 1 }
    }

    /// A target that is alone with its reference makes local moves in one of so many iterations; 0 where it is not.
    pub fn alone(&self) -> u64 {
        self.alone
    }

    /// Number of legs.
    pub fn count(&self) -> usize {
        if self.target + 1 < self.chains { 2 } else { 1 }
    }

    /// Whether a chain is an end of the ladder other than the target: there a replica starts anew.
    pub fn is_reference(&self, chain: usize) -> bool {
        chain == 0 || (chain + 1 == self.chains && self.count() == 2)
    }

    /// Whether a chain moves in an iteration.
    pub fn moves(&self, iteration: u64, chain: usize) -> bool {
        chain <= self.target || iteration.is_multiple_of(self.every)
    }

    /// Whether a chain makes local moves in an iteration, or draws anew where it is a reference.
    pub fn explores(&self, iteration: u64, chain: usize) -> bool {
        let waits = self.alone > 1 && chain == self.target && !iteration.is_multiple_of(self.alone);
        self.moves(iteration, chain) && !waits
    }

    /// Pairs that are proposed at an iteration.
    pub fn pairs(&self, iteration: u64) -> impl Iterator<Item = usize> + use<> {
        let all = iteration.is_multiple_of(self.every) && self.count() == 2;
        let turn = if self.alone > 0 && !all { 1 } else { iteration };
        even_odd(turn, if all { self.chains - 1 } else { self.target })
    }

    /// Pairs n − 1 of a leg, counted from 0.
    pub fn pairs_of(&self, leg: usize) -> std::ops::Range<usize> {
        if leg == 0 { 0..self.target } else { self.target..self.chains - 1 }
    }

    fn is_sound(&self, chains: usize) -> bool {
        self.chains == chains
            && self.target > 0
            && self.target < chains
            && self.every % 2 == 1
            && (self.alone == 0 || self.target == 1)
    }
}

/// What a replica is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Journey {
    /// Its first arrival at a reference.
    Start,
    /// The target, having come from the reference of this leg.
    ToTarget(u8),
    /// A reference again.
    ToReference(u8),
}

/// Pairs n ∈ 1..=N that are proposed at an iteration: n ≡ t mod 2 (Algorithm 1, line 4).
pub fn even_odd(iteration: u64, n_pairs: usize) -> impl Iterator<Item = usize> {
    let first = if iteration.is_multiple_of(2) { 2 } else { 1 };
    (first..=n_pairs).step_by(2)
}

impl IndexProcess {
    /// A ladder of one leg. I₀ is the identity; even replicas are heading up, since iteration 1 proposes odd pairs.
    pub fn new(chains: usize) -> Self {
        Self::of(Legs::new(chains, chains - 1))
    }

    /// A ladder of such legs.
    pub fn of(legs: Legs) -> Self {
        let chains = legs.chains;
        Self {
            legs,
            chain_of_replica: (0..chains).collect(),
            replica_of_chain: (0..chains).collect(),
            direction: (0..chains).map(|m| if m % 2 == 0 { 1 } else { -1 }).collect(),
            journey: vec![Journey::Start; chains],
            round_trips: [0; 2],
        }
    }

    /// Whether this is a permutation of so many chains: a file may claim anything.
    pub(crate) fn is_sound(&self, chains: usize) -> bool {
        let lengths = [self.replica_of_chain.len(), self.direction.len(), self.journey.len()];
        self.chain_of_replica.len() == chains
            && self.legs.is_sound(chains)
            && self.round_trips.iter().all(|&trips| trips < crate::records::MOST_COUNTED / 2)
            && lengths == [chains; 3]
            && self.direction.iter().all(|d| d.abs() == 1)
            && self.journey.iter().all(|journey| match journey {
                Journey::Start => true,
                Journey::ToTarget(leg) | Journey::ToReference(leg) => usize::from(*leg) < self.legs.count(),
            })
            && self.chain_of_replica.iter().enumerate().all(|(replica, &chain)| {
                self.replica_of_chain.get(chain).is_some_and(|&back| back == replica)
            })
    }

    /// Where the target lies, and what rests.
    pub fn legs(&self) -> Legs {
        self.legs
    }

    /// The leg beyond the target moves in every so many iterations from now on, and a target that is alone with its reference in
    /// one of so many.
    pub(crate) fn rest(&mut self, every: u64, alone: u64) {
        self.legs = self.legs.resting(every).with_no_idle_turns(alone);
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

    /// Round trips completed since the beginning: from a reference to the target and back to one.
    pub fn round_trips(&self) -> u64 {
        self.round_trips.iter().sum()
    }

    /// Those that began at the reference of a leg.
    pub fn round_trips_of(&self, leg: usize) -> u64 {
        self.round_trips[leg]
    }

    /// Applies the swaps of an iteration: `accepted(n)` says whether pair n was swapped.
    pub fn advance(&mut self, iteration: u64, mut accepted: impl FnMut(usize) -> bool) {
        // A replica that does not move turns round; the accepted pairs turn back below. Those that rest wait.
        for (direction, &chain) in self.direction.iter_mut().zip(&self.chain_of_replica) {
            if self.legs.moves(iteration, chain) {
                *direction = -*direction;
            }
        }
        for pair in self.legs.pairs(iteration) {
            if accepted(pair) {
                self.replica_of_chain.swap(pair - 1, pair);
                for chain in [pair - 1, pair] {
                    let replica = self.replica_of_chain[chain];
                    self.chain_of_replica[replica] = chain;
                    self.direction[replica] = -self.direction[replica];
                }
            }
        }
        self.count_arrivals();
    }

    /// Round trips go from a reference to the target and back to a reference.
    fn count_arrivals(&mut self) {
        let Legs { chains, target, .. } = self.legs;
        let at_target = self.replica_of_chain[target];
        if let Journey::ToTarget(from) = self.journey[at_target] {
            self.journey[at_target] = Journey::ToReference(from);
        }
        for (leg, chain, direction) in [(0, 0, -1), (1, chains - 1, 1)].into_iter().take(self.legs.count()) {
            let replica = self.replica_of_chain[chain];
            // A pair that takes no turns has no direction to keep.
            if self.direction[replica] == direction || self.legs.alone > 0 {
                match self.journey[replica] {
                    Journey::ToReference(from) => {
                        self.round_trips[usize::from(from)] += 1;
                        self.journey[replica] = Journey::ToTarget(leg);
                    }
                    // From another reference, perhaps, without having met the target.
                    Journey::Start | Journey::ToTarget(_) => self.journey[replica] = Journey::ToTarget(leg),
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
