//! Where the values of a run lie.

use super::aligned::Aligned;
use crate::Real;
use crate::op::Shape;
use crate::plan::Place;

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
