//! What is kept of the iterations whose samples a fit sees.

use crate::Batch;
use crate::Result;
use crate::iteration::{Recorder, Step};
use crate::records::Ladders;
use serde::{Deserialize, Serialize};

/// Keeps every replica's point, by chain, and the target's log density there.
#[derive(Serialize, Deserialize)]
pub(crate) struct CollectRecord {
    chains: usize,
    /// `[copy · chains + chain]`: points one after the other.
    points: Vec<Vec<f64>>,
    /// `[copy · chains + chain]`: the target's, where the path keeps it.
    log_target: Vec<Vec<f64>>,
    /// `[copy]`: the target's scores at the points of its own chain.
    scores: Vec<Vec<f64>>,
    /// `[copy · chains + chain]`: the path's scores at the points, where they are wanted.
    path_scores: Vec<Vec<f64>>,
    wants_path_scores: bool,
}

impl CollectRecord {
    pub(crate) fn new(copies: usize, chains: usize) -> Self {
        let places = copies * chains;
        let [points, log_target, path_scores] = [(); 3].map(|()| vec![Vec::new(); places]);
        let scores = vec![Vec::new(); copies];
        Self { chains, points, log_target, scores, path_scores, wants_path_scores: false }
    }

    /// From now on, and before anything was kept: with the path's scores, or without.
    pub(crate) fn want_path_scores(&mut self, wanted: bool) {
        self.wants_path_scores = wanted;
    }

    /// The target's scores at the points of its own chain, ladder by ladder.
    pub(crate) fn scores(&self) -> &[Vec<f64>] {
        &self.scores
    }

    /// Samples of each chain, over the given ladders in order.
    pub(crate) fn samples<'a>(
        records: impl Iterator<Item = &'a Self> + Clone,
        chains: usize,
        dim: usize,
    ) -> Vec<Batch> {
        Self::by_chain(records, |r| &r.points, chains, dim)
    }

    /// The path's scores at them; nothing where they were not wanted.
    pub(crate) fn path_scores<'a>(
        mut records: impl Iterator<Item = &'a Self> + Clone,
        chains: usize,
        dim: usize,
    ) -> Vec<Batch> {
        match records.clone().any(|r| r.wants_path_scores) {
            true => Self::by_chain(records.by_ref(), |r| &r.path_scores, chains, dim),
            false => Vec::new(),
        }
    }

    fn by_chain<'a>(
        records: impl Iterator<Item = &'a Self>,
        numbers: impl Fn(&'a Self) -> &'a [Vec<f64>],
        chains: usize,
        dim: usize,
    ) -> Vec<Batch> {
        let records: Vec<&[Vec<f64>]> = records.map(numbers).collect();
        let of = |chain| records.iter().flat_map(move |all| all.iter().skip(chain).step_by(chains)).flatten();
        (0..chains).map(|chain| Batch::from_vec(dim, of(chain).copied().collect())).collect()
    }

    /// Points of a chain, one after the other, and the target's log densities there, ladder by ladder.
    pub(crate) fn of_chain<'a>(
        records: impl Iterator<Item = &'a Self>,
        chain: usize,
    ) -> Vec<(&'a [f64], &'a [f64])> {
        let of = |r: &'a Self, all: &'a [Vec<f64>]| all.iter().skip(chain).step_by(r.chains);
        records
            .flat_map(|r| of(r, &r.points).zip(of(r, &r.log_target)))
            .map(|(points, values)| (&points[..], &values[..]))
            .collect()
    }
}

impl Ladders for CollectRecord {
    fn append(&mut self, other: Self) {
        self.points.extend(other.points);
        self.log_target.extend(other.log_target);
        self.scores.extend(other.scores);
        self.path_scores.extend(other.path_scores);
        self.wants_path_scores |= other.wants_path_scores;
    }

    fn split_off(&mut self, copies: usize) -> Self {
        Self {
            chains: self.chains,
            points: self.points.split_off(copies * self.chains),
            log_target: self.log_target.split_off(copies * self.chains),
            scores: self.scores.split_off(copies),
            path_scores: self.path_scores.split_off(copies * self.chains),
            wants_path_scores: self.wants_path_scores,
        }
    }

    fn is_sound(&self, copies: usize, chains: usize, dim: usize) -> bool {
        let length = self.points.first().map_or(0, Vec::len);
        self.chains == chains
            && self.points.len() == copies * chains
            && length.is_multiple_of(dim)
            && self.points.iter().all(|p| p.len() == length)
            && self.log_target.len() == copies * chains
            && self.log_target.iter().all(|values| values.len() == length / dim)
            && self.scores.len() == copies
            && self.scores.iter().all(|scores| scores.len() == length)
            && self.path_scores.len() == copies * chains
            && self.path_scores.iter().all(|s| s.len() == if self.wants_path_scores { length } else { 0 })
    }
}

impl Recorder for CollectRecord {
    fn record(&mut self, step: &Step) -> Result<()> {
        let ensemble = step.ensemble;
        for row in 0..ensemble.points.rows() {
            let place = row / self.chains * self.chains + ensemble.chain(row);
            self.points[place].extend_from_slice(ensemble.points.x.row(row));
            self.log_target[place].push(ensemble.points.target.log_density[row]);
            if self.wants_path_scores {
                self.path_scores[place].extend_from_slice(ensemble.points.score.row(row));
            }
        }
        for (copy, scores) in self.scores.iter_mut().enumerate() {
            let row = ensemble.row(copy, ensemble.legs().target());
            scores.extend_from_slice(ensemble.points.target.score.row(row));
        }
        Ok(())
    }
}
