//! Results depend on nothing but the seed: not on threads, not on batches, not on how a run is cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use sterna::acceleration::{Acceleration, FitAffine, FitCmcd, FitMonotone};
use sterna::accelerators::{Diffusion, DiffusionSteps, Identity, Integrator, NoDrift};
use sterna::explorers::{Hmc, Repeated, StepSize, StepSizes};
use sterna::path::AnnealingPath;
use sterna::paths::{Diffused, Geometric, Reference};
use sterna::records::SamplingRecord;
use sterna::run::{Criterion, Run, Settings, Stage};
use sterna::targets::{Dw4, Gmm, ManyWell, Normal};
use sterna::{Batch, Ensemble, Evaluation, Schedule, Streams, Target, Workspace, iterate};
use sterna_testkit::moves::sampler;

/// All that a run answers, as bits.
#[derive(PartialEq)]
struct Bits {
    numbers: Vec<u64>,
    counts: Vec<u64>,
}

fn bits_of(run: &Run) -> Bits {
    let results = run.results();
    let mut numbers: Vec<f64> = results.schedule.betas().to_vec();
    let log_z = &results.log_z;
    numbers.extend([log_z.forward, log_z.backward, log_z.geometric_mean, log_z.bar, log_z.standard_error]);
    numbers.extend(&results.rejection_rates);
    numbers.extend(results.local_barrier.iter().flat_map(|&(beta, lambda)| [beta, lambda]));
    numbers.extend(results.means.iter().flat_map(|&(mean, error)| [mean, error]));
    numbers.extend(&results.ess);
    // Chain 0 draws exactly: its acceptance is no number.
    numbers.extend(&results.acceptance[1..]);
    numbers.extend(&results.step_size);
    numbers.extend(run.sampler().explorer.save().iter().map(|&byte| f64::from(byte)));
    let mut counts = vec![results.round_trips, results.evaluations, results.bad.0];
    for draws in run.records().flat_map(|record| &record.draws) {
        numbers.extend(&draws.x);
        numbers.extend(&draws.log_density);
        counts.extend(draws.replica.iter().map(|&r| u64::from(r)));
    }
    counts.extend(run.records().flat_map(|record| &record.round_trips));
    Bits { numbers: numbers.iter().map(|x| x.to_bits()).collect(), counts }
}

fn geometric(target: Arc<dyn Target>) -> Arc<dyn AnnealingPath> {
    let reference = Reference::standard_normal(target.dim());
    Arc::new(Geometric::new(reference, target).unwrap())
}

fn start(target: Arc<dyn Target>, settings: Settings) -> Run {
    Run::new(geometric(target), settings).unwrap()
}

fn diffusion() -> Diffusion {
    Diffusion { steps: DiffusionSteps::new(3, Integrator::Exponential).unwrap() }
}

/// One run of each family of accelerators.
fn accelerated(settings: &Settings) -> [Run; 5] {
    let gmm = || Arc::new(Gmm::paper(4));
    let diffused = || Arc::new(Diffused::exact(gmm()).unwrap());
    let run = |path: Arc<dyn AnnealingPath>, acceleration: Acceleration| {
        Run::accelerated(path, settings.clone(), acceleration).unwrap()
    };
    let cmcd = FitCmcd { drift: Arc::new(NoDrift), steps: 2, noise: 0.2 };
    [
        run(geometric(gmm()), Acceleration::Fitted(Arc::new(FitAffine { full: false }))),
        run(geometric(gmm()), Acceleration::Fitted(Arc::new(FitAffine { full: true }))),
        run(geometric(gmm()), Acceleration::Fitted(Arc::new(FitMonotone))),
        run(geometric(gmm()), Acceleration::Fitted(Arc::new(cmcd))),
        run(diffused(), Acceleration::Given(Arc::new(diffusion()))),
    ]
}

fn targets() -> [Arc<dyn Target>; 3] {
    [Arc::new(Gmm::paper(10)), Arc::new(Dw4), Arc::new(ManyWell::new(6))]
}

fn settings(criterion: Criterion, step_size: StepSize) -> Settings {
    Settings {
        seed: 3,
        chains: 5,
        ensembles: 5,
        rounds: 3,
        round_iterations: 60,
        round_burn_in: 25,
        criterion,
        collect: 47,
        burn_in: 33,
        iterations: 301,
        thin: 3,
        explorer: Arc::new(Hmc { step_size, ..Hmc::default() }),
        ..Settings::default()
    }
}

fn all_settings() -> [Settings; 3] {
    let adapt = StepSize::Adapt { acceptance: 0.9 };
    let repeated = Arc::new(Repeated::new(Arc::new(Hmc { leapfrog_steps: 1, ..Hmc::default() })));
    [
        Settings { explorer: repeated, ..settings(Criterion::Barrier, adapt) },
        settings(Criterion::Barrier, StepSize::Adapt { acceptance: 0.9 }),
        settings(Criterion::Rejection, StepSize::Fixed(0.05)),
    ]
}

#[test]
fn threads_change_no_bit() {
    for target in targets() {
        for settings in all_settings() {
            let run_on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let mut run = start(target.clone(), settings.clone());
                    run.complete().unwrap();
                    bits_of(&run)
                })
            };
            let one = run_on(1);
            assert!(one.numbers.len() > 500);
            // No `assert_eq`: it would print every bit.
            assert!(one == run_on(2) && one == run_on(7));
        }
    }
}

/// Many coordinates, no density beyond a plane, and a count of calls.
struct Wide {
    wells: ManyWell,
    blocks: bool,
    calls: Arc<AtomicU64>,
}

