//! Conditional affine transport: stiff coordinates are scaled about means that follow the soft torsions.
//!
//! One ridge regression, pooled over all temperatures, gives the means as trigonometric polynomials of the soft
//! torsions nearby plus a shift linear in T; residuals spread as a power of T fitted per coordinate (near ½).
//! Torsions of peptide bonds and methyl groups move by monotone maps of their own marginals, φ and ψ of a residue by
//! a map of their joint distribution; others stay.

use super::circle::CircleMap;
use super::torus::{PARAMETERS as TORUS_PARAMETERS, TorusMap};
use super::{ChainSamples, Chart, Direction, Ends, Parameters, Temperatures};
use crate::kernel::Atom;
use crate::lane_math::Lane;
use crate::{Molecule, MoleculeError};
use rayon::prelude::*;
use std::cell::RefCell;
use sterna::Batch;
use sterna::call::Scratch;
use sterna::lanes::one::{ln, power};
use sterna::lanes::{Lanes, Portable, Vector, WIDTH, dispatch, sin_cos};
use sterna::transport::{Flow, Interval};

mod features;
mod fit;
mod kernels;

use features::Features;
use fit::{circle_model, fit_residue, fit_soft, fit_stiff, position, residues, soft_and_stiff};
pub(super) use kernels::Whitening;
use kernels::{Deviations, Grow, Place};

/// Slopes of the torsions' maps are taken over this much either side: about a cell of the joint map, whose slopes jump
/// from cell to cell.
const DIFFERENCE: f64 = 0.05;

/// A soft torsion, with its map where it has one.
#[derive(Clone, Debug)]
struct Soft {
    index: usize,
    slot: (usize, usize),
    map: Option<CircleMap>,
}

/// φ and ψ about the same Cα, and their map.
#[derive(Clone, Debug)]
struct Residue {
    /// Where the two are among the soft torsions.
    torsions: [usize; 2],
    map: TorusMap,
}

/// A stiff coordinate.
#[derive(Clone, Debug)]
struct Stiff {
    /// Where it is among the internal coordinates, and in a block.
    index: usize,
    slot: (usize, usize),
    dihedral: bool,
    /// Deviations are regressed about this.
    centre: f64,
    /// The spread of residuals goes as T to this power.
    exponent: f64,
    /// Change of the mean with T / T_reference.
    drift: f64,
    /// Features of the torsions nearby, with their coefficients.
    weights: Vec<(usize, f64)>,
}

/// Stiff coordinates about means given the soft torsions, and maps of the torsions' own distributions.
///
/// ```
/// use sterna::streams::{Phase, Streams};
/// use sterna::{Batch, Target};
/// use sterna_molecule::{ChainSamples, ConditionalAffine, Temperatures, alanine_dipeptide};
///
/// let molecule = alanine_dipeptide(300.0)?;
/// let path = Temperatures { reference: 1200.0, target: 300.0 };
/// // Stands in for samples of two chains, a few thousand rows each: the minimum, shaken.
/// let shaken = |by: f64, seed: u64| {
///     let (rows, mut x) = (Vec::from_iter(0..3000), Batch::zeros(3000, molecule.dim()));
///     Streams::new(seed).normals(Phase::Start, 0, &rows, &mut x);
///     x.as_mut_slice().iter_mut().zip(molecule.start().iter().cycle()).for_each(|(x, at)| *x = at + by * *x);
///     x
/// };
/// let (hot, cold) = (shaken(0.004, 1), shaken(0.002, 2));
/// let samples = [ChainSamples { beta: 0.0, points: &hot }, ChainSamples { beta: 1.0, points: &cold }];
/// let flow = ConditionalAffine::fit(&molecule, path, &samples)?;
/// let same = ConditionalAffine::from_parameters(&molecule, path, &flow.parameters())?;
/// assert_eq!(same.parameters(), flow.parameters());
/// # Ok::<(), sterna_molecule::MoleculeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConditionalAffine {
    chart: Chart,
    features: Features,
    /// Where on the path it was fitted, increasing.
    betas: Vec<f64>,
    soft: Vec<Soft>,
    residues: Vec<Residue>,
    stiff: Vec<Stiff>,
}

