//! Names of atoms and residues, as PDB files hold them: for reports, labels and trajectories.

use crate::MoleculeError;
use std::path::Path;

/// An atom's labels.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomLabel {
    /// Name of the atom, such as `CA`.
    pub name: String,
    /// Name of its residue, such as `ALA`.
    pub residue: String,
    /// Number of its residue.
    pub residue_number: i32,
    /// Chemical symbol.
    pub element: String,
}

/// The labels of all atoms, in the order of the system.
///
/// ```
/// use sterna_molecule::Topology;
///
/// let line = "ATOM      1  CA  ALA A   2      10.000  -1.000   0.500  1.00  0.00           C\n";
/// let (topology, positions) = Topology::from_pdb("one atom", line)?;
/// assert_eq!(topology.atoms[0].name, "CA");
/// assert!((positions[0] - 1.0).abs() < 1e-12, "nm");
/// # Ok::<(), sterna_molecule::MoleculeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// One per atom.
    pub atoms: Vec<AtomLabel>,
}

impl Topology {
    /// Reads labels and the first model's positions (nm) from a PDB file.
    pub fn read_pdb(path: impl AsRef<Path>) -> Result<(Self, Vec<f64>), MoleculeError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|source| MoleculeError::Io { path: path.to_path_buf(), source })?;
        Self::from_pdb(&path.display().to_string(), &text)
    }

    /// Reads labels and the first model's positions (nm) from the text of a PDB file called `what`.
    pub fn from_pdb(what: &str, text: &str) -> Result<(Self, Vec<f64>), MoleculeError> {
        let error = |problem| MoleculeError::Positions { what: what.into(), problem };
        let (topology, models) = Self::parse_pdb(text).map_err(error)?;
        let first = models.into_iter().next().ok_or_else(|| error("holds no atoms".into()))?;
        Ok((topology, first))
    }

    /// Labels of the first model, and positions of all.
    pub(crate) fn parse_pdb(text: &str) -> Result<(Self, Vec<Vec<f64>>), String> {
        let mut topology = Topology::default();
        let mut models: Vec<Vec<f64>> = Vec::new();
        let mut new_model = true;
        for (i, line) in text.lines().enumerate() {
            if line.starts_with("MODEL") || line.starts_with("ENDMDL") {
                new_model = true;
            }
            if !(line.starts_with("ATOM  ") || line.starts_with("HETATM")) {
                continue;
            }
            if new_model {
                models.push(Vec::new());
                new_model = false;
            }
            let column = |from: usize, to: usize| line.get(from..to.min(line.len())).unwrap_or("").trim();
            let Some(model) = models.last_mut() else { continue };
            for (from, axis) in [(30, "x"), (38, "y"), (46, "z")] {
                let field = column(from, from + 8);
                let angstrom: f64 = field.parse().map_err(|_| {
                    format!("line {}: \"{field}\" is not a number ({axis} coordinate)", i + 1)
                })?;
                model.push(0.1 * angstrom);
            }
            if models.len() == 1 {
                let name = column(12, 16).to_string();
                let element = match column(76, 78) {
                    "" => name.trim_start_matches(|c: char| c.is_ascii_digit()).chars().take(1).collect(),
                    symbol => symbol.to_string(),
                };
                topology.atoms.push(AtomLabel {
                    name,
                    residue: column(17, 20).to_string(),
                    residue_number: column(22, 26).parse().unwrap_or(0),
                    element,
                });
            }
        }
        Ok((topology, models))
    }
}
