//! The geometric path inside a graph: what a journey's ends weigh, and where they are pulled, as values (§2).
//!
//! Ends are mixed by the library's own formula ([`sterna::path_formula`]). References are recorded as operations: one normal or
//! several, of any shape; a prior is asked on the host. Points are those of a [`Frame`], in which the reference is N(0, I)
//! or nearly so: products of matrices that would cancel there are formed beforehand, in f64.

use std::sync::Arc;
use sterna::lanes::one::{self, LN_TAU};

use sterna::fitted::{Component, Shape};
use sterna::frame::{Frame, InFrame};
use sterna::path_formula::{path_log_density, path_score};
use sterna::paths::{Geometric, Reference};
use sterna::{Batch, Evaluation, Target};

use crate::graph::Value;
use crate::target::{GraphTarget, host_target};

/// The geometric path from a reference to a target, and perhaps on to an anchor, inside a graph.
#[derive(Clone)]
pub struct GraphPath {
    reference: GraphReference,
    target: Arc<dyn GraphTarget>,
    anchor: Option<GraphReference>,
    /// Scores are never longer, where this is given.
    steepest: Option<f64>,
}

impl GraphPath {
    /// From N(0, I) to `target`.
    pub fn from_standard_normal(target: Arc<dyn GraphTarget>) -> Self {
        Self { reference: GraphReference::Standard, target, anchor: None, steepest: None }
    }

    /// The same ends as those of `path`, whose target is `target` inside graphs. Points are z where there is a frame, and log
    /// densities those of x = μ + F z.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use sterna::paths::{Geometric, Reference};
    /// use sterna::targets::Normal;
    /// use sterna_neural::{Cpu, Device, Graph, GraphPath, Parameters};
    /// let target = Normal::isotropic(1, 4.0);
    /// let reference = Reference::normal(vec![3.0], vec![2.0]);
    /// let path = Geometric::new(reference, Arc::new(target.clone())).unwrap();
    /// let frame = path.reference().frame().map(Arc::new);
    /// let inside = GraphPath::between(&path, Arc::new(target), frame.as_ref());
    /// let graph = Graph::new();
    /// let (beta, z) = (graph.input("beta", 1), graph.input("z", 1));
    /// let device: &dyn Device<f64> = &Cpu::new(1);
    /// let mut program = device.compile(&graph, &[inside.score(beta, z)]).unwrap();
    /// // At x = 3 + 2·1 the target pulls by −4·5 in x, twice that in z.
    /// program.run(&Parameters::empty(), 2, &[&[0.0, 1.0], &[1.0, 1.0]]).unwrap();
    /// assert_eq!(program.output(0), [-1.0, -40.0]);
    /// ```
    pub fn between(path: &Geometric, target: Arc<dyn GraphTarget>, frame: Option<&Arc<Frame>>) -> Self {
        Self {
            reference: GraphReference::of(path.reference(), frame),
            anchor: path.anchor().map(|anchor| GraphReference::of(anchor, frame)),
            target: match frame {
                Some(frame) => in_frame(target, frame),
                None => target,
            },
            steepest: None,
        }
    }

    /// The same, but that no score is longer than this: see [`sterna::accelerators::tamed`].
    pub fn with_steepest(self, steepest: Option<f64>) -> Self {
        Self { steepest, ..self }
    }

    /// Length of a point.
    pub fn dim(&self) -> usize {
        self.target.dim()
    }

