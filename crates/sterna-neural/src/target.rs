//! Targets inside a graph: log densities as values, so that scores, Hessian-vector products and losses
//! along whole paths come from differentiating (§5.2, App. E.1).
//!
//! The built-in targets are written as operations and exact to any order. A user's target that offers only
//! log density and score is called on the host; derivatives of its score are central differences in f64.

use std::f64::consts::TAU;
use std::sync::{Arc, Mutex, Weak};
use sterna::lanes::one::{self, LN_TAU};

use sterna::targets::{Banana, Dw4, Funnel, Gmm, ManyWell, Normal, dw4, funnel, many_well};
use sterna::{Batch, Differences, Evaluation, Target};

use crate::graph::HostFunction;
use crate::graph::Value;
use crate::particles::Particles;
use crate::{Error, Result};

/// A target that records its log density.
///
/// ```
/// use sterna::targets::Normal;
/// use sterna_neural::{Cpu, Device, Graph, GraphTarget, Parameters};
///
/// let graph = Graph::new();
/// let x = graph.input("x", 2);
/// let score = Normal::isotropic(2, 4.0).score(x);
/// let device: &dyn Device<f64> = &Cpu::new(1);
/// let mut program = device.compile(&graph, &[score]).unwrap();
/// program.run(&Parameters::empty(), 1, &[&[1.0, -0.5]]).unwrap();
/// assert_eq!(program.output(0), [-4.0, 2.0]);
/// ```
pub trait GraphTarget: Send + Sync {
    /// Length of a point.
    fn dim(&self) -> usize;

    /// Records log π̃(x), one column.
    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g>;

    /// Records ∇ log π̃(x).
    fn score<'g>(&self, x: Value<'g>) -> Value<'g> {
        let graph = x.graph();
        graph.gradient(self.log_density(x), &[x])[0]
    }

    /// The target itself, where the host evaluates it.
    fn on_host(&self) -> Option<Arc<dyn Target>> {
        None
    }

    /// Evaluations of the target that one score takes beside its log density, where it has none.
    fn score_evaluations(&self) -> u64 {
        0
    }

    /// Evaluations of the target that one derivative of its score takes, where it is not recorded.
    fn derivative_evaluations(&self) -> u64 {
        0
    }
}

impl GraphTarget for Normal {
    fn dim(&self) -> usize {
        self.mean().len()
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        let (graph, d) = (x.graph(), self.mean().len());
        let shift = x - graph.constant(d, self.mean());
        let sum = (shift.square() * graph.constant(d, self.precision())).sum_cols();
        sum * -0.5 - 0.5 * d as f64 * LN_TAU
    }
}

impl GraphTarget for Gmm {
    fn dim(&self) -> usize {
        Target::dim(self)
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        let (graph, d, n) = (x.graph(), Target::dim(self), self.means().len());
        let precision = self.standard_deviation().powi(-2);
        // The means differ only in the first two coordinates.
        let squares: Vec<_> = (0..2)
            .map(|j| {
                let means: Vec<f64> = self.means().iter().map(|m| m[j]).collect();
                (x.slice(j, 1) - graph.constant(n, &means)).square()
            })
            .collect();
        let mixture = ((squares[0] + squares[1]) * (-0.5 * precision)).log_sum_exp();
        let constant = 0.5 * d as f64 * one::ln(precision / TAU) - one::ln(n as f64);
        if d == 2 {
            return mixture + constant;
        }
        let rest = x.slice(2, d - 2);
        mixture + rest.dot(rest) * (-0.5 * precision) + constant
    }
}

impl GraphTarget for Dw4 {
    fn dim(&self) -> usize {
        6
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        let particles = Particles::DW4.lift(x);
        let (from, to): (Vec<_>, Vec<_>) = dw4::PAIRS.iter().map(|p| (p[0], p[1])).unzip();
        let difference = particles.gather(&from) - particles.gather(&to);
        // Two particles in one place have no direction to part in: no force rather than NaN.
        let u = (difference.dot(difference) + 1e-30).sqrt() - Self::DISTANCE;
        let u2 = u.square();
        (u2 * (u2 * -Self::QUARTIC - Self::QUADRATIC)).reshape(1, 6).sum_cols()
    }
}

impl GraphTarget for ManyWell {
    fn dim(&self) -> usize {
        Target::dim(self)
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        let (graph, d) = (x.graph(), Target::dim(self));
        let alternate = |c: [f64; 2]| graph.constant(d, &(0..d).map(|j| c[j % 2]).collect::<Vec<_>>());
        let x2 = x.square();
        let even = (x2 * alternate(many_well::QUARTIC) + alternate(many_well::QUADRATIC)) * x2;
        (even + x * alternate(many_well::LINEAR)).sum_cols()
    }
}

