//! Networks: derivatives against differences, inverses, log-determinants, symmetries, boundary values.

use std::sync::Arc;

use crate::common::{check_network, compile, lively, numbers, relative_error};
use sterna::call::Scratch;
use sterna::targets::{Banana, Dw4, Funnel, Gmm, LennardJones, ManyWell, Normal, Phi4, Phi4InModes};
use sterna::transport::{Drift, EnergyModel, Flow, Interval};
use sterna::{Batch, Evaluation, Target};
use sterna_neural::{
    Conditions, Cpu, EgnnDriftConfig, EnergyConfig, Field, Graph, GraphTarget, Hidden, HostTarget, Layout,
    MlpDriftConfig, NeuralDrift, NeuralEnergyModel, NeuralFlow, Parameters, Particles, RealNvpConfig,
};

const SCHEDULE: [f64; 4] = [0.0, 0.05, 0.4, 1.0];

fn intervals() -> Vec<Interval> {
    SCHEDULE.windows(2).map(|w| Interval { lower: w[0], upper: w[1] }).collect()
}

/// For derivatives: an even schedule, so that features of β vary slowly enough for differences.
const EVEN: [f64; 4] = [0.0, 0.3, 0.6, 1.0];

/// lower, upper, time, x for three rows, one per pair; off the schedule's knots, where features have kinks.
fn conditions(dim: usize) -> Vec<Vec<f64>> {
    vec![vec![0.1, 0.35, 0.65], vec![0.35, 0.62, 0.9], vec![0.2, 0.5, 0.9], numbers(3 * dim, 4, 1.0, 0.1)]
}

fn recorded<'g>(x: &[sterna_neural::Value<'g>]) -> Conditions<'g> {
    Conditions { lower: x[0], upper: x[1], time: Some(x[2]) }
}

#[test]
fn derivatives_of_the_mlp() {
    let mut layout = Layout::new();
    let config = MlpDriftConfig { hidden: Hidden::new(2, 8), ..MlpDriftConfig::small(3, &EVEN).unwrap() };
    let network = config.build(&mut layout, "drift").unwrap();
    check_network("mlp", 3, &conditions(3), &layout, &lively(&layout), 1e-7, |_, x| {
        network.record(&recorded(x), x[3]).square()
    });
}

#[test]
fn derivatives_of_the_flow() {
    let mut layout = Layout::new();
    let config =
        RealNvpConfig { layers: 3, hidden: Hidden::new(1, 6), ..RealNvpConfig::small(4, &EVEN).unwrap() };
    let network = config.build(&mut layout, "flow").unwrap();
    check_network("realnvp", 3, &conditions(4), &layout, &lively(&layout), 1e-7, |_, x| {
        let (y, log_det) = network.record(&recorded(x), x[3]);
        let (z, back) = network.record_inverse(&recorded(x), x[3] * 0.7);
        y.square().sum_cols() + log_det.square() + z.square().sum_cols() + back.sin()
    });
}

#[test]
fn derivatives_of_the_egnn() {
    for species in [vec![], vec![0, 1, 0, 2]] {
        let mut layout = Layout::new();
        let config = EgnnDriftConfig {
            hidden: Hidden::new(2, 5),
            species,
            ..EgnnDriftConfig::small(Particles::DW4, &EVEN).unwrap()
        };
        let network = config.build(&mut layout, "drift").unwrap();
        check_network("egnn", 3, &conditions(6), &layout, &lively(&layout), 1e-7, |_, x| {
            network.record(&recorded(x), x[3]).square()
        });
    }
}

#[test]
fn derivatives_of_the_energy_model() {
    let check = |name: &str, config: EnergyConfig, target: &dyn GraphTarget| {
        let mut layout = Layout::new();
        let network = config.build(&mut layout, "energy").unwrap();
        let inputs = conditions(network.dim())[2..].to_vec();
        check_network(name, 3, &inputs, &layout, &lively(&layout), 1e-7, |graph, x| {
            let log_density = network.record(target, x[0], x[1]);
            let score = graph.gradient(log_density, &[x[1]])[0];
            (log_density * 0.1).sin() + (score * 0.1).square().sum_cols()
        });
    };
    let small = |field: EnergyConfig| EnergyConfig {
        hidden: Hidden::new(1, 5),
        scalar_hidden: Hidden::new(1, 4),
        ..field
    };
    let gmm = Gmm::new(2, vec![[0.5, 0.2], [-0.4, 0.3]], 0.5);
    check("mlp", small(EnergyConfig::small(2)), &gmm);
    let uneven = EnergyConfig { log_precision: vec![2.0, -0.5], waves: 2, ..EnergyConfig::small(2) };
    check("mlp with waves", small(uneven), &gmm);
    let apart = EnergyConfig { field: Field::Additive { dim: 2 }, ..EnergyConfig::small(2) };
    check("additive", EnergyConfig { hidden: Hidden::new(2, 5), ..small(apart) }, &gmm);
    check("egnn", small(EnergyConfig::small_particles(Particles::DW4)), &Dw4);
}