    /// The target's share at β, and 1 on the leg beyond it, 0 elsewhere.
    fn leg<'g>(&self, beta: Value<'g>) -> (Value<'g>, Value<'g>) {
        let beyond = (beta - 1.0).step();
        (beta + beyond * (2.0 - beta * 2.0), beyond)
    }

    /// Records log π̃^β(x); `beta` is one column.
    pub fn log_density<'g>(&self, beta: Value<'g>, x: Value<'g>) -> Value<'g> {
        let (reference, target) = (self.reference.log_density(x), self.target.log_density(x));
        match &self.anchor {
            None => path_log_density(beta, reference, target),
            Some(anchor) => {
                let (share, beyond) = self.leg(beta);
                path_log_density(share, pick(beyond, reference, anchor.log_density(x)), target)
            }
        }
    }

    /// Records ∇ log π̃^β(x).
    pub fn score<'g>(&self, beta: Value<'g>, x: Value<'g>) -> Value<'g> {
        self.mixed_score(beta, x, self.target.score(x))
    }

    /// As [`score`](Self::score), by β alone: no derivative of the target's score is ever asked for.
    pub(crate) fn detached_score<'g>(&self, beta: Value<'g>, x: Value<'g>) -> Value<'g> {
        self.mixed_score(beta, x, self.target.score(x).detach())
    }

    fn mixed_score<'g>(&self, beta: Value<'g>, x: Value<'g>, target: Value<'g>) -> Value<'g> {
        let score = match &self.anchor {
            None => path_score(beta, self.reference.pull(x), target),
            Some(anchor) => {
                let (share, beyond) = self.leg(beta);
                path_score(share, pick(beyond, self.reference.pull(x), anchor.pull(x)), target)
            }
        };
        match self.steepest {
            None => score,
            Some(steepest) => score * (score.dot(score) * steepest.powi(-2) + 1.0).sqrt().recip(),
        }
    }

    /// The target's evaluations that one score takes, where it has none.
    pub(crate) fn score_evaluations(&self) -> u64 {
        self.target.score_evaluations()
    }

    /// The target's evaluations that one derivative of its score takes.
    pub(crate) fn derivative_evaluations(&self) -> u64 {
        self.target.derivative_evaluations()
    }
}

/// The first where `second` is 0, the other where it is 1; exactly so, however far they are apart.
fn pick<'g>(second: Value<'g>, first: Value<'g>, other: Value<'g>) -> Value<'g> {
    (1.0 - second) * first + second * other
}

/// Normals of a mixture that are this much narrower than all of it are left out: single precision cannot tell their squares from
/// infinity, and no journey will find them.
const NARROWEST: f64 = 1e-6;

/// A reference as operations.
#[derive(Clone)]
pub(crate) enum GraphReference {
    /// N(0, I).
    Standard,
    /// Normals.
    Normals(Arc<[Seen]>),
    /// A prior, on the host.
    Prior(Arc<dyn GraphTarget>),
}

/// A normal of a mixture as z sees it: log density `height` − ½|A z + b|².
pub(crate) struct Seen {
    height: f64,
    factor: Factor,
    offset: Vec<f64>,
}

/// A.
enum Factor {
    Identity,
    Diagonal(Vec<f64>),
    /// Its transpose, row by row.
    Dense(Vec<f64>),
}

impl GraphReference {
    pub fn of(reference: &Reference, frame: Option<&Arc<Frame>>) -> Self {
        if let Some(mixture) = reference.as_mixture() {
            let whole = frame.map_or(0.0, |frame| frame.log_volume());
            let visible = |normal: &&Component| {
                (normal.shape.log_volume() - whole) / mixture.dim() as f64 > one::ln(NARROWEST)
            };
            return Self::Normals(
                mixture.components().iter().filter(visible).map(|c| Seen::new(c, frame)).collect(),
            );
        }
        match reference.as_normal() {
            Some(_) if reference.is_standard() && frame.is_none() => Self::Standard,
            Some((mean, deviations)) => {
                let shape = Shape::Diagonal(deviations.to_vec());
                Self::Normals(
                    [Seen::new(&Component { weight: 1.0, mean: mean.to_vec(), shape }, frame)].into(),
                )
            }
            None => {
                let prior: Arc<dyn Target> = Arc::new(AsTarget(reference.clone()));
                Self::Prior(host_target(match frame {
                    Some(frame) => Arc::new(InFrame::new(prior, frame.clone())),
                    None => prior,
                }))
            }
        }
    }

    /// Records log η(x), one column.
    pub fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        match self {
            Self::Standard => x.dot(x) * -0.5 - 0.5 * x.cols() as f64 * LN_TAU,
            Self::Normals(normals) => match &normals[..] {
                [only] => only.log_density(x),
                all => {
                    let each: Vec<_> = all.iter().map(|normal| normal.log_density(x)).collect();
                    x.graph().concat(&each).log_sum_exp()
                }
            },
            Self::Prior(prior) => prior.log_density(x),
        }
    }

    /// Records −∇ log η(x).
    pub fn pull<'g>(&self, x: Value<'g>) -> Value<'g> {
        match self {
            Self::Standard => x,
            Self::Normals(_) => -x.graph().gradient(self.log_density(x), &[x])[0],
            Self::Prior(prior) => -prior.score(x),
        }
    }
}

