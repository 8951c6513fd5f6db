//! Models of Stan: a library with BridgeStan's functions, written in C, is sampled; its declared values are what files
//! speak of; and what can be wrong with a model is told so that it can be mended.

use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use sterna::{Batch, Evaluation, Target};
use sterna_run::alarms::Code;
use sterna_run::{Config, Problem, job};

/// Compiles the model of this test.
fn compiled(folder: &Path, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stan/model.c");
    let library = folder.join("model.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).args(flags).arg(source).arg("-lm");
    assert!(compiler.status().expect("a C compiler").success());
    library
}

fn text(library: &Path, more: &str) -> String {
    format!("[target]\nkind = \"stan\"\nmodel = {library:?}\n{more}\n")
}

fn problem(library: &Path, more: &str) -> Result<Problem, String> {
    let config = Config::parse(&text(library, more), &[]).map_err(|error| error.to_string())?;
    config.problem().map_err(|error| error.to_string())
}

const DATA: &str = "data = '{\"m\": 0.3}'";
const SMALL: &str =
    "[chains]\ncount = 4\nensembles = 2\n[schedule]\nrounds = 4\niterations = 300\n[run]\niterations = 4000";

/// Five standard errors: a false alarm in 10⁶ runs, and the seed is fixed.
#[test]
fn it_is_sampled_and_its_declared_values_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let library = compiled(folder.path(), &[]);
    let config = Config::parse(&(text(&library, DATA) + SMALL), &[]).unwrap();
    let run = folder.path().join("run");
    let summary = job::run(&config, &run, &mut ()).unwrap();
    assert!(summary.finished && summary.setup.target.kind == "stan" && summary.setup.target.dim == 2);
    // Z = √(2π)/2 · B(2, 3)
    let log_z = (std::f64::consts::TAU.sqrt() / 24.0).ln();
    assert!((summary.log_z.bar - log_z).abs() < 5.0 * summary.log_z.standard_error, "{:?}", summary.log_z);
    let names: Vec<&str> = summary.parameters.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["sigma", "p[1]", "p[2]"]);
    let (sigma, beta) = ((0.3f64 + 0.125).exp(), 0.2);
    let exact = [(sigma, sigma * 0.25f64.exp_m1().sqrt()), (0.4, beta), (0.6, beta)];
    for (found, (mean, sd)) in summary.parameters.iter().zip(exact) {
        assert!((found.mean - mean).abs() < 5.0 * found.mcse, "{found:?}");
        // The sd of an sd is about sd/√(2 ESS), and more for the tail of sigma.
        assert!((found.sd / sd - 1.0).abs() < 5.0 * (1.5 / found.ess).sqrt(), "{found:?}");
    }
    let report = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(report.contains("p[1]") && report.contains("sigma") && !report.contains("Coordinate 0"));
    assert!(!report.contains("could not be read"), "a file was not read");
}

/// The data lie in the run folder, the model where it is: the run goes on from there, to the same bits.
#[test]
fn a_run_keeps_its_data_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    compiled(folder.path(), &[]);
    std::fs::write(folder.path().join("numbers.json"), "{\"m\": 0.3}").unwrap();
    let config = "[target]\nkind = \"stan\"\nmodel = \"model.so\"\ndata = \"numbers.json\"\n";
    let path = folder.path().join("config.toml");
    std::fs::write(&path, config.to_string() + SMALL).unwrap();
    let bits = |name: &str| std::fs::read(folder.path().join(name).join("draws.nc")).unwrap();
    let config = Config::read(&path, &[]).unwrap();
    job::run(&config, &folder.path().join("whole"), &mut ()).unwrap();
    let shorter = Config::read(&path, &[("run.iterations", "1500")]).unwrap();
    let parts = folder.path().join("parts");
    job::run(&shorter, &parts, &mut ()).unwrap();
    std::fs::remove_file(folder.path().join("numbers.json")).unwrap();
    let changes = sterna_run::Changes { iterations: Some(4000), threads: Some(1), ..Default::default() };
    job::resume(&parts, &changes, &mut ()).unwrap();
    assert!(bits("whole") == bits("parts"));
    let kept = std::fs::read_to_string(parts.join("config.toml")).unwrap();
    assert!(kept.contains("data = \"data.json\""), "{kept}");
    let again = Config::read(&parts.join("config.toml"), &[]).unwrap();
    assert!(again.problem().is_ok());
}

