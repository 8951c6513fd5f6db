//! Alarms of the draws: how many they are worth, and whether ladders agree about them.

use super::Evidence;
use super::occupation::{FALSE_ALARM, disagreement};
use sterna::estimates::Mixing;
use sterna::records::Draws;
use sterna_testkit::p_values::chi_square;

/// A quantity, and how well the ladders have mixed for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Looked {
    /// What people call it.
    pub name: String,
    /// By ranks.
    pub mixing: Mixing,
    /// Whether it changes in any run that moves at all: a coordinate does, a value made of them may not.
    pub moves: bool,
}

/// Fewer effective draws carry no error bar: their own number is then known to some tens of percent only.
const FEW_DRAWS: f64 = 100.0;

/// What Vehtari et al. (2021) ask for before they rely on ranks: with fewer, R̂ of eight halves is above 1.01 by chance.
pub(crate) const LOW_ESS: f64 = 400.0;

/// R̂ below this is no matter, whatever chance explains …
const R_HAT: f64 = 1.01;

/// … and above it one, where chance explains it less often than this, over all quantities.
const BY_CHANCE: f64 = 1e-3;

impl Looked {
    /// Effective draws of bulk and tails, whichever are fewer; none where it never changed.
    fn draws(&self) -> f64 {
        let Mixing { bulk, tail, .. } = self.mixing;
        let fewest = if tail < bulk { tail } else { bulk };
        if fewest.is_nan() { 0.0 } else { fewest }
    }

    fn is_known(&self) -> bool {
        self.moves || !self.mixing.bulk.is_nan()
    }
}

/// Rank-normalised R̂ of halves of ladders, beyond what chance explains.
pub(crate) fn r_hat_beyond_chance(all: &[Looked], whose: &str) -> Option<String> {
    let beyond = |looked: &&Looked| {
        let Mixing { r_hat, apart, degrees, .. } = looked.mixing;
        r_hat > R_HAT && chi_square(apart, degrees) * (all.len() as f64) < BY_CHANCE
    };
    let worst = all.iter().filter(beyond).max_by(|a, b| a.mixing.r_hat.total_cmp(&b.mixing.r_hat))?;
    Some(format!(
        "{whose} disagree about {}: R̂ is {:.3}, and chance explains little of it; sample longer, and if that does not \
         help, look for modes or tails that some never reached",
        worst.name, worst.mixing.r_hat
    ))
}

/// The quantity with the fewest effective draws.
fn fewest(all: &[Looked]) -> Option<(&Looked, f64)> {
    let known = all.iter().filter(|looked| looked.is_known());
    known.map(|looked| (looked, looked.draws())).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// What brings a molecule more independent draws: its reference is heat, whatever draws say.
pub(crate) const FOR_MOLECULES: &str =
    "moves that turn torsions (explorer.torsion_moves = 4) and a transport (accelerator.kind = \"affine\")";

/// Whether draws are worth too few for any use.
pub(crate) fn few_draws(all: &[Looked], is_molecule: bool) -> Option<String> {
    let (worst, draws) = fewest(all)?;
    (draws < FEW_DRAWS).then(|| {
        format!(
            "the draws are worth only {} independent ones for {}: neither means nor their errors can be relied on; {} help most, \
             then more iterations",
            draws.round(),
            worst.name,
            match is_molecule {
                true => FOR_MOLECULES,
                false => {
                    "a reference nearer to the target (reference.kind = \"fitted\"), moves that find their step (explorer.kind = \"auto\") \
                     or bounded, rescaled coordinates"
                }
            }
        )
    })
}

/// Whether draws are worth few.
pub(crate) fn low_ess(all: &[Looked]) -> Option<String> {
    let (worst, draws) = fewest(all)?;
    let part = if worst.mixing.tail < worst.mixing.bulk { "the tails" } else { "the bulk" };
    (FEW_DRAWS..LOW_ESS).contains(&draws).then(|| {
        format!(
            "the draws are worth {} independent ones in {part} of {}: enough for a look, few for quantiles and \
             for errors that are to be relied on; {LOW_ESS} are asked for (run.until.ess, or more iterations)",
            // As the table has it, but never as many as are asked for.
            draws.round().min(LOW_ESS - 1.0),
            worst.name
        )
    })
}

/// Where draws seldom go far out and then stay there for long, a mean is worth fewer of them than ranks are: `means` has what each
/// coordinate's is worth.
pub(crate) fn few_for_a_mean(
    all: &[Looked],
    means: &[f64],
    name_of: &dyn Fn(usize) -> String,
) -> Option<String> {
    let (_, by_ranks) = fewest(all)?;
    let known = means.iter().copied().enumerate().filter(|(_, draws)| !draws.is_nan());
    let (j, draws) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
    // Two estimates of the same number differ by less.
    (by_ranks >= LOW_ESS && draws < LOW_ESS && 2.0 * draws < by_ranks).then(|| {
        format!(
            "the draws are worth {} independent ones for the mean of {}, though as many as are asked for by ranks: they seldom go \
             far out there and then stay for long, and how much lies farther out is hard to tell; quantiles are better known than \
             this mean; {LOW_ESS} are asked for (run.until.ess, or more iterations)",
            draws.floor(),
            name_of(j)
        )
    })
}

impl Evidence<'_> {
    pub(super) fn low_ess(&self) -> Option<String> {
        // Coordinates of a molecule that turns as a whole have no mean that anybody asks for.
        let means = if self.features.is_empty() { &self.results.ess[..] } else { &[] };
        low_ess(&self.looked).or_else(|| few_for_a_mean(&self.looked, means, self.name_of))
    }

    pub(super) fn r_hat(&self) -> Option<String> {
        let whose = if self.draws.len() > 1 { "ladders, or halves of them," } else { "halves of the run" };
        r_hat_beyond_chance(&self.looked, whose)
    }

    pub(super) fn missed_mode(&self) -> Option<String> {
        let series = |i: usize| -> Draws {
            let draws = self.features.iter().map(|(_, ladders)| ladders[i].len()).min().unwrap_or(0);
            let x = (0..draws).flat_map(|t| self.features.iter().map(move |(_, ladders)| ladders[i][t]));
            Draws { x: x.collect(), ..Draws::default() }
        };
        let (found, what) = match self.features.first() {
            None => {
                let found = disagreement(&self.draws, self.dim)?;
                (found, (self.name_of)(found.coordinate))
            }
            Some((_, ladders)) => {
                let all: Vec<Draws> = (0..ladders.len()).map(series).collect();
                let found = disagreement(&all.iter().collect::<Vec<_>>(), self.features.len())?;
                (found, self.features[found.coordinate].0.clone())
            }
        };
        Some(format!(
            "ladders, or the two halves of the run, disagree about where the mass is: of the draws of the target chain \
             between {:.0}% and {:.0}% have {what} below {:.4} (p {}, false-alarm level {FALSE_ALARM:.0e}); some \
             of them may have missed a mode: run longer, with more chains, and compare ladders (chains.ensembles)",
            100.0 * found.lowest,
            100.0 * found.highest,
            found.threshold,
            if found.p_value < 1e-16 { "below 1e-16".into() } else { format!("= {:.0e}", found.p_value) }
        ))
    }
}
