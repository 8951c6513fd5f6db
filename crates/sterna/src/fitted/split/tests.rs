//! Splits of draws whose law is known.

use super::super::Shape;
use super::*;
use crate::Streams;
use crate::streams::Phase;

fn normals(rows: u32, dim: usize, seed: u64) -> Batch {
    let mut draws = Batch::zeros(rows as usize, dim);
    Streams::new(seed).normals(Phase::Check, 0, &(0..rows).collect::<Vec<_>>(), &mut draws);
    draws
}

/// Neal's funnel: v of deviation 3, the others of deviation exp(v/2); with log densities.
fn funnel(rows: u32, dim: usize, seed: u64) -> (Batch, Vec<f64>) {
    let mut draws = normals(rows, dim, seed);
    let log_density = |i| {
        let x = draws.row_mut(i);
        let log_density = -0.5 * dot(x, x) - 3f64.ln();
        x[0] *= 3.0;
        let width = (0.5 * x[0]).exp();
        x[1..].iter_mut().for_each(|x| *x *= width);
        log_density - 0.5 * (dim - 1) as f64 * x[0] - 0.5 * dim as f64 * std::f64::consts::TAU.ln()
    };
    let log_densities = (0..rows as usize).map(log_density).collect();
    (draws, log_densities)
}

/// E log π − log η over draws of π, its largest hundredth left out: how far η is from them.
fn distance(mixture: &Mixture, (draws, log_density): &(Batch, Vec<f64>)) -> f64 {
    let (mut score, mut work) = (vec![0.0; draws.dim()], Vec::new());
    let gap = |(x, log_pi): (&[f64], &f64)| log_pi - mixture.evaluate(x, &mut score, &mut work);
    let mut gaps: Vec<f64> = draws.iter_rows().zip(log_density).map(gap).collect();
    gaps.sort_by(f64::total_cmp);
    gaps.truncate(gaps.len() * 99 / 100);
    gaps.iter().sum::<f64>() / gaps.len() as f64
}

#[test]
fn a_funnel_becomes_a_chain_of_normals() {
    let (fresh, dim) = (funnel(4000, 10, 9), 10);
    let one = Mixture::normal(vec![0.0; dim], Shape::Diagonal(vec![5.0; dim])).unwrap();
    for (count, most) in [(1000, 1.5), (4000, 0.35)] {
        let draws = funnel(count, dim, 3).0;
        let one = one.refit(&draws, f64::from(count), Covariance::Dense);
        let split = one.split(&draws, f64::from(count), Covariance::Dense);
        let away = distance(&split, &fresh);
        assert!(distance(&one, &fresh) > 10.0);
        assert!(away < most, "{count}: {away} with {} components", split.components().len());
    }
}

#[test]
fn normals_are_left_whole() {
    // A false split would take log-likelihood ratios of twice the number of parameters: for 5 numbers and more, each under one
    // in a thousand, and these are forty.
    for seed in 0..20 {
        for dim in [1, 6] {
            let draws = normals(500, dim, seed);
            let one = Mixture::normal(vec![0.0; dim], Shape::Diagonal(vec![1.0; dim])).unwrap();
            let one = one.refit(&draws, 500.0, Covariance::Dense);
            let split = one.split(&draws, 500.0, Covariance::Dense);
            assert_eq!(split.components().len(), 1, "seed {seed}, {dim} dimensions");
        }
    }
}

#[test]
fn few_draws_many_dimensions_and_bad_numbers_change_nothing() {
    let one = Mixture::normal(vec![0.0; 10], Shape::Diagonal(vec![5.0; 10])).unwrap();
    let draws = funnel(2000, 10, 1).0;
    for effective in [0.0, 5.0, f64::NAN] {
        assert_eq!(one.split(&draws, effective, Covariance::Diagonal).components().len(), 1);
    }
    assert_eq!(one.split(&Batch::zeros(0, 10), 100.0, Covariance::Diagonal), one);
    let wide = Mixture::normal(vec![0.0; 1000], Shape::Diagonal(vec![1.0; 1000])).unwrap();
    assert_eq!(wide.split(&normals(100, 1000, 1), 100.0, Covariance::Diagonal), wide);
}
