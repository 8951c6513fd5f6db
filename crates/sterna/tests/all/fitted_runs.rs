//! Whole runs from fitted references with an anchor, at their defaults.

use std::sync::Arc;
use sterna::acceleration::Acceleration;
use sterna::explorer::Explorer;
use sterna::explorers::{Followed, Hmc, Slice, StepSize};
use sterna::paths::Geometric;
use sterna::run::{Run, Settings, Stage, StoppedBy, Until};
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

/// Every explorer goes along as the number of chains changes, also through kills. log Z's four errors are passed by chance less than
/// once in 10,000.
#[test]
fn every_explorer_follows_the_number_of_chains() {
    let hmc = |step_size| -> Arc<dyn Explorer> { Arc::new(Hmc { step_size, ..Hmc::default() }) };
    let adapted = StepSize::Adapt { acceptance: 0.9 };
    let followed = Followed { first: hmc(StepSize::Fixed(0.5)), then: Arc::new(Slice::default()) };
    let explorers: [(&str, Arc<dyn Explorer>); 6] = [
        ("fixed", hmc(StepSize::Fixed(0.5))),
        ("adapted", hmc(adapted.clone())),
        ("paper", hmc(StepSize::Paper)),
        ("unit masses", Arc::new(Hmc { step_size: adapted, adapt_masses: false, ..Hmc::default() })),
        ("slice", Arc::new(Slice::default())),
        ("followed", Arc::new(followed)),
    ];
    let ground = || Arc::new(Geometric::from_standard_normal(Normals(vec![vec![0.0; 2], vec![9.0; 2]])));
    let truth = 2f64.ln() + std::f64::consts::TAU.ln();
    for (name, explorer) in explorers {
        let settings = Settings { iterations: 2_000, explorer, ..Settings::fitted() };
        let begin = || Run::from_anchor(ground(), settings.clone(), Acceleration::None).unwrap();
        let (mut whole, mut killed) = (begin(), begin());
        whole.complete().unwrap();
        let log_z = whole.results().log_z;
        assert!((log_z.bar - truth).abs() < 4.0 * log_z.standard_error, "{name}: {log_z:?}");
        while killed.progress().0 != Stage::Finished {
            killed.advance(100).unwrap();
            let state = killed.save().unwrap();
            killed =
                Run::restore_from_anchor(ground(), settings.clone(), Acceleration::None, &state).unwrap();
        }
        assert!(answers(&whole) == answers(&killed), "{name}");
    }
}

#[test]
fn step_sizes_of_chains_that_nobody_counts_are_refused() {
    let explorer = Arc::new(Hmc { step_size: StepSize::PerChain(vec![0.1; 5]), ..Hmc::default() });
    let settings = Settings { chains: 5, explorer, ..Settings::fitted() };
    let ground = Arc::new(Geometric::from_standard_normal(Normal::isotropic(2, 1.0)));
    let refused = Run::from_anchor(ground, settings, Acceleration::None).err().expect("no number fits");
    assert!(refused.to_string().contains("give one step size"), "{refused}");
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
    format!("{:?} {:?} {draws:?} {:?} {:?}", run.results(), run.reached(), run.mixture(), run.stood_out())
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
            while run.progress().0 != Stage::Finished {
                run.advance(5).unwrap();
                let state = run.save().unwrap();
                run =
                    Run::restore_from_anchor(ground(), settings.clone(), Acceleration::None, &state).unwrap();
            }
            assert!(answers(&run) == whole, "{threads} threads");
        });
    }
}

