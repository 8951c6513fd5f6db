//! The suite that every accelerator is put through (§3.1, §3.2, §4).

use crate::invariance::{Statistic, check_invariance};
use crate::ladders::ExactLadder;
use crate::moves::{depart, swap};
use crate::p_values::{mean_and_error, z_test, z_test_at_most_zero};
use crate::verdict::Verdict;
use sterna::accelerator::{Accelerator, Direction, Journey};
use sterna::call::{Call, Rows, Scratch};
use sterna::path::{AnnealingPath, Points};
use sterna::{Batch, Schedule, Streams};

/// Exact ladders that travel in each direction.
const LADDERS: usize = 20_000;
/// Exact pairs of chains that are swapped.
const SWAPPED: usize = 6000;
/// Rows that also travel alone.
const ALONE: usize = 24;

/// Puts an accelerator through the whole suite on a ladder whose chains can be drawn exactly:
///
/// - no weight and no end point is NaN, and end points are evaluated at the chain they go to;
/// - a row's journey has the same bits alone, in a batch, and when repeated;
/// - where nothing is random, going there and back ends where it began, with the same weight;
/// - the swap keeps π^β ⊗ π^β′;
/// - reversal: forward paths reweighed by w are backward paths, in law and in mass;
/// - r = E|tanh(Δ/2)| = 1 − E min(1, e^Δ), and both bounds on r by the symmetric divergence.
///
/// A sound accelerator fails with probability `false_alarm` on a fresh seed.
///
/// ```
/// use sterna::{Schedule, accelerators::Identity};
/// use sterna_testkit::{FALSE_ALARM, GaussianLadder, check_accelerator};
/// let ladder = GaussianLadder::uneven(2);
/// check_accelerator(&Identity, &ladder, &Schedule::uniform(4), 1, FALSE_ALARM).assert_passed();
/// ```
pub fn check_accelerator(
    accelerator: &dyn Accelerator,
    ladder: &dyn ExactLadder,
    schedule: &Schedule,
    seed: u64,
    false_alarm: f64,
) -> Verdict {
    let path = ladder.path();
    let streams = |n: u64| Streams::new(crate::seed(seed) ^ (n << 48));
    let mut verdict = Verdict::new(false_alarm);

    // Starts and noise of the two directions must be independent of each other.
    let travel = |direction: Direction, ladders: Batch| {
        Trip::make(accelerator, &*path, schedule, direction, &streams(3), ladders)
    };
    let up = travel(Direction::Forward, ladder.draw_ladder(schedule, &streams(1), LADDERS));
    let down = travel(Direction::Backward, ladder.draw_ladder(schedule, &streams(2), LADDERS));
    for trip in [&up, &down] {
        trip.require_numbers(&mut verdict);
        trip.require_evaluated_ends(&*path, &mut verdict);
        trip.require_own_bits(accelerator, &*path, &streams(3), &mut verdict);
        trip.require_way_back(accelerator, &*path, [&streams(3), &streams(4)], &mut verdict);
    }
    for pair in 1..=schedule.pairs() {
        let interval = schedule.interval(pair);
        let log_ratio = ladder.log_z(interval.upper).zip(ladder.log_z(interval.lower)).map(|(a, b)| a - b);
        let (forward, backward) = (up.of_pair(pair, schedule), down.of_pair(pair, schedule));
        let mut about_pair = Verdict::new(false_alarm);
        reversal(&forward, &backward, log_ratio, &mut about_pair);
        rejection(&forward, &backward, &mut about_pair);
        verdict.merge(&format!("pair {pair}: "), about_pair);

        let betas = [interval.lower, interval.upper];
        let kept = check_invariance(
            |streams| ladder.draw_betas(&betas, streams, SWAPPED),
            swap(&*path, schedule, pair, accelerator),
            &Statistic::ladder(&path, &betas),
            seed ^ ((pair as u64) << 40),
            false_alarm,
        );
        verdict.merge(&format!("pair {pair}: swap: "), kept);
    }
    verdict
}

/// Journeys of all pairs of many ladders.
struct Trip {
    direction: Direction,
    rows: Rows,
    start: Points,
    journey: Journey,
}

/// Paths of one pair, written forward: points on the lower chain, on the upper one, and log w.
struct Paths<'a> {
    lower: Vec<&'a [f64]>,
    upper: Vec<&'a [f64]>,
    log_weight: Vec<f64>,
}

