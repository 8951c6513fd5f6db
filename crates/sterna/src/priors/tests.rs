//! Laws against integrals and moments of textbooks, differences, and their own draws.

use super::*;
use crate::paths::Prior;
use crate::streams::{Phase, Streams};

fn laws() -> Vec<Law> {
    use Law::*;
    vec![
        Normal(-1.0, 2.5),
        Uniform(-2.0, 3.0),
        LogNormal(0.3, 0.8),
        Gamma(2.5, 3.0),
        Gamma(0.6, 0.5),
        Beta(2.0, 3.5),
        Beta(0.7, 0.4),
        Exponential(4.0),
        HalfNormal(1.7),
        Cauchy(1.0, 0.5),
    ]
}

fn prior(law: &Law) -> Independent {
    Independent::new([("x", 1, law.clone())]).unwrap()
}

/// Mean of the values, as textbooks have it.
fn mean(law: &Law) -> Option<f64> {
    Some(match *law {
        Law::Normal(mean, _) => mean,
        Law::Uniform(lower, upper) => 0.5 * (lower + upper),
        Law::LogNormal(mean, sd) => (mean + 0.5 * sd * sd).exp(),
        Law::Gamma(shape, rate) => shape / rate,
        Law::Beta(a, b) => a / (a + b),
        Law::Exponential(rate) => 1.0 / rate,
        Law::HalfNormal(sd) => sd * (2.0 / PI).sqrt(),
        Law::Cauchy(..) | Law::Dirichlet(_) => return None,
    })
}

/// Trapezoids over y = sinh t, which reaches far tails with few nodes; exact to rounding for smooth functions.
fn expectation(prior: &Independent, f: impl Fn(f64) -> f64) -> f64 {
    let (step, mut sum, mut value) = (0.004, 0.0, [0.0]);
    for node in -5000..=5000 {
        let t = f64::from(node) * step;
        let density = prior.evaluate(&[t.sinh()], &mut [0.0]).exp() * t.cosh();
        prior.parameters().constrain(&[t.sinh()], &mut value);
        if density > 0.0 {
            sum += density * f(value[0]);
        }
    }
    sum * step
}

#[test]
fn laws_integrate_to_one_and_have_the_means_of_textbooks() {
    for law in laws() {
        let prior = prior(&law);
        let total = expectation(&prior, |_| 1.0);
        // Of Cauchy's law, 1/(π·e²⁰) lies beyond.
        assert!((total - 1.0).abs() < 1e-8, "{law}: {total}");
        if let Some(mean) = mean(&law) {
            let found = expectation(&prior, |x| x);
            assert!((found - mean).abs() < 1e-9 * mean.abs().max(1.0), "{law}: {found}, not {mean}");
        }
    }
    assert!((ln_gamma(0.5) - 0.5 * PI.ln()).abs() < 1e-14 && ln_gamma(1.0).abs() < 1e-14);
    assert!((ln_gamma(20.0) - (1..20).map(|n| f64::from(n).ln()).sum::<f64>()).abs() < 1e-13);
}

/// ∫ over the plane of a Dirichlet law of three values, and a second moment: a₁(a₁+1)/(A(A+1)).
#[test]
fn dirichlets_law_is_normalised() {
    let prior = Independent::new([("x", 3, Law::Dirichlet(vec![1.5, 2.0, 0.8]))]).unwrap();
    let (step, mut total, mut square, mut x) = (0.1, 0.0, 0.0, [0.0; 3]);
    for i in -500..=500 {
        for j in -500..=500 {
            let y = [f64::from(i) * step, f64::from(j) * step];
            let density = prior.evaluate(&y, &mut [0.0; 2]).exp();
            prior.parameters().constrain(&y, &mut x);
            total += density;
            square += density * x[0] * x[0];
        }
    }
    let (total, square) = (total * step * step, square * step * step);
    assert!((total - 1.0).abs() < 1e-9, "{total}");
    assert!((square - 1.5 * 2.5 / (4.3 * 5.3)).abs() < 1e-9, "{square}");
}

fn together() -> Independent {
    let mut each: Vec<(String, usize, Law)> =
        laws().into_iter().enumerate().map(|(i, law)| (format!("x{i}"), 1, law)).collect();
    each.push(("w".into(), 4, Law::Dirichlet(vec![0.5, 1.0, 2.0, 3.0])));
    each.push(("v".into(), 2, Law::Dirichlet(vec![2.0])));
    Independent::new(each).unwrap()
}

