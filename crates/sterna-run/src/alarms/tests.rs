//! Each alarm is raised by what it is about, and silent otherwise.

mod each;

use super::*;
use sterna::Schedule;
use sterna::estimates::Mixing;
use sterna::estimates::{Bar, Crooks, LogZ, PairEstimate};
use sterna::records::BadPoint;
use sterna::run::Leg;
use sterna::streams::{Phase, Streams};

/// A run without a fault.
fn healthy() -> Results {
    let pair = PairEstimate {
        forward: 1.0,
        backward: 1.0,
        bar: Bar { log_ratio: 1.0, slope: 1.0, overlap: 0.5 },
        crooks: Crooks { crossing: 1.0, slope: 1.0 },
        alive: 1.0,
    };
    Results {
        iterations: 10_000,
        schedule: Schedule::uniform(5),
        rejection_rates: vec![0.4; 4],
        local_barrier: [0.0, 0.25, 0.5, 0.75, 1.0].map(|beta| (beta, 1.6)).to_vec(),
        round_trips: 900,
        round_trip_rate: 0.09,
        round_trip_rate_predicted: 0.12,
        log_z: LogZ {
            forward: 4.01,
            backward: 3.99,
            geometric_mean: 4.0,
            bar: 4.0,
            standard_error: 0.01,
            unseen: 0.0,
            pairs: vec![pair; 4],
        },
        legs: Vec::new(),
        log_z_truth: None,
        means: vec![(0.0, 0.01)],
        ess: vec![5000.0],
        acceptance: vec![f64::NAN, 0.9, 0.9, 0.9, 0.9],
        step_size: vec![0.1; 5],
        bad: (0, None),
        evaluations: 1000,
        sampling_evaluations: 900,
        network_evaluations: 0,
        sampling_network_evaluations: 0,
    }
}

/// Draws of two humps, the share of the right one given for each ladder.
fn draws(shares: &[f64]) -> Vec<Draws> {
    let ladder = |(i, share): (usize, &f64)| {
        let mut stream = Streams::new(7).row(Phase::Check, 0, i as u32);
        let mut draw = || if stream.uniform() < *share { 3.0 } else { -3.0 } + stream.normal();
        Draws { x: (0..4000).map(|_| draw()).collect(), ..Draws::default() }
    };
    shares.iter().enumerate().map(ladder).collect()
}

fn codes(results: &Results) -> Vec<String> {
    codes_with(results, &[0.5, 0.5], |_| {})
}

/// Nothing but results.
fn alone(results: &Results) -> Evidence<'_> {
    Evidence {
        results,
        draws: Vec::new(),
        dim: 1,
        name_of: &coordinate,
        features: Vec::new(),
        looked: Vec::new(),
        watched: &[],
        wanted_acceptance: None,
        accelerated: false,
        training: None,
        optima: &[],
        unvisited: None,
        cut_tail: None,
        left_out: None,
        unanswered: None,
        exact: None,
        given: None,
        unreached: None,
        said: None,
    }
}

fn codes_with(results: &Results, shares: &[f64], change: impl Fn(&mut Evidence)) -> Vec<String> {
    let draws = draws(shares);
    let wanted_acceptance = Some(0.92);
    let mut evidence = Evidence { draws: draws.iter().collect(), wanted_acceptance, ..alone(results) };
    change(&mut evidence);
    evidence.alarms().iter().map(|alarm| alarm.code.name().to_string()).collect()
}

/// The silent half of every test below.
#[test]
fn a_healthy_run_raises_none() {
    assert!(codes(&healthy()).is_empty(), "{:?}", codes(&healthy()));
}