fn carry(accelerator: &dyn Accelerator, direction: Direction, call: &Call, journey: &mut Journey) {
    let made = accelerator.travel(direction, call, journey, &mut Scratch::default());
    made.expect("the accelerator travels");
}

impl Trip {
    fn make(
        accelerator: &dyn Accelerator,
        path: &dyn AnnealingPath,
        schedule: &Schedule,
        direction: Direction,
        streams: &Streams,
        ladders: Batch,
    ) -> Self {
        let (rows, mut journey) = depart(direction, path, schedule, &ladders);
        let start = journey.points.clone();
        carry(accelerator, direction, &Call::new(path, streams, 1, &rows), &mut journey);
        Self { direction, rows, start, journey }
    }

    fn of_pair(&self, pair: usize, schedule: &Schedule) -> Paths<'_> {
        let rows = || (pair - 1..self.rows.len()).step_by(schedule.pairs());
        let starts = rows().map(|i| self.start.x.row(i)).collect();
        let ends = rows().map(|i| self.journey.points.x.row(i)).collect();
        let log_weight = rows().map(|i| self.journey.log_weight[i]).collect();
        match self.direction {
            Direction::Forward => Paths { lower: starts, upper: ends, log_weight },
            Direction::Backward => Paths { lower: ends, upper: starts, log_weight },
        }
    }

    /// Log-weights may be −∞ going forward (into zero density), +∞ going backward.
    fn require_numbers(&self, verdict: &mut Verdict) {
        let numbers = |values: &[f64]| values.iter().all(|v| !v.is_nan());
        let Journey { points, log_weight, .. } = &self.journey;
        let way = self.direction;
        let n = self.rows.len();
        verdict
            .require(log_weight.len() == n && points.rows() == n, format!("{way:?}: a weight for each row"));
        verdict.require(numbers(log_weight), format!("{way:?}: log-weights are numbers"));
        verdict
            .require(points.x.as_slice().iter().all(|x| x.is_finite()), format!("{way:?}: ends are finite"));
        verdict.require(numbers(&points.log_density), format!("{way:?}: log densities are numbers"));
    }

    /// End points carry what the path says of them at the chain they go to.
    fn require_evaluated_ends(&self, path: &dyn AnnealingPath, verdict: &mut Verdict) {
        let betas: Vec<f64> = self
            .rows
            .interval
            .iter()
            .map(
                |interval| if self.direction == Direction::Forward { interval.upper } else { interval.lower },
            )
            .collect();
        let mut fresh = self.journey.points.clone();
        path.evaluate(&betas, &mut fresh).expect("the path answers");
        let close = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).all(|(a, b)| a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0))
        };
        let points = &self.journey.points;
        let way = self.direction;
        let same = close(&points.log_density, &fresh.log_density);
        verdict.require(same, format!("{way:?}: ends have the log density of their new chain"));
        let same = close(points.score.as_slice(), fresh.score.as_slice());
        verdict.require(same, format!("{way:?}: ends have the score of their new chain"));
        // A later move to another β must start from the truth as well.
        let mut moved = points.clone();
        path.move_to(&vec![0.5; betas.len()], &mut moved).expect("the path answers");
        path.evaluate(&vec![0.5; betas.len()], &mut fresh).expect("the path answers");
        let same = close(&moved.log_density, &fresh.log_density)
            && close(moved.score.as_slice(), fresh.score.as_slice());
        verdict.require(same, format!("{way:?}: ends carry what moving on to another chain needs"));
    }

    /// Journeys that do not depend on the noise are maps, and must invert each other: to 10⁻⁶, since
    /// some maps are inverted by iteration.
    fn require_way_back(
        &self,
        accelerator: &dyn Accelerator,
        path: &dyn AnnealingPath,
        [same, other]: [&Streams; 2],
        verdict: &mut Verdict,
    ) {
        let rows: Vec<usize> = (0..self.rows.len().min(200)).collect();
        let travellers = self.travellers_of(&rows);
        let travel = |direction: Direction, streams: &Streams, start: &Points| {
            let mut journey = Journey::new(rows.len(), path.dim());
            journey.begin(start, &rows);
            carry(accelerator, direction, &Call::new(path, streams, 1, &travellers), &mut journey);
            journey
        };
        let there = travel(self.direction, same, &self.start);
        if there.points.x != travel(self.direction, other, &self.start).points.x {
            return;
        }
        let back = match self.direction {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        };
        let returned = travel(back, same, &there.points);
        let close = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1.0);
        let way = self.direction;
        let begin = self.start.x.as_slice();
        let home = returned.points.x.as_slice().iter().zip(begin).all(|(a, b)| close(*a, *b));
        verdict.require(home, format!("{way:?}: the way back leads back"));
        let same = returned.log_weight.iter().zip(&there.log_weight).all(|(a, b)| close(*a, *b));
        verdict.require(same, format!("{way:?}: the way back weighs the same"));
    }

    fn travellers_of(&self, rows: &[usize]) -> Rows {
        let mut some = Rows::default();
        some.choose(&self.rows, rows);
        some.row = (0..rows.len()).collect();
        some
    }

    /// Some rows travel again, alone and together: the same bits.
    fn require_own_bits(
        &self,
        accelerator: &dyn Accelerator,
        path: &dyn AnnealingPath,
        streams: &Streams,
        verdict: &mut Verdict,
    ) {
        let way = self.direction;
        // Neighbours in other orders and numbers than before.
        let chosen: Vec<usize> =
            (0..ALONE.min(self.rows.len())).map(|i| (i * 37) % self.rows.len()).collect();
        let all = chosen.iter().map(|&i| vec![i]).chain([chosen.clone()]);
        for rows in all {
            let travellers = self.travellers_of(&rows);
            let mut journey = Journey::new(rows.len(), path.dim());
            journey.begin(&self.start, &rows);
            carry(accelerator, way, &Call::new(path, streams, 1, &travellers), &mut journey);
            let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            let same = rows.iter().enumerate().all(|(new, &old)| {
                bits(journey.points.x.row(new)) == bits(self.journey.points.x.row(old))
                    && bits(journey.points.score.row(new)) == bits(self.journey.points.score.row(old))
                    && journey.points.log_density[new].to_bits()
                        == self.journey.points.log_density[old].to_bits()
                    && journey.log_weight[new].to_bits() == self.journey.log_weight[old].to_bits()
            });
            if !same {
                verdict.require(
                    false,
                    format!("{way:?}: a row's bits depend on it alone ({} rows)", rows.len()),
                );
                return;
            }
        }
    }
}

