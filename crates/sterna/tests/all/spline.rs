//! Paths over exponents of their own: exact wherever their knots are, and over lower barriers where tuning moves these.

use crate::common::{LADDERS, check_explorer, schedule};
use std::sync::Arc;
use sterna::acceleration::Acceleration;
use sterna::accelerators::Identity;
use sterna::call::Scratch;
use sterna::explorers::{Hmc, StepSizes};
use sterna::path::{AnnealingPath, Points};
use sterna::paths::{Geometric, Knot, Reference, Spline};
use sterna::run::{Run, Settings};
use sterna::streams::{PhaseKey, RowStream, Streams};
use sterna::targets::Normal;
use sterna::{Batch, Result};
use sterna_testkit::moves::swap;
use sterna_testkit::{ExactLadder, FALSE_ALARM, Statistic, check_invariance};

/// From N(0, 1) to another normal in each coordinate, over knots: normal at every β.
struct Ladder {
    normal: Normal,
    path: Arc<Spline>,
}

impl Ladder {
    fn bent() -> Self {
        let normal = Normal::new(vec![2.0, -1.0], vec![4.0, 0.5]);
        let knot = |beta, reference, target| Knot { beta, reference, target };
        let knots = vec![knot(0.3, 0.4, 0.1), knot(0.7, 1.3, 0.2)];
        let ground = Geometric::from_standard_normal(normal.clone());
        Self { normal, path: Arc::new(Spline::new(ground, knots).unwrap()) }
    }
}

impl ExactLadder for Ladder {
    fn path(&self) -> Arc<dyn AnnealingPath> {
        self.path.clone()
    }

    fn draw(&self, beta: f64, stream: &mut RowStream, x: &mut [f64]) {
        let [a, b] = self.path.powers(beta);
        for (j, x) in x.iter_mut().enumerate() {
            let (mean, target) = (self.normal.mean()[j], self.normal.precision()[j]);
            let precision = a + b * target;
            *x = b * target * mean / precision + stream.normal() / precision.sqrt();
        }
    }

    fn log_z(&self, _beta: f64) -> Option<f64> {
        None
    }
}

/// Swaps that go by the straight path, where local moves go by the bent one.
struct Mixed(Arc<Spline>);

impl AnnealingPath for Mixed {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        self.0.evaluate(betas, points)
    }

    fn move_to(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        self.0.ground().move_to(betas, points)
    }

    fn slopes(&self, betas: &[f64], points: &Points, out: &mut [f64], scratch: &mut Scratch) -> Result<()> {
        self.0.slopes(betas, points, out, scratch)
    }

    fn draw_reference(&self, end: f64, s: &Streams, p: PhaseKey, t: u64, rows: &[u32], x: &mut Batch) {
        self.0.draw_reference(end, s, p, t, rows, x);
    }

    fn log_z(&self) -> Option<f64> {
        None
    }

    fn evaluations(&self) -> u64 {
        self.0.evaluations()
    }
}

fn check_swap(path: &dyn AnnealingPath, pair: usize) -> sterna_testkit::Verdict {
    let (ladder, schedule) = (Ladder::bent(), schedule());
    let betas = &schedule.betas()[pair - 1..=pair];
    check_invariance(
        |streams| ladder.draw_betas(betas, streams, LADDERS),
        swap(path, &schedule, pair, &Identity),
        &Statistic::ladder(&ladder.path(), betas),
        1,
        FALSE_ALARM,
    )
}

#[test]
fn moves_and_swaps_keep_every_chain() {
    let ladder = Ladder::bent();
    let hmc = Hmc::with_sizes(1, 3, StepSizes::fixed(4, 2, 0.9), 0.0);
    check_explorer(&ladder, &hmc, 1).assert_passed();
    (1..=3).for_each(|pair| check_swap(&*ladder.path, pair).assert_passed());
}

