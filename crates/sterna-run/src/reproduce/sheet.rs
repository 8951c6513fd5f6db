//! Charts of a section in one drawing: a file with one style, instead of a file for each.

use crate::report::chart::Chart;
use crate::report::standalone_svg;
use std::fmt::Write;

/// Between charts.
const GAP: f64 = 16.0;
/// A chart of this width has a row of its own.
const WIDE: f64 = 500.0;

/// Charts in rows of two, or one where it is wide, with their titles and legends.
pub fn sheet(charts: &[&Chart]) -> String {
    let drawings: Vec<(f64, f64, String)> = charts.iter().map(|c| c.with_legend()).collect();
    let widest = drawings.iter().map(|d| d.0).fold(0.0, f64::max);
    let narrow = |pair: &&[(f64, f64, String)]| pair.iter().all(|d| d.0 < WIDE);
    let two = drawings.windows(2).filter(narrow).map(|pair| pair[0].0 + GAP + pair[1].0);
    let width = two.fold(widest, f64::max);
    let (mut x, mut top, mut bottom, mut content) = (0.0, 0.0, 0.0f64, String::new());
    for (wide, high, drawing) in &drawings {
        if x > 0.0 && x + wide > width {
            (x, top) = (0.0, bottom + GAP);
        }
        let _ =
            write!(content, "<svg x=\"{x}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\">{drawing}</svg>");
        bottom = bottom.max(top + high);
        x += wide + GAP;
    }
    standalone_svg(width, bottom, &content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::chart::Axis;

    #[test]
    fn two_in_a_row() {
        let chart = |id: &str| {
            let axis = || Axis::linear("x", 0.0, 1.0);
            Chart::new(id, id, axis(), axis())
        };
        let all = [chart("a"), chart("b"), chart("c"), chart("d").wide()];
        let text = sheet(&all.iter().collect::<Vec<_>>());
        let places = text.split("<svg x=\"").skip(1).map(|part| part.split('"').nth(2).unwrap());
        let y: Vec<f64> = places.map(|y| y.parse().unwrap()).collect();
        assert!(y[0] == y[1] && y[1] < y[2] && y[2] < y[3], "{y:?}");
        assert_eq!(text.matches("<style>").count(), 1);
        assert_eq!(text.matches("<svg").count(), text.matches("</svg>").count());
    }
}
