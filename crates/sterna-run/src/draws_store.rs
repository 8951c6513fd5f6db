//! `checkpoint/draws`: all draws so far, in pieces that are only ever appended.
//!
//! A piece is its number of draws, a checksum, and for each ensemble points, log densities, replicas, acceptances and
//! whether moves diverged.
//! A checkpoint says how many bytes belong to it: what a crash left behind them is cut off.

use crate::error::JobError;
use crate::files::checksum;
use crate::platform::{read_at, write_at};
use crate::problem::Problem;
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use sterna::estimates::most_kept;
use sterna::records::Draws;

const HEADER: u64 = 16;

/// Where a piece begins, and which draws it holds.
#[derive(Clone, Debug)]
struct Piece {
    offset: u64,
    draws: Range<usize>,
}

/// Draws on disk.
#[derive(Debug)]
pub struct StoredDraws {
    path: PathBuf,
    file: File,
    dim: usize,
    ensembles: usize,
    pieces: Vec<Piece>,
    bytes: u64,
}

impl StoredDraws {
    /// Begins anew.
    pub fn create(path: PathBuf, dim: usize, ensembles: usize) -> Result<Self, JobError> {
        let open = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = open.map_err(JobError::file("create", &path))?;
        Ok(Self { path, file, dim, ensembles, pieces: Vec::new(), bytes: 0 })
    }

    /// Goes on after the first `bytes`, which are checked. What lies behind them is overwritten later.
    pub fn open(path: PathBuf, dim: usize, ensembles: usize, bytes: u64) -> Result<Self, JobError> {
        if bytes == 0 && !path.exists() {
            return Self::create(path, dim, ensembles);
        }
        let open = File::options().read(true).write(true).open(&path);
        let file = open.map_err(JobError::file("open", &path))?;
        let mut out = Self { path, file, dim, ensembles, pieces: Vec::new(), bytes: 0 };
        out.walk(bytes).map_err(|reason| {
            JobError::Config(format!(
                "the draws of the checkpoint, {}, cannot be used: {reason}; nothing was changed",
                out.path.display()
            ))
        })?;
        Ok(out)
    }

    fn walk(&mut self, bytes: u64) -> Result<(), String> {
        let text = |e: io::Error| e.to_string();
        let there = self.file.metadata().map_err(text)?.len();
        if there < bytes {
            return Err(format!("they are truncated: {there} bytes of {bytes} are there"));
        }
        let damaged = || "they were damaged or edited".to_string();
        let mut buffer = Vec::new();
        while self.bytes < bytes {
            let mut header = [0; HEADER as usize];
            read_at(&self.file, &mut header, self.bytes).map_err(text)?;
            let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
            let draws = number(0);
            let length = draws.checked_mul(self.draw_bytes()).filter(|&l| l > 0 && l <= bytes - self.bytes);
            // The file is at least that long, so the length is no lie about memory either.
            let length = length.ok_or_else(damaged)?;
            buffer.resize(length as usize, 0);
            read_at(&self.file, &mut buffer, self.bytes + HEADER).map_err(text)?;
            if checksum(&buffer) != number(8) {
                return Err(damaged());
            }
            self.note(draws as usize, length);
        }
        if self.bytes == bytes { Ok(()) } else { Err(damaged()) }
    }

    /// Bytes of one draw in all ensembles.
    fn draw_bytes(&self) -> u64 {
        (self.ensembles * self.width()) as u64
    }

    /// Bytes of one draw in an ensemble: point, log density, replica, acceptance, divergence.
    fn width(&self) -> usize {
        8 * self.dim + 8 + 4 + 4 + 1
    }

    fn note(&mut self, draws: usize, length: u64) {
        let first = self.draws();
        self.pieces.push(Piece { offset: self.bytes + HEADER, draws: first..first + draws });
        self.bytes += HEADER + length;
    }

    /// Draws of each ensemble so far.
    pub fn draws(&self) -> usize {
        self.pieces.last().map_or(0, |p| p.draws.end)
    }

