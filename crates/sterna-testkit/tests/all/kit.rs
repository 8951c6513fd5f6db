//! The kit itself: its exact samplers are exact, and its suites catch what they are for.

use std::sync::Arc;
use sterna::accelerators::Identity;
use sterna::streams::{Phase, Streams};
use sterna::targets::{Gmm, Normal};
use sterna::{Batch, Schedule};
use sterna_testkit::broken::{Broken, Fault};
use sterna_testkit::moves::points_of;
use sterna_testkit::p_values::{mean_and_error, z_test};
use sterna_testkit::{
    DiffusedLadder, ExactLadder, FALSE_ALARM, GaussianLadder, MixtureLadder, Verdict, check_accelerator,
};

fn ladders() -> Vec<(&'static str, Box<dyn ExactLadder>)> {
    vec![
        ("normal", Box::new(GaussianLadder::uneven(3))),
        ("mixture", Box::new(MixtureLadder::three_modes(2))),
        ("mixture in 3 dimensions", Box::new(MixtureLadder::three_modes(3))),
        (
            "diffused normal",
            Box::new(DiffusedLadder::new(Arc::new(Normal::new(vec![0.7, -0.2], vec![5.0, 0.6])))),
        ),
        (
            "diffused mixture",
            Box::new(DiffusedLadder::new(Arc::new(Gmm::new(2, vec![[0.8, 0.3], [-0.7, -0.5]], 0.5)))),
        ),
    ]
}

/// Stein's identities E[∂ⱼ log π^β] = 0 and E[xₖ ∂ⱼ log π^β] = −δⱼₖ hold for no other law.
#[test]
fn exact_draws_are_exact_at_every_beta() {
    let mut verdict = Verdict::new(FALSE_ALARM);
    for (name, ladder) in ladders() {
        let path = ladder.path();
        for beta in [0.0, 0.05, 0.3, 0.7, 1.0] {
            let x = ladder.draw_betas(&[beta], &Streams::new(11), 20_000);
            let points = points_of(&*path, &[beta], &x);
            for j in 0..path.dim() {
                let score = |i: usize| points.score.row(i)[j];
                let mut ask = |what: String, values: Vec<f64>, expected: f64| {
                    let (mean, error) = mean_and_error(&values);
                    verdict.add(format!("{name}, β = {beta}, {what}"), z_test(mean - expected, error, 1.0));
                };
                ask(format!("score {j}"), (0..x.rows()).map(score).collect(), 0.0);
                for k in 0..path.dim() {
                    let values = (0..x.rows()).map(|i| x.row(i)[k] * score(i)).collect();
                    ask(format!("score {j} times {k}"), values, if j == k { -1.0 } else { 0.0 });
                }
            }
        }
    }
    verdict.assert_passed();
}

/// log Z at β against E_η[π̃^β/η] over exact draws of the reference, where that has a variance.
#[test]
fn normalisers_agree_with_importance_sampling() {
    let mut verdict = Verdict::new(FALSE_ALARM);
    for (name, ladder) in ladders() {
        let path = ladder.path();
        let x = ladder.draw_betas(&[0.0], &Streams::new(5), 40_000);
        let at = |beta: f64| points_of(&*path, &[beta], &x).log_density;
        let reference = at(0.0);
        for beta in [0.0, 0.1, 0.3, 0.5] {
            let log_z = ladder.log_z(beta).unwrap() - path.log_z_reference();
            let w: Vec<f64> = at(beta).iter().zip(&reference).map(|(a, b)| (a - b - log_z).exp()).collect();
            let (mean, error) = mean_and_error(&w);
            verdict.add(format!("{name}, β = {beta}"), z_test(mean - 1.0, error, 1.0));
        }
        let exact = path.log_z().unwrap();
        verdict.require(
            (ladder.log_z(1.0).unwrap() - exact).abs() < 1e-9,
            format!("{name}: log Z of the target"),
        );
    }
    verdict.assert_passed();
}

#[test]
fn plain_swaps_pass() {
    for (name, ladder) in ladders() {
        let verdict = check_accelerator(&Identity, &*ladder, &Schedule::uniform(3), 7, FALSE_ALARM);
        assert!(verdict.passed(), "{name}: {verdict}");
    }
}

#[test]
fn every_fault_is_caught() {
    let ladder = GaussianLadder::uneven(2);
    for fault in Fault::ALL {
        let broken = Broken { inner: Arc::new(Identity), fault };
        let verdict = check_accelerator(&broken, &ladder, &Schedule::uniform(3), 7, FALSE_ALARM);
        assert!(!verdict.passed(), "{fault:?} went unnoticed: {verdict}");
    }
}

/// Without a known log Z the suite still sees faults of the law.
#[test]
fn faults_are_caught_without_log_z() {
    struct Unknown(MixtureLadder);
    impl ExactLadder for Unknown {
        fn path(&self) -> Arc<dyn sterna::path::AnnealingPath> {
            self.0.path()
        }
        fn draw(&self, beta: f64, stream: &mut sterna::streams::RowStream, x: &mut [f64]) {
            self.0.draw(beta, stream, x);
        }
        fn log_z(&self, _beta: f64) -> Option<f64> {
            None
        }
    }
    let ladder = Unknown(MixtureLadder::three_modes(2));
    let check = |accelerator: &dyn sterna::accelerator::Accelerator| {
        check_accelerator(accelerator, &ladder, &Schedule::uniform(3), 9, FALSE_ALARM)
    };
    check(&Identity).assert_passed();
    for fault in [Fault::FlippedRatio, Fault::MissingJacobian(0.3), Fault::BiasedEnd(0.15)] {
        let verdict = check(&Broken { inner: Arc::new(Identity), fault });
        assert!(!verdict.passed(), "{fault:?} went unnoticed: {verdict}");
    }
}

/// Rejection draws an unbounded number of numbers from a row's stream: rows stay independent of
/// their number.
#[test]
fn a_draw_depends_on_its_row_alone() {
    let ladder = MixtureLadder::three_modes(2);
    let many = ladder.draw_betas(&[0.4], &Streams::new(1), 50);
    let few = ladder.draw_betas(&[0.4], &Streams::new(1), 10);
    assert_eq!(many.as_slice()[..20], *few.as_slice());
    let mut one = Batch::zeros(1, 2);
    ladder.draw(0.4, &mut Streams::new(1).row(Phase::Exact, 0, 7), one.row_mut(0));
    assert_eq!(one.row(0), many.row(7));
}

/// The example of CONTRIBUTING.md, word for word.
#[test]
#[rustfmt::skip]
fn the_example_of_a_statistical_test() {
    use sterna::{Batch, Streams, streams::Phase};
    use sterna_testkit::{FALSE_ALARM, Statistic, check_invariance};

    fn exact(streams: &Streams) -> Batch {
        let mut x = Batch::zeros(4000, 1);
        streams.normals(Phase::Exact, 0, &(0..4000).collect::<Vec<_>>(), &mut x);
        x
    }
    let scaled = |by: f64| move |_: &Streams, x: Batch| Batch::from_vec(1, x.as_slice().iter().map(|x| by * x).collect());
    let statistics = [Statistic::new("square", |x| x[0] * x[0])];
    check_invariance(exact, scaled(-1.0), &statistics, 1, FALSE_ALARM).assert_passed();
    check_invariance(exact, scaled(1.2), &statistics, 1, FALSE_ALARM).assert_caught();
}
