//! Reports and traces as files: the same for any number of threads, and made from the folder alone.

use std::fs;
use sterna_run::alarms::Code;
use sterna_run::config::Config;
use sterna_run::traces::{Energy, Traces};
use sterna_run::{Summary, job, report};

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

fn traces(folder: &std::path::Path) -> Traces {
    serde_json::from_slice(&fs::read(folder.join("traces.json")).unwrap()).unwrap()
}

/// A learned path that two steps of training made is worse than none: the run goes back to the geometric one, and
/// energies are the target's.
#[test]
fn energies_are_named_after_the_path_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, more: &[(&str, &str)]| {
        let mut all = vec![
            ("target.kind", "gmm"),
            ("accelerator.kind", "diffusion"),
            ("accelerator.steps", "2"),
            ("training.collect", "200"),
            ("training.steps", "2"),
            ("training.batch", "8"),
            ("run.iterations", "200"),
        ];
        all.extend(more);
        let out = folder.path().join(name);
        let summary = job::run(&Config::parse(TINY, &all).unwrap(), &out, &mut ()).unwrap();
        (summary.has(&Code::TransportReplaced), traces(&out).energy)
    };
    assert_eq!(run("given-up", &[]), (true, Energy::Target));
    assert_eq!(run("kept", &[("training.guard", "false")]), (false, Energy::Chain));
}

/// What a report needs lies in the folder: a config that can no longer be run changes nothing, and exact draws come
/// from a file.
#[test]
fn a_report_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    job::run(&Config::parse(TINY, &[]).unwrap(), &out, &mut ()).unwrap();
    let exact = traces(&out).exact.expect("a normal can be drawn");
    assert_eq!((exact.coordinates.len(), exact.values[0].len()), (2, 10_000));
    fs::write(out.join("config.toml"), "[target]\nkind = \"of <tomorrow>\"\n").unwrap();
    let page = report::page(&out).unwrap();
    assert!(page.contains("id=\"pair-plot-exact\"") && page.contains("of &lt;tomorrow&gt;"));
    assert!(!page.contains("id=\"unread\""));
}

/// Less to read is less to show, and the page says so.
#[test]
fn what_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let summary = job::run(&Config::parse(TINY, &[]).unwrap(), &out, &mut ()).unwrap();
    // As a version before schemas left it.
    let mut old = serde_json::to_value(&summary).unwrap();
    old.as_object_mut().unwrap().remove("schema");
    fs::write(out.join("summary.json"), old.to_string()).unwrap();
    let text = fs::read_to_string(out.join("traces.json")).unwrap();
    let mut less: serde_json::Value = serde_json::from_str(&text).unwrap();
    less.as_object_mut().unwrap().retain(|key, _| !["labels", "exact"].contains(&key.as_str()));
    fs::write(out.join("traces.json"), less.to_string()).unwrap();
    let page = report::page(&out).unwrap();
    assert!(page.contains("id=\"index-process\"") && !page.contains("id=\"pair-plot-exact\""));
    assert!(page.contains("id=\"unread\"") && page.contains("exact draws"));
    // Half of a file, one whose lists do not fit, and none at all.
    less["start"]["chains"][1] = serde_json::json!([1]);
    for (name, content) in [("traces.json", &text[..text.len() / 2]), ("traces.json", &less.to_string())] {
        fs::write(out.join(name), content).unwrap();
        let page = report::page(&out).unwrap();
        assert!(page.contains("<li>traces.json: ") && !page.contains("id=\"index-process\""));
    }
    for name in ["traces.json", "draws.nc", "log.jsonl", "config.toml"] {
        fs::remove_file(out.join(name)).unwrap();
    }
    let page = report::page(&out).unwrap();
    assert_eq!(page.matches("there is no such file").count(), 4);
    assert!(page.contains("id=\"rejection-rates\"") && !page.contains("NaN"));
    // Of a newer version: refused, with the version to use.
    old["schema"] = serde_json::json!(99);
    old["sterna"] = serde_json::json!("9.9.9");
    fs::write(out.join("summary.json"), old.to_string()).unwrap();
    let error = report::page(&out).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("sterna 9.9.9") && error.to_string().contains("schema 99"), "{error}");
}

#[test]
fn a_summary_is_read_as_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let affine = [("accelerator.kind", "affine"), ("training.collect", "200")];
    let summary = job::run(&Config::parse(TINY, &affine).unwrap(), &out, &mut ()).unwrap();
    let read = Summary::read(&out).unwrap();
    assert_eq!(read.to_json(), summary.to_json());
    assert!(read.cost.payoff.is_some() && read.moves.explorer.acceptance[0].is_nan());
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
