//! GMM-d: 40 Gaussian modes in the plane, padded with zeros to d dimensions (App. E.1).

use crate::call::Scratch;
use crate::lanes::one::{self, LN_TAU};
use crate::lanes::{Kernel, Lanes, WIDTH, dispatch, exp, for_each_chunk, ln};
use crate::streams::RowStream;
use crate::transport::EnergyModel;
use crate::{Batch, Evaluation, Result, Target};

/// Components this far (in log) below the nearest one count as zero: 40 e⁻⁴⁵ is below rounding.
const NEGLIGIBLE: f64 = -45.0;

/// An equal-weight mixture of isotropic Gaussians whose means lie in the first two coordinates.
///
/// ```
/// use sterna::{Target, targets::Gmm};
/// let gmm = Gmm::paper(10);
/// assert_eq!((gmm.dim(), gmm.log_z()), (10, Some(0.0)));
/// ```
#[derive(Clone, Debug)]
pub struct Gmm {
    dim: usize,
    means: Vec<[f64; 2]>,
    standard_deviation: f64,
}

impl Gmm {
    /// The paper's: means and unit standard deviation of the 40-mode mixture, all divided by 40.
    pub fn paper(dim: usize) -> Self {
        Self::new(dim, MEANS.iter().map(|m| [m[0] / 40.0, m[1] / 40.0]).collect(), 1.0 / 40.0)
    }

    /// Any means, one standard deviation.
    ///
    /// # Panics
    /// If there is no mean, `dim` < 2 or the standard deviation is not positive.
    pub fn new(dim: usize, means: Vec<[f64; 2]>, standard_deviation: f64) -> Self {
        assert!(dim >= 2 && !means.is_empty() && standard_deviation > 0.0);
        Self { dim, means, standard_deviation }
    }

    /// Means in the plane.
    pub fn means(&self) -> &[[f64; 2]] {
        &self.means
    }

    /// Standard deviation of each component in each coordinate.
    pub fn standard_deviation(&self) -> f64 {
        self.standard_deviation
    }

    /// Component whose mean is nearest to a point.
    pub fn nearest_mode(&self, x: &[f64]) -> usize {
        let distance = |m: &[f64; 2]| (x[0] - m[0]).powi(2) + (x[1] - m[1]).powi(2);
        let best = self.means.iter().enumerate().min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
        best.expect("at least one mean").0
    }
}

/// √s X + √(1−s) Z is the mixture of means √s μ and variance sσ² + 1 − s (§5.3).
impl EnergyModel for Gmm {
    fn evaluate(&self, times: &[f64], x: &Batch, out: &mut Evaluation, _scratch: &mut Scratch) -> Result<()> {
        dispatch(Mixture { gmm: self, times: Some(times), x, out });
        Ok(())
    }

    fn log_z_reference(&self) -> f64 {
        0.0
    }
}

impl Target for Gmm {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        dispatch(Mixture { gmm: self, times: None, x, out });
        Ok(())
    }

    fn log_z(&self) -> Option<f64> {
        Some(0.0)
    }

    fn diffused(&self) -> Option<&dyn EnergyModel> {
        Some(self)
    }

    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) -> bool {
        let mean = self.means[stream.below(self.means.len())];
        for (j, x) in x.iter_mut().enumerate() {
            *x = mean.get(j).copied().unwrap_or(0.0) + self.standard_deviation * stream.normal();
        }
        true
    }
}

struct Mixture<'a> {
    gmm: &'a Gmm,
    times: Option<&'a [f64]>,
    x: &'a Batch,
    out: &'a mut Evaluation,
}

