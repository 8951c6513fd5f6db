//! Trained diffusions and the paths that they learn.

use super::wrecked::{Plain, wrecked};
use super::*;

const TINY_DIFFUSION: DiffusionSize = DiffusionSize {
    steps: 2,
    integrator: Integrator::Exponential,
    hidden: Hidden::new(1, 16),
    waves: 1,
    particles: None,
    apart: false,
};

/// Two modes of unequal weight in the plane: what score matching must find out.
fn two_modes() -> (Gmm, Arc<Geometric>) {
    let target = Gmm::new(2, vec![[0.6, 0.2], [-0.6, -0.1], [-0.5, 0.1]], 0.15);
    (target.clone(), Arc::new(Geometric::from_standard_normal(target)))
}

fn train_diffusion(target: Gmm, path: Arc<Geometric>, steps: usize, training: Training) -> Arc<dyn Fit> {
    let size = DiffusionSize { steps, ..TINY_DIFFUSION };
    Arc::new(TrainDiffusion::new(path, Arc::new(target), size, training).unwrap())
}

/// Largest rejection rate of a run less the smallest.
fn unevenness(results: &Results) -> f64 {
    let rates = &results.rejection_rates;
    let [low, high] = [f64::min, f64::max].map(|pick| rates.iter().copied().reduce(pick).unwrap());
    high - low
}

#[test]
fn chains_move_between_rounds_to_where_rejections_are_even() {
    let (target, path) = two_modes();
    let training = || Training { steps: 300, ..quick(Loss::Skl) };
    let size = CmcdSize::new(2, Hidden::new(2, 16));
    let fits: [Arc<dyn Fit>; 2] = [
        Arc::new(TrainFlow::new(path.clone(), Arc::new(target.clone()), TINY_FLOW, training()).unwrap()),
        Arc::new(TrainCmcd::new(path.clone(), Arc::new(target.clone()), size, training()).unwrap()),
    ];
    for fit in fits {
        let run = |fits: usize, criterion: Criterion| {
            completed(path.clone(), Settings { fits, criterion, ..settings(5) }, fit.clone())
        };
        let [one, two] = [1, 2].map(|fits| run(fits, Criterion::Barrier));
        assert_ne!(one.sampler().schedule, two.sampler().schedule);
        let [before, after] = [&one, &two].map(|run| unevenness(&run.results()));
        assert!(after < 0.7 * before, "rejections differ by {before}, then by {after}");
        assert_right(&two.results(), &[(0.6 - 0.6 - 0.5) / 3.0, (0.2 - 0.1 + 0.1) / 3.0]);
        // The record knows where the chains are now.
        let loaded = load_transport(two.fitted().unwrap().record.to_vec(), "the record").unwrap();
        let Made::Pairs { schedule, .. } = loaded.made else { panic!("it carries pairs") };
        assert_eq!(schedule, two.sampler().schedule);
        // Where the schedule is fixed it stays.
        assert_eq!(run(2, Criterion::Fixed).sampler().schedule, Schedule::uniform(5));
    }
}

#[test]
fn diffusions_train_for_any_number_of_steps() {
    let (target, path) = two_modes();
    let plain = results(path.clone(), settings(4), Arc::new(Plain));
    let mean = [(0.6 - 0.6 - 0.5) / 3.0, (0.2 - 0.1 + 0.1) / 3.0];
    for steps in [0, 1, 5] {
        let fit =
            train_diffusion(target.clone(), path.clone(), steps, Training { steps: 600, ..quick(Loss::Skl) });
        let run = completed(path.clone(), Settings { fits: 2, ..settings(4) }, fit);
        let (found, report) = (run.results(), run.fit_report().unwrap());
        assert_right(&found, &mean);
        assert!(report.alarms.iter().all(|(code, _)| code == "few-training-samples"), "{:?}", report.alarms);
        assert_eq!(report.steps, 1200, "two rounds");
        assert_eq!(run.sampler().accelerator.steps(), steps);
        assert!(
            report.losses.last() < report.losses.first() || report.losses[0] < 0.2,
            "{:?}",
            report.losses
        );
        if steps == 5 {
            let [ours, theirs]: [f64; 2] = [&found, &plain].map(|r| r.rejection_rates.iter().sum());
            assert!(ours < 0.7 * theirs, "training helps: {ours} against {theirs}");
        }
        // The target is asked at s = 1 alone, the network in between: five leapfrog steps on three chains,
        // of which one is the target's, and the swaps.
        assert!(found.sampling_evaluations > found.sampling_network_evaluations);
        assert!(
            found.sampling_network_evaluations >= 10_000 * 5 * 2,
            "{}",
            found.sampling_network_evaluations
        );
    }
}

