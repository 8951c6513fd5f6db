//! Dihedrals, basins, chiral centres and trajectories.

mod common;

use common::references;
use sterna_molecule::{Basin, ChiralCentre, DcdWriter, Topology, alanine_dipeptide, dihedral, distance};

#[test]
fn dihedrals_are_those_of_the_reference_data() {
    let json: serde_json::Value = serde_json::from_str(include_str!("../assets/reference.json")).unwrap();
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
