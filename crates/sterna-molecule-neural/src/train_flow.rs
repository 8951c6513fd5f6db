//! Training of a [`MoleculeFlow`]: on the symmetric divergence for a short while, then on the rejection rate itself,
//! r = E|tanh(Δ/2)|, which is what a swap sees. Only gradients of the force field are needed.

use crate::circular_flow::CircularFlowConfig;
use crate::density::Density;
use crate::flow::{FrozenMoleculeFlow, Inner, MoleculeFlow, MoleculeFlowConfig};
use crate::samples::{Samples, chain_samples};
use crate::stiff_flow::StiffFlowConfig;
use crate::stopped;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sterna::acceleration::{Collected, Fit, FitReport, Fitted, Fitting, PairReport};
use sterna::accelerator::{Accelerator, Direction};
use sterna::accelerators::{FlowAccelerator, Identity};
use sterna::path::AnnealingPath;
use sterna::transport::Interval;
use sterna_molecule::{ConditionalAffine, InnerMap, Journeys, Molecule, Refined, Temperatures};
use sterna_neural::weights::{from_bytes, to_bytes};
use sterna_neural::{
    Conditioning, Conditions, Course, Cpu, Graph, Hidden, Layout, Lesson, Parameters, Real, Split, Trainer,
    Training, TrainingStreams, Value, into_library, rejection_rates,
};

/// Strengths of the flow that are tried on held-out samples.
const STRENGTHS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// Share of the steps that make the symmetric divergence small, before the rejection rate.
const DIVERGENCE_SHARE: f64 = 0.05;

/// Coupling layers of the soft torsions: every other one, then every other pair, each way round.
const CIRCULAR_LAYERS: usize = 4;

/// Trains a flow of soft torsions and stiff coordinates inside a conditional affine transport.
///
/// ```
/// use std::sync::Arc;
/// use sterna::acceleration::Acceleration;
/// use sterna_molecule::{TemperedPath, alanine_dipeptide};
/// use sterna_molecule_neural::TrainMoleculeFlow;
/// use sterna_neural::{Hidden, Training};
///
/// let molecule = Arc::new(alanine_dipeptide(300.0)?);
/// let path = Arc::new(TemperedPath::new(molecule.clone(), 1200.0)?);
/// let fit = TrainMoleculeFlow {
///     molecule,
///     temperatures: path.temperatures(),
///     path,
///     layers: 3,
///     hidden: Hidden::new(2, 24),
///     training: Training { steps: 2500, ..Training::default() },
/// };
/// let acceleration = Acceleration::Fitted(Arc::new(fit));
/// # let _ = acceleration;
/// # Ok::<(), sterna_molecule::MoleculeError>(())
/// ```
#[derive(Clone)]
pub struct TrainMoleculeFlow {
    /// The molecule, in the coordinates of the run.
    pub molecule: Arc<Molecule>,
    /// The ends of its path.
    pub temperatures: Temperatures,
    /// The path itself, to judge with.
    pub path: Arc<dyn AnnealingPath>,
    /// Coupling layers of the stiff coordinates.
    pub layers: usize,
    /// Hidden layers of each layer's network.
    pub hidden: Hidden,
    /// Budget.
    pub training: Training,
}

/// What the record says beside the weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Description {
    network: MoleculeFlowConfig,
    /// Of the affine transport around it.
    affine: Vec<f64>,
    /// Strength of the flow on each pair.
    strengths: Vec<f64>,
}

