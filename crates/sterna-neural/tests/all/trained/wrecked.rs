//! Networks that learned nothing, diverged or do harm: the run stays exact.

use super::*;

/// Weights of a network that learned nothing but noise.
pub fn wrecked(layout: &Layout, size: f64) -> Parameters<f64> {
    Parameters::new(numbers(layout.len(), 9, size, 0.0))
}

#[test]
fn a_wrecked_network_stays_exact() {
    // Swaps alone, on exact draws of every chain: the law must not change.
    let ladder = GaussianLadder::uneven(2);
    let schedule = Schedule::new(SCHEDULE.to_vec()).unwrap();
    let (layout, network) = flow(2);
    for size in [0.1, 0.3] {
        let accelerator = flow_accelerator(&network, &wrecked(&layout, size));
        check_accelerator(&accelerator, &ladder, &schedule, 1, FALSE_ALARM).assert_passed();
    }
    let (layout, network) = cmcd(2, 2);
    for size in [0.3, 1.0] {
        let accelerator = cmcd_accelerator(&network, &wrecked(&layout, size));
        check_accelerator(&accelerator, &ladder, &schedule, 1, FALSE_ALARM).assert_passed();
    }
}

/// Hands out a wrecked flow.
struct Wreck;

impl FitAtOnce for Wreck {
    fn fit(&self, collected: &Collected) -> sterna::Result<Arc<dyn Accelerator>> {
        let mut layout = Layout::new();
        let config = RealNvpConfig::small(2, collected.schedule.betas()).unwrap();
        let network = config.build(&mut layout, "flow").unwrap();
        Ok(Arc::new(flow_accelerator(&network, &wrecked(&layout, 0.2))))
    }
}

#[test]
fn a_run_with_a_wrecked_network_is_slow_but_right() {
    let (_, path) = normal();
    let found = results(path, settings(4), Arc::new(Wreck));
    assert!(found.rejection_rates.iter().any(|&r| r > 0.5), "it does harm: {:?}", found.rejection_rates);
    assert_right(&found, &[0.5, -0.3]);
}

#[test]
fn the_guard_replaces_what_does_harm() {
    let (target, path) = normal();
    let plain = results(path.clone(), settings(4), Arc::new(Plain));
    let training = Training { steps: 20, learning_rate: 3.0, clip: 1e6, ..quick(Loss::Skl) };
    let fit = Arc::new(TrainFlow::new(path.clone(), Arc::new(target), TINY_FLOW, training).unwrap());
    let run = completed(path, settings(4), fit);
    let (found, report) = (run.results(), run.fit_report().unwrap());
    assert!(report.pairs.iter().all(|p| p.plain == (p.rejection > p.plain_rejection)));
    assert!(report.pairs.iter().any(|p| p.plain), "{:?}", report.pairs);
    assert!(report.alarms.iter().any(|(code, _)| *code == "transport-replaced"), "{:?}", report.alarms);
    for (ours, plain) in found.rejection_rates.iter().zip(&plain.rejection_rates) {
        assert!(*ours < plain + 0.05, "{ours} against {plain}");
    }
    assert_right(&found, &[0.5, -0.3]);
}

pub struct Plain;

impl FitAtOnce for Plain {
    fn fit(&self, _: &Collected) -> sterna::Result<Arc<dyn Accelerator>> {
        Ok(Arc::new(Identity))
    }
}

/// A target whose density inside graphs is never a number.
struct Poisoned;

impl GraphTarget for Poisoned {
    fn dim(&self) -> usize {
        2
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        (x.dot(x) * -1.0 - 1.0).log()
    }
}

#[test]
fn a_diverged_training_falls_back_to_plain_swaps() {
    let (_, path) = normal();
    let fit = TrainFlow::new(path.clone(), Arc::new(Poisoned), TINY_FLOW, quick(Loss::Skl)).unwrap();
    let run = completed(path, settings(4), Arc::new(fit));
    assert_right(&run.results(), &[0.5, -0.3]);
    let alarms = &run.fit_report().unwrap().alarms;
    assert!(alarms.iter().any(|(code, _)| *code == "training-diverged"), "{alarms:?}");
}

#[test]
fn pairs_keep_their_bits_beside_plain_ones() {
    let path = Geometric::from_standard_normal(Gmm::paper(3));
    let (layout, network) = cmcd(3, 2);
    let inner: Arc<dyn Accelerator> = Arc::new(cmcd_accelerator(&network, &Parameters::new(lively(&layout))));
    let mixed = PerPair::new(inner.clone(), vec![false, true, false]);
    let starts = numbers(ROWS * 3, 4, 0.6, 0.0);
    for direction in [Direction::Forward, Direction::Backward] {
        let [ours, inner, plain] =
            [&mixed as &dyn Accelerator, &*inner, &Identity].map(|a| travel(a, &path, direction, &starts));
        for (i, &pair) in PAIRS.iter().enumerate() {
            let expected = if pair == 2 { &plain } else { &inner };
            assert_eq!(ours.log_weight[i], expected.log_weight[i]);
            assert_eq!(ours.points.x.row(i), expected.points.x.row(i));
            assert_eq!(ours.points.score.row(i), expected.points.score.row(i));
        }
    }
}

#[test]
fn impossible_settings_are_named() {
    let (target, path) = normal();
    let error = |size: FlowSize, training: Training| {
        let fit = TrainFlow::new(path.clone(), Arc::new(target.clone()), size, training);
        fit.err().expect("refused").to_string()
    };
    let good = Training::default;
    assert!(error(TINY_FLOW, Training { steps: 0, ..good() }).contains("training.steps"));
    assert!(error(TINY_FLOW, Training { ema: 1.0, ..good() }).contains("training.ema"));
    assert!(error(TINY_FLOW, Training { clip: f64::NAN, ..good() }).contains("training.clip"));
    assert!(error(TINY_FLOW, Training { loss: Loss::LogVariance, ..good() }).contains("training.loss"));
    assert!(error(FlowSize { hidden: Hidden::new(1, 0), ..TINY_FLOW }, good()).contains("width"));
}
