//! Torsion moves leave the density invariant: exactly where nothing opposes a turn, by quadrature where it does.

use std::sync::Arc;
use sterna::call::{Call, Rows, Scratch};
use sterna::explorer::{Explorer, Moved};
use sterna::path::{AnnealingPath, Points};
use sterna::streams::Streams;
use sterna::{Batch, Evaluation, Target};
use sterna_molecule::{
    CoordinateKind, InternalCoordinates, Molecule, MoleculeError, TemperedPath, TorsionKind, TorsionMoves,
    alanine_dipeptide,
};

fn start(path: &TemperedPath, rows: usize) -> (Points, Rows) {
    let mut points = Points::zeros(rows, path.dim());
    for i in 0..rows {
        points.x.row_mut(i).copy_from_slice(path.molecule().start());
    }
    let which = Rows::of_ladders(&[1.0], rows);
    path.evaluate(&which.beta, &mut points).unwrap();
    (points, which)
}

/// Internal coordinates of each row.
fn internal_of(molecule: &Molecule, x: &Batch) -> Vec<f64> {
    let internal = InternalCoordinates::new(molecule.system()).unwrap();
    let mut cartesian = vec![0.0; x.rows() * internal.cartesian_dim()];
    molecule.mean_free().to_cartesian(x.as_slice(), &mut cartesian);
    let mut q = vec![0.0; x.rows() * internal.dim()];
    internal.to_internal(&cartesian, &mut q, &mut vec![0.0; x.rows()]);
    q
}

#[test]
fn turns_cost_nothing_where_nothing_opposes_them() {
    let alanine = alanine_dipeptide(300.0).unwrap();
    let mut system = alanine.system().clone();
    (system.torsions, system.particles, system.exceptions) = Default::default();
    let mut cartesian = vec![0.0; 66];
    alanine.mean_free().to_cartesian(alanine.start(), &mut cartesian);
    let free = Molecule::new(system, &cartesian, 300.0).unwrap();
    let path = TemperedPath::new(Arc::new(free), 1200.0).unwrap();
    let moves = TorsionMoves::new(path.molecule(), 4).unwrap();
    let (mut points, rows) = start(&path, 20);
    let before = internal_of(path.molecule(), &points.x);
    let mut happened = Moved::default();
    happened.begin(20);
    let mut scratch = Scratch::default();
    for t in 0..5 {
        moves
            .explore(&Call::new(&path, &Streams::new(5), t, &rows), &mut points, &mut happened, &mut scratch)
            .unwrap();
    }
    for row in &happened.rows {
        assert_eq!(row.proposed, 20);
        assert!((row.acceptance - 20.0).abs() < 1e-9, "{}", row.acceptance);
    }
    // Only soft torsions have changed.
    let after = internal_of(path.molecule(), &points.x);
    let internal = InternalCoordinates::new(path.molecule().system()).unwrap();
    let mut turned = 0;
    for (i, (a, b)) in before.iter().zip(&after).enumerate() {
        let kind = internal.coordinates()[i % 60].kind;
        let turns = (a - b) / std::f64::consts::TAU;
        let change = (turns - turns.round()).abs();
        match kind {
            CoordinateKind::Torsion(TorsionKind::Methyl) => assert!(change < 1e-10),
            CoordinateKind::Torsion(_) => turned += usize::from(change > 1e-3),
            _ => assert!(change < 1e-10, "{kind:?}"),
        }
    }
    assert!(turned > 70, "{turned} of 80 torsions have turned");
}

#[test]
fn the_law_of_a_torsion_is_that_of_quadrature() {
    // Only φ turns, at 1200 K and everything else fixed: its density is known up to a constant.
    let molecule = alanine_dipeptide(300.0).unwrap();
    let path = TemperedPath::new(Arc::new(molecule), 1200.0).unwrap();
    let molecule = path.molecule();
    let internal = InternalCoordinates::new(molecule.system()).unwrap();
    let phi = internal.torsions(TorsionKind::Phi).next().unwrap();
    let q = internal_of(molecule, &Batch::from_vec(63, molecule.start().to_vec()));
    let cells = 720;
    let mut grid = Vec::new();
    for k in 0..cells {
        let mut row = q.clone();
        row[phi] = std::f64::consts::TAU * k as f64 / cells as f64;
        grid.extend(row);
    }
    let mut cartesian = vec![0.0; cells * 66];
    internal.to_cartesian(&grid, &mut cartesian, &mut vec![0.0; cells]);
    let mut x = Batch::zeros(cells, 63);
    molecule.mean_free().to_mean_free(&cartesian, x.as_mut_slice());
    let mut out = Evaluation::zeros(cells, 63);
    molecule.evaluate(&x, &mut out).unwrap();
    let largest = out.log_density.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exact = |f: fn(f64) -> f64, factor: f64| {
        let weights: Vec<f64> = out.log_density.iter().map(|l| (factor * (l - largest)).exp()).collect();
        let angles = grid.iter().skip(phi).step_by(60);
        angles.zip(&weights).map(|(angle, w)| f(*angle) * w).sum::<f64>() / weights.iter().sum::<f64>()
    };
    // Many short independent walks; the spread over walks gives the standard error.
    let count = 256;
    let moves = TorsionMoves::of_kinds(molecule, 4, &[TorsionKind::Phi]).unwrap();
    // None at all are an error, not moves of nothing.
    assert!(matches!(TorsionMoves::of_kinds(molecule, 4, &[]), Err(MoleculeError::NoTorsion)));
    let (mut points, mut rows) = start(&path, count);
    rows.beta.fill(0.0);
    path.evaluate(&rows.beta, &mut points).unwrap();
    let mut scratch = Scratch::default();
    let mut happened = Moved::default();
    happened.begin(count);
    let functions: [fn(f64) -> f64; 3] = [f64::cos, f64::sin, |a| (2.0 * a).cos()];
    let mut means = vec![[0.0; 3]; count];
    for t in 0..400 {
        moves
            .explore(&Call::new(&path, &Streams::new(9), t, &rows), &mut points, &mut happened, &mut scratch)
            .unwrap();
        if t >= 50 {
            let q = internal_of(molecule, &points.x);
            for (mean, angle) in means.iter_mut().zip(q.iter().skip(phi).step_by(60)) {
                (0..3).for_each(|k| mean[k] += functions[k](*angle) / 350.0);
            }
        }
    }
    let mut caught = false;
    for k in 0..3 {
        let n = count as f64;
        let mean: f64 = means.iter().map(|m| m[k]).sum::<f64>() / n;
        let variance = means.iter().map(|m| (m[k] - mean) * (m[k] - mean)).sum::<f64>() / (n - 1.0);
        let error = (variance / n).sqrt();
        let expected = exact(functions[k], 0.25);
        assert!((mean - expected).abs() < 4.5 * error, "{k}: {mean} ± {error} is not {expected}");
        // A kernel that samples 1090 K instead of 1200 K would be noticed.
        caught |= (mean - exact(functions[k], 0.275)).abs() > 4.5 * error;
    }
    assert!(caught, "the test has no power");
}
