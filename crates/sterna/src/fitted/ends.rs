//! The ends of a law: do draws, and a mixture that was fitted to them, end where the density does?
//!
//! Along a ridge that grows thin, no move may get to the ends, on any chain: draws agree with each other, and a part of the law is
//! missing. So each coordinate is held at values from its outer tenth outwards, beyond the outermost draw; the others climb to the
//! highest point there, and the curvature at it tells how much mass lies at that value. What lies within the outermost draw, beside
//! what lies beyond, says which share of the mass draws miss. And the normals that have these curvatures are what a mixture needs
//! there: before sampling begins they become part of the reference, which then leads to ends that no move gets to.

use super::climb::{Place, Way, climb, places};
use super::laplace::laplace;
use super::numbers::add;
use super::{Component, Covariance, Mixture, Shape};
use crate::lanes::one::exp;
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
/// A mixture leaves out a place where log π − log η exceeds log Z by so many nats …
const LEFT_OUT: f64 = 2.0;
/// … and such a place is worth a normal if so large a share of the mass lies around it.
const WORTH_A_NORMAL: f64 = 1e-5;
/// No normal of a row takes more than this, whatever lies there: its share is a guess.
const MOST_OF_ALL: f64 = 0.25;
/// A normal in a row of them is so many steps wide along the row: together they are flat.
const ALONG: f64 = 0.8;
/// And so much wider than curvature tells.
const WIDER: f64 = 1.1;

/// What a look at the ends of a law needs.
pub(crate) struct Ends<'a> {
    pub target: &'a dyn Target,
    pub mixture: &'a Mixture,
    /// Draws.
    pub points: Vec<&'a [f64]>,
}

/// One end of a coordinate.
pub(crate) struct End {
    pub coordinate: usize,
    /// Values: where the outer tenth begins, and the outermost.
    from: f64,
    pub to: f64,
    /// Draws at both.
    points: [Vec<f64>; 2],
    /// How far the outer tenth reaches beside the half within it: little where a tail is cut.
    reach: f64,
}

/// The highest place at a value of a coordinate.
struct Top {
    point: Vec<f64>,
    log_density: f64,
    /// log of the mass there, per step, as far as curvature tells.
    log_mass: f64,
    /// The shape of the other coordinates there; none where there are no others.
    others: Option<Shape>,
}

/// What is seen at a value of a coordinate.
enum Seen {
    /// Curvature does not tell.
    Unknown,
    /// No density.
    Nothing,
    Top(Top),
}

/// The way outwards at one end.
pub(crate) struct Outwards {
    /// Share of the mass beyond the outermost draw.
    pub share: f64,
    /// Highest places on the way.
    tops: Vec<Top>,
    /// Share of the mass in one step at each.
    shares: Vec<f64>,
    /// The coordinate that is held.
    coordinate: usize,
}

