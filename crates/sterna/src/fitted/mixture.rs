//! A mixture of normals: normalised, drawn from exactly, with a cheap score.

use super::Shape;
use super::numbers::{add, dot, ln, shares};
use crate::lanes::one::LN_TAU;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// One normal of a mixture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// Its share of the mixture; shares sum to one.
    pub weight: f64,
    /// Its mean.
    pub mean: Vec<f64>,
    /// A square root of its covariance.
    pub shape: Shape,
}

/// Σ wₖ N(μₖ, Fₖ Fₖᵀ).
///
/// ```
/// use sterna::fitted::{Component, Mixture, Shape};
/// let narrow = Component { weight: 1.0, mean: vec![0.0], shape: Shape::Diagonal(vec![1.0]) };
/// let broad = Component { weight: 3.0, mean: vec![5.0], shape: Shape::Diagonal(vec![2.0]) };
/// let mixture = Mixture::new(vec![narrow, broad]).unwrap();
/// assert_eq!(mixture.components()[1].weight, 0.75);
/// let (mut score, mut work) = ([0.0], Vec::new());
/// let log_density = mixture.evaluate(&[0.0], &mut score, &mut work);
/// let wanted = (0.25 + 0.375 * (-3.125f64).exp()) / std::f64::consts::TAU.sqrt();
/// assert!((log_density - wanted.ln()).abs() < 1e-14);
/// let mut x = [1.0];
/// mixture.draw(0.9, &mut x);
/// assert_eq!(x, [7.0]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Untrusted")]
pub struct Mixture {
    components: Vec<Component>,
    /// log of weight × density at the mean, of each component.
    #[serde(skip)]
    heights: Vec<f64>,
}

/// A mixture as a file claims it to be.
#[derive(Deserialize)]
struct Untrusted {
    components: Vec<Component>,
}

impl TryFrom<Untrusted> for Mixture {
    type Error = String;

    /// Weights stay as they are, to the bit.
    fn try_from(Untrusted { components }: Untrusted) -> std::result::Result<Self, String> {
        let sum: f64 = components.iter().map(|c| c.weight).sum();
        if (sum - 1.0).abs() > 1e-9 {
            return Err(format!("the weights of a mixture sum to {sum}, not 1"));
        }
        Self::checked(components).map_err(|error| error.to_string())
    }
}

/// Power to which densities are raised where it is asked which component a point is near to.
const OVERLAP: f64 = 0.5;

/// Share of the normal around all others.
const RIM: f64 = 0.05;

/// Share of the wide twins of all others, and how many times as wide they are.
const TWINS: f64 = 0.1;
const TWIN_WIDTH: f64 = 4.0;

impl Mixture {
    /// Components that a mixture has at most where fits make it.
    pub const MOST: usize = 40;

    /// A mixture of these; weights are divided by their sum.
    pub fn new(mut components: Vec<Component>) -> Result<Self> {
        let sum: f64 = components.iter().map(|c| c.weight).sum();
        components.iter_mut().for_each(|c| c.weight /= sum);
        Self::checked(components)
    }

    /// One normal.
    pub fn normal(mean: Vec<f64>, shape: Shape) -> Result<Self> {
        Self::new(vec![Component { weight: 1.0, mean, shape }])
    }

    fn checked(components: Vec<Component>) -> Result<Self> {
        let bad = |what: String, cure| Err(Error::setting("Mixture::components", what, cure));
        let dim = components.first().map_or(0, |c| c.mean.len());
        if dim == 0 {
            return bad(
                format!("{} components", components.len()),
                "one component of one dimension at least",
            );
        }
        for Component { weight, mean, shape } in &components {
            if !(weight.is_finite() && *weight > 0.0) {
                return bad(format!("weight {weight}"), "weights must be positive and finite");
            }
            if mean.len() != dim || shape.dim() != dim {
                return bad(
                    format!("dimensions {dim}, {}, {}", mean.len(), shape.dim()),
                    "one dimension for all",
                );
            }
            if let Some(bad_mean) = mean.iter().find(|m| !m.is_finite()) {
                return bad(format!("mean {bad_mean}"), "means must be finite");
            }
            if let Err(cure) = shape.check() {
                return bad("a shape with impossible numbers".to_string(), cure);
            }
        }
        let heights = components.iter().map(Component::height).collect();
        Ok(Self { components, heights })
    }

