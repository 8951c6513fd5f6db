//! log Γ and draws of gamma laws, on the log scale, where none is zero.

use crate::lanes::one::{LN_TAU, ln};
use crate::streams::RowStream;

/// log Γ(x) of positive x: Stirling's series, from 16 on, where its sixth term is below rounding.
pub fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product, mut below) = (x, 1.0, 0.0);
    while x < 16.0 {
        product *= x;
        x += 1.0;
    }
    below += ln(product);
    let square = 1.0 / (x * x);
    let series = 1.0 / 12.0
        - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0)));
    (x - 0.5) * ln(x) - x + 0.5 * LN_TAU + series / x - below
}

/// The logarithm of a draw of shape a and rate 1 (G. Marsaglia and W. W. Tsang, ACM Trans. Math. Softw. 26, 363 (2000)): a cube of
/// a shifted normal, accepted nearly always. For shapes below 1, one more is drawn and multiplied by U^{1/a}.
pub fn log_draw(shape: f64, stream: &mut RowStream) -> f64 {
    if shape < 1.0 {
        let power = ln(stream.uniform()) / shape;
        return log_draw(shape + 1.0, stream) + power;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = stream.normal();
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let log_v = 3.0 * ln(root);
        let v = root * root * root;
        if ln(stream.uniform()) < 0.5 * x * x + d * (1.0 - v + log_v) {
            return ln(d) + log_v;
        }
    }
}
