//! Internal coordinates from the bond graph: bonds, angles and torsions, with their exact Jacobian.
//!
//! Each atom after the third is placed from its parent p, grandparent g and a fourth atom t by the bond
//! length r = |a − p|, the angle θ at p between g and a, and the dihedral φ of t–g–p–a. Of the atoms that
//! hang on p one follows the chain (t is a neighbour of g: the torsion about the bond g–p), the others are
//! placed relative to that sibling (t is the sibling: a stiff improper dihedral). So each bond that can turn
//! has one soft torsion. Then dx = Π r² Π sin θ · dq · dR · dc with the rotation R and the centre c.

use crate::MoleculeError;
use crate::bond_graph::{BondGraph, TorsionKind};
use crate::internal_kernel::{Frame, PullBack, ToCartesian, ToInternal};
use crate::kernel::Atom;
use crate::lane_math::{Lane, gather, scatter};
use crate::system::System;
use std::cell::RefCell;
use sterna::lanes::one::{cos, sin};
use sterna::lanes::{WIDTH, dispatch};

/// What an internal coordinate measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoordinateKind {
    /// A bond length in nm.
    Bond,
    /// An angle in radian, in (0, π).
    Angle,
    /// A dihedral to a sibling: stiff.
    Improper,
    /// A torsion about a bond of a ring: stiff.
    Ring,
    /// A torsion about a bond that turns: soft.
    Torsion(TorsionKind),
}

impl CoordinateKind {
    /// Everything but torsions about bonds that turn.
    pub fn is_stiff(self) -> bool {
        !matches!(self, Self::Torsion(_))
    }

    /// Does it live on a circle?
    pub fn is_dihedral(self) -> bool {
        !matches!(self, Self::Bond | Self::Angle)
    }
}

/// One internal coordinate.
#[derive(Clone, Debug, PartialEq)]
pub struct Coordinate {
    /// What it measures.
    pub kind: CoordinateKind,
    /// The two, three or four atoms; the last is the one it places.
    pub atoms: Vec<usize>,
}

/// How one atom is placed: `atom` from parent, grandparent and fourth atom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub atom: usize,
    pub parent: usize,
    pub grandparent: usize,
    pub fourth: usize,
}

/// The internal coordinates of a molecule: 3n − 6 of them.
///
/// ```
/// use sterna_molecule::{CoordinateKind, InternalCoordinates, TorsionKind, alanine_dipeptide};
///
/// let molecule = alanine_dipeptide(300.0).unwrap();
/// let internal = InternalCoordinates::new(molecule.system()).unwrap();
/// let kinds = || internal.coordinates().iter().map(|c| c.kind);
/// assert_eq!(internal.dim(), 60);
/// assert_eq!(kinds().filter(|k| *k == CoordinateKind::Improper).count(), 12);
/// assert_eq!(kinds().filter(|k| !k.is_stiff()).count(), 7);
/// assert_eq!(kinds().filter(|k| *k == CoordinateKind::Torsion(TorsionKind::Methyl)).count(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct InternalCoordinates {
    atoms: usize,
    root: usize,
    /// One per atom but the first; of the first two only the parent, and parent and grandparent, are used.
    placements: Vec<Placement>,
    coordinates: Vec<Coordinate>,
}

impl InternalCoordinates {
    /// Coordinates along the bonds of a system.
    pub fn new(system: &System) -> Result<Self, MoleculeError> {
        let atoms = system.atoms();
        if atoms < 4 {
            return Err(MoleculeError::TooFewAtoms { found: atoms, needed: 4 });
        }
        let graph = BondGraph::new(system)?;
        let (root, placements, kinds) = placements_of(&graph);
        let mut coordinates = Vec::new();
        for (k, (place, kind)) in placements.iter().zip(kinds).enumerate() {
            let Placement { atom, parent, grandparent, fourth } = *place;
            let mut push =
                |kind, atoms: &[usize]| coordinates.push(Coordinate { kind, atoms: atoms.to_vec() });
            push(CoordinateKind::Bond, &[parent, atom]);
            if k > 0 {
                push(CoordinateKind::Angle, &[grandparent, parent, atom]);
            }
            if k > 1 {
                push(kind, &[fourth, grandparent, parent, atom]);
            }
        }
        Ok(Self { atoms, root, placements, coordinates })
    }

