//! Coordinates of ladders on a GPU, which know N(0, I) alone: those of a run whose reference is another normal, standardised.
//!
//! Leapfrog steps are the same in both, each coordinate's size being divided by its width; so are the random numbers.

use std::sync::Arc;

use sterna::engine::Journal;
use sterna::explorers::StepSizes;
use sterna::fitted::Shape;
use sterna::frame::Frame;
use sterna::path::AnnealingPath;
use sterna::{Batch, Evaluation};

use crate::graph::Value;
use crate::graph_path::in_frame;
use crate::target::GraphTarget;

/// How the GPU sees points.
pub(crate) struct Coordinates(Option<Arc<Frame>>);

impl Coordinates {
    /// Those in which a path begins at N(0, I); none where its reference is no single normal.
    pub fn of(path: &dyn AnnealingPath) -> Option<Self> {
        let Some(path) = path.as_geometric() else { return Some(Self(None)) };
        let normal = path.anchor().is_none() && path.reference().as_normal().is_some();
        normal.then(|| Self(path.reference().frame().map(Arc::new)))
    }

    /// The frame, where there is one.
    pub fn frame(&self) -> Option<&Frame> {
        self.0.as_deref()
    }

    /// A target as the GPU samples it: its density in these coordinates.
    pub fn target(&self, target: Arc<dyn GraphTarget>) -> Arc<dyn GraphTarget> {
        match &self.0 {
            Some(frame) => Arc::new(Raised { target: in_frame(target, frame), by: frame.log_volume() }),
            None => target,
        }
    }

    /// The same step sizes.
    pub fn sizes(&self, mut sizes: StepSizes) -> StepSizes {
        if let Some(Shape::Diagonal(widths)) = self.frame().map(Frame::shape) {
            for chain in 0..sizes.scale.rows() {
                sizes.scale.row_mut(chain).iter_mut().zip(widths).for_each(|(size, width)| *size /= width);
            }
        }
        sizes
    }

    /// Points of the run become the GPU's.
    pub fn enter(&self, x: &mut Batch, target: &mut Evaluation) {
        let Some(frame) = self.frame() else { return };
        for i in 0..x.rows() {
            frame.standardise(x.row_mut(i));
            frame.standardise_score(target.score.row_mut(i));
            target.log_density[i] += frame.log_volume();
        }
    }

    /// Points of the GPU become the run's.
    pub fn leave(&self, x: &mut Batch, target: &mut Evaluation) {
        let Some(frame) = self.frame() else { return };
        for i in 0..x.rows() {
            frame.place(x.row_mut(i));
            frame.place_score(target.score.row_mut(i));
            target.log_density[i] -= frame.log_volume();
        }
    }

    /// The same for what was written down of iterations.
    pub fn leave_journal(&self, journal: &mut Journal) {
        let Some(frame) = self.frame() else { return };
        let page = journal.page();
        for numbers in journal.pages.chunks_exact_mut(page.len()) {
            numbers[page.log_target()].iter_mut().for_each(|value| *value -= frame.log_volume());
            frame.place(&mut numbers[page.draw()]);
        }
        journal.bad_points.iter_mut().for_each(|bad| frame.place(&mut bad.point));
    }
}

/// A target whose log density is higher by a constant: that of z, where another says that of x.
struct Raised {
    target: Arc<dyn GraphTarget>,
    by: f64,
}

impl GraphTarget for Raised {
    fn dim(&self) -> usize {
        self.target.dim()
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        self.target.log_density(x) + self.by
    }

    fn score<'g>(&self, x: Value<'g>) -> Value<'g> {
        self.target.score(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna::engine::Page;
    use sterna::path::Points;
    use sterna::paths::{Geometric, Reference};
    use sterna::targets::Normal;

    /// What goes to the GPU is the same law seen from elsewhere, and comes back as it was.
    #[test]
    fn what_enters_leaves_as_it_was() {
        let normal = Normal::new(vec![30.0, -2.0], vec![400.0, 3.0]);
        let reference = Reference::normal(vec![30.2, 0.0], vec![0.4, 2.0]);
        let path = Geometric::new(reference, Arc::new(normal.clone())).unwrap();
        let coordinates = Coordinates::of(&path).unwrap();
        let frame = coordinates.frame().unwrap();
        let mut points = Points::zeros(1, 2);
        points.x.row_mut(0).copy_from_slice(&[30.1, -1.0]);
        path.evaluate(&[0.0], &mut points).unwrap();
        let (mut x, mut target) = (points.x.clone(), points.target.clone());
        coordinates.enter(&mut x, &mut target);
        // The reference is N(0, I) there, and the target's density is one of the same coordinates.
        let log_reference =
            -0.5 * (x.row(0).iter().map(|z| z * z).sum::<f64>() + 2.0 * std::f64::consts::TAU.ln());
        assert!((log_reference - frame.log_volume() - points.log_reference[0]).abs() < 1e-12);
        let inside = coordinates.target(Arc::new(normal));
        let graph = crate::Graph::new();
        let z = graph.input("z", 2);
        let device: &dyn crate::Device<f64> = &crate::Cpu::new(1);
        let mut program = device.compile(&graph, &[inside.log_density(z), inside.score(z)]).unwrap();
        program.run(&crate::Parameters::empty(), 1, &[x.row(0)]).unwrap();
        assert!((program.output(0)[0] - target.log_density[0]).abs() < 1e-10);
        assert!(program.output(1).iter().zip(target.score.row(0)).all(|(a, b)| (a - b).abs() < 1e-10));
        // Steps of the same length.
        let sizes = coordinates.sizes(StepSizes::fixed(2, 2, 0.1));
        assert!((sizes.scale.row(1)[1] * 2.0 - 1.0).abs() < 1e-15);
        let page = Page { chains: 2, dim: 2 };
        let mut journal = Journal::new(page, 0..1);
        journal.pages = vec![0.0; page.len()];
        journal.pages[page.draw()].copy_from_slice(x.row(0));
        journal.pages[page.log_target()].fill(target.log_density[0]);
        coordinates.leave_journal(&mut journal);
        coordinates.leave(&mut x, &mut target);
        for (ours, theirs) in [(&journal.pages[page.draw()], points.x.row(0)), (x.row(0), points.x.row(0))] {
            assert!(ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() < 1e-12), "{ours:?}");
        }
        assert!((target.log_density[0] - points.target.log_density[0]).abs() < 1e-12);
        assert!((journal.pages[page.log_target()][1] - points.target.log_density[0]).abs() < 1e-12);
        // A second leg, or a mixture, is none for a GPU.
        let anchored = path.between(path.reference().clone(), Some(Reference::standard_normal(2))).unwrap();
        assert!(Coordinates::of(&anchored).is_none());
    }
}
