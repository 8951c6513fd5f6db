//! Molecules in jobs: soundness with planted faults, fits that come back from their records, and the same bits however
//! a run is cut.
//!
//! Each verdict raises a false alarm with probability 10⁻⁴ on a fresh seed; the seeds here are fixed.

use std::sync::Arc;
use sterna::acceleration::{Acceleration, Fit};
use sterna::accelerator::{Accelerator, Direction, Journey};
use sterna::call::{Call, Rows, Scratch};
use sterna::run::{Run, Stage};
use sterna::transport::Interval;
use sterna::{Batch, Points};
use sterna_molecule::{InnerMap, TemperedPath};
use sterna_molecule_neural::{FrozenMoleculeFlow, TrainMoleculeFlow};
use sterna_neural::{Hidden, Training};
use sterna_run::accelerators;
use sterna_run::config::Config;
use sterna_run::verify::Judge;
use sterna_testkit::broken::{Broken, Fault};

const SHORT: [(&str, &str); 8] = [
    ("target.kind", "alanine-dipeptide"),
    ("chains.count", "4"),
    ("chains.ensembles", "16"),
    ("schedule.rounds", "3"),
    ("schedule.iterations", "300"),
    ("training.rounds", "1"),
    ("run.burn_in", "10"),
    ("run.iterations", "40"),
];

fn config(text: &str) -> Config {
    let short = [&SHORT[..], &[("training.collect", "120")]].concat();
    Config::parse(text, &short).unwrap()
}

fn judge(text: &str) -> Judge {
    let config = config(text);
    let problem = config.problem().unwrap();
    let plan = accelerators::plan(&problem, &config).unwrap();
    Judge::new(plan, &config.settings(&problem).unwrap()).unwrap()
}

const SCALING: &str = "[accelerator]\nkind = \"scaling\"";
const AFFINE: &str = "[explorer]\nmasses = \"atoms\"\ntorsion_moves = 2\n[accelerator]\nkind = \"affine\"";
/// Trained far too briefly to be of use, which must not matter.
const FLOW: &str = "[accelerator]\nkind = \"flow\"\n[training]\nsteps = 30\nbatch = 32\nlearning_rate = 0.01\n\
                    [network]\nlayers = 4\nwidth = 12\n";

const CONTROLLED: &str = "[accelerator]\nkind = \"cmcd\"\nsteps = 2";

/// A map must lead back exactly, which shows the least fault. Random steps need a fault as large as their weights: x[0] is
/// some 0.05 nm.
fn check_transport(text: &str, jacobian: f64) {
    let judge = judge(text);
    let sound = judge.verdict(judge.accelerator()).unwrap();
    assert!(sound.passed(), "{sound}");
    for fault in [Fault::FlippedRatio, Fault::MissingJacobian(jacobian)] {
        let broken = judge.verdict(Arc::new(Broken { inner: judge.accelerator(), fault })).unwrap();
        assert!(!broken.passed(), "{fault:?} went unnoticed:\n{broken}");
    }
}

#[test]
fn scaling_is_sound_and_broken_twins_are_not() {
    check_transport(SCALING, 0.05);
}

#[test]
fn affine_transports_are_sound_and_broken_twins_are_not() {
    check_transport(AFFINE, 0.05);
}

#[test]
fn flows_are_sound_and_broken_twins_are_not() {
    check_transport(FLOW, 0.05);
}

#[test]
fn controlled_diffusions_are_sound_and_broken_twins_are_not() {
    check_transport(CONTROLLED, 40.0);
}

fn run(text: &str) -> Run {
    let config = config(text);
    let problem = config.problem().unwrap();
    let plan = accelerators::plan(&problem, &config).unwrap();
    Run::accelerated(plan.path, config.settings(&problem).unwrap(), plan.acceleration).unwrap()
}

#[test]
fn rows_of_the_table_are_sound_configs() {
    for (name, text) in sterna_run::molecules::TABLE_ROWS {
        let config = Config::parse(text, &sterna_run::molecules::TABLE_SETTINGS).unwrap();
        let problem = config.problem().unwrap();
        config.settings(&problem).unwrap();
        assert!(accelerators::plan(&problem, &config).is_ok(), "{name}");
    }
}

#[test]
fn how_a_run_is_cut_and_shared_changes_no_bit() {
    let draws = |block: u64| {
        let mut run = run(FLOW);
        while run.progress().0 != Stage::Finished {
            run.advance(block).unwrap();
        }
        run.records().flat_map(|r| &r.draws).flat_map(|d| d.x.clone()).collect::<Vec<f64>>()
    };
    let whole = draws(u64::MAX);
    assert!(whole.iter().all(|x| x.is_finite()) && whole == draws(7));
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert!(whole == pool.install(|| draws(u64::MAX)), "{threads} threads");
    }
}

