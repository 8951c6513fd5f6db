//! Moves that find their step keep every law, do what a plain version does, and their broken twins are caught.
//!
//! Each verdict has a false-alarm level of 10⁻⁵ over all its checks; seeds are fixed.

mod plain;

use crate::common::{LADDERS, assert_alike, assert_resumes, check_explorer, schedule};
use plain::{Fault, Plain};
use std::sync::Arc;
use sterna::call::{Call, Rows, Scratch};
use sterna::explorer::{Explorer, Moved, Tuning};
use sterna::explorers::{Auto, AutoSizes};
use sterna::fitted::{Component, Mixture, Shape};
use sterna::path::{AnnealingPath, Points};
use sterna::paths::{Geometric, Reference};
use sterna::streams::{Phase, RowStream, Streams};
use sterna::targets::{Banana, Funnel};
use sterna::{Batch, Evaluation, Result, Schedule, Target};
use sterna_testkit::moves::{explore, points_of};
use sterna_testkit::{
    ExactLadder, FALSE_ALARM, GaussianLadder, MixtureLadder, Statistic, Verdict, check_invariance,
};

/// Moves whose shapes do not suit: correlated ones, uneven ones and stretched ones in turn.
fn auto(step: f64, chains: usize, dim: usize) -> Auto {
    let mut covariance = vec![0.5; dim * dim];
    covariance.iter_mut().step_by(dim + 1).for_each(|x| *x = 1.0);
    let dense = Shape::of_covariance(&covariance, dim).unwrap();
    let diagonal = Shape::Diagonal((0..dim).map(|j| [1.0, 0.6, 1.4][j % 3]).collect());
    let stretched = Shape::LowRank {
        deviations: vec![0.8; dim],
        directions: vec![(dim as f64).powf(-0.5); dim],
        stretches: vec![1.5],
    };
    let shapes = (0..chains).map(|n| [&dense, &diagonal, &stretched][n % 3].clone()).collect();
    Auto::with_sizes(AutoSizes::new(vec![step; chains], shapes))
}

/// A target that can be drawn exactly, at β = 1.
fn check_target(target: Arc<dyn Target>, explorer: &dyn Explorer, seed: u64) -> Verdict {
    let dim = target.dim();
    let reference = Reference::standard_normal(dim);
    let path: Arc<dyn AnnealingPath> = Arc::new(Geometric::new(reference, target.clone()).unwrap());
    let draw = |streams: &Streams| {
        let mut x = Batch::zeros(4 * LADDERS, dim);
        for i in 0..x.rows() {
            assert!(target.draw(&mut streams.row(Phase::Exact, 0, i as u32), x.row_mut(i)));
        }
        x
    };
    let statistics = Statistic::ladder(&path, &[1.0]);
    check_invariance(draw, explore(&*path, &[1.0], explorer), &statistics, seed, FALSE_ALARM)
}

/// N(0, F Fᵀ).
struct Correlated(Shape);

impl Correlated {
    /// Unit variances, all correlations the same.
    fn evenly(dim: usize, correlation: f64) -> Self {
        let mut covariance = vec![correlation; dim * dim];
        covariance.iter_mut().step_by(dim + 1).for_each(|x| *x = 1.0);
        Self(Shape::of_covariance(&covariance, dim).unwrap())
    }
}

impl Target for Correlated {
    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        for (i, x) in x.iter_rows().enumerate() {
            let score = out.score.row_mut(i);
            score.copy_from_slice(x);
            self.0.solve(score);
            out.log_density[i] = -0.5 * score.iter().map(|z| z * z).sum::<f64>();
            self.0.solve_transposed(score);
            score.iter_mut().for_each(|s| *s = -*s);
        }
        Ok(())
    }
    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) -> bool {
        x.iter_mut().for_each(|x| *x = stream.normal());
        self.0.apply(x);
        true
    }
}

/// Base steps from ones that suit to ones that must be halved nearly everywhere.
#[test]
fn moves_keep_every_chain_of_a_ladder() {
    for (step, steps) in [(0.4, 1), (1.2, 2), (3.0, 1)] {
        let moves = |dim: usize| Auto { steps, ..auto(step, 4, dim) };
        check_explorer(&GaussianLadder::uneven(3), &moves(3), 1).assert_passed();
        check_explorer(&MixtureLadder::three_modes(2), &moves(2), 2).assert_passed();
    }
}