#[test]
fn targets_in_the_graph_agree_with_the_library() {
    fn check(name: &str, target: &(impl Target + GraphTarget)) {
        let d = Target::dim(target);
        let graph = Graph::new();
        let x = graph.input("x", d);
        let mut program = compile(&graph, &[target.log_density(x), target.score(x)]);
        let points = numbers(5 * d, 2, 0.9, 0.05);
        program.run(&Parameters::empty(), 5, &[&points]).unwrap();
        let mut out = Evaluation::zeros(5, d);
        target.evaluate(&Batch::from_vec(d, points), &mut out).unwrap();
        assert!(relative_error(program.output(0), &out.log_density) < 1e-12, "{name}");
        assert!(relative_error(program.output(1), out.score.as_slice()) < 1e-12, "{name}");
    }
    check("gmm-2", &Gmm::paper(2));
    check("gmm-10", &Gmm::paper(10));
    check("dw4", &Dw4);
    check("many-well", &ManyWell::new(32));
    check("normal", &Normal::new(vec![0.3, -0.2, 1.0], vec![1.0, 4.0, 0.5]));
    check("funnel", &Funnel::new(5));
    check("banana", &Banana::new(3));
    check("banana-2", &Banana::new(2));
    check("lennard-jones", &LennardJones::new(4));
    check("phi4", &Phi4::new(4, -4.0, 6.975));
    check("phi4 in modes", &Phi4InModes::new(Phi4::new(5, -4.0, 6.975)));
}

#[test]
fn derivatives_of_targets() {
    fn check(name: &str, target: &dyn GraphTarget) {
        let d = target.dim();
        // The loss holds the score, so its second derivative is the third of the log density.
        check_network(name, 2, &[numbers(2 * d, 3, 0.8, 0.1)], &Layout::new(), &[], 1e-7, |_, x| {
            (target.log_density(x[0]) * 0.01).sin() + (target.score(x[0]) * 0.01).square().sum_cols()
        });
    }
    check("gmm", &Gmm::new(3, vec![[0.5, 0.2], [-0.4, 0.3]], 0.5));
    check("dw4", &Dw4);
    check("many-well", &ManyWell::new(4));
    check("normal", &Normal::new(vec![0.3, -0.2], vec![1.0, 4.0]));
    check("funnel", &Funnel::new(3));
    check("banana", &Banana::new(3));
    check("phi4", &Phi4::new(3, -1.0, 0.5));
    check("phi4 in modes", &Phi4InModes::new(Phi4::new(3, -1.0, 0.5)));
}

#[test]
fn a_target_on_the_host_differentiates_by_differences() {
    let exact = Funnel::new(3);
    let host = HostTarget::new(Arc::new(exact.clone()));
    let graph = Graph::new();
    let (x, v) = (graph.input("x", 3), graph.input("v", 3));
    let outputs = |target: &dyn GraphTarget| {
        let log_density = target.log_density(x);
        let score = target.score(x);
        let product = graph.gradient(score.dot(v), &[x])[0]; // Hessian · v
        let third = graph.gradient(product.dot(v * 0.5), &[x])[0];
        let slope = graph.gradient(product.dot(x.detach()), &[v])[0]; // Hessian · x
        let from_density = graph.gradient(log_density, &[x])[0];
        vec![log_density, score, product, third, slope, from_density]
    };
    let mut all = outputs(&exact);
    all.extend(outputs(&host));
    let mut program = compile(&graph, &all);
    program.run(&Parameters::empty(), 4, &[&numbers(12, 1, 1.0, 0.0), &numbers(12, 2, 1.0, 0.0)]).unwrap();
    for (k, tolerance) in [1e-12, 1e-12, 1e-8, 1e-5, 1e-8, 1e-12].into_iter().enumerate() {
        let error = relative_error(program.output(6 + k), program.output(k));
        assert!(error < tolerance, "output {k}: {error:e}");
    }
}

