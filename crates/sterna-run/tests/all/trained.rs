//! Trained accelerators as jobs: the same bits for any number of threads, their files, and `verify`.

use sterna_run::config::Config;
use sterna_run::verify::verify_plan;
use sterna_run::{accelerators, job};

const TINY: &str = r#"
[target]
kind = "normal"
dim = 3
[chains]
count = 4
ensembles = 3
[schedule]
rounds = 3
iterations = 200
burn_in = 50
[network]
layers = 2
width = 16
[training]
collect = 200
rounds = 2
steps = 30
batch = 32
learning_rate = 0.01
[run]
burn_in = 20
iterations = 200
"#;

fn config(kind: &str, more: &[(&str, &str)]) -> Config {
    let mut all = vec![("accelerator.kind", kind)];
    all.extend(more);
    Config::parse(TINY, &all).unwrap()
}

#[test]
fn threads_change_no_bit_of_training_or_sampling() {
    for kind in ["flow", "cmcd", "diffusion"] {
        let [one, two] = ["1", "2"].map(|threads| {
            let (run, summary) = job::sample(&config(kind, &[("threads", threads)]), &mut ()).unwrap();
            let draws: Vec<Vec<f64>> = run.records().flat_map(|r| &r.draws).map(|d| d.x.clone()).collect();
            (draws, summary.training.unwrap(), run.fitted().unwrap().record.clone())
        });
        assert!(one.0 == two.0, "{kind}: draws differ");
        assert!(one.2 == two.2, "{kind}: weights differ");
        assert_eq!(one.1.losses, two.1.losses);
        assert_eq!(one.1.steps, 60);
    }
}

#[test]
fn a_run_folder_holds_the_transport_and_its_cost() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("run");
    let more = [("accelerator.steps", "2"), ("network.coordinates", "together")];
    sterna_run::run(&config("cmcd", &more), &at, &mut ()).unwrap();
    let summary = sterna_run::Summary::read(&at).unwrap();
    assert!(summary.cost.time.clock.training_s > 0.0);
    // Two rounds of 30 steps, 32 journeys in each direction, 3 points each.
    assert_eq!(summary.cost.evaluations.training, 2 * 30 * 64 * 3);
    assert_eq!(summary.training.unwrap().rejection_rates.len(), 3);
    let stored =
        sterna_neural::weights::load::<sterna_neural::CmcdDescription>(&at.join("transport.safetensors"));
    assert_eq!(stored.unwrap().description.steps, 2);
}

#[test]
fn a_learned_path_counts_its_networks() {
    let (run, summary) = job::sample(
        &config("diffusion", &[("accelerator.steps", "2"), ("network.coordinates", "together")]),
        &mut (),
    )
    .unwrap();
    let (results, counted) = (run.results(), summary.cost.evaluations);
    // At each of 200 iterations of 3 ladders: five leapfrog steps on four chains less the reference, and of the
    // 1 or 2 pairs two journeys of two steps. The network rests on the target chain.
    let swaps = 3 * 200 * 3 / 2 * 4;
    assert_eq!(results.sampling_evaluations, 3 * 200 * 15 + swaps - asked_at_zero(200));
    assert!(results.sampling_network_evaluations < results.sampling_evaluations);
    let training = 2 * 30 * 32;
    assert_eq!(counted.network_training, training);
    assert_eq!(counted.network, training + results.network_evaluations);
    assert_eq!(counted.training, 2 * training);
    let plain = job::plain_samples(&run, 50).unwrap();
    assert_eq!((plain.rows(), plain.dim()), (50, 3));
    assert!(plain.as_slice().iter().all(|x| x.is_finite()));
}

/// Journeys down to the reference end at s = 0, where nothing is asked: one for each time pair 1 is proposed.
fn asked_at_zero(iterations: u64) -> u64 {
    3 * iterations / 2
}

/// A target and a network of each sort: RealNVP, MLP, each coordinate by itself, EGNN.
const SORTS: [(&str, &str, &str, &str); 7] = [
    ("flow", "normal", "network.preset", "small"),
    ("cmcd", "normal", "network.coordinates", "together"),
    ("cmcd", "normal", "network.coordinates", "apart"),
    ("cmcd", "dw4", "network.equivariant", "true"),
    ("diffusion", "normal", "network.coordinates", "together"),
    ("diffusion", "normal", "network.coordinates", "apart"),
    ("diffusion", "dw4", "network.equivariant", "true"),
];

