//! How the batches of a training are drawn, told so that a device can draw them itself.

/// Which pair a journey belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairChoice {
    /// Any, by the first word of the row's stream.
    Drawn,
    /// All in turn; so many journeys in a row share one.
    Spread(usize),
}

/// Which way a journey goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Every second one forward, the others backward.
    Alternating,
    /// All forward.
    Forward,
    /// All backward.
    Backward,
}

/// One input of the recorded loss. Samples take the words of the row's stream one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field {
    /// β of the pair's lower chain.
    Lower,
    /// β of its upper chain.
    Upper,
    /// 1 at the pair, 0 at the others.
    Which,
    /// 1 for journeys that go forward, 0 for others.
    Forward,
    /// A sample of the chain that the journey starts on.
    Start,
    /// A sample of the lower chain.
    AtLower,
    /// A sample of the upper chain.
    AtUpper,
    /// So many standard normals.
    Noise(usize),
    /// A time s and, lest rounding swallow it, 1 − s: s is uniform in even rows, 1 − s log-uniform in odd ones.
    Times {
        /// Seed of times.
        seed: u64,
        /// The smallest 1 − s of odd rows.
        shortest: f64,
    },
}

/// Batches as functions of (seed, step, row).
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// Journeys of a step.
    pub journeys: usize,
    /// Rows of the recorded batch.
    pub rows: usize,
    /// Seed of pairs and samples.
    pub choices_seed: u64,
    /// Seed of noise.
    pub noise_seed: u64,
    /// Number of the first step.
    pub first_step: u64,
    /// Length of a point.
    pub dim: usize,
    /// Samples of each chain.
    pub trained: usize,
    /// `[chain][sample][coordinate]`.
    pub samples: Vec<f32>,
    /// The schedule.
    pub betas: Vec<f64>,
    /// Pairs of the journeys.
    pub pair: PairChoice,
    /// Their ways.
    pub way: Way,
    /// The inputs, in the order of recording.
    pub fields: Vec<Field>,
}