#[test]
fn flows_start_as_the_identity_and_invert() {
    for dim in [2, 5, 10] {
        let mut layout = Layout::new();
        let network = RealNvpConfig::paper(dim, &SCHEDULE).unwrap().build(&mut layout, "flow").unwrap();
        let pairs = intervals();
        let start = Batch::from_vec(dim, numbers(3 * dim, 1, 1.5, 0.0));

        let flow =
            NeuralFlow::<f64>::new(network.clone(), layout.initialise(1), Arc::new(Cpu::new(1))).unwrap();
        let (mut x, mut log_det) = (start.clone(), vec![1.0; 3]);
        flow.forward(&pairs, &mut x, &mut log_det, &mut Scratch::default()).unwrap();
        assert_eq!((&x, &log_det[..]), (&start, &[0.0; 3][..]));

        let parameters: Vec<f64> = lively(&layout).iter().map(|p| 0.5 * p).collect();
        let flow = NeuralFlow::new(network, Parameters::new(parameters), Arc::new(Cpu::new(1))).unwrap();
        let (mut x, mut back) = (start.clone(), vec![0.0; 3]);
        flow.forward(&pairs, &mut x, &mut log_det, &mut Scratch::default()).unwrap();
        assert!(relative_error(x.as_slice(), start.as_slice()) > 0.1, "the flow moves points");
        // Numerical Jacobian of each row.
        for i in 0..3 {
            let mut jacobian = vec![0.0; dim * dim];
            for j in 0..dim {
                let h = 1e-5;
                let at = |shift: f64| {
                    let mut x = Batch::from_vec(dim, start.row(i).to_vec());
                    x.row_mut(0)[j] += shift;
                    flow.forward(&pairs[i..=i], &mut x, &mut [0.0], &mut Scratch::default()).unwrap();
                    x
                };
                let (up, down) = (at(h), at(-h));
                for k in 0..dim {
                    jacobian[k * dim + j] = (up.row(0)[k] - down.row(0)[k]) / (2.0 * h);
                }
            }
            let numeric = log_abs_det(dim, jacobian);
            assert!((numeric - log_det[i]).abs() < 1e-7, "{numeric} and {}", log_det[i]);
        }
        flow.inverse(&pairs, &mut x, &mut back, &mut Scratch::default()).unwrap();
        assert!(relative_error(x.as_slice(), start.as_slice()) < 1e-10);
        for (a, b) in log_det.iter().zip(&back) {
            assert!((a + b).abs() < 1e-10);
        }
    }
}

/// By Gaussian elimination with row exchanges.
fn log_abs_det(n: usize, mut m: Vec<f64>) -> f64 {
    let mut log_det = 0.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|a, b| m[a * n + k].abs().total_cmp(&m[b * n + k].abs())).unwrap();
        for j in 0..n {
            m.swap(k * n + j, pivot * n + j);
        }
        log_det += m[k * n + k].abs().ln();
        for i in k + 1..n {
            let factor = m[i * n + k] / m[k * n + k];
            for j in k..n {
                m[i * n + j] -= factor * m[k * n + j];
            }
        }
    }
    log_det
}

fn lively_egnn() -> NeuralDrift<f64> {
    let mut layout = Layout::new();
    let network =
        EgnnDriftConfig::paper(Particles::DW4, &SCHEDULE).unwrap().build(&mut layout, "drift").unwrap();
    NeuralDrift::new(network, Parameters::new(lively(&layout)), Arc::new(Cpu::new(1))).unwrap()
}

/// Turns (and mirrors, if `mirror`) and permutes the particles of mean-free points.
fn moved(points: &Batch, angle: f64, mirror: bool, order: [usize; 4]) -> Batch {
    let basis = Particles::DW4.basis();
    let mut out = Batch::zeros(points.rows(), 6);
    for r in 0..points.rows() {
        let p = Dw4::particles(points.row(r));
        let q = order.map(|i| {
            let [x, y] = p[i];
            let y = if mirror { -y } else { y };
            [angle.cos() * x - angle.sin() * y, angle.sin() * x + angle.cos() * y]
        });
        for j in 0..6 {
            out.row_mut(r)[j] = (0..4).map(|i| basis[j / 2][i] * q[i][j % 2]).sum();
        }
    }
    out
}

