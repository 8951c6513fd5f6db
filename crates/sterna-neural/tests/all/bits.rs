//! Sameness to the bit: a row alone or in a batch, any number of threads, any instruction set, and a
//! training run that was saved and loaded in the middle.

use std::sync::Arc;

use crate::common::{lively, numbers};
use sterna::Batch;
use sterna::targets::{Dw4, Gmm};
use sterna_neural::weights::{NetworkConfig, from_bytes, to_bytes};
use sterna_neural::{
    AdamConfig, Conditions, Cpu, Device, EgnnDriftConfig, EnergyConfig, Graph, GraphTarget, Hidden, Layout,
    Level, MlpDriftConfig, Parameters, Particles, Real, RealNvpConfig, Trainer, TrainingStreams, Value,
};

const SCHEDULE: [f64; 4] = [0.0, 0.05, 0.4, 1.0];

type Record = Box<dyn for<'g> Fn(&'g Graph, &Conditions<'g>, Value<'g>) -> Vec<Value<'g>>>;

/// A computation over inputs lower, upper, time, x.
struct Case {
    name: &'static str,
    dim: usize,
    layout: Layout,
    record: Record,
}

fn cases() -> Vec<Case> {
    let mut layout = Layout::new();
    let mlp = MlpDriftConfig::small(10, &SCHEDULE).unwrap().build(&mut layout, "n").unwrap();
    let mut all = vec![Case {
        name: "mlp and gmm",
        dim: 10,
        layout,
        record: Box::new(move |_, c, x| vec![mlp.record(c, x), Gmm::paper(10).score(x)]),
    }];
    // Wide enough for full register tiles and several panels.
    let mut layout = Layout::new();
    let config =
        MlpDriftConfig { hidden: Hidden::new(2, 200), ..MlpDriftConfig::small(3, &SCHEDULE).unwrap() };
    let wide = config.build(&mut layout, "n").unwrap();
    all.push(Case {
        name: "wide mlp",
        dim: 3,
        layout,
        record: Box::new(move |_, c, x| vec![wide.record(c, x)]),
    });
    let mut layout = Layout::new();
    let flow = RealNvpConfig::small(5, &SCHEDULE).unwrap().build(&mut layout, "n").unwrap();
    all.push(Case {
        name: "realnvp",
        dim: 5,
        layout,
        record: Box::new(move |_, c, x| {
            let (y, log_det) = flow.record(c, x);
            let (z, back) = flow.record_inverse(c, x);
            vec![y, log_det, z, back]
        }),
    });
    let mut layout = Layout::new();
    let egnn = EgnnDriftConfig::small(Particles::DW4, &SCHEDULE).unwrap().build(&mut layout, "n").unwrap();
    all.push(Case { name: "egnn", dim: 6, layout, record: Box::new(move |_, c, x| vec![egnn.record(c, x)]) });
    let mut layout = Layout::new();
    let energy = EnergyConfig::small_particles(Particles::DW4).build(&mut layout, "n").unwrap();
    all.push(Case {
        name: "energy model",
        dim: 6,
        layout,
        record: Box::new(move |graph, c, x| {
            let log_density = energy.record(&Dw4, c.time.unwrap(), x);
            vec![log_density, graph.gradient(log_density, &[x])[0]]
        }),
    });
    all
}

fn inputs<T: Real>(rows: usize, dim: usize) -> Vec<Vec<T>> {
    let columns = [
        (0..rows).map(|i| SCHEDULE[i % 3]).collect(),
        (0..rows).map(|i| SCHEDULE[i % 3 + 1]).collect(),
        numbers(rows, 3, 0.5, 0.5),
        numbers(rows * dim, 4, 1.0, 0.0),
    ];
    columns.into_iter().map(|c: Vec<f64>| c.into_iter().map(T::from_f64).collect()).collect()
}

/// Outputs of a case on rows `from .. to`.
fn outputs<T: Real>(
    case: &Case,
    device: &dyn Device<T>,
    from: usize,
    to: usize,
    all: &[Vec<T>],
) -> Vec<Vec<T>> {
    let graph = Graph::new();
    let conditions = Conditions::inputs(&graph);
    let x = graph.input("x", case.dim);
    let values = (case.record)(&graph, &conditions, x);
    let mut program = device.compile(&graph, &values).unwrap();
    let parameters = Parameters::new(lively(&case.layout)).convert::<T>();
    let slices: Vec<&[T]> = [1, 1, 1, case.dim].iter().zip(all).map(|(c, x)| &x[from * c..to * c]).collect();
    program.run(&parameters, to - from, &slices).unwrap();
    (0..values.len()).map(|k| program.output(k).to_vec()).collect()
}

