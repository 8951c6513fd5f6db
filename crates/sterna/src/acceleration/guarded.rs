//! The guard: a transport stays only on those pairs where, on samples held out from it, it rejects no more swaps than a plain
//! swap does. Whatever it decides, the run stays exact; the guard is about speed.

use super::{Collected, Fit, FitReport, Fitted, Fitting, PairReport};
use crate::accelerator::{Accelerator, Crossing, Direction};
use crate::accelerators::{Identity, PerPair};
use crate::error::BadState;
use crate::lanes::one::tanh;
use crate::path::AnnealingPath;
use crate::streams::Streams;
use crate::{Batch, Result, Schedule};
use std::sync::Arc;

/// Journeys that judge a pair, in each direction.
pub const JUDGES: usize = 1000;

/// Makes of a run's seed that of judges' noise: not the noise of sampling, nor that of batches.
pub(super) const OF_JUDGES: u64 = 0x6A09_E667_F3BC_C908;

/// Rejections of each pair, judge by judge: |tanh(Δ/2)|, Δ = log w(forward) − log w(backward), from samples of each chain that
/// the accelerator was not fitted to.
pub fn judged_rejections(
    accelerator: &dyn Accelerator,
    path: &dyn AnnealingPath,
    schedule: &Schedule,
    held_out: &[Batch],
    seed: u64,
) -> Result<Vec<Vec<f64>>> {
    let streams = Streams::new(seed ^ OF_JUDGES);
    let crossing = Crossing { accelerator, path, schedule, streams: &streams };
    let travel = |pair: usize, direction: Direction| -> Result<Vec<f64>> {
        let chain = if direction == Direction::Forward { pair - 1 } else { pair };
        let start = crossing.start(pair, direction, held_out[chain].clone())?;
        Ok(crossing.cross(pair, direction, pair as u64, start)?.log_weight)
    };
    let of_pair = |pair: usize| -> Result<Vec<f64>> {
        let (forward, backward) = (travel(pair, Direction::Forward)?, travel(pair, Direction::Backward)?);
        Ok(rejections(&forward, &backward))
    };
    (1..=schedule.pairs()).map(of_pair).collect()
}

/// Of swaps that journeys with these weights would make.
pub(super) fn rejections(forward: &[f64], backward: &[f64]) -> Vec<f64> {
    let n = forward.len();
    // A pair of samples of the same iteration would be correlated by the swap between them.
    let other = (0..n).map(|i| backward[(i + n / 2) % n]);
    let rejection = |(f, b): (&f64, f64)| {
        let r = tanh(0.5 * (f - b)).abs();
        if r.is_nan() { 1.0 } else { r }
    };
    forward.iter().zip(other).map(rejection).collect()
}

/// Plain swaps on the pairs that are marked.
pub fn partly_plain(accelerator: Arc<dyn Accelerator>, plain: Vec<bool>) -> Arc<dyn Accelerator> {
    if !plain.is_empty() && plain.iter().all(|&p| p) {
        Arc::new(Identity)
    } else if plain.iter().any(|&p| p) {
        Arc::new(PerPair::new(accelerator, plain))
    } else {
        accelerator
    }
}

/// A fit in closed form under guard. It is made of all samples; what judges it is a twin made of the first seven eighths, on
/// the last eighth. A pair is swapped plainly where the twin rejects more than a plain swap by two standard errors: where
/// they are alike, the transport stays.
///
/// ```
/// use std::sync::Arc;
/// use sterna::acceleration::{Acceleration, FitAffine, Guarded};
/// use sterna::{paths::Geometric, run::{Run, Settings}, targets::Banana};
/// let path = Arc::new(Geometric::from_standard_normal(Banana::new(2)));
/// let fit = Guarded { fit: Arc::new(FitAffine { full: false }), seed: 1 };
/// let run = Run::accelerated(path, Settings::default(), Acceleration::Fitted(Arc::new(fit))).unwrap();
/// ```
#[derive(Clone)]
pub struct Guarded {
    /// The fit.
    pub fit: Arc<dyn Fit>,
    /// Of the judges' noise, for transports that have some.
    pub seed: u64,
}

/// What a guarded fit came to: its own record, and the pairs that are swapped plainly.
type Record = (Vec<u8>, Vec<bool>);

impl Guarded {
    /// Judges a twin of the fit.
    fn judge(&self, path: &dyn AnnealingPath, collected: &Collected) -> Result<Vec<PairReport>> {
        let rows = collected.samples[0].rows();
        let held_out = (rows / 8).clamp(1, rows - 1);
        let twin = Arc::new(collected.of_rows(0..rows - held_out, 1));
        let twin = finished(self.fit.begin(twin, None)?)?.accelerator;
        let judges = collected.of_rows(rows - held_out..rows, held_out.div_ceil(JUDGES)).samples;
        let rates = |accelerator: &dyn Accelerator| {
            judged_rejections(accelerator, path, &collected.schedule, &judges, self.seed)
        };
        let (ours, plain) = (rates(&*twin)?, rates(&Identity)?);
        Ok(ours.iter().zip(&plain).map(|(ours, plain)| compared(ours, plain)).collect())
    }
}

