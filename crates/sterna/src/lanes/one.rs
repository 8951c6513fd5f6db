//! Elementary functions of one number, with the bits that vectors give it.

use super::{Kernel, Lanes, dispatch};

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