impl Ends<'_> {
    /// All ends; those that reach least first.
    pub fn all(&self) -> Vec<End> {
        let dim = self.mixture.dim();
        let points = &self.points;
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
        ends.sort_by(|a, b| a.reach.total_cmp(&b.reach));
        ends
    }

    /// The way outwards at an end; none where curvature does not tell.
    pub fn outwards(&self, end: &End) -> Result<Option<Outwards>> {
        let step = (end.to - end.from) / WITHIN as f64;
        let (mut masses, mut tops): (Vec<f64>, Vec<Top>) = (Vec::new(), Vec::new());
        for k in 0..=WITHIN + BEYOND {
            let value = end.from + k as f64 * step;
            let starts = self.starts(end, &tops, k, value);
            match self.top_at(end.coordinate, value, starts)? {
                Seen::Unknown => return Ok(None),
                Seen::Nothing => masses.push(f64::NEG_INFINITY),
                Seen::Top(top) => {
                    masses.push(top.log_mass);
                    tops.push(top);
                }
            }
            if k > WITHIN && masses[k] < masses[WITHIN] - NOTHING {
                break;
            }
        }
        let all: Vec<f64> = masses.windows(2).map(|pair| between(pair[0], pair[1], masses[0])).collect();
        let (within, beyond) = all.split_at(WITHIN);
        let [within, beyond] = [within, beyond].map(|part| part.iter().sum::<f64>());
        let share_of = |mass: f64| OUTER * mass / (within + beyond);
        let shares = tops.iter().map(|top| share_of(exp(top.log_mass - masses[0]))).collect();
        let share = share_of(beyond);
        Ok(share.is_finite().then_some(Outwards { share, tops, shares, coordinate: end.coordinate }))
    }

    /// Where a climb with the coordinate held may begin: from the draws, and where the last two climbs lead.
    fn starts(&self, end: &End, known: &[Top], k: usize, value: f64) -> Vec<Vec<f64>> {
        let mut starts = match k {
            0 => vec![end.points[0].clone()],
            _ if k <= WITHIN => end.points.to_vec(),
            _ => Vec::new(),
        };
        if let [.., before, last] = known {
            let ahead = last.point.iter().zip(&before.point).map(|(last, before)| 2.0 * last - before);
            starts.push(ahead.collect());
        }
        starts.extend(known.last().map(|top| top.point.clone()));
        starts.iter_mut().for_each(|start| start[end.coordinate] = value);
        starts
    }

    /// The highest place at a value of a coordinate, with the mass there.
    fn top_at(&self, coordinate: usize, value: f64, starts: Vec<Vec<f64>>) -> Result<Seen> {
        let asked = places(self.target, starts)?.into_iter().filter(Place::is_finite);
        let Some(best) = asked.reduce(|a, b| if b.log_density > a.log_density { b } else { a }) else {
            return Ok(Seen::Nothing);
        };
        let Place { point, log_density, .. } = best;
        if point.len() == 1 {
            return Ok(Seen::Top(Top { point, log_density, log_mass: log_density, others: None }));
        }
        let held = Held { target: self.target, coordinate, value };
        let Some(frame) = held.frame(self.mixture.nearest(&point)) else { return Ok(Seen::Unknown) };
        let start = places(&held, vec![held.without(&point)])?;
        let way = Way { frame: &frame, first: 1.0, most: MOST };
        let Some(top) = climb(&held, start, way)?.pop().map(|climb| climb.place).filter(Place::is_finite)
        else {
            return Ok(Seen::Nothing);
        };
        let curvature = laplace(&held, &top, &frame, Covariance::Dense)?;
        if !curvature.proper {
            return Ok(Seen::Unknown);
        }
        let log_mass = top.log_density + curvature.gain + curvature.shape.log_volume();
        let (point, log_density) = (held.with(&top.point), top.log_density);
        Ok(Seen::Top(Top { point, log_density, log_mass, others: Some(curvature.shape) }))
    }
}

impl Outwards {
    /// Normals for those places on the way that a mixture leaves out, beside which log Z is this; each has the share of the mass in
    /// its step as its weight, up to a bound.
    pub fn left_out(&self, mixture: &Mixture, log_z: f64, kind: Covariance) -> Vec<Component> {
        let (mut score, mut work) = (vec![0.0; mixture.dim()], Vec::new());
        let mut normals = Vec::new();
        for (k, (top, &weight)) in self.tops.iter().zip(&self.shares).enumerate() {
            let gap = top.log_density - mixture.evaluate(&top.point, &mut score, &mut work);
            if gap > log_z + LEFT_OUT && weight > WORTH_A_NORMAL {
                normals.extend(self.shape_at(k).map(|shape| Component {
                    weight: weight.min(MOST_OF_ALL),
                    mean: top.point.clone(),
                    shape: kind.kind_of(&shape).widened(WIDER),
                }));
            }
        }
        normals
    }

    /// The shape of a normal in the row: across the way as curvature tells, and along it as far as the next.
    fn shape_at(&self, k: usize) -> Option<Shape> {
        let (before, after) = (k.saturating_sub(1), (k + 1).min(self.tops.len() - 1));
        if before == after {
            return None;
        }
        let [a, b] = [before, after].map(|k| &self.tops[k].point);
        let scale = ALONG / (after - before) as f64;
        let along: Vec<f64> = b.iter().zip(a).map(|(b, a)| scale * (b - a)).collect();
        let dim = along.len();
        let mut covariance = vec![0.0; dim * dim];
        if let Some(others) = &self.tops[k].others {
            let others = others.covariance();
            let free = |i: usize| i - usize::from(i > self.coordinate);
            for i in (0..dim).filter(|i| *i != self.coordinate) {
                for j in (0..dim).filter(|j| *j != self.coordinate) {
                    covariance[i * dim + j] = others[free(i) * (dim - 1) + free(j)];
                }
            }
        }
        covariance.chunks_exact_mut(dim).zip(&along).for_each(|(row, by)| add(row, *by, &along));
        Shape::of_covariance(&covariance, dim).filter(|shape| shape.check().is_ok())
    }
}

