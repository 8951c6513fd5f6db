//! Which network suits a target is seen, not guessed: each candidate trains for a short while, held-out samples judge
//! it, and the winner trains anew, in full.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sterna::acceleration::{Collected, Fit, Fitted, Fitting};
use sterna::estimates::round_trip_rate;
use sterna::path::AnnealingPath;

/// A network on trial.
#[derive(Clone)]
pub struct Candidate {
    /// Its short training.
    pub short: Arc<dyn Fit>,
    /// Its full one.
    pub full: Arc<dyn Fit>,
    /// Steps of the short one.
    pub short_steps: u64,
    /// Steps of the full one.
    pub full_steps: u64,
    /// So many times what another is worth it must be, to be as good.
    pub handicap: f64,
    /// What a journey costs, in evaluations of the target, where candidates differ in it; else 0.
    pub journey: f64,
}

/// The fit of the best of several candidates. All of them can read each other's records, which say what made
/// them; later rounds go on with the network that the first round chose.
pub struct Trial {
    candidates: Arc<[Candidate]>,
}

impl Trial {
    /// The best allows most round trips for what they cost: after a short training the order of near equals means little, and larger
    /// networks have more to gain from a long one, so that others may have a handicap. A tie goes to what comes first.
    ///
    /// # Panics
    /// If there are no candidates.
    pub fn new(candidates: Vec<Candidate>) -> Self {
        assert!(!candidates.is_empty(), "a trial needs candidates");
        Self { candidates: candidates.into() }
    }
}

impl Fit for Trial {
    fn wants_scores(&self) -> bool {
        self.candidates
            .iter()
            .any(|candidate| candidate.short.wants_scores() || candidate.full.wants_scores())
    }

    fn on(&self, path: &Arc<dyn AnnealingPath>) -> Option<Arc<dyn Fit>> {
        let on = |candidate: &Candidate| {
            let (short, full) = (candidate.short.on(path)?, candidate.full.on(path)?);
            Some(Candidate { short, full, ..*candidate })
        };
        let candidates: Option<Vec<_>> = self.candidates.iter().map(on).collect();
        Some(Arc::new(Self { candidates: candidates?.into() }))
    }

    fn begin(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> sterna::Result<Box<dyn Fitting>> {
        if earlier.is_some_and(|earlier| !earlier.record.is_empty()) {
            return self.candidates[0].full.begin(collected, earlier);
        }
        let (candidates, notes) = (self.candidates.clone(), Notes::default());
        let current = Some(candidates[0].short.begin(collected.clone(), None)?);
        let earlier = earlier.cloned();
        Ok(Box::new(Trying { candidates, collected, earlier, current, notes }))
    }

    fn rebuild(&self, record: &[u8]) -> sterna::Result<Fitted> {
        self.candidates[0].full.rebuild(record)
    }
}

/// A trial under way: one candidate after the other, then the winner.
struct Trying {
    candidates: Arc<[Candidate]>,
    collected: Arc<Collected>,
    /// A round that came to nothing: the winner's report goes on from its report.
    earlier: Option<Fitted>,
    /// None only while one fit hands over to the next.
    current: Option<Box<dyn Fitting>>,
    notes: Notes,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Notes {
    /// Round trips that each candidate seen so far allows: of an iteration or, where costs differ, for an evaluation.
    rates: Vec<f64>,
    /// Points at which the target, and the network, were evaluated by them.
    spent: (u64, u64),
}

impl Notes {
    /// `each` is what an iteration costs without journeys.
    fn note(&mut self, fitted: &Fitted, each: f64, journey: f64) {
        let rejections: Vec<f64> = fitted.report.pairs.iter().map(|pair| pair.rejection).collect();
        let rate = if rejections.is_empty() { 0.0 } else { round_trip_rate(&rejections) };
        // Two journeys a swap, which is proposed in every second iteration.
        let cost = if journey > 0.0 { each + rejections.len() as f64 * journey } else { 1.0 };
        self.rates.push(if rate.is_nan() { 0.0 } else { rate / cost });
        // A path counts what judging it cost, and is thrown away.
        let judging = fitted.path.as_ref().map_or((0, 0), |p| (p.evaluations(), p.network_evaluations()));
        self.spent.0 += fitted.report.target_evaluations + judging.0;
        self.spent.1 += fitted.report.network_evaluations + judging.1;
    }

