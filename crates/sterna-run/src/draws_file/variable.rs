//! Variables and dimensions of netCDF-4 as datasets of HDF5.

use super::Values;
use rust_hdf5::{H5Dataset, H5Group, H5Type, Hdf5Error};
use std::borrow::Cow;
use std::ops::Range;

/// Elements per chunk, 256 KiB of `f64`: several fit in the readers' default cache of one MiB.
pub(super) const CHUNK: usize = 32_768;

/// Mantissas are noise to a compressor: shuffled, this level saves a tenth of `x` (and nearly all of the
/// coordinates and replicas); level 4 takes six times as long for one per cent more.
const DEFLATE: u32 = 1;

/// A chunked, compressed dataset whose chunks lie within one ensemble.
pub(super) struct Variable {
    pub dataset: H5Dataset,
    /// Ensembles, draws and perhaps more.
    pub shape: Vec<usize>,
    pub rows_per_chunk: usize,
}

impl Variable {
    /// The dimensions are those of `scales`: chain, draw and perhaps more.
    pub fn create<T: H5Type>(group: &H5Group, name: &str, scales: &[&H5Dataset]) -> Result<Self, Hdf5Error> {
        let shape: Vec<usize> = scales.iter().map(|scale| scale.total_elements()).collect();
        let rows_per_chunk = rows_per_chunk(shape[1], shape[2..].iter().product());
        let mut chunk = shape.clone();
        chunk[..2].copy_from_slice(&[1, rows_per_chunk]);
        let builder = group.new_dataset::<T>().shape(&shape).chunk(&chunk);
        let dataset = builder.shuffle_deflate(DEFLATE).create(name)?;
        for (axis, scale) in scales.iter().enumerate() {
            dataset.attach_scale(axis, scale)?;
        }
        Ok(Self { dataset, shape, rows_per_chunk })
    }

    /// Writes an ensemble, a chunk at a time; `part` gives the elements of a range of draws.
    pub fn write<'a, T: H5Type>(
        &self,
        ensemble: usize,
        part: impl Fn(Range<usize>) -> Result<Cow<'a, [T]>, Hdf5Error>,
    ) -> Result<(), Hdf5Error> {
        let draws = self.shape[1];
        for first in (0..draws).step_by(self.rows_per_chunk) {
            let rows = self.rows_per_chunk.min(draws - first);
            self.write_chunk(ensemble, first, rows, &part(first..first + rows)?)?;
        }
        Ok(())
    }

    /// Writes a chunk, or what there is of the last.
    pub fn write_chunk<T: H5Type>(
        &self,
        ensemble: usize,
        first: usize,
        rows: usize,
        values: &[T],
    ) -> Result<(), Hdf5Error> {
        let mut start = vec![0; self.shape.len()];
        let mut count = self.shape.clone();
        start[..2].copy_from_slice(&[ensemble, first]);
        count[..2].copy_from_slice(&[1, rows]);
        self.dataset.write_slice(&start, &count, values)
    }
}

/// As many draws as [`CHUNK`] allows, then evened out: the last chunk is stored whole, padding and all.
fn rows_per_chunk(draws: usize, elements_per_draw: usize) -> usize {
    let most = (CHUNK / elements_per_draw).max(1);
    draws.div_ceil(draws.div_ceil(most))
}

/// A dimension and its coordinates 0, 1, …, `length` − 1.
pub(super) fn write_scale(
    group: &H5Group,
    name: &str,
    length: usize,
    dimension: i32,
) -> Result<H5Dataset, Hdf5Error> {
    let rows = rows_per_chunk(length, 1);
    let builder = group.new_dataset::<i64>().shape([length]).chunk(&[rows]);
    let scale = builder.shuffle_deflate(DEFLATE).create(name)?;
    for first in (0..length).step_by(rows) {
        let end = length.min(first + rows);
        let coordinates: Vec<i64> = (first as i64..end as i64).collect();
        scale.write_slice(&[first], &[end - first], &coordinates)?;
    }
    scale.set_scale(Some(name))?;
    scale.new_attr::<i32>().shape(()).create("_Netcdf4Dimid")?.write_numeric(&dimension)?;
    Ok(scale)
}

pub(super) fn write_statistic(
    group: &H5Group,
    name: &str,
    values: &[Values],
    scales: [&H5Dataset; 2],
) -> Result<H5Dataset, Hdf5Error> {
    let variable = match values[0] {
        Values::Real(_) => Variable::create::<f64>(group, name, &scales)?,
        Values::Count(_) => Variable::create::<i64>(group, name, &scales)?,
    };
    for (ensemble, part) in values.iter().enumerate() {
        match part {
            Values::Real(values) => variable.write(ensemble, |rows| Ok(Cow::Borrowed(&values[rows])))?,
            Values::Count(values) => variable.write(ensemble, |rows| Ok(widen(&values[rows])))?,
        }
    }
    Ok(variable.dataset)
}

/// A variable of zeros and ones, which xarray and ArviZ take for what is false and true.
pub(super) fn truths(group: &H5Group, name: &str, scales: &[&H5Dataset]) -> Result<Variable, Hdf5Error> {
    let variable = Variable::create::<i64>(group, name, scales)?;
    variable
        .dataset
        .new_attr::<rust_hdf5::VarLenUnicode>()
        .shape(())
        .create("dtype")?
        .write_string("bool")?;
    Ok(variable)
}

pub(super) fn widen(counts: &[u32]) -> Cow<'static, [i64]> {
    counts.iter().map(|&count| i64::from(count)).collect()
}

pub(super) fn describe(dataset: &H5Dataset, text: &str) -> Result<(), Hdf5Error> {
    dataset.new_attr::<rust_hdf5::VarLenUnicode>().shape(()).create("long_name")?.write_string(text)
}
