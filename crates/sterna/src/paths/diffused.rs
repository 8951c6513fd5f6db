//! The variance-preserving diffusion as an annealing path of its own (§5.3, App. D.3).

use crate::call::Scratch;
use crate::path::{AnnealingPath, Points};
use crate::streams::{Phase, PhaseKey, Streams};
use crate::transport::EnergyModel;
use crate::{Batch, Result, Schedule, Target};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// π_s of a diffusion or of a model of one: N(0, I) at s = 0, the target at s = 1.
///
/// ```
/// use std::sync::Arc;
/// use sterna::path::AnnealingPath;
/// use sterna::{paths::Diffused, targets::{Dw4, Gmm}};
/// let path = Diffused::exact(Arc::new(Gmm::paper(3))).unwrap();
/// assert_eq!(path.dim(), 3);
/// assert!(Diffused::exact(Arc::new(Dw4)).is_none());
/// ```
pub struct Diffused {
    model: Arc<dyn EnergyModel>,
    dim: usize,
    log_z: Option<f64>,
    first_schedule: Option<Schedule>,
    evaluations: AtomicU64,
    network_evaluations: AtomicU64,
}

/// A target that knows its own diffusion, as a model.
struct Exact(Arc<dyn Target>);

impl EnergyModel for Exact {
    fn evaluate(
        &self,
        times: &[f64],
        x: &Batch,
        out: &mut crate::Evaluation,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.0.diffused().expect("checked on construction").evaluate(times, x, out, scratch)
    }

    fn log_z_reference(&self) -> f64 {
        self.0.diffused().expect("checked on construction").log_z_reference()
    }

    fn cost(&self, time: f64) -> (u64, u64) {
        self.0.diffused().expect("checked on construction").cost(time)
    }
}

impl Diffused {
    /// The path of a model; its density at s = 1 must be the target's.
    pub fn new(model: Arc<dyn EnergyModel>, dim: usize, log_z: Option<f64>) -> Self {
        let [evaluations, network_evaluations] = [0, 0].map(AtomicU64::new);
        Self { model, dim, log_z, first_schedule: None, evaluations, network_evaluations }
    }

    /// The same path, with a schedule that its tuning should begin with.
    pub fn beginning_with(self, schedule: Schedule) -> Self {
        Self { first_schedule: Some(schedule), ..self }
    }

    /// The true diffusion of a target that knows it in closed form.
    pub fn exact(target: Arc<dyn Target>) -> Option<Self> {
        target.diffused()?;
        let (dim, log_z) = (target.dim(), target.log_z());
        Some(Self::new(Arc::new(Exact(target)), dim, log_z))
    }
}

impl AnnealingPath for Diffused {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        let costs = betas.iter().map(|&s| self.model.cost(s));
        let (target, network) = costs.fold((0, 0), |sum, cost| (sum.0 + cost.0, sum.1 + cost.1));
        self.evaluations.fetch_add(target, Ordering::Relaxed);
        self.network_evaluations.fetch_add(network, Ordering::Relaxed);
        let Points { x, target, log_density, score, scratch, .. } = points;
        self.model.evaluate(betas, x, target, scratch)?;
        score.as_mut_slice().copy_from_slice(target.score.as_slice());
        for (out, &value) in log_density.iter_mut().zip(&target.log_density) {
            *out = if value < f64::INFINITY { value } else { f64::NEG_INFINITY };
        }
        Ok(())
    }

    /// By central differences, one-sided at the ends.
    fn slopes(&self, betas: &[f64], points: &Points, out: &mut [f64], scratch: &mut Scratch) -> Result<()> {
        let (at, beside, ends) = scratch.get::<(Points, Vec<f64>, [Vec<f64>; 2])>();
        at.set_size(points.rows(), self.dim);
        at.x.as_mut_slice().copy_from_slice(points.x.as_slice());
        let near = |beta: f64, sign: f64| (beta + sign * (1e-3 * beta).max(1e-7)).clamp(0.0, 1.0);
        for (end, sign) in ends.iter_mut().zip([-1.0, 1.0]) {
            beside.clear();
            beside.extend(betas.iter().map(|&b| near(b, sign)));
            self.evaluate(beside, at)?;
            end.clone_from(&at.log_density);
        }
        for (i, out) in out.iter_mut().enumerate() {
            *out = (ends[1][i] - ends[0][i]) / (near(betas[i], 1.0) - near(betas[i], -1.0));
        }
        Ok(())
    }

    fn draw_reference(
        &self,
        _end: f64,
        streams: &Streams,
        phase: PhaseKey,
        iteration: u64,
        rows: &[u32],
        x: &mut Batch,
    ) {
        streams.normals(phase, iteration, rows, x);
    }

    /// x = √s x₁ + √(1 − s) z.
    fn begin_from(
        &self,
        betas: &[f64],
        streams: &Streams,
        iteration: u64,
        rows: &[u32],
        x: &mut Batch,
    ) -> bool {
        let mut noise = Batch::zeros(x.rows(), self.dim);
        streams.normals(Phase::Start, iteration, rows, &mut noise);
        for (row, &s) in betas.iter().enumerate() {
            for (x, z) in x.row_mut(row).iter_mut().zip(noise.row(row)) {
                *x = s.sqrt() * *x + (1.0 - s).sqrt() * z;
            }
        }
        true
    }

    fn log_z_reference(&self) -> f64 {
        self.model.log_z_reference()
    }

    fn keeps_target(&self) -> bool {
        false
    }

    fn log_z(&self) -> Option<f64> {
        self.log_z
    }

    fn evaluations(&self) -> u64 {
        self.evaluations.load(Ordering::Relaxed)
    }

    fn network_evaluations(&self) -> u64 {
        self.network_evaluations.load(Ordering::Relaxed)
    }

    fn first_schedule(&self, chains: usize) -> Schedule {
        match &self.first_schedule {
            Some(schedule) if schedule.chains() == chains => schedule.clone(),
            Some(schedule) => schedule.resized(chains),
            None => Schedule::uniform(chains),
        }
    }
}
