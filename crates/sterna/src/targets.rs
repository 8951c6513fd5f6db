//! The built-in targets (App. E.1, classics, two posteriors of several modes, likelihoods on a box, clusters and fields of physics), each with
//! all that is known of it exactly.

pub mod banana;
pub mod boxed;
pub mod correlated_normal;
pub mod dw4;
pub mod eggbox;
pub mod free_field;
pub mod funnel;
pub mod galaxies;
pub mod gmm;
pub mod lennard_jones;
pub mod log_gamma;
pub mod many_well;
pub mod mrna;
pub mod normal;
pub mod phi4;
pub mod rosenbrock;
pub mod shells;
pub mod spike_and_slab;

pub use banana::Banana;
pub use boxed::{Boxed, Likelihood};
pub use correlated_normal::CorrelatedNormal;
pub use dw4::Dw4;
pub use eggbox::Eggbox;
pub use free_field::FreeField;
pub use funnel::Funnel;
pub use galaxies::Galaxies;
pub use gmm::Gmm;
pub use lennard_jones::LennardJones;
pub use log_gamma::LogGamma;
pub use many_well::ManyWell;
pub use mrna::Mrna;
pub use normal::Normal;
pub use phi4::{Phi4, Phi4InModes};
pub use rosenbrock::Rosenbrock;
pub use shells::Shells;
pub use spike_and_slab::SpikeAndSlab;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};
    use crate::{Batch, Evaluation, Target};

    fn all() -> Vec<(&'static str, Box<dyn Target>)> {
        vec![
            ("gmm-2", Box::new(Gmm::paper(2))),
            ("gmm-10", Box::new(Gmm::paper(10))),
            ("gmm-13", Box::new(Gmm::paper(13))),
            ("dw4", Box::new(Dw4)),
            ("many-well-6", Box::new(ManyWell::new(6))),
            ("many-well-32", Box::new(ManyWell::new(32))),
            ("normal", Box::new(Normal::new(vec![0.3; 11], (1..12).map(f64::from).collect()))),
            ("funnel", Box::new(Funnel::new(5))),
            ("banana", Box::new(Banana::new(3))),
            ("lennard-jones-2", Box::new(LennardJones::new(2))),
            ("lennard-jones-4", Box::new(LennardJones::new(4))),
            ("phi4", Box::new(Phi4::new(4, -4.0, 6.975))),
            ("phi4-in-modes", Box::new(Phi4InModes::new(Phi4::new(5, -4.0, 6.975)))),
            ("mrna", Box::new(Mrna)),
            ("galaxies", Box::new(Galaxies)),
            ("shells", Box::new(Boxed::new(Shells::new(5)))),
            ("eggbox", Box::new(Boxed::new(Eggbox))),
            ("log-gamma", Box::new(Boxed::new(LogGamma::new(7)))),
            ("rosenbrock", Box::new(Boxed::new(Rosenbrock::new(6)))),
            ("spike-slab", Box::new(Boxed::new(SpikeAndSlab::new(3)))),
            ("correlated-normal", Box::new(Boxed::new(CorrelatedNormal::new(9)))),
        ]
    }

    fn points(target: &dyn Target, rows: usize, scale: f64) -> Batch {
        let keys: Vec<u32> = (0..rows as u32).collect();
        let mut x = Batch::zeros(rows, target.dim());
        Streams::new(5).normals(Phase::Check, 0, &keys, &mut x);
        x.as_mut_slice().iter_mut().for_each(|x| *x *= scale);
        x
    }

    fn evaluate(target: &dyn Target, x: &Batch) -> Evaluation {
        let mut out = Evaluation::zeros(x.rows(), x.dim());
        target.evaluate(x, &mut out).unwrap();
        out
    }

    #[test]
    fn scores_are_gradients() {
        for (name, target) in all() {
            for scale in [0.3, 1.0] {
                let x = points(&*target, 5, scale);
                let out = evaluate(&*target, &x);
                for j in 0..x.dim() {
                    let h = 1e-6;
                    let shifted = |sign: f64| {
                        let mut x = x.clone();
                        (0..5).for_each(|i| x.row_mut(i)[j] += sign * h);
                        evaluate(&*target, &x).log_density
                    };
                    let (up, down) = (shifted(1.0), shifted(-1.0));
                    for i in 0..5 {
                        let difference = (up[i] - down[i]) / (2.0 * h);
                        // Rounding of the two values, and the third derivative, bound the error.
                        let rounding = 4.0 * f64::EPSILON * up[i].abs().max(1.0) / h;
                        let allowed = rounding + 1e-5 * difference.abs().max(1.0);
                        assert!(
                            (out.score.row(i)[j] - difference).abs() < allowed,
                            "{name}, coordinate {j}: {} and {difference}",
                            out.score.row(i)[j]
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_its_batch() {
        for (name, target) in all() {
            let x = points(&*target, 29, 0.7);
            let together = evaluate(&*target, &x);
            for i in 0..x.rows() {
                let alone = evaluate(&*target, &Batch::from_vec(x.dim(), x.row(i).to_vec()));
                assert_eq!(alone.log_density[0].to_bits(), together.log_density[i].to_bits(), "{name}");
                assert_eq!(alone.score.row(0), together.score.row(i), "{name}");
            }
        }
    }

    /// Σⱼ of E[∂ⱼ log π] = 0 and E[xⱼ ∂ⱼ log π] = −1 under exact draws (Stein's identities), tested at
    /// 5 standard errors: false alarm below 10⁻⁵ over all targets.
    #[test]
    fn exact_draws_satisfy_steins_identities() {
        let streams = Streams::new(11);
        for (name, target) in all() {
            let rows = 20_000;
            let mut x = Batch::zeros(rows, target.dim());
            if !(0..rows).all(|i| target.draw(&mut streams.row(Phase::Exact, 0, i as u32), x.row_mut(i))) {
                let with = ["gmm", "many-well", "normal", "funnel", "banana"];
                assert!(!with.iter().any(|kind| name.starts_with(kind)), "{name} has no exact sampler");
                continue;
            }
            let out = evaluate(&*target, &x);
            for j in 0..x.dim() {
                for (moment, expected) in [(0, 0.0), (1, -1.0)] {
                    let values = (0..rows).map(|i| out.score.row(i)[j] * x.row(i)[j].powi(moment));
                    let (mut sum, mut squares) = (0.0, 0.0);
                    values.for_each(|v| {
                        sum += v;
                        squares += v * v;
                    });
                    let n = rows as f64;
                    let mean = sum / n;
                    let error = ((squares / n - mean * mean) / n).sqrt();
                    assert!(
                        (mean - expected).abs() < 5.0 * error,
                        "{name}, coordinate {j}: {mean} ± {error}"
                    );
                }
            }
        }
    }

    #[test]
    fn gmm_agrees_with_its_definition() {
        let gmm = Gmm::paper(3);
        let x = points(&gmm, 9, 0.5);
        let out = evaluate(&gmm, &x);
        for i in 0..9 {
            let x = x.row(i);
            let terms: Vec<f64> = gmm::MEANS
                .iter()
                .map(|m| {
                    -0.5 * 1600.0
                        * ((x[0] - m[0] / 40.0).powi(2) + (x[1] - m[1] / 40.0).powi(2) + x[2] * x[2])
                })
                .collect();
            let top = terms.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = terms.iter().map(|t| (t - top).exp()).sum();
            let expected = top + (sum / 40.0).ln() + 1.5 * (1600.0 / std::f64::consts::TAU).ln();
            assert!((out.log_density[i] - expected).abs() < 1e-12 * expected.abs().max(1.0));
        }
    }

    #[test]
    fn dw4_ignores_rotations_and_permutations() {
        let p = Dw4::particles(&[1.0, -2.0, 0.5, 3.0, -1.0, 0.25]);
        let turn =
            |a: f64, q: [[f64; 2]; 4]| q.map(|[x, y]| [a.cos() * x - a.sin() * y, a.sin() * x + a.cos() * y]);
        let back = |q: [[f64; 2]; 4]| -> Vec<f64> {
            (0..6).map(|j| (0..4).map(|i| dw4::BASIS[j / 2][i] * q[i][j % 2]).sum()).collect()
        };
        let x = [back(p), back(turn(0.7, p)), back([p[2], p[0], p[3], p[1]])].concat();
        let out = evaluate(&Dw4, &Batch::from_vec(6, x));
        assert!((out.log_density[0] - out.log_density[1]).abs() < 1e-10);
        assert!((out.log_density[0] - out.log_density[2]).abs() < 1e-10);
    }
}
