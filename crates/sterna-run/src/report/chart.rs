//! Charts as SVG, made by hand: axes, marks, a legend, words for those who do not see them, and values to hover over.
//!
//! Colours are classes that the page's style sheet fills in, so that a chart follows light and dark.

mod axis;
mod cloud;
mod rose;

pub use axis::Axis;

use super::format::escape;
use std::fmt::Write;

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
    /// Whether it is a circle, without axes.
    is_round: bool,
}

const TOP: f64 = 10.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 44.0;

impl Chart {
    /// An empty chart of the common size.
    pub fn new(id: &str, title: &str, x: Axis, y: Axis) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            caption: String::new(),
            description: String::new(),
            width: 460.0,
            height: 280.0,
            left: 30.0 + 7.2 * y.longest_tick().min(18.0),
            x,
            y,
            marks: String::new(),
            legend: Vec::new(),
            hover: Vec::new(),
            is_round: false,
        }
    }

    /// As wide as the page. On a phone its letters are larger, and ticks want more room.
    pub fn wide(mut self) -> Self {
        self.width = 960.0;
        self.left = 32.0 + 10.0 * self.y.longest_tick().min(16.0);
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

    /// Half the width of a column over a whole number: few columns are not as wide as the page.
    fn half_column(&self) -> f64 {
        const WIDEST: f64 = 28.0;
        (WIDEST / (self.at_x(1.0) - self.at_x(0.0))).min(0.36)
    }

    /// A column over a whole number, from zero to a height.
    pub fn column(&mut self, class: &str, at: f64, height: f64) {
        let half = self.half_column();
        self.bar(class, (at - half, 0.0), (at + half, height));
    }

    /// A level across such a column, a little wider.
    pub fn level(&mut self, class: &str, at: f64, height: f64) {
        let half = 7.0 / 6.0 * self.half_column();
        self.line(class, &[(at - half, height), (at + half, height)]);
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

    /// Ticks and lines across the chart.
    fn grid(&self) -> String {
        let (inner_width, inner_height) = self.inner();
        let (right, bottom) = (self.left + inner_width, TOP + inner_height);
        let mut grid = String::new();
        let inside = |place: f64| (-0.001..=1.001).contains(&place);
        let tick = |x: f64, y: f64, anchor: &str, text: &str| {
            let (x, y, text) = (short(x), short(y), escape(text));
            format!("<text class=\"tick\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>")
        };
        for (x, text) in self.x.tick_list().into_iter().filter(|t| inside(self.x.place(t.0))) {
            let at = short(self.at_x(x));
            grid += &match self.x.grid {
                true => format!("<path class=\"grid\" d=\"M{at} {TOP}V{bottom}\"/>"),
                false => format!("<path class=\"axis\" d=\"M{at} {bottom}v4\"/>"),
            };
            // A long word at the right end must not be cut.
            let half = if self.width > 500.0 { 5.3 } else { 3.7 } * text.chars().count() as f64;
            grid += &match self.at_x(x) + half > self.width {
                true => tick(self.width - 1.0, bottom + 17.0, "end", &text),
                false => tick(self.at_x(x), bottom + 17.0, "middle", &text),
            };
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
            grid += &tick(self.left - 8.0, at + 4.0, "end", &text);
        }
        grid
    }

    /// Axes with their labels, and the grid.
    fn axes(&self) -> String {
        let (inner_width, inner_height) = self.inner();
        let (right, bottom) = (self.left + inner_width, TOP + inner_height);
        format!(
            "{grid}<path class=\"axis\" d=\"M{left} {bottom}H{right}\"/>\
             <text class=\"label\" x=\"{centre}\" y=\"{label_y}\" text-anchor=\"middle\">{x_label}</text>\
             <text class=\"label\" transform=\"translate({edge} {middle}) rotate(-90)\" text-anchor=\"middle\">{y_label}</text>",
            grid = self.grid(),
            left = self.left,
            right = short(right),
            centre = short(self.left + 0.5 * inner_width),
            label_y = self.height - 6.0,
            x_label = escape(&self.x.label),
            middle = short(TOP + 0.5 * inner_height),
            // Letters of wide charts are larger on a phone.
            edge = if self.width > 500.0 { 15 } else { 13 },
            y_label = escape(&self.y.label),
        )
    }

    /// What stands inside the drawing's element.
    fn content(&self) -> String {
        format!(
            "<title id=\"{id}-title\">{title}</title><desc id=\"{id}-desc\">{description}</desc>\
             <g class=\"frame\">{frame}</g><g class=\"marks\">{marks}</g>",
            id = self.id,
            title = escape(&self.title),
            description = escape(&self.description),
            frame = if self.is_round { self.round_frame() } else { self.axes() },
            marks = self.marks,
        )
    }

    /// The drawing alone.
    fn svg(&self, attributes: &str) -> String {
        format!("<svg viewBox=\"0 0 {} {}\" {attributes}>{}</svg>", self.width, self.height, self.content())
    }

    /// Width, height and content of the drawing as a file of its own.
    pub(crate) fn by_itself(&self) -> (f64, f64, String) {
        (self.width, self.height, self.content())
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

    /// Its name on the page.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A figure of the page.
    pub fn figure(&self) -> String {
        self.figure_around(&self.id, &self.inline_svg())
    }

    /// A figure of some name, with something else in the place of the drawing.
    pub(crate) fn figure_around(&self, id: &str, content: &str) -> String {
        let caption =
            if self.caption.is_empty() { String::new() } else { format!("<p>{}</p>", escape(&self.caption)) };
        format!(
            "<figure id=\"{id}\" class=\"chart {size}\"><figcaption><h3>{title}</h3>{caption}</figcaption>{legend}\
             <div class=\"scroll\">{content}</div></figure>",
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
