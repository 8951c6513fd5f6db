//! Energy and forces of eight conformations at once.
//!
//! No trigonometry of dihedrals: their sines and cosines come from cross products, multiples of the
//! angle by rotation. Angles enter as θ − θ₀ through an arc tangent.

use crate::lane_math::{Lane, Vector};
use crate::terms::Terms;
use sterna::lanes::{Kernel, Lanes, atan2_right, rsqrt};

/// Coordinates, or forces, of one atom in eight conformations.
pub(crate) type Atom = [Lane; 3];

/// Computes `energy` (bond, angle, torsion, nonbonded) and `forces` of a block.
pub(crate) struct EnergyAndForces<'a> {
    pub terms: &'a Terms,
    pub positions: &'a [Atom],
    pub forces: &'a mut [Atom],
    pub energy: &'a mut [Lane; 4],
}

impl Kernel for EnergyAndForces<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { terms, positions, forces, energy } = self;
        for force in forces.iter_mut() {
            *force = [Lane::default(); 3];
        }
        bonds::<L>(terms, positions, forces).store(&mut energy[0].0);
        angles::<L>(terms, positions, forces).store(&mut energy[1].0);
        torsions::<L>(terms, positions, forces).store(&mut energy[2].0);
        nonbonded::<L>(terms, positions, forces).store(&mut energy[3].0);
    }
}

#[inline(always)]
pub(crate) fn load<L: Lanes>(atom: &Atom) -> Vector<L> {
    Vector(L::load(&atom[0].0), L::load(&atom[1].0), L::load(&atom[2].0))
}

#[inline(always)]
pub(crate) fn store<L: Lanes>(v: Vector<L>, atom: &mut Atom) {
    v.0.store(&mut atom[0].0);
    v.1.store(&mut atom[1].0);
    v.2.store(&mut atom[2].0);
}

#[inline(always)]
fn add<L: Lanes>(force: Vector<L>, atom: &mut Atom) {
    store(load::<L>(atom).add(force), atom);
}

#[inline(always)]
fn bonds<L: Lanes>(terms: &Terms, positions: &[Atom], forces: &mut [Atom]) -> L {
    let mut energy = L::splat(0.0);
    for bond in &terms.bonds {
        let [i, j] = bond.atoms.map(|a| a as usize);
        let d = load::<L>(&positions[j]).sub(load(&positions[i]));
        let r2 = d.dot(d);
        let inverse = rsqrt(r2);
        let stretch = r2.mul_add(inverse, L::splat(-bond.length));
        let pull = stretch * L::splat(bond.stiffness);
        energy = pull.mul_add(stretch, energy);
        let scale = pull * inverse;
        store(d.mul_add(scale, load(&forces[i])), &mut forces[i]);
        store(d.mul_add(-scale, load(&forces[j])), &mut forces[j]);
    }
    energy * L::splat(0.5)
}

#[inline(always)]
fn angles<L: Lanes>(terms: &Terms, positions: &[Atom], forces: &mut [Atom]) -> L {
    let mut energy = L::splat(0.0);
    let one = L::splat(1.0);
    for angle in &terms.angles {
        let [i, j, k] = angle.atoms.map(|a| a as usize);
        let vertex = load::<L>(&positions[j]);
        let a = load::<L>(&positions[i]).sub(vertex);
        let b = load::<L>(&positions[k]).sub(vertex);
        let normal = a.cross(b);
        let inverse_a = rsqrt(a.dot(a));
        let inverse_b = rsqrt(b.dot(b));
        // A straight angle has no plane: its normal is 0, and so is the force.
        let normal2 = normal.dot(normal) + L::splat(f64::MIN_POSITIVE);
        let inverse_normal = rsqrt(normal2);
        let inverse_ab = inverse_a * inverse_b;
        let cos = a.dot(b) * inverse_ab;
        let sin = normal2 * inverse_normal * inverse_ab;
        // δ = θ − θ₀ = 2 arctan(sin δ / (1 + cos δ)).
        let (cos0, sin0) = (L::splat(angle.cos), L::splat(angle.sin));
        let sin_delta = cos.mul_add(L::splat(-angle.sin), sin * cos0);
        let cos_delta = cos.mul_add(cos0, sin * sin0);
        let half = atan2_right(sin_delta, one + cos_delta);
        let delta = half + half;
        let moment = delta * L::splat(angle.stiffness);
        energy = moment.mul_add(delta, energy);
        // ∂θ/∂a = a × (a × b) / (|a|² |a × b|), and likewise for b.
        let scale = moment * inverse_normal;
        let on_i = a.cross(normal).scale(scale * inverse_a * inverse_a);
        let on_k = normal.cross(b).scale(scale * inverse_b * inverse_b);
        store(load::<L>(&forces[i]).sub(on_i), &mut forces[i]);
        store(load::<L>(&forces[k]).sub(on_k), &mut forces[k]);
        add(on_i.add(on_k), &mut forces[j]);
    }
    energy * L::splat(0.5)
}

