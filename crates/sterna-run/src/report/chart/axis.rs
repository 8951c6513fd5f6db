//! Axes: what they measure, from where to where, and their ticks.

use crate::report::format::significant;

/// How numbers become places.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    Linear,
    Log,
}

/// One axis: what it measures, and from where to where.
#[derive(Clone, Debug)]
pub struct Axis {
    pub(super) label: String,
    scale: Scale,
    low: f64,
    high: f64,
    ticks: Option<Vec<(f64, String)>>,
    pub(super) grid: bool,
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

    /// From 0 at the beginning of the axis to 1 at its end.
    pub(super) fn place(&self, x: f64) -> f64 {
        match self.scale {
            Scale::Linear => (x - self.low) / (self.high - self.low),
            Scale::Log => (x.max(1e-300) / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    /// Ticks that are inside, and perhaps some beyond.
    pub(super) fn tick_list(&self) -> Vec<(f64, String)> {
        if let Some(ticks) = &self.ticks {
            return ticks.clone();
        }
        match self.scale {
            Scale::Linear => self.linear_ticks(),
            Scale::Log => self.log_ticks(),
        }
    }

    /// Letters of the longest tick.
    pub(super) fn longest_tick(&self) -> f64 {
        self.tick_list().iter().map(|tick| tick.1.chars().count()).max().unwrap_or(1) as f64
    }

    fn linear_ticks(&self) -> Vec<(f64, String)> {
        let step = nice_step((self.high - self.low) / 5.0);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let unit = unit(self.low.abs().max(self.high.abs()));
        (first..=last).map(|i| i as f64 * step).map(|x| (x, tick_text(x, step, unit))).collect()
    }

    /// Powers of ten; of a short axis also twice and five times these, of a very short one even steps.
    fn log_ticks(&self) -> Vec<(f64, String)> {
        let (first, last) =
            ((self.low.log10() - 1e-9).ceil() as i32, (self.high.log10() + 1e-9).floor() as i32);
        let every = ((last - first) / 5).max(0) + 1;
        let decades: Vec<f64> =
            (first..=last).filter(|e| (e - last) % every == 0).map(|e| 10f64.powi(e)).collect();
        let all: Vec<f64> = if decades.len() >= 3 {
            decades
        } else {
            let fine = (first - 1..=last + 1).flat_map(|e| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(e)));
            fine.filter(|x| (self.low * 0.999..=self.high * 1.001).contains(x)).collect()
        };
        match all.len() {
            0..3 => self.linear_ticks(),
            _ => all.into_iter().map(|x| (x, significant(x, 2))).collect(),
        }
    }
}

/// 1, 2 or 5 times a power of ten.
fn nice_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    power * steps.into_iter().find(|s| *s * power >= 0.999 * rough).unwrap_or(10.0)
}

/// Thousands and millions, where an axis goes that far.
fn unit(far: f64) -> (f64, &'static str) {
    match far {
        1e5..1e6 => (1e3, "k"),
        1e6..1e9 => (1e6, "M"),
        _ => (1.0, ""),
    }
}

fn tick_text(x: f64, step: f64, (unit, name): (f64, &str)) -> String {
    if x.abs() < 1e-9 * step {
        return "0".into();
    }
    // As many digits as tell neighbours apart.
    significant(x / unit, ((x.abs() / step).log10().floor() as usize + 2).clamp(2, 9)) + name
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
        // However short, and wherever it lies.
        for (low, high) in [(0.02, 0.045), (0.3, 0.7), (0.21, 0.49), (0.9, 2.1), (3.0, 31.0), (1e-4, 4e-4)] {
            let inside = |axis: &Axis, x: f64| (0.0..=1.0).contains(&axis.place(x));
            let axis = Axis::log("", low, high);
            let seen = axis.tick_list().iter().filter(|tick| inside(&axis, tick.0)).count();
            assert!((2..=8).contains(&seen), "{low} {high}: {:?}", axis.tick_list());
        }
    }

    /// One unit for all of an axis.
    #[test]
    fn ticks_of_an_axis_share_their_unit() {
        let names = |high| -> Vec<String> {
            Axis::linear("", 0.0, high).tick_list().into_iter().map(|t| t.1).collect()
        };
        assert_eq!(names(180_000.0), ["0", "50k", "100k", "150k"]);
        assert_eq!(names(2_100_000.0), ["0", "0.5M", "1M", "1.5M", "2M"]);
        assert_eq!(names(9_000.0), ["0", "2000", "4000", "6000", "8000"]);
    }
}
