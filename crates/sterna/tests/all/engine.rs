//! An engine in place of the cores: what it writes down becomes the same run, to the bit, however it is cut.

use std::sync::Arc;
use sterna::acceleration::{Acceleration, FitCmcd};
use sterna::accelerators::NoDrift;
use sterna::engine::{BadProposal, Engine, Frozen, Journal, Made, MakeEngine, Page};
use sterna::explorers::{Hmc, StepSize};
use sterna::path::AnnealingPath;
use sterna::paths::{Geometric, Reference};
use sterna::run::{Run, Settings, Stage};
use sterna::targets::Gmm;
use sterna::{
    Batch, Ensemble, Error, Evaluation, Recorder, Result, Sampler, Step, Target, Workspace, iterate,
};
use sterna_testkit::Together;

/// A mixture that answers no number beyond a wall.
struct Walled(Gmm);

impl Target for Walled {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        self.0.evaluate(x, out)?;
        for i in (0..x.rows()).filter(|&i| x.row(i)[3] > 2.4) {
            out.log_density[i] = f64::NAN;
        }
        Ok(())
    }
}

/// The library's own iterations, written down; so many at a time.
struct Scribe {
    sampler: Sampler,
    block: u64,
    moves: u32,
    evaluations: u64,
}

impl Engine for Scribe {
    fn advance(&mut self, done: u64, most: u64, ladders: &[&Ensemble], journal: &mut Journal) -> Result<()> {
        let mut ladders: Vec<Ensemble> = ladders.iter().map(|&ladder| ladder.clone()).collect();
        let mut work: Vec<Workspace> = ladders.iter().map(Workspace::new).collect();
        assert_eq!(ladders.iter().map(Ensemble::copies).sum::<usize>(), journal.ladders());
        let first = ladders[0].key(0);
        journal.clear();
        journal.moves = self.moves;
        journal.evaluations = self.evaluations;
        for t in done + 1..=done + most.min(self.block) {
            for (ensemble, work) in ladders.iter_mut().zip(&mut work) {
                iterate(t, ensemble, &self.sampler, work, &mut Writer(journal, first))?;
            }
        }
        for ensemble in &ladders {
            for row in 0..ensemble.points.rows() {
                let (to, points) = ((ensemble.key(row) - first) as usize, &ensemble.points);
                journal.x.row_mut(to).copy_from_slice(points.x.row(row));
                journal.target.score.row_mut(to).copy_from_slice(points.target.score.row(row));
                journal.target.log_density[to] = points.target.log_density[row];
            }
        }
        Ok(())
    }
}

/// Into a journal, whose first row has this key.
struct Writer<'a>(&'a mut Journal, u32);

impl Recorder for Writer<'_> {
    fn record(&mut self, step: &Step) -> Result<()> {
        let (of, ensemble) = (self.0.page(), step.ensemble);
        for copy in 0..ensemble.copies() {
            let mut page = vec![f64::NAN; of.len()];
            for row in copy * of.chains..(copy + 1) * of.chains {
                let (chain, moves) = (step.explored_chain[row], step.moves[row]);
                page[of.acceptance()][chain] = moves.acceptance;
                page[of.bad()][chain] = f64::from(moves.bad);
                page[of.log_target()][row % of.chains] = ensemble.points.target.log_density[row];
            }
            for (k, swap) in step.swaps.iter().filter(|swap| swap.copy == copy).enumerate() {
                let accepted = f64::from(u8::from(swap.accepted));
                page[of.swap(k)].copy_from_slice(&[
                    swap.log_forward,
                    swap.log_backward,
                    swap.rejection,
                    accepted,
                ]);
            }
            page[of.draw()].copy_from_slice(ensemble.points.x.row(ensemble.row(copy, of.chains - 1)));
            self.0.pages.extend(page);
        }
        if let Some((_, row, point)) = step.bad_point {
            self.0.bad_points.push(BadProposal {
                iteration: step.iteration,
                replica: (ensemble.key(row) - self.1) as usize,
                point: point.to_vec(),
            });
        }
        Ok(())
    }
}

/// Makes scribes.
struct School {
    block: u64,
    evaluations: u64,
}