    /// Number of ensembles.
    pub fn ensembles(&self) -> usize {
        self.ensembles
    }

    /// Bytes that belong to the draws so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds draws of each ensemble.
    pub fn append(&mut self, draws: &[Draws]) -> Result<(), JobError> {
        let count = draws.first().map_or(0, |d| d.replica.len());
        if count == 0 {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(count * self.draw_bytes() as usize);
        for draws in draws {
            draws.x.iter().chain(&draws.log_density).for_each(|x| bytes.extend_from_slice(&x.to_le_bytes()));
            draws.replica.iter().for_each(|r| bytes.extend_from_slice(&r.to_le_bytes()));
            draws.acceptance.iter().for_each(|a| bytes.extend_from_slice(&a.to_le_bytes()));
            bytes.extend(draws.diverging.iter().map(|&d| u8::from(d)));
        }
        let mut header = (count as u64).to_le_bytes().to_vec();
        header.extend_from_slice(&checksum(&bytes).to_le_bytes());
        let write = || {
            self.file.set_len(self.bytes)?;
            write_at(&self.file, &header, self.bytes)?;
            write_at(&self.file, &bytes, self.bytes + HEADER)
        };
        write().map_err(JobError::file("write", &self.path))?;
        self.note(count, bytes.len() as u64);
        Ok(())
    }

    /// Makes sure that all is on disk.
    pub fn sync(&self) -> Result<(), JobError> {
        self.file.sync_data().map_err(JobError::file("write", &self.path))
    }

    /// Points of some draws of an ensemble.
    pub fn x(&self, ensemble: usize, draws: Range<usize>) -> io::Result<Cow<'_, [f64]>> {
        let bytes = self.read(ensemble, draws, 0, 8 * self.dim)?;
        Ok(bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect())
    }

