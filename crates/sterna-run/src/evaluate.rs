//! `sterna evaluate`: log density and score of a target at given points.

use crate::error::JobError;
use crate::problem::Problem;
use sterna::targets::dw4::BASIS;
use sterna::{Batch, Evaluation};
use sterna_neural::Particles;

/// Log density and score at each point.
///
/// DW-4 lives on six mean-free coordinates; points of eight are taken as the planar positions of the
/// four particles, and the score is then one over those.
pub fn evaluate(problem: &Problem, points: &Batch) -> Result<Evaluation, JobError> {
    if let Some(molecule) = &problem.molecule {
        return crate::molecules::evaluate(molecule, points);
    }
    let target = &problem.target;
    let as_particles = problem.particles == Some(Particles::DW4) && points.dim() == 8;
    let x = if as_particles { to_mean_free(points) } else { points.clone() };
    if x.dim() != target.dim() {
        return Err(
            sterna::Error::Dimension { what: "a point", found: x.dim(), expected: target.dim() }.into()
        );
    }
    let mut out = Evaluation::zeros(x.rows(), x.dim());
    target.evaluate(&x, &mut out)?;
    if as_particles {
        out.score = to_particles(&out.score);
    }
    Ok(out)
}

/// y = B x: centre of mass removed.
fn to_mean_free(x: &Batch) -> Batch {
    let row = |x: &[f64]| -> Vec<f64> {
        (0..6).map(|j| (0..4).map(|i| BASIS[j / 2][i] * x[2 * i + j % 2]).sum()).collect()
    };
    Batch::from_vec(6, x.iter_rows().flat_map(row).collect())
}

/// x = Bᵀ y.
fn to_particles(y: &Batch) -> Batch {
    let row = |y: &[f64]| -> Vec<f64> {
        (0..8).map(|j| (0..3).map(|k| BASIS[k][j / 2] * y[2 * k + j % 2]).sum()).collect()
    };
    Batch::from_vec(8, y.iter_rows().flat_map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn particles_and_mean_free_points_agree() {
        let problem = crate::targets::TargetKind::from(crate::targets::Dw4::default()).problem().unwrap();
        let x = Batch::from_vec(8, vec![0.3, 1.0, -2.0, 0.5, 4.0, 1.0, 0.0, -3.0]);
        let particles = evaluate(&problem, &x).unwrap();
        let free = evaluate(&problem, &to_mean_free(&x)).unwrap();
        assert!((particles.log_density[0] - free.log_density[0]).abs() < 1e-12);
        // The gradient over particles, by differences of the particles themselves.
        for j in 0..8 {
            let at = |h: f64| {
                let mut x = x.clone();
                x.row_mut(0)[j] += h;
                evaluate(&problem, &x).unwrap().log_density[0]
            };
            let difference = (at(1e-6) - at(-1e-6)) / 2e-6;
            assert!((particles.score.row(0)[j] - difference).abs() < 1e-6 * difference.abs().max(1.0));
        }
        assert!(evaluate(&problem, &Batch::zeros(1, 7)).is_err());
    }
}
