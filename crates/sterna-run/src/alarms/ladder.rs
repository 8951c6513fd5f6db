//! A note on what a ladder brought beside the moves of the target chain alone.

use super::Evidence;
use sterna::estimates::effective_sample_size;
use sterna::records::Draws;

/// It is worth a word where moves alone would do with so many times fewer evaluations.
const CHEAPER: f64 = 2.0;

/// With fewer chains beside the target there is little to save.
const FEWEST_PAIRS: usize = 3;

/// Fewer effective draws do not tell how much one iteration forgets.
const ENOUGH_DRAWS: f64 = 400.0;

/// Fewer arrivals from the reference may have missed a mode, of which moves within another know nothing …
const ENOUGH_TRIPS: u64 = 20;

/// … and fewer changes of the replica do not tell which iterations swap.
const ENOUGH_CHANGES: usize = 20;

impl Evidence<'_> {
    pub(super) fn idle_ladder(&self) -> Option<String> {
        let (results, pairs) = (self.results, self.results.schedule.pairs());
        let known = results.ess.iter().all(|ess| *ess >= ENOUGH_DRAWS);
        if !known || !self.features.is_empty() || pairs < FEWEST_PAIRS || results.round_trips < ENOUGH_TRIPS {
            return None;
        }
        let alone = turn_without_swaps(&self.draws)?;
        let slower = |series: &[Vec<f64>], ess: f64| {
            let draws: usize = series.iter().map(Vec::len).sum();
            time_of_moves(series, alone) / (draws as f64 / ess)
        };
        let of =
            |f: &dyn Fn(&Draws) -> Vec<f64>| -> Vec<Vec<f64>> { self.draws.iter().map(|d| f(d)).collect() };
        let mut most = ("the log density".to_string(), 0.0);
        let mut look = |name: &dyn Fn() -> String, series: Vec<Vec<f64>>, ess: Option<f64>| {
            let views: Vec<&[f64]> = series.iter().map(Vec::as_slice).collect();
            let slower = slower(&series, ess.unwrap_or_else(|| effective_sample_size(&views)));
            // What never changes has no effective draws that are a number, and stays behind.
            if slower > most.1 {
                most = (name(), slower);
            }
        };
        for (j, ess) in results.ess.iter().enumerate() {
            let column = of(&|d| d.x.chunks_exact(self.dim).map(|x| x[j]).collect());
            look(&|| (self.name_of)(j), column, Some(*ess));
        }
        look(&|| "the log density".into(), of(&|d| d.log_density.clone()), None);
        for watched in self.watched {
            let column = of(&|d| d.x.chunks_exact(self.dim).map(|x| (watched.value)(x)).collect());
            look(&|| watched.name.clone(), column, None);
        }
        let (name, slower) = most;
        let saved = pairs as f64 / slower;
        (slower > 0.0 && saved >= CHEAPER).then(|| {
            format!(
                "moves of the target chain alone would bring as many independent draws for as little as 1/{saved:.0} of the \
                 evaluations, as far as iterations without a swap tell (for {name} the ladder helps most, {slower:.1} times): \
                 it brings log Z, and modes that such moves would not reach, if there were any; where neither is wanted, \
                 plain Hamiltonian Monte Carlo from a few starts is cheaper"
            )
        })
    }
}

/// Swaps take turns between even and odd pairs, so that the target chain of one leg is left alone in every second iteration: those in which
/// its replica never changes. None where draws were thinned, or where it swaps in both turns.
fn turn_without_swaps(draws: &[&Draws]) -> Option<usize> {
    let changes = |turn: usize| -> usize {
        let of = |d: &&Draws| d.replica.windows(2).skip(turn).step_by(2).filter(|w| w[0] != w[1]).count();
        draws.iter().map(of).sum()
    };
    (0..2).find(|turn| changes(*turn) == 0 && changes(1 - turn) >= ENOUGH_CHANGES)
}

/// Iterations to an independent value if local moves alone were made, or somewhat more: what one forgets is a correlation ρ, and no
/// reversible moves with it need fewer than (1 + ρ)/(1 − ρ).
fn time_of_moves(series: &[Vec<f64>], turn: usize) -> f64 {
    let all = || series.iter().flatten();
    let mean = all().sum::<f64>() / all().count() as f64;
    let (mut product, mut squares) = (0.0, 0.0);
    for pair in series.iter().flat_map(|x| x.windows(2).skip(turn).step_by(2)) {
        let (a, b) = (pair[0] - mean, pair[1] - mean);
        product += a * b;
        squares += 0.5 * (a * a + b * b);
    }
    let rho = product / squares;
    ((1.0 + rho) / (1.0 - rho)).max(1.0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use sterna::streams::{Phase, Streams};

    /// Draws whose value forgets a share by each move, and whose replica, with its side of two, changes in every second iteration.
    pub(crate) fn moved(kept: f64, sides: f64) -> Draws {
        let mut stream = Streams::new(3).row(Phase::Check, 0, 0);
        let (mut x, mut side, mut all) = (0.0, 1.0, Draws::default());
        for t in 0..20_000_u32 {
            if t % 2 == 0 {
                side = if stream.uniform() < 0.5 { 1.0 } else { -1.0 };
            }
            x = kept * x + (1.0 - kept * kept).sqrt() * stream.normal();
            all.x.push(x + sides * side);
            all.log_density.push(x);
            all.replica.push(t / 2);
        }
        all
    }

    #[test]
    fn moves_without_swaps_are_found_and_timed() {
        let draws = moved(0.6, 0.0);
        // Draws 0 and 1 have one replica, 1 and 2 have two.
        assert_eq!(turn_without_swaps(&[&draws]), Some(0));
        let time = time_of_moves(std::slice::from_ref(&draws.x), 0);
        assert!((time - 4.0).abs() < 0.4, "{time}");
        // Sides that swaps alone change are never forgotten by moves.
        let sides = moved(0.6, 30.0);
        assert!(time_of_moves(&[sides.x], 0) > 500.0);
        // Thinned draws, or one replica throughout, tell nothing.
        let thinned =
            Draws { replica: draws.replica.iter().copied().step_by(2).collect(), ..Draws::default() };
        assert_eq!(turn_without_swaps(&[&thinned]), None);
        assert_eq!(turn_without_swaps(&[&Draws { replica: vec![3; 100], ..Draws::default() }]), None);
    }
}
