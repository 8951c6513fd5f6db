//! Fitted references in jobs: what summary, report and terminal tell of them, and densities that nobody should sample.

use sterna::{Batch, Evaluation, Target};
use sterna_run::alarms::{Code, Verdict};
use sterna_run::summary::AnchorState;
use sterna_run::{Config, Job, JobError, Problem, Summary};

/// A density by one function, which writes the score and returns the log density.
struct Density {
    dim: usize,
    log_density: fn(&[f64], &mut [f64]) -> f64,
}

impl Target for Density {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        for i in 0..x.rows() {
            out.log_density[i] = (self.log_density)(x.row(i), out.score.row_mut(i));
        }
        Ok(())
    }
}

/// Half of the mass around 0, half around 12 in each coordinate.
fn two_modes(x: &[f64], score: &mut [f64]) -> f64 {
    let away = |m: f64| -0.5 * x.iter().map(|x| (x - m) * (x - m)).sum::<f64>();
    let (a, b) = (away(0.0), away(12.0));
    let top = a.max(b);
    let (wa, wb) = ((a - top).exp(), (b - top).exp());
    for (s, x) in score.iter_mut().zip(x) {
        *s = -(wa * x + wb * (x - 12.0)) / (wa + wb);
    }
    top + (wa + wb).ln()
}

fn run_in(folder: &std::path::Path, target: Density, more: &[(&str, &str)]) -> Result<Summary, JobError> {
    // Enough to see, and never for long.
    let few =
        [("run.until.evaluations", "300000"), ("run.until.ess", "400"), ("run.until.log_z_error", "0.2")];
    let config = Config::parse("", &[&few, more].concat()).unwrap();
    Job::new(Problem::new(target), config, folder)?.run(&mut ())
}

fn run(target: Density, more: &[(&str, &str)]) -> Result<Summary, JobError> {
    let folder = tempfile::tempdir().unwrap();
    run_in(&folder.path().join("run"), target, more)
}

#[test]
fn summary_and_report_tell_of_both_legs() {
    let folder = tempfile::tempdir().unwrap();
    let summary = run_in(folder.path(), Density { dim: 2, log_density: two_modes }, &[]).unwrap();
    let reference = summary.reference.as_ref().expect("it was fitted");
    assert_eq!((reference.anchor, reference.weights.len()), (AnchorState::Kept, 2));
    assert!(reference.optima.len() >= 2 && reference.optima[0].at.len() == 2);
    assert!(reference.note.is_none() || summary.swaps.legs[1].round_trips < 10, "{reference:?}");
    let evaluations = &summary.cost.evaluations;
    assert!(evaluations.climbing > 0 && evaluations.tuning() > 0);
    let before = evaluations.trial + evaluations.climbing + evaluations.tuning();
    let parts = before + evaluations.sampling + evaluations.last_look;
    assert_eq!(parts, evaluations.target);
    // Chains have names: the target lies where legs meet.
    let (target, chains) = (summary.target_number(), summary.setup.chains);
    assert_eq!(summary.setup.schedule[target], 1.0);
    let names = [0, target, chains - 1].map(|n| summary.chain_name(n));
    assert_eq!(names, [Some("fitted reference"), Some("target"), Some("anchor")]);
    let goals = summary.goals.expect("there were some");
    assert!(goals.ess.is_some_and(|ess| ess.reached >= 400.0 && ess.wanted == 400.0), "{goals:?}");
    assert_eq!(Summary::read(folder.path()).unwrap().reference, summary.reference);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    for part in [
        "Reference and anchor",
        "found 2 optima",
        "a mixture of 2 normals",
        ">fitted reference<",
        ">anchor<",
        "from the anchor",
        "from the fit",
        "to the broad anchor (β = 2)",
        "target, climbing",
        "slowest free coordinate; 400 wanted",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn an_anchor_that_is_not_there_is_told() {
    let alone = run(Density { dim: 2, log_density: two_modes }, &[("reference.anchor", "none")]).unwrap();
    assert_eq!(alone.reference.as_ref().map(|r| r.anchor), Some(AnchorState::None));
    assert_eq!((alone.swaps.legs.len(), alone.chain_name(alone.setup.chains - 1)), (1, Some("target")));
    // A normal a thousand times narrower in each of 40 coordinates: the way from the anchor is far too long.
    let narrow = |x: &[f64], score: &mut [f64]| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -1e6 * (x - 3.0));
        -0.5e6 * x.iter().map(|x| (x - 3.0) * (x - 3.0)).sum::<f64>()
    };
    let far = run(Density { dim: 40, log_density: narrow }, &[]).unwrap();
    let reference = far.reference.expect("it was fitted");
    assert_eq!(reference.anchor, AnchorState::GivenUp);
    let note = reference.note.expect("there is something to say");
    assert!(note.contains("given up") && note.contains("rests on") && note.contains("1 optimum"), "{note}");
    assert!(far.alarms.is_empty(), "{:?}", far.alarms);
}

