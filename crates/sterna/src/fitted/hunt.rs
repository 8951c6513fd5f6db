//! The search for optima: climbs from over-dispersed points, until new ones are unlikely to find anything new.

use super::climb::{Climb, End, Place, Way, climb, places};
use super::laplace::laplace;
use super::numbers::{add, dot};
use super::optima::{Borrowed, Found, NEGLIGIBLE, Optimum};
use super::starts::{FAR, NEAR, Starts, best_starts, find_starts};
use super::{Covariance, Shape};
use crate::lanes::one::LN_TAU;
use crate::{Counted, Result, Streams, Target};

/// Climbs at least, and at most while nothing else has been asked of the target; more where so many optima are known that each may
/// have so many.
pub(super) const CLIMBS: (usize, usize) = (8, 64);
const MOST_FOR_EACH: usize = 30;
const MANY: usize = 12;
const MOST_CLIMBS: usize = 1500;

/// Two ends are one optimum where the density between them nowhere falls by more than this below the lower, in log.
const DIP: f64 = 0.1;

/// The first step of a climb to something narrow.
const CLOSE: f64 = 0.05;

/// Curvatures that are taken of one end while it is still being improved.
const CURVATURES: usize = 5;

/// A search for optima on its way.
pub(super) struct Hunt<'a> {
    target: Counted<Borrowed<'a>>,
    anchor: Starts<'a>,
    kind: Covariance,
    found: Found,
    /// Ends that turned out to be no optima.
    failures: usize,
}

impl<'a> Hunt<'a> {
    /// A search that begins with what is known.
    pub fn new(target: &'a dyn Target, anchor: Starts<'a>, kind: Covariance, found: Found) -> Self {
        Self { target: Counted::new(Borrowed(target)), anchor, kind, found, failures: 0 }
    }

    /// What was found, the best first.
    pub fn found(mut self) -> Found {
        self.found.optima.sort_by(|a, b| b.log_evidence.total_cmp(&a.log_evidence));
        self.found.evaluations += self.target.evaluations();
        self.found
    }

    /// Climbs from over-dispersed points: two that know only the anchor's scales, then others in the coordinates of what these
    /// found, until more of them are unlikely to find anything new.
    pub fn search(&mut self, streams: &Streams) -> Result<()> {
        self.climb(streams, 2)?;
        self.climb(streams, CLIMBS.0 - 2)?;
        while self.found.climbs < self.most_climbs() && self.found.may_have_missed(10, 5) {
            self.climb(streams, self.found.climbs.min(CLIMBS.1))?;
        }
        // Where there are many, the least of their basins is far smaller than most.
        while self.found.weighty().count() >= MANY
            && self.found.climbs < self.most_climbs()
            && self.found.may_have_missed(50, 12)
        {
            self.climb(streams, CLIMBS.1)?;
        }
        Ok(())
    }

    /// As many more climbs make no sense where nearly each of them comes to an optimum of its own.
    fn most_climbs(&self) -> usize {
        match self.found.has_no_end() {
            true => CLIMBS.1,
            false => CLIMBS.1.max(MOST_FOR_EACH * self.found.weighty().count()).min(MOST_CLIMBS),
        }
    }

    /// Makes so many more climbs.
    pub fn climb(&mut self, streams: &Streams, count: usize) -> Result<()> {
        let first = self.found.climbs;
        self.found.climbs += count;
        let starts = self.starts(streams, first, count)?;
        let plain = (Shape::Diagonal(self.anchor.deviation.to_vec()), 1.0);
        let Some(known) = self.found.best().map(|best| (best.shape.clone(), f64::INFINITY)) else {
            return self.climb_from(starts, plain);
        };
        // The coordinates of an optimum lead there sooner, and past others: once more climbs are needed, one of three takes them.
        let takes_them = |i: usize| first < CLIMBS.0 || i.is_multiple_of(3);
        let in_turn = starts.into_iter().enumerate().partition::<Vec<_>, _>(|(i, _)| takes_them(*i));
        for (starts, frame) in [(in_turn.0, known), (in_turn.1, plain)] {
            self.climb_from(starts.into_iter().map(|(_, start)| start).collect(), frame)?;
        }
        Ok(())
    }

    /// One more climb from each of these points, in the coordinates of a shape.
    pub fn climb_near(&mut self, points: Vec<Vec<f64>>, frame: &Shape) -> Result<()> {
        self.climb_with(points, frame, 1.0)
    }