    /// The winner among candidates that have all been tried.
    fn best(&self, candidates: &[Candidate]) -> usize {
        let worth = |i: usize| self.rates[i] / candidates[i].handicap;
        let better = |best: usize, i: usize| if worth(i) > worth(best) { i } else { best };
        (0..self.rates.len()).fold(0, better)
    }
}

impl Trying {
    fn trials_left(&self) -> bool {
        self.notes.rates.len() < self.candidates.len()
    }

    /// Begins what follows the trials made so far: the next one, or the winner's training.
    fn begin(&self) -> sterna::Result<Box<dyn Fitting>> {
        match self.candidates.get(self.notes.rates.len()) {
            Some(candidate) => candidate.short.begin(self.collected.clone(), None),
            None => {
                let winner = &self.candidates[self.notes.best(&self.candidates)];
                winner.full.begin(self.collected.clone(), self.earlier.as_ref())
            }
        }
    }
}

impl Fitting for Trying {
    fn progress(&self) -> (u64, u64) {
        let (done, total) = self.current.as_ref().map_or((0, 0), |fit| fit.progress());
        let (tried, untried) = self.candidates.split_at(self.notes.rates.len());
        let short = |candidates: &[Candidate]| candidates.iter().map(|c| c.short_steps).sum::<u64>();
        let before = short(tried);
        // Until the winner is known, the longest training it may have.
        let longest = self.candidates.iter().map(|c| c.full_steps).max().unwrap_or(0);
        let after = if untried.is_empty() { total } else { short(untried) + longest };
        (before + done, before + after)
    }

    fn loss(&self) -> Option<f64> {
        self.current.as_ref()?.loss()
    }

    fn advance(&mut self, most: u64) -> sterna::Result<()> {
        let mut left = most;
        while let Some(current) = &mut self.current {
            let before = current.progress().0;
            current.advance(left)?;
            let (done, total) = current.progress();
            left -= (done - before).min(left);
            if done < total || !self.trials_left() {
                break;
            }
            if let Some(finished) = self.current.take() {
                let journey = self.candidates[self.notes.rates.len()].journey;
                self.notes.note(&finished.finish()?, self.collected.prospect.evaluations_each(), journey);
            }
            self.current = Some(self.begin()?);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> sterna::Result<Fitted> {
        let current = self.current.ok_or_else(broken_off)?;
        let mut fitted = current.finish()?;
        fitted.report.target_evaluations += self.notes.spent.0;
        fitted.report.network_evaluations += self.notes.spent.1;
        Ok(fitted)
    }

    /// A line of notes, then what the fit under way saved.
    fn save(&self) -> sterna::Result<Vec<u8>> {
        let mut saved = serde_json::to_vec(&self.notes).map_err(unreadable)?;
        saved.push(b'\n');
        saved.extend(self.current.as_ref().ok_or_else(broken_off)?.save()?);
        Ok(saved)
    }

    fn restore(&mut self, saved: &[u8]) -> sterna::Result<()> {
        let end = saved.iter().position(|&byte| byte == b'\n').unwrap_or(saved.len());
        let notes: Notes = serde_json::from_slice(&saved[..end]).map_err(unreadable)?;
        if notes.rates.len() > self.candidates.len() {
            return Err(sterna::BadState::OfFit("it tried more networks than there are").into());
        }
        self.notes = notes;
        let mut current = self.begin()?;
        current.restore(saved.get(end + 1..).unwrap_or_default())?;
        self.current = Some(current);
        Ok(())
    }
}

fn unreadable(error: serde_json::Error) -> sterna::Error {
    sterna::BadState::Unreadable(error.to_string()).into()
}

fn broken_off() -> sterna::Error {
    sterna::BadState::OfFit("a trial broke off between two of its fits").into()
}
