//! A model's parameters: names, sizes and supports, and how a point of free coordinates becomes their values.

use super::columns::{Columns, ColumnsMut};
use super::{At, Support};
use crate::lanes::{Kernel, Lanes, WIDTH, dispatch};
use crate::{Batch, Result};
use std::ops::Range;

/// One or more values with one name and one support.
///
/// ```
/// use sterna::supports::{Parameter, Support};
/// let weights: Parameter = ("weights", 3, Support::Simplex).into();
/// assert_eq!(weights.free(), 2);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// What it is called.
    pub name: String,
    /// How many values it has.
    pub size: usize,
    /// Where they lie.
    pub support: Support,
}

impl Parameter {
    /// Free coordinates that stand for it.
    pub fn free(&self) -> usize {
        self.support.free(self.size)
    }
}

impl<N: Into<String>> From<(N, usize, Support)> for Parameter {
    fn from((name, size, support): (N, usize, Support)) -> Self {
        Self { name: name.into(), size, support }
    }
}

impl<N: Into<String>> From<(N, Support)> for Parameter {
    fn from((name, support): (N, Support)) -> Self {
        (name, 1, support).into()
    }
}

/// All parameters of a model, in their order: where the values of each lie in a row, and its free coordinates.
///
/// ```
/// use sterna::supports::{Parameter, Parameters, Support};
///
/// let weights = ("weights", 3, Support::Simplex).into();
/// let parameters = Parameters::new([("mu", Support::Real).into(), ("sigma", Support::Positive).into(), weights])?;
/// assert_eq!((parameters.free(), parameters.values()), (4, 5));
/// let mut values = [0.0; 5];
/// let log_volume = parameters.constrain(&[0.5, 0.0, 0.0, 0.0], &mut values);
/// assert_eq!(values[..2], [0.5, 1.0]);
/// // All weights are a third; near there a unit of the free coordinates makes √3/27 of the simplex.
/// assert!((log_volume - (3f64.sqrt() / 27.0).ln()).abs() < 1e-12);
/// # Ok::<(), sterna::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    each: Vec<Parameter>,
    free: usize,
    values: usize,
    log_constant: f64,
}

impl Parameters {
    /// Parameters in this order.
    ///
    /// # Errors
    /// If a support holds nothing, or has no meaning with its size.
    pub fn new(each: impl IntoIterator<Item = Parameter>) -> Result<Self> {
        let each: Vec<Parameter> = each.into_iter().collect();
        each.iter().try_for_each(|parameter| parameter.support.check(parameter.size))?;
        let free = each.iter().map(Parameter::free).sum();
        let values = each.iter().map(|parameter| parameter.size).sum();
        let log_constant = each.iter().map(|parameter| parameter.support.log_constant(parameter.size)).sum();
        Ok(Self { each, free, values, log_constant })
    }

    /// The parameters.
    pub fn each(&self) -> &[Parameter] {
        &self.each
    }

    /// Free coordinates of a point.
    pub fn free(&self) -> usize {
        self.free
    }

    /// Values of a point.
    pub fn values(&self) -> usize {
        self.values
    }

    /// Each parameter with the ranges of its coordinates and of its values.
    pub fn places(&self) -> impl Iterator<Item = (&Parameter, Range<usize>, Range<usize>)> {
        let (mut free, mut values) = (0, 0);
        self.each.iter().map(move |parameter| {
            let own = (parameter, free..free + parameter.free(), values..values + parameter.size);
            (free, values) = (own.1.end, own.2.end);
            own
        })
    }

    /// Values of one point, and the log of the volume that the map makes of a unit there.
    ///
    /// # Panics
    /// If there is not room for just these values.
    pub fn constrain(&self, point: &[f64], values: &mut [f64]) -> f64 {
        let mut log_volume = [0.0];
        self.constrain_rows(point, values, &mut log_volume);
        log_volume[0]
    }

    /// Values of all points, and the log of the volume at each.
    pub fn constrain_batch(&self, points: &Batch, values: &mut Batch, log_volume: &mut Vec<f64>) {
        values.set_size(points.rows(), self.values);
        log_volume.resize(points.rows(), 0.0);
        self.constrain_rows(points.as_slice(), values.as_mut_slice(), log_volume);
    }

