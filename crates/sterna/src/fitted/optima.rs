//! The optima of a target, found by climbs from over-dispersed points, and the mixture of normals that starts from them.

use super::hunt::Hunt;
use super::numbers::shares;
use super::soundings::Soundings;
use super::starts::Starts;
use super::{Component, Covariance, Mixture, Shape};
use crate::differences::by_differences;
use crate::{Batch, Evaluation, Result, Streams, Target};
use serde::{Deserialize, Serialize};

/// Optima whose evidence is this far (in log) below the best are no part of the mixture.
pub(super) const NEGLIGIBLE: f64 = 14.0;

/// Those within this of the best hold a share of the mass that draws would show: each must have been found.
const WEIGHTY: f64 = 5.0;

/// Where so many climbs came to optima of weight, and a larger share of them than this each to its own, they have no end.
const ENOUGH_TO_TELL: usize = 30;
const TOO_MANY_ALONE: f64 = 0.5;

/// Optima that have a say where there are too many to be known, at least; and powers of evidence that are tried for it.
const FEW_HAVE_A_SAY: usize = 12;
const TEMPERINGS: u32 = 20;

/// Looks at soundings, each after climbs that found something new.
const MOST_LOOKS: usize = 4;

/// An optimum with the normal that has its curvature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Optimum {
    /// Where.
    pub mean: Vec<f64>,
    /// A square root of the inverse curvature.
    pub shape: Shape,
    /// log π̃ there.
    pub log_density: f64,
    /// Laplace's estimate of the logarithm of the mass around it.
    pub log_evidence: f64,
    /// Climbs that ended there.
    pub climbs: usize,
}

/// What climbs found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// All optima, by evidence, the best first.
    pub optima: Vec<Optimum>,
    /// Climbs that were made.
    pub climbs: usize,
    /// Points at which the target was evaluated.
    pub evaluations: u64,
    /// What is known of log Z without any optimum, at least more or less: see [`sound`](super::sound).
    pub floor: f64,
}

impl Default for Found {
    fn default() -> Self {
        Self::above(f64::NEG_INFINITY)
    }
}

/// Climbs from over-dispersed points until new climbs find nothing new.
///
/// The first two climbs know only the anchor's scales. Once an optimum is known, others climb in the coordinates of its
/// normal, where few steps are needed. An optimum matters if there is mass around it, beside the best and beside `floor`, which
/// is what draws of the anchor know of the mass: see [`sound`](super::sound).
///
/// ```
/// use sterna::{Streams, fitted::{Covariance, Starts, find_optima, sound}, targets::Normal};
/// let target = Normal::new(vec![1e4, -3.0], vec![1e6, 0.01]);
/// let (anchor, streams) = (Starts { mean: &[0.0; 2], deviation: &[1.0; 2] }, Streams::new(1));
/// let floor = sound(&target, anchor, &streams).unwrap();
/// let found = find_optima(&target, anchor, &streams, Covariance::Dense, floor).unwrap();
/// let mixture = found.mixture().unwrap();
/// let fit = &mixture.components()[0];
/// assert!((fit.mean[0] - 1e4).abs() < 1e-4);
/// assert!((fit.shape.deviations()[1] - 11.0).abs() < 0.01); // widened by a tenth
/// ```
pub fn find_optima(
    target: &dyn Target,
    anchor: Starts,
    streams: &Streams,
    kind: Covariance,
    floor: f64,
) -> Result<Found> {
    anchor.check(target.dim())?;
    let mut hunt = Hunt::new(target, anchor, kind, Found::above(floor));
    hunt.search(streams)?;
    Ok(hunt.found())
}

/// Where further climbs start.
#[derive(Clone, Debug, Default)]
pub struct Further {
    /// Points, such as those that hot chains have come to.
    pub points: Vec<Vec<f64>>,
    /// Points near which something narrow may lie: climbs set out from them with small steps.
    pub narrow: Vec<Vec<f64>>,
    /// So many more from over-dispersed points.
    pub others: usize,
}

impl Found {
    fn above(floor: f64) -> Self {
        Self { optima: Vec::new(), climbs: 0, evaluations: 0, floor }
    }

