//! Refits to draws of known laws.

use super::super::numbers::near;
use super::*;
use crate::Streams;
use crate::streams::Phase;

fn normals(rows: u32, dim: usize, seed: u64) -> Batch {
    let mut draws = Batch::zeros(rows as usize, dim);
    Streams::new(seed).normals(Phase::Check, 0, &(0..rows).collect::<Vec<_>>(), &mut draws);
    draws
}

fn draws_of(mixture: &Mixture, rows: u32, seed: u64) -> Batch {
    let mut draws = normals(rows, mixture.dim(), seed);
    for i in 0..rows {
        let uniform = Streams::new(seed + 1).row(Phase::Check, 0, i).uniform();
        mixture.draw(uniform, draws.row_mut(i as usize));
    }
    draws
}

/// Largest distance of F⁻¹ C F⁻ᵀ from the identity, for the covariance C of one shape and F of another.
fn distance(wanted: &Shape, found: &Shape) -> f64 {
    let dim = wanted.dim();
    let mut worst: f64 = 0.0;
    for j in 0..dim {
        let mut column = vec![0.0; dim];
        column[j] = 1.0;
        wanted.solve_transposed(&mut column);
        found.apply_transposed(&mut column);
        found.apply(&mut column);
        wanted.solve(&mut column);
        column[j] -= 1.0;
        worst = column.iter().fold(worst, |a, b| a.max(b.abs()));
    }
    worst
}

#[test]
fn a_fit_comes_to_a_correlated_normal_of_any_scale_from_a_poor_start() {
    // Scales 10⁻³ to 10⁴, all correlations 0.999.
    let dim = 8;
    let scales: Vec<f64> = (0..dim).map(|j| 10f64.powi(j as i32 - 3)).collect();
    let entry = |k: usize| {
        let correlation = if k / dim == k % dim { 1.0 } else { 0.999 };
        correlation * scales[k / dim] * scales[k % dim]
    };
    let covariance: Vec<f64> = (0..dim * dim).map(entry).collect();
    let truth = Mixture::normal(
        (0..dim).map(|j| 100.0 * scales[j]).collect(),
        Shape::of_covariance(&covariance, dim).unwrap(),
    )
    .unwrap();
    let mut fitted = Mixture::normal(vec![0.0; dim], Shape::Diagonal(vec![1.0; dim])).unwrap();
    for round in 0..4 {
        let draws = draws_of(&truth, 200 << (2 * round), 3 + 2 * round);
        fitted = fitted.refit(&draws, draws.rows() as f64, Covariance::Dense);
    }
    // 12,800 draws: entries are known to 1.5 hundredths; the widening adds a tenth.
    let shape = fitted.components()[0].shape.clone().widened(1.0 / WIDER);
    let off = distance(&truth.components()[0].shape, &shape);
    assert!(off < 0.08, "{off}");
}

#[test]
fn weights_of_a_mixture_follow_its_draws_and_a_lost_mode_keeps_its_component() {
    let component = |weight, at: f64, width: f64| Component {
        weight,
        mean: vec![at; 2],
        shape: Shape::of_covariance(&[width, 0.3 * width, 0.3 * width, width], 2).unwrap(),
    };
    let truth = Mixture::new(vec![component(0.8, 0.0, 1.0), component(0.2, 10.0, 4.0)]).unwrap();
    let present = Mixture::new(vec![component(0.5, 1.0, 2.0), component(0.5, 9.0, 2.0)]).unwrap();
    let fitted = present.refit(&draws_of(&truth, 4000, 1), 4000.0, Covariance::Dense);
    // Standard error of a weight: 0.0063.
    assert!((fitted.components()[0].weight - 0.8).abs() < 5.0 * 0.0063);
    assert!(near(&fitted.components()[1].mean, &[10.0; 2], 0.05));
    let one_mode = Mixture::new(vec![component(1.0, 0.0, 1.0)]).unwrap();
    let mut lost = present.clone();
    for seed in 0..6 {
        lost = lost.refit(&draws_of(&one_mode, 500, 2 * seed), 500.0, Covariance::Dense);
    }
    let other = &lost.components()[1];
    assert!(other.weight > 0.003 && other.weight < 0.02, "{}", other.weight);
    assert_eq!(other.shape, present.components()[1].shape);
}

#[test]
fn components_that_have_the_same_draws_become_one() {
    let component = |at: f64| Component { weight: 1.0, mean: vec![at], shape: Shape::Diagonal(vec![1.0]) };
    let present = Mixture::new(vec![component(0.0), component(0.1), component(20.0)]).unwrap();
    let draws = draws_of(&Mixture::new(vec![component(0.05), component(20.0)]).unwrap(), 1000, 1);
    let fitted = present.refit(&draws, 1000.0, Covariance::Diagonal);
    assert_eq!(fitted.components().len(), 2);
    assert!((fitted.components()[1].weight - 0.5).abs() < 5.0 * 0.016);
}

