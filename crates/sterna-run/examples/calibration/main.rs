//! Simulation-based calibration (Talts et al. 2018): parameters from the prior, data from the parameters, a run on the posterior, and
//! the rank of the parameters among its draws, which is even if all is right. Writes a page and a drawing.
//!
//! ```sh
//! cargo run --release -p sterna-run --example calibration -- docs/trust 400
//! ```

mod models;
mod page;
mod simulations;

use models::Model;
use simulations::{Calibration, Method};
use std::error::Error;
use std::path::PathBuf;

const SEED: u64 = 2018;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "docs/trust".into()));
    let simulations: u64 = arguments.next().map_or(Ok(400), |count| count.parse())?;
    let mut rows = Vec::new();
    for method in Method::SOUND.into_iter().chain(Method::TWINS) {
        for model in Model::ALL {
            let found = Calibration::of(model, method, SEED, simulations)?;
            println!(
                "{} of {}: smallest p-value {:.2e}, log Z {:+.2} ± {:.2}",
                method.name(),
                model.name(),
                found.worst(),
                found.log_z.0,
                found.log_z.1
            );
            rows.push((method, model, found));
        }
    }
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("calibration.svg"), page::drawing(&rows, simulations))?;
    std::fs::write(folder.join("calibration.md"), page::text(&rows, simulations, SEED))?;
    Ok(())
}
