//! Times of the computations that the networks consist of: `cargo bench -p sterna-neural`.
//!
//! With `--case NAME --threads N` it times a burst of calls for each number that it reads from its input and
//! prints the time of one call in microseconds; `against_jax.py` beside this file compares that way.

#![expect(clippy::disallowed_methods, reason = "measures time")]

use std::time::Instant;

use sterna_neural::{Cpu, Device, Graph, Init, Layout, Parameters, Program, Value};

const DIM: usize = 10;

/// An MLP of `layers` hidden layers of `width`: the weights' layout and its record.
fn network(
    layout: &mut Layout,
    layers: usize,
    width: usize,
    out: usize,
) -> impl for<'g> Fn(&'g Graph, Value<'g>) -> Value<'g> {
    let mut slots = Vec::new();
    let mut from = DIM;
    for layer in 0..=layers {
        let to = if layer == layers { out } else { width };
        let w = layout.add(format!("{layer}.weight"), from, to, Init::FanIn);
        let b = layout.add(format!("{layer}.bias"), 1, to, Init::Constant(0.0));
        slots.push((w, b));
        from = to;
    }
    move |graph, x| {
        let mut h = x;
        for (layer, (w, b)) in slots.iter().enumerate() {
            h = h.matmul(w.record(graph)) + b.record(graph);
            if layer < slots.len() - 1 {
                h = h.silu();
            }
        }
        h
    }
}

struct Case {
    program: Box<dyn Program<f32>>,
    parameters: Parameters<f32>,
    rows: usize,
    inputs: Vec<Vec<f32>>,
    /// Whether each call sees new weights, as in training.
    training: bool,
}

impl Case {
    fn new(name: &str, threads: usize) -> Self {
        let (kind, size) = name.split_once('-').expect("kind-size");
        let (layers, width) = match size {
            "4x512" => (4, 512),
            "3x128" => (3, 128),
            other => panic!("no size {other}"),
        };
        let graph = Graph::new();
        let mut layout = Layout::new();
        let x = graph.input("x", DIM);
        let rows = if kind == "forward" { 31 } else { 512 };
        let mut inputs = vec![numbers(rows * DIM)];
        let outputs = match kind {
            "forward" => vec![network(&mut layout, layers, width, DIM)(&graph, x)],
            "gradient" => {
                let y = network(&mut layout, layers, width, DIM)(&graph, x);
                let loss = y.square().sum_cols().mean_rows();
                let mut all = vec![loss];
                all.extend(graph.gradient(loss, &layout.record(&graph)));
                all
            }
            // Score matching: the energy's gradient in x, differentiated in the weights.
            "score" => {
                let v = graph.input("v", DIM);
                inputs.push(numbers(rows * DIM));
                let energy = network(&mut layout, layers, width, 1)(&graph, x);
                let score = graph.gradient(energy, &[x])[0];
                let loss = (score - v).square().sum_cols().mean_rows();
                let mut all = vec![loss];
                all.extend(graph.gradient(loss, &layout.record(&graph)));
                all
            }
            other => panic!("no case {other}"),
        };
        let program = Device::<f32>::compile(&Cpu::new(threads), &graph, &outputs).expect("compiles");
        let parameters = layout.initialise(1);
        Self { program, parameters, rows, inputs, training: kind != "forward" }
    }

    fn call(&mut self) {
        if self.training {
            self.parameters.values_mut();
        }
        let mut slices: [&[f32]; 2] = [&[]; 2];
        for (slice, input) in slices.iter_mut().zip(&self.inputs) {
            *slice = input;
        }
        self.program.run(&self.parameters, self.rows, &slices[..self.inputs.len()]).expect("runs");
    }

    /// Mean time of one of `n` calls, in microseconds.
    fn burst(&mut self, n: usize) -> f64 {
        let start = Instant::now();
        (0..n).for_each(|_| self.call());
        start.elapsed().as_secs_f64() * 1e6 / n as f64
    }

    /// Median time of a call in microseconds.
    fn median(&mut self, seconds: f64) -> f64 {
        self.call();
        let begin = Instant::now();
        let mut times = Vec::new();
        while begin.elapsed().as_secs_f64() < seconds || times.len() < 10 {
            times.push(self.burst(1));
        }
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }
}

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i as f32 * 0.754_877_7).fract() - 0.5) * 2.0).collect()
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| args.iter().position(|a| a == name).map(|i| args[i + 1].clone());
    let seconds = value("--seconds").map_or(1.0, |s| s.parse().expect("seconds"));
    if let Some(case) = value("--case") {
        let threads = value("--threads").map_or(1, |t| t.parse().expect("threads"));
        let mut case = Case::new(&case, threads);
        case.call();
        for line in std::io::stdin().lines() {
            println!("{}", case.burst(line.expect("text").trim().parse().expect("a number of calls")));
        }
        return;
    }
    println!("{:<16} {:>12} {:>12}", "f32, median µs", "1 thread", "2 threads");
    for case in
        ["forward-4x512", "gradient-4x512", "score-4x512", "forward-3x128", "gradient-3x128", "score-3x128"]
    {
        let [one, two] = [1, 2].map(|threads| Case::new(case, threads).median(seconds));
        println!("{case:<16} {one:>12.1} {two:>12.1}");
    }
}
