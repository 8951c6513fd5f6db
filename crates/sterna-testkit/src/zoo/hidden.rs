//! Modes that nobody can see: what no evaluation came near, nobody knows of. A class of its own, since no verdict can be right here.

use super::{Class, Hump, Specimen, mixture, of_first};

pub(super) fn specimens() -> Vec<Specimen> {
    let of = |name, about, humps: Vec<Hump>, thresholds: &[f64]| {
        let known = of_first(&humps, thresholds);
        Specimen::new(name, Class::Hidden, about, mixture(humps)).with_log_z(0.0).knowing(known)
    };
    let beyond = vec![Hump::new(0.5, vec![0.0; 6], 1.0), Hump::new(0.5, vec![30.0; 6], 1.0)];
    let spike = vec![Hump::new(0.5, vec![0.0; 6], 1.0), Hump::new(0.5, vec![3.0; 6], 0.02)];
    let hole = vec![Hump::new(0.01, vec![0.0; 8], 1.0), Hump::new(0.99, vec![5.0; 8], 0.02)];
    vec![
        of("mode-at-30", "½ N(0, 1) + ½ N(30, 1), d = 6", beyond, &[15.0]),
        of("spike", "½ N(0, 1) + ½ N(3, 0.02), d = 6", spike, &[2.8]),
        of("hole", "0.01 N(0, 1) + 0.99 N(5, 0.02), d = 8", hole, &[4.8]),
    ]
}
