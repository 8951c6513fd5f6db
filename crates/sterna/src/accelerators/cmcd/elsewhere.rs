//! Controlled diffusions for chains that have moved: what was made for one schedule tells of all places between its chains.
//!
//! A place is a number: n at chain n, and n − 1 + k/K at path time k/K of pair n. There the pairs' drifts, noises and interpolations are
//! one function, which a pair of other chains, from place p to p′, follows at p + s (p′ − p): in drift and noise it has the share p′ − p of a
//! pair. So a pair that has not moved keeps its kernels, and one that closes up becomes the identity (errata E9).

use super::CmcdSteps;
use crate::call::Scratch;
use crate::transport::{Drift, Interval};
use crate::{Batch, Error, Result, Schedule};
use std::sync::Arc;

/// A pair of the first schedule, from 0, and the path time there.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    pair: usize,
    time: f64,
}

/// Two neighbouring numbers of K + 1 at times 0, 1/K, … 1, and the share of the second at a time.
fn between(time: f64, steps: usize) -> (usize, f64) {
    let along = time * steps as f64;
    let first = (along as usize).min(steps - 1);
    (first, along - first as f64)
}

/// Chain n lies at n.
fn place_of(from: &Schedule, beta: f64) -> f64 {
    let betas = from.betas();
    let upper = betas.partition_point(|&b| b < beta).clamp(1, from.pairs());
    let [a, b] = [betas[upper - 1], betas[upper]];
    (upper - 1) as f64 + (beta - a) / (b - a)
}

/// Where a journey over a pair from place to place is at a path time: where two of the first pairs meet, in that which it goes through.
fn on_the_way([lower, upper]: [f64; 2], time: f64, pairs: usize) -> Place {
    let inside = time.clamp(1e-9, 1.0 - 1e-9);
    let pair = ((lower + inside * (upper - lower)) as usize).min(pairs - 1);
    let place = lower + time * (upper - lower);
    Place { pair, time: (place - pair as f64).clamp(0.0, 1.0) }
}

impl CmcdSteps {
    /// For the chains of another schedule.
    ///
    /// # Errors
    /// If it has another number of legs, or these steps are not those of the first one's pairs.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use sterna::accelerator::Accelerator;
    /// use sterna::accelerators::{Cmcd, CmcdSteps, NoDrift};
    /// use sterna::Schedule;
    /// let steps = CmcdSteps::linear(Arc::new(NoDrift), 2, &[0.1, 0.05, 0.02]).unwrap();
    /// let fewer = steps.at(&Schedule::uniform(4), &Schedule::uniform(3)).unwrap();
    /// assert_eq!(Cmcd { steps: fewer }.steps(), 2);
    /// ```
    pub fn at(&self, from: &Schedule, to: &Schedule) -> Result<Self> {
        let (pairs, steps) = (from.pairs(), self.noise.dim());
        if self.noise.rows() != pairs || from.legs() != to.legs() {
            let value = format!("{} pairs and {} legs", self.noise.rows(), to.legs());
            let cure = "chains may move where steps are known for each pair of as many legs";
            return Err(Error::Setting { setting: "CmcdSteps", value, cure });
        }
        let ends: Vec<[f64; 2]> =
            to.betas().windows(2).map(|w| [place_of(from, w[0]), place_of(from, w[1])]).collect();
        let at = |ends: [f64; 2], k: f64| on_the_way(ends, k / steps as f64, pairs);
        let of_times = |of: &dyn Fn([f64; 2], Place) -> f64| {
            let each = ends.iter().flat_map(|&ends| (0..=steps).map(move |k| (ends, k)));
            Batch::from_vec(steps + 1, each.map(|(ends, k)| of(ends, at(ends, k as f64))).collect())
        };
        let of_steps = |table: &Batch| {
            let each = ends.iter().flat_map(|&ends| (0..steps).map(move |k| (ends, k)));
            let variance = |(ends, k): ([f64; 2], usize)| {
                (ends[1] - ends[0]) * self.amid(table, at(ends, k as f64 + 0.5))
            };
            Batch::from_vec(steps, each.map(variance).collect())
        };
        let mut interpolation = of_times(&|ends, place| {
            let beta = |place: Place| {
                let interval = from.interval(place.pair + 1);
                interval.lower + self.along(&self.interpolation, place) * interval.width()
            };
            let [first, last] = [0.0, steps as f64].map(|k| beta(at(ends, k)));
            (beta(place) - first) / (last - first)
        });
        for pair in 0..interpolation.rows() {
            let row = interpolation.row_mut(pair);
            (row[0], row[steps]) = (0.0, 1.0);
            (1..steps).for_each(|k| row[k] = row[k].clamp(row[k - 1], 1.0));
        }
        let along_score = self.along_score.as_ref();
        let along_score = along_score
            .map(|table| of_times(&|ends: [f64; 2], place| (ends[1] - ends[0]) * self.along(table, place)));
        let drift = Arc::new(Elsewhere { inner: self.drift.clone(), from: from.clone(), steps });
        let [noise, backward_noise] = [&self.noise, &self.backward_noise].map(of_steps);
        let moved = Self::with_backward_noise(drift, interpolation, noise, backward_noise)?;
        match along_score {
            Some(along_score) => moved.with_score(along_score),
            None => Ok(moved),
        }
    }

