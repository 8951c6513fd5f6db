//! Traces: the same bits for any number of threads and any cut of a run, and true to the run.

use std::sync::Arc;
use sterna::acceleration::Acceleration;
use sterna::explorers::Hmc;
use sterna::paths::Geometric;
use sterna::run::{Run, Settings, Stage};
use sterna::targets::{Gmm, Normal};
use sterna::trace::{LadderTrace, RoundTrace};
use sterna::{Batch, Evaluation, Target};

fn settings() -> Settings {
    Settings {
        explorer: std::sync::Arc::new(Hmc {
            leapfrog_steps: 2,
            step_size: sterna::explorers::StepSize::Adapt { acceptance: 0.9 },
            ..Hmc::default()
        }),
        seed: 5,
        chains: 14,
        ensembles: 6,
        rounds: 4,
        round_iterations: 60,
        round_burn_in: 20,
        burn_in: 5,
        iterations: 5003,
        thin: 7,
        ..Settings::default()
    }
}

fn run(threads: usize, cut: u64) -> Run {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut run = Run::new(Arc::new(Geometric::from_standard_normal(Gmm::paper(2))), settings()).unwrap();
        while run.progress().0 != sterna::run::Stage::Finished {
            run.advance(cut).unwrap();
        }
        run
    })
}

fn traces(run: &Run) -> (Vec<LadderTrace>, Vec<RoundTrace>) {
    (run.traces().cloned().collect(), run.rounds().to_vec())
}

/// As text, since NaN differs from itself.
fn warmup(run: &Run) -> String {
    format!("{:?}", run.warmup().collect::<Vec<_>>())
}

#[test]
fn threads_and_cuts_change_no_bit() {
    let whole = run(1, u64::MAX);
    for other in [run(3, u64::MAX), run(2, 17)] {
        assert!(traces(&whole) == traces(&other) && warmup(&whole) == warmup(&other));
    }
}

#[test]
fn the_time_before_sampling_is_remembered() {
    let run = run(2, u64::MAX);
    let ladders: Vec<_> = run.warmup().collect();
    assert_eq!(ladders.len(), 6);
    for (iterations, draws) in &ladders {
        // Four rounds of 60, and 5 of burn-in: few enough to be kept one by one.
        assert_eq!(*iterations, (1..=245).collect::<Vec<u32>>());
        let mut out = Evaluation::zeros(245, 2);
        Gmm::paper(2).evaluate(&Batch::from_vec(2, draws.x.clone()), &mut out).unwrap();
        assert_eq!(draws.log_density, out.log_density);
        assert!(draws.acceptance.iter().all(|a| (0.0..=1.0).contains(a)) && !draws.diverging.contains(&true));
        assert!(draws.replica.iter().all(|&replica| replica < 14));
    }
    assert_ne!(ladders[0].1.x, ladders[5].1.x);
}

/// A fit lays ladders out anew, with other numbers of chains: what was before is not forgotten. Saved and restored in each stage, it
/// is the same.
#[test]
fn ladders_that_are_laid_out_anew_remember() {
    let ground = || Arc::new(Geometric::from_standard_normal(Normal::isotropic(2, 0.04)));
    let settings = Settings { burn_in: 30, iterations: 100, ..Settings::fitted() };
    let mut whole = Run::from_anchor(ground(), settings.clone(), Acceleration::None).unwrap();
    whole.complete().unwrap();
    let (iterations, draws) = whole.warmup().next().unwrap();
    // Several rounds, which have 16, 32, 64, … iterations, and burn-in.
    let (rounds, stride) = (whole.rounds().len() as u32, iterations[0]);
    assert!(rounds > 1 && iterations.iter().enumerate().all(|(i, &t)| t == (i as u32 + 1) * stride));
    assert_eq!(*iterations.last().unwrap(), ((16 << rounds) - 16 + 30) / stride * stride);
    assert_eq!(draws.x.len(), 2 * iterations.len());
    let mut cut = Run::from_anchor(ground(), settings.clone(), Acceleration::None).unwrap();
    while cut.progress().0 != Stage::Finished {
        cut.advance(40).unwrap();
        let saved = cut.save().unwrap();
        cut = Run::restore_from_anchor(ground(), settings.clone(), Acceleration::None, &saved).unwrap();
    }
    assert_eq!(warmup(&whole), warmup(&cut));
}

#[test]
fn traces_are_bounded_and_true() {
    let run = run(2, u64::MAX);
    let (ladders, rounds) = traces(&run);
    assert_eq!((ladders.len(), rounds.len()), (6, 4));
    let first = &ladders[0];
    assert_eq!(first.replicas, [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 13]);
    assert_eq!(first.start.len(), 12 * 2048);
    // In an iteration a replica moves by one chain at most, and two replicas never share one.
    for (before, after) in first.start.chunks(12).zip(first.start.chunks(12).skip(1)) {
        assert!(before.iter().zip(after).all(|(a, b)| a.abs_diff(*b) <= 1));
        assert!((0..12).all(|i| !after[..i].contains(&after[i])));
    }
    // Both memories agree where both speak.
    for (time, row) in first.index.iter().take_while(|(time, _)| *time <= 2048) {
        assert_eq!(row, &first.start[12 * (time as usize - 1)..12 * time as usize]);
    }
    let trips = LadderTrace::total_round_trips(ladders.iter());
    assert!(trips.len() <= 512 && trips.windows(2).all(|w| w[0].1 <= w[1].1));
    assert!(trips.last().unwrap().1 <= run.round_trips() && run.round_trips() > 0);
    // Energies of the target chain are those of its draws: both keep iteration 56, 112, …
    let energies = first.energies.as_ref().unwrap();
    let draws = &run.records().next().unwrap().draws[0];
    assert_eq!(energies.stride(), 8);
    for (time, row) in energies.iter().filter(|(time, _)| time.is_multiple_of(7)) {
        assert_eq!(row[13], draws.log_density[time as usize / 7 - 1]);
    }
    assert!(ladders[3].energies.is_some() && ladders[4].energies.is_none());
    assert!(ladders[1..].iter().all(|ladder| ladder.replicas.is_empty() && ladder.start.is_empty()));
    assert!(rounds.iter().all(|r| r.acceptance[0].is_none() && r.acceptance[1].is_some()));
    assert_eq!(rounds[0].schedule, sterna::Schedule::uniform(14).betas());
}

#[test]
fn traces_read_back_as_themselves() {
    let whole = traces(&run(1, u64::MAX));
    let text = serde_json::to_string(&whole).unwrap();
    assert!(serde_json::from_str::<(Vec<LadderTrace>, Vec<RoundTrace>)>(&text).unwrap() == whole);
}
