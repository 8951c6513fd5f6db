//! `sterna zoo`: a line for each cell, then the two rates that it is for.

use crate::{Voice, ZooArgs, failed};
use serde_json::json;
use std::process::ExitCode;
use sterna_run::zoo::{Keeper, Outcome, Request, page, run};

/// Goals: wrong results called sound, and right ones called unsound.
const GOALS: [f64; 2] = [0.01, 0.02];

/// Runs the zoo; exit code 1 if verdicts are wrong more often than they may be.
pub fn zoo(arguments: &ZooArgs, voice: Voice) -> ExitCode {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let request = Request {
        seeds: arguments.seeds,
        only: arguments.only.clone(),
        jobs: arguments.jobs.unwrap_or(cores),
        out: arguments.out.clone(),
        again: arguments.again,
        keep: arguments.keep.clone(),
    };
    let results = match run(&request, &Lines { silent: voice.quiet || voice.json }) {
        Ok(results) => results,
        Err(error) => return failed(&error),
    };
    let rates = page::rates(&results);
    let page = request.out.join("trust.md");
    let counts = rates.each_ref().map(|rate| json!({"times": rate.times, "of": rate.of}));
    match (voice.json, voice.quiet) {
        (true, _) => {
            let [wrong_and_sound, right_and_refused] = counts;
            let out = json!({"wrong_and_sound": wrong_and_sound, "right_and_refused": right_and_refused, "page": page});
            println!("{out:#}");
        }
        (false, true) => {}
        (false, false) => {
            for (rate, what) in
                rates.iter().zip(["wrong and called sound", "right and called unsound or refused"])
            {
                println!("{what}: {} of {} ({:.1}%)", rate.times, rate.of, 100.0 * rate.share());
            }
            println!("{}", page.display());
        }
    }
    let missed = rates.iter().zip(GOALS).any(|(rate, goal)| rate.share() > goal);
    ExitCode::from(u8::from(missed))
}

struct Lines {
    silent: bool,
}

impl Keeper for Lines {
    fn ended(&self, outcome: &Outcome, done: usize, all: usize) {
        if self.silent {
            return;
        }
        let told = &outcome.told;
        let mark = match (outcome.fooled(), outcome.false_alarm()) {
            (true, _) if outcome.hidden => "hidden",
            (true, _) => "FOOLED",
            (_, true) => "FALSE ALARM",
            _ => "",
        };
        println!(
            "{done:4}/{all} {:18} seed {} {:9} off {:7.2} ({}) ess {:.0}, {} evaluations {mark} {}",
            outcome.case,
            outcome.seed,
            told.verdict,
            told.off,
            told.of,
            told.ess,
            told.evaluations,
            told.because.join(", ")
        );
    }
}
