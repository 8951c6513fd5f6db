//! A ladder between any ends that can be drawn: a reference, a target and perhaps an anchor, mixtures of normals all three.

use crate::ladders::ExactLadder;
use std::sync::Arc;
use sterna::fitted::{Component, Mixture, Shape};
use sterna::path::AnnealingPath;
use sterna::paths::{Geometric, Reference};
use sterna::streams::RowStream;
use sterna::{Batch, Evaluation, Result, Target};

/// A mixture of normals as a target.
#[derive(Clone, Debug)]
pub struct MixtureTarget(pub Mixture);

impl Target for MixtureTarget {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        let mut work = Vec::new();
        for i in 0..x.rows() {
            out.log_density[i] = self.0.evaluate(x.row(i), out.score.row_mut(i), &mut work);
        }
        Ok(())
    }

    fn log_z(&self) -> Option<f64> {
        Some(0.0)
    }
}

/// Geometric paths between mixtures. A geometric mean lies below the arithmetic one, η^{1−β} π^β ≤ (1 − β) η + β π, so that
/// rejection from the latter is exact, on either leg.
///
/// ```
/// use sterna::{Schedule, Streams};
/// use sterna_testkit::{BetweenLadder, ExactLadder};
///
/// let schedule = Schedule::new(vec![0.0, 0.5, 1.0, 1.6, 2.0]).unwrap();
/// let draws = BetweenLadder::three_ends().draw_ladder(&schedule, &Streams::new(1), 10);
/// assert_eq!((draws.rows(), draws.dim()), (10, 5 * 2));
/// ```
pub struct BetweenLadder {
    /// Reference, target and anchor.
    ends: Vec<Mixture>,
    path: Arc<Geometric>,
}

impl BetweenLadder {
    /// From `reference` to `target`, and on to `anchor` where there is one.
    ///
    /// # Errors
    /// If dimensions differ.
    pub fn new(reference: Mixture, target: Mixture, anchor: Option<Mixture>) -> Result<Self> {
        let first = Reference::mixture(reference.clone());
        let ground = Geometric::new(first.clone(), Arc::new(MixtureTarget(target.clone())))?;
        let path = Arc::new(ground.between(first, anchor.clone().map(Reference::mixture))?);
        Ok(Self { ends: [Some(reference), Some(target), anchor].into_iter().flatten().collect(), path })
    }

    /// A lopsided reference of two normals, one of them correlated; a target of two, away from it; a broad anchor.
    ///
    /// # Panics
    /// Never: the numbers are sound.
    pub fn three_ends() -> Self {
        let normal = |weight: f64, mean: [f64; 2], covariance: [f64; 4]| Component {
            weight,
            mean: mean.to_vec(),
            shape: Shape::of_covariance(&covariance, 2).expect("positive definite"),
        };
        let of = |components| Mixture::new(components).expect("sound");
        let reference = of(vec![
            normal(0.7, [3.0, -1.0], [1.0, 0.6, 0.6, 0.8]),
            normal(0.3, [5.0, 1.0], [0.5, -0.2, -0.2, 0.4]),
        ]);
        let target = of(vec![
            normal(0.5, [3.5, -0.5], [0.4, 0.1, 0.1, 0.3]),
            normal(0.5, [4.6, 0.9], [0.2, 0.0, 0.0, 0.5]),
        ]);
        let anchor = of(vec![normal(1.0, [3.0, 0.0], [6.0, 0.0, 0.0, 4.0])]);
        Self::new(reference, target, Some(anchor)).expect("of one dimension")
    }

    /// Its path, as the geometric one that it is.
    pub fn geometric(&self) -> Arc<Geometric> {
        self.path.clone()
    }
}

impl ExactLadder for BetweenLadder {
    fn path(&self) -> Arc<dyn AnnealingPath> {
        self.path.clone()
    }

    fn draw(&self, beta: f64, stream: &mut RowStream, x: &mut [f64]) {
        let leg = usize::from(beta > 1.0);
        let (from, to, share) = (&self.ends[leg], &self.ends[leg + 1], beta - leg as f64);
        let (mut score, mut work) = (vec![0.0; x.len()], Vec::new());
        loop {
            let end = if stream.uniform() < share { to } else { from };
            let uniform = stream.uniform();
            x.iter_mut().for_each(|x| *x = stream.normal());
            end.draw(uniform, x);
            let [low, high] = [from, to].map(|end| end.evaluate(x, &mut score, &mut work));
            let mean = (1.0 - share) * low.exp() + share * high.exp();
            if stream.uniform() * mean < ((1.0 - share) * low + share * high).exp() {
                return;
            }
        }
    }

    fn log_z(&self, beta: f64) -> Option<f64> {
        (beta.fract() == 0.0).then_some(0.0)
    }
}
