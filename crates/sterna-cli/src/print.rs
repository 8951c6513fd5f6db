//! Tables and sentences for people.

use comfy_table::{CellAlignment, Table, presets::UTF8_HORIZONTAL_ONLY};
use std::path::Path;
use sterna_run::alarms::{Class, Verdict};
use sterna_run::chemistry::{Molecule, Population};
use sterna_run::config::{Config, TargetKind};
use sterna_run::payoff::{BreakEven, Payoff, Seen};
use sterna_run::reproduce::Outcome;
use sterna_run::reproduce::page::Block;
use sterna_run::summary::Summary;

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_header(header);
    table
}

fn align_right(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

pub fn targets() {
    let mut table = table(&["kind", "dim", "possible", "log Z", "exact draws", "what it is"]);
    for kind in TargetKind::all() {
        // A molecule from files, or a library, is known once its files are.
        let target = kind.problem().ok().map(|problem| problem.target);
        let mut stream = sterna::Streams::new(0).row(sterna::streams::Phase::Exact, 0, 0);
        let exact = target.as_ref().is_some_and(|t| t.draw(&mut stream, &mut vec![0.0; t.dim()]));
        let log_z = target.as_ref().and_then(|target| target.log_z());
        table.add_row([
            kind.kind().to_string(),
            target.map_or(String::new(), |target| target.dim().to_string()),
            kind.about().possible.to_string(),
            log_z.map_or("unknown".into(), |z| format!("{z:.6}")),
            if exact { "yes" } else { "no" }.to_string(),
            kind.about().about.to_string(),
        ]);
    }
    println!("{table}");
}

pub fn demo_introduction(config: &Config) {
    println!(
        "Demo: a mixture of 40 narrow Gaussians in {} dimensions. A single chain would stay in the mode where it\n\
         started. A ladder of {} chains leads from one broad Gaussian (the reference) to the mixture (the target), and\n\
         replicas carry news of all modes up and down it, where swaps let them pass. Plain swaps hardly do, here. So the\n\
         ladder is tuned, a normalising flow is trained to carry proposals from chain to chain, and then everything is\n\
         frozen and sampled: draws and log Z are exact whatever the flow has learned.\n",
        config.problem().map_or(0, |problem| problem.dim()),
        config.chains.count,
    );
}

pub fn summary(summary: &Summary, folder: &Path) {
    let (setup, time) = (&summary.setup, &summary.cost.time.clock);
    println!(
        "{}-{}: {} iterations of {} ladder{} of {} chains, {:.1} s tuning, {:.1} s sampling\n",
        setup.target.kind,
        setup.target.dim,
        setup.iterations,
        setup.ensembles,
        if setup.ensembles == 1 { "" } else { "s" },
        setup.chains,
        time.tuning_s,
        time.sampling_s,
    );
    println!("{}\n\n{}", ladder(summary), key_numbers(summary));
    if let (Some(payoff), Some(break_even)) = (&summary.cost.payoff, &summary.cost.break_even) {
        comparison(payoff, break_even);
    }
    if let Some(molecule) = &summary.molecule {
        basins(molecule);
    }
    for alarm in &summary.alarms {
        let word = if alarm.code.class() == Class::Note { "note" } else { "alarm" };
        println!("\n{word} {}: {}", alarm.code, alarm.message);
    }
    if let Some(note) = summary.reference.as_ref().and_then(|reference| reference.note.as_ref()) {
        println!("\nnote: {note}");
    }
    println!("\n{}", verdict_line(summary));
    println!("\nwritten to {}: summary.json, draws.nc, config.toml, log.jsonl", folder.display());
    println!("report: {}", folder.join("report.html").display());
}

/// What the alarms come to.
fn verdict_line(summary: &Summary) -> String {
    let of_class = |class| summary.alarms.iter().filter(move |alarm| alarm.code.class() == class);
    let names = |class| of_class(class).map(|alarm| alarm.code.name()).collect::<Vec<_>>().join(", ");
    let what = match summary.verdict {
        Verdict::Sound => format!("nothing seen speaks against {} and the draws", summary.log_z.name()),
        Verdict::Doubtful => {
            format!("they may be wrong by more than their errors say ({})", names(Class::Doubtful))
        }
        Verdict::Unsound => format!("do not use these results as they are ({})", names(Class::DoNotUse)),
    };
    let unchecked = summary.not_cross_checked().map_or(String::new(), |what| format!("; {what}"));
    format!("verdict {}: {what}{unchecked}", summary.verdict.name())
}

/// What a run found, in a line.
pub fn one_line(summary: &Summary) -> String {
    let z = &summary.log_z;
    let alarms = match summary.alarms.len() {
        0 => "no alarms".to_string(),
        _ => {
            format!("alarms: {}", summary.alarms.iter().map(|a| a.code.name()).collect::<Vec<_>>().join(", "))
        }
    };
    format!(
        "{}: {} round trips, {} {:.4} ± {:.4}, {alarms}",
        summary.verdict.name(),
        summary.swaps.round_trips,
        z.name(),
        z.bar,
        z.standard_error
    )
}

/// Chain by chain; of long ladders the ends and a few in between.
fn ladder(summary: &Summary) -> Table {
    let (chains, explorer) = (summary.setup.chains, &summary.moves.explorer);
    let mut rows = table(&["chain", "β", "rejected swaps", "overlap", &explorer.size, "accepted moves"]);
    let shown = |n: usize| {
        chains <= 12
            || n < 4
            || n + 4 >= chains
            || n.is_multiple_of(chains / 6)
            || summary.chain_name(n).is_some()
    };
    for n in (0..chains).filter(|&n| shown(n)) {
        let pair = |f: &dyn Fn(usize) -> f64| if n == 0 { String::new() } else { format!("{:.3}", f(n - 1)) };
        let acceptance = explorer.acceptance[n];
        let exact = acceptance.is_nan();
        rows.add_row([
            match summary.chain_name(n) {
                Some(name) => format!("{n} {name}"),
                None => n.to_string(),
            },
            format!("{:.6}", summary.setup.schedule[n]),
            pair(&|p| summary.swaps.rejection_rates[p]),
            pair(&|p| summary.log_z.pairs[p].overlap),
            if exact { "exact draws".into() } else { format!("{:.4}", explorer.step_size[n]) },
            if exact { String::new() } else { format!("{acceptance:.3}") },
        ]);
    }
    align_right(&mut rows, 1..6);
    rows
}

/// The numbers that a report begins with.
fn key_numbers(summary: &Summary) -> Table {
    let mut numbers = table(&["what", "value", "meaning"]);
    let mut row = |name: &str, value: String, meaning: &str| {
        numbers.add_row([name.to_string(), value, meaning.to_string()]);
    };
    let (swaps, z) = (&summary.swaps, &summary.log_z);
    row("round trips", swaps.round_trips.to_string(), "reference samples carried to the target and back");
    row(
        "efficiency",
        format!("{:.0}%", 100.0 * swaps.exploration_efficiency),
        "of the round trips that the swaps allow; low: local moves are the bottleneck",
    );
    row("barrier Λ", format!("{:.3}", swaps.global_barrier), "difficulty: about 2Λ chains serve best");
    row(&z.name(), format!("{:.4} ± {:.4}", z.bar, z.standard_error), "by Bennett's acceptance ratio");
    for leg in swaps.legs.iter().filter(|_| swaps.legs.len() == 2) {
        let from = if leg.reference == "anchor" { "anchor" } else { "fit" };
        let value = format!("{:.4} ± {:.4}", leg.log_z, leg.log_z_error);
        row(&format!("  from the {from}"), value, &format!("{} round trips", leg.round_trips));
    }
    if let Some(truth) = z.truth {
        let off = z.deviation().map_or("unknown".into(), |off| format!("{off:+.1}"));
        row("exact log Z", format!("{truth:.4}"), &format!("the estimate is {off} standard errors off"));
    }
    let worst = if summary.molecule.is_some() { "dihedral" } else { "coordinate" };
    let (ess, of_what) = summary.fewest_draws();
    let meaning = match &summary.goals {
        Some(_) => format!("of the worst {worst}, {of_what}"),
        None => format!("independent draws that the worst {worst} is worth"),
    };
    row("smallest ESS", format!("{ess:.0}"), &meaning);
    let cost = &summary.cost;
    row("evaluations", cost.evaluations.target.to_string(), "of the target, tuning and training included");
    let speed = format!("{:.0} /s", cost.time.iterations_per_second);
    row(
        "speed",
        speed,
        if summary.setup.ensembles == 1 { "iterations" } else { "iterations of all ladders" },
    );
    align_right(&mut numbers, 1..2);
    numbers
}

/// When the accelerator pays.
fn comparison(payoff: &Payoff, break_even: &BreakEven) {
    let mut rows =
        table(&["round trips", "per 1000 iterations", "per million evaluations", "per processor-second"]);
    let Seen { round_trips, iterations } = payoff.plain_seen;
    let plain = match payoff.plain_counted {
        true => "plain swaps".to_string(),
        false => format!("plain swaps (predicted; {round_trips} seen in {iterations} iterations)"),
    };
    let all = [
        (plain.as_str(), &payoff.plain),
        ("accelerated, sampling alone", &payoff.sampling),
        ("accelerated, everything counted", &payoff.everything),
    ];
    for (name, y) in all {
        rows.add_row([
            name.to_string(),
            format!("{:.1}", 1e3 * y.per_iteration),
            format!("{:.1}", 1e6 * y.per_evaluation),
            format!("{:.1}", y.per_processor_second),
        ]);
    }
    align_right(&mut rows, 1..4);
    println!("\n{rows}\n{}", payoff.sentence(break_even));
}

/// Populations of a molecule's basins.
fn basins(molecule: &Molecule) {
    if molecule.residues.is_empty() {
        return;
    }
    let mut rows = table(&["residue", "basin", "population", "given φ < 0"]);
    for residue in &molecule.residues {
        for (basin, population) in &residue.all {
            let given = residue.given_negative_phi.iter().find(|(other, _)| other == basin);
            rows.add_row([
                residue.residue.clone(),
                basin.name().to_string(),
                share(population),
                given.map_or(String::new(), |(_, population)| share(population)),
            ]);
        }
    }
    align_right(&mut rows, 2..4);
    println!("\n{rows}");
}

fn share(population: &Population) -> String {
    if population.standard_error.is_finite() {
        format!("{:.4} ± {:.4}", population.share, population.standard_error)
    } else {
        format!("{:.4}", population.share)
    }
}

pub fn verdict(verdict: &sterna_testkit::Verdict) {
    let checks = verdict.checks.len();
    for violation in verdict.violations.iter().take(20) {
        println!("violated: {violation}");
    }
    for check in verdict.failures().take(20) {
        println!("unlikely (p = {:.1e}): {}", check.p_value, check.name);
    }
    if verdict.passed() {
        println!(
            "sound: {checks} statistical checks, smallest p-value {:.1e}; a sound config fails with probability {:.0e}",
            verdict.smallest(),
            verdict.false_alarm
        );
    } else {
        println!("not sound");
    }
}

/// Seconds, to the minute where they are many.
pub fn minutes(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "an unknown time".into(),
        s if s < 90.0 => format!("{s:.0} s"),
        s => format!("{:.0} min", s / 60.0),
    }
}

/// Tables of what was reproduced, and what was expected of it.
pub fn reproduced(outcome: &Outcome) {
    for section in &outcome.sections {
        println!("\n{} ({} budget)", section.title, section.budget.name());
        for block in &section.blocks {
            if let Block::Table { header, rows } = block {
                let header: Vec<&str> = header.iter().map(String::as_str).collect();
                let mut out = table(&header);
                for row in rows {
                    out.add_row(row.iter().map(|cell| cell.replace("**", "")));
                }
                align_right(&mut out, 1..header.len());
                println!("{out}");
            }
        }
        section.checks.iter().for_each(|check| println!("{} {}", check.sign(), check.what));
    }
    println!("\nthe page: {}", outcome.page.display());
}
