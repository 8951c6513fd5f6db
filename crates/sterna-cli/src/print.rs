//! Tables and sentences for people.

use crate::terminal::{self, Tone, align_right, paragraph, table};
use comfy_table::Table;
use serde_json::json;
use std::path::Path;
use sterna_run::alarms::{Class, Verdict};
use sterna_run::chemistry::{Molecule, Population};
use sterna_run::compare::{Compared, HEADER, in_short};
use sterna_run::config::{Config, TargetKind};
use sterna_run::payoff::{BreakEven, Payoff, Seen};
use sterna_run::report::format::{beside_error, by_error, count, number, percent, with_error};
use sterna_run::reproduce::Outcome;
use sterna_run::reproduce::page::Block;
use sterna_run::summary::{ChoiceSummary, Quantity, Summary};

/// What is known of a kind before it has its files.
struct Known {
    dim: Option<usize>,
    log_z: Option<f64>,
    draws: bool,
}

impl Known {
    fn of(kind: &TargetKind) -> Self {
        // A molecule from files, or a library, is known once its files are.
        let target = kind.problem().ok().map(|problem| problem.target);
        let mut stream = sterna::Streams::new(0).row(sterna::streams::Phase::Exact, 0, 0);
        Self {
            dim: target.as_ref().map(|target| target.dim()),
            log_z: target.as_ref().and_then(|target| target.log_z()),
            draws: target.as_ref().is_some_and(|t| t.draw(&mut stream, &mut vec![0.0; t.dim()])),
        }
    }
}

pub fn targets() {
    let mut rows = table(&["kind", "dim", "exact", "what it is"]);
    for kind in TargetKind::all() {
        let known = Known::of(&kind);
        let exact = match (known.log_z, known.draws) {
            (Some(_), true) => "log Z, draws",
            (Some(_), false) => "log Z",
            (None, true) => "draws",
            (None, false) => "",
        };
        rows.add_row([
            kind.kind().to_string(),
            known.dim.map_or(String::new(), |dim| dim.to_string()),
            exact.into(),
            kind.about().about.into(),
        ]);
    }
    align_right(&mut rows, 1..2);
    println!("{}", terminal::show(&rows));
    let hint = "`sterna init KIND` writes a config for one of them, with all that can be said in it.";
    println!("\n{}", paragraph(hint));
}

/// Runs side by side.
pub fn compared(runs: &[Compared]) {
    let [run, verdict, log_z, ess, _, rest @ ..] = HEADER;
    let header: Vec<&str> = [run, verdict, log_z, ess, "evals"].into_iter().chain(rest).collect();
    // Where lines have no room for all, evaluations go first, then barriers and round trips: the page has them.
    let without = |left_out: &[usize]| {
        let kept: Vec<usize> = (0..HEADER.len()).filter(|i| !left_out.contains(i)).collect();
        let mut rows = table(&kept.iter().map(|i| header[*i]).collect::<Vec<_>>());
        for run in runs {
            let mut cells = run.row();
            cells[4] = in_short(run.evaluations);
            rows.add_row(kept.iter().map(|i| cells[*i].clone()));
        }
        align_right(&mut rows, 2..kept.len());
        rows
    };
    let tables = [&[][..], &[4], &[4, 6], &[4, 6, 7]].map(without);
    println!("{}", terminal::show(&terminal::first_that_fits(tables)));
}

/// The same for programs.
pub fn targets_json() {
    let each = TargetKind::all().into_iter().map(|kind| {
        let (known, about) = (Known::of(&kind), kind.about());
        json!({
            "kind": kind.kind(),
            "dim": known.dim,
            "possible": about.possible,
            "log_z": known.log_z,
            "exact_draws": known.draws,
            "about": about.about,
        })
    });
    println!("{:#}", json!(each.collect::<Vec<_>>()));
}

