//! Files that are wrong in each way we could think of: the error names what was found and the cure.

use sterna_molecule::{MoleculeError, System, Topology, read_positions};

const GOOD: &str = include_str!("../../assets/system.xml");

/// The error of the good file with `from` replaced once by `to`.
fn broken(from: &str, to: &str) -> MoleculeError {
    assert!(GOOD.contains(from), "{from} is not in the file");
    System::from_xml(&GOOD.replacen(from, to, 1)).unwrap_err()
}

#[test]
fn the_good_file_is_read() {
    let system = System::from_xml(GOOD).unwrap();
    assert_eq!(system.atoms(), 22);
    assert_eq!((system.bonds.len(), system.angles.len(), system.torsions.len()), (21, 36, 42));
    assert_eq!((system.particles.len(), system.exceptions.len()), (22, 98));
    assert!((system.masses.iter().sum::<f64>() - 144.176).abs() < 1e-9);
}

#[test]
fn unknown_forces_are_named_and_the_centre_of_mass_remover_is_ignored() {
    let force = |kind: &str| format!("<Forces><Force type=\"{kind}\" version=\"1\"/>");
    let error = broken("<Forces>", &force("CustomGBForce"));
    assert!(matches!(&error, MoleculeError::UnknownForce { found } if found == "CustomGBForce"));
    assert!(error.to_string().contains("CustomGBForce") && error.to_string().contains("supported are"));
    let text = GOOD.replacen("<Forces>", &force("CMMotionRemover"), 1);
    assert_eq!(System::from_xml(&text).unwrap(), System::from_xml(GOOD).unwrap());
}

#[test]
fn cutoffs_constraints_and_virtual_sites_are_refused_with_the_cure() {
    for (method, name) in [
        ("1", "CutoffNonPeriodic"),
        ("2", "CutoffPeriodic"),
        ("3", "Ewald"),
        ("4", "PME"),
        ("5", "LJPME"),
        ("7", "method=\"7\""),
    ] {
        let text = broken("method=\"0\"", &format!("method=\"{method}\"")).to_string();
        assert!(text.contains(name) && text.contains("NoCutoff"), "{text}");
    }
    let text =
        broken("<Constraints/>", "<Constraints><Constraint d=\".1\" p1=\"0\" p2=\"1\"/></Constraints>")
            .to_string();
    assert!(text.contains("1 constraints") && text.contains("constraints=None"), "{text}");
    let site =
        "<Particle mass=\"0\"><TwoParticleAverageSite p1=\"0\" p2=\"1\" w1=\".5\" w2=\".5\"/></Particle>";
    let text = broken("<Particle mass=\"1.008\"/>", site).to_string();
    assert!(text.contains("virtual site (TwoParticleAverageSite, atom 0)"), "{text}");
    let text = broken("usesPeriodic=\"0\"", "usesPeriodic=\"1\"").to_string();
    assert!(text.contains("periodic boundary") && text.contains("vacuum"), "{text}");
    let offsets = "<ParticleOffsets><Offset parameter=\"a\" particle=\"0\" q=\"1\" sig=\"0\" eps=\"0\"/></ParticleOffsets>";
    let text = broken("<ParticleOffsets/>", offsets).to_string();
    assert!(text.contains("ParticleOffsets (1 entries)"), "{text}");
    let text = broken("<Particle mass=\"16\"/>", "<Particle mass=\"0\"/>").to_string();
    assert!(text.contains("mass 0 (atom 5)"), "{text}");
}

