//! Some columns of up to eight rows, each of which is one vector: lanes are rows.

use crate::lanes::Lanes;

/// Columns to read, from one on.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    pub rows: &'a [f64],
    /// Length of a row.
    pub width: usize,
    pub first: usize,
}

impl Columns<'_> {
    #[inline(always)]
    pub fn get<L: Lanes>(&self, j: usize) -> L {
        L::load_column(self.rows, self.width, self.first + j)
    }
}

/// Columns to write, from one on.
pub struct ColumnsMut<'a> {
    pub rows: &'a mut [f64],
    pub width: usize,
    pub first: usize,
}

impl ColumnsMut<'_> {
    #[inline(always)]
    pub fn get<L: Lanes>(&self, j: usize) -> L {
        L::load_column(self.rows, self.width, self.first + j)
    }

    #[inline(always)]
    pub fn set<L: Lanes>(&mut self, j: usize, value: L) {
        value.store_column(self.rows, self.width, self.first + j);
    }
}
