//! A path through exponents of its own: π̃^β = η^a(β) π̃^b(β), where (a, b) leads in straight lines over knots from (1, 0) to (0, 1)
//! (Syed, Romaniello, Campbell, Bouchard-Côté, "Parallel tempering on optimized paths", 2021).
//!
//! The geometric path is the straight line between these ends. Where reference and target hardly overlap, laws in between that
//! are wider than either lie behind a lower barrier, and there both exponents are small. Whatever the knots are, both ends are
//! what they were, so draws and log Z are exact; tuning moves them ([`Bend`](crate::bend::Bend)).

use super::Geometric;
use crate::call::Scratch;
use crate::path::{AnnealingPath, Points};
use crate::path_formula::{powers_log_density, powers_score};
use crate::streams::{PhaseKey, Streams};
use crate::{Batch, Error, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Where the path bends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knot {
    /// The place.
    pub beta: f64,
    /// Exponent of the reference there.
    pub reference: f64,
    /// Exponent of the target there.
    pub target: f64,
}

/// The path over knots, from the reference of a geometric path to its target.
///
/// ```
/// use sterna::{Points, path::AnnealingPath, paths::{Geometric, Knot, Spline}, targets::Normal};
/// let ground = Geometric::from_standard_normal(Normal::isotropic(1, 4.0));
/// let middle = Knot { beta: 0.5, reference: 0.2, target: 0.1 };
/// let path = Spline::new(ground, vec![middle]).unwrap();
/// assert_eq!(path.powers(0.25), [0.6, 0.05]);
/// let mut points = Points::zeros(1, 1);
/// points.x.row_mut(0)[0] = 1.0;
/// path.evaluate(&[0.5], &mut points).unwrap();
/// assert!((points.score.row(0)[0] + 0.2 * 1.0 + 0.1 * 4.0).abs() < 1e-12);
/// ```
#[derive(Clone)]
pub struct Spline {
    ground: Arc<Geometric>,
    /// From (1, 0) at β = 0 to (0, 1) at β = 1.
    knots: Vec<Knot>,
}

impl Spline {
    /// Over knots strictly between the ends, by increasing β.
    pub fn new(ground: impl Into<Arc<Geometric>>, between: Vec<Knot>) -> Result<Self> {
        let ground = ground.into();
        let wrong = |value: String, cure| Err(Error::Setting { setting: "Spline.knots", value, cure });
        if ground.anchor().is_some() {
            return wrong("two legs".into(), "a path over knots leads from a reference to the target alone");
        }
        let first = Knot { beta: 0.0, reference: 1.0, target: 0.0 };
        let last = Knot { beta: 1.0, reference: 0.0, target: 1.0 };
        let knots: Vec<Knot> = std::iter::once(first).chain(between).chain([last]).collect();
        let rises = |pair: &[Knot]| pair[0].beta < pair[1].beta;
        if let Some(pair) = knots.windows(2).find(|pair| !rises(pair)) {
            let cure = "knots lie between 0 and 1, each at a larger beta than the one before";
            return wrong(format!("beta = {}", pair[1].beta), cure);
        }
        let is_power = |power: f64| power > 0.0 && power.is_finite();
        let between = &knots[1..knots.len() - 1];
        if let Some(knot) = between.iter().find(|knot| !is_power(knot.reference) || !is_power(knot.target)) {
            let cure = "exponents are positive numbers: only then is what lies between a density";
            return wrong(format!("{}, {}", knot.reference, knot.target), cure);
        }
        Ok(Self { ground, knots })
    }

    /// The geometric path with the same ends.
    pub fn ground(&self) -> &Arc<Geometric> {
        &self.ground
    }

    /// Knots between the ends.
    pub fn knots(&self) -> &[Knot] {
        &self.knots[1..self.knots.len() - 1]
    }

    /// Exponents of reference and target.
    pub fn powers(&self, beta: f64) -> [f64; 2] {
        let (lower, upper, share) = self.piece(beta);
        [(lower.reference, upper.reference), (lower.target, upper.target)]
            .map(|(a, b)| (1.0 - share) * a + share * b)
    }

    /// The straight line on which β lies, and how far along.
    fn piece(&self, beta: f64) -> (&Knot, &Knot, f64) {
        let n = self.knots.partition_point(|knot| knot.beta < beta).clamp(1, self.knots.len() - 1);
        let (lower, upper) = (&self.knots[n - 1], &self.knots[n]);
        (lower, upper, ((beta - lower.beta) / (upper.beta - lower.beta)).clamp(0.0, 1.0))
    }
}

impl AnnealingPath for Spline {
    fn dim(&self) -> usize {
        self.ground.dim()
    }

    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        self.ground.target().evaluate(&points.x, &mut points.target)?;
        self.move_to(betas, points)
    }

    fn move_to(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        let Points { x, log_density, score, log_reference, target, scratch } = points;
        let work: &mut Vec<f64> = scratch.get();
        for (i, &beta) in betas.iter().enumerate() {
            let (powers, score) = (self.powers(beta), score.row_mut(i));
            log_reference[i] = self.ground.reference().evaluate(x.row(i), score, work);
            let ends = [log_reference[i], target.log_density[i]];
            // At β = 0 the target has no say, whatever it is there.
            if powers[1] == 0.0 {
                log_density[i] = ends[0];
                continue;
            }
            log_density[i] =
                if ends[1] < f64::INFINITY { powers_log_density(powers, ends) } else { f64::NEG_INFINITY };
            let scores = score.iter_mut().zip(target.score.row(i));
            scores.for_each(|(score, &of_target)| *score = powers_score(powers, [*score, of_target]));
        }
        Ok(())
    }

    fn slopes(&self, betas: &[f64], points: &Points, out: &mut [f64], _scratch: &mut Scratch) -> Result<()> {
        for (i, out) in out.iter_mut().enumerate() {
            let (lower, upper, _) = self.piece(betas[i]);
            let width = upper.beta - lower.beta;
            let rise = [(upper.reference - lower.reference) / width, (upper.target - lower.target) / width];
            *out = powers_log_density(rise, [points.log_reference[i], points.target.log_density[i]]);
        }
        Ok(())
    }

    fn draw_reference(
        &self,
        end: f64,
        streams: &Streams,
        phase: PhaseKey,
        iteration: u64,
        rows: &[u32],
        x: &mut Batch,
    ) {
        self.ground.draw_reference(end, streams, phase, iteration, rows, x);
    }

    fn takes_blocks(&self, rows: usize) -> bool {
        self.ground.takes_blocks(rows)
    }

    fn as_spline(&self) -> Option<&Spline> {
        Some(self)
    }

    fn log_z(&self) -> Option<f64> {
        self.ground.log_z()
    }

    fn evaluations(&self) -> u64 {
        self.ground.evaluations()
    }
}
