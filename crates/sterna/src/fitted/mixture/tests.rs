//! Mixtures against densities computed another way, and draws against moments.

use super::super::numbers::near;
use super::*;
use crate::streams::{Phase, Streams};

/// Three normals in three dimensions, one of each kind.
pub(crate) fn three() -> Mixture {
    let covariance = [4.0, 1.0, -0.5, 1.0, 3.0, 0.7, -0.5, 0.7, 2.0];
    let low_rank = Shape::LowRank {
        deviations: vec![0.5, 2.0, 1.0],
        directions: vec![0.6, 0.8, 0.0, 0.0, 0.0, 1.0],
        stretches: vec![0.4, 3.0],
    };
    Mixture::new(vec![
        Component {
            weight: 2.0,
            mean: vec![1.0, 2.0, 3.0],
            shape: Shape::of_covariance(&covariance, 3).unwrap(),
        },
        Component { weight: 1.0, mean: vec![-2.0, 0.0, 1.0], shape: Shape::Diagonal(vec![0.5, 2.0, 1.0]) },
        Component { weight: 1.0, mean: vec![0.0, 4.0, -3.0], shape: low_rank },
    ])
    .unwrap()
}

/// Determinant and inverse by Cramer's rule.
fn density(c: &Component, x: &[f64]) -> f64 {
    let m = c.shape.covariance();
    let minor = |i: usize, j: usize| {
        let (a, b, p, q) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
        m[3 * a + p] * m[3 * b + q] - m[3 * a + q] * m[3 * b + p]
    };
    let determinant: f64 = (0..3).map(|j| m[j] * minor(0, j)).sum();
    let d: Vec<f64> = x.iter().zip(&c.mean).map(|(x, m)| x - m).collect();
    let square: f64 = (0..9).map(|k| d[k / 3] * d[k % 3] * minor(k / 3, k % 3) / determinant).sum();
    c.weight * (-0.5 * square).exp() / (std::f64::consts::TAU.powi(3) * determinant).sqrt()
}

#[test]
fn densities_are_those_of_the_formula_and_scores_their_differences() {
    let mixture = three();
    let streams = Streams::new(1);
    let (mut score, mut other, mut work) = ([0.0; 3], [0.0; 3], Vec::new());
    let singles: Vec<Mixture> = mixture
        .components()
        .iter()
        .map(|c| Mixture::normal(c.mean.clone(), c.shape.clone()).unwrap())
        .collect();
    for i in 0..50 {
        let mut stream = streams.row(Phase::Check, 0, i);
        let x = [(); 3].map(|()| 3.0 * stream.normal());
        let wanted: f64 = mixture.components().iter().map(|c| density(c, &x)).sum();
        let found = mixture.evaluate(&x, &mut score, &mut work);
        assert!((found - wanted.ln()).abs() < 1e-12, "{found} {}", wanted.ln());
        for m in std::iter::once(&mixture).chain(&singles) {
            m.evaluate(&x, &mut score, &mut work);
            for j in 0..3 {
                let mut y = x;
                let mut at = |shift: f64| {
                    y[j] = x[j] + shift;
                    m.evaluate(&y, &mut other, &mut work)
                };
                let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!((difference - score[j]).abs() < 1e-6 * (1.0 + difference.abs()));
            }
        }
    }
}

#[test]
fn draws_have_the_moments_of_the_mixture() {
    // 2·10⁵ draws; three means and six products, each within 5 standard errors: false alarm below 10⁻⁵.
    let (mixture, n) = (three(), 200_000);
    let mut sums = [[0.0; 2]; 9];
    for i in 0..n {
        let mut stream = Streams::new(2).row(Phase::Check, 0, i);
        let uniform = stream.uniform();
        let mut x = [(); 3].map(|()| stream.normal());
        mixture.draw(uniform, &mut x);
        let products = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)].map(|(a, b)| x[a] * x[b]);
        for (sum, value) in sums.iter_mut().zip(x.iter().chain(&products)) {
            *sum = [sum[0] + value, sum[1] + value * value];
        }
    }
    let mut wanted = mixture.mean();
    for (a, b) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)] {
        let second = |c: &Component| c.weight * (c.shape.covariance()[3 * a + b] + c.mean[a] * c.mean[b]);
        wanted.push(mixture.components().iter().map(second).sum());
    }
    for (k, ([first, second], wanted)) in sums.iter().zip(&wanted).enumerate() {
        let mean = first / f64::from(n);
        let error = ((second / f64::from(n) - mean * mean) / f64::from(n)).sqrt();
        assert!((mean - wanted).abs() < 5.0 * error, "{k}: {mean} instead of {wanted}");
    }
}

