//! Many translucent dots of one colour in a few paths: darker where they lie on each other, and a fifth of the text that a
//! circle for each would take.

use super::{Chart, short};
use std::fmt::Write;

/// A path paints no place twice, so dots that overlap lie in different ones. Dots cannot fill the plane: a place is covered in
/// about half of all full layers, which then hide all that lies below; more need not be told apart.
const LAYERS: usize = 32;

impl Chart {
    /// Dots; those that are no numbers are left out.
    pub fn cloud(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>, radius: f64) {
        let finite = points.into_iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        let places: Vec<(f64, f64)> = finite.map(|(x, y)| (self.at_x(x), self.at_y(y))).collect();
        let width = short(2.0 * radius);
        let _ = write!(self.marks, "<g class=\"cloud {class}\" stroke-width=\"{width}\">");
        for layer in layers(&places, 2.0 * radius) {
            self.marks += "<path d=\"";
            for (x, y) in layer {
                // A line of no length with round ends.
                let _ = write!(self.marks, "M{} {}h0", short(x), short(y));
            }
            self.marks += "\"/>";
        }
        self.marks += "</g>";
    }
}

/// Each place in the first layer where it is at least this far from all others; in the last one if there is none.
fn layers(places: &[(f64, f64)], apart: f64) -> Vec<Vec<(f64, f64)>> {
    let mut layers: Vec<Vec<(f64, f64)>> = Vec::new();
    for &(x, y) in places {
        let is_free = |layer: &Vec<(f64, f64)>| layer.iter().all(|(a, b)| (x - a).hypot(y - b) >= apart);
        let place = layers.iter().position(is_free).unwrap_or(layers.len()).min(LAYERS - 1);
        if place == layers.len() {
            layers.push(Vec::new());
        }
        layers[place].push((x, y));
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::chart::Axis;

    #[test]
    fn dots_that_overlap_lie_in_different_layers() {
        let far = [(0.0, 0.0), (9.0, 0.0), (0.0, 9.0)];
        assert_eq!(layers(&far, 4.0), [far.to_vec()]);
        let near = [(0.0, 0.0), (1.0, 0.0), (9.0, 0.0), (1.0, 1.0)];
        assert_eq!(layers(&near, 4.0), [vec![near[0], near[2]], vec![near[1]], vec![near[3]]]);
        let many = layers(&[(0.0, 0.0); 100], 4.0);
        assert_eq!((many.len(), many.concat().len()), (LAYERS, 100));
        assert!(layers(&[], 4.0).is_empty());
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let axis = || Axis::linear("", 0.0, 1.0);
        let mut chart = Chart::new("c", "t", axis(), axis());
        chart.cloud("c1", [(0.5, 0.5), (f64::NAN, 0.5), (0.5, f64::INFINITY)], 2.0);
        assert_eq!(chart.marks.matches("h0").count(), 1);
    }
}
