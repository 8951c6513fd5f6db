//! Supports against differences, determinants, integrals that are known by other means, and their own inverses.

use super::parameters::{Constrain, PullBack};
use super::*;
use crate::lanes::{Kernel, Lanes, on_every_instruction_set};
use crate::streams::{Phase, Streams};
use crate::{Batch, Evaluation, Target};
use std::f64::consts::PI;

const BETWEEN: Support = Support::Interval { lower: -1.5, upper: 2.5 };
const ABOVE: Support = Support::Interval { lower: 2.0, upper: f64::INFINITY };
const BELOW: Support = Support::Interval { lower: f64::NEG_INFINITY, upper: -1.0 };

fn each() -> Vec<(Support, usize)> {
    use Support::*;
    vec![
        (Real, 3),
        (Positive, 2),
        (BETWEEN, 2),
        (ABOVE, 2),
        (BELOW, 1),
        (Simplex, 2),
        (Simplex, 5),
        (Ordered, 1),
        (Ordered, 4),
        (UnitVector, 2),
        (UnitVector, 5),
        (Circle, 2),
    ]
}

fn parameters(of: &[(Support, usize)]) -> Parameters {
    Parameters::new(of.iter().map(|&(support, size)| ("x", size, support).into())).unwrap()
}

fn points(rows: usize, dim: usize) -> Batch {
    let mut y = Batch::zeros(rows, dim);
    Streams::new(3).normals(Phase::Check, 0, &(0..rows as u32).collect::<Vec<_>>(), &mut y);
    y
}

/// Σ cₖ xₖ + 0.2 xₖ² with coefficients that are all different.
fn polynomial(values: &[f64], gradient: &mut [f64]) -> f64 {
    let mut sum = 0.0;
    for (k, (x, slope)) in values.iter().zip(gradient).enumerate() {
        let c = 0.7 - 0.4 * k as f64;
        sum += (c + 0.2 * x) * x;
        *slope = c + 0.4 * x;
    }
    sum
}

fn evaluate(target: &impl Target, y: &Batch) -> Evaluation {
    let mut out = Evaluation::zeros(y.rows(), y.dim());
    target.evaluate(y, &mut out).unwrap();
    out
}

/// Whether scores are central differences of log densities, as far as rounding and third derivatives allow.
fn scores_are_gradients(target: &impl Target) -> bool {
    let (rows, h) = (7, 1e-5);
    let y = points(rows, target.dim());
    let out = evaluate(target, &y);
    (0..y.dim()).all(|j| {
        let shifted = |sign: f64| {
            let mut y = y.clone();
            (0..rows).for_each(|i| y.row_mut(i)[j] += sign * h);
            evaluate(target, &y).log_density
        };
        let (up, down) = (shifted(1.0), shifted(-1.0));
        (0..rows).all(|i| {
            let difference = (up[i] - down[i]) / (2.0 * h);
            let allowed = 8.0 * f64::EPSILON * up[i].abs().max(1.0) / h + 1e-6 * difference.abs().max(1.0);
            (out.score.row(i)[j] - difference).abs() < allowed
        })
    })
}

type Function = fn(&[f64], &mut [f64]) -> f64;

/// Forgets the gradient of the volume.
struct Forgetful(Constrained<RowByRow<Function>>);

impl Target for Forgetful {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(&self, y: &Batch, out: &mut Evaluation) -> Result<()> {
        self.0.evaluate(y, out)?;
        let flat = Constrained::row_by_row(self.0.parameters().clone(), |_, gradient| {
            gradient.fill(0.0);
            0.0
        });
        let volume = evaluate(&flat, y);
        out.score.as_mut_slice().iter_mut().zip(volume.score.as_slice()).for_each(|(a, b)| *a -= b);
        Ok(())
    }
}

