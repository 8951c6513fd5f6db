//! A posterior whose likelihood and prior are known apart.

use std::cell::RefCell;
use std::sync::Arc;
use sterna::paths::Reference;
use sterna::{Batch, Evaluation, Result, Target};

/// Likelihood times prior.
pub(crate) struct Posterior {
    pub likelihood: Arc<dyn Target>,
    pub prior: Reference,
}

thread_local! {
    /// Room for the prior's score, and for what its evaluation needs.
    static ROOM: RefCell<[Vec<f64>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

impl Target for Posterior {
    fn dim(&self) -> usize {
        self.likelihood.dim()
    }

    fn takes_blocks(&self, rows: usize) -> bool {
        self.likelihood.takes_blocks(rows)
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        self.likelihood.evaluate(x, out)?;
        ROOM.with_borrow_mut(|[score, work]| {
            score.resize(self.dim(), 0.0);
            for row in 0..x.rows() {
                let log_prior = self.prior.evaluate(x.row(row), score, work);
                // Outside the prior's support nothing else counts, whatever a likelihood answers there.
                let log_likelihood = out.log_density[row];
                out.log_density[row] =
                    if log_prior == f64::NEG_INFINITY { log_prior } else { log_likelihood + log_prior };
                out.score.row_mut(row).iter_mut().zip(&*score).for_each(|(out, score)| *out += score);
            }
        });
        Ok(())
    }

    fn has_score(&self) -> bool {
        self.likelihood.has_score()
    }
}
