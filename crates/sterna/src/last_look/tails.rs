//! Do draws end where the density does?
//!
//! Along a ridge that grows thin, no move may get to the ends, on any chain: draws agree with each other, and a part of the law is
//! missing. So each coordinate is held at values from its outer tenth outwards, beyond the outermost draw; the others climb to the
//! highest point there, and the curvature at it tells how much mass lies at that value. By what lies within the outermost draw
//! beside what lies beyond, so many effective draws should have been farther out.

use super::Weighty;
use crate::fitted::{Component, Covariance, Mixture, Place, Shape, Way, climb, laplace, places};
use crate::records::Draws;
use crate::{Batch, Evaluation, Result, Target};

/// Share of the draws from whose innermost value the look goes outwards.
const OUTER: f64 = 0.1;
/// Steps between there and the outermost draw, and beyond that.
const WITHIN: usize = 2;
const BEYOND: usize = 6;
/// What is lower than at the outermost draw by this, in log, is nothing.
const NOTHING: f64 = 12.0;
/// Evaluations of a climb.
const MOST: u64 = 80;
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

/// One end of a coordinate.
struct End {
    coordinate: usize,
    /// Values: where the outer tenth begins, and the outermost.
    from: f64,
    to: f64,
    /// Draws at both.
    points: [Vec<f64>; 2],
    /// How far the outer tenth reaches beside the half within it: little where a tail is cut.
    reach: f64,
}

impl Tails<'_> {
    /// The first tail that is cut, of those that reach least; about so many evaluations are asked for.
    pub fn cut(&self, budget: impl Fn() -> bool) -> Result<Option<CutTail>> {
        // One normal that fits brings draws of its tails by itself.
        if self.mixture.components().len() == 1 || !self.target.has_score() {
            return Ok(None);
        }
        let mut ends = self.ends();
        ends.sort_by(|a, b| a.reach.total_cmp(&b.reach));
        for end in ends {
            if !budget() {
                break;
            }
            if let Some(share) =
                self.share_beyond(&end)?.filter(|share| share * self.weighty.effective > EXPECTED)
            {
                return Ok(Some(CutTail { coordinate: end.coordinate, end: end.to, share }));
            }
        }
        Ok(None)
    }

    fn ends(&self) -> Vec<End> {
        let dim = self.mixture.dim();
        let points: Vec<&[f64]> = self.draws.iter().flat_map(|d| d.x.chunks_exact(dim)).collect();
        let outer = (OUTER * points.len() as f64) as usize;
        let mut ends = Vec::new();
        if outer < 2 {
            return ends;
        }
        for coordinate in 0..dim {
            let mut order: Vec<usize> = (0..points.len()).collect();
            order.sort_by(|&a, &b| points[a][coordinate].total_cmp(&points[b][coordinate]));
            let median = points[order[order.len() / 2]][coordinate];
            for _ in 0..2 {
                order.reverse();
                let both = [order[outer], order[0]].map(|i| points[i].to_vec());
                let [from, to] = [0, 1].map(|k: usize| both[k][coordinate]);
                let reach = (to - from) / (from - median);
                if reach.is_finite() && reach > 0.0 {
                    ends.push(End { coordinate, from, to, points: both, reach });
                }
            }
        }
        ends
    }

    /// Share of the mass beyond the outermost draw; none where curvature does not tell.
    fn share_beyond(&self, end: &End) -> Result<Option<f64>> {
        let step = (end.to - end.from) / WITHIN as f64;
        let mut masses: Vec<f64> = Vec::new();
        let mut known: Vec<Vec<f64>> = Vec::new();
        for k in 0..=WITHIN + BEYOND {
            let value = end.from + k as f64 * step;
            let starts = self.starts(end, &known, k, value);
            let Some((log_mass, point)) = self.mass_at(end.coordinate, value, starts)? else {
                return Ok(None);
            };
            masses.push(log_mass);
            known.extend(point);
            if k > WITHIN && log_mass < masses[WITHIN] - NOTHING {
                break;
            }
        }
        let all: Vec<f64> = masses.windows(2).map(|pair| between(pair[0], pair[1], masses[0])).collect();
        let (within, beyond) = all.split_at(WITHIN);
        let [within, beyond] = [within, beyond].map(|part| part.iter().sum::<f64>());
        let share = OUTER * beyond / (within + beyond);
        Ok(share.is_finite().then_some(share))
    }

    /// Where a climb with the coordinate held may begin: from the draws, and where the last two climbs lead.
    fn starts(&self, end: &End, known: &[Vec<f64>], k: usize, value: f64) -> Vec<Vec<f64>> {
        let mut starts = match k {
            0 => vec![end.points[0].clone()],
            _ if k <= WITHIN => end.points.to_vec(),
            _ => Vec::new(),
        };
        if let [.., before, last] = known {
            starts.push(last.iter().zip(before).map(|(last, before)| 2.0 * last - before).collect());
        }
        starts.extend(known.last().cloned());
        starts.iter_mut().for_each(|start| start[end.coordinate] = value);
        starts
    }

    /// log of the mass at a value of a coordinate, and the point at which it is highest; nothing where there is no density, none
    /// where curvature does not tell.
    fn mass_at(
        &self,
        coordinate: usize,
        value: f64,
        starts: Vec<Vec<f64>>,
    ) -> Result<Option<(f64, Option<Vec<f64>>)>> {
        let nothing = Some((f64::NEG_INFINITY, None));
        let asked = places(self.target, starts)?.into_iter().filter(Place::is_finite);
        let Some(best) = asked.reduce(|a, b| if b.log_density > a.log_density { b } else { a }) else {
            return Ok(nothing);
        };
        if best.point.len() == 1 {
            return Ok(Some((best.log_density, Some(best.point))));
        }
        let held = Held { target: self.target, coordinate, value };
        let Some(frame) = held.frame(self.mixture.nearest(&best.point)) else { return Ok(None) };
        let start = places(&held, vec![held.without(&best.point)])?;
        let way = Way { frame: &frame, first: 1.0, most: MOST };
        let Some(top) = climb(&held, start, way)?.pop().map(|climb| climb.place).filter(Place::is_finite)
        else {
            return Ok(nothing);
        };
        let curvature = laplace(&held, &top, &frame, Covariance::Dense)?;
        if !curvature.proper {
            return Ok(None);
        }
        Ok(Some((
            top.log_density + curvature.gain + curvature.shape.log_volume(),
            Some(held.with(&top.point)),
        )))
    }
}

