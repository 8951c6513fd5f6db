//! `auto`: what is chosen, that it follows from counts alone, and that a mixture of ways is each of them.

mod back;
mod first_block;
mod learning;

use crate::resume::{answers, on};
use std::sync::Arc;
use sterna::acceleration::{
    Acceleration, Candidate, Choice, Choose, Collected, Fit, FitAffine, FitAtOnce, Fitted, Rate, SwapsSeen,
    Verdict,
};
use sterna::accelerator::{Accelerator, Crossing, Direction, Journey};
use sterna::accelerators::{Cmcd, CmcdSteps, FlowAccelerator, Identity, InTurn, NoDrift, PerPair};
use sterna::call::{Call, Scratch};
use sterna::path::AnnealingPath;
use sterna::paths::Geometric;
use sterna::run::{Run, Settings, Stage};
use sterna::streams::Phase;
use sterna::targets::{Gmm, Normal};
use sterna::transports::Affine;
use sterna::{Batch, Evaluation, Result, Schedule, Streams, Target};
use sterna_testkit::broken::{Broken, Fault};
use sterna_testkit::{ExactLadder, FALSE_ALARM, GaussianLadder, Together, check_accelerator, seed};

fn draws(ladder: &dyn ExactLadder, beta: f64, streams: &Streams, count: u32) -> Batch {
    let dim = ladder.path().dim();
    let mut x = Batch::zeros(count as usize, dim);
    (0..count).for_each(|i| ladder.draw(beta, &mut streams.row(Phase::Check, 0, i), x.row_mut(i as usize)));
    x
}

/// Three narrow coordinates, which local moves explore at once, and one with two wells between which only round trips lead.
struct Wells;

const PRECISION: f64 = 1e4;
const WELL: f64 = 0.3;

impl Target for Wells {
    fn dim(&self) -> usize {
        4
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        for i in 0..x.rows() {
            let (x, score) = (x.row(i), out.score.row_mut(i));
            let narrow: f64 = x[..3].iter().map(|x| x * x).sum();
            let wells = [2.0, -2.0].map(|at: f64| -0.5 * ((x[3] - at) / WELL).powi(2));
            let top = wells[0].max(wells[1]);
            let [a, b] = wells.map(|well| (well - top).exp());
            out.log_density[i] = -0.5 * PRECISION * narrow + top + (a + b).ln();
            score.iter_mut().zip(x).for_each(|(score, x)| *score = -PRECISION * x);
            score[3] = (2.0 * (a - b) / (a + b) - x[3]) / (WELL * WELL);
        }
        Ok(())
    }
}

fn wells_log_z() -> f64 {
    let tau = std::f64::consts::TAU;
    1.5 * (tau / PRECISION).ln() + (2.0 * WELL * tau.sqrt()).ln()
}

pub fn wells() -> Arc<dyn AnnealingPath> {
    geometric(Wells)
}

pub fn settings() -> Settings {
    Settings {
        chains: 5,
        ensembles: 5,
        rounds: 3,
        round_iterations: 200,
        round_burn_in: 20,
        collect: 200,
        burn_in: 31,
        iterations: 2000,
        ..Settings::default()
    }
}

fn affine(name: &str, full: bool) -> Candidate {
    Candidate { name: name.into(), fit: Arc::new(FitAffine { full }), operations: 10.0 }
}

pub fn choose(path: &Arc<dyn AnnealingPath>, evaluation: f64) -> Choose {
    let candidates = vec![affine("diagonal", false), affine("full", true)];
    Choose { path: path.clone(), candidates, trainees: Vec::new(), evaluation, seed: 1, most_chains: None }
}

pub fn run_of(choose: Choose, settings: Settings) -> Run {
    Run::accelerated(choose.path.clone(), settings, Acceleration::Fitted(Arc::new(choose))).unwrap()
}