pub fn demo_introduction(config: &Config) {
    let text = format!(
        "Demo: a mixture of 40 narrow Gaussians in {} dimensions. A single chain would stay in the mode where it started. A ladder of {} \
         chains leads from one broad Gaussian (the reference) to the mixture (the target), and replicas carry news of all modes up \
         and down it, where swaps let them pass. Plain swaps hardly do, here. So the ladder is tuned, a normalising flow is \
         trained to carry proposals from chain to chain, and then everything is frozen and sampled: draws and log Z are exact \
         whatever the flow has learned.",
        config.problem().map_or(0, |problem| problem.dim()),
        config.chains.count,
    );
    println!("{}\n", paragraph(&text));
}

pub fn summary(summary: &Summary, folder: &Path) {
    let (setup, time) = (&summary.setup, &summary.cost.time.clock);
    let began = format!(
        "{}-{}: {} iterations of {} ladder{} of {} chains, {:.1} s tuning, {:.1} s sampling",
        setup.target.kind,
        setup.target.dim,
        setup.iterations,
        setup.ensembles,
        if setup.ensembles == 1 { "" } else { "s" },
        setup.chains,
        time.tuning_s,
        time.sampling_s,
    );
    println!("{}\n", paragraph(&began));
    println!("{}\n\n{}", terminal::show(&ladder(summary)), terminal::show(&key_numbers(summary)));
    quantities(summary);
    if let Some(choice) = &summary.choice {
        chosen(choice);
    }
    if let (Some(payoff), Some(break_even)) = (&summary.cost.payoff, &summary.cost.break_even) {
        comparison(payoff, break_even);
    }
    if let Some(molecule) = &summary.molecule {
        basins(molecule);
    }
    for alarm in &summary.alarms {
        let word = if alarm.code.class() == Class::Note { "note" } else { "alarm" };
        println!("\n{}", paragraph(&format!("{word} {}: {}", alarm.code, alarm.message)));
    }
    if let Some(note) = summary.reference.as_ref().and_then(|reference| reference.note.as_ref()) {
        println!("\n{}", paragraph(&format!("note: {note}")));
    }
    println!("\n{}", verdict_line(summary));
    let files = match summary.merged.is_empty() {
        true => "summary.json, draws.nc, config.toml, log.jsonl",
        false => "summary.json, draws.nc",
    };
    println!("\nwritten to {}: {files}", folder.display());
    println!("report: {}", folder.join("report.html").display());
}

/// Rows of the table of parameters and observables; those with the fewest draws where there are more.
const MOST_QUANTITIES: usize = 24;

/// Parameters and observables, as far as they have names.
fn quantities(summary: &Summary) {
    let all: Vec<&Quantity> = summary.parameters.iter().chain(&summary.observables).collect();
    if all.is_empty() {
        return;
    }
    let mut shown: Vec<usize> = (0..all.len()).collect();
    // Constants have no effective draws to speak of.
    let draws =
        |i: &usize| Some(all[*i].ranks.ess_bulk).filter(|ess| ess.is_finite()).unwrap_or(f64::INFINITY);
    shown.sort_by(|a, b| draws(a).total_cmp(&draws(b)));
    shown.truncate(MOST_QUANTITIES);
    shown.sort_unstable();
    let rows: Vec<&Quantity> = shown.into_iter().map(|i| all[i]).collect();
    // On a narrow terminal sd and quantiles have fewer digits, then they go.
    let by_digits = [1.0, 10.0, 100.0].map(|coarser| quantities_table(&rows, coarser, true));
    let without = [1.0, 10.0].map(|coarser| quantities_table(&rows, coarser, false));
    let chosen = terminal::first_that_fits(by_digits.into_iter().chain(without));
    println!("\n{}", terminal::show(&chosen));
    if all.len() > MOST_QUANTITIES {
        println!("{MOST_QUANTITIES} of {}, those with the fewest draws; all are in summary.json", all.len());
    }
}

