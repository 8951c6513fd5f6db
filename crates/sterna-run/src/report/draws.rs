//! Draws of a run folder's `draws.nc`, as many as charts can show.

use super::chart::Axis;
use crate::chemistry::WatchedSeries;
use crate::draws_file::seal;
use crate::summary::UNNAMED;
use crate::traces::{Labels, slowest};
use rust_hdf5::H5File;
use std::path::Path;

/// Draws of all ladders that are looked at.
const DRAWS: usize = 100_000;
/// Numbers that are read of a file, and in how many pieces of each ladder.
const NUMBERS: usize = 50_000_000;
const BLOCKS: usize = 64;

/// What a column is where it is no coordinate: a dihedral (in degrees) or a distance (in nm) of a molecule.
#[derive(Clone, Debug, PartialEq)]
pub struct Observable {
    /// As people write it.
    pub name: String,
    /// Independent draws that it is worth.
    pub ess: f64,
    /// Where the circle is cut open, if it is an angle: its values lie from here on, less than 360 above.
    pub cut: Option<f64>,
}

/// Draws of some coordinates, the slowest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// Which coordinates.
    pub coordinates: Vec<usize>,
    /// Values of each, draw by draw, one ladder after the other, equally many of each.
    pub values: Vec<Vec<f64>>,
    /// Ladders that they are from.
    pub ladders: usize,
    /// Draws of a ladder from one value to the next; none where they are not evenly spread.
    pub stride: Option<usize>,
    /// Draws of all ladders in the file.
    pub of: usize,
    /// What they are, where they are no coordinates.
    pub observables: Vec<Observable>,
}

impl Columns {
    /// What a column is called.
    pub fn name(&self, i: usize, labels: &Labels) -> String {
        let named = self.observables.get(i).map(|observable| observable.name.clone());
        named.unwrap_or_else(|| labels.coordinate(self.coordinates[i]))
    }

    /// Where a column's circle is cut open, if it is an angle.
    pub fn cut(&self, i: usize) -> Option<f64> {
        self.observables.get(i)?.cut
    }

    /// A coordinate's values, ladder by ladder.
    pub fn by_ladder(&self, i: usize) -> impl Iterator<Item = &[f64]> {
        let values = &self.values[i];
        values.chunks_exact((values.len() / self.ladders.max(1)).max(1))
    }

    /// The same coordinates in another order, and no others; none if one is missing.
    pub(super) fn only(mut self, coordinates: &[usize]) -> Option<Self> {
        let place = |j: &usize| self.coordinates.iter().position(|k| k == j);
        let places: Vec<usize> = coordinates.iter().map(place).collect::<Option<_>>()?;
        let values = places.iter().map(|&k| std::mem::take(&mut self.values[k])).collect();
        Some(Self { coordinates: coordinates.to_vec(), values, ..self })
    }
}

/// Whether all of them lie in one variable, `x`.
fn are_unnamed(names: &[&str]) -> bool {
    let in_x = |name: &&str| name.split_once('[').is_some_and(|(variable, _)| variable == UNNAMED);
    names.iter().all(in_x)
}

/// The given coordinates, evenly thinned; `names` of all coordinates are those of their variables.
pub(crate) fn read(path: &Path, coordinates: &[usize], names: &[&str]) -> Result<Columns, String> {
    if !path.exists() {
        return Err("draws.nc: there is no such file".into());
    }
    // HDF5 is a format that a reader can get lost in: only files as we wrote them are read.
    seal::check(path).map_err(|why| format!("draws.nc: {why}"))?;
    let unreadable = |e: rust_hdf5::Hdf5Error| format!("draws.nc: {e}");
    let file = H5File::open(path).map_err(unreadable)?;
    if !are_unnamed(names) {
        return read_named(&file, coordinates, names);
    }
    let data = file.dataset("posterior/x").map_err(unreadable)?;
    let shape: [usize; 3] = data.shape()[..].try_into().map_err(|_| "draws.nc: x has no three dimensions")?;
    let [ladders, draws, dim] = shape;
    if shape.contains(&0) {
        return Err("draws.nc: it holds no draws".into());
    }
    let coordinates: Vec<usize> = coordinates.iter().copied().filter(|&j| j < dim).collect();
    let stride = ladders.saturating_mul(draws).div_ceil(DRAWS).max(1);
    let mut values = vec![Vec::new(); coordinates.len()];
    // A file of many gigabytes is not read whole: of each of some blocks, only the beginning.
    let blocks = BLOCKS.min(draws);
    let whole = ladders.saturating_mul(draws).saturating_mul(dim) <= NUMBERS;
    let part = (NUMBERS / ladders.saturating_mul(blocks).saturating_mul(dim)).max(1);
    for ladder in 0..ladders {
        for block in 0..blocks {
            let (first, end) = (block * draws / blocks, (block + 1) * draws / blocks);
            let rows = if whole { end - first } else { part.min(end - first) };
            let x: Vec<f64> = data.read_slice(&[ladder, first, 0], &[1, rows, dim]).map_err(unreadable)?;
            for row in (0..rows).filter(|row| !whole || (first + row).is_multiple_of(stride)) {
                for (out, &j) in values.iter_mut().zip(&coordinates) {
                    out.push(x[row * dim + j]);
                }
            }
        }
    }
    Ok(Columns {
        coordinates,
        values,
        ladders,
        stride: whole.then_some(stride),
        of: ladders * draws,
        observables: Vec::new(),
    })
}