#[test]
fn wrong_numbers_are_shown_with_their_line() {
    let error = broken("k=\"284511.99999999994\"", "k=\"stiff\"");
    assert!(matches!(&error, MoleculeError::Number { line: 36, value, .. } if value == "stiff"), "{error}");
    assert!(matches!(broken(" p1=\"1\"", " p1=\"-1\""), MoleculeError::Number { .. }));
    assert!(matches!(
        broken(" p1=\"1\"", " p1=\"22\""),
        MoleculeError::AtomOutOfRange { atom: 22, atoms: 22, .. }
    ));
    assert!(matches!(
        broken(" p1=\"1\" p2=\"0\"", " p1=\"1\" p2=\"1\""),
        MoleculeError::AtomTwice { atom: 1, .. }
    ));
    assert!(matches!(broken(" p1=\"1\"", ""), MoleculeError::Missing { .. }));
    assert!(matches!(broken("mass=\"16\"", "mass=\"-16\""), MoleculeError::Parameter { .. }));
    assert!(matches!(broken("mass=\"16\"", "mass=\"NaN\""), MoleculeError::Parameter { .. }));
    assert!(matches!(
        broken("<Particle mass=\"16\"/>", ""),
        MoleculeError::AtomOutOfRange { .. } | MoleculeError::ParticleCount { .. }
    ));
    assert!(matches!(broken("<Bonds>", "<Links>"), MoleculeError::Xml(_)));
    let text = broken("periodicity=\"3\"", "periodicity=\"4000000000\"").to_string();
    assert!(text.contains("periodicity = 4000000000 is not at most 64"), "{text}");
    let nothing = "<System type=\"System\"><Particles/><Constraints/><Forces/></System>";
    assert!(matches!(System::from_xml(nothing), Err(MoleculeError::TooFewAtoms { found: 0, .. })));
}

#[test]
fn any_truncation_is_an_error() {
    for end in (0..GOOD.trim_end().len()).step_by(97) {
        let error = System::from_xml(&GOOD[..end]).unwrap_err();
        assert!(matches!(error, MoleculeError::Xml(_)), "{end}: {error}");
    }
}

#[test]
fn other_xml_is_not_a_system() {
    let error = System::from_xml("<State type=\"State\" version=\"1\"/>").unwrap_err();
    assert!(error.to_string().contains("State"), "{error}");
    assert!(matches!(System::read_xml("no/such/file.xml"), Err(MoleculeError::Io { .. })));
}

#[test]
fn positions_are_read_from_json_csv_and_pdb_and_checked() {
    let folder = std::env::temp_dir().join(format!("sterna-positions-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let expected = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5];
    for (name, text) in [
        ("one.json", "[[0, 0.1, 0.2], [0.3, 0.4, 0.5]]"),
        ("flat.json", "[[0, 0.1, 0.2, 0.3, 0.4, 0.5]]"),
        ("many.json", "[[[0, 0.1, 0.2], [0.3, 0.4, 0.5]]]"),
        ("object.json", r#"{"conformations": [{"coordinates": [[0, 0.1, 0.2], [0.3, 0.4, 0.5]]}]}"#),
        ("rows.csv", "# x y z\n0, .1, .2, .3, .4, .5\n"),
    ] {
        assert_eq!(read_positions(write(name, text), 2).unwrap(), expected, "{name}");
    }
    let found = |name: &str, text: &str| read_positions(write(name, text), 2).unwrap_err().to_string();
    let text = found("short.json", "[[0, 0.1, 0.2, 0.3, 0.4]]");
    assert!(text.contains("has 5 coordinates, but a molecule of 2 atoms needs 6"), "{text}");
    assert!(found("word.csv", "0,1,2,3,4,five").contains("line 1: \"five\" is not a number"));
    assert!(found("word.json", "[[0,1,2,3,4,\"five\"]]").contains("is not a number"));
    assert!(found("cut.json", "[[0,1,2").contains("is no JSON"));
    assert!(found("empty.csv", "").contains("holds no conformation"));
    assert!(found("x.xyz", "").contains("unknown kind of file"));
    let pdb = include_str!("../../assets/topology.pdb");
    let (topology, first) = Topology::from_pdb("topology.pdb", pdb).unwrap();
    assert_eq!((topology.atoms.len(), first.len()), (22, 66));
    assert_eq!((topology.atoms[8].name.as_str(), topology.atoms[8].residue.as_str()), ("CA", "ALA"));
    assert_eq!(topology.atoms[8].element, "C");
    assert!(read_positions(write("a.pdb", pdb), 21).unwrap_err().to_string().contains("66 coordinates"));
    assert_eq!(read_positions(write("a.pdb", pdb), 22).unwrap(), first);
    std::fs::remove_dir_all(folder).unwrap();
}