#[test]
fn the_egnn_is_equivariant() {
    let drift = lively_egnn();
    let pairs = intervals();
    let x = Batch::from_vec(6, numbers(18, 8, 2.0, 0.0));
    let at = |x: &Batch| {
        let mut b = Batch::zeros(3, 6);
        drift.drift(&pairs, &[0.1, 0.5, 0.8], x, &mut b, &mut Scratch::default()).unwrap();
        b
    };
    let plain = at(&x);
    assert!(plain.as_slice().iter().any(|b| b.abs() > 0.1), "a drift to speak of");
    for (angle, mirror, order) in
        [(0.7, false, [0, 1, 2, 3]), (0.0, false, [2, 0, 3, 1]), (2.1, true, [3, 2, 0, 1])]
    {
        let expected = moved(&plain, angle, mirror, order);
        let found = at(&moved(&x, angle, mirror, order));
        assert!(relative_error(found.as_slice(), expected.as_slice()) < 1e-10);
    }
    // The basis is the target's own.
    for (row, known) in Particles::DW4.basis().iter().zip(&sterna::targets::dw4::BASIS) {
        assert!(relative_error(row, known) < 1e-15);
    }
}

#[test]
fn the_drift_vanishes_as_the_pair_closes_up() {
    let mut layout = Layout::new();
    let network = MlpDriftConfig::small(2, &SCHEDULE).unwrap().build(&mut layout, "drift").unwrap();
    let drift =
        NeuralDrift::<f64>::new(network, Parameters::new(lively(&layout)), Arc::new(Cpu::new(1))).unwrap();
    let x = Batch::from_vec(2, vec![0.3, -0.4]);
    let size = |width: f64| {
        let mut b = Batch::zeros(1, 2);
        drift
            .drift(
                &[Interval { lower: 0.5, upper: 0.5 + width }],
                &[0.5],
                &x,
                &mut b,
                &mut Scratch::default(),
            )
            .unwrap();
        b.row(0)[0].hypot(b.row(0)[1])
    };
    assert_eq!(size(0.0), 0.0);
    let ratio = size(1e-3) / size(5e-4);
    assert!((ratio - 2.0).abs() < 0.05, "linear in the width, not {ratio}");
}

#[test]
fn the_energy_model_begins_with_the_diffusion_of_a_normal() {
    let precisions = vec![30.0, 2.0, 0.2];
    let target = Normal::new(vec![0.0; 3], precisions.clone());
    let log_precision = precisions.iter().map(|p: &f64| p.ln()).collect();
    let config = EnergyConfig { log_precision, ..EnergyConfig::small(3) };
    let mut layout = Layout::new();
    let network = config.build(&mut layout, "energy").unwrap();
    let untrained = layout.initialise::<f64>(1);
    let device = Arc::new(Cpu::new(1));
    let model = NeuralEnergyModel::new(network, Arc::new(target.clone()), untrained, device).unwrap();
    let x = Batch::from_vec(3, numbers(15, 3, 1.0, 0.0));
    let times = [0.0, 0.2, 0.9, 0.999, 1.0];
    let (mut ours, mut exact) = (Evaluation::zeros(5, 3), Evaluation::zeros(5, 3));
    model.evaluate(&times, &x, &mut ours, &mut Scratch::default()).unwrap();
    target.diffused().unwrap().evaluate(&times, &x, &mut exact, &mut Scratch::default()).unwrap();
    assert!(relative_error(ours.score.as_slice(), exact.score.as_slice()) < 1e-11);
    // What a point asks for: nothing at s = 0, the target alone at s = 1.
    assert_eq!([0.0, 0.5, 1.0].map(|s| model.cost(s)), [(0, 0), (1, 1), (1, 0)]);
}

/// However large N is far from all samples, it digs no well there, in narrow coordinates or in wide ones.
#[test]
fn the_energy_model_has_no_wells_far_out() {
    let (precisions, bound) = ([25.0f64, 1.0], 2.0);
    let target = Normal::new(vec![0.0; 2], precisions.to_vec());
    let config = EnergyConfig {
        field: Field::Additive { dim: 2 },
        log_precision: precisions.map(f64::ln).to_vec(),
        bound,
        ..EnergyConfig::small(2)
    };
    let mut layout = Layout::new();
    let network = config.build(&mut layout, "energy").unwrap();
    let mut weights = layout.initialise::<f64>(1).values().to_vec();
    // N is as large as it can be, nearly everywhere; times alone are as at the start.
    let field = layout.slots().filter(|slot| slot.name.starts_with("energy.vector"));
    field
        .flat_map(|slot| slot.offset..slot.offset + slot.len())
        .for_each(|i| weights[i] = 4.0 * (i as f64).sin());
    let device = Arc::new(Cpu::new(1));
    let model = NeuralEnergyModel::new(network, Arc::new(target), Parameters::new(weights), device).unwrap();
    let steps = 400;
    for time in [0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999] {
        for coordinate in 0..2 {
            let place = |k: usize| (k as f64 / steps as f64 - 0.5) * 80.0 * bound;
            let mut x = Batch::zeros(steps + 1, 2);
            (0..=steps).for_each(|k| x.row_mut(k)[coordinate] = place(k));
            let mut out = Evaluation::zeros(steps + 1, 2);
            model.evaluate(&vec![time; steps + 1], &x, &mut out, &mut Scratch::default()).unwrap();
            let highest =
                (0..=steps).max_by(|&a, &b| out.log_density[a].total_cmp(&out.log_density[b])).unwrap();
            assert!(place(highest).abs() <= bound, "s = {time}, coordinate {coordinate}: {}", place(highest));
        }
    }
}

