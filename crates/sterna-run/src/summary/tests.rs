//! Summaries as files: what is written comes back, and what cannot be read says why.

use super::*;
use serde_json::{Value, json};

/// A run without a fault.
pub(crate) fn sound() -> Summary {
    let pair = PairRatio {
        forward: 0.25,
        backward: 0.25,
        bar: 0.25,
        overlap: 0.5,
        crossing: 0.25,
        crossing_slope: 1.0,
    };
    let stages = Stages { tuning_s: 1.0, collecting_s: 0.0, training_s: 0.0, sampling_s: 10.0 };
    Summary {
        schema: SCHEMA,
        sterna: "0.0.0".into(),
        verdict: Verdict::Unsound,
        finished: true,
        setup: Setup {
            seed: u64::MAX,
            target: TargetName { kind: "normal".into(), dim: 1 },
            chains: 5,
            pairs: 4,
            ensembles: 1,
            iterations: 1000,
            accelerator: AcceleratorName { kind: "none".into(), steps: 0 },
            schedule: vec![0.0, 0.25, 0.5, 0.75, 1.0],
        },
        stopped_by: None,
        goals: None,
        reference: None,
        swaps: Swaps {
            rejection_rates: vec![0.4; 4],
            global_barrier: 1.6,
            local_barrier: LocalBarrier { beta: vec![0.0, 1.0], lambda: vec![1.6, 1.6] },
            round_trips: 900,
            round_trip_rate: 0.9,
            round_trip_rate_predicted: 1.125,
            exploration_efficiency: 0.8,
            compute_normalised_round_trips: Normalised {
                paper: 450.0,
                all_evaluations: 180.0,
                per_second: 90.0,
            },
            legs: Vec::new(),
        },
        log_z: LogZ {
            forward: 1.0,
            backward: 1.0,
            geometric_mean: 1.0,
            bar: 1.0,
            standard_error: 0.1,
            truth: Some(1.05),
            of: None,
            pairs: vec![pair; 4],
        },
        target_chain: TargetChain {
            expectations: Expectations { mean: vec![0.0], standard_error: vec![0.01] },
            ess: Ess { minimum: 500.0, coordinates: vec![500.0] },
        },
        mixing: None,
        parameters: Vec::new(),
        observables: Vec::new(),
        moves: Moves {
            explorer: ExplorerSummary {
                acceptance: vec![0.5, 0.9, 0.9, 0.9, 0.9],
                step_size: vec![0.1; 5],
                size: "step size".into(),
                moves: Vec::new(),
            },
            bad_densities: BadDensities::default(),
        },
        cost: Cost {
            evaluations: Evaluations { target: 100, sampling: 80, ..Evaluations::default() },
            time: Time { clock: stages, processor: stages, iterations_per_second: 100.0 },
            payoff: None,
            break_even: None,
        },
        training: None,
        choice: None,
        merged: Vec::new(),
        molecule: None,
        alarms: vec![Alarm { code: Code::MissedMode, message: "seen".into() }],
    }
}

#[test]
fn what_is_written_comes_back() {
    let summary = sound();
    assert_eq!(Summary::parse(&summary.to_json()).unwrap(), summary);
    let value: Value = serde_json::from_str(&summary.to_json()).unwrap();
    // Integers stay integers, groups leave no trace, what does not apply is null.
    assert_eq!((&value["schema"], &value["seed"]), (&json!(SCHEMA), &json!(u64::MAX)));
    assert_eq!((&value["chains"], &value["time"]["sampling_s"]), (&json!(5), &json!(10.0)));
    assert_eq!((&value["training"], &value["break_even"]), (&Value::Null, &Value::Null));
    assert_eq!(value["alarms"], json!([{"code": "missed-mode", "class": "do-not-use", "message": "seen"}]));
}

#[test]
fn numbers_that_are_none_are_null() {
    let mut summary = sound();
    summary.log_z.bar = f64::NAN;
    summary.swaps.rejection_rates[1] = f64::INFINITY;
    summary.moves.explorer.acceptance[0] = f64::NAN;
    let value: Value = serde_json::from_str(&summary.to_json()).unwrap();
    assert!(value["log_z"]["bar"].is_null() && value["rejection_rates"][1].is_null());
    let back = Summary::parse(&summary.to_json()).unwrap();
    assert!(back.log_z.bar.is_nan() && back.moves.explorer.acceptance[0].is_nan());
    assert_eq!(back.swaps.worst_pair(), Some((3, 0.4)));
    assert_eq!(back.log_z.deviation(), None);
}

fn changed(change: impl Fn(&mut Value)) -> Result<Summary, String> {
    let mut value = serde_json::to_value(sound()).unwrap();
    change(&mut value);
    Summary::parse(&value.to_string())
}

#[test]
fn parts_that_do_not_apply_may_be_missing() {
    let without = changed(|v| {
        let optional = ["schema", "verdict", "mixing", "training", "molecule", "payoff", "break_even"];
        v.as_object_mut().unwrap().retain(|key, _| !optional.contains(&key.as_str()));
    });
    assert_eq!(without.unwrap(), Summary { schema: 0, ..sound() });
    // A newer version's alarm is read by its name; a field that nobody knows is passed over.
    let newer = changed(|v| {
        v["alarms"][0]["code"] = json!("of-tomorrow");
        v["of-tomorrow"] = json!("seen");
    });
    let newer = newer.unwrap();
    assert_eq!(newer.alarms[0].code, Code::Other("of-tomorrow".into()));
    // A verdict follows from the alarms, whatever a file claims.
    assert_eq!(newer.verdict, Verdict::Doubtful);
}

#[test]
fn what_cannot_be_read_says_who_wrote_it_and_what_helps() {
    let newer = changed(|v| v["schema"] = json!(SCHEMA + 1)).unwrap_err();
    assert!(newer.contains("sterna 0.0.0") && newer.contains("use that version"), "{newer}");
    let lacking = changed(|v| drop(v.as_object_mut().unwrap().remove("log_z"))).unwrap_err();
    for part in ["log_z", "sterna 0.0.0", "run its config.toml again"] {
        assert!(lacking.contains(part), "{lacking}");
    }
    let text = sound().to_json();
    let half = Summary::parse(&text[..text.len() / 2]).unwrap_err();
    assert!(half.contains("no summary of a run"), "{half}");
    assert!(Summary::parse("[]").is_err() && Summary::parse("").is_err());
}
