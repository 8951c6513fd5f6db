//! Losses of transports (§5.1, §5.2, App. D): weights of paths as values of a graph.
//!
//! Training differentiates the formulas that sampling evaluates ([`sterna::weight`]), here on values of a graph. The
//! symmetric divergence of a pair is the mean of start − (end + log-ratio) over journeys in both directions.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sterna::accelerator::Direction;
use sterna::lanes::one;
use sterna::weight::{step_log_ratio, step_mean};

use crate::conditions::Conditions;
use crate::graph::{Graph, Value};
use crate::graph_path::GraphPath;
use crate::parameters::{Init, Layout, Parameters, Slot};
use crate::realnvp::RealNvp;
use crate::transport::DriftNetwork;
use crate::{Real, Result};

/// What training makes small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// The symmetric divergence of forward and backward paths: the paper's choice.
    #[default]
    Skl,
    /// KL of forward from backward paths: samples of the lower chain only.
    ForwardKl,
    /// KL of backward from forward paths: samples of the upper chain only.
    ReverseKl,
    /// −log of the density that a flow through a common base has at the samples of each chain (flows only): maximum
    /// likelihood, which asks the target nothing.
    Likelihood,
    /// The same, with the Fisher divergence: how far the score of that density is from the path's at each sample, in units of the
    /// local variance (flows only). Scores are stored with the samples, so that this asks the target nothing either.
    Scores,
    /// Variance of log-weights over both directions, on paths that no derivative sees (controlled
    /// diffusions only): needs the target's score, not its derivatives.
    LogVariance,
}

/// −log w of a forward journey, +log w of a backward one: by `Direction::log_weight` the same for both.
fn divergence<'g>(start: Value<'g>, end: Value<'g>) -> Value<'g> {
    Direction::Backward.log_weight(start, end)
}

/// Records −log w of forward and +log w of backward journeys of a flow, one column each: their means sum to
/// the symmetric divergence (§5.1). `lower` and `upper` hold points of the two chains.
pub fn flow_divergences<'g>(
    flow: &RealNvp,
    path: &GraphPath,
    conditions: &Conditions<'g>,
    lower: Value<'g>,
    upper: Value<'g>,
) -> [Value<'g>; 2] {
    let journey = |(end, log_det): (Value<'g>, Value<'g>), [from, to]: [Value<'g>; 2], start: Value<'g>| {
        divergence(path.log_density(from, start), path.log_density(to, end) + log_det)
    };
    [
        journey(flow.record(conditions, lower), [conditions.lower, conditions.upper], lower),
        journey(flow.record_inverse(conditions, upper), [conditions.upper, conditions.lower], upper),
    ]
}

/// A trained controlled diffusion: a drift, and for each pair the variances of its steps and the
/// interpolation between its ends (§5.2 with errata E6, E8 and E9).
#[derive(Clone, Debug, PartialEq)]
pub struct CmcdNetwork {
    drift: DriftNetwork,
    /// Log variance of a step at the lower and at the upper chain that each pair starts from.
    start: Vec<[f64; 2]>,
    steps: usize,
    log_variance: Slot,
    backward_log_variance: Slot,
    interpolation: Slot,
    log_ratio: Slot,
    /// The part of the drift along the score at each path time, where it has one.
    along_score: Option<Slot>,
}

/// Units of a step's first variance, so that what is learned is of order one.
const SCORE_UNIT: f64 = 10.0;

/// Journeys of a controlled diffusion as values: each row goes one way.
#[derive(Clone, Copy, Debug)]
pub struct CmcdInputs<'g> {
    /// β and β′ of each row's pair.
    pub pair: Conditions<'g>,
    /// 1 at the row's pair, 0 at the others.
    pub which: Value<'g>,
    /// 1 for rows that go forward, 0 for those that go backward.
    pub forward: Value<'g>,
    /// Where a row starts.
    pub start: Value<'g>,
    /// Standard normals of all its steps.
    pub noise: Value<'g>,
}

impl<'g> CmcdInputs<'g> {
    /// Records the inputs "lower", "upper", "which", "forward", "start" and "noise", in this order.
    pub fn record(graph: &'g Graph, network: &CmcdNetwork) -> Self {
        let dim = network.drift.dim();
        Self {
            pair: Conditions::pair_inputs(graph),
            which: graph.input("which", network.start.len()),
            forward: graph.input("forward", 1),
            start: graph.input("start", dim),
            noise: graph.input("noise", network.steps * dim),
        }
    }

