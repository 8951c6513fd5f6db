//! The ladder itself: Λ(β), the schedule, and the energies of all chains.

use super::{Section, chain_ticks, shade};
use crate::report::chart::{Axis, Chart, Key};
use crate::report::figure::Figure;
use crate::report::format::{number, significant};
use crate::report::load::Folder;
use crate::summary::Summary;
use crate::traces::{Energy, Histogram, Traces};

pub fn section(folder: &Folder) -> Option<Section> {
    let summary = &folder.summary;
    let energies = folder.traces.as_ref().and_then(|traces| energies(summary, traces));
    let two = summary.swaps.legs.len() == 2;
    let charts = [barrier_so_far(summary), schedule(&summary.setup.schedule, two), energies];
    Some(Section {
        id: "ladder",
        title: "The ladder",
        table: String::new(),
        introduction: match two {
            true => "Chains lead from the fitted reference (β = 0) to the target (β = 1), and on to the broad anchor (β = 2). \
                     Tuning places those of each leg so that every pair has the same share of its barrier.",
            false => "Chains lead from the reference at β = 0 to the target at β = 1. Tuning places them so that every pair \
                      has the same share of the barrier.",
        }
        .into(),
        figures: charts.into_iter().flatten().map(Figure::from).collect(),
    })
}

/// Where the ends of two legs lie.
const ENDS: [(f64, &str); 3] = [(0.0, "fit 0"), (1.0, "target 1"), (2.0, "anchor 2")];

/// An axis of β over two legs.
fn two_legs_axis(label: &str) -> Axis {
    let between = [0.5, 1.5].map(|beta: f64| (beta, beta.to_string()));
    let ticks = ENDS.map(|(beta, name)| (beta, name.to_string())).into_iter().chain(between).collect();
    // Room for the names at both ends.
    Axis::linear(label, -0.08, 2.14).ticks(ticks)
}

/// Rejections up to each chain: Λ(β).
fn barrier_so_far(summary: &Summary) -> Option<Chart> {
    let (betas, rates) = (&summary.setup.schedule, &summary.swaps.rejection_rates);
    // Between two chains there is nothing to see.
    if betas.len() < 3 || betas.len() != rates.len() + 1 || rates.iter().any(|rate| !rate.is_finite()) {
        return None;
    }
    let mut line = vec![(betas[0], 0.0)];
    for (beta, rate) in betas[1..].iter().zip(rates) {
        line.push((*beta, line[line.len() - 1].1 + rate));
    }
    let (all, first) = (line[line.len() - 1].1, line.get(summary.target_number())?.1);
    let two = summary.swaps.legs.len() == 2;
    let what = match two {
        true => format!(
            "{} from the fit to the target, {} from there to the anchor",
            number(first),
            number(all - first)
        ),
        false => format!("{} in all", number(all)),
    };
    let (x, crowded) = if two { (two_legs_axis("β"), false) } else { beta_axis(betas) };
    let top = 1.08 * all.max(0.1);
    let mut chart =
        Chart::new("local-barrier", "Where the barrier is", x, Axis::linear("Λ(β), rejections so far", -0.09 * top, top))
            .caption(format!(
                "Sum of the rejection rates up to each chain: {what}. Where it rises steeply, swaps are hard. Ticks at the bottom \
                 are the chains."
            ))
            .description(format!("Sum of rejection rates over {} chains: {what}.", betas.len()));
    if two {
        chart.line("dash ink", &[(1.0, 0.0), (1.0, top)]);
        chart.key(Key::Dash, "ink", "target");
    }
    // A logarithmic axis has no 0: its left edge stands for it.
    let edge = if crowded { 0.5 * least(betas) } else { 0.0 };
    let seen: Vec<(f64, f64)> = line.iter().map(|&(beta, sum)| (beta.max(edge), sum)).collect();
    chart.line("c1", &seen);
    for (n, (&(at, sum), beta)) in seen.iter().zip(betas).enumerate() {
        chart.dot("c1", at, sum, 3.0);
        chart.whisker("c2", at, -0.09 * top, -0.03 * top);
        let name = summary.chain_name(n).map_or(format!("chain {n}"), |name| format!("chain {n}, {name}"));
        chart.tip(at, sum, format!("{name}, β = {}: {}", significant(*beta, 4), significant(sum, 3)));
    }
    chart.key(Key::Line, "c1", "Λ(β)");
    chart.key(Key::Line, "c2", "chains");
    Some(chart)
}

/// The least β that is not 0.
fn least(betas: &[f64]) -> f64 {
    betas.iter().copied().filter(|b| *b > 0.0).fold(1.0, f64::min)
}

/// An axis of β: logarithmic where most chains crowd near 0.
fn beta_axis(betas: &[f64]) -> (Axis, bool) {
    let small = least(betas);
    let crowded = betas.len() > 3 && betas[betas.len() / 2] < 0.1;
    match crowded {
        true => (Axis::log("β (logarithmic; the reference at the left edge)", 0.5 * small, 1.0), true),
        false => (Axis::linear("β, from reference to target", 0.0, 1.0), false),
    }
}

