//! Parameters with supports, sampled: moments and integrals that are known exactly, and names in all files.

use sterna::supports::{Constrained, Parameters, Support};
use sterna_run::{Config, Job, Problem};

const SMALL: &str = "[reference]\nkind = \"standard-normal\"\n[chains]\ncount = 4\nensembles = 2\n[schedule]\nrounds = 4\n\
                     iterations = 300\n[run]\niterations = 8000";

/// Weights ~ Dirichlet(3, 2, 1.5), σ ~ Γ(3, rate 2), an angle ~ von Mises(0, 2), two ordered numbers of N(0, 1): all but the
/// Dirichlet's and von Mises' constants are there.
fn problem() -> Problem {
    let parameters = Parameters::new([
        ("weight", 3, Support::Simplex).into(),
        ("sigma", Support::Positive).into(),
        ("angle", Support::Circle).into(),
        ("mu", 2, Support::Ordered).into(),
    ]);
    let density = |x: &[f64], gradient: &mut [f64]| {
        let mut sum = 0.0;
        for (k, power) in [2.0, 1.0, 0.5].into_iter().enumerate() {
            sum += power * x[k].ln();
            gradient[k] = power / x[k];
        }
        sum += 4f64.ln() + 2.0 * x[3].ln() - 2.0 * x[3] + 2.0 * x[4].cos();
        (gradient[3], gradient[4]) = (2.0 / x[3] - 2.0, -2.0 * x[4].sin());
        for k in [5, 6] {
            sum -= 0.5 * x[k] * x[k] + 0.5 * std::f64::consts::TAU.ln();
            gradient[k] = -x[k];
        }
        sum
    };
    let made = Problem::constrained(Constrained::row_by_row(parameters.unwrap(), density)).called("several");
    made.observe("half", |x| 0.5 * x[3])
}

/// Five standard errors: a false alarm in 10⁵ runs over all checks, and the seed is fixed.
#[test]
fn moments_and_log_z_are_those_of_the_values() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let summary =
        Job::new(problem(), Config::parse(SMALL, &[]).unwrap(), &run).unwrap().run(&mut ()).unwrap();
    // Γ(3) Γ(2) Γ(1.5)/Γ(6.5), 2π I₀(2), ½ for the order.
    let root = std::f64::consts::PI.sqrt();
    let dirichlet = 2.0 * (0.5 * root) / (5.5 * 4.5 * 3.5 * 2.5 * 1.5 * 0.5 * root);
    let bessel = 2.279_585_302_336_067;
    let log_z = (dirichlet * std::f64::consts::TAU * bessel * 0.5f64).ln();
    let found = &summary.log_z;
    assert!((found.bar - log_z).abs() < 5.0 * found.standard_error, "{found:?}, not {log_z}");
    let names: Vec<&str> = summary.parameters.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["weight[0]", "weight[1]", "weight[2]", "sigma", "angle", "mu[0]", "mu[1]"]);
    let apart = 1.0 / root;
    let means = [3.0 / 6.5, 2.0 / 6.5, 1.5 / 6.5, 1.5, 0.0, -apart, apart];
    for (parameter, mean) in summary.parameters.iter().zip(means) {
        assert!((parameter.mean - mean).abs() < 5.0 * parameter.mcse, "{parameter:?}, not {mean}");
    }
    // Observables are of the values, too.
    let observed = &summary.observables[0];
    assert!((observed.mean - 0.5 * summary.parameters[3].mean).abs() < 1e-12, "{observed:?}");
    let report = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(names.iter().any(|name| report.contains(name)) && !report.contains("Coordinate 0"));
}
