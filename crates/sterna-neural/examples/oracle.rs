//! Prints values, first and second derivatives of every network as JSON, for `tests/oracle.py` to compare
//! with JAX on the same weights.

use serde_json::{Value as Json, json};
use sterna::targets::{Dw4, Gmm, ManyWell};
use sterna_neural::{
    Conditions, Cpu, Device, EgnnDriftConfig, EnergyConfig, Graph, GraphTarget, Hidden, Layout,
    MlpDriftConfig, Parameters, Particles, RealNvpConfig, Value,
};

const SCHEDULE: [f64; 4] = [0.0, 0.05, 0.4, 1.0];
const ROWS: usize = 3;

/// A spread-out but repeatable number in (−1, 1).
fn pseudo(i: usize) -> f64 {
    let x = (i as f64 + 1.0) * 0.754_877_666_246_692_8;
    2.0 * (x - x.floor()) - 1.0
}

fn numbers(n: usize, salt: usize, scale: f64, shift: f64) -> Vec<f64> {
    (0..n).map(|i| shift + scale * pseudo(i + 1000 * salt)).collect()
}

/// Runs the loss, its gradient, and the gradient of its directional derivative.
fn case(
    name: &str,
    dim: usize,
    layout: &Layout,
    record: impl for<'g> Fn(&'g Graph, &Conditions<'g>, Value<'g>) -> Value<'g>,
) -> Json {
    let graph = Graph::new();
    let conditions = Conditions::inputs(&graph);
    let x = graph.input("x", dim);
    let loss = record(&graph, &conditions, x).sum_cols().sum_rows();
    let mut wrt = vec![conditions.time.expect("a time"), x];
    wrt.extend(layout.record(&graph));
    let gradients = graph.gradient(loss, &wrt);
    let mut directional = graph.scalar(0.0);
    for (k, g) in gradients.iter().enumerate() {
        // The same direction for every row.
        let direction = graph.constant(g.cols(), &numbers(g.cols(), 50 + k, 1.0, 0.1));
        directional = directional + (*g * direction).sum_cols().sum_rows();
    }
    let second = graph.gradient(directional, &wrt);
    let mut outputs = vec![loss];
    outputs.extend(gradients);
    outputs.extend(second);
    let device: &dyn Device<f64> = &Cpu::new(1);
    let mut program = device.compile(&graph, &outputs).expect("compiles");

    let start = layout.initialise::<f64>(5);
    let values: Vec<f64> =
        start.values().iter().enumerate().map(|(i, p)| 0.7 * p + 0.15 * pseudo(i)).collect();
    let lower: Vec<f64> = (0..ROWS).map(|i| SCHEDULE[i % 3]).collect();
    let upper: Vec<f64> = (0..ROWS).map(|i| SCHEDULE[i % 3 + 1]).collect();
    let (time, points) = (numbers(ROWS, 3, 0.4, 0.5), numbers(ROWS * dim, 4, 1.0, 0.1));
    let parameters = Parameters::new(values);
    program.run(&parameters, ROWS, &[&lower, &upper, &time, &points]).expect("runs");

    let n = wrt.len();
    let names: Vec<String> =
        ["time", "x"].into_iter().map(String::from).chain(layout.slots().map(|s| s.name.clone())).collect();
    let named = |first: usize| -> Json {
        (0..n)
            .map(|k| (names[k].clone(), json!(program.output(first + k))))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let weights: serde_json::Map<_, _> = layout
        .slots()
        .map(|s| {
            let values = &parameters.values()[s.offset..s.offset + s.len()];
            (s.name.clone(), json!({ "shape": [s.rows, s.cols], "values": values }))
        })
        .collect();
    let directions: serde_json::Map<_, _> = names
        .iter()
        .enumerate()
        .map(|(k, name)| (name.clone(), json!(numbers(wrt[k].cols(), 50 + k, 1.0, 0.1))))
        .collect();
    json!({
        "name": name, "dim": dim, "schedule": SCHEDULE, "weights": weights, "directions": directions,
        "inputs": { "lower": lower, "upper": upper, "time": time, "x": points },
        "loss": program.output(0)[0], "first": named(1), "second": named(1 + n),
    })
}

fn main() {
    let mut cases = Vec::new();

    let mut layout = Layout::new();
    let config =
        MlpDriftConfig { hidden: Hidden::new(3, 16), ..MlpDriftConfig::small(5, &SCHEDULE).unwrap() };
    let mlp = config.build(&mut layout, "net").unwrap();
    cases.push(case("mlp", 5, &layout, |_, c, x| mlp.record(c, x).square()));

    let mut layout = Layout::new();
    let config =
        RealNvpConfig { layers: 5, hidden: Hidden::new(2, 8), ..RealNvpConfig::small(4, &SCHEDULE).unwrap() };
    let flow = config.build(&mut layout, "net").unwrap();
    cases.push(case("realnvp", 4, &layout, |_, c, x| {
        let (y, log_det) = flow.record(c, x);
        y.square().sum_cols() + log_det.square()
    }));

    let mut layout = Layout::new();
    let config = EgnnDriftConfig {
        hidden: Hidden::new(2, 8),
        ..EgnnDriftConfig::small(Particles::DW4, &SCHEDULE).unwrap()
    };
    let egnn = config.build(&mut layout, "net").unwrap();
    cases.push(case("egnn", 6, &layout, |_, c, x| egnn.record(c, x).square()));

    // Energy models: the loss holds the score, as score matching does.
    let targets: [(&str, EnergyConfig, &dyn GraphTarget); 3] = [
        (
            "energy-gmm",
            EnergyConfig { log_precision: vec![2.0, 1.0, 0.5, -0.3], waves: 2, ..EnergyConfig::small(4) },
            &Gmm::new(4, vec![[0.5, 0.2], [-0.4, 0.3]], 0.5),
        ),
        ("energy-many-well", EnergyConfig::small(4), &ManyWell::new(4)),
        ("energy-dw4", EnergyConfig::small_particles(Particles::DW4), &Dw4),
    ];
    for (name, config, target) in targets {
        let mut layout = Layout::new();
        let config = EnergyConfig { hidden: Hidden::new(2, 8), scalar_hidden: Hidden::new(1, 6), ..config };
        let network = config.build(&mut layout, "net").unwrap();
        cases.push(case(name, network.dim(), &layout, |graph, c, x| {
            let log_density = network.record(target, c.time.unwrap(), x);
            let score = graph.gradient(log_density, &[x])[0];
            (score * 0.1).square().sum_cols() + log_density * 0.01
        }));
    }
    println!("{}", json!(cases));
}
