//! Lennard-Jones clusters in a harmonic trap (LJ-13, LJ-55), the standard test of learned samplers for particles.
//!
//! E = Σ over ordered pairs i ≠ j of r⁻¹² − 2 r⁻⁶, so that each pair counts twice, plus ½ Σ |xᵢ − x̄|²; log π̃ = −E. Points are mean-free
//! positions in an orthonormal (Helmert) basis, as those of DW-4: the trap is then −½|y|², so that N(0, I) is the trapped gas
//! without forces.

use crate::lanes::{Kernel, Lanes, WIDTH, dispatch};
use crate::{Batch, Evaluation, Result, Target};
use std::cell::Cell;

/// Particles with a minimum of their pair energy at distance 1, where it is −2.
///
/// ```
/// use sterna::{Target, targets::LennardJones};
/// assert_eq!(LennardJones::new(13).dim(), 36); // thirteen particles in space, without their centre
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LennardJones {
    particles: usize,
}

/// Squared distances below this count as this: energies stay finite numbers, and particles in one place, which have no direction to
/// part in, feel no force rather than NaN.
const CLOSEST: f64 = 1e-24;

thread_local! {
    /// Positions of eight points and the forces on them, coordinate by coordinate.
    static MEMORY: Cell<Vec<[f64; WIDTH]>> = const { Cell::new(Vec::new()) };
}

impl LennardJones {
    /// # Panics
    /// If there are fewer than two particles.
    pub fn new(particles: usize) -> Self {
        assert!(particles >= 2, "a cluster has two particles or more");
        Self { particles }
    }

    /// How many particles.
    pub fn particles(&self) -> usize {
        self.particles
    }

    /// Positions of all particles at a mean-free point, three numbers each, centre of mass at zero.
    pub fn positions(&self, y: &[f64]) -> Vec<[f64; 3]> {
        let mut positions = vec![[0.0; 3]; self.particles];
        let mut beyond = [0.0; 3];
        for i in (0..self.particles).rev() {
            for axis in 0..3 {
                positions[i][axis] = beyond[axis];
                if i > 0 {
                    let [own, others] = basis(i);
                    let y = y[3 * (i - 1) + axis];
                    positions[i][axis] += own * y;
                    beyond[axis] += others * y;
                }
            }
        }
        positions
    }

    /// Root mean square distance of the particles from their centre.
    pub fn radius(&self, y: &[f64]) -> f64 {
        (y.iter().map(|y| y * y).sum::<f64>() / self.particles as f64).sqrt()
    }
}

/// Row i ≥ 1 of the basis: what particle i has, and what each one before it has; those after it have nothing.
#[inline(always)]
fn basis(i: usize) -> [f64; 2] {
    let norm = ((i * (i + 1)) as f64).sqrt();
    [-(i as f64) / norm, 1.0 / norm]
}

impl Target for LennardJones {
    fn dim(&self) -> usize {
        3 * (self.particles - 1)
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        let mut memory = MEMORY.take();
        memory.resize(6 * self.particles, [0.0; WIDTH]);
        let (positions, forces) = memory.split_at_mut(3 * self.particles);
        dispatch(Cluster { x, out, positions, forces });
        MEMORY.set(memory);
        Ok(())
    }
}

struct Cluster<'a> {
    x: &'a Batch,
    out: &'a mut Evaluation,
    positions: &'a mut [[f64; WIDTH]],
    forces: &'a mut [[f64; WIDTH]],
}

impl Kernel for Cluster<'_> {
    type Output = ();

    /// Eight rows at a time.
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let dim = self.x.dim();
        for first in (0..self.x.rows()).step_by(WIDTH) {
            let rows = (self.x.rows() - first).min(WIDTH);
            let x = &self.x.as_slice()[first * dim..(first + rows) * dim];
            let trap = place::<L>(x, dim, self.positions);
            self.forces.fill([0.0; WIDTH]);
            let attraction = attract::<L>(self.positions, self.forces);
            let log_density = L::splat(-0.5).mul_add(trap, attraction);
            log_density.store_some(&mut self.out.log_density[first..first + rows]);
            let score = &mut self.out.score.as_mut_slice()[first * dim..(first + rows) * dim];
            collect::<L>(x, dim, self.forces, score);
        }
    }
}

