//! Whether a density falls off: one that does not has no integral.

use super::climb::places;
use super::numbers::ln;
use crate::{Result, Target};
use serde::{Deserialize, Serialize};

/// How far to look, in standard deviations of the reference: no proper density is as high as this at all of them.
const FAR: [f64; 3] = [30.0, 1e3, 1e6];

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

/// Looks outwards from a place of high density along the coordinates that are widest beside what was expected of them. At r widths
/// a density with an integral has fallen to less than one in r, or will have farther out.
///
/// ```
/// use sterna::fitted::endless;
/// use sterna::targets::Normal;
/// let normal = Normal::new(vec![0.0; 2], vec![1.0, 1e-12]);
/// assert_eq!(endless(&normal, &[0.0; 2], &[1.0, 1e6], &[1.0; 2]).unwrap(), None);
/// let flat = Normal::new(vec![0.0; 2], vec![1.0, 1e-30]);
/// assert_eq!(endless(&flat, &[0.0; 2], &[1.0, 1e6], &[1.0; 2]).unwrap().unwrap().coordinate, 1);
/// ```
pub fn endless(
    target: &dyn Target,
    from: &[f64],
    deviations: &[f64],
    expected: &[f64],
) -> Result<Option<Endless>> {
    let height = places(target, vec![from.to_vec()])?.remove(0).log_density;
    let mut axes: Vec<usize> = (0..from.len()).collect();
    axes.sort_by(|&a, &b| (deviations[b] / expected[b]).total_cmp(&(deviations[a] / expected[a])));
    let mut ways: Vec<(usize, f64)> = axes.iter().take(AXES).flat_map(|&j| [(j, 1.0), (j, -1.0)]).collect();
    for far in FAR {
        let moved = |&(j, side): &(usize, f64)| {
            let mut point = from.to_vec();
            point[j] += side * far * deviations[j];
            point
        };
        let seen = places(target, ways.iter().map(moved).collect())?;
        // What is no number has no height.
        let high = |log_density: f64| log_density > height - ln(far) && log_density < f64::INFINITY;
        ways = ways.into_iter().zip(seen).filter(|(_, p)| high(p.log_density)).map(|(way, _)| way).collect();
    }
    let farthest = FAR[FAR.len() - 1];
    let found =
        |&(coordinate, _): &(usize, f64)| Endless { coordinate, distance: farthest * deviations[coordinate] };
    Ok(ways.first().map(found))
}
