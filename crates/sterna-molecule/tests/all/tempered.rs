//! The tempered path: linear in β, moved for free, and sampled by the core's own run.

use std::sync::Arc;
use sterna::Batch;
use sterna::call::{Call, Rows, Scratch};
use sterna::path::{AnnealingPath, Points};
use sterna::run::{Run, Settings};
use sterna::streams::{Phase, Streams};
use sterna_molecule::{BOLTZMANN, TemperedPath, alanine_dipeptide, dihedral};

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

/// Torsion terms about both peptide bonds, by an account of their own, are on every chain what they are at the target; at the target
/// nothing is new, and scores and slopes are those of differences.
#[test]
fn held_peptide_bonds_count_on_every_chain_as_at_the_target() {
    let heated = Arc::new(alanine_dipeptide(300.0).unwrap());
    let held = Arc::new(heated.as_ref().clone().holding_peptide_bonds().unwrap());
    let terms = |x: &[f64]| -> f64 {
        let mut cartesian = vec![0.0; 66];
        heated.mean_free().to_cartesian(x, &mut cartesian);
        let about = heated
            .system()
            .torsions
            .iter()
            .filter(|t| [[4, 6], [6, 4], [14, 16], [16, 14]].contains(&[t.atoms[1], t.atoms[2]]));
        let energy = about.map(|t| {
            let angle = dihedral(&cartesian, t.atoms);
            t.stiffness * (1.0 + (f64::from(t.periodicity) * angle - t.phase).cos())
        });
        energy.sum()
    };
    let of = |path: &TemperedPath, betas: &[f64], x: &Batch| {
        let mut points = Points::zeros(betas.len(), path.dim());
        points.x = x.clone();
        path.evaluate(betas, &mut points).unwrap();
        points
    };
    let [heated_path, path] =
        [&heated, &held].map(|molecule| TemperedPath::new(molecule.clone(), 1200.0).unwrap());
    let betas = [0.0, 0.3, 1.0];
    let mut x = Batch::zeros(3, path.dim());
    Streams::new(1).normals(Phase::Start, 0, &[0, 1, 2], &mut x);
    x.as_mut_slice()
        .iter_mut()
        .zip(heated.start().iter().cycle())
        .for_each(|(x, start)| *x = start + 0.01 * *x);
    let (with, without) = (of(&path, &betas, &x), of(&heated_path, &betas, &x));
    for (i, beta) in betas.iter().enumerate() {
        let share = 1.0 - 300.0 / path.temperatures().at(*beta);
        let expected = without.log_density[i] - share * terms(x.row(i)) / (BOLTZMANN * 300.0);
        assert!((with.log_density[i] - expected).abs() < 1e-9, "{i}: {} {expected}", with.log_density[i]);
        assert!(i == 2 || (with.log_density[i] - without.log_density[i]).abs() > 0.1, "there are such terms");
        let reference = of(&path, &[0.0; 3], &x).log_density[i];
        assert!((with.log_reference[i] - reference).abs() < 1e-12 * reference.abs());
    }
    assert_eq!((with.log_density[2], with.score.row(2)), (without.log_density[2], without.score.row(2)));
    let mut slopes = [0.0; 3];
    path.slopes(&betas, &with, &mut slopes, &mut Scratch::default()).unwrap();
    let moved = of(&path, &[0.1, 0.4, 0.9], &x);
    for (i, by) in [0.1, 0.1, -0.1].into_iter().enumerate() {
        let difference = (moved.log_density[i] - with.log_density[i]) / by;
        assert!((difference - slopes[i]).abs() < 1e-9 * slopes[i].abs(), "{i}: {difference} {}", slopes[i]);
    }
    for j in 0..path.dim() {
        let at = |h: f64| {
            let mut x = x.clone();
            (0..3).for_each(|i| x.row_mut(i)[j] += h);
            of(&path, &betas, &x).log_density
        };
        let (up, down) = (at(1e-7), at(-1e-7));
        for i in 0..3 {
            let (difference, score) = ((up[i] - down[i]) / 2e-7, with.score.row(i)[j]);
            assert!(
                (difference - score).abs() < 1e-4 * (100.0 + score.abs()),
                "{i}, {j}: {difference} {score}"
            );
        }
    }
    // What is impossible stays so.
    let nothing = of(&path, &betas, &Batch::zeros(3, path.dim()));
    assert!(nothing.log_density.iter().all(|l| *l == f64::NEG_INFINITY));
    assert!(nothing.score.as_slice().iter().all(|s| *s == 0.0));
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
