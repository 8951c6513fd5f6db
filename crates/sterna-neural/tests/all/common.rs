//! Shared by the tests: running a recorded value, and comparing derivatives with finite differences.
#![allow(dead_code)]

use sterna_neural::{Cpu, Device, Graph, Init, Layout, Parameters, Program, Value};

/// A spread-out but repeatable number in (−1, 1).
pub fn pseudo(i: usize) -> f64 {
    let x = (i as f64 + 1.0) * 0.754_877_666_246_692_8;
    2.0 * (x - x.floor()) - 1.0
}

/// `n` such numbers, scaled and shifted.
pub fn numbers(n: usize, salt: usize, scale: f64, shift: f64) -> Vec<f64> {
    (0..n).map(|i| shift + scale * pseudo(i + 1000 * salt)).collect()
}

/// Compiles for f64 on one thread.
pub fn compile(graph: &Graph, outputs: &[Value]) -> Box<dyn Program<f64>> {
    Device::<f64>::compile(&Cpu::new(1), graph, outputs).unwrap()
}

/// Largest |a − b| relative to the largest |b|.
pub fn relative_error(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let scale = b.iter().fold(1e-300f64, |m, x| m.max(x.abs()));
    assert!(a.iter().all(|x| x.is_finite()), "{a:?}");
    a.iter().zip(b).fold(0.0f64, |m, (x, y)| m.max((x - y).abs())) / scale
}

/// d f/d v by differences of fourth order.
pub fn difference(v: &mut [f64], i: usize, mut f: impl FnMut(&[f64]) -> f64) -> f64 {
    let h = 4e-4;
    let x = v[i];
    let mut at = |t: f64| {
        v[i] = x + t;
        f(v)
    };
    let d = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
    v[i] = x;
    // One more order by halving the step (Richardson).
    let h = h / 2.0;
    let mut at = |t: f64| {
        v[i] = x + t;
        f(v)
    };
    let d2 = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
    v[i] = x;
    d2 + (d2 - d) / 15.0
}

/// Checks first and second derivatives of a scalar `loss(inputs, parameters)` against differences.
///
/// `record` gets the graph, its inputs and one parameter vector (1 × p), and returns values to be summed.
pub fn check_derivatives(
    name: &str,
    rows: usize,
    inputs: &[Vec<f64>],
    parameters: &[f64],
    tolerance: f64,
    record: impl for<'g> Fn(&'g Graph, &[Value<'g>], Value<'g>) -> Value<'g>,
) {
    let mut layout = Layout::new();
    let slot = layout.add("p", 1, parameters.len(), Init::Constant(0.0));
    check_network(name, rows, inputs, &layout, parameters, tolerance, |graph, x| {
        record(graph, x, slot.record(graph))
    });
}

/// The same for a network whose parameters `layout` describes.
pub fn check_network(
    name: &str,
    rows: usize,
    inputs: &[Vec<f64>],
    layout: &Layout,
    parameters: &[f64],
    tolerance: f64,
    record: impl for<'g> Fn(&'g Graph, &[Value<'g>]) -> Value<'g>,
) {
    let graph = Graph::new();
    let xs: Vec<_> =
        inputs.iter().enumerate().map(|(i, x)| graph.input(&format!("x{i}"), x.len() / rows)).collect();
    let loss = record(&graph, &xs).sum_cols().sum_rows();
    let mut wrt = xs.clone();
    wrt.extend(layout.record(&graph));
    let gradients = graph.gradient(loss, &wrt);
    // A scalar function of the gradients, differentiated again: tests second derivatives in a direction.
    let mut directional = graph.scalar(0.0);
    for (k, g) in gradients.iter().enumerate() {
        let weight = graph.constant(g.cols(), &numbers(g.cols(), 77 + k, 1.0, 0.1));
        directional = directional + (*g * weight).sum_cols().sum_rows();
    }
    let second = graph.gradient(directional, &wrt);

    let mut outputs = vec![loss, directional];
    outputs.extend(&gradients);
    outputs.extend(&second);
    let mut program = compile(&graph, &outputs);
    let values = |program: &mut Box<dyn Program<f64>>, inputs: &[Vec<f64>], p: &[f64]| {
        let slices: Vec<&[f64]> = inputs.iter().map(|x| &x[..]).collect();
        program.run(&Parameters::new(p.to_vec()), rows, &slices).unwrap();
        [program.output(0)[0], program.output(1)[0]]
    };
    values(&mut program, inputs, parameters);
    let n = wrt.len();
    let analytic: Vec<Vec<f64>> = (0..2 * n).map(|k| program.output(2 + k).to_vec()).collect();
    let slots: Vec<_> = layout.slots().cloned().collect();
    for order in 0..2 {
        for k in 0..n {
            let analytic = &analytic[order * n + k];
            // All of a small argument, some of a large one.
            let stride = analytic.len().div_ceil(12);
            let picked: Vec<usize> = (0..analytic.len()).step_by(stride).collect();
            let numeric: Vec<f64> = picked
                .iter()
                .map(|&i| {
                    if k < inputs.len() {
                        let mut v = inputs[k].clone();
                        difference(&mut v, i, |v| {
                            let mut inputs = inputs.to_vec();
                            inputs[k] = v.to_vec();
                            values(&mut program, &inputs, parameters)[order]
                        })
                    } else {
                        let mut v = parameters.to_vec();
                        let i = slots[k - inputs.len()].offset + i;
                        difference(&mut v, i, |v| values(&mut program, inputs, v)[order])
                    }
                })
                .collect();
            let analytic: Vec<f64> = picked.iter().map(|&i| analytic[i]).collect();
            // Where the derivative vanishes altogether, only rounding is left to compare with.
            let size = numeric.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            let error = relative_error(&analytic, &numeric) * size / size.max(1e-2);
            assert!(
                error < tolerance,
                "{name}: order {}, argument {k}: {error:e}\n{analytic:?}\n{numeric:?}",
                order + 1
            );
        }
    }
}

/// Parameters away from the special start, where outputs are zero.
pub fn lively(layout: &Layout) -> Vec<f64> {
    let start = layout.initialise::<f64>(5);
    start.values().iter().enumerate().map(|(i, x)| 0.7 * x + 0.15 * pseudo(i)).collect()
}
