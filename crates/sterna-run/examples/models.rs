//! Three models with constrained parameters, as a program has them: `models eight-schools|galaxies|shares FOLDER`. The same ones stand
//! in C under examples/c, and in Stan among the tests, which hold the three against each other.

use std::f64::consts::{PI, TAU};
use sterna::supports::{Constrained, Parameter, Parameters, Support};
use sterna::targets::galaxies::VELOCITIES;
use sterna_run::{Config, Job, JobError, Problem};

/// log N(x; mean, sd), and its derivatives by x and sd; that by the mean is minus the first.
fn normal(x: f64, mean: f64, sd: f64) -> (f64, f64, f64) {
    let away = (x - mean) / sd;
    (-0.5 * away * away - sd.ln() - 0.5 * TAU.ln(), -away / sd, (away * away - 1.0) / sd)
}

fn problem<const N: usize>(
    parameters: [Parameter; N],
    density: impl Fn(&[f64], &mut [f64]) -> f64 + Send + Sync + 'static,
) -> Result<Problem, JobError> {
    Ok(Problem::constrained(Constrained::row_by_row(Parameters::new(parameters)?, density)))
}

/// Coaching in eight schools (D. B. Rubin, 1981): effects θ ~ N(μ, τ²), measured with known errors.
fn eight_schools() -> Result<Problem, JobError> {
    const EFFECTS: [f64; 8] = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0];
    const ERRORS: [f64; 8] = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0];
    let parameters =
        [("mu", Support::Real).into(), ("tau", Support::Positive).into(), ("theta", 8, Support::Real).into()];
    let made = problem(parameters, |x, gradient| {
        let (mu, tau, theta) = (x[0], x[1], &x[2..]);
        let (mut sum, pull, _) = normal(mu, 0.0, 5.0);
        let scaled = tau / 5.0;
        sum -= (5.0 * PI * (1.0 + scaled * scaled)).ln();
        (gradient[0], gradient[1]) = (pull, -2.0 * scaled / (5.0 * (1.0 + scaled * scaled)));
        for j in 0..8 {
            let (of_school, by_theta, by_tau) = normal(theta[j], mu, tau);
            let (of_effect, by_effect, _) = normal(EFFECTS[j], theta[j], ERRORS[j]);
            sum += of_school + of_effect;
            gradient[0] -= by_theta;
            gradient[1] += by_tau;
            gradient[2 + j] = by_theta - by_effect;
        }
        sum
    })?;
    Ok(made.observe("spread", |x| (x[2..].iter().map(|t| (t - x[0]).powi(2)).sum::<f64>() / 8.0).sqrt()))
}

/// Velocities of galaxies as a mixture of three normals: six modes that weigh the same.
fn galaxies() -> Result<Problem, JobError> {
    let parameters = [
        ("mu", 3, Support::Real).into(),
        ("sigma", 3, Support::Positive).into(),
        ("weight", 3, Support::Simplex).into(),
    ];
    let made = problem(parameters, |x, gradient| {
        let (mu, sigma, weight) = (&x[..3], &x[3..6], &x[6..]);
        // Dirichlet(2, 2, 2) of the weights: Γ(6) = 120.
        let mut sum = 120f64.ln();
        for k in 0..3 {
            let (of_mean, pull, _) = normal(mu[k], 20.0, 10.0);
            let (of_log, pull_of_log, _) = normal(sigma[k].ln(), 0.0, 1.0);
            sum += of_mean + of_log - sigma[k].ln() + weight[k].ln();
            (gradient[k], gradient[3 + k]) = (pull, (pull_of_log - 1.0) / sigma[k]);
            gradient[6 + k] = 1.0 / weight[k];
        }
        for velocity in VELOCITIES {
            let parts: [_; 3] = std::array::from_fn(|k| normal(velocity, mu[k], sigma[k]));
            let logs: [f64; 3] = std::array::from_fn(|k| weight[k].ln() + parts[k].0);
            let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let all = top + logs.iter().map(|log| (log - top).exp()).sum::<f64>().ln();
            sum += all;
            for k in 0..3 {
                let share = (logs[k] - all).exp();
                gradient[k] -= share * parts[k].1;
                gradient[3 + k] += share * parts[k].2;
                gradient[6 + k] += share / weight[k];
            }
        }
        sum
    })?;
    // What the order of the normals does not change.
    let made = made.observe("lowest", |x| x[0].min(x[1]).min(x[2]));
    Ok(made.observe("highest", |x| x[0].max(x[1]).max(x[2])))
}

/// Counts of three kinds, and shares that are Dirichlet(2, 2, 2) before.
fn shares() -> Result<Problem, JobError> {
    const COUNTS: [f64; 3] = [12.0, 5.0, 3.0];
    problem([("share", 3, Support::Simplex).into()], |share, gradient| {
        // Γ(6), and 20!/(12! 5! 3!) ways.
        let mut sum = 120f64.ln() + 7_054_320f64.ln();
        for k in 0..3 {
            sum += (COUNTS[k] + 1.0) * share[k].ln();
            gradient[k] = (COUNTS[k] + 1.0) / share[k];
        }
        sum
    })
}

fn main() -> Result<(), JobError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, folder] = &arguments[..] else { panic!("models eight-schools|galaxies|shares FOLDER") };
    let problem = match name.as_str() {
        "eight-schools" => eight_schools()?,
        "galaxies" => galaxies()?,
        "shares" => shares()?,
        other => panic!("{other} is none of eight-schools, galaxies and shares"),
    };
    let summary = Job::start_or_resume(problem.called(name), Config::default(), folder)?.run(&mut ())?;
    println!("log Z = {:.3} ± {:.3}", summary.log_z.bar, summary.log_z.standard_error);
    for quantity in summary.parameters.iter().chain(&summary.observables) {
        println!("{}: {:.3} ± {:.3}", quantity.name, quantity.mean, quantity.mcse);
    }
    Ok(())
}
