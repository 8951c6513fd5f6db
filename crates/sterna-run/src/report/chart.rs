//! Charts as SVG, made by hand: axes, marks, a legend, words for those who do not see them, and values to hover over.
//!
//! Colours are classes that the page's style sheet fills in, so that a chart follows light and dark.

use super::format::{escape, number, significant};
use std::fmt::Write;

/// How numbers become places.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    Linear,
    Log,
}

/// One axis: what it measures, and from where to where.
#[derive(Clone, Debug)]
pub struct Axis {
    label: String,
    scale: Scale,
    low: f64,
    high: f64,
    ticks: Option<Vec<(f64, String)>>,
    grid: bool,
}

impl Axis {
    /// Equal steps are equally long. Bounds that are equal or no numbers are moved apart.
    pub fn linear(label: &str, low: f64, high: f64) -> Self {
        let (low, high) = match (low.is_finite() && high.is_finite(), high - low) {
            (false, _) => (0.0, 1.0),
            (true, width) if width > 0.0 => (low, high),
            _ => (low - 0.5 * low.abs().max(1.0), high + 0.5 * high.abs().max(1.0)),
        };
        Self { label: label.into(), scale: Scale::Linear, low, high, ticks: None, grid: true }
    }

    /// Equal ratios are equally long.
    pub fn log(label: &str, low: f64, high: f64) -> Self {
        let mut axis = Self::linear(label, low.max(1e-300), high.max(2e-300));
        axis.low = axis.low.max(1e-300);
        axis.scale = Scale::Log;
        axis
    }

    /// A linear axis over all values, with a margin; `zero` must be on it.
    pub fn around(label: &str, values: impl Iterator<Item = f64>, zero: bool) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for x in values.filter(|x| x.is_finite()) {
            (low, high) = (low.min(x), high.max(x));
        }
        if zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        let margin = 0.06 * (high - low);
        let at_zero = |x: f64| zero && x == 0.0;
        let below = if at_zero(low) { low } else { low - margin };
        let above = if at_zero(high) { high } else { high + margin };
        Self::linear(label, below, above)
    }

    /// Ticks of one's own.
    pub fn ticks(mut self, ticks: Vec<(f64, String)>) -> Self {
        self.ticks = Some(ticks);
        self
    }

    /// Ticks 0, 1, … `count` − 1 at most, evenly thinned, for chains and pairs.
    pub fn whole(label: &str, count: usize, margin: f64) -> Self {
        let step = [1, 2, 5, 10, 20, 50, 100, 200, 500].into_iter().find(|s| count <= 13 * s).unwrap_or(1000);
        let ticks = (0..count).step_by(step).map(|n| (n as f64, n.to_string())).collect();
        let mut axis = Self::linear(label, -margin, count as f64 - 1.0 + margin).ticks(ticks);
        axis.grid = false;
        axis
    }

    /// Without lines across the chart.
    pub fn no_grid(mut self) -> Self {
        self.grid = false;
        self
    }

    fn place(&self, x: f64) -> f64 {
        match self.scale {
            Scale::Linear => (x - self.low) / (self.high - self.low),
            Scale::Log => (x.max(1e-300) / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    fn tick_list(&self) -> Vec<(f64, String)> {
        if let Some(ticks) = &self.ticks {
            return ticks.clone();
        }
        match self.scale {
            Scale::Linear => {
                let step = nice_step((self.high - self.low) / 5.0);
                let first = (self.low / step - 1e-9).ceil() as i64;
                let last = (self.high / step + 1e-9).floor() as i64;
                (first..=last).map(|i| i as f64 * step).map(|x| (x, tick_text(x, step))).collect()
            }
            Scale::Log => {
                let (first, last) =
                    ((self.low.log10() - 1e-9).ceil() as i32, (self.high.log10() + 1e-9).floor() as i32);
                let every = ((last - first) / 5).max(0) + 1;
                let decades: Vec<f64> =
                    (first..=last).filter(|e| (e - last) % every == 0).map(|e| 10f64.powi(e)).collect();
                let all: Vec<f64> = if decades.len() >= 3 {
                    decades
                } else {
                    let fine =
                        (first - 1..=last + 1).flat_map(|e| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(e)));
                    fine.filter(|x| (self.low * 0.999..=self.high * 1.001).contains(x)).collect()
                };
                all.into_iter().map(|x| (x, significant(x, 2))).collect()
            }
        }
    }
}

/// 1, 2 or 5 times a power of ten.
fn nice_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    power * steps.into_iter().find(|s| *s * power >= 0.999 * rough).unwrap_or(10.0)
}

