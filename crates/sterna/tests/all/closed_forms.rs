//! Numbers that are known in closed form: acceptance, round trips, barriers, log Z.
//!
//! Seeds are fixed. Tolerances are standard errors times the quantile of a stated false-alarm
//! level: 10⁻⁵ for each test unless it says otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use sterna::acceleration::{Acceleration, FitAffine};
use sterna::accelerators::{Cmcd, CmcdSteps, Identity, NoDrift};
use sterna::estimates::{global_barrier, round_trip_rate};
use sterna::explorers::{Hmc, StepSize, StepSizes};
use sterna::path::AnnealingPath;
use sterna::paths::Geometric;
use sterna::run::{Criterion, Results, Run, Settings, Stage};
use sterna::streams::{Phase, Streams};
use sterna::targets::Normal;
use sterna::{Batch, Evaluation, IndexProcess, Recorder, Result, Schedule, Step, Target, Workspace, iterate};
use sterna_testkit::moves::{exact_ensemble, sampler};
use sterna_testkit::p_values::{mean_and_error, normal_cdf, z_test};
use sterna_testkit::{ExactLadder, FALSE_ALARM, GaussianLadder, Verdict, seed};

fn complete(target: impl Target + 'static, settings: Settings) -> Results {
    let path = Arc::new(Geometric::from_standard_normal(target));
    let mut run = Run::new(path, settings).unwrap();
    run.complete().unwrap();
    run.results()
}

/// Swaps of one iteration: the pair, |tanh(Δ/2)|, and whether it was accepted.
#[derive(Default)]
struct Swaps(Vec<(usize, f64, bool)>);

impl Recorder for Swaps {
    fn record(&mut self, step: &Step) -> Result<()> {
        self.0.extend(step.swaps.iter().map(|s| (s.pair, s.rejection, s.accepted)));
        Ok(())
    }
}

/// Swaps that iteration t proposes to `copies` exact ladders. One leapfrog step of size zero leaves
/// them where they are, so the draws stay independent.
fn swaps_of_exact_ladders(
    ladder: &dyn ExactLadder,
    schedule: &Schedule,
    base: u64,
    t: u64,
    copies: usize,
) -> Vec<(usize, f64, bool)> {
    let path = ladder.path();
    let sizes = StepSizes::fixed(schedule.chains(), path.dim(), 0.0);
    let still = Hmc::with_sizes(1, 1, sizes, 0.0);
    let mut sampler = sampler(path, schedule.clone(), still, Identity);
    sampler.streams = Streams::new(seed(base));
    let x = ladder.draw_ladder(schedule, &Streams::new(!seed(base)), copies);
    let mut ensemble = exact_ensemble(&sampler, &x);
    let mut out = Swaps::default();
    let mut work = Workspace::new(&ensemble);
    iterate(t, &mut ensemble, &sampler, &mut work, &mut out).unwrap();
    out.0
}

/// Unit normals δ apart accept with probability 2Φ(−δ/√2): by counting and by the tanh estimator,
/// which must also be the better of the two.
#[test]
fn unit_normals_accept_as_they_must() {
    let mut verdict = Verdict::new(FALSE_ALARM);
    for delta in [0.1, 0.5, 1.0, 2.0, 4.0] {
        let ladder = GaussianLadder::new(Normal::new(vec![delta], vec![1.0]));
        let swaps = swaps_of_exact_ladders(&ladder, &Schedule::uniform(2), 1, 1, 100_000);
        let exact = 2.0 * normal_cdf(-delta / 2f64.sqrt());
        let counted: Vec<f64> = swaps.iter().map(|s| f64::from(u8::from(s.2))).collect();
        let by_tanh: Vec<f64> = swaps.iter().map(|s| 1.0 - s.1).collect();
        let [counted, by_tanh] = [counted, by_tanh].map(|values| mean_and_error(&values));
        for (name, (mean, error)) in [("counted", counted), ("tanh", by_tanh)] {
            verdict.add(format!("δ = {delta}, {name}: {mean} and {exact}"), z_test(mean - exact, error, 1.0));
        }
        verdict.require(by_tanh.1 < counted.1, format!("δ = {delta}: tanh has the smaller error"));
    }
    verdict.assert_passed();
}