fn geometric(target: impl Target + 'static) -> Arc<dyn AnnealingPath> {
    Arc::new(Geometric::from_standard_normal(target))
}

fn chosen(path: Arc<dyn AnnealingPath>, evaluation: f64, settings: Settings) -> (Choice, Run) {
    let mut run = run_of(choose(&path, evaluation), settings);
    run.complete().unwrap();
    (run.fit_report().unwrap().choice.clone().unwrap(), run)
}

#[test]
fn what_pays_is_chosen_and_what_does_not_is_left() {
    let (choice, run) = chosen(wells(), 1000.0, settings());
    assert!(choice.of_pair.iter().all(|way| *way > 0) && choice.gain > 1.1, "{choice:?}");
    for (affine, plain) in choice.weighed[1].rejection_rates.iter().zip(&choice.weighed[0].rejection_rates) {
        assert!(affine < plain, "{choice:?}");
    }
    assert_eq!((choice.weighed[0].evaluations, choice.weighed[1].evaluations), (0.0, 1.0));
    let results = run.results();
    let off = results.log_z.bar - wells_log_z();
    assert!(off.abs() < 5.0 * results.log_z.standard_error, "{off}: {:?}", results.log_z);
    // Without the wells local moves bring the draws, and no round trip is needed.
    let (choice, _) = chosen(geometric(Normal::isotropic(4, 20.0)), 1000.0, settings());
    assert_eq!(choice.of_pair, [0; 4]);
    assert!(choice.weighed.is_empty() && choice.reason.unwrap().contains("times the draws"));
    // The same where a journey's own work outweighs what it saves.
    let (choice, _) = chosen(wells(), 1e-3, settings());
    assert_eq!((&choice.of_pair[..], choice.gain), (&[0; 4][..], 1.0));
    assert!(choice.weighed[1].gain < 1.0 && choice.reason.is_none(), "{choice:?}");
    // A mixture of ways is at least as good as each of them alone, whatever they are worth among modes.
    let (choice, _) = chosen(geometric(Gmm::paper(3)), 1000.0, settings());
    let best = choice.weighed.iter().map(|way| way.gain).fold(0.0, f64::max);
    assert!(choice.gain >= best || (choice.gain == 1.0 && best < 1.1), "{choice:?}");
}

#[test]
fn where_there_is_nothing_to_gain_nothing_is_tried() {
    let (choice, run) = chosen(geometric(Normal::isotropic(4, 1.01)), 1000.0, settings());
    assert!(choice.weighed.is_empty() && choice.reason.unwrap().contains("draws"));
    assert_eq!((choice.of_pair, choice.evaluations), (vec![0; 4], 0));
    // It went on as plain sampling does, to the bit.
    let mut plain = Run::new(geometric(Normal::isotropic(4, 1.01)), settings()).unwrap();
    plain.complete().unwrap();
    assert_eq!(format!("{:?}", plain.results()), format!("{:?}", run.results()));
    let short = Settings { iterations: 500, ..settings() };
    let (choice, _) = chosen(wells(), 1000.0, short);
    assert!(choice.reason.unwrap().contains("in 500 iterations"));
}

/// What was tried in vain leaves no trace but its cost: the run goes on from where tuning had left it.
#[test]
fn a_run_that_stays_plain_has_the_bits_of_plain_swaps() {
    let (choice, run) = chosen(wells(), 1e-3, settings());
    assert!(choice.reason.is_none() && choice.of_pair == [0; 4]);
    let mut plain = Run::new(wells(), settings()).unwrap();
    plain.complete().unwrap();
    let (ours, theirs) = (run.results(), plain.results());
    assert!(ours.evaluations > theirs.evaluations);
    assert_eq!(format!("{:?}", ours.log_z), format!("{:?}", theirs.log_z));
    assert_eq!((ours.schedule, ours.rejection_rates), (theirs.schedule, theirs.rejection_rates));
    let draws = |run: &Run| format!("{:?}", run.records().map(|record| &record.draws).collect::<Vec<_>>());
    assert!(draws(&run) == draws(&plain));
    // However it is cut.
    has_the_same_bits_however_it_is_cut(|| choose(&wells(), 1e-3), &[2]);
}

