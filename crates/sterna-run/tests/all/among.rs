//! A job on several ranks, as threads: the first one writes what a job alone would, and what fails on one fails on all.

use std::fs;
use std::path::Path;
use sterna::targets::Normal;
use sterna::{Batch, Error, Evaluation, Result, Target};
use sterna_run::{Changes, Config, Job, JobError, Observer, Problem, Progress};
use sterna_testkit::Together;

fn config(iterations: u64) -> Config {
    let text = format!(
        "seed = 3\n[chains]\ncount = 3\nensembles = 3\n[schedule]\nrounds = 2\niterations = 200\n[run]\niterations = {iterations}\nthin = 2"
    );
    Config::parse(&text, &[]).unwrap()
}

fn problem() -> Problem {
    Problem::new(Normal::isotropic(2, 4.0)).called("normal")
}

/// Asks to stop after so many looks.
struct Stops(u64);

impl Observer for Stops {
    fn progress(&mut self, _: &Progress) {
        self.0 = self.0.saturating_sub(1);
    }

    fn should_stop(&self) -> bool {
        self.0 == 0
    }
}

fn draws(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("draws.nc")).unwrap()
}

#[test]
fn ranks_write_what_one_would_and_all_have_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("alone");
    let whole = Job::new(problem(), config(3000), &alone).unwrap().run(&mut ()).unwrap();
    for ranks in [2, 3, 5] {
        let out = folder.path().join(ranks.to_string());
        let all = Together::run(ranks, |exchange| {
            Job::new(problem().among(exchange), config(3000), &out).unwrap().run(&mut ()).unwrap()
        });
        for summary in all {
            assert_eq!(summary.log_z, whole.log_z);
        }
        assert!(draws(&out) == draws(&alone), "{ranks} ranks");
    }
}

#[test]
fn a_stop_on_any_rank_stops_all_and_another_number_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (alone, out) = (folder.path().join("alone"), folder.path().join("run"));
    Job::new(problem(), config(40_000), &alone).unwrap().run(&mut ()).unwrap();
    let all = Together::run(3, |exchange| {
        let mut observer = Stops(if exchange.rank() == 0 { 12 } else { u64::MAX });
        Job::new(problem().among(exchange), config(40_000), &out).unwrap().run(&mut observer)
    });
    // Where it had sampled, there is a summary of as much.
    let stopped = |outcome: &std::result::Result<sterna_run::Summary, JobError>| match outcome {
        Ok(summary) => !summary.finished,
        Err(error) => matches!(error, JobError::Stopped { .. }),
    };
    assert!(all.iter().all(stopped), "{all:?}");
    let changes = Changes::default();
    Together::run(2, |exchange| {
        // A follower is asked at every word of the first rank.
        let mut observer = Stops(u64::from(exchange.rank() == 0));
        let _ = Job::resume(problem().among(exchange), &out, &changes).unwrap().run(&mut observer);
    });
    Job::resume(problem(), &out, &changes).unwrap().run(&mut ()).unwrap();
    assert!(draws(&out) == draws(&alone));
}

/// Fails, or panics, beyond a limit.
struct Fails {
    at: f64,
    panics: bool,
}

impl Target for Fails {
    fn dim(&self) -> usize {
        2
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        if x.as_slice().iter().any(|x| *x > self.at) {
            assert!(!self.panics, "no such orbital");
            return Err(Error::Target("the licence server is gone".into()));
        }
        Normal::isotropic(2, 1.0).evaluate(x, out)
    }
}

#[test]
fn what_fails_on_one_rank_is_told_by_all() {
    for (panics, words) in [(false, "licence"), (true, "no such orbital")] {
        let folder = tempfile::tempdir().unwrap();
        let all = Together::run(3, |exchange| {
            let at = if exchange.rank() == 1 { 3.5 } else { f64::INFINITY };
            let problem = Problem::new(Fails { at, panics }).called("fails").among(exchange);
            Job::new(problem, config(1_000_000), folder.path().join("run"))
                .unwrap()
                .run(&mut ())
                .unwrap_err()
                .to_string()
        });
        assert!(all.iter().all(|text| text.contains(words)), "{all:?}");
        assert!(all[0].contains("rank 1") && all[0].contains("Job::resume"), "{all:?}");
    }
}

#[test]
fn ranks_with_other_configs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let all = Together::run(2, |exchange| {
        let mut config = config(500);
        config.seed = exchange.rank() as u64;
        let made = Job::new(problem().among(exchange), config, folder.path().join("run"));
        made.and_then(|job| job.run(&mut ())).unwrap_err().to_string()
    });
    assert!(all.iter().all(|text| text.contains("seed is 1 now, but was 0")), "{all:?}");
}
