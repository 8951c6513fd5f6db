//! Geometry on eight conformations at once.

use std::f64::consts::PI;
use sterna::lanes::{Lanes, WIDTH};

/// Eight numbers in memory, one per conformation, aligned with the processor's vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct Lane(pub [f64; WIDTH]);

/// Three coordinates of eight points.
#[derive(Clone, Copy)]
pub(crate) struct Vector<L>(pub L, pub L, pub L);

impl<L: Lanes> Vector<L> {
    #[inline(always)]
    pub(crate) fn sub(self, b: Self) -> Self {
        Self(self.0 - b.0, self.1 - b.1, self.2 - b.2)
    }
    #[inline(always)]
    pub(crate) fn add(self, b: Self) -> Self {
        Self(self.0 + b.0, self.1 + b.1, self.2 + b.2)
    }
    #[inline(always)]
    pub(crate) fn scale(self, s: L) -> Self {
        Self(self.0 * s, self.1 * s, self.2 * s)
    }
    /// self · s + b.
    #[inline(always)]
    pub(crate) fn mul_add(self, s: L, b: Self) -> Self {
        Self(self.0.mul_add(s, b.0), self.1.mul_add(s, b.1), self.2.mul_add(s, b.2))
    }
    #[inline(always)]
    pub(crate) fn dot(self, b: Self) -> L {
        self.2.mul_add(b.2, self.1.mul_add(b.1, self.0 * b.0))
    }
    #[inline(always)]
    pub(crate) fn cross(self, b: Self) -> Self {
        let (nx, ny, nz) = (-b.0, -b.1, -b.2);
        Self(
            self.2.mul_add(ny, self.1 * b.2),
            self.0.mul_add(nz, self.2 * b.0),
            self.1.mul_add(nx, self.0 * b.1),
        )
    }
}

/// An angle brought to [−π, π].
#[inline(always)]
pub(crate) fn wrap_lanes<L: Lanes>(angle: L) -> L {
    (angle * L::splat(0.5 / PI)).round().mul_add(L::splat(-2.0 * PI), angle)
}

/// Up to eight rows into lanes; missing rows repeat the first.
pub(crate) fn gather(rows: &[f64], dim: usize, lanes: &mut [Lane]) {
    let count = rows.len() / dim;
    let rows: [&[f64]; WIDTH] = std::array::from_fn(|lane| {
        let row = if lane < count { lane } else { 0 };
        &rows[row * dim..(row + 1) * dim]
    });
    for (c, lane) in lanes[..dim].iter_mut().enumerate() {
        for (value, row) in lane.0.iter_mut().zip(&rows) {
            *value = row[c];
        }
    }
}

/// Lanes back into as many rows as there are.
pub(crate) fn scatter(lanes: &[Lane], dim: usize, rows: &mut [f64]) {
    for (lane, row) in rows.chunks_exact_mut(dim).enumerate() {
        for (value, values) in row.iter_mut().zip(lanes) {
            *value = values.0[lane];
        }
    }
}
