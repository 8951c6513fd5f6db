//! Weights on disk, and what happens to damaged or foreign files; training that meets NaN.

use std::sync::Arc;

use sterna_neural::weights::{self, Network, NetworkConfig};
use sterna_neural::{
    AdamConfig, Cpu, Decay, EgnnDriftConfig, EnergyConfig, Error, Graph, Init, Layout, MlpDriftConfig,
    Particles, RealNvpConfig, Trainer,
};

const SCHEDULE: [f64; 3] = [0.0, 0.3, 1.0];

fn configs() -> Vec<NetworkConfig> {
    vec![
        NetworkConfig::MlpDrift(MlpDriftConfig::small(3, &SCHEDULE).unwrap()),
        NetworkConfig::EgnnDrift(EgnnDriftConfig::small(Particles::DW4, &SCHEDULE).unwrap()),
        NetworkConfig::RealNvp(RealNvpConfig::small(4, &SCHEDULE).unwrap()),
        NetworkConfig::Energy(EnergyConfig::paper_gmm(10)),
        NetworkConfig::Energy(EnergyConfig::paper_dw4()),
    ]
}

#[test]
fn a_file_rebuilds_its_network() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("transport.safetensors");
    for config in configs() {
        let mut layout = Layout::new();
        let network = config.build(&mut layout, "net").unwrap();
        let parameters = layout.initialise::<f32>(9);
        weights::save(&path, &config, &layout, &parameters, None).unwrap();

        let stored = weights::load::<NetworkConfig>(&path).unwrap();
        let mut again = Layout::new();
        let rebuilt: Network = stored.description.build(&mut again, "net").unwrap();
        assert_eq!((rebuilt, &again), (network, &layout));
        let read = stored.parameters::<f32>(&again).unwrap();
        assert_eq!(read.values(), parameters.values());
        // Reading into f64 loses nothing.
        let wide = stored.parameters::<f64>(&again).unwrap();
        assert!(wide.values().iter().zip(parameters.values()).all(|(a, b)| *a == *b as f64));
        assert!(stored.state::<f32>(&again).unwrap().is_none());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
}

#[test]
fn damaged_and_foreign_files_are_clear_errors() {
    let config = &configs()[0];
    let mut layout = Layout::new();
    config.build(&mut layout, "net").unwrap();
    let bytes = weights::to_bytes(config, &layout, &layout.initialise::<f64>(9), None).unwrap();
    let read = |bytes: Vec<u8>| weights::from_bytes::<NetworkConfig>(bytes, "a.safetensors");

    for keep in [0, 4, 100, bytes.len() / 2, bytes.len() - 1] {
        let error = read(bytes[..keep].to_vec()).unwrap_err();
        assert!(matches!(error, Error::Format { .. }), "{keep} bytes: {error}");
        assert!(error.to_string().contains("a.safetensors"));
    }
    let mut flipped = bytes.clone();
    *flipped.last_mut().unwrap() ^= 1;
    assert!(read(flipped).unwrap_err().to_string().contains("checksum"));
    assert!(matches!(
        weights::from_bytes::<Vec<u32>>(bytes.clone(), "a.safetensors").unwrap_err(),
        Error::Format { .. }
    ));

    // Another network's layout.
    let stored = read(bytes).unwrap();
    let mut other = Layout::new();
    configs()[2].build(&mut other, "net").unwrap();
    assert!(matches!(stored.parameters::<f64>(&other).unwrap_err(), Error::Mismatch { .. }));
    let mut larger = Layout::new();
    let wide = MlpDriftConfig::paper(3, &SCHEDULE).unwrap();
    wide.build(&mut larger, "net").unwrap();
    let error = stored.parameters::<f64>(&larger).unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    // f64 into f32 would lose digits.
    assert!(matches!(stored.parameters::<f32>(&layout).unwrap_err(), Error::Mismatch { .. }));
    // A missing file.
    let error = weights::load::<NetworkConfig>(std::path::Path::new("no/such/file")).unwrap_err();
    assert!(matches!(error, Error::File { .. }));
}

