//! The schedule 0 = β₀ < β₁ < … < β_N = 1 and its tuning (App. C); with two legs it goes on to an anchor at β = 2.

use crate::lanes::one::{exp_m1, ln};
use crate::{Error, Result, transport::Interval};

/// Inverse temperatures from reference to target.
///
/// ```
/// use sterna::schedule::Schedule;
/// let schedule = Schedule::uniform(5);
/// assert_eq!(schedule.betas(), [0.0, 0.25, 0.5, 0.75, 1.0]);
/// // Half of the barrier lies in the first interval, so half of the chains move there.
/// let tuned = schedule.equalise_rejections(&[0.6, 0.2, 0.2, 0.2]);
/// assert!((tuned.betas()[2] - 0.25).abs() < 1e-12);
/// // Beyond the target a second leg leads to another reference, the anchor.
/// let both = Schedule::two_legs(&Schedule::uniform(3), &Schedule::uniform(2));
/// assert_eq!(both.betas(), [0.0, 0.5, 1.0, 2.0]);
/// assert_eq!(both.target(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Vec<f64>")]
pub struct Schedule(Vec<f64>);

impl TryFrom<Vec<f64>> for Schedule {
    type Error = Error;

    fn try_from(betas: Vec<f64>) -> Result<Self> {
        Self::new(betas)
    }
}

impl Schedule {
    /// Equally spaced.
    ///
    /// # Panics
    /// If there are fewer than two chains.
    pub fn uniform(chains: usize) -> Self {
        assert!(chains >= 2);
        Self((0..chains).map(|n| n as f64 / (chains - 1) as f64).collect())
    }

    /// Given values, which must increase strictly from 0 to 1; or, with two legs, over 1 to 2.
    pub fn new(betas: Vec<f64>) -> Result<Self> {
        let increasing = betas.windows(2).all(|w| w[0] < w[1]);
        let ends = match betas.last() {
            Some(&2.0) => betas.contains(&1.0),
            last => last == Some(&1.0),
        };
        if betas.len() > 1 && betas.first() == Some(&0.0) && ends && increasing {
            Ok(Self(betas))
        } else {
            Err(Error::Schedule(betas))
        }
    }

    /// From the first reference up to the target, and on down to the second: both are given from reference to target.
    pub fn two_legs(first: &Self, second: &Self) -> Self {
        let mut betas = first.leg(0).0;
        betas.extend(second.leg(0).0.iter().rev().skip(1).map(|beta| 2.0 - beta));
        Self(betas)
    }

    /// Legs: one, or two where there is an anchor.
    pub fn legs(&self) -> usize {
        if self.target() < self.pairs() { 2 } else { 1 }
    }

    /// The chain of the target.
    pub fn target(&self) -> usize {
        self.0.partition_point(|&beta| beta < 1.0)
    }

    /// One leg as a schedule of its own, from its reference to the target.
    ///
    /// # Panics
    /// If there is no such leg.
    pub fn leg(&self, leg: usize) -> Self {
        assert!(leg < self.legs());
        let target = self.target();
        match leg {
            0 => Self(self.0[..=target].to_vec()),
            _ => Self(self.0[target..].iter().rev().map(|beta| 2.0 - beta).collect()),
        }
    }

    /// β of each chain.
    pub fn betas(&self) -> &[f64] {
        &self.0
    }

    /// Number of chains, N + 1.
    pub fn chains(&self) -> usize {
        self.0.len()
    }

    /// Number of pairs, N.
    pub fn pairs(&self) -> usize {
        self.0.len() - 1
    }

    /// The two ends of pair n ∈ 1..=N, between chains n − 1 and n.
    pub fn interval(&self, pair: usize) -> Interval {
        Interval { lower: self.0[pair - 1], upper: self.0[pair] }
    }

    /// Algorithm 2 with errata E2: the schedule whose pairs would share the rejections equally,
    /// by a monotone curve through (barrier so far, β). Each leg keeps its chains.
    pub fn equalise_rejections(&self, rejections: &[f64]) -> Self {
        self.equalise_with(rejections, self.target() + 1)
    }

    /// The same with so many chains on the first leg, the target among them.
    pub fn equalise_with(&self, rejections: &[f64], chains: usize) -> Self {
        if self.legs() == 2 {
            let (first, second) = rejections.split_at(self.target());
            let second: Vec<f64> = second.iter().rev().copied().collect();
            return Self::two_legs(
                &self.leg(0).equalise_with(first, chains),
                &self.leg(1).equalise_rejections(&second),
            );
        }
        let rejections = usable(rejections);
        let mut barrier = vec![0.0];
        for r in &rejections {
            barrier.push(barrier.last().expect("not empty") + r);
        }
        let curve = Pchip::new(&barrier, &self.0);
        let total = barrier[self.pairs()];
        self.inverted(chains, |share| curve.at(share * total))
    }

