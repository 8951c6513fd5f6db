//! What the means of stiff coordinates are regressed on.

use crate::internal::InternalCoordinates;
use sterna::lanes::Lanes;
use sterna::lanes::one::sin_cos;

/// Multiples of each soft torsion among the features.
const HARMONICS: usize = 3;

/// A stiff coordinate depends on torsions about axes at most this many bonds away.
const REACH: usize = 1;

/// Trigonometric polynomials of the soft torsions: each alone, and neighbours in pairs.
#[derive(Clone, Debug)]
pub(super) struct Features {
    soft: usize,
    pairs: Vec<(usize, usize)>,
}

impl Features {
    pub(super) fn new(internal: &InternalCoordinates, soft: &[usize]) -> Self {
        let axis = |c: usize| &internal.coordinates()[c].atoms[1..3];
        let mut pairs = Vec::new();
        for (j, &b) in soft.iter().enumerate() {
            for (i, &a) in soft[..j].iter().enumerate() {
                if axis(a).iter().any(|atom| axis(b).contains(atom)) {
                    pairs.push((i, j));
                }
            }
        }
        Self { soft: soft.len(), pairs }
    }

    pub(super) fn count(&self) -> usize {
        1 + 2 * HARMONICS * self.soft + 4 * self.pairs.len()
    }

    /// The constant, and the features that involve only the wanted torsions.
    pub(super) fn of(&self, wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        let alone = (0..self.soft).flat_map(|torsion| {
            let first = 1 + 2 * HARMONICS * torsion;
            wanted(torsion).then_some(first..first + 2 * HARMONICS).into_iter().flatten()
        });
        let together = self.pairs.iter().enumerate().flat_map(|(k, &(a, b))| {
            let first = 1 + 2 * HARMONICS * self.soft + 4 * k;
            (wanted(a) && wanted(b)).then_some(first..first + 4).into_iter().flatten()
        });
        std::iter::once(0).chain(alone).chain(together).collect()
    }

    /// Those that a stiff coordinate depends on.
    pub(super) fn near(&self, internal: &InternalCoordinates, c: usize, soft: &[usize]) -> Vec<usize> {
        let near = internal.axes_within(REACH, c, soft);
        self.of(|torsion| near[torsion])
    }

    /// Writes the features of torsions given by their sines and cosines.
    #[inline(always)]
    pub(super) fn write<L: Lanes>(&self, sin_cos: impl Fn(usize) -> (L, L), mut write: impl FnMut(usize, L)) {
        write(0, L::splat(1.0));
        let mut next = 1;
        for torsion in 0..self.soft {
            let (s, c) = sin_cos(torsion);
            let (mut sn, mut cn) = (s, c);
            for _ in 0..HARMONICS {
                write(next, cn);
                write(next + 1, sn);
                next += 2;
                (cn, sn) = (cn * c - sn * s, sn * c + cn * s);
            }
        }
        for &(a, b) in &self.pairs {
            let ((sa, ca), (sb, cb)) = (sin_cos(a), sin_cos(b));
            for (k, product) in [ca * cb, ca * sb, sa * cb, sa * sb].into_iter().enumerate() {
                write(next + k, product);
            }
            next += 4;
        }
    }

    /// From a gradient in the features to one in the torsions.
    pub(super) fn pull_back(&self, soft: &[f64], adjoint: &[f64], out: &mut [f64]) {
        let mut next = 1;
        for (torsion, out) in soft.iter().zip(out.iter_mut()) {
            *out = 0.0;
            for k in 1..=HARMONICS {
                let (s, c) = sin_cos(k as f64 * torsion);
                *out += k as f64 * (adjoint[next + 1] * c - adjoint[next] * s);
                next += 2;
            }
        }
        for &(a, b) in &self.pairs {
            let ((sa, ca), (sb, cb)) = (sin_cos(soft[a]), sin_cos(soft[b]));
            // Of cos cos, cos sin, sin cos and sin sin.
            let g = &adjoint[next..next + 4];
            out[a] += ca * (g[2] * cb + g[3] * sb) - sa * (g[0] * cb + g[1] * sb);
            out[b] += cb * (g[1] * ca + g[3] * sa) - sb * (g[0] * ca + g[2] * sa);
            next += 4;
        }
    }
}
