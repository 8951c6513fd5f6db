//! The φ/ψ free-energy map: numbers for programs, and a figure.

use crate::error::JobError;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::Path;

/// Cells along each angle: 5 degrees wide.
const CELLS: usize = 72;

/// Free energies above this (kJ/mol) have the figure's last colour.
const HIGHEST: f64 = 30.0;

/// −kB T ln p over φ and ψ, relative to its lowest cell.
#[derive(Clone, Debug)]
pub struct FreeEnergyMap {
    /// The residue's name.
    pub residue: String,
    /// kB T in kJ/mol.
    thermal_energy: f64,
    /// Draws in each cell, rows of φ from −180 degrees.
    counts: Vec<u64>,
}

/// `phi_psi.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhiPsi {
    /// Of the target chain, in kelvin.
    pub temperature: f64,
    /// One map per residue.
    pub residues: Vec<ResidueMap>,
}

/// The free energy of one residue, for programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResidueMap {
    /// The residue's name.
    pub residue: String,
    /// Middles of the cells along φ, in degrees.
    pub phi: Vec<f64>,
    /// Middles of the cells along ψ, in degrees.
    pub psi: Vec<f64>,
    /// Rows of φ; none where no draw fell.
    pub free_energy: Vec<Vec<Option<f64>>>,
    /// Draws in each cell.
    pub counts: Vec<Vec<u64>>,
    /// Of the free energy.
    pub unit: String,
    /// kB T in that unit.
    pub thermal_energy: Option<f64>,
}

impl PhiPsi {
    /// Some maps at a temperature.
    pub fn of(maps: &[FreeEnergyMap], temperature: f64) -> Self {
        Self { temperature, residues: maps.iter().map(FreeEnergyMap::residue).collect() }
    }

    /// Reads the file of a run folder.
    pub fn read(folder: &Path) -> Result<Self, JobError> {
        let file = folder.join("phi_psi.json");
        let bytes = std::fs::read(&file).map_err(JobError::file("read", &file))?;
        serde_json::from_slice(&bytes).map_err(|e| {
            JobError::Config(format!(
                "{} holds no map of φ and ψ that this version knows: {e}",
                file.display()
            ))
        })
    }
}

impl FreeEnergyMap {
    /// Counts angles in degrees, `[ensemble][draw]`.
    pub fn new(residue: String, thermal_energy: f64, phi: &[Vec<f64>], psi: &[Vec<f64>]) -> Self {
        let cell = |angle: f64| (((angle + 180.0) * CELLS as f64 / 360.0) as usize).min(CELLS - 1);
        let mut counts = vec![0; CELLS * CELLS];
        for (phi, psi) in phi.iter().flatten().zip(psi.iter().flatten()) {
            counts[cell(*phi) * CELLS + cell(*psi)] += 1;
        }
        Self { residue, thermal_energy, counts }
    }

    /// kJ/mol above the lowest cell; none where no draw fell.
    pub fn free_energy(&self, phi_cell: usize, psi_cell: usize) -> Option<f64> {
        let most = self.counts.iter().copied().max().unwrap_or(0) as f64;
        let count = self.counts[phi_cell * CELLS + psi_cell];
        (count > 0).then(|| self.thermal_energy * (most / count as f64).ln())
    }

    /// The maps of a run folder, one per residue, as its `phi_psi.json` has them. [`figure`](Self::figure) draws them,
    /// also those of several folders.
    ///
    /// # Errors
    /// If there is no such file, or it was not written by a run.
    pub fn read(folder: &Path) -> Result<Vec<Self>, JobError> {
        let file = folder.join("phi_psi.json");
        let maps: Option<Vec<Self>> = PhiPsi::read(folder)?.residues.iter().map(Self::from_residue).collect();
        maps.filter(|maps| !maps.is_empty()).ok_or_else(|| {
            JobError::Config(format!("{} holds no map of φ and ψ that this version knows", file.display()))
        })
    }

    fn from_residue(map: &ResidueMap) -> Option<Self> {
        let counts = map.counts.concat();
        let (residue, thermal_energy) = (map.residue.clone(), map.thermal_energy?);
        (counts.len() == CELLS * CELLS).then_some(Self { residue, thermal_energy, counts })
    }

    fn residue(&self) -> ResidueMap {
        let width = 360.0 / CELLS as f64;
        let centres: Vec<f64> = (0..CELLS).map(|i| -180.0 + width * (i as f64 + 0.5)).collect();
        let rows = |i| (0..CELLS).map(|j| self.free_energy(i, j)).collect();
        ResidueMap {
            residue: self.residue.clone(),
            phi: centres.clone(),
            psi: centres,
            free_energy: (0..CELLS).map(rows).collect(),
            counts: self.counts.chunks(CELLS).map(<[u64]>::to_vec).collect(),
            unit: "kJ/mol".into(),
            thermal_energy: Some(self.thermal_energy),
        }
    }

