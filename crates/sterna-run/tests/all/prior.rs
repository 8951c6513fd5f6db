//! Likelihood and prior apart: chain 0 draws from the prior, log Z is the log evidence.

use sterna::paths::{Prior, Reference};
use sterna::streams::RowStream;
use sterna::targets::Normal;
use sterna::{Batch, Evaluation};
use sterna_run::{Config, Job, Problem};

const SMALL: &str =
    "[chains]\ncount = 5\nensembles = 2\n[schedule]\nrounds = 4\niterations = 300\n[run]\niterations = 4000";

/// An observation at 1 with sd ½ of each of two means, N(0, 3²) before.
fn problem() -> Problem {
    let likelihood = Normal::new(vec![1.0, 1.0], vec![4.0, 4.0]);
    let prior = Reference::normal(vec![0.0; 2], vec![3.0; 2]);
    Problem::from_likelihood(likelihood, prior).unwrap().called("means").named(["a", "b"])
}

/// Five standard errors: a false alarm in 10⁶ runs, and the seed is fixed.
#[test]
fn log_z_is_the_log_evidence() {
    let folder = tempfile::tempdir().unwrap();
    for more in
        ["", "\n[reference]\nkind = \"prior\"", "\n[reference]\nkind = \"standard-normal\"\nscale = 2"]
    {
        let config = Config::parse(&(SMALL.to_string() + more), &[]).unwrap();
        let run = folder.path().join(more.len().to_string());
        let summary = Job::new(problem(), config, &run).unwrap().run(&mut ()).unwrap();
        // The likelihood of each is ½ N(1; a, ¼), so its evidence ½ N(1; 0, 9 + ¼).
        let log_z = 2.0 * 0.5f64.ln() - (std::f64::consts::TAU * 9.25).ln() - 1.0 / 9.25;
        let found = &summary.log_z;
        assert!((found.bar - log_z).abs() < 5.0 * found.standard_error, "{more}: {found:?}, {log_z}");
        for parameter in &summary.parameters {
            assert!((parameter.mean - 36.0 / 37.0).abs() < 5.0 * parameter.mcse, "{parameter:?}");
        }
        let kept = std::fs::read_to_string(run.join("config.toml")).unwrap();
        assert_eq!(kept.contains("kind = \"prior\""), !more.contains("standard-normal"), "{kept}");
    }
}

/// Waiting times of mean 1 that end at 2, and a likelihood that is a nonsense beyond.
#[derive(Debug)]
struct Short;

impl Prior for Short {
    fn dim(&self) -> usize {
        1
    }

    fn evaluate(&self, x: &[f64], score: &mut [f64]) -> f64 {
        score[0] = -1.0;
        if (0.0..2.0).contains(&x[0]) { -x[0] - (-(-2f64).exp()).ln_1p() } else { f64::NEG_INFINITY }
    }

    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) {
        x[0] = -(1.0 + stream.uniform() * (-2f64).exp_m1()).ln();
    }
}

#[test]
fn beyond_the_priors_support_there_is_nothing() {
    let problem = Problem::from_likelihood(Normal::isotropic(1, 1.0), Reference::prior(Short)).unwrap();
    let mut out = Evaluation::zeros(3, 1);
    problem.target.evaluate(&Batch::from_vec(1, vec![-0.5, 0.5, 2.5]), &mut out).unwrap();
    assert!(out.log_density[0] == f64::NEG_INFINITY && out.log_density[2] == f64::NEG_INFINITY);
    assert!(out.log_density[1].is_finite() && out.score.row(1) == [-1.5]);
}

#[test]
fn what_does_not_fit_is_told() {
    let wrong = Problem::from_likelihood(Normal::isotropic(2, 1.0), Reference::standard_normal(3));
    let message = wrong.unwrap_err().to_string();
    assert!(message.contains("the prior has dimension 3, but 2 is needed"), "{message}");
    let folder = tempfile::tempdir().unwrap();
    let config = Config::parse("[reference]\nkind = \"prior\"", &[]).unwrap();
    let message =
        Job::new(config.problem().unwrap(), config, folder.path().join("run")).err().unwrap().to_string();
    for part in ["reference.kind = \"prior\"", "\"gmm\"", "Problem::from_likelihood"] {
        assert!(message.contains(part), "{message}");
    }
}
