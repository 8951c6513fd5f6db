//! Rows of one ladder shared out over threads, where an evaluation is dear enough: the bits are those of one thread, since a row's
//! result depends on that row alone. How dear it is the clock says, which here decides about speed alone.

use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use sterna::streams::RowStream;
use sterna::transport::EnergyModel;
use sterna::{Batch, Evaluation, Result, Target};

/// Nanoseconds of work that are worth waking another thread for.
const WORTH_A_THREAD: u64 = 20_000;

/// Nanoseconds of a coordinate below which iterations wait for memory rather than for the target.
const CHEAP: u64 = 10;

/// A batch in so many is timed once its cost is known.
const TIMED: u64 = 64;

/// A target whose rows are shared out over the threads of the pool that asks, beyond one for each ladder.
pub(crate) struct Spread {
    target: Arc<dyn Target>,
    /// Ladders, each of which keeps a thread busy.
    ladders: usize,
    /// Rows that the target works out together, for what one of them would cost.
    together: usize,
    /// Nanoseconds of so many rows, as they were last seen; 0 before.
    cost: AtomicU64,
    batches: AtomicU64,
    /// Batches and results of parts, for the next call.
    spare: Mutex<Vec<Part>>,
}

#[derive(Default)]
struct Part {
    x: Batch,
    out: Evaluation,
}

impl Spread {
    pub fn new(target: Arc<dyn Target>, ladders: usize) -> Self {
        Self::together(target, ladders, 1)
    }

    /// Of a target that works out so many rows together: they stay together.
    pub fn together(target: Arc<dyn Target>, ladders: usize, together: usize) -> Self {
        let (cost, batches, spare) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::default());
        Self { target, ladders, together, cost, batches, spare }
    }

    /// Into how many parts so many rows are cut.
    fn parts(&self, rows: usize) -> usize {
        let threads = rayon::current_num_threads();
        if threads <= self.ladders {
            return 1;
        }
        let groups = rows.div_ceil(self.together);
        let all = self.cost.load(Ordering::Relaxed).saturating_mul(groups as u64);
        let worth = usize::try_from(all / WORTH_A_THREAD).unwrap_or(usize::MAX);
        // Each ladder has its share of the threads.
        threads.div_ceil(self.ladders.max(1)).min(groups).min(worth).max(1)
    }

    fn on_one_thread(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        let number = self.batches.fetch_add(1, Ordering::Relaxed);
        if x.rows() == 0 || (self.cost.load(Ordering::Relaxed) > 0 && !number.is_multiple_of(TIMED)) {
            return self.target.evaluate(x, out);
        }
        let clock = Instant::now();
        self.target.evaluate(x, out)?;
        let spent = u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let spent = spent / x.rows().div_ceil(self.together) as u64;
        self.cost.store(spent.max(1), Ordering::Relaxed);
        Ok(())
    }

    fn spare(&self) -> Part {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Some of the rows, in memory of their own.
    fn part(&self, x: &[f64], log_density: &mut [f64], score: &mut [f64]) -> Result<()> {
        let (rows, dim) = (log_density.len(), self.target.dim());
        let mut part = self.spare();
        if part.x.dim() != dim {
            part = Part { x: Batch::zeros(rows, dim), out: Evaluation::zeros(rows, dim) };
        }
        part.x.set_rows(rows);
        part.out.set_rows(rows);
        part.x.as_mut_slice().copy_from_slice(x);
        let made = self.on_one_thread(&part.x, &mut part.out);
        log_density.copy_from_slice(&part.out.log_density);
        if self.target.has_score() {
            score.copy_from_slice(part.out.score.as_slice());
        }
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(part);
        made
    }
}

impl Target for Spread {
    fn dim(&self) -> usize {
        self.target.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        let (rows, dim) = (x.rows(), x.dim());
        let parts = self.parts(rows);
        if parts < 2 {
            return self.on_one_thread(x, out);
        }
        let most = rows.div_ceil(self.together).div_ceil(parts) * self.together;
        let Evaluation { log_density, score } = out;
        let of_parts = x
            .as_slice()
            .par_chunks(most * dim)
            .zip(log_density.par_chunks_mut(most))
            .zip(score.as_mut_slice().par_chunks_mut(most * dim));
        let made: Vec<Result<()>> = of_parts.map(|((x, l), s)| self.part(x, l, s)).collect();
        // The first in order, whichever came first.
        made.into_iter().collect()
    }

    fn has_score(&self) -> bool {
        self.target.has_score()
    }

    fn log_z(&self) -> Option<f64> {
        self.target.log_z()
    }

    fn diffused(&self) -> Option<&dyn EnergyModel> {
        self.target.diffused()
    }