fn tick_text(x: f64, step: f64) -> String {
    if x.abs() < 1e-9 * step {
        return "0".into();
    }
    if x.abs() >= 1e5 && x.abs() < 1e9 {
        let (unit, name) = if x.abs() >= 1e6 { (1e6, "M") } else { (1e3, "k") };
        return number(x / unit) + name;
    }
    // As many digits as tell neighbours apart.
    significant(x, ((x.abs() / step).log10().floor() as usize + 2).clamp(2, 9))
}

/// What stands beside a name in the legend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Key {
    /// A line.
    Line,
    /// A dashed line.
    Dash,
    /// A filled square.
    Area,
    /// A dot.
    Dot,
}

impl Key {
    fn shape(self, class: &str) -> String {
        match self {
            Key::Line => format!("<path class=\"line {class}\" d=\"M0 6H18\"/>"),
            Key::Dash => format!("<path class=\"line dash {class}\" d=\"M0 6H18\"/>"),
            Key::Area => {
                format!("<rect class=\"bar {class}\" x=\"3\" y=\"1\" width=\"11\" height=\"11\"/>")
            }
            Key::Dot => format!("<circle class=\"dot {class}\" cx=\"9\" cy=\"6\" r=\"4\"/>"),
        }
    }
}

/// A chart that marks are added to.
#[derive(Clone, Debug)]
pub struct Chart {
    id: String,
    title: String,
    caption: String,
    description: String,
    width: f64,
    height: f64,
    left: f64,
    x: Axis,
    y: Axis,
    marks: String,
    legend: Vec<(Key, String, String)>,
    hover: Vec<(f64, f64, String)>,
}

const TOP: f64 = 10.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 44.0;

impl Chart {
    /// An empty chart of the common size.
    pub fn new(id: &str, title: &str, x: Axis, y: Axis) -> Self {
        let longest = y.tick_list().iter().map(|t| t.1.chars().count()).max().unwrap_or(1) as f64;
        Self {
            id: id.into(),
            title: title.into(),
            caption: String::new(),
            description: String::new(),
            width: 460.0,
            height: 280.0,
            left: 30.0 + 7.0 * longest.min(14.0),
            x,
            y,
            marks: String::new(),
            legend: Vec::new(),
            hover: Vec::new(),
        }
    }

    /// As wide as the page.
    pub fn wide(mut self) -> Self {
        self.width = 960.0;
        self
    }

    /// Another height.
    pub fn height(mut self, height: f64) -> Self {
        self.height = height;
        self
    }

    /// A sentence below the title: what to look for.
    pub fn caption(mut self, text: impl Into<String>) -> Self {
        self.caption = text.into();
        self
    }

    /// What the chart shows, in words.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// A name in the legend.
    pub fn key(&mut self, key: Key, class: &str, name: impl Into<String>) {
        self.legend.push((key, class.into(), name.into()));
    }

    fn inner(&self) -> (f64, f64) {
        (self.width - self.left - RIGHT, self.height - TOP - BOTTOM)
    }

    /// Horizontal place of a value.
    pub fn at_x(&self, x: f64) -> f64 {
        self.left + self.x.place(x).clamp(-0.02, 1.02) * self.inner().0
    }

    /// Vertical place of a value.
    pub fn at_y(&self, y: f64) -> f64 {
        TOP + (1.0 - self.y.place(y).clamp(-0.02, 1.02)) * self.inner().1
    }

