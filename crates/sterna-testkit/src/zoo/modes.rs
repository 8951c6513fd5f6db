//! Several modes: of unequal weights and widths, in rings, corners and crates.

use super::{Class, Density, Expectation, Hump, Specimen, integral, mixture, of_first};

pub(super) fn specimens() -> Vec<Specimen> {
    vec![
        two_normals(),
        diagonal(),
        unequal(),
        three_widths(),
        spike_on_hill(),
        thin_apart(),
        one_to_thirty(),
        spikes_apart(),
        corners(),
        ring(),
        light(),
        grid(),
        egg_crate(),
        bimodal_each(),
    ]
}

fn of_humps(name: &'static str, about: &'static str, humps: Vec<Hump>, thresholds: &[f64]) -> Specimen {
    let known = of_first(&humps, thresholds);
    Specimen::new(name, Class::Modes, about, mixture(humps)).with_log_z(0.0).knowing(known)
}

fn two_normals() -> Specimen {
    let humps = vec![Hump::new(0.5, vec![0.0; 5], 1.0), Hump::new(0.5, vec![10.0; 5], 1.0)];
    of_humps("two-normals", "½ N(0, 1) + ½ N(10, 1), d = 5", humps, &[0.0, 5.0])
}

fn diagonal() -> Specimen {
    let humps = vec![Hump::new(0.5, vec![-2.0; 8], 0.5), Hump::new(0.5, vec![3.0; 8], 0.5)];
    of_humps("diagonal", "½ N(−2, ½) + ½ N(3, ½) on the diagonal, d = 8", humps, &[-2.0, 0.5])
}

fn unequal() -> Specimen {
    let humps = vec![Hump::new(0.9, vec![0.0; 4], 1.0), Hump::new(0.1, vec![4.0; 4], 0.3)];
    of_humps("unequal", "0.9 N(0, 1) + 0.1 N(4, 0.3), d = 4", humps, &[0.0, 2.5])
}

fn three_widths() -> Specimen {
    let humps = vec![
        Hump::new(0.4, vec![0.0; 3], 1.0),
        Hump::new(0.3, vec![5.0; 3], 0.2),
        Hump::new(0.3, vec![-8.0; 3], 3.0),
    ];
    of_humps("three-widths", "0.4 N(0, 1) + 0.3 N(5, 0.2) + 0.3 N(−8, 3), d = 3", humps, &[-5.0, 0.0, 4.0])
}

/// One in some 1,300 draws of the hill falls where the spike is denser than it: seldom, but not beyond what a run may see.
fn spike_on_hill() -> Specimen {
    let humps = vec![Hump::new(0.5, vec![0.0; 3], 1.0), Hump::new(0.5, vec![1.0; 3], 0.05)];
    let about = "½ N(0, 1) + ½ N(1, 0.05), d = 3: a spike on a hill";
    of_humps("spike-on-hill", about, humps, &[0.0, 0.9, 1.0])
}

/// Beside a hill, where next to none of its draws come.
fn thin_apart() -> Specimen {
    let humps = vec![Hump::new(0.5, vec![0.0; 4], 1.0), Hump::new(0.5, vec![4.0, 0.0, 0.0, 0.0], 0.15)];
    of_humps("thin-apart", "½ N(0, 1) + ½ N((4, 0, 0, 0), 0.15), d = 4", humps, &[0.0, 3.9])
}

fn one_to_thirty() -> Specimen {
    let humps = vec![Hump::new(0.5, vec![0.0; 2], 3.0), Hump::new(0.5, vec![6.0; 2], 0.1)];
    of_humps("one-to-thirty", "½ N(0, 3) + ½ N(6, 0.1), d = 2", humps, &[0.0, 5.9])
}

fn spikes_apart() -> Specimen {
    let at = |weight: f64, at: f64, width: f64| Hump::new(weight, vec![at; 3], width);
    let humps = vec![at(0.4, 0.0, 1.5), at(0.3, -2.0, 0.1), at(0.3, 1.5, 0.2)];
    let about = "0.4 N(0, 1.5) + 0.3 N(−2, 0.1) + 0.3 N(1.5, 0.2), d = 3";
    of_humps("spikes-apart", about, humps, &[-1.8, 1.4])
}