/// Kills at any place, threads and ranks change nothing; the stages that a run was seen in.
fn has_the_same_bits_however_it_is_cut(
    choose: impl Fn() -> Choose + Sync,
    ranks: &[usize],
) -> Vec<(Stage, u64, u64)> {
    let start = || run_of(choose(), settings());
    let whole = {
        let mut run = start();
        run.complete().unwrap();
        answers(&run)
    };
    let mut saved = start().save().unwrap();
    let mut stages = Vec::new();
    for (block, threads) in [(97, 2), (1, 5), (41, 1)].into_iter().cycle() {
        let (next, stage, found) = on(threads, || {
            let choose = choose();
            let acceleration = Acceleration::Fitted(Arc::new(choose.clone()));
            let mut run = Run::restore(choose.path, settings(), acceleration, &saved).unwrap();
            // Between any two judgements, too.
            let block = if run.progress().0 == Stage::Fitting { 1 } else { block };
            run.advance(block).unwrap();
            let stage = run.progress();
            (run.save().unwrap(), stage, (stage.0 == Stage::Finished).then(|| answers(&run)))
        });
        saved = next;
        stages.push(stage);
        if let Some(found) = found {
            assert!(found == whole);
            break;
        }
    }
    for &ranks in ranks {
        let all = Together::run(ranks, |exchange| {
            let mut run = start().among(exchange.clone()).unwrap();
            run.complete().unwrap();
            run.gather().unwrap();
            (exchange.rank() == 0).then(|| answers(&run))
        });
        assert!(all[0].as_ref() == Some(&whole), "{ranks} ranks");
    }
    stages
}

#[test]
fn a_choice_has_the_same_bits_however_it_is_cut() {
    let stages = has_the_same_bits_however_it_is_cut(|| choose(&geometric(Gmm::paper(3)), 300.0), &[2, 3]);
    for done in 0..3 {
        assert!(stages.contains(&(Stage::Fitting, done, 4)), "{done}: {stages:?}");
    }
}

/// Where maps carry swaps well, fewer chains do; the law stays, and so do all bits however it is cut.
#[test]
fn as_many_chains_as_make_draws_cheapest() {
    let resizing = || Choose { most_chains: Some(10), ..choose(&wells(), 1000.0) };
    let mut run = run_of(resizing(), Settings { iterations: 6000, ..settings() });
    run.complete().unwrap();
    let choice = run.fit_report().unwrap().choice.clone().unwrap();
    let (moved, now) = (choice.moved.as_ref().unwrap(), &run.sampler().schedule);
    assert_eq!((&moved.to, moved.from.chains()), (now, 5));
    assert!(now.chains() < 5 && choice.of_pair.len() == now.pairs(), "{choice:?}");
    let results = run.results();
    assert_eq!(results.rejection_rates.len(), now.pairs());
    let off = results.log_z.bar - wells_log_z();
    assert!(off.abs() < 5.0 * results.log_z.standard_error, "{off}: {:?}", results.log_z);
    // Seven ranks share out rows of five ladders.
    has_the_same_bits_however_it_is_cut(resizing, &[2, 7]);
}

/// Fits nothing that the next sample would know: a map that is far off.
struct FarOff;

impl FitAtOnce for FarOff {
    fn fit(&self, collected: &Collected) -> Result<Arc<dyn Accelerator>> {
        let betas = collected.schedule.betas();
        let moments = (0..betas.len()).map(|n| (vec![50.0 * n as f64; 4], vec![1.0; 4])).collect();
        Ok(Arc::new(FlowAccelerator::new(Arc::new(Affine::diagonal(betas.to_vec(), moments)?))))
    }
}

