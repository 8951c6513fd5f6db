//! Targets of physics as configs have them: log Z and observables against values computed another way.

use sterna_run::{Config, Job, Summary, baseline};

fn config(target: &str) -> Config {
    Config::parse(&format!("[target]\n{target}"), &[]).unwrap()
}

fn sampled(target: &str) -> Summary {
    let folder = tempfile::tempdir().unwrap();
    let config = config(target);
    Job::new(config.problem().unwrap(), config, folder.path().join("run")).unwrap().run(&mut ()).unwrap()
}

/// log Z of three particles: two Jacobi vectors, of which only lengths and the angle between them matter; the midpoint rule.
fn of_three_particles() -> f64 {
    let (pieces, longest) = (240, 6.0);
    let step = longest / f64::from(pieces);
    let pair = |square: f64| {
        let sixth = square.powi(-3);
        2.0 * sixth * (sixth - 2.0)
    };
    let mut sum = 0.0;
    for i in 0..pieces {
        let a = (f64::from(i) + 0.5) * step;
        // |x₁ − x₂|² = 2a², and the third one is at √1.5 b from their middle.
        let of_first = pair(2.0 * a * a) + 0.5 * a * a;
        for j in 0..pieces {
            let b = (f64::from(j) + 0.5) * step;
            for k in 0..80 {
                let cosine = (f64::from(k) + 0.5) / 40.0 - 1.0;
                let (along, far) =
                    (2.0 * (0.5f64.sqrt() * a) * (1.5f64.sqrt() * b) * cosine, 0.5 * a * a + 1.5 * b * b);
                let energy = of_first + pair(far - along) + pair(far + along) + 0.5 * b * b;
                sum += a * a * b * b * (-energy).exp();
            }
        }
    }
    (8.0 * std::f64::consts::PI.powi(2) * sum * step * step / 40.0).ln()
}

/// log Z of a 3 × 3 lattice: the trace of the third power of its transfer matrix, on a grid so fine that the trapezoidal rule is exact
/// to ten digits.
fn of_nine_sites(coupling: f64) -> f64 {
    let (points, step) = (15, 0.22);
    let phi: Vec<f64> = (0..points).map(|i| (i as f64 - 7.0) * step).collect();
    let states = points * points * points;
    let site = |i: usize| -4.0 * phi[i].powi(2) + coupling * phi[i].powi(4);
    let link = |i: usize, j: usize| (phi[i] - phi[j]).powi(2);
    let places = |state: usize| [state / points / points, state / points % points, state % points];
    let row: Vec<f64> = (0..states)
        .map(|state| {
            let [a, b, c] = places(state);
            (-(site(a) + site(b) + site(c) + link(a, b) + link(b, c) + link(c, a))).exp() * step.powi(3)
        })
        .collect();
    let kernel: Vec<f64> = (0..points * points).map(|ij| (-link(ij / points, ij % points)).exp()).collect();
    // One site of a row after the other, so that a row of states costs no square of their number.
    let advance = |state: &[f64]| {
        let mut now: Vec<f64> = state.iter().zip(&row).map(|(s, r)| s * r).collect();
        for stride in [1, points, points * points] {
            let mut next = vec![0.0; states];
            for (to, next) in next.iter_mut().enumerate() {
                let here = to / stride % points;
                let first = to - here * stride;
                *next =
                    (0..points).map(|from| kernel[here * points + from] * now[first + from * stride]).sum();
            }
            now = next;
        }
        now
    };
    // The trace by rows: states that are turned or mirrored count the same.
    let mut trace = 0.0;
    for state in 0..states {
        let [a, b, c] = places(state);
        let mut alike = vec![[a, b, c], [b, c, a], [c, a, b], [c, b, a], [b, a, c], [a, c, b]];
        if alike.iter().any(|other| *other < [a, b, c]) {
            continue;
        }
        alike.sort_unstable();
        alike.dedup();
        let mut unit = vec![0.0; states];
        unit[state] = 1.0;
        trace += advance(&advance(&advance(&unit)))[state] * alike.len() as f64;
    }
    trace.ln()
}

/// Five standard errors: a false alarm in 10⁶ runs, and the seed is fixed. With pairs counted once it is far off.
#[test]
fn three_particles_have_their_partition_function() {
    let found = sampled("kind = \"lennard-jones\"\nparticles = 3").log_z;
    let truth = of_three_particles();
    assert!((found.bar - truth).abs() < 5.0 * found.standard_error, "{found:?}, {truth}");
    let once = 0.5 * truth;
    assert!((found.bar - once).abs() > 5.0 * found.standard_error);
}

/// The same level. A coupling that is off by a tenth is noticed.
#[test]
fn nine_sites_have_their_partition_function() {
    let summary = sampled("kind = \"phi4\"\nlength = 3\ncoupling = 6.975");
    let (found, truth) = (&summary.log_z, of_nine_sites(6.975));
    assert!((found.bar - truth).abs() < 5.0 * found.standard_error, "{found:?}, {truth}");
    assert!((found.bar - of_nine_sites(7.7)).abs() > 5.0 * found.standard_error, "{found:?}");
    let named = |name: &str| summary.observables.iter().find(|observable| observable.name == name).unwrap();
    let (magnetisation, energy) = (named("magnetisation"), named("energy"));
    assert!(energy.mean.is_finite() && named("absolute_magnetisation").mean > 0.0);
    assert!(magnetisation.mean.abs() < 5.0 * magnetisation.mcse, "{magnetisation:?}");
}

/// The same level, for both ways to climb.
#[test]
fn what_climbs_a_tuned_ladder_finds_the_same() {
    let truth = of_three_particles();
    let config = config("kind = \"lennard-jones\"\nparticles = 3");
    for annealing in
        [sterna::annealing::Annealing::importance(32, 64), sterna::annealing::Annealing::sequential(32, 64)]
    {
        let request = baseline::Request { annealing, chains: None };
        let (found, weighted) = baseline::run(config.problem().unwrap(), &config, &request).unwrap();
        assert!((found.log_z - truth).abs() < 5.0 * found.standard_error, "{found:?}, {truth}");
        assert!((found.log_z - 0.5 * truth).abs() > 5.0 * found.standard_error);
        assert_eq!((weighted.values.len(), weighted.values[0].len()), (2048, 6));
        assert!(found.evaluations.annealing > 0 && found.evaluations.tuning > 0);
    }
}

#[test]
fn impossible_numbers_are_named() {
    for (text, parts) in [
        ("kind = \"lennard-jones\"\nparticles = 1", ["target.particles = 1", "2 to 1000"]),
        ("kind = \"phi4\"\nlength = 7", ["target.length = 7", "target.coupling"]),
        ("kind = \"phi4\"\nlength = 2", ["target.length = 2", "3 to 256"]),
        ("kind = \"phi4\"\ncoupling = -1.0", ["target.coupling = -1", "between"]),
        ("kind = \"phi4\"\nmass_squared = nan", ["target.mass_squared = NaN", "between"]),
        ("kind = \"dw4\"\nparticles = 4", ["target.particles", "lennard-jones"]),
    ] {
        let config = Config::parse(&format!("[target]\n{text}"), &[]);
        let said = config
            .and_then(|config| config.problem())
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(parts.iter().all(|part| said.contains(part)), "{text}: {said}");
    }
}
