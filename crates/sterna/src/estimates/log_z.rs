//! log Z over path weights (§3.2, Proposition 1).
//!
//! With K = 0 these are free-energy perturbation; with a deterministic transport, targeted
//! free-energy perturbation; with Langevin steps, Jarzynski's equality; with a drift as well, the
//! escorted equality. One code serves all of them.

use super::bar::{Bar, Weighted, bar_of};
use super::crooks::{Crooks, crooks_of};
use super::folded::{FoldedLadder, LogSum, add_influence};
use super::series::long_run_variance;
use crate::lanes::one::{exp, ln};

/// Path weights of one pair in one ladder, in order of time.
pub type Works<'a> = (&'a [f64], &'a [f64]);

/// What the weights of one pair say of log Zₙ/Zₙ₋₁.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairEstimate {
    /// From forward paths alone.
    pub forward: f64,
    /// From backward paths alone.
    pub backward: f64,
    /// From both, by Bennett's acceptance ratio.
    pub bar: Bar,
    /// Where forward and backward weights cross.
    pub crooks: Crooks,
    /// Share of forward paths that end where there is a density. Backward paths begin there alone: of what they cannot see their
    /// weights know nothing, and `backward` is too high by −log of this share.
    pub alive: f64,
}

/// Estimates of log Z.
#[derive(Clone, Debug, PartialEq)]
pub struct LogZ {
    /// log of Π mean w over forward paths.
    pub forward: f64,
    /// −log of Π mean 1/w over backward paths.
    pub backward: f64,
    /// Mean of the two: the paper's Ẑ.
    pub geometric_mean: f64,
    /// Σ of Bennett's acceptance ratios; NaN where those of some pair do not overlap.
    pub bar: f64,
    /// Of `bar`, with autocorrelation and the correlation between pairs.
    pub standard_error: f64,
    /// What is to be taken off `backward` before it is held against `forward`: the logarithm of what backward paths cannot see.
    pub unseen: f64,
    /// Pair by pair.
    pub pairs: Vec<PairEstimate>,
}

impl LogZ {
    /// Between forward weights and backward ones, once these are told of what they cannot see.
    pub fn gap(&self) -> f64 {
        (self.forward - self.backward - self.unseen).abs()
    }
}

/// Path weights of one ladder: those that were folded, and those that came after.
#[derive(Clone, Debug)]
pub struct LadderWeights<'a> {
    /// In order of time before `latest`; all ladders of a run have them or none.
    pub folded: Option<&'a FoldedLadder>,
    /// Of each pair.
    pub latest: Vec<Works<'a>>,
}

/// log Z relative to a reference of `log_z_reference`; `works[copy][pair]` are log-weights.
/// Each pair divides by its own number of proposals (errata E4).
pub fn log_z(log_z_reference: f64, works: &[Vec<Works>]) -> LogZ {
    let ladders: Vec<_> =
        works.iter().map(|latest| LadderWeights { folded: None, latest: latest.clone() }).collect();
    log_z_of(log_z_reference, &ladders)
}

/// [`log_z`] of a run of any length.
pub fn log_z_of(log_z_reference: f64, ladders: &[LadderWeights]) -> LogZ {
    let n_pairs = ladders[0].latest.len();
    let pairs: Vec<PairEstimate> = (0..n_pairs).map(|pair| estimate(pair, ladders)).collect();
    let sum = |part: fn(&PairEstimate) -> f64| log_z_reference + pairs.iter().map(part).sum::<f64>();
    let (forward, backward) = (sum(|p| p.forward), sum(|p| p.backward));
    LogZ {
        forward,
        backward,
        geometric_mean: 0.5 * (forward + backward),
        bar: sum(|p| p.bar.log_ratio),
        standard_error: variance(&pairs, ladders).sqrt(),
        unseen: pairs.iter().map(|pair| ln(pair.alive)).sum(),
        pairs,
    }
}

/// Fewer proposals of a pair are no part of their own.
const FEWEST_IN_A_PART: usize = 32;

/// log Z from parts of a run, each by itself: the two halves of every ladder, or whole ladders once their weights are folded
/// or while they are few.
pub fn log_z_of_parts(log_z_reference: f64, ladders: &[LadderWeights]) -> Vec<f64> {
    let of = |ladder: LadderWeights| log_z_of(log_z_reference, &[ladder]).bar;
    let each = |ladder: &LadderWeights| {
        let fewest = ladder.latest.iter().map(|(f, _)| f.len()).min().unwrap_or(0);
        if ladder.folded.is_some() || fewest < 2 * FEWEST_IN_A_PART {
            return vec![of(ladder.clone())];
        }
        let half = |second: bool| {
            let cut = |(f, b): &Works<'_>| {
                let middle = f.len() / 2;
                if second {
                    (f[middle..].to_vec(), b[middle..].to_vec())
                } else {
                    (f[..middle].to_vec(), b[..middle].to_vec())
                }
            };
            let works: Vec<(Vec<f64>, Vec<f64>)> = ladder.latest.iter().map(cut).collect();
            of(LadderWeights { folded: None, latest: works.iter().map(|(f, b)| (&f[..], &b[..])).collect() })
        };
        vec![half(false), half(true)]
    };
    ladders.iter().flat_map(each).collect()
}

