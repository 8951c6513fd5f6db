//! The optima of a target, found by climbs from over-dispersed points, and the mixture of normals that starts from them.

use super::climb::{Climb, End, Place, Way, climb, places};
use super::laplace::laplace;
use super::numbers::{add, dot, ln};
use super::starts::{FAR, NEAR, Starts, find_starts};
use super::{Component, Covariance, Mixture, Shape};
use crate::{Batch, Counted, Evaluation, Result, Streams, Target};
use serde::{Deserialize, Serialize};

/// Climbs at least and at most.
const CLIMBS: (usize, usize) = (8, 64);

/// Optima whose evidence is this far (in log) below the best are no part of the mixture.
const NEGLIGIBLE: f64 = 14.0;

/// Two ends are one optimum where the density between them nowhere falls by more than this below the lower, in log.
const DIP: f64 = 0.5;

/// Curvatures that are taken of one end while it is still being improved.
const CURVATURES: usize = 5;

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
    /// A normal for each optimum that matters; none where no climb ended at a proper optimum.
    pub mixture: Option<Mixture>,
    /// All optima, by evidence, the best first.
    pub optima: Vec<Optimum>,
    /// How many of them matter: there is mass around them, beside the best and beside what a normal at the anchor finds.
    pub matter: usize,
    /// Climbs that were made.
    pub climbs: usize,
    /// Points at which the target was evaluated.
    pub evaluations: u64,
}

/// Climbs from over-dispersed points until new climbs find nothing new.
///
/// The first two climbs know only the anchor's scales. Once an optimum is known, others climb in the coordinates of its
/// normal, where few steps are needed.
///
/// ```
/// use sterna::{Streams, fitted::{Covariance, Starts, find_optima}, targets::Normal};
/// let target = Normal::new(vec![1e4, -3.0], vec![1e6, 0.01]);
/// let anchor = Starts { mean: &[0.0; 2], deviation: &[1.0; 2] };
/// let found = find_optima(&target, anchor, &Streams::new(1), Covariance::Dense).unwrap();
/// let mixture = found.mixture.unwrap();
/// let fit = &mixture.components()[0];
/// assert!((fit.mean[0] - 1e4).abs() < 1e-4);
/// assert!((fit.shape.deviations()[1] - 11.0).abs() < 0.01); // widened by a tenth
/// ```
pub fn find_optima(
    target: &dyn Target,
    anchor: Starts,
    streams: &Streams,
    kind: Covariance,
) -> Result<Found> {
    anchor.check(target.dim())?;
    let counted = Counted::new(Borrowed(target));
    let mut search = Hunt {
        target: &counted,
        anchor,
        kind,
        optima: Vec::new(),
        climbs: 0,
        anchored: f64::NEG_INFINITY,
        failures: 0,
    };
    search.climb(streams, 2)?;
    search.climb(streams, CLIMBS.0 - 2)?;
    while search.goes_on() {
        search.climb(streams, search.climbs)?;
    }
    search.found()
}

/// The optimum uphill from a point that a mixture leaves out, by a climb in the mixture's coordinates; and evaluations.
pub fn optimum_near(
    target: &dyn Target,
    point: &[f64],
    mixture: &Mixture,
    kind: Covariance,
) -> Result<(Option<Optimum>, u64)> {
    let counted = Counted::new(Borrowed(target));
    let (mean, deviation) = (mixture.mean(), mixture.pooled_shape().deviations());
    let anchor = Starts { mean: &mean, deviation: &deviation };
    let mut hunt = Hunt {
        target: &counted,
        anchor,
        kind,
        optima: Vec::new(),
        climbs: 0,
        anchored: f64::NEG_INFINITY,
        failures: 0,
    };
    let start = places(&counted, vec![point.to_vec()])?;
    let frame = mixture.pooled_shape();
    let way = Way { frame: &frame, first: 1.0, most: most(point.len()) };
    for end in climb(&counted, start, way)? {
        hunt.take(end, frame.clone())?;
    }
    Ok((hunt.optima.pop(), counted.evaluations()))
}

/// A search for optima on its way.
struct Hunt<'a> {
    target: &'a Counted<Borrowed<'a>>,
    anchor: Starts<'a>,
    kind: Covariance,
    optima: Vec<Optimum>,
    climbs: usize,
    /// log π̃ − log density of the anchor, on average over its draws: about what a normal there would know of the mass.
    anchored: f64,
    /// Ends that turned out to be no optima.
    failures: usize,
}

