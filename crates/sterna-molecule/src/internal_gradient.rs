//! Gradients in internal coordinates: the placement of atoms one after the other, differentiated backwards, for eight
//! conformations at once.

use crate::internal::Placement;
use crate::kernel::{Atom, load, store};
use crate::lane_math::Vector;
use sterna::lanes::{Kernel, Lanes, rsqrt, sin_cos};

/// Turns `adjoint`, a gradient in Cartesian coordinates, into one in (r, θ, φ) of each placement. What is left in
/// `adjoint` means nothing.
///
/// Each atom is x = p + r (−cos θ a + sin θ cos φ s + sin θ sin φ n), with a = (p − g)/|p − g|, n the unit vector along
/// (g − f) × a, and s = n × a; p, g and f were placed before it.
pub(crate) struct PullBack<'a> {
    pub root: usize,
    pub placements: &'a [Placement],
    pub cartesian: &'a [Atom],
    pub internal: &'a [Atom],
    pub adjoint: &'a mut [Atom],
    pub out: &'a mut [Atom],
}

/// The derivative of a unit vector v/|v| taken backwards: the part of `g` across it, over |v|.
#[inline(always)]
fn through_unit<L: Lanes>(unit: Vector<L>, inverse_length: L, g: Vector<L>) -> Vector<L> {
    unit.mul_add(-unit.dot(g), g).scale(inverse_length)
}

#[inline(always)]
fn add<L: Lanes>(adjoint: &mut [Atom], atom: usize, g: Vector<L>) {
    store(load::<L>(&adjoint[atom]).add(g), &mut adjoint[atom]);
}

impl Kernel for PullBack<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { root, placements, cartesian: x, internal, adjoint, out } = self;
        let zero = L::splat(0.0);
        for (k, place) in placements.iter().enumerate().skip(2).rev() {
            let Vector(r, angle, dihedral) = load::<L>(&internal[k]);
            let e = load::<L>(&adjoint[place.atom]);
            let (p, g) = (load::<L>(&x[place.parent]), load::<L>(&x[place.grandparent]));
            let b1 = g.sub(load(&x[place.fourth]));
            let b2 = p.sub(g);
            let b2_inverse = rsqrt(b2.dot(b2));
            let a = b2.scale(b2_inverse);
            let m = b1.cross(a);
            let m_inverse = rsqrt(m.dot(m));
            let n = m.scale(m_inverse);
            let s = n.cross(a);
            let ((sine, cosine), (sine_phi, cosine_phi)) = (sin_cos(angle), sin_cos(dihedral));
            let across = s.scale(cosine_phi).add(n.scale(sine_phi));
            let on_r = sine * e.dot(across) - cosine * e.dot(a);
            let on_angle = r * (sine * e.dot(a) + cosine * e.dot(across));
            let on_dihedral = r * sine * (cosine_phi * e.dot(n) - sine_phi * e.dot(s));
            store(Vector(on_r, on_angle, on_dihedral), &mut out[k]);
            // Adjoints of a, s and n, then of what they were made from.
            let adjoint_s = e.scale(r * sine * cosine_phi);
            let adjoint_n = a.cross(adjoint_s).add(e.scale(r * sine * sine_phi));
            let adjoint_m = through_unit(n, m_inverse, adjoint_n);
            let from_s_and_m = adjoint_s.cross(n).add(adjoint_m.cross(b1));
            let adjoint_a = from_s_and_m.sub(e.scale(r * cosine));
            let adjoint_b1 = a.cross(adjoint_m);
            let adjoint_b2 = through_unit(a, b2_inverse, adjoint_a);
            add(adjoint, place.parent, e.add(adjoint_b2));
            add(adjoint, place.grandparent, adjoint_b1.sub(adjoint_b2));
            add(adjoint, place.fourth, adjoint_b1.scale(L::splat(-1.0)));
        }
        let [first, second, ..] = placements else { return };
        let [x0, x1, x2] = [root, first.atom, second.atom].map(|atom| load::<L>(&x[atom]));
        let bond = x1.sub(x0);
        let along = bond.scale(rsqrt(bond.dot(bond)));
        let Vector(r, angle, _) = load::<L>(&internal[1]);
        let (sine, cosine) = sin_cos(angle);
        let (e1, e2) = (load::<L>(&adjoint[first.atom]), load::<L>(&adjoint[second.atom]));
        store(Vector(e1.add(e2).dot(along), zero, zero), &mut out[0]);
        // The next bond is r (−cos θ along + sin θ towards).
        let next = x2.sub(x1).scale(L::splat(1.0) / r);
        let towards = next.add(along.scale(cosine)).scale(L::splat(1.0) / sine);
        let on_angle = r * (sine * e2.dot(along) + cosine * e2.dot(towards));
        store(Vector(e2.dot(next), on_angle, zero), &mut out[1]);
    }
}
