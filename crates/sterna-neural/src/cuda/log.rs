//! Where ladders on a GPU write down what they do, until the host reads it.

use std::sync::Arc;

use sterna::engine::{BadProposal, Journal, Page};

use super::gpu::{Buffer, Gpu, Kernel, Module};
use super::ladder_parts::row_blocks;
use super::ladders::LadderPlan;
use crate::Result;

/// Structure `Log` of `kernels/log.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct LogPointers([u64; 4]);

pub(super) struct Log {
    /// Numbers that an iteration writes.
    width: usize,
    rows: usize,
    dim: usize,
    pages: Buffer,
    first: Buffer,
    bad_x: Buffer,
    bad_at: Buffer,
    pub witness: Kernel,
}

impl Log {
    /// With room for so many iterations.
    pub fn new(gpu: &Arc<Gpu>, plan: &LadderPlan, module: &Arc<Module>, room: u64) -> Result<Self> {
        let (chains, dim) = (plan.schedule.chains(), plan.target.dim());
        let (rows, width) = (plan.ensembles * chains, plan.ensembles * Page { chains, dim }.len());
        Ok(Self {
            width,
            rows,
            dim,
            pages: gpu.allocate(8 * width * room as usize)?,
            first: gpu.allocate(8)?,
            bad_x: gpu.allocate(8 * rows * dim)?,
            bad_at: gpu.allocate(8 * rows)?,
            witness: module.kernel("witness", row_blocks(rows, dim), 128, 0)?,
        })
    }

    /// In the order of the kernels' structure.
    pub fn pointers(&self) -> LogPointers {
        LogPointers([&self.pages, &self.first, &self.bad_x, &self.bad_at].map(Buffer::pointer))
    }

    /// The next iteration to be written down is the one after `done`.
    pub fn open(&self, done: u64) -> Result<()> {
        self.first.write(0, &[done])
    }

    /// Reads so many iterations, all pages in one copy.
    pub fn read(&self, iterations: u64, journal: &mut Journal) -> Result<()> {
        journal.bad_points.clear();
        journal.pages.resize(self.width * iterations as usize, 0.0);
        self.pages.read(0, &mut journal.pages)?;
        let mut bad_at = vec![0u64; self.rows];
        self.bad_at.read(0, &mut bad_at)?;
        if bad_at.iter().all(|&iteration| iteration == 0) {
            return Ok(());
        }
        for (replica, &iteration) in bad_at.iter().enumerate().filter(|(_, iteration)| **iteration > 0) {
            let mut point = vec![0.0; self.dim];
            self.bad_x.read(replica * self.dim, &mut point)?;
            journal.bad_points.push(BadProposal { iteration, replica, point });
        }
        self.bad_at.write(0, &vec![0u64; self.rows])
    }
}
