//! Figures of the page: a chart, or several to choose from.

use super::chart::Chart;
use super::format::escape;
use super::standalone_svg;
use std::fmt::Write;

/// A figure of the page.
pub struct Figure {
    id: String,
    /// Its title, caption and legend are the figure's.
    chart: Chart,
    choice: Option<Choice>,
}

/// Drawings of which one is seen.
struct Choice {
    label: &'static str,
    panels: Vec<(String, Chart)>,
    chosen: usize,
}

impl From<Chart> for Figure {
    fn from(chart: Chart) -> Self {
        Self { id: chart.id().into(), chart, choice: None }
    }
}

impl Figure {
    /// Several drawings, each with the name that a reader picks it by; the frame's words are the figure's.
    pub fn choice(
        id: &str,
        frame: Chart,
        label: &'static str,
        panels: Vec<(String, Chart)>,
        chosen: usize,
    ) -> Self {
        Self { id: id.into(), chart: frame, choice: Some(Choice { label, panels, chosen }) }
    }

    /// Its name: where links lead, and what `--chart` asks for.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// As part of the page.
    pub fn html(&self) -> String {
        let content = match &self.choice {
            None => self.chart.inline_svg(),
            Some(choice) => choice.html(),
        };
        self.chart.figure_around(&self.id, &content)
    }

    /// As a file of its own: the drawing that is seen first.
    pub fn svg(&self) -> String {
        let (width, height, content) = self.first().by_itself();
        standalone_svg(width, height, &content)
    }

    /// The same with its title and legend.
    pub fn titled_svg(&self) -> String {
        let (width, height, content) = self.first().with_legend();
        standalone_svg(width, height, &content)
    }

    fn first(&self) -> &Chart {
        let first = self.choice.as_ref().and_then(|choice| choice.panels.get(choice.chosen));
        first.map_or(&self.chart, |(_, chart)| chart)
    }
}

impl Choice {
    /// A list of names, and the drawings.
    fn html(&self) -> String {
        let (mut names, mut panels) = (String::new(), String::new());
        for (i, (name, chart)) in self.panels.iter().enumerate() {
            let (selected, hidden) = if i == self.chosen { (" selected", "") } else { ("", " hidden") };
            let _ = write!(names, "<option value=\"{i}\"{selected}>{}</option>", escape(name));
            let drawing = chart.inline_svg();
            let _ = write!(panels, "<div class=\"panel\" data-panel=\"{i}\"{hidden}>{drawing}</div>");
        }
        let label = escape(self.label);
        format!("<div class=\"choice\"><label>{label} <select>{names}</select></label>{panels}</div>")
    }
}