    fn path(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        let mut pen_down = false;
        for &(x, y) in points {
            if x.is_finite() && y.is_finite() {
                let letter = if pen_down { 'L' } else { 'M' };
                let _ = write!(path, "{letter}{} {}", short(self.at_x(x)), short(self.at_y(y)));
            }
            pen_down = x.is_finite() && y.is_finite();
        }
        path
    }

    /// A line through points; numbers that are none break it.
    pub fn line(&mut self, class: &str, points: &[(f64, f64)]) {
        let path = self.path(points);
        let _ = write!(self.marks, "<path class=\"line {class}\" d=\"{path}\"/>");
    }

    /// A line through points that often keep their height: those in the midst of a level are left out.
    pub fn levels(&mut self, class: &str, points: &[(f64, f64)]) {
        let level = |i: usize, j: usize| points.get(i).is_some_and(|p| p.1 == points[j].1);
        let needed = |i: usize| i == 0 || !level(i - 1, i) || !level(i + 1, i);
        let corners: Vec<(f64, f64)> = (0..points.len()).filter(|&i| needed(i)).map(|i| points[i]).collect();
        self.line(class, &corners);
    }

    /// The area between a line and a height.
    pub fn area(&mut self, class: &str, points: &[(f64, f64)], base: f64) {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
        let mut around = vec![(first.0, base)];
        around.extend(points);
        around.push((last.0, base));
        let path = self.path(&around);
        let _ = write!(self.marks, "<path class=\"area {class}\" d=\"{path}Z\"/>");
    }

    /// A filled rectangle between two corners; nothing where one is no number.
    pub fn bar(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        if ![from.0, from.1, to.0, to.1].iter().all(|x| x.is_finite()) {
            return;
        }
        let (x, y) = (self.at_x(from.0.min(to.0)), self.at_y(from.1.max(to.1)));
        let (w, h) =
            ((self.at_x(to.0) - self.at_x(from.0)).abs(), (self.at_y(to.1) - self.at_y(from.1)).abs());
        let _ = write!(
            self.marks,
            "<rect class=\"bar {class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            short(x),
            short(y),
            short(w.max(0.5)),
            short(h)
        );
    }

    /// Many rectangles of one colour: left, low, right and high of each.
    pub fn cells(&mut self, class: &str, cells: &[[f64; 4]]) {
        let mut path = String::new();
        for &[left, low, right, high] in cells {
            let (x, y) = (self.at_x(left), self.at_y(high));
            let (w, h) = (short(self.at_x(right) - x), short(self.at_y(low) - y));
            let _ = write!(path, "M{} {}h{w}v{h}h-{w}z", short(x), short(y));
        }
        if !path.is_empty() {
            let _ = write!(self.marks, "<path class=\"cell {class}\" d=\"{path}\"/>");
        }
    }

    /// A dot.
    pub fn dot(&mut self, class: &str, x: f64, y: f64, radius: f64) {
        if x.is_finite() && y.is_finite() {
            let (x, y) = (short(self.at_x(x)), short(self.at_y(y)));
            let _ =
                write!(self.marks, "<circle class=\"dot {class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>");
        }
    }

    /// A short vertical line: errors, rugs.
    pub fn whisker(&mut self, class: &str, x: f64, low: f64, high: f64) {
        self.line(class, &[(x, low), (x, high)]);
    }

    /// Words inside the chart.
    pub fn text(&mut self, class: &str, x: f64, y: f64, anchor: &str, text: &str) {
        let _ = write!(
            self.marks,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            short(self.at_x(x)),
            short(self.at_y(y)),
            escape(text)
        );
    }

    /// A value to hover over.
    pub fn tip(&mut self, x: f64, y: f64, text: impl Into<String>) {
        if x.is_finite() && y.is_finite() {
            self.hover.push((self.at_x(x), self.at_y(y), text.into()));
        }
    }