    /// A number that each pair has for each path time, at a place.
    fn along(&self, table: &Batch, place: Place) -> f64 {
        let (k, share) = between(place.time, self.noise.dim());
        let row = table.row(place.pair);
        row[k] + share * (row[k + 1] - row[k])
    }

    /// A variance that each pair has for each step, at a place: it belongs to the middle of its step.
    fn amid(&self, table: &Batch, place: Place) -> f64 {
        let steps = self.noise.dim() as f64;
        let along = (place.pair as f64 + place.time) * steps - 0.5;
        let all = table.as_slice();
        let first = (along.max(0.0) as usize).min(all.len() - 1);
        let second = (first + 1).min(all.len() - 1);
        let share = (along - first as f64).clamp(0.0, 1.0);
        if share == 0.0 {
            all[first]
        } else {
            (all[first].ln() * (1.0 - share) + share * all[second].ln()).exp()
        }
    }
}

/// The drifts of the first pairs as that of others.
struct Elsewhere {
    inner: Arc<dyn Drift>,
    from: Schedule,
    steps: usize,
}

/// The first pairs at the two path times between which each row is, the share of the second, and what the drift says there.
#[derive(Default)]
struct Memory {
    pairs: Vec<Interval>,
    times: [Vec<f64>; 2],
    shares: Vec<[f64; 2]>,
    second: Batch,
    of_inner: Scratch,
}

impl Drift for Elsewhere {
    fn drift(
        &self,
        pairs: &[Interval],
        times: &[f64],
        x: &Batch,
        out: &mut Batch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let memory: &mut Memory = scratch.get();
        memory.pairs.clear();
        memory.shares.clear();
        memory.times.iter_mut().for_each(Vec::clear);
        for (interval, &time) in pairs.iter().zip(times) {
            let ends = [interval.lower, interval.upper].map(|beta| place_of(&self.from, beta));
            let Place { pair, time } = on_the_way(ends, time, self.from.pairs());
            let (k, share) = between(time, self.steps);
            let width = ends[1] - ends[0];
            memory.pairs.push(self.from.interval(pair + 1));
            memory.times[0].push(k as f64 / self.steps as f64);
            memory.times[1].push((k + 1) as f64 / self.steps as f64);
            memory.shares.push([width * (1.0 - share), width * share]);
        }
        let Memory { pairs, times, shares, second, of_inner } = memory;
        second.set_size(x.rows(), x.dim());
        self.inner.drift(pairs, &times[0], x, out, of_inner)?;
        self.inner.drift(pairs, &times[1], x, second, of_inner)?;
        for (i, [a, b]) in shares.iter().enumerate() {
            for (out, second) in out.row_mut(i).iter_mut().zip(second.row(i)) {
                *out = a * *out + b * second;
            }
        }
        Ok(())
    }
}