    /// The same with a first step that does not lead past something narrow.
    pub fn climb_closely(&mut self, points: Vec<Vec<f64>>, frame: &Shape) -> Result<()> {
        self.climb_with(points, frame, CLOSE)
    }

    fn climb_with(&mut self, points: Vec<Vec<f64>>, frame: &Shape, first: f64) -> Result<()> {
        self.found.climbs += points.len();
        let starts = places(&self.target, points)?;
        self.climb_from(starts, (frame.clone(), first))
    }

    /// Climbs in the coordinates of a shape, with a first step of some length in them.
    fn climb_from(&mut self, starts: Vec<Place>, (frame, first): (Shape, f64)) -> Result<()> {
        let way = Way { frame: &frame, first, most: most(self.anchor.mean.len()) };
        for end in climb(&self.target, starts, way)? {
            self.take(end, frame.clone())?;
        }
        Ok(())
    }

    /// Where climbs start: around the anchor, and half of them, once several optima are known, around those. Where more climbs are
    /// needed and only one optimum matters, half of them start at the best of several draws of the anchor.
    fn starts(&self, streams: &Streams, first: usize, count: usize) -> Result<Vec<Place>> {
        let several = self.found.optima.iter().filter(|o| self.found.matters(o)).count() > 1;
        let half = if first < CLIMBS.0 { self.found.optima.len() > 1 } else { !self.found.optima.is_empty() };
        let around_known = if half { count / 2 } else { 0 };
        let middle = first + count - around_known;
        let mut starts = find_starts(&self.target, self.anchor, &FAR, streams, first..middle)?;
        if around_known > 0 {
            let (mean, deviation) = self.spread();
            let known = Starts { mean: &mean, deviation: &deviation };
            let others = middle..first + count;
            starts.extend(match several || first < CLIMBS.0 {
                true => find_starts(&self.target, known, &NEAR, streams, others)?,
                false => best_starts(&self.target, self.anchor, streams, others)?,
            });
        }
        Ok(starts)
    }

    /// Mean and standard deviations of the optima that matter, with their own deviations.
    fn spread(&self) -> (Vec<f64>, Vec<f64>) {
        let matter: Vec<&Optimum> = self.found.optima.iter().filter(|o| self.found.matters(o)).collect();
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
            self.found.optima.push(new);
        }
        Ok(())
    }

    /// Whether it is worth the evaluations to find out what a climb came to. One that has not ended is, unless such climbs led
    /// nowhere before or another got much higher.
    fn promising(&self, end: &Climb) -> bool {
        let height = self.found.best().map_or(f64::NEG_INFINITY, |best| best.log_density);
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
            self.found.optima.iter().enumerate().map(|(i, o)| (distance(o), i)).collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (square, i) in near.into_iter().take(3) {
            let o = &self.found.optima[i];
            let same_place = square < 1.0;
            if place.log_density < o.log_density + 1.0 && (same_place || self.connected(place, o)?) {
                self.found.optima[i].climbs += 1;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the density nowhere dips on the straight line between a place and an optimum.
    fn connected(&self, place: &Place, o: &Optimum) -> Result<bool> {
        let between = |t: f64| place.point.iter().zip(&o.mean).map(|(x, m)| x + t * (m - x)).collect();
        let seen = places(&self.target, [0.25, 0.5, 0.75].map(between).to_vec())?;
        let floor = place.log_density.min(o.log_density) - DIP;
        Ok(seen.iter().all(|p| p.log_density >= floor))
    }

    /// Improves an end until the curvature there says that it is an optimum; none if it never does.
    fn settle(&self, mut place: Place, mut frame: Shape) -> Result<Option<Optimum>> {
        let mut improper = 0;
        // Correlations help on the way, whatever the fit keeps of them.
        let kind = if place.point.len() <= Covariance::MOST_DENSE { Covariance::Dense } else { self.kind };
        for round in 0..CURVATURES {
            let normal = laplace(&self.target, &place, &frame, kind)?;
            if normal.proper && normal.gain < 0.5 && (!normal.uneven || round > 1) {
                let log_density = place.log_density + normal.gain;
                let half_log_tau = 0.5 * LN_TAU * place.point.len() as f64;
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
            place = climb(&self.target, vec![place], way)?.remove(0).place;
        }
        Ok(None)
    }
}

/// Evaluations of one climb, looking at it helps more than further steps.
fn most(dim: usize) -> u64 {
    60 + dim.min(120) as u64
}