/// Where one step does not suit all points, and where none suits without the shape.
#[test]
fn moves_keep_targets_of_uneven_width() {
    for step in [0.3, 1.0, 2.5] {
        check_target(Arc::new(Funnel::new(3)), &auto(step, 1, 3), 3).assert_passed();
        check_target(Arc::new(Banana::new(2)), &auto(step, 1, 2), 4).assert_passed();
        let target = Correlated::evenly(5, 0.99);
        let sizes = AutoSizes::new(vec![step], vec![target.0.clone()]);
        check_target(Arc::new(target), &Auto::with_sizes(sizes), 5).assert_passed();
    }
}

/// With steps that are doubled up to six times in one move of four.
fn with_doublings(moves: Auto) -> Auto {
    let sizes = AutoSizes { doublings: AutoSizes::MOST_DOUBLINGS, ..moves.sizes.clone() };
    Auto { sizes, ..moves }
}

#[test]
fn moves_with_longer_steps_keep_every_law() {
    for step in [0.1, 0.6] {
        let moves = |chains: usize, dim: usize| with_doublings(auto(step, chains, dim));
        check_explorer(&MixtureLadder::three_modes(2), &moves(4, 2), 12).assert_passed();
        check_target(Arc::new(Funnel::new(3)), &moves(1, 3), 13).assert_passed();
    }
}

/// Each in the shape of a part of the target near it, of which there are three that overlap.
fn with_parts(moves: Auto, dim: usize) -> Auto {
    let part = |weight: f64, at: f64, width: f64, slope: f64| {
        let mut covariance = vec![slope * width * width; dim * dim];
        covariance.iter_mut().step_by(dim + 1).for_each(|x| *x = width * width);
        let shape = Shape::of_covariance(&covariance, dim).unwrap();
        Component { weight, mean: vec![at; dim], shape }
    };
    let parts = vec![part(0.3, -1.0, 0.5, 0.4), part(0.5, 0.5, 1.0, 0.0), part(0.2, 1.0, 2.5, -0.2)];
    Auto { sizes: moves.sizes.clone().with_parts(Mixture::new(parts).unwrap()), ..moves }
}

#[test]
fn moves_in_the_shape_of_a_part_keep_every_law() {
    for step in [0.4, 1.5] {
        let moves = |chains: usize, dim: usize| with_parts(auto(step, chains, dim), dim);
        check_explorer(&GaussianLadder::uneven(3), &moves(4, 3), 14).assert_passed();
        check_explorer(&MixtureLadder::three_modes(2), &moves(4, 2), 15).assert_passed();
        check_target(Arc::new(Funnel::new(3)), &moves(1, 3), 16).assert_passed();
        check_target(Arc::new(Banana::new(2)), &moves(1, 2), 17).assert_passed();
    }
    let normal = |fault: Option<Fault>| {
        let auto = Auto { steps: 6, ..with_parts(auto(0.6, 4, 3), 3) };
        check_explorer(&GaussianLadder::uneven(3), &Plain { auto, fault }, 18)
    };
    normal(None).assert_passed();
    normal(Some(Fault::PartByThePlace)).assert_caught();
}

/// To the bit, so that a row's move depends on no other row of its batch.
#[test]
fn the_batched_move_does_what_the_plain_one_does() {
    for (step, steps) in [(0.2, 1), (0.9, 2), (3.0, 2)] {
        let fast = Auto { steps, ..auto(step, 4, 3) };
        for fast in [with_doublings(fast.clone()), with_parts(fast.clone(), 3), fast] {
            assert_alike(&Plain { auto: fast.clone(), fault: None }, &fast);
        }
    }
}

