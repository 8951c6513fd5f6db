//! Internal coordinates: which they are, round trips, the Jacobian against a numerical determinant.

use crate::common::references;
use sterna_molecule::{CoordinateKind, InternalCoordinates, TorsionKind, alanine_dipeptide};

/// log |det| by elimination with pivots.
fn log_abs_det(mut a: Vec<Vec<f64>>) -> f64 {
    let n = a.len();
    let mut log_det = 0.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        log_det += a[k][k].abs().ln();
        let (top, rest) = a.split_at_mut(k + 1);
        for row in rest {
            let factor = row[k] / top[k][k];
            for (x, t) in row[k..].iter_mut().zip(&top[k][k..]) {
                *x -= factor * t;
            }
        }
    }
    log_det
}

fn distances(x: &[f64]) -> Vec<f64> {
    let atoms: Vec<&[f64]> = x.chunks(3).collect();
    let mut out = Vec::new();
    for (i, a) in atoms.iter().enumerate() {
        for b in &atoms[..i] {
            out.push(a.iter().zip(*b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt());
        }
    }
    out
}

/// The sign of a chiral volume tells mirror images apart.
fn volume(x: &[f64], atoms: [usize; 4]) -> f64 {
    let at = |i: usize| [x[3 * i], x[3 * i + 1], x[3 * i + 2]];
    let o = at(atoms[0]);
    let [a, b, c] = [1, 2, 3].map(|k| {
        let p = at(atoms[k]);
        [p[0] - o[0], p[1] - o[1], p[2] - o[2]]
    });
    a[0] * (b[1] * c[2] - b[2] * c[1])
        + a[1] * (b[2] * c[0] - b[0] * c[2])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
}

#[test]
fn alanine_dipeptide_has_the_torsions_that_chemists_name() {
    let molecule = alanine_dipeptide(300.0).unwrap();
    let internal = InternalCoordinates::new(molecule.system()).unwrap();
    let of = |kind| -> Vec<Vec<usize>> {
        internal.torsions(kind).map(|i| internal.coordinates()[i].atoms.clone()).collect()
    };
    assert_eq!(of(TorsionKind::Phi), [[4, 6, 8, 14]]);
    assert_eq!(of(TorsionKind::Psi), [[6, 8, 14, 16]]);
    assert_eq!(of(TorsionKind::Omega), [[1, 4, 6, 8], [8, 14, 16, 18]]);
    assert_eq!(of(TorsionKind::Methyl).len(), 3);
    assert_eq!(of(TorsionKind::Other).len(), 0);
    let count = |kind| internal.coordinates().iter().filter(|c| c.kind == kind).count();
    assert_eq!(count(CoordinateKind::Bond), 21);
    assert_eq!(count(CoordinateKind::Angle), 20);
    assert_eq!(count(CoordinateKind::Improper), 12);
}

#[test]
fn rings_and_longer_chains_are_classified() {
    let [_, tetrapeptide, phenylalanine] = references();
    let count = |system, kind| InternalCoordinates::new(system).unwrap().torsions(kind).count();
    let system = &tetrapeptide.system;
    assert_eq!(count(system, TorsionKind::Phi), 3);
    assert_eq!(count(system, TorsionKind::Psi), 3);
    assert_eq!(count(system, TorsionKind::Omega), 4);
    assert_eq!(count(system, TorsionKind::Methyl), 5);
    assert_eq!(count(system, TorsionKind::Other), 0);
    let system = &phenylalanine.system;
    assert_eq!(count(system, TorsionKind::Other), 2, "χ1 and χ2");
    let internal = InternalCoordinates::new(system).unwrap();
    let ring = internal.coordinates().iter().filter(|c| c.kind == CoordinateKind::Ring).count();
    assert!(ring >= 3, "{ring}");
}

#[test]
fn round_trips_are_exact() {
    for reference in references() {
        let internal = InternalCoordinates::new(&reference.system).unwrap();
        let x: Vec<f64> = reference.conformations.iter().flat_map(|c| c.positions.clone()).collect();
        let rows = reference.conformations.len();
        let mut q = vec![0.0; rows * internal.dim()];
        let mut back = vec![0.0; x.len()];
        let mut again = q.clone();
        let (mut there, mut here, mut third) = (vec![0.0; rows], vec![0.0; rows], vec![0.0; rows]);
        internal.to_internal(&x, &mut q, &mut there);
        internal.to_cartesian(&q, &mut back, &mut here);
        internal.to_internal(&back, &mut again, &mut third);
        for i in 0..rows {
            assert!((there[i] - here[i]).abs() < 1e-10 && (there[i] - third[i]).abs() < 1e-10);
        }
        for (q, again) in q.iter().zip(&again) {
            let turns = (q - again) / std::f64::consts::TAU;
            assert!((turns - turns.round()).abs() < 1e-10, "{q} came back as {again}");
        }
        let dim = internal.cartesian_dim();
        for (x, back) in x.chunks(dim).zip(back.chunks(dim)) {
            for (a, b) in distances(x).iter().zip(distances(back)) {
                assert!((a - b).abs() < 1e-10, "{a} {b}");
            }
            assert!((volume(x, [8, 6, 14, 10]) - volume(back, [8, 6, 14, 10])).abs() < 1e-10);
        }
    }
}

#[test]
fn log_jacobian_is_the_determinant() {
    for reference in references() {
        let internal = InternalCoordinates::new(&reference.system).unwrap();
        let (dim, full) = (internal.dim(), internal.cartesian_dim());
        for conformation in reference.conformations.iter().take(3) {
            let mut q = vec![0.0; dim];
            let mut expected = [0.0];
            internal.to_internal(&conformation.positions, &mut q, &mut expected);
            // Columns: internal coordinates, turns about the origin, shifts.
            let h = 1e-4;
            let mut columns = Vec::new();
            let image = |q: &[f64]| {
                let mut x = vec![0.0; full];
                internal.to_cartesian(q, &mut x, &mut [0.0]);
                x
            };
            for c in 0..dim {
                let at = |step: f64| {
                    let mut moved = q.clone();
                    moved[c] += step * h;
                    image(&moved)
                };
                let (a, b, c, d) = (at(-2.0), at(-1.0), at(1.0), at(2.0));
                let slope = |i: usize| ((a[i] - d[i]) / 12.0 + (c[i] - b[i]) * 2.0 / 3.0) / h;
                columns.push((0..full).map(slope).collect::<Vec<f64>>());
            }
            let x = image(&q);
            for axis in 0..3 {
                let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
                let mut turn = vec![0.0; full];
                let mut shift = vec![0.0; full];
                for atom in 0..full / 3 {
                    turn[3 * atom + b] = x[3 * atom + a];
                    turn[3 * atom + a] = -x[3 * atom + b];
                    shift[3 * atom + axis] = 1.0;
                }
                columns.push(turn);
                columns.push(shift);
            }
            let found = log_abs_det(columns);
            assert!((found - expected[0]).abs() < 1e-7, "{}: {found} is not {}", reference.name, expected[0]);
        }
    }
}

#[test]
fn impossible_conformations_are_marked_and_spoil_no_other_row() {
    let molecule = alanine_dipeptide(300.0).unwrap();
    let internal = InternalCoordinates::new(molecule.system()).unwrap();
    let mut x = vec![0.0; 66];
    molecule.mean_free().to_cartesian(molecule.start(), &mut x);
    let mut q = vec![0.0; 60];
    internal.to_internal(&x, &mut q, &mut [0.0]);
    let angles: Vec<usize> =
        (0..60).filter(|&c| internal.coordinates()[c].kind == CoordinateKind::Angle).collect();
    let mut rows = vec![q.clone()];
    for (c, value) in [
        (0, 0.0),
        (0, -0.1),
        (1, -0.1),
        (angles[0], 0.0),
        (angles[3], -0.1),
        (angles[5], 3.2),
        (7, f64::NAN),
        (8, f64::NAN),
    ] {
        let mut bad = q.clone();
        bad[c] = value;
        rows.push(bad);
    }
    let mut images = vec![0.0; rows.len() * 66];
    let mut log_jacobian = vec![0.0; rows.len()];
    internal.to_cartesian(&rows.concat(), &mut images, &mut log_jacobian);
    assert!(log_jacobian[0].is_finite());
    assert!(log_jacobian[1..].iter().all(|&l| l == f64::NEG_INFINITY), "{log_jacobian:?}");
    // The other way: atoms on a line, atoms on top of each other.
    let mut flat = x.clone();
    flat.chunks_mut(3).enumerate().for_each(|(i, p)| p.copy_from_slice(&[0.1 * i as f64, 0.0, 0.0]));
    let both = [flat, vec![0.0; 66], x].concat();
    let (mut q, mut log_jacobian) = (vec![0.0; 180], [0.0; 3]);
    internal.to_internal(&both, &mut q, &mut log_jacobian);
    assert_eq!(log_jacobian[..2], [f64::NEG_INFINITY; 2]);
    assert!(log_jacobian[2].is_finite());
}
