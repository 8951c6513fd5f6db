//! A line search for Wolfe's conditions, one trial at a time.

/// Trials of one search at most.
pub(super) const MOST_TRIALS: usize = 15;

/// Share of the first slope's promise that a step must keep.
const KEPT: f64 = 1e-4;

/// A step is long enough where the slope along it fell to this share.
const FLATTER: f64 = 0.9;

/// What a trial was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Not high enough: the next is shorter.
    Lower,
    /// High enough, but still rising steeply: the next is longer.
    Higher,
    /// Both conditions hold.
    Enough,
}

/// A search along a line from a point of known height and slope.
#[derive(Debug)]
pub(super) struct Search {
    height: f64,
    slope: f64,
    /// The longest step that was too short, and the shortest that was too long.
    low: f64,
    high: f64,
    /// The next step to try.
    pub(super) step: f64,
    pub(super) trials: usize,
}

impl Search {
    pub(super) fn new(height: f64, slope: f64) -> Self {
        Self { height, slope, low: 0.0, high: f64::INFINITY, step: 1.0, trials: 0 }
    }

    /// The trial had no finite density.
    pub(super) fn retreat(&mut self) -> Verdict {
        self.trials += 1;
        self.high = self.step;
        self.step = self.low + 0.1 * (self.high - self.low);
        Verdict::Lower
    }

    /// Judges the trial by its height and its slope along the line.
    pub(super) fn judge(&mut self, height: f64, slope: f64) -> Verdict {
        self.trials += 1;
        let step = self.step;
        let rounding = 1e-14 * self.height.abs();
        if height < self.height + KEPT * step * self.slope - rounding {
            self.high = step;
            // The top of the parabola through both heights and the first slope.
            let top = 0.5 * self.slope * step * step / (self.height + self.slope * step - height);
            self.step = self.between(top, 0.02);
            Verdict::Lower
        } else if slope > FLATTER * self.slope {
            self.low = step;
            // Where the slope would vanish if it went on falling as it did.
            let top = step * self.slope / (self.slope - slope);
            self.step = if self.high.is_finite() {
                self.between(top, 0.1)
            } else if top > 0.0 {
                top.clamp(2.0 * step, 1000.0 * step)
            } else {
                100.0 * step
            };
            Verdict::Higher
        } else {
            Verdict::Enough
        }
    }

    /// A step between the ends of the interval, not too near to either.
    fn between(&self, wanted: f64, margin: f64) -> f64 {
        let width = self.high - self.low;
        let wanted = if wanted.is_finite() { wanted } else { self.low + 0.5 * width };
        wanted.clamp(self.low + margin * width, self.high - margin * width)
    }
}
