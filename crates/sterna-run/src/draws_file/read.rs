//! `draws.nc` read back: for programs that have no reader of netCDF.

use super::{CHAIN, DRAW, DrawsFileError, seal};
use rust_hdf5::{DatatypeMessage, H5File, Hdf5Error};
use std::path::Path;

/// A variable of `draws.nc`.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// `posterior` or `sample_stats`, or these of the time before sampling: `warmup_posterior`, `warmup_sample_stats`.
    pub group: &'static str,
    /// Its name.
    pub name: String,
    /// Ladders, draws and perhaps more.
    pub shape: Vec<usize>,
    /// Its numbers, the last axis fastest.
    pub values: Numbers,
}

/// Numbers as they were stored.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// Of the draws.
    Real(Vec<f64>),
    /// Replicas, and what else is counted.
    Count(Vec<i64>),
}

const GROUPS: [&str; 4] = ["posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"];

/// All variables of a file, in their order; coordinates of axes are left out.
///
/// ```
/// use sterna_run::draws_file::{DrawsFile, EnsembleDraws, Numbers, read};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("draws.nc");
/// let (x, log_density, replica) = (&[0.5, -1.0], &[-0.1, -0.5], &[0, 1]);
/// let ensemble = EnsembleDraws { x, log_density, replica, ..EnsembleDraws::default() };
/// DrawsFile::new(1, [ensemble]).write(&path)?;
/// let columns = read(&path)?;
/// assert_eq!((columns[0].name.as_str(), &columns[0].shape[..]), ("x", &[1, 2, 1][..]));
/// assert_eq!(columns[0].values, Numbers::Real(vec![0.5, -1.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(path: &Path) -> Result<Vec<Column>, DrawsFileError> {
    seal::check(path).map_err(|why| DrawsFileError::Damaged { path: path.into(), why })?;
    let open = || {
        let file = H5File::open(path)?;
        let mut columns = Vec::new();
        let there = file.root_group().group_names()?;
        for group in GROUPS.into_iter().filter(|group| there.iter().any(|name| name == group)) {
            let names = file.root_group().group(group)?.dataset_names()?;
            for name in names.iter().filter(|name| !is_axis(name, &names)) {
                columns.push(column(&file, group, name)?);
            }
        }
        Ok(columns)
    };
    open().map_err(|source: Hdf5Error| DrawsFileError::Unreadable { path: path.into(), source })
}

/// Whether a name is that of an axis: of all variables, or of one by its number.
fn is_axis(name: &str, names: &[String]) -> bool {
    let of_one = name.rsplit_once("_dim_").is_some_and(|(variable, _)| names.iter().any(|n| n == variable));
    name == CHAIN || name == DRAW || of_one
}

fn column(file: &H5File, group: &'static str, name: &str) -> Result<Column, Hdf5Error> {
    let data = file.dataset(&format!("{group}/{name}"))?;
    let values = match data.datatype()? {
        DatatypeMessage::FixedPoint { .. } => Numbers::Count(data.read_raw()?),
        _ => Numbers::Real(data.read_raw()?),
    };
    Ok(Column { group, name: name.into(), shape: data.shape(), values })
}