impl Kernel for Mixture<'_> {
    type Output = ();

    /// Eight rows at a time; the mixture needs two coordinates, the others only their norm.
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let dim = self.gmm.dim;
        let variance = self.gmm.standard_deviation * self.gmm.standard_deviation;
        let half_log_tau = 0.5 * LN_TAU;
        let log_normaliser = -one::ln(self.gmm.means.len() as f64) - dim as f64 * half_log_tau;
        for first in (0..self.x.rows()).step_by(WIDTH) {
            let rows = (self.x.rows() - first).min(WIDTH);
            let x = &self.x.as_slice()[first * dim..(first + rows) * dim];
            let score = &mut self.out.score.as_mut_slice()[first * dim..(first + rows) * dim];
            let s = match self.times {
                None => L::splat(1.0),
                Some(times) => L::load_column(&times[first..first + rows], 1, 0),
            };
            let shrink = s.sqrt();
            let variance = s.mul_add(L::splat(variance), L::splat(1.0) - s);
            let precision = L::splat(1.0) / variance;
            let (x0, x1) = (L::load_column(x, dim, 0), L::load_column(x, dim, 1));
            // Exponents −q, q = (x − √s μ)²/(2v), for all components.
            let unit = (precision * L::splat(0.5)).sqrt();
            let (y0, y1) = (x0 * unit, x1 * unit);
            let minus_scale = -(shrink * unit);
            let exponent = |mean: &[f64; 2]| {
                let a = minus_scale.mul_add(L::splat(mean[0]), y0);
                let b = minus_scale.mul_add(L::splat(mean[1]), y1);
                b.mul_add(b, a * a)
            };
            let mut nearest = L::splat(f64::INFINITY);
            for mean in &self.gmm.means {
                nearest = nearest.min(exponent(mean));
            }
            let negligible = L::splat(NEGLIGIBLE);
            let zero = L::splat(0.0);
            let (mut sum, mut sum0, mut sum1) = (zero, zero, zero);
            for mean in &self.gmm.means {
                let t = nearest - exponent(mean);
                if L::any(negligible.lt(t)) {
                    let e = L::select(negligible.lt(t), exp(t), zero);
                    sum = sum + e;
                    sum0 = e.mul_add(L::splat(mean[0]), sum0);
                    sum1 = e.mul_add(L::splat(mean[1]), sum1);
                }
            }
            let shrink_over_sum = shrink / sum;
            let score0 = (sum0 * shrink_over_sum - x0) * precision;
            let score1 = (sum1 * shrink_over_sum - x1) * precision;
            score0.store_column(score, dim, 0);
            score1.store_column(score, dim, 1);
            // The other coordinates: one Gaussian.
            let mut norms = [0.0; WIDTH];
            let precisions = precision.to_array();
            for (lane, (x, score)) in x.chunks_exact(dim).zip(score.chunks_exact_mut(dim)).enumerate() {
                let minus_precision = L::splat(-precisions[lane]);
                let mut norm = zero;
                for_each_chunk!(dim - 2, |chunk| {
                    let x = L::load_some(&x[2..][chunk.clone()]);
                    norm = x.mul_add(x, norm);
                    (x * minus_precision).store_some(&mut score[2..][chunk]);
                });
                norms[lane] = norm.sum();
            }
            let rest = L::load(&norms) * precision * L::splat(-0.5);
            let log_volume = ln(variance) * L::splat(-0.5 * dim as f64) + L::splat(log_normaliser);
            let log_density = (ln(sum) - nearest) + rest + log_volume;
            log_density.store_some(&mut self.out.log_density[first..first + rows]);
        }
    }
}

/// The 40 means of the paper's mixture before scaling, uniform on [−40, 40]²: the draw of fab-jax (errata E19). In the plane; divided by 40 they are those of GMM-d.
pub const MEANS: [[f64; 2]; 40] = [
    [-15.758228302001953, 18.116531372070312],
    [-34.80889129638672, 21.225481033325195],
    [-21.76513671875, 19.893016815185547],
    [19.618091583251953, 23.734512329101562],
    [0.6401824951171875, -21.548309326171875],
    [-1.3473033905029297, 37.90000915527344],
    [25.29590606689453, -25.762271881103516],
    [12.503299713134766, -26.195926666259766],
    [6.8853759765625, 4.035634994506836],
    [0.0054073333740234375, -28.756885528564453],
    [33.22948455810547, 36.16539764404297],
    [15.640439987182617, -11.946744918823242],
    [5.994968414306641, 38.748390197753906],
    [-5.022172927856445, 11.569452285766602],
    [17.672758102416992, -5.487680435180664],
    [35.5702018737793, 5.955076217651367],
    [-38.67292404174805, 19.69986915588379],
    [19.318513870239258, 21.983718872070312],
    [22.908039093017578, -14.736185073852539],
    [-39.059112548828125, -22.083759307861328],
    [-9.200553894042969, 27.55716323852539],
    [35.50334167480469, -12.961893081665039],
    [28.745250701904297, -12.275228500366211],
    [26.085777282714844, -37.18516540527344],
    [-3.7007522583007812, 30.03413200378418],
    [-17.882003784179688, 21.448373794555664],
    [22.523679733276367, -25.426177978515625],
    [-38.35031509399414, -32.076881408691406],
    [-32.713043212890625, 38.18202209472656],
    [21.340065002441406, -0.3297138214111328],
    [11.657438278198242, 37.538177490234375],
    [-7.341241836547852, 18.042287826538086],
    [27.470455169677734, -27.388534545898438],
    [20.038156509399414, -13.646907806396484],
    [1.2733173370361328, -12.627477645874023],
    [-14.654884338378906, 35.71522521972656],
    [24.881296157836914, 18.526411056518555],
    [-2.6267337799072266, 1.1417579650878906],
    [11.48158073425293, 28.487415313720703],
    [19.6560001373291, -8.141679763793945],
];