/// What cannot be fitted is refused with its reason, and what harms carries no pair.
#[test]
fn bad_candidates_carry_nothing() {
    let path = wells();
    let far_off = Candidate { name: "far off".into(), fit: Arc::new(FarOff), operations: 0.0 };
    let mut run = run_of(Choose { candidates: vec![far_off], ..choose(&path, 1e3) }, settings());
    run.complete().unwrap();
    let choice = run.fit_report().unwrap().choice.clone().unwrap();
    assert_eq!(choice.of_pair, [0; 4]);
    assert!(choice.weighed[1].rejection_rates.iter().all(|r| *r > 0.99), "{choice:?}");

    let few = Settings { ensembles: 2, collect: 200, iterations: 4000, chains: 3, ..settings() };
    let (choice, _) = chosen(geometric(Normal::isotropic(500, 3.0)), 1e3, few);
    let refused = choice.weighed[2].refused.as_ref().unwrap();
    assert!(refused.contains("positive definite") && !choice.of_pair.contains(&2), "{choice:?}");
}

/// A later round knows what earlier journeys asked for, and counts none of it as local moves.
#[test]
fn no_journey_is_counted_twice() {
    let settings = Settings { fits: 2, iterations: 20_000, ..settings() };
    let (choice, run) = chosen(wells(), 1000.0, settings.clone());
    assert!(choice.of_pair.iter().any(|way| *way > 0), "{choice:?}");
    let plain = run.plain_stage().unwrap();
    let each = plain.evaluations as f64 / (plain.iterations * settings.ensembles as u64) as f64;
    let later = choice.prospect.evaluations_each();
    assert!(choice.prospect.iterations > plain.iterations, "it is of the second round: {choice:?}");
    assert!((later / each - 1.0).abs() < 0.02, "{later} in the second round, {each} in the first");
}

/// What a stretch of a run may have shown: rejections of carried and of plain swaps, both known to a hundredth.
fn seen(carried: &[f64], plain: &[f64]) -> SwapsSeen {
    let rate = |mean: &f64| Rate { mean: *mean, standard_error: 0.01, swaps: 500 };
    let [carried, plain] = [carried, plain].map(|rates| rates.iter().map(rate).collect());
    SwapsSeen { iterations: 2000, carried, plain }
}

fn stays(verdict: Verdict) -> Fitted {
    match verdict {
        Verdict::Here(fitted) => fitted,
        Verdict::Back(..) => panic!("chains have never moved"),
    }
}