/// Only the rows of the call move, and each as in any other batch.
#[test]
fn rows_may_be_called_in_any_batches() {
    let ladder = GaussianLadder::uneven(4);
    let (path, schedule) = (ladder.path(), schedule());
    let x = ladder.draw_ladder(&schedule, &Streams::new(6), 20);
    let (moves, streams) = (auto(1.3, 4, 4), Streams::new(7));
    let all = Rows::of_ladders(schedule.betas(), 20);
    let run = |batches: Vec<Vec<usize>>| {
        let mut points = points_of(&*path, schedule.betas(), &x);
        let (mut scratch, mut acceptance) = (Scratch::default(), vec![0.0; 80]);
        for batch in batches {
            let mut rows = Rows::default();
            for &i in &batch {
                rows.push_staying(all.row[i], all.key[i], all.chain[i], all.beta[i]);
            }
            let mut moved = Moved::default();
            moved.begin(rows.len());
            let call = Call::new(&*path, &streams, 9, &rows);
            moves.explore(&call, &mut points, &mut moved, &mut scratch).unwrap();
            batch.iter().zip(&moved.rows).for_each(|(&i, moves)| acceptance[i] = moves.acceptance);
        }
        (points.x, points.log_density, acceptance)
    };
    let whole = run(vec![(0..80).collect()]);
    assert_eq!(whole, run((0..80).rev().map(|i| vec![i]).collect()));
    assert_eq!(whole, run(vec![(0..33).collect(), (33..80).rev().collect()]));
    // Row 5 alone.
    let alone = run(vec![vec![5]]);
    let begun = points_of(&*path, schedule.betas(), &x).x;
    for row in 0..80 {
        assert_eq!(alone.0.row(row), if row == 5 { whole.0.row(5) } else { begun.row(row) });
    }
}

#[test]
fn broken_moves_are_caught() {
    // Several moves, so that trajectories have several lengths.
    let moves =
        |steps: usize, step: f64, chains: usize, dim: usize| Auto { steps, ..auto(step, chains, dim) };
    let funnel = |fault: Option<Fault>, steps: usize, step: f64| {
        check_target(Arc::new(Funnel::new(3)), &Plain { auto: moves(steps, step, 1, 3), fault }, 8)
    };
    let normal = |fault: Option<Fault>| {
        check_explorer(&GaussianLadder::uneven(3), &Plain { auto: moves(3, 0.6, 4, 3), fault }, 9)
    };
    funnel(None, 3, 0.6).assert_passed();
    normal(None).assert_passed();
    funnel(Some(Fault::NoCheckAtTheEnd), 3, 0.6).assert_caught();
    funnel(Some(Fault::NoCheckOfTheLastStep), 20, 0.8).assert_caught();
    let longer = |fault: Option<Fault>| {
        let auto = with_doublings(moves(5, 0.4, 4, 3));
        check_explorer(&GaussianLadder::uneven(3), &Plain { auto, fault }, 10)
    };
    longer(None).assert_passed();
    longer(Some(Fault::DoublingsByThePlace)).assert_caught();
    for fault in
        [Fault::BoundByThePlace, Fault::StepByThePlace, Fault::WrongLastKick, Fault::LengthByThePlace]
    {
        let verdict = normal(Some(fault));
        assert!(!verdict.passed(), "{fault:?} went unnoticed\n{verdict}");
    }
}

/// F instead of Fᵀ in the kicks is a fault that stays exact: each of them moves p by a function of x alone, so that energy is the only
/// witness. With the covariance as shape a step changes little of it.
#[test]
fn kicks_follow_the_transposed_shape() {
    let target = Arc::new(Correlated::evenly(5, 0.99));
    let sizes = AutoSizes::new(vec![0.5], vec![target.0.clone()]);
    let path = Geometric::new(Reference::standard_normal(5), target.clone()).unwrap();
    let evaluations_of_a_move = |fault: Option<Fault>| {
        let mut x = Batch::zeros(1000, 5);
        for i in 0..1000 {
            target.draw(&mut Streams::new(1).row(Phase::Exact, 0, i as u32), x.row_mut(i));
        }
        let before = path.evaluations();
        let plain = Plain { auto: Auto::with_sizes(sizes.clone()), fault };
        explore(&path, &[1.0], &plain)(&Streams::new(2), x);
        (path.evaluations() - before) as f64 / 1000.0
    };
    let (sound, broken) = (evaluations_of_a_move(None), evaluations_of_a_move(Some(Fault::NotTransposed)));
    assert!(sound < 6.0 && broken > 2.0 * sound, "{sound} {broken}");
}