impl Hunt<'_> {
    /// What was found, the best first.
    fn found(mut self) -> Result<Found> {
        self.optima.sort_by(|a, b| b.log_evidence.total_cmp(&a.log_evidence));
        let matter = self.optima.iter().filter(|o| self.matters(o)).count();
        let mixture = if matter == 0 { None } else { Some(Mixture::of_optima(&self.optima[..matter])?) };
        let evaluations = self.target.evaluations();
        Ok(Found { mixture, optima: self.optima, matter, climbs: self.climbs, evaluations })
    }

    /// Makes so many more climbs.
    fn climb(&mut self, streams: &Streams, count: usize) -> Result<()> {
        let first = self.climbs;
        self.climbs += count;
        let starts = self.starts(streams, first, count)?;
        if first == 0 {
            let ratio = |s: &Place| s.log_density - self.anchor.log_density(&s.point);
            self.anchored = starts.iter().map(ratio).sum::<f64>() / starts.len() as f64;
        }
        let (frame, length) = match self.best() {
            Some(best) => (best.shape.clone(), f64::INFINITY),
            None => (Shape::Diagonal(self.anchor.deviation.to_vec()), 1.0),
        };
        let way = Way { frame: &frame, first: length, most: most(self.anchor.mean.len()) };
        for end in climb(self.target, starts, way)? {
            self.take(end, frame.clone())?;
        }
        Ok(())
    }

    /// Where climbs start: around the anchor, and, once several optima are known, half of them around those.
    fn starts(&self, streams: &Streams, first: usize, count: usize) -> Result<Vec<Place>> {
        let around_known = if self.optima.len() > 1 { count / 2 } else { 0 };
        let middle = first + count - around_known;
        let mut starts = find_starts(self.target, self.anchor, &FAR, streams, first..middle)?;
        if around_known > 0 {
            let (mean, deviation) = self.spread();
            let known = Starts { mean: &mean, deviation: &deviation };
            starts.extend(find_starts(self.target, known, &NEAR, streams, middle..first + count)?);
        }
        Ok(starts)
    }

    /// Mean and standard deviations of the optima that matter, with their own deviations.
    fn spread(&self) -> (Vec<f64>, Vec<f64>) {
        let matter: Vec<&Optimum> = self.optima.iter().filter(|o| self.matters(o)).collect();
        let share = 1.0 / matter.len().max(1) as f64;
        let (mut mean, mut second) = (vec![0.0; self.anchor.mean.len()], vec![0.0; self.anchor.mean.len()]);
        matter.iter().for_each(|o| add(&mut mean, share, &o.mean));
        for o in &matter {
            for (j, own) in o.shape.deviations().iter().enumerate() {
                second[j] += share * (own * own + (o.mean[j] - mean[j]) * (o.mean[j] - mean[j]));
            }
        }
        let deviation =
            second.iter().zip(self.anchor.deviation).map(|(v, s)| if *v > 0.0 { v.sqrt() } else { *s });
        (mean, deviation.collect())
    }

    fn best(&self) -> Option<&Optimum> {
        self.optima.iter().reduce(|a, b| if b.log_evidence > a.log_evidence { b } else { a })
    }

    /// Whether more climbs are likely to find something that matters. The chance is estimated by the share of climbs that
    /// ended where no other did (Good and Turing); and each optimum asks for some climbs, lest one like it was missed.
    fn goes_on(&self) -> bool {
        let matter: Vec<&Optimum> = self.optima.iter().filter(|o| self.matters(o)).collect();
        let alone = matter.iter().filter(|o| o.climbs == 1).count();
        self.climbs < CLIMBS.1 && self.climbs < (10 * alone).max(5 * matter.len())
    }

    /// Whether there is mass around an optimum, beside the best and beside what a normal at the anchor would find.
    fn matters(&self, optimum: &Optimum) -> bool {
        let best = self.best().map_or(f64::NEG_INFINITY, |best| best.log_evidence);
        optimum.log_evidence > best.max(self.anchored) - NEGLIGIBLE
    }

    /// Takes the end of a climb: of a known optimum, or of a new one.
    fn take(&mut self, end: Climb, frame: Shape) -> Result<()> {
        if end.end == End::Nowhere || self.known(&end.place)? || !self.promising(&end) {
            return Ok(());
        }
        let Some(new) = self.settle(end.place, frame)? else {
            self.failures += 1;
            return Ok(());
        };
        let place = Place { point: new.mean.clone(), log_density: new.log_density, score: Vec::new() };
        if !self.known(&place)? {
            self.optima.push(new);
        }
        Ok(())
    }

    /// Whether it is worth the evaluations to find out what a climb came to. One that has not ended is, unless such climbs led
    /// nowhere before or another got much higher.
    fn promising(&self, end: &Climb) -> bool {
        let height = self.best().map_or(f64::NEG_INFINITY, |best| best.log_density);
        let low = end.place.log_density < height - NEGLIGIBLE - end.place.point.len() as f64;
        end.end == End::Optimum || (!low && self.failures < 2)
    }

    /// Whether a place belongs to a known optimum, to which it is then counted.
    fn known(&mut self, place: &Place) -> Result<bool> {
        let distance = |o: &Optimum| {
            let mut z: Vec<f64> = place.point.iter().zip(&o.mean).map(|(x, m)| x - m).collect();
            o.shape.solve(&mut z);
            dot(&z, &z)
        };
        let mut near: Vec<(f64, usize)> =
            self.optima.iter().enumerate().map(|(i, o)| (distance(o), i)).collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (square, i) in near.into_iter().take(3) {
            let o = &self.optima[i];
            let same_place = square < 1.0;
            if place.log_density < o.log_density + 1.0 && (same_place || self.connected(place, o)?) {
                self.optima[i].climbs += 1;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the density nowhere dips on the straight line between a place and an optimum.
    fn connected(&self, place: &Place, o: &Optimum) -> Result<bool> {
        let between = |t: f64| place.point.iter().zip(&o.mean).map(|(x, m)| x + t * (m - x)).collect();
        let seen = places(self.target, [0.25, 0.5, 0.75].map(between).to_vec())?;
        let floor = place.log_density.min(o.log_density) - DIP;
        Ok(seen.iter().all(|p| p.log_density >= floor))
    }

    /// Improves an end until the curvature there says that it is an optimum; none if it never does.
    fn settle(&self, mut place: Place, mut frame: Shape) -> Result<Option<Optimum>> {
        let mut improper = 0;
        // Correlations help on the way, whatever the fit keeps of them.
        let kind = if place.point.len() <= Covariance::MOST_DENSE { Covariance::Dense } else { self.kind };
        for round in 0..CURVATURES {
            let normal = laplace(self.target, &place, &frame, kind)?;
            if normal.proper && normal.gain < 0.5 && (!normal.uneven || round > 1) {
                let log_density = place.log_density + normal.gain;
                let half_log_tau = 0.5 * ln(std::f64::consts::TAU) * place.point.len() as f64;
                let log_evidence = log_density + normal.shape.log_volume() + half_log_tau;
                let (mean, shape) = (normal.mean, self.kind.kind_of(&normal.shape));
                return Ok(Some(Optimum { mean, shape, log_density, log_evidence, climbs: 1 }));
            }
            improper += usize::from(!normal.proper);
            if improper > 2 {
                break;
            }
            frame = normal.shape;
            let first = if normal.proper { f64::INFINITY } else { 1.0 };
            let way = Way { frame: &frame, first, most: most(place.point.len()) };
            place = climb(self.target, vec![place], way)?.remove(0).place;
        }
        Ok(None)
    }
}

/// Evaluations of one climb: where the curvature is uneven, looking at it helps more than further steps.
fn most(dim: usize) -> u64 {
    60 + dim.min(120) as u64
}

impl Found {
    /// The optima that matter.
    pub fn that_matter(&self) -> &[Optimum] {
        &self.optima[..self.matter.min(self.optima.len())]
    }
}

impl Mixture {
    /// A normal for each optimum, weighed by its evidence, slightly widened; the best ones, where there are too many.
    pub fn of_optima(optima: &[Optimum]) -> Result<Self> {
        let mut kept: Vec<&Optimum> = optima.iter().collect();
        kept.sort_by(|a, b| b.log_evidence.total_cmp(&a.log_evidence));
        kept.truncate(Self::MOST);
        let mut weights: Vec<f64> = kept.iter().map(|o| o.log_evidence).collect();
        super::numbers::shares(&mut weights);
        let floor = least_weight(kept.len());
        let component = |(o, weight): (&&Optimum, f64)| Component {
            weight: weight.max(floor),
            mean: o.mean.clone(),
            shape: o.shape.clone().widened(1.1),
        };
        Self::new(kept.iter().zip(weights).map(component).collect())
    }

    /// The mixture with a component for one more optimum, in place of the lightest if there is no more room.
    pub fn with_optimum(&self, optimum: &Optimum) -> Result<Self> {
        let mut components = self.components().to_vec();
        if components.len() >= Self::MOST {
            let lightest = (0..components.len())
                .reduce(|a, b| if components[b].weight < components[a].weight { b } else { a });
            lightest.map(|i| components.remove(i));
        }
        let weight = 1.0 / (components.len() + 1).max(10) as f64;
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

/// A target that belongs to someone else.
struct Borrowed<'a>(&'a dyn Target);

impl Target for Borrowed<'_> {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        self.0.evaluate(x, out)
    }
}

#[cfg(test)]
mod tests;
