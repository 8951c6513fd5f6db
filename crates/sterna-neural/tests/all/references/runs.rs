//! Whole runs with trained transports from references of every kind.

use std::sync::Arc;

use super::Logistic;
use sterna::acceleration::{Acceleration, Fit, FitReport};
use sterna::accelerators::Integrator;
use sterna::path::AnnealingPath;
use sterna::paths::{Geometric, Reference};
use sterna::run::{FitReference, Run, Settings, Stage};
use sterna::targets::{Banana, Funnel, Gmm, Normal};
use sterna::{Target, frame::Frame};
use sterna_neural::{
    CmcdSize, DiffusionSize, FlowSize, GraphTarget, Hidden, TrainCmcd, TrainDiffusion, TrainFlow, Training,
    host_target, load_transport,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Flow,
    Cmcd,
    Diffusion,
}

const ALL: [Kind; 3] = [Kind::Flow, Kind::Cmcd, Kind::Diffusion];

/// A small training of a kind, by so many steps.
fn fit(
    kind: Kind,
    path: Arc<dyn AnnealingPath>,
    target: Arc<dyn Target>,
    recorded: Arc<dyn GraphTarget>,
    steps: u64,
) -> Arc<dyn Fit> {
    let training = Training { steps, batch: 64, learning_rate: 5e-3, ..Training::default() };
    let hidden = Hidden::new(1, 16);
    match kind {
        Kind::Flow => Arc::new(TrainFlow::new(path, recorded, FlowSize::new(4, hidden), training).unwrap()),
        Kind::Cmcd => Arc::new(TrainCmcd::new(path, recorded, CmcdSize::new(2, hidden), training).unwrap()),
        Kind::Diffusion => {
            let integrator = Integrator::Exponential;
            let size =
                DiffusionSize { steps: 2, integrator, hidden, waves: 0, particles: None, apart: false };
            Arc::new(TrainDiffusion::new(path, target, size, training).unwrap())
        }
    }
}

fn settings(anchor: bool) -> Settings {
    let fit = Some(FitReference { anchor, ..FitReference::default() });
    Settings { collect: 400, iterations: 1500, until: None, fit, ..Settings::fitted() }
}

fn banana() -> Arc<Geometric> {
    Arc::new(Geometric::from_standard_normal(Banana::new(2)))
}

fn fitted(kind: Kind) -> Acceleration {
    let host = host_target(Arc::new(Banana::new(2)));
    Acceleration::Fitted(fit(kind, banana(), Arc::new(Banana::new(2)), host, 120))
}

/// log Z and the mean of the second coordinate, five standard errors each; a sound run fails less than once in 10⁵.
fn check(run: &Run, name: &str) {
    let results = run.results();
    let off = results.log_z.bar - results.log_z_truth.unwrap();
    println!("{name}: log Z off by {off:.4} ± {:.4}", results.log_z.standard_error);
    assert!(off.abs() < 5.0 * results.log_z.standard_error, "{name}: {off} {:?}", results.log_z);
}

fn report(run: &Run) -> &FitReport {
    run.fit_report().expect("a transport was fitted")
}

/// The reference is frozen before samples are collected, and the transport is made for what it came to: on both legs.
#[test]
fn every_transport_is_trained_from_a_fitted_reference() {
    for anchor in [true, false] {
        for kind in ALL {
            let modes = || Gmm::new(2, vec![[1.0, 0.5], [-0.8, 0.7], [0.2, -1.1]], 0.5);
            let ground = Arc::new(Geometric::from_standard_normal(modes()));
            let fit = fit(kind, ground.clone(), Arc::new(modes()), host_target(Arc::new(modes())), 200);
            let mut run = Run::from_anchor(ground, settings(anchor), Acceleration::Fitted(fit)).unwrap();
            run.complete().unwrap();
            check(&run, &format!("{kind:?}, anchor {anchor}"));
            let record = run.fitted().unwrap().record.to_vec();
            let replaced = report(&run).alarms.iter().any(|(code, _)| code == "transport-replaced");
            match load_transport(record, "the record") {
                Ok(loaded) => {
                    let mixture = Reference::mixture(run.mixture().unwrap().with_rim());
                    assert_eq!(loaded.frame, mixture.frame(), "{kind:?}");
                }
                // So small a model of a path may lead nowhere, and is then given up.
                Err(_) => assert!(kind == Kind::Diffusion && replaced),
            }
            let legs = run.plain_stage().unwrap().schedule.legs();
            assert_eq!(legs, if anchor { 2 } else { 1 });
            assert_eq!(report(&run).losses.len(), 20, "{:?}", report(&run).alarms);
        }
    }
}