#[test]
fn scores_are_gradients_and_forgetting_the_volume_is_caught() {
    for one in each() {
        let target = Constrained::row_by_row(parameters(&[one]), polynomial as Function);
        assert!(scores_are_gradients(&target), "{one:?}");
        let flat = one.0 == Support::Real || (one.0 == Support::Ordered && one.1 == 1);
        assert!(flat || !scores_are_gradients(&Forgetful(target)), "{one:?}: nothing was caught");
    }
    assert!(scores_are_gradients(&Constrained::row_by_row(parameters(&each()), polynomial)));
}

/// log |det| by elimination with pivots.
fn log_determinant(mut a: Vec<Vec<f64>>) -> f64 {
    let mut log = 0.0;
    for k in 0..a.len() {
        let pivot = (k..a.len()).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        log += a[k][k].abs().ln();
        for i in k + 1..a.len() {
            let (above, below) = a.split_at_mut(i);
            let by = below[0][k] / above[k][k];
            below[0].iter_mut().zip(&above[k]).for_each(|(to, from)| *to -= by * from);
        }
    }
    log
}

#[test]
fn volumes_are_determinants_of_differences() {
    for (support, size) in each() {
        if matches!(support, Support::UnitVector | Support::Circle) {
            continue;
        }
        let parameters = parameters(&[(support, size)]);
        let n = parameters.free();
        let (mut up, mut down) = (vec![0.0; size], vec![0.0; size]);
        for y in points(5, n).iter_rows() {
            let h = 1e-5;
            let row = |j: usize| {
                let mut shifted = y.to_vec();
                shifted[j] += h;
                parameters.constrain(&shifted, &mut up);
                shifted[j] -= 2.0 * h;
                parameters.constrain(&shifted, &mut down);
                (0..n).map(|k| (up[k] - down[k]) / (2.0 * h)).collect::<Vec<f64>>()
            };
            let expected = log_determinant((0..n).map(row).collect());
            let found = parameters.constrain(y, &mut vec![0.0; size]);
            // Third derivatives are of order one: h² and rounding/h are below 10⁻¹⁰ each.
            assert!((found - expected).abs() < 1e-7, "{support}: {found} and {expected}");
        }
    }
}

/// ∫ f(x(y)) exp(log volume) dy over [−reach, reach]ⁿ by the trapezoidal rule, which is exact to rounding for smooth functions
/// that vanish at the ends.
fn integral(of: (Support, usize), reach: f64, nodes: usize, f: impl Fn(&[f64]) -> f64) -> f64 {
    let parameters = parameters(&[of]);
    let (n, step) = (parameters.free(), 2.0 * reach / nodes as f64);
    let (mut y, mut x, mut sum) = (vec![0.0; n], vec![0.0; parameters.values()], 0.0);
    for node in 0..(nodes + 1).pow(n as u32) {
        let mut rest = node;
        for y in &mut y {
            // Off the origin, where directions are none.
            *y = (rest % (nodes + 1)) as f64 * step - reach + 0.3 * step;
            rest /= nodes + 1;
        }
        let log_volume = parameters.constrain(&y, &mut x);
        if log_volume > -700.0 {
            sum += f(&x) * log_volume.exp();
        }
    }
    sum * step.powi(n as i32)
}