/// log Z from the first of the weights alone, a share of them: as it was after that share of the run. None once weights are
/// folded, or while they are few.
pub fn log_z_of_beginning(log_z_reference: f64, ladders: &[LadderWeights], share: f64) -> Option<LogZ> {
    let fewest = ladders.iter().flat_map(|ladder| &ladder.latest).map(|(f, _)| f.len()).min()?;
    let is_short = share * (fewest as f64) < FEWEST_IN_A_PART as f64;
    if is_short || ladders.iter().any(|ladder| ladder.folded.is_some()) {
        return None;
    }
    fn cut<'a>((f, b): &Works<'a>, share: f64) -> Works<'a> {
        let first = |of: &'a [f64]| &of[..(share * of.len() as f64) as usize];
        (first(f), first(b))
    }
    let beginning: Vec<LadderWeights> = ladders
        .iter()
        .map(|ladder| LadderWeights {
            folded: None,
            latest: ladder.latest.iter().map(|w| cut(w, share)).collect(),
        })
        .collect();
    Some(log_z_of(log_z_reference, &beginning))
}

/// What the weights of a pair say, over all ladders.
fn estimate(pair: usize, ladders: &[LadderWeights]) -> PairEstimate {
    let (mut forward, mut backward) = (Weighted::default(), Weighted::default());
    let (mut forward_sum, mut backward_sum) = (LogSum::new(), LogSum::new());
    let (mut all_forward, mut all_minus) = (Vec::new(), Vec::new());
    let (mut is_folded, mut vanished, mut paths) = (false, 0, 0);
    for ladder in ladders {
        if let Some(folded) = ladder.folded {
            let (f, b) = &folded.pairs[pair];
            forward.add_folded(f, 1.0);
            backward.add_folded(b, -1.0);
            forward_sum.join(&f.sum);
            vanished += f.vanished;
            paths += f.sum.count();
            backward_sum.join(&b.sum);
            is_folded = true;
        }
        let (f, b) = ladder.latest[pair];
        vanished += f.iter().filter(|w| **w == f64::NEG_INFINITY).count() as u64;
        paths += f.len() as u64;
        forward.add(f, 1.0);
        backward.add(b, -1.0);
        all_forward.extend_from_slice(f);
        // Backward paths from zero density are no samples: see `bar`.
        all_minus.extend(b.iter().filter(|w| **w != f64::NEG_INFINITY).map(|w| -w));
    }
    let (forward_mean, backward_mean) = if is_folded {
        all_forward.iter().for_each(|&w| forward_sum.add(w));
        all_minus.iter().for_each(|&w| backward_sum.add(w));
        (forward_sum.log_mean(), backward_sum.log_mean())
    } else {
        (log_mean_exp(&all_forward), log_mean_exp(&all_minus))
    };
    let bar = bar_of(&forward, &backward);
    PairEstimate {
        forward: forward_mean,
        backward: -backward_mean,
        bar,
        crooks: crooks_of(&forward, &backward, bar.log_ratio),
        alive: if paths == 0 { 1.0 } else { 1.0 - vanished as f64 / paths as f64 },
    }
}

/// Squared standard error of the sum of Bennett's ratios.
fn variance(pairs: &[PairEstimate], ladders: &[LadderWeights]) -> f64 {
    if pairs.iter().any(|p| !p.bar.log_ratio.is_finite()) {
        return f64::NAN;
    }
    // Influence of each proposal on the sum of the ratios, ladder by ladder, time by time.
    let influence = |works: &[Works], scale: f64| {
        let mut out = vec![0.0; works.iter().map(|(f, _)| f.len()).max().unwrap_or(0)];
        for (works, pair) in works.iter().zip(pairs) {
            add_influence(&mut out, works, pair.bar.log_ratio, pair.bar.slope / scale);
        }
        out
    };
    if ladders.iter().all(|l| l.folded.is_none()) {
        let each = ladders.iter().map(|l| influence(&l.latest, 1.0));
        let each = each.map(|s| (s.len() as f64 * slow_variance(&s), s.iter().sum()));
        return within_or_between(each.collect());
    }
    let proposals = |l: &LadderWeights| {
        l.folded.map_or(0, |f| f.proposals) + l.latest.iter().map(|(f, _)| f.len()).max().unwrap_or(0) as u64
    };
    let all = ladders.iter().map(proposals).sum::<u64>() as f64;
    let of = |l: &LadderWeights| {
        let Some(folded) = l.folded else { return (0.0, 0.0) };
        let mut series = folded.influence.clone();
        influence(&l.latest, all).iter().for_each(|&x| series.push(x));
        let share = series.count() as f64 / all;
        (share.powi(2) * series.variance_of_mean(), share * series.mean())
    };
    within_or_between(ladders.iter().map(of).collect())
}

