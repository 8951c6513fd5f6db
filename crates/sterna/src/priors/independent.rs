//! Laws of all parameters together, as a reference to start from.

use super::Law;
use crate::paths::Prior;
use crate::streams::RowStream;
use crate::supports::{Parameter, Parameters};
use crate::{Error, Result};

/// Parameters with a law each, independent of each other.
///
/// ```
/// use sterna::paths::{Prior, Reference};
/// use sterna::priors::Independent;
///
/// let prior = Independent::new([("mu", 1, "normal(0, 5)".parse()?), ("weight", 3, "dirichlet(2)".parse()?)])?;
/// assert_eq!((prior.dim(), prior.parameters().values()), (3, 4));
/// let reference = Reference::prior(prior);
/// # Ok::<(), sterna::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Independent {
    parameters: Parameters,
    laws: Vec<Law>,
    log_constant: f64,
}

impl Independent {
    /// Of names, numbers of values and laws, which say where the values lie.
    ///
    /// # Errors
    /// If a law has numbers that make none, or not of so many values.
    pub fn new<N: Into<String>>(each: impl IntoIterator<Item = (N, usize, Law)>) -> Result<Self> {
        let (mut parameters, mut laws, mut log_constant) = (Vec::new(), Vec::new(), 0.0);
        for (name, size, law) in each {
            law.check(size)?;
            parameters.push(Parameter::from((name, size, law.support())));
            let law = law.of_size(size);
            log_constant += law.log_constant(size);
            laws.push(law);
        }
        if laws.is_empty() {
            return Err(Error::setting("Independent.laws", 0, "a prior has at least one parameter"));
        }
        Ok(Self { parameters: Parameters::new(parameters)?, laws, log_constant })
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

impl Prior for Independent {
    fn dim(&self) -> usize {
        self.parameters.free()
    }

    fn evaluate(&self, x: &[f64], score: &mut [f64]) -> f64 {
        let places = self.parameters.places().zip(&self.laws);
        let each = places.map(|((_, y, _), law)| law.evaluate(&x[y.clone()], &mut score[y]));
        self.log_constant + each.sum::<f64>()
    }

    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) {
        for ((_, y, _), law) in self.parameters.places().zip(&self.laws) {
            law.draw(stream, &mut x[y]);
        }
    }
}
