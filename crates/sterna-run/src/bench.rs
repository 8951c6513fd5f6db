//! `sterna bench`: iterations per processor-second of plain parallel tempering.

use std::sync::Arc;
use sterna::paths::{Geometric, Reference};
use sterna::run::{Run, Settings, Stage, StepSize};
use sterna::targets::{Dw4, Gmm, ManyWell};
use sterna::{Target, lanes};

/// Processor time of this process in seconds.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

/// Ladder iterations per processor-second and per second, one after the other.
fn measure(target: Arc<dyn Target>, ensembles: usize, threads: usize, iterations: u64) -> (f64, f64) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let path = Geometric::new(Reference::standard_normal(target.dim()), target).expect("same dimension");
        let step = StepSize::Fixed(0.05);
        let settings =
            Settings { chains: 30, ensembles, step_size: step, rounds: 2, iterations, ..Settings::default() };
        let mut run = Run::new(Arc::new(path), settings).expect("a good start");
        while run.progress().0 != Stage::Sampling {
            run.advance(u64::MAX).expect("a built-in target");
        }
        let (begin, processor) = (std::time::Instant::now(), processor_seconds());
        run.complete().expect("a built-in target");
        let done = (iterations * ensembles as u64) as f64;
        (done / (processor_seconds() - processor), done / begin.elapsed().as_secs_f64())
    })
}

/// Measures and prints; the best of three, since other programs only ever slow one down.
pub fn print() {
    println!("{}; 30 chains, HMC with 5 leapfrog steps, f64", lanes::instruction_set());
    println!(
        "{:<14}{:>28}{:>30}",
        "", "iterations / processor-second", "2 threads, 8 ensembles vs. 1 thread"
    );
    let targets: [(&str, Arc<dyn Target>); 3] = [
        ("GMM-10", Arc::new(Gmm::paper(10))),
        ("ManyWell-32", Arc::new(ManyWell::new(32))),
        ("DW-4", Arc::new(Dw4)),
    ];
    for (name, target) in targets {
        let best = |ensembles, threads, iterations| {
            let runs = (0..3).map(|_| measure(target.clone(), ensembles, threads, iterations));
            runs.fold((0.0f64, 0.0f64), |a, b| (a.0.max(b.0), a.1.max(b.1)))
        };
        let (processor, _) = best(1, 1, 20_000);
        let ratio = best(8, 2, 4_000).1 / best(8, 1, 4_000).1;
        println!("{name:<14}{processor:>28.0}{ratio:>30.2}");
    }
}
