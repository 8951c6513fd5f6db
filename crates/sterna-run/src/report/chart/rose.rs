//! Roses: histograms of angles on their circle, 0° at the top and clockwise, as one looks along a bond.

use super::{Axis, Chart, short};
use std::f64::consts::TAU;
use std::fmt::Write;

/// Room around the circle, for words.
const AROUND: f64 = 24.0;

impl Chart {
    /// An empty circle.
    pub fn rose(id: &str, title: &str) -> Self {
        let nothing = || Axis::linear("", -1.0, 1.0);
        Self { is_round: true, ..Self::new(id, title, nothing(), nothing()) }
    }

    fn centre(&self) -> (f64, f64) {
        (0.5 * self.width, 0.5 * self.height)
    }

    fn radius(&self) -> f64 {
        0.5 * self.height - AROUND
    }

    /// Where a share of a whole turn lies, at a share of the radius.
    fn around(&self, turn: f64, share: f64) -> (f64, f64) {
        let ((x, y), r) = (self.centre(), share * self.radius());
        let (right, up) = (TAU * turn).sin_cos();
        (x + r * right, y - r * up)
    }

    /// A petal from 0° on for each share of the whole, as large as it: `largest` reaches the rim, and others go with the square
    /// root.
    pub fn petals(&mut self, class: &str, shares: &[f64], largest: f64) {
        let n = shares.len() as f64;
        let mut path = String::new();
        for (i, &share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            let far = (share / largest).sqrt();
            let corner = |k: f64| {
                let (x, y) = self.around(k / n, far);
                format!("{} {}", short(x), short(y))
            };
            let ((x, y), r) = (self.centre(), short(far * self.radius()));
            let (from, to) = (corner(i as f64), corner(i as f64 + 1.0));
            let _ = write!(path, "M{} {}L{from}A{r} {r} 0 0 1 {to}Z", short(x), short(y));
            let (x, y) = self.around((i as f64 + 0.5) / n, far);
            let ends = [i, i + 1].map(|k| degrees(360.0 * k as f64 / n));
            self.hover.push((x, y, format!("{} to {}: {:.2}%", ends[0], ends[1], 100.0 * share)));
        }
        let _ = write!(self.marks, "<path class=\"petal {class}\" d=\"{path}\"/>");
    }

    /// A circle as far out as petals of this share go.
    pub fn ring(&mut self, class: &str, share: f64, largest: f64) {
        self.marks += &self.circle(&format!("line {class}"), (share / largest).sqrt());
    }

    fn circle(&self, class: &str, share: f64) -> String {
        let ((x, y), r) = (self.centre(), short(share * self.radius()));
        format!("<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{r}\"/>", short(x), short(y))
    }

    /// The rim, and spokes with their angles.
    pub(super) fn round_frame(&self) -> String {
        let mut frame = self.circle("axis", 1.0);
        for k in 0..8 {
            let turn = f64::from(k) / 8.0;
            let ((x, y), (end_x, end_y)) = (self.centre(), self.around(turn, 1.0));
            let _ = write!(
                frame,
                "<path class=\"grid\" d=\"M{} {}L{} {}\"/>",
                short(x),
                short(y),
                short(end_x),
                short(end_y)
            );
            let (x, y) = self.around(turn, 1.0 + 8.0 / self.radius());
            let anchor = ["middle", "start", "start", "start", "middle", "end", "end", "end"][k as usize];
            // Words above the circle stand on it, those below hang from it.
            let down = [0.0, 2.0, 4.0, 8.0, 9.0, 8.0, 4.0, 2.0][k as usize];
            let text = degrees(360.0 * turn);
            let _ = write!(
                frame,
                "<text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{text}</text>",
                short(x),
                short(y + down)
            );
        }
        frame
    }
}

/// An angle as chemists count it.
fn degrees(angle: f64) -> String {
    format!("{}°", if angle > 180.0 { angle - 360.0 } else { angle }).replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn petals_are_as_large_as_their_shares() {
        let mut rose = Chart::rose("r", "a rose");
        rose.petals("c1", &[0.8, 0.0, 0.2, 0.0], 0.8);
        // The larger goes to the rim, and the one with a quarter of its share half as far.
        let radii: Vec<f64> = rose
            .marks
            .split('A')
            .skip(1)
            .map(|arc| arc.split(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(radii, [rose.radius(), 0.5 * rose.radius()]);
        assert_eq!(rose.hover[1].2, "180° to −90°: 20.00%");
        // 90° lies to the right, and 180° below.
        let ((x, y), r) = (rose.centre(), rose.radius());
        let near = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).hypot(a.1 - b.1) < 1e-9;
        assert!(near(rose.around(0.25, 1.0), (x + r, y)) && near(rose.around(0.5, 1.0), (x, y + r)));
        assert_eq!(["−45°", "180°", "90°"].map(|text| rose.figure().contains(text)), [true; 3]);
    }
}