/// All that a run answers, as text.
fn answers(run: &Run) -> String {
    let results = run.results();
    let record = run.fitted().map(|fitted| fitted.record.clone());
    let draws: Vec<_> =
        run.records().flat_map(|r| &r.draws).flat_map(|d| &d.x).map(|x| x.to_bits()).collect();
    format!(
        "{:?} {:?} {:?} {draws:?} {record:?}",
        results.log_z, results.rejection_rates, results.evaluations
    )
}

/// Kills in every stage and any number of threads leave every bit as it is.
#[test]
fn kills_and_threads_change_no_bit() {
    for kind in ALL {
        let of = |threads: usize, job: &(dyn Fn() -> String + Sync)| {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(job)
        };
        let short = || Settings { collect: 100, iterations: 200, ..settings(true) };
        let whole = || {
            let mut run = Run::from_anchor(banana(), short(), fitted(kind)).unwrap();
            run.complete().unwrap();
            answers(&run)
        };
        let killed = || {
            let mut run = Run::from_anchor(banana(), short(), fitted(kind)).unwrap();
            let mut stages = Vec::new();
            while run.progress().0 != Stage::Finished {
                run.advance(67).unwrap();
                stages.push(std::mem::discriminant(&run.progress().0));
                let state = run.save().unwrap();
                run = Run::restore_from_anchor(banana(), short(), fitted(kind), &state).unwrap();
            }
            stages.dedup();
            assert!(stages.len() >= 5, "{} stages", stages.len());
            answers(&run)
        };
        let wanted = of(1, &whole);
        for (threads, job) in [(2, &whole as &(dyn Fn() -> String + Sync)), (7, &whole), (2, &killed)] {
            let found = of(threads, job);
            assert!(found == wanted, "{kind:?} on {threads} threads");
        }
    }
}

/// A normal away from the origin, and a prior: what does not move is known from the start.
#[test]
fn every_transport_is_trained_from_normals_and_priors() {
    let target = || Normal::new(vec![1.5, -0.5, 0.2], vec![8.0, 1.0, 20.0]);
    let normal = Reference::normal(vec![1.0, 0.0, 0.0], vec![1.0, 2.0, 0.5]);
    for (name, reference) in [("normal", normal), ("prior", Reference::prior(Logistic))] {
        for kind in ALL {
            let path = Arc::new(Geometric::new(reference.clone(), Arc::new(target())).unwrap());
            let fit = fit(kind, path.clone(), Arc::new(target()), Arc::new(target()), 150);
            let settings = Settings {
                chains: 4,
                rounds: 4,
                collect: 800,
                iterations: 4000,
                burn_in: 200,
                ..Settings::default()
            };
            let mut run = Run::accelerated(path, settings, Acceleration::Fitted(fit)).unwrap();
            run.complete().unwrap();
            check(&run, &format!("{kind:?} from a {name}"));
            let pairs = &report(&run).pairs;
            let mean = |of: fn(&sterna::acceleration::PairReport) -> f64| {
                pairs.iter().map(of).sum::<f64>() / pairs.len() as f64
            };
            let (ours, plain) = (mean(|pair| pair.rejection), mean(|pair| pair.plain_rejection));
            println!("{kind:?} from a {name}: rejections {ours:.3}, plain {plain:.3}");
            if kind != Kind::Diffusion {
                assert!(ours < plain, "{kind:?} from a {name}: {ours} {plain}");
            }
        }
    }
}

