//! Compiles one kernel for every instruction set and picks at run time.

/// Declares `unsafe fn name<T>(level, args…)` that runs `generic::<V>(args…)` with the best registers of
/// `level`.
///
/// # Safety
/// The pointers must be valid for what the kernel's documentation says, and the machine must have `level`.
macro_rules! leveled {
    ($(#[$doc:meta])* $visible:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) = $generic:ident;) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// Pointers must be valid for the shapes, and the machine must have `level`.
        #[allow(clippy::too_many_arguments)]
        $visible unsafe fn $name<T: $crate::Real>(level: $crate::cpu::simd::Level, $($arg: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            unsafe fn wide<T: $crate::Real>($($arg: $type),*) {
                unsafe { $generic::<T::Wide>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            unsafe fn middle<T: $crate::Real>($($arg: $type),*) {
                unsafe { $generic::<T::Plain>($($arg),*) }
            }
            unsafe {
                match level {
                    #[cfg(target_arch = "x86_64")]
                    $crate::cpu::simd::Level::Avx512 => wide::<T>($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    $crate::cpu::simd::Level::Avx2 => middle::<T>($($arg),*),
                    $crate::cpu::simd::Level::Baseline => $generic::<T::Plain>($($arg),*),
                }
            }
        }
    };
}
pub(super) use leveled;
