//! Which mode a draw belongs to: components of a mixture between which it has no dip are one.

use super::Mixture;
use serde::{Deserialize, Serialize};

/// Between the means of two modes the mixture's density falls by more than this below the lower, in log.
const DIP: f64 = 2.0;

/// Points between two means at which the mixture is looked at.
const BETWEEN: usize = 7;

/// Modes of a mixture with more than one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modes {
    mixture: Mixture,
    /// The mode of each component.
    of_component: Vec<usize>,
    count: usize,
    /// Room for a draw in the coordinates of each component.
    #[serde(skip)]
    work: (Vec<f64>, Vec<f64>),
}

impl Modes {
    /// Modes of a mixture; none where there is only one.
    ///
    /// ```
    /// use sterna::fitted::{Component, Mixture, Modes, Shape};
    /// let at = |x: f64| Component { weight: 1.0, mean: vec![x], shape: Shape::Diagonal(vec![1.0]) };
    /// let mut modes = Modes::of(&Mixture::new(vec![at(0.0), at(1.5), at(9.0)]).unwrap()).unwrap();
    /// assert_eq!((modes.count(), modes.at(&[0.3]), modes.at(&[2.0]), modes.at(&[8.0])), (2, 0, 0, 1));
    /// assert!(Modes::of(&Mixture::new(vec![at(0.0), at(1.5)]).unwrap()).is_none());
    /// ```
    pub fn of(mixture: &Mixture) -> Option<Self> {
        let components = mixture.components().len();
        let mut of_component: Vec<usize> = (0..components).collect();
        for i in 0..components {
            for j in 0..i {
                if of_component[i] != of_component[j] && mixture.connects(i, j) {
                    let (from, to) =
                        (of_component[i].max(of_component[j]), of_component[i].min(of_component[j]));
                    of_component.iter_mut().filter(|mode| **mode == from).for_each(|mode| *mode = to);
                }
            }
        }
        let mut names = of_component.clone();
        names.sort_unstable();
        names.dedup();
        let place = |mode: &usize| names.binary_search(mode).expect("it is among them");
        let of_component: Vec<usize> = of_component.iter().map(place).collect();
        let count = names.len();
        (count > 1).then(|| Self { mixture: mixture.clone(), of_component, count, work: Default::default() })
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The mode of a point: that of the component to which it most likely belongs.
    pub fn at(&mut self, x: &[f64]) -> usize {
        let (shares, standard) = &mut self.work;
        shares.resize(self.of_component.len(), 0.0);
        standard.resize(self.of_component.len() * x.len(), 0.0);
        self.mixture.shares(x, shares, standard);
        let most = (0..shares.len()).reduce(|a, b| if shares[b] > shares[a] { b } else { a });
        most.map_or(0, |component| self.of_component[component])
    }

    /// The mode that a component is a part of.
    pub(super) fn of_component(&self, component: usize) -> usize {
        self.of_component[component]
    }

    /// Whether it is for points of this length and its parts belong together: a file may claim anything.
    pub(crate) fn is_sound(&self, dim: usize) -> bool {
        self.mixture.dim() == dim
            && self.of_component.len() == self.mixture.components().len()
            && self.of_component.iter().all(|&mode| mode < self.count)
            && self.count <= self.of_component.len()
    }
}

impl Mixture {
    /// Whether its density has no dip on the straight line between the means of two components.
    fn connects(&self, i: usize, j: usize) -> bool {
        let (a, b) = (&self.components()[i].mean, &self.components()[j].mean);
        let (mut score, mut work) = (vec![0.0; self.dim()], Vec::new());
        let mut at = |t: f64| {
            let point: Vec<f64> = a.iter().zip(b).map(|(a, b)| a + t * (b - a)).collect();
            self.evaluate(&point, &mut score, &mut work)
        };
        let floor = at(0.0).min(at(1.0)) - DIP;
        (1..=BETWEEN).all(|k| at(k as f64 / (BETWEEN + 1) as f64) >= floor)
    }
}