/// Pairs whose swaps the first block saw rejected too often are swapped plainly; records tell the same.
#[test]
fn a_second_look_takes_pairs_back() {
    let path = wells();
    let fit = choose(&path, 1000.0);
    let (_, run) = chosen(path.clone(), 1000.0, settings());
    let (fitted, schedule) = (run.fitted().unwrap(), &run.plain_stage().unwrap().schedule);
    // As it was before chains moved.
    let useless = seen(&[0.99; 4], &[0.9; 4]);
    let fitted = match fit.look_again(fitted, &run.sampler().schedule, &useless).unwrap() {
        Verdict::Back(_, before) => before,
        Verdict::Here(_) => fitted.clone(),
    };
    let of_pair = fitted.report.choice.as_ref().unwrap().of_pair.clone();
    let look = |carried: &[f64]| stays(fit.look_again(&fitted, schedule, &seen(carried, &[0.9; 4])).unwrap());
    let first_block = |fitted: &Fitted| fitted.report.choice.as_ref().unwrap().first_block.clone().unwrap();
    let same = look(&[0.1; 4]);
    assert_eq!(same.report.choice.as_ref().unwrap().of_pair, of_pair);
    assert_eq!((first_block(&same).given_back, first_block(&same).iterations), (Vec::new(), 2000));
    let changed = look(&[0.1, 0.97, 0.1, 0.1]);
    let mut wanted = of_pair;
    wanted[1] = 0;
    assert_eq!(changed.report.choice.as_ref().unwrap().of_pair, wanted);
    assert_eq!(first_block(&changed).given_back, [1]);
    let again = fit.rebuild(&changed.record).unwrap();
    let streams = Streams::new(5);
    let x = draws(&GaussianLadder::uneven(4), 0.5, &streams, 20);
    let weights = |accelerator: &dyn Accelerator, pair| {
        let crossing = Crossing { accelerator, path: &*path, schedule, streams: &streams };
        let start = crossing.start(pair, Direction::Forward, x.clone()).unwrap();
        // Not the iterations in which all swaps are plain.
        crossing.cross(pair, Direction::Forward, 2, start).unwrap().log_weight
    };
    for pair in 1..=4 {
        assert_eq!(weights(&*changed.accelerator, pair), weights(&*again.accelerator, pair));
        let way: &dyn Accelerator = if pair == 2 { &Identity } else { &*fitted.accelerator };
        assert_eq!(weights(&*changed.accelerator, pair), weights(way, pair));
    }
    let nothing = look(&[0.97; 4]);
    assert_eq!(nothing.accelerator.steps(), 0);
    // A few swaps more that are rejected are no proof.
    assert_eq!(first_block(&look(&[0.1, 0.91, 0.1, 0.1])).given_back, [0; 0]);
    // Of what was hardly seen nothing is known.
    let mut unknown = seen(&[0.1, 0.97, 0.1, 0.1], &[0.9; 4]);
    unknown.plain[1].swaps = 3;
    let same = stays(fit.look_again(&fitted, schedule, &unknown).unwrap());
    assert_eq!(first_block(&same).given_back, [0; 0]);
    let saved = postcard::to_allocvec(&(vec![7usize], Vec::<(usize, Vec<u8>)>::new())).unwrap();
    assert!(fit.rebuild(&saved).is_err());
}

/// Three ways in one ladder leave every law where it was; a fault in one of them is caught.
#[test]
fn mixtures_are_exact() {
    let ladder = GaussianLadder::uneven(3);
    let schedule = Schedule::new(vec![0.0, 0.2, 0.5, 1.0]).unwrap();
    let streams = Streams::new(seed(7));
    let samples: Vec<_> = schedule.betas().iter().map(|&beta| draws(&ladder, beta, &streams, 500)).collect();
    let affine = Affine::fit(schedule.betas(), &samples, false).unwrap();
    let flow: Arc<dyn Accelerator> = Arc::new(FlowAccelerator::new(Arc::new(affine)));
    let steps = CmcdSteps::linear(Arc::new(NoDrift), 2, &[0.1, 0.05, 0.02]).unwrap();
    let annealed: Arc<dyn Accelerator> = Arc::new(Cmcd { steps });
    let mixed = |annealed: Arc<dyn Accelerator>| {
        PerPair::among(vec![Arc::new(Identity), flow.clone(), annealed], vec![1, 2, 0])
    };
    let check = |accelerator: &PerPair| check_accelerator(accelerator, &ladder, &schedule, 7, FALSE_ALARM);
    check(&mixed(annealed.clone())).assert_passed();
    check(&mixed(Arc::new(Broken { inner: annealed, fault: Fault::FlippedRatio }))).assert_caught();
}

/// Plain in one direction, and carried in the other.
struct OneWayPlain(Arc<dyn Accelerator>);

impl Accelerator for OneWayPlain {
    fn steps(&self) -> usize {
        self.0.steps()
    }

    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> Result<()> {
        match direction {
            Direction::Forward => Identity.travel(direction, call, journey, scratch),
            Direction::Backward => self.0.travel(direction, call, journey, scratch),
        }
    }
}