impl Fit for TrainMoleculeFlow {
    fn begin(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> sterna::Result<Box<dyn Fitting>> {
        let Samples { collected, split, rows } = Samples::new(&collected);
        let betas = collected.schedule.betas();
        let chains = chain_samples(betas, &rows);
        let affine = ConditionalAffine::fit(&self.molecule, self.temperatures, &chains).map_err(stopped)?;
        let journeys = (1..betas.len())
            .map(|n| {
                let pair = collected.schedule.interval(n);
                let up = affine.journeys(&self.molecule, pair, true, &rows[n - 1])?;
                Ok((pair, up, affine.journeys(&self.molecule, pair, false, &rows[n])?))
            })
            .collect::<sterna::Result<Vec<_>>>()?;
        let conditioning = Conditioning::new(betas).map_err(into_library)?;
        let config = MoleculeFlowConfig {
            soft: CircularFlowConfig {
                symmetries: affine.symmetries(),
                layers: CIRCULAR_LAYERS,
                hidden: self.hidden,
                conditioning: conditioning.clone(),
            },
            stiff: StiffFlowConfig {
                spread: spread(&journeys, affine.stiff()),
                soft: affine.soft(),
                layers: self.layers,
                hidden: self.hidden,
                conditioning,
            },
        };
        let mut layout = Layout::new();
        let network = config.build(&mut layout);
        let training = &self.training;
        let start = match earlier {
            Some(earlier) => from_bytes::<Description>(earlier.record.to_vec(), "the round before")
                .and_then(|stored| stored.parameters(&layout))
                .map_err(into_library)?,
            None => layout.initialise(training.seed),
        };
        let affine = Arc::new(affine);
        let graph = Graph::new();
        let loss = self.record_loss(&graph, &network, &affine);
        let device = Arc::new(Cpu::new(training.threads));
        let trainer = Trainer::<f32>::new(device, &graph, loss, &[], &layout, start, training.adam());
        let trainer = trainer.map_err(into_library)?;
        let lesson = FlowLesson {
            fit: self.clone(),
            streams: sterna_neural::streams(training, collected.round),
            split,
            journeys,
            affine,
            layout: layout.clone(),
            network,
            config,
        };
        let report = earlier.map(|e| e.report.clone()).unwrap_or_default();
        Ok(Box::new(Course::new(lesson, training.clone(), trainer, layout, report)))
    }

    fn rebuild(&self, record: &[u8]) -> sterna::Result<Fitted> {
        let accelerator = self.rebuild_through(record, |map| Arc::new(map))?;
        Ok(Fitted { accelerator, path: None, record: record.into(), report: FitReport::default() })
    }
}

impl TrainMoleculeFlow {
    /// The transport of a record, its flow seen through another map: itself, or a broken twin.
    pub fn rebuild_through(
        &self,
        record: &[u8],
        through: impl FnOnce(FrozenMoleculeFlow) -> Arc<dyn InnerMap>,
    ) -> sterna::Result<Arc<dyn Accelerator>> {
        let stored = from_bytes::<Description>(record.to_vec(), "the flow's weights");
        let stored = stored.map_err(into_library)?;
        let Description { network, affine, strengths } = &stored.description;
        let affine = ConditionalAffine::from_parameters(&self.molecule, self.temperatures, affine);
        let mut layout = Layout::new();
        let flow = network.build(&mut layout);
        let weights: Parameters<f32> = stored.parameters(&layout).map_err(into_library)?;
        let map = FrozenMoleculeFlow::new(&flow, &weights.convert(), strengths).map_err(into_library)?;
        Ok(inside(&affine.map_err(stopped)?, through(map)))
    }

    /// Records the loss; inputs as [`FlowLesson::fill`] writes them.
    fn record_loss<'g>(
        &self,
        graph: &'g Graph,
        network: &MoleculeFlow,
        affine: &Arc<ConditionalAffine>,
    ) -> Value<'g> {
        let conditions = Conditions::pair_inputs(graph);
        let late = graph.input("late", 1);
        let strength = graph.scalar(1.0).broadcast(late.shape());
        // +log w of forward and −log w of backward journeys.
        let journey = |forward: bool| {
            let [z, soft, start] =
                [affine.stiff(), affine.soft(), 1].map(|cols| graph.input("journey", cols));
            let (direction, beta) = match forward {
                true => (Direction::Forward, conditions.upper),
                false => (Direction::Backward, conditions.lower),
            };
            let (end, log_det) = network.record(direction, &conditions, strength, Inner { soft, z });
            let density = Density { molecule: self.molecule.clone(), affine: affine.clone() };
            let end = density.record([end.z, end.soft, conditions.upper, beta]) + log_det;
            // By the formula the same for both.
            Direction::Forward.log_weight(start, end)
        };
        let (up, down) = (journey(true), journey(false));
        // Δ = log w(forward) − log w(backward).
        let delta = up + down;
        let rejection = (delta * 0.5).tanh().abs() * 2.0;
        (late * rejection - (1.0 - late) * delta).mean_rows()
    }
}

/// Root mean square of each standardised coordinate.
fn spread(journeys: &[(Interval, Journeys, Journeys)], stiff: usize) -> Vec<f64> {
    let (mut sums, mut count) = (vec![0.0; stiff], 0.0);
    for z in journeys.iter().flat_map(|(_, up, down)| [&up.z, &down.z]) {
        for row in z.chunks_exact(stiff) {
            sums.iter_mut().zip(row).for_each(|(sum, z)| *sum += z * z);
            count += 1.0;
        }
    }
    sums.iter().map(|sum| (sum / count).sqrt().max(1e-12)).collect()
}

fn accelerator(
    flow: &MoleculeFlow,
    weights: &Parameters<f32>,
    affine: &ConditionalAffine,
    strengths: &[f64],
) -> sterna::Result<Arc<dyn Accelerator>> {
    let map = FrozenMoleculeFlow::new(flow, &weights.convert(), strengths).map_err(into_library)?;
    Ok(inside(affine, Arc::new(map)))
}

