//! A network layer: parameters with names, and a value recorded in the graph, which differentiates it.

use sterna_neural::{Cpu, Device, Graph, Init, Layout, Parameters, Slot, Value};

/// h + silu(h W + b): a residual layer.
pub struct Residual {
    weight: Slot,
    bias: Slot,
}

impl Residual {
    /// Adds the parameters. The layer starts as the identity, so that training begins where the network would be without it.
    pub fn new(layout: &mut Layout, name: &str, width: usize) -> Self {
        let weight = layout.add(format!("{name}.weight"), width, width, Init::Constant(0.0));
        let bias = layout.add(format!("{name}.bias"), 1, width, Init::Constant(0.0));
        Self { weight, bias }
    }

    /// Records the layer's output.
    pub fn record<'g>(&self, h: Value<'g>) -> Value<'g> {
        let graph = h.graph();
        h + (h.matmul(self.weight.record(graph)) + self.bias.record(graph)).silu()
    }
}

const WIDTH: usize = 3;

/// Σ y² of the layer at one row, and its gradient by the row; `twin` forgets that h itself passes.
fn loss(parameters: &Parameters<f64>, layer: &Residual, h: &[f64], twin: bool) -> (f64, Vec<f64>) {
    let graph = Graph::new();
    let input = graph.input("h", WIDTH);
    let through = if twin { input.detach() } else { input };
    let y = layer.record(input) - input + through;
    let loss = (y * y).sum_cols().mean_rows();
    let gradient = graph.gradient(loss, &[input]);
    let mut program = Device::<f64>::compile(&Cpu::new(1), &graph, &[loss, gradient[0]]).unwrap();
    program.run(parameters, 1, &[h]).unwrap();
    (program.output(0)[0], program.output(1).to_vec())
}

#[test]
fn it_starts_as_the_identity_and_its_derivative_is_that_of_differences() {
    let mut layout = Layout::new();
    let layer = Residual::new(&mut layout, "residual", WIDTH);
    let h = [0.3, -1.2, 0.8];
    let start = Parameters::new(vec![0.0; layout.len()]);
    assert!((loss(&start, &layer, &h, false).0 - h.iter().map(|h| h * h).sum::<f64>()).abs() < 1e-15);

    let weights = Parameters::new((0..layout.len()).map(|i| (1.7 * i as f64).sin()).collect());
    let differences: Vec<f64> = (0..WIDTH)
        .map(|j| {
            let at = |by: f64| {
                let mut h = h;
                h[j] += by;
                loss(&weights, &layer, &h, false).0
            };
            (at(1e-5) - at(-1e-5)) / 2e-5
        })
        .collect();
    let error = |twin: bool| {
        let gradient = loss(&weights, &layer, &h, twin).1;
        gradient.iter().zip(&differences).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    assert!(error(false) < 1e-7, "{}", error(false));
    assert!(error(true) > 1e-3, "{}", error(true));
}