    /// An SVG picture of some maps, side by side.
    pub fn figure(maps: &[Self]) -> String {
        let (panel, margin) = (320.0, 56.0);
        let side = 252.0;
        let width = panel * maps.len() as f64 + 70.0;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {panel}\" font-family=\"sans-serif\" \
             font-size=\"11\">\n<title>Free energy over φ and ψ</title>\n\
             <rect width=\"{width}\" height=\"{panel}\" fill=\"#ffffff\"/>\n"
        );
        for (k, map) in maps.iter().enumerate() {
            let left = panel * k as f64 + margin;
            let top = 24.0;
            map.draw(&mut out, left, top, side);
        }
        legend(&mut out, width - 62.0, 24.0, side);
        out.push_str("</svg>\n");
        out
    }

    fn draw(&self, out: &mut String, left: f64, top: f64, side: f64) {
        let cell = side / CELLS as f64;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"16\" text-anchor=\"middle\" font-size=\"12\">{}</text>\n\
             <rect x=\"{left}\" y=\"{top}\" width=\"{side}\" height=\"{side}\" fill=\"#f4f4f4\"/>",
            left + side / 2.0,
            self.residue.replace(['<', '>', '&'], " ")
        );
        // Cells of a row with one colour are one rectangle: the file stays small.
        for j in 0..CELLS {
            let colour = |i: usize| self.free_energy(i, j).map(colour);
            let mut i = 0;
            while i < CELLS {
                let here = colour(i);
                let end = (i + 1..CELLS).find(|&e| colour(e) != here).unwrap_or(CELLS);
                if let Some(colour) = here {
                    let (x, y) = (left + cell * i as f64, top + side - cell * (j + 1) as f64);
                    let (w, h) = (cell * (end - i) as f64 + 0.1, cell + 0.1);
                    let _ = writeln!(
                        out,
                        "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{w:.2}\" height=\"{h:.2}\" fill=\"{colour}\"/>"
                    );
                }
                i = end;
            }
        }
        let _ = writeln!(
            out,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{side}\" height=\"{side}\" fill=\"none\" stroke=\"#333333\"/>"
        );
        for tick in [-180, -90, 0, 90, 180] {
            let along = side * (f64::from(tick) + 180.0) / 360.0;
            let (x, y) = (left + along, top + side - along);
            let below = top + side;
            let _ = writeln!(
                out,
                "<path d=\"M{x} {below}v4M{left} {y}h-4\" stroke=\"#333333\"/>\n\
                 <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{tick}</text>\n\
                 <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{tick}</text>",
                below + 16.0,
                left - 7.0,
                y + 4.0
            );
        }
        let (middle, below) = (left + side / 2.0, top + side + 32.0);
        let (beside, height) = (left - 38.0, top + side / 2.0);
        let _ = writeln!(
            out,
            "<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">φ (degrees)</text>\n\
             <text transform=\"translate({beside} {height}) rotate(-90)\" text-anchor=\"middle\">ψ (degrees)</text>"
        );
    }
}

/// A scale of colours with its numbers.
fn legend(out: &mut String, left: f64, top: f64, side: f64) {
    let steps = 30;
    let height = side / f64::from(steps);
    for step in 0..steps {
        let energy = HIGHEST * (f64::from(step) + 0.5) / f64::from(steps);
        let y = top + side - height * f64::from(step + 1);
        let _ = writeln!(
            out,
            "<rect x=\"{left}\" y=\"{y:.2}\" width=\"12\" height=\"{:.2}\" fill=\"{}\"/>",
            height + 0.1,
            colour(energy)
        );
    }
    for tick in [0.0, 10.0, 20.0, 30.0] {
        let y = top + side * (1.0 - tick / HIGHEST) + 4.0;
        let _ = writeln!(out, "<text x=\"{}\" y=\"{y}\">{tick}</text>", left + 16.0);
    }
    let _ = writeln!(out, "<text x=\"{}\" y=\"16\">kJ/mol</text>", left - 4.0);
}

/// Dark blue where the free energy is low, through green, to light yellow.
fn colour(energy: f64) -> String {
    const STOPS: [[f64; 3]; 5] = [
        [48.0, 18.0, 92.0],
        [43.0, 86.0, 139.0],
        [38.0, 146.0, 136.0],
        [122.0, 200.0, 92.0],
        [250.0, 232.0, 90.0],
    ];
    // Steps of half a kJ/mol, so that neighbouring cells share a colour.
    let place = (2.0 * energy).round() / (2.0 * HIGHEST);
    let along = place.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let i = (along as usize).min(STOPS.len() - 2);
    let part = along - i as f64;
    let [r, g, b] = std::array::from_fn(|c| STOPS[i][c] * (1.0 - part) + STOPS[i + 1][c] * part);
    format!("#{:02x}{:02x}{:02x}", r as u8, g as u8, b as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_cell_is_zero_and_ratios_are_energies() {
        let phi = vec![vec![-75.0; 8], vec![60.0, 60.0, 180.0, -180.0]];
        let psi = vec![vec![62.0; 8], vec![-62.0, -62.0, 180.0, -180.0]];
        let map = FreeEnergyMap::new("ALA 2".into(), 2.5, &phi, &psi);
        assert_eq!(map.free_energy(21, 48), Some(0.0));
        assert!((map.free_energy(48, 23).unwrap() - 2.5 * 4f64.ln()).abs() < 1e-12);
        assert_eq!((map.free_energy(0, 0), map.free_energy(71, 71)).0.map(f64::is_finite), Some(true));
        assert_eq!(map.free_energy(10, 10), None);
        // What a run folder holds makes the same picture.
        let text = serde_json::to_string(&PhiPsi::of(std::slice::from_ref(&map), 300.0)).unwrap();
        let file: PhiPsi = serde_json::from_str(&text).unwrap();
        let again = FreeEnergyMap::from_residue(&file.residues[0]).unwrap();
        assert_eq!(FreeEnergyMap::figure(&[again]), FreeEnergyMap::figure(std::slice::from_ref(&map)));
        assert!(FreeEnergyMap::from_residue(&ResidueMap::default()).is_none());
        assert!(FreeEnergyMap::read(Path::new("no/such/folder")).is_err());
        let figure = FreeEnergyMap::figure(&[map]);
        assert!(figure.starts_with("<svg") && figure.ends_with("</svg>\n") && !figure.contains("NaN"));
    }
}
