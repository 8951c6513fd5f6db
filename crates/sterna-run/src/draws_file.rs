//! `draws.nc`: the target chain's draws as netCDF-4, laid out the way ArviZ reads them.
//!
//! netCDF-4 is HDF5 with conventions: a dimension is a *dimension scale* (a one-dimensional dataset that
//! also holds the coordinates), and a variable names its dimensions by references to scales.
//!
//! ```text
//! /                 attributes
//!   posterior/      x (chain, draw, x_dim_0)            coordinates chain, draw, x_dim_0
//!   sample_stats/   lp, replica, acceptance_rate, diverging, … (chain, draw)
//! ```
//!
//! Where parameters have names, `posterior` has a variable for each of them in place of `x`, as ArviZ's users expect: `mu`
//! (chain, draw), and `theta` (chain, draw, theta_dim_0) where several coordinates have one name. Observables follow.
//!
//! Behind HDF5's own bytes stands a checksum of them (`seal`), which other readers pass over.
//!
//! What ArviZ calls a chain is an ensemble here. The bytes depend on nothing but the input: no clock.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

mod error;
mod named;
mod read;
pub(crate) mod seal;
mod variable;

pub use error::DrawsFileError;
pub(crate) use named::check as check_names;
pub use read::{Column, Numbers, read};

use crate::draws_store::StoredDraws;
use crate::files::replace;
use crate::problem::{Constrain, Observable, Parameter};
use named::Named;
use rust_hdf5::{H5File, H5Group, Hdf5Error};
use variable::{Variable, describe, truths, widen, write_scale, write_statistic};

const CHAIN: &str = "chain";
const DRAW: &str = "draw";
const X_DIM: &str = "x_dim_0";
const LP: &str = "lp";
const REPLICA: &str = "replica";
const ACCEPTANCE: &str = "acceptance_rate";
const DIVERGING: &str = "diverging";

/// Draws of one ensemble's target chain.
#[derive(Clone, Copy, Debug)]
pub struct EnsembleDraws<'a> {
    /// Points, one after the other (draws × dim).
    pub x: &'a [f64],
    /// log π̃ at each.
    pub log_density: &'a [f64],
    /// The replica that sat on the target chain.
    pub replica: &'a [u32],
}

impl<'a> From<&'a sterna::records::Draws> for EnsembleDraws<'a> {
    fn from(draws: &'a sterna::records::Draws) -> Self {
        Self { x: &draws.x, log_density: &draws.log_density, replica: &draws.replica }
    }
}

/// One number per draw.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// Stored as `f64`.
    Real(&'a [f64]),
    /// Stored as signed 64-bit integers, so that differences in numpy do not wrap.
    Count(&'a [u32]),
}

impl Values<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Real(values) => values.len(),
            Self::Count(values) => values.len(),
        }
    }
}

/// A further variable of `sample_stats`.
///
/// ```
/// use sterna_run::draws_file::{DrawsFile, EnsembleDraws, Values};
///
/// let folder = tempfile::tempdir()?;
/// let ensemble = EnsembleDraws { x: &[0.5, -1.0], log_density: &[-0.1, -0.5], replica: &[0, 1] };
/// let file = DrawsFile::new(1, [ensemble]).statistic("acceptance", [Values::Real(&[0.9, 0.8])]);
/// file.write(&folder.path().join("draws.nc"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Statistic<'a> {
    /// Its name in the file.
    pub name: String,
    /// One entry per ensemble, all of the same kind.
    pub values: Vec<Values<'a>>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// UTF-8.
    Text(String),
    /// Unsigned: seeds use all 64 bits.
    Integer(u64),
    /// A real number.
    Real(f64),
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<u64> for Attribute {
    fn from(integer: u64) -> Self {
        Self::Integer(integer)
    }
}

impl From<f64> for Attribute {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

/// Everything that goes into a `draws.nc`.
///
/// ```
/// use sterna_run::draws_file::{DrawsFile, EnsembleDraws};
///
/// let folder = tempfile::tempdir()?;
/// let (x, log_density, replica) = ([0.5, -1.0, 2.0, 0.25], [-0.625, -2.03125], [3, 0]);
/// let ensemble = EnsembleDraws { x: &x, log_density: &log_density, replica: &replica };
/// DrawsFile::new(2, [ensemble]).attribute("seed", 1).write(&folder.path().join("draws.nc"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DrawsFile<'a> {
    /// Coordinates of a point.
    pub dim: usize,
    /// ArviZ's chains.
    pub ensembles: Vec<EnsembleDraws<'a>>,
    /// Draws on disk, in place of `ensembles`.
    pub stored: Option<&'a StoredDraws>,
    /// Names of coordinates, or of values, in their order; without them the points are `x`.
    pub parameters: &'a [Parameter],
    /// What is named, where it is not the coordinates themselves.
    pub values: Option<&'a dyn Constrain>,
    /// Functions of a draw, in `posterior` as well.
    pub observables: &'a [Observable],
    /// Beyond `lp` and `replica`, and of draws on disk `acceptance_rate` and `diverging`.
    pub statistics: Vec<Statistic<'a>>,
    /// On the file and on both groups, after those that name this library.
    pub attributes: Vec<(String, Attribute)>,
}