/// ∫ of an exponential between two logarithms, relative to a third, per step; nothing towards a wall, wherever in the step it is.
fn between(a: f64, b: f64, scale: f64) -> f64 {
    let [x, y] = [a - scale, b - scale].map(f64::exp);
    match (a - b).abs() {
        _ if x == 0.0 || y == 0.0 => 0.0,
        flat if flat < 1e-6 => 0.5 * (x + y),
        _ => (x - y) / (a - b),
    }
}

/// A density with one coordinate held: a function of the others.
struct Held<'a> {
    target: &'a dyn Target,
    coordinate: usize,
    value: f64,
}

impl Held<'_> {
    fn with(&self, rest: &[f64]) -> Vec<f64> {
        let (before, after) = rest.split_at(self.coordinate);
        before.iter().chain([&self.value]).chain(after).copied().collect()
    }

    fn without(&self, point: &[f64]) -> Vec<f64> {
        let others = point.iter().enumerate().filter(|(j, _)| *j != self.coordinate);
        others.map(|(_, x)| *x).collect()
    }

    /// The shape of the others where this one is known, in a normal.
    fn frame(&self, near: &Component) -> Option<Shape> {
        let dim = near.mean.len();
        let mut precision = Vec::with_capacity((dim - 1) * (dim - 1));
        for j in (0..dim).filter(|j| *j != self.coordinate) {
            let mut unit = vec![0.0; dim];
            unit[j] = 1.0;
            near.shape.solve(&mut unit);
            near.shape.solve_transposed(&mut unit);
            precision.extend(self.without(&unit));
        }
        Shape::of_precision(&precision, dim - 1)
    }
}

impl Target for Held<'_> {
    fn dim(&self) -> usize {
        self.target.dim() - 1
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        let rows: Vec<f64> = x.iter_rows().flat_map(|rest| self.with(rest)).collect();
        let mut whole = Evaluation::zeros(x.rows(), self.target.dim());
        self.target.evaluate(&Batch::from_vec(self.target.dim(), rows), &mut whole)?;
        out.log_density.copy_from_slice(&whole.log_density);
        for i in 0..x.rows() {
            out.score.row_mut(i).copy_from_slice(&self.without(whole.score.row(i)));
        }
        Ok(())
    }
}
