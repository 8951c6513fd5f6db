//! The tempered path of a molecule (§6.5): the same energy from a hot reference to the target's temperature.
//! log π^β = −U/(kB T) with 1/T linear in β, so β scales the target's log density L: log π^β = f L, f = T_target/T. The reference has
//! local moves like any other chain; log Z is relative to it (errata E15).
//!
//! Of a molecule that [holds its peptide bonds](Molecule::holding_peptide_bonds) the terms about these, H of L, count on all chains as
//! they do at the target: log π^β = f L + (1 − f) H. Otherwise hot chains turn such bonds into cis, a third of the draws at 1200 K,
//! which cold chains have no place for, and turn them back within thousands of iterations.

use crate::{Molecule, MoleculeError, Temperatures, TorsionMoves};
use std::cell::RefCell;
use std::sync::Arc;
use sterna::call::{Call, Scratch};
use sterna::explorer::{Explorer, Moved};
use sterna::explorers::Followed;
use sterna::lanes::one::{power, sin_cos};
use sterna::path::{AnnealingPath, Points};
use sterna::streams::{PhaseKey, RowStream, Streams};
use sterna::{Batch, Counted, Evaluation, Result, Schedule, Target};

/// Spread of the start about the molecule's own conformation, in its coordinates (nm): a fraction of a vibration.
const START_SPREAD: f64 = 1e-4;

/// A molecule from a reference temperature to its own.
///
/// ```
/// use std::sync::Arc;
/// use sterna::path::{AnnealingPath, Points};
/// use sterna_molecule::{TemperedPath, alanine_dipeptide};
///
/// let molecule = Arc::new(alanine_dipeptide(300.0).unwrap());
/// let path = TemperedPath::new(molecule.clone(), 1200.0).unwrap();
/// let mut points = Points::zeros(2, path.dim());
/// points.x.row_mut(0).copy_from_slice(molecule.start());
/// points.x.row_mut(1).copy_from_slice(molecule.start());
/// path.evaluate(&[0.0, 1.0], &mut points).unwrap();
/// assert!((4.0 * points.log_density[0] - points.log_density[1]).abs() < 1e-12);
/// ```
pub struct TemperedPath {
    molecule: Arc<Molecule>,
    /// The molecule, or what asks it in its own way.
    asked: Counted<Arc<dyn Target>>,
    temperatures: Temperatures,
    moves: Arc<dyn Explorer>,
}

impl TemperedPath {
    /// From `reference` (K) to the molecule's temperature.
    pub fn new(molecule: Arc<Molecule>, reference: f64) -> std::result::Result<Self, MoleculeError> {
        if !(reference.is_finite() && reference > 0.0) {
            return Err(MoleculeError::Temperature(reference));
        }
        let temperatures = Temperatures { reference, target: molecule.temperature() };
        let asked = Counted::new(molecule.clone() as Arc<dyn Target>);
        Ok(Self { molecule, asked, temperatures, moves: Arc::new(Turns) })
    }

    /// The same path, whose energies come from `target`: the same molecule, asked in another way, such as by several threads.
    pub fn asking(self, target: Arc<dyn Target>) -> Self {
        Self { asked: Counted::new(target), ..self }
    }

    /// The same path, on which each iteration also turns torsions so many times (at most 32).
    ///
    /// # Panics
    /// If `moves` is more than 32.
    pub fn with_torsion_moves(mut self, moves: usize) -> std::result::Result<Self, MoleculeError> {
        self.moves = match moves {
            0 => Arc::new(Turns),
            moves => {
                let then = Arc::new(TorsionMoves::new(&self.molecule, moves)?);
                Arc::new(Followed { first: Arc::new(Turns), then })
            }
        };
        Ok(self)
    }

    /// The molecule at the target's temperature.
    pub fn molecule(&self) -> &Molecule {
        &self.molecule
    }

    /// The temperatures at both ends.
    pub fn temperatures(&self) -> Temperatures {
        self.temperatures
    }

    /// log π^β over log π: T_target / T, linear in β.
    fn factor(&self, beta: f64) -> f64 {
        (1.0 - beta) * (self.temperatures.target / self.temperatures.reference) + beta
    }
}

thread_local! {
    /// What does not get hot, of some rows.
    static HELD: RefCell<Evaluation> = RefCell::new(Evaluation::zeros(0, 1));
}

