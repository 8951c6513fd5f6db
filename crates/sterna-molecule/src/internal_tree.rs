//! The order in which internal coordinates place the atoms: a tree over the bonds.

use crate::bond_graph::BondGraph;
use crate::internal::{CoordinateKind, Placement};

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
pub(crate) fn build(graph: &BondGraph) -> (usize, Vec<Placement>, Vec<CoordinateKind>) {
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
