//! Targets that live in a program: run folders as any other, gone on with after a kill to the same bits, their names in
//! the files, and clear words where the program is missing.

#[allow(dead_code)]
#[path = "../../examples/own_density.rs"]
mod density;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use sterna_run::{
    Changes, Config, Job, Observer, Parameter, Problem, Progress, Summary, job, report, verify,
};

const SMALL: &str = "[chains]\ncount = 4\nensembles = 2\n[schedule]\nrounds = 3\niterations = 200\nburn_in = 50\n\
                     [run]\nburn_in = 20\niterations = 1500\ncheckpoint_seconds = 0.0";

fn config(more: &[(&str, &str)]) -> Config {
    Config::parse(SMALL, more).unwrap()
}

fn two_humps() -> Problem {
    Problem::new(density::TwoHumps).called("two-humps")
}

/// The program of the book under another name, for a process of its own.
const LONG: [(&str, &str); 1] = [("run.iterations", "60000")];

fn sample(folder: &Path) -> Summary {
    Job::start_or_resume(two_humps(), config(&LONG), folder).unwrap().run(&mut ()).unwrap()
}

/// Not a test by itself: what the process that is killed does.
#[test]
#[expect(clippy::disallowed_methods, reason = "told by the test that starts it")]
fn child() {
    if let Some(folder) = std::env::var_os("STERNA_TEST_FOLDER") {
        sample(Path::new(&folder));
    }
}

fn bits(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("draws.nc")).unwrap()
}

#[test]
fn killed_and_started_again_it_gives_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    assert!(sample(&whole).finished);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "own_target::child"]).env("STERNA_TEST_FOLDER", &killed);
    let mut process = command.spawn().unwrap();
    // Once sampling is on its way; on a fast machine it may be over by then, which does no harm.
    let begin = Instant::now();
    while !killed.join("draws.nc").exists() && begin.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(2));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(killed.join("checkpoint/state").exists(), "the process did nothing");
    assert!(sample(&killed).finished);
    assert!(bits(&whole) == bits(&killed));
    for file in ["config.toml", "summary.json", "report.html", "log.jsonl", "checkpoint/state"] {
        assert!(killed.join(file).exists(), "{file}");
    }
    let config = fs::read_to_string(killed.join("config.toml")).unwrap();
    assert!(config.contains("kind = \"own\"\nname = \"two-humps\"\ndim = 1"), "{config}");
    // A third start finds nothing left to do.
    assert!(sample(&killed).finished && bits(&whole) == bits(&killed));
}

/// Stops in the middle of sampling.
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
fn stopped_it_goes_on_where_its_program_is_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, stopped) = (folder.path().join("whole"), folder.path().join("stopped"));
    Job::new(two_humps(), config(&[]), &whole).unwrap().run(&mut ()).unwrap();
    let job = Job::new(two_humps(), config(&[]), &stopped).unwrap();
    let summary = job.run(&mut StopsAt(100, false)).unwrap();
    assert!(!summary.finished);

    // The program `sterna` does not have the target, and says so; a report needs files alone.
    let message = job::resume(&stopped, &Changes::default(), &mut ()).unwrap_err().to_string();
    for part in ["two-humps", "lives in the program", "Job::resume"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(report::write(&stopped).is_ok());

    // Another target, and another config, are noticed.
    let other = Problem::new(sterna::targets::Banana::new(2)).called("two-humps");
    let error = Job::resume(other, &stopped, &Changes::default()).err().unwrap().to_string();
    assert!(error.contains("another target") && error.contains("dimension 1"), "{error}");
    let changed = config(&[("chains.count", "5")]);
    let error = Job::start_or_resume(two_humps(), changed, &stopped).err().unwrap().to_string();
    assert!(error.contains("chains.count is 5 now, but was 4"), "{error}");
    let error = Job::new(two_humps(), config(&[]), &stopped).err().unwrap().to_string();
    assert!(error.contains("holds a run already"), "{error}");

    let job = Job::resume(two_humps(), &stopped, &Changes::default()).unwrap();
    assert!(job.run(&mut ()).unwrap().finished);
    assert!(bits(&whole) == bits(&stopped));
}

#[test]
fn names_and_observables_reach_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let plain = || Problem::new(sterna::targets::Banana::new(3));
    let named = plain()
        .named([Parameter::vector("theta", 2), Parameter::scalar("mu")])
        .observe("radius", |x| x[0].hypot(x[1]));
    let [a, b] = [(plain(), "plain"), (named, "named")].map(|(problem, name)| {
        let out = folder.path().join(name);
        (Job::new(problem, config(&[]), &out).unwrap().run(&mut ()).unwrap(), out)
    });
    let read = |out: &Path, name: &str| -> Vec<f64> {
        let file = rust_hdf5::H5File::open(out.join("draws.nc")).unwrap();
        file.dataset(&format!("posterior/{name}")).unwrap().read_raw().unwrap()
    };
    let (x, theta, mu, radius) =
        (read(&a.1, "x"), read(&b.1, "theta"), read(&b.1, "mu"), read(&b.1, "radius"));
    assert_eq!(x.len(), 2 * 1500 * 3);
    for (i, x) in x.chunks_exact(3).enumerate() {
        assert_eq!((&x[..2], x[2]), (&theta[2 * i..2 * i + 2], mu[i]));
        assert_eq!(radius[i], x[0].hypot(x[1]));
    }
    assert!(rust_hdf5::H5File::open(b.1.join("draws.nc")).unwrap().dataset("posterior/x").is_err());
    let names: Vec<&str> = b.0.parameters.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["theta[0]", "theta[1]", "mu"]);
    assert_eq!(b.0.parameters[2].mean, a.0.target_chain.expectations.mean[2]);
    let mean = radius.iter().sum::<f64>() / radius.len() as f64;
    assert!((b.0.observables[0].mean - mean).abs() < 1e-12);
    // Without names, coordinates are called as in the file.
    assert_eq!(a.0.parameters[2].name, "x[2]");
    assert_eq!(a.0.parameters[2].mean, b.0.parameters[2].mean);
    assert!(a.0.observables.is_empty());
    let page = fs::read_to_string(b.1.join("report.html")).unwrap();
    assert!(page.contains("theta[1]") && page.contains("mu"), "names are not in the report");
    assert_eq!(Summary::read(&b.1).unwrap().to_json(), b.0.to_json());
}

