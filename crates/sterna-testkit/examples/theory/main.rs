//! Numbers and plots of `docs/theory.md`: what the paper proves, measured on ladders in closed form.
//!
//! `cargo run --release -p sterna-testkit --example theory [FOLDER]` writes the drawings of each topic, one
//! below the other in a file, and `data.json`, a line of numbers for each item, into FOLDER (`docs/theory` unless given). Seeds are fixed: the files do not change.

mod drawing;
mod exact_log_z;
mod ladders;
mod langevin;
mod larger_space;
mod paths;
mod rejections;
mod steps;

use drawing::{Figure, one_below_the_other};
use serde_json::Value;
use std::error::Error;
use std::path::{Path, PathBuf};

type Outcome<T> = std::result::Result<T, Box<dyn Error>>;
type Point = (f64, f64);

fn main() -> Outcome<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::args().nth(1).map_or(repository.join("docs/theory"), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    type Item = fn() -> (Value, Figure);
    let topics: [(&str, &[(&str, Item)]); 6] = [
        (
            "rejections",
            &[
                ("rejection-estimators", rejections::rejection_estimators),
                ("divergence-bounds", rejections::divergence_bounds),
            ],
        ),
        ("ladders", &[("round-trip-rate", ladders::round_trips), ("barrier", ladders::barrier)]),
        ("exact-log-z", &[("exact-log-z", exact_log_z::exact_log_z)]),
        ("steps", &[("ornstein-uhlenbeck", steps::ornstein_uhlenbeck), ("many-steps", steps::many_steps)]),
        (
            "larger-space",
            &[
                ("extended-space", larger_space::extended_space),
                ("time-or-parallel", larger_space::time_or_parallel),
            ],
        ),
        (
            "langevin",
            &[("noise-scaling", langevin::noise_scaling), ("backward-sign", langevin::backward_sign)],
        ),
    ];
    let mut lines = Vec::new();
    for (topic, items) in topics {
        let mut drawings = Vec::new();
        for (name, item) in items {
            let (numbers, figure) = item();
            drawings.push(figure.draw()?);
            println!("{name}: {}", numbers["summary"].as_str().unwrap_or(""));
            lines.push(format!("{name:?}: {numbers}"));
        }
        std::fs::write(folder.join(format!("{topic}.svg")), one_below_the_other(&drawings))?;
    }
    Ok(std::fs::write(folder.join("data.json"), format!("{{\n{}\n}}\n", lines.join(",\n")))?)
}
