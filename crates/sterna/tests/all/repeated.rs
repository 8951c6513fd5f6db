//! Moves that are made on each chain as often as is worth it there: exact for any numbers, frozen for sampling.

use crate::common::{assert_alike, assert_resumes, check_explorer};
use std::sync::Arc;
use sterna::call::{Call, Rows, Scratch};
use sterna::explorer::{Explorer, Moved};
use sterna::explorers::{Hmc, Repeated, Slice, StepSizes};
use sterna::paths::{Geometric, Reference};
use sterna::run::{Run, Settings};
use sterna::targets::{Gmm, Normal};
use sterna::{Points, Result};
use sterna_testkit::{GaussianLadder, MixtureLadder};

/// Long enough steps for a good share of rejections.
fn hmc(steps: usize, dim: usize) -> Hmc {
    Hmc::with_sizes(steps, 3, StepSizes::fixed(4, dim, 0.8), 0.0)
}

fn repeated(dim: usize, moves: [u32; 4]) -> Repeated {
    Repeated { kernel: Arc::new(hmc(1, dim)), moves: moves.to_vec() }
}

#[test]
fn any_number_of_moves_keeps_every_chain() {
    for (seed, moves) in [[1, 3, 2, 4], [2, 1, 1, 5]].into_iter().enumerate() {
        let seed = seed as u64 + 1;
        check_explorer(&GaussianLadder::uneven(3), &repeated(3, moves), seed).assert_passed();
        check_explorer(&MixtureLadder::three_modes(2), &repeated(2, moves), seed).assert_passed();
    }
}

/// What a person could get wrong.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Rows that did not move have another try.
    UntilMoved,
    /// Moves after the first have its random numbers.
    SameNumbers,
}

#[derive(Debug)]
struct Broken {
    kernel: Hmc,
    fault: Fault,
}

impl Explorer for Broken {
    fn explore(
        &self,
        call: &Call,
        points: &mut Points,
        moved: &mut Moved,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let before = points.x.clone();
        for _ in 0..6 {
            let mut rows = Rows::default();
            let stays = |row: usize| points.x.row(row) == before.row(row);
            for (i, &row) in call.rows.row.iter().enumerate() {
                if matches!(self.fault, Fault::SameNumbers) || stays(row) {
                    rows.push_staying(row, call.rows.key[i], call.rows.chain[i], call.rows.beta[i]);
                }
            }
            moved.begin(rows.len());
            let again = call.of(&rows);
            self.kernel.explore(&again, points, moved, scratch)?;
            if let Fault::UntilMoved = self.fault {
                call.slots.follow(&again.slots);
            }
        }
        Ok(())
    }
}

#[test]
fn broken_repetitions_are_caught() {
    for fault in [Fault::UntilMoved, Fault::SameNumbers] {
        // One leapfrog step, so long that acceptance hangs much on where a row is.
        let kernel = Hmc::with_sizes(1, 1, StepSizes::fixed(4, 2, 1.3), 0.0);
        let verdict = check_explorer(&MixtureLadder::three_modes(2), &Broken { kernel, fault }, 1);
        assert!(!verdict.passed(), "{fault:?} passed: {verdict}");
    }
}

#[test]
fn as_many_moves_on_all_chains_are_those_of_a_number() {
    assert_alike(&hmc(3, 3), &repeated(3, [3; 4]));
}

#[test]
fn runs_resume() {
    assert_resumes(Arc::new(Repeated::new(Arc::new(Hmc::default()))));
    assert_resumes(Arc::new(Repeated::new(Arc::new(Slice::default()))));
}

/// Moves of each chain after a run's tuning.
fn found(target: impl sterna::Target + 'static, reference: Reference, leapfrog_steps: usize) -> Vec<f64> {
    let path = Arc::new(Geometric::new(reference, Arc::new(target)).unwrap());
    let kernel = Arc::new(Hmc { leapfrog_steps, ..Hmc::default() });
    let explorer = Arc::new(Repeated::new(kernel));
    let settings = Settings { chains: 4, rounds: 4, iterations: 100, explorer, ..Settings::default() };
    let mut run = Run::new(path, settings).unwrap();
    run.complete().unwrap();
    let described = run.sampler().explorer.describe();
    described.into_iter().find(|(name, _)| *name == "moves").unwrap().1
}

#[test]
fn tuning_finds_where_moves_pay() {
    // A reference a hundred times as wide, behind few chains: hardly a swap passes, and moves are all there is.
    let wide = || Reference::normal(vec![0.0; 20], vec![100.0; 20]);
    let far = found(Normal::isotropic(20, 1.0), wide(), 1);
    assert!(far[3] >= 4.0 && far[0] == 1.0, "{far:?}");
    // Modes that no move leaves: swaps are all there is.
    let modes = found(Gmm::paper(4), Reference::standard_normal(4), 5);
    assert_eq!(modes, [1.0; 4]);
}
