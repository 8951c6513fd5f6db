//! RealNVP, conditional on the pair: an invertible map with a cheap log-determinant (§5.1, App. E.2).
//!
//! Each coupling layer keeps half of the coordinates and moves the others by a scale and a shift that an
//! MLP computes from the kept half and the pair: y = x·eˢ + t. The MLPs start at zero, so the map starts as
//! the identity.

use serde::{Deserialize, Serialize};

use crate::conditions::{Conditioning, Conditions};
use crate::graph::Value;
use crate::mlp::{Hidden, Mlp};
use crate::parameters::Layout;
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
        Ok(Self { dim, layers: 20, hidden, max_log_scale: 2.0, conditioning, route })
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
        let inputs = self.dim + self.conditioning.features(false);
        let hidden = self.hidden.check()?;
        let networks = (0..self.layers)
            .map(|i| Mlp::new(layout, &format!("{name}.{i}"), inputs, hidden, 2 * self.dim))
            .collect();
        Ok(RealNvp { config: self.clone(), networks })
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

    /// 1 for coordinates that layer `i` keeps: every other one, or the first or second half.
    fn kept(&self, i: usize) -> Vec<f64> {
        let dim = self.config.dim;
        let keeps = |j: usize| match i % 4 {
            0 => j.is_multiple_of(2),
            1 => !j.is_multiple_of(2),
            2 => j < dim / 2,
            _ => j >= dim / 2,
        };
        (0..dim).map(|j| keeps(j) as u8 as f64).collect()
    }

    /// Log-scale and shift of layer `i`, zero for the coordinates it keeps; they depend only on those.
    fn scale_and_shift<'g>(
        &self,
        i: usize,
        features: Value<'g>,
        span: Value<'g>,
        x: Value<'g>,
    ) -> (Value<'g>, Value<'g>) {
        let (graph, dim, limit) = (x.graph(), self.config.dim, self.config.max_log_scale);
        let kept = graph.constant(dim, &self.kept(i));
        let moved = (1.0 - kept) * span;
        let raw = self.networks[i].record(graph.concat(&[x * kept, features]));
        let scale = (raw.slice(0, dim) * (1.0 / limit)).tanh() * limit;
        (scale * moved, raw.slice(dim, dim) * moved)
    }

    /// Records T(x) and log|det ∂T/∂x|.
    pub fn record<'g>(&self, conditions: &Conditions<'g>, x: Value<'g>) -> (Value<'g>, Value<'g>) {
        match self.config.route {
            Route::Direct => self.up(self.of_pair(conditions), x),
            _ => self.through_base(conditions.lower, conditions.upper, x),
        }
    }

    /// Records T⁻¹(y) and log|det ∂T⁻¹/∂y|.
    pub fn record_inverse<'g>(&self, conditions: &Conditions<'g>, y: Value<'g>) -> (Value<'g>, Value<'g>) {
        match self.config.route {
            Route::Direct => self.down(self.of_pair(conditions), y),
            _ => self.through_base(conditions.upper, conditions.lower, y),
        }
    }

    /// Records −log of the density that the map of each row's chain makes of the base, but for a constant.
    ///
    /// # Panics
    /// Where pairs have a map, not chains.
    pub fn record_surprise<'g>(&self, beta: Value<'g>, x: Value<'g>) -> Value<'g> {
        assert!(!self.config.route.is_direct(), "chains without maps have no densities");
        let (z, log_det) = self.down(self.of_chain(beta), x);
        z.dot(z) * 0.5 - log_det
    }

    fn through_base<'g>(&self, from: Value<'g>, to: Value<'g>, x: Value<'g>) -> (Value<'g>, Value<'g>) {
        let (z, down) = self.down(self.of_chain(from), x);
        let (y, up) = self.up(self.of_chain(to), z);
        (y, down + up)
    }

    fn up<'g>(&self, (features, span): Features<'g>, x: Value<'g>) -> (Value<'g>, Value<'g>) {
        let (mut y, mut log_det) = (x, x.graph().scalar(0.0).broadcast(x.slice(0, 1).shape()));
        for i in 0..self.networks.len() {
            let (scale, shift) = self.scale_and_shift(i, features, span, y);
            y = y * scale.exp() + shift;
            log_det = log_det + scale.sum_cols();
        }
        (y, log_det)
    }

    fn down<'g>(&self, (features, span): Features<'g>, y: Value<'g>) -> (Value<'g>, Value<'g>) {
        let (mut x, mut log_det) = (y, y.graph().scalar(0.0).broadcast(y.slice(0, 1).shape()));
        for i in (0..self.networks.len()).rev() {
            // The kept coordinates are the same before and after, hence scale and shift too.
            let (scale, shift) = self.scale_and_shift(i, features, span, x);
            x = (x - shift) * (-scale).exp();
            log_det = log_det - scale.sum_cols();
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

/// What networks are told of a pair or a chain, and what their outputs are multiplied with.
type Features<'g> = (Value<'g>, Value<'g>);
