//! Who is bonded to whom, which bonds lie in rings, and what chemists call the torsions about the others.

use crate::MoleculeError;
use crate::system::System;

/// What turns about a bond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TorsionKind {
    /// C–N–Cα–C of a peptide.
    Phi,
    /// N–Cα–C–N of a peptide.
    Psi,
    /// Cα–C–N–Cα: the peptide bond, nearly always trans.
    Omega,
    /// A methyl group, with three equal minima.
    Methyl,
    /// Any other bond that may turn.
    Other,
}

/// Neighbours of each atom, and elements as far as masses tell.
pub(crate) struct BondGraph {
    pub neighbours: Vec<Vec<usize>>,
    elements: Vec<char>,
}

impl BondGraph {
    /// The graph of a system's bond terms, which must connect all atoms.
    pub(crate) fn new(system: &System) -> Result<Self, MoleculeError> {
        let mut neighbours = vec![Vec::new(); system.atoms()];
        for bond in &system.bonds {
            let [i, j] = bond.atoms;
            if !neighbours[i].contains(&j) {
                neighbours[i].push(j);
                neighbours[j].push(i);
            }
        }
        neighbours.iter_mut().for_each(|list| list.sort_unstable());
        let elements = system.masses.iter().map(|&mass| element(mass)).collect();
        let graph = Self { neighbours, elements };
        match graph.distances(0).iter().position(Option::is_none) {
            Some(atom) => Err(MoleculeError::NotConnected { atom, root: 0 }),
            None => Ok(graph),
        }
    }

    /// Bonds to every atom from `start`; none where there is no path.
    pub(crate) fn distances(&self, start: usize) -> Vec<Option<usize>> {
        let mut distance = vec![None; self.neighbours.len()];
        distance[start] = Some(0);
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(atom) = queue.pop_front() {
            for &next in &self.neighbours[atom] {
                if distance[next].is_none() {
                    distance[next] = distance[atom].map(|d| d + 1);
                    queue.push_back(next);
                }
            }
        }
        distance
    }

    /// One end of the longest path between heavy atoms (any atoms, in tiny molecules).
    pub(crate) fn end_of_longest_path(&self) -> usize {
        let heavy: Vec<usize> = (0..self.elements.len()).filter(|&a| self.elements[a] != 'H').collect();
        let candidates = if heavy.len() >= 3 { heavy } else { (0..self.elements.len()).collect() };
        let (mut best, mut end) = (0, candidates[0]);
        for &a in &candidates {
            let distances = self.distances(a);
            let longest = candidates.iter().filter_map(|&b| distances[b]).max().unwrap_or(0);
            if longest > best {
                (best, end) = (longest, a);
            }
        }
        end
    }

    /// Does the bond a–b lie in a ring? That is: are its ends still connected without it?
    pub(crate) fn in_ring(&self, a: usize, b: usize) -> bool {
        let mut seen = vec![false; self.neighbours.len()];
        seen[a] = true;
        let mut stack: Vec<usize> = self.neighbours[a].iter().copied().filter(|&n| n != b).collect();
        while let Some(atom) = stack.pop() {
            if atom == b {
                return true;
            }
            if !std::mem::replace(&mut seen[atom], true) {
                stack.extend(self.neighbours[atom].iter().filter(|&&n| !seen[n]));
            }
        }
        false
    }

    /// What the torsion about the bond a–b is called.
    pub(crate) fn torsion_kind(&self, a: usize, b: usize) -> TorsionKind {
        let either = |test: &dyn Fn(usize, usize) -> bool| test(a, b) || test(b, a);
        let is_amide = |c: usize, n: usize| self.is_carbonyl(c) && self.elements[n] == 'N';
        let amide_nitrogen =
            |n: usize| self.elements[n] == 'N' && self.neighbours[n].iter().any(|&c| self.is_carbonyl(c));
        let alpha_carbon = |ca: usize| {
            self.elements[ca] == 'C'
                && !self.is_carbonyl(ca)
                && self.neighbours[ca].iter().any(|&n| amide_nitrogen(n))
                && self.neighbours[ca].iter().any(|&c| self.is_carbonyl(c))
        };
        if either(&|p, _| self.hydrogens(p) == 3 && self.neighbours[p].len() == 4) {
            TorsionKind::Methyl
        } else if either(&is_amide) {
            TorsionKind::Omega
        } else if either(&|n, ca| amide_nitrogen(n) && alpha_carbon(ca)) {
            TorsionKind::Phi
        } else if either(&|ca, c| alpha_carbon(ca) && self.is_carbonyl(c)) {
            TorsionKind::Psi
        } else {
            TorsionKind::Other
        }
    }

    /// A label per atom, the same for atoms that the graph and the masses cannot tell apart. Heavier atoms have higher
    /// labels; ties are broken by neighbours, then theirs, and so on.
    pub(crate) fn environments(&self, masses: &[f64]) -> Vec<usize> {
        fn rank<T: PartialOrd>(keys: &[T]) -> Vec<usize> {
            keys.iter().map(|key| keys.iter().filter(|other| *other < key).count()).collect()
        }
        let mut labels = rank(masses);
        for _ in 0..masses.len() {
            let key = |atom: usize| {
                let mut around: Vec<usize> = self.neighbours[atom].iter().map(|&n| labels[n]).collect();
                around.sort_unstable_by(|a, b| b.cmp(a));
                (labels[atom], around)
            };
            let keys: Vec<(usize, Vec<usize>)> = (0..masses.len()).map(key).collect();
            let next = rank(&keys);
            if next == labels {
                break;
            }
            labels = next;
        }
        labels
    }

    /// The chemical symbol of a light atom; `?` for others.
    pub(crate) fn element(&self, atom: usize) -> char {
        self.elements[atom]
    }

    fn hydrogens(&self, atom: usize) -> usize {
        self.neighbours[atom].iter().filter(|&&n| self.elements[n] == 'H').count()
    }

    /// A carbon with an oxygen that has no other neighbour.
    pub(crate) fn is_carbonyl(&self, atom: usize) -> bool {
        let end = |&n: &usize| self.elements[n] == 'O' && self.neighbours[n].len() == 1;
        self.elements[atom] == 'C' && self.neighbours[atom].iter().any(end)
    }
}

/// The light elements, by mass in dalton; `?` for others.
fn element(mass: f64) -> char {
    match mass.round() as i64 {
        1 | 2 => 'H',
        12 => 'C',
        14 => 'N',
        16 => 'O',
        _ => '?',
    }
}
