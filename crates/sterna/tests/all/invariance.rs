//! Every move keeps its law: exact draws go in, one move is made, the law is the same (§2.1, §3.2).
//!
//! Each verdict has a false-alarm level of 10⁻⁵ over all its checks; seeds are fixed. Each sound
//! move has broken twins, which must be caught.

use crate::common::{LADDERS, check_explorer, schedule};
use std::sync::Arc;
use sterna::accelerator::{Accelerator, Direction};
use sterna::accelerators::Identity;
use sterna::call::{Call, Scratch};
use sterna::explorer::{Explorer, Moved};
use sterna::explorers::{Hmc, StepSizes};
use sterna::path::{AnnealingPath, Points};
use sterna::streams::{Phase, PhaseKey, Streams};
use sterna::targets::{Gmm, ManyWell};
use sterna::{Batch, Result, Schedule, Target};
use sterna_testkit::broken::{Broken, Fault};
use sterna_testkit::moves::{depart, explore, iteration, points_of, sampler, swap};
use sterna_testkit::p_values::{mean_and_error, z_test};
use sterna_testkit::{
    ExactLadder, FALSE_ALARM, GaussianLadder, MixtureLadder, Statistic, Verdict, check_invariance,
};

fn hmc(steps: usize, leapfrog_steps: usize, sizes: StepSizes, jitter: f64) -> Hmc {
    Hmc::with_sizes(steps, leapfrog_steps, sizes, jitter)
}

/// Step sizes large enough that a good share of the proposals is rejected: only then does the
/// acceptance step matter.
fn explorers(dim: usize) -> Vec<(&'static str, Hmc)> {
    let mut scaled = StepSizes::per_chain(vec![0.9, 0.8, 0.7, 0.5], dim);
    for (i, scale) in scaled.scale.as_mut_slice().iter_mut().enumerate() {
        *scale = [1.0, 0.6, 1.4][i % 3];
    }
    vec![
        ("fixed step", hmc(1, 5, StepSizes::fixed(4, dim, 0.55), 0.0)),
        ("several moves", hmc(3, 2, StepSizes::fixed(4, dim, 0.5), 0.0)),
        ("a step and a mass per chain", hmc(1, 4, scaled.clone(), 0.0)),
        ("jitter", hmc(1, 5, scaled, 0.5)),
        ("MALA", hmc(1, 1, StepSizes::per_chain(vec![1.2, 1.0, 0.9, 0.7], dim), 0.0)),
    ]
}

#[test]
fn local_moves_keep_every_chain_of_a_normal_ladder() {
    let ladder = GaussianLadder::uneven(3);
    for (name, explorer) in explorers(3) {
        let verdict = check_explorer(&ladder, &explorer, 1);
        assert!(verdict.passed(), "{name}: {verdict}");
    }
}

#[test]
fn local_moves_keep_every_chain_of_a_mixture_ladder() {
    let ladder = MixtureLadder::three_modes(2);
    for (name, explorer) in explorers(2) {
        let verdict = check_explorer(&ladder, &explorer, 2);
        assert!(verdict.passed(), "{name}: {verdict}");
    }
}

/// Targets of the paper that can be drawn exactly, at β = 1.
#[test]
fn local_moves_keep_the_papers_targets() {
    let targets: Vec<(Arc<dyn Target>, f64)> =
        vec![(Arc::new(Gmm::paper(4)), 0.03), (Arc::new(ManyWell::new(6)), 0.3)];
    for (target, step) in targets {
        let dim = target.dim();
        let reference = sterna::paths::Reference::standard_normal(dim);
        let path: Arc<dyn AnnealingPath> =
            Arc::new(sterna::paths::Geometric::new(reference, target.clone()).unwrap());
        let draw = |streams: &Streams| {
            let mut x = Batch::zeros(LADDERS, dim);
            for i in 0..LADDERS {
                assert!(target.draw(&mut streams.row(Phase::Exact, 0, i as u32), x.row_mut(i)));
            }
            x
        };
        let explorer = hmc(2, 5, StepSizes::fixed(1, dim, step), 0.3);
        let statistics = Statistic::ladder(&path, &[1.0]);
        check_invariance(draw, explore(&*path, &[1.0], &explorer), &statistics, 3, FALSE_ALARM)
            .assert_passed();
    }
}