/// Positions of the particles, from the last to the first; |y|².
#[inline(always)]
fn place<L: Lanes>(x: &[f64], dim: usize, positions: &mut [[f64; WIDTH]]) -> L {
    let zero = L::splat(0.0);
    let (mut beyond, mut squares) = ([zero; 3], zero);
    for i in (1..positions.len() / 3).rev() {
        let [own, others] = basis(i).map(L::splat);
        for axis in 0..3 {
            let y = L::load_column(x, dim, 3 * (i - 1) + axis);
            own.mul_add(y, beyond[axis]).store(&mut positions[3 * i + axis]);
            beyond[axis] = others.mul_add(y, beyond[axis]);
            squares = y.mul_add(y, squares);
        }
    }
    for axis in 0..3 {
        beyond[axis].store(&mut positions[axis]);
    }
    squares
}

/// Log density of all pairs; the forces on the particles are added.
#[inline(always)]
fn attract<L: Lanes>(positions: &[[f64; WIDTH]], forces: &mut [[f64; WIDTH]]) -> L {
    let zero = L::splat(0.0);
    let mut log_density = zero;
    let particles = positions.len() / 3;
    for i in 0..particles {
        let here: [L; 3] = std::array::from_fn(|axis| L::load(&positions[3 * i + axis]));
        let mut force: [L; 3] = std::array::from_fn(|axis| L::load(&forces[3 * i + axis]));
        for j in i + 1..particles {
            let apart: [L; 3] = std::array::from_fn(|axis| here[axis] - L::load(&positions[3 * j + axis]));
            let square = apart[2].mul_add(apart[2], apart[1].mul_add(apart[1], apart[0] * apart[0]));
            let inverse = L::splat(1.0) / square.max(L::splat(CLOSEST));
            let sixth = inverse * inverse * inverse;
            log_density = (sixth * L::splat(-2.0)).mul_add(sixth - L::splat(2.0), log_density);
            let push = L::splat(24.0) * sixth * (sixth - L::splat(1.0)) * inverse;
            for axis in 0..3 {
                force[axis] = push.mul_add(apart[axis], force[axis]);
                let other = L::load(&forces[3 * j + axis]);
                (-push).mul_add(apart[axis], other).store(&mut forces[3 * j + axis]);
            }
        }
        for axis in 0..3 {
            force[axis].store(&mut forces[3 * i + axis]);
        }
    }
    log_density
}

