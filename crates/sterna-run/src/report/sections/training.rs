//! Training: did the loss fall, and does the transport beat the plain swap on samples it has not seen?

use super::{Section, pair_ticks};
use crate::report::chart::{Axis, Chart, Key};
use crate::report::figure::Figure;
use crate::report::format::{count, number, percent, significant};
use crate::report::load::Folder;
use crate::summary::Training;
use crate::traces::Labels;

pub fn section(folder: &Folder) -> Option<Section> {
    let training = folder.summary.training.as_ref()?;
    let labels = folder.traces.as_ref().map_or_else(Labels::default, |traces| traces.labels.clone());
    let charts = [losses(training, &labels), held_out(training)];
    Some(Section {
        id: "training",
        title: "Training",
        table: String::new(),
        introduction: format!(
            "The transport was trained for {} steps and then frozen. Whatever it learned, the run stays exact: every \
             path is weighed.",
            count(training.steps)
        ),
        figures: charts.into_iter().flatten().map(Figure::from).collect(),
    })
}

fn losses(training: &Training, labels: &Labels) -> Option<Chart> {
    let losses = &training.losses;
    if losses.len() < 2 {
        return None;
    }
    let rounds = labels.training_rounds.max(1);
    let window = (training.steps / rounds) as f64 / losses.len() as f64;
    let points: Vec<(f64, f64)> =
        losses.iter().enumerate().map(|(i, &l)| ((i as f64 + 1.0) * window, l)).collect();
    let name =
        if labels.loss.is_empty() { "mean loss".into() } else { format!("mean loss ({})", labels.loss) };
    let last = if rounds > 1 { " of the last round" } else { "" };
    let mut chart = Chart::new(
        "training-loss",
        "Loss",
        Axis::linear(&format!("training step{last}"), 0.0, points[points.len() - 1].0),
        Axis::around(&name, losses.iter().copied(), false),
    )
    .caption(
        "Means over equal parts of the steps. A curve that still falls at the end would gain from more steps.",
    )
    .description(format!(
        "The loss goes from {} to {}.",
        number(losses[0]),
        number(losses[losses.len() - 1])
    ));
    chart.line("c1", &points);
    for &(step, loss) in &points {
        chart.dot("c1", step, loss, 3.0);
        chart.tip(step, loss, format!("step {}: {}", count(step as u64), significant(loss, 4)));
    }
    Some(chart)
}

fn held_out(training: &Training) -> Option<Chart> {
    let (ours, plain) = (&training.rejection_rates, &training.plain_rejection_rates);
    if ours.is_empty() || ours.len() != plain.len() {
        return None;
    }
    let pairs = ours.len();
    let x = Axis::linear("pair of chains, from reference to target", -0.6, pairs as f64 - 0.4)
        .ticks(pair_ticks(pairs, 7))
        .no_grid();
    let gains = ours.iter().zip(plain).filter(|(o, p)| o < p).count();
    let mut chart = Chart::new(
        "training-gain",
        "With and without the transport",
        x,
        Axis::linear("share of swaps rejected", 0.0, 1.0),
    )
    .caption("On samples that training did not see. Where the transport does worse, plain swaps are used.")
    .description(format!("The transport rejects less than a plain swap on {gains} of {pairs} pairs."));
    for (n, (&ours, &plain)) in ours.iter().zip(plain).enumerate() {
        let at = n as f64;
        let better = ours < plain;
        chart.line(if better { "faint" } else { "c2" }, &[(at, ours), (at, plain)]);
        chart.dot("c5", at, plain, 4.5);
        chart.dot(if better { "c1" } else { "c2" }, at, ours, 4.5);
        let tip = format!("chains {n} and {}: {} with, {} without", n + 1, percent(ours), percent(plain));
        chart.tip(at, 0.5 * (ours + plain), tip);
    }
    chart.key(Key::Dot, "c5", "plain swap");
    chart.key(Key::Dot, "c1", "transport");
    if gains < pairs {
        chart.key(Key::Dot, "c2", "transport, worse: replaced");
    }
    Some(chart)
}
