//! Points as rows of one contiguous matrix: rows × dim, f64, row-major.

/// A matrix whose rows are points. Rows are replicas in the sampler, samples elsewhere.
///
/// ```
/// let mut x = sterna::Batch::zeros(2, 3);
/// x.row_mut(1)[2] = 5.0;
/// assert_eq!(x.row(1), [0.0, 0.0, 5.0]);
/// assert_eq!(x.as_slice().len(), 6);
/// ```
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Untrusted")]
pub struct Batch {
    values: Vec<f64>,
    dim: usize,
    rows: usize,
}

/// A batch as a file claims it to be.
#[derive(serde::Deserialize)]
struct Untrusted {
    values: Vec<f64>,
    dim: usize,
    rows: usize,
}

impl TryFrom<Untrusted> for Batch {
    type Error = String;

    fn try_from(Untrusted { values, dim, rows }: Untrusted) -> Result<Self, String> {
        if rows.checked_mul(dim) != Some(values.len()) {
            return Err(format!("{} values are not {rows} rows of {dim}", values.len()));
        }
        Ok(Self { values, dim, rows })
    }
}

impl Batch {
    /// All entries zero.
    pub fn zeros(rows: usize, dim: usize) -> Self {
        Self { values: vec![0.0; rows * dim], dim, rows }
    }

    /// Rows given one after the other.
    ///
    /// # Panics
    /// If `values` is not a whole number of rows of length `dim`.
    pub fn from_vec(dim: usize, values: Vec<f64>) -> Self {
        assert!(dim > 0 && values.len().is_multiple_of(dim), "{} values are no rows of {dim}", values.len());
        Self { rows: values.len() / dim, values, dim }
    }

    /// Length of a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.dim..(i + 1) * self.dim]
    }

    /// Row `i`, to write to.
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.values[i * self.dim..(i + 1) * self.dim]
    }

    /// All rows, one after the other.
    pub fn as_slice(&self) -> &[f64] {
        &self.values
    }

    /// All rows, to write to.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// Rows from first to last.
    pub fn iter_rows(&self) -> std::slice::ChunksExact<'_, f64> {
        self.values.chunks_exact(self.dim.max(1))
    }

    /// Adds the rows of another batch of the same dimension.
    ///
    /// # Panics
    /// If the dimensions differ.
    pub fn append(&mut self, mut other: Self) {
        assert_eq!(self.dim, other.dim);
        self.values.append(&mut other.values);
        self.rows += other.rows;
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has another length.
    pub fn push(&mut self, row: &[f64]) {
        assert_eq!(self.dim, row.len());
        self.values.extend_from_slice(row);
        self.rows += 1;
    }

    /// Takes away the rows from `row` on.
    pub fn split_off(&mut self, row: usize) -> Self {
        let values = self.values.split_off(row * self.dim);
        let rows = self.rows - row;
        self.rows = row;
        Self { values, dim: self.dim, rows }
    }

    /// Changes the number and length of rows; within the capacity reached before, nothing is allocated.
    /// The rows' values are unspecified afterwards.
    pub fn set_size(&mut self, rows: usize, dim: usize) {
        self.dim = dim;
        self.set_rows(rows);
    }

    /// Changes the number of rows; within the capacity reached before, nothing is allocated.
    /// The rows' values are unspecified afterwards.
    pub fn set_rows(&mut self, rows: usize) {
        self.values.resize(rows * self.dim, 0.0);
        self.rows = rows;
    }
}