#[test]
fn a_fit_that_lost_a_mode_gets_it_back_from_the_anchor_or_is_told_of() {
    // One normal alone, though climbs find two optima.
    let one = ("reference.components", "1");
    let log_z = (2.0 * std::f64::consts::TAU).ln();
    let anchored = run(Density { dim: 2, log_density: two_modes }, &[one]).unwrap();
    let off = (anchored.log_z.bar - log_z).abs();
    assert!(
        off < 0.2 && !anchored.has(&Code::UnvisitedOptimum),
        "{:?} {:?}",
        anchored.log_z,
        anchored.alarms
    );
    let alone =
        run(Density { dim: 2, log_density: two_modes }, &[one, ("reference.anchor", "none")]).unwrap();
    assert!((alone.log_z.bar - log_z).abs() > 0.5, "{:?}", alone.log_z);
    assert!(alone.has(&Code::UnvisitedOptimum) && alone.verdict != Verdict::Sound, "{:?}", alone.alarms);
}

/// What a density that is no density gets: a message, or alarms.
fn refusal(target: Density) -> String {
    match run(target, &[]) {
        Err(error) => {
            assert!(!error.to_string().contains("panicked"), "{error}");
            error.to_string()
        }
        Ok(summary) => panic!("sampled, with alarms {:?}", summary.alarms),
    }
}

#[test]
fn a_density_that_is_nowhere_is_refused() {
    for nothing in [f64::NEG_INFINITY, f64::NAN] {
        let message = match nothing.is_nan() {
            true => refusal(Density { dim: 2, log_density: |_, _| f64::NAN }),
            false => refusal(Density { dim: 2, log_density: |_, _| f64::NEG_INFINITY }),
        };
        assert!(message.contains("vanishes at all") && message.contains("no number"), "{message}");
    }
}

/// Flat everywhere, flat in one direction, and growing outwards.
#[test]
fn a_density_that_is_not_integrable_is_refused() {
    let flat = |_: &[f64], score: &mut [f64]| {
        score.fill(0.0);
        0.0
    };
    let grows = |x: &[f64], score: &mut [f64]| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = 0.1 * x.signum());
        0.1 * x.iter().map(|x| x.abs()).sum::<f64>()
    };
    // Flat in one of two directions.
    let half = |x: &[f64], score: &mut [f64]| {
        (score[0], score[1]) = (-x[0], 0.0);
        -0.5 * x[0] * x[0]
    };
    for (dim, log_density) in
        [(2, half as fn(&[f64], &mut [f64]) -> f64), (1, flat), (2, flat), (1, grows), (2, grows)]
    {
        match run(Density { dim, log_density }, &[]) {
            Err(error) => {
                let message = error.to_string();
                assert!(
                    message.contains("not to be integrable") && message.contains("reference.scale"),
                    "{message}"
                );
                assert_eq!(error.exit_code(), 2);
            }
            // Not carried off far enough yet: it must not pass for sound.
            Ok(summary) => {
                assert!(
                    summary.has(&Code::NotReached) && summary.has(&Code::CarriedOff),
                    "{:?}",
                    summary.alarms
                );
            }
        }
    }
}

