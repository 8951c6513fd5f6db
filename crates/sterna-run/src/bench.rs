//! `sterna bench`: iterations per processor-second of plain parallel tempering, and whether cost follows the work.

use crate::bench_sizes::Sizes;
use crate::config::known;
use crate::error::JobError;
use crate::platform::processor_s;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;
use sterna::acceleration::Acceleration;
use sterna::accelerators::{Diffusion, DiffusionSteps, Integrator};
use sterna::explorers::{Hmc, StepSize};
use sterna::path::AnnealingPath;
use sterna::paths::{Diffused, Geometric, Reference};
use sterna::run::{Run, Settings, Stage};
use sterna::targets::{Dw4, Gmm, ManyWell};
use sterna::{Target, lanes};

/// Measures what was asked for and prints it, as JSON if that was asked for.
///
/// # Errors
/// If the device is unknown or not to be had.
pub fn run(device: &str, only: Option<&str>, json: bool) -> Result<(), JobError> {
    known("--device", device, &["cpu", "cuda"])?;
    if device == "cpu" {
        let found = Found::measured();
        match json {
            true => println!("{}", serde_json::to_string_pretty(&found).expect("plain data")),
            false => found.print(),
        }
        return Ok(());
    }
    #[cfg(feature = "cuda")]
    return crate::bench_cuda::print(only, json);
    #[cfg(not(feature = "cuda"))]
    {
        let _ = only;
        Err(JobError::Config(
            "this program was built without CUDA: cargo build --release --features cuda".into(),
        ))
    }
}

/// What one run cost.
struct Cost {
    /// Ladder iterations per processor-second.
    per_processor_second: f64,
    /// Ladder iterations per second.
    per_second: f64,
    /// Processor-seconds per target evaluation.
    per_evaluation: f64,
}

fn measure(
    path: Arc<dyn AnnealingPath>,
    acceleration: Acceleration,
    ensembles: usize,
    threads: usize,
    iterations: u64,
) -> Cost {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let explorer = Arc::new(Hmc { step_size: StepSize::Fixed(0.05), ..Hmc::default() });
        let settings =
            Settings { chains: 30, ensembles, explorer, rounds: 2, iterations, ..Settings::default() };
        let mut run = Run::accelerated(path.clone(), settings, acceleration).expect("a good start");
        while run.progress().0 != Stage::Sampling {
            run.advance(u64::MAX).expect("a built-in target");
        }
        let (begin, processor, evaluations) = (Instant::now(), processor_s(), path.evaluations());
        run.complete().expect("a built-in target");
        let (seconds, processor) = (begin.elapsed().as_secs_f64(), processor_s() - processor);
        let done = (iterations * ensembles as u64) as f64;
        Cost {
            per_processor_second: done / processor,
            per_second: done / seconds,
            per_evaluation: processor / (path.evaluations() - evaluations) as f64,
        }
    })
}

fn geometric(target: &Arc<dyn Target>) -> Arc<dyn AnnealingPath> {
    let reference = Reference::standard_normal(target.dim());
    Arc::new(Geometric::new(reference, target.clone()).expect("same dimension"))
}

/// What the processors here do; the best of several, since other programs only ever slow one down.
#[derive(Debug, Serialize)]
struct Found {
    instruction_set: &'static str,
    targets: Vec<OfTarget>,
    /// Seconds of a processor per evaluation of GMM-10, by plain swaps and by an exact diffusion with K = 5.
    evaluation_s: [f64; 2],
    sizes: Sizes,
}

/// What was measured on a target.
#[derive(Debug, Serialize)]
struct OfTarget {
    name: &'static str,
    iterations_per_processor_second: f64,
    two_threads_to_one: f64,
}

impl Found {
    fn measured() -> Self {
        let targets: [(&'static str, Arc<dyn Target>); 3] = [
            ("GMM-10", Arc::new(Gmm::paper(10))),
            ("ManyWell-32", Arc::new(ManyWell::new(32))),
            ("DW-4", Arc::new(Dw4)),
        ];
        let of_targets = targets.iter().map(|(name, target)| OfTarget::measured(name, target)).collect();
        let gmm = &targets[0].1;
        let (mut plain, mut accelerated) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..3 {
            let steps = DiffusionSteps::new(5, Integrator::Exponential).expect("five steps");
            let diffused = Arc::new(Diffused::exact(gmm.clone()).expect("a mixture knows its diffusion"));
            let given = Acceleration::Given(Arc::new(Diffusion { steps }));
            plain = plain.min(measure(geometric(gmm), Acceleration::None, 1, 1, 10_000).per_evaluation);
            accelerated = accelerated.min(measure(diffused, given, 1, 1, 10_000).per_evaluation);
        }
        Self {
            instruction_set: lanes::instruction_set(),
            targets: of_targets,
            evaluation_s: [plain, accelerated],
            sizes: Sizes::measured(),
        }
    }

    fn print(&self) {
        println!("{}; 30 chains, HMC with 5 leapfrog steps, f64", self.instruction_set);
        println!("{:<14}{:>32}{:>32}", "", "iterations / processor-second", "2 threads to 1, 8 ensembles");
        for OfTarget { name, iterations_per_processor_second, two_threads_to_one } in &self.targets {
            println!("{name:<14}{iterations_per_processor_second:>32.0}{two_threads_to_one:>32.2}");
        }
        let [plain, accelerated] = self.evaluation_s;
        println!(
            "GMM-10, processor time per evaluation: {:.0} ns plain,\n{:.0} ns by exact diffusion with K = 5, ratio {:.2}",
            1e9 * plain,
            1e9 * accelerated,
            accelerated / plain
        );
        self.sizes.print();
    }
}

impl OfTarget {
    fn measured(name: &'static str, target: &Arc<dyn Target>) -> Self {
        let run = |ensembles, threads, iterations| {
            measure(geometric(target), Acceleration::None, ensembles, threads, iterations)
        };
        let processor = (0..3).map(|_| run(1, 1, 20_000).per_processor_second).fold(0.0, f64::max);
        // In turns, so that both meet the same neighbours.
        let (mut one, mut two) = (0.0f64, 0.0f64);
        for _ in 0..3 {
            one = one.max(run(8, 1, 4_000).per_second);
            two = two.max(run(8, 2, 4_000).per_second);
        }
        Self { name, iterations_per_processor_second: processor, two_threads_to_one: two / one }
    }
}
