//! Climbing to an optimum: L-BFGS with a line search that survives overflow, all climbs as one batch.

mod memory;
mod search;

use super::Shape;
use super::numbers::{add, dot};
use crate::{Batch, Evaluation, Result, Target};
use memory::Memory;
use search::{Search, Verdict};
use serde::{Deserialize, Serialize};

/// A climb is over where another step promises less than this, in nats: the curvature there tells the rest of the way.
const ENOUGH: f64 = 0.01;

/// Below this it is over whatever the last step gained.
const NOTHING: f64 = 1e-4;

/// A point with what the target says of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Where.
    pub point: Vec<f64>,
    /// log π̃ there.
    pub log_density: f64,
    /// ∇ log π̃ there.
    pub score: Vec<f64>,
}

impl Place {
    /// Whether log density and score are numbers.
    pub fn is_finite(&self) -> bool {
        self.log_density.is_finite() && self.score.iter().all(|s| s.is_finite())
    }
}

/// How a climb ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing more to gain.
    Optimum,
    /// Still rising after as many evaluations as were allowed, or run off towards infinity.
    Endless,
    /// It had no finite point to start from.
    Nowhere,
}

/// A climb that is over.
#[derive(Clone, Debug)]
pub struct Climb {
    /// The highest point.
    pub place: Place,
    /// How it ended.
    pub end: End,
    /// Points at which the target was evaluated on the way.
    pub evaluations: u64,
}

/// In which coordinates a climb goes, and how far.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// x = x₀ + F u, and steps are taken in u: the nearer F Fᵀ is to the curvature's inverse, the fewer.
    pub frame: &'a Shape,
    /// Length of the first step in u, before anything is known of the curvature; infinite where F is known to be good.
    pub first: f64,
    /// Evaluations at most.
    pub most: u64,
}

/// Places of points, evaluated as one batch.
pub fn places(target: &dyn Target, points: Vec<Vec<f64>>) -> Result<Vec<Place>> {
    if points.is_empty() {
        return Ok(Vec::new());
    }
    let (rows, dim) = (points.len(), target.dim());
    let mut out = Evaluation::zeros(rows, dim);
    target.evaluate(&Batch::from_vec(dim, points.concat()), &mut out)?;
    let place =
        |(i, point)| Place { point, log_density: out.log_density[i], score: out.score.row(i).to_vec() };
    Ok(points.into_iter().enumerate().map(place).collect())
}

/// Climbs from each start. All that are not over yet are evaluated as one batch.
///
/// ```
/// use sterna::fitted::{End, Shape, Way, climb, places};
/// use sterna::targets::Normal;
/// let target = Normal::new(vec![3.0, -200.0], vec![1.0, 100.0]);
/// let starts = places(&target, vec![vec![0.0, 0.0]]).unwrap();
/// let way = Way { frame: &Shape::Diagonal(vec![1.0; 2]), first: 1.0, most: 100 };
/// let climbs = climb(&target, starts, way).unwrap();
/// assert_eq!(climbs[0].end, End::Optimum);
/// assert!((climbs[0].place.point[1] + 200.0).abs() < 0.02);
/// ```
pub fn climb(target: &dyn Target, starts: Vec<Place>, way: Way) -> Result<Vec<Climb>> {
    let mut climbers: Vec<Climber> = starts.into_iter().map(|start| Climber::new(start, way)).collect();
    loop {
        let mut active: Vec<&mut Climber> = climbers.iter_mut().filter(|c| c.end.is_none()).collect();
        if active.is_empty() {
            break;
        }
        let trials = places(target, active.iter().map(|c| c.trial()).collect())?;
        active.iter_mut().zip(trials).for_each(|(climber, trial)| climber.see(trial));
    }
    let over = |c: Climber| Climb { place: c.here, end: c.end.expect("over"), evaluations: c.evaluations };
    Ok(climbers.into_iter().map(over).collect())
}

