//! Temperature scaling: the stiff coordinates of a harmonic molecule spread as √T about their means, which move a little
//! with T (bonds and angles prefer volume, and no well is quite symmetric) and are not the same for cis and trans peptide
//! bonds, which hot chains turn.

use super::ordered::{for_blocks, means};
use super::regression::Ridge;
use super::{ChainSamples, Chart, Direction, Ends, Parameters, Temperatures, wrap};
use crate::bond_graph::TorsionKind;
use crate::kernel::Atom;
use crate::lane_math::{Lane, wrap_lanes};
use crate::{Molecule, MoleculeError};
use std::cell::RefCell;
use sterna::Batch;
use sterna::call::Scratch;
use sterna::lanes::one::cos;
use sterna::lanes::{Kernel, Lanes, dispatch, ln, sin_cos};
use sterna::transport::{Flow, Interval};

/// Ridge penalty: as if so many samples had shown no change of the means.
const PENALTY: f64 = 30.0;

/// A stiff coordinate: where it is, and its mean.
#[derive(Clone, Debug)]
struct Stiff {
    slot: (usize, usize),
    dihedral: bool,
    mean: f64,
    /// Change of the mean with T / T_reference.
    drift: f64,
    /// Change of the mean with cos ω of each peptide bond.
    isomers: Vec<f64>,
}

/// q ↦ μ(T′) + √(T′/T) (q − μ(T)) on bonds, angles and impropers; torsions stay. Only the means are fitted, linear in T
/// and in cos ω of the peptide bonds.
///
/// ```
/// use sterna::call::Scratch;
/// use sterna::{Batch, transport::{Flow, Interval}};
/// use sterna_molecule::{ChainSamples, TemperatureScaling, Temperatures, alanine_dipeptide};
///
/// let molecule = alanine_dipeptide(300.0).unwrap();
/// let start = Batch::from_vec(63, molecule.start().to_vec());
/// let path = Temperatures { reference: 1200.0, target: 300.0 };
/// let samples = [ChainSamples { beta: 1.0, points: &start }];
/// let flow = TemperatureScaling::fit(&molecule, path, &samples).unwrap();
/// let (mut x, mut log_det) = (start.clone(), [0.0]);
/// let pair = Interval { lower: 0.0, upper: 1.0 };
/// flow.forward(&[pair], &mut x, &mut log_det, &mut Scratch::default()).unwrap();
/// // 53 stiff coordinates, each halved in spread; the mean itself stays.
/// assert!((log_det[0] - 53.0 * 0.5f64.ln()).abs() < 1e-9);
/// assert!(x.row(0).iter().zip(start.row(0)).all(|(a, b)| (a - b).abs() < 1e-9));
/// ```
#[derive(Clone, Debug)]
pub struct TemperatureScaling {
    chart: Chart,
    /// Where the torsions ω are in a block.
    omegas: Vec<(usize, usize)>,
    stiff: Vec<Stiff>,
}

impl TemperatureScaling {
    /// Takes the means from samples of any chains; those of one chain alone are taken to hold at all temperatures.
    pub fn fit(
        molecule: &Molecule,
        temperatures: Temperatures,
        samples: &[ChainSamples],
    ) -> Result<Self, MoleculeError> {
        let chart = Chart::new(molecule, temperatures)?;
        let dim = chart.internal.dim();
        let mut chains = Vec::new();
        for chain in samples {
            let rows = chart.internal_rows(chain.points)?;
            if !rows.is_empty() {
                chains.push((temperatures.at(chain.beta) / temperatures.reference, rows));
            }
        }
        if chains.is_empty() {
            return Err(MoleculeError::Fit("there are no samples".into()));
        }
        let omegas: Vec<usize> = chart.internal.torsions(TorsionKind::Omega).collect();
        let stiff = chart.stiff();
        let dihedral = |c: usize| chart.internal.coordinates()[c].kind.is_dihedral();
        // Deviations from a centre, so that dihedrals can be averaged.
        let coordinates: Vec<_> = stiff.iter().map(|&c| (c, dihedral(c))).collect();
        let mut centres = means(chains.iter().map(|(_, rows)| &rows[..]), dim, &coordinates);
        let lengths = centres.iter_mut().zip(&coordinates).filter(|(_, (_, dihedral))| !dihedral);
        lengths.for_each(|(centre, _)| *centre = 0.0);
        let count = 2 + omegas.len();
        let mut ridge = Ridge::new(count, stiff.len());
        for (t, rows) in &chains {
            let write = |row: &[f64], out: &mut [f64]| {
                let (x, y) = out.split_at_mut(count);
                x[..2].copy_from_slice(&[1.0, *t]);
                x[2..].iter_mut().zip(&omegas).for_each(|(x, &omega)| *x = cos(row[omega]));
                for (k, (y, &c)) in y.iter_mut().zip(&stiff).enumerate() {
                    *y = if dihedral(c) { wrap(row[c] - centres[k]) } else { row[c] };
                }
            };
            // Residuals spread as √T: a cold sample weighs more.
            for_blocks(rows, dim, ridge.width(), write, |rows| ridge.add(1.0 / t, rows));
        }
        let inputs: Vec<usize> = (0..count).collect();
        let fitted = stiff.iter().enumerate().map(|(k, &c)| {
            let coefficients = ridge.solve(k, &inputs, PENALTY);
            let b = coefficients
                .ok_or_else(|| MoleculeError::Fit("the samples do not determine the means".into()))?;
            let (slot, mean) = (chart.internal.slot(c), centres[k] + b[0]);
            Ok(Stiff { slot, dihedral: dihedral(c), mean, drift: b[1], isomers: b[2..].to_vec() })
        });
        let stiff = fitted.collect::<Result<_, MoleculeError>>()?;
        let omegas = omegas.iter().map(|&c| chart.internal.slot(c)).collect();
        Ok(Self { chart, omegas, stiff })
    }