/// The same through a whole run with local moves on the target chain.
#[test]
fn a_run_finds_the_acceptance_of_unit_normals() {
    let mut verdict = Verdict::new(FALSE_ALARM);
    for delta in [0.5, 1.5, 3.0] {
        let settings = Settings {
            explorer: std::sync::Arc::new(Hmc { step_size: StepSize::Fixed(0.35), ..Hmc::default() }),
            seed: seed(2),
            chains: 2,
            rounds: 0,
            burn_in: 100,
            iterations: 40_000,
            ..Settings::default()
        };
        let path = Arc::new(Geometric::from_standard_normal(Normal::new(vec![delta], vec![1.0])));
        let mut run = Run::new(path, settings).unwrap();
        run.complete().unwrap();
        let record = run.records().next().unwrap();
        let pair = &record.counts.pairs[0];
        let tanh = |(f, b): (&f64, &f64)| (0.5 * (f - b)).tanh().abs();
        let series: Vec<f64> = pair.forward.iter().zip(&pair.backward).map(tanh).collect();
        let (mean, error) = sterna::estimates::mean_with_error(&series);
        let rate = run.results().rejection_rates[0];
        assert!((mean - rate).abs() < 1e-12 && pair.proposed == 20_000);
        let exact = 1.0 - 2.0 * normal_cdf(-delta / 2f64.sqrt());
        verdict.add(format!("δ = {delta}: {rate} and {exact}"), z_test(rate - exact, error, 1.0));
        // Acceptances scatter by more than their probabilities, by at most a coin's variance.
        let counted = 1.0 - pair.accepted as f64 / pair.proposed as f64;
        let error = error.hypot((0.25 / pair.proposed as f64).sqrt());
        verdict.add(format!("δ = {delta}, counted: {counted}"), z_test(counted - exact, error, 1.0));
    }
    verdict.assert_passed();
}

/// Round trips after T iterations when every swap is accepted. A replica's chain and direction are a
/// place on a circle of 2·chains, and each iteration takes it one further; it is at the reference,
/// having come down, once a turn.
fn round_trips_without_rejection(chains: u64, iterations: u64) -> u64 {
    let first_arrival = |m: u64| if m.is_multiple_of(2) { 2 * chains - 1 - m } else { m };
    (0..chains).map(|m| iterations.saturating_sub(first_arrival(m)) / (2 * chains)).sum()
}

#[test]
fn round_trips_have_a_formula_when_all_is_accepted() {
    for chains in [2, 3, 6, 11] {
        for iterations in [1, 7, 20, 999, 1000] {
            let settings = Settings {
                explorer: std::sync::Arc::new(Hmc { step_size: StepSize::Fixed(0.5), ..Hmc::default() }),
                chains,
                rounds: 0,
                burn_in: 0,
                iterations,
                ensembles: 2,
                ..Settings::default()
            };
            let results = complete(Normal::isotropic(3, 1.0), settings);
            let expected = 2 * round_trips_without_rejection(chains as u64, iterations);
            assert_eq!(results.round_trips, expected, "{chains} chains, {iterations} iterations");
            // Pairs of even number are not proposed in a single iteration: nothing is known of them.
            if iterations > 1 {
                assert!(results.rejection_rates.iter().all(|&r| r < 1e-12));
                assert!((results.round_trip_rate_predicted - 0.5).abs() < 1e-9);
            }
        }
    }
}

