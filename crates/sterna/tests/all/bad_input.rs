//! Targets that answer NaN or ±∞: a typed error at the start, a rejected and counted move later,
//! and exact sampling throughout.

use std::sync::Arc;
use sterna::call::Scratch;
use sterna::explorers::{Hmc, StepSize};
use sterna::path::{AnnealingPath, Points};
use sterna::paths::{Geometric, Reference};
use sterna::run::{Results, Run, Settings};
use sterna::streams::{PhaseKey, Streams};
use sterna::targets::Normal;
use sterna::{Batch, Error, Evaluation, Result, Target};
use sterna_testkit::p_values::{normal_cdf, z_test};
use sterna_testkit::{FALSE_ALARM, Verdict};

/// A normal in the plane, with another answer where the first coordinate is beyond a wall.
#[derive(Clone)]
struct Walled {
    normal: Normal,
    wall: f64,
    answer: f64,
    score: f64,
}

impl Target for Walled {
    fn dim(&self) -> usize {
        self.normal.dim()
    }
    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        self.normal.evaluate(x, out)?;
        for i in 0..x.rows() {
            if x.row(i)[0] > self.wall {
                out.log_density[i] = self.answer;
                out.score.row_mut(i).fill(self.score);
            }
        }
        Ok(())
    }
}

fn start(target: impl Target + 'static, settings: Settings) -> Result<Run> {
    Run::new(Arc::new(Geometric::from_standard_normal(target)), settings)
}

fn everywhere(answer: f64) -> Walled {
    Walled { normal: Normal::isotropic(2, 1.0), wall: f64::NEG_INFINITY, answer, score: 0.0 }
}

/// The error that a target meets at the start, whatever the number of threads.
fn start_error(target: impl Target + Clone + 'static) -> Error {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let settings = Settings { chains: 4, ensembles: 6, ..Settings::default() };
        pool.install(|| start(target.clone(), settings)).map(|_| ()).expect_err("this cannot start")
    };
    let (one, five) = (on(1), on(5));
    assert_eq!(one.to_string(), five.to_string());
    one
}

#[test]
fn nan_and_infinity_at_the_start_are_errors() {
    for answer in [f64::NAN, f64::INFINITY] {
        match start_error(everywhere(answer)) {
            Error::BadStart { replica: 0, value, point } => {
                assert!(value == answer || (value.is_nan() && answer.is_nan()));
                assert_eq!(point.len(), 2);
            }
            other => panic!("{other}"),
        }
    }
    // The message names the value, the replica and the point.
    let message = start_error(everywhere(f64::NAN)).to_string();
    assert!(message.contains("NaN") && message.contains("replica 0") && message.contains('['), "{message}");
}

/// Where some replicas start at points without a density, others do not, and exact draws of the reference free them all: the law is
/// that of the target. False alarm 10⁻⁵.
#[test]
fn some_bad_starts_do_no_harm() {
    let (wall, seed) = (-0.5, 1);
    let target = || Walled { wall, ..everywhere(f64::NAN) };
    let settings = Settings {
        seed,
        chains: 4,
        rounds: 3,
        round_iterations: 200,
        iterations: 20_000,
        ..Settings::default()
    };
    let mut run = start(target(), settings).unwrap();
    run.complete().unwrap();
    let (found, exact) = (&run.results().log_z, normal_cdf(wall).ln());
    let mut verdict = Verdict::new(FALSE_ALARM);
    verdict.add(format!("{} and {exact}", found.bar), z_test(found.bar - exact, found.standard_error, 1.0));
    verdict.require(run.results().bad.0 > 0, "bad proposals are counted");
    verdict.assert_passed();
}

#[test]
fn a_density_that_vanishes_everywhere_is_an_error() {
    match start_error(everywhere(f64::NEG_INFINITY)) {
        // 24 replicas, and a thousand more draws in search of support.
        Error::NoStart { draws: 1024 } => {}
        other => panic!("{other}"),
    }
}

#[test]
fn a_target_that_fails_stops_the_run() {
    struct Fails;
    impl Target for Fails {
        fn dim(&self) -> usize {
            1
        }
        fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
            if x.as_slice().iter().any(|x| *x > 2.5) {
                return Err(Error::Target("the server is gone".into()));
            }
            Normal::isotropic(1, 1.0).evaluate(x, out)
        }
    }
    let settings = Settings { seed: 4, chains: 3, ..Settings::default() };
    let error = start(Fails, settings).unwrap().complete().unwrap_err();
    assert!(matches!(error, Error::Target(_)) && error.to_string().contains("the server is gone"));
}