/// Ladders from which their spread is known well enough to speak against what each says of itself.
const FEWEST_TO_COMPARE: usize = 4;

/// The variance of a sum over ladders: what each says of its part by itself, or what they say against each other, whichever
/// is larger. What a ladder visits seldom it may not have visited at all.
fn within_or_between(parts: Vec<(f64, f64)>) -> f64 {
    let count = parts.len();
    let within = parts.iter().map(|(variance, _)| variance).sum::<f64>();
    if count < FEWEST_TO_COMPARE {
        return within;
    }
    let mean = parts.iter().map(|(_, part)| part).sum::<f64>() / count as f64;
    let between = parts.iter().map(|(_, part)| (part - mean).powi(2)).sum::<f64>();
    within.max(between * count as f64 / (count - 1) as f64)
}

/// Blocks that a series of influences is cut into.
const BLOCKS: usize = 256;

/// The long-run variance, also of means over blocks, whichever is larger. A replica keeps its mode for as long
/// as a round trip takes; where the work depends on the mode, that slow part hides below the noise of single
/// swaps, and an autocorrelation sum ends before it has seen it. Means over blocks have little of that noise.
fn slow_variance(series: &[f64]) -> f64 {
    let length = series.len() / BLOCKS;
    let fast = long_run_variance(series);
    if length < 2 {
        return fast;
    }
    let means: Vec<f64> =
        series.chunks_exact(length).map(|block| block.iter().sum::<f64>() / length as f64).collect();
    fast.max(length as f64 * long_run_variance(&means))
}

