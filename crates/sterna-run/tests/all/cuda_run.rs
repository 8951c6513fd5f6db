//! Jobs that a GPU samples (`run.device = "cuda"`), against the same jobs on the CPU; without a GPU they are skipped.
use std::cell::Cell;
use std::path::Path;
use sterna_neural::{Cuda, Precision};
use sterna_run::Summary;
use sterna_run::alarms::Code;
use sterna_run::config::Config;
use sterna_run::job::{self, Observer, Progress};

const MIXTURE: &str = r#"
seed = 3
[target]
kind = "gmm"
[chains]
count = 12
[schedule]
rounds = 4
iterations = 400
burn_in = 100
[network]
layers = 2
width = 32
coordinates = "together"
[training]
collect = 300
steps = 60
batch = 64
[run]
burn_in = 4
iterations = 8
"#;

fn config(device: &str, more: &[(&str, &str)]) -> Config {
    let mut all = vec![("run.device", device)];
    all.extend(more);
    Config::parse(MIXTURE, &all).unwrap()
}

fn no_gpu() -> bool {
    let missing = Cuda::open(Precision::F32).err();
    missing.iter().for_each(|error| println!("skipped: {error}"));
    missing.is_some()
}

/// Draws of all ladders.
fn draws(config: &Config) -> Vec<Vec<f64>> {
    let (run, summary) = job::sample(config, &mut ()).unwrap();
    assert!(summary.alarms.iter().all(|alarm| alarm.code != Code::DeviceReplaced));
    run.records().flat_map(|r| &r.draws).map(|draws| draws.x.clone()).collect()
}

fn compare(more: &[(&str, &str)], tolerance: f64) {
    let [cpu, gpu] = ["cpu", "cuda"].map(|device| draws(&config(device, more)));
    assert_eq!(cpu.len(), gpu.len());
    for (cpu, gpu) in cpu.iter().flatten().zip(gpu.iter().flatten()) {
        assert!((cpu - gpu).abs() < tolerance, "{more:?}: {cpu} and {gpu}");
    }
}

#[test]
fn the_first_draws_are_those_of_the_cpu() {
    if no_gpu() {
        return;
    }
    compare(&[("chains.ensembles", "1")], 1e-7);
    compare(&[("chains.ensembles", "2")], 1e-7);
    compare(&[("accelerator.kind", "cmcd"), ("accelerator.steps", "1"), ("training.guard", "false")], 1e-3);
    compare(&[("accelerator.kind", "cmcd"), ("accelerator.steps", "2"), ("chains.ensembles", "2")], 1e-3);
}

/// Five standard errors: one false alarm in two million, if the error is right.
fn check_log_z(device: &str, precision: &str) {
    let more = [
        ("chains.ensembles", "8"),
        ("run.burn_in", "500"),
        ("run.iterations", "6000"),
        ("run.precision", precision),
        ("accelerator.kind", "cmcd"),
        ("accelerator.steps", "1"),
    ];
    let (_, summary) = job::sample(&config(device, &more), &mut ()).unwrap();
    let z = &summary.log_z;
    println!("{device}, {precision}: log Z {:.4} ± {:.4}, in truth 0", z.bar, z.standard_error);
    assert!(z.standard_error < 0.2 && z.bar.abs() < 5.0 * z.standard_error);
    assert!(summary.swaps.round_trips > 50, "{} round trips", summary.swaps.round_trips);
}

#[test]
fn log_z_lies_within_its_error() {
    check_log_z("cpu", "f32");
    if no_gpu() {
        return;
    }
    check_log_z("cuda", "f32");
    check_log_z("cuda", "tf32");
}

/// Stops when it has heard so often of sampling.
struct Impatient(Cell<u32>);

impl Observer for Impatient {
    fn progress(&mut self, progress: &Progress) {
        if progress.stage == sterna::run::Stage::Sampling {
            self.0.set(self.0.get().saturating_sub(1));
        }
    }

    fn should_stop(&self) -> bool {
        self.0.get() == 0
    }
}

fn kept(folder: &Path) -> Vec<Vec<f64>> {
    job::finished(folder).unwrap().draws.into_iter().map(|draws| draws.x).collect()
}

#[test]
fn a_job_resumes_to_the_same_bits_and_its_transport_serves_again() {
    if no_gpu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for ensembles in ["1", "2"] {
        let more = [
            ("chains.ensembles", ensembles),
            ("run.iterations", "3000"),
            ("accelerator.kind", "cmcd"),
            ("accelerator.steps", "1"),
            ("training.guard", "false"),
        ];
        let config = config("cuda", &more);
        let [whole, cut] = ["whole", "cut"].map(|name| folder.path().join(format!("{name}-{ensembles}")));
        let expected = sterna_run::run(&config, &whole, &mut ()).unwrap();
        let stopped = sterna_run::run(&config, &cut, &mut Impatient(Cell::new(3))).unwrap();
        assert!(!stopped.finished);
        let resumed = job::resume(&cut, &job::Changes::default(), &mut ()).unwrap();
        assert!(resumed.finished);
        let found = |s: &Summary| {
            let mut swaps = s.swaps.clone();
            // What a clock says.
            swaps.compute_normalised_round_trips.per_second = 0.0;
            format!("{:?}", (swaps, &s.log_z, &s.target_chain, &s.moves))
        };
        assert_eq!(found(&resumed), found(&expected));
        assert!(kept(&cut) == kept(&whole));
        let file = whole.join("transport.safetensors").display().to_string();
        let again = [("accelerator.transport", &file[..]), ("run.iterations", "8")];
        compare(&[&more[..1], &more[2..4], &again].concat(), 1e-3);
    }
}
