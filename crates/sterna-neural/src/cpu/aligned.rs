//! A buffer that begins on a cache line.

use crate::Real;

/// Numbers on a 64-byte boundary; grows, never shrinks.
#[derive(Debug, Default)]
pub struct Aligned<T> {
    lines: Vec<Line>,
    len: usize,
    kind: std::marker::PhantomData<T>,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; 64]);

impl<T: Real> Aligned<T> {
    /// `len` zeros.
    pub fn new(len: usize) -> Self {
        let mut new = Self { lines: vec![], len: 0, kind: std::marker::PhantomData };
        new.reserve(len);
        new
    }

    /// Room for `len` numbers; the contents are kept.
    pub fn reserve(&mut self, len: usize) {
        if len > self.len {
            let bytes = len.checked_mul(T::BYTES).expect("a buffer that fits into memory");
            self.lines.resize(bytes.div_ceil(64), Line([0; 64]));
            self.len = len;
        }
    }

    /// The first number.
    pub fn as_ptr(&self) -> *const T {
        self.lines.as_ptr().cast()
    }

    /// The first number, to write to.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.lines.as_mut_ptr().cast()
    }

    /// All numbers, to write to.
    pub fn slice_mut(&mut self) -> &mut [T] {
        // SAFETY: all bytes are initialised, and any bytes are a number.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr(), self.len) }
    }

    /// Numbers `from .. from + len`.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn slice(&self, from: usize, len: usize) -> &[T] {
        assert!(from.checked_add(len).is_some_and(|end| end <= self.len), "within the buffer");
        // SAFETY: all bytes are initialised, any bytes are a number, and the range was checked.
        unsafe { std::slice::from_raw_parts(self.as_ptr().add(from), len) }
    }
}