impl ConditionalAffine {
    /// Fits all chains' samples at once; at least two chains, a few thousand draws each. What was fitted must not
    /// also judge: take fresh samples for that.
    pub fn fit(
        molecule: &Molecule,
        temperatures: Temperatures,
        samples: &[ChainSamples],
    ) -> Result<Self, MoleculeError> {
        let chart = Chart::new(molecule, temperatures)?;
        let mut chains = Vec::new();
        for chain in samples {
            chains.push((chain.beta, chart.internal_rows(chain.points)?));
        }
        chains.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (soft, stiff) = soft_and_stiff(&chart.internal);
        let features = Features::new(&chart.internal, &soft);
        let needed = 4 * features.count();
        if chains.len() < 2 || chains.iter().any(|(_, rows)| rows.len() < needed * chart.internal.dim()) {
            return Err(MoleculeError::Fit(format!(
                "it needs at least two chains with {needed} usable samples each"
            )));
        }
        let stiff = fit_stiff(&chart, &features, &soft, &stiff, &chains)?;
        let residues = residues(&chart.internal);
        let residues = residues.par_iter().map(|&pair| fit_residue(&chart, &soft, pair, &chains)).collect();
        let soft = soft.par_iter().map(|&c| fit_soft(&chart, c, &chains)).collect();
        let betas = chains.iter().map(|(beta, _)| *beta).collect();
        Ok(Self { chart, features, betas, soft, residues, stiff })
    }

    /// All that was fitted, as plain numbers: [`from_parameters`](Self::from_parameters) makes the same transport.
    pub fn parameters(&self) -> Vec<f64> {
        let mut out = vec![self.betas.len() as f64];
        out.extend(&self.betas);
        for stiff in &self.stiff {
            out.extend([stiff.centre, stiff.exponent, stiff.drift]);
            out.extend(stiff.weights.iter().map(|(_, weight)| weight));
        }
        let circles = self.soft.iter().filter_map(|soft| soft.map.as_ref()).flat_map(CircleMap::fits);
        let tori = self.residues.iter().flat_map(|residue| residue.map.fits());
        out.extend(circles.chain(tori).flatten());
        out
    }

