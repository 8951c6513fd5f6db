//! Climbs, curvatures and optima of densities of every kind.

use super::super::climb::{End, Way, climb, places};
use super::super::numbers::{dot, ln, near};
use super::super::{laplace, sound};
use super::*;
use crate::targets::{Banana, Funnel, Normal};

/// A density by its formula, which also writes the score.
struct Formula<F>(usize, F);

impl<F: Fn(&[f64], &mut [f64]) -> f64 + Send + Sync> Target for Formula<F> {
    fn dim(&self) -> usize {
        self.0
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        for i in 0..x.rows() {
            out.log_density[i] = (self.1)(x.row(i), out.score.row_mut(i));
        }
        Ok(())
    }
}

/// Unit normals of equal weight.
fn normals_at(centres: Vec<Vec<f64>>) -> impl Target {
    let components = centres.into_iter().map(|mean| Component {
        weight: 1.0,
        shape: Shape::Diagonal(vec![1.0; mean.len()]),
        mean,
    });
    let mixture = Mixture::new(components.collect()).unwrap();
    Formula(mixture.dim(), move |x: &[f64], score: &mut [f64]| mixture.evaluate(x, score, &mut Vec::new()))
}

/// Climbs from a standard normal.
fn found(target: &dyn Target, seed: u64) -> Found {
    let dim = target.dim();
    let anchor = Starts { mean: &vec![0.0; dim], deviation: &vec![1.0; dim] };
    let streams = Streams::new(seed);
    let floor = sound(target, anchor, &streams).unwrap();
    find_optima(target, anchor, &streams, Covariance::for_dim(dim), floor).unwrap()
}

#[test]
fn normals_of_any_place_and_scale_are_found_as_they_are() {
    let wide = |d: usize| (0..d).map(|j| 10f64.powf(6.0 * j as f64 / (d - 1) as f64)).collect::<Vec<f64>>();
    let cases = [
        (Normal::isotropic(5, 1e-6), 40),
        (Normal::new(vec![1e4; 5], vec![1e6; 5]), 60),
        (Normal::new(vec![-3.0], vec![4.0]), 30),
        (Normal::new(vec![0.5; 200], wide(200)), 1500),
        (Normal::new(vec![0.5; 600], wide(600)), 1000),
    ];
    for (normal, most) in cases {
        let found = found(&normal, 1);
        let mixture = found.mixture().unwrap();
        let fit = &mixture.components()[0];
        assert_eq!((found.optima.len(), found.climbs), (1, 8));
        let deviations = fit.shape.deviations();
        for (j, deviation) in deviations.iter().enumerate() {
            let width = 1.0 / normal.precision()[j].sqrt();
            assert!((fit.mean[j] - normal.mean()[j]).abs() < 0.2 * width, "{j}: {}", fit.mean[j]);
            assert!((deviation / width - 1.1).abs() < 1e-3, "{j}: {deviation}");
        }
        assert!((found.optima[0].log_evidence - normal.log_z().unwrap()).abs() < 0.5);
        assert!(found.evaluations < most, "{}", found.evaluations);
    }
}

#[test]
fn a_rotated_normal_keeps_its_correlations() {
    // Precisions 1 to 10⁶ along the axes of a reflection.
    let dim = 40;
    let reflected = |x: &[f64]| {
        let along: f64 = x.iter().sum::<f64>() * 2.0 / dim as f64;
        x.iter().map(|x| x - along).collect::<Vec<f64>>()
    };
    let precision: Vec<f64> = (0..dim).map(|j| 10f64.powf(6.0 * j as f64 / 39.0)).collect();
    let target = Formula(dim, |x: &[f64], score: &mut [f64]| {
        let y = reflected(x);
        let pull: Vec<f64> = y.iter().zip(&precision).map(|(y, p)| -y * p).collect();
        score.copy_from_slice(&reflected(&pull));
        0.5 * dot(&y, &pull)
    });
    let found = found(&target, 1);
    let wanted =
        0.5 * (dim as f64 * std::f64::consts::TAU.ln() - precision.iter().map(|p| p.ln()).sum::<f64>());
    assert!(
        (found.optima[0].log_evidence - wanted).abs() < 0.5,
        "{:?} {wanted}",
        found.optima[0].log_evidence
    );
    assert!(found.evaluations < 1000, "{}", found.evaluations);
    // A fit that keeps no correlations finds the same optimum.
    let anchor = Starts { mean: &vec![0.0; dim], deviation: &vec![1.0; dim] };
    for kind in [Covariance::Diagonal, Covariance::LowRank] {
        let other = find_optima(&target, anchor, &Streams::new(1), kind, f64::NEG_INFINITY).unwrap();
        assert!((other.optima[0].log_evidence - wanted).abs() < 0.5);
        assert_eq!(other.optima[0].shape, kind.kind_of(&other.optima[0].shape));
    }
}

