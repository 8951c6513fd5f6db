//! The geometric path η^{1−β} π^β: linear in β in log space, so a plain swap costs no evaluation (§2). With an anchor it goes
//! on from the target at β = 1 to the anchor at β = 2.

use super::Reference;
use super::reference::{Diagonal, Kind};
use crate::call::Scratch;
use crate::fitted::Standouts;
use crate::lanes::{Kernel, Lanes, dispatch, for_each_chunk};
use crate::path::{AnnealingPath, Points};
use crate::path_formula::{path_log_density, path_score};
use crate::streams::{PhaseKey, Streams};
use crate::{Batch, Counted, Error, Result, Schedule, Target};
use std::sync::Arc;

/// π̃^β = η^{1−β} π̃^β; and, where there is an anchor α, π̃^β = π̃^{2−β} α^{β−1} beyond the target.
///
/// ```
/// use sterna::{paths::Geometric, targets::Gmm, path::AnnealingPath};
/// let path = Geometric::from_standard_normal(Gmm::paper(10));
/// assert_eq!(path.dim(), 10);
/// ```
#[derive(Clone)]
pub struct Geometric {
    reference: Reference,
    anchor: Option<Reference>,
    /// Paths to one target count together.
    target: Arc<Counted<Arc<dyn Target>>>,
    /// Where the density is too high for the reference, if somebody wants to know.
    standouts: Option<Arc<Standouts>>,
}

impl Geometric {
    /// From a reference to a target of the same dimension.
    pub fn new(reference: Reference, target: Arc<dyn Target>) -> Result<Self> {
        let (found, expected) = (reference.dim(), target.dim());
        if found != expected {
            return Err(Error::Dimension { what: "the reference", found, expected });
        }
        Ok(Self { reference, anchor: None, target: Arc::new(Counted::new(target)), standouts: None })
    }

    /// From N(0, I).
    pub fn from_standard_normal(target: impl Target + 'static) -> Self {
        let reference = Reference::standard_normal(target.dim());
        let target: Arc<dyn Target> = Arc::new(target);
        Self { reference, anchor: None, target: Arc::new(Counted::new(target)), standouts: None }
    }

    /// The same target, between another reference and perhaps an anchor. What one path asks of the target, the other
    /// counts too.
    pub fn between(&self, reference: Reference, anchor: Option<Reference>) -> Result<Self> {
        let expected = self.dim();
        for (what, given) in [("the reference", Some(&reference)), ("the anchor", anchor.as_ref())] {
            if let Some(found) = given.map(Reference::dim).filter(|found| *found != expected) {
                return Err(Error::Dimension { what, found, expected });
            }
        }
        Ok(Self { reference, anchor, target: self.target.clone(), standouts: None })
    }

    /// The same path, which keeps what stands out beside its reference.
    pub(crate) fn keeping(self, standouts: Option<Arc<Standouts>>) -> Self {
        Self { standouts, ..self }
    }

    /// Where it begins.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// Where it ends beyond the target, if it does.
    pub fn anchor(&self) -> Option<&Reference> {
        self.anchor.as_ref()
    }

    /// What it leads to, counted.
    pub fn target(&self) -> &dyn Target {
        &*self.target
    }

    /// The reference at the end of a row's leg, and the target's share in the density.
    fn side(&self, beta: f64) -> (&Reference, f64) {
        match &self.anchor {
            Some(anchor) if beta > 1.0 => (anchor, 2.0 - beta),
            _ => (&self.reference, beta),
        }
    }

    /// Row by row, for references that are not one normal.
    fn mix(&self, betas: &[f64], points: &mut Points, standouts: Option<&Standouts>) {
        let Points { x, log_density, score, log_reference, target, scratch } = points;
        let work: &mut Vec<f64> = scratch.get();
        for (i, &beta) in betas.iter().enumerate() {
            let (reference, share) = self.side(beta);
            let score = score.row_mut(i);
            let of_target = (target.log_density[i], target.score.row(i));
            if let Some(standouts) = standouts.filter(|_| beta > 1.0) {
                standouts.look_at(x.row(i), of_target, score, work);
            }
            log_reference[i] = reference.evaluate(x.row(i), score, work);
            if let Some(standouts) = standouts.filter(|_| beta <= 1.0) {
                standouts.see(x.row(i), of_target, (log_reference[i], score));
            }
            log_density[i] = interpolate(share, log_reference[i], target.log_density[i]);
            if share > 0.0 {
                let scores = score.iter_mut().zip(target.score.row(i));
                scores.for_each(|(score, &of_target)| *score = path_score(share, -*score, of_target));
            }
        }
    }
}