/// What an additive field says of a coordinate depends on no other.
#[test]
fn an_additive_field_takes_coordinates_one_by_one() {
    let config = EnergyConfig { field: Field::Additive { dim: 3 }, ..EnergyConfig::small(3) };
    let mut layout = Layout::new();
    let network = config.build(&mut layout, "energy").unwrap();
    let graph = Graph::new();
    let (time, x) = (graph.input("time", 1), graph.input("x", 3));
    let mut program = compile(&graph, &[network.record_vector(time, x)]);
    let points = [0.4, -1.0, 0.7, 0.4, 5.0, 0.7, -1.0, 0.4, 0.7];
    program.run(&Parameters::new(lively(&layout)), 3, &[&[0.3; 3], &points]).unwrap();
    let n = program.output(0);
    assert_eq!([n[0], n[2]], [n[3], n[5]]);
    assert_eq!(n[2], n[8]);
    assert!(n[1] != n[4] && n[0] != n[7], "coordinates differ, and places do");
}

#[test]
fn the_energy_model_joins_normal_and_target() {
    fn check<T: Target + GraphTarget + Clone + 'static>(config: EnergyConfig, target: T) {
        let mut layout = Layout::new();
        let network = config.build(&mut layout, "energy").unwrap();
        let d = network.dim();
        let model = NeuralEnergyModel::<f64>::new(
            network,
            Arc::new(target.clone()),
            Parameters::new(lively(&layout)),
            Arc::new(Cpu::new(1)),
        )
        .unwrap();
        let x = Batch::from_vec(d, numbers(4 * d, 3, 1.0, 0.0));
        let at = |time: f64, x: &Batch| {
            let mut out = Evaluation::zeros(4, d);
            model.evaluate(&[time; 4], x, &mut out, &mut Scratch::default()).unwrap();
            out
        };
        let mut known = Evaluation::zeros(4, d);
        target.evaluate(&x, &mut known).unwrap();
        let end = at(1.0, &x);
        assert!(relative_error(&end.log_density, &known.log_density) < 1e-12);
        assert!(relative_error(end.score.as_slice(), known.score.as_slice()) < 1e-12);

        // Errata E13: normal at s = 0, with the mass that the model reports.
        let start = at(0.0, &x);
        let minus: Vec<f64> = x.as_slice().iter().map(|x| -x).collect();
        assert!(relative_error(start.score.as_slice(), &minus) < 1e-12);
        let square: f64 = x.row(0).iter().map(|x| x * x).sum();
        let log_z = start.log_density[0] + 0.5 * square + 0.5 * d as f64 * std::f64::consts::TAU.ln();
        assert!((log_z - model.log_z_reference()).abs() < 1e-10 * log_z.abs().max(1.0));

        // Errata E14: far out every density falls off, whatever the parameters.
        let far = |factor: f64| {
            let mut y = x.clone();
            y.as_mut_slice().iter_mut().for_each(|y| *y *= factor);
            y
        };
        for time in [0.0, 0.3, 0.9, 0.999] {
            let (near, distant) = (at(time, &far(1e4)), at(time, &far(2e4)));
            assert!(near.log_density.iter().zip(&distant.log_density).all(|(a, b)| b < a && *a < -1e3));
        }
    }
    check(EnergyConfig::small(10), Gmm::paper(10));
    let uneven =
        EnergyConfig { log_precision: vec![3.0, 0.0, 3.0, -2.0], waves: 3, ..EnergyConfig::small(4) };
    check(uneven.clone(), ManyWell::new(4));
    check(EnergyConfig { field: Field::Additive { dim: 4 }, ..uneven }, ManyWell::new(4));
    // Heavier tails than the reference: log g₁ grows like ½|x|².
    check(EnergyConfig::small(3), Normal::isotropic(3, 1e-3));
    check(EnergyConfig::small_particles(Particles::DW4), Dw4);
}
