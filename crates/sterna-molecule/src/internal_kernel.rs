//! Internal coordinates of eight conformations at once: both ways, and gradients in them, by the placement of atoms one
//! after the other differentiated backwards.

use crate::internal::Placement;
use crate::kernel::{Atom, load, store};
use crate::lane_math::{Lane, Vector};
use std::f64::consts::PI;
use sterna::lanes::{Kernel, Lanes, atan2, ln, rsqrt, sin_cos};

/// Orientation of eight conformations: along the first bond, and towards the third atom.
#[derive(Clone, Copy, Default)]
pub(crate) struct Frame {
    along: Atom,
    towards: Atom,
}

impl Frame {
    /// Along x and towards y.
    pub(crate) fn standard() -> Self {
        let (zero, one) = (Lane::default(), Lane([1.0; 8]));
        Self { along: [one, zero, zero], towards: [zero, one, zero] }
    }
}

/// (r, θ, φ) of each placement, the frame, and log |∂x/∂q|.
pub(crate) struct ToInternal<'a> {
    pub root: usize,
    pub placements: &'a [Placement],
    pub cartesian: &'a [Atom],
    pub internal: &'a mut [Atom],
    pub frame: &'a mut Frame,
    pub log_jacobian: &'a mut Lane,
}

impl Kernel for ToInternal<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let x = self.cartesian;
        let [first, second, ..] = self.placements else { return };
        // The first three atoms: two lengths, an angle, and the frame.
        let zero = L::splat(0.0);
        let a = load::<L>(&x[first.atom]).sub(load(&x[self.root]));
        let b = load::<L>(&x[second.atom]).sub(load(&x[first.atom]));
        let (inverse_a, inverse_b) = (rsqrt(a.dot(a)), rsqrt(b.dot(b)));
        let (along, b_unit) = (a.scale(inverse_a), b.scale(inverse_b));
        let cosine = -along.dot(b_unit);
        let across = along.mul_add(cosine, b_unit); // b̂ without its part along the first bond
        let inverse_sine = rsqrt(across.dot(across));
        let towards = across.scale(inverse_sine);
        let sine = across.dot(across) * inverse_sine;
        store(along, &mut self.frame.along);
        store(towards, &mut self.frame.towards);
        let (r1, r2) = (a.dot(a) * inverse_a, b.dot(b) * inverse_b);
        store(Vector(r1, zero, zero), &mut self.internal[0]);
        store(Vector(r2, atan2(sine, cosine), zero), &mut self.internal[1]);
        let mut log_jacobian = ln(r1 * r1) + ln(r2 * r2 * sine);
        for (place, q) in self.placements.iter().zip(self.internal).skip(2) {
            let (xp, xg) = (load::<L>(&x[place.parent]), load::<L>(&x[place.grandparent]));
            let b1 = xg.sub(load(&x[place.fourth]));
            let b2 = xp.sub(xg);
            let b3 = load::<L>(&x[place.atom]).sub(xp);
            let (m, n) = (b1.cross(b2), b2.cross(b3));
            let (b2_squared, b3_squared, n_squared) = (b2.dot(b2), b3.dot(b3), n.dot(n));
            let (inverse_b2, inverse_b3) = (rsqrt(b2_squared), rsqrt(b3_squared));
            let n_length = n_squared * rsqrt(n_squared);
            let r = b3_squared * inverse_b3;
            let angle = atan2(n_length, -b2.dot(b3));
            let dihedral = atan2(b2_squared * inverse_b2 * m.dot(b3), m.dot(n));
            store(Vector(r, angle, dihedral), q);
            // r² sin θ = r |b2 × b3| / |b2|.
            log_jacobian = log_jacobian + ln(r * n_length * inverse_b2);
        }
        // A row that is not finite has no internal coordinates.
        let bounded = log_jacobian.abs().lt(L::splat(f64::INFINITY));
        L::select(bounded, log_jacobian, L::splat(f64::NEG_INFINITY)).store(&mut self.log_jacobian.0);
    }
}

/// Atoms from (r, θ, φ) and the frame, centred at the origin, and log |∂x/∂q|.
pub(crate) struct ToCartesian<'a> {
    pub root: usize,
    pub placements: &'a [Placement],
    pub cartesian: &'a mut [Atom],
    pub internal: &'a [Atom],
    pub frame: &'a Frame,
    pub log_jacobian: &'a mut Lane,
}

impl Kernel for ToCartesian<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let x = self.cartesian;
        let q = self.internal;
        let [first, second, ..] = self.placements else { return };
        let zero = L::splat(0.0);
        let (along, towards) = (load::<L>(&self.frame.along), load::<L>(&self.frame.towards));
        let (r1, r2, angle) = (L::load(&q[0][0].0), L::load(&q[1][0].0), L::load(&q[1][1].0));
        let (sine, cosine) = sin_cos(angle);
        let x1 = along.scale(r1);
        let x2 = towards.mul_add(r2 * sine, along.mul_add(-(r2 * cosine), x1));
        store(Vector(zero, zero, zero), &mut x[self.root]);
        store(x1, &mut x[first.atom]);
        store(x2, &mut x[second.atom]);
        let mut centre = x1.add(x2);
        let mut log_jacobian = ln(r1 * r1) + ln(r2 * r2 * sine);
        // The smallest of all r, θ and π − θ must be positive.
        let mut smallest = r1.min(r2).min(angle).min(L::splat(PI) - angle);
        for (place, q) in self.placements.iter().zip(q).skip(2) {
            let Vector(r, angle, dihedral) = load::<L>(q);
            let (xp, xg) = (load::<L>(&x[place.parent]), load::<L>(&x[place.grandparent]));
            let b1 = xg.sub(load(&x[place.fourth]));
            let b2 = xp.sub(xg);
            let axis = b2.scale(rsqrt(b2.dot(b2)));
            let m = b1.cross(axis);
            let normal = m.scale(rsqrt(m.dot(m)));
            let side = normal.cross(axis);
            let (sine, cosine) = sin_cos(angle);
            let (sine_phi, cosine_phi) = sin_cos(dihedral);
            let across = r * sine;
            let end = axis.mul_add(-(r * cosine), xp);
            let end = side.mul_add(across * cosine_phi, end);
            let end = normal.mul_add(across * sine_phi, end);
            store(end, &mut x[place.atom]);
            centre = centre.add(end);
            log_jacobian = log_jacobian + ln(r * across);
            smallest = smallest.min(r).min(angle).min(L::splat(PI) - angle);
        }
        let shift = centre.scale(L::splat(-1.0 / x.len() as f64));
        for atom in x.iter_mut() {
            store(load::<L>(atom).add(shift), atom);
        }
        let nothing = L::splat(f64::NEG_INFINITY);
        // A dihedral that is no number shows in the centre only.
        let all = log_jacobian.abs() + shift.0.abs() + shift.1.abs() + shift.2.abs();
        let log_jacobian = L::select(all.lt(L::splat(f64::INFINITY)), log_jacobian, nothing);
        L::select(zero.lt(smallest), log_jacobian, nothing).store(&mut self.log_jacobian.0);
    }
}

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
