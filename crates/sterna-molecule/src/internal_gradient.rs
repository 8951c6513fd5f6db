//! Gradients in internal coordinates: the placement of atoms one after the other, differentiated backwards.

use crate::internal::Placement;

type Vector = [f64; 3];

fn at(x: &[f64], atom: usize) -> Vector {
    [x[3 * atom], x[3 * atom + 1], x[3 * atom + 2]]
}

fn minus(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn scaled(a: Vector, s: f64) -> Vector {
    a.map(|x| x * s)
}

fn plus(a: Vector, b: Vector) -> Vector {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// The derivative of a unit vector v/|v| taken backwards: the part of `g` across it, over |v|.
fn through_unit(unit: Vector, length: f64, g: Vector) -> Vector {
    scaled(minus(g, scaled(unit, dot(unit, g))), 1.0 / length)
}

/// Each atom is x = p + r (−cos θ a + sin θ cos φ s + sin θ sin φ n), with a = (p − g)/|p − g|,
/// n the unit vector along (g − f) × a, and s = n × a; p, g and f were placed before it.
pub(crate) fn pull_back(
    root: usize,
    placements: &[Placement],
    x: &[f64],
    q: &[f64],
    gradient: &[f64],
    out: &mut [f64],
) {
    let mut adjoint = gradient.to_vec();
    let add = |adjoint: &mut [f64], atom: usize, g: Vector| {
        for (sum, g) in adjoint[3 * atom..3 * atom + 3].iter_mut().zip(g) {
            *sum += g;
        }
    };
    for (k, place) in placements.iter().enumerate().skip(2).rev() {
        let (r, angle, dihedral) = (q[3 * k - 3], q[3 * k - 2], q[3 * k - 1]);
        let e = at(&adjoint, place.atom);
        let (p, g) = (at(x, place.parent), at(x, place.grandparent));
        let b1 = minus(g, at(x, place.fourth));
        let b2 = minus(p, g);
        let b2_length = dot(b2, b2).sqrt();
        let a = scaled(b2, 1.0 / b2_length);
        let m = cross(b1, a);
        let m_length = dot(m, m).sqrt();
        let n = scaled(m, 1.0 / m_length);
        let s = cross(n, a);
        let ((sine, cosine), (sine_phi, cosine_phi)) = (angle.sin_cos(), dihedral.sin_cos());
        let across = plus(scaled(s, cosine_phi), scaled(n, sine_phi));
        out[3 * k - 3] = sine * dot(e, across) - cosine * dot(e, a);
        out[3 * k - 2] = r * (sine * dot(e, a) + cosine * dot(e, across));
        out[3 * k - 1] = r * sine * (cosine_phi * dot(e, n) - sine_phi * dot(e, s));
        // Adjoints of a, s and n, then of what they were made from.
        let adjoint_s = scaled(e, r * sine * cosine_phi);
        let adjoint_n = plus(scaled(e, r * sine * sine_phi), cross(a, adjoint_s));
        let adjoint_m = through_unit(n, m_length, adjoint_n);
        let from_s_and_m = plus(cross(adjoint_s, n), cross(adjoint_m, b1));
        let adjoint_a = plus(scaled(e, -r * cosine), from_s_and_m);
        let adjoint_b1 = cross(a, adjoint_m);
        let adjoint_b2 = through_unit(a, b2_length, adjoint_a);
        add(&mut adjoint, place.parent, plus(e, adjoint_b2));
        add(&mut adjoint, place.grandparent, minus(adjoint_b1, adjoint_b2));
        add(&mut adjoint, place.fourth, scaled(adjoint_b1, -1.0));
    }
    let [first, second, ..] = placements else { return };
    let (x0, x1, x2) = (at(x, root), at(x, first.atom), at(x, second.atom));
    let bond = minus(x1, x0);
    let along = scaled(bond, 1.0 / dot(bond, bond).sqrt());
    let next = minus(x2, x1);
    let r = dot(next, next).sqrt();
    let angle = q[2];
    let (e1, e2) = (at(&adjoint, first.atom), at(&adjoint, second.atom));
    out[0] = dot(plus(e1, e2), along);
    out[1] = dot(e2, next) / r;
    // next = r (−cos θ along + sin θ towards).
    let towards = scaled(plus(next, scaled(along, r * angle.cos())), 1.0 / (r * angle.sin()));
    out[2] = r * (angle.sin() * dot(e2, along) + angle.cos() * dot(e2, towards));
}