#[test]
fn names_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let banana = || Problem::new(sterna::targets::Banana::new(2));
    for (problem, part) in [
        (banana().named(["a"]), "have 1 coordinates, the target 2"),
        (banana().named(["a", "a"]), "`a` is taken"),
        (banana().named(["a", "b[1]"]), "letters a to z, digits and _"),
        (banana().named(["a", "draw"]), "`draw` is taken"),
        (banana().observe("x", |x| x[0]), "`x` is taken"),
        (banana().reference(vec![0.0], vec![1.0]), "target has dimension 2"),
        (banana().reference(vec![0.0; 2], vec![1.0, -1.0]), "must be positive"),
    ] {
        let error = Job::new(problem, config(&[]), folder.path().join("run")).err().unwrap();
        assert!(error.to_string().contains(part) && error.exit_code() == 2, "{error}");
    }
    assert!(!folder.path().join("run").exists());
}

#[test]
fn an_own_reference_is_used_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let problem = || {
        let target = sterna::targets::Normal::new(vec![5.0, -3.0], vec![4.0, 1.0]);
        Problem::new(target).reference(vec![4.0, -2.0], vec![1.0, 2.0])
    };
    let summary = Job::new(problem(), config(&[]), folder.path().join("run")).unwrap().run(&mut ()).unwrap();
    let log_z = &summary.log_z;
    assert!((log_z.bar - log_z.truth.unwrap()).abs() < 5.0 * log_z.standard_error, "{log_z:?}");
    let verdict = verify::verify(&problem(), &config(&[])).unwrap();
    assert!(verdict.passed(), "{verdict}");
    let flow = config(&[("accelerator.kind", "flow"), ("training.steps", "50"), ("training.collect", "200")]);
    let summary = Job::new(problem(), flow, folder.path().join("flow")).unwrap().run(&mut ()).unwrap();
    let log_z = &summary.log_z;
    assert!((log_z.bar - log_z.truth.unwrap()).abs() < 5.0 * log_z.standard_error, "{log_z:?}");
    let exact = config(&[
        ("accelerator.kind", "diffusion"),
        ("accelerator.score", "exact"),
        ("reference.kind", "standard-normal"),
    ]);
    let error = Job::new(problem(), exact, folder.path().join("other")).err().unwrap().to_string();
    assert!(error.contains("Problem::reference") && error.contains("N(0, I)"), "{error}");
}

/// The library alone, as the book has it.
#[test]
fn in_memory_alone() -> sterna::Result<()> {
    use density::TwoHumps;
    use std::sync::Arc;
    use sterna::paths::Geometric;
    use sterna::run::{Run, Settings};

    let path = Geometric::from_standard_normal(TwoHumps);
    let settings = Settings { chains: 6, ensembles: 2, iterations: 20_000, ..Settings::default() };
    let mut run = Run::new(Arc::new(path), settings)?;
    run.complete()?;
    println!("{} round trips", run.results().round_trips);
    assert!(run.results().round_trips > 1000);
    Ok(())
}

/// The book shows the programs that are tested here.
#[test]
fn the_book_has_these_programs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let book = fs::read_to_string(root.join("../../docs/book/rust-target.md")).unwrap();
    let example = |name: &str| fs::read_to_string(root.join("examples").join(name)).unwrap();
    let between = |text: &str, begin: &str, end: &str| -> String {
        let text = &text[text.find(begin).unwrap()..];
        text[..text.find(end).unwrap()].trim_end().to_string()
    };
    let program = example("own_density.rs");
    let program = &program[program.find("use sterna::").unwrap()..];
    assert!(book.contains(program));
    let body = program[program.find("fn main").unwrap()..].lines().count() - 2;
    assert!(body <= 12, "{body} lines");
    let page = fs::read_to_string(root.join("../../docs/book/parameters.md")).unwrap();
    let of_values = example("own_parameters.rs");
    assert!(page.contains(&of_values[of_values.find("use sterna::").unwrap()..]));
    let problem = example("own_problem.rs");
    for part in ["    let problem", "impl GraphTarget"] {
        let end = if part.starts_with("impl") { "\nfn main" } else { "    let config" };
        assert!(book.contains(&between(&problem, part, end)), "{part}");
    }
}