    /// Log densities of some draws of an ensemble.
    pub fn log_density(&self, ensemble: usize, draws: Range<usize>) -> io::Result<Cow<'_, [f64]>> {
        let bytes = self.read(ensemble, draws, 8 * self.dim, 8)?;
        Ok(bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect())
    }

    /// Replicas of some draws of an ensemble.
    pub fn replica(&self, ensemble: usize, draws: Range<usize>) -> io::Result<Vec<u32>> {
        let bytes = self.read(ensemble, draws, 8 * self.dim + 8, 4)?;
        Ok(bytes.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect())
    }

    /// Mean acceptances of the local moves before some draws of an ensemble.
    pub fn acceptance(&self, ensemble: usize, draws: Range<usize>) -> io::Result<Vec<f32>> {
        let bytes = self.read(ensemble, draws, 8 * self.dim + 12, 4)?;
        Ok(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
    }

    /// Whether those moves came to a point at which the log density is no number.
    pub fn diverging(&self, ensemble: usize, draws: Range<usize>) -> io::Result<Vec<bool>> {
        let bytes = self.read(ensemble, draws, 8 * self.dim + 16, 1)?;
        Ok(bytes.iter().map(|&b| b > 0).collect())
    }

    /// Points, log densities and replicas: what alarms are judged by, and what chemists look at: all draws of a molecule, and of other targets at
    /// most as many as their series keep, evenly spread.
    pub fn judged(&self, problem: &Problem) -> Result<Vec<Draws>, JobError> {
        let most = if problem.molecule.is_some() { usize::MAX } else { most_kept(self.dim) };
        let stride = self.draws().div_ceil(most).max(1);
        let of = |ensemble: usize| {
            let mut out = Draws::default();
            // The last of each stretch, so that what is left out at the end is least.
            for piece in &self.pieces {
                let x = self.x(ensemble, piece.draws.clone())?;
                let log_density = self.log_density(ensemble, piece.draws.clone())?;
                let replica = self.replica(ensemble, piece.draws.clone())?;
                for (i, draw) in piece.draws.clone().enumerate() {
                    if (draw + 1).is_multiple_of(stride) {
                        out.x.extend_from_slice(&x[i * self.dim..(i + 1) * self.dim]);
                        out.log_density.push(log_density[i]);
                        out.replica.push(replica[i]);
                    }
                }
            }
            Ok(out)
        };
        (0..self.ensembles).map(of).collect::<io::Result<_>>().map_err(JobError::file("read", &self.path))
    }

    /// One column: within an ensemble's part of a piece it lies behind `before` bytes for each draw.
    fn read(
        &self,
        ensemble: usize,
        wanted: Range<usize>,
        before: usize,
        width: usize,
    ) -> io::Result<Vec<u8>> {
        let mut out = vec![0; wanted.len() * width];
        let mut done = 0;
        let first = self.pieces.partition_point(|p| p.draws.end <= wanted.start);
        for piece in self.pieces[first..].iter().take_while(|p| p.draws.start < wanted.end) {
            let length = piece.draws.len();
            let from = wanted.start.max(piece.draws.start) - piece.draws.start;
            let to = wanted.end.min(piece.draws.end) - piece.draws.start;
            let ensemble_bytes = length * self.width();
            let at = piece.offset as usize + ensemble * ensemble_bytes + length * before + from * width;
            let size = (to - from) * width;
            read_at(&self.file, &mut out[done..done + size], at as u64)?;
            done += size;
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn draws(count: usize, dim: usize, seed: f64) -> Draws {
        Draws {
            x: (0..count * dim).map(|i| seed + i as f64).collect(),
            log_density: (0..count).map(|i| -seed * i as f64).collect(),
            replica: (0..count as u32).collect(),
            acceptance: (0..count).map(|i| seed as f32 / (i + 1) as f32).collect(),
            diverging: (0..count).map(|i| i % 2 == 1).collect(),
        }
    }

    #[test]
    fn pieces_read_back_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("draws");
        let mut store = StoredDraws::create(path.clone(), 2, 2).unwrap();
        for (count, seed) in [(3, 0.5), (1, 100.0), (5, 7.0)] {
            store.append(&[draws(count, 2, seed), draws(count, 2, seed + 0.25)]).unwrap();
        }
        assert_eq!((store.draws(), store.ensembles()), (9, 2));
        let expected: Vec<f64> = [draws(3, 2, 0.75), draws(1, 2, 100.25), draws(5, 2, 7.25)]
            .iter()
            .flat_map(|d| d.x.clone())
            .collect();
        for range in [0..9, 2..4, 3..4, 5..9, 8..8] {
            assert_eq!(*store.x(1, range.clone()).unwrap(), expected[2 * range.start..2 * range.end]);
        }
        assert_eq!(*store.log_density(0, 3..6).unwrap(), [-0.0, -0.0, -7.0]);
        assert_eq!(store.replica(1, 1..6).unwrap(), [1, 2, 0, 0, 1]);
        assert_eq!(store.acceptance(0, 2..6).unwrap(), [0.5 / 3.0, 100.0, 7.0, 3.5]);
        assert_eq!(store.diverging(1, 1..6).unwrap(), [true, false, false, false, true]);

        // What was written after a checkpoint is forgotten; what was edited or lost is refused.
        let bytes = store.bytes();
        store.append(&[draws(4, 2, 1.0), draws(4, 2, 2.0)]).unwrap();
        let again = StoredDraws::open(path.clone(), 2, 2, bytes).unwrap();
        assert_eq!((again.draws(), again.bytes()), (9, bytes));
        let refusal = |bytes| StoredDraws::open(path.clone(), 2, 2, bytes).unwrap_err().to_string();
        assert!(refusal(bytes + 1).contains("damaged"));
        assert!(refusal(1 << 40).contains("truncated"));
        let mut edited = fs::read(&path).unwrap();
        edited[40] ^= 1;
        fs::write(&path, &edited).unwrap();
        assert!(refusal(bytes).contains("damaged or edited"));
        edited[0] = 0xff;
        fs::write(&path, edited).unwrap();
        assert!(refusal(bytes).contains("damaged or edited"));
    }
}
