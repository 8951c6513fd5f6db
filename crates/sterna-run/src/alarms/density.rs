//! Alarms of densities that are no numbers, or have no integral.

use super::Evidence;

/// Of less than this share of the mass nobody misses anything.
const LOST: f64 = 1e-3;

/// Draws that go so much farther than what a run began from …
const FAR: f64 = 1e6;
/// … and are worth fewer than so many hardly came back.
const FEW: f64 = 30.0;

impl Evidence<'_> {
    /// A density that does not fall off, or hardly does, lets its draws wander without an end.
    pub(super) fn carried_off(&self) -> Option<String> {
        let given = self.given?;
        let farthest = |j: usize| {
            let all = self.draws.iter().flat_map(|draws| draws.x.iter().skip(j).step_by(self.dim));
            all.fold(0.0, |most: f64, x| most.max(x.abs()))
        };
        let few = |j: &usize| self.results.ess.get(*j).is_some_and(|ess| ess.is_nan() || *ess < FEW);
        let far = |j: &usize| farthest(*j) > FAR * given[*j];
        let j = (0..given.len().min(self.dim)).filter(few).find(far)?;
        Some(format!(
            "draws of {} went as far as {:.0e} and hardly came back ({:.0} effective draws): the density may have \
             no integral, and log Z no meaning; give it bounds or a proper prior, or say how wide it is (reference.scale)",
            (self.name_of)(j),
            farthest(j),
            self.results.ess[j]
        ))
    }

    /// Proposals at which there was no density; far ones, where it had all but vanished before, are left alone.
    pub(super) fn bad_density(&self) -> Option<String> {
        let (count, first) = &self.results.bad;
        let first = first.as_ref()?;
        let are_numbers = first.point.iter().all(|x| x.is_finite());
        if are_numbers && self.unanswered.is_some_and(|lost| lost < LOST) {
            return None;
        }
        let lost = self.unanswered.map_or_else(String::new, |lost| match lost < 0.5 {
            true => {
                format!("; by steps from the draws, about {:.1}% of the mass may lie there", 100.0 * lost)
            }
            false => "; by steps from the draws, half of the mass or more may lie there".into(),
        });
        // A point of many coordinates is in summary.json.
        let shown: Vec<String> = first.point.iter().take(8).map(|x| format!("{x}")).collect();
        let more = if first.point.len() > 8 { ", …" } else { "" };
        if !are_numbers {
            return Some(format!(
                "{count} proposals led to points that are no numbers, or where the target answered NaN or +inf, and were \
                 rejected; the first in iteration {}, on chain {}, replica {}: the score is no number somewhere, which \
                 `sterna verify` may find; mend it, or sample without it (explorer.kind = \"slice\")",
                first.iteration, first.chain, first.replica
            ));
        }
        if let Some(said) = &self.said {
            return Some(format!(
                "the model threw an exception at {count} proposals, which were rejected; the first in iteration {}, on chain {}, \
                 replica {}, at [{}{more}]: {said}{lost}: a model is to be defined where its draws want to go",
                first.iteration,
                first.chain,
                first.replica,
                shown.join(", ")
            ));
        }
        Some(format!(
            "the target answered NaN or +inf at {count} proposals, which were rejected; the first in iteration {}, on \
             chain {}, replica {}, at [{}{more}]{lost}; mend the density there, or answer -inf where it vanishes",
            first.iteration,
            first.chain,
            first.replica,
            shown.join(", ")
        ))
    }
}