/// Volumes and moments that textbooks have: areas of spheres, Dirichlet and order statistics, exponentials.
#[test]
fn integrals_over_coordinates_are_integrals_over_values() {
    use Support::*;
    let normal = |x: f64| (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
    let near = |found: f64, exact: f64, tolerance: f64, what: &str| {
        assert!((found / exact - 1.0).abs() < tolerance, "{what}: {found}, not {exact}");
    };
    near(integral((Positive, 1), 40.0, 4000, |x| (-x[0]).exp()), 1.0, 1e-12, "positive");
    near(integral((Positive, 1), 40.0, 4000, |x| x[0] * (-x[0]).exp()), 1.0, 1e-12, "mean of positive");
    near(integral((BETWEEN, 1), 45.0, 2000, |_| 1.0), 4.0, 1e-12, "interval");
    near(
        integral((BETWEEN, 1), 45.0, 2000, |x| x[0] * x[0]),
        (2.5f64.powi(3) + 1.5f64.powi(3)) / 3.0,
        1e-12,
        "interval²",
    );
    near(integral((ABOVE, 1), 40.0, 4000, |x| (2.0 - x[0]).exp()), 1.0, 1e-12, "above");
    near(integral((BELOW, 1), 40.0, 4000, |x| (x[0] + 1.0).exp()), 1.0, 1e-12, "below");
    near(integral((Simplex, 2), 60.0, 2000, |_| 1.0), 1.0, 1e-12, "simplex of 2");
    near(integral((Simplex, 3), 40.0, 400, |_| 1.0), 0.5, 1e-10, "simplex of 3");
    near(integral((Simplex, 3), 40.0, 400, |x| x[0] * x[0]), 0.5 * 2.0 / 12.0, 1e-10, "simplex²");
    near(integral((Simplex, 4), 30.0, 120, |x| x[1] * x[2]), 1.0 / 120.0, 1e-6, "product on a simplex of 4");
    near(integral((Ordered, 2), 14.0, 600, |x| normal(x[0]) * normal(x[1])), 0.5, 1e-5, "ordered");
    near(integral((UnitVector, 2), 9.0, 400, |_| 1.0), 2.0 * PI, 1e-8, "circle");
    near(integral((UnitVector, 3), 9.0, 90, |_| 1.0), 4.0 * PI, 1e-8, "sphere");
    near(integral((UnitVector, 3), 9.0, 90, |x| x[2] * x[2]), 4.0 * PI / 3.0, 1e-3, "sphere²");
    near(integral((UnitVector, 4), 7.0, 28, |_| 1.0), 2.0 * PI * PI, 1e-6, "sphere of 4");
    near(integral((Circle, 1), 9.0, 400, |_| 1.0), 2.0 * PI, 1e-8, "angles");
    // cos is smooth across the seam; 2π I₁(1).
    near(
        integral((Circle, 1), 9.0, 800, |x| x[0].cos() * x[0].cos().exp()),
        3.551_003_1,
        1e-3,
        "angles against Bessel's I₁",
    );
}

#[test]
fn values_lie_in_their_supports_and_lead_back() {
    for (support, size) in each() {
        let parameters = parameters(&[(support, size)]);
        let (mut x, mut again) = (vec![0.0; size], vec![0.0; size]);
        let mut back = vec![0.0; parameters.free()];
        for y in points(20, parameters.free()).iter_rows() {
            let y: Vec<f64> = y.iter().map(|y| 2.0 * y).collect();
            parameters.constrain(&y, &mut x);
            let inside = match support {
                Support::Real => true,
                Support::Positive => x.iter().all(|x| *x > 0.0),
                Support::Interval { lower, upper } => x.iter().all(|x| lower < *x && *x < upper),
                Support::Simplex => x.iter().all(|x| *x > 0.0) && (x.iter().sum::<f64>() - 1.0).abs() < 1e-14,
                Support::Ordered => x.windows(2).all(|pair| pair[0] < pair[1]),
                Support::UnitVector => (x.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-14,
                Support::Circle => x.iter().all(|x| x.abs() <= PI),
            };
            assert!(inside, "{support}: {x:?}");
            parameters.unconstrain(&x, &mut back);
            parameters.constrain(&back, &mut again);
            let same = x.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-11 * a.abs().max(1.0));
            assert!(same, "{support}: {x:?} and {again:?}");
        }
    }
    // Far out, values stay in their supports' closures, and the origin of a direction has no density.
    let far = parameters(&[(BETWEEN, 2), (Support::Simplex, 3)]);
    let mut x = [0.0; 5];
    far.constrain(&[-1e3, 1e3, 900.0, -2000.0], &mut x);
    assert!(x[0] == -1.5 && x[1] == 2.5 && x[2..].iter().all(|x| (0.0..=1.0).contains(x)), "{x:?}");
    for support in [Support::UnitVector, Support::Circle] {
        let parameters = parameters(&[(support, 2)]);
        assert_eq!(parameters.constrain(&vec![0.0; parameters.free()], &mut [0.0; 2]), f64::NEG_INFINITY);
    }
}

#[derive(Clone)]
struct Both(Parameters, Batch);

impl Kernel for Both {
    type Output = Vec<u64>;

    fn run<L: Lanes>(self) -> Vec<u64> {
        let Self(parameters, y) = self;
        let rows = y.rows();
        let (mut x, mut score) = (Batch::zeros(rows, parameters.values()), Batch::zeros(rows, y.dim()));
        let mut log_volume = vec![0.0; rows];
        let (of_x, volumes) = (x.as_mut_slice(), &mut log_volume[..]);
        Constrain { parameters: &parameters, y: y.as_slice(), x: of_x, log_volume: volumes }.run::<L>();
        let (y, x) = (y.as_slice(), x.as_slice());
        PullBack { parameters: &parameters, y, x, gradient: x, volume: 1.0, score: score.as_mut_slice() }
            .run::<L>();
        [x, &log_volume, score.as_slice()].concat().iter().map(|value| value.to_bits()).collect()
    }
}

#[test]
fn bits_depend_on_a_row_alone() {
    let parameters = parameters(&each());
    let y = points(13, parameters.free());
    let runs = on_every_instruction_set(&Both(parameters.clone(), y.clone()));
    for (name, bits) in &runs[1..] {
        assert!(*bits == runs[0].1, "{name} differs from {}", runs[0].0);
    }
    let target = Constrained::row_by_row(parameters, polynomial);
    let together = evaluate(&target, &y);
    for i in 0..y.rows() {
        let alone = evaluate(&target, &Batch::from_vec(y.dim(), y.row(i).to_vec()));
        assert_eq!(alone.log_density[0].to_bits(), together.log_density[i].to_bits());
        assert_eq!(alone.score.row(0), together.score.row(i));
    }
}

#[test]
fn what_holds_nothing_is_refused() {
    let refused = |support: Support, size: usize| {
        Parameters::new([("x", size, support).into()]).unwrap_err().to_string()
    };
    let interval = |lower, upper| Support::Interval { lower, upper };
    for (support, size, parts) in [
        (interval(1.0, 1.0), 1, ["Parameter.support = interval(1, 1)", "below"]),
        (interval(2.0, -1.0), 1, ["interval(2, -1)", "below"]),
        (interval(f64::NAN, 1.0), 1, ["interval(NaN, 1)", "below"]),
        (Support::Simplex, 1, ["Parameter.size = 1", "at least 2"]),
        (Support::UnitVector, 1, ["Parameter.size = 1", "at least 2"]),
        (Support::Real, 0, ["Parameter.size = 0", "at least 1"]),
    ] {
        let message = refused(support, size);
        parts.iter().for_each(|part| assert!(message.contains(part), "{message}"));
    }
    for text in ["intervall(0, 1)", "interval(0 1)", "interval(a, 1)", "unit_vector", ""] {
        let message = text.parse::<Support>().unwrap_err().to_string();
        assert!(message.contains(&format!("{text:?}")) && message.contains("unit-vector"), "{message}");
    }
    for (support, _) in each() {
        assert_eq!(support.to_string().parse::<Support>().unwrap(), support);
    }
    let other = Constrained::new(parameters(&[(Support::Simplex, 3)]), crate::targets::Banana::new(2));
    let message = other.unwrap_err().to_string();
    assert!(message.contains("dimension 2, but 3 is needed"), "{message}");
    let target = Constrained::row_by_row(parameters(&[(Support::Simplex, 3)]), polynomial);
    assert!(target.evaluate(&Batch::zeros(1, 3), &mut Evaluation::zeros(1, 3)).is_err());
}