/// HMC written plainly, row by row, with the library's random numbers, and with faults on demand.
#[derive(Debug)]
struct PlainHmc {
    step: f64,
    leapfrog_steps: usize,
    fault: Option<LocalFault>,
}

#[derive(Clone, Copy, Debug)]
enum LocalFault {
    AlwaysAccepts,
    ForgetsKineticEnergy,
    FlipsTheRatio,
    FirstKickIsWhole,
}

impl Explorer for PlainHmc {
    fn explore(
        &self,
        call: &Call,
        points: &mut Points,
        moved: &mut Moved,
        _scratch: &mut Scratch,
    ) -> Result<()> {
        let (rows, dim) = (call.rows, call.path.dim());
        // The first slot is for jitter.
        let [_, momenta, accept] = std::array::from_fn(|_| call.slots.take());
        let h = self.step;
        for (i, &row) in rows.row.iter().enumerate() {
            let mut noise = call.stream(momenta, i);
            let mut v: Vec<f64> = (0..dim).map(|_| noise.normal()).collect();
            let mut here = Points::zeros(1, dim);
            here.gather(points, &[row]);
            let kinetic = |v: &[f64]| match self.fault {
                Some(LocalFault::ForgetsKineticEnergy) => 0.0,
                _ => 0.5 * v.iter().map(|v| v * v).sum::<f64>(),
            };
            let before = here.log_density[0] - kinetic(&v);
            for leap in 0..self.leapfrog_steps {
                let kick = match self.fault {
                    Some(LocalFault::FirstKickIsWhole) if leap == 0 => h,
                    _ => 0.5 * h,
                };
                v.iter_mut().zip(here.score.row(0)).for_each(|(v, score)| *v += kick * score);
                here.x.row_mut(0).iter_mut().zip(&v).for_each(|(x, v)| *x += h * v);
                call.path.evaluate(&rows.beta[i..=i], &mut here)?;
                v.iter_mut().zip(here.score.row(0)).for_each(|(v, score)| *v += 0.5 * h * score);
            }
            let log_ratio = here.log_density[0] - kinetic(&v) - before;
            let log_ratio = match self.fault {
                Some(LocalFault::AlwaysAccepts) => f64::INFINITY,
                Some(LocalFault::FlipsTheRatio) => -log_ratio,
                _ => log_ratio,
            };
            moved.rows[i].proposed += 1;
            moved.rows[i].acceptance += log_ratio.min(0.0).exp();
            let u = call.stream(accept, i).uniform();
            points.scatter(&[row], &here, |_| u.ln() < log_ratio);
        }
        Ok(())
    }
}

/// The plain version judges the fast one: same numbers, same decisions, same points up to rounding.
#[test]
fn the_fast_move_does_what_the_plain_one_does() {
    for (ladder, dim) in [
        (Box::new(GaussianLadder::uneven(11)) as Box<dyn ExactLadder>, 11),
        (Box::new(MixtureLadder::three_modes(3)), 3),
    ] {
        let (path, schedule) = (ladder.path(), schedule());
        let x = ladder.draw_ladder(&schedule, &Streams::new(4), 500);
        for leapfrog_steps in [1, 4] {
            let plain = PlainHmc { step: 0.4, leapfrog_steps, fault: None };
            let fast = hmc(1, leapfrog_steps, StepSizes::fixed(4, dim, 0.4), 0.0);
            let run = |explorer: &dyn Explorer| {
                explore(&*path, schedule.betas(), explorer)(&Streams::new(5), x.clone())
            };
            let (plain, fast) = (run(&plain), run(&fast));
            assert_ne!(plain, x, "something moved");
            for (a, b) in plain.as_slice().iter().zip(fast.as_slice()) {
                assert!((a - b).abs() < 1e-9 * a.abs().max(1.0), "{a} {b}");
            }
        }
    }
}

#[test]
fn broken_local_moves_are_caught() {
    let ladder = GaussianLadder::uneven(3);
    let check = |step: f64, leapfrog_steps: usize, fault: Option<LocalFault>| {
        check_explorer(&ladder, &PlainHmc { step, leapfrog_steps, fault }, 1)
    };
    check(0.55, 5, None).assert_passed();
    for fault in [
        LocalFault::AlwaysAccepts,
        LocalFault::ForgetsKineticEnergy,
        LocalFault::FlipsTheRatio,
        LocalFault::FirstKickIsWhole,
    ] {
        let verdict = check(0.55, 5, Some(fault));
        assert!(!verdict.passed(), "{fault:?} went unnoticed: {verdict}");
    }
    check(0.7, 1, Some(LocalFault::AlwaysAccepts)).assert_caught();
}