/// The table of some of them: sd and quantiles as if errors were so many times as large, or without them.
fn quantities_table(rows: &[&Quantity], coarser: f64, spread: bool) -> Table {
    let header = ["", "mean", "± error", "sd", "5%", "95%", "ESS", "R̂"];
    let kept: Vec<usize> = (0..header.len()).filter(|i| spread || !(3..6).contains(i)).collect();
    let mut out = table(&kept.iter().map(|i| header[*i]).collect::<Vec<_>>());
    for quantity in rows {
        let Quantity { name, mean, sd, mcse, ranks, .. } = quantity;
        let short = |value: f64| if value.is_nan() { "–".into() } else { by_error(value, coarser * mcse) };
        let ess = if ranks.ess_bulk.is_finite() { number(ranks.ess_bulk.round()) } else { "–".into() };
        let r_hat = if ranks.r_hat.is_finite() { format!("{:.3}", ranks.r_hat) } else { "–".into() };
        let [sd, low, high] = [*sd, ranks.q05, ranks.q95].map(short);
        let [mean, error] = [*mean, *mcse].map(|value| quantity.shown(value));
        let cells = [name.clone(), mean, error, sd, low, high, ess, r_hat];
        out.add_row(kept.iter().map(|i| cells[*i].clone()));
    }
    align_right(&mut out, 1..kept.len());
    out
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
    let (name, tone) = (summary.verdict.name(), tone(summary.verdict));
    // Coloured once its line has been broken: colours have no width.
    let text = paragraph(&format!("verdict {name}: {what}{unchecked}"));
    text.replacen(name, &terminal::coloured(name, tone), 1)
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Sound => Tone::Good,
        Verdict::Doubtful => Tone::Doubtful,
        Verdict::Unsound => Tone::Bad,
    }
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
        "{}: {} round trips, {} {}, {alarms}",
        summary.verdict.name(),
        count(summary.swaps.round_trips),
        z.name(),
        with_error(z.bar, z.standard_error)
    )
}

/// Chain by chain; of long ladders the ends and a few in between.
fn ladder(summary: &Summary) -> Table {
    let (chains, explorer) = (summary.setup.chains, &summary.moves.explorer);
    let mut header = vec!["chain", "β", "rejected", "overlap", &explorer.size, "accepted"];
    if !explorer.moves.is_empty() {
        header.push("moves");
    }
    let mut rows = table(&header);
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
        let mut row = vec![
            match summary.chain_name(n) {
                Some(name) => format!("{n} {name}"),
                None => n.to_string(),
            },
            format!("{:.6}", summary.setup.schedule[n]),
            pair(&|p| summary.swaps.rejection_rates[p]),
            pair(&|p| summary.log_z.pairs[p].overlap),
            if exact { "exact draws".into() } else { format!("{:.4}", explorer.step_size[n]) },
            if exact { String::new() } else { format!("{acceptance:.3}") },
        ];
        let moves = explorer.moves.get(n);
        row.extend(moves.map(|moves| if exact { String::new() } else { moves.to_string() }));
        rows.add_row(row);
    }
    align_right(&mut rows, 1..header.len());
    rows
}

/// The numbers that a report begins with.
fn key_numbers(summary: &Summary) -> Table {
    let mut numbers = table(&["what", "value", "meaning"]);
    let mut row = |name: &str, value: String, meaning: &str| {
        numbers.add_row([name.to_string(), value, meaning.to_string()]);
    };
    let (swaps, z) = (&summary.swaps, &summary.log_z);
    row("round trips", count(swaps.round_trips), "from reference to target and back");
    row("efficiency", percent(swaps.share_of_allowed()), "of the round trips that swaps allow");
    row("barrier Λ", number(swaps.global_barrier), "difficulty: 2Λ + 1 chains serve best");
    row(&z.name(), with_error(z.bar, z.standard_error), "by Bennett's acceptance ratio");
    for leg in swaps.legs.iter().filter(|_| swaps.legs.len() == 2) {
        let from = if leg.reference == "anchor" { "anchor" } else { "fit" };
        let value = with_error(leg.log_z, leg.log_z_error);
        row(&format!("  from the {from}"), value, &format!("{} round trips", count(leg.round_trips)));
    }
    if let Some(truth) = z.truth {
        let off = z.deviation().map_or("unknown".into(), |off| format!("{off:+.1}").replace("-", "−"));
        let exact = beside_error(truth, z.standard_error);
        row("exact log Z", exact, &format!("the estimate is {off} errors off"));
    }
    let (ess, of_what) = summary.fewest_draws();
    row("smallest ESS", number(ess.round()), &of_what);
    let cost = &summary.cost;
    row("evaluations", count(cost.evaluations.target), "of the target, all stages counted");
    let speed = format!("{}/s", number(cost.time.iterations_per_second.round()));
    row(
        "speed",
        speed,
        if summary.setup.ensembles == 1 { "iterations" } else { "iterations of all ladders" },
    );
    align_right(&mut numbers, 1..2);
    numbers
}

