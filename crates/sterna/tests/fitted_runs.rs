//! Whole runs from fitted references with an anchor, at their defaults.

use std::sync::Arc;
use sterna::acceleration::Acceleration;
use sterna::paths::Geometric;
use sterna::run::{Run, Settings, StoppedBy};
use sterna::targets::{Banana, Funnel, Normal};
use sterna::{Batch, Evaluation, Result, Target};

/// Equal normals of unit width.
struct Normals(Vec<Vec<f64>>);

impl Target for Normals {
    fn dim(&self) -> usize {
        self.0[0].len()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        for i in 0..x.rows() {
            let half_squares = |mean: &Vec<f64>| {
                -0.5 * x.row(i).iter().zip(mean).map(|(x, m)| (x - m) * (x - m)).sum::<f64>()
            };
            let logs: Vec<f64> = self.0.iter().map(half_squares).collect();
            let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = logs.iter().map(|l| (l - top).exp()).sum();
            out.log_density[i] = top + sum.ln();
            let score = out.score.row_mut(i);
            score.fill(0.0);
            for (mean, log) in self.0.iter().zip(&logs) {
                let share = (log - top).exp() / sum;
                for j in 0..score.len() {
                    score[j] -= share * (x.row(i)[j] - mean[j]);
                }
            }
        }
        Ok(())
    }
}

fn run(target: impl Target + 'static, seed: u64) -> Run {
    let ground = Arc::new(Geometric::from_standard_normal(target));
    let mut run = Run::from_anchor(
        ground,
        Settings { seed, iterations: 4_000, ..Settings::fitted() },
        Acceleration::None,
    )
    .unwrap();
    run.complete().unwrap();
    run
}

fn show(name: &str, run: &Run) {
    let results = run.results();
    let reached = run.reached();
    println!(
        "{name}: {} evaluations ({} before sampling), {} iterations, {:?}, ess {:.0} tail {:.0}, log Z {:.3} ± {:.3}",
        results.evaluations,
        results.evaluations - results.sampling_evaluations,
        results.iterations,
        run.stopped_by(),
        reached.ess,
        reached.tail_ess,
        results.log_z.bar,
        results.log_z.standard_error
    );
    for leg in &results.legs {
        println!(
            "    leg of {} chains every {}: barrier {:.2}, {} round trips, log Z {:.3} ± {:.3}",
            leg.chains, leg.every, leg.barrier, leg.round_trips, leg.log_z.bar, leg.log_z.standard_error
        );
    }
    println!(
        "    acceptance {:.2?}, steps {:.2?}, rounds {}, components {}",
        results.acceptance,
        results.step_size,
        run.rounds().len(),
        run.mixture().map_or(0, |m| m.components().len())
    );
}

#[test]
fn normals_of_any_place_and_width() {
    for (name, mean, width) in [("wide", 0.0, 1e3), ("far", 1e4, 1e-3), ("unit", 0.0, 1.0)] {
        let target = Normal::new(vec![mean; 5], vec![f64::powi(width, -2); 5]);
        let run = run(target, 1);
        show(name, &run);
        let results = run.results();
        let truth = 5.0 * f64::ln(width);
        let z = (results.log_z.bar - truth).abs() / results.log_z.standard_error;
        assert_eq!(run.stopped_by(), Some(StoppedBy::Goals));
        assert!(results.schedule.chains() <= 12);
        // A target that is its own anchor leaves nothing to estimate.
        assert!(z < 4.0 || (results.log_z.bar - truth).abs() < 1e-9, "{z}");
    }
}

#[test]
fn two_modes_and_eight() {
    let two = run(Normals(vec![vec![0.0; 5], vec![10.0; 5]]), 1);
    show("two", &two);
    let corner = |k: usize| (0..3).map(|j| if k >> j & 1 == 1 { 40.0 } else { 0.0 }).collect();
    let eight = run(Normals((0..8).map(corner).collect()), 1);
    show("eight", &eight);
}

#[test]
fn curved_ones() {
    show("banana", &run(Banana::new(4), 1));
    show("funnel", &run(Funnel::new(10), 1));
}