#[test]
fn scores_are_gradients() {
    let prior = together();
    let n = prior.dim();
    for row in 0..20 {
        let mut y = vec![0.0; n];
        prior.draw(&mut Streams::new(5).row(Phase::Check, 0, row), &mut y);
        let mut score = vec![0.0; n];
        let value = prior.evaluate(&y, &mut score);
        for j in 0..n {
            let h = 1e-6;
            let at = |sign: f64| {
                let mut y = y.clone();
                y[j] += sign * h;
                prior.evaluate(&y, &mut vec![0.0; n])
            };
            let difference = (at(1.0) - at(-1.0)) / (2.0 * h);
            let allowed = 4.0 * f64::EPSILON * value.abs().max(1.0) / h + 1e-5 * difference.abs().max(1.0);
            assert!((score[j] - difference).abs() < allowed, "{j}: {} and {difference}", score[j]);
        }
    }
}

/// E[∂ⱼ log p] = 0 and E[yⱼ ∂ⱼ log p] = −1 under exact draws, at 5 standard errors: false alarm below 4·10⁻⁵.
fn steins_identities_hold(draws: &Independent, of: &Independent) -> bool {
    let (n, rows) = (of.dim(), 20_000);
    let mut sums = vec![[0.0; 4]; n];
    let (mut y, mut score) = (vec![0.0; n], vec![0.0; n]);
    for row in 0..rows {
        draws.draw(&mut Streams::new(11).row(Phase::Exact, 0, row), &mut y);
        of.evaluate(&y, &mut score);
        for (sums, (y, s)) in sums.iter_mut().zip(y.iter().zip(&score)) {
            let terms = [*s, s * s, y * s + 1.0, (y * s + 1.0) * (y * s + 1.0)];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
    }
    let rows = f64::from(rows);
    let small = |sum: f64, squares: f64| sum.abs() / rows < 5.0 * (squares / rows / rows).sqrt();
    sums.iter().all(|sums| small(sums[0], sums[1]) && small(sums[2], sums[3]))
}

#[test]
fn draws_are_those_of_the_law() {
    assert!(steins_identities_hold(&together(), &together()));
    // A rate that was taken for a scale, and a shape that is one too large.
    for (wrong, right) in [
        ("gamma(2.5, 0.5)", "gamma(2.5, 2)"),
        ("beta(2, 3.5)", "beta(2, 4.5)"),
        ("dirichlet(1)", "dirichlet(2)"),
    ] {
        let of = |law: &str| Independent::new([("x", 3, law.parse().unwrap())]).unwrap();
        assert!(!steins_identities_hold(&of(wrong), &of(right)), "{wrong} for {right}: nothing was caught");
    }
}

/// Φ against Simpson's rule, its symmetry, and the tail's expansion.
#[test]
fn the_normal_distribution_is_that() {
    let density = |x: f64| (-0.5 * x * x).exp() / TAU.sqrt();
    let (step, mut integral) = (0.001, 0.5);
    for node in 0..6000 {
        let x = f64::from(node) * step;
        let found = [normal_distribution(x), 1.0 - normal_distribution(-x)];
        assert!(found.iter().all(|found| (found - integral).abs() < 1e-14), "{x}: {found:?}, not {integral}");
        integral += step / 6.0 * (density(x) + 4.0 * density(x + 0.5 * step) + density(x + step));
    }
    let x: f64 = 20.0;
    let square = 1.0 / (x * x);
    let terms = 1.0 - square * (1.0 - 3.0 * square * (1.0 - 5.0 * square * (1.0 - 7.0 * square)));
    assert!((normal_distribution(-x) / (density(x) / x * terms) - 1.0).abs() < 1e-9);
    assert!(normal_distribution(-40.0) >= 0.0 && normal_distribution(40.0) == 1.0);
}

#[test]
fn what_is_no_law_is_refused() {
    for (text, size, part) in [
        ("normal(0)", 1, "normal(mean, sd)"),
        ("gauss(0, 1)", 1, "half-normal(sd)"),
        ("normal(0, 1", 1, "normal(mean, sd)"),
        ("normal(0, -1)", 1, "normal(0, -1)"),
        ("uniform(1, 1)", 1, "below"),
        ("uniform(-inf, 1)", 1, "finite"),
        ("gamma(0, 1)", 1, "positive"),
        ("exponential(nan)", 1, "positive"),
        ("dirichlet(1, 2)", 3, "as many"),
        ("dirichlet(1, 0)", 2, "positive"),
        ("dirichlet(1)", 1, "at least 2"),
    ] {
        let law = text.parse::<Law>();
        let message = law.and_then(|law| law.check(size)).unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
    for law in laws() {
        assert_eq!(law.to_string().parse::<Law>().unwrap(), law);
    }
    assert!(Independent::new([] as [(&str, usize, Law); 0]).is_err());
}
