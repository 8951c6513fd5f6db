//! Writes `draws.nc` files of known numbers, for `tests/python/test_draws.py` and for timing.
//!
//! `write_draws DIR` writes one file per case; `write_draws DIR ENSEMBLES DRAWS DIM` one file, with its time.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use sterna_run::draws_file::{DrawsFile, DrawsFileError, EnsembleDraws, Values};

/// Name, ensembles, draws, dimension. The last crosses chunks of every variable.
const CASES: [(&str, usize, usize, usize); 6] = [
    ("one", 1, 1000, 3),
    ("several", 4, 777, 5),
    ("line", 2, 50, 1),
    ("point", 1, 1, 1),
    ("wide", 2, 3, 40_000),
    ("long", 3, 70_001, 3),
];

/// The `i`-th number of the stream `seed` (SplitMix64).
fn bits(seed: u64, i: u64) -> u64 {
    let mut z = seed.wrapping_mul(1 << 40).wrapping_add(i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// In [−½, ½), exactly: another language finds the same bits.
fn real(seed: u64, i: usize) -> f64 {
    (bits(seed, i as u64) >> 11) as f64 * (-53f64).exp2() - 0.5
}

fn write(path: &Path, ensembles: usize, draws: usize, dim: usize) -> Result<f64, DrawsFileError> {
    let data: Vec<_> = (0..ensembles as u64)
        .map(|e| {
            let mut x: Vec<f64> = (0..draws * dim).map(|i| real(4 * e, i)).collect();
            // What a careless writer loses.
            let special = [-0.0, 5e-324, f64::NAN, f64::NEG_INFINITY, f64::MAX];
            x.iter_mut().zip(special).for_each(|(x, special)| *x = special);
            let log_density: Vec<f64> = (0..draws).map(|i| real(4 * e + 1, i)).collect();
            let energy: Vec<f64> = (0..draws).map(|i| real(4 * e + 2, i)).collect();
            let replica: Vec<u32> = (0..draws).map(|i| bits(4 * e + 3, i as u64) as u32).collect();
            (x, log_density, energy, replica)
        })
        .collect();
    let start = Instant::now();
    DrawsFile::new(
        dim,
        data.iter().map(|(x, log_density, _, replica)| EnsembleDraws {
            x,
            log_density,
            replica,
            ..EnsembleDraws::default()
        }),
    )
    .statistic("energy", data.iter().map(|(_, _, energy, _)| Values::Real(energy)))
    .statistic("steps", data.iter().map(|(_, _, _, replica)| Values::Count(replica)))
    .attribute("seed", u64::MAX)
    .attribute("target", "Gauß")
    .attribute("thin", 2)
    .attribute("first_iteration", 1001)
    .attribute("temperature", 0.1)
    .attribute("note", "")
    .write(path)?;
    Ok(start.elapsed().as_secs_f64())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let sizes: Vec<usize> = arguments.iter().skip(1).filter_map(|a| a.parse().ok()).collect();
    let Some(folder) = arguments.first().map(Path::new).filter(|_| [0, 3].contains(&sizes.len())) else {
        eprintln!("usage: write_draws DIR [ENSEMBLES DRAWS DIM]");
        return ExitCode::from(2);
    };
    let cases = match sizes[..] {
        [ensembles, draws, dim] => vec![("draws", ensembles, draws, dim)],
        _ => CASES.to_vec(),
    };
    for (name, ensembles, draws, dim) in cases {
        let path = folder.join(format!("{name}.nc"));
        match write(&path, ensembles, draws, dim) {
            Ok(seconds) => println!("{name} {ensembles} {draws} {dim} {seconds:.3}"),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(1);
            }
        }
    }
    ExitCode::SUCCESS
}