#[test]
fn a_diffusion_goes_on_where_it_was_left_and_comes_back_from_its_record() {
    let (target, path) = two_modes();
    let collected = collected_from(&target);
    let training = Training { steps: 60, guard: false, ..quick(Loss::Skl) };
    let fit = train_diffusion(target, path, 2, training);
    let begin = || fit.begin(collected.clone(), None).unwrap();
    let mut whole = begin();
    whole.advance(u64::MAX).unwrap();
    let whole = whole.finish().unwrap();
    let mut part = begin();
    part.advance(21).unwrap();
    let mut rest = begin();
    rest.restore(&part.save().unwrap()).unwrap();
    rest.advance(1000).unwrap();
    let rest = rest.finish().unwrap();
    assert!(whole.record == rest.record, "the weights differ");
    assert_eq!(whole.report, rest.report);
    // The same path from its record, to the bit.
    let again = fit.rebuild(&whole.record).unwrap();
    assert_eq!(again.accelerator.steps(), 2);
    let values = [whole, again].map(|fitted| {
        let path = fitted.path.expect("a learned path");
        let mut points = Points::zeros(4, 2);
        points.x.as_mut_slice().copy_from_slice(&numbers(8, 2, 1.0, 0.0));
        path.evaluate(&[0.0, 0.3, 0.97, 1.0], &mut points).unwrap();
        (points.log_density, points.score, path.log_z_reference(), path.first_schedule(SCHEDULE.len()))
    });
    assert_eq!(values[0], values[1]);
    // A record of nothing is a fit that came to nothing.
    assert_eq!(fit.rebuild(&[]).unwrap().accelerator.steps(), 0);
}

/// Exact draws of the target on every chain: enough to train on.
fn collected_from(target: &Gmm) -> Arc<Collected> {
    let draws = |chain: u64| {
        let mut x = Batch::zeros(400, 2);
        for i in 0..400 {
            let mut stream = Streams::new(chain).row(Phase::Exact, 0, i as u32);
            assert!(target.draw(&mut stream, x.row_mut(i)));
        }
        x
    };
    Arc::new(Collected {
        scores: Vec::new(),
        round: 0,
        prospect: Default::default(),
        schedule: Schedule::new(SCHEDULE.to_vec()).unwrap(),
        samples: (0..4).map(draws).collect(),
        local_barrier: vec![1.0; 4],
        local_variance: Batch::from_vec(2, vec![0.03; 8]),
    })
}

/// Hands out a path of noise, as it would come from a training that went wrong unseen.
struct WreckedPath {
    /// Added to the mass that the path says its reference has.
    lie: f64,
}

/// A model that misreports its mass.
struct Lying(NeuralEnergyModel<f64>, f64);

impl EnergyModel for Lying {
    fn evaluate(
        &self,
        times: &[f64],
        x: &Batch,
        out: &mut Evaluation,
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        self.0.evaluate(times, x, out, scratch)
    }

    fn log_z_reference(&self) -> f64 {
        self.0.log_z_reference() + self.1
    }
}

impl Fit for WreckedPath {
    fn begin(&self, _: Arc<Collected>, _: Option<&Fitted>) -> sterna::Result<Box<dyn Fitting>> {
        let (target, _) = two_modes();
        let mut layout = Layout::new();
        let config =
            EnergyConfig { hidden: Hidden::new(1, 8), bound: 3.0, waves: 1, ..EnergyConfig::small(2) };
        let network = config.build(&mut layout, "energy").unwrap();
        let weights = wrecked(&layout, 0.5);
        let device = Arc::new(Cpu::new(1));
        let model = NeuralEnergyModel::new(network, Arc::new(target), weights, device).unwrap();
        let path = Diffused::new(Arc::new(Lying(model, self.lie)), 2, Some(0.0));
        let steps = DiffusionSteps::new(2, Integrator::Exponential)?;
        Ok(Box::new(Done(Fitted {
            accelerator: Arc::new(Diffusion { steps }),
            path: Some(Arc::new(path)),
            record: Arc::new([]),
            report: Default::default(),
        })))
    }

