//! Samples of a molecule's chains: those that transports are fitted to, and those that judge them.

use std::sync::Arc;
use sterna::Batch;
use sterna::acceleration::Collected;
use sterna_molecule::ChainSamples;
use sterna_neural::Split;

/// Most training samples of a chain: beyond this many, neighbours in time say the same.
const MOST_SAMPLES: usize = 60_000;

/// Samples of a ladder, told apart.
pub(crate) struct Samples {
    /// All, in the order in which they are told apart.
    pub collected: Arc<Collected>,
    /// Which of them judge.
    pub split: Split,
    /// Those of each chain that train.
    pub rows: Vec<Batch>,
}

impl Samples {
    pub fn new(collected: &Collected) -> Self {
        let collected = Arc::new(spread_out(collected));
        let split = Split::new(collected.clone());
        let chains = 0..collected.schedule.chains();
        let rows = chains.map(|chain| split.training_rows(chain, MOST_SAMPLES)).collect();
        Self { collected, split, rows }
    }
}

/// The rows of each chain with their β.
pub(crate) fn chain_samples<'a>(betas: &[f64], rows: &'a [Batch]) -> Vec<ChainSamples<'a>> {
    betas.iter().zip(rows).map(|(&beta, points)| ChainSamples { beta, points }).collect()
}

/// The same samples in another order: every eighth of 64 blocks comes last. A chain's samples come ladder by ladder, so
/// that the last ones, which judge, would otherwise be those of one ladder.
fn spread_out(collected: &Collected) -> Collected {
    const BLOCKS: usize = 64;
    let reordered = |samples: &Batch| {
        let (rows, dim) = (samples.rows(), samples.dim());
        let block = |b: usize| &samples.as_slice()[rows * b / BLOCKS * dim..rows * (b + 1) / BLOCKS * dim];
        let (judges, students): (Vec<usize>, Vec<usize>) = (0..BLOCKS).partition(|b| b % 8 == 7);
        Batch::from_vec(dim, students.into_iter().chain(judges).flat_map(block).copied().collect())
    };
    Collected { samples: collected.samples.iter().map(reordered).collect(), ..collected.clone() }
}
