//! Whether a density falls off: one that does not has no integral.

use super::climb::{Place, places};
use super::numbers::ln;
use crate::{Result, Target};
use serde::{Deserialize, Serialize};

/// How far to look, in standard deviations of the reference. A density with an integral has fallen below 1/r at r of them, or falls
/// faster than that farther out.
const FAR: [f64; 3] = [1e3, 1e6, 1e10];

/// One that fell more steeply than 1/r by less than this, in log, from each distance to the next has no integral, or none that
/// anybody will see.
const STEEPER: f64 = 0.01;

/// One that is lower than this beside 1/r, in log, is a floor that somebody put under the density.
const FLOOR: f64 = 60.0;

/// Directions in general position, where coordinates are few: along them a density of d coordinates must fall more steeply than r⁻ᵈ.
const OTHERS: usize = 8;

/// Coordinates that are looked along, the widest compared with the anchor first.
const AXES: usize = 8;

/// Where a density was found not to fall off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Endless {
    /// Along this coordinate.
    pub coordinate: usize,
    /// At this distance it has not fallen yet as it would have to.
    pub distance: f64,
}

/// Looks outwards from a place of high density: along the coordinates that are widest beside what was expected of them, where it has
/// to fall more steeply than 1/r, and along some directions between them, where it has to fall more steeply than r⁻ᵈ.
///
/// ```
/// use sterna::fitted::endless;
/// use sterna::targets::Normal;
/// let normal = Normal::new(vec![0.0; 2], vec![1.0, 1e-12]);
/// assert_eq!(endless(&normal, &[0.0; 2], &[1.0, 1e6], &[1.0; 2]).unwrap(), None);
/// let flat = Normal::new(vec![0.0; 2], vec![1.0, 1e-40]);
/// assert_eq!(endless(&flat, &[0.0; 2], &[1.0, 1e6], &[1.0; 2]).unwrap().unwrap().coordinate, 1);
/// ```
pub fn endless(
    target: &dyn Target,
    from: &[f64],
    deviations: &[f64],
    expected: &[f64],
) -> Result<Option<Endless>> {
    let height = places(target, vec![from.to_vec()])?.remove(0).log_density;
    let mut ways = ways(deviations, expected);
    let mut before = vec![f64::NEG_INFINITY; ways.len()];
    for far in FAR {
        let moved = |way: &Way| {
            let steps = way.direction.iter().zip(deviations);
            from.iter().zip(steps).map(|(x, (u, deviation))| x + far * u * deviation).collect()
        };
        let seen = places(target, ways.iter().map(moved).collect())?;
        let excess = |(way, place): (&Way, &Place)| place.log_density - height + way.power * ln(far);
        let now: Vec<f64> = ways.iter().zip(&seen).map(excess).collect();
        // What is no number has no height.
        let goes_on =
            |i: &usize| now[*i] > before[*i] - STEEPER && now[*i] > -FLOOR && now[*i] < f64::INFINITY;
        let kept: Vec<usize> = (0..ways.len()).filter(goes_on).collect();
        before = kept.iter().map(|&i| now[i]).collect();
        ways = kept.into_iter().map(|i| ways[i].clone()).collect();
    }
    let farthest = FAR[FAR.len() - 1];
    let found = |Way { coordinate, .. }: &Way| Endless {
        coordinate: *coordinate,
        distance: farthest * deviations[*coordinate],
    };
    Ok(ways.first().map(found))
}

/// A way outwards.
#[derive(Clone)]
struct Way {
    /// The coordinate that it leads along, or is told by.
    coordinate: usize,
    /// In standard deviations.
    direction: Vec<f64>,
    /// The power of 1/r that the density has to fall by.
    power: f64,
}

fn ways(deviations: &[f64], expected: &[f64]) -> Vec<Way> {
    let dim = deviations.len();
    let mut axes: Vec<usize> = (0..dim).collect();
    axes.sort_by(|&a, &b| (deviations[b] / expected[b]).total_cmp(&(deviations[a] / expected[a])));
    let mut all = Vec::new();
    for &coordinate in axes.iter().take(AXES) {
        for side in [1.0, -1.0] {
            let mut direction = vec![0.0; dim];
            direction[coordinate] = side;
            all.push(Way { coordinate, direction, power: 1.0 });
        }
    }
    if (2..=AXES).contains(&dim) {
        all.extend((0..OTHERS).map(|i| Way {
            coordinate: axes[0],
            direction: between_axes(dim, i),
            power: dim as f64,
        }));
    }
    all
}

/// A direction along no axis, no diagonal and no plane of them: the i-th of some that point to different sides.
fn between_axes(dim: usize, i: usize) -> Vec<f64> {
    let golden = 0.618_033_988_749_894_9;
    let part = |j: usize| ((i * dim + j + 1) as f64 * golden).fract();
    (0..dim).map(|j| if part(j) < 0.5 { part(j) - 1.0 } else { part(j) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Evaluation};

    /// A density by its logarithm.
    struct Plain<F>(usize, F);
    impl<F: Fn(&[f64]) -> f64 + Send + Sync> Target for Plain<F> {
        fn dim(&self) -> usize {
            self.0
        }
        fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
            out.score.as_mut_slice().fill(0.0);
            (0..x.rows()).for_each(|i| out.log_density[i] = (self.1)(x.row(i)));
            Ok(())
        }
    }

    fn is_endless(dim: usize, log_density: impl Fn(&[f64]) -> f64 + Send + Sync) -> bool {
        let (from, wide) = (vec![0.1; dim], vec![3.0; dim]);
        endless(&Plain(dim, log_density), &from, &wide, &vec![1.0; dim]).unwrap().is_some()
    }

    fn square(x: &[f64]) -> f64 {
        x.iter().map(|x| x * x).sum()
    }

    #[test]
    fn a_power_is_told_from_a_steeper_one() {
        assert!(is_endless(1, |x| -0.5 * x[0].mul_add(x[0], 1.0).ln()));
        assert!(is_endless(1, |x| -0.3 * square(x).ln_1p()));
        assert!(!is_endless(1, |x| -0.55 * square(x).ln_1p()));
        assert!(!is_endless(1, |x| -square(x).ln_1p()));
        // 1/(r ln² r) has an integral.
        assert!(!is_endless(1, |x| -(0.5 * (8.0 + square(x)).ln() + 2.0 * (8.0 + square(x)).ln().ln())));
    }

    #[test]
    fn in_several_coordinates_it_must_fall_more_steeply_than_their_number() {
        // r⁻³ in all directions: an integral in two dimensions, none in three.
        assert!(!is_endless(2, |x| -1.5 * square(x).ln_1p()));
        assert!(is_endless(3, |x| -1.5 * square(x).ln_1p()));
        // A product of Cauchys falls by a square along each axis.
        assert!(!is_endless(4, |x| -x.iter().map(|x| (x * x).ln_1p()).sum::<f64>()));
        // One that nothing holds beside two normals.
        assert!(is_endless(3, |x| -0.5 * square(&x[..2])));
        // A floor that somebody put under a normal.
        assert!(!is_endless(2, |x| (-0.5 * square(x)).max(-690.0)));
        assert!(!is_endless(2, |_| f64::NAN));
    }
}