/// Taking turns is exact, with maps for chains that have moved too; turns that go by direction are caught.
#[test]
fn turns_are_exact() {
    let ladder = GaussianLadder::uneven(3);
    let schedule = Schedule::new(vec![0.0, 0.2, 0.5, 1.0]).unwrap();
    let streams = Streams::new(seed(11));
    let elsewhere = [0.0, 0.1, 0.7, 1.0];
    let samples: Vec<_> = elsewhere.iter().map(|&beta| draws(&ladder, beta, &streams, 500)).collect();
    let affine = Affine::fit(&elsewhere, &samples, true).unwrap().at(schedule.betas()).unwrap();
    let carried: Arc<dyn Accelerator> = Arc::new(FlowAccelerator::new(Arc::new(affine)));
    let check =
        |accelerator: &dyn Accelerator| check_accelerator(accelerator, &ladder, &schedule, 11, FALSE_ALARM);
    for every in [1, 2, 8] {
        check(&InTurn::new(carried.clone(), every)).assert_passed();
    }
    check(&OneWayPlain(carried)).assert_caught();
}

/// Carries swaps near the reference alone: beyond the third chain nothing moves. Of chains that have moved it knows as much or, if it is
/// lost there, nothing.
struct Lopsided {
    lost: bool,
}

impl Lopsided {
    fn affine(collected: &Collected) -> Result<Affine> {
        let mut samples = collected.samples.clone();
        let third = samples[2].clone();
        samples[3..].iter_mut().for_each(|chain| *chain = third.clone());
        Affine::fit(collected.schedule.betas(), &samples, false)
    }
}

impl FitAtOnce for Lopsided {
    fn fit(&self, collected: &Collected) -> Result<Arc<dyn Accelerator>> {
        Ok(Arc::new(FlowAccelerator::new(Arc::new(Self::affine(collected)?))))
    }

    fn fit_at(&self, collected: &Collected, schedule: &Schedule) -> Result<Option<Arc<dyn Accelerator>>> {
        if self.lost {
            let there = Collected { schedule: schedule.clone(), ..collected.clone() };
            return FarOff.fit(&there).map(Some);
        }
        let affine = Self::affine(collected)?.at(schedule.betas())?;
        Ok(Some(Arc::new(FlowAccelerator::new(Arc::new(affine)))))
    }
}

fn lopsided(lost: bool) -> (Choice, Run) {
    let fit = Candidate { name: "lopsided".into(), fit: Arc::new(Lopsided { lost }), operations: 0.0 };
    let choose = Choose { candidates: vec![fit], ..choose(&wells(), 1e3) };
    let mut run = run_of(choose, Settings { chains: 6, burn_in: 400, ..settings() });
    run.complete().unwrap();
    (run.fit_report().unwrap().choice.clone().unwrap(), run)
}

/// Chains crowd where a transport helps least, and go back where it turns out to be of no use there.
#[test]
fn chains_follow_what_carries_their_swaps() {
    let (choice, run) = lopsided(false);
    let moved = choice.moved.as_ref().unwrap();
    let now = &run.sampler().schedule;
    assert_eq!(&moved.to, now);
    assert!(now.betas()[1] > moved.from.betas()[1], "{now:?} {:?}", moved.from);
    let odds = |r: &f64| r.min(0.999) / (1.0 - r.min(0.999));
    let promised: f64 = (0..5).map(|n| odds(&choice.weighed[moved.of_pair[n]].rejection_rates[n])).sum();
    let seen = run.rejection_rates_so_far();
    assert!(seen.iter().map(odds).sum::<f64>() < promised, "{seen:?} {choice:?}");
    let log_z = &run.results().log_z;
    assert!((log_z.bar - wells_log_z()).abs() < 5.0 * log_z.standard_error, "{log_z:?}");

    let (choice, run) = lopsided(true);
    assert!(choice.moved.is_none() && choice.of_pair.contains(&1), "{choice:?}");
    assert_eq!(run.sampler().schedule, run.plain_stage().unwrap().schedule);
    assert!(run.rejection_rates_so_far().iter().all(|r| *r < 0.95));
}
