//! RealNVP, conditional on the pair: an invertible map with a cheap log-determinant (§5.1, App. E.2).
//!
//! Each coupling layer keeps half of the coordinates and moves the others by a scale and a shift that an
//! MLP computes from the kept half and the pair: y = x·eˢ + t. Spline couplings send them through a monotone spline first,
//! y = f(x)·eˢ + t, whose knots the MLP computes too. The MLPs start at zero, so the map starts as the identity; with an affine
//! base, as the affine map between the chains.

use serde::{Deserialize, Serialize};

use crate::base::AffineBase;
use crate::conditions::{Conditioning, Conditions};
use crate::graph::Value;
use crate::mlp::{Hidden, Mlp};
use crate::parameters::Layout;
use crate::spline::{NUMBERS, Spline};
use crate::{Error, Result};

/// Size and conditioning of a [`RealNvp`].
///
/// ```
/// use sterna_neural::{Layout, RealNvpConfig};
///
/// let config = RealNvpConfig::paper(10, &[0.0, 0.1, 0.4, 1.0]).unwrap();
/// assert_eq!((config.layers, config.hidden.width), (20, 128));
/// let flow = config.build(&mut Layout::new(), "flow").unwrap();
/// # let _ = flow;
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RealNvpConfig {
    /// Length of a point.
    pub dim: usize,
    /// Coupling layers.
    pub layers: usize,
    /// Hidden layers of each layer's network.
    pub hidden: Hidden,
    /// Largest |s| of one layer, so that no layer can overflow.
    pub max_log_scale: f64,
    /// Features of the pair.
    pub conditioning: Conditioning,
    /// How points get from one chain of a pair to the other.
    #[serde(default, skip_serializing_if = "Route::is_direct")]
    pub route: Route,
    /// What a layer does to the coordinates that it moves.
    #[serde(default, skip_serializing_if = "Coupling::is_affine")]
    pub coupling: Coupling,
    /// Means and widths of the chains, where the layers work on standardised points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<AffineBase>,
}

/// What a coupling layer does to the coordinates that it moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coupling {
    /// A scale and a shift: RealNVP.
    #[default]
    Affine,
    /// A monotone rational-quadratic spline, then a scale and a shift.
    Spline,
}

impl Coupling {
    /// Whether it is a scale and a shift alone.
    pub fn is_affine(&self) -> bool {
        *self == Self::Affine
    }

    /// What a layer's network says beyond scale and shift of each coordinate that moves.
    fn numbers(self) -> usize {
        match self {
            Self::Affine => 0,
            Self::Spline => NUMBERS,
        }
    }
}

/// How a flow carries points from one chain to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// By one map for the pair.
    #[default]
    Direct,
    /// Down to a base that all chains share, N(0, I), and up again: each chain has a map of its own, which can be fitted to
    /// its samples alone. The base is the law of the first chain, whose map is the identity.
    ThroughReference,
    /// The same where the first chain has another law, and a map like all others.
    ThroughBase,
}

impl Route {
    /// Whether pairs have a map.
    pub fn is_direct(&self) -> bool {
        *self == Self::Direct
    }
}

impl RealNvpConfig {
    /// The paper's size for GMM-d: 20 layers with 2-layer MLPs of 128.
    ///
    /// # Errors
    /// If the schedule does not rise from 0 to 1.
    pub fn paper(dim: usize, schedule: &[f64]) -> Result<Self> {
        let conditioning = Conditioning::new(schedule)?;
        let (hidden, route) = (Hidden::new(2, 128), Route::Direct);
        let (coupling, base) = (Coupling::Affine, None);
        Ok(Self { dim, layers: 20, hidden, max_log_scale: 2.0, conditioning, route, coupling, base })
    }

    /// For CPUs: 8 layers with 2-layer MLPs of 64.
    ///
    /// # Errors
    /// If the schedule does not rise from 0 to 1.
    pub fn small(dim: usize, schedule: &[f64]) -> Result<Self> {
        Ok(Self { layers: 8, hidden: Hidden::new(2, 64), ..Self::paper(dim, schedule)? })
    }

    /// Adds the parameters.
    ///
    /// # Errors
    /// If a size is zero, or the dimension below 2.
    pub fn build(&self, layout: &mut Layout, name: &str) -> Result<RealNvp> {
        if self.dim < 2 {
            let value = self.dim.to_string();
            return Err(Error::Config {
                field: "dim",
                value,
                reason: "a coupling layer needs two coordinates",
            });
        }
        let chains = self.conditioning.schedule.len();
        if self.base.as_ref().is_some_and(|base| !base.is_whole(chains, self.dim)) {
            let value = format!("{} chains", self.base.as_ref().map_or(0, AffineBase::chains));
            let reason = "it wants a mean and a width of every coordinate on every chain";
            return Err(Error::Config { field: "base", value, reason });
        }
        let inputs = self.dim + self.conditioning.features(false);
        let hidden = self.hidden.check()?;
        let outputs = |i| 2 * self.dim + self.coupling.numbers() * self.movers(i).len();
        let networks = (0..self.layers)
            .map(|i| Mlp::new(layout, &format!("{name}.{i}"), inputs, hidden, outputs(i)))
            .collect();
        Ok(RealNvp { config: self.clone(), networks })
    }