    /// The transport with the given [`parameters`](Self::parameters), of the same molecule.
    pub fn from_parameters(
        molecule: &Molecule,
        temperatures: Temperatures,
        parameters: &[f64],
    ) -> Result<Self, MoleculeError> {
        let chart = Chart::new(molecule, temperatures)?;
        let mut rest = Parameters(parameters);
        let chains = rest.one()? as usize;
        let betas = rest.take(chains)?.to_vec();
        if betas.is_empty() || betas.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(Parameters::wrong());
        }
        let (soft_index, stiff_index) = soft_and_stiff(&chart.internal);
        let features = Features::new(&chart.internal, &soft_index);
        let mut stiff = Vec::new();
        for &c in &stiff_index {
            let inputs = features.near(&chart.internal, c, &soft_index);
            stiff.push(Stiff {
                index: c,
                slot: chart.internal.slot(c),
                dihedral: chart.internal.coordinates()[c].kind.is_dihedral(),
                centre: rest.one()?,
                exponent: rest.one()?,
                drift: rest.one()?,
                weights: inputs.iter().copied().zip(rest.take(inputs.len())?.iter().copied()).collect(),
            });
        }
        let mut soft = Vec::new();
        for &c in &soft_index {
            let map = match circle_model(chart.internal.coordinates()[c].kind) {
                Some(model) => {
                    Some(CircleMap::new(betas.clone(), rest.rows(chains, model.parameters())?, model))
                }
                None => None,
            };
            soft.push(Soft { index: c, slot: chart.internal.slot(c), map });
        }
        let mut fitted = Vec::new();
        for pair in residues(&chart.internal) {
            let map = TorusMap::new(betas.clone(), rest.rows(chains, TORUS_PARAMETERS)?);
            fitted.push(Residue { torsions: pair.map(|c| position(&soft_index, c)), map });
        }
        rest.end()?;
        Ok(Self { chart, features, betas, soft, residues: fitted, stiff })
    }

    fn apply(
        &self,
        direction: Direction,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
    ) -> sterna::Result<()> {
        thread_local! {
            static SCRATCH: RefCell<Vec<Lane>> = const { RefCell::new(Vec::new()) };
        }
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(self.features.count() + self.stiff.len(), Lane::default());
            let (features, deviations) = scratch.split_at_mut(self.features.count());
            self.chart.transport(direction, pairs, x, log_det, |ends, internal| {
                dispatch(Deviations { flow: self, ends, internal, features, deviations });
                let slope = self.map_soft(ends, internal);
                let mut log_det = Lane::default();
                let place =
                    Place { flow: self, ends, internal, features, deviations, slope, log_det: &mut log_det };
                dispatch(place);
                log_det
            })
        })
    }

    pub(super) fn chart(&self) -> &Chart {
        &self.chart
    }

    /// Number of stiff coordinates.
    pub fn stiff(&self) -> usize {
        self.stiff.len()
    }

    /// Number of soft torsions.
    pub fn soft(&self) -> usize {
        self.soft.len()
    }

    /// Where stiff coordinate `k` is among the internal coordinates.
    pub(super) fn stiff_coordinate(&self, k: usize) -> usize {
        self.stiff[k].index
    }

    /// Σ log of how much the stiff coordinates' spreads have grown from T_reference to `temperature`.
    pub(super) fn log_growth(&self, temperature: f64) -> f64 {
        let t = temperature / self.chart.temperatures.reference;
        self.stiff.iter().map(|stiff| stiff.exponent * ln(t)).sum()
    }

    /// The soft torsions of one row of a block.
    pub(super) fn read_soft(&self, internal: &[Atom], lane: usize, out: &mut [f64]) {
        for (soft, out) in self.soft.iter().zip(out) {
            *out = internal[soft.slot.0][soft.slot.1].0[lane];
        }
    }

    /// Sets the soft torsions of one row of a block.
    pub(super) fn write_soft(&self, internal: &mut [Atom], lane: usize, torsions: &[f64]) {
        for (soft, torsion) in self.soft.iter().zip(torsions) {
            internal[soft.slot.0][soft.slot.1].0[lane] = *torsion;
        }
    }

    /// How much the spread of each stiff coordinate has grown from T_reference to the rows' temperatures.
    pub(super) fn growth(&self, temperature: &Lane, out: &mut [Lane]) {
        out.fill(Lane([1.0; WIDTH]));
        dispatch(Grow { flow: self, temperature, sign: 1.0, deviations: out });
    }

    /// Deviations of the stiff coordinates from their means where rows come from, divided by their growth.
    pub(super) fn whiten(&self, ends: &Ends, internal: &[Atom], out: &mut Whitening) {
        out.features.resize(self.features.count(), Lane::default());
        out.deviations.resize(self.stiff.len(), Lane::default());
        let Whitening { features, deviations } = out;
        dispatch(Deviations { flow: self, ends, internal, features, deviations });
        dispatch(Grow { flow: self, temperature: &ends.from, sign: -1.0, deviations });
    }

    /// Places the stiff coordinates where rows go to, about means given their present torsions. `slope` is the
    /// determinant of the map of those; returns log |∂(q, soft)′/∂(q, soft)| of the way there with z kept.
    pub(super) fn unwhiten(
        &self,
        ends: &Ends,
        slope: Lane,
        internal: &mut [Atom],
        whitened: &mut Whitening,
    ) -> Lane {
        let Whitening { features, deviations } = whitened;
        // `Place` scales from one temperature to the other.
        dispatch(Grow { flow: self, temperature: &ends.from, sign: 1.0, deviations });
        let mut log_det = Lane::default();
        dispatch(Place { flow: self, ends, internal, features, deviations, slope, log_det: &mut log_det });
        log_det
    }

    /// All internal coordinates of one conformation from its torsions and standardised deviations, and how much
    /// each stiff coordinate changes with its deviation. A dihedral beyond half a turn is no number.
    pub(super) fn place(&self, temperature: f64, soft: &[f64], z: &[f64], q: &mut [f64], growth: &mut [f64]) {
        let t = temperature / self.chart.temperatures.reference;
        let mut values = vec![0.0; self.features.count()];
        let angle = |torsion: usize| {
            let (s, c) = sin_cos(Portable::splat(soft[torsion]));
            (s, c)
        };
        self.features.write(angle, |k, value: Portable| values[k] = value.to_array()[0]);
        for (soft, torsion) in self.soft.iter().zip(soft) {
            q[soft.index] = *torsion;
        }
        for ((stiff, z), growth) in self.stiff.iter().zip(z).zip(growth) {
            *growth = power(t, stiff.exponent);
            let deviation = z * *growth;
            let mean = stiff.weights.iter().map(|&(k, weight)| weight * values[k]).sum::<f64>();
            let inside = !stiff.dihedral || deviation.abs() < std::f64::consts::PI;
            q[stiff.index] =
                if inside { stiff.centre + t * stiff.drift + mean + deviation } else { f64::NAN };
        }
    }

    /// Moves the soft torsions that have a map; returns its determinant.
    pub(super) fn map_soft(&self, ends: &Ends, internal: &mut [Atom]) -> Lane {
        let mut slope = Lane([1.0; WIDTH]);
        for soft in &self.soft {
            let Some(map) = &soft.map else { continue };
            let lane = &mut internal[soft.slot.0][soft.slot.1].0;
            for (i, angle) in lane.iter_mut().enumerate() {
                let (image, change) = map.apply(ends.from_beta[i], ends.to_beta[i], *angle);
                *angle = image;
                slope.0[i] *= change;
            }
        }
        for Residue { torsions, map } in &self.residues {
            let [phi, psi] = torsions.map(|torsion| self.soft[torsion].slot);
            for i in 0..WIDTH {
                let angles = [internal[phi.0][phi.1].0[i], internal[psi.0][psi.1].0[i]];
                let (image, change) = map.apply(ends.from_beta[i], ends.to_beta[i], angles);
                internal[phi.0][phi.1].0[i] = image[0];
                internal[psi.0][psi.1].0[i] = image[1];
                slope.0[i] *= change;
            }
        }
        slope
    }

    /// Moves the soft torsions of one row; returns the log of the maps' determinant.
    pub(super) fn map_row(&self, from: f64, to: f64, soft: &mut [f64]) -> f64 {
        if from == to {
            return 0.0;
        }
        let mut slope = 1.0;
        for (torsion, angle) in self.soft.iter().zip(soft.iter_mut()) {
            let Some(map) = &torsion.map else { continue };
            let (image, change) = map.apply(from, to, *angle);
            *angle = image;
            slope *= change;
        }
        for Residue { torsions: [phi, psi], map } in &self.residues {
            let (image, change) = map.apply(from, to, [soft[*phi], soft[*psi]]);
            [soft[*phi], soft[*psi]] = image;
            slope *= change;
        }
        ln(slope)
    }

    /// From a gradient in the images of one row's torsions to that in the torsions, with that of the log of the maps'
    /// determinant.
    pub(super) fn pull_back_row(&self, from: f64, to: f64, soft: &[f64], gradient: &mut [f64]) {
        if from == to {
            return;
        }
        let slope = |up: f64, down: f64| (up - down) / (2.0 * DIFFERENCE);
        for ((torsion, &angle), gradient) in self.soft.iter().zip(soft).zip(gradient.iter_mut()) {
            let Some(map) = &torsion.map else { continue };
            let (up, up_change) = map.apply(from, to, angle + DIFFERENCE);
            let (down, down_change) = map.apply(from, to, angle - DIFFERENCE);
            *gradient = *gradient * slope(up, down) + slope(ln(up_change), ln(down_change));
        }
        for Residue { torsions, map } in &self.residues {
            let [g_phi, g_psi] = torsions.map(|torsion| gradient[torsion]);
            for (axis, &torsion) in torsions.iter().enumerate() {
                let at = |h: f64| {
                    let mut angles = torsions.map(|torsion| soft[torsion]);
                    angles[axis] += h;
                    map.apply(from, to, angles)
                };
                let ((up, up_change), (down, down_change)) = (at(DIFFERENCE), at(-DIFFERENCE));
                gradient[torsion] = g_phi * slope(up[0], down[0])
                    + g_psi * slope(up[1], down[1])
                    + slope(ln(up_change), ln(down_change));
            }
        }
    }

    /// From a gradient in all internal coordinates of one conformation to that in its soft torsions with z kept: they
    /// also move the means of the stiff coordinates.
    pub(super) fn soft_gradient(&self, soft: &[f64], gradient: &[f64], out: &mut [f64]) {
        let mut adjoint = vec![0.0; self.features.count()];
        for stiff in &self.stiff {
            stiff.weights.iter().for_each(|&(k, weight)| adjoint[k] += weight * gradient[stiff.index]);
        }
        self.features.pull_back(soft, &adjoint, out);
        for (torsion, out) in self.soft.iter().zip(out) {
            *out += gradient[torsion.index];
        }
    }

    /// Number of equal positions of each soft torsion.
    pub fn symmetries(&self) -> Vec<usize> {
        let kind = |soft: &Soft| self.chart.internal.coordinates()[soft.index].kind;
        self.soft.iter().map(|soft| circle_model(kind(soft)).map_or(1, |model| model.symmetry)).collect()
    }
}

impl Flow for ConditionalAffine {
    fn forward(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        self.apply(Direction::Forward, pairs, x, log_det)
    }

    fn inverse(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        self.apply(Direction::Inverse, pairs, x, log_det)
    }
}