    /// The normals.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Length of a point.
    pub fn dim(&self) -> usize {
        self.components[0].mean.len()
    }

    /// Σ wₖ μₖ.
    pub fn mean(&self) -> Vec<f64> {
        let mut mean = vec![0.0; self.dim()];
        self.components.iter().for_each(|c| add(&mut mean, c.weight, &c.mean));
        mean
    }

    /// log η(x), its score written. `work` is scratch, grown once.
    pub fn evaluate(&self, x: &[f64], score: &mut [f64], work: &mut Vec<f64>) -> f64 {
        if let [only] = &self.components[..] {
            let log_density = self.heights[0] - 0.5 * only.standardise(x, score);
            only.shape.solve_transposed(score);
            score.iter_mut().for_each(|s| *s = -*s);
            return log_density;
        }
        let (count, dim) = (self.components.len(), x.len());
        work.resize(count * (dim + 1), 0.0);
        let (logs, standard) = work.split_at_mut(count);
        let log_density = self.shares(x, logs, standard);
        score.fill(0.0);
        for ((c, share), z) in self.components.iter().zip(&*logs).zip(standard.chunks_exact_mut(dim)) {
            if *share > 0.0 {
                c.shape.solve_transposed(z);
                add(score, -share, z);
            }
        }
        log_density
    }

    /// log η(x); the components' shares of the density there, and the point in the coordinates of each, are written.
    pub(super) fn shares(&self, x: &[f64], shares_of_all: &mut [f64], standard: &mut [f64]) -> f64 {
        let all = self.components.iter().zip(&self.heights).zip(&mut *shares_of_all);
        for (((c, height), log), z) in all.zip(standard.chunks_exact_mut(x.len())) {
            *log = height - 0.5 * c.standardise(x, z);
        }
        let log_density = shares(shares_of_all);
        if log_density == f64::NEG_INFINITY {
            shares_of_all.fill(0.0);
        }
        log_density
    }

    /// How near a point lies to each component, as numbers that sum to one: the components' shares of the density, tempered so
    /// that neighbours overlap. `standard` is scratch of as many points as there are components.
    pub(crate) fn nearness(&self, x: &[f64], near: &mut [f64], standard: &mut [f64]) {
        let all = self.components.iter().zip(&self.heights).zip(&mut *near);
        for (((c, height), log), z) in all.zip(standard.chunks_exact_mut(x.len())) {
            *log = OVERLAP * (height - 0.5 * c.standardise(x, z));
        }
        if shares(near) == f64::NEG_INFINITY {
            near.fill(1.0 / self.components.len() as f64);
        }
    }

    /// The component that a point is nearest to.
    pub(crate) fn nearest(&self, x: &[f64]) -> &Component {
        let count = self.components.len();
        let (mut near, mut standard) = (vec![0.0; count], vec![0.0; count * x.len()]);
        self.nearness(x, &mut near, &mut standard);
        let nearest = (0..count).reduce(|a, b| if near[b] > near[a] { b } else { a });
        &self.components[nearest.unwrap_or(0)]
    }

    /// `x` holds standard normals and becomes a draw; `uniform` chooses the component.
    pub fn draw(&self, uniform: f64, x: &mut [f64]) {
        let mut rest = uniform;
        let chosen = self.components.iter().find(|c| {
            rest -= c.weight;
            rest < 0.0
        });
        // Rounding may leave a sliver above all weights.
        let chosen = chosen.unwrap_or(&self.components[self.components.len() - 1]);
        chosen.shape.apply(x);
        add(x, 1.0, &chosen.mean);
    }