#[inline(always)]
fn torsions<L: Lanes>(terms: &Terms, positions: &[Atom], forces: &mut [Atom]) -> L {
    let mut energy = L::splat(0.0);
    for torsion in &terms.torsions {
        let [i, j, k, l] = torsion.atoms.map(|a| a as usize);
        let (xj, xk) = (load::<L>(&positions[j]), load::<L>(&positions[k]));
        let b1 = xj.sub(load(&positions[i]));
        let b2 = xk.sub(xj);
        let b3 = load::<L>(&positions[l]).sub(xk);
        let (m, q) = (b1.cross(b2), b2.cross(b3));
        let b2_squared = b2.dot(b2);
        let inverse_b2 = rsqrt(b2_squared);
        let length_b2 = b2_squared * inverse_b2;
        let (inverse_m, inverse_q) = (rsqrt(m.dot(m)), rsqrt(q.dot(q)));
        let inverse_mq = inverse_m * inverse_q;
        let cos = m.dot(q) * inverse_mq;
        let sin = length_b2 * b1.dot(q) * inverse_mq;
        // (cos nφ, sin nφ) by turning φ further, n = 1, 2, …
        let minus_sin = -sin;
        let (mut cos_n, mut sin_n) = (cos, sin);
        let mut slope = L::splat(0.0); // dU/dφ
        let mut n = 1.0;
        energy = energy + L::splat(torsion.constant);
        for (index, &[a, b]) in torsion.harmonics.iter().enumerate() {
            if index > 0 {
                let next = sin_n.mul_add(minus_sin, cos_n * cos);
                sin_n = cos_n.mul_add(sin, sin_n * cos);
                cos_n = next;
            }
            energy = cos_n.mul_add(L::splat(a), sin_n.mul_add(L::splat(b), energy));
            slope = cos_n.mul_add(L::splat(n * b), sin_n.mul_add(L::splat(-n * a), slope));
            n += 1.0;
        }
        // ∂φ/∂xᵢ = −|b2| m/|m|², ∂φ/∂x_l = |b2| q/|q|²; the inner atoms balance force and torque.
        let push = slope * length_b2;
        let on_i = m.scale(push * inverse_m * inverse_m);
        let on_l = q.scale(push * inverse_q * inverse_q);
        let inverse_b2_squared = inverse_b2 * inverse_b2;
        let s = b1.dot(b2) * inverse_b2_squared;
        let t = b3.dot(b2) * inverse_b2_squared;
        let twist = on_l.mul_add(t, on_i.scale(s));
        add(on_i, &mut forces[i]);
        store(load::<L>(&forces[j]).sub(on_i).sub(twist), &mut forces[j]);
        store(load::<L>(&forces[k]).add(on_l).add(twist), &mut forces[k]);
        store(load::<L>(&forces[l]).sub(on_l), &mut forces[l]);
    }
    energy
}

#[inline(always)]
fn nonbonded<L: Lanes>(terms: &Terms, positions: &[Atom], forces: &mut [Atom]) -> L {
    let mut energy = L::splat(0.0);
    for row in &terms.rows {
        let i = row.atom as usize;
        let xi = load::<L>(&positions[i]);
        let mut fi = load::<L>(&forces[i]);
        for pair in &terms.pairs[row.start as usize..row.end as usize] {
            let j = pair.other as usize;
            let d = xi.sub(load(&positions[j]));
            let inverse = rsqrt(d.dot(d));
            let inverse2 = inverse * inverse;
            let inverse6 = inverse2 * inverse2 * inverse2;
            let repulsion = inverse6 * L::splat(pair.c12);
            let lennard_jones = repulsion - L::splat(pair.c6); // over r⁻⁶
            let coulomb = inverse * L::splat(pair.charge);
            energy = energy + inverse6.mul_add(lennard_jones, coulomb);
            // −dU/dr · r = 6 r⁻⁶ (2 c₁₂ r⁻⁶ − c₆) + charge / r.
            let both = repulsion + lennard_jones;
            let scale = inverse2 * (inverse6 * L::splat(6.0)).mul_add(both, coulomb);
            fi = d.mul_add(scale, fi);
            store(d.mul_add(-scale, load(&forces[j])), &mut forces[j]);
        }
        store(fi, &mut forces[i]);
    }
    energy
}