impl AnnealingPath for Geometric {
    fn dim(&self) -> usize {
        self.reference.dim()
    }

    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        self.target.evaluate(&points.x, &mut points.target)?;
        match &self.standouts {
            Some(standouts) => self.mix(betas, points, Some(standouts)),
            None => self.move_to(betas, points)?,
        }
        Ok(())
    }

    fn move_to(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        match (&self.reference.0, &self.anchor) {
            (Kind::Normal(reference), None) => dispatch(Interpolate { reference, betas, points }),
            _ => self.mix(betas, points, None),
        }
        Ok(())
    }

    fn slopes(&self, betas: &[f64], points: &Points, out: &mut [f64], scratch: &mut Scratch) -> Result<()> {
        let (work, score): &mut (Vec<f64>, Vec<f64>) = scratch.get();
        score.resize(self.dim(), 0.0);
        for (i, out) in out.iter_mut().enumerate() {
            *out = match &self.anchor {
                // The target's own chain belongs to both legs, and keeps the density of the first reference.
                Some(anchor) if betas[i] > 1.0 => {
                    anchor.evaluate(points.x.row(i), score, work) - points.target.log_density[i]
                }
                _ => points.target.log_density[i] - points.log_reference[i],
            };
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
        self.side(end).0.draw(streams, phase, iteration, rows, x);
    }

    fn first_schedule(&self, chains: usize) -> Schedule {
        match self.anchor {
            None => Schedule::uniform(chains),
            Some(_) => {
                let first = chains.div_ceil(2).max(2);
                Schedule::two_legs(&Schedule::uniform(first), &Schedule::uniform((chains - first + 1).max(2)))
            }
        }
    }

    fn takes_blocks(&self, rows: usize) -> bool {
        self.target.takes_blocks(rows)
    }

    fn as_geometric(&self) -> Option<&Geometric> {
        Some(self)
    }

    fn log_z(&self) -> Option<f64> {
        self.target.log_z()
    }

    fn evaluations(&self) -> u64 {
        self.target.evaluations()
    }
}

struct Interpolate<'a> {
    reference: &'a Diagonal,
    betas: &'a [f64],
    points: &'a mut Points,
}

impl Kernel for Interpolate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        if self.reference.is_standard {
            self.interpolate::<L, true>()
        } else {
            self.interpolate::<L, false>()
        }
    }
}

impl Interpolate<'_> {
    #[inline(always)]
    fn interpolate<L: Lanes, const STANDARD: bool>(self) {
        let Points { x, log_density, score, log_reference, target, .. } = self.points;
        let dim = x.dim();
        for (i, &beta) in self.betas.iter().enumerate() {
            let (x, target_score) = (x.row(i), target.score.row(i));
            let score = score.row_mut(i);
            let lanes_beta = L::splat(beta);
            let mut sum = L::splat(0.0);
            for_each_chunk!(dim, |range| {
                let mut shift = L::load_some(&x[range.clone()]);
                let mut pull = shift;
                if !STANDARD {
                    shift = shift - L::load_some(&self.reference.mean[range.clone()]);
                    pull = shift * L::load_some(&self.reference.precision[range.clone()]);
                }
                sum = shift.mul_add(pull, sum);
                // At β = 0 the target has no say, whatever its score is there.
                let total = if beta > 0.0 {
                    path_score(lanes_beta, pull, L::load_some(&target_score[range.clone()]))
                } else {
                    -pull
                };
                total.store_some(&mut score[range]);
            });
            log_reference[i] = self.reference.log_normaliser - 0.5 * sum.sum();
            log_density[i] = interpolate(beta, log_reference[i], target.log_density[i]);
        }
    }
}

/// The log density at one point; a target that is NaN, or +∞, counts as zero density.
#[inline(always)]
fn interpolate(beta: f64, log_reference: f64, log_target: f64) -> f64 {
    if beta <= 0.0 {
        log_reference
    } else if log_target < f64::INFINITY {
        path_log_density(beta, log_reference, log_target)
    } else {
        f64::NEG_INFINITY
    }
}