impl Target for Wide {
    fn dim(&self) -> usize {
        self.wells.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.wells.evaluate(x, out)?;
        let beyond = x.iter_rows().zip(&mut out.log_density).filter(|(x, _)| x[0] > 2.2);
        beyond.for_each(|(_, log_density)| *log_density = f64::NAN);
        Ok(())
    }

    fn takes_blocks(&self, _rows: usize) -> bool {
        self.blocks
    }
}

#[test]
fn blocks_of_rows_change_no_bit() {
    let run_in = |blocks: bool, fit: bool| {
        let calls = Arc::new(AtomicU64::new(0));
        let target = Wide { wells: ManyWell::new(600), blocks, calls: calls.clone() };
        let settings = Settings {
            chains: 19,
            ensembles: 2,
            iterations: 60,
            ..settings(Criterion::Barrier, StepSize::Adapt { acceptance: 0.9 })
        };
        let acceleration = match fit {
            true => Acceleration::Fitted(Arc::new(FitAffine { full: false })),
            false => Acceleration::None,
        };
        let mut run = Run::accelerated(geometric(Arc::new(target)), settings, acceleration).unwrap();
        run.complete().unwrap();
        (bits_of(&run), run.results().bad.clone(), calls.load(Ordering::Relaxed))
    };
    for fit in [false, true] {
        let ((whole, bad, few), (blocks, bad_too, many)) = (run_in(false, fit), run_in(true, fit));
        assert!(whole == blocks && many > 2 * few, "{few} calls, and {many}");
        assert!(bad.0 > 0 && bad == bad_too);
    }
}

#[test]
fn the_way_a_run_is_cut_changes_no_bit() {
    for settings in all_settings() {
        let whole = {
            let mut run = start(Arc::new(Gmm::paper(10)), settings.clone());
            run.complete().unwrap();
            bits_of(&run)
        };
        for blocks in [vec![1], vec![7, 1, 13, 2], vec![0, 64, 3]] {
            let mut run = start(Arc::new(Gmm::paper(10)), settings.clone());
            for &block in blocks.iter().cycle() {
                if run.progress().0 == Stage::Finished {
                    break;
                }
                run.advance(block).unwrap();
            }
            assert!(whole == bits_of(&run), "{:?}, blocks of {blocks:?}", settings.criterion);
        }
    }
}

#[test]
fn threads_and_cuts_change_no_bit_of_accelerated_runs() {
    for settings in all_settings() {
        let run_on = |threads: usize, blocks: &[u64]| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                accelerated(&settings).map(|mut run| {
                    for &block in blocks.iter().cycle() {
                        if run.progress().0 == Stage::Finished {
                            break;
                        }
                        run.advance(block).unwrap();
                    }
                    bits_of(&run)
                })
            })
        };
        let one = run_on(1, &[u64::MAX]);
        assert!(one == run_on(2, &[u64::MAX]));
        assert!(one == run_on(7, &[11, 1, 6]));
    }
}

/// The seed does matter.
#[test]
fn another_seed_is_another_run() {
    let run = |seed: u64| {
        let settings = Settings { seed, ..all_settings()[0].clone() };
        let mut run = start(Arc::new(Normal::isotropic(2, 4.0)), settings);
        run.complete().unwrap();
        bits_of(&run).numbers
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_batch_of_ladders_is_the_ladders_one_by_one() {
    let (chains, copies, iterations) = (6, 4, 200);
    let plain = targets().map(|target| (geometric(target), false));
    let diffused: Arc<dyn AnnealingPath> = Arc::new(Diffused::exact(Arc::new(Gmm::paper(5))).unwrap());
    for (path, is_diffused) in plain.into_iter().chain([(diffused, true)]) {
        let dim = path.dim();
        let sizes = StepSizes::per_chain((0..chains).map(|n| 0.2 - 0.03 * n as f64).collect(), dim);
        let hmc = Hmc::with_sizes(2, 3, sizes, 0.2);
        let mut sampler = sampler(path, Schedule::uniform(chains), hmc, Identity);
        sampler.streams = Streams::new(8);
        if is_diffused {
            sampler.accelerator = Arc::new(diffusion());
        }
        let run = |first: usize, copies: usize| {
            let mut ensemble =
                Ensemble::start(&*sampler.path, &sampler.streams, &sampler.schedule, first, copies).unwrap();
            let mut work = Workspace::new(&ensemble);
            let mut record = SamplingRecord::new(&ensemble, iterations, 1);
            for t in 1..=iterations {
                iterate(t, &mut ensemble, &sampler, &mut work, &mut record).unwrap();
            }
            (ensemble, record)
        };
        let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let (together, all) = run(0, copies);
        for parts in [[1, 1, 1, 1].as_slice(), &[3, 1], &[1, 2, 1]] {
            let mut first = 0;
            for &part in parts {
                let (alone, one) = run(first, part);
                for copy in 0..part {
                    let place = first + copy;
                    assert_eq!(alone.index[copy], together.index[place]);
                    assert_eq!(one.round_trips[copy], all.round_trips[place]);
                    assert_eq!(bits(&one.draws[copy].x), bits(&all.draws[place].x));
                    assert_eq!(bits(&one.draws[copy].log_density), bits(&all.draws[place].log_density));
                    for pair in 0..chains - 1 {
                        let one = &one.counts.pairs[copy * (chains - 1) + pair];
                        let all = &all.counts.pairs[place * (chains - 1) + pair];
                        assert_eq!(bits(&one.forward), bits(&all.forward));
                        assert_eq!(bits(&one.backward), bits(&all.backward));
                        assert_eq!((one.accepted, one.proposed), (all.accepted, all.proposed));
                    }
                    for chain in 0..chains {
                        let one = one.counts.local[copy * chains + chain];
                        assert_eq!(one, all.counts.local[place * chains + chain]);
                    }
                }
                first += part;
            }
        }
    }
}