/// Bounded functions of a path's two ends; the first is 1. `shift` is the typical shift of each
/// coordinate, the scale on which noise that is too wide or too narrow shows.
fn test_functions(shift: &[f64]) -> Vec<(String, TestFunction)> {
    let mut out: Vec<(String, TestFunction)> = vec![("mass".into(), Box::new(|_, _| 1.0))];
    for (j, &scale) in shift.iter().enumerate() {
        out.push((format!("lower end, coordinate {j}"), Box::new(move |x, _| x[j].tanh())));
        out.push((format!("upper end, coordinate {j}"), Box::new(move |_, y| y[j].tanh())));
        out.push((format!("upper end, square of {j}"), Box::new(move |_, y| (y[j] * y[j]).tanh())));
        out.push((format!("both ends, coordinate {j}"), Box::new(move |x, y| (x[j] * y[j]).tanh())));
        if scale > 0.0 {
            let shift = move |x: &[f64], y: &[f64]| (y[j] - x[j]) / scale;
            out.push((format!("shift of coordinate {j}"), Box::new(move |x, y| shift(x, y).tanh())));
            let square = move |x: &[f64], y: &[f64]| shift(x, y).powi(2);
            out.push((format!("size of that shift, {j}"), Box::new(move |x, y| (-square(x, y)).exp())));
        }
    }
    out
}
type TestFunction = Box<dyn Fn(&[f64], &[f64]) -> f64>;