    /// The drawing alone.
    fn svg(&self, attributes: &str) -> String {
        let (width, height) = (self.width, self.height);
        let (inner_width, inner_height) = self.inner();
        let (right, bottom) = (self.left + inner_width, TOP + inner_height);
        let mut grid = String::new();
        let inside = |place: f64| (-0.001..=1.001).contains(&place);
        for (x, text) in self.x.tick_list().into_iter().filter(|t| inside(self.x.place(t.0))) {
            let at = short(self.at_x(x));
            if self.x.grid {
                let _ = write!(grid, "<path class=\"grid\" d=\"M{at} {TOP}V{bottom}\"/>");
            } else {
                let _ = write!(grid, "<path class=\"axis\" d=\"M{at} {bottom}v4\"/>");
            }
            let y = short(bottom + 17.0);
            let _ = write!(
                grid,
                "<text class=\"tick\" x=\"{at}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
                escape(&text)
            );
        }
        for (y, text) in self.y.tick_list().into_iter().filter(|t| inside(self.y.place(t.0))) {
            let at = self.at_y(y);
            if self.y.grid {
                let _ = write!(
                    grid,
                    "<path class=\"grid\" d=\"M{} {}H{}\"/>",
                    self.left,
                    short(at),
                    short(right)
                );
            }
            let _ = write!(
                grid,
                "<text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                self.left - 8.0,
                short(at + 4.0),
                escape(&text)
            );
        }
        let middle = short(TOP + 0.5 * inner_height);
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" {attributes}>\
             <title id=\"{id}-title\">{title}</title><desc id=\"{id}-desc\">{description}</desc>\
             <g class=\"frame\">{grid}<path class=\"axis\" d=\"M{left} {bottom}H{right}\"/>\
             <text class=\"label\" x=\"{centre}\" y=\"{label_y}\" text-anchor=\"middle\">{x_label}</text>\
             <text class=\"label\" transform=\"translate(13 {middle}) rotate(-90)\" text-anchor=\"middle\">{y_label}</text></g>\
             <g class=\"marks\">{marks}</g></svg>",
            id = self.id,
            title = escape(&self.title),
            description = escape(&self.description),
            left = self.left,
            right = short(right),
            centre = short(self.left + 0.5 * inner_width),
            label_y = height - 6.0,
            x_label = escape(&self.x.label),
            y_label = escape(&self.y.label),
            marks = self.marks,
        )
    }

    /// The drawing with what a page needs: words, and values to hover over.
    pub fn inline_svg(&self) -> String {
        let mut points = String::from("[");
        for (i, (x, y, text)) in self.hover.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let text = serde_json::to_string(text).expect("text");
            let _ = write!(points, "{comma}[{},{},{text}]", short(*x), short(*y));
        }
        points.push(']');
        let attributes = format!(
            "role=\"img\" aria-labelledby=\"{id}-title {id}-desc\" class=\"{size}\" data-points=\"{points}\"",
            id = self.id,
            size = if self.width > 500.0 { "wide" } else { "half" },
            points = escape(&points)
        );
        self.svg(&attributes)
    }

    /// The names of the legend.
    pub fn legend_html(&self) -> String {
        if self.legend.is_empty() {
            return String::new();
        }
        let mut out = String::from("<ul class=\"legend\">");
        for (key, class, name) in &self.legend {
            let shape = key.shape(class);
            let name = escape(name);
            let _ =
                write!(out, "<li><svg viewBox=\"0 0 18 12\" aria-hidden=\"true\">{shape}</svg>{name}</li>");
        }
        out + "</ul>"
    }

    /// Its title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Width, height and content of the drawing with title and legend above it.
    pub(crate) fn with_legend(&self) -> (f64, f64, String) {
        let mut above = format!(
            "<text class=\"value\" x=\"14\" y=\"20\" style=\"font-weight:640;font-size:14px\">{}</text>",
            escape(&self.title)
        );
        let (mut x, mut y) = (14.0, 40.0);
        for (key, class, name) in &self.legend {
            // Letters are about seven wide.
            let wide = 42.0 + 6.6 * name.chars().count() as f64;
            if x > 14.0 && x + wide > self.width {
                (x, y) = (14.0, y + 18.0);
            }
            let _ = write!(
                above,
                "<g transform=\"translate({x} {})\">{}</g><text x=\"{}\" y=\"{y}\">{}</text>",
                y - 10.0,
                key.shape(class),
                x + 24.0,
                escape(name)
            );
            x += wide;
        }
        let top = if self.legend.is_empty() { 28.0 } else { y + 10.0 };
        let size = format!("width=\"{}\" height=\"{}\" y=\"{top}\"", self.width, self.height);
        (self.width, self.height + top, above + &self.svg(&size))
    }

    /// A figure of the page.
    pub fn figure(&self) -> String {
        self.figure_around(&self.inline_svg())
    }

    /// The figure with something else in the place of the drawing.
    pub fn figure_around(&self, content: &str) -> String {
        let caption =
            if self.caption.is_empty() { String::new() } else { format!("<p>{}</p>", escape(&self.caption)) };
        format!(
            "<figure id=\"{id}\" class=\"chart {size}\"><figcaption><h3>{title}</h3>{caption}</figcaption>{legend}\
             <div class=\"scroll\">{content}</div></figure>",
            id = self.id,
            size = if self.width > 500.0 { "wide" } else { "half" },
            title = escape(&self.title),
            legend = self.legend_html(),
        )
    }
}