/// A step that suits costs nothing: evaluations beyond those of the trajectories are few.
#[test]
fn the_search_is_free_where_the_base_step_suits() {
    let dim = 10;
    let path = Arc::new(Geometric::from_standard_normal(sterna::targets::Normal::isotropic(dim, 1.0)));
    let mut explorer = Auto::default().begin(1, dim).unwrap().unwrap();
    let rows = Rows::of_ladders(&[1.0], 500);
    let x = GaussianLadder::new(sterna::targets::Normal::isotropic(dim, 1.0));
    let x = x.draw_betas(&[1.0], &Streams::new(1), 500);
    let mut points = points_of(&*path, &[1.0], &x);
    let (mut leaps, mut evaluations) = (0, 0);
    for t in 0..400 {
        let mut moved = Moved::default();
        moved.begin(500);
        let streams = Streams::new(2);
        let call = Call::new(&*path, &streams, t, &rows);
        let before = path.evaluations();
        explorer.explore(&call, &mut points, &mut moved, &mut Scratch::default()).unwrap();
        if t < 200 {
            let acceptance = [moved.rows.iter().map(|m| m.acceptance).sum::<f64>() / 500.0];
            explorer = explorer.adapt(&Tuning::Block { acceptance: &acceptance, gain: 0.3 }).unwrap();
        } else {
            let most = explorer.describe()[1].1[0];
            let share = streams.row(Phase::Local.number(2), t, 0).uniform();
            leaps += 500 * (1 + (share * most) as u64);
            evaluations += path.evaluations() - before;
        }
    }
    let extra = evaluations as f64 / leaps as f64 - 1.0;
    assert!((0.0..0.1).contains(&extra), "{extra}");
}

/// No density in the middle of nowhere, no density beyond a wall, NaN beyond another: nowhere is left, walls hold.
struct Walls;

impl Target for Walls {
    fn dim(&self) -> usize {
        1
    }
    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        for (i, x) in x.as_slice().iter().enumerate() {
            (out.log_density[i], out.score.row_mut(i)[0]) = match *x {
                x if x > 1.0 => (f64::NAN, f64::NAN),
                x if x < -1.0 => (f64::NEG_INFINITY, f64::NAN),
                x => (-0.5 * x * x, -x),
            };
        }
        Ok(())
    }
}

#[test]
fn walls_hold_and_nowhere_is_left() {
    let path = Geometric::new(Reference::normal(vec![0.0], vec![1.0]), Arc::new(Walls)).unwrap();
    let explorer = Auto::default().begin(1, 1).unwrap().unwrap();
    let rows = Rows::of_ladders(&[1.0], 400);
    let starts = Batch::from_vec(1, (0..400).map(|i| -1.2 + 0.005 * f64::from(i)).collect());
    let mut points = points_of(&path, &[1.0], &starts);
    assert!(points.log_density.contains(&f64::NEG_INFINITY));
    let (streams, mut scratch, mut bad) = (Streams::new(3), Scratch::default(), 0);
    for t in 0..200 {
        let mut moved = Moved::default();
        moved.begin(400);
        explorer
            .explore(&Call::new(&path, &streams, t, &rows), &mut points, &mut moved, &mut scratch)
            .unwrap();
        bad += moved.rows.iter().map(|m| m.bad).sum::<u32>();
        assert!(moved.rows.iter().all(|m| m.bad <= m.proposed));
        assert_eq!(moved.bad_point.is_some(), moved.rows.iter().any(|m| m.bad > 0));
    }
    assert!(bad > 0);
    assert!(points.x.as_slice().iter().all(|x| x.abs() <= 1.0), "{:?}", points.x);
    assert!(points.log_density.iter().all(|l| l.is_finite()));
}

