//! Mutations of good files, the same ones every time: errors are fine, panics, hangs and vast allocations are not.
//!
//! `STERNA_FUZZ` is how many mutations each kind of file gets.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use sterna::run::{Run, Stage};
use sterna::streams::{Phase, RowStream, Streams};
use sterna_neural::weights::{NetworkConfig, to_bytes};
use sterna_neural::{Hidden, MlpDriftConfig, RealNvpConfig};
use sterna_run::checkpoint::{Description, encode};
use sterna_run::{Config, fuzz};

struct Watching;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is passed on to the system's allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

fn corpus(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(kind)
}

fn files(kind: &str) -> Vec<Vec<u8>> {
    // Beside the files that the tests make, what libFuzzer found.
    let Ok(folder) = std::fs::read_dir(corpus(kind)) else { return Vec::new() };
    let mut paths: Vec<_> = folder.map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|p| std::fs::read(p).unwrap()).collect()
}

/// Configs of several kinds, to begin with beside the default: all can be read, not all can be planned.
const CONFIGS: [&str; 3] = [
    r#"seed = 1
[target]
kind = "gmm"
[chains]
count = 12
ensembles = 4
[run]
iterations = 50000
"#,
    r#"threads = 2
[target]
kind = "normal"
dim = 3
precision = [1.0, 2.5, 1e3]
mean = -0.5
[reference]
scale = 2.0
[chains]
count = "auto"
[explorer]
kind = "mala"
step_size = [0.1, 0.2, 0.3]
acceptance = 0.6
[schedule]
criterion = "rejection"
[accelerator]
kind = "cmcd"
drift = "exact"
noise = 0.2
"#,
    r#"[target]
kind = "many-well"
dim = 8
[accelerator]
kind = "diffusion"
score = "exact"
steps = 5
integrator = "euler"
[network]
preset = "paper"
layers = 3
width = 64
[training]
collect = 500
rounds = 2
loss = "log-variance"
guard = false
[run]
thin = 10
checkpoint_seconds = 5.0
"#,
];

/// Saved states of all stages of the small run, and one whole checkpoint.
fn checkpoints() -> Vec<Vec<u8>> {
    let (path, acceleration) = fuzz::small_parts();
    let mut run = Run::accelerated(path, fuzz::small_settings(), acceleration).unwrap();
    let mut out = vec![run.save().unwrap()];
    while run.progress().0 != Stage::Finished {
        run.advance(4).unwrap();
        out.push(run.save().unwrap());
    }
    let description = Description {
        version: env!("CARGO_PKG_VERSION").into(),
        config: Config::default().to_toml(),
        times: Default::default(),
        draws_bytes: 0,
    };
    out.push(encode(&description, &out[0]));
    out
}

fn weights() -> Vec<Vec<u8>> {
    let schedule = [0.0, 0.3, 1.0];
    let configs = [
        NetworkConfig::MlpDrift(MlpDriftConfig {
            hidden: Hidden::new(1, 4),
            ..MlpDriftConfig::small(2, &schedule).unwrap()
        }),
        NetworkConfig::RealNvp(RealNvpConfig {
            layers: 2,
            hidden: Hidden::new(1, 4),
            ..RealNvpConfig::small(2, &schedule).unwrap()
        }),
    ];
    let file = |config: &NetworkConfig| {
        let mut layout = sterna_neural::Layout::new();
        config.build(&mut layout, "net").unwrap();
        to_bytes(config, &layout, &layout.initialise::<f32>(1), None).unwrap()
    };
    configs.iter().map(file).collect()
}

/// One to eight small changes.
fn mutate(stream: &mut RowStream, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut data = seeds[stream.below(seeds.len())].clone();
    for _ in 0..1 + stream.below(8) {
        let length = data.len();
        if length == 0 {
            break;
        }
        let at = stream.below(length);
        let span = at..(at + 1 + stream.below(16)).min(length);
        match stream.below(9) {
            0 => data[at] ^= 1 << stream.below(8),
            1 => data[at] = stream.below(256) as u8,
            2 => data[span].fill([0, 0xff, 0x7f, b'9'][stream.below(4)]),
            3 => drop(data.drain(span)),
            4 => data.truncate(at),
            5 => {
                let copy = data[span].to_vec();
                drop(data.splice(at..at, copy));
            }
            6 => {
                let other = &seeds[stream.below(seeds.len())];
                let from = stream.below(other.len().max(1));
                let part = other[from..(from + 32).min(other.len())].to_vec();
                drop(data.splice(at..at, part));
            }
            // Lengths that lie, as a varint and as eight bytes.
            7 => drop(data.splice(at..at, [0xff, 0xff, 0xff, 0xff, 0x0f])),
            _ => drop(data.splice(span, (stream.below(usize::MAX) as u64).to_le_bytes())),
        }
    }
    data
}

#[expect(clippy::disallowed_methods, reason = "`./check --full` asks for more")]
fn drive(kind: &str, others: &[Vec<u8>], made: Vec<Vec<u8>>, target: fn(&[u8]) -> bool) {
    let mutations: u64 = std::env::var("STERNA_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    assert!(made.iter().all(|data| target(data)), "a good {kind} was refused");
    let seeds = [files(kind), others.to_vec(), made].concat();
    assert!(seeds.len() > 1);
    let streams = Streams::new(11);
    let mut slowest = Duration::ZERO;
    for n in 0..mutations {
        let data = mutate(&mut streams.row(Phase::Check, n, 0), &seeds);
        let begin = Instant::now();
        let fine = std::panic::catch_unwind(|| target(&data));
        slowest = slowest.max(begin.elapsed());
        if fine.is_err() {
            let path = std::env::temp_dir().join(format!("sterna-fuzz-{kind}-{n}"));
            std::fs::write(&path, &data).unwrap();
            panic!("mutation {n} of {kind} panics; it is in {}", path.display());
        }
    }
    assert!(slowest < Duration::from_secs(20), "{kind}: {slowest:?}");
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest < 256 << 20, "{kind}: {largest} bytes at once");
}

#[test]
fn configs_never_panic() {
    let others = CONFIGS.map(|text| text.as_bytes().to_vec());
    drive("config", &others, vec![Config::default().to_toml().into_bytes()], fuzz::config);
}

#[test]
fn checkpoints_never_panic() {
    drive("checkpoint", &[], checkpoints(), fuzz::checkpoint);
}

#[test]
fn weights_never_panic() {
    drive("weights", &[], weights(), fuzz::weights);
}

/// Writes the corpus for libFuzzer to begin with: `cargo test -p sterna-run --test fuzz -- --ignored`.
#[test]
#[ignore = "writes into the source tree"]
fn write_corpus() {
    let write = |kind: &str, name: String, data: &[u8]| {
        std::fs::create_dir_all(corpus(kind)).unwrap();
        std::fs::write(corpus(kind).join(name), data).unwrap();
    };
    for (i, text) in CONFIGS.iter().enumerate() {
        write("config", format!("{i:02}.toml"), text.as_bytes());
    }
    let all = checkpoints();
    for (i, data) in all.iter().enumerate().filter(|(i, _)| i % 4 == 0 || *i + 1 == all.len()) {
        write("checkpoint", format!("{i:02}"), data);
    }
    for (i, data) in weights().iter().enumerate() {
        write("weights", format!("{i:02}.safetensors"), data);
    }
}
