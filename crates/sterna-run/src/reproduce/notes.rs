//! What is said beside the numbers: what differs from the paper, and why.

use super::Budget;
use super::plan::{Method, Problem, Row};
use super::tables::Mean;
use crate::report::format::count;

/// What stands above all.
pub fn introduction() -> Vec<String> {
    vec![
        "Every table and figure of the paper (Accelerated Parallel Tempering via Neural Transports), ours beside the printed \
         numbers. The page is made by `sterna reproduce` from the results that lie in `reproduction/`; a command below \
         each part makes it again. N counts chains, R round trips, K the steps of a transport; a dash stands for what the \
         paper does not have, or for runs that have not been made yet."
            .into(),
        "**What differs.** The paper's sign errors are corrected (`docs/errata.md`): above all the backward kernels of \
         CMCD, which as printed are rejected far more often (`docs/theory.md`). The standard budget trains networks of 16 \
         to 128 units for some minutes of one core, where the paper trains 4 layers of 512 for 200,000 steps on a GPU. The \
         full budget trains networks of the paper's sizes on batches of 512: CMCD for 60,000 steps (K = 5 with 30 chains: 80,000 on batches of 1,024), with a drift that has a \
         part along the score (`network.along_score`), flows for two rounds of 26,000 and 8,000 more on the round-trip loss, \
         diffusions for 24,000. \
         Also different: features of pair and time, an even mix of journeys from both ends of each pair, and a noise that \
         shrinks as chains close up (errata E8, E9). How much each of these adds was not measured here. Step \
         sizes, leapfrog steps, numbers of chains and iterations are the paper's, except in the rows that say otherwise. \
         Standard errors are of the mean over seeds (trained rows: two, but one of diffusions with 30 chains of ManyWell-32 and DW-4 and of the full budget; \
         other rows and those of molecules: four), training included. Processor-seconds are of one core, except \
         for CMCD in the full budget, which also samples on a GPU that eight runs share: there they say little."
            .into(),
    ]
}

/// What stands above a table.
pub fn table(problem: Problem, budget: Budget) -> String {
    let iterations = count(problem.iterations(budget));
    let scaled = match budget {
        Budget::Quick => " Printed round trips are scaled to as many.",
        _ => "",
    };
    let what = match problem {
        Problem::Gmm => "40 Gaussians in 10 dimensions, HMC with step size 0.03.",
        Problem::ManyWell => {
            "2¹⁶ modes in 32 dimensions, HMC with step size 0.22 (Diff-APT twice an iteration, as printed)."
        }
        Problem::Dw4 => {
            "Four particles in the plane, HMC with step size 0.22 (Diff-APT twice with 0.2, as printed), \
             equivariant networks."
        }
        Problem::Alanine => {
            "Alanine dipeptide in vacuum, 22 atoms, a geometric ladder of 4 chains from 1200 K to 300 K. The first rows \
             are closed-form transports in internal coordinates, which the paper does not have."
        }
    };
    format!("{what} {iterations} iterations.{scaled}")
}

/// Above the paper's normalised round trips.
pub const NORMALISED: &str =
    "Round trips divided by the evaluations that the paper counts for a swap (2 for PT and NF, K + 1 else):";

/// Above what the paper leaves out.
pub const HONEST: &str = "What the paper leaves out. Round trips per million target evaluations with every one counted (local moves, tuning, \
     collecting, training); round trips per processor-second of sampling alone, and of the whole run with training; the \
     error of log Z, with the farthest seed in standard errors:";

/// Below the boxes of free energies: why one method does not show what the other does.
pub const INDEPENDENT: &str = "**CMCD on independent ladders.** Its journeys lead along the path of plain swaps, between the same chains, and most of \
     the spread is what the local moves of those chains have not yet forgotten: with 40 local moves an iteration \
     (`explorer.steps`) in place of one, the spread of DW-4 with 10 chains falls to 0.055 (PT) and 0.040 (K = 5). So half of the \
     rejections does not mean half of the spread. Tried (`sterna measure-cell` on the `cell.json` of a figure's run with one setting \
     changed) on DW-4 with 10 chains (PT, K = 5): other random numbers 0.151, 0.103; \
     five local moves 0.103, 0.078; a burn-in of 10,000 and of 5,000 iterations 0.158, 0.106; four times the training, K = 5 0.100. \
     On ManyWell-32 with 10 chains: 20 local moves 0.126, 0.104; three times the training, K = 5 0.204. Diffusions, which \
     have a path of their own, reach a fifth of PT's spread or less with K = 5. In subsets of one long run the spread goes with Λ̂ (see the tables), which on \
     ManyWell-32 is lower for CMCD than for diffusions.";

/// Where we are below the paper, and why.
pub fn shortfalls(problem: Problem, budget: Budget, short: &[(Row, usize, Mean, f64)]) -> Option<String> {
    if budget == Budget::Quick {
        return None;
    }
    if short.is_empty() {
        return Some("In no cell are our round trips below the printed ones.".into());
    }
    let mut out = String::from("**Below the paper:** ");
    let cells: Vec<String> = short
        .iter()
        .map(|(row, chains, ours, theirs)| {
            let [ours, theirs] = [ours.value, *theirs].map(|r| count(r.round() as u64));
            format!("{} with {chains} chains ({ours} against {theirs})", row.title())
        })
        .collect();
    out += &cells.join(", ");
    out.push('.');
    let mut reasons: Vec<&str> = short.iter().filter_map(|(row, ..)| reason(problem, *row)).collect();
    reasons.dedup();
    for reason in reasons {
        out.push(' ');
        out += reason;
    }
    Some(out)
}

fn reason(problem: Problem, row: Row) -> Option<&'static str> {
    match (problem, row.method) {
        (_, Method::Plain) => Some(
            "Plain swaps have nothing to be trained: the printed figure lies within the spread of single runs.",
        ),
        (Problem::Gmm, Method::Diffusion) if row.steps < 2 => Some(
            "With the exact score of the diffusion (`accelerator.score = \"exact\"`) Diff-PT and K = 1 make 719 and 1,588 \
             round trips with 10 chains, 17 and 12 with 6: ours are within a few per cent of the former and far above \
             the latter, so with few chains a learned path does better than the diffusion's own, and the paper's did \
             better still. The means of the mixture, of which only the law is known (errata E19), may play a part.",
        ),
        (Problem::Dw4, Method::Diffusion) => Some(
            "The energy model of DW-4 has 16 units to save time; one of 32 made 4% more round trips with K = 5 and 10 chains \
             (16,674 against 15,996) and took twice as long.",
        ),
        (Problem::Dw4, Method::Cmcd) => Some(
            "CMCD of DW-4 is limited by its local moves: with 30 chains and K = 5 it makes 0.82 of the round trips that its \
             rejections allow (`exploration_efficiency`). Twice as many training steps lowered Λ̂ from 2.18 to 2.11, the \
             printed one, and left R at 12,100.",
        ),
        _ => None,
    }
}
