//! Temperature scaling: the stiff coordinates of a harmonic molecule spread as √T about their means, which move a little
//! with T: bonds and angles prefer volume (their Jacobian), and no well is quite symmetric.

use super::{ChainSamples, Chart, Direction, Ends, Parameters, Temperatures, circular_mean, wrap};
use crate::kernel::Atom;
use crate::lane_math::{Lane, wrap_lanes};
use crate::{Molecule, MoleculeError};
use sterna::Batch;
use sterna::lanes::{Kernel, Lanes, dispatch, ln};
use sterna::transport::{Flow, Interval};

/// A stiff coordinate: where it is, and its mean, a line in T / T_reference.
#[derive(Clone, Copy, Debug)]
struct Stiff {
    slot: (usize, usize),
    dihedral: bool,
    mean: f64,
    /// Change of the mean with T / T_reference.
    drift: f64,
}

/// q ↦ μ(T′) + √(T′/T) (q − μ(T)) on bonds, angles and impropers; torsions stay. Only the means are fitted, as lines in
/// T.
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
        let mut stiff = Vec::new();
        for (c, coordinate) in chart.internal.coordinates().iter().enumerate() {
            if !coordinate.kind.is_stiff() {
                continue;
            }
            let dihedral = coordinate.kind.is_dihedral();
            let values = |rows: &'_ [f64]| rows[c..].iter().step_by(dim).copied().collect::<Vec<f64>>();
            // Deviations from a centre, so that dihedrals can be averaged.
            let centre =
                if dihedral { circular_mean(chains.iter().flat_map(|(_, rows)| values(rows))) } else { 0.0 };
            let mut line = Line::default();
            for (t, rows) in &chains {
                for value in values(rows) {
                    let deviation = if dihedral { wrap(value - centre) } else { value };
                    // Residuals spread as √T: a cold sample weighs more.
                    line.add(1.0 / t, *t, deviation);
                }
            }
            let (constant, drift) = line.solve();
            stiff.push(Stiff { slot: chart.internal.slot(c), dihedral, mean: centre + constant, drift });
        }
        Ok(Self { chart, stiff })
    }

    /// The means, as plain numbers: [`from_parameters`](Self::from_parameters) makes the same transport.
    pub fn parameters(&self) -> Vec<f64> {
        self.stiff.iter().flat_map(|stiff| [stiff.mean, stiff.drift]).collect()
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
                stiff.push(Stiff { slot, dihedral, mean: rest.one()?, drift: rest.one()? });
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
            let reference = self.chart.temperatures.reference;
            dispatch(Scale { stiff: &self.stiff, reference, ends, internal, log_det: &mut log_det });
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

/// A weighted least-squares line.
#[derive(Default)]
struct Line {
    weight: f64,
    t: f64,
    y: f64,
    tt: f64,
    ty: f64,
}

impl Line {
    fn add(&mut self, weight: f64, t: f64, y: f64) {
        self.weight += weight;
        self.t += weight * t;
        self.y += weight * y;
        self.tt += weight * t * t;
        self.ty += weight * t * y;
    }

    /// Constant and slope; the slope is 0 where all t are the same.
    fn solve(&self) -> (f64, f64) {
        let (t, y) = (self.t / self.weight, self.y / self.weight);
        let (spread, product) = (self.tt / self.weight - t * t, self.ty / self.weight - t * y);
        let slope = if spread > 1e-9 { product / spread } else { 0.0 };
        (y - slope * t, slope)
    }
}

struct Scale<'a> {
    stiff: &'a [Stiff],
    reference: f64,
    ends: &'a Ends,
    internal: &'a mut [Atom],
    log_det: &'a mut Lane,
}

impl Kernel for Scale<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (from, to) = (L::load(&self.ends.from.0), L::load(&self.ends.to.0));
        let ratio = to / from;
        let per_reference = L::splat(1.0 / self.reference);
        let (from, to) = (from * per_reference, to * per_reference);
        let factor = ratio.sqrt();
        let mut log_det = ln(ratio) * L::splat(0.5 * self.stiff.len() as f64);
        let half_turn = L::splat(std::f64::consts::PI);
        for stiff in self.stiff {
            let lane = &mut self.internal[stiff.slot.0][stiff.slot.1].0;
            let mean = |t: L| t.mul_add(L::splat(stiff.drift), L::splat(stiff.mean));
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
        log_det.store(&mut self.log_det.0);
    }
}
