//! Two legs: the target between its reference and an anchor.

use std::sync::Arc;
use sterna::accelerators::Identity;
use sterna::call::Scratch;
use sterna::explorers::{Hmc, StepSizes};
use sterna::path::{AnnealingPath, Points};
use sterna::paths::{Geometric, Reference};
use sterna::streams::{Phase, PhaseKey};
use sterna::targets::Normal;
use sterna::{Batch, Ensemble, Result, Sampler, Schedule, Streams, Workspace, iterate};

/// Mean and precision of each end: the reference, the target, the anchor. Every density between two of them is normal.
const ENDS: [(f64, f64); 3] = [(-0.5, 1.5), (1.0, 4.0), (0.0, 0.1)];
const BETAS: [f64; 6] = [0.0, 0.6, 1.0, 1.3, 1.8, 2.0];

fn path() -> Geometric {
    let [reference, anchor] = [ENDS[0], ENDS[2]]
        .map(|(mean, precision)| Reference::normal(vec![mean; 2], vec![f64::powf(precision, -0.5); 2]));
    let target = Normal::new(vec![ENDS[1].0; 2], vec![ENDS[1].1; 2]);
    let ground = Geometric::new(reference.clone(), Arc::new(target)).unwrap();
    ground.between(reference, Some(anchor)).unwrap()
}

/// Mean and variance of a chain.
fn exact(beta: f64) -> (f64, f64) {
    let leg = usize::from(beta > 1.0);
    let share = beta - leg as f64;
    let ((a, p), (b, q)) = (ENDS[leg], ENDS[leg + 1]);
    let precision = (1.0 - share) * p + share * q;
    (((1.0 - share) * p * a + share * q * b) / precision, precision.recip())
}

/// A path with a fault on the leg beyond the target.
struct Broken {
    path: Geometric,
    fault: Fault,
}

enum Fault {
    /// Draws from the anchor are too wide.
    WideAnchor,
    /// The leg is seen from the wrong side.
    Reversed,
}

impl AnnealingPath for Broken {
    fn dim(&self) -> usize {
        self.path.dim()
    }
    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        let reversed = |&b: &f64| match self.fault {
            Fault::Reversed if b > 1.0 && b < 2.0 => 3.0 - b,
            _ => b,
        };
        self.path.evaluate(&betas.iter().map(reversed).collect::<Vec<_>>(), points)
    }
    fn slopes(&self, betas: &[f64], points: &Points, out: &mut [f64], scratch: &mut Scratch) -> Result<()> {
        self.path.slopes(betas, points, out, scratch)
    }
    fn draw_reference(
        &self,
        end: f64,
        streams: &Streams,
        phase: PhaseKey,
        iteration: u64,
        rows: &[u32],
        x: &mut Batch,
    ) {
        self.path.draw_reference(end, streams, phase, iteration, rows, x);
        if matches!(self.fault, Fault::WideAnchor) && end > 1.0 {
            x.as_mut_slice().iter_mut().for_each(|x| *x *= 1.15);
        }
    }
    fn log_z(&self) -> Option<f64> {
        None
    }
    fn evaluations(&self) -> u64 {
        self.path.evaluations()
    }
}

/// The largest z-score of any chain's mean and variance, after some iterations that began in the exact joint law.
fn worst(path: Arc<dyn AnnealingPath>, every: u64) -> f64 {
    let (copies, chains) = (20_000, BETAS.len());
    let schedule = Schedule::new(BETAS.to_vec()).unwrap();
    let streams = Streams::new(11);
    let explorer = Arc::new(Hmc::with_sizes(1, 3, StepSizes::fixed(chains, 2, 0.4), 0.0));
    let sampler = Sampler { path, schedule, explorer, accelerator: Arc::new(Identity), streams };
    let mut ensemble = Ensemble::start(&*sampler.path, &streams, &sampler.schedule, 0, copies).unwrap();
    ensemble.rest(every, 3);
    let rows = ensemble.points.rows();
    streams.normals(Phase::Exact, 0, &(0..rows as u32).collect::<Vec<_>>(), &mut ensemble.points.x);
    let betas: Vec<f64> = (0..rows).map(|row| BETAS[row % chains]).collect();
    for (row, &beta) in betas.iter().enumerate() {
        let (mean, variance) = exact(beta);
        ensemble.points.x.row_mut(row).iter_mut().for_each(|x| *x = mean + variance.sqrt() * *x);
    }
    sampler.path.evaluate(&betas, &mut ensemble.points).unwrap();
    let mut work = Workspace::new(&ensemble);
    (1..=6).for_each(|t| iterate(t, &mut ensemble, &sampler, &mut work, &mut ()).unwrap());
    let mut largest: f64 = 0.0;
    for (chain, &beta) in BETAS.iter().enumerate() {
        let (mean, variance) = exact(beta);
        let standard: Vec<f64> = (0..copies)
            .flat_map(|copy| ensemble.points.x.row(ensemble.row(copy, chain)).to_vec())
            .map(|x| (x - mean) / variance.sqrt())
            .collect();
        let n = standard.len() as f64;
        let moment = |k: i32| standard.iter().map(|z| z.powi(k)).sum::<f64>() / n;
        largest = largest.max((moment(1) * n.sqrt()).abs()).max(((moment(2) - 1.0) * (n / 2.0).sqrt()).abs());
    }
    largest
}

/// Twelve scores of each run: 4.5 is passed by chance in fewer than 1 of 10,000 of them.
#[test]
fn iterations_keep_the_law_of_every_chain_on_both_legs() {
    for every in [1, 3] {
        let worst = worst(Arc::new(path()), every);
        assert!(worst < 4.5, "moving every {every}: {worst}");
    }
}

#[test]
fn broken_legs_are_caught() {
    for fault in [Fault::WideAnchor, Fault::Reversed] {
        assert!(worst(Arc::new(Broken { path: path(), fault }), 1) > 10.0);
    }
}
