//! Errors mean what they say: over many runs, estimate minus truth over standard error has unit
//! variance.
//!
//! 160 runs a target, fixed seeds. The standard deviation of 160 standard normals leaves 0.8–1.25
//! with probability 2·10⁻⁴, their mean leaves ±0.35 with 10⁻⁵.

use std::sync::Arc;
use sterna::Target;
use sterna::acceleration::{Acceleration, FitCmcd};
use sterna::accelerators::{Diffusion, DiffusionSteps, Integrator, NoDrift};
use sterna::explorers::Hmc;
use sterna::path::AnnealingPath;
use sterna::paths::{Diffused, Geometric, Reference};
use sterna::run::{Results, Run, Settings};
use sterna::targets::{Gmm, Normal};
use sterna_testkit::seed;

const RUNS: u64 = 160;

fn geometric(target: &Arc<dyn Target>) -> Arc<dyn AnnealingPath> {
    let reference = Reference::standard_normal(target.dim());
    Arc::new(Geometric::new(reference, target.clone()).unwrap())
}

fn results(path: &Arc<dyn AnnealingPath>, acceleration: &Acceleration, ensembles: usize) -> Vec<Results> {
    let run = |number: u64| {
        let settings = Settings {
            explorer: std::sync::Arc::new(Hmc { leapfrog_steps: 2, ..Hmc::default() }),
            seed: seed(number),
            chains: 5,
            ensembles,
            rounds: 3,
            round_iterations: 150,
            round_burn_in: 50,
            collect: 300,
            burn_in: 100,
            iterations: 1200 / ensembles as u64,
            ..Settings::default()
        };
        let mut run = Run::accelerated(path.clone(), settings, acceleration.clone()).unwrap();
        run.complete().unwrap();
        run.results()
    };
    (1..=RUNS).map(run).collect()
}

#[track_caller]
fn assert_calibrated(name: &str, z: &[f64]) {
    let n = z.len() as f64;
    let mean = z.iter().sum::<f64>() / n;
    let deviation = (z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    assert!(
        deviation > 0.8 && deviation < 1.25 && mean.abs() < 0.35,
        "{name}: z-scores have mean {mean:.3} and standard deviation {deviation:.3}"
    );
}

fn check(name: &str, target: Arc<dyn Target>, ensembles: usize, mean: f64) {
    check_path(name, geometric(&target), Acceleration::None, ensembles, mean);
}

fn check_path(
    name: &str,
    path: Arc<dyn AnnealingPath>,
    acceleration: Acceleration,
    ensembles: usize,
    mean: f64,
) {
    let all = results(&path, &acceleration, ensembles);
    let exact = path.log_z().unwrap();
    let log_z: Vec<f64> = all.iter().map(|r| (r.log_z.bar - exact) / r.log_z.standard_error).collect();
    assert_calibrated(&format!("log Z of {name}"), &log_z);
    let means: Vec<f64> = all.iter().map(|r| (r.means[0].0 - mean) / r.means[0].1).collect();
    assert_calibrated(&format!("mean of {name}"), &means);
}

#[test]
fn normal() {
    check("a normal", Arc::new(Normal::new(vec![1.0, 0.0, -0.5], vec![9.0, 2.0, 0.4])), 1, 1.0);
}

#[test]
fn normal_in_several_ensembles() {
    check("a normal in 4 ensembles", Arc::new(Normal::isotropic(4, 10.0)), 4, 0.0);
}

/// Three modes, and the mean of their first coordinate.
fn three_modes() -> (Arc<dyn Target>, f64) {
    let means = vec![[1.0, 0.5], [-0.8, 0.7], [0.2, -1.1]];
    let mean = means.iter().map(|m| m[0]).sum::<f64>() / 3.0;
    (Arc::new(Gmm::new(3, means, 0.2)), mean)
}

#[test]
fn mixture() {
    let (target, mean) = three_modes();
    check("a mixture", target, 1, mean);
}

#[test]
fn mixture_by_annealed_langevin_steps() {
    let (target, mean) = three_modes();
    let fit = FitCmcd { drift: Arc::new(NoDrift), steps: 2, noise: 0.2 };
    check_path("a mixture by CMCD", geometric(&target), Acceleration::Fitted(Arc::new(fit)), 1, mean);
}

#[test]
fn mixture_by_diffusion() {
    let (target, mean) = three_modes();
    let diffusion = Diffusion { steps: DiffusionSteps::new(2, Integrator::Exponential).unwrap() };
    let path = Arc::new(Diffused::exact(target).unwrap());
    check_path("a mixture by diffusion", path, Acceleration::Given(Arc::new(diffusion)), 1, mean);
}
