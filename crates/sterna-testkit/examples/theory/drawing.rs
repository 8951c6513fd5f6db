//! Plots as SVG.

use crate::{Outcome, Point};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

/// Four significant digits: enough to read, and few enough to stay the same everywhere.
pub fn short(x: f64) -> f64 {
    format!("{x:.3e}").parse().expect("a number")
}

pub struct Axis {
    label: &'static str,
    from: f64,
    to: f64,
    log: bool,
}

impl Axis {
    pub fn linear(label: &'static str, from: f64, to: f64) -> Self {
        Self { label, from, to, log: false }
    }
    pub fn log(label: &'static str, from: f64, to: f64) -> Self {
        Self { label, from, to, log: true }
    }
}

#[derive(Clone, Copy)]
pub enum Mark {
    Line,
    Dashed,
    Dots,
}

/// Points of one colour; a series without a name is not in the legend.
pub struct Series {
    mark: Mark,
    colour: usize,
    name: String,
    points: Vec<Point>,
}

impl Series {
    pub fn of(mark: Mark, colour: usize, name: impl Into<String>, points: Vec<Point>) -> Self {
        Self { mark, colour, name: name.into(), points }
    }
    pub fn line(colour: usize, name: impl Into<String>, points: Vec<Point>) -> Self {
        Self::of(Mark::Line, colour, name, points)
    }
    pub fn dashed(colour: usize, name: impl Into<String>, points: Vec<Point>) -> Self {
        Self::of(Mark::Dashed, colour, name, points)
    }
    pub fn dots(colour: usize, name: impl Into<String>, points: Vec<Point>) -> Self {
        Self::of(Mark::Dots, colour, name, points)
    }
}

pub struct Figure {
    pub title: &'static str,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    pub legend: SeriesLabelPosition,
}

/// Okabe and Ito's colours, distinguishable to everyone; the last two are grey and black.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(140, 140, 140),
    RGBColor(0, 0, 0),
];

/// Width and height of a drawing.
const SIZE: (u32, u32) = (860, 520);

impl Figure {
    /// As SVG.
    pub fn draw(&self) -> Outcome<String> {
        let (x, y) = (self.x.from..self.x.to, self.y.from..self.y.to);
        match (self.x.log, self.y.log) {
            (false, false) => self.draw_on(x, y),
            (true, false) => self.draw_on(x.log_scale(), y),
            (false, true) => self.draw_on(x, y.log_scale()),
            (true, true) => self.draw_on(x.log_scale(), y.log_scale()),
        }
    }

    fn draw_on<X, Y>(&self, x: X, y: Y) -> Outcome<String>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let mut svg = String::new();
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(self.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(46)
            .y_label_area_size(66)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(self.x.label)
            .y_desc(self.y.label)
            .axis_desc_style(("sans-serif", 15))
            .label_style(("sans-serif", 13))
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(222, 222, 222))
            .x_label_formatter(&label)
            .y_label_formatter(&label)
            .draw()?;
        let inside =
            |p: &&Point| (self.x.from..=self.x.to).contains(&p.0) && (self.y.from..=self.y.to).contains(&p.1);
        for series in &self.series {
            let colour = COLOURS[series.colour];
            let style = colour.stroke_width(2);
            let points = series.points.iter().filter(inside).copied();
            let drawn = match series.mark {
                Mark::Line => chart.draw_series(LineSeries::new(points, style))?,
                Mark::Dashed => chart.draw_series(DashedLineSeries::new(points, 7, 5, style))?,
                Mark::Dots => chart.draw_series(points.map(|p| Circle::new(p, 3, colour.filled())))?,
            };
            if series.name.is_empty() {
                continue;
            }
            let mark = series.mark;
            drawn.label(series.name.as_str()).legend(move |(x, y)| match mark {
                Mark::Line => PathElement::new(vec![(x, y), (x + 22, y)], style).into_dyn(),
                // Two dashes as text: plotters has no single element of them.
                Mark::Dashed => {
                    let font = ("sans-serif", 15, FontStyle::Bold).into_font().color(&colour);
                    Text::new("– –", (x, y - 9), font).into_dyn()
                }
                Mark::Dots => Circle::new((x + 11, y), 3, colour.filled()).into_dyn(),
            });
        }
        chart
            .configure_series_labels()
            .position(self.legend.clone())
            .legend_area_size(30)
            .background_style(WHITE.mix(0.9))
            .border_style(RGBColor(190, 190, 190))
            .label_font(("sans-serif", 13))
            .draw()?;
        root.present()?;
        drop((chart, root));
        Ok(svg)
    }
}

/// Drawings in one.
pub fn one_below_the_other(drawings: &[String]) -> String {
    let (width, height) = (SIZE.0, SIZE.1 as usize);
    let total = drawings.len() * height;
    let mut out = format!(
        "<svg width=\"{width}\" height=\"{total}\" viewBox=\"0 0 {width} {total}\" xmlns=\"http://www.w3.org/2000/svg\">\n"
    );
    for (i, drawing) in drawings.iter().enumerate() {
        out += &drawing.replacen("<svg ", &format!("<svg y=\"{}\" ", i * height), 1);
    }
    out + "</svg>\n"
}

/// 0.25, 64, 1e-3: as short as it can be said.
pub fn label(x: &f64) -> String {
    let rounded = short(*x);
    if rounded != 0.0 && !(1e-2..1e5).contains(&rounded.abs()) {
        format!("{rounded:e}")
    } else {
        format!("{rounded}")
    }
}
