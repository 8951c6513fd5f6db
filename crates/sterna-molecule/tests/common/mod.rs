//! Reference conformations that OpenMM wrote.

// Each test file uses a part of this.
#![allow(dead_code)]

use serde_json::Value;
use sterna_molecule::{Energy, System};

/// A molecule with its reference values.
pub struct Reference {
    pub name: &'static str,
    pub system: System,
    pub conformations: Vec<Conformation>,
}

/// OpenMM's word on one conformation.
pub struct Conformation {
    pub positions: Vec<f64>,
    pub forces: Vec<f64>,
    pub energy: Energy,
    pub total: f64,
}

/// Alanine dipeptide, alanine tetrapeptide, and phenylalanine with its caps.
pub fn references() -> [Reference; 3] {
    [
        read(
            "alanine dipeptide",
            include_str!("../../../../assets/alanine-dipeptide/system.xml"),
            include_str!("../../../../assets/alanine-dipeptide/reference.json"),
        ),
        read(
            "alanine tetrapeptide",
            include_str!("../data/ala3.system.xml"),
            include_str!("../data/ala3.reference.json"),
        ),
        read(
            "ACE-PHE-NME",
            include_str!("../data/phe.system.xml"),
            include_str!("../data/phe.reference.json"),
        ),
    ]
}

fn read(name: &'static str, xml: &str, json: &str) -> Reference {
    let value: Value = serde_json::from_str(json).unwrap();
    let numbers = |value: &Value| -> Vec<f64> {
        value
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|p| p.as_array().unwrap())
            .map(|v| v.as_f64().unwrap())
            .collect()
    };
    let conformations = value["conformations"].as_array().unwrap().iter().map(|c| {
        let term = |name: &str| c["energy"][name].as_f64().unwrap();
        Conformation {
            positions: numbers(&c["coordinates"]),
            forces: numbers(&c["forces"]),
            energy: Energy {
                bond: term("bond"),
                angle: term("angle"),
                torsion: term("torsion"),
                nonbonded: term("nonbonded"),
            },
            total: term("total"),
        }
    });
    Reference { name, system: System::from_xml(xml).unwrap(), conformations: conformations.collect() }
}