#[test]
fn swaps_by_another_path_are_caught() {
    let mixed = Mixed(Ladder::bent().path);
    assert!((1..=3).any(|pair| !check_swap(&mixed, pair).passed()));
}

#[test]
fn slopes_are_those_of_the_log_density() {
    let path = Ladder::bent().path;
    let mut points = Points::zeros(1, 2);
    points.x.row_mut(0).copy_from_slice(&[0.7, -0.4]);
    for beta in [0.1, 0.5, 0.9] {
        let mut at = |beta: f64| {
            path.evaluate(&[beta], &mut points).unwrap();
            points.log_density[0]
        };
        let expected = (at(beta + 1e-5) - at(beta - 1e-5)) / 2e-5;
        let mut slope = [0.0];
        path.slopes(&[beta], &points, &mut slope, &mut Scratch::default()).unwrap();
        assert!((slope[0] - expected).abs() < 1e-6, "{slope:?} is not {expected}");
    }
}

/// The paper's example: normals two hundred standard deviations apart.
fn distant() -> Arc<Geometric> {
    let target = Arc::new(Normal::new(vec![1.0], vec![1e4]));
    Arc::new(Geometric::new(Reference::normal(vec![-1.0], vec![0.01]), target).unwrap())
}

fn settings() -> Settings {
    Settings { chains: 20, rounds: 12, iterations: 5000, ..Settings::default() }
}

#[test]
fn moved_knots_lower_the_barrier_and_leave_log_z() {
    let mut straight = Run::new(distant(), settings()).unwrap();
    straight.complete().unwrap();
    let mut bent = Run::new(Arc::new(Spline::new(distant(), Vec::new()).unwrap()), settings()).unwrap();
    bent.complete().unwrap();
    let (straight, bent) = (straight.results(), bent.results());
    let barrier = |rates: &[f64]| rates.iter().sum::<f64>();
    assert!(barrier(&straight.rejection_rates) > 18.9, "{:?}", straight.rejection_rates);
    assert!(barrier(&bent.rejection_rates) < 8.0, "{:?}", bent.rejection_rates);
    assert!(bent.round_trips > 50 && straight.round_trips == 0, "{}", bent.round_trips);
    let log_z = &bent.log_z;
    let known = distant().log_z().unwrap();
    assert!((log_z.bar - known).abs() < 5.0 * log_z.standard_error, "{log_z:?} is not {known}");
}

#[test]
fn runs_resume_over_their_knots() {
    let path = || Arc::new(Spline::new(distant(), Vec::new()).unwrap());
    let settings =
        || Settings { rounds: 5, round_iterations: 150, iterations: 100, burn_in: 10, ..settings() };
    let mut whole = Run::new(path(), settings()).unwrap();
    whole.complete().unwrap();
    let mut cut = Run::new(path(), settings()).unwrap();
    for _ in 0..12 {
        cut.advance(61).unwrap();
        cut = Run::restore(path(), settings(), Acceleration::None, &cut.save().unwrap()).unwrap();
    }
    cut.complete().unwrap();
    let knots = |run: &Run| run.sampler().path.as_spline().unwrap().knots().to_vec();
    assert_eq!(knots(&whole), knots(&cut));
    assert!(!knots(&whole).is_empty());
    assert_eq!(whole.results().means, cut.results().means);
    let log_z = |run: &Run| format!("{:?}", run.results().log_z);
    assert_eq!(log_z(&whole), log_z(&cut));
}

#[test]
fn impossible_knots_are_refused() {
    let spline = |knot: Knot| Spline::new(distant(), vec![knot]).err().unwrap().to_string();
    let said = spline(Knot { beta: 1.0, reference: 0.5, target: 0.5 });
    assert!(said.contains("Spline.knots") && said.contains("between 0 and 1"), "{said}");
    let said = spline(Knot { beta: 0.5, reference: 0.0, target: 0.5 });
    assert!(said.contains("positive"), "{said}");
}
