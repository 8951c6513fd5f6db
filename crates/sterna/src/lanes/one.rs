//! Elementary functions of one number, with the bits that vectors give it.
//!
//! What decides a draw or an estimate uses these: those of the standard library are the system's, whose last bits differ between
//! glibc, musl and other processors. `clippy.toml` holds libraries to it.

use super::{Kernel, Lanes, dispatch, for_each_chunk};

/// ln 2π.
pub const LN_TAU: f64 = 1.837_877_066_409_345_3;

macro_rules! of_one_number {
    ($($(#[$about:meta])* $name:ident;)*) => { $(
        $(#[$about])*
        pub fn $name(x: f64) -> f64 {
            struct Of(f64);
            impl Kernel for Of {
                type Output = f64;
                #[inline(always)]
                fn run<L: Lanes>(self) -> f64 {
                    super::$name(L::splat(self.0)).to_array()[0]
                }
            }
            dispatch(Of(x))
        }
    )* };
}

of_one_number! {
    /// eˣ.
    exp;
    /// Natural logarithm.
    ln;
    /// ln(1 + eˣ).
    softplus;
    /// Hyperbolic tangent.
    tanh;
    /// eˣ − 1, precise near 0.
    exp_m1;
}

/// eˣ of each number, with the bits of [`exp`]: where there are many, eight at a time cost little more than one.
pub fn exps(x: &mut [f64]) {
    struct Of<'a>(&'a mut [f64]);
    impl Kernel for Of<'_> {
        type Output = ();
        #[inline(always)]
        fn run<L: Lanes>(self) {
            for_each_chunk!(self.0.len(), |chunk| {
                super::exp(L::load_some(&self.0[chunk.clone()])).store_some(&mut self.0[chunk]);
            });
        }
    }
    dispatch(Of(x));
}

/// (sin x, cos x) for angles of a few thousand turns at most.
pub fn sin_cos(x: f64) -> (f64, f64) {
    struct Of(f64);
    impl Kernel for Of {
        type Output = (f64, f64);
        #[inline(always)]
        fn run<L: Lanes>(self) -> (f64, f64) {
            let (sine, cosine) = super::sin_cos(L::splat(self.0));
            (sine.to_array()[0], cosine.to_array()[0])
        }
    }
    dispatch(Of(x))
}

/// sin x, as [`sin_cos`].
pub fn sin(x: f64) -> f64 {
    sin_cos(x).0
}

/// cos x, as [`sin_cos`].
pub fn cos(x: f64) -> f64 {
    sin_cos(x).1
}

/// The angle of the point (x, y), in [−π, π].
pub fn atan2(y: f64, x: f64) -> f64 {
    struct Of(f64, f64);
    impl Kernel for Of {
        type Output = f64;
        #[inline(always)]
        fn run<L: Lanes>(self) -> f64 {
            super::atan2(L::splat(self.0), L::splat(self.1)).to_array()[0]
        }
    }
    dispatch(Of(y, x))
}

/// xʸ of a positive x as exp(y ln x), to |y ln x| + 2 ulp.
pub fn power(x: f64, y: f64) -> f64 {
    exp(y * ln(x))
}
