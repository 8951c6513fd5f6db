//! Densities of standardised coordinates, and their gradients.

use super::*;
use std::sync::Arc;
use sterna::path::{AnnealingPath, Points};
use sterna_molecule::TemperedPath;

/// Log density and gradients of (z, soft): against differences, and against what a journey says of its start.
#[test]
fn densities_of_standardised_coordinates_are_true() {
    let molecule = &Fixture::get().molecule;
    densities_are_true(molecule);
    densities_are_true(&molecule.clone().holding_peptide_bonds().unwrap());
}

fn densities_are_true(molecule: &Molecule) {
    let Fixture { samples, affine, .. } = Fixture::get();
    let (beta, points) = &samples[1];
    let pair = Interval { lower: *beta, upper: 1.0 };
    let start = rows_of(points, 0..3);
    let journeys = affine.journeys(molecule, pair, true, &start).unwrap();
    let density = |from: f64, to: f64, z: &[f64], soft: &[f64]| {
        let mut out = Densities::default();
        affine.log_density(molecule, &[from; 3], &[to; 3], soft, z, &mut out);
        out
    };
    let (stiff, torsions) = (affine.stiff(), affine.soft());
    let found = density(1.0, 1.0, &journeys.z, &journeys.soft);
    for k in 0..stiff + torsions {
        let at = |h: f64| {
            let (mut z, mut soft) = (journeys.z.clone(), journeys.soft.clone());
            for i in 0..3 {
                match k.checked_sub(stiff) {
                    None => z[i * stiff + k] += h,
                    Some(torsion) => soft[i * torsions + torsion] += h,
                }
            }
            density(1.0, 1.0, &z, &soft).log_density
        };
        let (up, down) = (at(1e-6), at(-1e-6));
        for i in 0..3 {
            let difference = (up[i] - down[i]) / 2e-6;
            let found = match k.checked_sub(stiff) {
                None => found.stiff[i * stiff + k],
                Some(torsion) => found.soft[i * torsions + torsion],
            };
            assert!(
                (found - difference).abs() < 1e-4 * (1.0 + difference.abs()),
                "{k}: {found} {difference}"
            );
        }
    }
    // With z kept, the weight of a journey is that of the affine transport.
    let mut x = start.clone();
    let path = TemperedPath::new(Arc::new(molecule.clone()), PATH.reference).unwrap();
    let log_density = |beta: f64, x: &Batch| {
        let mut points = Points::zeros(3, x.dim());
        points.x = x.clone();
        path.evaluate(&[beta; 3], &mut points).unwrap();
        points.log_density
    };
    let (mut log_det, before) = (vec![0.0; 3], log_density(*beta, &start));
    affine.forward(&[pair; 3], &mut x, &mut log_det, &mut Scratch::default()).unwrap();
    let after = log_density(1.0, &x);
    // Where it started, in the torsions of the upper end.
    let there = density(1.0, *beta, &journeys.z, &journeys.soft);
    for (i, log_det) in log_det.iter().enumerate() {
        let weight = after[i] + log_det - before[i];
        let found_weight = found.log_density[i] - journeys.start[i];
        assert!((weight - found_weight).abs() < 1e-8, "{weight} {found_weight}");
        assert!((there.log_density[i] - journeys.start[i]).abs() < 1e-8);
    }
}

/// Gradients through the fitted maps of the torsions, whose slopes jump: summed along ways they give the differences
/// between their ends, where these are averaged over the jumps.
#[test]
fn densities_follow_the_fitted_maps() {
    const STEP: f64 = 0.01;
    // Steps of each way, and ways that start one step after the other.
    const STEPS: usize = 40;
    const WAYS: usize = 10;
    let Fixture { molecule, samples, affine, .. } = Fixture::get();
    let (rows, torsions) = (16, affine.soft());
    let pair = Interval { lower: samples[1].0, upper: 1.0 };
    let journeys = affine.journeys(molecule, pair, false, &rows_of(&samples[2].1, 0..rows)).unwrap();
    let (mut agree, mut ways) = (0, 0);
    for k in 0..torsions {
        let at = |steps: f64| {
            let mut soft = journeys.soft.clone();
            (0..rows).for_each(|i| soft[i * torsions + k] += STEP * steps);
            let mut out = Densities::default();
            let (from, to) = (vec![pair.upper; rows], vec![pair.lower; rows]);
            affine.log_density(molecule, &from, &to, &soft, &journeys.z, &mut out);
            out
        };
        let middle = (STEPS + WAYS) as f64 / 2.0;
        let borders: Vec<Densities> = (0..STEPS + WAYS).map(|n| at(n as f64 - middle)).collect();
        let between: Vec<Densities> = (0..STEPS + WAYS).map(|n| at(n as f64 + 0.5 - middle)).collect();
        for i in 0..rows {
            let (mut sum, mut difference) = (0.0, 0.0);
            for way in 0..WAYS {
                let slopes = between[way..way + STEPS].iter().map(|d| d.soft[i * torsions + k]);
                sum += STEP * slopes.sum::<f64>() / WAYS as f64;
                difference +=
                    (borders[way + STEPS].log_density[i] - borders[way].log_density[i]) / WAYS as f64;
            }
            agree += usize::from((sum - difference).abs() < 0.1);
            ways += 1;
        }
    }
    // Where the joint map jumps far from one cell to the next, gradients can only be rough.
    assert!(agree > ways * 19 / 20, "{agree} of {ways}");
}
