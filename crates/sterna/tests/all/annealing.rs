//! Annealed importance sampling and sequential Monte Carlo: the mean weight is an unbiased estimate of Z, whatever schedule and moves
//! (`sterna::annealing`). Each verdict has a false-alarm level of 10⁻⁵ over all its checks; moves that do not keep their chains are caught.

use std::sync::Arc;
use sterna::accelerators::Identity;
use sterna::annealing::{Annealed, Annealing, ancestors};
use sterna::call::{Call, Scratch};
use sterna::explorer::{Explorer, Moved};
use sterna::explorers::{Hmc, StepSizes};
use sterna::path::Points;
use sterna::paths::Geometric;
use sterna::streams::Streams;
use sterna::targets::{Gmm, Normal};
use sterna::{Batch, Result, Sampler, Schedule};
use sterna_testkit::p_values::{mean_and_error, z_test};
use sterna_testkit::{FALSE_ALARM, Verdict, seed};

/// Steps that nothing rejects.
#[derive(Debug)]
struct NeverRejects(f64);

impl Explorer for NeverRejects {
    fn explore(&self, call: &Call, points: &mut Points, _: &mut Moved, _: &mut Scratch) -> Result<()> {
        let mut steps = Batch::zeros(points.rows(), points.x.dim());
        call.normals(call.slots.take(), &mut steps);
        for (x, step) in points.x.as_mut_slice().iter_mut().zip(steps.as_slice()) {
            *x += self.0 * step;
        }
        call.path.evaluate(&call.rows.beta, points)
    }
}

fn sampler(path: Geometric, chains: usize, explorer: Arc<dyn Explorer>, number: u64) -> Sampler {
    let schedule = Schedule::uniform(chains);
    Sampler {
        path: Arc::new(path),
        schedule,
        explorer,
        accelerator: Arc::new(Identity),
        streams: Streams::new(seed(number)),
    }
}

fn hmc(chains: usize, dim: usize, size: f64) -> Arc<dyn Explorer> {
    Arc::new(Hmc::with_sizes(1, 3, StepSizes::fixed(chains, dim, size), 0.0))
}

/// Whether Z and the target's second moment come out right: the moment times Z is as unbiased as Z itself.
fn verdict(found: &Annealed, log_z: f64, second_moment: f64) -> Verdict {
    let mut verdict = Verdict::new(FALSE_ALARM);
    let weights: Vec<f64> = found.log_weights.iter().map(|w| (w - log_z).exp()).collect();
    let squares = found.points.x.iter_rows().map(|x| x.iter().map(|x| x * x).sum::<f64>());
    let moments: Vec<f64> = weights.iter().zip(squares).map(|(weight, square)| weight * square).collect();
    for (name, values, expected) in [("Z", weights, 1.0), ("second moment", moments, second_moment)] {
        // Points of one population depend on each other; populations do not.
        let of_populations: Vec<f64> = values.chunks(PARTICLES).map(|all| mean_and_error(all).0).collect();
        let (mean, error) = mean_and_error(&of_populations);
        verdict.add(name, z_test(mean - expected, error, expected));
    }
    verdict
}

const PARTICLES: usize = 8;

#[test]
fn the_mean_weight_is_unbiased() {
    let target = Normal::new(vec![0.5, -0.3], vec![6.0, 2.0]);
    let (log_z, second_moment) = (-0.5 * 12f64.ln(), 0.34 + 1.0 / 6.0 + 0.5);
    for (number, annealing) in
        [Annealing::importance(4000, PARTICLES), Annealing::sequential(4000, PARTICLES)]
            .into_iter()
            .enumerate()
    {
        let path = || Geometric::from_standard_normal(target.clone());
        let sound = annealing.climb(&sampler(path(), 5, hmc(5, 2, 0.5), 31 + number as u64)).unwrap();
        verdict(&sound, log_z, second_moment).assert_passed();
        assert_eq!(sound.resampled > 1000, number == 1, "{} times", sound.resampled);
        let twin =
            annealing.climb(&sampler(path(), 5, Arc::new(NeverRejects(0.4)), 41 + number as u64)).unwrap();
        verdict(&twin, log_z, second_moment).assert_caught();
    }
}

/// A mixture that hardly mixes: Z is unbiased all the same, with few chains and bad moves.
#[test]
fn modes_keep_their_weights() {
    let path = Geometric::from_standard_normal(Gmm::new(2, vec![[1.5, 0.0], [-1.5, 0.0]], 0.4));
    let second_moment = 2.25 + 2.0 * 0.16;
    let found = Annealing { moves: 2, ..Annealing::sequential(4000, PARTICLES) }.climb(&sampler(
        path,
        6,
        hmc(6, 2, 0.3),
        51,
    ));
    verdict(&found.unwrap(), 0.0, second_moment).assert_passed();
}

#[test]
fn places_follow_weights_in_the_mean() {
    let weights = [0.3, 0.0, 1.7, 0.9, 1e-12, 2.1];
    let all: f64 = weights.iter().sum();
    let grid = 10_000;
    let mut counts = [0.0; 6];
    for i in 0..grid {
        for from in ancestors(&weights, (f64::from(i) + 0.5) / f64::from(grid)) {
            counts[from] += 1.0 / f64::from(grid);
        }
    }
    for (count, weight) in counts.iter().zip(weights) {
        assert!((count - 6.0 * weight / all).abs() < 2e-3, "{counts:?}");
    }
    assert_eq!(ancestors(&[0.0, 0.0, 1.0], 0.999_999), [2, 2, 2]);
    // The last place is never given to a point without a weight, whatever rounding does.
    assert!(!ancestors(&[0.1, 0.2, 0.3, 0.0], 1.0 - 1e-16).contains(&3));
}

#[test]
fn impossible_numbers_are_named() {
    let sampler = sampler(Geometric::from_standard_normal(Normal::isotropic(1, 4.0)), 3, hmc(3, 1, 0.4), 1);
    let refused = |annealing: Annealing| annealing.climb(&sampler).unwrap_err().to_string();
    let usual = Annealing::sequential(4, 10);
    for (annealing, name) in [
        (Annealing { populations: 1, ..usual }, "Annealing.populations = 1"),
        (Annealing { particles: 0, ..usual }, "Annealing.particles = 0"),
        (Annealing { moves: 0, ..usual }, "Annealing.moves = 0"),
        (Annealing { resample_below: 1.5, ..usual }, "Annealing.resample_below = 1.5"),
    ] {
        assert!(refused(annealing).contains(name));
    }
    assert!(sampler.path.draws_reference());
}