/// τ from rejection rates against index processes whose swaps are independent coins.
#[test]
fn the_round_trip_rate_is_that_of_a_bernoulli_process() {
    let mut verdict = Verdict::new(FALSE_ALARM);
    let cases: [&[f64]; 4] =
        [&[0.0, 0.0, 0.0], &[0.5], &[0.3, 0.1, 0.6, 0.2, 0.45], &[0.8, 0.05, 0.7, 0.9, 0.3, 0.3, 0.5, 0.1]];
    for (case, rejections) in cases.iter().enumerate() {
        let (warm, measured) = (2_000, 20_000);
        let rates: Vec<f64> = (0..40)
            .map(|copy| {
                let mut index = IndexProcess::new(rejections.len() + 1);
                let mut coins = Streams::new(seed(3)).row(Phase::Check, case as u64, copy);
                let mut before = 0;
                for t in 1..=warm + measured {
                    index.advance(t, |pair| coins.uniform() >= rejections[pair - 1]);
                    if t == warm {
                        before = index.round_trips();
                    }
                }
                (index.round_trips() - before) as f64 / measured as f64
            })
            .collect();
        let (mean, error) = mean_and_error(&rates);
        let exact = round_trip_rate(rejections);
        // 20,000 iterations are whole turns of 4 chains: without rejections the rate is exact.
        verdict.add(format!("{rejections:?}: {mean} and {exact}"), z_test(mean - exact, error, 1.0));
    }
    verdict.assert_passed();
}

/// Σr → Λ. With N pairs of equal barrier, Σr falls short of Λ by a share of order (Λ/N)²: below
/// 2·10⁻⁴ for the finest ladders here, a tenth of the standard error.
#[test]
fn rejections_add_up_to_the_barrier() {
    let mut verdict = Verdict::new(FALSE_ALARM);
    for (dim, precision) in [(1, 10.0), (4, 10.0), (7, 0.2)] {
        let ladder = GaussianLadder::new(Normal::isotropic(dim, precision));
        let exact = Normal::global_barrier(dim, precision);
        let sum = |chains: usize, copies: usize| {
            // λ(β) ∝ 1/(β + 1/(precision − 1)): equal barriers are a geometric sequence of precisions.
            let n_pairs = (chains - 1) as f64;
            let mut betas: Vec<f64> =
                (0..chains).map(|n| (precision.powf(n as f64 / n_pairs) - 1.0) / (precision - 1.0)).collect();
            betas[chains - 1] = 1.0;
            let schedule = Schedule::new(betas).unwrap();
            let mut rejections = vec![Vec::new(); chains - 1];
            for t in [1, 2] {
                for (pair, rejection, _) in swaps_of_exact_ladders(&ladder, &schedule, 4, t, copies) {
                    rejections[pair - 1].push(rejection);
                }
            }
            let each: Vec<(f64, f64)> = rejections.iter().map(|r| mean_and_error(r)).collect();
            let rates: Vec<f64> = each.iter().map(|e| e.0).collect();
            (global_barrier(&rates), each.iter().map(|e| e.1 * e.1).sum::<f64>().sqrt())
        };
        let (fine, error) = sum(129, 1500);
        verdict.add(format!("{dim} dimensions: {fine} and {exact}"), z_test(fine - exact, error, 1.0));
        verdict.require(exact * (exact / 128.0).powi(2) < 0.3 * error, "the ladder is fine enough");
        // Coarse ladders see less: one pair cannot reject more than always.
        let (coarse, coarse_error) = sum(3, 20_000);
        verdict.require(coarse < exact + 5.0 * coarse_error, format!("{coarse} ≤ {exact}"));
    }
    verdict.assert_passed();
}

/// λ(β) measured in tuning is the derivative of the barrier: its integral over the schedule is Λ.
/// The bound is 4% of Λ: λ at each of 12 chains has a relative error of about 1/√1000, and chains
/// are only weakly correlated, so 0.04 is at least 4 standard errors.
#[test]
fn local_barriers_integrate_to_the_barrier() {
    for criterion in [Criterion::Barrier, Criterion::Rejection] {
        let settings = Settings {
            seed: seed(5),
            chains: 12,
            rounds: 5,
            burn_in: 0,
            iterations: 4_000,
            criterion,
            ..Settings::default()
        };
        let results = complete(Normal::isotropic(4, 30.0), settings);
        let (betas, lambda): (Vec<f64>, Vec<f64>) = results.local_barrier.iter().copied().unzip();
        let total = *sterna::schedule::cumulative_barrier(&betas, &lambda).last().unwrap();
        let exact = Normal::global_barrier(4, 30.0);
        assert!((total / exact - 1.0).abs() < 0.04, "{criterion:?}: {total} {exact}");
    }
}

