//! The truth is true: scores are gradients, and what is said of integrals agrees with a quadrature of its own.

use super::*;
use sterna::streams::{Phase, Streams};

fn value(specimen: &Specimen, x: &[f64]) -> f64 {
    (specimen.density.function)(x, &mut vec![0.0; x.len()])
}

#[test]
fn names_are_their_own_and_classes_are_all_there() {
    let all = specimens();
    let mut names: Vec<&str> = all.iter().map(|specimen| specimen.name).collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() == all.len() && all.len() >= 40, "{} of {}", names.len(), all.len());
    let mut classes: Vec<Class> = all.iter().map(|specimen| specimen.class).collect();
    classes.sort_unstable();
    classes.dedup();
    assert_eq!(classes.len(), 9);
}

#[test]
fn scores_are_gradients() {
    for specimen in specimens() {
        let dim = specimen.density.dim();
        let mut x = Batch::zeros(6, dim);
        Streams::new(4).normals(Phase::Check, 0, &[0, 1, 2, 3, 4, 5], &mut x);
        for row in 0..6 {
            let point: Vec<f64> = x.row(row).to_vec();
            let mut score = vec![0.0; dim];
            let middle = (specimen.density.function)(&point, &mut score);
            for j in 0..dim {
                let step = 1e-6;
                let at = |sign: f64| {
                    let mut moved = point.clone();
                    moved[j] += sign * step;
                    value(&specimen, &moved)
                };
                let slope = (at(1.0) - at(-1.0)) / (2.0 * step);
                // A jump, or a kink, within a step is no matter.
                let smooth = slope.is_finite()
                    && (at(1.0) + at(-1.0) - 2.0 * middle).abs() < 1e-5 * middle.abs().max(1.0);
                let close = (slope - score[j]).abs() < 1e-4 * (1.0 + score[j].abs() + middle.abs());
                assert!(close || !smooth || !middle.is_finite(), "{}: {slope} {}", specimen.name, score[j]);
            }
        }
    }
}

/// Those of two coordinates and of one, by a sum over a lattice fine enough for all of them.
#[test]
fn integrals_and_expectations_agree_with_a_lattice() {
    for (name, from, to, cells) in [
        ("logistic", -60.0, 60.0, 1200),
        ("ring", -7.0, 7.0, 700),
        ("light", -8.0, 20.0, 700),
        ("grid", -9.0, 9.0, 900),
        ("egg-crate", -30.0, 30.0, 1500),
        ("banana", -6.0, 30.0, 2400),
        ("circle", -6.0, 6.0, 1200),
        ("step", -8.0, 8.0, 800),
        ("staircase", -40.0, 40.0, 1600),
        ("sine-ridge", -12.0, 12.0, 1600),
        ("spiral", -40.0, 40.0, 2000),
        ("ring-and-dot", -4.5, 4.5, 900),
        ("hyperbola", -6.0, 6.0, 1500),
        ("cross", -18.0, 18.0, 3000),
        ("comb", -1.0, 10.0, 1100),
        ("vee", -8.0, 14.0, 1400),
    ] {
        let specimen = specimens().into_iter().find(|specimen| specimen.name == name).unwrap();
        let width = (to - from) / cells as f64;
        let at = |i: usize| from + (i as f64 + 0.5) * width;
        let (mut z, mut sums) = (0.0, vec![0.0; specimen.expectations.len()]);
        for i in 0..cells {
            for j in 0..cells {
                let x = [at(i), at(j)];
                let density = value(&specimen, &x).exp();
                z += density;
                for (sum, expectation) in sums.iter_mut().zip(&specimen.expectations) {
                    *sum += density * (expectation.function)(&x);
                }
            }
        }
        let log_z = (z * width * width).ln();
        assert!((log_z - specimen.log_z.unwrap()).abs() < 2e-3, "{name}: {log_z} {:?}", specimen.log_z);
        for (sum, expectation) in sums.iter().zip(&specimen.expectations) {
            let found = sum / z;
            let close = (found - expectation.value).abs() < 5e-3 * expectation.value.abs().max(1.0);
            assert!(close, "{name}: {expectation:?}, {found}");
        }
    }
}

/// Products of one coordinate, and poles, by quadrature in the logarithm of |x|.
#[test]
fn the_pole_and_the_tails_agree_with_a_quadrature_in_logarithms() {
    for (name, power) in [("pole", 1.0), ("cauchy", 2.0), ("student", 3.0)] {
        let specimen = specimens().into_iter().find(|specimen| specimen.name == name).unwrap();
        let dim = specimen.density.dim();
        // Along one axis, the others at 0, where the density of each is 1.
        let along = |l: f64| {
            let mut x = vec![0.0; dim];
            x[0] = l.exp();
            value(&specimen, &x).exp() * l.exp()
        };
        let z = 2.0 * integral(along, -400.0, 60.0, 100_000);
        assert!((power * z.ln() - specimen.log_z.unwrap()).abs() < 1e-6, "{name}");
        for expectation in &specimen.expectations {
            let side = |sign: f64| {
                integral(
                    |l| along(l) * (expectation.function)(&vec![sign * l.exp(); dim]),
                    -400.0,
                    60.0,
                    100_000,
                )
            };
            let found = (side(1.0) + side(-1.0)) / z;
            assert!((found - expectation.value).abs() < 2e-3, "{name}: {expectation:?}, {found}");
        }
    }
}
