//! Where the values of a run lie: in buffers that begin on a cache line.

use crate::Real;
use crate::op::Shape;
use crate::plan::Place;

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

/// Rows that buffers are spaced by: whole cache lines for any number of columns.
///
/// # Panics
/// If no memory could hold so many.
pub fn spaced(rows: usize) -> usize {
    rows.checked_next_multiple_of(16).expect("a batch that fits into memory")
}

/// Room for `units` values of so many rows.
///
/// # Panics
/// If no memory could hold them.
pub fn reserve<T: Real>(buffer: &mut Aligned<T>, units: usize, rows: usize) {
    buffer.reserve(units.checked_mul(spaced(rows)).expect("a batch that fits into memory"));
}

/// Where everything begins during a run, for one block of rows.
#[derive(Clone, Copy)]
pub struct Bases<T> {
    pub inputs: *const *const T,
    pub parameters: *const T,
    pub constants: *const T,
    pub row_count: *const T,
    pub fixed: *mut T,
    pub global: *mut T,
    pub local: *mut T,
    /// Rows that global and local values have room for.
    pub global_rows: usize,
    pub local_rows: usize,
    /// First row of the block, and how many.
    pub first: usize,
    pub rows: usize,
}

// SAFETY: blocks write disjoint rows, and each thread has its own local memory.
unsafe impl<T: Send> Send for Bases<T> {}
// SAFETY: as above; the pointers themselves never change.
unsafe impl<T: Sync> Sync for Bases<T> {}

impl<T: Real> Bases<T> {
    /// For some of the rows.
    pub fn block(&self, first: usize, rows: usize, local: *mut T) -> Self {
        Self { first, rows, local, ..*self }
    }

    /// First number of this block of a value.
    ///
    /// # Safety
    /// The place must be one of the plan that the buffers were made for, and the buffers must be alive.
    pub unsafe fn at(&self, place: Place, shape: Shape) -> *mut T {
        let skip = if shape.rows.is_batch() { self.first * shape.group_len() } else { 0 };
        // SAFETY: the plan laid all places out within the buffers, which hold that many rows.
        unsafe {
            match place {
                Place::Input(k) => (*self.inputs.add(k)).cast_mut().add(skip),
                Place::Parameter(offset) => self.parameters.cast_mut().add(offset),
                Place::Constant(offset) => self.constants.cast_mut().add(offset),
                Place::RowCount => self.row_count.cast_mut(),
                Place::Fixed(offset) => self.fixed.add(offset),
                Place::Global(unit) => self.global.add(unit * self.global_rows + skip),
                Place::Local(unit) => self.local.add(unit * self.local_rows),
            }
        }
    }
}