/// Tenths of a pixel are enough.
fn short(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        for (low, high) in
            [(0.0, 1.0), (-3.7, 12.2), (0.0, 123_456.0), (1e-7, 3e-7), (5.0, 5.0), (f64::NAN, 1.0)]
        {
            let ticks = Axis::linear("", low, high).tick_list();
            assert!(ticks.len() >= 3 && ticks.len() <= 8, "{low} {high}: {ticks:?}");
            let mut names: Vec<&String> = ticks.iter().map(|t| &t.1).collect();
            names.dedup();
            assert_eq!(names.len(), ticks.len(), "{ticks:?}");
        }
        let names: Vec<String> = Axis::log("", 1e-4, 1.0).tick_list().into_iter().map(|t| t.1).collect();
        assert_eq!(names, ["0.0001", "0.001", "0.01", "0.1", "1"]);
        assert!(Axis::log("", 0.2, 3.0).tick_list().len() >= 3);
    }

    #[test]
    fn levels_leave_out_what_does_not_change() {
        let mut chart = Chart::new("c", "t", Axis::linear("", 0.0, 10.0), Axis::linear("", 0.0, 1.0));
        let points: Vec<(f64, f64)> =
            (0..10).map(|i| (f64::from(i), if i < 5 { 0.0 } else { 1.0 })).collect();
        chart.levels("c1", &points);
        assert_eq!(chart.marks.matches('L').count(), 3, "{}", chart.marks);
    }

    #[test]
    fn numbers_that_are_none_break_a_line() {
        let mut chart = Chart::new("c", "t", Axis::linear("", 0.0, 3.0), Axis::linear("", 0.0, 1.0));
        chart.line("c1", &[(0.0, 0.5), (1.0, f64::NAN), (2.0, 0.5), (3.0, 0.7)]);
        chart.bar("c1", (0.0, 0.0), (1.0, f64::NAN));
        chart.dot("c1", f64::NAN, 0.0, 2.0);
        chart.tip(0.0, f64::NAN, "nothing");
        assert_eq!((chart.marks.matches('M').count(), chart.marks.matches('L').count()), (2, 1));
        assert!(!chart.figure().contains("NaN"));
    }

    #[test]
    fn words_of_others_stay_words() {
        let axis = || Axis::linear("<x>", 0.0, 1.0);
        let mut chart = Chart::new("c", "<script>", axis(), axis()).description("a \"quote\"").caption("<b>");
        chart.tip(0.5, 0.5, "<i>'\"");
        chart.key(Key::Dot, "c1", "<u>");
        let figure = chart.figure();
        for tag in ["<script", "<b>", "<i>", "<u>", "<x>"] {
            assert!(!figure.contains(tag), "{tag}");
        }
    }
}
