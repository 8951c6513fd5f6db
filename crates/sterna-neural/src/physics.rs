//! Clusters and lattice fields inside a graph: the targets of physics as operations.

use sterna::Target;
use sterna::targets::{LennardJones, Phi4, Phi4InModes};

use crate::graph::Value;
use crate::particles::Particles;
use crate::target::GraphTarget;

impl GraphTarget for LennardJones {
    fn dim(&self) -> usize {
        Target::dim(self)
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        let count = self.particles();
        let positions = Particles { count, space: 3 }.lift(x);
        let pairs = (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j)));
        let (from, to): (Vec<_>, Vec<_>) = pairs.unzip();
        let apart = positions.gather(&from) - positions.gather(&to);
        // Two particles in one place have no direction to part in: a large number rather than none.
        let inverse = (apart.dot(apart) + 1e-24).recip();
        let sixth = inverse * inverse * inverse;
        let pairs = (sixth * (sixth - 2.0)).reshape(1, from.len()).sum_cols();
        pairs * -2.0 - x.dot(x) * 0.5
    }
}

impl GraphTarget for Phi4 {
    fn dim(&self) -> usize {
        Target::dim(self)
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        let sites = Target::dim(self);
        let field = x.reshape(sites, 1);
        let links = self.neighbours().map(|to| (field - field.gather(&to)).square());
        let square = field.square();
        let sites_alone = square * (square * self.coupling() + self.mass_squared());
        (links[0] + links[1] + sites_alone).reshape(1, sites).sum_cols() * -1.0
    }
}

impl GraphTarget for Phi4InModes {
    fn dim(&self) -> usize {
        Target::dim(self)
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        let (length, sites, modes) = (self.lattice().length(), Target::dim(self), self.modes());
        let waves = x.graph().constant(length, modes.waves());
        let turned = |field: Value<'g>| field.reshape(length, length).matmul(waves).reshape(sites, 1);
        let transposed: Vec<usize> = (0..sites).map(|site| site % length * length + site / length).collect();
        // Which edge is which changes no action: the field stays transposed.
        let field = turned(turned(x * x.graph().constant(sites, modes.widths())).gather(&transposed));
        self.lattice().log_density(field.reshape(1, sites)) + modes.log_volume()
    }
}