fn corners() -> Specimen {
    let corner = |i: usize| (0..3).map(|j| if i >> j & 1 == 1 { 3.0 } else { -3.0 }).collect();
    let humps = (0..8).map(|i| Hump::new(0.125, corner(i), 0.5)).collect();
    of_humps("corners", "normals of width ½ at the corners of a cube of side 6", humps, &[-3.0, 0.0])
}

fn ring() -> Specimen {
    let at = |i: usize| {
        let angle = std::f64::consts::TAU * i as f64 / 8.0;
        vec![5.0 * angle.cos(), 5.0 * angle.sin()]
    };
    let humps = (0..8).map(|i| Hump::new(0.125, at(i), 0.25)).collect();
    of_humps("ring", "eight normals of width ¼ on a circle of radius 5", humps, &[-4.0, 1.0])
}

fn light() -> Specimen {
    let humps = vec![Hump::new(0.97, vec![0.0; 2], 1.0), Hump::new(0.03, vec![12.0; 2], 1.0)];
    of_humps("light", "0.97 N(0, 1) + 0.03 N(12, 1), d = 2", humps, &[0.0, 6.0])
}

fn grid() -> Specimen {
    let at = |i: usize| vec![3.0 * (i % 5) as f64 - 6.0, 3.0 * (i / 5) as f64 - 6.0];
    let humps = (0..25).map(|i| Hump::new(0.04, at(i), 0.3)).collect();
    of_humps("grid", "25 normals of width 0.3 on a grid, 3 apart", humps, &[-4.5, 1.5])
}

/// Σ 10 (cos 2πx − 1) − x²/50.
fn egg_crate() -> Specimen {
    use std::f64::consts::TAU;
    let one = |x: f64| 10.0 * ((TAU * x).cos() - 1.0) - x * x / 50.0;
    let density = Density::new(2, move |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -10.0 * TAU * (TAU * x).sin() - x / 25.0);
        x.iter().map(|&x| one(x)).sum()
    });
    let z = integral(|x| one(x).exp(), -60.0, 60.0, 24_000);
    let variance = integral(|x| x * x * one(x).exp(), -60.0, 60.0, 24_000) / z;
    let above = integral(|x| one(x).exp(), 2.5, 60.0, 24_000) / z;
    let about = "Σ 10 (cos 2πx − 1) − x²/50, d = 2: hundreds of modes";
    Specimen::new("egg-crate", Class::Modes, about, density).with_log_z(2.0 * z.ln()).knowing([
        Expectation::mean("E[x0²]", variance, |x| x[0] * x[0]),
        Expectation::mean("E[x1]", 0.0, |x| x[1]),
        Expectation::below(0, 2.5, 1.0 - above),
    ])
}

/// A double well in each of six coordinates, tilted: 64 modes of unequal weight.
fn bimodal_each() -> Specimen {
    let one = |x: f64| -(x * x - 4.0) * (x * x - 4.0) / 4.0 + 0.2 * x;
    let density = Density::new(6, move |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -x * (x * x - 4.0) + 0.2);
        x.iter().map(|&x| one(x)).sum()
    });
    let z = integral(|x| one(x).exp(), -8.0, 8.0, 4000);
    let below = integral(|x| one(x).exp(), -8.0, 0.0, 4000) / z;
    let mean = integral(|x| x * one(x).exp(), -8.0, 8.0, 4000) / z;
    let about = "a tilted double well in each of 6 coordinates: 64 modes";
    Specimen::new("double-wells", Class::Modes, about, density).with_log_z(6.0 * z.ln()).knowing([
        Expectation::below(0, 0.0, below),
        Expectation::below(5, 0.0, below),
        Expectation::mean("E[x3]", mean, |x| x[3]),
    ])
}