/// A fitted transport comes back from its record with the same bits.
#[test]
fn transports_come_back_from_their_records() {
    for text in [SCALING, AFFINE, FLOW, CONTROLLED] {
        let mut run = run(text);
        while run.progress().0 != Stage::Sampling {
            run.advance(u64::MAX).unwrap();
        }
        let config = config(text);
        let plan = accelerators::plan(&config.problem().unwrap(), &config).unwrap();
        let Acceleration::Fitted(fit) = plan.acceleration else { panic!("nothing is fitted") };
        let fitted = run.fitted().expect("a fit was made");
        let again = fit.rebuild(&fitted.record).unwrap();
        let sampler = run.sampler();
        let dim = sampler.path.dim();
        let x: Vec<f64> = collected_point(&run);
        let mut points = Points::zeros(1, dim);
        points.x = Batch::from_vec(dim, x);
        let travellers = Rows::over_pair(&sampler.schedule, 1, Direction::Forward, 1);
        sampler.path.evaluate(&travellers.beta, &mut points).unwrap();
        let end = |accelerator: &dyn Accelerator| {
            let mut journey = Journey::new(1, dim);
            journey.begin(&points, &[0]);
            let streams = &sampler.streams;
            let path = &*sampler.path;
            accelerator
                .travel(
                    Direction::Forward,
                    &Call::new(path, streams, 1, &travellers),
                    &mut journey,
                    &mut Scratch::default(),
                )
                .unwrap();
            (journey.points.x, journey.log_weight)
        };
        assert_eq!(end(&*fitted.accelerator), end(&*again.accelerator), "{text}");
        assert!(fit.rebuild(&fitted.record[1..]).is_err() && fit.rebuild(&fitted.record[8..]).is_err());
    }
}

/// The start of the molecule, in the coordinates of the run.
fn collected_point(run: &Run) -> Vec<f64> {
    let dim = run.sampler().path.dim();
    let mut x = Batch::zeros(1, dim);
    run.sampler().path.draw_reference(
        0.0,
        &run.sampler().streams,
        sterna::streams::Phase::Start.into(),
        0,
        &[0],
        &mut x,
    );
    x.row(0).to_vec()
}

#[test]
fn trajectories_are_kept_chain_by_chain() {
    let text = "[output]\ntrajectories = true\nevery = 4\n[run]\nthin = 4";
    let mut run = run(text);
    run.complete().unwrap();
    let record = run.records().next().unwrap();
    let dim = run.sampler().path.dim();
    let ladders = record.draws.len();
    assert_eq!(record.trajectories.len(), 4 * ladders);
    assert!(record.trajectories.iter().all(|draws| draws.x.len() == 10 * dim));
    // The last chain is the target, whose draws are kept at the same times.
    for (ladder, draws) in record.draws.iter().enumerate() {
        assert_eq!(draws.x, record.trajectories[4 * ladder + 3].x);
    }
}

/// A flow with log |det| of the wrong sign, both ways alike.
struct WrongSign(FrozenMoleculeFlow);

impl InnerMap for WrongSign {
    fn forward(
        &self,
        pairs: &[Interval],
        soft: &mut [f64],
        z: &mut [f64],
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        self.0.forward(pairs, soft, z, log_det, scratch)?;
        log_det.iter_mut().for_each(|log_det| *log_det = -*log_det);
        Ok(())
    }

    fn inverse(
        &self,
        pairs: &[Interval],
        soft: &mut [f64],
        z: &mut [f64],
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        self.0.inverse(pairs, soft, z, log_det, scratch)?;
        log_det.iter_mut().for_each(|log_det| *log_det = -*log_det);
        Ok(())
    }
}

/// Trained just long enough that pairs use their flow.
#[test]
fn a_trained_flow_from_its_record_is_sound_and_one_with_the_wrong_sign_is_not() {
    let config = Config::parse("[training]\ncollect = 600", &SHORT).unwrap();
    let problem = config.problem().unwrap();
    // As flows are trained where nothing is said.
    let molecule = problem.molecule.clone().unwrap();
    let molecule = Arc::new(molecule.as_ref().clone().holding_peptide_bonds().unwrap());
    let path = Arc::new(TemperedPath::new(molecule.clone(), 1200.0).unwrap());
    let fit = TrainMoleculeFlow {
        molecule,
        temperatures: path.temperatures(),
        path: path.clone(),
        layers: 2,
        hidden: Hidden::new(1, 16),
        training: Training { steps: 300, batch: 64, ..Training::default() },
    };
    let acceleration = Acceleration::Fitted(Arc::new(fit.clone()));
    let mut run = Run::accelerated(path, config.settings(&problem).unwrap(), acceleration).unwrap();
    while run.progress().0 != Stage::Sampling {
        run.advance(u64::MAX).unwrap();
    }
    let fitted = run.fitted().expect("a fit was made");
    let unused = fitted.report.alarms.iter().any(|(code, _)| code == "flow-replaced");
    assert!(!unused, "{:?}", fitted.report.alarms);
    let judge = Judge::of_sampler(run.sampler().clone(), 16).unwrap();
    let sound = judge.verdict(fit.rebuild(&fitted.record).unwrap().accelerator).unwrap();
    assert!(sound.passed(), "{sound}");
    let broken = fit.rebuild_through(&fitted.record, |map| Arc::new(WrongSign(map))).unwrap();
    let broken = judge.verdict(broken).unwrap();
    assert!(!broken.passed(), "the wrong sign went unnoticed\n{broken}");
}
