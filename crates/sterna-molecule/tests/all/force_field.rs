//! The force field against OpenMM's Reference platform, against differences, and against itself.

use crate::common::references;
use sterna_molecule::{Energy, ForceField};

fn assert_close(found: f64, expected: f64, what: &str) {
    let error = (found - expected).abs() / expected.abs();
    assert!(error < 1e-10, "{what}: {found} is not {expected}: relative error {error:.1e}");
}

#[test]
fn energies_by_term_and_forces_agree_with_openmm() {
    for reference in references() {
        let force_field = ForceField::new(&reference.system).unwrap();
        let dim = 3 * force_field.atoms();
        let positions: Vec<f64> = reference.conformations.iter().flat_map(|c| c.positions.clone()).collect();
        let mut forces = vec![0.0; positions.len()];
        let mut energies = vec![Energy::default(); reference.conformations.len()];
        force_field.evaluate_by_term(&positions, |row, energy| energies[row] = energy, &mut forces);
        for (i, expected) in reference.conformations.iter().enumerate() {
            let what = |term: &str| format!("{}, conformation {i}, {term}", reference.name);
            assert_close(energies[i].bond, expected.energy.bond, &what("bond"));
            assert_close(energies[i].angle, expected.energy.angle, &what("angle"));
            assert_close(energies[i].torsion, expected.energy.torsion, &what("torsion"));
            assert_close(energies[i].nonbonded, expected.energy.nonbonded, &what("nonbonded"));
            assert_close(energies[i].total(), expected.total, &what("total"));
            // Each atom's force as a vector.
            let rows = forces[i * dim..(i + 1) * dim].chunks(3).zip(expected.forces.chunks(3));
            for (atom, (f, e)) in rows.enumerate() {
                let norm = e.iter().map(|e| e * e).sum::<f64>().sqrt();
                let error = f.iter().zip(e).map(|(f, e)| (f - e) * (f - e)).sum::<f64>().sqrt() / norm;
                assert!(
                    error < 1e-10,
                    "{}: relative error {error:.1e}",
                    what(&format!("force on atom {atom}"))
                );
            }
        }
    }
}

#[test]
fn forces_are_minus_the_gradient() {
    for reference in references() {
        let force_field = ForceField::new(&reference.system).unwrap();
        for conformation in reference.conformations.iter().take(6) {
            let dim = conformation.positions.len();
            let h = 1e-5;
            // Central differences of fourth order, all coordinates in one batch.
            let steps = [-2.0, -1.0, 1.0, 2.0];
            let weights = [1.0 / 12.0, -2.0 / 3.0, 2.0 / 3.0, -1.0 / 12.0];
            let mut shifted = Vec::new();
            for c in 0..dim {
                for step in steps {
                    shifted.extend(&conformation.positions);
                    let last = shifted.len() - dim;
                    shifted[last + c] += step * h;
                }
            }
            let mut energy = vec![0.0; 4 * dim];
            let mut forces = vec![0.0; shifted.len()];
            force_field.evaluate(&shifted, &mut energy, &mut forces);
            let scale = conformation.forces.iter().fold(0.0f64, |a, f| a.max(f.abs()));
            for c in 0..dim {
                let slope: f64 = (0..4).map(|s| weights[s] * energy[4 * c + s]).sum::<f64>() / h;
                let error = (slope + conformation.forces[c]).abs() / scale;
                assert!(error < 1e-7, "{} coordinate {c}: {error:.1e}", reference.name);
            }
        }
    }
}

#[test]
fn energy_ignores_translation_rotation_and_reflection() {
    for reference in references() {
        let force_field = ForceField::new(&reference.system).unwrap();
        for conformation in &reference.conformations {
            let mut moved = conformation.positions.clone();
            // Two turns, then a shift, then a mirror.
            let (s, c) = 0.7f64.sin_cos();
            for p in moved.chunks_mut(3) {
                let (x, y, z) = (p[0], p[1], p[2]);
                let (x, y) = (c * x - s * y, s * x + c * y);
                let (y, z) = (c * y - s * z, s * y + c * z);
                p.copy_from_slice(&[-(x + 0.3), y - 0.2, z + 0.5]);
            }
            let (mut energy, mut forces) = ([0.0], vec![0.0; moved.len()]);
            force_field.evaluate(&moved, &mut energy, &mut forces);
            assert_close(energy[0], conformation.total, reference.name);
            // Forces sum to zero, and so do torques.
            for axis in 0..3 {
                let total: f64 = forces.iter().skip(axis).step_by(3).sum();
                let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
                let torque: f64 =
                    moved.chunks(3).zip(forces.chunks(3)).map(|(x, f)| x[a] * f[b] - x[b] * f[a]).sum();
                assert!(total.abs() < 1e-8 && torque.abs() < 1e-8, "{total} {torque}");
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_in_any_batch() {
    for reference in references() {
        let force_field = ForceField::new(&reference.system).unwrap();
        let rows = reference.conformations.len();
        let dim = 3 * force_field.atoms();
        let positions: Vec<f64> = reference.conformations.iter().flat_map(|c| c.positions.clone()).collect();
        let (mut energy, mut forces) = (vec![0.0; rows], vec![0.0; rows * dim]);
        force_field.evaluate(&positions, &mut energy, &mut forces);
        for (row, expected) in energy.iter().enumerate() {
            let range = row * dim..(row + 1) * dim;
            let (mut one, mut alone) = ([0.0], vec![0.0; dim]);
            force_field.evaluate(&positions[range.clone()], &mut one, &mut alone);
            assert_eq!(one[0].to_bits(), expected.to_bits());
            assert!(alone.iter().zip(&forces[range]).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
    }
}

#[test]
fn overlapping_atoms_have_no_finite_energy_and_spoil_no_other_row() {
    let [reference, ..] = references();
    let force_field = ForceField::new(&reference.system).unwrap();
    let dim = 3 * force_field.atoms();
    let good = &reference.conformations[0].positions;
    let mut bad = good.clone();
    bad.copy_within(0..3, 60); // atom 20 onto atom 0
    let positions = [bad, good.clone(), vec![f64::NAN; dim]].concat();
    let (mut energy, mut forces) = ([0.0; 3], vec![0.0; 3 * dim]);
    force_field.evaluate(&positions, &mut energy, &mut forces);
    assert!(!energy[0].is_finite() && !energy[2].is_finite());
    assert_close(energy[1], reference.conformations[0].total, "the good row");
}
