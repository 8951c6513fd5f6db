//! What stood out while a run with a fitted reference asked its target: kept from one reference to the next, saved, and told by one rank to
//! the others.

use super::Run;
use super::reference::{Fitted, RoundDraws, State};
use crate::fitted::{MOST_COORDINATES, Mixture, Place, Standouts};
use std::sync::Arc;

impl Fitted {
    /// The same where it was saved.
    pub fn with(mut self, state: State) -> Self {
        self.state = state;
        let (log_z, places) = std::mem::take(&mut self.state.stood_out);
        if let Some(log_z) = log_z {
            self.keep_beside(log_z, places);
        }
        self
    }

    /// As it is saved.
    pub fn saved(&self) -> State {
        let log_z = self.standouts.as_ref().map(|standouts| standouts.log_z());
        State { stood_out: (log_z, self.stood_out()), ..self.state.clone() }
    }

    /// What stood out so far.
    pub fn stood_out(&self) -> Vec<Place> {
        self.standouts.as_ref().map_or_else(Vec::new, |standouts| standouts.places())
    }

    /// From here on places stand out beside the reference as it is now.
    pub fn keep(&mut self, log_z: f64) {
        let before = self.stood_out();
        self.keep_beside(log_z, before);
    }

    /// Places that were seen elsewhere: on another rank, or on no path.
    pub fn hear(&self, places: &[Place]) {
        if let Some(standouts) = &self.standouts {
            places.iter().for_each(|place| standouts.look_again(place));
        }
    }

    /// The same where log Z is what it is at these draws.
    pub fn keep_after(&mut self, seen: &RoundDraws) {
        let mixture = self.state.mixture.as_ref();
        let usual = mixture.and_then(|m| m.with_rim().usual_gap(&seen.draws, &seen.log_density));
        self.keep(usual.unwrap_or_else(|| self.state.found.log_z()));
    }

    fn keep_beside(&mut self, log_z: f64, before: Vec<Place>) {
        let low = |mixture: &&Mixture| mixture.dim() <= MOST_COORDINATES && log_z.is_finite();
        self.standouts = self.state.mixture.as_ref().filter(low).map(|mixture| {
            let has_score = self.ground.target().has_score();
            Arc::new(Standouts::beside(mixture.with_rim(), has_score, log_z, before))
        });
    }
}

impl Run {
    /// Of all points at which the target was asked in tuning and sampling, those where its density was too high for the reference, or
    /// rose too steeply; in few dimensions, and where a reference is fitted.
    pub fn stood_out(&self) -> Vec<Place> {
        self.reference.as_ref().map_or_else(Vec::new, Fitted::stood_out)
    }
}
