//! Every code has evidence that raises it and evidence that does not: a code without either does not compile.

use super::*;
use crate::alarms::ladder::tests::moved;
use crate::chemistry::{Apart, Chirality, Molecule, PeptideBond, Population};
use crate::{Config, Problem, accelerators, trial};
use sterna::estimates::Seen;
use sterna_testkit::zoo::Density;

#[test]
fn every_code_is_raised_by_one_and_not_by_another() {
    for code in Code::ALL {
        let (loud, quiet) = raised_and_silent(code);
        assert!(loud.contains(&code.name().to_string()), "{code} is not raised: {loud:?}");
        assert!(!quiet.contains(&code.name().to_string()), "{code} is raised without a reason: {quiet:?}");
    }
}

/// Codes of results that were changed, and of those that were not.
fn of(change: impl Fn(&mut Results)) -> (Vec<String>, Vec<String>) {
    let mut results = healthy();
    change(&mut results);
    (codes(&results), codes(&healthy()))
}

fn raised_and_silent(code: &Code) -> (Vec<String>, Vec<String>) {
    match code {
        Code::BadDensity => {
            let point = BadPoint { iteration: 7, chain: 3, replica: 11, point: vec![1.5] };
            let results = Results { bad: (2, Some(point)), ..healthy() };
            let with = |lost| codes_with(&results, &[0.5, 0.5], |e| e.unanswered = lost);
            // Where nobody looked it stands too.
            assert_eq!(with(None), with(Some(0.02)));
            (with(Some(0.02)), with(Some(1e-4)))
        }
        Code::StarvingPair => of(|r| r.rejection_rates[1] = 0.97),
        Code::TooFewChains => of(|r| {
            r.local_barrier = vec![(0.0, 4.5), (0.5, 4.5), (1.0, 4.5)];
            r.rejection_rates = vec![0.7; 4];
        }),
        Code::NoRoundTrip => of(|r| r.round_trips = 0),
        Code::LowExploration => of(|r| r.round_trip_rate = 0.02),
        Code::IdleLadder => {
            // Swaps change the side, or nothing: what they alone change would be lost without them.
            let with = |sides| {
                let (draws, results) = (moved(0.3, sides), Results { ess: vec![11_000.0], ..healthy() });
                let evidence = Evidence { draws: vec![&draws], ..alone(&results) };
                evidence.alarms().iter().map(|alarm| alarm.code.name().to_string()).collect()
            };
            (with(0.0), with(3.0))
        }
        Code::LogZDisagrees => of(|r| r.log_z.forward = 5.5),
        Code::MissedMode => (codes_with(&healthy(), &[0.5, 0.5, 0.0], |_| {}), codes(&healthy())),
        Code::FewDraws => by_looked(3.0, 500.0, 1.002, 7.0),
        Code::LowEss => by_looked(300.0, 500.0, 1.002, 7.0),
        Code::RHat => by_looked(900.0, 500.0, 1.03, 50.0),
        Code::FewRoundTrips => of(|r| r.round_trips = 19),
        Code::TruthMissed => {
            let with = |truth| codes(&Results { log_z_truth: Some(truth), ..healthy() });
            (with(4.05), with(4.03))
        }
        Code::PartsDisagree => {
            let with = |parts| codes(&Results { legs: vec![leg(4.0, parts)], ..healthy() });
            (with([4.0, 4.15, 4.0, 3.99]), with([4.0, 4.03, 3.98, 3.99]))
        }
        Code::LooksLikeReference => of(|r| r.rejection_rates = vec![0.001; 4]),
        Code::LegsDisagree => {
            let parts = [4.0, 4.0, 4.0, 4.0];
            let with = |second| {
                codes(&Results {
                    legs: vec![leg(4.0, parts), leg(second, parts.map(|_| second))],
                    ..healthy()
                })
            };
            (with(4.3), with(4.02))
        }
        Code::CarriedOff => {
            let of = |deviation: f64| {
                let results = Results { ess: vec![3.0], ..healthy() };
                let given: &'static [f64] = Box::leak(Box::new([deviation]));
                codes_with(&results, &[0.5, 0.5], |e| e.given = Some(given))
            };
            (of(1e-7), of(1.0))
        }
        Code::UnvisitedOptimum => {
            let last_look = |unvisited: &'static [Optimum]| {
                codes_with(&healthy(), &[0.5, 0.5], |e| e.unvisited = Some(unvisited))
            };
            (last_look(Box::leak(Box::new([optimum(40.0)]))), last_look(&[]))
        }
        Code::LeftOut => {
            let with = |left_out| codes_with(&healthy(), &[0.5, 0.5], |e| e.left_out = left_out);
            (with(Some(LeftOut { share: 0.5, drawn: 0.01 })), with(None))
        }
        Code::CutTail => {
            let with = |cut_tail| codes_with(&healthy(), &[0.5, 0.5], |e| e.cut_tail = cut_tail);
            (with(Some(CutTail { coordinate: 0, end: 1.7, share: 0.04 })), with(None))
        }
        Code::NotReached => {
            let with = |ess| {
                let reached = Reached { ess, tail_ess: 900.0, log_z_error: 0.01, evaluations: 9 };
                let unreached = (Until::default(), reached, StoppedBy::Iterations);
                codes_with(&healthy(), &[0.5, 0.5], |e| e.unreached = Some(unreached.clone()))
            };
            (with(500.0), with(1500.0))
        }
        Code::StepSizeBound => of(|r| r.step_size[2] = 1e-8),
        Code::Coverage => {
            let samples = |share| Batch::from_vec(1, draws(&[share])[0].x.clone());
            let with = |share| {
                let report = FitReport { seen: Seen::new(&samples(share)), ..FitReport::default() };
                codes_with(&healthy(), &[0.5, 0.5], |e| {
                    e.training = Some(Box::leak(Box::new(report.clone())))
                })
            };
            (with(0.0), with(0.5))
        }
        Code::TransportReplaced
        | Code::TrainingDiverged
        | Code::TrainingSkipped
        | Code::FewTrainingSamples
        | Code::FlowReplaced => {
            let with = |alarms| {
                let report: &'static FitReport =
                    Box::leak(Box::new(FitReport { alarms, ..FitReport::default() }));
                codes_with(&healthy(), &[0.5, 0.5], |e| e.training = Some(report))
            };
            (with(vec![(code.name().into(), "seen".into())]), with(Vec::new()))
        }
        Code::UnsteadyTarget => (tried(1e-6, 1.0), tried(0.0, 1.0)),
        Code::ScoreNotGradient => (tried(0.0, -1.0), tried(0.0, 1.0)),
        Code::DeviceReplaced => {
            let names = |why| named(device_replaced(why));
            (names(Some("out of memory")), names(None))
        }
        Code::Dissociated => (of_parts(Some(60.0), 0.0), of_parts(Some(0.5), 0.0)),
        Code::ChiralityFlipped | Code::CisPeptide => (of_parts(None, 0.01), of_parts(None, 0.0)),
        Code::MoleculeUnreadable => {
            let error = JobError::Config("no such file".into());
            (named(of_molecule(Err(&error))), named(of_molecule(Ok(None))))
        }
        Code::Other(_) => unreachable!("it is none of those that are known"),
    }
}