#[test]
fn bad_density_says_where() {
    let point = BadPoint { iteration: 7, chain: 3, replica: 11, point: vec![1.5; 20] };
    let results = Results { bad: (2, Some(point)), ..healthy() };
    assert_eq!(codes(&results), ["bad-density"]);
    let message = &alone(&results).alarms()[0].message;
    for part in ["2 proposals", "iteration 7", "chain 3", "replica 11", "[1.5, 1.5"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn starving_pair_needs_nearly_all_rejected() {
    let with = |rate| Results { rejection_rates: vec![0.4, rate, 0.4, 0.4], ..healthy() };
    assert_eq!(codes(&with(0.97)), ["starving-pair"]);
    assert!(codes(&with(0.9)).is_empty());
}

#[test]
fn too_few_chains_compares_with_the_barrier() {
    let rejecting = |lambda, rate| Results {
        local_barrier: vec![(0.0, lambda), (0.5, lambda), (1.0, lambda)],
        rejection_rates: vec![rate; 4],
        ..healthy()
    };
    let with = |lambda| rejecting(lambda, 0.7);
    assert_eq!(codes(&with(4.5)), ["too-few-chains"]);
    assert!(codes(&with(3.5)).is_empty());
    // λ read at a few chains says little where all swaps pass more often than not.
    assert!(codes(&rejecting(4.5, 0.2)).is_empty());
    // A target that is alone with its reference gains nothing by chains between, until nearly all swaps are rejected.
    let alone = |rate| Results { rejection_rates: vec![rate], ..rejecting(3.0, rate) };
    let alone = |rate| Results { schedule: Schedule::uniform(2), ..alone(rate) };
    assert!(codes(&alone(0.7)).is_empty());
    assert_eq!(codes(&alone(0.93)), ["too-few-chains"]);
    // Accelerated swaps are judged by their own rejections, whatever λ says of plain ones.
    let accelerated = |e: &mut Evidence| e.accelerated = true;
    assert!(codes_with(&rejecting(20.0, 0.65), &[0.5, 0.5], accelerated).is_empty());
    assert_eq!(codes_with(&rejecting(1.6, 0.8), &[0.5, 0.5], accelerated), ["too-few-chains"]);
}

#[test]
fn no_round_trip_and_low_exploration_exclude_each_other() {
    assert_eq!(codes(&Results { round_trips: 0, round_trip_rate: 0.0, ..healthy() }), ["no-round-trip"]);
    assert_eq!(codes(&Results { round_trip_rate: 0.02, ..healthy() }), ["low-exploration"]);
    // However few they are, where the swaps would have allowed more.
    let few = Results { round_trips: 9, round_trip_rate: 0.02, ..healthy() };
    assert_eq!(codes(&few), ["few-round-trips", "low-exploration"]);
    // Too few allowed to judge.
    assert_eq!(codes(&Results { round_trips: 5, round_trip_rate: 0.02, ..healthy() }), ["few-round-trips"]);
}

#[test]
fn log_z_disagrees_beyond_its_error() {
    let with = |forward| Results { log_z: LogZ { forward, ..healthy().log_z }, ..healthy() };
    assert_eq!(codes(&with(5.5)), ["log-z-disagrees"]);
    assert_eq!(codes(&with(f64::NAN)), ["log-z-disagrees"]);
    // An error that is not known excuses nothing, nor do two sides that agree excuse what both together say.
    let mut unknown = healthy();
    unknown.log_z.standard_error = f64::NAN;
    assert!(codes(&unknown).iter().any(|code| code == "log-z-disagrees"));
    let mut astray = healthy();
    astray.log_z.bar = -1.7e213;
    assert_eq!(codes(&astray), ["log-z-disagrees"]);
    // Nor does one side that is no number leave the rest to the other.
    for side in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut one_sided = healthy();
        one_sided.log_z.backward = side;
        assert_eq!(codes(&one_sided), ["log-z-disagrees"], "{side}");
    }
    let mut apart = healthy();
    (apart.log_z.bar, apart.log_z.standard_error) = (f64::NAN, f64::NAN);
    assert!(codes(&apart).iter().any(|code| code == "log-z-disagrees"));
    assert!(codes(&with(4.5)).is_empty());
}

#[test]
fn step_size_bound_needs_an_adaptation_that_failed() {
    let mut results = healthy();
    results.step_size[2] = 1e-8;
    assert_eq!(codes(&results), ["step-size-bound"]);
    assert!(codes_with(&results, &[0.5, 0.5], |e| e.wanted_acceptance = None).is_empty());
    let mut results = healthy();
    results.acceptance[3] = 0.2;
    assert_eq!(codes(&results), ["step-size-bound"]);
    // Chain 0 draws exactly: its step size means nothing.
    let mut results = healthy();
    results.step_size[0] = 1e-8;
    assert!(codes(&results).is_empty());
}

#[test]
fn missed_mode_needs_ladders_that_disagree() {
    assert_eq!(codes_with(&healthy(), &[0.5, 0.5, 0.0], |_| {}), ["missed-mode"]);
    assert!(codes_with(&healthy(), &[0.2, 0.2, 0.2], |_| {}).is_empty());
    // A molecule that turns as a whole: its angles are compared, not its coordinates.
    let angles = |shares: &[f64]| vec![("phi".to_string(), draws(shares).into_iter().map(|d| d.x).collect())];
    let turned = |e: &mut Evidence| e.features = angles(&[0.5, 0.5, 0.5]);
    assert!(codes_with(&healthy(), &[0.5, 0.5, 0.0], turned).is_empty());
    let missed = |e: &mut Evidence| e.features = angles(&[0.5, 0.0, 0.5]);
    assert_eq!(codes_with(&healthy(), &[0.5, 0.5, 0.5], missed), ["missed-mode"]);
    // One ladder, whose second half has found what the first had not.
    let mut late = draws(&[0.0, 0.5]);
    let second = late.pop().unwrap();
    late[0].x.extend(second.x);
    let results = healthy();
    let evidence = Evidence { draws: late.iter().collect(), ..alone(&results) };
    assert_eq!(evidence.alarms()[0].code, Code::MissedMode);
}

#[test]
fn training_passes_its_own_on() {
    for code in ["transport-replaced", "training-diverged", "training-skipped"] {
        let report = FitReport { alarms: vec![(code.into(), "seen".into())], ..FitReport::default() };
        let results = healthy();
        let evidence = Evidence { accelerated: true, training: Some(&report), ..alone(&results) };
        assert_eq!(evidence.alarms(), [Alarm { code: code.into(), message: "seen".into() }]);
        let quiet = FitReport::default();
        assert!(Evidence { training: Some(&quiet), ..evidence }.alarms().is_empty());
    }
}

#[test]
fn few_round_trips_carry_no_claim() {
    assert_eq!(codes(&Results { round_trips: 19, ..healthy() }), ["few-round-trips"]);
    assert!(codes(&Results { round_trips: 20, ..healthy() }).is_empty());
}

/// What was looked at in a run, with these effective draws and R̂.
fn looked(bulk: f64, tail: f64, r_hat: f64, apart: f64) -> Vec<Looked> {
    let sound = Mixing { bulk: 3000.0, tail: 2000.0, r_hat: 1.001, apart: 7.0, degrees: 7 };
    let one = Mixing { bulk, tail, r_hat, apart, degrees: 7 };
    let all = [("x", sound, true), ("y", one, true), ("constant", Mixing { bulk: f64::NAN, ..one }, false)];
    all.map(|(name, mixing, moves)| Looked { name: name.into(), mixing, moves }).to_vec()
}

fn codes_looked(bulk: f64, tail: f64, r_hat: f64, apart: f64) -> Vec<String> {
    codes_with(&healthy(), &[0.5, 0.5], |e| e.looked = looked(bulk, tail, r_hat, apart))
}

#[test]
fn draws_that_are_worth_few_are_told() {
    assert!(codes_looked(900.0, 500.0, 1.002, 7.0).is_empty());
    assert_eq!(codes_looked(3.0, 500.0, 1.002, 7.0), ["few-draws"]);
    assert_eq!(codes_looked(900.0, 80.0, 1.002, 7.0), ["few-draws"]);
    assert_eq!(codes_looked(300.0, 500.0, 1.002, 7.0), ["low-ess"]);
    assert_eq!(codes_looked(900.0, 399.0, 1.002, 7.0), ["low-ess"]);
    // Ranks may be worth as many, and a mean not.
    let of_means = |ess: f64, ranks: f64| {
        let results = Results { ess: vec![5000.0, ess], ..healthy() };
        codes_with(&results, &[0.5, 0.5], |e| e.looked = looked(900.0, ranks, 1.002, 7.0))
    };
    assert_eq!(of_means(184.0, 409.0), ["low-ess"]);
    assert_eq!(of_means(184.0, 80.0), ["few-draws"]);
    assert!(
        of_means(401.0, 409.0).is_empty()
            && of_means(390.0, 409.0).is_empty()
            && of_means(f64::NAN, 409.0).is_empty()
    );
    // A coordinate that never moved is worth nothing.
    assert_eq!(codes_looked(f64::NAN, f64::NAN, f64::NAN, f64::NAN), ["few-draws"]);
}

/// R̂ counts beyond 1.01 and beyond chance: χ² of 7 degrees is above 35 once in 10⁵.
#[test]
fn r_hat_counts_beyond_chance() {
    assert_eq!(codes_looked(900.0, 500.0, 1.03, 50.0), ["r-hat"]);
    assert!(codes_looked(900.0, 500.0, 1.03, 14.0).is_empty());
    assert!(codes_looked(900.0, 500.0, 1.005, 50.0).is_empty());
}

#[test]
fn estimates_are_held_against_the_truth() {
    let with = |truth| codes(&Results { log_z_truth: Some(truth), ..healthy() });
    assert_eq!(with(4.05), ["truth-missed"]);
    assert!(with(4.03).is_empty());
    // Exact to rounding.
    let exact = LogZ { standard_error: 0.0, ..healthy().log_z };
    let close = Results { log_z: exact, log_z_truth: Some(4.0 + 1e-12), ..healthy() };
    assert!(codes(&close).is_empty());
}

#[test]
fn a_ladder_without_a_barrier_claims_nothing() {
    let flat = Results {
        rejection_rates: vec![0.001; 4],
        local_barrier: vec![(0.0, 0.004), (1.0, 0.004)],
        round_trip_rate_predicted: 0.12,
        ..healthy()
    };
    assert_eq!(codes(&flat), ["looks-like-reference"]);
    let shape = sterna::fitted::Shape::Diagonal(vec![1.0]);
    let optimum = Optimum { mean: vec![3.0], shape, log_density: 0.0, log_evidence: 0.0, climbs: 8 };
    // Climbs have looked elsewhere.
    let optima: &[Optimum] = Box::leak(Box::new([optimum]));
    assert!(codes_with(&flat, &[0.5, 0.5], |e| e.optima = optima).is_empty());
}

/// The gravest come first, and a verdict follows from them alone.
#[test]
fn alarms_come_by_their_class() {
    let results =
        Results { round_trips: 0, round_trip_rate: 0.0, rejection_rates: vec![0.97; 4], ..healthy() };
    let found = codes_with(&results, &[0.5, 0.5], |e| e.accelerated = true);
    assert_eq!(found, ["no-round-trip", "too-few-chains", "starving-pair"]);
}

/// log Z of halves, around 4 with an error of 0.01 for the whole: each has 0.02 of its own.
#[test]
fn parts_that_disagree_beyond_the_error_are_told() {
    let leg = |parts: [f64; 4]| Leg {
        chains: 5,
        every: 1,
        barrier: 1.6,
        round_trips: 900,
        log_z: healthy().log_z,
        parts: parts.to_vec(),
    };
    let with = |parts| codes(&Results { legs: vec![leg(parts)], ..healthy() });
    assert!(with([4.0, 4.03, 3.98, 3.99]).is_empty());
    assert_eq!(with([4.0, 4.15, 4.0, 3.99]), ["parts-disagree"]);
    // Beyond the error, but of no matter.
    let exact = LogZ { standard_error: 1e-6, ..healthy().log_z };
    let small = Leg { log_z: exact, ..leg([4.0, 4.001, 4.0, 4.0]) };
    assert!(codes(&Results { legs: vec![small], ..healthy() }).is_empty());
}

/// Two humps of equal weight, known from exact draws.
#[test]
fn draws_are_held_against_exact_ones() {
    let exact =
        || Some(Batch::from_vec(1, draws(&[0.5, 0.5])[1].x.iter().copied().cycle().take(4096).collect()));
    let with = |share| codes_with(&healthy(), &[share; 3], |e| e.exact = exact());
    assert!(with(0.5).is_empty(), "{:?}", with(0.5));
    assert_eq!(with(0.8), ["truth-missed"]);
    assert_eq!(with(0.0), ["truth-missed"]);
}

#[test]
fn an_optimum_that_nobody_visited_is_told() {
    let optimum = |mean: f64| Optimum {
        mean: vec![mean],
        shape: sterna::fitted::Shape::Diagonal(vec![1.0]),
        log_density: -1.0,
        log_evidence: 0.0,
        climbs: 3,
    };
    let at = |mean| -> &'static [Optimum] { Box::leak(Box::new([optimum(mean)])) };
    assert_eq!(codes_with(&healthy(), &[0.5, 0.5], |e| e.optima = at(40.0)), ["unvisited-optimum"]);
    assert!(codes_with(&healthy(), &[0.5, 0.5], |e| e.optima = at(3.0)).is_empty());
}
