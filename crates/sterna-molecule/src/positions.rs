//! Conformations from files: JSON, CSV or PDB. Positions are in nm, except in PDB files (ångström).

use crate::{MoleculeError, Topology};
use serde_json::Value;
use std::path::Path;

/// Reads conformations of `atoms` atoms: rows of 3·`atoms` coordinates in nm, one after the other.
///
/// - `.json`: one conformation as a list of [x, y, z], or a list of conformations, each as such a list or
///   as 3·`atoms` plain numbers; or an object whose `conformations` are objects with `coordinates`;
/// - `.csv`: a conformation per line; lines that begin with `#` are skipped;
/// - `.pdb`: each model is a conformation.
pub fn read_positions(path: impl AsRef<Path>, atoms: usize) -> Result<Vec<f64>, MoleculeError> {
    let path = path.as_ref();
    let text = std::fs::read_to_string(path)
        .map_err(|source| MoleculeError::Io { path: path.to_path_buf(), source })?;
    let what = path.display().to_string();
    let positions = match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("json") => from_json(&what, &text, atoms)?,
        Some("csv") => from_csv(&what, &text, atoms)?,
        Some("pdb") => from_pdb(&what, &text, atoms)?,
        _ => return Err(problem(&what, "unknown kind of file; use .json, .csv (nm) or .pdb".into())),
    };
    if positions.is_empty() {
        return Err(problem(&what, "holds no conformation".into()));
    }
    Ok(positions)
}

fn problem(what: &str, problem: String) -> MoleculeError {
    MoleculeError::Positions { what: what.into(), problem }
}

fn check_count(what: String, found: usize, atoms: usize) -> Result<(), MoleculeError> {
    if found == 3 * atoms {
        return Ok(());
    }
    Err(MoleculeError::PositionCount { what, found, unit: "coordinates", atoms, expected: 3 * atoms })
}

fn from_json(what: &str, text: &str, atoms: usize) -> Result<Vec<f64>, MoleculeError> {
    let value: Value = serde_json::from_str(text).map_err(|e| problem(what, format!("is no JSON: {e}")))?;
    let value = match value {
        Value::Object(mut object) => object
            .remove("conformations")
            .ok_or_else(|| problem(what, "is an object without `conformations`".into()))?,
        other => other,
    };
    let Value::Array(list) = value else {
        return Err(problem(what, "is not a list of points".into()));
    };
    // One conformation: three numbers per atom.
    let is_point = |v: &Value| v.as_array().is_some_and(|p| p.len() == 3 && p.iter().all(Value::is_number));
    let conformations = if atoms > 1 && !list.is_empty() && list.iter().all(is_point) {
        vec![Value::Array(list)]
    } else {
        list
    };
    let mut positions = Vec::new();
    for (i, conformation) in conformations.iter().enumerate() {
        let conformation = conformation.get("coordinates").unwrap_or(conformation);
        let before = positions.len();
        flatten(conformation, &mut positions)
            .map_err(|found| problem(what, format!("conformation {i}: {found} is not a number")))?;
        check_count(format!("{what}, conformation {i},"), positions.len() - before, atoms)?;
    }
    Ok(positions)
}

fn flatten(value: &Value, out: &mut Vec<f64>) -> Result<(), String> {
    match value {
        Value::Array(list) => list.iter().try_for_each(|v| flatten(v, out)),
        Value::Number(number) => {
            out.push(number.as_f64().ok_or_else(|| number.to_string())?);
            Ok(())
        }
        other => Err(other.to_string()),
    }
}

fn from_csv(what: &str, text: &str, atoms: usize) -> Result<Vec<f64>, MoleculeError> {
    let mut positions = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let before = positions.len();
        for field in line.split(',') {
            let number = field.trim().parse();
            positions.push(number.map_err(|_| {
                problem(what, format!("line {}: \"{}\" is not a number", i + 1, field.trim()))
            })?);
        }
        check_count(format!("{what}, line {},", i + 1), positions.len() - before, atoms)?;
    }
    Ok(positions)
}

fn from_pdb(what: &str, text: &str, atoms: usize) -> Result<Vec<f64>, MoleculeError> {
    let (_, models) = Topology::parse_pdb(text).map_err(|e| problem(what, e))?;
    for (i, model) in models.iter().enumerate() {
        check_count(format!("{what}, model {},", i + 1), model.len(), atoms)?;
    }
    Ok(models.concat())
}