/// Swaps on a map inside an affine transport.
fn inside(affine: &ConditionalAffine, map: Arc<dyn InnerMap>) -> Arc<dyn Accelerator> {
    Arc::new(FlowAccelerator::new(Arc::new(Refined::new(affine.clone(), map))))
}

struct FlowLesson {
    fit: TrainMoleculeFlow,
    split: Split,
    streams: TrainingStreams,
    /// Of each pair: from its lower and from its upper end.
    journeys: Vec<(Interval, Journeys, Journeys)>,
    affine: Arc<ConditionalAffine>,
    layout: Layout,
    network: MoleculeFlow,
    config: MoleculeFlowConfig,
}

impl Lesson for FlowLesson {
    fn rows(&self) -> usize {
        self.fit.training.batch
    }

    fn inputs(&self) -> usize {
        9
    }

    fn fill(&mut self, step: u64, inputs: &mut [Vec<f32>]) {
        let (stiff, soft) = (self.affine.stiff(), self.affine.soft());
        let late = step as f64 >= DIVERGENCE_SHARE * self.fit.training.steps as f64;
        for row in 0..self.rows() {
            let mut choices = self.streams.choices(step, row);
            let (pair, up, down) = &self.journeys[choices.below(self.journeys.len())];
            inputs[0].push(pair.lower as f32);
            inputs[1].push(pair.upper as f32);
            inputs[2].push(f32::from(u8::from(late)));
            for (k, journeys) in [up, down].into_iter().enumerate() {
                let i = choices.below(journeys.start.len());
                let parts = [(&journeys.z, stiff), (&journeys.soft, soft), (&journeys.start, 1)];
                for (to, (from, cols)) in inputs[3 + 3 * k..].iter_mut().zip(parts) {
                    to.extend(from[i * cols..(i + 1) * cols].iter().map(|&x| f32::from_f64(x)));
                }
            }
        }
    }

    fn cost(&self) -> (u64, u64) {
        let journeys = 2 * self.rows() as u64;
        (journeys, journeys)
    }

    /// The affine transport alone.
    fn failed(&self) -> sterna::Result<Fitted> {
        let weights = self.layout.initialise(self.fit.training.seed);
        self.fitted(&weights, vec![0.0; self.split.pairs()])
    }

    /// Each pair gets the strength that rejects least on held-out samples; none is the affine transport.
    fn graduate(&self, weights: &Parameters<f32>, report: &mut FitReport) -> sterna::Result<Fitted> {
        let pairs = self.split.pairs();
        let judge = |accelerator: &dyn Accelerator| {
            rejection_rates(accelerator, &*self.fit.path, &self.split, self.fit.training.seed)
        };
        let rejections = STRENGTHS.map(|strength| {
            judge(&*accelerator(&self.network, weights, &self.affine, &vec![strength; pairs])?)
        });
        let rejections = rejections.into_iter().collect::<sterna::Result<Vec<_>>>()?;
        let plain = judge(&Identity)?;
        let best = |n: usize| {
            let order = |&i: &usize, &j: &usize| rejections[i][n].total_cmp(&rejections[j][n]);
            (0..STRENGTHS.len()).min_by(order).expect("there are some")
        };
        let strengths: Vec<f64> = (0..pairs).map(|n| STRENGTHS[best(n)]).collect();
        let chosen: Vec<f64> = (0..pairs).map(|n| rejections[best(n)][n]).collect();
        let (affine, full) = (&rejections[0], &rejections[STRENGTHS.len() - 1]);
        let rates = |rates: &[f64]| rates.iter().map(|r| format!("{r:.3}")).collect::<Vec<_>>().join(", ");
        // What was said of earlier rounds no longer holds.
        report.alarms.retain(|(code, _)| code != "flow-replaced");
        if strengths.contains(&0.0) {
            report.alarms.push((
                "flow-replaced".into(),
                format!(
                    "on held-out samples the flow rejects {}, the affine transport alone {}; where it is no better it is \
                     left out; more samples (training.collect) or steps (training.steps) may help",
                    rates(full),
                    rates(affine)
                ),
            ));
        }
        report.pairs = (0..pairs)
            .map(|n| PairReport { rejection: chosen[n], plain_rejection: plain[n], plain: false })
            .collect();
        self.fitted(weights, strengths)
    }
}

impl FlowLesson {
    fn fitted(&self, weights: &Parameters<f32>, strengths: Vec<f64>) -> sterna::Result<Fitted> {
        let accelerator = accelerator(&self.network, weights, &self.affine, &strengths)?;
        let description =
            Description { network: self.config.clone(), affine: self.affine.parameters(), strengths };
        let record = to_bytes(&description, &self.layout, weights, None).map_err(into_library)?;
        Ok(Fitted { accelerator, path: None, record: record.into(), report: FitReport::default() })
    }
}
