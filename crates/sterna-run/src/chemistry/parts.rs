//! Parts of a system that no bond holds together: do they stay with each other?

use serde::{Deserialize, Serialize};
use sterna_molecule::Molecule;

use crate::summary::number;

/// How far parts without a bond between them went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Apart {
    /// Parts that bonds hold together.
    pub parts: usize,
    /// How far the outermost was from the middle of all at the start, in nm.
    #[serde(deserialize_with = "number::one")]
    pub at_start_nm: f64,
    /// How far one was in any draw.
    #[serde(deserialize_with = "number::one")]
    pub farthest_nm: f64,
}

/// Beyond the start by so much, nothing draws parts back: charges and all else have died off, and the space to be lost in grows
/// with the third power.
const LOST_NM: f64 = 5.0;

impl Apart {
    /// Of positions before the run, and of all draws; none where all is one molecule.
    pub fn of<'a>(
        molecule: &Molecule,
        start: &[f64],
        draws: impl Iterator<Item = &'a [f64]>,
    ) -> Option<Self> {
        let bonds = molecule.system().bonds.iter().map(|bond| bond.atoms);
        let part = parts(molecule.atoms(), bonds);
        let count = part.iter().max().map_or(0, |last| last + 1);
        (count > 1).then(|| Self {
            parts: count,
            at_start_nm: outermost(start, &part, count),
            farthest_nm: draws.map(|x| outermost(x, &part, count)).fold(0.0, f64::max),
        })
    }

    /// Whether a part was lost.
    pub fn is_dissociated(&self) -> bool {
        // A position that is no number is lost as well.
        self.farthest_nm.is_nan() || self.farthest_nm >= 2.0 * self.at_start_nm + LOST_NM
    }
}

/// The part of each atom, numbered from 0.
fn parts(atoms: usize, bonds: impl Iterator<Item = [usize; 2]>) -> Vec<usize> {
    let mut root: Vec<usize> = (0..atoms).collect();
    fn find(root: &mut [usize], mut atom: usize) -> usize {
        while root[atom] != atom {
            root[atom] = root[root[atom]];
            atom = root[atom];
        }
        atom
    }
    for [a, b] in bonds {
        let (a, b) = (find(&mut root, a), find(&mut root, b));
        root[a.max(b)] = a.min(b);
    }
    let mut number = vec![None; atoms];
    let mut count = 0;
    (0..atoms)
        .map(|atom| {
            let root = find(&mut root, atom);
            *number[root].get_or_insert_with(|| {
                count += 1;
                count - 1
            })
        })
        .collect()
}

/// Distance of the part that is farthest from the middle of all parts.
fn outermost(x: &[f64], part: &[usize], count: usize) -> f64 {
    let mut middle = vec![[0.0; 4]; count];
    for (atom, &part) in part.iter().enumerate() {
        let sum = &mut middle[part];
        (0..3).for_each(|k| sum[k] += x[3 * atom + k]);
        sum[3] += 1.0;
    }
    let centre = |k: usize| middle.iter().map(|m| m[k] / m[3]).sum::<f64>() / count as f64;
    let all = [centre(0), centre(1), centre(2)];
    let away = |m: &[f64; 4]| (0..3).map(|k| (m[k] / m[3] - all[k]).powi(2)).sum::<f64>().sqrt();
    middle.iter().map(away).fold(0.0, |a: f64, b| if b.is_nan() { f64::INFINITY } else { a.max(b) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bonds_make_parts() {
        assert_eq!(parts(5, [[3, 4], [0, 2]].into_iter()), [0, 1, 0, 2, 2]);
        assert_eq!(parts(3, [[1, 2], [0, 1]].into_iter()), [0, 0, 0]);
    }

    #[test]
    fn parts_that_are_lost_are_told_from_parts_that_stay() {
        let part = [0, 0, 1];
        let start = [0.0, 0.0, 0.0, 0.2, 0.0, 0.0, 0.4, 0.0, 0.0];
        assert!((outermost(&start, &part, 2) - 0.15).abs() < 1e-12);
        let with = |farthest_nm| Apart { parts: 2, at_start_nm: 0.15, farthest_nm };
        assert!(!with(1.0).is_dissociated());
        assert!(with(6.0).is_dissociated() && with(1e55).is_dissociated() && with(f64::NAN).is_dissociated());
        assert_eq!(outermost(&[0.0, 0.0, 0.0, 0.2, 0.0, 0.0, f64::NAN, 0.0, 0.0], &part, 2), f64::INFINITY);
    }
}