impl GraphTarget for Funnel {
    fn dim(&self) -> usize {
        Target::dim(self)
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        let d = Target::dim(self);
        let (neck, rest) = (x.slice(0, 1), x.slice(1, d - 1));
        let constant = -0.5 * d as f64 * LN_TAU - 0.5 * one::ln(funnel::NECK_VARIANCE);
        neck.square() * (-0.5 / funnel::NECK_VARIANCE)
            - neck * (0.5 * (d - 1) as f64)
            - rest.dot(rest) * (-neck).exp() * 0.5
            + constant
    }
}

impl GraphTarget for Banana {
    fn dim(&self) -> usize {
        Target::dim(self)
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        let (d, variance) = (Target::dim(self), self.width() * self.width());
        let (x0, x1) = (x.slice(0, 1), x.slice(1, 1));
        let off_ridge = x1 - (x0.square() - variance) * self.curvature();
        let mut norm = x0.square() * (1.0 / variance) + off_ridge.square();
        if d > 2 {
            let rest = x.slice(2, d - 2);
            norm = norm + rest.dot(rest);
        }
        norm * -0.5 - 0.5 * d as f64 * LN_TAU - one::ln(self.width())
    }
}

/// Any [`sterna::Target`] as a value: log density and score from the host, higher derivatives by central
/// differences of the score, which itself is one of differences where the target has none.
#[derive(Clone)]
pub struct HostTarget {
    shared: Arc<Shared>,
}

struct Shared {
    target: Arc<dyn Target>,
    /// The last points evaluated: log density and score of the same points cost one evaluation, though those
    /// of a journey's other end may come in between.
    last: Mutex<Recent>,
    /// The functions handed to graphs, by order of derivative, so that equal calls are recognised as equal.
    log_density: Mutex<Weak<LogDensity>>,
    derivatives: Mutex<Vec<Weak<ScoreDerivative>>>,
}

/// What was evaluated last, and which of it is overwritten next.
#[derive(Default)]
struct Recent {
    all: [Scratch; 4],
    next: usize,
}

#[derive(Default)]
struct Scratch {
    points: Batch,
    out: Evaluation,
    known: bool,
}

impl HostTarget {
    /// Wraps a target.
    pub fn new(target: Arc<dyn Target>) -> Self {
        let (log_density, derivatives) = (Mutex::new(Weak::new()), Mutex::default());
        Self { shared: Arc::new(Shared { target, last: Mutex::default(), log_density, derivatives }) }
    }

    fn derivative<'g>(&self, x: Value<'g>, directions: &[Value<'g>]) -> Value<'g> {
        let order = directions.len();
        let mut known = self.shared.derivatives.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let orders = known.len().max(order + 1);
        known.resize(orders, Weak::new());
        let function = shared_function(&mut known[order], || ScoreDerivative { target: self.clone(), order });
        let inputs: Vec<_> = std::iter::once(x).chain(directions.iter().copied()).collect();
        x.graph().host(function, &inputs, self.dim())
    }
}

/// The function that a graph still holds, or a new one.
fn shared_function<F>(known: &mut Weak<F>, make: impl FnOnce() -> F) -> Arc<F> {
    known.upgrade().unwrap_or_else(|| {
        let new = Arc::new(make());
        *known = Arc::downgrade(&new);
        new
    })
}

impl std::fmt::Debug for HostTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostTarget").field("dim", &self.dim()).finish()
    }
}

impl GraphTarget for HostTarget {
    fn dim(&self) -> usize {
        self.shared.target.dim()
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        let mut known = self.shared.log_density.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let function = shared_function(&mut known, || LogDensity { target: self.clone() });
        x.graph().host(function, &[x], 1)
    }

    fn score<'g>(&self, x: Value<'g>) -> Value<'g> {
        self.derivative(x, &[])
    }

    fn on_host(&self) -> Option<Arc<dyn Target>> {
        Some(self.shared.target.clone())
    }

    /// Central differences.
    fn score_evaluations(&self) -> u64 {
        let target = &self.shared.target;
        if target.has_score() { 0 } else { 1 + Differences::new(target.clone()).evaluations() }
    }

    /// Central differences.
    fn derivative_evaluations(&self) -> u64 {
        2
    }
}

/// Any target inside graphs, so that every transport can be trained for it: see [`HostTarget`].
///
/// With the log-variance loss a controlled diffusion asks for nothing but its log density and score.
pub fn host_target(target: Arc<dyn Target>) -> Arc<dyn GraphTarget> {
    Arc::new(HostTarget::new(target))
}

