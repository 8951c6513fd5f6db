//! The molecule as a target, without its centre of mass, at a temperature; and as chemists see it: dihedrals, basins, chiral
//! centres and trajectories.

use crate::common::references;
use sterna::{Batch, Evaluation, Target};
use sterna_molecule::{
    BOLTZMANN, Basin, ChiralCentre, DcdWriter, MeanFree, Molecule, MoleculeError, Topology,
    alanine_dipeptide, dihedral, distance,
};

fn molecules() -> impl Iterator<Item = (Molecule, Vec<Vec<f64>>)> {
    references().into_iter().map(|r| {
        let positions: Vec<Vec<f64>> = r.conformations.into_iter().map(|c| c.positions).collect();
        (Molecule::new(r.system, &positions[0], 300.0).unwrap(), positions)
    })
}

#[test]
fn mean_free_coordinates_are_orthonormal_and_come_back() {
    for n in [2, 3, 22] {
        let basis = MeanFree::new(n);
        // Rows of the matrix: images of unit vectors.
        let mut rows = Vec::new();
        for c in 0..3 * n - 3 {
            let mut y = vec![0.0; 3 * n - 3];
            y[c] = 1.0;
            let mut x = vec![0.0; 3 * n];
            basis.to_cartesian(&y, &mut x);
            rows.push(x);
        }
        for (i, a) in rows.iter().enumerate() {
            for axis in 0..3 {
                assert!(a.iter().skip(axis).step_by(3).sum::<f64>().abs() < 1e-14, "mean-free");
            }
            for (j, b) in rows.iter().enumerate() {
                let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-14, "{n}: {i} · {j} = {dot}");
            }
        }
    }
}

#[test]
fn round_trips_keep_a_conformation_and_forget_its_place() {
    for (molecule, positions) in molecules() {
        for molecule in [molecule.mean_free().clone(), MeanFree::with_masses(&molecule.system().masses)] {
            let basis = molecule;
            let cartesian = positions.concat();
            let rows = positions.len();
            let (mut y, mut back) = (vec![0.0; rows * basis.dim()], vec![0.0; cartesian.len()]);
            basis.to_mean_free(&cartesian, &mut y);
            basis.to_cartesian(&y, &mut back);
            for (x, back) in cartesian.chunks(basis.cartesian_dim()).zip(back.chunks(basis.cartesian_dim())) {
                for axis in 0..3 {
                    let shift = x[axis] - back[axis];
                    let error = x.iter().zip(back).skip(axis).step_by(3).map(|(x, b)| (x - b - shift).abs());
                    assert!(error.fold(0.0, f64::max) < 1e-14);
                }
            }
        }
    }
}

#[test]
fn log_density_is_minus_energy_and_score_its_gradient() {
    for (molecule, positions) in molecules() {
        check_score(&molecule, &positions);
        check_score(&molecule.mass_weighted(), &positions);
    }
}

fn check_score(molecule: &Molecule, positions: &[Vec<f64>]) {
    let dim = molecule.dim();
    let mut y = vec![0.0; dim];
    let mut cartesian = Evaluation::zeros(1, dim + 3);
    for x in positions.iter().take(4) {
        molecule.mean_free().to_mean_free(x, &mut y);
        molecule.evaluate_cartesian(&Batch::from_vec(dim + 3, x.clone()), &mut cartesian).unwrap();
        let h = 1e-5;
        let mut rows = vec![y.clone()];
        for c in 0..dim {
            for step in [-2.0, -1.0, 1.0, 2.0] {
                let mut shifted = y.clone();
                shifted[c] += step * h;
                rows.push(shifted);
            }
        }
        let mut out = Evaluation::zeros(rows.len(), dim);
        molecule.evaluate(&Batch::from_vec(dim, rows.concat()), &mut out).unwrap();
        assert!((out.log_density[0] / cartesian.log_density[0] - 1.0).abs() < 1e-11);
        let scale = out.score.row(0).iter().fold(0.0f64, |a, s| a.max(s.abs()));
        for c in 0..dim {
            let f = &out.log_density[1 + 4 * c..5 + 4 * c];
            let slope = ((f[0] - f[3]) / 12.0 + (f[2] - f[1]) * 2.0 / 3.0) / h;
            let error = (slope - out.score.row(0)[c]).abs() / scale;
            assert!(error < 1e-7, "coordinate {c}: {slope} is not {}", out.score.row(0)[c]);
        }
    }
}

