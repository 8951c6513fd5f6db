//! Molecules: free energy over the backbone's angles, and how populated its basins are.

use super::Section;
use crate::chemistry::{Basins, ResidueMap};
use crate::report::chart::{Axis, Chart, Key};
use crate::report::figure::Figure;
use crate::report::format::{percent, significant, with_error};
use crate::report::load::Folder;

/// Free energies (kJ/mol) at which the colour changes.
const LEVELS: [f64; 5] = [2.5, 5.0, 10.0, 15.0, 20.0];

pub fn section(folder: &Folder) -> Option<Section> {
    let molecule = folder.summary.molecule.as_ref()?;
    let maps = folder.angles.as_ref().map_or(&[][..], |angles| &angles.residues);
    let mut charts = Vec::new();
    for (i, basins) in molecule.residues.iter().enumerate() {
        charts.extend(maps.get(i).and_then(|residue| map(i, residue)));
        charts.extend(basin_bars(i, basins, maps.get(i).and_then(|residue| residue.thermal_energy)));
    }
    Some(Section {
        id: "molecule",
        title: "The molecule",
        table: String::new(),
        introduction:
            "Free energy over φ and ψ of each residue, from the draws of the target chain, how populated its \
                       basins are, and what free energy lies between them."
                .into(),
        figures: charts.into_iter().map(Figure::from).collect(),
    })
}

fn angle(label: &str) -> Axis {
    let ticks = [-180, -90, 0, 90, 180].map(|a| (f64::from(a), format!("{a}°").replace('-', "−")));
    Axis::linear(label, -180.0, 180.0).ticks(ticks.to_vec())
}

/// Free energy of a residue over φ and ψ, from its entry in `phi_psi.json`.
pub fn map(i: usize, residue: &ResidueMap) -> Option<Chart> {
    let rows = &residue.free_energy;
    if rows.is_empty() {
        return None;
    }
    let width = 360.0 / rows.len() as f64;
    let title = format!("Free energy of {}", residue.residue);
    let mut chart = Chart::new(&format!("phi-psi-{i}"), &title, angle("φ"), angle("ψ"))
        .height(420.0)
        .caption("In kJ/mol above the most populated cell; empty cells were never visited.")
        .description(format!("Map of the free energy of {} over the angles φ and ψ.", residue.residue));
    let mut cells: Vec<Vec<[f64; 4]>> = vec![Vec::new(); LEVELS.len() + 1];
    let at = |k: usize| -180.0 + width * k as f64;
    for (p, row) in rows.iter().enumerate() {
        for (q, energy) in row.iter().enumerate().filter_map(|(q, e)| Some((q, (*e)?))) {
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

/// Free energies of the other basins above the fullest one, in words.
fn differences(rows: &[(&str, f64, f64)], thermal_energy: Option<f64>) -> Option<String> {
    let thermal_energy = thermal_energy.filter(|energy| *energy > 0.0)?;
    let &(fullest, most, its_error) = rows.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let of = |&(basin, share, error): &(&str, f64, f64)| {
        let energy = thermal_energy * (most / share).ln();
        // One share grows at the cost of another, so relative errors add; exactly so where there are two basins.
        let error = thermal_energy * (error / share + its_error / most);
        format!("{basin} {}", with_error(energy, error))
    };
    let others: Vec<String> = rows.iter().filter(|row| row.0 != fullest && row.1 > 0.0).map(of).collect();
    (!others.is_empty()).then(|| format!(" ΔF from {fullest}, in kJ/mol: {}.", others.join(", ")))
}

fn basin_bars(i: usize, basins: &Basins, thermal_energy: Option<f64>) -> Option<Chart> {
    let all = basins.all.iter().map(|(basin, p)| (basin.name(), p.share, p.standard_error));
    let rows: Vec<(&str, f64, f64)> = all.filter(|row| row.1.is_finite()).collect();
    let n = rows.len() as f64;
    let most = rows.iter().map(|r| r.1 + if r.2.is_finite() { 2.0 * r.2 } else { 0.0 }).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let ticks = rows.iter().enumerate().map(|(k, r)| (n - 1.0 - k as f64, r.0.to_string())).collect();
    let title = format!("Basins of {}", basins.residue);
    let words = rows.iter().map(|r| format!("{}: {}", r.0, percent(r.1))).collect::<Vec<_>>().join("; ");
    let y = Axis::linear("", -0.6, n - 0.4).ticks(ticks).no_grid();
    let mut chart =
        Chart::new(&format!("basins-{i}"), &title, Axis::linear("share of the draws", 0.0, 1.15 * most), y)
            .height(420.0)
            .caption(format!(
                "Shares with one standard error.{}",
                differences(&rows, thermal_energy).unwrap_or_default()
            ))
            .description(words);
    for (k, &(basin, share, error)) in rows.iter().enumerate() {
        let at = n - 1.0 - k as f64;
        chart.bar("c1", (0.0, at - 0.3), (share, at + 0.3));
        chart.line("ink", &[(share - error, at), (share + error, at)]);
        let error = if error.is_finite() { format!(" ± {}", percent(error)) } else { String::new() };
        chart.tip(share, at, format!("{basin}: {}{error}", percent(share)));
    }
    Some(chart)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two basins at 300 K: ΔF = kT ln(p / q), and its error is that of ln(p / (1 − p)).
    #[test]
    fn free_energies_between_basins() {
        let rows = [("C7ax", 0.1, 0.01), ("C7eq", 0.9, 0.01), ("aL", 0.0, f64::NAN)];
        let energy: f64 = 2.494 * 9f64.ln();
        let error = 2.494 * 0.01 / (0.1 * 0.9);
        let words = differences(&rows, Some(2.494)).unwrap();
        assert_eq!(words, format!(" ΔF from C7eq, in kJ/mol: C7ax {}.", with_error(energy, error)));
        assert!(words.contains("5.48 ± 0.28"), "{words}");
        assert_eq!(differences(&rows, None), None);
        assert_eq!(differences(&rows[1..], Some(2.494)), None);
    }
}
