//! Points from a .json, .csv or .npy file, for `sterna evaluate`.

use crate::error::JobError;
use std::path::Path;
use sterna::Batch;

/// Reads points, one per row.
pub fn read_points(path: &Path) -> Result<Batch, JobError> {
    let bytes = std::fs::read(path).map_err(JobError::file("read", path))?;
    let wrong = |message: String| JobError::Config(format!("{}: {message}", path.display()));
    points(&bytes, path.extension().and_then(|e| e.to_str()).unwrap_or_default()).map_err(wrong)
}

/// Points in the bytes of a file with this extension.
pub(crate) fn points(bytes: &[u8], extension: &str) -> Result<Batch, String> {
    let rows = match extension {
        "json" => json(bytes),
        "csv" => csv(bytes),
        "npy" => npy(bytes),
        _ => Err("points are read from .json (a list of lists), .csv or .npy files".into()),
    }?;
    let dim = rows.first().map_or(0, Vec::len);
    if dim == 0 {
        return Err("there is no point in it".into());
    }
    match rows.iter().position(|r| r.len() != dim) {
        Some(i) => Err(format!("point {i} has {} coordinates, point 0 has {dim}", rows[i].len())),
        None => Ok(Batch::from_vec(dim, rows.concat())),
    }
}

fn json(bytes: &[u8]) -> Result<Vec<Vec<f64>>, String> {
    serde_json::from_slice(bytes).map_err(|e| format!("not a list of lists of numbers: {e}"))
}

/// Numbers with commas between; a first line without numbers is a header.
fn csv(bytes: &[u8]) -> Result<Vec<Vec<f64>>, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| format!("not text: {e}"))?;
    let mut rows = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let row: Result<Vec<f64>, _> = line.split(',').map(|cell| cell.trim().parse()).collect();
        match row {
            Ok(row) => rows.push(row),
            Err(_) if i == 0 => {}
            Err(e) => return Err(format!("line {}: {e} in {line:?}", i + 1)),
        }
    }
    Ok(rows)
}

/// NumPy's format: little-endian f4 or f8, C order, one or two dimensions.
fn npy(bytes: &[u8]) -> Result<Vec<Vec<f64>>, String> {
    let truncated = || "truncated .npy file".to_string();
    if bytes.get(..6) != Some(b"\x93NUMPY") {
        return Err("not a .npy file".into());
    }
    let length = |range: std::ops::Range<usize>| -> Result<usize, String> {
        let bytes = bytes.get(range).ok_or_else(truncated)?;
        Ok(bytes.iter().rev().fold(0, |sum, &b| sum << 8 | usize::from(b)))
    };
    let (start, header_length) =
        if bytes.get(6) == Some(&1) { (10, length(8..10)?) } else { (12, length(8..12)?) };
    let header = bytes.get(start..start + header_length).ok_or_else(truncated)?;
    let header = std::str::from_utf8(header).map_err(|e| e.to_string())?;
    let field =
        |name: &str| header.split_once(name).map(|(_, rest)| rest.trim_start_matches([':', ' ', '\'']));
    let size = match field("'descr'") {
        Some(d) if d.starts_with("<f8") => 8,
        Some(d) if d.starts_with("<f4") => 4,
        _ => return Err("only little-endian float32 and float64 arrays are read".into()),
    };
    if field("'fortran_order'").is_none_or(|o| o.starts_with("True")) {
        return Err("the array is in Fortran order; save numpy.ascontiguousarray(points)".into());
    }
    let shape = field("'shape'").and_then(|s| s.strip_prefix('(')).and_then(|s| s.split_once(')'));
    let shape = shape.ok_or("no shape in the header")?.0.split(',').map(str::trim).filter(|s| !s.is_empty());
    let shape: Vec<usize> =
        shape.map(|s| s.parse().map_err(|e| format!("shape: {e}"))).collect::<Result<_, _>>()?;
    let (rows, dim) = match shape[..] {
        [dim] => (1, dim),
        [rows, dim] => (rows, dim),
        _ => return Err(format!("an array of shape {shape:?} is no list of points")),
    };
    let data = &bytes[start + header_length..];
    let needed = rows.checked_mul(dim).and_then(|n| n.checked_mul(size));
    if dim == 0 || needed != Some(data.len()) {
        return Err(format!("{} bytes of data do not fill the shape {shape:?}", data.len()));
    }
    let number = |cell: &[u8]| match size {
        8 => f64::from_le_bytes(cell.try_into().expect("eight bytes")),
        _ => f64::from(f32::from_le_bytes(cell.try_into().expect("four bytes"))),
    };
    Ok(data.chunks_exact(dim * size).map(|row| row.chunks_exact(size).map(number).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_with_and_without_header() {
        assert_eq!(csv(b"x, y\n1, 2\n-3e1,4\n").unwrap(), [[1.0, 2.0], [-30.0, 4.0]]);
        assert_eq!(csv(b"1,2").unwrap(), [[1.0, 2.0]]);
        assert!(csv(b"1,2\n3,x").unwrap_err().contains("line 2"));
    }

    #[test]
    fn npy_files() {
        let file = |header: &str, data: &[u8]| {
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((header.len() as u16).to_le_bytes());
            bytes.extend(header.as_bytes());
            bytes.extend(data);
            bytes
        };
        let two = [1.5f64.to_le_bytes(), (-2.0f64).to_le_bytes()].concat();
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }\n";
        assert_eq!(npy(&file(header, &two)).unwrap(), [[1.5, -2.0]]);
        assert!(npy(&file(header, &two[..9])).unwrap_err().contains("do not fill"));
        assert!(npy(&file(&header.replace("False", "True"), &two)).unwrap_err().contains("Fortran"));
        assert!(npy(&file(&header.replace("<f8", "<i8"), &two)).unwrap_err().contains("float"));
        for n in 0..30 {
            assert!(npy(&file(header, &two)[..n]).is_err());
        }
    }
}
