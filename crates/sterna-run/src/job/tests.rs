//! Jobs that fail, and those that are refused.

use super::*;
use sterna::{Batch, Evaluation, Target, targets::Normal};

/// Beyond a limit.
struct Panics(f64);

impl Target for Panics {
    fn dim(&self) -> usize {
        1
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        assert!(x.as_slice().iter().all(|x| *x < self.0), "no such orbital");
        Normal::isotropic(1, 1.0).evaluate(x, out)
    }
}

#[test]
fn a_panic_is_an_error_and_the_last_checkpoint_stays() {
    let folder = tempfile::tempdir().unwrap();
    let overrides = [("chains.count", "3"), ("seed", "4"), ("run.checkpoint_seconds", "0.0")];
    let config = Config::parse("", &overrides).unwrap();
    let job = Job::new(Problem::new(Panics(2.5)), config, folder.path()).unwrap();
    let error = job.run(&mut ()).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("panicked") && message.contains("no such orbital"), "{message}");
    assert!(message.contains("Job::resume") && error.exit_code() == 1, "{message}");
    let (_, state) = Store::open(folder.path()).unwrap().read().unwrap().expect("a checkpoint");
    assert!(!state.is_empty());
}

#[test]
fn a_panic_before_the_first_checkpoint_is_an_error_and_progress_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::parse("", &[("chains.count", "3")]).unwrap();
    let job = Job::new(Problem::new(Panics(-9.0)), config.clone(), folder.path()).unwrap();
    let message = job.run(&mut ()).unwrap_err().to_string();
    assert!(message.contains("panicked") && message.contains("no such orbital"), "{message}");
    let progress = fs::read_to_string(folder.path().join("progress.json")).unwrap();
    assert!(progress.contains("failed") && progress.contains("no such orbital"), "{progress}");
}

/// A ladder for others is tuned with plain swaps, also where a run would choose what carries them.
#[test]
fn a_tuned_ladder_has_plain_swaps() {
    let small = "reference.kind = \"standard-normal\"\nchains.count = 3\nchains.ensembles = 1\nschedule.rounds = 2\nschedule.iterations = 40\nschedule.burn_in = 5";
    let config = Config::parse(small, &[]).unwrap();
    let problem = || Problem::new(Normal::isotropic(2, 1.0));
    assert_eq!(config.clone().settled(&problem()).unwrap().accelerator.kind(), "auto");
    let kind = tuned(problem(), &config, |ladder| Ok(ladder.config.accelerator.kind()));
    assert_eq!(kind.unwrap(), "none");
}

/// Each would otherwise panic, or end for want of memory, in the midst of a run.
#[test]
fn sizes_beyond_all_bounds_are_refused_by_name() {
    let huge = "9223372036854775807";
    let cases = [
        ("target.dim", "131074", "131072"),
        ("chains.ensembles", huge, "4294967295"),
        ("chains.count", huge, "4294967295"),
        ("schedule.iterations", huge, "17592186044416"),
        ("run.burn_in", huge, "17592186044416"),
        ("run.iterations", huge, "17592186044416"),
        ("explorer.leapfrog_steps", huge, "10000"),
    ];
    for kind in ["gmm", "normal", "many-well", "funnel"] {
        for (key, value, bound) in cases {
            let folder = tempfile::tempdir().unwrap();
            let overrides = [("target.kind", kind), ("chains.count", "3"), (key, value)];
            let config = Config::parse("", &overrides).unwrap();
            let message = run(&config, folder.path(), &mut ()).unwrap_err().to_string();
            let named = message.contains(key) && message.contains(value) && message.contains(bound);
            assert!(named, "{message}");
        }
    }
    let own = Problem::new(Normal::isotropic(131_073, 1.0));
    let message = Job::new(own, Config::default(), "nowhere").map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("target.dim = 131073") && message.contains("131072"), "{message}");
}
