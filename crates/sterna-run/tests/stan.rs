//! Models of Stan: a library with BridgeStan's functions, written in C, is sampled; its declared values are what files
//! speak of; and what can be wrong with a model is told so that it can be mended.

use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use sterna::{Batch, Evaluation, Target};
use sterna_run::{Config, Job, Problem, job};

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
    let changes = sterna_run::Changes { iterations: Some(4000), threads: Some(1) };
    job::resume(&parts, &changes, &mut ()).unwrap();
    assert!(bits("whole") == bits("parts"));
    let kept = std::fs::read_to_string(parts.join("config.toml")).unwrap();
    assert!(kept.contains("data = \"data.json\""), "{kept}");
    let again = Config::read(&parts.join("config.toml"), &[]).unwrap();
    assert!(again.problem().is_ok());
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
    assert_eq!(out.log_density[1], f64::NEG_INFINITY);
    assert_eq!(out.score.row(1), [0.0, 0.0]);
    assert!((out.log_density[0] - 5.0 * 0.5f64.ln()).abs() < 1e-12 && out.log_density[2].is_finite());
    assert!(problem.complaint.is_none());
    assert!(problem.target.evaluate(&Batch::zeros(1, 3), &mut Evaluation::zeros(1, 3)).is_err());
}

#[test]
fn a_model_that_always_throws_is_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let library = compiled(folder.path(), &[]);
    let config = text(&library, "data = '{\"m\": 0.3, \"limit\": 0}'") + SMALL;
    let config = Config::parse(&config, &[]).unwrap();
    let job = Job::new(config.problem().unwrap(), config, folder.path().join("run")).unwrap();
    let error = job.run(&mut ()).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let message = error.to_string();
    for part in ["the density vanishes at all", "at the origin", "sigma is too large"] {
        assert!(message.contains(part), "{message}");
    }
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
        (&source, DATA, &["model.stan", "BridgeStan", "compile_model"]),
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
