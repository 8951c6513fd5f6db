//! The instruction sets that kernels are compiled for, and the choice among them: made here and nowhere else.

/// An instruction set, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// 512-bit registers.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256-bit registers and fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Whatever the program was compiled for.
    Baseline,
}

impl Level {
    /// The best level of this machine.
    #[inline]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
            {
                return Self::Avx512;
            }
            if avx2 {
                return Self::Avx2;
            }
        }
        Self::Baseline
    }

    /// Whether this machine can run it.
    #[inline]
    pub fn is_available(self) -> bool {
        // What a machine has includes all that comes later.
        self as u8 >= Self::detect() as u8
    }

    /// All levels that this machine can run, best first.
    pub fn available() -> Vec<Self> {
        let all = [
            #[cfg(target_arch = "x86_64")]
            Self::Avx512,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2,
            Self::Baseline,
        ];
        all.into_iter().filter(|level| level.is_available()).collect()
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "AVX2 and FMA",
            Self::Baseline => "portable",
        }
    }
}

/// Declares `unsafe fn name<T>(level, args…)` that runs `generic::<V>(args…)`, where V holds numbers of type T in the
/// registers of `level`: the dispatch of kernels over raw memory, in single or double precision. Kernels over eight
/// `f64` are safe and go through [`dispatch`](crate::lanes::dispatch).
#[macro_export]
macro_rules! leveled {
    ($(#[$doc:meta])* $visible:vis fn $name:ident<T: $bound:path>($($arg:ident: $type:ty),* $(,)?) = $generic:ident;) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The machine must have `level`, and pointers must be valid for what is said above.
        #[allow(clippy::too_many_arguments)]
        $visible unsafe fn $name<T: $bound>(level: $crate::lanes::Level, $($arg: $type),*) {
            /// # Safety
            /// As for the function around it.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            unsafe fn avx512<T: $bound>($($arg: $type),*) {
                // SAFETY: the caller's promise.
                unsafe { $generic::<<T as $crate::lanes::Element>::Avx512>($($arg),*) }
            }
            /// # Safety
            /// As for the function around it.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            unsafe fn avx2<T: $bound>($($arg: $type),*) {
                // SAFETY: the caller's promise. The compiler makes AVX2 of plain arrays.
                unsafe { $generic::<<T as $crate::lanes::Element>::Portable>($($arg),*) }
            }
            // SAFETY: the caller has found the level on this machine.
            unsafe {
                match level {
                    #[cfg(target_arch = "x86_64")]
                    $crate::lanes::Level::Avx512 => avx512::<T>($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    $crate::lanes::Level::Avx2 => avx2::<T>($($arg),*),
                    $crate::lanes::Level::Baseline => {
                        $generic::<<T as $crate::lanes::Element>::Portable>($($arg),*)
                    }
                }
            }
        }
    };
}
