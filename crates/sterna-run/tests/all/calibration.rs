//! Simulation-based calibration in short: the long one is the example of this name, whose page is `docs/trust/calibration.md`.

#[path = "../../examples/calibration/models.rs"]
mod models;
#[path = "../../examples/calibration/simulations.rs"]
mod simulations;

use models::Model;
use simulations::{Calibration, Method};

const SEED: u64 = 5;

/// 25 p-values, none below 10⁻⁴: the false alarm of all together is 2.5·10⁻³, and the seed is fixed.
#[test]
fn ranks_are_even_for_every_transport() {
    for method in Method::SOUND {
        let found = Calibration::of(Model::Fold, method, SEED, 40).unwrap();
        assert!(found.worst() > 1e-4, "{} on {}: {found:?}", method.name(), Model::Fold.name());
    }
}

/// One spoils draws, which their ranks tell; the other log Z alone.
#[test]
fn broken_twins_are_noticed() {
    let [upside_down, constant] = Method::TWINS;
    let found = Calibration::of(Model::Fold, upside_down, SEED, 100).unwrap();
    assert!(found.p_ranks.iter().any(|p| *p < 1e-6), "{}: {:?}", upside_down.name(), found.histograms);
    for model in Model::ALL {
        let found = Calibration::of(model, constant, SEED, 20).unwrap();
        assert!(
            found.worst() < 1e-6 && found.log_z.0 > 2.0,
            "{} on {}: {found:?}",
            constant.name(),
            model.name()
        );
        assert!(found.p_ranks.iter().all(|p| *p > 1e-4) && found.means.0.abs() < 1.0, "{found:?}");
    }
}

/// The trapezoid rule against the closed form of the line.
#[test]
fn evidence_and_means_are_exact() {
    let mut stream = sterna::Streams::new(SEED).row(sterna::streams::Phase::Check, 0, 0);
    let (_, line) = Model::Line.simulate(&mut stream);
    let (log_z, means) = line.exact();
    // log Z = log p(y, m) + log 2π − ½ log |A| at the mean m of a normal of precision A.
    let slope = line.log_likelihood(&means).1;
    assert!((slope[0] - means[0]).abs() < 1e-9 && (slope[1] - means[1]).abs() < 1e-9, "the mean is the mode");
    let curvature = |a: usize, b: usize| {
        let mut near = means;
        near[b] += 1.0;
        slope[a] - line.log_likelihood(&near).1[a] + f64::from(u8::from(a == b))
    };
    let log_determinant = (curvature(0, 0) * curvature(1, 1) - curvature(0, 1) * curvature(1, 0)).ln();
    let at_mode = line.log_likelihood(&means).0 - 0.5 * (means[0] * means[0] + means[1] * means[1]);
    assert!((log_z - (at_mode - 0.5 * log_determinant)).abs() < 1e-9);
}
