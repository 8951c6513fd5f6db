//! How a conditional affine transport is fitted to samples of all chains.

use super::features::Features;
use super::{Residue, Soft, Stiff};
use crate::MoleculeError;
use crate::bond_graph::TorsionKind;
use crate::internal::{CoordinateKind, InternalCoordinates};
use crate::transports::circle::{CircleMap, CircleModel, Cut};
use crate::transports::ordered::{for_blocks, means};
use crate::transports::regression::Ridge;
use crate::transports::torus::TorusMap;
use crate::transports::{Chart, wrap};
use sterna::lanes::one::{ln, sin_cos};
use sterna::lanes::{Lanes, Portable, Vector};

/// Ridge penalty: as if so many samples had shown no dependence on a feature.
const PENALTY: f64 = 30.0;

/// Indices of soft torsions, and of everything else.
pub(super) fn soft_and_stiff(internal: &InternalCoordinates) -> (Vec<usize>, Vec<usize>) {
    let coordinates = internal.coordinates();
    (0..coordinates.len()).partition(|&c| !coordinates[c].kind.is_stiff())
}

/// The features of one row, and T / T_reference.
struct RowFeatures<'a> {
    features: &'a Features,
    soft: &'a [usize],
}

impl RowFeatures<'_> {
    fn write(&self, row: &[f64], t: f64, out: &mut [f64]) {
        let angle = |torsion: usize| {
            let (s, c) = sin_cos(row[self.soft[torsion]]);
            (Portable::splat(s), Portable::splat(c))
        };
        self.features.write(angle, |k, value: Portable| out[k] = value.to_array()[0]);
        out[self.features.count()] = t;
    }
}

/// What the stiff coordinates are regressed about.
struct Centres<'a> {
    stiff: &'a [usize],
    dihedral: Vec<bool>,
    centre: Vec<f64>,
}

impl<'a> Centres<'a> {
    fn new(chart: &Chart, stiff: &'a [usize], chains: &[(f64, Vec<f64>)]) -> Self {
        let dim = chart.internal.dim();
        let dihedral: Vec<bool> =
            stiff.iter().map(|&c| chart.internal.coordinates()[c].kind.is_dihedral()).collect();
        let coordinates: Vec<_> = stiff.iter().copied().zip(dihedral.iter().copied()).collect();
        let centre = means(chains.iter().map(|(_, rows)| &rows[..]), dim, &coordinates);
        Self { stiff, dihedral, centre }
    }

    fn deviations(&self, row: &[f64], out: &mut [f64]) {
        for (k, (&c, out)) in self.stiff.iter().zip(out).enumerate() {
            *out = row[c] - self.centre[k];
            if self.dihedral[k] {
                *out = wrap(*out);
            }
        }
    }
}

pub(super) fn fit_stiff(
    chart: &Chart,
    features: &Features,
    soft: &[usize],
    stiff: &[usize],
    chains: &[(f64, Vec<f64>)],
) -> Result<Vec<Stiff>, MoleculeError> {
    let dim = chart.internal.dim();
    let centres = Centres::new(chart, stiff, chains);
    let relative = |beta: f64| chart.temperatures.at(beta) / chart.temperatures.reference;
    let count = features.count();
    let row_features = RowFeatures { features, soft };
    let mut ridge = Ridge::new(count + 1, stiff.len());
    let width = ridge.width();
    for (beta, rows) in chains {
        let t = relative(*beta);
        let write = |row: &[f64], out: &mut [f64]| {
            let (x, y) = out.split_at_mut(count + 1);
            row_features.write(row, t, x);
            centres.deviations(row, y);
        };
        // Residuals spread as √T: a cold sample weighs more.
        for_blocks(rows, dim, width, write, |rows| ridge.add(1.0 / t, rows));
    }
    let mut fitted = Vec::new();
    for (k, &c) in stiff.iter().enumerate() {
        let mut inputs = features.near(&chart.internal, c, soft);
        inputs.push(count);
        let singular = || MoleculeError::Fit("the samples do not determine the means".into());
        let coefficients = ridge.solve(k, &inputs, PENALTY).ok_or_else(singular)?;
        let mut weights: Vec<(usize, f64)> = inputs.into_iter().zip(coefficients).collect();
        let drift = weights.pop().map_or(0.0, |(_, drift)| drift);
        fitted.push(Stiff {
            index: c,
            slot: chart.internal.slot(c),
            dihedral: centres.dihedral[k],
            centre: centres.centre[k],
            exponent: 0.5,
            drift,
            weights,
        });
    }
    // ln of the residuals' spread against ln T, a line per coordinate.
    let mut points = vec![Vec::new(); stiff.len()];
    for (beta, rows) in chains {
        let t = relative(*beta);
        let mut squares = vec![0.0; stiff.len()];
        let write = |row: &[f64], out: &mut [f64]| {
            let (x, y) = out.split_at_mut(count + 1);
            row_features.write(row, t, x);
            centres.deviations(row, y);
            for (stiff, y) in fitted.iter().zip(y) {
                let mean = stiff.drift * t + stiff.weights.iter().map(|&(k, w)| x[k] * w).sum::<f64>();
                let residual = if stiff.dihedral { wrap(*y - mean) } else { *y - mean };
                *y = residual * residual;
            }
        };
        for_blocks(rows, dim, width, write, |rows| {
            for row in rows.chunks_exact(width) {
                squares.iter_mut().zip(&row[count + 1..]).for_each(|(sum, square)| *sum += square);
            }
        });
        let count = (rows.len() / dim) as f64;
        for (points, sum) in points.iter_mut().zip(squares) {
            points.push((ln(t), 0.5 * ln(sum / count)));
        }
    }
    for (stiff, points) in fitted.iter_mut().zip(&points) {
        stiff.exponent = slope(points);
    }
    Ok(fitted)
}