    /// Whether layer `i` keeps coordinate `j`: every other one, or the first or second half.
    fn keeps(&self, i: usize, j: usize) -> bool {
        match i % 4 {
            0 => j.is_multiple_of(2),
            1 => !j.is_multiple_of(2),
            2 => j < self.dim / 2,
            _ => j >= self.dim / 2,
        }
    }

    /// The coordinates that layer `i` moves.
    fn movers(&self, i: usize) -> Vec<usize> {
        (0..self.dim).filter(|&j| !self.keeps(i, j)).collect()
    }
}

/// The flow; see the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub struct RealNvp {
    config: RealNvpConfig,
    networks: Vec<Mlp>,
}

impl RealNvp {
    /// Length of a point.
    pub fn dim(&self) -> usize {
        self.config.dim
    }

    /// What layer `i` does, which depends on the coordinates that it keeps alone.
    fn layer<'g>(&self, i: usize, features: Value<'g>, span: Value<'g>, x: Value<'g>) -> Layer<'g> {
        let (graph, dim, limit) = (x.graph(), self.config.dim, self.config.max_log_scale);
        let kept: Vec<f64> = (0..dim).map(|j| f64::from(u8::from(self.config.keeps(i, j)))).collect();
        let kept = graph.constant(dim, &kept);
        let moved = (1.0 - kept) * span;
        let raw = self.networks[i].record(graph.concat(&[x * kept, features]));
        let scale = (raw.slice(0, dim) * (1.0 / limit)).tanh() * limit;
        let (scale, shift) = (scale * moved, raw.slice(dim, dim) * moved);
        let splines = (!self.config.coupling.is_affine()).then(|| {
            // One row for each coordinate that moves; a pair that spans less is bent less.
            let movers = self.config.movers(i);
            let bends = raw.slice(2 * dim, NUMBERS * movers.len()) * span;
            let splines = Spline::new(bends.reshape(movers.len(), NUMBERS));
            Splines { splines, movers, kept, dim }
        });
        Layer { scale, shift, splines }
    }

    /// Records T(x) and log|det ∂T/∂x|.
    pub fn record<'g>(&self, conditions: &Conditions<'g>, x: Value<'g>) -> (Value<'g>, Value<'g>) {
        match self.config.route {
            Route::Direct => {
                let (z, down) = self.standardised(conditions.lower, x);
                let (z, across) = self.up(self.of_pair(conditions), z);
                let (y, up) = self.placed(conditions.upper, z);
                (y, total([down, Some(across), up]))
            }
            _ => self.through_base(conditions.lower, conditions.upper, x),
        }
    }

    /// Records T⁻¹(y) and log|det ∂T⁻¹/∂y|.
    pub fn record_inverse<'g>(&self, conditions: &Conditions<'g>, y: Value<'g>) -> (Value<'g>, Value<'g>) {
        match self.config.route {
            Route::Direct => {
                let (z, down) = self.standardised(conditions.upper, y);
                let (z, across) = self.down(self.of_pair(conditions), z);
                let (x, up) = self.placed(conditions.lower, z);
                (x, total([down, Some(across), up]))
            }
            _ => self.through_base(conditions.upper, conditions.lower, y),
        }
    }

    /// A chain's points as the layers see them, with log|det| where they are other points.
    fn standardised<'g>(&self, beta: Value<'g>, x: Value<'g>) -> (Value<'g>, Option<Value<'g>>) {
        let Some(base) = &self.config.base else { return (x, None) };
        let (z, log_det) = base.standardise(self.config.conditioning.position(beta), x);
        (z, Some(log_det))
    }

    /// The way back.
    fn placed<'g>(&self, beta: Value<'g>, z: Value<'g>) -> (Value<'g>, Option<Value<'g>>) {
        let Some(base) = &self.config.base else { return (z, None) };
        let (x, log_det) = base.place(self.config.conditioning.position(beta), z);
        (x, Some(log_det))
    }

    /// Records −log of the density that the map of each row's chain makes of the base, but for a constant.
    ///
    /// # Panics
    /// Where pairs have a map, not chains.
    pub fn record_surprise<'g>(&self, beta: Value<'g>, x: Value<'g>) -> Value<'g> {
        assert!(!self.config.route.is_direct(), "chains without maps have no densities");
        let (z, log_det) = self.to_base(beta, x);
        z.dot(z) * 0.5 - log_det
    }

    fn to_base<'g>(&self, beta: Value<'g>, x: Value<'g>) -> (Value<'g>, Value<'g>) {
        let (z, first) = self.standardised(beta, x);
        let (z, log_det) = self.down(self.of_chain(beta), z);
        (z, total([first, Some(log_det), None]))
    }

    fn through_base<'g>(&self, from: Value<'g>, to: Value<'g>, x: Value<'g>) -> (Value<'g>, Value<'g>) {
        let (z, down) = self.to_base(from, x);
        let (y, up) = self.up(self.of_chain(to), z);
        let (y, last) = self.placed(to, y);
        (y, total([Some(down), Some(up), last]))
    }

    fn up<'g>(&self, (features, span): Features<'g>, x: Value<'g>) -> (Value<'g>, Value<'g>) {
        let (mut y, mut log_det) = (x, x.graph().scalar(0.0).broadcast(x.slice(0, 1).shape()));
        for i in 0..self.networks.len() {
            let layer = self.layer(i, features, span, y);
            if let Some(splines) = &layer.splines {
                let bent;
                (y, bent) = splines.forward(y);
                log_det = log_det + bent;
            }
            y = y * layer.scale.exp() + layer.shift;
            log_det = log_det + layer.scale.sum_cols();
        }
        (y, log_det)
    }

    fn down<'g>(&self, (features, span): Features<'g>, y: Value<'g>) -> (Value<'g>, Value<'g>) {
        let (mut x, mut log_det) = (y, y.graph().scalar(0.0).broadcast(y.slice(0, 1).shape()));
        for i in (0..self.networks.len()).rev() {
            // The kept coordinates are the same before and after, hence what the layer does too.
            let layer = self.layer(i, features, span, x);
            x = (x - layer.shift) * (-layer.scale).exp();
            log_det = log_det - layer.scale.sum_cols();
            if let Some(splines) = &layer.splines {
                let bent;
                (x, bent) = splines.inverse(x);
                log_det = log_det + bent;
            }
        }
        (x, log_det)
    }

    fn of_pair<'g>(&self, conditions: &Conditions<'g>) -> Features<'g> {
        let conditions = Conditions { time: None, ..*conditions };
        let conditioning = &self.config.conditioning;
        (conditioning.record(&conditions), conditioning.span(&conditions))
    }

    /// A chain is told by its place alone; the map grows to its full size before the second one.
    fn of_chain<'g>(&self, beta: Value<'g>) -> Features<'g> {
        let conditioning = &self.config.conditioning;
        let place = Conditions { lower: beta, upper: beta, time: None };
        let start = beta.graph().scalar(0.0).broadcast(beta.shape());
        let chains = conditioning.span(&Conditions { lower: start, upper: beta, time: None });
        let size = match self.config.route {
            Route::ThroughReference => {
                let beyond = chains - 1.0;
                chains - beyond * beyond.step()
            }
            _ => start + 1.0,
        };
        (conditioning.record(&place), size)
    }
}