/// The same where each parameter has a variable of its own: `mu`, or a place in one, `theta[2]`.
fn read_named(file: &H5File, coordinates: &[usize], names: &[&str]) -> Result<Columns, String> {
    let variable_of = |j: usize| {
        let name = names[j];
        name.split_once('[').map_or(name, |(variable, _)| variable)
    };
    let mut out = Columns::default();
    for &j in coordinates.iter().filter(|&&j| j < names.len()) {
        let (name, variable) = (names[j], variable_of(j));
        let unreadable = |e: rust_hdf5::Hdf5Error| format!("draws.nc: {name}: {e}");
        let data = file.dataset(&format!("posterior/{variable}")).map_err(unreadable)?;
        // All places of a variable have names, in their order: the first of them says which one this is.
        let first = (0..=j).find(|&i| variable_of(i) == variable).unwrap_or(j);
        let shape = data.shape();
        let Some(place) = place_of(j - first, &shape) else {
            return Err(format!("draws.nc: {name} has another shape than the summary says"));
        };
        let (ladders, draws) = (shape[0], shape[1]);
        let stride = (ladders * draws).div_ceil(DRAWS).max(1);
        let count = [vec![1, draws], vec![1; place.len()]].concat();
        let mut values = Vec::new();
        for ladder in 0..ladders {
            let start = [&[ladder, 0], &place[..]].concat();
            let x: Vec<f64> = data.read_slice(&start, &count).map_err(unreadable)?;
            values.extend(x.into_iter().step_by(stride));
        }
        (out.ladders, out.stride, out.of) = (ladders, Some(stride), ladders * draws);
        out.coordinates.push(j);
        out.values.push(values);
    }
    Ok(out)
}

/// A molecule's dihedrals and distances, evenly thinned, the slowest first. Where they lie in space says nothing: it tumbles.
pub(crate) fn read_watched(path: &Path, watched: &[WatchedSeries]) -> Result<Columns, String> {
    seal::check(path).map_err(|why| format!("draws.nc: {why}"))?;
    let unreadable = |e: rust_hdf5::Hdf5Error| format!("draws.nc: {e}");
    let file = H5File::open(path).map_err(unreadable)?;
    let mut out = Columns::default();
    for j in slowest(&watched.iter().map(|series| series.ess).collect::<Vec<_>>()) {
        let (name, is_angle) = (&watched[j].name, watched[j].atoms.len() == 4);
        let data = file.dataset(&format!("sample_stats/{name}")).map_err(unreadable)?;
        let &[ladders, draws] = &data.shape()[..] else {
            return Err(format!("draws.nc: {name} has not two dimensions"));
        };
        let stride = ladders.saturating_mul(draws).div_ceil(DRAWS).max(1);
        let mut values = Vec::new();
        for ladder in 0..ladders {
            let x: Vec<f64> = data.read_slice(&[ladder, 0], &[1, draws]).map_err(unreadable)?;
            values.extend(x.into_iter().step_by(stride));
        }
        let cut = is_angle.then(|| cut_open(&mut values));
        (out.ladders, out.stride, out.of) = (ladders, Some(stride), ladders * draws);
        out.observables.push(Observable { name: as_written(name, is_angle), ess: watched[j].ess, cut });
        out.coordinates.push(j);
        out.values.push(values);
    }
    match out.of {
        0 => Err("draws.nc: it holds no draws".into()),
        _ => Ok(out),
    }
}

/// φ for `phi`, with its unit.
fn as_written(name: &str, is_angle: bool) -> String {
    let letters = [("phi", "φ"), ("psi", "ψ"), ("omega", "ω")];
    let greek =
        letters.iter().find_map(|(word, letter)| Some(format!("{letter}{}", name.strip_prefix(word)?)));
    let unit = if is_angle { "" } else { ", nm" };
    greek.unwrap_or_else(|| name.into()).replace('_', " ") + unit
}

/// Degrees from −180 on; from 0 on where most lie about 180, so that a trans peptide bond is one line and not two.
fn cut_open(degrees: &mut [f64]) -> f64 {
    let about = degrees.iter().filter(|angle| angle.abs() > 150.0).count();
    if 2 * about <= degrees.len() {
        return -180.0;
    }
    degrees.iter_mut().for_each(|angle| *angle = angle.rem_euclid(360.0));
    0.0
}

/// A whole turn from where it is cut open, in degrees as chemists count them.
pub fn turn(label: &str, cut: f64) -> Axis {
    let degrees = (0..5).map(|k| cut + 90.0 * f64::from(k));
    let text = |x: f64| format!("{}°", if x > 180.0 { x - 360.0 } else { x }).replace('-', "−");
    Axis::linear(label, cut, cut + 360.0).ticks(degrees.map(|x| (x, text(x))).collect())
}

/// Where an entry of a variable of this shape (ladders, draws, axes) lies on its axes, the last of which changes fastest.
fn place_of(entry: usize, shape: &[usize]) -> Option<Vec<usize>> {
    let axes = shape.get(2..).filter(|_| !shape.contains(&0))?;
    let mut rest = entry;
    let mut place: Vec<usize> = Vec::new();
    for length in axes.iter().rev() {
        place.push(rest % length);
        rest /= length;
    }
    place.reverse();
    (rest == 0).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_cut_where_few_draws_are() {
        let mut trans = [179.0, -178.0, 170.0, -10.0];
        assert_eq!(cut_open(&mut trans), 0.0);
        assert_eq!(trans, [179.0, 182.0, 170.0, 350.0]);
        let mut phi = [-80.0, -150.0, 60.0, 175.0];
        assert_eq!((cut_open(&mut phi), phi[3]), (-180.0, 175.0));
        assert_eq!(as_written("omega_2", true), "ω 2");
        assert_eq!(as_written("distance_5_17", false), "distance 5 17, nm");
    }
}