#[test]
fn steps_and_shapes_adapt_to_each_chain() {
    let first = Auto::default().begin(2, 2).unwrap().unwrap();
    let begun = first.describe()[0].1[0];
    // Block: only what was seen.
    let followed = first.adapt(&Tuning::Block { acceptance: &[f64::NAN, 0.9], gain: 1.0 }).unwrap();
    let sizes = followed.describe()[0].1.clone();
    assert_eq!((sizes[0], sizes[1] > begun), (begun, true));
    // Round: the mean step in log space stays.
    let information = Batch::from_vec(2, vec![0.0, 1.0, 4.0, 16.0]);
    let spread = Batch::from_vec(2, vec![1.0, 1.0, 1.5, 0.75]);
    let scaled = followed.adapt(&Tuning::Round { information: &information, spread: &spread }).unwrap();
    let after = scaled.describe()[0].1.clone();
    assert_eq!(after[0], begun);
    assert!((after[1] / sizes[1] - 8f64.sqrt()).abs() < 1e-12, "{after:?}");
    // Trajectories reach as far as the chain is wide: three times as far as it is smooth.
    assert_eq!(scaled.describe()[1].1, [3.0, (1.6 * 3.0 / after[1]).round()]);
    // Schedule: more chains, then fewer.
    let (two, three) = (Schedule::uniform(2), Schedule::uniform(3));
    let more = scaled.adapt(&Tuning::Schedule { from: &two, to: &three }).unwrap();
    assert_eq!(more.describe()[0].1.len(), 3);
    let fewer = more.adapt(&Tuning::Schedule { from: &three, to: &two }).unwrap();
    for (a, b) in fewer.describe()[0].1.iter().zip(&after) {
        assert!((a / b - 1.0).abs() < 1e-12, "{a} {b}");
    }
    // Masses: in their units the first step serves again, later ones keep what was found; rounds no longer count.
    let dense = Shape::of_covariance(&[1e6, 0.0, 0.0, 1.0], 2).unwrap();
    let shapes = vec![dense; 3];
    let shaped =
        more.adapt(&Tuning::Masses { shapes: &shapes, parts: None, doublings: 0, reach: &[1.0; 3] }).unwrap();
    assert_eq!(shaped.describe()[0].1, vec![begun; 3]);
    let grown = shaped.adapt(&Tuning::Block { acceptance: &[0.95; 3], gain: 1.0 }).unwrap();
    let again = grown
        .adapt(&Tuning::Masses { shapes: &shapes, parts: None, doublings: 0, reach: &[1.0; 3] })
        .unwrap();
    assert_eq!(again.describe(), grown.describe());
    let information = Batch::from_vec(2, vec![1.0; 6]);
    assert!(again.adapt(&Tuning::Round { information: &information, spread: &information }).is_none());
    let moved = again.adapt(&Tuning::Schedule { from: &three, to: &two }).unwrap();
    assert_eq!(moved.describe()[0].1.len(), 2);
    // What is saved comes back, for those that it was made for.
    let restored = Auto::default().restore(&moved.save(), 2, 2).unwrap().unwrap();
    assert_eq!(restored.save(), moved.save());
    assert!(Auto::default().restore(&moved.save(), 3, 2).is_err());
    assert!(Auto::default().restore(&moved.save(), 2, 3).is_err());
    assert!(Auto { steps: 2, ..Auto::default() }.restore(&moved.save(), 2, 2).is_err());
    assert!(Auto::default().restore(&[1, 2, 3], 2, 2).is_err());
}

#[test]
fn settings_that_cannot_be_are_named() {
    let said = |auto: Auto| auto.check(3, 0).unwrap_err().to_string();
    assert!(said(Auto { steps: 0, ..Auto::default() }).contains("Auto.steps"));
    assert!(said(Auto { steps: 64, ..Auto::default() }).contains("between 1 and 63"));
    assert!(said(Auto { acceptance: 1.0, ..Auto::default() }).contains("Auto.acceptance"));
    assert!(Auto { steps: 63, ..Auto::default() }.check(3, 0).is_ok());
    assert!(auto(1.0, 2, 2).begin(2, 3).is_err());
    assert!(auto(1.0, 2, 2).begin(3, 2).is_err());
    assert!(auto(1.0, 2, 2).begin(2, 2).unwrap().is_none());
}

#[test]
fn a_run_resumes_with_the_same_bits() {
    assert_resumes(Arc::new(Auto { steps: 2, ..Auto::default() }));
}
