//! scratch
use std::sync::Arc;
use sterna::{Target, paths::Geometric, run::*, targets::*};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let target: Arc<dyn Target> = match &args[1][..] {
        "gmm" => Arc::new(Gmm::paper(10)),
        "dw" => Arc::new(Dw4),
        "mw" => Arc::new(ManyWell::new(32)),
        _ => panic!(),
    };
    let chains: usize = args[2].parse().unwrap();
    let step: f64 = args[3].parse().unwrap();
    let seeds: u64 = args[4].parse().unwrap();
    let t: u64 = args[5].parse().unwrap();
    for seed in 1..=seeds {
        let path =
            Geometric::new(sterna::paths::Reference::standard_normal(target.dim()), target.clone()).unwrap();
        let settings = Settings {
            seed,
            chains,
            step_size: if step > 0.0 { StepSize::Fixed(step) } else { StepSize::Adapt { acceptance: -step } },
            criterion: if step > 0.0 { Criterion::Rejection } else { Criterion::Barrier },
            iterations: t,
            burn_in: 0,
            ..Settings::default()
        };
        let mut run = Run::new(Arc::new(path), settings).unwrap();
        while !matches!(run.progress().0, Stage::Sampling) {
            run.advance(u64::MAX).unwrap();
        }
        let t0 = std::time::Instant::now();
        run.complete().unwrap();
        let e = t0.elapsed().as_secs_f64();
        let t0 = std::time::Instant::now();
        let r = run.results();
        let er = t0.elapsed().as_secs_f64();
        println!(
            "seed {seed}: R {} Λ {:.3} pred {:.0} logZ {:.4} ± {:.4} (truth {:.4}) z {:.2}  {:.0} it/s  acc {:.2}-{:.2} ess {:.0} res {:.2}s",
            r.round_trips,
            r.rejection_rates.iter().sum::<f64>(),
            r.round_trip_rate_predicted * t as f64,
            r.log_z.bar,
            r.log_z.standard_error,
            r.log_z_truth.unwrap(),
            (r.log_z.bar - r.log_z_truth.unwrap()) / r.log_z.standard_error,
            t as f64 / e,
            r.acceptance[1..].iter().copied().fold(1.0, f64::min),
            r.acceptance[1..].iter().copied().fold(0.0, f64::max),
            r.ess.iter().copied().fold(1e9, f64::min),
            er
        );
    }
}