#[test]
fn modes_far_from_each_other_are_all_found() {
    for seed in 0..10 {
        let found = found(&normals_at(vec![vec![0.0; 5], vec![10.0; 5]]), seed);
        let mixture = found.mixture().unwrap();
        assert_eq!(mixture.components().len(), 2, "seed {seed}");
        assert!((mixture.components()[0].weight - 0.5).abs() < 0.01);
    }
    let corner = |i: usize| (0..3).map(|j| if i >> j & 1 == 1 { 20.0 } else { -20.0 }).collect();
    for seed in 0..5 {
        let found = found(&normals_at((0..8).map(corner).collect()), seed);
        assert_eq!(found.mixture().unwrap().components().len(), 8, "seed {seed}");
        assert!(found.climbs <= 64 && found.evaluations < 1000);
    }
}

#[test]
fn a_ridge_is_few_components_and_a_low_mode_is_kept_in_the_list() {
    let mixture = found(&Banana::new(2), 1).mixture().unwrap();
    assert!(mixture.components().len() <= 4);
    // A second mode, 30 nats below.
    let target = Formula(1, |x: &[f64], score: &mut [f64]| {
        let (near, far) = (-0.5 * x[0] * x[0], -30.0 - 0.5 * (x[0] - 40.0).powi(2));
        score[0] = if near > far { -x[0] } else { 40.0 - x[0] };
        near.max(far)
    });
    let both = (0..10).map(|seed| found(&target, seed)).find(|f| f.optima.len() == 2).unwrap();
    assert_eq!(both.mixture().unwrap().components().len(), 1);
    assert_eq!(both.that_matter().count(), 1);
    assert!((both.optima[1].log_density + 30.0).abs() < 0.01 && near(&both.optima[1].mean, &[40.0], 0.01));
}

#[test]
fn where_no_optimum_matters_there_is_no_mixture() {
    let flat = Formula(3, |_: &[f64], score: &mut [f64]| {
        score.fill(0.0);
        1.5
    });
    let nowhere = Formula(3, |_: &[f64], score: &mut [f64]| {
        score.fill(f64::NAN);
        f64::NAN
    });
    let rising = Formula(3, |x: &[f64], score: &mut [f64]| {
        score.fill(1.0);
        x.iter().sum()
    });
    // Infinite at zero, as a centred hierarchy is.
    let spike = Formula(3, |x: &[f64], score: &mut [f64]| {
        let square = dot(x, x);
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -2.0 * x / square - x);
        -ln(square) - 0.5 * square
    });
    let targets: [&dyn Target; 5] = [&flat, &nowhere, &rising, &spike, &Funnel::new(10)];
    for (i, target) in targets.into_iter().enumerate() {
        let found = found(target, 1);
        assert!(found.mixture().is_none() && found.that_matter().count() == 0, "{i}: {:?}", found.optima);
        assert!(found.evaluations < 3000, "{i}: {}", found.evaluations);
    }
}

#[test]
fn densities_with_edges_heavy_tails_and_steep_walls_are_climbed() {
    // Gamma with shape 3, only where x > 0: optimum at 2, variance there 2.
    let gamma = |dim| {
        Formula(dim, |x: &[f64], score: &mut [f64]| {
            if x.iter().any(|x| *x <= 0.0) {
                return f64::NEG_INFINITY;
            }
            score.iter_mut().zip(x).for_each(|(s, x)| *s = 2.0 / x - 1.0);
            x.iter().map(|x| 2.0 * ln(*x) - x).sum()
        })
    };
    for dim in [1, 4] {
        let found = found(&gamma(dim), 1);
        assert!(near(&found.optima[0].mean, &vec![2.0; dim], 0.05), "{:?}", found.optima);
        assert!(near(&found.optima[0].shape.deviations(), &vec![2f64.sqrt(); dim], 0.1));
    }
    let cauchy = Formula(2, |x: &[f64], score: &mut [f64]| {
        let from = |x: f64| x - 300.0;
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -2.0 * from(*x) / (1.0 + from(*x).powi(2)));
        -x.iter().map(|x| ln(1.0 + from(*x).powi(2))).sum::<f64>()
    });
    assert!(near(&found(&cauchy, 1).optima[0].mean, &[300.0; 2], 0.01));
    let steep = Formula(2, |x: &[f64], score: &mut [f64]| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -20.0 * (20.0 * x).sinh());
        -x.iter().map(|x| (20.0 * x).cosh()).sum::<f64>()
    });
    assert!(near(&found(&steep, 1).optima[0].mean, &[0.0; 2], 0.01));
}

#[test]
fn the_same_seed_finds_the_same_and_bad_anchors_are_refused() {
    let target = normals_at(vec![vec![0.0; 3], vec![8.0; 3]]);
    assert_eq!(found(&target, 3), found(&target, 3));
    let read: Found = serde_json::from_str(&serde_json::to_string(&found(&target, 3)).unwrap()).unwrap();
    assert_eq!(read, found(&target, 3));
    let bad = [
        Starts { mean: &[0.0; 2], deviation: &[1.0; 3] },
        Starts { mean: &[0.0; 3], deviation: &[1.0, 0.0, 1.0] },
        Starts { mean: &[f64::NAN, 0.0, 0.0], deviation: &[1.0; 3] },
    ];
    for anchor in bad {
        assert!(find_optima(&target, anchor, &Streams::new(1), Covariance::Dense, 0.0).is_err());
    }
}