#[test]
fn impossible_descriptions_are_errors() {
    assert!(matches!(MlpDriftConfig::small(3, &[0.0, 0.5]).unwrap_err(), Error::Config { .. }));
    assert!(matches!(MlpDriftConfig::small(3, &[0.0, 0.5, 0.5, 1.0]).unwrap_err(), Error::Config { .. }));
    let mut config = MlpDriftConfig::small(3, &SCHEDULE).unwrap();
    config.hidden.width = 0;
    assert!(matches!(
        config.build(&mut Layout::new(), "net").unwrap_err(),
        Error::Config { field: "width", .. }
    ));
    let flow = RealNvpConfig::small(1, &SCHEDULE).unwrap();
    assert!(matches!(flow.build(&mut Layout::new(), "net").unwrap_err(), Error::Config { field: "dim", .. }));
    let mut egnn = EgnnDriftConfig::small(Particles::DW4, &SCHEDULE).unwrap();
    egnn.species = vec![0, 1];
    assert!(matches!(
        egnn.build(&mut Layout::new(), "net").unwrap_err(),
        Error::Config { field: "species", .. }
    ));
}

/// Loss (w·x − y)², whose gradient is NaN where an input is.
fn line(patience: u64) -> Trainer<f64> {
    let (graph, mut layout) = (Graph::new(), Layout::new());
    let weight = layout.add("weight", 1, 1, Init::Constant(0.5));
    let (x, y) = (graph.input("x", 1), graph.input("y", 1));
    let loss = (x * weight.record(&graph) - y).square().mean_rows();
    let config = AdamConfig { patience, ..AdamConfig::default() };
    Trainer::new(Arc::new(Cpu::new(1)), &graph, loss, &[], &layout, layout.initialise(1), config).unwrap()
}

#[test]
fn a_nan_gradient_is_skipped_counted_and_in_the_end_an_error() {
    let mut trainer = line(3);
    trainer.step(1, &[&[1.0], &[2.0]]).unwrap();
    let before = trainer.state();
    assert!(trainer.step(1, &[&[f64::NAN], &[2.0]]).unwrap().skipped);
    assert!(trainer.step(1, &[&[1.0], &[f64::INFINITY]]).unwrap().skipped);
    assert_eq!(trainer.state().parameters, before.parameters);
    assert_eq!(trainer.state().first, before.first);
    assert!(trainer.alarm().unwrap().starts_with("2 of 3 training steps were skipped"));
    // A good step resets the patience.
    trainer.step(1, &[&[1.0], &[2.0]]).unwrap();
    for _ in 0..3 {
        trainer.step(1, &[&[f64::NAN], &[2.0]]).unwrap();
    }
    let error = trainer.step(1, &[&[f64::NAN], &[2.0]]).unwrap_err();
    assert!(matches!(error, Error::Diverged { step: 7, consecutive: 4 }), "{error}");
}

#[test]
fn wrong_inputs_are_errors_that_name_them() {
    let mut trainer = line(3);
    let error = trainer.step(2, &[&[1.0], &[2.0, 3.0]]).unwrap_err();
    assert!(matches!(&error, Error::InputLength { name, .. } if name == "x"), "{error}");
    assert!(matches!(trainer.step(1, &[&[1.0]]).unwrap_err(), Error::InputCount { expected: 2, given: 1 }));
}

#[test]
fn clipping_and_rates() {
    // Adam's first step has the length of the rate, whatever the gradient.
    let mut trainer = line(3);
    let report = trainer.step(1, &[&[1e6], &[0.0]]).unwrap();
    assert!(report.gradient_norm > 1e11);
    assert!((trainer.parameters().values()[0] - (0.5 - 1e-3)).abs() < 1e-9);

    let config = AdamConfig {
        warm_up: 10,
        decay: Decay::Cosine { steps: 100, floor: 0.1 },
        learning_rate: 2.0,
        ..AdamConfig::default()
    };
    assert!((config.rate(0) - 0.2).abs() < 1e-12);
    assert!((config.rate(50) - 2.0 * 0.55).abs() < 1e-12);
    assert!((config.rate(100) - 0.2).abs() < 1e-12);
    assert!((config.rate(1000) - 0.2).abs() < 1e-12);
}
