//! Mutations of good files, the same ones every time: errors are fine, panics, hangs and vast allocations are not.
//!
//! `STERNA_FUZZ` is how many mutations each kind of file gets, `STERNA_FUZZ_SEED` says which ones, `STERNA_FUZZ_WORKERS` how
//! many of a kind are tried at a time: the same ones for any number.

#[path = "fuzz/hdf5_blocks.rs"]
mod hdf5_blocks;
#[path = "fuzz/json.rs"]
mod json;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use sterna::records::Draws;
use sterna::run::{Run, Stage};
use sterna::streams::{Phase, RowStream, Streams};
use sterna_neural::weights::{NetworkConfig, to_bytes};
use sterna_neural::{Hidden, MlpDriftConfig, RealNvpConfig};
use sterna_run::checkpoint::{Description, encode};
use sterna_run::draws_file::DrawsFile;
use sterna_run::draws_store::StoredDraws;
use sterna_run::problem::Parameter;
use sterna_run::{Config, fuzz};

/// Nothing that a mutation does may take longer, or as much memory at once.
const MOST_SECONDS: u64 = 20;
const MOST_BYTES: usize = 256 << 20;

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
fn asked(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

/// No mutation: a worker that has ended.
const NONE: u64 = u64::MAX;

/// Ends the program when a worker's mutation takes too long, and says which one it was.
#[expect(clippy::disallowed_methods, reason = "it watches over a pool that may hang")]
fn watch(kind: String, seed: u64, workers: usize) -> Arc<Vec<AtomicU64>> {
    let at: Arc<Vec<AtomicU64>> = Arc::new((0..workers).map(|_| AtomicU64::new(NONE)).collect());
    let seen = Arc::downgrade(&at);
    std::thread::spawn(move || {
        let mut last = vec![(NONE, Instant::now()); workers];
        while let Some(all) = seen.upgrade() {
            for (last, now) in last.iter_mut().zip(all.iter().map(|at| at.load(Ordering::Relaxed))) {
                if now != last.0 || now == NONE {
                    *last = (now, Instant::now());
                } else if last.1.elapsed() > Duration::from_secs(MOST_SECONDS) {
                    eprintln!("mutation {now} of {kind} with seed {seed} hangs");
                    std::process::abort();
                }
            }
            drop(all);
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    at
}

/// A mutation, and what a reader did with it: whether it was accepted, or the panic's place in a file.
fn attempt(kind: &str, n: u64, data: &[u8], target: fn(&[u8]) -> bool) -> bool {
    std::panic::catch_unwind(|| target(data)).unwrap_or_else(|_| {
        let path = std::env::temp_dir().join(format!("sterna-fuzz-{kind}-{n}"));
        std::fs::write(&path, data).unwrap();
        panic!("mutation {n} of {kind} panics; it is in {}", path.display());
    })
}

fn drive(kind: &str, others: &[Vec<u8>], made: Vec<Vec<u8>>, target: fn(&[u8]) -> bool) {
    assert!(made.iter().all(|data| target(data)), "a good {kind} was refused");
    let seeds = [files(kind), others.to_vec(), made].concat();
    assert!(seeds.len() > 1);
    endure(kind, asked("STERNA_FUZZ", 3000), &|stream| mutate(stream, &seeds), target);
}

/// What makes a mutation of its own random numbers.
type Mutation<'a> = &'a (dyn Fn(&mut RowStream) -> Vec<u8> + Sync);

/// Whatever the mutation: an answer.
fn endure(kind: &str, mutations: u64, mutation: Mutation, target: fn(&[u8]) -> bool) {
    endure_with(asked("STERNA_FUZZ_WORKERS", 1) as usize, kind, mutations, mutation, target);
}

fn endure_with(workers: usize, kind: &str, mutations: u64, mutation: Mutation, target: fn(&[u8]) -> bool) {
    let seed = asked("STERNA_FUZZ_SEED", 11);
    let streams = Streams::new(seed);
    let at = watch(kind.into(), seed, workers);
    let (begin, next, accepted) = (Instant::now(), AtomicU64::new(0), AtomicU64::new(0));
    let work = |worker: usize| {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= mutations {
                break at[worker].store(NONE, Ordering::Relaxed);
            }
            at[worker].store(n, Ordering::Relaxed);
            let data = mutation(&mut streams.row(Phase::Check, n, 0));
            accepted.fetch_add(u64::from(attempt(kind, n, &data, target)), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let work = &work;
            scope.spawn(move || work(worker));
        }
    });
    let (largest, seconds) = (LARGEST.load(Ordering::Relaxed), begin.elapsed().as_secs());
    let accepted = accepted.into_inner();
    println!(
        "{kind}: {mutations} mutations of seed {seed}, {accepted} accepted, at most {largest} bytes at once, {seconds} s"
    );
    assert!(largest < MOST_BYTES, "{kind}: {largest} bytes at once");
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

/// A butane of united atoms, small enough for many mutations.
const XML: &str = r#"<?xml version="1.0" ?>
<System openmmVersion="8.2" type="System" version="1">
<PeriodicBoxVectors><A x="2" y="0" z="0"/><B x="0" y="2" z="0"/><C x="0" y="0" z="2"/></PeriodicBoxVectors>
<Particles><Particle mass="15"/><Particle mass="14"/><Particle mass="14"/><Particle mass="15"/></Particles>
<Constraints/>
<Forces>
<Force forceGroup="0" name="HarmonicBondForce" type="HarmonicBondForce" usesPeriodic="0" version="2"><Bonds>
<Bond d=".153" k="250000" p1="0" p2="1"/><Bond d=".153" k="250000" p1="1" p2="2"/><Bond d=".153" k="250000" p1="2" p2="3"/>
</Bonds></Force>
<Force forceGroup="0" name="HarmonicAngleForce" type="HarmonicAngleForce" usesPeriodic="0" version="2"><Angles>
<Angle a="1.95" k="500" p1="0" p2="1" p3="2"/><Angle a="1.95" k="500" p1="1" p2="2" p3="3"/>
</Angles></Force>
<Force forceGroup="0" name="PeriodicTorsionForce" type="PeriodicTorsionForce" usesPeriodic="0" version="2"><Torsions>
<Torsion k="6" p1="0" p2="1" p3="2" p4="3" periodicity="3" phase="0"/>
</Torsions></Force>
</Forces>
</System>
"#;

#[test]
fn systems_never_panic() {
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets");
    let whole = std::fs::read(assets.join("alanine-dipeptide/system.xml")).unwrap();
    let mostly_small = vec![XML.as_bytes().to_vec(); 15];
    assert!(fuzz::xml(&whole));
    drive("xml", &mostly_small, vec![XML.as_bytes().to_vec()], fuzz::xml);
}

#[test]
fn points_never_panic() {
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    let header = format!("{header:<117}\n");
    let numbers = [0.5f64, 1.0, -2.0, 3.0, 4.5, 1e300].map(f64::to_le_bytes).concat();
    let npy = [b"\x93NUMPY\x01\x00v\x00", header.as_bytes(), &numbers].concat();
    let pdb = "\
ATOM      1  C   MOL A   1       0.000   0.000   0.000  1.00  0.00           C
ATOM      2  C   MOL A   1       1.530   0.000   0.000  1.00  0.00           C
ENDMDL
";
    let texts = [
        "[[0.5, -0.25, 1.0], [1e3, 2.0, 3.0]]",
        "x,y,z\n0.5,1.0,2.0\n-1e-3,4,5\n",
        "[[[0, 0, 0], [0.1, 0, 0]]]",
        "{\"conformations\": [{\"coordinates\": [[0, 0, 0], [0.1, 0, 0]]}]}",
        "# nm\n0,0,0,0.1,0,0\n",
        pdb,
    ];
    let made: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).chain([npy]).collect();
    drive("points", &made, vec![made[0].clone(), made[1].clone(), made[6].clone()], fuzz::points);
}

/// Files of draws with a variable for all coordinates, and with one for each name; and the pieces that both are made of.
fn draws() -> (Vec<Vec<u8>>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let ladder = |seed: f64| Draws {
        x: (0..60).map(|i| seed + (i as f64).sin()).collect(),
        log_density: (0..20).map(|i| -seed * i as f64).collect(),
        replica: (0..20).collect(),
        acceptance: (0..20).map(|i| 1.0 / (i + 1) as f32).collect(),
        diverging: (0..20).map(|i| i % 7 == 0).collect(),
    };
    let ladders = [ladder(0.5), ladder(0.25)];
    let mut store = StoredDraws::create(folder.path().join("draws"), 3, 2).unwrap();
    let half = |draws: &Draws, second: bool| {
        let part = |width: usize| if second { 10 * width..20 * width } else { 0..10 * width };
        let (x, log_density) = (draws.x[part(3)].to_vec(), draws.log_density[part(1)].to_vec());
        Draws {
            x,
            log_density,
            replica: draws.replica[part(1)].to_vec(),
            acceptance: draws.acceptance[part(1)].to_vec(),
            diverging: draws.diverging[part(1)].to_vec(),
        }
    };
    for second in [false, true] {
        store.append(&ladders.each_ref().map(|draws| half(draws, second))).unwrap();
    }
    let file = |name: &str, file: DrawsFile| {
        let path = folder.path().join(name);
        file.write(&path).unwrap();
        std::fs::read(path).unwrap()
    };
    let all = || DrawsFile::stored(3, &store);
    let names = [Parameter::scalar("mu"), Parameter::array("theta", [2])];
    let files = vec![file("plain.nc", all()), file("named.nc", all().named(&names))];
    (files, std::fs::read(folder.path().join("draws")).unwrap())
}

#[test]
fn files_of_draws_never_panic() {
    drive("draws", &[], draws().0, fuzz::draws);
}

/// Damage behind whose checksums stand again, so that the reader comes to see it.
#[test]
fn files_of_draws_with_sound_checksums_never_panic() {
    let files = draws().0;
    let blocks: Vec<_> = files.iter().map(|file| hdf5_blocks::of(file)).collect();
    assert!(blocks.iter().all(|blocks| blocks.len() > 5), "{blocks:?}");
    let mutation = |stream: &mut RowStream| {
        let which = stream.below(files.len());
        let mut data = files[which].clone();
        for _ in 0..1 + stream.below(4) {
            let block = &blocks[which][stream.below(blocks[which].len())];
            let at = block.start + stream.below(block.len());
            let end = (at + 1 + stream.below(8)).min(block.end);
            match stream.below(4) {
                0 => data[at] ^= 1 << stream.below(8),
                1 => data[at] = stream.below(256) as u8,
                2 => data[at..end].fill([0, 0xff, 0x7f, 1][stream.below(4)]),
                _ => {
                    let number = (stream.below(usize::MAX) as u64).to_le_bytes();
                    data[at..end].copy_from_slice(&number[..end - at]);
                }
            }
        }
        blocks[which].iter().for_each(|block| hdf5_blocks::mend(&mut data, block));
        data
    };
    endure("draws-mended", asked("STERNA_FUZZ", 3000), &mutation, fuzz::draws);
}

#[test]
fn stored_draws_never_panic() {
    let stored = draws().1;
    drive("stored-draws", std::slice::from_ref(&stored), vec![stored.clone()], fuzz::stored_draws);
}

/// Runs whose reports are made of mutated files: plain swaps, and two legs.
const RUNS: [&str; 2] = [
    r#"[target]
kind = "normal"
dim = 2
[chains]
count = 3
ensembles = 2
[schedule]
rounds = 2
iterations = 50
burn_in = 10
[accelerator]
kind = "affine"
[training]
collect = 100
[run]
iterations = 200
"#,
    r#"[target]
kind = "normal"
dim = 2
[reference]
kind = "fitted"
[run]
iterations = 200
"#,
];

/// Summaries and traces whose parts are missing, too long, of another kind or beyond all bounds: a page, or an error.
#[test]
fn reports_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let runs = [0, 1].map(|i| folder.path().join(i.to_string()));
    for (out, text) in runs.iter().zip(RUNS) {
        sterna_run::job::run(&Config::parse(text, &[]).unwrap(), out, &mut ()).unwrap();
    }
    let read = |run: &Path, name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(run.join(name)).unwrap()).unwrap()
    };
    let files = runs.each_ref().map(|run| (read(run, "summary.json"), read(run, "traces.json")));
    let mutation = |stream: &mut RowStream| {
        let which = stream.below(2);
        let (mut summary, mut traces) = files[which].clone();
        if stream.below(8) == 0 {
            // Files of two runs in one folder.
            traces = files[1 - which].1.clone();
        }
        for _ in 0..1 + stream.below(4) {
            json::mutate(if stream.below(2) == 0 { &mut summary } else { &mut traces }, stream);
        }
        serde_json::to_vec(&serde_json::json!([runs[which], summary, traces])).unwrap()
    };
    // A page takes as long as a hundred small files; all are made in the folder of the run, one after the other.
    endure_with(1, "reports", asked("STERNA_FUZZ", 3000) / 20, &mutation, fuzz::report);
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