/// What was weighed, where the program was to choose what carries swaps.
fn chosen(choice: &ChoiceSummary) {
    if !choice.weighed.is_empty() {
        let mut rows = table(&ChoiceSummary::COLUMNS);
        choice.rows().into_iter().for_each(|row| {
            rows.add_row(row);
        });
        align_right(&mut rows, 1..6);
        println!("\n{}", terminal::show(&rows));
    }
    println!("{}{}", if choice.weighed.is_empty() { "\n" } else { "" }, paragraph(&choice.sentence()));
}

/// When the accelerator pays.
fn comparison(payoff: &Payoff, break_even: &BreakEven) {
    let mut rows = table(&["round trips per", "1000 iterations", "10⁶ evaluations", "CPU second"]);
    let all = [
        ("plain swaps", &payoff.plain),
        ("accelerated, sampling", &payoff.sampling),
        ("accelerated, all", &payoff.everything),
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
    println!("\n{}", terminal::show(&rows));
    let Seen { round_trips, iterations } = payoff.plain_seen;
    let predicted = match payoff.plain_counted {
        true => String::new(),
        false => format!(
            "Those of plain swaps are predicted: {round_trips} were seen in {iterations} iterations. "
        ),
    };
    println!("{}", paragraph(&format!("{predicted}{}", payoff.sentence(break_even))));
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
    println!("\n{}", terminal::show(&rows));
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
        println!("{}", paragraph(&format!("violated: {violation}")));
    }
    for check in verdict.failures().take(20) {
        println!("unlikely (p = {:.1e}): {}", check.p_value, check.name);
    }
    if verdict.passed() {
        let text = format!(
            "sound: {checks} statistical checks, smallest p-value {:.1e}; a sound config fails with probability {:.0e}",
            verdict.smallest(),
            verdict.false_alarm
        );
        println!("{}", paragraph(&text).replacen("sound", &terminal::coloured("sound", Tone::Good), 1));
    } else {
        println!("{}", terminal::coloured("not sound", Tone::Bad));
    }
}

/// The same for programs.
pub fn verdict_json(verdict: &sterna_testkit::Verdict) {
    let failures = verdict.failures().map(|check| json!({"name": check.name, "p_value": check.p_value}));
    let out = json!({
        "sound": verdict.passed(),
        "checks": verdict.checks.len(),
        "smallest_p_value": verdict.smallest(),
        "false_alarm": verdict.false_alarm,
        "violations": verdict.violations,
        "unlikely": failures.collect::<Vec<_>>(),
    });
    println!("{out:#}");
}

/// Seconds, to the minute where they are many.
pub fn minutes(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "an unknown time".into(),
        s if s < 90.0 => format!("{s:.0} s"),
        s => format!("{:.0} min", s / 60.0),
    }
}

/// What was expected of what was reproduced, for programs.
pub fn reproduced_json(outcome: &Outcome) {
    let sections = outcome.sections.iter().map(|section| {
        let checks = section.checks.iter();
        let checks =
            checks.map(|check| json!({"what": check.what, "must": check.must, "passed": check.passed}));
        json!({"title": section.title, "budget": section.budget.name(), "checks": checks.collect::<Vec<_>>()})
    });
    println!("{:#}", json!({"page": outcome.page, "sections": sections.collect::<Vec<_>>()}));
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
                println!("{}", terminal::show(&out));
            }
        }
        section.checks.iter().for_each(|check| println!("{} {}", check.sign(), check.what));
    }
    println!("\nthe page: {}", outcome.page.display());
}