    /// The same inputs in the same order, for journeys that come in twos: a row of the batch holds one, then
    /// another.
    pub fn record_twos(graph: &'g Graph, network: &CmcdNetwork) -> [Self; 2] {
        let (dim, pairs) = (network.drift.dim(), network.start.len());
        let two = |name: &str, cols: usize| {
            let both = graph.input(name, 2 * cols);
            [both.slice(0, cols), both.slice(cols, cols)]
        };
        let (lower, upper) = (two("lower", 1), two("upper", 1));
        let (which, forward) = (two("which", pairs), two("forward", 1));
        let (start, noise) = (two("start", dim), two("noise", network.steps * dim));
        [0, 1].map(|k| Self {
            pair: Conditions { lower: lower[k], upper: upper[k], time: None },
            which: which[k],
            forward: forward[k],
            start: start[k],
            noise: noise[k],
        })
    }
}

/// Records Σ r/(1 − r) over the pairs, r = E|tanh(Δ/2)| the rejection rate of a pair: the round-trip rate
/// is 1/(2 + 2 Σ r/(1 − r)). Each row of the batch holds −Δ (the sum of the two divergences of a journey there
/// and another back) and its pair as ones and zeros.
pub fn round_trip_loss<'g>(which: Value<'g>, divergence: Value<'g>) -> Value<'g> {
    // A pair that no row of a batch belongs to counts as one that never rejects.
    let rows = which.sum_rows() + 1e-6;
    let rejection = (which * (divergence * 0.5).tanh().abs()).sum_rows() * rows.recip();
    // Finite where all is rejected.
    (rejection * (1.001 - rejection).recip()).sum_cols()
}

