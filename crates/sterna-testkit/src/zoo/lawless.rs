//! Densities without an integral: nothing can be drawn from them, and whoever says "sound" is wrong.

use super::{Class, Density, Specimen};

pub(super) fn specimens() -> Vec<Specimen> {
    let slow = Density::new(1, |x, score| {
        score[0] = -x[0] / (1.0 + x[0] * x[0]);
        -0.5 * (x[0] * x[0]).ln_1p()
    });
    let flat = Density::new(2, |_, score| {
        score.fill(0.0);
        0.0
    });
    let growing = Density::new(2, |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = x / (1.0 + x * x));
        x.iter().map(|x| 0.5 * (x * x).ln_1p()).sum()
    });
    let one_sided = Density::new(2, |x, score| {
        // −ln(1 + eˣ): one beside −∞, falling off beside +∞.
        score[0] = -1.0 / (1.0 + (-x[0]).exp());
        score[1] = -x[1];
        -(x[0].max(0.0) + (-x[0].abs()).exp().ln_1p()) - 0.5 * x[1] * x[1]
    });
    let one_flat = Density::new(4, |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -x);
        score[3] = 0.0;
        -0.5 * x[..3].iter().map(|x| x * x).sum::<f64>()
    });
    let upwards = Density::new(3, |x, score| {
        score.fill(0.0);
        score[0] = 0.5;
        score[1] = -x[1];
        score[2] = -x[2];
        0.5 * x[0] - 0.5 * (x[1] * x[1] + x[2] * x[2])
    });
    // Σx is not identified: a flat direction that no coordinate shows.
    let sum_only = Density::new(3, |x, score| {
        let off = x[0] + x[1] + x[2] - 1.0;
        score.fill(-off);
        -0.5 * off * off
    });
    vec![
        Specimen::new("slow", Class::Lawless, "1/√(1 + x²), d = 1", slow),
        Specimen::new("flat", Class::Lawless, "1 everywhere, d = 2", flat),
        Specimen::new("growing", Class::Lawless, "Π √(1 + x²), d = 2", growing),
        Specimen::new("one-sided", Class::Lawless, "1/(1 + eˣ) beside a normal: flat on one side", one_sided),
        Specimen::new(
            "one-flat",
            Class::Lawless,
            "three normals, and a coordinate that nothing holds",
            one_flat,
        ),
        Specimen::new("upwards", Class::Lawless, "e^(x₀/2) beside two normals", upwards),
        Specimen::new("sum-only", Class::Lawless, "a normal of the sum of 3 coordinates alone", sum_only),
    ]
}