#[test]
fn temperature_scales_the_log_density() {
    let [reference, ..] = references();
    let conformation = &reference.conformations[0];
    let molecule = Molecule::new(reference.system.clone(), &conformation.positions, 1200.0).unwrap();
    let x = Batch::from_vec(66, conformation.positions.clone());
    let mut out = Evaluation::zeros(1, 66);
    molecule.evaluate_cartesian(&x, &mut out).unwrap();
    assert!((out.log_density[0] * BOLTZMANN * 1200.0 / -conformation.total - 1.0).abs() < 1e-11);
    for (score, force) in out.score.row(0).iter().zip(&conformation.forces) {
        assert!((score * BOLTZMANN * 1200.0 - force).abs() < 1e-7);
    }
    let colder = molecule.at_temperature(300.0).unwrap();
    let mut cold = Evaluation::zeros(1, 66);
    colder.evaluate_cartesian(&x, &mut cold).unwrap();
    assert!((cold.log_density[0] / out.log_density[0] - 4.0).abs() < 1e-12);
}

#[test]
fn overlapping_atoms_are_data() {
    let molecule = alanine_dipeptide(300.0).unwrap();
    let dim = molecule.dim();
    let rows = [vec![0.0; dim], molecule.start().to_vec(), vec![f64::NAN; dim], vec![1e300; dim]].concat();
    let mut out = Evaluation::zeros(4, dim);
    molecule.evaluate(&Batch::from_vec(dim, rows), &mut out).unwrap();
    for bad in [0, 2, 3] {
        assert_eq!(out.log_density[bad], f64::NEG_INFINITY);
        assert!(out.score.row(bad).iter().all(|&s| s == 0.0));
    }
    assert!((out.log_density[1] - 36.59).abs() < 0.01);
    assert!(out.score.row(1).iter().all(|s| s.is_finite()));
}

#[test]
fn rows_have_the_same_bits_in_any_batch() {
    for (molecule, positions) in molecules() {
        let dim = molecule.dim();
        let mut y = vec![0.0; positions.len() * dim];
        molecule.mean_free().to_mean_free(&positions.concat(), &mut y);
        let mut all = Evaluation::zeros(positions.len(), dim);
        molecule.evaluate(&Batch::from_vec(dim, y.clone()), &mut all).unwrap();
        for (i, row) in y.chunks(dim).enumerate() {
            let mut one = Evaluation::zeros(1, dim);
            molecule.evaluate(&Batch::from_vec(dim, row.to_vec()), &mut one).unwrap();
            assert_eq!(one.log_density[0].to_bits(), all.log_density[i].to_bits());
            assert_eq!(one.score.row(0), all.score.row(i));
        }
    }
}

#[test]
fn impossible_molecules_are_refused() {
    let [reference, ..] = references();
    let good = &reference.conformations[0].positions;
    let new = |positions: &[f64], t| Molecule::new(reference.system.clone(), positions, t).err();
    assert!(matches!(new(good, 0.0), Some(MoleculeError::Temperature(_))));
    assert!(matches!(new(good, f64::NAN), Some(MoleculeError::Temperature(_))));
    let text = new(&good[3..], 300.0).unwrap().to_string();
    assert!(text.contains("63 coordinates") && text.contains("needs 66"), "{text}");
    let text = new(&[0.0; 66], 300.0).unwrap().to_string();
    assert!(text.contains("on top of each other"), "{text}");
    assert!(
        alanine_dipeptide(300.0)
            .unwrap()
            .evaluate(&Batch::zeros(1, 66), &mut Evaluation::zeros(1, 66))
            .is_err()
    );
}

