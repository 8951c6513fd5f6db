//! Acceptance of swaps (§3.2; Algorithm 1, lines 11–12, errata E1).

use crate::lanes::{Kernel, Lanes, WIDTH, dispatch, ln, tanh_half};
use crate::streams::{Phase, Streams};

/// A proposed swap.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Swap {
    /// Ladder within the batch.
    pub copy: usize,
    /// Pair n ∈ 1..=N, between chains n − 1 and n.
    pub pair: usize,
    /// log w of the forward path, which started on chain n − 1.
    pub log_forward: f64,
    /// log w of the backward path, which started on chain n.
    pub log_backward: f64,
    /// |tanh(Δ/2)|, Δ = log w(forward) − log w(backward): its mean is the rejection rate, with less
    /// variance than counting. One where Δ is no number.
    pub rejection: f64,
    /// Whether log U < Δ.
    pub accepted: bool,
}

/// Decides all swaps; swap i draws its uniform from the stream of `keys[i]`.
pub fn decide(streams: &Streams, iteration: u64, keys: &[u32], uniforms: &mut [f64], swaps: &mut [Swap]) {
    streams.uniforms(Phase::Swap, iteration, keys, uniforms);
    dispatch(Decide { uniforms, swaps });
}

struct Decide<'a> {
    uniforms: &'a [f64],
    swaps: &'a mut [Swap],
}

impl Kernel for Decide<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        for (uniforms, swaps) in self.uniforms.chunks(WIDTH).zip(self.swaps.chunks_mut(WIDTH)) {
            let mut delta = [0.0; WIDTH];
            for (delta, swap) in delta.iter_mut().zip(swaps.iter()) {
                *delta = swap.log_forward - swap.log_backward;
            }
            let log_u = ln(L::load_some(uniforms)).to_array();
            let rejection = tanh_half(L::load(&delta)).abs().to_array();
            for (i, swap) in swaps.iter_mut().enumerate() {
                swap.accepted = log_u[i] < delta[i];
                swap.rejection = if delta[i].is_nan() { 1.0 } else { rejection[i] };
            }
        }
    }
}
