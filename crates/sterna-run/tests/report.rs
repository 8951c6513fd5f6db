//! Reports and traces as files: the same for any number of threads, and made from the folder alone.

use std::fs;
use sterna_run::config::Config;
use sterna_run::traces::Traces;
use sterna_run::{job, report};

const TINY: &str = r#"
[target]
kind = "normal"
dim = 2
[chains]
count = 4
ensembles = 3
[schedule]
rounds = 3
iterations = 200
burn_in = 50
[run]
burn_in = 20
iterations = 1500
"#;

#[test]
fn threads_change_no_bit_of_the_traces() {
    let folder = tempfile::tempdir().unwrap();
    let [one, three] = ["1", "3"].map(|threads| {
        let out = folder.path().join(threads);
        job::run(&Config::parse(TINY, &[("threads", threads)]).unwrap(), &out, &mut ()).unwrap();
        fs::read(out.join("traces.json")).unwrap()
    });
    assert!(one == three);
    let traces: Traces = serde_json::from_slice(&one).unwrap();
    assert_eq!((traces.rounds.len(), traces.energies.len(), traces.works.len()), (3, 4, 3));
    // Pairs 1 and 3 are proposed in odd iterations, of which 1500 after 620 hold 750; three ladders.
    for works in &traces.works {
        for side in [&works.forward, &works.backward] {
            assert_eq!(side.counts.iter().sum::<u64>() + side.outside + side.not_finite, 3 * 750);
        }
    }
    assert!(traces.round_trips.last().unwrap().1 > 0);
    assert_eq!(traces.start.chains.len(), 4);
    assert_eq!(traces.start.chains[0].len(), 1500);
}

#[test]
fn a_report_needs_a_folder_with_a_summary() {
    let folder = tempfile::tempdir().unwrap();
    let error = report::write(folder.path()).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("no summary.json"), "{error}");
}

#[test]
fn charts_can_be_taken_out_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    job::run(&Config::parse(TINY, &[]).unwrap(), &out, &mut ()).unwrap();
    for id in ["index-process", "works", "log-z", "marginal-1"] {
        let svg = report::drawing(&out, id).unwrap();
        assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</svg>"), "{id}");
        assert_eq!(svg.matches("<svg").count(), 1, "{id}");
    }
    let error = report::drawing(&out, "energy").unwrap_err().to_string();
    assert!(error.contains("Did you mean \"energies\"?"), "{error}");
}