/// log Z by Bennett's acceptance ratio within 3 of its own standard errors: a false alarm in 370
/// runs, hence on fixed seeds; calibration over many seeds is tested elsewhere.
#[test]
fn log_z_of_normals() {
    let cases = [
        Normal::isotropic(2, 10.0),
        Normal::new(vec![1.0, -0.5, 2.0], vec![4.0, 0.3, 25.0]),
        Normal::isotropic(20, 3.0),
    ];
    for (case, normal) in cases.into_iter().enumerate() {
        let settings = Settings {
            seed: 6 + case as u64,
            chains: 6,
            rounds: 5,
            round_iterations: 400,
            burn_in: 200,
            iterations: 10_000,
            ..Settings::default()
        };
        let log_z = complete(normal.clone(), settings).log_z;
        let z = (log_z.bar - normal.log_z().unwrap()) / log_z.standard_error;
        assert!(z.abs() < 3.0 && log_z.standard_error < 0.1, "case {case}: z = {z}, {log_z:?}");
    }
}

/// The reference, times a constant.
struct Scaled {
    log_factor: f64,
    normal: Normal,
}

impl Target for Scaled {
    fn dim(&self) -> usize {
        self.normal.dim()
    }
    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        self.normal.evaluate(x, out)?;
        out.log_density.iter_mut().for_each(|l| *l += self.log_factor);
        Ok(())
    }
}

/// Where P = Q all weights are equal, and log Z is exact whatever was drawn.
#[test]
fn log_z_is_exact_where_forward_and_backward_agree() {
    for log_factor in [0.0, 3.7, -250.0] {
        let target = Scaled { log_factor, normal: Normal::isotropic(5, 1.0) };
        let settings = Settings {
            explorer: std::sync::Arc::new(Hmc { step_size: StepSize::Fixed(0.3), ..Hmc::default() }),
            chains: 4,
            rounds: 0,
            burn_in: 0,
            iterations: 50,
            ..Settings::default()
        };
        let log_z = complete(target, settings).log_z;
        for estimate in [log_z.forward, log_z.backward, log_z.geometric_mean, log_z.bar] {
            assert!((estimate - log_factor).abs() < 1e-10, "{estimate} {log_factor}");
        }
        assert!(log_z.standard_error < 1e-10);
    }
}

/// A path's reference may have a mass of its own, to which log Z is relative.
#[test]
fn log_z_is_relative_to_the_reference() {
    struct Heavy(Geometric);
    impl AnnealingPath for Heavy {
        fn dim(&self) -> usize {
            self.0.dim()
        }
        fn evaluate(&self, betas: &[f64], points: &mut sterna::Points) -> Result<()> {
            self.0.evaluate(betas, points)
        }
        fn slopes(
            &self,
            betas: &[f64],
            points: &sterna::Points,
            out: &mut [f64],
            scratch: &mut sterna::call::Scratch,
        ) -> Result<()> {
            self.0.slopes(betas, points, out, scratch)
        }
        fn draw_reference(
            &self,
            end: f64,
            streams: &Streams,
            phase: sterna::streams::PhaseKey,
            iteration: u64,
            rows: &[u32],
            x: &mut Batch,
        ) {
            self.0.draw_reference(end, streams, phase, iteration, rows, x);
        }
        fn log_z_reference(&self) -> f64 {
            2.5
        }
        fn log_z(&self) -> Option<f64> {
            None
        }
        fn evaluations(&self) -> u64 {
            0
        }
    }
    let target = Scaled { log_factor: 1.0, normal: Normal::isotropic(2, 1.0) };
    let settings = Settings {
        explorer: std::sync::Arc::new(Hmc { step_size: StepSize::Fixed(0.3), ..Hmc::default() }),
        chains: 3,
        rounds: 0,
        burn_in: 0,
        iterations: 20,
        ..Settings::default()
    };
    let mut run = Run::new(Arc::new(Heavy(Geometric::from_standard_normal(target))), settings).unwrap();
    run.complete().unwrap();
    assert!((run.results().log_z.bar - 3.5).abs() < 1e-12);
}