impl<'a> DrawsFile<'a> {
    /// Draws of points with `dim` coordinates.
    pub fn new(dim: usize, ensembles: impl IntoIterator<Item = impl Into<EnsembleDraws<'a>>>) -> Self {
        let ensembles = ensembles.into_iter().map(Into::into).collect();
        Self {
            dim,
            ensembles,
            stored: None,
            parameters: &[],
            values: None,
            observables: &[],
            statistics: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// Draws that lie on disk: they are never in memory all at once.
    pub fn stored(dim: usize, stored: &'a StoredDraws) -> Self {
        Self { stored: Some(stored), ..Self::new(dim, [] as [EnsembleDraws; 0]) }
    }

    /// Names the coordinates, or the values.
    pub fn named(self, parameters: &'a [Parameter]) -> Self {
        Self { parameters, ..self }
    }

    /// Values in place of coordinates, which must then have names.
    pub fn holding(self, values: Option<&'a dyn Constrain>) -> Self {
        Self { values, ..self }
    }

    /// Adds functions of a draw.
    pub fn observing(self, observables: &'a [Observable]) -> Self {
        Self { observables, ..self }
    }

    /// Adds an attribute, or replaces the one of that name.
    pub fn attribute(mut self, name: &str, value: impl Into<Attribute>) -> Self {
        self.attributes.retain(|(other, _)| other != name);
        self.attributes.push((name.into(), value.into()));
        self
    }

    /// Adds a variable to `sample_stats`, one entry of `values` per ensemble.
    pub fn statistic(mut self, name: &str, values: impl IntoIterator<Item = Values<'a>>) -> Self {
        self.statistics.push(Statistic { name: name.into(), values: values.into_iter().collect() });
        self
    }

    /// Writes `path`. The file is made beside it, as `<path>.partial`, and renamed once it is whole and on
    /// disk: a crash or an error leaves what was at `path` before. Beyond the input this needs memory for
    /// a few chunks and their index: some megabytes for ten million draws.
    pub fn write(&self, path: &Path) -> Result<(), DrawsFileError> {
        self.check()?;
        let refused = |source| DrawsFileError::File { path: path.into(), source };
        replace(path, |partial| self.write_partial(partial, path), refused)
    }

    /// The common number of draws; called after [`check`](Self::check).
    fn draws(&self) -> usize {
        match self.stored {
            Some(stored) => stored.draws(),
            None => self.ensembles.first().map_or(0, |e| e.log_density.len()),
        }
    }

    fn count(&self) -> usize {
        self.stored.map_or(self.ensembles.len(), |s| s.ensembles())
    }

    fn check(&self) -> Result<(), DrawsFileError> {
        let draws = self.draws();
        // netCDF reads a dimension of length zero as unlimited.
        if draws == 0 || self.dim == 0 {
            return Err(DrawsFileError::Empty { ensembles: self.count(), draws, dim: self.dim });
        }
        let length = |variable: &str, ensemble, found, expected: usize| match found == expected {
            true => Ok(()),
            false => Err(DrawsFileError::Length { variable: variable.into(), ensemble, found, expected }),
        };
        for (i, ensemble) in self.ensembles.iter().enumerate() {
            length(LP, i, ensemble.log_density.len(), draws)?;
            length(REPLICA, i, ensemble.replica.len(), draws)?;
            length("x", i, ensemble.x.len(), draws.saturating_mul(self.dim))?;
        }
        let values = self.values.map_or(self.dim, Constrain::values);
        named::check(values, self.parameters, self.observables)?;
        if self.values.is_some() && self.parameters.is_empty() {
            return Err(DrawsFileError::Parameters { found: 0, expected: values });
        }
        for (i, Statistic { name, values }) in self.statistics.iter().enumerate() {
            let taken = [CHAIN, DRAW, LP, REPLICA, ACCEPTANCE, DIVERGING].contains(&name.as_str())
                || self.statistics[..i].iter().any(|other| other.name == *name);
            if taken || !is_name(name) {
                return Err(DrawsFileError::Name { name: name.clone(), taken });
            }
            if values.len() != self.count() {
                let (found, expected) = (values.len(), self.count());
                return Err(DrawsFileError::Ensembles { variable: name.clone(), found, expected });
            }
            for (ensemble, part) in values.iter().enumerate() {
                length(name, ensemble, part.len(), draws)?;
                if std::mem::discriminant(part) != std::mem::discriminant(&values[0]) {
                    return Err(DrawsFileError::Mixed { variable: name.clone(), ensemble });
                }
            }
        }
        Ok(())
    }

    /// Writes and syncs `partial`; errors speak of `path`, the file that was asked for.
    fn write_partial(&self, partial: &Path, path: &Path) -> Result<(), DrawsFileError> {
        let hdf5 = |source| DrawsFileError::Hdf5 { path: path.into(), source };
        // Readers list variables in creation order. Locks are of no use on a file nobody knows yet, and
        // fail on some network file systems.
        let file = H5File::options().track_order(true).no_locking().create(partial).map_err(hdf5)?;
        let content = self.write_content(&file);
        // Closes in any case: a writer dropped open finishes by itself and complains on stderr.
        let closed = file.close_no_sync();
        content.and(closed).map_err(hdf5)?;
        seal::seal(partial).map_err(|source| DrawsFileError::File { path: path.into(), source })
    }

    fn write_content(&self, file: &H5File) -> Result<(), Hdf5Error> {
        let (ensembles, draws) = (self.count(), self.draws());
        self.write_attributes(&file.root_group())?;

        // Dimensions are numbered through the file, in order of creation.
        let posterior = file.create_group("posterior")?;
        self.write_attributes(&posterior)?;
        let chain = write_scale(&posterior, CHAIN, ensembles, 0)?;
        let draw = write_scale(&posterior, DRAW, draws, 1)?;
        let mut dimensions = 2;
        if self.parameters.is_empty() {
            let x_dim = write_scale(&posterior, X_DIM, self.dim, 2)?;
            dimensions = 3;
            let x = Variable::create::<f64>(&posterior, "x", &[&chain, &draw, &x_dim])?;
            for i in 0..ensembles {
                x.write(i, |rows| self.x(i, rows))?;
            }
        }
        Named::create(&posterior, self, [&chain, &draw], &mut dimensions)?.write(self)?;

        let sample_stats = file.create_group("sample_stats")?;
        self.write_attributes(&sample_stats)?;
        let chain = write_scale(&sample_stats, CHAIN, ensembles, dimensions)?;
        let draw = write_scale(&sample_stats, DRAW, draws, dimensions + 1)?;
        let lp = Variable::create::<f64>(&sample_stats, LP, &[&chain, &draw])?;
        for i in 0..ensembles {
            lp.write(i, |rows| match self.stored {
                Some(stored) => Ok(stored.log_density(i, rows)?),
                None => Ok(Cow::Borrowed(&self.ensembles[i].log_density[rows])),
            })?;
        }
        describe(&lp.dataset, "log density of the target, not normalised")?;
        let replica = Variable::create::<i64>(&sample_stats, REPLICA, &[&chain, &draw])?;
        for i in 0..ensembles {
            replica.write(i, |rows| match self.stored {
                Some(stored) => Ok(widen(&stored.replica(i, rows)?)),
                None => Ok(widen(&self.ensembles[i].replica[rows])),
            })?;
        }
        describe(&replica.dataset, "replica on the target chain")?;
        if let Some(stored) = self.stored {
            write_moves(&sample_stats, stored, [&chain, &draw])?;
        }
        for Statistic { name, values } in &self.statistics {
            write_statistic(&sample_stats, name, values, [&chain, &draw])?;
        }
        Ok(())
    }

    /// Points of some draws of an ensemble.
    fn x(&self, ensemble: usize, rows: Range<usize>) -> Result<Cow<'_, [f64]>, Hdf5Error> {
        match self.stored {
            Some(stored) => Ok(stored.x(ensemble, rows)?),
            None => {
                let x = &self.ensembles[ensemble].x;
                Ok(Cow::Borrowed(&x[rows.start * self.dim..rows.end * self.dim]))
            }
        }
    }

    fn write_attributes(&self, group: &H5Group) -> Result<(), Hdf5Error> {
        let version = env!("CARGO_PKG_VERSION");
        group.set_attr_string("created_by", &format!("sterna {version}"))?;
        group.set_attr_string("inference_library", "sterna")?;
        group.set_attr_string("inference_library_version", version)?;
        for (name, value) in &self.attributes {
            match value {
                Attribute::Text(text) => group.set_attr_string(name, text)?,
                Attribute::Integer(integer) => group.set_attr_numeric(name, integer)?,
                Attribute::Real(real) => group.set_attr_numeric(name, real)?,
            }
        }
        Ok(())
    }
}

/// What the local moves before each draw did.
fn write_moves(
    group: &H5Group,
    stored: &StoredDraws,
    scales: [&rust_hdf5::H5Dataset; 2],
) -> Result<(), Hdf5Error> {
    let acceptance = Variable::create::<f64>(group, ACCEPTANCE, &scales)?;
    let diverging = truths(group, DIVERGING, &scales)?;
    for i in 0..stored.ensembles() {
        acceptance.write(i, |rows| Ok(stored.acceptance(i, rows)?.into_iter().map(f64::from).collect()))?;
        diverging.write(i, |rows| Ok(stored.diverging(i, rows)?.into_iter().map(i64::from).collect()))?;
    }
    describe(&acceptance.dataset, "mean acceptance of the local moves on the target chain before the draw")?;
    describe(&diverging.dataset, "whether one of them came to a point at which the log density is no number")
}

/// Whether all readers can take this for a variable's name.
fn is_name(name: &str) -> bool {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