/// Transformed parameters and generated quantities follow the declared ones; they may fail where those do not. Five standard errors.
#[test]
fn what_the_model_makes_of_its_parameters_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let library = compiled(folder.path(), &["-DQUANTITIES"]);
    let config = Config::parse(&(text(&library, DATA) + SMALL), &[]).unwrap();
    let summary = job::run(&config, &folder.path().join("run"), &mut ()).unwrap();
    let names: Vec<&str> = summary.parameters.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["sigma", "p[1]", "p[2]", "variance", "y"]);
    // E σ² of the log-normal law.
    let variance = &summary.parameters[3];
    assert!((variance.mean - (0.6f64 + 0.5).exp()).abs() < 5.0 * variance.mcse, "{variance:?}");
    let made = problem(&library, DATA).unwrap();
    let values = |point: [f64; 2]| {
        let mut out = [0.0; 5];
        made.values.as_ref().unwrap().constrain(&point, &mut out);
        out
    };
    // Random numbers follow from the point; over many points they are uniform: mean ½ within 5 · 0.29/√4000.
    assert_eq!(values([0.0, 0.5]), values([0.0, 0.5]));
    let shares = (0..4000).map(|i| values([0.0, 1e-4 * f64::from(i)])[4]);
    let mean = shares.sum::<f64>() / 4000.0;
    assert!((mean - 0.5).abs() < 0.023, "{mean}");
    let beyond = values([0.0, 3.0]);
    assert!(beyond[0] == 1.0 && beyond[1] > 0.9 && beyond[3] == 1.0 && beyond[4].is_nan(), "{beyond:?}");
    let without = problem(&library, &format!("{DATA}\nquantities = false")).unwrap();
    assert_eq!(without.value_names(), ["sigma", "p[1]", "p[2]"]);
}

/// A folder with a Makefile that does what BridgeStan's does, on a source that is no newer than its library and on one that is.
#[test]
fn a_source_is_compiled_by_an_installed_bridgestan() {
    let folder = tempfile::tempdir().unwrap();
    let bridgestan = folder.path().join("bridgestan");
    std::fs::create_dir(&bridgestan).unwrap();
    let source = folder.path().join("schools.stan");
    std::fs::write(&source, "parameters { real x; }").unwrap();
    let more = format!("{DATA}\nbridgestan = {bridgestan:?}");
    let message = problem(&source, &more).unwrap_err();
    assert!(message.contains("target.bridgestan") && message.contains("holds no Makefile"), "{message}");
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stan/model.c");
    let rule = |command: &str| {
        std::fs::write(bridgestan.join("Makefile"), format!("%_model.so: %.stan\n\t{command}\n")).unwrap();
    };
    rule("@echo Semantic error in schools.stan: x is not defined; exit 1");
    let message = problem(&source, &more).unwrap_err();
    for part in ["target.model", "schools.stan", "cannot compile", "x is not defined"] {
        assert!(message.contains(part), "{message}");
    }
    rule(&format!("test $(STAN_THREADS) = true && cc -O1 -shared -fPIC -o $@ {} -lm", model.display()));
    assert_eq!(problem(&source, &more).unwrap().dim(), 2);
    // It is not made again, and needs no BridgeStan.
    assert_eq!(problem(&source, DATA).unwrap().dim(), 2);
    let missing = folder.path().join("none.stan");
    assert!(problem(&missing, DATA).unwrap_err().contains("cannot read it"));
}

