//! Reads the System that OpenMM's `XmlSerializer` writes. What this crate does not compute is an error
//! that names it, never silently dropped (only `CMMotionRemover` is ignored: it is no part of the energy).

use crate::MoleculeError;
use crate::system::{Angle, Bond, Exception, Particle, System, Torsion};
use roxmltree::{Document, Node};
use std::path::Path;
use std::str::FromStr;

impl System {
    /// Reads a serialized System from a file.
    pub fn read_xml(path: impl AsRef<Path>) -> Result<Self, MoleculeError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|source| MoleculeError::Io { path: path.to_path_buf(), source })?;
        Self::from_xml(&text)
    }

    /// Reads a serialized System from text.
    ///
    /// ```
    /// use sterna_molecule::{MoleculeError, System};
    ///
    /// let xml = r#"<System type="System" version="1">
    ///     <Particles><Particle mass="1"/><Particle mass="1"/></Particles><Constraints/>
    ///     <Forces><Force type="GBSAOBCForce" version="2"/></Forces></System>"#;
    /// let error = System::from_xml(xml).unwrap_err();
    /// assert!(matches!(&error, MoleculeError::UnknownForce { found } if found == "GBSAOBCForce"));
    /// ```
    pub fn from_xml(text: &str) -> Result<Self, MoleculeError> {
        let document = Document::parse(text)?;
        let root = document.root_element();
        if !root.has_tag_name("System") {
            let kind = root.attribute("type").map(|t| format!(" type=\"{t}\"")).unwrap_or_default();
            return Err(MoleculeError::NotASystem { found: format!("{}{kind}", root.tag_name().name()) });
        }
        let mut system = System::default();
        read_masses(child(root, "Particles")?, &mut system)?;
        refuse_constraints(root)?;
        for force in elements(child(root, "Forces")?) {
            match attribute(force, "type")? {
                "HarmonicBondForce" => read_bonds(force, &mut system)?,
                "HarmonicAngleForce" => read_angles(force, &mut system)?,
                "PeriodicTorsionForce" => read_torsions(force, &mut system)?,
                "NonbondedForce" => read_nonbonded(force, &mut system)?,
                "CMMotionRemover" => {}
                other => return Err(MoleculeError::UnknownForce { found: other.into() }),
            }
        }
        system.validate()?;
        Ok(system)
    }
}

fn read_masses(particles: Node, system: &mut System) -> Result<(), MoleculeError> {
    for (i, particle) in elements(particles).enumerate() {
        if let Some(site) = elements(particle).next() {
            return Err(unsupported(
                "System",
                format!("a virtual site ({}, atom {i})", site.tag_name().name()),
                "use a model without virtual sites",
            ));
        }
        let mass = number(particle, "mass")?;
        if mass == 0.0 {
            return Err(unsupported(
                "System",
                format!("an atom of mass 0 (atom {i}), which OpenMM never moves,"),
                "give every atom its mass",
            ));
        }
        system.masses.push(mass);
    }
    Ok(())
}

fn refuse_constraints(root: Node) -> Result<(), MoleculeError> {
    let count = elements(root).filter(|e| e.has_tag_name("Constraints")).flat_map(elements).count();
    if count > 0 {
        return Err(unsupported(
            "System",
            format!("{count} constraints"),
            "create the system with constraints=None and rigidWater=False",
        ));
    }
    Ok(())
}

fn read_bonds(force: Node, system: &mut System) -> Result<(), MoleculeError> {
    refuse_periodic(force)?;
    for bond in elements(child(force, "Bonds")?) {
        system.bonds.push(Bond {
            atoms: [atom(bond, "p1")?, atom(bond, "p2")?],
            length: number(bond, "d")?,
            stiffness: number(bond, "k")?,
        });
    }
    Ok(())
}

fn read_angles(force: Node, system: &mut System) -> Result<(), MoleculeError> {
    refuse_periodic(force)?;
    for angle in elements(child(force, "Angles")?) {
        system.angles.push(Angle {
            atoms: [atom(angle, "p1")?, atom(angle, "p2")?, atom(angle, "p3")?],
            angle: number(angle, "a")?,
            stiffness: number(angle, "k")?,
        });
    }
    Ok(())
}

