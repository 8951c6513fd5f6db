//! Temperature scaling: the stiff coordinates of a harmonic molecule spread as √T about their means.

use super::{ChainSamples, Chart, Direction, Ends, Parameters, Temperatures, circular_mean};
use crate::kernel::Atom;
use crate::lane_math::{Lane, wrap_lanes};
use crate::{Molecule, MoleculeError};
use sterna::Batch;
use sterna::lanes::{Kernel, Lanes, dispatch, ln};
use sterna::transport::{Flow, Interval};

/// A stiff coordinate: where it is, and its mean.
#[derive(Clone, Copy, Debug)]
struct Stiff {
    slot: (usize, usize),
    dihedral: bool,
    mean: f64,
}

/// q ↦ μ + √(T′/T) (q − μ) on bonds, angles and impropers; torsions stay. Only the means are fitted.
///
/// ```
/// use sterna::{Batch, transport::{Flow, Interval}};
/// use sterna_molecule::{ChainSamples, TemperatureScaling, Temperatures, alanine_dipeptide};
///
/// let molecule = alanine_dipeptide(300.0).unwrap();
/// let start = Batch::from_vec(63, molecule.start().to_vec());
/// let path = Temperatures { reference: 1200.0, target: 300.0 };
/// let samples = [ChainSamples { beta: 1.0, points: &start }];
/// let flow = TemperatureScaling::fit(&molecule, path, &samples).unwrap();
/// let (mut x, mut log_det) = (start.clone(), [0.0]);
/// flow.forward(&[Interval { lower: 0.0, upper: 1.0 }], &mut x, &mut log_det).unwrap();
/// // 53 stiff coordinates, each halved in spread; the mean itself stays.
/// assert!((log_det[0] - 53.0 * 0.5f64.ln()).abs() < 1e-9);
/// assert!(x.row(0).iter().zip(start.row(0)).all(|(a, b)| (a - b).abs() < 1e-9));
/// ```
#[derive(Clone, Debug)]
pub struct TemperatureScaling {
    chart: Chart,
    stiff: Vec<Stiff>,
}

impl TemperatureScaling {
    /// Takes the means from samples of any chains, pooled.
    pub fn fit(
        molecule: &Molecule,
        temperatures: Temperatures,
        samples: &[ChainSamples],
    ) -> Result<Self, MoleculeError> {
        let chart = Chart::new(molecule, temperatures)?;
        let dim = chart.internal.dim();
        let mut rows = Vec::new();
        for chain in samples {
            rows.extend(chart.internal_rows(chain.points)?);
        }
        if rows.is_empty() {
            return Err(MoleculeError::Fit("there are no samples".into()));
        }
        let mut stiff = Vec::new();
        for (c, coordinate) in chart.internal.coordinates().iter().enumerate() {
            if coordinate.kind.is_stiff() {
                let dihedral = coordinate.kind.is_dihedral();
                let values = rows[c..].iter().step_by(dim).copied();
                let mean = if dihedral {
                    circular_mean(values)
                } else {
                    values.sum::<f64>() * dim as f64 / rows.len() as f64
                };
                stiff.push(Stiff { slot: chart.internal.slot(c), dihedral, mean });
            }
        }
        Ok(Self { chart, stiff })
    }

    /// The means, as plain numbers: [`from_parameters`](Self::from_parameters) makes the same transport.
    pub fn parameters(&self) -> Vec<f64> {
        self.stiff.iter().map(|stiff| stiff.mean).collect()
    }

    /// The transport with the given [`parameters`](Self::parameters), of the same molecule.
    pub fn from_parameters(
        molecule: &Molecule,
        temperatures: Temperatures,
        parameters: &[f64],
    ) -> Result<Self, MoleculeError> {
        let chart = Chart::new(molecule, temperatures)?;
        let mut rest = Parameters(parameters);
        let mut stiff = Vec::new();
        for (c, coordinate) in chart.internal.coordinates().iter().enumerate() {
            if coordinate.kind.is_stiff() {
                let (slot, dihedral) = (chart.internal.slot(c), coordinate.kind.is_dihedral());
                stiff.push(Stiff { slot, dihedral, mean: rest.one()? });
            }
        }
        rest.end()?;
        Ok(Self { chart, stiff })
    }

    fn apply(
        &self,
        direction: Direction,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
    ) -> sterna::Result<()> {
        self.chart.transport(direction, pairs, x, log_det, |ends, internal| {
            let mut log_det = Lane::default();
            dispatch(Scale { stiff: &self.stiff, ends, internal, log_det: &mut log_det });
            log_det
        })
    }
}

impl Flow for TemperatureScaling {
    fn forward(&self, pairs: &[Interval], x: &mut Batch, log_det: &mut [f64]) -> sterna::Result<()> {
        self.apply(Direction::Forward, pairs, x, log_det)
    }

    fn inverse(&self, pairs: &[Interval], x: &mut Batch, log_det: &mut [f64]) -> sterna::Result<()> {
        self.apply(Direction::Inverse, pairs, x, log_det)
    }
}

struct Scale<'a> {
    stiff: &'a [Stiff],
    ends: &'a Ends,
    internal: &'a mut [Atom],
    log_det: &'a mut Lane,
}

impl Kernel for Scale<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let ratio = L::load(&self.ends.to.0) / L::load(&self.ends.from.0);
        let factor = ratio.sqrt();
        let mut log_det = ln(ratio) * L::splat(0.5 * self.stiff.len() as f64);
        let half_turn = L::splat(std::f64::consts::PI);
        for stiff in self.stiff {
            let lane = &mut self.internal[stiff.slot.0][stiff.slot.1].0;
            let mut deviation = L::load(lane) - L::splat(stiff.mean);
            if stiff.dihedral {
                deviation = wrap_lanes(deviation);
            }
            deviation = deviation * factor;
            if stiff.dihedral {
                let inside = deviation.abs().lt(half_turn);
                log_det = L::select(inside, log_det, L::splat(f64::NEG_INFINITY));
            }
            (L::splat(stiff.mean) + deviation).store(lane);
        }
        log_det.store(&mut self.log_det.0);
    }
}