/// Draws the reference too wide, or too narrow, by a factor.
struct WrongReference {
    path: Arc<dyn AnnealingPath>,
    factor: f64,
}

impl AnnealingPath for WrongReference {
    fn dim(&self) -> usize {
        self.path.dim()
    }
    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        self.path.evaluate(betas, points)
    }
    fn move_to(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        self.path.move_to(betas, points)
    }
    fn slopes(&self, betas: &[f64], points: &Points, out: &mut [f64], scratch: &mut Scratch) -> Result<()> {
        self.path.slopes(betas, points, out, scratch)
    }
    fn draw_reference(
        &self,
        end: f64,
        streams: &Streams,
        phase: PhaseKey,
        iteration: u64,
        rows: &[u32],
        x: &mut Batch,
    ) {
        self.path.draw_reference(end, streams, phase, iteration, rows, x);
        x.as_mut_slice().iter_mut().for_each(|x| *x *= self.factor);
    }
    fn log_z(&self) -> Option<f64> {
        self.path.log_z()
    }
    fn evaluations(&self) -> u64 {
        self.path.evaluations()
    }
}

fn check_reference_draws(path: Arc<dyn AnnealingPath>, ladder: &dyn ExactLadder) -> Verdict {
    let rows = 40_000;
    check_invariance(
        |streams| ladder.draw_betas(&[0.0], streams, rows),
        |streams, mut x| {
            let keys: Vec<u32> = (0..rows as u32).collect();
            path.draw_reference(0.0, streams, Phase::Reference.into(), 1, &keys, &mut x);
            x
        },
        &Statistic::ladder(&path, &[0.0]),
        6,
        FALSE_ALARM,
    )
}

#[test]
fn exact_draws_of_the_reference() {
    let ladder = GaussianLadder::uneven(3);
    check_reference_draws(ladder.path(), &ladder).assert_passed();
    let wrong = WrongReference { path: ladder.path(), factor: 1.04 };
    check_reference_draws(Arc::new(wrong), &ladder).assert_caught();
}

fn check_swap(ladder: &dyn ExactLadder, pair: usize, accelerator: &dyn Accelerator) -> Verdict {
    let (path, schedule) = (ladder.path(), schedule());
    let betas = &schedule.betas()[pair - 1..=pair];
    check_invariance(
        |streams| ladder.draw_betas(betas, streams, LADDERS),
        swap(&*path, &schedule, pair, accelerator),
        &Statistic::ladder(&path, betas),
        7,
        FALSE_ALARM,
    )
}

#[test]
fn plain_swaps_keep_both_chains() {
    let ladders: [Box<dyn ExactLadder>; 2] =
        [Box::new(GaussianLadder::uneven(3)), Box::new(MixtureLadder::three_modes(2))];
    for ladder in &ladders {
        for pair in 1..=3 {
            check_swap(&**ladder, pair, &Identity).assert_passed();
            for fault in [Fault::PrintedRatio, Fault::FlippedRatio] {
                check_swap(&**ladder, pair, &Broken { inner: Arc::new(Identity), fault }).assert_caught();
            }
        }
    }
}

/// Errata E1, seen in a mean: what the printed ratio would do to the target chain.
#[test]
fn the_printed_acceptance_moves_the_means() {
    let ladder = GaussianLadder::new(sterna::targets::Normal::new(vec![1.0], vec![1.0]));
    let (path, schedule) = (ladder.path(), Schedule::uniform(2));
    let draw = || ladder.draw_ladder(&schedule, &Streams::new(8), 20_000);
    let mean_after = |accelerator: &dyn Accelerator| {
        let x = swap(&*path, &schedule, 1, accelerator)(&Streams::new(9), draw());
        mean_and_error(&x.iter_rows().map(|x| x[1]).collect::<Vec<_>>())
    };
    let (mean, error) = mean_after(&Identity);
    assert!(z_test(mean - 1.0, error, 1.0) > FALSE_ALARM, "{mean} ± {error}");
    let printed = Broken { inner: Arc::new(Identity), fault: Fault::PrintedRatio };
    assert!(mean_after(&printed).0 < 0.7);
}