    /// The schedule of `chains` chains with equal shares of the barrier ∫λ(β)dβ, from λ at each
    /// chain of this one. Unlike rejections, λ does not saturate where neighbours barely overlap.
    ///
    /// Between chains 1/λ is taken as linear in β, which is exact for normals. Of one leg: λ at the target is another on
    /// each side.
    pub fn equalise_barrier(&self, local_barrier: &[f64], chains: usize) -> Self {
        let lambda = usable(local_barrier);
        let barrier = cumulative_barrier(&self.0, &lambda);
        let total = barrier[self.pairs()];
        self.inverted(chains, |share| {
            let wanted = share * total;
            let n = barrier.partition_point(|&b| b < wanted).clamp(1, self.pairs());
            let Interval { lower, upper } = self.interval(n);
            let (a, b) = (1.0 / lambda[n - 1], 1.0 / lambda[n]);
            let rise = (b - a) / (upper - lower);
            let inside = wanted - barrier[n - 1];
            // ∫₀ˣ dt/(a + rise·t) = inside, solved for x.
            let x = if (b / a - 1.0).abs() < 1e-9 { a * inside } else { a / rise * exp_m1(rise * inside) };
            lower + x.clamp(0.0, upper - lower)
        })
    }

    /// As many chains as wanted along the same curve: where this schedule shares something equally, so does that.
    pub fn resized(&self, chains: usize) -> Self {
        let places: Vec<f64> = (0..self.chains()).map(|n| n as f64 / self.pairs() as f64).collect();
        let curve = Pchip::new(&places, &self.0);
        self.inverted(chains, |share| curve.at(share))
    }

    /// β at equal shares of a curve, kept strictly increasing from 0 to 1.
    fn inverted(&self, chains: usize, curve: impl Fn(f64) -> f64) -> Self {
        let last = chains - 1;
        let mut betas: Vec<f64> = (0..chains).map(|n| curve(n as f64 / last as f64)).collect();
        (betas[0], betas[last]) = (0.0, 1.0);
        for n in 1..last {
            betas[n] = betas[n].max(betas[n - 1].next_up().max(betas[n - 1] + 1e-12));
        }
        for n in (1..last).rev() {
            betas[n] = betas[n].min(betas[n + 1] - 1e-12);
        }
        Self(betas)
    }
}

/// Chains that make most round trips for their cost, across such a barrier: about half of all swaps are then accepted.
///
/// ```
/// assert_eq!(sterna::schedule::chains_for(2.2), 6);
/// ```
pub fn chains_for(barrier: f64) -> usize {
    ((2.0 * barrier).ceil() as usize).saturating_add(1)
}

/// ∫₀^{βₙ} λ at each chain, 1/λ taken as linear in between.
pub fn cumulative_barrier(betas: &[f64], local_barrier: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0];
    for n in 1..betas.len() {
        let (p, q) = (local_barrier[n - 1], local_barrier[n]);
        let mean = if (p / q - 1.0).abs() < 1e-9 { 0.5 * (p + q) } else { p * q * ln(p / q) / (p - q) };
        out.push(out[n - 1] + (betas[n] - betas[n - 1]) * mean);
    }
    out
}

/// Barrier estimates without NaN and exact zeros: an unknown one counts like the largest known, a
/// vanishing one as a thousandth of the mean, so every interval keeps a share.
fn usable(values: &[f64]) -> Vec<f64> {
    let finite = || values.iter().copied().filter(|v| v.is_finite() && *v >= 0.0);
    let largest = finite().fold(0.0, f64::max);
    if largest == 0.0 {
        return vec![1.0; values.len()];
    }
    let mean = finite().sum::<f64>() / finite().count() as f64;
    let fix = |v: &f64| if v.is_finite() && *v >= 0.0 { v.max(1e-3 * mean) } else { largest };
    values.iter().map(fix).collect()
}

/// Monotone piecewise cubic interpolation (Fritsch and Butland's slopes, as in SciPy).
pub struct Pchip {
    x: Vec<f64>,
    y: Vec<f64>,
    slope: Vec<f64>,
}

impl Pchip {
    /// Through points of strictly increasing `x` and increasing `y`.
    ///
    /// # Panics
    /// If there are fewer than two points.
    pub fn new(x: &[f64], y: &[f64]) -> Self {
        let n = x.len();
        assert!(n >= 2 && y.len() == n);
        let h: Vec<f64> = x.windows(2).map(|w| w[1] - w[0]).collect();
        let d: Vec<f64> = (0..n - 1).map(|i| (y[i + 1] - y[i]) / h[i]).collect();
        let mut slope = vec![d[0]; n];
        for i in 1..n - 1 {
            let (w1, w2) = (2.0 * h[i] + h[i - 1], h[i] + 2.0 * h[i - 1]);
            let same_sign = d[i - 1] * d[i] > 0.0;
            slope[i] = if same_sign { (w1 + w2) / (w1 / d[i - 1] + w2 / d[i]) } else { 0.0 };
        }
        if n > 2 {
            slope[0] = end_slope(h[0], h[1], d[0], d[1]);
            slope[n - 1] = end_slope(h[n - 2], h[n - 3], d[n - 2], d[n - 3]);
        }
        Self { x: x.to_vec(), y: y.to_vec(), slope }
    }