impl Seen {
    /// A = F_k⁻¹ F and b = F_k⁻¹ (μ − μ_k); without a frame F = I and μ = 0.
    fn new(normal: &Component, frame: Option<&Arc<Frame>>) -> Self {
        let dim = normal.mean.len();
        let mut offset: Vec<f64> = match frame {
            Some(frame) => frame.mean().iter().zip(&normal.mean).map(|(mean, own)| mean - own).collect(),
            None => normal.mean.iter().map(|own| -own).collect(),
        };
        normal.shape.solve(&mut offset);
        let factor = match (frame.map(|frame| frame.shape()), &normal.shape) {
            (Some(outer), own) if outer == own => Factor::Identity,
            (None, Shape::Diagonal(own)) => Factor::Diagonal(own.iter().map(|s| s.recip()).collect()),
            (Some(Shape::Diagonal(outer)), Shape::Diagonal(own)) => {
                Factor::Diagonal(outer.iter().zip(own).map(|(outer, own)| outer / own).collect())
            }
            (outer, own) => {
                let mut transposed = vec![0.0; dim * dim];
                for (j, column) in transposed.chunks_exact_mut(dim).enumerate() {
                    column[j] = 1.0;
                    if let Some(outer) = outer {
                        outer.apply(column);
                    }
                    own.solve(column);
                }
                Factor::Dense(transposed)
            }
        };
        let height = one::ln(normal.weight) - normal.shape.log_volume() - 0.5 * dim as f64 * LN_TAU;
        Self { height, factor, offset }
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        let (graph, dim) = (x.graph(), self.offset.len());
        let seen = match &self.factor {
            Factor::Identity => x,
            Factor::Diagonal(diagonal) => x * graph.constant(dim, diagonal),
            Factor::Dense(transposed) => x.matmul(graph.constant(dim, transposed)),
        };
        let seen = match self.offset.iter().all(|b| *b == 0.0) {
            true => seen,
            false => seen + graph.constant(dim, &self.offset),
        };
        seen.dot(seen) * -0.5 + self.height
    }
}

/// A reference that is evaluated like a target.
struct AsTarget(Reference);

impl Target for AsTarget {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        let mut work = Vec::new();
        for i in 0..x.rows() {
            out.log_density[i] = self.0.evaluate(x.row(i), out.score.row_mut(i), &mut work);
        }
        Ok(())
    }
}

/// A target as a function of z.
pub(crate) fn in_frame(target: Arc<dyn GraphTarget>, frame: &Arc<Frame>) -> Arc<dyn GraphTarget> {
    match target.on_host() {
        // The host places points in f64.
        Some(host) => host_target(Arc::new(InFrame::new(host, frame.clone()))),
        None => Arc::new(Placed { target, frame: frame.clone() }),
    }
}

/// A recorded target as a function of z.
struct Placed {
    target: Arc<dyn GraphTarget>,
    frame: Arc<Frame>,
}

impl Placed {
    /// Fᵀ, row by row: z times it is F z.
    fn transposed(&self) -> Vec<f64> {
        let dim = self.frame.dim();
        let mut rows = vec![0.0; dim * dim];
        for (j, column) in rows.chunks_exact_mut(dim).enumerate() {
            column[j] = 1.0;
            self.frame.shape().apply(column);
        }
        rows
    }

    /// Records x = μ + F z.
    fn place<'g>(&self, z: Value<'g>) -> Value<'g> {
        let (graph, dim) = (z.graph(), self.frame.dim());
        let moved = match self.frame.shape() {
            Shape::Diagonal(deviations) => z * graph.constant(dim, deviations),
            _ => z.matmul(graph.constant(dim, &self.transposed())),
        };
        moved + graph.constant(dim, self.frame.mean())
    }
}

impl GraphTarget for Placed {
    fn dim(&self) -> usize {
        self.frame.dim()
    }

    fn log_density<'g>(&self, z: Value<'g>) -> Value<'g> {
        self.target.log_density(self.place(z))
    }

    /// Fᵀ ∇log π̃(x).
    fn score<'g>(&self, z: Value<'g>) -> Value<'g> {
        let (graph, dim) = (z.graph(), self.frame.dim());
        let score = self.target.score(self.place(z));
        match self.frame.shape() {
            Shape::Diagonal(deviations) => score * graph.constant(dim, deviations),
            _ => score.matmul_transposed(graph.constant(dim, &self.transposed())),
        }
    }

    fn score_evaluations(&self) -> u64 {
        self.target.score_evaluations()
    }

    fn derivative_evaluations(&self) -> u64 {
        self.target.derivative_evaluations()
    }
}