    /// Number of internal coordinates.
    pub fn dim(&self) -> usize {
        self.coordinates.len()
    }

    /// Number of Cartesian coordinates.
    pub fn cartesian_dim(&self) -> usize {
        3 * self.atoms
    }

    /// What each coordinate measures.
    pub fn coordinates(&self) -> &[Coordinate] {
        &self.coordinates
    }

    /// Where the torsions of a kind are among the coordinates.
    pub fn torsions(&self, kind: TorsionKind) -> impl Iterator<Item = usize> {
        let wanted = CoordinateKind::Torsion(kind);
        self.coordinates.iter().enumerate().filter(move |(_, c)| c.kind == wanted).map(|(i, _)| i)
    }

    /// Writes the internal coordinates of each Cartesian row, and log |∂x/∂q| = Σ 2 ln r + Σ ln sin θ.
    /// Where a bond has no length or an angle is straight this is −∞.
    ///
    /// # Panics
    /// If the lengths are not those of the same number of rows.
    pub fn to_internal(&self, cartesian: &[f64], internal: &mut [f64], log_jacobian: &mut [f64]) {
        self.check_rows(cartesian.len(), internal.len(), log_jacobian.len());
        let (from, to) = (self.cartesian_dim(), self.dim());
        with_block(self.atoms, |block| {
            let rows = cartesian.chunks(WIDTH * from).zip(internal.chunks_mut(WIDTH * to));
            for ((x, q), log_jacobian) in rows.zip(log_jacobian.chunks_mut(WIDTH)) {
                gather(x, from, block.cartesian.as_flattened_mut());
                self.block_to_internal(block);
                scatter(compact(&mut block.internal), to, q);
                log_jacobian.copy_from_slice(&block.log_jacobian.0[..log_jacobian.len()]);
            }
        });
    }

    /// Writes the conformation with the given internal coordinates, its centroid at the origin, the first bond
    /// along x and the third atom in the x–y plane; and log |∂x/∂q|, which is −∞ where there is no such
    /// conformation (r ≤ 0, or θ outside (0, π)).
    ///
    /// # Panics
    /// If the lengths are not those of the same number of rows.
    pub fn to_cartesian(&self, internal: &[f64], cartesian: &mut [f64], log_jacobian: &mut [f64]) {
        self.check_rows(cartesian.len(), internal.len(), log_jacobian.len());
        let (from, to) = (self.dim(), self.cartesian_dim());
        with_block(self.atoms, |block| {
            block.frame = Frame::standard();
            let rows = internal.chunks(WIDTH * from).zip(cartesian.chunks_mut(WIDTH * to));
            for ((q, x), log_jacobian) in rows.zip(log_jacobian.chunks_mut(WIDTH)) {
                gather(q, from, &mut block.internal.as_flattened_mut()[3..]);
                spread(&mut block.internal);
                self.block_to_cartesian(block);
                scatter(block.cartesian.as_flattened(), to, x);
                log_jacobian.copy_from_slice(&block.log_jacobian.0[..log_jacobian.len()]);
            }
        });
    }

