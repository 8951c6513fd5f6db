//! The dihedrals that chemists name: φ and ψ of each residue, and ω of each peptide bond, in IUPAC's atom order.

use crate::MoleculeError;
use crate::bond_graph::BondGraph;
use crate::system::System;

/// φ and ψ of one residue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residue {
    /// C–N–Cα–C.
    pub phi: [usize; 4],
    /// N–Cα–C–N.
    pub psi: [usize; 4],
}

/// The backbone of a peptide, found from its bonds; empty where there is none.
///
/// ```
/// let molecule = sterna_molecule::alanine_dipeptide(300.0).unwrap();
/// let backbone = sterna_molecule::Backbone::find(molecule.system()).unwrap();
/// assert_eq!(backbone.residues[0].phi, [4, 6, 8, 14]);
/// assert_eq!(backbone.residues[0].psi, [6, 8, 14, 16]);
/// assert_eq!(backbone.peptide_bonds, [[1, 4, 6, 8], [8, 14, 16, 18]]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backbone {
    /// Residues that have both angles, in the order of their nitrogens.
    pub residues: Vec<Residue>,
    /// ω: Cα–C–N–Cα of each peptide bond, in the order of its carbons.
    pub peptide_bonds: Vec<[usize; 4]>,
}

impl Backbone {
    /// Looks for peptide bonds and what lies between them.
    pub fn find(system: &System) -> Result<Self, MoleculeError> {
        let graph = &BondGraph::new(system)?;
        let around = |atom: usize, element: char| {
            graph.neighbours[atom].iter().copied().filter(move |&n| graph.element(n) == element)
        };
        // Carbon and nitrogen of each peptide bond.
        let amides: Vec<(usize, usize)> = (0..system.atoms())
            .filter(|&c| graph.is_carbonyl(c))
            .flat_map(|c| around(c, 'N').map(move |n| (c, n)))
            .collect();
        // Carbons of a nitrogen beside the amide's own; one that leads on to a carbonyl comes first (proline has two).
        let beyond = |c: usize, n: usize| {
            let mut carbons: Vec<usize> = around(n, 'C').filter(|&a| a != c).collect();
            carbons.sort_by_key(|&a| !around(a, 'C').any(|b| graph.is_carbonyl(b)));
            carbons.first().copied()
        };
        let peptide_bond = |&(c, n): &(usize, usize)| {
            let before = around(c, 'C').next()?;
            Some([before, c, n, beyond(c, n)?])
        };
        let residue = |&(c, n): &(usize, usize)| {
            let alpha = beyond(c, n)?;
            let next = |(d, _): &&(usize, usize)| *d != c && graph.neighbours[alpha].contains(d);
            let &(d, m) = amides.iter().find(next)?;
            Some(Residue { phi: [c, n, alpha, d], psi: [n, alpha, d, m] })
        };
        let mut residues: Vec<Residue> = amides.iter().filter_map(residue).collect();
        residues.sort_by_key(|r| r.phi[1]);
        Ok(Self { residues, peptide_bonds: amides.iter().filter_map(peptide_bond).collect() })
    }
}
