//! `accelerator.kind = "auto"` in jobs: what is chosen, what is said of it, and what cannot be.

use sterna_run::summary::ChoiceSummary;
use sterna_run::{Changes, Config, Summary, resume, run};

fn summary(folder: &std::path::Path, more: &[(&str, &str)]) -> Summary {
    let usual = [
        ("accelerator.kind", "auto"),
        ("chains.count", "5"),
        ("chains.ensembles", "2"),
        ("schedule.rounds", "4"),
        ("schedule.iterations", "200"),
        ("schedule.burn_in", "40"),
        ("run.burn_in", "50"),
        ("run.iterations", "5000"),
    ];
    run(&Config::parse("", &[&usual, more].concat()).unwrap(), folder, &mut ()).unwrap()
}

fn names(choice: &ChoiceSummary) -> Vec<&str> {
    choice.weighed.iter().map(|way| &way.name[..]).collect()
}

#[test]
fn what_was_weighed_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let found = summary(folder.path(), &[("target.kind", "gmm"), ("target.dim", "10")]);
    let choice = found.choice.as_ref().expect("it was to choose");
    assert_eq!(names(choice), ["plain", "affine, diagonal", "affine, full", "flow"]);
    assert_eq!((choice.pairs.len(), &choice.pairs[0][..]), (4, "affine, diagonal"));
    let counted = choice.pairs.iter().filter(|name| *name == "affine, diagonal").count();
    assert_eq!(choice.weighed[1].pairs, counted);
    // An evaluation is cheap here, and a network is not.
    assert!(choice.weighed[3].refused.as_ref().unwrap().contains("does not cover"));
    assert!(choice.evaluation_multiply_adds > 100.0 && choice.evaluation_multiply_adds < 10_000.0);
    assert_eq!((found.setup.accelerator.kind.as_str(), found.setup.accelerator.steps), ("auto", 1));
    assert!(found.log_z.deviation().unwrap().abs() < 5.0, "{:?}", found.log_z);
    let judged = choice.evaluations as f64 / found.cost.evaluations.target as f64;
    assert!(judged < 0.05, "{judged}");

    let read = Summary::read(folder.path()).unwrap();
    assert_eq!(read.choice.as_ref().unwrap().pairs, choice.pairs);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    for part in ["Choice of transport", "affine, diagonal", "times the draws", "Swaps that were weighed"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!folder.path().join("transport.safetensors").exists());
    // A longer run keeps the choice.
    let more = Changes { iterations: Some(6000), ..Changes::default() };
    assert_eq!(resume(folder.path(), &more, &mut ()).unwrap().choice.unwrap().pairs, choice.pairs);
}

#[test]
fn a_flow_is_trained_where_evaluations_are_dear() {
    let folder = tempfile::tempdir().unwrap();
    let settings = [
        ("target.kind", "banana"),
        ("network.layers", "4"),
        ("network.width", "16"),
        ("accelerator.evaluation_cost_s", "1e-4"),
    ];
    let found = summary(folder.path(), &settings);
    let choice = found.choice.as_ref().unwrap();
    let training = found.training.as_ref().expect("a flow was trained");
    assert_eq!(choice.weighed[3].training_steps, training.steps);
    // 250 and twice as many, and so on.
    assert!(
        (training.steps / 250 + 1).is_power_of_two() && training.steps.is_multiple_of(250),
        "{training:?}"
    );
    assert_eq!(found.cost.evaluations.training, 0);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("The transport was trained for"));
    let cheap = tempfile::tempdir().unwrap();
    let found = summary(cheap.path(), &[("target.kind", "banana")]);
    assert!(found.training.is_none());
}

#[test]
fn costs_that_cannot_be_are_refused() {
    for cost in ["-1.0", "nan", "1e9"] {
        let config =
            Config::parse("", &[("accelerator.kind", "auto"), ("accelerator.evaluation_cost_s", cost)]);
        let folder = tempfile::tempdir().unwrap();
        let error = run(&config.unwrap(), &folder.path().join("run"), &mut ()).unwrap_err().to_string();
        assert!(error.contains("accelerator.evaluation_cost_s") && error.contains("1e-9"), "{error}");
    }
}