    /// The same and what further climbs find; those from points go in the coordinates of a shape.
    pub fn and_further(
        self,
        target: &dyn Target,
        anchor: Starts,
        streams: &Streams,
        (kind, frame): (Covariance, &Shape),
        further: Further,
    ) -> Result<Self> {
        let mut hunt = Hunt::new(target, anchor, kind, self);
        if !further.points.is_empty() {
            hunt.climb_near(further.points, frame)?;
        }
        if !further.narrow.is_empty() {
            hunt.climb_closely(further.narrow, frame)?;
        }
        if further.others > 0 {
            hunt.climb(streams, further.others)?;
        }
        Ok(hunt.found())
    }

    /// The same and what climbs find from soundings that its normals leave out.
    pub(crate) fn and_left_out(
        mut self,
        target: &dyn Target,
        anchor: Starts,
        kind: Covariance,
        soundings: &Soundings,
    ) -> Result<Self> {
        for _ in 0..MOST_LOOKS {
            let (points, known) = (soundings.to_climb_from(&self), self.that_matter().count());
            let Some(frame) = self.best().map(|best| best.shape.clone()).filter(|_| !points.is_empty())
            else {
                break;
            };
            let mut hunt = Hunt::new(target, anchor, kind, self);
            hunt.climb_near(points, &frame)?;
            self = hunt.found();
            if self.that_matter().count() <= known {
                break;
            }
        }
        Ok(self)
    }

    /// log of the mass around all optima.
    pub fn log_z(&self) -> f64 {
        shares(&mut self.optima.iter().map(|o| o.log_evidence).collect::<Vec<f64>>())
    }

    /// Mean and standard deviations of the optima that matter together.
    pub(crate) fn spread(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        let mixture = self.mixture()?;
        Some((mixture.mean(), mixture.whole_shape().deviations()))
    }

    /// The one with most mass around it.
    pub fn best(&self) -> Option<&Optimum> {
        self.optima.iter().reduce(|a, b| if b.log_evidence > a.log_evidence { b } else { a })
    }

    /// Whether there is mass around an optimum, beside the best and beside what the anchor's draws know of.
    pub fn matters(&self, optimum: &Optimum) -> bool {
        optimum.log_evidence > self.most_evidence() - NEGLIGIBLE
    }

    /// Whether an optimum holds a share of the mass that draws would show.
    pub fn is_weighty(&self, optimum: &Optimum) -> bool {
        optimum.log_evidence > self.most_evidence() - WEIGHTY
    }

    fn most_evidence(&self) -> f64 {
        self.best().map_or(self.floor, |best| best.log_evidence.max(self.floor))
    }

    /// The optima that matter.
    pub fn that_matter(&self) -> impl Iterator<Item = &Optimum> {
        self.optima.iter().filter(|optimum| self.matters(optimum))
    }

    /// A normal for each optimum that matters; none where no climb ended at one.
    pub fn mixture(&self) -> Option<Mixture> {
        let matter: Vec<&Optimum> = self.that_matter().collect();
        if matter.is_empty() { None } else { Mixture::of_optima(&matter).ok() }
    }

    /// Whether more climbs are likely to find something of weight. The chance is about the share of climbs that ended where no
    /// other did (Good and Turing): it should be at most one in `of`. And each optimum asks for `each` climbs, lest one like it
    /// was missed. Only climbs that came to where mass is count: all others tell nothing of what lies there.
    pub fn may_have_missed(&self, of: usize, each: usize) -> bool {
        let (weighty, (alone, arrived)) = (self.weighty().count(), self.alone_and_arrived());
        arrived < (of * alone).max(each * weighty).max(super::hunt::CLIMBS.0) && weighty > 0
    }

    /// Whether optima of weight are so many that a large share of all climbs to one is the only one to it, as along a ring or in a
    /// product of many wells: those that are known are few of them.
    pub(crate) fn has_no_end(&self) -> bool {
        let (alone, arrived) = self.alone_and_arrived();
        arrived >= ENOUGH_TO_TELL && alone as f64 > TOO_MANY_ALONE * arrived as f64
    }