/// `verify` on transports of every sort, read back from their files.
#[test]
fn trained_transports_are_sound() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, target, key, value) in SORTS {
        let text = if target == "dw4" { TINY.replace("dim = 3", "") } else { TINY.into() };
        let base =
            [("accelerator.kind", kind), ("target.kind", target), (key, value), ("accelerator.steps", "2")];
        let base = if kind == "flow" { &base[..3] } else { &base[..] };
        let config = |more: &[(&str, &str)]| Config::parse(&text, &[base, more].concat()).unwrap();
        let at = folder.path().join([kind, target, value].join("-"));
        sterna_run::run(&config(&[("training.steps", "100"), ("training.guard", "false")]), &at, &mut ())
            .unwrap();
        let file = at.join("transport.safetensors").display().to_string();
        let config = config(&[("accelerator.transport", &file), ("chains.ensembles", "16")]);
        let problem = config.problem().unwrap();
        let plan = accelerators::plan(&problem, &config).unwrap();
        let settings = config.settings(&problem).unwrap();
        let verdict = verify_plan(plan, settings, |accelerator| accelerator).unwrap();
        assert!(verdict.passed(), "{kind} on {target} ({value})\n{verdict}");
    }
}

/// Which network is used is decided on held-out samples: on a product that is no normal, the one that takes
/// coordinates apart; after an interruption in the middle of a trial the same.
#[test]
fn a_trial_chooses_the_network() {
    use sterna::acceleration::{Acceleration, FitReport};
    use sterna::run::{Run, Stage};
    let many_well = TINY.replace("dim = 3", "dim = 8");
    let more = [
        ("target.kind", "many-well"),
        ("accelerator.kind", "cmcd"),
        ("accelerator.steps", "2"),
        ("training.rounds", "1"),
        ("training.steps", "600"),
        ("training.collect", "1000"),
    ];
    let config = Config::parse(&many_well, &more).unwrap();
    let parts = || {
        let problem = config.problem().unwrap();
        let plan = accelerators::plan(&problem, &config).unwrap();
        (plan.path, config.settings(&problem).unwrap(), plan.acceleration)
    };
    let until_fitted = |mut run: Run, cut: u64| -> (Vec<u8>, FitReport) {
        while !matches!(run.progress().0, Stage::BurnIn) {
            run.advance(cut).unwrap();
            if run.progress().0 == Stage::Fitting {
                let (path, settings, acceleration): (_, _, Acceleration) = parts();
                run = Run::restore(path, settings, acceleration, &run.save().unwrap()).unwrap();
            }
        }
        let fitted = run.fitted().unwrap();
        (fitted.record.to_vec(), fitted.report.clone())
    };
    let (path, settings, acceleration) = parts();
    let whole = until_fitted(Run::accelerated(path, settings, acceleration).unwrap(), u64::MAX);
    let (path, settings, acceleration) = parts();
    let cut = until_fitted(Run::accelerated(path, settings, acceleration).unwrap(), 137);
    assert!(whole.0 == cut.0, "weights differ");
    assert_eq!(whole.1, cut.1);
    assert_eq!(whole.1.steps, 600);
    // Both trials are paid for: 2 · 100 + 600 steps of 32 journeys there and back, 3 points each; and one look at 2,048 of them.
    assert_eq!(whole.1.target_evaluations, 800 * 64 * 3 + 2048 * 2 * 3);
    let stored: sterna_neural::weights::Stored<sterna_neural::CmcdDescription> =
        sterna_neural::weights::from_bytes(whole.0, "a trial").unwrap();
    let chosen = &stored.description.drift;
    assert!(matches!(chosen, sterna_neural::weights::NetworkConfig::AdditiveDrift(_)), "{chosen:?}");
}

#[test]
fn impossible_settings_are_refused_by_name() {
    for (kind, key, value) in [
        ("flow", "training.steps", "0"),
        ("flow", "training.loss", "log-variance"),
        ("flow", "network.preset", "huge"),
        ("flow", "network.width", "0"),
        ("cmcd", "training.learning_rate", "-1.0"),
        ("cmcd", "accelerator.noise", "0.0"),
        ("cmcd", "network.equivariant", "true"),
        ("cmcd", "network.coordinates", "aside"),
        ("diffusion", "network.coordinates", "aside"),
        ("cmcd", "accelerator.steps", "0"),
        ("diffusion", "accelerator.steps", "10001"),
        ("diffusion", "accelerator.score", "exakt"),
        ("diffusion", "network.equivariant", "true"),
        ("diffusion", "network.width", "0"),
        ("diffusion", "training.ema", "1.0"),
    ] {
        let all = [("accelerator.kind", kind), (key, value)];
        let planned = Config::parse(TINY, &all).and_then(|c| accelerators::plan(&c.problem()?, &c));
        let error = planned.err().unwrap();
        assert!(error.to_string().contains(key), "{error}");
    }
}