#[test]
fn dimensions_must_agree() {
    let error = Geometric::new(Reference::standard_normal(3), Arc::new(Normal::isotropic(2, 1.0)));
    let Err(Error::Dimension { found: 3, expected: 2, .. }) = error else { panic!("no error") };
}

#[test]
fn impossible_settings_are_named() {
    let good = Settings::default;
    let moves = |hmc: Hmc| Settings { explorer: Arc::new(hmc), ..good() };
    let cases = [
        ("Settings.chains", Settings { chains: 1, ..good() }),
        ("Settings.ensembles", Settings { ensembles: 0, ..good() }),
        ("Settings.ensembles", Settings { ensembles: 1 << 40, ..good() }),
        ("Settings.ensembles", Settings { ensembles: 1 << 40, chains: 1 << 40, ..good() }),
        ("Settings.chains", Settings { chains: usize::MAX, ..good() }),
        ("Hmc.steps", moves(Hmc { steps: 0, ..Hmc::default() })),
        ("Hmc.steps", moves(Hmc { steps: 1000, ..Hmc::default() })),
        ("Hmc.leapfrog_steps", moves(Hmc { leapfrog_steps: 0, ..Hmc::default() })),
        ("Hmc.leapfrog_steps", moves(Hmc { leapfrog_steps: usize::MAX, ..Hmc::default() })),
        (
            "Hmc.step_size",
            Settings {
                explorer: std::sync::Arc::new(Hmc { step_size: StepSize::Fixed(f64::NAN), ..Hmc::default() }),
                ..good()
            },
        ),
        (
            "Hmc.step_size",
            Settings {
                explorer: std::sync::Arc::new(Hmc { step_size: StepSize::Fixed(-0.1), ..Hmc::default() }),
                ..good()
            },
        ),
        (
            "Hmc.step_size",
            Settings {
                explorer: std::sync::Arc::new(Hmc {
                    step_size: StepSize::PerChain(vec![0.1; 3]),
                    ..Hmc::default()
                }),
                ..good()
            },
        ),
        (
            "Hmc.acceptance",
            Settings {
                explorer: std::sync::Arc::new(Hmc {
                    step_size: StepSize::Adapt { acceptance: 1.0 },
                    ..Hmc::default()
                }),
                ..good()
            },
        ),
        ("Settings.rounds", Settings { rounds: 0, ..good() }),
        ("Settings.round_iterations", Settings { round_iterations: 50, ..good() }),
        ("Settings.round_iterations", Settings { round_iterations: i64::MAX as u64, ..good() }),
        ("Settings.rounds", Settings { rounds: 1 << 40, ..good() }),
        ("Settings.round_iterations", Settings { round_burn_in: u64::MAX, ..good() }),
        ("Settings.collect", Settings { collect: 1 << 44, ..good() }),
        ("Settings.burn_in", Settings { burn_in: u64::MAX, ..good() }),
        ("Settings.iterations", Settings { iterations: i64::MAX as u64, ..good() }),
        ("Settings.iterations", Settings { iterations: 0, ..good() }),
        ("Settings.thin", Settings { thin: 0, ..good() }),
    ];
    for (name, settings) in cases {
        match start(Normal::isotropic(2, 1.0), settings).map(|_| ()) {
            Err(Error::Setting { setting, .. }) => assert_eq!(setting, name),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a_dimension_without_random_numbers_is_named() {
    let most = Streams::MOST_NORMALS;
    let short =
        || Settings { chains: 2, rounds: 1, round_iterations: 2, round_burn_in: 0, ..Settings::default() };
    let mut run = start(Normal::isotropic(most, 1.0), short()).unwrap();
    run.advance(1).unwrap();
    match start(Normal::isotropic(most + 1, 1.0), short()).map(|_| ()) {
        Err(Error::Setting { setting: "Target.dim", value, .. }) => assert_eq!(value, "131073"),
        other => panic!("{other:?}"),
    }
}

/// A round may be longer than memory: what it needs is taken as it goes on.
#[test]
fn long_rounds_begin_at_once() {
    let settings = Settings { round_iterations: 1 << 40, ..Settings::default() };
    start(Normal::isotropic(2, 1.0), settings).unwrap().advance(10).unwrap();
}

const WALL: f64 = 2.0;
const MEAN: f64 = 1.5;

fn walled(answer: f64, score: f64) -> Walled {
    Walled { normal: Normal::new(vec![MEAN, 0.0], vec![1.0, 1.0]), wall: WALL, answer, score }
}

/// What is true of the first coordinate of a normal cut off at the wall.
fn truncated_moments() -> (f64, f64, f64) {
    let a = WALL - MEAN;
    let mass = normal_cdf(a);
    let hazard = (-0.5 * a * a).exp() / std::f64::consts::TAU.sqrt() / mass;
    let mean = MEAN - hazard;
    let variance = 1.0 - a * hazard - hazard * hazard;
    (mean, variance + mean * mean, mass.ln())
}

fn check_truncated(name: &str, run: &Run, results: &Results, verdict: &mut Verdict) {
    let (mean, square, log_z) = truncated_moments();
    let x: Vec<f64> =
        run.records().flat_map(|r| &r.draws).flat_map(|d| d.x.iter().step_by(2).copied()).collect();
    verdict.require(x.iter().all(|&x| x <= WALL), format!("{name}: no draw beyond the wall"));
    let mut ask = |what: &str, values: Vec<f64>, exact: f64| {
        let (estimate, error) = sterna::estimates::mean_with_error(&values);
        verdict.add(format!("{name}, {what}: {estimate} and {exact}"), z_test(estimate - exact, error, 1.0));
    };
    ask("mean", x.clone(), mean);
    ask("square", x.iter().map(|x| x * x).collect(), square);
    let near = (normal_cdf(WALL - MEAN) - normal_cdf(WALL - 0.3 - MEAN)) / normal_cdf(WALL - MEAN);
    let is_near = |x: &f64| if *x > WALL - 0.3 { 1.0 } else { 0.0 };
    ask("share near the wall", x.iter().map(is_near).collect(), near);
    let found = &results.log_z;
    verdict
        .add(format!("{name}, log Z: {}", found.bar), z_test(found.bar - log_z, found.standard_error, 1.0));
}

/// The law beyond the wall has no density, whatever the target says there: NaN, +∞ and −∞ sample the
/// same cut normal, and only the first two are counted as bad. False alarm 10⁻⁵ in all.
#[test]
fn bad_answers_are_rejected_and_counted_and_sampling_stays_exact() {
    let mut verdict = Verdict::new(FALSE_ALARM);
    for answer in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for score in [0.0, f64::NAN, -3.0] {
            for step_size in [StepSize::Fixed(0.3), StepSize::Adapt { acceptance: 0.8 }] {
                let name = format!("{answer}, score {score}, {step_size:?}");
                // This seed's starting points are all on the good side.
                let settings = Settings {
                    explorer: std::sync::Arc::new(Hmc { step_size, ..Hmc::default() }),
                    seed: 2,
                    chains: 4,
                    rounds: 3,
                    round_iterations: 200,
                    iterations: 20_000,
                    ..Settings::default()
                };
                let mut run = start(walled(answer, score), settings).unwrap();
                run.complete().unwrap();
                let results = run.results();
                check_truncated(&name, &run, &results, &mut verdict);
                let (count, first) = &results.bad;
                // A score that is no number leads to points that are none.
                let bad = answer != f64::NEG_INFINITY || score.is_nan();
                verdict.require((*count > 0) == bad, format!("{name}: {count} bad proposals"));
                verdict.require(first.is_some() == bad, format!("{name}: the first is kept"));
                if let Some(first) = first {
                    let place = first.chain > 0 && first.chain < 4 && first.replica < 4;
                    verdict.require(place && first.iteration > 0, format!("{name}: {first:?}"));
                }
                verdict.require(
                    results.rejection_rates.iter().all(|r| (0.0..=1.0).contains(r)),
                    format!("{name}: rejection rates are numbers"),
                );
            }
        }
    }
    verdict.assert_passed();
}

/// Truncated at −1, with mean −1.5: 84% of the starts are beyond the wall.
fn far() -> Walled {
    let normal = Normal::new(vec![-1.5, 0.0], vec![1.0, 1.0]);
    Walled { normal, wall: -1.0, answer: f64::NEG_INFINITY, score: f64::NAN }
}

/// Starts with zero density are allowed: exact draws and swaps bring replicas into the support, even
/// where the score gives no direction.
#[test]
fn replicas_recover_from_starts_of_zero_density() {
    let mut verdict = Verdict::new(FALSE_ALARM);
    let settings = Settings {
        explorer: std::sync::Arc::new(Hmc { step_size: StepSize::Fixed(0.3), ..Hmc::default() }),
        seed: 3,
        chains: 4,
        rounds: 0,
        burn_in: 500,
        iterations: 20_000,
        ..Settings::default()
    };
    let mut run = start(far(), settings).unwrap();
    run.complete().unwrap();
    let x: Vec<f64> =
        run.records().flat_map(|r| &r.draws).flat_map(|d| d.x.iter().step_by(2).copied()).collect();
    let hazard = (-0.125f64).exp() / std::f64::consts::TAU.sqrt() / normal_cdf(0.5);
    let (mean, error) = sterna::estimates::mean_with_error(&x);
    verdict.add("mean", z_test(mean + 1.5 + hazard, error, 1.0));
    let log_z = run.results().log_z;
    verdict.add("log Z", z_test(log_z.bar - normal_cdf(0.5).ln(), log_z.standard_error, 1.0));
    verdict.require(x.iter().all(|&x| x <= -1.0), "no draw beyond the wall");
    verdict.assert_passed();
}

/// Weights recorded before all replicas have found the support end in no endless search for log Z.
#[test]
fn lost_replicas_do_not_stop_the_estimates() {
    for seed in 1..40 {
        for iterations in [4, 10, 50] {
            let settings = Settings {
                explorer: std::sync::Arc::new(Hmc { step_size: StepSize::Fixed(0.3), ..Hmc::default() }),
                seed,
                chains: 5,
                rounds: 0,
                burn_in: 0,
                iterations,
                ..Settings::default()
            };
            let mut run = start(far(), settings).unwrap();
            run.complete().unwrap();
            let log_z = run.results().log_z;
            // Unknown, or of a sensible size.
            assert!(log_z.bar.is_nan() || log_z.bar.abs() < 30.0, "{log_z:?}");
        }
    }
}

/// The geometric path, whose reference is left to local moves.
struct Undrawn(Geometric);

impl AnnealingPath for Undrawn {
    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        self.0.evaluate(betas, points)
    }
    fn move_to(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        self.0.move_to(betas, points)
    }
    fn slopes(&self, betas: &[f64], points: &Points, out: &mut [f64], scratch: &mut Scratch) -> Result<()> {
        self.0.slopes(betas, points, out, scratch)
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
        self.0.draw_reference(end, streams, phase, iteration, rows, x);
    }
    fn draws_reference(&self) -> bool {
        false
    }
    fn log_z(&self) -> Option<f64> {
        self.0.log_z()
    }
    fn evaluations(&self) -> u64 {
        self.0.evaluations()
    }
}

/// At β = 0 the target has no say: what it answers there changes neither the reference nor log Z.
#[test]
fn bad_answers_do_not_cut_the_reference() {
    let mut verdict = Verdict::new(FALSE_ALARM);
    // A third of the reference lies beyond this wall: were it cut off, log Z would be 0.37 too large.
    let (mean, wall) = (-0.3, 0.5);
    let normal = Normal::new(vec![mean, 0.0], vec![1.0, 1.0]);
    let target = Walled { normal, wall, answer: f64::NAN, score: 0.0 };
    let settings = |seed: u64| Settings {
        explorer: std::sync::Arc::new(Hmc { step_size: StepSize::Fixed(0.35), ..Hmc::default() }),
        seed,
        chains: 3,
        rounds: 0,
        burn_in: 100,
        iterations: 20_000,
        ..Settings::default()
    };
    let path = Arc::new(Undrawn(Geometric::from_standard_normal(target)));
    // The first seed whose starting points are all on the good side.
    let mut run = (1..100).find_map(|seed| Run::new(path.clone(), settings(seed)).ok()).unwrap();
    run.complete().unwrap();
    let results = run.results();
    let (found, exact) = (&results.log_z, normal_cdf(wall - mean).ln());
    verdict.add(format!("{} and {exact}", found.bar), z_test(found.bar - exact, found.standard_error, 1.0));
    verdict.require(found.standard_error < 0.03, "an error that would notice");
    verdict.require(results.acceptance[0] > 0.5, "the reference has local moves");
    verdict.require(results.bad.0 > 0, "bad proposals are counted");
    verdict.assert_passed();
}