fn rows_are_independent<T: Real>() {
    for case in cases() {
        let all = inputs::<T>(150, case.dim);
        let whole = outputs(&case, &Cpu::new(1), 0, 150, &all);
        assert!(whole.iter().flatten().all(|x| x.to_f64().is_finite()), "{}", case.name);
        for (from, to) in [(0, 1), (149, 150), (3, 20), (7, 38), (0, 64), (63, 130)] {
            let part = outputs(&case, &Cpu::new(1), from, to, &all);
            for (whole, part) in whole.iter().zip(&part) {
                let cols = part.len() / (to - from);
                assert_eq!(part[..], whole[from * cols..to * cols], "{} rows {from}..{to}", case.name);
            }
        }
        for threads in [2, 3] {
            assert_eq!(outputs(&case, &Cpu::new(threads), 0, 150, &all), whole, "{} {threads}", case.name);
        }
        for level in Level::available() {
            let other = outputs(&case, &Cpu::with_level(1, level), 0, 40, &all);
            for (whole, part) in whole.iter().zip(&other) {
                assert_eq!(part[..], whole[..part.len()], "{} on {level:?}", case.name);
            }
        }
    }
}

#[test]
fn rows_are_independent_in_f32() {
    rows_are_independent::<f32>();
}

#[test]
fn rows_are_independent_in_f64() {
    rows_are_independent::<f64>();
}

/// Score matching on a small energy model: second derivatives, sums over the batch, Adam, averages.
fn trainer(threads: usize, config: &EnergyConfig) -> (Trainer<f32>, Layout) {
    let (graph, mut layout) = (Graph::new(), Layout::new());
    let network = config.build(&mut layout, "energy").unwrap();
    let (time, x, wanted) = (graph.input("time", 1), graph.input("x", 2), graph.input("wanted", 2));
    let target = Gmm::new(2, vec![[0.5, 0.2], [-0.4, 0.3]], 0.3);
    let score = graph.gradient(network.record(&target, time, x), &[x])[0];
    let loss = ((score - wanted) * 0.1).square().sum_cols().mean_rows();
    let start = layout.initialise::<f32>(3);
    let device = Arc::new(Cpu::new(threads));
    let adam = AdamConfig { warm_up: 10, ..AdamConfig::default() };
    (Trainer::new(device, &graph, loss, &[], &layout, start, adam).unwrap(), layout)
}

fn train(trainer: &mut Trainer<f32>, steps: std::ops::Range<u64>) -> f64 {
    let streams = TrainingStreams::new(11);
    let data = Batch::from_vec(2, numbers(2000, 6, 0.7, 0.0));
    let rows: Vec<u32> = (0..256).collect();
    let mut noise = Batch::zeros(256, 2);
    let mut last = 0.0;
    for step in steps {
        let mut x = Vec::new();
        streams.draw::<f32>(step, 256, &data, &mut x);
        streams.noise(step, &rows, &mut noise);
        let time: Vec<f32> = (0..256).map(|i| streams.time(step, i) as f32).collect();
        let wanted: Vec<f32> = noise.as_slice().iter().map(|z| -*z as f32).collect();
        last = trainer.step(256, &[&time, &x, &wanted]).unwrap().loss;
    }
    last
}

#[test]
fn training_has_the_same_bits_on_any_threads_and_after_a_break() {
    let config = EnergyConfig { hidden: Hidden::new(3, 48), ..EnergyConfig::small(2) };
    let (mut one, layout) = trainer(1, &config);
    let first = train(&mut one, 0..1);
    let last = train(&mut one, 1..200);
    assert!(last < first, "training lowers the loss: {first} to {last}");
    assert_eq!(one.progress().updates, 200);
    assert!(one.alarm().is_none());

    let (mut two, _) = trainer(2, &config);
    train(&mut two, 0..200);
    assert_eq!(one.state(), two.state());

    let (mut before, _) = trainer(2, &config);
    train(&mut before, 0..90);
    let description = NetworkConfig::Energy(config.clone());
    let bytes = to_bytes(&description, &layout, before.parameters(), Some(&before.state())).unwrap();
    let stored = from_bytes::<NetworkConfig>(bytes, "memory").unwrap();
    assert_eq!(stored.description, description);
    let (mut after, _) = trainer(1, &config);
    after.restore(&stored.state(&layout).unwrap().unwrap()).unwrap();
    train(&mut after, 90..200);
    assert_eq!(one.state(), after.state());
}