/// Where the model throws there is no density, and that is data.
#[test]
fn an_exception_is_a_point_without_density() {
    let folder = tempfile::tempdir().unwrap();
    let library = compiled(folder.path(), &[]);
    let problem = problem(&library, "data = '{\"m\": 0.3, \"limit\": 2.0}'").unwrap();
    let x = Batch::from_vec(2, vec![0.3, 0.0, 1.0, 0.0, 0.1, 0.5]);
    let mut out = Evaluation::zeros(3, 2);
    problem.target.evaluate(&x, &mut out).unwrap();
    assert!(out.log_density[1].is_nan());
    assert_eq!(out.score.row(1), [0.0, 0.0]);
    assert!((out.log_density[0] - 5.0 * 0.5f64.ln()).abs() < 1e-12 && out.log_density[2].is_finite());
    let says = problem.says.as_ref().unwrap();
    assert!(says(&[0.3, 0.0]).is_none() && says(&[1.0, 0.0]).unwrap().contains("sigma is too large"));
    assert!(problem.target.evaluate(&Batch::zeros(1, 3), &mut Evaluation::zeros(1, 3)).is_err());
}

/// Libraries of BridgeStan 2.4 to 2.9 differ in what they export beside the density; none of that is needed to sample.
#[test]
fn what_a_library_lacks_is_done_without() {
    let folder = tempfile::tempdir().unwrap();
    let library = compiled(folder.path(), &["-DBARE", "-DQUANTITIES", "-DONE_TAPE"]);
    let bare = problem(&library, DATA).unwrap();
    // Without generators there are no generated quantities; what is transformed needs none.
    assert_eq!(bare.value_names(), ["sigma", "p[1]", "p[2]", "variance"]);
    let mut values = [0.0; 4];
    bare.values.as_ref().unwrap().constrain(&[0.5, 0.0], &mut values);
    assert_eq!(values[3], values[0] * values[0]);
    // And without a word about threads, calls take turns.
    assert_eq!(right(&library), 2000);
}

/// A model that throws now and then: its text is in alarm, summary and log.
#[test]
fn an_exception_is_told_with_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let library = compiled(folder.path(), &[]);
    let run = folder.path().join("run");
    for more in ["", "\n[reference]\nkind = \"standard-normal\"\nmean = -1.0\nscale = 0.1"] {
        let config = text(&library, "data = '{\"m\": 0.3, \"limit\": 3.0}'") + SMALL + more;
        let summary = job::run(&Config::parse(&config, &[]).unwrap(), &run, &mut ()).unwrap();
        let alarm = summary.alarms.iter().find(|alarm| alarm.code == Code::BadDensity).expect("an alarm");
        let first = summary.moves.bad_densities.first.clone().expect("a first one");
        assert!(first.point[0] > 3f64.ln() && first.says.unwrap().contains("sigma is too large"));
        assert!(alarm.message.contains("sigma is too large"), "{}", alarm.message);
        let log = std::fs::read_to_string(run.join("log.jsonl")).unwrap();
        assert!(log.contains("bad-density") && log.contains("sigma is too large"), "{log}");
        std::fs::remove_dir_all(&run).unwrap();
    }
    // Where all replicas would start, it is an error with the same text.
    let config =
        text(&library, "data = '{\"m\": 0.3, \"limit\": 0}'") + "[reference]\nkind = \"standard-normal\"";
    let message = job::run(&Config::parse(&config, &[]).unwrap(), &run, &mut ()).unwrap_err().to_string();
    assert!(message.contains("there the target says") && message.contains("sigma is too large"), "{message}");
    assert!(!run.exists());
}

#[test]
fn a_model_that_always_throws_is_quoted_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let library = compiled(folder.path(), &[]);
    let config = text(&library, "data = '{\"m\": 0.3, \"limit\": 0}'") + SMALL;
    let config = Config::parse(&config, &[]).unwrap();
    let [made, empty, used] = ["made", "empty", "used"].map(|name| folder.path().join(name));
    std::fs::create_dir(&empty).unwrap();
    std::fs::create_dir(&used).unwrap();
    std::fs::write(used.join("notes"), "mine").unwrap();
    for run in [&made, &empty, &used] {
        let error = job::run(&config, run, &mut ()).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let message = error.to_string();
        for part in ["the density vanishes at all", "at the origin", "sigma is too large"] {
            assert!(message.contains(part), "{message}");
        }
    }
    assert!(!made.exists() && std::fs::read_dir(&empty).unwrap().next().is_none());
    assert!(used.join("notes").exists());
}

