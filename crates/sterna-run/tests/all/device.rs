//! `[run] device`: what a GPU cannot sample is refused before anything is written, and the CPU stands in where it may.

use sterna_run::alarms::Code;
use sterna_run::config::Config;
use sterna_run::job;

const SMALL: &str = r#"
[target]
kind = "gmm"
[chains]
count = 4
ensembles = 2
[schedule]
rounds = 2
iterations = 100
burn_in = 30
[run]
burn_in = 10
iterations = 100
device = "cuda"
"#;

fn config(more: &[(&str, &str)]) -> Config {
    Config::parse(SMALL, more).unwrap()
}

#[test]
fn what_a_gpu_cannot_do_is_refused() {
    let molecule = [("target.kind", "alanine-dipeptide")];
    let flow = [("accelerator.kind", "flow")];
    let affine = [("accelerator.kind", "affine")];
    let diffusion = [("accelerator.kind", "diffusion")];
    let drift = [("accelerator.kind", "cmcd"), ("accelerator.drift", "none")];
    let fitted = [("reference.kind", "fitted")];
    let device = [("run.device", "cdua")];
    let precision = [("run.precision", "tf23")];
    type Settings<'a> = &'a [(&'a str, &'a str)];
    let cases: [(Settings, &[&str]); 8] = [
        (
            &molecule,
            &["run.device = \"cuda\"", "target.kind = \"alanine-dipeptide\"", "run.device = \"cpu\""],
        ),
        (&flow, &["run.device = \"cuda\"", "accelerator.kind = \"flow\"", "trained \"cmcd\""]),
        (&affine, &["run.device = \"cuda\"", "accelerator.kind = \"affine\""]),
        (&diffusion, &["run.device = \"cuda\"", "accelerator.kind = \"diffusion\""]),
        (&drift, &["run.device = \"cuda\"", "accelerator.drift = \"none\"", "trained drifts"]),
        (&fitted, &["run.device = \"cuda\"", "reference.kind = \"fitted\"", "one normal"]),
        (&device, &["run.device = \"cdua\"", "Did you mean \"cuda\"?"]),
        (&precision, &["run.precision = \"tf23\"", "Did you mean \"tf32\"?"]),
    ];
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("run");
    for (more, parts) in cases {
        // Even where the CPU may stand in: it is not a GPU that lacks.
        for fallback in ["false", "true"] {
            let more = [more, &[("run.fallback", fallback)]].concat();
            let config = Config::parse(SMALL, &more);
            let error = config.and_then(|config| sterna_run::run(&config, &at, &mut ())).unwrap_err();
            let message = error.to_string();
            assert_eq!(error.exit_code(), 2, "{message}");
            for part in parts {
                assert!(message.contains(part), "{message:?} does not say {part:?}");
            }
            assert!(!at.exists(), "{message}");
        }
    }
}

/// Programs that were built without a GPU, and machines that have none.
#[test]
fn without_a_gpu_a_run_ends_or_the_cpu_stands_in() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("run");
    let Err(error) = sterna_run::run(&config(&[]), &at, &mut ()) else {
        return println!("skipped: there is a GPU");
    };
    let message = error.to_string();
    assert!(
        message.contains("run.device = \"cuda\"") && message.contains("run.fallback = true"),
        "{message}"
    );
    assert_eq!(error.exit_code(), 2);
    assert!(!at.exists());

    let (by_cpu, _) = job::sample(&config(&[("run.device", "cpu")]), &mut ()).unwrap();
    let summary = sterna_run::run(&config(&[("run.fallback", "true")]), &at, &mut ()).unwrap();
    let alarm = summary.alarms.iter().find(|alarm| alarm.code == Code::DeviceReplaced).expect("an alarm");
    assert!(alarm.message.contains("sampling runs on the CPU"), "{}", alarm.message);
    let log_z = by_cpu.results().log_z;
    assert_eq!((summary.log_z.bar, summary.log_z.standard_error), (log_z.bar, log_z.standard_error));

    // The alarm stays when the run is made longer.
    let more = job::Changes { iterations: Some(150), ..job::Changes::default() };
    let summary = job::resume(&at, &more, &mut ()).unwrap();
    assert!(summary.alarms.iter().any(|alarm| alarm.code == Code::DeviceReplaced));
}