/// Counts the points it is asked for.
struct Counted {
    inner: Normal,
    points: Arc<AtomicU64>,
}

impl Target for Counted {
    fn dim(&self) -> usize {
        self.inner.dim()
    }
    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        self.points.fetch_add(x.rows() as u64, Ordering::Relaxed);
        self.inner.evaluate(x, out)
    }
}

/// Evaluations: one for each start, one for each exact draw, one for each leapfrog step, none for a
/// plain swap, K for each traveller of an accelerated one (errata E20).
#[test]
fn evaluations_are_counted_and_none_is_wasted() {
    let (chains, ensembles, iterations) = (4u64, 3u64, 100u64);
    let settings = Settings {
        explorer: std::sync::Arc::new(Hmc {
            steps: 2,
            leapfrog_steps: 3,
            step_size: StepSize::Fixed(0.2),
            ..Hmc::default()
        }),
        chains: chains as usize,
        ensembles: ensembles as usize,
        rounds: 0,
        burn_in: 0,
        iterations,
        thin: 7,
        ..Settings::default()
    };
    let local = 1 + (chains - 1) * 2 * 3;
    // Three pairs: two are proposed at odd iterations, one at even ones, each both ways.
    let travellers = iterations / 2 * (2 + 1) * 2;
    let cmcd = CmcdSteps::linear(Arc::new(NoDrift), 2, &[0.1; 3]).unwrap();
    for (acceleration, swaps) in
        [(Acceleration::None, 0), (Acceleration::Given(Arc::new(Cmcd { steps: cmcd })), 2 * travellers)]
    {
        let points = Arc::new(AtomicU64::new(0));
        let target = Counted { inner: Normal::isotropic(2, 3.0), points: points.clone() };
        let path = Arc::new(Geometric::from_standard_normal(target));
        let mut run = Run::accelerated(path, settings.clone(), acceleration).unwrap();
        run.complete().unwrap();
        let results = run.results();
        let expected = ensembles * (chains + iterations * local + swaps);
        assert_eq!(points.load(Ordering::Relaxed), expected);
        assert_eq!(results.evaluations, expected);
        // Every seventh draw is kept, and each pair has its own number of proposals (errata E4).
        for record in run.records() {
            assert!(record.draws.iter().all(|d| d.log_density.len() == 14 && d.x.len() == 28));
            assert!(record.counts.pairs.iter().all(|p| p.proposed == 50 && p.forward.len() == 50));
        }
    }
}

/// Between the end of tuning and the end of sampling nothing adapts.
#[test]
fn everything_is_frozen_while_sampling() {
    let settings = Settings {
        chains: 4,
        rounds: 3,
        round_iterations: 100,
        round_burn_in: 40,
        collect: 50,
        burn_in: 60,
        iterations: 300,
        ..Settings::default()
    };
    let path = Arc::new(Geometric::from_standard_normal(Normal::isotropic(2, 8.0)));
    let fitted = Acceleration::Fitted(Arc::new(FitAffine { full: false }));
    let mut run = Run::accelerated(path, settings, fitted).unwrap();
    while run.progress().0 != Stage::BurnIn {
        run.advance(u64::MAX).unwrap();
    }
    let frozen = run.sampler().clone();
    assert_eq!(frozen.accelerator.steps(), 1);
    while run.progress().0 != Stage::Finished {
        run.advance(10).unwrap();
        let now = run.sampler();
        assert_eq!(now.schedule, frozen.schedule);
        assert!(Arc::ptr_eq(&now.explorer, &frozen.explorer));
        assert!(Arc::ptr_eq(&now.accelerator, &frozen.accelerator));
    }
}