fn check_iteration(
    ladder: &dyn ExactLadder,
    path: Arc<dyn AnnealingPath>,
    explorer: impl Explorer + 'static,
    accelerator: impl Accelerator + 'static,
    t: u64,
) -> Verdict {
    let sampler = sampler(path, schedule(), explorer, accelerator);
    check_invariance(
        |streams| ladder.draw_ladder(&sampler.schedule, streams, LADDERS),
        iteration(&sampler, t),
        &Statistic::ladder(&sampler.path, sampler.schedule.betas()),
        10 + t,
        FALSE_ALARM,
    )
}

/// Algorithm 1 as a whole, at an odd and at an even iteration: local moves, exact draws, swaps,
/// and the bookkeeping of who sits where.
#[test]
fn whole_iterations_keep_the_joint_law() {
    let ladders: [(usize, Box<dyn ExactLadder>); 2] =
        [(3, Box::new(GaussianLadder::uneven(3))), (2, Box::new(MixtureLadder::three_modes(2)))];
    for (dim, ladder) in &ladders {
        for t in [1, 2] {
            for (name, explorer) in explorers(*dim) {
                let verdict = check_iteration(&**ladder, ladder.path(), explorer, Identity, t);
                assert!(verdict.passed(), "{name}, iteration {t}: {verdict}");
            }
        }
    }
}

#[test]
fn broken_iterations_are_caught() {
    let ladder = GaussianLadder::uneven(3);
    let sound = || explorers(3).remove(0).1;
    let wrong = WrongReference { path: ladder.path(), factor: 1.1 };
    check_iteration(&ladder, Arc::new(wrong), sound(), Identity, 1).assert_caught();
    for t in [1, 2] {
        let printed = Broken { inner: Arc::new(Identity), fault: Fault::PrintedRatio };
        check_iteration(&ladder, ladder.path(), sound(), printed, t).assert_caught();
        let always = PlainHmc { step: 0.55, leapfrog_steps: 5, fault: Some(LocalFault::AlwaysAccepts) };
        check_iteration(&ladder, ladder.path(), always, Identity, t).assert_caught();
    }
}

/// After any number of iterations every replica carries what the path says of it at its own chain.
#[test]
fn cached_values_stay_true() {
    let ladder = MixtureLadder::three_modes(2);
    let sampler = sampler(ladder.path(), schedule(), explorers(2).remove(1).1, Identity);
    let mut ensemble =
        sterna::Ensemble::start(&*sampler.path, &sampler.streams, &sampler.schedule, 0, 5).unwrap();
    let mut work = sterna::Workspace::new(&ensemble);
    for t in 1..=50 {
        sterna::iterate(t, &mut ensemble, &sampler, &mut work, &mut ()).unwrap();
        let betas: Vec<f64> = (0..20).map(|row| sampler.schedule.betas()[ensemble.chain(row)]).collect();
        let mut fresh = ensemble.points.clone();
        sampler.path.evaluate(&betas, &mut fresh).unwrap();
        for row in 0..20 {
            let (kept, fresh) = (ensemble.points.log_density[row], fresh.log_density[row]);
            assert!((kept - fresh).abs() < 1e-12 * fresh.abs().max(1.0), "row {row}: {kept} {fresh}");
        }
        assert_eq!(ensemble.points.score, fresh.score);
    }
}

/// K = 0 weighs a path by the ratio of the two densities, whichever way it goes (eq. 3).
#[test]
fn plain_swaps_weigh_by_the_ratio_of_densities() {
    let ladder = MixtureLadder::three_modes(3);
    let (path, schedule) = (ladder.path(), schedule());
    let x = ladder.draw_ladder(&schedule, &Streams::new(3), 40);
    for direction in [Direction::Forward, Direction::Backward] {
        let (travellers, mut journey) = depart(direction, &*path, &schedule, &x);
        let start = journey.points.x.clone();
        Identity
            .travel(
                direction,
                &Call::new(&*path, &Streams::new(1), 1, &travellers),
                &mut journey,
                &mut Scratch::default(),
            )
            .unwrap();
        assert_eq!(journey.points.x, start);
        for (i, interval) in travellers.interval.iter().enumerate() {
            let here = Batch::from_vec(3, start.row(i).to_vec());
            let at = |beta: f64| points_of(&*path, &[beta], &here).log_density[0];
            let expected = at(interval.upper) - at(interval.lower);
            assert!((journey.log_weight[i] - expected).abs() < 1e-12);
        }
    }
}
