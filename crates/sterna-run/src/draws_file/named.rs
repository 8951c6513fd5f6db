//! Variables of named parameters and of observables, written in one pass over the draws.

use super::variable::{CHUNK, Variable, describe, write_scale};
use super::{CHAIN, DRAW, DrawsFile, DrawsFileError, is_name};
use crate::problem::{Constrain, Observable, Parameter};
use rust_hdf5::{H5Dataset, H5Group, Hdf5Error};
use std::ops::Range;

/// Names must be such that all readers can take them, different from each other, and as many as coordinates.
pub fn check(dim: usize, parameters: &[Parameter], observables: &[Observable]) -> Result<(), DrawsFileError> {
    let names: Vec<&String> =
        parameters.iter().map(|p| &p.name).chain(observables.iter().map(|o| &o.name)).collect();
    for (i, name) in names.iter().enumerate() {
        let of_x = parameters.is_empty() && name.as_str() == "x";
        let taken = of_x || [CHAIN, DRAW].contains(&name.as_str()) || names[..i].contains(name);
        if taken || !is_name(name) {
            return Err(DrawsFileError::Name { name: name.to_string(), taken });
        }
    }
    let found: usize = parameters.iter().map(Parameter::coordinates).sum();
    let empty = parameters.iter().any(|p| p.coordinates() == 0);
    if !parameters.is_empty() && (found != dim || empty) {
        return Err(DrawsFileError::Parameters { found, expected: dim });
    }
    Ok(())
}

/// What a variable holds of a point: some of its values, or a function of it.
enum Source<'a> {
    Columns(Range<usize>),
    Value(&'a Observable),
}

/// A variable and those of its numbers that do not fill a chunk yet.
struct Column<'a> {
    variable: Variable,
    source: Source<'a>,
    waiting: Vec<f64>,
    written: usize,
}

impl Column<'_> {
    fn take(&mut self, point: &[f64], values: &[f64]) {
        match &self.source {
            Source::Columns(columns) => self.waiting.extend_from_slice(&values[columns.clone()]),
            Source::Value(observable) => self.waiting.push((observable.value)(point)),
        }
    }

    /// Writes what waits once it fills a chunk, or at the end of an ensemble.
    fn flush(&mut self, ensemble: usize, end: bool) -> Result<(), Hdf5Error> {
        let width: usize = self.variable.shape[2..].iter().product();
        let rows = self.waiting.len() / width;
        if rows == self.variable.rows_per_chunk || (end && rows > 0) {
            self.variable.write_chunk(ensemble, self.written, rows, &self.waiting)?;
            self.written += rows;
            self.waiting.clear();
        }
        if end {
            self.written = 0;
        }
        Ok(())
    }
}

/// All named variables of a file.
pub struct Named<'a>(Vec<Column<'a>>);

impl<'a> Named<'a> {
    /// Makes the variables; their own dimensions are numbered from `dimensions` on.
    pub fn create(
        group: &H5Group,
        file: &DrawsFile<'a>,
        [chain, draw]: [&H5Dataset; 2],
        dimensions: &mut i32,
    ) -> Result<Self, Hdf5Error> {
        let mut columns = Vec::new();
        let mut first = 0;
        for parameter in file.parameters {
            let range = first..first + parameter.coordinates();
            first = range.end;
            let mut axes = Vec::new();
            for (axis, &length) in parameter.shape.iter().enumerate() {
                let name = format!("{}_dim_{axis}", parameter.name);
                axes.push(write_scale(group, &name, length, *dimensions)?);
                *dimensions += 1;
            }
            let scales: Vec<&H5Dataset> = [chain, draw].into_iter().chain(&axes).collect();
            let variable = Variable::create::<f64>(group, &parameter.name, &scales)?;
            columns.push((variable, Source::Columns(range)));
        }
        for observable in file.observables {
            let variable = Variable::create::<f64>(group, &observable.name, &[chain, draw])?;
            describe(&variable.dataset, "observable: a function of the draw")?;
            columns.push((variable, Source::Value(observable)));
        }
        let column = |(variable, source)| Column { variable, source, waiting: Vec::new(), written: 0 };
        Ok(Self(columns.into_iter().map(column).collect()))
    }

    /// Writes all of them, reading each point once.
    pub fn write(mut self, file: &DrawsFile) -> Result<(), Hdf5Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let (draws, block) = (file.draws(), (CHUNK / file.dim).max(1));
        let mut room = vec![0.0; file.values.map_or(0, Constrain::values)];
        for ensemble in 0..file.count() {
            for first in (0..draws).step_by(block) {
                let x = file.x(ensemble, first..draws.min(first + block))?;
                for point in x.chunks_exact(file.dim) {
                    let values = match file.values {
                        Some(values) => {
                            values.constrain(point, &mut room);
                            &room[..]
                        }
                        None => point,
                    };
                    for column in &mut self.0 {
                        column.take(point, values);
                        column.flush(ensemble, false)?;
                    }
                }
            }
            self.0.iter_mut().try_for_each(|column| column.flush(ensemble, true))?;
        }
        Ok(())
    }
}
