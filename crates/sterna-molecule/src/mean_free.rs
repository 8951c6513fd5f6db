//! The centre of mass removed exactly (errata E11): Jacobi coordinates, which turn 3n Cartesian
//! coordinates with their centre of mass at the origin into 3n − 3 free ones, and back, in O(n).
//!
//! With M_k the mass and R_k the centre of the first k atoms, μ_k = M_k m_{k+1}/M_{k+1}:
//! y_k = √μ_k (x_{k+1} − R_k). For unit masses this is Helmert's orthonormal basis of the mean-free
//! subspace; for others it is orthonormal in the coordinates √m x, so that moves with unit masses in y
//! are moves with those masses in x. Either way volumes change by a constant.

use crate::kernel::{Atom, load, store};
use crate::lane_math::{Lane, Vector, gather, scatter};
use sterna::lanes::{Kernel, Lanes, WIDTH, dispatch};

/// One atom after the first.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// √μ_k.
    scale: f64,
    /// 1/√μ_k.
    inverse: f64,
    /// m_{k+1}/M_{k+1}.
    share: f64,
}

/// Coordinates without the centre of mass.
///
/// ```
/// use sterna_molecule::MeanFree;
///
/// let basis = MeanFree::new(3);
/// let x = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0];
/// let (mut y, mut back) = ([0.0; 6], [0.0; 9]);
/// basis.to_mean_free(&x, &mut y);
/// basis.to_cartesian(&y, &mut back);
/// // The same triangle, moved so that its centre is the origin.
/// for (back, x) in back.chunks(3).zip(x.chunks(3)) {
///     assert!((back[0] - (x[0] - 1.0 / 3.0)).abs() < 1e-15);
///     assert!((back[1] - (x[1] - 2.0 / 3.0)).abs() < 1e-15);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct MeanFree {
    steps: Vec<Step>,
}

impl MeanFree {
    /// The centroid removed: an orthonormal basis.
    pub fn new(atoms: usize) -> Self {
        Self::with_masses(&vec![1.0; atoms])
    }

    /// The centre of mass removed, coordinates weighted by the root of the mass.
    pub fn with_masses(masses: &[f64]) -> Self {
        let mut total = masses.first().copied().unwrap_or(0.0);
        let steps = masses.iter().skip(1).map(|&mass| {
            let before = total;
            total += mass;
            let scale = (before * mass / total).sqrt();
            Step { scale, inverse: 1.0 / scale, share: mass / total }
        });
        Self { steps: steps.collect() }
    }

    /// Number of free coordinates.
    pub fn dim(&self) -> usize {
        3 * self.steps.len()
    }

    /// Number of Cartesian coordinates.
    pub fn cartesian_dim(&self) -> usize {
        self.dim() + 3
    }

    /// Free coordinates of each Cartesian row; where its centre lies does not matter.
    ///
    /// # Panics
    /// If the two do not have the same number of rows.
    pub fn to_mean_free(&self, cartesian: &[f64], mean_free: &mut [f64]) {
        let (from, to) = (self.cartesian_dim(), self.dim());
        self.convert(cartesian, from, mean_free, to, |input, output| {
            dispatch(ToMeanFree { basis: self, cartesian: input, mean_free: output });
        });
    }

    /// Cartesian coordinates of each row, the centre at the origin.
    ///
    /// # Panics
    /// If the two do not have the same number of rows.
    pub fn to_cartesian(&self, mean_free: &[f64], cartesian: &mut [f64]) {
        let (from, to) = (self.dim(), self.cartesian_dim());
        self.convert(mean_free, from, cartesian, to, |input, output| {
            dispatch(ToCartesian { basis: self, mean_free: input, cartesian: output });
        });
    }