#[test]
fn far_points_and_bad_points_do_no_harm() {
    let mixture = three();
    let (mut score, mut work) = ([0.0; 3], Vec::new());
    assert!(mixture.evaluate(&[1e6; 3], &mut score, &mut work) < -1e9);
    assert!(score.iter().all(|s| s.is_finite()));
    assert_eq!(mixture.evaluate(&[1e200; 3], &mut score, &mut work), f64::NEG_INFINITY);
    assert_eq!(mixture.evaluate(&[f64::NAN; 3], &mut score, &mut work), f64::NEG_INFINITY);
    assert_eq!(score, [0.0; 3]);
}

#[test]
fn masses_are_the_covariance_within_components() {
    let dense = |weight, shift: f64| Component {
        weight,
        mean: vec![shift; 2],
        shape: Shape::of_covariance(&[weight, 0.5, 0.5, 3.0], 2).unwrap(),
    };
    let pooled = Mixture::new(vec![dense(1.0, 0.0), dense(3.0, 9.0)]).unwrap().pooled_shape();
    let wanted = [2.5, 0.5, 0.5, 3.0];
    assert!(pooled.covariance().iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-14));
    let flat = |s: f64| Component { weight: 1.0, mean: vec![0.0], shape: Shape::Diagonal(vec![s]) };
    let pooled = Mixture::new(vec![flat(1.0), flat(7.0)]).unwrap().pooled_shape();
    assert_eq!(pooled.deviations(), [5.0]);
}

#[test]
fn a_mixture_comes_back_to_the_bit_and_bad_ones_not_at_all() {
    let mixture = three();
    let bytes = postcard::to_allocvec(&mixture).unwrap();
    assert_eq!(postcard::from_bytes::<Mixture>(&bytes).unwrap(), mixture);
    let text = serde_json::to_string(&mixture).unwrap();
    assert_eq!(serde_json::from_str::<Mixture>(&text).unwrap(), mixture);
    for (from, to) in [
        ("\"weight\":0.25", "\"weight\":0.75"),
        ("[1.0,2.0,3.0]", "[1.0]"),
        ("[0.4,", "[-0.4,"),
        ("\"dim\":3", "\"dim\":2"),
    ] {
        let bad = text.replacen(from, to, 1);
        assert_ne!(bad, text, "{from}");
        assert!(serde_json::from_str::<Mixture>(&bad).is_err(), "{from}");
    }
    assert!(Mixture::new(vec![]).is_err());
    assert!(Mixture::normal(vec![], Shape::Diagonal(vec![])).is_err());
    assert!(Mixture::normal(vec![f64::INFINITY], Shape::Diagonal(vec![1.0])).is_err());
}

#[test]
fn a_rim_is_around_all_components_and_uneven_widths_are_told() {
    let component = |at: f64, width: f64| Component {
        weight: 0.5,
        mean: vec![at, 0.0],
        shape: Shape::of_covariance(&[width * width, 0.0, 0.0, 1.0], 2).unwrap(),
    };
    let two = Mixture::new(vec![component(-4.0, 1.0), component(4.0, 1.0)]).unwrap();
    let whole = two.with_rim();
    let (twin, rim) = (&whole.components()[2], &whole.components()[4]);
    assert_eq!((twin.weight, &twin.mean[..]), (0.5 * TWINS, &[-4.0, 0.0][..]));
    assert!(near(&twin.shape.deviations(), &[4.0, 4.0], 1e-12));
    assert_eq!((rim.weight, &rim.mean[..]), (RIM, &[0.0, 0.0][..]));
    // Variances 1 + 4² and 1, twice as wide.
    let wanted = [2.0 * 17f64.sqrt(), 2.0];
    assert!(near(&rim.shape.deviations(), &wanted, 1e-12));
    let diagonal = |c: &Component| Component { shape: Shape::Diagonal(c.shape.deviations()), ..c.clone() };
    let apart = Mixture::new(two.components().iter().map(diagonal).collect()).unwrap().with_rim();
    assert!(near(&apart.components()[4].shape.deviations(), &wanted, 1e-12));
    let one = Mixture::normal(vec![0.0], Shape::Diagonal(vec![1.0])).unwrap();
    assert_eq!((one.with_rim(), one.doublings(), two.doublings()), (one.clone(), 0, 0));
    // Widths 1 and 2⁸, in one of two coordinates: on average 2² each, the wide one 2⁴.
    let uneven = Mixture::new(vec![component(0.0, 1.0), component(0.0, 256.0)]).unwrap();
    assert_eq!(uneven.doublings(), 3);
}
