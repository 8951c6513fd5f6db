//! `[run.until]`: a run ends when it is enough, at the same draw however it was cut, or when its time is up.

use sterna_run::{Changes, Config, Job, Observer, Progress, job};

const BASE: &str = "[target]\nkind = \"normal\"\ndim = 2\n[chains]\ncount = 4\n[schedule]\nrounds = 3\niterations = 200\n\
                    [run]\niterations = 100000\nburn_in = 50\ncheckpoint_seconds = 0.0\n[run.until]\n";

/// Stops once, in the middle of sampling.
struct StopsAt(u64, bool);

impl Observer for StopsAt {
    fn progress(&mut self, progress: &Progress) {
        self.1 = progress.stage == sterna::run::Stage::Sampling && progress.done >= self.0;
    }

    fn should_stop(&self) -> bool {
        self.1
    }
}

#[test]
fn it_ends_when_it_is_enough_and_at_the_same_draw_after_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::parse(&(BASE.to_string() + "ess = 400\nlog_z_error = 0.2"), &[]).unwrap();
    let [whole, parts] = ["whole", "parts"].map(|name| folder.path().join(name));
    let summary = job::run(&config, &whole, &mut ()).unwrap();
    assert!(summary.finished && summary.target_chain.ess.minimum > 300.0, "{:?}", summary.target_chain.ess);
    assert!(
        summary.log_z.standard_error <= 0.2 && summary.setup.iterations < 10_000,
        "{}",
        summary.setup.iterations
    );
    let job = Job::new(config.problem().unwrap(), config, &parts).unwrap();
    let stopped = job.run(&mut StopsAt(20, false)).unwrap();
    assert!(!stopped.finished || stopped.setup.iterations == summary.setup.iterations);
    let summary = job::resume(&parts, &Changes::default(), &mut ()).unwrap();
    assert!(summary.finished);
    let bits = |folder: &std::path::Path| std::fs::read(folder.join("draws.nc")).unwrap();
    assert!(bits(&whole) == bits(&parts));
}

#[test]
fn it_ends_when_evaluations_or_time_are_spent() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, until: &str| {
        let config = Config::parse(&(BASE.to_string() + until), &[]).unwrap();
        job::run(&config, &folder.path().join(name), &mut ()).unwrap()
    };
    let few = run("few", "evaluations = 40000");
    assert!(few.finished && few.setup.iterations < 10_000, "{}", few.setup.iterations);
    let short = run("short", "minutes = 1e-9\ness = 1e9");
    assert!(short.finished && short.setup.iterations < 100_000, "{}", short.setup.iterations);
}
