//! Slice sampling keeps every chain's law, does what a plain version does, and its broken twins are caught.
//!
//! Each verdict has a false-alarm level of 10⁻⁵ over all its checks; seeds are fixed.

use crate::common::{assert_alike, assert_resumes, check_explorer};
use std::sync::Arc;
use sterna::call::{Call, Scratch};
use sterna::explorer::{Explorer, Moved, Tuning};
use sterna::explorers::Slice;
use sterna::path::Points;
use sterna::paths::Geometric;
use sterna::run::{Run, Settings};
use sterna::streams::RowStream;
use sterna::{Batch, Evaluation, Result, Schedule, Target};
use sterna_testkit::{GaussianLadder, MixtureLadder};

/// Widths of all kinds: far too narrow, about right, far too wide.
fn slice(dim: usize, sweeps: usize, expansions: usize) -> Slice {
    let widths = (0..4 * dim).map(|i| [0.1, 1.0, 6.0][i % 3]).collect();
    Slice { sweeps, expansions, widths: Batch::from_vec(dim, widths), ..Slice::default() }
}

#[test]
fn slices_keep_every_chain_of_a_ladder() {
    for expansions in [1, 2, 16] {
        check_explorer(&GaussianLadder::uneven(3), &slice(3, 2, expansions), 1).assert_passed();
        check_explorer(&MixtureLadder::three_modes(2), &slice(2, 1, expansions), 2).assert_passed();
    }
}

/// Slice sampling written plainly, row by row, with the library's random numbers, and with faults on demand.
#[derive(Debug)]
struct Plain {
    slice: Slice,
    fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The first point drawn is taken, wherever it lies.
    TakesTheFirstPoint,
    /// The interval begins at the point instead of being laid at random.
    NoOffset,
    /// All expansions may go to the left, and then all to the right.
    UndividedExpansions,
    /// The height is drawn from the density itself, not its logarithm.
    WrongHeight,
}

impl Plain {
    fn move_row(
        &self,
        j: usize,
        width: f64,
        here: &mut Points,
        mut at: impl FnMut(f64) -> Result<Points>,
        stream: &mut RowStream,
    ) -> Result<()> {
        let x = here.x.row(0)[j];
        let u = stream.uniform();
        let drop = if self.fault == Some(Fault::WrongHeight) { -u } else { u.ln() };
        let height = here.log_density[0] + drop;
        let offset = stream.uniform();
        let mut lower = x - width * if self.fault == Some(Fault::NoOffset) { 0.0 } else { offset };
        let mut upper = lower + width;
        let mut left = stream.below(self.slice.expansions);
        let mut right = self.slice.expansions - 1 - left;
        if self.fault == Some(Fault::UndividedExpansions) {
            (left, right) = (self.slice.expansions - 1, 0);
        }
        while left > 0 && at(lower)?.log_density[0] > height {
            lower -= width;
            left -= 1;
        }
        while right > 0 && at(upper)?.log_density[0] > height {
            upper += width;
            right -= 1;
        }
        for _ in 0..100 {
            let next = lower + (upper - lower) * stream.uniform();
            let there = at(next)?;
            if there.log_density[0] > height || self.fault == Some(Fault::TakesTheFirstPoint) {
                *here = there;
                return Ok(());
            }
            *(if next > x { &mut upper } else { &mut lower }) = next;
        }
        Ok(())
    }
}

impl Explorer for Plain {
    fn explore(
        &self,
        call: &Call,
        points: &mut Points,
        _moved: &mut Moved,
        _scratch: &mut Scratch,
    ) -> Result<()> {
        let rows = call.rows;
        for _ in 0..self.slice.sweeps {
            let slot = call.slots.take();
            for (i, &row) in rows.row.iter().enumerate() {
                let mut here = Points::zeros(1, points.x.dim());
                here.gather(points, &[row]);
                let mut stream = call.stream(slot, i);
                for j in 0..points.x.dim() {
                    let from = here.clone();
                    let at = |x: f64| {
                        let mut there = from.clone();
                        there.x.row_mut(0)[j] = x;
                        call.path.evaluate(&rows.beta[i..=i], &mut there)?;
                        Ok(there)
                    };
                    let width = self.slice.widths.row(rows.chain[i])[j];
                    self.move_row(j, width, &mut here, at, &mut stream)?;
                }
                points.scatter(&[row], &here, |_| true);
            }
        }
        Ok(())
    }
}

/// To the bit, so that a row's move depends on no other row of its batch.
#[test]
fn the_batched_move_does_what_the_plain_one_does() {
    for expansions in [1, 3, 16] {
        let fast = slice(3, 2, expansions);
        assert_alike(&Plain { slice: fast.clone(), fault: None }, &fast);
    }
}

