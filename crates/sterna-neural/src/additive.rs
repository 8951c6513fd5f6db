//! One small network for all coordinates: what it says of a coordinate depends on that coordinate and the time
//! alone. On targets that are products it has the form of the truth, however many dimensions they have, and
//! learns from each sample as many times as there are coordinates.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::conditions::{Conditioning, Conditions};
use crate::graph::Value;
use crate::mlp::{Hidden, Mlp};
use crate::parameters::{Init, Layout, Slot};

/// Nᵢ = f(aᵢ xᵢ + cᵢ, features): f has the same weights for all coordinates, aᵢ and cᵢ tell them apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Additive {
    dim: usize,
    slope: Slot,
    own_slope: Slot,
    own_place: Slot,
    features: Slot,
    place: Slot,
    rest: Mlp,
}

/// Bends of the first layer lie within about this distance of the origin, and are about as sharp.
const BENDS: f64 = 2.0;

impl Additive {
    /// Adds the parameters of a network for points of length `dim`, with `features` further inputs for all
    /// coordinates. Its output is zero at the start.
    pub fn new(layout: &mut Layout, name: &str, dim: usize, features: usize, hidden: Hidden) -> Self {
        let width = hidden.width;
        let mut slot = |part: &str, rows, cols, init| layout.add(format!("{name}.{part}"), rows, cols, init);
        let slope = slot("slope", 1, width, Init::Scaled(BENDS));
        let place = slot("place", 1, width, Init::Scaled(BENDS));
        let features = slot("features", features, width, Init::FanIn);
        // Coordinates begin alike.
        let own_slope = slot("own_slope", 1, dim * width, Init::Constant(0.0));
        let own_place = slot("own_place", 1, dim * width, Init::Constant(0.0));
        let rest = Hidden::new(hidden.layers - 1, width);
        let rest = Mlp::new(layout, &format!("{name}.rest"), width, rest, 1);
        Self { dim, slope, own_slope, own_place, features, place, rest }
    }

    /// Records N at `x`; `features` has one row per point.
    pub fn record<'g>(&self, features: Value<'g>, x: Value<'g>) -> Value<'g> {
        let (graph, dim, width) = (x.graph(), self.dim, self.slope.cols);
        let each = x.reshape(dim, 1);
        let common = features.matmul(self.features.record(graph)) + self.place.record(graph);
        let shared = each * self.slope.record(graph) + common.gather(&vec![0; dim]);
        // What differs from coordinate to coordinate is the same for every point: as one long row it repeats
        // over the batch.
        let repeated = (each * graph.constant(width, &vec![1.0; width])).reshape(1, dim * width);
        let own = repeated * self.own_slope.record(graph) + self.own_place.record(graph);
        let first = (shared.reshape(1, dim * width) + own).reshape(dim, width);
        self.rest.record(first.silu()).reshape(1, dim)
    }
}

/// Size and conditioning of an [`AdditiveDrift`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdditiveDriftConfig {
    /// Length of a point.
    pub dim: usize,
    /// Hidden layers.
    pub hidden: Hidden,
    /// Features of pair and time.
    pub conditioning: Conditioning,
}

impl AdditiveDriftConfig {
    /// Adds the parameters.
    ///
    /// # Errors
    /// If a size is zero.
    pub fn build(&self, layout: &mut Layout, name: &str) -> Result<AdditiveDrift> {
        let features = self.conditioning.features(true);
        let network = Additive::new(layout, name, self.dim, features, self.hidden.check()?);
        Ok(AdditiveDrift { conditioning: self.conditioning.clone(), network })
    }
}

/// A drift whose coordinates depend each on itself and the conditions alone.
#[derive(Clone, Debug, PartialEq)]
pub struct AdditiveDrift {
    conditioning: Conditioning,
    network: Additive,
}

impl AdditiveDrift {
    /// Length of a point.
    pub fn dim(&self) -> usize {
        self.network.dim
    }

    /// Records b at `x`; it vanishes as the pair closes up (errata E9).
    pub fn record<'g>(&self, conditions: &Conditions<'g>, x: Value<'g>) -> Value<'g> {
        self.network.record(self.conditioning.record(conditions), x) * self.conditioning.span(conditions)
    }
}
