//! The log density of a molecule inside a graph: the force field runs on the host, and its gradient comes with it.

use std::sync::Arc;
use sterna_molecule::{ConditionalAffine, Densities, Molecule};
use sterna_neural::{HostFunction, Value};

/// What an impossible conformation counts: finite, so that the mean of a batch is.
const IMPOSSIBLE: f64 = -1e4;

/// Columns of the result: log density, its gradient by stiff coordinates, its gradient by soft torsions. One call serves
/// all of them, so that the force field is evaluated once for the loss and its derivative.
pub(crate) struct Density {
    pub molecule: Arc<Molecule>,
    pub affine: Arc<ConditionalAffine>,
}

impl Density {
    /// Records the log density of (z, soft), standardised as between the pair's upper end `from` and `beta`.
    pub fn record<'g>(self, [z, soft, from, beta]: [Value<'g>; 4]) -> Value<'g> {
        let cols = 1 + self.affine.stiff() + self.affine.soft();
        z.graph().host(Arc::new(self), &[z, soft, from, beta], cols).slice(0, 1)
    }
}

impl HostFunction for Density {
    fn call(&self, _rows: usize, inputs: &[&[f64]], output: &mut [f64]) -> sterna_neural::Result<()> {
        let [z, soft, from, beta] = inputs else { unreachable!("four inputs") };
        let mut found = Densities::default();
        self.affine.log_density(&self.molecule, from, beta, soft, z, &mut found);
        let (stiff, soft) = (self.affine.stiff(), self.affine.soft());
        for (i, row) in output.chunks_exact_mut(1 + stiff + soft).enumerate() {
            row[0] = found.log_density[i];
            row[1..1 + stiff].copy_from_slice(&found.stiff[i * stiff..(i + 1) * stiff]);
            row[1 + stiff..].copy_from_slice(&found.soft[i * soft..(i + 1) * soft]);
            bound(row);
        }
        Ok(())
    }

    /// Only the log density is differentiated, and only once: its gradient is in the other columns.
    fn pull_back<'g>(&self, _: &[Value<'g>], y: Value<'g>, g: Value<'g>) -> Vec<Option<Value<'g>>> {
        let (stiff, soft) = (self.affine.stiff(), self.affine.soft());
        let g = g.slice(0, 1);
        vec![Some(g * y.slice(1, stiff)), Some(g * y.slice(1 + stiff, soft)), None, None]
    }
}

/// Makes a row finite.
fn bound(row: &mut [f64]) {
    let (log_density, gradient) = row.split_first_mut().expect("a row has its log density");
    if log_density.is_nan() || *log_density < IMPOSSIBLE || gradient.iter().any(|g| !g.is_finite()) {
        *log_density = IMPOSSIBLE;
        gradient.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_rows_are_finite_and_flat() {
        for mut row in [[-2e4, 1.0, 2.0], [f64::NAN, 1.0, 2.0], [-3.0, f64::NAN, 0.0]] {
            bound(&mut row);
            assert_eq!(row, [IMPOSSIBLE, 0.0, 0.0]);
        }
        let mut possible = [-3.0, 1.0, 2.0];
        bound(&mut possible);
        assert_eq!(possible, [-3.0, 1.0, 2.0]);
    }
}