/// Far away and narrow: networks see standard coordinates, and single precision suffices.
#[test]
fn a_flow_learns_far_from_the_origin() {
    let far = || Normal::new(vec![1e4, -3e4], vec![1e6, 1e2]);
    let reference = Reference::normal(vec![1e4 + 1e-3, -3e4 + 0.05], vec![2e-3, 0.3]);
    let path = Arc::new(Geometric::new(reference, Arc::new(far())).unwrap());
    let fit = fit(Kind::Flow, path.clone(), Arc::new(far()), host_target(Arc::new(far())), 300);
    let settings = Settings { chains: 2, rounds: 3, collect: 1500, iterations: 4000, ..Settings::default() };
    let mut run = Run::accelerated(path, settings, Acceleration::Fitted(fit)).unwrap();
    run.complete().unwrap();
    check(&run, "far away");
    let pair = report(&run).pairs[0];
    assert!(pair.rejection < 0.4 * pair.plain_rejection, "{pair:?}");
}

/// A funnel is no normal anywhere: what a mixture leaves, a flow takes on.
#[test]
fn a_flow_from_a_fitted_reference_lifts_round_trips() {
    let funnel = || Funnel::new(3);
    let ground = || Arc::new(Geometric::from_standard_normal(funnel()));
    let one = FitReference { components: Some(1), ..FitReference::default() };
    let settings =
        |collect| Settings { collect, iterations: 4000, fit: Some(one.clone()), ..self::settings(true) };
    let mut plain = Run::from_anchor(ground(), settings(400), Acceleration::None).unwrap();
    plain.complete().unwrap();
    let (size, recorded) = (FlowSize::new(6, Hidden::new(1, 32)), Arc::new(funnel()));
    let training = Training { steps: 800, batch: 128, learning_rate: 3e-3, ..Training::default() };
    let fit = Arc::new(TrainFlow::new(ground(), recorded, size, training).unwrap());
    let mut carried = Run::from_anchor(ground(), settings(2000), Acceleration::Fitted(fit)).unwrap();
    carried.complete().unwrap();
    let trips = [&plain, &carried].map(|run| run.round_trips_of(0));
    let rejections = [&plain, &carried].map(|run| run.results().rejection_rates);
    println!("round trips {trips:?}, rejections {rejections:?}");
    check(&carried, "funnel");
    assert!(trips[1] > 3 * trips[0] / 2, "{trips:?}");
}

/// Learned paths begin at the frame's normal, and say so in their file.
#[test]
fn a_learned_path_begins_at_the_reference() {
    let target = Normal::new(vec![5.0, -3.0], vec![4.0, 1.0]);
    let reference = Reference::normal(vec![4.0, -3.0], vec![1.0, 2.0]);
    let path = Arc::new(Geometric::new(reference.clone(), Arc::new(target.clone())).unwrap());
    let fit = fit(Kind::Diffusion, path.clone(), Arc::new(target.clone()), Arc::new(target), 200);
    let settings = Settings {
        chains: 3,
        rounds: 3,
        collect: 800,
        iterations: 2000,
        guard: false,
        ..Settings::default()
    };
    let mut run = Run::accelerated(path, settings, Acceleration::Fitted(fit)).unwrap();
    run.complete().unwrap();
    let learned = run.fitted().unwrap().path.clone().expect("the model is good enough");
    let frame: Frame = reference.frame().unwrap();
    let mut drawn = sterna::Batch::zeros(4000, 2);
    let streams = sterna::Streams::new(5);
    let keys: Vec<u32> = (0..4000).collect();
    learned.draw_reference(0.0, &streams, sterna::streams::Phase::Exact.into(), 1, &keys, &mut drawn);
    let z = frame.standardised(&drawn);
    // Standard errors of a mean and a variance: 0.016 and 0.022.
    for j in 0..2 {
        let mean = z.iter_rows().map(|z| z[j]).sum::<f64>() / 4000.0;
        let variance = z.iter_rows().map(|z| z[j] * z[j]).sum::<f64>() / 4000.0;
        assert!(mean.abs() < 0.08 && (variance - 1.0).abs() < 0.11, "{mean} {variance}");
    }
    check(&run, "a learned path");
}
