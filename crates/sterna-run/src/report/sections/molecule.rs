//! Molecules: free energy over the backbone's angles, and how populated its basins are.

use super::Section;
use crate::chemistry::{Basins, ResidueMap};
use crate::report::chart::{Axis, Chart, Key};
use crate::report::figure::Figure;
use crate::report::format::{escape, percent, significant, with_error};
use crate::report::load::Folder;

/// Free energies (kJ/mol) at which the colour changes.
const LEVELS: [f64; 5] = [2.5, 5.0, 10.0, 15.0, 20.0];

pub fn section(folder: &Folder) -> Option<Section> {
    let molecule = folder.summary.molecule.as_ref()?;
    let maps = folder.angles.as_ref().map_or(&[][..], |angles| &angles.residues);
    let (mut charts, mut rows) = (Vec::new(), String::new());
    for (i, basins) in molecule.residues.iter().enumerate() {
        charts.extend(maps.get(i).and_then(|residue| map(i, residue)));
        charts.extend(basin_bars(i, basins));
        rows += &table_rows(basins, maps.get(i).and_then(|residue| residue.thermal_energy));
    }
    Some(Section {
        id: "molecule",
        title: "The molecule",
        table: table(&rows),
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

/// A basin: its name, its share of the draws, and the error of that.
type Basin<'a> = (&'a str, f64, f64);

fn shares(basins: &Basins) -> Vec<Basin<'_>> {
    let all = basins.all.iter().map(|(basin, p)| (basin.name(), p.share, p.standard_error));
    all.filter(|row| row.1.is_finite()).collect()
}

/// Free energy of each basin above the fullest one, with its error; of one that was never visited nothing is known.
fn free_energies(rows: &[Basin], thermal_energy: Option<f64>) -> Vec<Option<(f64, f64)>> {
    let thermal_energy = thermal_energy.filter(|energy| *energy > 0.0);
    let fullest = rows.iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|row| row.1 > 0.0);
    let Some((thermal_energy, &(name, most, its_error))) = thermal_energy.zip(fullest) else {
        return vec![None; rows.len()];
    };
    let of = |&(basin, share, error): &Basin| match share > 0.0 {
        true if basin == name => Some((0.0, 0.0)),
        // One share grows at the cost of another, so relative errors add; exactly so where there are two basins.
        true => {
            Some((thermal_energy * (most / share).ln(), thermal_energy * (error / share + its_error / most)))
        }
        false => None,
    };
    rows.iter().map(of).collect()
}

/// A row for each basin: its residue, its name, its share, its free energy.
fn table_rows(basins: &Basins, thermal_energy: Option<f64>) -> String {
    let rows = shares(basins);
    let cells = |(&(name, share, error), energy): (&Basin, Option<(f64, f64)>)| {
        let share = match (share > 0.0, error.is_finite()) {
            (true, true) => with_error(share, error),
            (true, false) => significant(share, 3),
            (false, _) => "never visited".into(),
        };
        let energy = energy.map_or("–".into(), |(energy, error)| match energy > 0.0 {
            true => with_error(energy, error),
            false => "0".into(),
        });
        let (residue, name) = (escape(&basins.residue), escape(name));
        format!("<tr><th scope=\"row\">{residue}</th><td>{name}</td><td>{share}</td><td>{energy}</td></tr>")
    };
    rows.iter().zip(free_energies(&rows, thermal_energy)).map(cells).collect()
}

fn table(rows: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head: String = ["residue", "basin", "share of the draws", "ΔF above the fullest, kJ/mol"]
        .map(|name| format!("<th scope=\"col\">{name}</th>"))
        .concat();
    format!(
        "<div class=\"scroll\"><table class=\"quantities\"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

fn basin_bars(i: usize, basins: &Basins) -> Option<Chart> {
    let rows = shares(basins);
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
            .caption("Shares of the draws with one standard error.")
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
        let [above, fullest, never] = free_energies(&rows, Some(2.494))[..] else { panic!("three basins") };
        let (found, its_error) = above.unwrap();
        assert!((found - energy).abs() < 1e-12 && (its_error - error).abs() < 1e-12, "{found} {its_error}");
        assert_eq!(with_error(found, its_error), "5.48 ± 0.28");
        assert_eq!((fullest, never), (Some((0.0, 0.0)), None));
        assert_eq!(free_energies(&rows, None), [None; 3]);
        assert_eq!(free_energies(&rows[2..], Some(2.494)), [None]);
    }
}
