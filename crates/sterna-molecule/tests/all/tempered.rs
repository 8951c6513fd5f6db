//! The tempered path: linear in β, moved for free, and sampled by the core's own run.

use std::sync::Arc;
use sterna::call::{Call, Rows, Scratch};
use sterna::path::{AnnealingPath, Points};
use sterna::run::{Run, Settings};
use sterna::streams::{Phase, Streams};
use sterna_molecule::{TemperedPath, alanine_dipeptide};

#[test]
fn moving_along_the_path_is_free_and_slopes_are_derivatives() {
    let path = TemperedPath::new(Arc::new(alanine_dipeptide(300.0).unwrap()), 1200.0).unwrap();
    let mut points = Points::zeros(3, path.dim());
    path.draw_reference(0.0, &Streams::new(1), Phase::Start.into(), 0, &[0, 1, 2], &mut points.x);
    points.x.row_mut(2).fill(0.0); // atoms on top of each other
    path.evaluate(&[0.2, 0.7, 0.5], &mut points).unwrap();
    assert_eq!((path.evaluations(), path.draws_reference()), (3, false));
    assert_eq!(points.log_density[2], f64::NEG_INFINITY);
    let mut slopes = [0.0; 3];
    path.slopes(&[0.2, 0.7, 0.5], &points, &mut slopes, &mut Scratch::default()).unwrap();
    let before = points.clone();
    path.move_to(&[0.3, 0.8, 0.6], &mut points).unwrap();
    assert_eq!(path.evaluations(), 3);
    for (i, slope) in slopes.iter().enumerate().take(2) {
        let difference = (points.log_density[i] - before.log_density[i]) / 0.1;
        assert!((difference - slope).abs() < 1e-10 * slope.abs(), "{difference} {slope}");
        let factor = points.log_density[i] / points.target.log_density[i];
        for (score, target) in points.score.row(i).iter().zip(points.target.score.row(i)) {
            assert!((score - factor * target).abs() <= 1e-12 * target.abs());
        }
    }
    assert!(TemperedPath::new(Arc::new(alanine_dipeptide(300.0).unwrap()), -1.0).is_err());
}

#[test]
fn the_core_samples_it() {
    let path = TemperedPath::new(Arc::new(alanine_dipeptide(300.0).unwrap()), 1200.0).unwrap();
    let settings = Settings {
        chains: 8,
        ensembles: 4,
        rounds: 3,
        round_iterations: 600,
        iterations: 2000,
        burn_in: 100,
        ..Settings::default()
    };
    let mut run = Run::new(Arc::new(path), settings).unwrap();
    run.complete().unwrap();
    let results = run.results();
    let barrier: f64 = results.rejection_rates.iter().sum();
    // A study with another program measured 3.9 for 8 chains.
    assert!((3.5..4.3).contains(&barrier), "sum of rejection rates {barrier}");
}

/// The path's own moves turn the molecule and, if asked to, its torsions: what is known of a point stays true of it, and
/// acceptances that step sizes adapt to are those of Hamiltonian moves alone.
#[test]
fn own_moves_leave_points_whose_scores_are_true() {
    use sterna::explorer::{Moved, Moves};
    let molecule = Arc::new(alanine_dipeptide(300.0).unwrap());
    for torsion_moves in [0, 3] {
        let path = TemperedPath::new(molecule.clone(), 1200.0).unwrap();
        let path = path.with_torsion_moves(torsion_moves).unwrap();
        let (rows, dim) = (5, path.dim());
        let rows = Rows::of_ladders(&[0.3], rows);
        let mut points = Points::zeros(rows.len(), dim);
        path.draw_reference(0.0, &Streams::new(1), Phase::Start.into(), 0, &rows.key, &mut points.x);
        path.evaluate(&rows.beta, &mut points).unwrap();
        let before = points.clone();
        let mut moves = Moved::default();
        moves.begin(rows.len());
        let mut scratch = Scratch::default();
        let explorer = path.own_moves().unwrap();
        for t in 0..20 {
            let streams = Streams::new(2);
            explorer
                .explore(&Call::new(&path, &streams, t, &rows), &mut points, &mut moves, &mut scratch)
                .unwrap();
        }
        assert_eq!(moves.rows, vec![Moves::default(); rows.len()]);
        let mut fresh = points.clone();
        path.evaluate(&rows.beta, &mut fresh).unwrap();
        for i in 0..rows.len() {
            assert_ne!(points.x.row(i), before.x.row(i));
            assert!((fresh.log_density[i] - points.log_density[i]).abs() < 1e-9);
            if torsion_moves == 0 {
                assert_eq!(points.log_density[i], before.log_density[i]);
            }
            for (kept, fresh) in points.score.row(i).iter().zip(fresh.score.row(i)) {
                assert!((kept - fresh).abs() < 1e-6, "{kept} {fresh}");
            }
        }
    }
}

#[test]
fn the_first_schedule_is_geometric_in_temperature() {
    let path = TemperedPath::new(Arc::new(alanine_dipeptide(300.0).unwrap()), 1200.0).unwrap();
    let schedule = path.first_schedule(4);
    for (n, &beta) in schedule.betas().iter().enumerate() {
        let expected = 1200.0 * 0.25f64.powf(n as f64 / 3.0);
        assert!((path.temperatures().at(beta) - expected).abs() < 1e-9);
    }
}