    /// Turns the gradient of a function in Cartesian coordinates, at one conformation with its internal
    /// coordinates, into that in internal coordinates. The function must not see where the molecule lies or how
    /// it is turned.
    ///
    /// # Panics
    /// If the lengths are not those of one conformation.
    pub fn pull_back(&self, cartesian: &[f64], internal: &[f64], gradient: &[f64], out: &mut [f64]) {
        self.check_rows(cartesian.len(), internal.len(), 1);
        assert_eq!((gradient.len(), out.len()), (cartesian.len(), internal.len()), "one conformation");
        with_block(self.atoms, |block| {
            gather(cartesian, self.cartesian_dim(), block.cartesian.as_flattened_mut());
            gather(internal, self.dim(), &mut block.internal.as_flattened_mut()[3..]);
            spread(&mut block.internal);
            let mut adjoint = vec![Atom::default(); self.atoms];
            gather(gradient, self.cartesian_dim(), adjoint.as_flattened_mut());
            let mut pulled = vec![Atom::default(); self.atoms - 1];
            self.block_pull_back(block, &mut adjoint, &mut pulled);
            scatter(compact(&mut pulled), self.dim(), out);
        });
    }

    /// The derivative of log |∂x/∂q| in coordinate `c` at `value`.
    pub(crate) fn volume_slope(&self, c: usize, value: f64) -> f64 {
        match self.coordinates[c].kind {
            CoordinateKind::Bond => 2.0 / value,
            CoordinateKind::Angle => cos(value) / sin(value),
            _ => 0.0,
        }
    }

    fn check_rows(&self, cartesian: usize, internal: usize, log_jacobian: usize) {
        assert_eq!(cartesian, log_jacobian * self.cartesian_dim(), "Cartesian rows");
        assert_eq!(internal, log_jacobian * self.dim(), "internal rows");
    }

    /// From the block's Cartesian coordinates to internal ones, frame and log-Jacobian.
    pub(crate) fn block_to_internal(&self, block: &mut InternalBlock) {
        let InternalBlock { cartesian, internal, frame, log_jacobian } = block;
        let (root, placements) = (self.root, &self.placements[..]);
        dispatch(ToInternal { root, placements, cartesian, internal, frame, log_jacobian });
    }

    /// From the block's internal coordinates and frame to Cartesian ones (centred) and log-Jacobian.
    pub(crate) fn block_to_cartesian(&self, block: &mut InternalBlock) {
        let InternalBlock { cartesian, internal, frame, log_jacobian } = block;
        let (root, placements) = (self.root, &self.placements[..]);
        dispatch(ToCartesian { root, placements, cartesian, internal, frame, log_jacobian });
    }

    /// From a gradient in the block's Cartesian coordinates, which is spoilt, to one in its internal ones.
    pub(crate) fn block_pull_back(&self, block: &InternalBlock, adjoint: &mut [Atom], out: &mut [Atom]) {
        let InternalBlock { cartesian, internal, .. } = block;
        let (root, placements) = (self.root, &self.placements[..]);
        dispatch(PullBack { root, placements, cartesian, internal, adjoint, out });
    }

    /// Where coordinate `c` is in a block: (placement, r, θ or φ).
    pub(crate) fn slot(&self, c: usize) -> (usize, usize) {
        match c {
            0 => (0, 0),
            1 | 2 => (1, c - 1),
            _ => (c / 3 + 1, c % 3),
        }
    }

    /// Which of the torsions turn about an axis with an atom at most `reach` bonds from one of coordinate `c`.
    pub(crate) fn axes_within(&self, reach: usize, c: usize, torsions: &[usize]) -> Vec<bool> {
        let mut near: Vec<usize> = self.coordinates[c].atoms.clone();
        for _ in 0..reach {
            let bonds = self.coordinates.iter().filter(|b| b.kind == CoordinateKind::Bond);
            let next: Vec<usize> = bonds
                .flat_map(|b| [(b.atoms[0], b.atoms[1]), (b.atoms[1], b.atoms[0])])
                .filter(|(from, to)| near.contains(from) && !near.contains(to))
                .map(|(_, to)| to)
                .collect();
            near.extend(next);
        }
        torsions.iter().map(|&t| self.coordinates[t].atoms[1..3].iter().any(|a| near.contains(a))).collect()
    }
}

/// The 3n − 6 coordinates of a block, in order: the three unused ones of the first two placements go.
fn compact(internal: &mut [Atom]) -> &[Lane] {
    let lanes = internal.as_flattened_mut();
    // (r · ·)(r θ ·)(r θ φ)… → … r r θ | r θ φ …
    lanes[5] = lanes[4];
    lanes[4] = lanes[3];
    lanes[3] = lanes[0];
    &lanes[3..]
}

