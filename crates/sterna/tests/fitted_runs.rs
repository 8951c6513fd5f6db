//! Whole runs from fitted references with an anchor, at their defaults.

use std::sync::Arc;
use sterna::acceleration::Acceleration;
use sterna::paths::Geometric;
use sterna::run::{Run, Settings, StoppedBy};
use sterna::targets::Normal;
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

#[test]
fn normals_of_any_place_and_width() {
    for (mean, width) in [(0.0, 1e3), (1e4, 1e-3), (0.0, 1.0)] {
        let target = Normal::new(vec![mean; 5], vec![f64::powi(width, -2); 5]);
        let run = run(target, 1);
        let results = run.results();
        let truth = 5.0 * f64::ln(width);
        let z = (results.log_z.bar - truth).abs() / results.log_z.standard_error;
        assert_eq!(run.stopped_by(), Some(StoppedBy::Goals));
        assert!(results.schedule.chains() <= 12);
        // A target that is its own anchor leaves nothing to estimate.
        assert!(z < 4.0 || (results.log_z.bar - truth).abs() < 1e-9, "{z}");
    }
}

/// log Z of equal normals, and the share of draws near each of them. With 1000 effective draws a share of one half has a standard
/// error of 0.016: 0.06 is passed by chance less than once in 1000, log Z's four errors less than once in 10,000.
fn check_modes(target: Vec<Vec<f64>>, seed: u64) {
    let truth = (target.len() as f64).ln() + 0.5 * target[0].len() as f64 * std::f64::consts::TAU.ln();
    let run = run(Normals(target.clone()), seed);
    let results = run.results();
    let z = (results.log_z.bar - truth) / results.log_z.standard_error;
    assert!(z.abs() < 4.0, "log Z is {z} standard errors off");
    assert_eq!(run.stopped_by(), Some(StoppedBy::Goals));
    let draws: Vec<f64> = run.records().flat_map(|r| &r.draws).flat_map(|d| d.x.clone()).collect();
    let dim = target[0].len();
    let near = |mean: &Vec<f64>| {
        let close = |x: &&[f64]| x.iter().zip(mean).map(|(x, m)| (x - m) * (x - m)).sum::<f64>() < 40.0;
        draws.chunks_exact(dim).filter(close).count() as f64 / (draws.len() / dim) as f64
    };
    let even = 1.0 / target.len() as f64;
    for mean in &target {
        assert!((near(mean) - even).abs() < 0.06, "{} near {mean:?}", near(mean));
    }
}

#[test]
fn two_modes_and_eight() {
    check_modes(vec![vec![0.0; 5], vec![10.0; 5]], 1);
    let corner = |k: usize| (0..3).map(|j| if k >> j & 1 == 1 { 40.0 } else { 0.0 }).collect();
    check_modes((0..8).map(corner).collect(), 1);
}

/// All that a run answers, as text.
fn answers(run: &Run) -> String {
    let draws: Vec<_> = run.records().flat_map(|r| &r.draws).collect();
    format!("{:?} {:?} {draws:?} {:?}", run.results(), run.reached(), run.mixture())
}

#[test]
fn cuts_kills_and_threads_change_no_bit() {
    let ground = || Arc::new(Geometric::from_standard_normal(Normals(vec![vec![0.0; 2], vec![9.0; 2]])));
    let settings = Settings { iterations: 150, ..Settings::fitted() };
    let begin = || Run::from_anchor(ground(), settings.clone(), Acceleration::None).unwrap();
    let mut whole = begin();
    whole.complete().unwrap();
    let whole = answers(&whole);
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut run = begin();
            while run.progress().0 != sterna::run::Stage::Finished {
                run.advance(5).unwrap();
                let state = run.save().unwrap();
                run =
                    Run::restore_from_anchor(ground(), settings.clone(), Acceleration::None, &state).unwrap();
            }
            assert!(answers(&run) == whole, "{threads} threads");
        });
    }
}

#[test]
fn a_density_that_is_nowhere_is_an_error() {
    struct Nowhere;
    impl Target for Nowhere {
        fn dim(&self) -> usize {
            2
        }
        fn evaluate(&self, _: &Batch, out: &mut Evaluation) -> Result<()> {
            out.log_density.fill(f64::NEG_INFINITY);
            out.score.as_mut_slice().fill(0.0);
            Ok(())
        }
    }
    let ground = Arc::new(Geometric::from_standard_normal(Nowhere));
    let mut run = Run::from_anchor(ground, Settings::fitted(), Acceleration::None).unwrap();
    assert!(run.complete().is_err());
}