/// One climb on its way.
struct Climber<'a> {
    way: Way<'a>,
    here: Place,
    /// ∇ log π̃ in u.
    slope: Vec<f64>,
    memory: Memory,
    /// Where to, in u and in x.
    direction: Vec<f64>,
    shift: Vec<f64>,
    search: Search,
    /// The best point that this line search has seen.
    best: Option<(f64, Place)>,
    /// Longest move so far, in u.
    longest: f64,
    last_gain: f64,
    evaluations: u64,
    end: Option<End>,
}

impl<'a> Climber<'a> {
    fn new(start: Place, way: Way<'a>) -> Self {
        let dim = start.point.len();
        let mut climber = Self {
            way,
            slope: vec![0.0; dim],
            memory: Memory::default(),
            direction: vec![0.0; dim],
            shift: vec![0.0; dim],
            search: Search::new(0.0, 0.0),
            best: None,
            longest: 0.0,
            last_gain: 0.0,
            evaluations: 0,
            end: (!start.is_finite()).then_some(End::Nowhere),
            here: start,
        };
        if climber.end.is_none() {
            climber.slope = climber.slope_at(&climber.here);
            climber.turn();
        }
        climber
    }

    fn slope_at(&self, place: &Place) -> Vec<f64> {
        let mut slope = place.score.clone();
        self.way.frame.apply_transposed(&mut slope);
        slope
    }

    fn trial(&self) -> Vec<f64> {
        let mut point = self.here.point.clone();
        add(&mut point, self.search.step, &self.shift);
        point
    }

    /// Chooses the next direction, or finds that the climb is over.
    fn turn(&mut self) {
        self.direction.clone_from(&self.slope);
        self.memory.apply(&mut self.direction);
        let promised = 0.5 * dot(&self.slope, &self.direction);
        let far = self.here.point.iter().any(|x| x.abs() > 1e100) || self.here.log_density > 1e300;
        if far || !promised.is_finite() {
            self.end = Some(End::Endless);
        } else if promised < ENOUGH && (self.last_gain < 10.0 * ENOUGH || promised < NOTHING) {
            self.end = Some(End::Optimum);
        } else if self.evaluations >= self.way.most {
            self.end = Some(End::Endless);
        } else {
            self.set_out();
        }
    }

    /// Begins a line search along the direction, which is bounded by what was seen so far.
    fn set_out(&mut self) {
        let length = dot(&self.direction, &self.direction).sqrt();
        let most = if self.memory.is_empty() { self.way.first } else { 100.0 * self.longest.max(1.0) };
        if length > most {
            self.direction.iter_mut().for_each(|p| *p *= most / length);
        }
        self.shift.clone_from(&self.direction);
        self.way.frame.apply(&mut self.shift);
        self.search = Search::new(self.here.log_density, dot(&self.slope, &self.direction));
        self.best = None;
    }

    /// Takes the answer to a trial.
    fn see(&mut self, trial: Place) {
        self.evaluations += 1;
        let step = self.search.step;
        let verdict = if trial.is_finite() {
            let slope = self.slope_at(&trial);
            self.search.judge(trial.log_density, dot(&slope, &self.direction))
        } else {
            self.search.retreat()
        };
        match verdict {
            Verdict::Lower => {}
            Verdict::Higher => self.best = Some((step, trial)),
            Verdict::Enough => return self.go(step, trial),
        }
        if self.search.trials >= search::MOST_TRIALS {
            match self.best.take() {
                Some((step, place)) => self.go(step, place),
                // Nothing along the slope itself: as high as it gets within rounding, or at an edge.
                None if self.memory.is_empty() => self.end = Some(End::Optimum),
                None => {
                    self.memory = Memory::default();
                    self.turn();
                }
            }
        }
    }

    /// Moves on, and learns from the change of the slope.
    fn go(&mut self, step: f64, place: Place) {
        let slope = self.slope_at(&place);
        let moved: Vec<f64> = self.direction.iter().map(|p| step * p).collect();
        let bent = self.slope.iter().zip(&slope).map(|(before, after)| before - after).collect();
        self.longest = self.longest.max(dot(&moved, &moved).sqrt());
        self.last_gain = place.log_density - self.here.log_density;
        self.memory.learn(moved, bent);
        (self.here, self.slope) = (place, slope);
        self.turn();
    }
}
