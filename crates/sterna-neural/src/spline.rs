//! Monotone rational-quadratic splines: the elementwise maps of spline couplings (Durkan et al. 2019), beside the affine ones of §5.1.
//!
//! Within [−L, L] a spline has B bins; in each it is a quotient of two quadratics that rises, so that its inverse is the root of
//! a quadratic. Outside it is the identity, which it joins without a kink.

use crate::graph::Value;
use crate::op::Shape;

/// Bins of a spline.
pub(crate) const BINS: usize = 8;

/// What a network says of one spline: widths and heights of the bins, and slopes at the knots between them.
pub(crate) const NUMBERS: usize = 3 * BINS - 1;

/// L: splines act where |x| is below this.
const REACH: f64 = 4.0;

/// Widths, heights and slopes are at most e to this times what they would be with zeros from the network.
const MOST: f64 = 4.0;

/// A spline for each row of a value.
pub(crate) struct Spline<'g> {
    /// Places of the knots, where the spline begins and where it leads: B + 1 columns each.
    from: Value<'g>,
    to: Value<'g>,
    /// Slopes at the knots.
    slopes: Value<'g>,
}

/// The bin that a number lies in.
struct Bin<'g> {
    /// 1 inside of [−L, L], else 0.
    inside: Value<'g>,
    /// The bin's lower corner.
    corner: [Value<'g>; 2],
    width: Value<'g>,
    height: Value<'g>,
    /// Slopes at both ends.
    slopes: [Value<'g>; 2],
}

impl<'g> Spline<'g> {
    /// From [`NUMBERS`] columns; zeros make the identity.
    pub fn new(raw: Value<'g>) -> Self {
        let raw = (raw * (1.0 / MOST)).tanh() * MOST;
        let knots = |logits: Value<'g>| {
            let shares = (logits - logits.log_sum_exp()).exp();
            // Sums of the shares so far.
            let so_far: Vec<f64> =
                (0..BINS).flat_map(|i| (0..=BINS).map(move |j| f64::from(u8::from(j > i)))).collect();
            shares.matmul(raw.graph().constant(BINS + 1, &so_far)) * (2.0 * REACH) - REACH
        };
        let inner = raw.slice(2 * BINS, BINS - 1).exp();
        let end = raw.graph().scalar(1.0).broadcast(Shape { cols: 1, ..inner.shape() });
        Self {
            from: knots(raw.slice(0, BINS)),
            to: knots(raw.slice(BINS, BINS)),
            slopes: raw.graph().concat(&[end, inner, end]),
        }
    }

    /// The bin of `x` by these knots.
    fn bin(&self, knots: Value<'g>, x: Value<'g>) -> Bin<'g> {
        let beyond = (x - knots).step();
        let here = beyond.slice(0, BINS) - beyond.slice(1, BINS);
        let inside = beyond.slice(0, 1) - beyond.slice(BINS, 1);
        let at = |values: Value<'g>, first: usize| here.dot(values.slice(first, BINS));
        // Outside of all bins widths, heights and slopes are 1.
        let outside = 1.0 - inside;
        let corner = [self.from, self.to].map(|knots| at(knots, 0));
        let far = [self.from, self.to].map(|knots| at(knots, 1));
        let slopes = [0, 1].map(|first| at(self.slopes, first) + outside);
        let [width, height] = [0, 1].map(|k| far[k] - corner[k] + outside);
        Bin { inside, corner, width, height, slopes }
    }

    /// f(x) and log f′(x).
    pub fn forward(&self, x: Value<'g>) -> (Value<'g>, Value<'g>) {
        let bin = self.bin(self.from, x);
        let along = bin.inside * (x - bin.corner[0]) * bin.width.recip();
        let (rise, log_slope) = bin.at(along);
        (bin.inside * (bin.corner[1] + rise) + (1.0 - bin.inside) * x, log_slope)
    }

    /// f⁻¹(y) and log of its slope, −log f′.
    pub fn inverse(&self, y: Value<'g>) -> (Value<'g>, Value<'g>) {
        let bin = self.bin(self.to, y);
        let along = bin.found(bin.inside * (y - bin.corner[1]));
        let (_, log_slope) = bin.at(along);
        (bin.inside * (bin.corner[0] + along * bin.width) + (1.0 - bin.inside) * y, -log_slope)
    }
}

impl<'g> Bin<'g> {
    /// The mean slope, and by how much the slopes at the ends exceed it together.
    fn mean_and_excess(&self) -> (Value<'g>, Value<'g>) {
        let mean = self.height * self.width.recip();
        (mean, self.slopes[0] + self.slopes[1] - mean * 2.0)
    }

    /// How far the spline has risen at this share of the bin's width, and the log of its slope there.
    fn at(&self, along: Value<'g>) -> (Value<'g>, Value<'g>) {
        let (mean, excess) = self.mean_and_excess();
        let [first, last] = self.slopes;
        let left = 1.0 - along;
        let both = along * left;
        let below = (mean + excess * both).recip();
        let rise = self.height * (mean * along * along + first * both) * below;
        let above = last * along * along + mean * both * 2.0 + first * left * left;
        (rise, (mean * mean * above * below * below).log())
    }

    /// The share of the bin's width at which the spline has risen so far: a root of a quadratic, in the form that does not
    /// cancel. What is under the root is positive but for rounding (in `f32`, in bins that are nearly flat).
    fn found(&self, rise: Value<'g>) -> Value<'g> {
        let (mean, excess) = self.mean_and_excess();
        let first = self.slopes[0];
        let a = self.height * (mean - first) + rise * excess;
        let b = self.height * first - rise * excess;
        let c = mean * rise;
        c * 2.0 * (b + (b * b + a * c * 4.0).abs().sqrt()).recip()
    }
}
