//! Likelihoods on a box, as configs have them: chain 0 draws from the box, and log Z is the evidence.

use sterna::targets::{CorrelatedNormal, Likelihood, Rosenbrock, Shells};
use sterna_run::{Config, Job};

/// Five standard errors: a false alarm in 10⁶ runs, and the seed is fixed. Without the volume of the box it is far off.
#[test]
fn log_z_is_the_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&str, &dyn Likelihood); 3] = [
        ("shells", &Shells::new(2)),
        ("rosenbrock", &Rosenbrock::new(2)),
        ("correlated-normal", &CorrelatedNormal::new(3)),
    ];
    for (kind, likelihood) in cases {
        let (dim, [lower, upper]) = (likelihood.dim(), likelihood.bounds());
        let text = format!("[target]\nkind = \"{kind}\"\ndim = {dim}");
        let config = Config::parse(&text, &[]).unwrap();
        let run = folder.path().join(kind);
        let summary = Job::new(config.problem().unwrap(), config, &run).unwrap().run(&mut ()).unwrap();
        let (found, truth) = (&summary.log_z, likelihood.log_z());
        assert!((found.bar - truth).abs() < 5.0 * found.standard_error, "{kind}: {found:?}, {truth}");
        let unscaled = truth + dim as f64 * (upper - lower).ln();
        assert!((found.bar - unscaled).abs() > 5.0 * found.standard_error, "{kind}: {found:?}");
        // Draws are values in the box.
        assert_eq!(summary.parameters.len(), dim);
        assert!(summary.parameters.iter().all(|one| lower < one.mean && one.mean < upper));
        let kept = std::fs::read_to_string(run.join("config.toml")).unwrap();
        assert!(kept.contains("kind = \"prior\""), "{kept}");
    }
}