#[test]
fn an_optimum_that_a_mixture_leaves_out_joins_it() {
    let target = normals_at(vec![vec![0.0; 2], vec![30.0; 2]]);
    let mixture = Mixture::normal(vec![0.0; 2], Shape::Diagonal(vec![1.0; 2])).unwrap();
    let anchor = Starts { mean: &[0.0; 2], deviation: &[1.0; 2] };
    let further = Further { points: vec![vec![28.0, 31.0]], ..Further::default() };
    let how = (Covariance::Dense, &mixture.pooled_shape());
    let found = Found::default().and_further(&target, anchor, &Streams::new(1), how, further).unwrap();
    let optimum = &found.optima[0];
    assert!(near(&optimum.mean, &[30.0; 2], 1e-3) && found.evaluations < 30 && found.climbs == 1);
    let joined = mixture.with_optimum(optimum, 0.5).unwrap();
    assert_eq!(joined.components().len(), 2);
    assert!(joined.components()[1].weight > 0.05);
    let mut full = joined;
    for _ in 0..50 {
        full = full.with_optimum(optimum, 0.5).unwrap();
    }
    assert_eq!(full.components().len(), Mixture::MOST);
}

#[test]
fn climbs_say_how_they_ended() {
    let target = Formula(1, |x: &[f64], score: &mut [f64]| {
        score[0] = 1.0;
        x[0]
    });
    let frame = Shape::Diagonal(vec![1.0]);
    let way = Way { frame: &frame, first: 1.0, most: 30 };
    let starts = places(&target, vec![vec![0.0], vec![f64::NAN]]).unwrap();
    let climbs = climb(&target, starts, way).unwrap();
    assert_eq!((climbs[0].end, climbs[1].end), (End::Endless, End::Nowhere));
    assert!(climbs[0].evaluations <= 45 && climbs[1].evaluations == 0);
    // All in one batch or each alone: the same bits.
    let target = normals_at(vec![vec![1.0; 2], vec![9.0; 2]]);
    let points = vec![vec![0.0, 3.0], vec![20.0, -7.0], vec![5.1, 5.0]];
    let frame = Shape::Diagonal(vec![1.0; 2]);
    let way = Way { frame: &frame, first: 1.0, most: 100 };
    let together = climb(&target, places(&target, points.clone()).unwrap(), way).unwrap();
    for (point, climbed) in points.into_iter().zip(together) {
        let alone = climb(&target, places(&target, vec![point]).unwrap(), way).unwrap();
        assert_eq!(alone[0].place, climbed.place);
    }
}

#[test]
fn a_curvature_that_is_no_optimums_still_gives_a_shape() {
    // A saddle, and a direction without curvature.
    let target = Formula(3, |x: &[f64], score: &mut [f64]| {
        score.copy_from_slice(&[-100.0 * x[0], x[1], 0.0]);
        -50.0 * x[0] * x[0] + 0.5 * x[1] * x[1]
    });
    let at = places(&target, vec![vec![0.1, 0.1, 0.0]]).unwrap().remove(0);
    let frame = Shape::Diagonal(vec![1.0; 3]);
    let normal = laplace(&target, &at, &frame, Covariance::Dense).unwrap();
    assert!(!normal.proper && normal.shape.check().is_ok());
    assert!((normal.shape.deviations()[0] - 0.1).abs() < 1e-6);
    let bowl = Normal::new(vec![0.0; 3], vec![1.0, 4.0, 9.0]);
    let at = places(&bowl, vec![vec![1.0, 0.0, 0.0]]).unwrap().remove(0);
    let normal = laplace(&bowl, &at, &frame, Covariance::Diagonal).unwrap();
    assert!(normal.proper && normal.evaluations == 3 && (normal.gain - 0.5).abs() < 1e-9);
    assert!(near(&normal.mean, &[0.0; 3], 1e-9));
    assert!(near(&normal.shape.deviations(), &[1.0, 0.5, 1.0 / 3.0], 1e-9));
}

/// Most of the space is a plateau, from which climbs lead nowhere, and the two modes are mirror images of each other.
#[test]
fn mirror_images_above_a_plateau_are_both_found() {
    for seed in 1..=10 {
        let mixture = found(&crate::targets::Mrna, seed).mixture().unwrap();
        for order in [f64::lt, f64::gt] {
            assert!(mixture.components().iter().any(|c| order(&c.mean[2], &c.mean[3])), "seed {seed}");
        }
    }
}

/// Along a ring every climb comes to a place of its own; forty modes in the plane are all found.
#[test]
fn optima_without_end_are_told_from_many() {
    let ring = found(&crate::targets::Dw4, 1);
    assert!(ring.has_no_end() && ring.as_one().unwrap().components().len() == 1);
    let many = found(&crate::targets::Gmm::paper(10), 1);
    // Some of the forty have no dip between them.
    assert!(!many.has_no_end() && many.that_matter().count() >= 36, "{}", many.that_matter().count());
    assert!(!found(&normals_at(vec![vec![0.0; 2]]), 1).has_no_end());
}