    /// The curve at `x`.
    pub fn at(&self, x: f64) -> f64 {
        let i = self.x.partition_point(|&k| k < x).clamp(1, self.x.len() - 1) - 1;
        let h = self.x[i + 1] - self.x[i];
        let t = (x - self.x[i]) / h;
        let (s, u) = (t * t, t * t * t);
        (2.0 * u - 3.0 * s + 1.0) * self.y[i]
            + (u - 2.0 * s + t) * h * self.slope[i]
            + (3.0 * s - 2.0 * u) * self.y[i + 1]
            + (u - s) * h * self.slope[i + 1]
    }
}

/// Three-point slope at an end, limited so that the curve stays monotone.
fn end_slope(h0: f64, h1: f64, d0: f64, d1: f64) -> f64 {
    let slope = ((2.0 * h0 + h1) * d0 - h0 * d1) / (h0 + h1);
    if slope * d0 <= 0.0 {
        0.0
    } else if d0 * d1 <= 0.0 && slope.abs() > 3.0 * d0.abs() {
        3.0 * d0
    } else {
        slope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pchip_agrees_with_scipy() {
        // scipy.interpolate.PchipInterpolator([0, 1, 2.5, 3, 5], [0, 0.1, 2, 2.5, 2.6])([0.3, 1.7, 2.9, 4.2])
        let curve = Pchip::new(&[0.0, 1.0, 2.5, 3.0, 5.0], &[0.0, 0.1, 2.0, 2.5, 2.6]);
        let expected = PCHIP_FROM_SCIPY;
        for (x, y) in [0.3, 1.7, 2.9, 4.2].into_iter().zip(expected) {
            assert!((curve.at(x) - y).abs() < 1e-14, "{x}: {} {y}", curve.at(x));
        }
    }
    const PCHIP_FROM_SCIPY: [f64; 4] =
        [0.010_550_769_230_769_233, 0.799_087_407_407_407_2, 2.458_096_601_073_345, 2.587_125_581_395_349];

    #[test]
    fn tuning_survives_zeros_ones_and_nan() {
        let schedule = Schedule::uniform(6);
        for rejections in
            [[0.0; 5], [1.0; 5], [f64::NAN; 5], [0.0, 1.0, f64::NAN, 1e-300, 1.0], [1.0, 0.0, 0.0, 0.0, 0.0]]
        {
            let tuned = schedule.equalise_rejections(&rejections);
            assert!(Schedule::new(tuned.betas().to_vec()).is_ok(), "{rejections:?}: {tuned:?}");
        }
        for lambda in [
            [0.0; 6],
            [f64::NAN; 6],
            [1e9, 0.0, 1e-9, f64::INFINITY, 3.0, 2.0],
            [1e300, 1.0, 1.0, 1.0, 1.0, 1.0],
        ] {
            for chains in [2, 6, 40] {
                let tuned = schedule.equalise_barrier(&lambda, chains);
                assert!(Schedule::new(tuned.betas().to_vec()).is_ok(), "{lambda:?}: {tuned:?}");
            }
        }
    }

    #[test]
    fn equal_rejections_leave_the_schedule_alone() {
        let schedule = Schedule::new(vec![0.0, 0.1, 0.4, 0.55, 1.0]).unwrap();
        for (a, b) in schedule.equalise_rejections(&[0.3; 4]).betas().iter().zip(schedule.betas()) {
            assert!((a - b).abs() < 1e-12);
        }
    }

    #[test]
    fn rejections_are_shared_by_any_number_of_chains() {
        let schedule = Schedule::uniform(5);
        for chains in 2..9 {
            let other = schedule.equalise_with(&[0.2; 4], chains);
            assert_eq!(other.chains(), chains);
            for (a, b) in other.betas().iter().zip(Schedule::uniform(chains).betas()) {
                assert!((a - b).abs() < 1e-12);
            }
        }
        let both = Schedule::two_legs(&schedule, &Schedule::uniform(3));
        let other = both.equalise_with(&[0.2, 0.2, 0.2, 0.2, 0.4, 0.4], 3);
        assert_eq!((other.target(), other.leg(1)), (2, both.leg(1)));
    }

    #[test]
    fn normal_barriers_are_split_exactly_at_once() {
        // λ(β) = c/(a + β): equal shares are β with geometric a + β.
        let a = 1.0 / 1600.0;
        let schedule = Schedule::uniform(4);
        let lambda: Vec<f64> = schedule.betas().iter().map(|b| 2.0 / (a + b)).collect();
        let tuned = schedule.equalise_barrier(&lambda, 7);
        for (n, beta) in tuned.betas().iter().enumerate() {
            let exact = a * (1.0 + 1.0 / a).powf(n as f64 / 6.0) - a;
            assert!((beta - exact).abs() < 1e-9, "{n}: {beta} {exact}");
        }
    }

    #[test]
    fn bad_schedules_are_refused() {
        for betas in
            [vec![0.0, 0.5, 0.5, 1.0], vec![0.1, 1.0], vec![0.0, 0.9], vec![0.0, f64::NAN, 1.0], vec![]]
        {
            assert!(Schedule::new(betas).is_err());
        }
    }
}
