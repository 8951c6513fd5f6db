//! The fitted reference and its anchor: what climbs found, and what was made of it.

use super::Section;
use super::cost::bars;
use crate::report::chart::{Axis, Chart};
use crate::report::figure::Figure;
use crate::report::format::{count, number, percent, significant};
use crate::report::load::Folder;
use crate::summary::{AnchorState, FittedReference, LegSummary, Summary};

pub fn section(folder: &Folder) -> Option<Section> {
    let summary = &folder.summary;
    let reference = summary.reference.as_ref()?;
    let charts = [legs(summary), normals(&reference.weights), optima(reference)];
    Some(Section {
        id: "reference",
        title: "Reference and anchor",
        table: String::new(),
        introduction: introduction(summary, reference),
        figures: charts.into_iter().flatten().map(Figure::from).collect(),
    })
}

fn introduction(summary: &Summary, reference: &FittedReference) -> String {
    let climbs = count(summary.cost.evaluations.climbing);
    let found = match &reference.optima[..] {
        [] => "found no optimum, so draws alone shaped the reference".into(),
        [one] => format!("found one optimum, with log density {}", number(one.log_density)),
        [best, ..] => format!(
            "found {} optima; most mass lies around one with log density {}",
            reference.optima.len(),
            number(best.log_density)
        ),
    };
    let normals = match reference.weights.len() {
        1 => "one normal".into(),
        n => format!("a mixture of {n} normals"),
    };
    let anchor = match reference.anchor {
        AnchorState::Kept => {
            "The anchor, a broad normal that follows no draws, keeps within reach what the fit has not seen."
        }
        AnchorState::GivenUp => "The anchor was given up.",
        AnchorState::Same => "It is where the anchor is, so there is no second leg.",
        AnchorState::None => "There is no anchor: what neither climbs nor draws have seen stays unseen.",
    };
    let note = match &reference.note {
        Some(note) => format!(" Note: {note}."),
        None => String::new(),
    };
    format!(
        "Climbs ({climbs} evaluations) {found}. The reference is {normals}, refitted to draws from round to round and frozen \
         before burn-in. {anchor}{note}"
    )
}

/// Round trips that began at each end.
fn legs(summary: &Summary) -> Option<Chart> {
    let name = |leg: &LegSummary| if leg.reference == "anchor" { "from the anchor" } else { "from the fit" };
    let legs = &summary.swaps.legs;
    // One alone has nothing beside it.
    if legs.len() < 2 {
        return None;
    }
    let rows: Vec<(&str, f64)> = legs.iter().map(|leg| (name(leg), leg.round_trips as f64)).collect();
    let words: Vec<String> = legs
        .iter()
        .map(|leg| format!("{}: {} chains, barrier {}", name(leg), leg.chains, number(leg.barrier)))
        .collect();
    let say = |trips: f64| count(trips as u64);
    bars("legs", "Round trips by leg", "round trips", &rows, say, Some(words.join("; ") + "."))
}

/// Weights of the mixture, where there are several normals.
fn normals(weights: &[f64]) -> Option<Chart> {
    let n = weights.len();
    if n < 2 || weights.iter().any(|weight| !weight.is_finite()) {
        return None;
    }
    let most = weights.iter().copied().fold(0.0, f64::max);
    let (x, y) = (Axis::whole("normal", n, 0.6), Axis::linear("weight", 0.0, 1.1 * most));
    let mut chart = Chart::new("components", "Normals of the reference", x, y)
        .height(240.0)
        .caption("Share of each in the mixture that replicas start anew from.")
        .description(format!("Weights of {n} normals; the largest is {}.", percent(most)));
    for (k, &weight) in weights.iter().enumerate() {
        chart.column("c1", k as f64, weight);
        chart.tip(k as f64, weight, format!("normal {k}: {}", percent(weight)));
    }
    Some(chart)
}

/// Mass around each optimum beside the best, by Laplace's estimate; of very many, the first.
fn optima(reference: &FittedReference) -> Option<Chart> {
    let all: Vec<_> = reference.optima.iter().filter(|o| o.log_evidence.is_finite()).take(40).collect();
    let best = all.iter().map(|o| o.log_evidence).fold(f64::NEG_INFINITY, f64::max);
    if !best.is_finite() || all.len() < 2 {
        return None;
    }
    // Far below the best, they do not matter: their bars end at the axis.
    let depth = |log_evidence: f64| (log_evidence - best).max(-30.0);
    let least = all.iter().map(|o| depth(o.log_evidence)).fold(-1.0, f64::min);
    let x = Axis::whole("optimum, by the mass around it", all.len(), 0.6);
    let y = Axis::linear("log mass, beside the best", 1.1 * least, 0.05 * -least);
    let mut chart = Chart::new("optima", "What climbs found", x, y)
        .height(240.0)
        .caption("Estimated from the curvature (Laplace); draws decide what each is truly worth.")
        .description(format!("{} optima; the least lies {} below the best.", all.len(), number(-least)));
    for (k, optimum) in all.iter().enumerate() {
        let height = depth(optimum.log_evidence);
        chart.line("faint", &[(k as f64, 1.1 * least), (k as f64, height)]);
        chart.dot("c2", k as f64, height, 5.0);
        let place: Vec<String> = optimum.at.iter().take(4).map(|x| significant(*x, 4)).collect();
        let more = if optimum.at.len() > 4 { ", …" } else { "" };
        let text = format!(
            "log density {} at ({}{more}); {} climb{} ended here",
            number(optimum.log_density),
            place.join(", "),
            optimum.climbs,
            if optimum.climbs == 1 { "" } else { "s" }
        );
        chart.tip(k as f64, height, text);
    }
    Some(chart)
}
