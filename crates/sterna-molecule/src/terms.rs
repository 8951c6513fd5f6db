//! A system's terms compiled for the kernel: constants folded, equal dihedrals merged, pairs by atom.

use crate::system::{COULOMB, System};
use std::collections::HashMap;
use sterna::lanes::one::{cos, sin, sin_cos};

/// ½ k (r − r₀)².
#[derive(Clone)]
pub(crate) struct BondTerm {
    pub atoms: [u32; 2],
    pub length: f64,
    pub stiffness: f64,
}

/// ½ k (θ − θ₀)² with cos θ₀ and sin θ₀.
#[derive(Clone)]
pub(crate) struct AngleTerm {
    pub atoms: [u32; 3],
    pub cos: f64,
    pub sin: f64,
    pub stiffness: f64,
}

/// All torsion terms about one dihedral: constant + Σ aₙ cos nφ + bₙ sin nφ, n = 1 …
#[derive(Clone)]
pub(crate) struct TorsionTerm {
    pub atoms: [u32; 4],
    pub constant: f64,
    pub harmonics: Vec<[f64; 2]>,
}

/// 4ε(σ/r)¹² = c₁₂ r⁻¹², 4ε(σ/r)⁶ = c₆ r⁻⁶, and charge / r.
#[derive(Clone)]
pub(crate) struct PairTerm {
    pub other: u32,
    pub c12: f64,
    pub c6: f64,
    pub charge: f64,
}

/// The pairs of one atom with later ones: `pairs[start..end]`.
#[derive(Clone)]
pub(crate) struct PairRow {
    pub atom: u32,
    pub start: u32,
    pub end: u32,
}

/// Everything the kernel reads.
#[derive(Clone, Default)]
pub(crate) struct Terms {
    pub bonds: Vec<BondTerm>,
    pub angles: Vec<AngleTerm>,
    pub torsions: Vec<TorsionTerm>,
    pub rows: Vec<PairRow>,
    pub pairs: Vec<PairTerm>,
}

impl Terms {
    /// From a validated system.
    pub(crate) fn new(system: &System) -> Self {
        let bonds = system.bonds.iter().map(|bond| BondTerm {
            atoms: bond.atoms.map(|a| a as u32),
            length: bond.length,
            stiffness: bond.stiffness,
        });
        let angles = system.angles.iter().map(|angle| AngleTerm {
            atoms: angle.atoms.map(|a| a as u32),
            cos: cos(angle.angle),
            sin: sin(angle.angle),
            stiffness: angle.stiffness,
        });
        let (rows, pairs) = pairs(system);
        Self { bonds: bonds.collect(), angles: angles.collect(), torsions: torsions(system), rows, pairs }
    }
}

fn torsions(system: &System) -> Vec<TorsionTerm> {
    let mut terms: Vec<TorsionTerm> = Vec::new();
    let mut known: HashMap<[usize; 4], usize> = HashMap::new();
    for torsion in &system.torsions {
        // The dihedral read backwards is the same angle.
        let [i, j, k, l] = torsion.atoms;
        let key = if i < l { [i, j, k, l] } else { [l, k, j, i] };
        let index = *known.entry(key).or_insert_with(|| {
            terms.push(TorsionTerm { atoms: key.map(|a| a as u32), constant: 0.0, harmonics: Vec::new() });
            terms.len() - 1
        });
        let term = &mut terms[index];
        term.constant += torsion.stiffness;
        let (sin, cos) = sin_cos_exact(torsion.phase);
        let n = torsion.periodicity as usize;
        if n == 0 {
            term.constant += torsion.stiffness * cos;
            continue;
        }
        if term.harmonics.len() < n {
            term.harmonics.resize(n, [0.0; 2]);
        }
        term.harmonics[n - 1][0] += torsion.stiffness * cos;
        term.harmonics[n - 1][1] += torsion.stiffness * sin;
    }
    terms
}

/// Sine and cosine, exact where the angle is meant to be π.
fn sin_cos_exact(angle: f64) -> (f64, f64) {
    if angle.abs() == std::f64::consts::PI { (0.0, -1.0) } else { sin_cos(angle) }
}

fn pairs(system: &System) -> (Vec<PairRow>, Vec<PairTerm>) {
    let exceptions: HashMap<(usize, usize), (f64, f64, f64)> = system
        .exceptions
        .iter()
        .map(|e| {
            let [i, j] = e.atoms;
            ((i.min(j), i.max(j)), (e.charge_product, e.sigma, e.epsilon))
        })
        .collect();
    let (mut rows, mut pairs) = (Vec::new(), Vec::new());
    for (i, a) in system.particles.iter().enumerate() {
        let start = pairs.len() as u32;
        for (j, b) in system.particles.iter().enumerate().skip(i + 1) {
            let (charge, sigma, epsilon) = exceptions.get(&(i, j)).copied().unwrap_or_else(|| {
                (a.charge * b.charge, 0.5 * (a.sigma + b.sigma), (a.epsilon * b.epsilon).sqrt())
            });
            if charge == 0.0 && epsilon == 0.0 {
                continue;
            }
            let s6 = sigma.powi(6);
            pairs.push(PairTerm {
                other: j as u32,
                c12: 4.0 * epsilon * s6 * s6,
                c6: 4.0 * epsilon * s6,
                charge: COULOMB * charge,
            });
        }
        let end = pairs.len() as u32;
        if end > start {
            rows.push(PairRow { atom: i as u32, start, end });
        }
    }
    (rows, pairs)
}