/// ∫ of an exponential between two logarithms, relative to a third, per step; nothing towards a wall, wherever in the step it is.
fn between(a: f64, b: f64, scale: f64) -> f64 {
    let [x, y] = [a - scale, b - scale].map(exp);
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

#[cfg(test)]
mod tests {
    use super::super::soundings::tests::Known;
    use super::*;
    use crate::Streams;
    use crate::streams::Phase;
    use crate::targets::Banana;

    /// A mode whose mass is all but everything, in the way outwards from draws that never came near it.
    #[test]
    fn a_heavy_mode_beyond_the_outermost_draw_takes_no_more_than_a_normal_may() {
        let part = |weight: f64, mean: f64, width: f64| Component {
            weight,
            mean: vec![mean],
            shape: Shape::Diagonal(vec![width]),
        };
        // Draws lie evenly between −1 and 1; the outer tenth is 0.2 wide, and two steps are.
        let draws: Vec<f64> = (0..=100).map(|i| 0.02 * f64::from(i) - 1.0).collect();
        let target = Known(Mixture::new(vec![part(1e-40, 0.0, 1.0), part(1.0, 1.3, 0.01)]).unwrap());
        let mixture = Mixture::normal(vec![0.0], Shape::Diagonal(vec![1.0])).unwrap();
        let ends = Ends { target: &target, mixture: &mixture, points: draws.chunks_exact(1).collect() };
        let mut grown = mixture.clone();
        for end in ends.all() {
            for normal in ends.outwards(&end).unwrap().unwrap().left_out(&grown, -92.0, Covariance::Dense) {
                assert!(normal.weight <= MOST_OF_ALL, "{}", normal.weight);
                grown = grown.with_component(normal).unwrap();
            }
        }
        let near = grown.nearest(&[1.3]);
        assert!((near.mean[0] - 1.3).abs() < 0.02 && near.weight > 0.1, "{near:?}");
    }

    /// A mixture fitted to 3,000 draws of a banana that end 1.5 standard deviations out, and the normals at the ends beyond; a fixed seed.
    #[test]
    fn normals_at_its_ends_carry_a_mixture_on_along_a_ridge() {
        let target = Banana::new(2);
        let draw = |i: u32| {
            let (mut stream, mut x) = (Streams::new(6).row(Phase::Check, 0, i), [f64::INFINITY; 2]);
            while x[0].abs() > 1.5 * target.width() {
                assert!(target.draw(&mut stream, &mut x));
            }
            x
        };
        let draws = Batch::from_vec(2, (0..3000).flat_map(draw).collect());
        let one = Mixture::normal(vec![0.0; 2], Shape::Diagonal(vec![1.0; 2])).unwrap();
        let kind = Covariance::Dense;
        let fitted = one.refit(&draws, 3000.0, kind).split(&draws, 3000.0, kind).refit(&draws, 3000.0, kind);
        let ends = Ends { target: &target, mixture: &fitted, points: draws.iter_rows().collect() };
        let mut grown = fitted.clone();
        for end in ends.all() {
            let outwards = ends.outwards(&end).unwrap().unwrap();
            for normal in outwards.left_out(&grown, 0.0, kind) {
                grown = grown.with_component(normal).unwrap();
            }
        }
        assert!(grown.components().len() > fitted.components().len());
        // log Z is 0: on the ridge, so far out, log π − log η is what is missing.
        for out in [1.8, 2.2, 2.6, 3.0] {
            for sign in [-1.0, 1.0] {
                let x0 = sign * out * target.width();
                let known = grown.nearest(&[x0, 0.0]).mean.clone();
                let held = Held { target: &target, coordinate: 0, value: x0 };
                let frame = Shape::Diagonal(vec![1.0]);
                let start = places(&held, vec![vec![known[1]]]).unwrap();
                let way = Way { frame: &frame, first: 1.0, most: MOST };
                let top = climb(&held, start, way).unwrap().pop().unwrap().place;
                let missing = |mixture: &Mixture| {
                    let at = held.with(&top.point);
                    top.log_density - mixture.evaluate(&at, &mut [0.0; 2], &mut Vec::new())
                };
                assert!(missing(&grown) < 2.5, "{out}: {}", missing(&grown));
                assert!(out < 2.0 || missing(&fitted) > 10.0, "{out}: {}", missing(&fitted));
            }
        }
    }
}