/// Records the mean of ±log(1 + |Δ|), Δ = log w(forward) − log w(backward) and each row −Δ. Any odd function that rises is as
/// good: Δ and −Δ have densities in the ratio e^Δ, so its mean is positive unless Δ vanishes. This one is the symmetric
/// divergence where that is small, and is not led by the few points far out that no transport will ever bring home.
pub fn patient_divergence(divergence: Value<'_>) -> Value<'_> {
    (divergence.sign() * (divergence.abs() + 1.0).log()).mean_rows()
}

impl CmcdNetwork {
    /// Adds the parameters beside those of the drift; `start[n − 1]` holds the variances that steps of
    /// pair n start from at its lower and at its upper chain.
    pub fn new(layout: &mut Layout, drift: DriftNetwork, steps: usize, start: &[[f64; 2]]) -> Self {
        let pairs = start.len();
        let mut slot = |name: &str, cols| layout.add(name, pairs, cols, Init::Constant(0.0));
        Self {
            log_variance: slot("log_variance", steps),
            backward_log_variance: slot("backward_log_variance", steps),
            interpolation: slot("interpolation", steps),
            log_ratio: slot("log_ratio", 1),
            along_score: None,
            drift,
            start: start.iter().map(|ends| ends.map(one::ln)).collect(),
            steps,
        }
    }

    /// Adds to the drift a multiple of the path's score, learned for each pair and path time.
    pub fn with_score(mut self, layout: &mut Layout) -> Self {
        self.along_score =
            Some(layout.add("along_score", self.start.len(), self.steps + 1, Init::Constant(0.0)));
        self
    }

    /// Length of a point.
    pub fn dim(&self) -> usize {
        self.drift.dim()
    }

    /// K.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The drift.
    pub fn drift(&self) -> &DriftNetwork {
        &self.drift
    }

    /// Log variance of step k ∈ 1..=K that a pair starts from: a kernel is as wide as where it leads to.
    fn first(&self, pair: usize, k: usize, backward: bool) -> f64 {
        let [lower, upper] = self.start[pair];
        let along = (if backward { k - 1 } else { k }) as f64 / self.steps as f64;
        lower + along * (upper - lower)
    }

    /// What the multiple of the score at path time k/K is counted in: of the order of the local variance.
    fn score_unit(&self, pair: usize, k: usize) -> f64 {
        SCORE_UNIT * one::exp(self.first(pair, k, false))
    }

    /// The multiple of the score at each path time of each row's pair: K + 1 columns.
    fn along_score<'g>(&self, which: Value<'g>) -> Option<Value<'g>> {
        let (graph, slot) = (which.graph(), self.along_score.as_ref()?);
        let pairs = 0..self.start.len();
        let units: Vec<f64> =
            pairs.flat_map(|pair| (0..=self.steps).map(move |k| self.score_unit(pair, k))).collect();
        let units = which.matmul(graph.constant(self.steps + 1, &units));
        Some(which.matmul(slot.record(graph)) * units)
    }

    /// Variance 2σ²/K of each step of each row's pair, of P or of Q: K columns.
    fn variances<'g>(&self, which: Value<'g>, backward: bool) -> Value<'g> {
        let graph = which.graph();
        let slot = if backward { &self.backward_log_variance } else { &self.log_variance };
        let first: Vec<f64> = (0..self.start.len())
            .flat_map(|pair| (1..=self.steps).map(move |k| self.first(pair, k, backward)))
            .collect();
        (which.matmul(slot.record(graph)) + which.matmul(graph.constant(self.steps, &first))).exp()
    }

    /// φ of each row's pair: K + 1 columns from 0 to 1.
    fn interpolations<'g>(&self, which: Value<'g>) -> Value<'g> {
        let (graph, k) = (which.graph(), self.steps);
        let shares = which.matmul(self.interpolation.record(graph)).exp();
        // Sums of the shares so far.
        let so_far: Vec<f64> =
            (0..k).flat_map(|i| (0..=k).map(move |j| f64::from(u8::from(j > i)))).collect();
        shares.matmul(graph.constant(k + 1, &so_far)) * shares.sum_cols().recip()
    }

    /// Records start − (end + log-ratio of returning to going) of each row: −log w of forward and +log w
    /// of backward journeys. With `detached` no derivative sees the path itself.
    pub fn divergence<'g>(&self, path: &GraphPath, rows: &CmcdInputs<'g>, detached: bool) -> Value<'g> {
        let (dim, steps) = (self.drift.dim(), self.steps);
        let (graph, forward) = (rows.start.graph(), rows.forward);
        let interpolations = self.interpolations(rows.which);
        let along_score = self.along_score(rows.which);
        let [of_p, of_q] = [false, true].map(|backward| self.variances(rows.which, backward));
        let sign = forward * 2.0 - 1.0;
        // The first for rows that go forward, the second for the others.
        let pick = |there: Value<'g>, back: Value<'g>| back + forward * (there - back);
        let Conditions { lower, upper, .. } = rows.pair;
        let beta = |n: usize| match n {
            0 => upper + forward * (lower - upper),
            n if n == steps => lower + forward * (upper - lower),
            n => {
                let [there, back] = [n, steps - n].map(|k| interpolations.slice(k, 1));
                lower + pick(there, back) * (upper - lower)
            }
        };
        let score_and_drift = |n: usize, x: Value<'g>| {
            let s = n as f64 / steps as f64;
            let time = forward * (2.0 * s - 1.0) + (1.0 - s);
            let score = if detached { path.detached_score(beta(n), x) } else { path.score(beta(n), x) };
            let mut drift = self.drift.record(&rows.pair.at(time), x);
            if let Some(along) = along_score {
                drift = drift + pick(along.slice(n, 1), along.slice(steps - n, 1)) * score;
            }
            (score, drift * sign * (1.0 / steps as f64))
        };
        let (mut x, mut log_ratio) = (rows.start, graph.scalar(0.0));
        let (mut score, mut drift) = score_and_drift(0, x);
        for n in 1..=steps {
            let [there, back] = [n - 1, steps - n];
            let variance = pick(of_p.slice(there, 1), of_q.slice(back, 1));
            let homeward = pick(of_q.slice(there, 1), of_p.slice(back, 1));
            let mean = step_mean(x, variance, score, drift);
            let mut noise = rows.noise.slice((n - 1) * dim, dim);
            let mut next = mean + variance.sqrt() * noise;
            if detached {
                next = next.detach();
                noise = (next - mean) * variance.sqrt().recip();
            }
            (score, drift) = score_and_drift(n, next);
            let miss = x - step_mean(next, homeward, score, -drift);
            log_ratio = log_ratio + step_log_ratio(dim, noise.dot(noise), miss.dot(miss), variance, homeward);
            x = next;
        }
        divergence(path.log_density(beta(0), rows.start), path.log_density(beta(steps), x) + log_ratio)
    }

    /// Records the loss. Which divergences it means is a matter of which rows go forward; over both
    /// directions in equal numbers the mean is half of the symmetric divergence.
    pub fn loss<'g>(&self, loss: Loss, path: &GraphPath, rows: &CmcdInputs<'g>) -> Value<'g> {
        let graph = rows.start.graph();
        match loss {
            Loss::Skl => self.divergence(path, rows, false).mean_rows() * 2.0,
            Loss::ForwardKl | Loss::ReverseKl => self.divergence(path, rows, false).mean_rows(),
            Loss::LogVariance => {
                let log_weight = self.divergence(path, rows, true) * (1.0 - rows.forward * 2.0);
                let offset = rows.which.matmul(self.log_ratio.record(graph));
                (log_weight - offset).square().mean_rows()
            }
            Loss::Likelihood | Loss::Scores => unreachable!("refused where a training begins"),
        }
    }

    /// Records which pair journeys belong to that come in twos, a forward and a backward one of the same pair, and the sum
    /// of their divergences: what [`round_trip_loss`] wants.
    pub fn round_trips<'g>(&self, path: &GraphPath, twos: &[CmcdInputs<'g>; 2]) -> [Value<'g>; 2] {
        let [there, back] = twos.each_ref().map(|rows| self.divergence(path, rows, false));
        [twos[0].which, there + back]
    }

    /// Records the patient divergence over journeys that come in twos.
    pub fn patient_loss<'g>(&self, path: &GraphPath, twos: &[CmcdInputs<'g>; 2]) -> Value<'g> {
        let [there, back] = twos.each_ref().map(|rows| self.divergence(path, rows, false));
        patient_divergence(there + back)
    }

    /// The accelerator's kernels around a drift: σ_k² and φ_k as the parameters have them.
    ///
    /// # Errors
    /// If a variance is no positive number.
    pub fn kernels<T: Real>(
        &self,
        parameters: &Parameters<T>,
        drift: Arc<dyn sterna::transport::Drift>,
    ) -> sterna::Result<sterna::accelerators::CmcdSteps> {
        let [interpolation, noise, backward_noise] = self.tables(parameters);
        let steps = sterna::accelerators::CmcdSteps::with_backward_noise(
            drift,
            interpolation,
            noise,
            backward_noise,
        )?;
        match self.along_score {
            Some(_) => steps.with_score(self.score_table(parameters)),
            None => Ok(steps),
        }
    }

    /// The multiple of the score at each path time of each pair (pairs × (K + 1)); zeros where there is none.
    pub fn score_table<T: Real>(&self, parameters: &Parameters<T>) -> sterna::Batch {
        let mut out = sterna::Batch::zeros(self.start.len(), self.steps + 1);
        if let Some(slot) = &self.along_score {
            for pair in 0..out.rows() {
                for k in 0..=self.steps {
                    let learned = parameters.values()[slot.offset + pair * slot.cols + k].to_f64();
                    out.row_mut(pair)[k] = learned * self.score_unit(pair, k);
                }
            }
        }
        out
    }

    /// φ_k (pairs × (K + 1)), σ_k² of P and σ_k² of Q (pairs × K) as the parameters have them.
    pub fn tables<T: Real>(&self, parameters: &Parameters<T>) -> [sterna::Batch; 3] {
        let at = |slot: &Slot, pair: usize, k: usize| {
            parameters.values()[slot.offset + pair * slot.cols + k].to_f64()
        };
        let (mut noise, mut backward_noise, mut interpolation) = (Vec::new(), Vec::new(), Vec::new());
        let half = 0.5 * self.steps as f64;
        for pair in 0..self.start.len() {
            for k in 1..=self.steps {
                let exponent = at(&self.log_variance, pair, k - 1) + self.first(pair, k, false);
                noise.push(half * one::exp(exponent));
                let exponent = at(&self.backward_log_variance, pair, k - 1) + self.first(pair, k, true);
                backward_noise.push(half * one::exp(exponent));
            }
            let share = |k| one::exp(at(&self.interpolation, pair, k));
            let total: f64 = (0..self.steps).map(share).sum();
            interpolation.push(0.0);
            interpolation.extend((1..self.steps).map(|k| ((0..k).map(share).sum::<f64>() / total).min(1.0)));
            interpolation.push(1.0);
        }
        let batch = |values| sterna::Batch::from_vec(self.steps, values);
        let interpolation = sterna::Batch::from_vec(self.steps + 1, interpolation);
        [interpolation, batch(noise), batch(backward_noise)]
    }
}

impl Loss {
    /// Whether it is a density's at stored samples: flows of each chain from a common base, and no evaluations.
    pub fn is_of_samples(self) -> bool {
        matches!(self, Self::Likelihood | Self::Scores)
    }
}

/// Refuses a loss that a flow does not have.
pub(crate) fn check_flow_loss(loss: Loss) -> Result<()> {
    if loss == Loss::LogVariance {
        let reason = "belongs to controlled diffusions; flows have \"skl\", \"likelihood\", \"scores\", \"forward-kl\" and \"reverse-kl\"";
        return Err(crate::Error::Config { field: "training.loss", value: "log-variance".into(), reason });
    }
    Ok(())
}

/// A controlled diffusion has no density of its own at a sample.
pub(crate) fn refuse_likelihood(loss: Loss) -> Result<()> {
    let value = match loss {
        Loss::Likelihood => "likelihood".into(),
        Loss::Scores => "scores".into(),
        _ => return Ok(()),
    };
    let reason = "belongs to flows: a controlled diffusion has no density at a sample";
    Err(crate::Error::Config { field: "training.loss", value, reason })
}