/// Undoes [`compact`].
fn spread(internal: &mut [Atom]) {
    let lanes = internal.as_flattened_mut();
    lanes[0] = lanes[3];
    lanes[3] = lanes[4];
    lanes[4] = lanes[5];
}

/// Eight conformations in both kinds of coordinates.
#[derive(Default)]
pub(crate) struct InternalBlock {
    pub cartesian: Vec<Atom>,
    /// (r, θ, φ) of each placement.
    pub internal: Vec<Atom>,
    pub frame: Frame,
    pub log_jacobian: Lane,
}

/// Runs `f` with this thread's block, made large enough.
pub(crate) fn with_block<R>(atoms: usize, f: impl FnOnce(&mut InternalBlock) -> R) -> R {
    thread_local! {
        static BLOCK: RefCell<InternalBlock> = RefCell::default();
    }
    BLOCK.with_borrow_mut(|block| {
        block.cartesian.resize(atoms, Atom::default());
        block.internal.resize(atoms - 1, Atom::default());
        f(block)
    })
}

/// A tree over the bonds, rooted at `root`: parents, and children with the longest chain first.
struct Tree {
    parent: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    breadth_first: Vec<usize>,
}

impl Tree {
    fn new(graph: &BondGraph, root: usize) -> Self {
        let atoms = graph.neighbours.len();
        let mut tree =
            Self { parent: vec![None; atoms], children: vec![Vec::new(); atoms], breadth_first: vec![root] };
        let mut next = 0;
        while next < tree.breadth_first.len() {
            let atom = tree.breadth_first[next];
            for &neighbour in &graph.neighbours[atom] {
                if neighbour != root && tree.parent[neighbour].is_none() {
                    tree.parent[neighbour] = Some(atom);
                    tree.children[atom].push(neighbour);
                    tree.breadth_first.push(neighbour);
                }
            }
            next += 1;
        }
        let mut size = vec![1; atoms];
        for &atom in tree.breadth_first.iter().rev() {
            if let Some(parent) = tree.parent[atom] {
                size[parent] += size[atom];
            }
        }
        for children in &mut tree.children {
            children.sort_by_key(|&child| (std::cmp::Reverse(size[child]), child));
        }
        tree
    }
}

/// The root, how each further atom is placed, and what its dihedral is.
fn placements_of(graph: &BondGraph) -> (usize, Vec<Placement>, Vec<CoordinateKind>) {
    let root = graph.end_of_longest_path();
    let tree = Tree::new(graph, root);
    let second = tree.children[root][0];
    let third = tree.children[second][0];
    let unused = CoordinateKind::Improper;
    let mut placements = vec![
        Placement { atom: second, parent: root, grandparent: root, fourth: root },
        Placement { atom: third, parent: second, grandparent: root, fourth: root },
    ];
    let mut kinds = vec![unused, unused];
    let about = |a: usize, b: usize| {
        if graph.in_ring(a, b) {
            CoordinateKind::Ring
        } else {
            CoordinateKind::Torsion(graph.torsion_kind(a, b))
        }
    };
    for &parent in &tree.breadth_first {
        // The root stands between its other children and the second atom.
        let grandparent = tree.parent[parent].unwrap_or(second);
        let fourth = if parent == root { Some(third) } else { tree.parent[grandparent] }.unwrap_or(second);
        let mut chain = if parent == second { Some(third) } else { None };
        for &atom in &tree.children[parent] {
            if atom == second || atom == third {
                continue;
            }
            let (fourth, kind) = match chain {
                None => (fourth, about(grandparent, parent)),
                Some(sibling) => (sibling, CoordinateKind::Improper),
            };
            placements.push(Placement { atom, parent, grandparent, fourth });
            kinds.push(kind);
            chain.get_or_insert(atom);
        }
    }
    (root, placements, kinds)
}
