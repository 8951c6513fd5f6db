//! An equivariant graph network for particles (App. E.2, for DW-4): its output turns, shifts and permutes
//! with the particles.
//!
//! Layer by layer, with d²ᵢⱼ = |xᵢ − xⱼ|²:
//!   mᵢⱼ = φₑ(hᵢ, hⱼ, d²ᵢⱼ),   xᵢ ← xᵢ + Σⱼ (xᵢ − xⱼ)/(dᵢⱼ + 1) · φₓ(mᵢⱼ),   hᵢ ← hᵢ + φₕ(hᵢ, Σⱼ mᵢⱼ).
//! The output is the total displacement in mean-free coordinates, so the mean-free constraint is exact.

use serde::{Deserialize, Serialize};

use crate::conditions::{Conditioning, Conditions};
use crate::graph::Value;
use crate::mlp::Hidden;
use crate::parameters::{Init, Layout, Slot};
use crate::particles::Particles;
use crate::{Error, Result};

/// Keeps √ smooth where two particles coincide.
const SOFTENING: f64 = 1e-8;

/// A linear map with bias.
#[derive(Clone, Debug, PartialEq)]
struct Linear {
    weight: Slot,
    bias: Slot,
}

impl Linear {
    fn new(layout: &mut Layout, name: &str, from: usize, to: usize, init: Init) -> Self {
        let weight = layout.add(format!("{name}.weight"), from, to, init);
        let bias = layout.add(format!("{name}.bias"), 1, to, Init::Constant(0.0));
        Self { weight, bias }
    }

    fn record<'g>(&self, x: Value<'g>) -> Value<'g> {
        x.matmul(self.weight.record(x.graph())) + self.bias.record(x.graph())
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Layer {
    edge_from: Linear,
    edge_to: Slot,
    edge_distance: Slot,
    edge_second: Linear,
    move_first: Linear,
    move_last: Slot,
    node_own: Linear,
    node_messages: Slot,
    node_last: Linear,
}

/// The vector field of particle systems: features in, displacement out.
#[derive(Clone, Debug, PartialEq)]
pub struct Egnn {
    particles: Particles,
    embed: Linear,
    species: Option<(Slot, Vec<usize>)>,
    layers: Vec<Layer>,
}

impl Egnn {
    /// Adds the parameters of a network with `features` features per point. `species` gives each particle's
    /// kind (all alike if empty); particles of one kind are interchangeable.
    pub fn new(
        layout: &mut Layout,
        name: &str,
        particles: Particles,
        features: usize,
        hidden: Hidden,
        species: &[usize],
    ) -> Self {
        let w = hidden.width;
        let embed = Linear::new(layout, &format!("{name}.embed"), features, w, Init::FanIn);
        let kinds = species.iter().max().map_or(0, |k| k + 1);
        let species = (kinds > 1)
            .then(|| (layout.add(format!("{name}.species"), kinds, w, Init::FanIn), species.to_vec()));
        let layers = (0..hidden.layers)
            .map(|i| {
                let mut linear =
                    |part: &str, init| Linear::new(layout, &format!("{name}.{i}.{part}"), w, w, init);
                let edge_from = linear("edge_from", Init::FanIn);
                let edge_second = linear("edge_second", Init::Scaled(1.67));
                let move_first = linear("move_first", Init::Scaled(1.67));
                let node_own = linear("node_own", Init::FanIn);
                let node_last = linear("node_last", Init::Scaled(0.3));
                let mut slot =
                    |part: &str, rows, cols, init| layout.add(format!("{name}.{i}.{part}"), rows, cols, init);
                Layer {
                    edge_to: slot("edge_to", w, w, Init::FanIn),
                    edge_distance: slot("edge_distance", 1, w, Init::Scaled(0.1)),
                    move_last: slot("move_last", w, 1, Init::Constant(0.0)),
                    node_messages: slot("node_messages", w, w, Init::FanIn),
                    edge_from,
                    edge_second,
                    move_first,
                    node_own,
                    node_last,
                }
            })
            .collect();
        Self { particles, embed, species, layers }
    }

