//! Do draws end where the density does? By what lies within the outermost draw of a coordinate beside what lies beyond, so many
//! effective draws should have been farther out.

use super::Weighty;
use crate::fitted::{Ends, Mixture};
use crate::records::Draws;
use crate::{Result, Target};

/// So many effective draws beyond the outermost one are missed: if so many are to be expected, chance explains it less than once in
/// three million times; what curvature tells of the mass may be off by a factor.
const EXPECTED: f64 = 15.0;

/// A tail that draws do not reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutTail {
    /// The coordinate.
    pub coordinate: usize,
    /// Its outermost draw.
    pub end: f64,
    /// Share of the mass that lies beyond, as far as curvature tells.
    pub share: f64,
}

/// What the search for cut tails needs.
pub(super) struct Tails<'a> {
    pub target: &'a dyn Target,
    pub mixture: &'a Mixture,
    pub draws: &'a [Draws],
    pub weighty: Weighty,
}

impl Tails<'_> {
    /// The first tail that is cut, of those that reach least; about so many evaluations are asked for.
    pub fn cut(&self, budget: impl Fn() -> bool) -> Result<Option<CutTail>> {
        // One normal that fits brings draws of its tails by itself.
        if self.mixture.components().len() == 1 || !self.target.has_score() {
            return Ok(None);
        }
        let dim = self.mixture.dim();
        let points = self.draws.iter().flat_map(|d| d.x.chunks_exact(dim)).collect();
        let ends = Ends { target: self.target, mixture: self.mixture, points };
        for end in ends.all() {
            if !budget() {
                break;
            }
            let share = ends.outwards(&end)?.map(|outwards| outwards.share);
            if let Some(share) = share.filter(|share| share * self.weighty.effective > EXPECTED) {
                return Ok(Some(CutTail { coordinate: end.coordinate, end: end.to, share }));
            }
        }
        Ok(None)
    }
}