    /// The means, as plain numbers: [`from_parameters`](Self::from_parameters) makes the same transport.
    pub fn parameters(&self) -> Vec<f64> {
        let each = |stiff: &Stiff| [stiff.mean, stiff.drift].into_iter().chain(stiff.isomers.clone());
        self.stiff.iter().flat_map(each).collect()
    }

    /// The transport with the given [`parameters`](Self::parameters), of the same molecule.
    pub fn from_parameters(
        molecule: &Molecule,
        temperatures: Temperatures,
        parameters: &[f64],
    ) -> Result<Self, MoleculeError> {
        let chart = Chart::new(molecule, temperatures)?;
        let mut rest = Parameters(parameters);
        let omegas: Vec<_> =
            chart.internal.torsions(TorsionKind::Omega).map(|c| chart.internal.slot(c)).collect();
        let mut stiff = Vec::new();
        for c in chart.stiff() {
            stiff.push(Stiff {
                slot: chart.internal.slot(c),
                dihedral: chart.internal.coordinates()[c].kind.is_dihedral(),
                mean: rest.one()?,
                drift: rest.one()?,
                isomers: rest.take(omegas.len())?.to_vec(),
            });
        }
        rest.end()?;
        Ok(Self { chart, omegas, stiff })
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
        SCRATCH.with_borrow_mut(|cosines| {
            cosines.resize(self.omegas.len(), Lane::default());
            self.chart.transport(direction, pairs, x, log_det, |ends, internal| {
                let mut log_det = Lane::default();
                dispatch(Scale { flow: self, ends, internal, cosines, log_det: &mut log_det });
                log_det
            })
        })
    }
}

impl Flow for TemperatureScaling {
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

struct Scale<'a> {
    flow: &'a TemperatureScaling,
    ends: &'a Ends,
    internal: &'a mut [Atom],
    cosines: &'a mut [Lane],
    log_det: &'a mut Lane,
}

impl Kernel for Scale<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { flow, ends, internal, cosines, log_det: out } = self;
        let (from, to) = (L::load(&ends.from.0), L::load(&ends.to.0));
        let ratio = to / from;
        let per_reference = L::splat(1.0 / flow.chart.temperatures.reference);
        let (from, to) = (from * per_reference, to * per_reference);
        let factor = ratio.sqrt();
        let mut log_det = ln(ratio) * L::splat(0.5 * flow.stiff.len() as f64);
        let half_turn = L::splat(std::f64::consts::PI);
        for (cosine, omega) in cosines.iter_mut().zip(&flow.omegas) {
            sin_cos(L::load(&internal[omega.0][omega.1].0)).1.store(&mut cosine.0);
        }
        for stiff in &flow.stiff {
            let mut mean = L::splat(stiff.mean);
            for (cosine, weight) in cosines.iter().zip(&stiff.isomers) {
                mean = L::load(&cosine.0).mul_add(L::splat(*weight), mean);
            }
            let mean = |t: L| t.mul_add(L::splat(stiff.drift), mean);
            let lane = &mut internal[stiff.slot.0][stiff.slot.1].0;
            let mut deviation = L::load(lane) - mean(from);
            if stiff.dihedral {
                deviation = wrap_lanes(deviation);
            }
            deviation = deviation * factor;
            if stiff.dihedral {
                let inside = deviation.abs().lt(half_turn);
                log_det = L::select(inside, log_det, L::splat(f64::NEG_INFINITY));
            }
            (mean(to) + deviation).store(lane);
        }
        log_det.store(&mut out.0);
    }
}
