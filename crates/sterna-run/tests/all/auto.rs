//! `accelerator.kind = "auto"` in jobs: what is chosen, what is said of it, and what cannot be.

use sterna::run::Stage;
use sterna::targets::Banana;
use sterna_run::summary::ChoiceSummary;
use sterna_run::{Changes, Config, Job, Observer, Problem, Progress, Summary, resume, run};

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
    assert_eq!(
        names(choice),
        [
            "plain",
            "affine, diagonal",
            "affine, full",
            "monotone",
            "flow",
            "flow, of samples",
            "cmcd, K = 1",
            "cmcd, K = 2",
            "cmcd, K = 5"
        ]
    );
    // Chains follow what carries them: there may be more than five now, or fewer.
    assert_eq!((choice.pairs.len(), &choice.pairs[0][..]), (found.setup.pairs, "affine, diagonal"));
    assert!([0, 5].contains(&choice.moved_from.len()), "{choice:?}");
    let counted = choice.pairs.iter().filter(|name| *name == "affine, diagonal").count();
    assert_eq!(choice.weighed[1].pairs, counted);
    // The run's first block has shown the same pairs.
    let block = choice.first_block.as_ref().unwrap();
    assert_eq!((block.rejection_rates.len(), block.iterations > 100), (found.setup.pairs, true), "{block:?}");
    // An evaluation is cheap here, and a network is not.
    assert!(choice.weighed[4].refused.as_ref().unwrap().contains("does not cover"));
    assert!(choice.evaluation_multiply_adds > 100.0 && choice.evaluation_multiply_adds < 10_000.0);
    assert_eq!((found.setup.accelerator.kind.as_str(), found.setup.accelerator.steps), ("auto", 1));
    assert!(found.log_z.deviation().unwrap().abs() < 5.0, "{:?}", found.log_z);
    let judged = choice.evaluations as f64 / found.cost.evaluations.target as f64;
    assert!(judged < 0.05, "{judged}");

    let read = Summary::read(folder.path()).unwrap();
    assert_eq!(read.choice.as_ref().unwrap().pairs, choice.pairs);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    for part in [
        "swaps accelerated by transports that were chosen",
        "Choice of transport",
        "affine, diagonal",
        "times the draws",
        "Swaps that were weighed",
        "which do not count",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!folder.path().join("transport.safetensors").exists());
    // A longer run keeps the choice.
    let more = Changes { iterations: Some(6000), ..Changes::default() };
    assert_eq!(resume(folder.path(), &more, &mut ()).unwrap().choice.unwrap().pairs, choice.pairs);
}

#[test]
fn a_flow_learns_of_samples_where_evaluations_are_dear() {
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
    // Journeys to learn from would ask for more than this run does.
    assert_eq!([4, 5].map(|way: usize| choice.weighed[way].training_steps), [0, training.steps]);
    // 250 and twice as many, and so on.
    assert!(
        (training.steps / 250 + 1).is_power_of_two() && training.steps.is_multiple_of(250),
        "{training:?}"
    );
    assert_eq!(found.cost.evaluations.training, 0);
    assert_eq!(found.cost.evaluations.network_sampling() > 0, choice.weighed[5].pairs > 0, "{choice:?}");
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("The transport was trained for"));
    let cheap = tempfile::tempdir().unwrap();
    let found = summary(cheap.path(), &[("target.kind", "banana")]);
    assert!(found.training.is_none());
}

/// `steps = "auto"`: K is chosen, kept by a longer run, and refused where nothing could choose it.
#[test]
fn steps_of_a_path_are_chosen() {
    for kind in ["cmcd", "diffusion"] {
        let folder = tempfile::tempdir().unwrap();
        let settings = [
            ("target.kind", "gmm"),
            ("target.dim", "2"),
            ("accelerator.kind", kind),
            ("accelerator.steps", "auto"),
            ("network.layers", "1"),
            ("network.width", "8"),
            ("network.coordinates", "together"),
            ("training.steps", "60"),
            ("training.batch", "16"),
            ("training.collect", "300"),
            ("run.iterations", "500"),
        ];
        let found = summary(folder.path(), &settings);
        let steps = found.setup.accelerator.steps;
        assert!([0, 1, 2, 5].contains(&steps), "{kind}: {steps}");
        let resolved = std::fs::read_to_string(folder.path().join("config.toml")).unwrap();
        assert!(resolved.contains("steps = \"auto\""), "{resolved}");
        let more = Changes { iterations: Some(600), ..Changes::default() };
        assert_eq!(resume(folder.path(), &more, &mut ()).unwrap().setup.accelerator.steps, steps);
    }
    let folder = tempfile::tempdir().unwrap();
    let exact =
        [("accelerator.kind", "diffusion"), ("accelerator.score", "exact"), ("accelerator.steps", "auto")];
    let error = run(&Config::parse("", &exact).unwrap(), &folder.path().join("run"), &mut ()).unwrap_err();
    assert!(error.to_string().contains("accelerator.steps = \"auto\""), "{error}");
}