    /// The covariance within components, pooled over them, as one shape of their kind: masses for local moves.
    pub fn pooled_shape(&self) -> Shape {
        let heaviest = self.heaviest();
        if self.components.len() == 1 {
            return heaviest.shape.clone();
        }
        let dim = self.dim();
        if let Shape::Dense { .. } = heaviest.shape {
            let mut pooled = vec![0.0; dim * dim];
            self.components.iter().for_each(|c| add(&mut pooled, c.weight, &c.shape.covariance()));
            return Shape::of_covariance(&pooled, dim).unwrap_or_else(|| heaviest.shape.clone());
        }
        let mut variances = vec![0.0; dim];
        for c in &self.components {
            let deviations = c.shape.deviations();
            variances.iter_mut().zip(deviations).for_each(|(v, s)| *v += c.weight * s * s);
        }
        let ratio = variances.iter().zip(heaviest.shape.deviations()).map(|(v, s)| v.sqrt() / s);
        let mut shape = heaviest.shape.clone();
        if let Shape::Diagonal(deviations) | Shape::LowRank { deviations, .. } = &mut shape {
            deviations.iter_mut().zip(ratio).for_each(|(s, ratio)| *s *= ratio);
        }
        shape
    }

    /// The same with heavier tails, where there are several normals: each has a twin that is four times as wide, and one normal more is
    /// twice as wide as all of them together. What they leave out, at the rim and at the ends of a ridge, stays within reach.
    pub fn with_rim(&self) -> Self {
        if self.components.len() == 1 {
            return self.clone();
        }
        let twin = |c: &Component| Component {
            weight: TWINS * c.weight,
            mean: c.mean.clone(),
            shape: c.shape.clone().widened(TWIN_WIDTH),
        };
        let mut components = self.components.clone();
        components.iter_mut().for_each(|c| c.weight *= 1.0 - RIM - TWINS);
        components.extend(self.components.iter().map(twin));
        let shape = self.whole_shape().widened(2.0);
        components.push(Component { weight: RIM, mean: self.mean(), shape });
        Self::new(components).unwrap_or_else(|_| self.clone())
    }

    /// The covariance of all components together, as one shape: all correlations where they have them.
    pub fn whole_shape(&self) -> Shape {
        let (dim, middle) = (self.dim(), self.mean());
        let away = |c: &Component| c.mean.iter().zip(&middle).map(|(a, b)| a - b).collect::<Vec<f64>>();
        if let Shape::Dense { .. } = self.heaviest().shape {
            let mut whole = vec![0.0; dim * dim];
            for c in &self.components {
                add(&mut whole, c.weight, &c.shape.covariance());
                let away = away(c);
                whole.chunks_exact_mut(dim).zip(&away).for_each(|(row, a)| add(row, c.weight * a, &away));
            }
            return Shape::of_covariance(&whole, dim).unwrap_or_else(|| self.heaviest().shape.clone());
        }
        let mut variances = vec![0.0; dim];
        for c in &self.components {
            let parts = c.shape.deviations().into_iter().zip(away(c));
            variances.iter_mut().zip(parts).for_each(|(v, (s, a))| *v += c.weight * (s * s + a * a));
        }
        Shape::Diagonal(variances.iter().map(|v| v.sqrt()).collect())
    }

    /// How often a step that suits the components on average may be doubled where the widest of them is: 0 where all have
    /// much the same width.
    pub fn doublings(&self) -> u32 {
        let width = |c: &Component| c.shape.log_volume() / self.dim() as f64 / std::f64::consts::LN_2;
        let mean: f64 = self.components.iter().map(|c| c.weight * width(c)).sum();
        let widest = self.components.iter().map(width).fold(f64::NEG_INFINITY, f64::max);
        if widest - mean > 0.5 { (widest - mean + 1.0).round().min(6.0) as u32 } else { 0 }
    }

    fn heaviest(&self) -> &Component {
        let heaviest = self.components.iter().reduce(|a, b| if b.weight > a.weight { b } else { a });
        heaviest.expect("one component at least")
    }
}

impl Component {
    /// log of weight × density at the mean.
    pub(super) fn height(&self) -> f64 {
        let half_log_tau = 0.5 * LN_TAU;
        ln(self.weight) - self.shape.log_volume() - self.mean.len() as f64 * half_log_tau
    }

    /// z = F⁻¹ (x − μ), and |z|².
    pub(super) fn standardise(&self, x: &[f64], z: &mut [f64]) -> f64 {
        z.iter_mut().zip(x).zip(&self.mean).for_each(|((z, x), mean)| *z = x - mean);
        self.shape.solve(z);
        dot(z, z)
    }
}

#[cfg(test)]
mod tests;
