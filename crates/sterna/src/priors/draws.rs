//! Exact draws of laws, straight to free coordinates: none lies on a boundary by rounding.

use super::Law;
use super::gamma::log_draw;
use crate::lanes::one::{ln, sin_cos};
use crate::streams::RowStream;
use crate::supports;
use std::cell::Cell;
use std::f64::consts::PI;

thread_local! {
    /// Logarithms of gamma draws.
    static ROOM: Cell<Vec<f64>> = const { Cell::new(Vec::new()) };
}

impl Law {
    /// Draws all coordinates of a parameter.
    pub(super) fn draw(&self, stream: &mut RowStream, y: &mut [f64]) {
        if let Self::Dirichlet(all) = self {
            // Gammas over their sum; the sum drops out of the coordinates.
            let mut logs = ROOM.take();
            logs.clear();
            logs.extend(all.iter().map(|a| log_draw(*a, stream)));
            supports::gather(logs.iter().copied(), y);
            ROOM.set(logs);
            return;
        }
        y.iter_mut().for_each(|y| *y = self.draw_one(stream));
    }

    fn draw_one(&self, stream: &mut RowStream) -> f64 {
        match *self {
            Self::Normal(mean, sd) | Self::LogNormal(mean, sd) => mean + sd * stream.normal(),
            Self::Uniform(..) => {
                let u = stream.uniform();
                ln(u) - ln(1.0 - u)
            }
            Self::Gamma(shape, rate) => log_draw(shape, stream) - ln(rate),
            Self::Beta(a, b) => log_draw(a, stream) - log_draw(b, stream),
            Self::Exponential(rate) => ln(-ln(stream.uniform())) - ln(rate),
            Self::HalfNormal(sd) => ln(stream.normal().abs()) + ln(sd),
            Self::Cauchy(median, scale) => {
                let (sine, cosine) = sin_cos(PI * (stream.uniform() - 0.5));
                median + scale * sine / cosine
            }
            Self::Dirichlet(_) => unreachable!("its values hang together"),
        }
    }
}