impl MakeEngine for School {
    fn make(&self, frozen: &Frozen) -> Result<Made> {
        assert_eq!(frozen.fitted.is_some(), frozen.sampler.accelerator.steps() > 0);
        Ok(Made::Engine(Box::new(Scribe {
            sampler: frozen.sampler.clone(),
            block: self.block,
            moves: frozen.sampler.explorer.as_hmc().expect("Hamiltonian moves").steps as u32,
            evaluations: self.evaluations,
        })))
    }
}

/// There is nobody to be had.
struct Closed;

impl MakeEngine for Closed {
    fn make(&self, _frozen: &Frozen) -> Result<Made> {
        Ok(Made::Replaced("nobody is there".into()))
    }
}

fn settings(chains: usize, ensembles: usize) -> Settings {
    Settings {
        explorer: std::sync::Arc::new(Hmc {
            steps: 2,
            leapfrog_steps: 2,
            step_size: StepSize::Adapt { acceptance: 0.9 },
            ..Hmc::default()
        }),
        seed: 3,
        chains,
        ensembles,
        rounds: 2,
        round_iterations: 40,
        round_burn_in: 15,
        collect: 37,
        burn_in: 23,
        iterations: 151,
        thin: 3,
        ..Settings::default()
    }
}

/// Path and acceleration, made anew each time.
fn parts(accelerated: bool) -> (Arc<dyn AnnealingPath>, Acceleration) {
    let path = Geometric::new(Reference::standard_normal(4), Arc::new(Walled(Gmm::paper(4)))).unwrap();
    let cmcd = FitCmcd { drift: Arc::new(NoDrift), steps: 2, noise: 0.2 };
    let fitted = Acceleration::Fitted(Arc::new(cmcd));
    (Arc::new(path), if accelerated { fitted } else { Acceleration::None })
}

fn start(accelerated: bool, settings: &Settings) -> Run {
    let (path, acceleration) = parts(accelerated);
    Run::accelerated(path, settings.clone(), acceleration).unwrap()
}

fn restore(accelerated: bool, settings: &Settings, saved: &[u8]) -> Run {
    let (path, acceleration) = parts(accelerated);
    Run::restore(path, settings.clone(), acceleration, saved).unwrap()
}

fn school(block: u64) -> Arc<School> {
    Arc::new(School { block, evaluations: 0 })
}

/// All that a run answers, as text: every number is printed so that it reads back as itself.
fn answers(run: &Run) -> String {
    let draws: Vec<_> = run.records().flat_map(|r| &r.draws).collect();
    let traces: Vec<_> = run.traces().collect();
    format!("{:?} {draws:?} {traces:?}", run.results())
}

fn on<T: Send>(threads: usize, job: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(job)
}

#[test]
fn what_an_engine_writes_down_is_the_same_run() {
    let mut bad = 0;
    for (accelerated, chains, ensembles) in [(false, 5, 3), (false, 2, 1), (true, 4, 2), (true, 5, 1)] {
        let settings = settings(chains, ensembles);
        let by_cores = on(2, || {
            let mut run = start(accelerated, &settings);
            run.complete().unwrap();
            bad += run.results().bad.0;
            run.save().unwrap()
        });
        // All that a run is, records and replicas: whatever the length of a journal.
        for block in [1, 7, 64] {
            let by_engine = on(2, || {
                let mut run = start(accelerated, &settings).with_engine(school(block)).unwrap();
                run.complete().unwrap();
                run.save().unwrap()
            });
            assert!(by_cores == by_engine, "{chains} chains, {ensembles} ladders, {block} at a time");
        }
    }
    assert!(bad > 0, "the wall was never met");
}