pub(crate) fn log_mean_exp(values: &[f64]) -> f64 {
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        return top;
    }
    top + ln(values.iter().map(|v| exp(v - top)).sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    /// 200 independent estimates of known ratios: their z-scores have unit variance. The sample
    /// standard deviation of 200 normals lies in 0.8–1.2 but for 2·10⁻⁵.
    #[test]
    fn errors_are_calibrated_on_independent_gaussian_work() {
        let mut z = Vec::new();
        for seed in 0..200 {
            let mut stream = Streams::new(seed).row(Phase::Check, 0, 0);
            let mut work = |c: f64, s: f64| -> (Vec<f64>, Vec<f64>) {
                let mut side =
                    |sign: f64| (0..1000).map(|_| c + sign * 0.5 * s * s + s * stream.normal()).collect();
                (side(-1.0), side(1.0))
            };
            let (a, b) = (work(1.0, 1.0), work(-2.0, 2.0));
            let works = vec![vec![(&a.0[..], &a.1[..]), (&b.0[..], &b.1[..])]];
            let estimate = log_z(0.5, &works);
            z.push((estimate.bar - (-0.5)) / estimate.standard_error);
        }
        let mean = z.iter().sum::<f64>() / 200.0;
        let sd = (z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / 199.0).sqrt();
        assert!(sd > 0.8 && sd < 1.2 && mean.abs() < 0.31, "{mean} {sd}");
    }

    /// White noise over a slow part of a hundredth of its variance, an autoregression that forgets over 1000
    /// steps: its long-run variance is 1 + 0.01 · 1999. The mean of 20 estimates, each known to about 40%,
    /// lies within half of it but for 10⁻⁷; the plain sum sees nothing of it.
    #[test]
    fn slow_parts_below_the_noise_are_seen() {
        let forgets: f64 = 1.0 - 1.0 / 1000.0;
        let series = |seed: u64| -> Vec<f64> {
            let [mut slow_stream, mut stream] =
                [0, 1].map(|row| Streams::new(seed).row(Phase::Check, 0, row));
            let mut slow = slow_stream.normal();
            let mut next = || {
                slow = forgets * slow + (1.0 - forgets * forgets).sqrt() * slow_stream.normal();
                0.1 * slow + stream.normal()
            };
            (0..40_000).map(|_| next()).collect()
        };
        let exact = 1.0 + 0.01 * (1.0 + forgets) / (1.0 - forgets);
        let mean = |of: fn(&[f64]) -> f64| (0..20).map(|seed| of(&series(seed))).sum::<f64>() / 20.0;
        let (ours, plain) = (mean(slow_variance), mean(long_run_variance));
        assert!((ours / exact - 1.0).abs() < 0.5, "{ours}, not {exact}");
        assert!(plain < 0.5 * exact, "{plain}: nothing to mend");
    }

    /// Ladders whose weights have little noise and different means, as where each has visited other places.
    #[test]
    fn ladders_that_disagree_widen_the_error() {
        let works = |ladders: usize| -> Vec<(Vec<f64>, Vec<f64>)> {
            let side = |l: usize, row| {
                let mut stream = Streams::new(7).row(Phase::Check, l as u64, row);
                (0..400).map(|_| 0.2 * [1.0, -1.0][l % 2] + 0.1 * stream.normal()).collect()
            };
            (0..ladders).map(|l| (side(l, 0), side(l, 1))).collect()
        };
        let error = |ladders: usize| {
            let works = works(ladders);
            let works: Vec<Vec<Works>> = works.iter().map(|(f, b)| vec![(&f[..], &b[..])]).collect();
            log_z(0.0, &works).standard_error
        };
        // Four parts of ±0.2/4 each.
        assert!((error(4) / 0.115 - 1.0).abs() < 0.1, "{}", error(4));
        assert!(error(2) < 0.02, "{}", error(2));
    }

    #[test]
    fn the_beginning_is_what_a_shorter_run_would_say() {
        let works = |n: usize| -> Vec<f64> { (0..n).map(|i| (i * 7919 % 997) as f64 / 997.0).collect() };
        let (long, short) = ((works(1000), works(1000)), (works(250), works(250)));
        let of = |w: &(Vec<f64>, Vec<f64>)| log_z(0.5, &[vec![(&w.0, &w.1)]]);
        let whole = [LadderWeights { folded: None, latest: vec![(&long.0[..], &long.1[..])] }];
        assert_eq!(log_z_of_beginning(0.5, &whole, 0.25), Some(of(&short)));
        assert_eq!(log_z_of_beginning(0.5, &whole, 1.0), Some(of(&long)));
        assert_eq!(log_z_of_beginning(0.5, &whole, 0.01), None);
    }

    /// Halves of two ladders, the second of which changes on its way.
    #[test]
    fn parts_are_halves_of_ladders() {
        let steady = [2.0; 100];
        let changing: Vec<f64> = (0..100).map(|i| if i < 50 { 2.0 } else { 3.0 }).collect();
        let ladder = |w: &'static [f64]| LadderWeights { folded: None, latest: vec![(w, w)] };
        let leak = |w: Vec<f64>| -> &'static [f64] { Box::leak(w.into_boxed_slice()) };
        let parts = log_z_of_parts(1.0, &[ladder(leak(steady.to_vec())), ladder(leak(changing))]);
        assert_eq!(parts.iter().map(|z| z.round()).collect::<Vec<_>>(), [3.0, 3.0, 3.0, 4.0]);
        assert_eq!(log_z_of_parts(1.0, &[ladder(leak(vec![2.0; 40]))]).len(), 1);
    }

    /// A quarter of the forward paths reach the support, and with it all backward paths begin: both say Z₁/Z₀ = e²/4.
    #[test]
    fn backward_weights_are_told_of_what_lies_beyond_a_wall() {
        let (nothing, f): (f64, Vec<f64>) = (f64::NEG_INFINITY, [2.0; 10].into());
        let walled: Vec<f64> = f.iter().flat_map(|&w| [w, nothing, nothing, nothing]).collect();
        let b = vec![2.0; 40];
        let estimate = log_z(0.0, &[vec![(&walled, &b)]]);
        assert_eq!(estimate.pairs[0].alive, 0.25);
        assert!((estimate.backward - estimate.forward - 4f64.ln()).abs() < 1e-12 && estimate.gap() < 1e-12);
        // Folded or not; and weights that differ are seen to.
        let mut folded = FoldedLadder::new(1);
        folded.fold(&[(&walled, &b)]);
        let again = log_z_of(0.0, &[LadderWeights { folded: Some(&folded), latest: vec![(&walled, &b)] }]);
        assert_eq!(again.pairs[0].alive, 0.25);
        let off: Vec<f64> = b.iter().map(|w| w - 3.0).collect();
        assert!((log_z(0.0, &[vec![(&walled, &off)]]).gap() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn constant_weights_are_exact() {
        let (f, b) = ([2.0; 10], [2.0; 10]);
        let estimate = log_z(1.0, &[vec![(&f, &b), (&f, &b)]]);
        for value in [estimate.forward, estimate.backward, estimate.geometric_mean, estimate.bar] {
            assert!((value - 5.0).abs() < 1e-12);
        }
        assert!(estimate.standard_error < 1e-12);
    }
}