impl AnnealingPath for TemperedPath {
    fn dim(&self) -> usize {
        self.molecule.dim()
    }

    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        self.asked.evaluate(&points.x, &mut points.target)?;
        self.move_to(betas, points)
    }

    fn move_to(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        let hottest = self.factor(0.0);
        for (i, &beta) in betas.iter().enumerate() {
            let factor = self.factor(beta);
            points.log_density[i] = factor * points.target.log_density[i];
            points.log_reference[i] = hottest * points.target.log_density[i];
            let scores = points.score.row_mut(i).iter_mut().zip(points.target.score.row(i));
            scores.for_each(|(score, target)| *score = factor * target);
        }
        HELD.with_borrow_mut(|held| {
            if !self.molecule().evaluate_held(&points.x, held)? {
                return Ok(());
            }
            for (i, &beta) in betas.iter().enumerate() {
                // Nothing is added to what is impossible.
                if points.target.log_density[i] == f64::NEG_INFINITY {
                    continue;
                }
                let rest = 1.0 - self.factor(beta);
                points.log_density[i] += rest * held.log_density[i];
                points.log_reference[i] += (1.0 - hottest) * held.log_density[i];
                let scores = points.score.row_mut(i).iter_mut().zip(held.score.row(i));
                scores.for_each(|(score, held)| *score += rest * held);
            }
            Ok(())
        })
    }

    fn slopes(&self, _betas: &[f64], points: &Points, out: &mut [f64], _scratch: &mut Scratch) -> Result<()> {
        let slope = self.factor(1.0) - self.factor(0.0);
        out.iter_mut()
            .zip(&points.target.log_density)
            .for_each(|(out, log_density)| *out = slope * log_density);
        HELD.with_borrow_mut(|held| {
            if self.molecule().evaluate_held(&points.x, held)? {
                let possible = out.iter_mut().zip(&held.log_density).filter(|(out, _)| out.is_finite());
                possible.for_each(|(out, held)| *out -= slope * held);
            }
            Ok(())
        })
    }

    /// Where replicas start: the molecule's own conformation, hardly disturbed. No draws from the reference.
    fn draw_reference(
        &self,
        _end: f64,
        streams: &Streams,
        phase: PhaseKey,
        iteration: u64,
        rows: &[u32],
        x: &mut Batch,
    ) {
        streams.normals(phase, iteration, rows, x);
        for x in x.as_mut_slice().chunks_exact_mut(self.dim()) {
            x.iter_mut()
                .zip(self.molecule().start())
                .for_each(|(x, start)| *x = x.mul_add(START_SPREAD, *start));
        }
    }

    fn draws_reference(&self) -> bool {
        false
    }

    /// Geometric in temperature: neighbouring chains then differ by the same share of their heat.
    fn first_schedule(&self, chains: usize) -> Schedule {
        let Temperatures { reference, target } = self.temperatures;
        let last = chains - 1;
        let beta = |n: usize| match n {
            0 => 0.0,
            n if n == last => 1.0,
            n => self.temperatures.beta(reference * power(target / reference, n as f64 / last as f64)),
        };
        // Equal temperatures at both ends have no such ladder.
        Schedule::new((0..chains).map(beta).collect()).unwrap_or_else(|_| Schedule::uniform(chains))
    }

    fn takes_blocks(&self, rows: usize) -> bool {
        self.asked.takes_blocks(rows)
    }

    fn own_moves(&self) -> Option<&dyn Explorer> {
        Some(&*self.moves)
    }

    fn log_z(&self) -> Option<f64> {
        None
    }

    fn evaluations(&self) -> u64 {
        self.asked.evaluations()
    }
}

/// Turns each row, a whole molecule, by a rotation drawn uniformly. The energy does not see it, so every turn is accepted
/// and costs no evaluation; without it the Cartesian coordinates of a draw remember the start's orientation for thousands
/// of iterations.
#[derive(Clone, Copy, Debug)]
struct Turns;

impl Explorer for Turns {
    fn explore(
        &self,
        call: &Call,
        points: &mut Points,
        _moved: &mut Moved,
        _scratch: &mut Scratch,
    ) -> Result<()> {
        let slot = call.slots.take();
        for (i, &row) in call.rows.row.iter().enumerate() {
            let rotation = uniform_rotation(&mut call.stream(slot, i));
            turn(&rotation, points.x.row_mut(row));
            turn(&rotation, points.score.row_mut(row));
            turn(&rotation, points.target.score.row_mut(row));
        }
        Ok(())
    }
}

/// Three uniforms become a quaternion that is uniform on its sphere (Shoemake's way).
fn uniform_rotation(stream: &mut RowStream) -> [[f64; 3]; 3] {
    let [u, v, w] = std::array::from_fn(|_| stream.uniform());
    let (a, b) = ((1.0 - u).sqrt(), u.sqrt());
    let ((x, y), (z, s)) = (sin_cos(std::f64::consts::TAU * v), sin_cos(std::f64::consts::TAU * w));
    let (x, y, z, s) = (a * x, a * y, b * z, b * s);
    [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - s * z), 2.0 * (x * z + s * y)],
        [2.0 * (x * y + s * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - s * x)],
        [2.0 * (x * z - s * y), 2.0 * (y * z + s * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
}

fn turn(rotation: &[[f64; 3]; 3], vectors: &mut [f64]) {
    for v in vectors.chunks_exact_mut(3) {
        let turned = rotation.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2]);
        v.copy_from_slice(&turned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna::Streams;
    use sterna::call::Slots;

    /// Moments of a uniform rotation: E R = 0 and E Rᵢⱼ² = 1/3. Five standard errors: a false alarm in 10⁵ fresh seeds,
    /// and the seed is fixed. A rotation about one axis alone fails.
    #[test]
    fn rotations_are_uniform_and_proper() {
        let n = 20_000;
        let (mut mean, mut square) = ([[0.0; 3]; 3], [[0.0; 3]; 3]);
        let slot = Slots::of_path().take();
        for row in 0..n {
            let r = uniform_rotation(&mut Streams::new(5).row(slot, 1, row));
            for i in 0..3 {
                for j in 0..3 {
                    mean[i][j] += r[i][j] / f64::from(n);
                    square[i][j] += r[i][j] * r[i][j] / f64::from(n);
                    let product: f64 = (0..3).map(|k| r[i][k] * r[j][k]).sum();
                    assert!((product - f64::from(u8::from(i == j))).abs() < 1e-14);
                }
            }
            let cross = r[0][1] * r[1][2] - r[0][2] * r[1][1];
            assert!((cross - r[2][0]).abs() < 1e-14, "a mirror image");
        }
        let error = 5.0 / f64::from(n).sqrt();
        for i in 0..3 {
            for j in 0..3 {
                assert!(mean[i][j].abs() < error / 3f64.sqrt(), "{mean:?}");
                // Var R² = 1/5 − 1/9.
                assert!(
                    (square[i][j] - 1.0 / 3.0).abs() < error * (1.0 / 5.0 - 1.0 / 9.0f64).sqrt(),
                    "{square:?}"
                );
            }
        }
    }
}
