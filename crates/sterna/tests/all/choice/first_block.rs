//! What the run's first block shows of transports decides once more, and no draw of it counts.

use super::{FarOff, choose, has_the_same_bits_however_it_is_cut, run_of, settings, wells, wells_log_z};
use std::sync::Arc;
use sterna::Result;
use sterna::acceleration::{Candidate, Choose, Collected, FitAtOnce};
use sterna::accelerator::Accelerator;
use sterna::accelerators::{FlowAccelerator, PerPair};
use sterna::run::{Settings, Stage};
use sterna::transports::Affine;

/// A map that held-out samples find good and that, made of all samples, is of no use for the last pair: what no judge has seen.
struct Spoiled;

impl FitAtOnce for Spoiled {
    fn fit(&self, collected: &Collected) -> Result<Arc<dyn Accelerator>> {
        let good = Affine::fit(collected.schedule.betas(), &collected.samples, false)?;
        let good: Arc<dyn Accelerator> = Arc::new(FlowAccelerator::new(Arc::new(good)));
        // Seven eighths of them make the twin that is judged.
        if !collected.samples[0].rows().is_multiple_of(8) {
            return Ok(good);
        }
        let pairs = collected.schedule.pairs();
        let of_pair = (0..pairs).map(|pair| usize::from(pair == pairs - 1)).collect();
        Ok(Arc::new(PerPair::among(vec![good, FarOff.fit(collected)?], of_pair)))
    }
}

fn spoiled() -> Choose {
    let fit = Candidate { name: "spoiled".into(), fit: Arc::new(Spoiled), operations: 0.0 };
    Choose { candidates: vec![fit], ..choose(&wells(), 1e3) }
}

/// Pairs on which a transport does worse than held-out samples promised go back to plain swaps, and only those.
#[test]
fn what_fails_in_the_first_block_goes_back_to_plain_swaps() {
    let settings = Settings { iterations: 20_000, ..settings() };
    let mut run = run_of(spoiled(), settings.clone());
    let mut before = Vec::new();
    while run.progress().0 != Stage::Sampling {
        before = run.fit_report().and_then(|r| r.choice.as_ref()).map_or(before, |c| c.of_pair.clone());
        run.advance(u64::MAX).unwrap();
    }
    run.complete().unwrap();
    assert_eq!(before, [1; 4]);
    let choice = run.fit_report().unwrap().choice.clone().unwrap();
    let block = choice.first_block.as_ref().unwrap();
    assert_eq!((&block.given_back[..], &choice.of_pair[..]), (&[3][..], &[1, 1, 1, 0][..]), "{choice:?}");
    assert!(block.carried[3] > 0.99 && block.carried[0] < block.plain[0], "{block:?}");
    // Swaps pass again, and log Z is right.
    assert!(run.rejection_rates_so_far().iter().all(|r| *r < 0.95));
    let log_z = run.results().log_z;
    assert!((log_z.bar - wells_log_z()).abs() < 5.0 * log_z.standard_error, "{log_z:?}");
    // What was sampled does not include the block: all iterations of sampling are there.
    assert_eq!(run.results().iterations, settings.iterations);
}

#[test]
fn the_first_block_has_the_same_bits_however_it_is_cut() {
    let stages = has_the_same_bits_however_it_is_cut(spoiled, &[2, 7]);
    assert!(stages.iter().any(|(stage, done, _)| *stage == Stage::BurnIn && *done > 0));
}