    /// All optima that matter as one normal, which none of many more that are not known should lie outside of. Where the evidence of
    /// a few outweighs all others', it says next to nothing of how the mass lies in many coordinates: powers of it, closer to one,
    /// let as many have a say as there are coordinates.
    pub(crate) fn as_one(&self) -> Result<Mixture> {
        let matter: Vec<&Optimum> = self.that_matter().collect();
        let dim = matter.first().map_or(0, |o| o.mean.len());
        let wanted = (dim.max(FEW_HAVE_A_SAY) as f64).min(0.5 * matter.len() as f64);
        let tempered = |power: f64| {
            let mut weights: Vec<f64> = matter.iter().map(|o| power * o.log_evidence).collect();
            shares(&mut weights);
            weights
        };
        let enough = |weights: &Vec<f64>| 1.0 / weights.iter().map(|w| w * w).sum::<f64>() >= wanted;
        let powers = (0..TEMPERINGS).map(|k| 1.0 - f64::from(k) / f64::from(TEMPERINGS));
        let weights = powers.map(tempered).find(enough).unwrap_or_else(|| tempered(0.0));
        let component = |(o, weight): (&&Optimum, f64)| Component {
            weight: weight.max(f64::MIN_POSITIVE),
            mean: o.mean.clone(),
            shape: o.shape.clone().widened(1.1),
        };
        let all = Mixture::new(matter.iter().zip(weights).map(component).collect())?;
        Mixture::normal(all.mean(), all.whole_shape())
    }

    /// Optima that hold a share of the mass.
    pub(crate) fn weighty(&self) -> impl Iterator<Item = &Optimum> {
        self.optima.iter().filter(|optimum| self.is_weighty(optimum))
    }

    /// Climbs to an optimum of weight: those that no other climb came to, and all.
    fn alone_and_arrived(&self) -> (usize, usize) {
        let alone = self.weighty().filter(|optimum| optimum.climbs == 1).count();
        (alone, self.weighty().map(|optimum| optimum.climbs).sum())
    }
}

impl Mixture {
    /// A normal for each optimum, weighed by its evidence, slightly widened; the best ones, where there are too many.
    pub fn of_optima(optima: &[&Optimum]) -> Result<Self> {
        let mut kept = optima.to_vec();
        kept.sort_by(|a, b| b.log_evidence.total_cmp(&a.log_evidence));
        kept.truncate(Self::MOST);
        let mut weights: Vec<f64> = kept.iter().map(|o| o.log_evidence).collect();
        shares(&mut weights);
        let floor = least_weight(kept.len());
        let component = |(o, weight): (&&Optimum, f64)| Component {
            weight: weight.max(floor),
            mean: o.mean.clone(),
            shape: o.shape.clone().widened(1.1),
        };
        Self::new(kept.iter().zip(weights).map(component).collect())
    }

    /// The mixture with one more component, whose weight is its share.
    pub fn with_component(&self, new: Component) -> Result<Self> {
        let mut components = self.components().to_vec();
        components.iter_mut().for_each(|c| c.weight *= 1.0 - new.weight);
        components.push(new);
        Self::new(components)
    }

    /// The mixture with a component for one more optimum of about this share of the mass, in place of the lightest if there is no
    /// more room.
    pub fn with_optimum(&self, optimum: &Optimum, share: f64) -> Result<Self> {
        let mut components = self.components().to_vec();
        if components.len() >= Self::MOST {
            let lightest = (0..components.len())
                .reduce(|a, b| if components[b].weight < components[a].weight { b } else { a });
            lightest.map(|i| components.remove(i));
        }
        // No more than its part: it comes with a guess.
        let weight =
            share.min(1.0 / (components.len() + 1).max(4) as f64).max(least_weight(components.len() + 1));
        components.push(Component {
            weight,
            mean: optimum.mean.clone(),
            shape: optimum.shape.clone().widened(1.1),
        });
        Self::new(components)
    }
}

/// Weight that a component has at least, so that draws can say how much it deserves.
pub(super) fn least_weight(components: usize) -> f64 {
    0.02f64.min(0.2 / components as f64)
}

/// A target that belongs to someone else, with scores by differences where it has none.
pub(super) struct Borrowed<'a>(pub &'a dyn Target);

impl Target for Borrowed<'_> {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        match self.0.has_score() {
            true => self.0.evaluate(x, out),
            false => by_differences(self.0, x, out),
        }
    }
}

#[cfg(test)]
mod tests;
