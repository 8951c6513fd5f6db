//! The last look of a job: optima that no draw came near, found once all draws are there.

use crate::problem::Problem;
use crate::trial::is_of_a_user;
use sterna::fitted::{Covariance, Starts};
use sterna::last_look::{LastLook, Seen, Weighty, normal_of, unanswered};
use sterna::records::Draws;
use sterna::run::Run;
use sterna::{Result, Streams};

/// One evaluation in so many is spent on it.
const SHARE: u64 = 8;

/// An optimum counts if so many effective draws should have come to it: that none did has then a probability of e⁻¹⁰, as far as its
/// curvature tells its mass.
pub(crate) const EXPECTED: f64 = 10.0;

/// Steps, at least and at most, that tell how much of the mass may lie where the target has no answer.
const STEPS: (u64, u64) = (1024, 4096);

/// A seed of its own, lest climbs begin where the first ones did.
const APART: u64 = 0x3C6E_F372_FE94_F82B;

/// Looks around the draws of a run that has ended; none for molecules, whose coordinates have other scales at each place, and for built-in
/// targets without a fitted reference, of which the truth is known.
pub(crate) fn look(problem: &Problem, run: &Run, seed: u64, draws: &[Draws]) -> Result<Option<Seen>> {
    let looks = problem.molecule.is_none() && (is_of_a_user(problem) || run.mixture().is_some());
    if !looks || draws.iter().all(|d| d.x.is_empty()) {
        return Ok(None);
    }
    let results = run.results();
    let dim = problem.dim();
    let own;
    let mixture = match run.mixture() {
        Some(mixture) => mixture,
        None => {
            own = normal_of(draws, dim)?;
            &own
        }
    };
    let ess = results.ess.iter().copied().fold(f64::INFINITY, f64::min);
    let effective = if ess.is_nan() { 1.0 } else { ess.max(1.0) };
    let streams = Streams::new(seed ^ APART);
    let look = LastLook {
        target: problem.target.clone(),
        mixture,
        found: run.found(),
        stood_out: run.stood_out(),
        begun: run.given_anchor().map(|(mean, deviation)| Starts { mean, deviation }),
        draws,
        covariance: Covariance::for_dim(dim),
        streams,
    };
    let weighty = Weighty { log_z: results.log_z.bar, share: EXPECTED / effective, effective };
    let budget = results.evaluations / SHARE;
    let mut seen = look.look(budget, weighty)?;
    if results.bad.0 > 0 {
        let steps = budget.clamp(STEPS.0, STEPS.1) as usize;
        let (lost, asked) = unanswered(&*problem.target, mixture, draws, &streams, steps)?;
        (seen.unanswered, seen.evaluations) = (lost, seen.evaluations + asked);
    }
    Ok(Some(seen))
}