#[test]
fn engines_of_several_ranks_move_the_ladders_of_one() {
    let settings = settings(5, 3);
    let mut whole = start(true, &settings);
    whole.complete().unwrap();
    let by_cores = answers(&whole);
    for ranks in [2, 3] {
        let all = Together::run(ranks, |exchange| {
            let run = start(true, &settings).with_engine(school(16)).unwrap();
            let mut run = run.among(exchange.clone()).unwrap();
            run.complete().unwrap();
            run.gather().unwrap();
            (exchange.rank() == 0).then(|| answers(&run))
        });
        assert!(all[0].as_ref() == Some(&by_cores), "{ranks} ranks");
    }
    // Where one has none, the cores work on all.
    let all = Together::run(2, |exchange| {
        let maker: Arc<dyn MakeEngine> = if exchange.rank() == 1 { Arc::new(Closed) } else { school(16) };
        let mut run = start(false, &settings).with_engine(maker).unwrap().among(exchange).unwrap();
        run.complete().unwrap();
        run.engine_replaced().map(String::from)
    });
    assert_eq!(all, [Some("nobody is there".to_string()), Some("nobody is there".to_string())]);
    Together::run(4, |exchange| {
        let run = start(false, &settings).with_engine(school(16)).unwrap();
        let error = run.among(exchange).map(drop).unwrap_err().to_string();
        assert!(error.contains("whole ladders"), "{error}");
    });
}

#[test]
fn an_engine_goes_on_from_a_saved_run() {
    let settings = settings(5, 3);
    let mut whole = start(true, &settings).with_engine(school(16)).unwrap();
    whole.complete().unwrap();
    let mut saved = on(3, || start(true, &settings).save().unwrap());
    for (cut, threads) in [13, 5, 40, 1].into_iter().zip([2, 3, 1, 3]).cycle() {
        let found;
        (saved, found) = on(threads, || {
            let run = restore(true, &settings, &saved);
            let mut run = run.with_engine(school(16)).unwrap();
            run.advance(cut).unwrap();
            let finished = run.progress().0 == Stage::Finished;
            (run.save().unwrap(), finished.then(|| answers(&run)))
        });
        if let Some(found) = found {
            assert!(found == answers(&whole));
            break;
        }
    }
}

#[test]
fn the_evaluations_of_an_engine_are_counted() {
    let settings = settings(4, 1);
    let evaluations = |maker: Arc<dyn MakeEngine>| {
        let mut run = start(false, &settings).with_engine(maker).unwrap();
        run.complete().unwrap();
        let results = restore(false, &settings, &run.save().unwrap()).results();
        (results.evaluations, results.sampling_evaluations)
    };
    let (all, sampling) = evaluations(school(50));
    // Burn-in is two journals, sampling four.
    let counted = evaluations(Arc::new(School { block: 50, evaluations: 1000 }));
    assert_eq!(counted, (all + 6000, sampling + 4000));
}

#[test]
fn the_cores_stand_in_and_say_why() {
    let settings = settings(4, 2);
    let mut plain = start(false, &settings);
    plain.complete().unwrap();
    let mut run = start(false, &settings).with_engine(Arc::new(Closed)).unwrap();
    assert_eq!(run.engine_replaced(), None);
    run.complete().unwrap();
    assert_eq!(run.engine_replaced(), Some("nobody is there"));
    assert!(answers(&run) == answers(&plain));
    // They go on with what they have begun.
    let longer = Settings { iterations: 200, ..settings };
    let run = restore(false, &longer, &run.save().unwrap());
    let mut run = run.with_engine(school(8)).unwrap();
    run.complete().unwrap();
    assert_eq!(run.engine_replaced(), Some("nobody is there"));
}

#[test]
fn trajectories_are_kept_by_the_cores() {
    let settings = Settings { trajectories: Some(10), ..settings(4, 2) };
    let refused = start(false, &settings).with_engine(school(8));
    assert!(matches!(refused, Err(Error::Setting { setting: "Settings.trajectories", .. })));
}

#[test]
fn a_page_has_a_place_for_everything() {
    for chains in 2..9 {
        let page = Page { chains, dim: 3 };
        let swaps = (chains - 1).div_ceil(2);
        let parts = [page.acceptance(), page.bad(), page.log_target()];
        let parts = parts.into_iter().chain((0..swaps).map(|k| page.swap(k))).chain([page.draw()]);
        let all: Vec<usize> = parts.flatten().collect();
        assert_eq!(all, (0..page.len()).collect::<Vec<_>>(), "{chains} chains");
    }
}
