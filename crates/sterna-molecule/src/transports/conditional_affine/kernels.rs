//! The arithmetic of the conditional affine transport on blocks of rows: deviations of stiff coordinates, their growth with
//! temperature, and their places about new means.

use super::super::Ends;
use super::{ConditionalAffine, Stiff};
use crate::kernel::Atom;
use crate::lane_math::{Lane, wrap_lanes};
use sterna::lanes::{Kernel, Lanes, exp, ln, sin_cos};

impl ConditionalAffine {
    /// Features of the block's soft torsions.
    #[inline(always)]
    fn write_features<L: Lanes>(&self, internal: &[Atom], features: &mut [Lane]) {
        let angle = |torsion: usize| {
            let slot = self.soft[torsion].slot;
            sin_cos(L::load(&internal[slot.0][slot.1].0))
        };
        self.features.write(angle, |k, value: L| value.store(&mut features[k].0));
    }

    /// The mean of a stiff coordinate at relative temperature `t`.
    #[inline(always)]
    fn mean<L: Lanes>(&self, stiff: &Stiff, features: &[Lane], t: L) -> L {
        let mut mean = t.mul_add(L::splat(stiff.drift), L::splat(stiff.centre));
        for &(feature, weight) in &stiff.weights {
            mean = L::load(&features[feature].0).mul_add(L::splat(weight), mean);
        }
        mean
    }
}

/// Buffers of standardised coordinates.
#[derive(Default)]
pub(in crate::transports) struct Whitening {
    pub(super) features: Vec<Lane>,
    /// One per stiff coordinate.
    pub deviations: Vec<Lane>,
}

/// Deviations times (T / T_reference) to their exponents, or divided by it.
pub(super) struct Grow<'a> {
    pub flow: &'a ConditionalAffine,
    pub temperature: &'a Lane,
    pub sign: f64,
    pub deviations: &'a mut [Lane],
}

impl Kernel for Grow<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let t = L::load(&self.temperature.0) * L::splat(1.0 / self.flow.chart.temperatures.reference);
        let log_t = ln(t) * L::splat(self.sign);
        for (stiff, deviation) in self.flow.stiff.iter().zip(self.deviations) {
            (L::load(&deviation.0) * exp(log_t * L::splat(stiff.exponent))).store(&mut deviation.0);
        }
    }
}

/// q − mean(soft, T) of each stiff coordinate.
pub(super) struct Deviations<'a> {
    pub flow: &'a ConditionalAffine,
    pub ends: &'a Ends,
    pub internal: &'a [Atom],
    pub features: &'a mut [Lane],
    pub deviations: &'a mut [Lane],
}

impl Kernel for Deviations<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { flow, ends, internal, features, deviations } = self;
        flow.write_features::<L>(internal, features);
        let t = L::load(&ends.from.0) * L::splat(1.0 / flow.chart.temperatures.reference);
        for (stiff, out) in flow.stiff.iter().zip(deviations) {
            let q = L::load(&internal[stiff.slot.0][stiff.slot.1].0);
            let deviation = q - flow.mean(stiff, features, t);
            let deviation = if stiff.dihedral { wrap_lanes(deviation) } else { deviation };
            deviation.store(&mut out.0);
        }
    }
}

/// q = mean(soft, T) + scaled deviation.
pub(super) struct Place<'a> {
    pub flow: &'a ConditionalAffine,
    pub ends: &'a Ends,
    pub internal: &'a mut [Atom],
    pub features: &'a mut [Lane],
    pub deviations: &'a [Lane],
    /// Determinant of the map of the soft torsions.
    pub slope: Lane,
    pub log_det: &'a mut Lane,
}

impl Kernel for Place<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { flow, ends, internal, features, deviations, slope, log_det } = self;
        flow.write_features::<L>(internal, features);
        let to = L::load(&ends.to.0);
        let t = to * L::splat(1.0 / flow.chart.temperatures.reference);
        let log_ratio = ln(to / L::load(&ends.from.0));
        let half_turn = L::splat(std::f64::consts::PI);
        let mut total = ln(L::load(&slope.0));
        for (stiff, deviation) in flow.stiff.iter().zip(deviations) {
            let log_factor = log_ratio * L::splat(stiff.exponent);
            let deviation = L::load(&deviation.0) * exp(log_factor);
            total = total + log_factor;
            if stiff.dihedral {
                let inside = deviation.abs().lt(half_turn);
                total = L::select(inside, total, L::splat(f64::NEG_INFINITY));
            }
            let lane = &mut internal[stiff.slot.0][stiff.slot.1].0;
            (flow.mean(stiff, features, t) + deviation).store(lane);
        }
        total.store(&mut log_det.0);
    }
}