#[test]
fn dihedrals_are_those_of_the_reference_data() {
    let json: serde_json::Value = serde_json::from_str(include_str!("../../assets/reference.json")).unwrap();
    let [reference, ..] = references();
    let angles = [("phi_deg", [4, 6, 8, 14]), ("psi_deg", [6, 8, 14, 16]), ("omega1_deg", [1, 4, 6, 8])];
    for (row, conformation) in json["conformations"].as_array().unwrap().iter().zip(&reference.conformations)
    {
        for (name, atoms) in angles {
            let expected = row["cv"][name].as_f64().unwrap();
            let found = dihedral(&conformation.positions, atoms).to_degrees();
            assert!((found - expected).abs() < 1e-3, "{name}: {found} is not {expected}");
        }
    }
    let x = [0.0, 0.0, 0.0, 0.3, 0.4, 0.0];
    assert!((distance(&x, [0, 1]) - 0.5).abs() < 1e-15);
}

#[test]
fn chiral_centres_are_found_and_tell_mirror_images_apart() {
    let [dipeptide, tetrapeptide, phenylalanine] = references();
    let atoms = |system| ChiralCentre::find(system).unwrap().iter().map(|c| c.atom).collect::<Vec<_>>();
    assert_eq!(atoms(&dipeptide.system), [8]);
    assert_eq!(atoms(&tetrapeptide.system).len(), 3);
    assert_eq!(atoms(&phenylalanine.system).len(), 1);
    let centre = ChiralCentre::find(&dipeptide.system).unwrap()[0];
    let first = centre.handedness(&dipeptide.conformations[0].positions);
    for conformation in &dipeptide.conformations {
        assert_eq!(centre.handedness(&conformation.positions), first);
        let mirrored: Vec<f64> = conformation
            .positions
            .iter()
            .enumerate()
            .map(|(i, x)| if i % 3 == 1 { -x } else { *x })
            .collect();
        assert_eq!(centre.handedness(&mirrored), -first);
    }
}

#[test]
fn the_start_is_in_its_basin_and_basins_have_names() {
    let molecule = alanine_dipeptide(300.0).unwrap();
    let mut x = vec![0.0; 66];
    molecule.mean_free().to_cartesian(molecule.start(), &mut x);
    assert_eq!(Basin::of(dihedral(&x, [4, 6, 8, 14]), dihedral(&x, [6, 8, 14, 16])), Basin::C7eq);
    let mut found = Vec::new();
    for i in 0..36 {
        for j in 0..36 {
            let basin = Basin::of((10 * i - 180) as f64 * 0.01745, (10 * j - 180) as f64 * 0.01745);
            if !found.contains(&basin) {
                found.push(basin);
            }
        }
    }
    assert_eq!(found.len(), Basin::ALL.len());
    assert!(Basin::ALL.iter().all(|b| !b.name().is_empty()));
}

#[test]
fn a_pdb_file_comes_back() {
    let molecule = alanine_dipeptide(300.0).unwrap();
    let mut x = vec![0.0; 66];
    molecule.mean_free().to_cartesian(molecule.start(), &mut x);
    let mut file = Vec::new();
    molecule.write_pdb(&mut file, &x).unwrap();
    let (topology, positions) = Topology::from_pdb("written", std::str::from_utf8(&file).unwrap()).unwrap();
    assert_eq!(Some(&topology), molecule.topology());
    assert!(positions.iter().zip(&x).all(|(a, b)| (a - b).abs() <= 0.5001e-4));
}

#[test]
fn a_dcd_file_has_its_frames_and_their_number() {
    let mut file = std::io::Cursor::new(Vec::new());
    let mut writer = DcdWriter::new(&mut file, 3).unwrap();
    for frame in 0..5 {
        let x: Vec<f64> = (0..9).map(|k| 0.1 * (frame * 9 + k) as f64).collect();
        writer.write(&x).unwrap();
    }
    writer.finish().unwrap();
    let bytes = file.into_inner();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), &bytes[4..8], word(8), word(88)), (84, &b"CORD"[..], 5, 84));
    let first_frame = 92 + 92 + 12;
    assert_eq!(bytes.len(), first_frame + 5 * 3 * (8 + 12));
    let number = |at: usize| f32::from_bits(word(at));
    // x of the second atom in the third frame: 0.1 (2 · 9 + 3) nm in ångström.
    assert!((number(first_frame + 2 * 60 + 4 + 4) - 21.0).abs() < 1e-5);
}