    fn constrain_rows(&self, y: &[f64], x: &mut [f64], log_volume: &mut [f64]) {
        let rows = log_volume.len();
        assert!(y.len() == rows * self.free && x.len() == rows * self.values, "other numbers than values");
        dispatch(Constrain { parameters: self, y, x, log_volume });
    }

    /// Score in free coordinates, of gradients of a function of values: those pulled back, and the gradient of the log volume
    /// where that belongs to the function.
    ///
    /// # Panics
    /// If the batches are not of as many rows, or not of the right lengths.
    pub fn pull_back(
        &self,
        points: &Batch,
        values: &Batch,
        gradient: &Batch,
        volume: bool,
        score: &mut Batch,
    ) {
        let rows = points.rows();
        assert!([values.rows(), gradient.rows(), score.rows()].iter().all(|other| *other == rows));
        assert!(points.dim() == self.free && score.dim() == self.free, "points of {} coordinates", self.free);
        assert!(values.dim() == self.values && gradient.dim() == self.values, "{} values", self.values);
        dispatch(PullBack {
            parameters: self,
            y: points.as_slice(),
            x: values.as_slice(),
            gradient: gradient.as_slice(),
            volume: f64::from(u8::from(volume)),
            score: score.as_mut_slice(),
        });
    }

    /// A point with these values; where many have them, the one whose lengths are 1.
    ///
    /// # Panics
    /// If there is not room for just its coordinates.
    pub fn unconstrain(&self, values: &[f64], point: &mut [f64]) {
        assert!(values.len() == self.values && point.len() == self.free, "other numbers than values");
        for (parameter, y, x) in self.places() {
            parameter.support.unconstrain(&values[x], &mut point[y]);
        }
    }
}

pub(super) struct Constrain<'a> {
    pub parameters: &'a Parameters,
    pub y: &'a [f64],
    pub x: &'a mut [f64],
    pub log_volume: &'a mut [f64],
}

impl Kernel for Constrain<'_> {
    type Output = ();

    /// Eight rows at a time.
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Parameters { free, values, log_constant, .. } = *self.parameters;
        for (group, log_volume) in self.log_volume.chunks_mut(WIDTH).enumerate() {
            let (from, rows) = (WIDTH * group, log_volume.len());
            let y = &self.y[from * free..(from + rows) * free];
            let mut volume = L::splat(log_constant);
            for (parameter, of_y, of_x) in self.parameters.places() {
                let y = Columns { rows: y, width: free, first: of_y.start };
                let rows = &mut self.x[from * values..(from + rows) * values];
                let mut x = ColumnsMut { rows, width: values, first: of_x.start };
                volume = volume + parameter.support.constrain::<L>(parameter.size, y, &mut x);
            }
            volume.store_some(log_volume);
        }
    }
}

pub(super) struct PullBack<'a> {
    pub parameters: &'a Parameters,
    pub y: &'a [f64],
    pub x: &'a [f64],
    pub gradient: &'a [f64],
    pub volume: f64,
    pub score: &'a mut [f64],
}

impl Kernel for PullBack<'_> {
    type Output = ();

    /// Eight rows at a time.
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Parameters { free, values, .. } = *self.parameters;
        let (of_eight, values_of_eight) = (WIDTH * free, WIDTH * values);
        let groups = self.score.chunks_mut(of_eight).zip(self.y.chunks(of_eight));
        let insides = self.x.chunks(values_of_eight).zip(self.gradient.chunks(values_of_eight));
        for ((score, y), (x, gradient)) in groups.zip(insides) {
            for (parameter, of_y, of_x) in self.parameters.places() {
                let inside = |rows| Columns { rows, width: values, first: of_x.start };
                let y = Columns { rows: y, width: free, first: of_y.start };
                let at = At { y, x: inside(x), gradient: inside(gradient), volume: self.volume };
                let mut score = ColumnsMut { rows: &mut *score, width: free, first: of_y.start };
                parameter.support.pull_back::<L>(parameter.size, at, &mut score);
            }
        }
    }
}