/// Where nothing pays, the default of users' targets has the bits of plain swaps.
#[test]
fn the_default_of_own_targets_costs_nothing_where_nothing_is_gained() {
    let of = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::parse(text, &[("run.until.ess", "200")]).unwrap();
        let problem = Problem::new(Banana::new(2));
        let found = Job::new(problem, config, folder.path()).unwrap().run(&mut ()).unwrap();
        let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
        assert!(page.contains("plain swaps · "), "{text}");
        (found, std::fs::read(folder.path().join("draws.nc")).unwrap())
    };
    let ((chosen, draws), (plain, plain_draws)) = (of(""), of("[accelerator]\nkind = \"none\""));
    assert_eq!(chosen.setup.accelerator.kind, "auto");
    assert!(chosen.choice.as_ref().unwrap().pairs.iter().all(|way| way == "plain"), "{:?}", chosen.choice);
    assert_eq!(chosen.log_z.bar, plain.log_z.bar);
    assert_eq!(chosen.cost.evaluations.target, plain.cost.evaluations.target);
    assert_eq!(draws.len(), plain_draws.len());
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

/// Stops where samples are collected.
struct StopsAtSamples(bool);

impl Observer for StopsAtSamples {
    fn progress(&mut self, progress: &Progress) {
        self.0 = progress.stage == Stage::Collecting;
    }

    fn should_stop(&self) -> bool {
        self.0
    }
}

/// What a pilot counts is known to those who go on: they plan what was planned before.
#[test]
fn a_stop_changes_no_bit_where_a_pilot_counts_chains() {
    const USUAL: &str = "seed = 2\n[target]\nkind = \"gmm\"\ndim = 10\n[chains]\ncount = \"auto\"\nensembles = 2\n\
                         [schedule]\nrounds = 4\niterations = 200\nburn_in = 40\n[run]\nburn_in = 50\niterations = ";
    let chosen = "5000\n[accelerator]\nkind = \"auto\"";
    let tried = "200\n[accelerator]\nkind = \"cmcd\"\nsteps = \"auto\"\n[network]\nlayers = 1\nwidth = 8\n\
                 coordinates = \"together\"\n[training]\nsteps = 24\nbatch = 4\ncollect = 100";
    for (kind, text) in [("auto", chosen), ("cmcd", tried)] {
        let config = Config::parse(&format!("{USUAL}{text}"), &[]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let job = |name: &str| {
            let folder = folder.path().join(name);
            Job::start_or_resume(config.problem().unwrap(), config.clone(), folder).unwrap()
        };
        let whole = job("whole").run(&mut ()).unwrap();
        assert!(job("parts").run(&mut StopsAtSamples(false)).is_err(), "{kind} was not stopped");
        let parts = job("parts").run(&mut ()).unwrap();
        let answers = |found: &Summary| (found.setup.pairs, found.log_z.bar, found.cost.evaluations);
        assert_eq!(answers(&whole), answers(&parts), "{kind}");
        let bits = |name: &str| std::fs::read(folder.path().join(name).join("draws.nc")).unwrap();
        assert!(bits("whole") == bits("parts"), "{kind}");
        if let Some(choice) = whole.choice {
            // That tells something: there are fewer chains now, half as many pairs at the least.
            let before = choice.moved_from.len() - 1;
            let now = before.div_ceil(2)..before;
            assert!(now.contains(&choice.pairs.len()), "{} of {before} pairs", choice.pairs.len());
        }
    }
}