    fn convert(
        &self,
        input: &[f64],
        from: usize,
        output: &mut [f64],
        to: usize,
        kernel: impl Fn(&[Atom], &mut [Atom]),
    ) {
        assert_eq!(input.len() / from, output.len() / to, "as many rows out as in");
        with_scratch(from / 3, to / 3, |lanes_in, lanes_out| {
            let blocks = input.chunks(WIDTH * from).zip(output.chunks_mut(WIDTH * to));
            for (input, output) in blocks {
                gather(input, from, lanes_in.as_flattened_mut());
                kernel(lanes_in, lanes_out);
                scatter(lanes_out.as_flattened(), to, output);
            }
        });
    }
}

fn with_scratch(first: usize, second: usize, f: impl FnOnce(&mut [Atom], &mut [Atom])) {
    thread_local! {
        static SCRATCH: std::cell::RefCell<Vec<Atom>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.resize(first + second, [Lane::default(); 3]);
        let (first, second) = scratch.split_at_mut(first);
        f(first, second);
    });
}

/// y from x, for eight conformations.
pub(crate) struct ToMeanFree<'a> {
    pub basis: &'a MeanFree,
    pub cartesian: &'a [Atom],
    pub mean_free: &'a mut [Atom],
}

impl Kernel for ToMeanFree<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let mut centre = load::<L>(&self.cartesian[0]);
        for ((step, x), y) in self.basis.steps.iter().zip(&self.cartesian[1..]).zip(self.mean_free) {
            let distance = load::<L>(x).sub(centre);
            store(distance.scale(L::splat(step.scale)), y);
            centre = distance.mul_add(L::splat(step.share), centre);
        }
    }
}

/// x from y, for eight conformations.
pub(crate) struct ToCartesian<'a> {
    pub basis: &'a MeanFree,
    pub mean_free: &'a [Atom],
    pub cartesian: &'a mut [Atom],
}

impl Kernel for ToCartesian<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let zero = L::splat(0.0);
        let mut centre = Vector(zero, zero, zero);
        let Some((first, rest)) = self.cartesian.split_first_mut() else { return };
        let atoms = self.basis.steps.iter().zip(self.mean_free).zip(rest);
        for ((step, y), x) in atoms.rev() {
            let distance = load::<L>(y).scale(L::splat(step.inverse));
            centre = distance.mul_add(L::splat(-step.share), centre);
            store(centre.add(distance), x);
        }
        store(centre, first);
    }
}

/// Turns a gradient in x, times `factor`, into one in y.
pub(crate) struct GradientToMeanFree<'a> {
    pub basis: &'a MeanFree,
    pub factor: f64,
    pub cartesian: &'a [Atom],
    pub mean_free: &'a mut [Atom],
}

impl Kernel for GradientToMeanFree<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        // On the common shift of the first k + 1 atoms.
        let mut sum = load::<L>(&self.cartesian[0]);
        for ((step, x), y) in self.basis.steps.iter().zip(&self.cartesian[1..]).zip(self.mean_free) {
            let gradient = load::<L>(x);
            sum = sum.add(gradient);
            let on_distance = sum.mul_add(L::splat(-step.share), gradient);
            store(on_distance.scale(L::splat(step.inverse * self.factor)), y);
        }
    }
}

/// Turns a gradient in y into one in x: the transpose of [`ToMeanFree`].
pub(crate) struct GradientToCartesian<'a> {
    pub basis: &'a MeanFree,
    pub mean_free: &'a [Atom],
    pub cartesian: &'a mut [Atom],
}

impl Kernel for GradientToCartesian<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let zero = L::splat(0.0);
        let mut on_centre = Vector(zero, zero, zero);
        let Some((first, rest)) = self.cartesian.split_first_mut() else { return };
        for ((step, y), x) in self.basis.steps.iter().zip(self.mean_free).zip(rest).rev() {
            let on_distance = load::<L>(y).scale(L::splat(step.scale));
            let on_distance = on_centre.mul_add(L::splat(step.share), on_distance);
            store(on_distance, x);
            on_centre = on_centre.sub(on_distance);
        }
        store(on_centre, first);
    }
}