/// The score in mean-free coordinates: the basis' rows times the forces, and the trap's pull.
#[inline(always)]
fn collect<L: Lanes>(x: &[f64], dim: usize, forces: &[[f64; WIDTH]], score: &mut [f64]) {
    let mut before: [L; 3] = std::array::from_fn(|axis| L::load(&forces[axis]));
    for i in 1..forces.len() / 3 {
        let [own, others] = basis(i).map(L::splat);
        for axis in 0..3 {
            let column = 3 * (i - 1) + axis;
            let force = L::load(&forces[3 * i + axis]);
            let pull = own.mul_add(force, others * before[axis]);
            (pull - L::load_column(x, dim, column)).store_column(score, dim, column);
            before[axis] = before[axis] + force;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    fn evaluate(target: &LennardJones, x: Vec<f64>) -> Evaluation {
        let x = Batch::from_vec(target.dim(), x);
        let mut out = Evaluation::zeros(x.rows(), x.dim());
        target.evaluate(&x, &mut out).unwrap();
        out
    }

    /// E from its definition, over ordered pairs of positions in space.
    fn energy(positions: &[[f64; 3]]) -> f64 {
        let n = positions.len() as f64;
        let centre: [f64; 3] = std::array::from_fn(|axis| positions.iter().map(|p| p[axis]).sum::<f64>() / n);
        let square = |a: &[f64; 3], b: &[f64; 3]| (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>();
        let mut energy = 0.0;
        for (i, a) in positions.iter().enumerate() {
            energy += 0.5 * square(a, &centre);
            for (_, b) in positions.iter().enumerate().filter(|(j, _)| *j != i) {
                let sixth = square(a, b).powi(-3);
                energy += sixth * sixth - 2.0 * sixth;
            }
        }
        energy
    }

    /// Mean-free coordinates of positions, by the basis' definition.
    fn mean_free(positions: &[[f64; 3]]) -> Vec<f64> {
        let mut y = Vec::new();
        for k in 1..positions.len() {
            let norm = ((k * (k + 1)) as f64).sqrt();
            for axis in 0..3 {
                let before: f64 = positions[..k].iter().map(|p| p[axis]).sum();
                y.push((before - k as f64 * positions[k][axis]) / norm);
            }
        }
        y
    }

    fn cloud(particles: usize, row: u32) -> Vec<[f64; 3]> {
        let mut stream = Streams::new(8).row(Phase::Check, 0, row);
        (0..particles).map(|_| std::array::from_fn(|_| 1.3 * stream.normal())).collect()
    }

    #[test]
    fn energies_follow_their_definition() {
        for particles in [2, 3, 13, 55] {
            let target = LennardJones::new(particles);
            for row in 0..5 {
                let positions = cloud(particles, row);
                let y = mean_free(&positions);
                let expected = -energy(&positions);
                let found = evaluate(&target, y.clone()).log_density[0];
                assert!((found / expected - 1.0).abs() < 1e-10, "{particles}: {found} and {expected}");
                let placed = target.positions(&y);
                assert!((energy(&placed) / -expected - 1.0).abs() < 1e-10);
                let squares: f64 = placed.iter().flatten().map(|p| p * p).sum();
                assert!((target.radius(&y) - (squares / particles as f64).sqrt()).abs() < 1e-12);
            }
        }
    }

    /// The lowest energy of 13 particles, without a trap, is −44.326801 in units of one pair (Hoare and Pal, 1971); here pairs count twice.
    /// Steepest descent from the icosahedron must end there.
    #[test]
    fn the_icosahedron_is_the_ground_state() {
        let golden = (1.0 + 5f64.sqrt()) / 2.0;
        let mut positions = vec![[0.0; 3]];
        for (a, b) in [(1.0, golden), (-1.0, golden), (1.0, -golden), (-1.0, -golden)] {
            positions.extend([[0.0, a, b], [a, b, 0.0], [b, 0.0, a]]);
        }
        let length = (1.0 + golden * golden).sqrt();
        positions.iter_mut().flatten().for_each(|x| *x *= 0.96 / length);
        let target = LennardJones::new(13);
        let mut y = mean_free(&positions);
        for _ in 0..2000 {
            let out = evaluate(&target, y.clone());
            y.iter_mut().zip(out.score.row(0)).for_each(|(y, score)| *y += 2e-4 * (score + *y));
        }
        let squares: f64 = y.iter().map(|y| y * y).sum();
        let pairs = evaluate(&target, y).log_density[0] + 0.5 * squares;
        assert!((pairs - 2.0 * 44.326_801).abs() < 1e-5, "{pairs}");
    }

    #[test]
    fn permutations_and_rotations_change_nothing() {
        let positions = cloud(13, 9);
        let target = LennardJones::new(13);
        let before = evaluate(&target, mean_free(&positions)).log_density[0];
        let mut others = positions.clone();
        others.rotate_left(5);
        others.swap(0, 3);
        let (sin, cos) = 0.7f64.sin_cos();
        let turned: Vec<[f64; 3]> =
            others.iter().map(|[x, y, z]| [cos * x - sin * z, *y + 2.0, sin * x + cos * z]).collect();
        for changed in [others, turned] {
            let after = evaluate(&target, mean_free(&changed)).log_density[0];
            assert!((after / before - 1.0).abs() < 1e-10, "{after} and {before}");
        }
    }

    #[test]
    fn particles_in_one_place_are_finite_and_rejected() {
        let target = LennardJones::new(4);
        let mut close = vec![0.0; 9];
        close[8] = 1.0;
        let far = vec![1e60; 9];
        for x in [close, far] {
            let out = evaluate(&target, x);
            assert!(out.log_density[0] < -1e100 && out.score.row(0).iter().all(|s| s.is_finite()));
        }
    }
}