/// Intervals that must shrink seventy times each take more of a row's stream than 2¹⁶ blocks in one sweep.
#[test]
fn a_sweep_has_numbers_for_many_coordinates() {
    let explorer = Arc::new(Slice { width: 1e30, expansions: 1, ..Slice::default() });
    let path = Arc::new(Geometric::from_standard_normal(sterna::targets::Normal::isotropic(2500, 1.0)));
    let settings = Settings { chains: 2, explorer, ..Settings::default() };
    Run::new(path, settings).unwrap().advance(1).unwrap();
}

#[test]
fn broken_slices_are_caught() {
    let ladder = GaussianLadder::uneven(2);
    let narrow = Slice { expansions: 3, widths: Batch::from_vec(2, vec![0.5; 8]), ..Slice::default() };
    check_explorer(&ladder, &Plain { slice: narrow.clone(), fault: None }, 3).assert_passed();
    for fault in [Fault::TakesTheFirstPoint, Fault::NoOffset, Fault::UndividedExpansions, Fault::WrongHeight]
    {
        let verdict = check_explorer(&ladder, &Plain { slice: narrow.clone(), fault: Some(fault) }, 3);
        assert!(!verdict.passed(), "{fault:?} went unnoticed\n{verdict}");
    }
}

/// No score, no density beyond a wall, NaN beyond another: the law is that of the normal between them.
struct Walls(f64);

impl Target for Walls {
    fn dim(&self) -> usize {
        1
    }
    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        for (i, x) in x.as_slice().iter().enumerate() {
            out.score.row_mut(i)[0] = f64::NAN;
            out.log_density[i] = match *x {
                x if x > 1.0 => self.0,
                x if x < -1.0 => f64::NEG_INFINITY,
                x => -0.5 * x * x,
            };
        }
        Ok(())
    }
}

/// Five standard errors, of which draws are effectively fewer than they are: a false alarm in 10⁵ fresh seeds.
#[test]
fn walls_hold_and_scores_are_not_needed() {
    for beyond in [f64::NAN, f64::NEG_INFINITY] {
        // NaN at a start would be refused.
        let path = Arc::new(Geometric::new(
            sterna::paths::Reference::normal(vec![0.0], vec![0.1]),
            Arc::new(Walls(beyond)),
        ));
        let settings = Settings {
            chains: 3,
            rounds: 3,
            iterations: 20_000,
            explorer: Arc::new(Slice::default()),
            ..Settings::default()
        };
        let mut run = Run::new(Arc::new(Arc::into_inner(path).unwrap().unwrap()), settings).unwrap();
        run.complete().unwrap();
        let results = run.results();
        assert_eq!(results.bad.0 > 0, beyond.is_nan());
        let (mean, error) = results.means[0];
        assert!(mean.abs() < 5.0 * error, "{mean} ± {error}");
        let x: Vec<f64> = run.records().flat_map(|r| &r.draws).flat_map(|d| d.x.iter().copied()).collect();
        assert!(x.iter().all(|x| x.abs() <= 1.0));
        // E x² = 1 − 2φ(1)/(2Φ(1) − 1).
        let square = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        let spread = 5.0 * (0.08 / results.ess[0].min(x.len() as f64)).sqrt();
        assert!((square - 0.291_125).abs() < spread, "{square} ± {spread}");
    }
}

#[test]
fn widths_adapt_to_each_coordinate_and_chain() {
    let slice = Slice::default().begin(2, 2).unwrap().unwrap();
    let spread = Batch::from_vec(2, vec![0.5, 3.0, 0.0, f64::NAN]);
    let adapted = slice.adapt(&Tuning::Round { information: &spread, spread: &spread }).unwrap();
    // Where nothing was learned the width stays.
    assert_eq!(adapted.describe(), [("width", vec![3.5, 1.0])]);
    let (from, to) = (Schedule::uniform(2), Schedule::uniform(3));
    let moved = adapted.adapt(&Tuning::Schedule { from: &from, to: &to }).unwrap();
    assert_eq!(moved.describe()[0].1.len(), 3);
    let restored = Slice::default().restore(&moved.save(), 3, 2).unwrap().unwrap();
    assert_eq!(restored.save(), moved.save());
    assert!(Slice::default().restore(&moved.save(), 4, 2).is_err());
    assert!(Slice { sweeps: 2, ..Slice::default() }.restore(&moved.save(), 3, 2).is_err());
}

#[test]
fn a_run_by_slices_resumes_with_the_same_bits() {
    assert_resumes(Arc::new(Slice::default()));
}