#[test]
fn errors_name_field_file_and_cure() {
    let folder = tempfile::tempdir().unwrap();
    let library = compiled(folder.path(), &[]);
    let other = |name: &str, flags: &[&str]| {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        compiled(&folder.path().join(name), flags)
    };
    let newer = other("newer", &["-DMAJOR=3"]);
    let older = other("older", &["-Dbs_major_version=bs_other_name"]);
    let incomplete = other("incomplete", &["-DINCOMPLETE"]);
    let [none, words, source] = ["none.so", "words.so", "model.stan"].map(|name| folder.path().join(name));
    std::fs::write(&words, "no library").unwrap();
    std::fs::write(&source, "parameters { real x; }").unwrap();
    let zero = folder.path().join("zero.json");
    std::fs::write(&zero, "{\"m\": \0}").unwrap();
    let cases: [(&Path, &str, &[&str]); 12] = [
        (&library, "", &["target.model", "without data", "Stan says", "variable name=m", "as target.data"]),
        (&library, "data = '{}'", &["with target.data = 2 bytes of JSON", "variable name=m", "declares"]),
        (&library, "data = 'none.json'", &["target.data = \"none.json\"", "cannot read"]),
        (&library, &format!("data = {zero:?}"), &["target.data", "byte 0"]),
        (&library, &format!("{DATA}\ndim = 3"), &["target.dim = 3", "2 free parameters"]),
        (&library, &format!("{DATA}\nseed = -1"), &["-1", "a whole number from 0 up"]),
        (&none, DATA, &["none.so", "there is no such file"]),
        (&words, DATA, &["words.so", "cannot load"]),
        (&source, DATA, &["model.stan", "target.bridgestan", "BRIDGESTAN", "compile_model"]),
        (&newer, DATA, &["made by BridgeStan 3", "BridgeStan 2"]),
        (&older, DATA, &["made by BridgeStan 1", "BridgeStan 2"]),
        (&incomplete, DATA, &["no function `bs_param_unc_num`"]),
    ];
    for (library, more, parts) in cases {
        let message = problem(library, more).err().unwrap_or_else(|| panic!("{more} was accepted"));
        parts.iter().for_each(|part| assert!(message.contains(part), "{message:?} does not say {part:?}"));
    }
    let message = Config::parse("[target]\nkind = \"stan\"", &[]).unwrap().problem().unwrap_err().to_string();
    assert!(message.contains("needs target.model"), "{message}");
    let message = Config::parse("[target]\nmodel = \"x.so\"", &[]).unwrap_err().to_string();
    assert!(message.contains("belong to kind = \"stan\", not \"gmm\""), "{message}");
}

/// How many of many points, evaluated by several threads at once, come out as they do alone.
fn right(library: &Path) -> usize {
    let problem = problem(library, DATA).unwrap();
    let at = |i: usize| {
        let x = Batch::from_vec(2, vec![0.001 * i as f64, -0.002 * i as f64]);
        let mut out = Evaluation::zeros(1, 2);
        problem.target.evaluate(&x, &mut out).unwrap();
        (out.log_density[0].to_bits(), out.score.row(0).to_vec())
    };
    let alone: Vec<_> = (0..2000).map(at).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().unwrap();
    let together: Vec<_> = pool.install(|| (0..2000).into_par_iter().map(at).collect());
    alone.iter().zip(&together).filter(|(a, b)| a == b).count()
}

/// A library with one tape gives the same bits to any number of threads, unless it claims to know threads.
#[test]
fn calls_of_a_library_without_threads_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let library = compiled(folder.path(), &["-DONE_TAPE", "-DTHREADS=\"false\""]);
    assert_eq!(right(&library), 2000);
    let wrong = folder.path().join("wrong");
    std::fs::create_dir(&wrong).unwrap();
    assert!(right(&compiled(&wrong, &["-DONE_TAPE", "-DTHREADS=\"true\""])) < 2000, "nothing was caught");
}
