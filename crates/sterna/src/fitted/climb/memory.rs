//! What a climb knows of the curvature: its last steps and how they bent the slope (L-BFGS).

use super::super::numbers::{add, dot};
use std::collections::VecDeque;

/// Steps that are remembered.
const MOST: usize = 20;

/// The inverse of the curvature, by Broyden, Fletcher, Goldfarb and Shanno, from the last steps.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pairs: VecDeque<Pair>,
}

#[derive(Debug)]
struct Pair {
    moved: Vec<f64>,
    bent: Vec<f64>,
    /// 1 / (moved · bent).
    rho: f64,
}

impl Memory {
    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Remembers a step along which the slope fell.
    pub(super) fn learn(&mut self, moved: Vec<f64>, bent: Vec<f64>) {
        let product = dot(&moved, &bent);
        let size = (dot(&moved, &moved) * dot(&bent, &bent)).sqrt();
        if product > 1e-12 * size && product.is_finite() && size.is_finite() {
            if self.pairs.len() == MOST {
                self.pairs.pop_front();
            }
            self.pairs.push_back(Pair { moved, bent, rho: 1.0 / product });
        }
    }

    /// The slope becomes the direction to go: inverse curvature × slope (Nocedal's two loops).
    pub(super) fn apply(&self, slope: &mut [f64]) {
        let Some(last) = self.pairs.back() else { return };
        let mut parts = [0.0; MOST];
        for (pair, part) in self.pairs.iter().zip(&mut parts).rev() {
            *part = pair.rho * dot(&pair.moved, slope);
            add(slope, -*part, &pair.bent);
        }
        let scale = 1.0 / (last.rho * dot(&last.bent, &last.bent));
        slope.iter_mut().for_each(|s| *s *= scale);
        for (pair, part) in self.pairs.iter().zip(parts) {
            let by = part - pair.rho * dot(&pair.bent, slope);
            add(slope, by, &pair.moved);
        }
    }
}
