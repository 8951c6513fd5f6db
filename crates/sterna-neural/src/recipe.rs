//! How the batches of a training are drawn, told once: the host follows the recipe as devices do.

use sterna::Batch;
use sterna::lanes::one;
use sterna::streams::{Phase, RowStream, Streams};

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
    pub samples: Vec<f64>,
    /// The schedule.
    pub betas: Vec<f64>,
    /// Pairs of the journeys.
    pub pair: PairChoice,
    /// Their ways.
    pub way: Way,
    /// The inputs, in the order of recording.
    pub fields: Vec<Field>,
}

impl Recipe {
    /// The pair of a journey, from 0. A pair that is drawn takes the first word of the row's stream.
    fn pair_of(&self, step: u64, row: usize, choices: &mut RowStream) -> usize {
        let pairs = self.betas.len() - 1;
        match self.pair {
            PairChoice::Drawn => choices.below(pairs),
            PairChoice::Spread(share) => ((step + (row / share) as u64) % pairs as u64) as usize,
        }
    }

    fn is_forward(&self, row: usize) -> bool {
        match self.way {
            Way::Alternating => row.is_multiple_of(2),
            Way::Forward => true,
            Way::Backward => false,
        }
    }

    /// A sample of a chain.
    fn sample(&self, chain: usize, choices: &mut RowStream) -> &[f64] {
        let from = (chain * self.trained + choices.below(self.trained)) * self.dim;
        &self.samples[from..from + self.dim]
    }
}

/// Batches drawn by the host.
pub struct HostBatches {
    recipe: Recipe,
    keys: Vec<u32>,
    noise: Batch,
    /// What was drawn last: one list for each field.
    drawn: Vec<Vec<f64>>,
}

impl HostBatches {
    /// Of a recipe; steps are counted from 0, whatever its first one is.
    pub fn new(recipe: Recipe) -> Self {
        let cols = recipe.fields.iter().map(|field| if let Field::Noise(cols) = field { *cols } else { 0 });
        Self {
            keys: (0..recipe.journeys as u32).collect(),
            noise: Batch::zeros(recipe.journeys, cols.max().unwrap_or(0)),
            drawn: vec![Vec::new(); recipe.fields.len()],
            recipe,
        }
    }

    /// The recipe.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Draws the batch of a step: the numbers of each field, journey after journey.
    pub fn draw(&mut self, step: u64) -> &[Vec<f64>] {
        let Self { recipe, keys, noise, drawn } = self;
        drawn.iter_mut().for_each(Vec::clear);
        let choices = Streams::new(recipe.choices_seed);
        for row in 0..recipe.journeys {
            let mut choices = choices.row(Phase::Training, step, row as u32);
            let pair = recipe.pair_of(step, row, &mut choices);
            let forward = recipe.is_forward(row);
            for (field, to) in recipe.fields.iter().zip(drawn.iter_mut()) {
                match *field {
                    Field::Lower => to.push(recipe.betas[pair]),
                    Field::Upper => to.push(recipe.betas[pair + 1]),
                    Field::Which => {
                        to.extend((0..recipe.betas.len() - 1).map(|n| f64::from(u8::from(n == pair))));
                    }
                    Field::Forward => to.push(f64::from(u8::from(forward))),
                    Field::Start => {
                        let chain = if forward { pair } else { pair + 1 };
                        to.extend_from_slice(recipe.sample(chain, &mut choices));
                    }
                    Field::AtLower => to.extend_from_slice(recipe.sample(pair, &mut choices)),
                    Field::AtUpper => to.extend_from_slice(recipe.sample(pair + 1, &mut choices)),
                    Field::Times { seed, shortest } => {
                        let uniform = Streams::new(seed).row(Phase::Training, step, row as u32).uniform();
                        let rest =
                            if row.is_multiple_of(2) { 1.0 - uniform } else { one::power(shortest, uniform) };
                        to.extend([if row.is_multiple_of(2) { uniform } else { 1.0 - rest }, rest]);
                    }
                    Field::Noise(_) => {}
                }
            }
        }
        for (field, to) in recipe.fields.iter().zip(drawn.iter_mut()) {
            if let Field::Noise(cols) = *field {
                assert_eq!(cols, noise.dim(), "one length of noise");
                Streams::new(recipe.noise_seed).normals(Phase::Training, step, keys, noise);
                to.extend_from_slice(noise.as_slice());
            }
        }
        drawn
    }

    /// Appends what the recorded loss takes of a step.
    pub fn fill(&mut self, step: u64, inputs: &mut [Vec<f32>]) {
        for (input, drawn) in inputs.iter_mut().zip(self.draw(step)) {
            input.extend(drawn.iter().map(|&x| x as f32));
        }
    }
}