    fn rebuild(&self, _: &[u8]) -> sterna::Result<Fitted> {
        unreachable!("no run stops here")
    }
}

struct Done(Fitted);

impl Fitting for Done {
    fn progress(&self) -> (u64, u64) {
        (0, 0)
    }

    fn advance(&mut self, _: u64) -> sterna::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> sterna::Result<Fitted> {
        Ok(self.0)
    }

    fn save(&self) -> sterna::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _: &[u8]) -> sterna::Result<()> {
        Ok(())
    }
}

#[test]
fn a_run_along_a_wrecked_path_is_slow_but_right() {
    let (_, path) = two_modes();
    let long = Settings { iterations: 40_000, guard: false, ..settings(6) };
    let plain = results(path.clone(), long.clone(), Arc::new(Plain));
    let found = results(path.clone(), long.clone(), Arc::new(WreckedPath { lie: 0.0 }));
    let [ours, theirs]: [f64; 2] = [&found, &plain].map(|r| r.rejection_rates.iter().sum());
    assert!(ours > 1.2 * theirs, "it does harm: {ours} against {theirs}");
    assert_right(&found, &[(0.6 - 0.6 - 0.5) / 3.0, (0.2 - 0.1 + 0.1) / 3.0]);
    // By default such a path is given up after tuning.
    let guarded = Settings { guard: true, iterations: 2000, ..long.clone() };
    let run = completed(path.clone(), guarded, Arc::new(WreckedPath { lie: 0.0 }));
    assert!(run.fit_report().unwrap().alarms.iter().any(|(code, _)| code == "transport-replaced"));
    assert!(run.fitted().unwrap().path.is_none());
    // The broken twin: a wrong mass of the reference is noticed.
    let lying = results(path, long, Arc::new(WreckedPath { lie: 0.3 })).log_z;
    assert!((lying.bar - 0.0).abs() > 4.5 * lying.standard_error, "{} ± {}", lying.bar, lying.standard_error);
}

#[test]
fn a_useless_diffusion_is_replaced_and_said_so() {
    let (target, path) = two_modes();
    let training = Training { steps: 20, learning_rate: 3.0, clip: 1e6, ..quick(Loss::Skl) };
    for fits in [1, 2] {
        let fit = train_diffusion(target.clone(), path.clone(), 2, training.clone());
        let run = completed(path.clone(), Settings { fits, ..settings(4) }, fit);
        let report = run.fit_report().unwrap();
        assert!(report.pairs.iter().all(|p| p.plain), "{:?}", report.pairs);
        assert!(report.alarms.iter().any(|(code, _)| code == "transport-replaced"), "{:?}", report.alarms);
        assert_eq!(run.sampler().accelerator.steps(), 0);
        assert_right(&run.results(), &[(0.6 - 0.6 - 0.5) / 3.0, (0.2 - 0.1 + 0.1) / 3.0]);
    }
}

/// A target with a score that is no number wherever training looks.
struct Scoreless(Gmm);

impl Target for Scoreless {
    fn dim(&self) -> usize {
        2
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        Target::evaluate(&self.0, x, out)?;
        out.score.as_mut_slice().iter_mut().for_each(|s| *s *= 1e30);
        Ok(())
    }

    fn log_z(&self) -> Option<f64> {
        Some(0.0)
    }
}

#[test]
fn a_diverged_diffusion_falls_back_to_plain_swaps() {
    let (target, path) = two_modes();
    let training = quick(Loss::Skl);
    let fit =
        TrainDiffusion::new(path.clone(), Arc::new(Scoreless(target)), TINY_DIFFUSION, training).unwrap();
    let run = completed(path, settings(4), Arc::new(fit));
    assert_right(&run.results(), &[(0.6 - 0.6 - 0.5) / 3.0, (0.2 - 0.1 + 0.1) / 3.0]);
    let alarms = &run.fit_report().unwrap().alarms;
    assert!(alarms.iter().any(|(code, _)| *code == "training-diverged"), "{alarms:?}");
}
