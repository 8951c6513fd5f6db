//! The two number types that every computation runs in: f32 and f64.

use crate::Result;
use crate::cpu::{Level, kernels};
use crate::device::Program;
use crate::graph::{Graph, Value};
use crate::optimiser::AdamStep;

use sterna::lanes::Element;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// f32 or f64. Graphs know no number type; programs and parameters are generic over it.
pub trait Real: sealed::Sealed + Element + Default + PartialEq + std::fmt::Debug {
    /// Name as in safetensors files.
    const NAME: &'static str;
    /// Bytes of one number.
    const BYTES: usize;
    /// 0.
    const ZERO: Self;
    /// A program on the CPU. These three are methods so that the kernels are compiled in this crate, once,
    /// and not again in every crate that uses them.
    #[doc(hidden)]
    fn cpu_program(
        graph: &Graph,
        outputs: &[Value],
        threads: usize,
        level: Level,
    ) -> Result<Box<dyn Program<Self>>>;
    #[doc(hidden)]
    fn cpu_square_sum(level: Level, x: &[Self]) -> f64;
    #[doc(hidden)]
    fn cpu_adam(level: Level, step: AdamStep<'_, Self>);
    /// The nearest number.
    fn from_f64(x: f64) -> Self;
    /// The same number.
    fn to_f64(self) -> f64;
    /// Appends the little-endian bytes.
    fn write_le(self, out: &mut Vec<u8>);
    /// Reads little-endian bytes; `bytes` has length [`Real::BYTES`].
    fn read_le(bytes: &[u8]) -> Self;
}

macro_rules! real {
    ($t:ty, $name:literal) => {
        impl Real for $t {
            const NAME: &'static str = $name;
            const BYTES: usize = size_of::<$t>();
            const ZERO: Self = 0.0;
            fn cpu_program(
                graph: &Graph,
                outputs: &[Value],
                threads: usize,
                level: Level,
            ) -> Result<Box<dyn Program<Self>>> {
                kernels::program(graph, outputs, threads, level)
            }
            fn cpu_square_sum(level: Level, x: &[Self]) -> f64 {
                kernels::square_sum(level, x)
            }
            fn cpu_adam(level: Level, step: AdamStep<'_, Self>) {
                kernels::adam(level, step)
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn write_le(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn read_le(bytes: &[u8]) -> Self {
                <$t>::from_le_bytes(bytes.try_into().expect("BYTES bytes"))
            }
        }
    };
}
real!(f32, "F32");
real!(f64, "F64");