/// The slope of a line through the points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (mx, my) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let (xx, xy) = points
        .iter()
        .fold((0.0, 0.0), |(xx, xy), p| (xx + (p.0 - mx) * (p.0 - mx), xy + (p.0 - mx) * (p.1 - my)));
    xy / xx
}

/// What is fitted to a soft torsion on its own.
pub(super) fn circle_model(kind: CoordinateKind) -> Option<CircleModel> {
    match kind {
        // Cis and trans apart.
        CoordinateKind::Torsion(TorsionKind::Omega) => {
            let cut = Cut::Halves(-std::f64::consts::FRAC_PI_2);
            Some(CircleModel { symmetry: 1, harmonics: 4, cut })
        }
        // Cut where the group eclipses.
        CoordinateKind::Torsion(TorsionKind::Methyl) => {
            Some(CircleModel { symmetry: 3, harmonics: 2, cut: Cut::Lowest })
        }
        _ => None,
    }
}

pub(super) fn fit_soft(chart: &Chart, c: usize, chains: &[(f64, Vec<f64>)]) -> Soft {
    let dim = chart.internal.dim();
    let angles = |rows: &[f64]| rows[c..].iter().step_by(dim).copied().collect();
    let map = circle_model(chart.internal.coordinates()[c].kind).map(|model| {
        let chains: Vec<(f64, Vec<f64>)> = chains.iter().map(|(beta, rows)| (*beta, angles(rows))).collect();
        CircleMap::fit(&chains, model)
    });
    Soft { index: c, slot: chart.internal.slot(c), map }
}

/// φ and ψ of each residue that has both.
pub(super) fn residues(internal: &InternalCoordinates) -> Vec<[usize; 2]> {
    let axis = |c: usize| &internal.coordinates()[c].atoms[1..3];
    // The two axes N–Cα and Cα–C share Cα.
    let shares = |phi: usize, psi: usize| axis(psi).iter().any(|atom| axis(phi).contains(atom));
    let partner = |phi| Some([phi, internal.torsions(TorsionKind::Psi).find(|&psi| shares(phi, psi))?]);
    internal.torsions(TorsionKind::Phi).filter_map(partner).collect()
}

/// Where coordinate `c` is among the soft torsions.
pub(super) fn position(soft: &[usize], c: usize) -> usize {
    soft.iter().position(|&s| s == c).expect("a soft torsion")
}

pub(super) fn fit_residue(
    chart: &Chart,
    soft: &[usize],
    [phi, psi]: [usize; 2],
    chains: &[(f64, Vec<f64>)],
) -> Residue {
    let dim = chart.internal.dim();
    let angles = |rows: &[f64]| rows.chunks(dim).map(|row| [row[phi], row[psi]]).collect();
    let chains: Vec<(f64, Vec<[f64; 2]>)> = chains.iter().map(|(beta, rows)| (*beta, angles(rows))).collect();
    Residue { torsions: [phi, psi].map(|c| position(soft, c)), map: TorusMap::fit(&chains) }
}