/// A trained transport serves again, on its own schedule, without training; what does not fit is named.
#[test]
fn a_transport_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["flow", "cmcd"] {
        let at = folder.path().join(kind);
        let summary = sterna_run::run(&config(kind, &[]), &at, &mut ()).unwrap();
        let file = at.join("transport.safetensors").display().to_string();
        let again = |more: &[(&str, &str)]| {
            let mut all = vec![("accelerator.transport", &file[..]), ("seed", "2")];
            all.extend(more);
            job::sample(&config(kind, &all), &mut ())
        };
        let (run, found) = again(&[]).unwrap();
        assert!(found.training.is_none() && run.fitted().is_none());
        assert_eq!(found.setup.accelerator, summary.setup.accelerator);
        assert_eq!(found.setup.schedule, summary.setup.schedule);
        assert!(found.to_json().contains("\"training_s\": 0.0"));
        assert!(found.cost.evaluations.sampling > 0);
        let other = if kind == "flow" { "cmcd" } else { "flow" };
        for (key, value, named) in [
            ("chains.count", "5", "chains.count = 5"),
            ("target.dim", "4", "dimension 4"),
            ("accelerator.kind", other, "accelerator.kind"),
            ("reference.scale", "2.0", "reference.scale"),
            ("accelerator.transport", "nowhere.safetensors", "nowhere.safetensors"),
        ] {
            let error = again(&[(key, value)]).err().unwrap().to_string();
            assert!(error.contains(named), "{error}");
        }
        if kind == "cmcd" {
            let error = again(&[("accelerator.steps", "3")]).err().unwrap().to_string();
            assert!(error.contains("accelerator.steps = 3") && error.contains("5 steps"), "{error}");
        }
    }
    let broken = folder.path().join("broken.safetensors");
    std::fs::write(&broken, b"no tensors").unwrap();
    let at = broken.display().to_string();
    let error = job::sample(&config("flow", &[("accelerator.transport", &at)]), &mut ()).err().unwrap();
    assert!(error.to_string().contains("broken.safetensors"), "{error}");
}

/// From a normal of one's own, and again from the same; from no other, and never from one that is fitted.
#[test]
fn a_transport_belongs_to_its_reference() {
    let folder = tempfile::tempdir().unwrap();
    let scale = ("reference.scale", "[1.0, 0.5, 2.0]");
    for kind in ["flow", "cmcd", "diffusion"] {
        let at = folder.path().join(kind);
        let summary =
            sterna_run::run(&config(kind, &[scale, ("reference.mean", "0.1")]), &at, &mut ()).unwrap();
        let log_z = &summary.log_z;
        assert!((log_z.bar - log_z.truth.unwrap()).abs() < 5.0 * log_z.standard_error, "{kind}: {log_z:?}");
        let file = at.join("transport.safetensors").display().to_string();
        let again = |more: &[(&str, &str)]| {
            let mut all = vec![("accelerator.transport", &file[..]), ("seed", "2")];
            all.extend(more);
            job::sample(&config(kind, &all), &mut ()).map_err(|error| error.to_string())
        };
        if !at.join("transport.safetensors").exists() {
            // A path that was given up leaves no file.
            continue;
        }
        assert!(again(&[scale, ("reference.mean", "0.1")]).is_ok());
        let error = again(&[scale, ("reference.mean", "0.2")]).err().unwrap();
        assert!(error.contains("reference.scale") && error.contains("another reference"), "{error}");
        let error = again(&[("reference.kind", "fitted")]).err().unwrap();
        assert!(error.contains("reference.kind = \"fitted\"") && error.contains("its own run"), "{error}");
    }
}

/// One training of a diffusion serves every K and every number of chains.
#[test]
fn a_learned_path_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("diffusion");
    sterna_run::run(&config("diffusion", &[]), &at, &mut ()).unwrap();
    let file = at.join("transport.safetensors").display().to_string();
    let again = |more: &[(&str, &str)]| {
        let mut all =
            vec![("accelerator.kind", "diffusion"), ("accelerator.transport", &file[..]), ("seed", "2")];
        all.extend(more);
        Config::parse(TINY, &all).and_then(|config| job::sample(&config, &mut ()))
    };
    for (steps, chains) in [("0", "4"), ("2", "4"), ("5", "7")] {
        let (run, found) = again(&[("accelerator.steps", steps), ("chains.count", chains)]).unwrap();
        assert!(found.training.is_none() && run.fitted().is_none());
        assert_eq!(found.setup.accelerator.steps.to_string(), steps);
        assert_eq!(found.setup.chains.to_string(), chains);
        assert!(run.results().sampling_network_evaluations > 0);
        let log_z = &found.log_z;
        let off = log_z.bar - log_z.truth.unwrap();
        assert!(off.abs() < 5.0 * log_z.standard_error, "K = {steps}: off by {off}");
    }
    for (key, value, named) in [
        ("target.dim", "4", "dimension 4"),
        ("accelerator.kind", "cmcd", "accelerator.kind"),
        ("accelerator.score", "exact", "accelerator.score"),
        ("accelerator.integrator", "midpoint", "accelerator.integrator"),
        ("reference.scale", "2.0", "reference.scale"),
    ] {
        let error = again(&[(key, value)]).err().unwrap().to_string();
        assert!(error.contains(named), "{error}");
    }
}