impl Shared {
    /// Evaluates at `points` unless that was just done, then hands the result on.
    fn evaluate(&self, rows: usize, points: &[f64], read: impl FnOnce(&Evaluation)) -> Result<()> {
        let mut last = self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Recent { all, next } = &mut *last;
        let found = all.iter().position(|s| s.known && s.points.as_slice() == points);
        let Scratch { points: kept, out, known } = &mut all[found.unwrap_or(*next)];
        if found.is_none() {
            *known = false;
            *next = (*next + 1) % 4;
            if kept.dim() != self.target.dim() {
                *kept = Batch::zeros(rows, self.target.dim());
                *out = Evaluation::zeros(rows, self.target.dim());
            }
            kept.set_rows(rows);
            out.set_rows(rows);
            kept.as_mut_slice().copy_from_slice(points);
            self.target.evaluate(kept, out).map_err(|e| Error::Host(e.to_string()))?;
            *known = true;
        }
        read(out);
        Ok(())
    }

    /// Scores of a target that has none.
    fn differences(&self, rows: usize, points: &[f64], scores: &mut [f64]) -> Result<()> {
        let dim = self.target.dim();
        let (x, mut out) = (Batch::from_vec(dim, points.to_vec()), Evaluation::zeros(rows, dim));
        let found = Differences::new(self.target.clone()).evaluate(&x, &mut out);
        found.map_err(|error| Error::Host(error.to_string()))?;
        scores.copy_from_slice(out.score.as_slice());
        Ok(())
    }
}

struct LogDensity {
    target: HostTarget,
}

impl HostFunction for LogDensity {
    fn call(&self, rows: usize, inputs: &[&[f64]], output: &mut [f64]) -> Result<()> {
        self.target.shared.evaluate(rows, inputs[0], |out| output.copy_from_slice(&out.log_density))
    }

    fn pull_back<'g>(&self, inputs: &[Value<'g>], _: Value<'g>, g: Value<'g>) -> Vec<Option<Value<'g>>> {
        vec![Some(g * self.target.score(inputs[0]))]
    }
}

/// The derivative of the score in `order` directions: order 0 is the score itself, order 1 a
/// Hessian-vector product. It is symmetric in its directions, which makes its own derivative simple.
struct ScoreDerivative {
    target: HostTarget,
    order: usize,
}

impl HostFunction for ScoreDerivative {
    fn call(&self, rows: usize, inputs: &[&[f64]], output: &mut [f64]) -> Result<()> {
        let (x, directions) = (inputs[0], &inputs[1..]);
        let dim = self.target.dim();
        if self.order == 0 && !self.target.shared.target.has_score() {
            return self.target.shared.differences(rows, x, output);
        }
        if self.order == 0 {
            return self.target.shared.evaluate(rows, x, |out| output.copy_from_slice(out.score.as_slice()));
        }
        // Unit directions times h, where h balances rounding against the next derivative.
        let h = one::power(f64::EPSILON, 1.0 / (self.order + 2) as f64);
        let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let mut shifted = vec![0.0; x.len()];
        output.fill(0.0);
        for signs in 0..1usize << self.order {
            let sign = |k: usize| if signs >> k & 1 == 0 { 1.0 } else { -1.0 };
            for (i, (to, from)) in shifted.chunks_mut(dim).zip(x.chunks(dim)).enumerate() {
                to.copy_from_slice(from);
                for (k, direction) in directions.iter().enumerate() {
                    let v = &direction[i * dim..(i + 1) * dim];
                    let step = sign(k) * h / norm(v).max(f64::MIN_POSITIVE);
                    to.iter_mut().zip(v).for_each(|(to, v)| *to += step * v);
                }
            }
            let weight = (0..self.order).map(sign).product::<f64>() / (2.0 * h).powi(self.order as i32);
            self.target.shared.evaluate(rows, &shifted, |out| {
                for (i, (to, score)) in output.chunks_mut(dim).zip(out.score.iter_rows()).enumerate() {
                    let lengths: f64 = directions.iter().map(|v| norm(&v[i * dim..(i + 1) * dim])).product();
                    to.iter_mut().zip(score).for_each(|(to, s)| *to += weight * lengths * s);
                }
            })?;
        }
        Ok(())
    }

    fn pull_back<'g>(&self, inputs: &[Value<'g>], _: Value<'g>, g: Value<'g>) -> Vec<Option<Value<'g>>> {
        let (x, directions) = (inputs[0], &inputs[1..]);
        let one_more: Vec<_> = directions.iter().copied().chain([g]).collect();
        let mut all = vec![Some(self.target.derivative(x, &one_more))];
        for k in 0..directions.len() {
            let mut replaced = directions.to_vec();
            replaced[k] = g;
            all.push(Some(self.target.derivative(x, &replaced)));
        }
        all
    }
}