    fn takes_blocks(&self, rows: usize) -> bool {
        let coordinates = (self.together * self.target.dim()) as u64;
        let cheap = self.cost.load(Ordering::Relaxed) < CHEAP * coordinates;
        self.target.takes_blocks(rows) && (cheap || self.parts(rows) < 2)
    }

    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) -> bool {
        self.target.draw(stream, x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;
    use sterna::lanes::WIDTH;
    use sterna::path::{AnnealingPath, Points};
    use sterna::targets::Banana;
    use sterna_molecule::{TemperedPath, alanine_dipeptide};

    /// Sleeps for each row, and knows how many calls were under way at once.
    struct Slow {
        inner: Banana,
        under_way: Arc<AtomicUsize>,
        most: Arc<AtomicUsize>,
        sleep: Duration,
    }

    impl Target for Slow {
        fn dim(&self) -> usize {
            self.inner.dim()
        }

        fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
            let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            std::thread::sleep(self.sleep * x.rows() as u32);
            let made = self.inner.evaluate(x, out);
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            if x.as_slice().contains(&7.0) { Err(sterna::Error::Target("seven".into())) } else { made }
        }
    }

    fn most_at_once(sleep: Duration, ladders: usize, together: usize) -> usize {
        let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let slow = Slow { inner: Banana::new(2), under_way, most: most.clone(), sleep };
        let spread = Spread::together(Arc::new(slow), ladders, together);
        let x = Batch::from_vec(2, (0..14).map(|i| 0.3 * f64::from(i)).collect());
        let (mut out, mut whole) = (Evaluation::zeros(7, 2), Evaluation::zeros(7, 2));
        Banana::new(2).evaluate(&x, &mut whole).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for _ in 0..4 {
            pool.install(|| spread.evaluate(&x, &mut out)).unwrap();
            assert_eq!(
                (&out.log_density, out.score.as_slice()),
                (&whole.log_density, whole.score.as_slice())
            );
        }
        let bad = Batch::from_vec(2, vec![7.0; 14]);
        assert!(pool.install(|| spread.evaluate(&bad, &mut out)).unwrap_err().to_string().contains("seven"));
        most.load(Ordering::SeqCst)
    }

    #[test]
    fn dear_rows_are_shared_and_others_are_not() {
        assert!(most_at_once(Duration::from_millis(2), 1, 1) >= 2);
        assert_eq!(most_at_once(Duration::from_millis(1), 3, 1), 1);
        assert_eq!(most_at_once(Duration::ZERO, 1, 1), 1);
    }

    /// Energies of a path, and whether they may be asked for in blocks.
    fn energies(path: &TemperedPath, threads: usize) -> (Points, bool) {
        let (rows, dim) = (21, path.dim());
        let mut points = Points::zeros(rows, dim);
        for row in 0..rows {
            for (i, x) in points.x.row_mut(row).iter_mut().enumerate() {
                *x = path.molecule().start()[i] + 1e-3 * ((row * dim + i) as f64).sin();
            }
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| path.evaluate(&vec![0.5; rows], &mut points)).unwrap();
        (points, pool.install(|| path.takes_blocks(rows)))
    }

    #[test]
    fn rows_of_a_molecule_are_shared_and_keep_their_bits() {
        let molecule = Arc::new(alanine_dipeptide(300.0).unwrap());
        let spread = Arc::new(Spread::together(molecule.clone(), 1, WIDTH));
        // A millisecond for eight of them, as if that had been timed.
        spread.cost.store(1_000_000, Ordering::Relaxed);
        spread.batches.store(1, Ordering::Relaxed);
        let alone = TemperedPath::new(molecule.clone(), 1200.0).unwrap();
        let shared = TemperedPath::new(molecule, 1200.0).unwrap().asking(spread.clone());
        let ((expected, in_blocks), (found, shared_in_blocks)) = (energies(&alone, 3), energies(&shared, 3));
        // Three groups of eight on three threads.
        assert_eq!(spread.batches.load(Ordering::Relaxed), 4);
        assert!(in_blocks && !shared_in_blocks && energies(&shared, 1).1);
        spread.cost.store(1_000, Ordering::Relaxed);
        assert!(shared.takes_blocks(21), "cheap");
        assert_eq!(found.log_density, expected.log_density);
        assert_eq!(found.score, expected.score);
        assert_eq!((shared.evaluations(), alone.evaluations()), (42, 21));
    }

    #[test]
    fn rows_that_are_worked_out_together_stay_together() {
        // Seven rows are two groups of four, or one of eight.
        assert_eq!(most_at_once(Duration::from_millis(2), 1, 4), 2);
        assert_eq!(most_at_once(Duration::from_millis(2), 1, 8), 1);
    }
}