fn schedule(betas: &[f64], two_legs: bool) -> Option<Chart> {
    let chains = betas.len();
    if chains < 3 {
        return None;
    }
    let crowded = !two_legs && beta_axis(betas).1;
    let axis = match (two_legs, crowded) {
        (true, _) => two_legs_axis("β"),
        (_, true) => Axis::log("β", 0.5 * betas[1], 1.0),
        _ => Axis::linear("β", 0.0, 1.0),
    };
    let mut chart = Chart::new("schedule", "The schedule", Axis::whole("chain", chains, 0.4), axis)
        .caption(if crowded {
            "β of each chain; chain 0, at β = 0, lies below the axis."
        } else {
            "β of each chain."
        })
        .description(format!(
            "β from chain 0 to {}: {}.",
            chains - 1,
            betas.iter().map(|b| significant(*b, 3)).collect::<Vec<_>>().join(", ")
        ));
    let points: Vec<(f64, f64)> = betas
        .iter()
        .enumerate()
        .filter(|(_, b)| !crowded || **b > 0.0)
        .map(|(n, &b)| (n as f64, b))
        .collect();
    chart.line("c1", &points);
    for &(n, beta) in &points {
        chart.dot("c1", n, beta, 3.0);
        chart.tip(n, beta, format!("chain {n}: β = {}", significant(beta, 4)));
    }
    Some(chart)
}

/// Where a histogram begins that leaves out its lowest hundredth: a few points far down would take the room of all others.
fn lowest(histogram: &Histogram) -> f64 {
    let left_out = histogram.counts.iter().sum::<u64>() / 100;
    let mut sum = 0;
    let bins = histogram.counts.iter().take_while(|count| {
        sum += **count;
        sum <= left_out
    });
    histogram.low + bins.count() as f64 * histogram.width
}

fn energies(summary: &Summary, traces: &Traces) -> Option<Chart> {
    let histograms = &traces.energies;
    let chains = histograms.len();
    let filled = || histograms.iter().filter(|h| !h.counts.is_empty());
    let (low, high) = (
        filled().map(lowest).fold(f64::INFINITY, f64::min),
        filled().map(|h| h.high()).fold(f64::NEG_INFINITY, f64::max),
    );
    if low >= high {
        return None;
    }
    let (what, words) = match traces.energy {
        Energy::Target => (
            "log density of the target, not normalised",
            "The target's log density at the points of each chain, all but the lowest hundredth of them. Neighbours must overlap for plain swaps to pass.",
        ),
        Energy::Chain => (
            "log density of the chain, not normalised",
            "Each chain's own log density at its points, all but the lowest hundredth of them.",
        ),
    };
    // Drawn from high to low energy, as densities rise to the right.
    let x = match traces.energy_top {
        None => Axis::linear(what, low, high),
        Some(_) => {
            let depths = [0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5, 1e6, 1e7, 1e8];
            let ticks = depths
                .iter()
                .map(|d: &f64| (-d.ln_1p(), if *d == 0.0 { "0".into() } else { format!("−{}", number(*d)) }));
            Axis::linear(
                &format!("{what}, relative to the highest seen (logarithmic)"),
                -high.max(0.1),
                -low.max(0.0),
            )
            .ticks(ticks.collect())
        }
    };
    let side = if traces.energy_top.is_some() { -1.0 } else { 1.0 };
    let tallest = filled().flat_map(|h| h.density()).fold(0.0, f64::max);
    // Tall enough for neighbours to overlap a little, capped for the narrow ones.
    let scale = |density: f64, own: f64| 1.8 * density / own * (own / tallest).powf(0.25);
    let y = Axis::linear("chain", -0.3, chains as f64 + 0.9).ticks(chain_ticks(summary, 16));
    let mut chart = Chart::new("energies", "Energies of all chains", x, y)
        .wide()
        .height((90.0 + 22.0 * chains as f64).clamp(260.0, 640.0))
        .caption(words)
        .description(format!("Histograms of log densities for {chains} chains, stacked {}.", summary.way()));
    for n in (0..chains).rev() {
        let h = &histograms[n];
        if h.counts.is_empty() {
            continue;
        }
        let density = h.density();
        let own = density.iter().copied().fold(0.0, f64::max);
        if own <= 0.0 {
            continue;
        }
        let at = |b: f64| side * (h.low + b * h.width);
        let first = ((lowest(h) - h.low) / h.width).round() as usize;
        let mut outline: Vec<(f64, f64)> = vec![(at(first as f64), n as f64)];
        let bins = density.iter().enumerate().skip(first);
        outline.extend(bins.map(|(b, &d)| (at(b as f64 + 0.5), n as f64 + scale(d, own))));
        outline.push((at(density.len() as f64), n as f64));
        let class = shade(n, chains);
        chart.area(&format!("ridge {class}"), &outline, n as f64);
        chart.line(&class, &outline);
        let peak = density.iter().position(|d| *d == own).unwrap_or(0);
        let place = at(peak as f64 + 0.5);
        let value = traces.energy_top.map_or(place, |top| top - (-place).exp_m1());
        let lost = if h.not_finite > 0 { format!("; {} not finite", h.not_finite) } else { String::new() };
        chart.tip(
            place,
            n as f64 + scale(own, own),
            format!("chain {n}: most often near {}{lost}", significant(value, 4)),
        );
    }
    Some(chart)
}