/// Goals that are raised on the way, or after the end, give the bits that they would have given from the start; lowered ones keep
/// what is there.
#[test]
fn goals_may_change_on_the_way() {
    let ground = || Arc::new(Geometric::from_standard_normal(Normals(vec![vec![0.0; 2], vec![9.0; 2]])));
    let wanting = |ess| {
        let until = Until { ess: Some(ess), ..Until::default() };
        Settings { until: Some(until), ..Settings::fitted() }
    };
    let begin = |ess| Run::from_anchor(ground(), wanting(ess), Acceleration::None).unwrap();
    let go_on = |run: &Run, ess| {
        let state = run.save().unwrap();
        Run::restore_from_anchor(ground(), wanting(ess), Acceleration::None, &state).unwrap()
    };
    let [mut little, mut much] = [300.0, 1500.0].map(begin);
    little.complete().unwrap();
    much.complete().unwrap();
    let (few, look) = (little.results().iterations, little.last_look().unwrap());
    assert!(look.0 == few && look.1 == little.reached() && little.expected_iterations() == Some(few));
    let mut raised = go_on(&little, 1500.0);
    assert_eq!((raised.progress().0, raised.stopped_by()), (Stage::Sampling, None));
    raised.complete().unwrap();
    assert!(answers(&raised) == answers(&much) && raised.stopped_by() == Some(StoppedBy::Goals));
    // Lowered after the end: nothing happens. Lowered before it: the next look is the last.
    assert!(answers(&go_on(&much, 300.0)) == answers(&much));
    let mut on_its_way = begin(1500.0);
    while on_its_way.progress().0 != Stage::Sampling || on_its_way.progress().1 <= few {
        on_its_way.advance(7).unwrap();
    }
    let mut lowered = go_on(&on_its_way, 300.0);
    lowered.complete().unwrap();
    let iterations = lowered.results().iterations;
    assert!(few < iterations && iterations <= few + few / 3 && much.results().iterations > iterations);
}

/// A round of tuning that would take far more than is allowed ends on its way, and half of what is allowed is left for draws.
#[test]
fn evaluations_end_a_round_of_tuning_on_its_way() {
    let most = 30_000;
    let ground = Arc::new(Geometric::from_standard_normal(sterna::targets::Dw4));
    let until = Until { ess: Some(1e5), evaluations: Some(most), ..Until::default() };
    let settings = Settings { until: Some(until), ..Settings::fitted() };
    let mut run = Run::from_anchor(ground, settings, Acceleration::None).unwrap();
    run.complete().unwrap();
    assert_eq!(run.stopped_by(), Some(StoppedBy::Evaluations));
    let results = run.results();
    assert!(results.evaluations < most + most / 4, "{}", results.evaluations);
    assert!(results.sampling_evaluations > most / 4, "{}", results.sampling_evaluations);
}

/// The goal for tails counts what the alarm about few draws counts: the log density too.
#[test]
fn the_log_density_counts_among_the_tails() {
    let ground = Arc::new(Geometric::from_standard_normal(sterna::targets::Banana::new(2)));
    let mut run = Run::from_anchor(ground, Settings::fitted(), Acceleration::None).unwrap();
    run.complete().unwrap();
    let ladders: Vec<Vec<f64>> =
        run.records().flat_map(|r| r.draws.iter().map(|draws| draws.log_density.clone())).collect();
    let ladders: Vec<&[f64]> = ladders.iter().map(|ladder| &ladder[..]).collect();
    let of_log_density = sterna::estimates::tail_draws(&ladders).min(sterna::estimates::bulk_draws(&ladders));
    let reached = run.reached().tail_ess;
    assert!((400.0..=of_log_density).contains(&reached), "{reached} beside {of_log_density}");
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

/// Looking at the coordinate that was slowest first ends a run where looking at all of them would, and not at an earlier look.
#[test]
fn the_slowest_coordinate_ends_a_run_where_all_would() {
    let wide = |j: usize| 1.0 + j as f64;
    let path =
        || Arc::new(Geometric::from_standard_normal(Normal::new(vec![0.0; 6], (0..6).map(wide).collect())));
    for seed in 0..6 {
        let until = Until { ess: Some(250.0), log_z_error: None, evaluations: None };
        let settings = Settings { seed, chains: 4, rounds: 3, iterations: 100_000, ..Settings::default() };
        let mut run = Run::new(path(), Settings { until: Some(until), ..settings.clone() }).unwrap();
        run.complete().unwrap();
        let ended = run.results().iterations;
        assert_eq!(run.stopped_by(), Some(StoppedBy::Goals));
        // Every look is one of all coordinates here.
        let met = |iterations: u64| {
            let mut whole = Run::new(path(), Settings { iterations, ..settings.clone() }).unwrap();
            whole.complete().unwrap();
            let reached = whole.reached();
            reached.ess >= 250.0 && reached.tail_ess >= 250.0
        };
        let mut looks = vec![48_u64];
        while *looks.last().unwrap() < ended {
            looks.push(looks.last().unwrap() + looks.last().unwrap() / 8);
        }
        let first = looks.iter().copied().find(|&look| met(look));
        assert_eq!(first, Some(ended), "seed {seed}");
    }
}