fn named(alarms: impl IntoIterator<Item = Alarm>) -> Vec<String> {
    alarms.into_iter().map(|alarm| alarm.code.name().to_string()).collect()
}

fn by_looked(bulk: f64, tail: f64, r_hat: f64, apart: f64) -> (Vec<String>, Vec<String>) {
    (codes_looked(bulk, tail, r_hat, apart), codes_looked(900.0, 500.0, 1.002, 7.0))
}

fn leg(log_z: f64, parts: [f64; 4]) -> Leg {
    let log_z = LogZ { bar: log_z, ..healthy().log_z };
    Leg { chains: 5, every: 1, barrier: 1.6, round_trips: 900, log_z, parts: parts.to_vec() }
}

fn optimum(mean: f64) -> Optimum {
    let shape = sterna::fitted::Shape::Diagonal(vec![1.0]);
    Optimum { mean: vec![mean], shape, log_density: -1.0, log_evidence: 3.0, climbs: 3 }
}

/// What the trial says of a normal with so much noise between calls, and its score times a factor.
fn tried(noise: f64, factor: f64) -> Vec<String> {
    let calls = std::sync::atomic::AtomicU32::new(0);
    let density = Density::new(2, move |x, score| {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -factor * x);
        -0.5 * (x[0] * x[0] + x[1] * x[1]) + noise * f64::from(call % 7)
    });
    let (problem, config) = (Problem::new(density), Config::default());
    let config = config.settled(&problem).unwrap();
    let plan = accelerators::plan(&problem, &config).unwrap();
    named(trial::tried(&problem, &plan).unwrap().alarms)
}

/// A molecule in two parts that went so far, or with this share of flipped centres and cis bonds.
fn of_parts(farthest_nm: Option<f64>, share: f64) -> Vec<String> {
    let population = Population { share, standard_error: 0.001 };
    let molecule = Molecule {
        temperatures: vec![300.0],
        residues: Vec::new(),
        chirality: vec![Chirality { name: "CA".into(), atoms: vec![4], flipped: population }],
        peptide_bonds: vec![PeptideBond { name: "C–N".into(), atoms: vec![4, 6], cis: population }],
        series: Vec::new(),
        apart: farthest_nm.map(|farthest_nm| Apart { parts: 2, at_start_nm: 0.2, farthest_nm }),
    };
    named(of_molecule(Ok(Some(&molecule))))
}
