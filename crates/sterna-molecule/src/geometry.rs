//! What chemists look at: distances, dihedrals, named basins of φ and ψ, and handedness of chiral centres.
//! All functions take one conformation: 3n Cartesian coordinates in nm.

use crate::MoleculeError;
use crate::bond_graph::BondGraph;
use crate::system::System;
use sterna::lanes::one;

type Point = [f64; 3];

fn at(x: &[f64], atom: usize) -> Point {
    [x[3 * atom], x[3 * atom + 1], x[3 * atom + 2]]
}

fn minus(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn dot(a: Point, b: Point) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Point, b: Point) -> Point {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// The distance of two atoms in nm.
pub fn distance(x: &[f64], atoms: [usize; 2]) -> f64 {
    let d = minus(at(x, atoms[1]), at(x, atoms[0]));
    dot(d, d).sqrt()
}

/// The dihedral of four atoms in radian, in [−π, π]; IUPAC's sign.
///
/// ```
/// let x = [1.0, 0.0, 0.0,  0.0, 0.0, 0.0,  0.0, 0.0, 1.0,  0.0, 1.0, 1.0];
/// let angle = sterna_molecule::dihedral(&x, [0, 1, 2, 3]);
/// assert!((angle - std::f64::consts::FRAC_PI_2).abs() < 1e-15);
/// ```
pub fn dihedral(x: &[f64], atoms: [usize; 4]) -> f64 {
    let [i, j, k, l] = atoms.map(|atom| at(x, atom));
    let (b1, b2, b3) = (minus(j, i), minus(k, j), minus(l, k));
    let (m, n) = (cross(b1, b2), cross(b2, b3));
    one::atan2(dot(b2, b2).sqrt() * dot(b1, n), dot(m, n))
}

/// A chiral centre: an atom with four neighbours that are all different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChiralCentre {
    /// The atom.
    pub atom: usize,
    /// Three of its neighbours, in an order that gives the sign a meaning.
    pub neighbours: [usize; 3],
}

impl ChiralCentre {
    /// The chiral centres of a molecule, found from its bonds. The energy is the same for mirror images, so a centre
    /// that has flipped must be looked for: compare [`handedness`](Self::handedness) with that of the start.
    pub fn find(system: &System) -> Result<Vec<Self>, MoleculeError> {
        let graph = BondGraph::new(system)?;
        let labels = graph.environments(&system.masses);
        let centre = |atom: usize| {
            let mut neighbours = graph.neighbours[atom].clone();
            // Heaviest environment first.
            neighbours.sort_by_key(|&n| std::cmp::Reverse(labels[n]));
            let different = neighbours.windows(2).all(|pair| labels[pair[0]] != labels[pair[1]]);
            match neighbours[..] {
                [a, b, c, _] if different => Some(Self { atom, neighbours: [a, b, c] }),
                _ => None,
            }
        };
        Ok((0..system.atoms()).filter_map(centre).collect())
    }

    /// +1 or −1: the sign of the volume spanned by the bonds to the three neighbours. Mirror images differ.
    pub fn handedness(&self, x: &[f64]) -> f64 {
        let centre = at(x, self.atom);
        let [a, b, c] = self.neighbours.map(|n| minus(at(x, n), centre));
        dot(cross(a, b), c).signum()
    }
}

/// A region of the φ/ψ plane of alanine dipeptide in vacuum, angles in degrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basin {
    /// φ < 0, ψ near 70: the lowest, with a hydrogen bond over seven atoms.
    C7eq,
    /// φ < 0, ψ near 160: extended.
    C5,
    /// φ < 0, ψ near −50: right-handed helix.
    Alpha,
    /// φ between 0 and 125.
    C7ax,
}

impl Basin {
    /// All basins; together they fill the plane.
    pub const ALL: [Self; 4] = [Self::C7eq, Self::C5, Self::Alpha, Self::C7ax];

    /// The basin of two angles in radian.
    ///
    /// ```
    /// use sterna_molecule::Basin;
    ///
    /// assert_eq!(Basin::of((-75f64).to_radians(), 60f64.to_radians()), Basin::C7eq);
    /// assert_eq!(Basin::of(60f64.to_radians(), (-60f64).to_radians()), Basin::C7ax);
    /// ```
    pub fn of(phi: f64, psi: f64) -> Self {
        let degrees = |angle: f64| angle.to_degrees().rem_euclid(360.0);
        if degrees(phi) < 125.0 {
            return Self::C7ax;
        }
        match degrees(psi) {
            psi if (110.0..230.0).contains(&psi) => Self::C5,
            psi if (230.0..330.0).contains(&psi) => Self::Alpha,
            _ => Self::C7eq,
        }
    }

    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::C7eq => "C7eq",
            Self::C5 => "C5",
            Self::Alpha => "alphaR",
            Self::C7ax => "C7ax",
        }
    }
}
