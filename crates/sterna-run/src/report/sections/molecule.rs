//! Molecules: free energy over the backbone's angles, and how populated its basins are.

use super::Section;
use crate::report::chart::{Axis, Chart, Key};
use crate::report::format::{escape, percent, significant};
use crate::report::load::Folder;
use crate::report::{number_at, numbers};
use serde_json::Value;

/// Free energies (kJ/mol) at which the colour changes.
const LEVELS: [f64; 5] = [2.5, 5.0, 10.0, 15.0, 20.0];

pub fn section(folder: &Folder) -> Option<Section> {
    let residues = folder.angles.as_ref()?["residues"].as_array()?;
    let populations = folder.summary["molecule"]["residues"].as_array();
    let mut figures = Vec::new();
    for (i, residue) in residues.iter().enumerate() {
        figures.extend(map(i, residue).map(|chart| chart.figure()));
        figures.extend(populations.and_then(|all| all.get(i)).and_then(|basins| basin_bars(i, basins)));
    }
    Some(Section {
        id: "molecule",
        title: "The molecule",
        introduction: "Free energy over φ and ψ of each residue, from the draws of the target chain, and how populated its \
                       basins are."
            .into(),
        figures,
    })
}

fn name(residue: &Value) -> &str {
    residue["residue"].as_str().unwrap_or("residue")
}

fn angle(label: &str) -> Axis {
    let ticks = [-180, -90, 0, 90, 180].map(|a| (f64::from(a), format!("{a}°").replace('-', "−")));
    Axis::linear(label, -180.0, 180.0).ticks(ticks.to_vec())
}

/// Free energy of a residue over φ and ψ, from its entry in `phi_psi.json`.
pub fn map(i: usize, residue: &Value) -> Option<Chart> {
    let rows = residue["free_energy"].as_array()?;
    let width = 360.0 / rows.len() as f64;
    let title = format!("Free energy of {}", name(residue));
    let mut chart = Chart::new(&format!("phi-psi-{i}"), &title, angle("φ"), angle("ψ"))
        .height(420.0)
        .caption("In kJ/mol above the most populated cell; empty cells were never visited.")
        .description(format!("Map of the free energy of {} over the angles φ and ψ.", name(residue)));
    let mut cells: Vec<Vec<[f64; 4]>> = vec![Vec::new(); LEVELS.len() + 1];
    let at = |k: usize| -180.0 + width * k as f64;
    for (p, row) in rows.iter().enumerate() {
        for (q, &energy) in numbers(row).iter().enumerate().filter(|(_, e)| e.is_finite()) {
            let level = LEVELS.iter().position(|l| energy < *l).unwrap_or(LEVELS.len());
            cells[level].push([at(p), at(q), at(p + 1), at(q + 1)]);
            if (p + q).is_multiple_of(2) {
                let text = format!(
                    "φ {:.0}°, ψ {:.0}°: {} kJ/mol",
                    at(p) + 0.5 * width,
                    at(q) + 0.5 * width,
                    significant(energy, 3)
                );
                chart.tip(at(p) + 0.5 * width, at(q) + 0.5 * width, text);
            }
        }
    }
    for (level, cells) in cells.iter().enumerate() {
        let class = format!("c1 o{level}");
        chart.cells(&class, cells);
        let text = match LEVELS.get(level) {
            Some(top) => format!("below {top}"),
            None => format!("above {}", LEVELS[LEVELS.len() - 1]),
        };
        chart.key(Key::Area, &class, text);
    }
    Some(chart)
}

fn basin_bars(i: usize, basins: &Value) -> Option<String> {
    let rows: Vec<(&String, f64, f64)> = basins["basins"]
        .as_object()?
        .iter()
        .map(|(basin, p)| (basin, number_at(p, "population"), number_at(p, "standard_error")))
        .filter(|row| row.1.is_finite())
        .collect();
    let n = rows.len() as f64;
    let most = rows.iter().map(|r| r.1 + if r.2.is_finite() { 2.0 * r.2 } else { 0.0 }).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let ticks = rows.iter().enumerate().map(|(k, r)| (n - 1.0 - k as f64, r.0.clone())).collect();
    let title = format!("Basins of {}", name(basins));
    let words = rows.iter().map(|r| format!("{}: {}", r.0, percent(r.1))).collect::<Vec<_>>().join("; ");
    let y = Axis::linear("", -0.6, n - 0.4).ticks(ticks).no_grid();
    let mut chart =
        Chart::new(&format!("basins-{i}"), &title, Axis::linear("share of the draws", 0.0, 1.15 * most), y)
            .height(420.0)
            .caption("With one standard error.")
            .description(escape(&words));
    for (k, &(basin, share, error)) in rows.iter().enumerate() {
        let at = n - 1.0 - k as f64;
        chart.bar("c1", (0.0, at - 0.3), (share, at + 0.3));
        chart.line("ink", &[(share - error, at), (share + error, at)]);
        let error = if error.is_finite() { format!(" ± {}", percent(error)) } else { String::new() };
        chart.tip(share, at, format!("{basin}: {}{error}", percent(share)));
    }
    Some(chart.figure())
}
