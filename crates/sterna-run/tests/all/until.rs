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

/// A goal that is raised after the end gives the draws that it would have given from the start; it may be said in the config of a
/// program, or when the run goes on.
#[test]
fn goals_may_be_raised_when_a_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let wanting = |ess: u32| Config::parse(&format!("{BASE}ess = {ess}"), &[]).unwrap();
    let [whole, parts, program] = ["whole", "parts", "program"].map(|name| folder.path().join(name));
    let much = job::run(&wanting(800), &whole, &mut ()).unwrap();
    let little = job::run(&wanting(200), &parts, &mut ()).unwrap();
    assert!(little.setup.iterations < much.setup.iterations);
    let changes = Changes { until: Some(wanting(800).run.until), ..Changes::default() };
    let raised = job::resume(&parts, &changes, &mut ()).unwrap();
    assert!(raised.finished && raised.setup.iterations == much.setup.iterations);
    for ess in [200, 800] {
        let problem = wanting(ess).problem().unwrap();
        Job::start_or_resume(problem, wanting(ess), &program).unwrap().run(&mut ()).unwrap();
    }
    let bits = |folder: &std::path::Path| std::fs::read(folder.join("draws.nc")).unwrap();
    assert!(bits(&whole) == bits(&parts) && bits(&whole) == bits(&program));
    let kept = std::fs::read_to_string(parts.join("config.toml")).unwrap();
    assert!(kept.contains("ess = 800"), "{kept}");
}

/// Sampling tells how far its goals are, and where they are likely reached.
#[test]
fn progress_tells_of_goals() {
    struct Sees(Vec<(u64, sterna_run::progress::Goals)>);
    impl Observer for Sees {
        fn progress(&mut self, progress: &Progress) {
            if progress.stage == sterna::run::Stage::Sampling {
                self.0.push((progress.done, progress.goals));
            }
        }
    }
    let until = "ess = 3000\nlog_z_error = 0.2\nminutes = 10\nevaluations = 50000000";
    let config = Config::parse(&(BASE.to_string() + until), &[]).unwrap();
    let mut sees = Sees(Vec::new());
    let (run, _) = job::sample(&config, &mut sees).unwrap();
    let (done, last) = sees.0.last().copied().unwrap();
    let (ess, minutes) = (last.ess.unwrap(), last.minutes.unwrap());
    assert!(ess.wanted == 3000.0 && ess.reached > 0.0 && minutes.wanted == 10.0 && minutes.reached < 10.0);
    let end = run.results().iterations;
    // Half an end may be off by a look or two.
    assert!(2 * done < end || last.expected.is_some_and(|expected| expected <= 2 * end), "{last:?}");
    assert!(last.evaluations.unwrap().reached <= 5e7 && last.log_z_error.is_some());
}