#[test]
fn a_covariance_that_degenerates_raises_alarms() {
    let ridge = |x: &[f64], score: &mut [f64]| {
        let (u, v) = (x[0] + x[1] - 2.0, 1e12 * (x[0] - x[1]));
        (score[0], score[1]) = (-u - 1e12 * v, -u + 1e12 * v);
        -0.5 * (u * u + v * v)
    };
    let summary = run(Density { dim: 2, log_density: ridge }, &[]).unwrap();
    assert!(summary.verdict == Verdict::Unsound && summary.has(&Code::NotReached), "{:?}", summary.alarms);
    assert!(summary.alarms.iter().any(|alarm| alarm.message.contains("degenerate")), "{:?}", summary.alarms);
    assert!(summary.cost.evaluations.target < 3_000_000, "{:?}", summary.cost.evaluations);
}

#[test]
fn one_coordinate_is_enough() {
    let far = |x: &[f64], score: &mut [f64]| {
        score[0] = 30.0 - x[0];
        -0.5 * (x[0] - 30.0).powi(2)
    };
    let summary = run(Density { dim: 1, log_density: far }, &[]).unwrap();
    let z = &summary.log_z;
    // Four standard errors: passed by chance less than once in 10,000, and the seed is fixed.
    assert!((z.bar - 0.5 * std::f64::consts::TAU.ln()).abs() < 4.0 * z.standard_error, "{z:?}");
    assert!(summary.alarms.is_empty(), "{:?}", summary.alarms);
}

/// Scores that are no numbers in half of the space cost moves there, not the law.
#[test]
fn scores_that_are_no_numbers_are_told() {
    let half = |x: &[f64], score: &mut [f64]| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = if *x > 0.0 { f64::NAN } else { -x });
        -0.5 * x.iter().map(|x| x * x).sum::<f64>()
    };
    let summary = run(Density { dim: 2, log_density: half }, &[]).unwrap();
    let alarm = summary.alarms.iter().find(|alarm| alarm.code == Code::BadDensity).expect("an alarm");
    assert!(alarm.message.contains("score is no number") && !alarm.message.contains("[NaN"), "{alarm:?}");
    let z = &summary.log_z;
    assert!((z.bar - std::f64::consts::TAU.ln()).abs() < 1e-9 + 4.0 * z.standard_error, "{z:?}");
}

/// Where the density has all but vanished nobody misses an answer; where it has not, somebody does.
#[test]
fn answers_are_missed_where_mass_may_lie() {
    fn beyond<const BOUND: i32>(x: &[f64], score: &mut [f64]) -> f64 {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -x);
        if x[0].abs() > f64::from(BOUND) { f64::NAN } else { -0.5 * x.iter().map(|x| x * x).sum::<f64>() }
    }
    // The anchor is far wider than the density, and its draws come there.
    let wide = [("reference.scale", "30")];
    let far = run(Density { dim: 2, log_density: beyond::<6> }, &wide).unwrap();
    assert!(far.moves.bad_densities.count > 0 && far.verdict == Verdict::Sound, "{:?}", far.alarms);
    let near = run(Density { dim: 2, log_density: beyond::<2> }, &wide).unwrap();
    let alarm = near.alarms.iter().find(|alarm| alarm.code == Code::BadDensity).expect("an alarm");
    assert!(alarm.message.contains("% of the mass may lie there"), "{alarm:?}");
}

#[test]
fn a_density_that_panics_loses_nothing() {
    let panics = |x: &[f64], score: &mut [f64]| {
        assert!(x[0] < 2.0, "no such orbital");
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -x);
        -0.5 * x.iter().map(|x| x * x).sum::<f64>()
    };
    let folder = tempfile::tempdir().unwrap();
    let error = run_in(folder.path(), Density { dim: 2, log_density: panics }, &[]).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("no such orbital") && message.contains("resume"), "{message}");
    assert!(error.exit_code() == 1 && folder.path().join("checkpoint/state").exists());
}