/// What a coupling layer does: scale and shift are zero for the coordinates that it keeps.
struct Layer<'g> {
    scale: Value<'g>,
    shift: Value<'g>,
    splines: Option<Splines<'g>>,
}

/// Splines of a layer: one for each coordinate that it moves.
struct Splines<'g> {
    splines: Spline<'g>,
    movers: Vec<usize>,
    /// 1 for coordinates that are kept.
    kept: Value<'g>,
    dim: usize,
}

impl<'g> Splines<'g> {
    fn forward(&self, x: Value<'g>) -> (Value<'g>, Value<'g>) {
        self.send(x, |x| self.splines.forward(x))
    }

    fn inverse(&self, y: Value<'g>) -> (Value<'g>, Value<'g>) {
        self.send(y, |y| self.splines.inverse(y))
    }

    /// The points with each mover sent through its spline, and the sum of the log slopes.
    fn send(
        &self,
        x: Value<'g>,
        through: impl Fn(Value<'g>) -> (Value<'g>, Value<'g>),
    ) -> (Value<'g>, Value<'g>) {
        let (moved, log_slopes) = through(x.reshape(self.dim, 1).gather(&self.movers));
        let moved = moved.scatter(&self.movers, self.dim).reshape(1, self.dim);
        (x * self.kept + moved, log_slopes.sum_group())
    }
}

/// The sum of those that there are.
fn total<const N: usize>(parts: [Option<Value<'_>>; N]) -> Value<'_> {
    parts.into_iter().flatten().reduce(|sum, part| sum + part).expect("a part")
}

/// What networks are told of a pair or a chain, and what their outputs are multiplied with.
type Features<'g> = (Value<'g>, Value<'g>);