#[test]
fn few_draws_move_a_fit_little_and_heavy_tails_widen_it() {
    let present = Mixture::normal(vec![0.0; 50], Shape::Diagonal(vec![1.0; 50])).unwrap();
    let fitted = present.refit(&normals(10, 50, 1), 10.0, Covariance::Dense);
    let off = distance(&present.components()[0].shape, &fitted.components()[0].shape);
    assert!(off < 0.7, "{off}");
    // Draws of a normal whose scale is itself random.
    let mut heavy = normals(2000, 3, 4);
    for i in 0..2000 {
        let by = if i % 10 == 0 { 4.0 } else { 1.0 };
        heavy.row_mut(i).iter_mut().for_each(|x| *x *= by);
    }
    let present = Mixture::normal(vec![0.0; 3], Shape::Diagonal(vec![1.0; 3])).unwrap();
    let wide = present.refit(&heavy, 2000.0, Covariance::Dense).components()[0].shape.deviations()[0];
    assert!(wide > 1.25 * (0.9f64 + 1.6).sqrt(), "{wide}");
}

#[test]
fn a_low_rank_fit_finds_the_wide_directions() {
    // One direction of deviation 10 among 300 dimensions of different scales, 200 draws.
    let dim = 300;
    let direction = vec![1.0 / (dim as f64).sqrt(); dim];
    let truth = Shape::LowRank {
        deviations: (0..dim).map(|j| 10f64.powi(j as i32 % 5 - 2)).collect(),
        directions: direction,
        stretches: vec![20.0],
    };
    let truth = Mixture::normal(vec![3.0; dim], truth).unwrap();
    let mut fitted = Mixture::normal(vec![0.0; dim], Shape::Diagonal(vec![1.0; dim])).unwrap();
    for seed in 0..4 {
        fitted = fitted.refit(&draws_of(&truth, 200, 2 * seed + 1), 200.0, Covariance::LowRank);
    }
    let Shape::LowRank { directions, stretches, .. } = &fitted.components()[0].shape else { panic!() };
    let widest = (0..stretches.len()).reduce(|a, b| if stretches[b] > stretches[a] { b } else { a }).unwrap();
    let along: f64 = directions[widest * dim..(widest + 1) * dim].iter().sum::<f64>() / (dim as f64).sqrt();
    assert!(along.abs() > 0.95, "{along} of {stretches:?}");
    let (found, wanted) =
        (fitted.components()[0].shape.deviations(), truth.components()[0].shape.deviations());
    let ratios: Vec<f64> = found.iter().zip(&wanted).map(|(a, b)| (a / b).ln().abs()).collect();
    assert!(ratios.iter().sum::<f64>() / (dim as f64) < 0.2, "{ratios:?}");
}

#[test]
fn a_draw_that_the_reference_leaves_out_is_noticed() {
    let reference = Mixture::normal(vec![0.0; 2], Shape::Diagonal(vec![1.1; 2])).unwrap();
    let mut draws = normals(300, 2, 5);
    let log_target = |x: &[f64]| {
        let square = |at: f64| x.iter().map(|x| (x - at) * (x - at)).sum::<f64>();
        ((-0.5 * square(0.0)).exp() + (-0.5 * square(10.0)).exp()).ln()
    };
    let heights = |draws: &Batch| draws.iter_rows().map(log_target).collect::<Vec<f64>>();
    assert_eq!(reference.uncovered(&draws, &heights(&draws)), None);
    draws.row_mut(77).fill(9.5);
    assert_eq!(reference.uncovered(&draws, &heights(&draws)), Some(77));
    assert_eq!(reference.uncovered(&Batch::zeros(0, 2), &[]), None);
}

#[test]
fn bad_draws_leave_a_fit_alone() {
    let present = Mixture::normal(vec![0.0; 2], Shape::Diagonal(vec![1.0; 2])).unwrap();
    for draws in [Batch::zeros(0, 2), Batch::from_vec(2, vec![f64::NAN; 4])] {
        assert_eq!(present.refit(&draws, 10.0, Covariance::Dense), present);
    }
    // All draws at one point: the fit narrows, and stays a normal.
    let mut fit = present;
    for _ in 0..50 {
        fit = fit.refit(&Batch::from_vec(2, vec![1.0; 200]), 100.0, Covariance::Dense);
    }
    assert_eq!(fit.components()[0].shape.check(), Ok(()));
}

#[test]
fn a_draw_that_is_repeated_tells_nothing_new_of_a_shape() {
    let present = Mixture::normal(vec![0.0; 2], Shape::Diagonal(vec![1.0; 2])).unwrap();
    // A ladder that stays at four places, 50 iterations each.
    let rows = (0..4).flat_map(|k| std::iter::repeat_n([0.3 * f64::from(k), 0.1], 50)).flatten();
    let stuck = Batch::from_vec(2, rows.collect());
    let views: Vec<&[f64]> = stuck.iter_rows().collect();
    assert_eq!(distinct(&views, &[1.0; 200]), 4.0);
    assert_eq!(distinct(&views[..60], &[0.5; 60]), 30.0 * 30.0 / (25.0 * 25.0 + 5.0 * 5.0));
    assert_eq!(distinct(&[], &[]), 0.0);
    let fitted = present.refit(&stuck, 200.0, Covariance::Dense);
    let deviations = fitted.components()[0].shape.deviations();
    assert!(deviations.iter().all(|s| *s > 0.6), "{deviations:?}");
    assert_eq!(present.split(&stuck, 200.0, Covariance::Dense).components().len(), 1);
}