/// Two ways on the same judges.
fn compared(ours: &[f64], plain: &[f64]) -> PairReport {
    let n = ours.len() as f64;
    let mean = |of: &dyn Fn(usize) -> f64| (0..ours.len()).map(of).sum::<f64>() / n;
    let worse = mean(&|i| ours[i] - plain[i]);
    let variance = mean(&|i| (ours[i] - plain[i] - worse).powi(2));
    PairReport {
        rejection: mean(&|i| ours[i]),
        plain_rejection: mean(&|i| plain[i]),
        plain: worse > 2.0 * (variance / n).sqrt(),
    }
}

pub(super) fn finished(mut fitting: Box<dyn Fitting>) -> Result<Fitted> {
    fitting.advance(u64::MAX)?;
    fitting.finish()
}

/// The fitted transport where it is not replaced.
fn guarded(fitted: Fitted, pairs: Vec<PairReport>) -> Result<Fitted> {
    let plain: Vec<bool> = pairs.iter().map(|pair| pair.plain).collect();
    let record: Record = (fitted.record.to_vec(), plain.clone());
    let record = postcard::to_allocvec(&record).map_err(|e| BadState::Unreadable(e.to_string()))?;
    let alarms = replaced(&pairs).into_iter().map(|message| ("transport-replaced".to_string(), message));
    let alarms = fitted.report.alarms.into_iter().chain(alarms).collect();
    Ok(Fitted {
        accelerator: partly_plain(fitted.accelerator, plain),
        path: None,
        record: record.into(),
        report: FitReport { pairs, alarms, ..fitted.report },
    })
}

/// What is said of the pairs that are swapped plainly.
fn replaced(pairs: &[PairReport]) -> Option<String> {
    let worse: Vec<usize> = (0..pairs.len()).filter(|&n| pairs[n].plain).collect();
    let rates = |n: &usize| {
        let PairReport { rejection, plain_rejection, .. } = pairs[*n];
        format!("{}–{} ({rejection:.3} against {plain_rejection:.3})", n, n + 1)
    };
    (!worse.is_empty()).then(|| {
        format!(
            "on samples held out from it the transport rejects more than a plain swap between chains {}; these pairs are \
             swapped plainly",
            worse.iter().map(rates).collect::<Vec<_>>().join(", ")
        )
    })
}

impl Fit for Guarded {
    /// A closed form has learned nothing that another round would change.
    fn moves_chains(&self) -> bool {
        false
    }

    fn on(&self, path: &Arc<dyn AnnealingPath>) -> Option<Arc<dyn Fit>> {
        Some(Arc::new(Self { fit: self.fit.on(path)?, seed: self.seed }))
    }

    fn begin(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        let fitting = self.fit.begin(collected.clone(), earlier)?;
        Ok(Box::new(UnderGuard { guard: self.clone(), collected, fitting }))
    }

    fn rebuild(&self, record: &[u8]) -> Result<Fitted> {
        let (inner, plain): Record =
            postcard::from_bytes(record).map_err(|e| BadState::Unreadable(e.to_string()))?;
        let fitted = self.fit.rebuild(&inner)?;
        Ok(Fitted { accelerator: partly_plain(fitted.accelerator, plain), record: record.into(), ..fitted })
    }
}

/// A fit whose judgement comes at its end.
struct UnderGuard {
    guard: Guarded,
    collected: Arc<Collected>,
    fitting: Box<dyn Fitting>,
}

impl Fitting for UnderGuard {
    fn progress(&self) -> (u64, u64) {
        self.fitting.progress()
    }

    fn loss(&self) -> Option<f64> {
        self.fitting.loss()
    }

    fn advance(&mut self, most: u64) -> Result<()> {
        self.fitting.advance(most)
    }

    /// Without a path nobody can judge: all pairs keep the transport.
    fn finish(self: Box<Self>) -> Result<Fitted> {
        guarded(self.fitting.finish()?, Vec::new())
    }

    fn finish_on(self: Box<Self>, path: &dyn AnnealingPath) -> Result<Fitted> {
        let pairs = self.guard.judge(path, &self.collected)?;
        guarded(self.fitting.finish()?, pairs)
    }

    fn save(&self) -> Result<Vec<u8>> {
        self.fitting.save()
    }

    fn restore(&mut self, saved: &[u8]) -> Result<()> {
        self.fitting.restore(saved)
    }
}
