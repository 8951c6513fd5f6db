//! Draws of a run folder's `draws.nc`, as many as charts can show.

use crate::draws_file::seal;
use crate::summary::UNNAMED;
use rust_hdf5::H5File;
use std::path::Path;

/// Draws of all ladders that are looked at.
const DRAWS: usize = 100_000;
/// Numbers that are read of a file, and in how many pieces of each ladder.
const NUMBERS: usize = 50_000_000;
const BLOCKS: usize = 64;

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
}

impl Columns {
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
    Ok(Columns { coordinates, values, ladders, stride: whole.then_some(stride), of: ladders * draws })
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