fn read_torsions(force: Node, system: &mut System) -> Result<(), MoleculeError> {
    refuse_periodic(force)?;
    for torsion in elements(child(force, "Torsions")?) {
        system.torsions.push(Torsion {
            atoms: [atom(torsion, "p1")?, atom(torsion, "p2")?, atom(torsion, "p3")?, atom(torsion, "p4")?],
            periodicity: parse(torsion, "periodicity", "a whole number of at least 0")?,
            phase: number(torsion, "phase")?,
            stiffness: number(torsion, "k")?,
        });
    }
    Ok(())
}

fn read_nonbonded(force: Node, system: &mut System) -> Result<(), MoleculeError> {
    const CURE: &str = "create the system with nonbondedMethod=NoCutoff";
    let name = "NonbondedForce";
    if !system.particles.is_empty() {
        return Err(unsupported(name, "a second one".into(), "merge the two into one"));
    }
    match attribute(force, "method")? {
        "0" => {}
        "1" => return Err(unsupported(name, "a cutoff (CutoffNonPeriodic)".into(), CURE)),
        "2" => return Err(unsupported(name, "a periodic cutoff (CutoffPeriodic)".into(), CURE)),
        "3" => return Err(unsupported(name, "Ewald summation".into(), CURE)),
        "4" => return Err(unsupported(name, "particle-mesh Ewald summation (PME)".into(), CURE)),
        "5" => return Err(unsupported(name, "Lennard-Jones PME (LJPME)".into(), CURE)),
        other => return Err(unsupported(name, format!("method=\"{other}\""), CURE)),
    }
    for list in ["GlobalParameters", "ParticleOffsets", "ExceptionOffsets"] {
        let found = elements(force).filter(|e| e.has_tag_name(list)).flat_map(elements).count();
        if found > 0 {
            return Err(unsupported(
                name,
                format!("{list} ({found} entries)"),
                "set the parameters themselves instead of offsets",
            ));
        }
    }
    for particle in elements(child(force, "Particles")?) {
        system.particles.push(Particle {
            charge: number(particle, "q")?,
            sigma: number(particle, "sig")?,
            epsilon: number(particle, "eps")?,
        });
    }
    for exception in elements(child(force, "Exceptions")?) {
        system.exceptions.push(Exception {
            atoms: [atom(exception, "p1")?, atom(exception, "p2")?],
            charge_product: number(exception, "q")?,
            sigma: number(exception, "sig")?,
            epsilon: number(exception, "eps")?,
        });
    }
    Ok(())
}

fn refuse_periodic(force: Node) -> Result<(), MoleculeError> {
    match force.attribute("usesPeriodic") {
        None | Some("0") => Ok(()),
        Some(_) => Err(unsupported(
            attribute(force, "type")?,
            "periodic boundary conditions".into(),
            "build the system in vacuum, with setUsesPeriodicBoundaryConditions(False)",
        )),
    }
}

fn unsupported(force: &str, found: String, cure: &'static str) -> MoleculeError {
    MoleculeError::Unsupported { force: force.into(), found, cure }
}

fn elements<'a, 'input>(node: Node<'a, 'input>) -> impl Iterator<Item = Node<'a, 'input>> {
    node.children().filter(Node::is_element)
}

fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Result<Node<'a, 'input>, MoleculeError> {
    elements(node).find(|e| e.has_tag_name(name)).ok_or_else(|| missing(node, format!("<{name}>")))
}

fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Result<&'a str, MoleculeError> {
    node.attribute(name).ok_or_else(|| missing(node, format!("attribute {name}")))
}

fn missing(node: Node, missing: String) -> MoleculeError {
    MoleculeError::Missing { line: line(node), element: node.tag_name().name().into(), missing }
}

fn line(node: Node) -> u32 {
    node.document().text_pos_at(node.range().start).row
}

fn parse<T: FromStr>(node: Node, name: &str, expected: &'static str) -> Result<T, MoleculeError> {
    let value = attribute(node, name)?;
    value.trim().parse().map_err(|_| MoleculeError::Number {
        line: line(node),
        element: node.tag_name().name().into(),
        attribute: name.into(),
        value: value.into(),
        expected,
    })
}

fn atom(node: Node, name: &str) -> Result<usize, MoleculeError> {
    parse(node, name, "the number of an atom")
}

fn number(node: Node, name: &str) -> Result<f64, MoleculeError> {
    parse(node, name, "a number")
}