/// E_P[w g] = Zₙ/Zₙ₋₁ E_Q[g]. Weights may have no variance, so with ρ = Zₙ/Zₙ₋₁ it is asked as
/// E_P[min(1, w/ρ) g] = E_Q[min(1, ρ/w) g], where all is bounded and which is as strong; where ρ is
/// unknown, as the equality of the two laws of paths reweighed so. Where w has a variance worth the
/// name, E_P[w] = ρ and E_Q[1/w] = 1/ρ are asked as well.
fn reversal(forward: &Paths, backward: &Paths, log_ratio: Option<f64>, verdict: &mut Verdict) {
    let centre = log_ratio
        .unwrap_or_else(|| sterna::estimates::bar(&forward.log_weight, &backward.log_weight).log_ratio);
    if centre.is_nan() {
        // Sides that do not meet have nothing that could be compared.
        return;
    }
    let bounded = |log: f64| log.min(0.0).exp();
    let values = |paths: &Paths, sign: f64, g: &TestFunction| -> Vec<f64> {
        let ends = paths.lower.iter().zip(&paths.upper);
        ends.zip(&paths.log_weight).map(|((x, y), w)| bounded(sign * (w - centre)) * g(x, y)).collect()
    };
    let shift = |j: usize| {
        let squares = forward.lower.iter().zip(&forward.upper).map(|(x, y)| (y[j] - x[j]).powi(2));
        (squares.sum::<f64>() / forward.lower.len() as f64).sqrt()
    };
    let functions = test_functions(&(0..forward.lower[0].len()).map(shift).collect::<Vec<_>>());
    let (mass_up, mass_down) =
        (values(forward, 1.0, &functions[0].1), values(backward, -1.0, &functions[0].1));
    for (k, (name, g)) in functions.iter().enumerate() {
        let (mut a, mut b) = (values(forward, 1.0, g), values(backward, -1.0, g));
        if log_ratio.is_none() {
            if k == 0 {
                continue;
            }
            normalise(&mut a, &mass_up);
            normalise(&mut b, &mass_down);
        }
        let ((a, a_error), (b, b_error)) = (mean_and_error(&a), mean_and_error(&b));
        verdict.add(format!("reversal: {name}"), z_test(a - b, a_error.hypot(b_error), 1.0));
    }
    let Some(log_ratio) = log_ratio else { return };
    for (name, paths, sign) in [("E_P[w]", forward, 1.0), ("E_Q[1/w]", backward, -1.0)] {
        let w: Vec<f64> = paths.log_weight.iter().map(|w| (sign * (w - log_ratio)).exp()).collect();
        let (sum, squares) = w.iter().fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
        if sum * sum > 0.2 * squares * w.len() as f64 {
            let (mean, error) = mean_and_error(&w);
            verdict.add(format!("reversal: {name}"), z_test(mean - 1.0, error, 1.0));
        }
    }
}

/// Turns values of g·m into those whose mean is E[g m]/E[m] and whose spread is that of this ratio.
fn normalise(values: &mut [f64], mass: &[f64]) {
    let n = mass.len() as f64;
    let (total, sum) = (mass.iter().sum::<f64>() / n, values.iter().sum::<f64>() / n);
    let ratio = sum / total;
    values.iter_mut().zip(mass).for_each(|(v, m)| *v = ratio + (*v - ratio * m) / total);
}

/// r = E|tanh(Δ/2)| = 1 − E min(1, e^Δ) over independent paths of both directions; with the
/// symmetric divergence SKL = −½ E[Δ], r² ≤ SKL and r² ≤ 1 − exp(−2 SKL).
fn rejection(forward: &Paths, backward: &Paths, verdict: &mut Verdict) {
    let delta: Vec<f64> = forward.log_weight.iter().zip(&backward.log_weight).map(|(f, b)| f - b).collect();
    let by_tanh: Vec<f64> = delta.iter().map(|d| (0.5 * d).tanh().abs()).collect();
    let differences: Vec<f64> =
        delta.iter().zip(&by_tanh).map(|(d, t)| t - (1.0 - d.min(0.0).exp())).collect();
    let (mean, error) = mean_and_error(&differences);
    verdict.add("rejection: tanh against acceptance", z_test(mean, error, 1.0));
    // Δ → −Δ with weight e^Δ: odd bounded functions of Δ, reweighed by min(1, e^Δ), average to zero.
    let odd: Vec<f64> = delta.iter().map(|d| d.min(0.0).exp() * (0.5 * d).tanh()).collect();
    let (mean, error) = mean_and_error(&odd);
    verdict.add("rejection: symmetry of accepted swaps", z_test(mean, error, 1.0));
    if delta.iter().any(|d| d.is_infinite()) {
        return; // SKL is infinite and bounds nothing.
    }
    let r = mean_and_error(&by_tanh).0;
    let divergence = -0.5 * mean_and_error(&delta).0;
    // First-order errors: both bounds are smooth functions of two means over the same paths.
    let bounds = [
        ("r² ≤ SKL", divergence, 1.0),
        ("r² ≤ 1 − exp(−2 SKL)", 1.0 - (-2.0 * divergence).exp(), 2.0 * (-2.0 * divergence).exp()),
    ];
    for (name, bound, slope) in bounds {
        let influence: Vec<f64> =
            delta.iter().zip(&by_tanh).map(|(d, t)| 2.0 * r * t + 0.5 * slope * d).collect();
        let p = z_test_at_most_zero(r * r - bound, mean_and_error(&influence).1, 1.0);
        verdict.add(format!("rejection: {name}"), p);
    }
}
