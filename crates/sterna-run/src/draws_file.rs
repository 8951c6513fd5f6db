//! `draws.nc`: the target chain's draws as netCDF-4, laid out the way ArviZ reads them.
//!
//! netCDF-4 is HDF5 with conventions: a dimension is a *dimension scale* (a one-dimensional dataset that
//! also holds the coordinates), and a variable names its dimensions by references to scales.
//!
//! ```text
//! /                 attributes
//!   posterior/      x (chain, draw, x_dim_0)            coordinates chain, draw, x_dim_0
//!   sample_stats/   lp, replica, acceptance_rate, diverging, … (chain, draw)
//!   warmup_posterior/, warmup_sample_stats/   the same of the time before sampling, with iteration (chain, draw)
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
use rust_hdf5::{H5Dataset, H5File, H5Group, Hdf5Error};
use variable::{Variable, describe, truths, widen, write_scale, write_statistic};

const CHAIN: &str = "chain";
const DRAW: &str = "draw";
const X_DIM: &str = "x_dim_0";
const LP: &str = "lp";
const REPLICA: &str = "replica";
const ACCEPTANCE: &str = "acceptance_rate";
const DIVERGING: &str = "diverging";
const ITERATION: &str = "iteration";
/// What names of groups of the time before sampling begin with.
const WARMUP: &str = "warmup_";

/// Draws of one ensemble's target chain.
#[derive(Clone, Copy, Debug, Default)]
pub struct EnsembleDraws<'a> {
    /// Points, one after the other (draws × dim).
    pub x: &'a [f64],
    /// log π̃ at each.
    pub log_density: &'a [f64],
    /// The replica that sat on the target chain.
    pub replica: &'a [u32],
    /// Mean acceptance of the local moves before each draw, where it is known; of all ensembles or of none.
    pub acceptance: &'a [f32],
    /// Whether one of them came to a point at which the log density is no number; likewise.
    pub diverging: &'a [bool],
}

