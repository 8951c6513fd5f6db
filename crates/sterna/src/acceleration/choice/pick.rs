//! Which way carries which pair: the mixture whose draws cost least.

/// A way to carry the swaps of a pair, as held-out samples show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Way {
    /// r/(1 − r).
    pub odds: f64,
    /// What an iteration's journeys cost, in evaluations of the target.
    pub cost: f64,
}

impl Way {
    /// Of a rejection rate.
    pub fn new(rejection: f64, cost: f64) -> Self {
        // A rate that held-out samples call one is not known to be.
        let r = rejection.clamp(0.0, 0.999);
        Self { odds: r / (1.0 - r), cost }
    }
}

/// A leg without its swaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Leg {
    /// Iterations of a round trip beyond those that swaps take.
    pub idle: f64,
    /// Effective draws of an iteration that need no round trip.
    pub local: f64,
    /// What local moves and exact draws cost in an iteration in which it moves, in evaluations of the target.
    pub cost: f64,
}

impl Leg {
    /// Iterations of a round trip: 2 + 2 Σ r/(1 − r), and those that local moves take.
    fn iterations(&self, ways: &[Vec<Way>], of_pair: &[usize]) -> f64 {
        2.0 + 2.0 * ways.iter().zip(of_pair).map(|(ways, &way)| ways[way].odds).sum::<f64>() + self.idle
    }

    /// What an iteration costs in which it moves.
    pub fn each(&self, ways: &[Vec<Way>], of_pair: &[usize]) -> f64 {
        self.cost + ways.iter().zip(of_pair).map(|(ways, &way)| ways[way].cost).sum::<f64>()
    }

    /// Draws of an iteration: those that round trips bring, and those that local moves do.
    pub fn draws(&self, ways: &[Vec<Way>], of_pair: &[usize]) -> f64 {
        self.local + self.iterations(ways, of_pair).recip()
    }

    /// What a draw costs.
    fn bill(&self, ways: &[Vec<Way>], of_pair: &[usize]) -> f64 {
        self.each(ways, of_pair) / self.draws(ways, of_pair)
    }

    /// The mixture with the least bill: `ways[pair][way]`, in which all pairs have as many. From each way for all pairs,
    /// single pairs change as long as that lowers the bill; a tie goes to what comes first.
    pub fn best(&self, ways: &[Vec<Way>]) -> Vec<usize> {
        let count = ways.first().map_or(0, Vec::len);
        let settled = (0..count).map(|way| self.settled(ways, vec![way; ways.len()]));
        let better = |best: Vec<usize>, other: Vec<usize>| {
            if self.bill(ways, &other) < self.bill(ways, &best) { other } else { best }
        };
        settled.reduce(better).unwrap_or_default()
    }

    fn settled(&self, ways: &[Vec<Way>], mut of_pair: Vec<usize>) -> Vec<usize> {
        let mut least = self.bill(ways, &of_pair);
        loop {
            let mut changed = false;
            for (pair, own) in ways.iter().enumerate() {
                for way in 0..own.len() {
                    let before = std::mem::replace(&mut of_pair[pair], way);
                    let bill = self.bill(ways, &of_pair);
                    if bill < least {
                        (least, changed) = (bill, true);
                    } else {
                        of_pair[pair] = before;
                    }
                }
            }
            if !changed {
                return of_pair;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEG: Leg = Leg { idle: 3.0, local: 0.0, cost: 10.0 };

    /// Ways of four pairs with rejections and costs of every kind.
    fn ways() -> Vec<Vec<Way>> {
        let rejections = [[0.9, 0.4, 0.1], [0.2, 0.19, 0.18], [0.6, 0.7, 0.05], [0.97, 0.9, 0.3]];
        rejections.iter().map(|r| (0..3).map(|k| Way::new(r[k], 1.5 * k as f64)).collect()).collect()
    }

    #[test]
    fn no_mixture_is_cheaper() {
        let ways = ways();
        let best = LEG.best(&ways);
        let all = (0..81).map(|n| [n % 3, n / 3 % 3, n / 9 % 3, n / 27]);
        let least = all.map(|mixture| LEG.bill(&ways, &mixture)).fold(f64::INFINITY, f64::min);
        assert_eq!(LEG.bill(&ways, &best), least);
        // A pair that is hardly rejected is not worth an evaluation; the worst ones are.
        assert_eq!(best[1], 0);
        assert!(best[0] > 0 && best[3] > 0);
    }

    #[test]
    fn what_gains_nothing_is_plain() {
        let alike = vec![vec![Way::new(0.3, 0.0), Way::new(0.3, 0.0), Way::new(0.3, 1.0)]; 3];
        assert_eq!(LEG.best(&alike), [0, 0, 0]);
        assert!(LEG.best(&[]).is_empty());
        // Where local moves take nearly all the time, swaps have little to give.
        let ways = vec![vec![Way::new(0.5, 0.0), Way::new(0.0, 1.0)]];
        assert_eq!(Leg { idle: 0.0, ..LEG }.best(&ways), [1]);
        assert_eq!(Leg { idle: 1000.0, ..LEG }.best(&ways), [0]);
        assert_eq!(Leg { local: 10.0, ..LEG }.best(&ways), [0]);
    }
}