    /// Records the displacement at the mean-free point `y`; `features` has one row per point.
    pub fn record<'g>(&self, features: Value<'g>, y: Value<'g>) -> Value<'g> {
        let graph = y.graph();
        let n = self.particles.count;
        let (from, to) = self.particles.edges();
        let start = self.particles.lift(y);
        let mut x = start;
        let mut h = self.embed.record(features).gather(&vec![0; n]);
        if let Some((slot, kinds)) = &self.species {
            // The same n rows for every point: as one long row they repeat over the batch.
            let rows = slot.record(graph).gather(kinds).reshape(1, n * slot.cols);
            h = (h.reshape(1, n * slot.cols) + rows).reshape(n, slot.cols);
        }
        for layer in &self.layers {
            let difference = x.gather(&from) - x.gather(&to);
            let square = difference.square().sum_cols();
            let edge = layer.edge_from.record(h).gather(&from)
                + h.matmul(layer.edge_to.record(graph)).gather(&to)
                + square * layer.edge_distance.record(graph);
            let message = layer.edge_second.record(edge.silu()).silu();
            let strength = layer.move_first.record(message).silu().matmul(layer.move_last.record(graph));
            let direction = difference * ((square + SOFTENING).sqrt() + 1.0).recip();
            x = x + (direction * strength).scatter(&from, n);
            let received = message.scatter(&from, n).matmul(layer.node_messages.record(graph));
            h = h + layer.node_last.record((layer.node_own.record(h) + received).silu());
        }
        self.particles.project(x - start)
    }
}

/// Size and conditioning of an [`EgnnDrift`].
///
/// ```
/// use sterna_neural::{EgnnDriftConfig, Layout, Particles};
///
/// let config = EgnnDriftConfig::paper(Particles::DW4, &[0.0, 0.5, 1.0]).unwrap();
/// let drift = config.build(&mut Layout::new(), "drift").unwrap();
/// assert_eq!(drift.dim(), 6);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EgnnDriftConfig {
    /// The particles.
    pub particles: Particles,
    /// Layers and their width.
    pub hidden: Hidden,
    /// Kind of each particle; empty if all are alike.
    pub species: Vec<usize>,
    /// Features of pair and time.
    pub conditioning: Conditioning,
}

impl EgnnDriftConfig {
    /// The paper's size for DW-4: 4 layers of 64.
    ///
    /// # Errors
    /// If the schedule does not rise from 0 to 1.
    pub fn paper(particles: Particles, schedule: &[f64]) -> Result<Self> {
        let conditioning = Conditioning::new(schedule)?;
        Ok(Self { particles, hidden: Hidden::new(4, 64), species: vec![], conditioning })
    }

    /// For CPUs: 3 layers of 32.
    ///
    /// # Errors
    /// If the schedule does not rise from 0 to 1.
    pub fn small(particles: Particles, schedule: &[f64]) -> Result<Self> {
        Ok(Self { hidden: Hidden::new(3, 32), ..Self::paper(particles, schedule)? })
    }

    /// Adds the parameters.
    ///
    /// # Errors
    /// If a size is zero or the kinds do not fit the particles.
    pub fn build(&self, layout: &mut Layout, name: &str) -> Result<EgnnDrift> {
        check_species(self.particles, &self.species)?;
        let features = self.conditioning.features(true);
        let hidden = self.hidden.check()?;
        let network = Egnn::new(layout, name, self.particles, features, hidden, &self.species);
        Ok(EgnnDrift { conditioning: self.conditioning.clone(), network })
    }
}

pub(crate) fn check_species(particles: Particles, species: &[usize]) -> Result<()> {
    if particles.count < 2 || particles.space == 0 {
        let value = format!("{particles:?}");
        return Err(Error::Config {
            field: "particles",
            value,
            reason: "at least two, in at least one dimension",
        });
    }
    if !species.is_empty() && species.len() != particles.count {
        let value = format!("{species:?}");
        return Err(Error::Config { field: "species", value, reason: "one kind per particle" });
    }
    Ok(())
}

/// A drift that is an EGNN of the particles and the conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct EgnnDrift {
    conditioning: Conditioning,
    network: Egnn,
}

impl EgnnDrift {
    /// Length of a mean-free point.
    pub fn dim(&self) -> usize {
        self.network.particles.dim()
    }

    /// Records b at `x`; it vanishes as the pair closes up (errata E9).
    pub fn record<'g>(&self, conditions: &Conditions<'g>, x: Value<'g>) -> Value<'g> {
        self.network.record(self.conditioning.record(conditions), x) * self.conditioning.span(conditions)
    }
}