impl<'a> From<&'a sterna::records::Draws> for EnsembleDraws<'a> {
    fn from(draws: &'a sterna::records::Draws) -> Self {
        Self {
            x: &draws.x,
            log_density: &draws.log_density,
            replica: &draws.replica,
            acceptance: &draws.acceptance,
            diverging: &draws.diverging,
        }
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
/// let (x, log_density, replica) = (&[0.5, -1.0], &[-0.1, -0.5], &[0, 1]);
/// let ensemble = EnsembleDraws { x, log_density, replica, ..EnsembleDraws::default() };
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
/// let ensemble = EnsembleDraws { x: &x, log_density: &log_density, replica: &replica, ..EnsembleDraws::default() };
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
    /// Beyond `lp`, `replica`, `acceptance_rate` and `diverging`.
    pub statistics: Vec<Statistic<'a>>,
    /// Of the time before sampling, one entry for each ensemble, and the iteration of each draw; none where nothing is known of it.
    pub warmup: Vec<(&'a [u32], EnsembleDraws<'a>)>,
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
            warmup: Vec::new(),
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

    /// Adds what was before sampling: of each ensemble iterations, and draws after them.
    pub fn after(self, warmup: &'a [(Vec<u32>, sterna::records::Draws)]) -> Self {
        let each = warmup.iter().map(|(iterations, draws)| (&iterations[..], draws.into()));
        Self { warmup: each.collect(), ..self }
    }

    /// What was before sampling, as a file of its own; none where nothing is known of it.
    fn before_sampling(&self) -> Option<Self> {
        let (iterations, ensembles): (Vec<_>, Vec<_>) = self.warmup.iter().copied().unzip();
        if iterations.first().is_none_or(|first| first.is_empty()) {
            return None;
        }
        let file =
            Self { ensembles, stored: None, statistics: Vec::new(), warmup: Vec::new(), ..self.clone() };
        Some(file.statistic(ITERATION, iterations.into_iter().map(Values::Count)))
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
            if self.knows_moves() {
                length(ACCEPTANCE, i, ensemble.acceptance.len(), draws)?;
                length(DIVERGING, i, ensemble.diverging.len(), draws)?;
            }
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
        self.before_sampling().map_or(Ok(()), |before| before.check())
    }

    /// Whether it is known what the local moves before each draw did.
    fn knows_moves(&self) -> bool {
        self.stored.is_some() || self.ensembles.first().is_some_and(|e| !e.acceptance.is_empty())
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
        self.write_attributes(&file.root_group())?;
        // Dimensions are numbered through the file, in order of creation.
        let mut dimensions = 0;
        self.write_groups(file, "", &mut dimensions)?;
        match self.before_sampling() {
            Some(before) => before.write_groups(file, WARMUP, &mut dimensions),
            None => Ok(()),
        }
    }

    /// Draws and statistics, in groups whose names begin so.
    fn write_groups(&self, file: &H5File, prefix: &str, dimensions: &mut i32) -> Result<(), Hdf5Error> {
        let (ensembles, draws) = (self.count(), self.draws());
        let mut scale = |group: &H5Group, name, length| {
            let scale = write_scale(group, name, length, *dimensions);
            *dimensions += 1;
            scale
        };
        let posterior = file.create_group(&format!("{prefix}posterior"))?;
        self.write_attributes(&posterior)?;
        let (chain, draw) = (scale(&posterior, CHAIN, ensembles)?, scale(&posterior, DRAW, draws)?);
        if self.parameters.is_empty() {
            let x_dim = scale(&posterior, X_DIM, self.dim)?;
            let x = Variable::create::<f64>(&posterior, "x", &[&chain, &draw, &x_dim])?;
            for i in 0..ensembles {
                x.write(i, |rows| self.x(i, rows))?;
            }
        }
        Named::create(&posterior, self, [&chain, &draw], dimensions)?.write(self)?;

        let sample_stats = file.create_group(&format!("{prefix}sample_stats"))?;
        self.write_attributes(&sample_stats)?;
        let chain = write_scale(&sample_stats, CHAIN, ensembles, *dimensions)?;
        let draw = write_scale(&sample_stats, DRAW, draws, *dimensions + 1)?;
        *dimensions += 2;
        self.write_statistics(&sample_stats, [&chain, &draw])
    }

    fn write_statistics(&self, group: &H5Group, scales: [&H5Dataset; 2]) -> Result<(), Hdf5Error> {
        let lp = Variable::create::<f64>(group, LP, &scales)?;
        let replica = Variable::create::<i64>(group, REPLICA, &scales)?;
        for i in 0..self.count() {
            lp.write(i, |rows| match self.stored {
                Some(stored) => Ok(stored.log_density(i, rows)?),
                None => Ok(Cow::Borrowed(&self.ensembles[i].log_density[rows])),
            })?;
            replica.write(i, |rows| match self.stored {
                Some(stored) => Ok(widen(&stored.replica(i, rows)?)),
                None => Ok(widen(&self.ensembles[i].replica[rows])),
            })?;
        }
        describe(&lp.dataset, "log density, not normalised")?;
        describe(&replica.dataset, "replica on the chain")?;
        if self.knows_moves() {
            self.write_moves(group, scales)?;
        }
        for Statistic { name, values } in &self.statistics {
            write_statistic(group, name, values, scales)?;
        }
        Ok(())
    }

    /// What the local moves before each draw did.
    fn write_moves(&self, group: &H5Group, scales: [&H5Dataset; 2]) -> Result<(), Hdf5Error> {
        let acceptance = Variable::create::<f64>(group, ACCEPTANCE, &scales)?;
        let diverging = truths(group, DIVERGING, &scales)?;
        for i in 0..self.count() {
            acceptance.write(i, |rows| {
                let values: Cow<[f32]> = match self.stored {
                    Some(stored) => stored.acceptance(i, rows)?.into(),
                    None => Cow::Borrowed(&self.ensembles[i].acceptance[rows]),
                };
                Ok(values.iter().map(|&value| f64::from(value)).collect())
            })?;
            diverging.write(i, |rows| {
                let values: Cow<[bool]> = match self.stored {
                    Some(stored) => stored.diverging(i, rows)?.into(),
                    None => Cow::Borrowed(&self.ensembles[i].diverging[rows]),
                };
                Ok(values.iter().map(|&value| i64::from(value)).collect())
            })?;
        }
        describe(&acceptance.dataset, "mean acceptance of the local moves on the chain before the draw")?;
        describe(
            &diverging.dataset,
            "whether one of them came to a point at which the log density is no number",
        )
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

/// Whether all readers can take this for a variable's name.
fn is_name(name: &str) -> bool {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
