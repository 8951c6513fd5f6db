//! Euler's steps of the Ornstein–Uhlenbeck process against the process itself: the rate of Theorem 3 is attained.

use super::page::{Block, Check, Section};
use super::{Budget, Experiment};
use crate::report::chart::{Axis, Chart, Key};
use serde_json::json;
use std::f64::consts::PI;
use sterna_testkit::euler::euler_error;

/// Total variation times √K, which tends to 1/(2√π).
pub fn section(budget: Budget) -> Section {
    let (paths, powers) = if budget == Budget::Quick { (20_000, 6) } else { (200_000, 9) };
    let limit = 0.5 / PI.sqrt();
    let (mut data, mut measured, mut bound) = (Vec::new(), Vec::new(), Vec::new());
    for power in 0..=powers {
        let steps = 1usize << power;
        let ((distance, error), divergence) = euler_error(steps, paths);
        let root = (steps as f64).sqrt();
        measured.push((steps as f64, distance * root, error * root));
        bound.push((steps as f64, (0.5 * divergence).sqrt() * root));
        data.push(json!({"steps": steps, "total_variation": distance, "standard_error": error,
            "divergence": divergence}));
    }
    let last = (1usize << powers) as f64;
    let mut chart = Chart::new(
        "ou",
        "Total variation of K Euler steps, times √K",
        Axis::log("steps K", 1.0, last),
        Axis::linear("total variation × √K", 0.15, 0.4),
    )
    .wide();
    chart.line("c5 dash", &[(1.0, limit), (last, limit)]);
    chart.line("c2", &bound);
    for &(steps, value, error) in &measured {
        chart.whisker("c1", steps, value - 2.0 * error, value + 2.0 * error);
        chart.dot("c1", steps, value, 3.5);
        chart.tip(steps, value, format!("K = {steps}: {value:.4} ± {error:.4}"));
    }
    chart.key(Key::Dot, "c1", "measured");
    chart.key(Key::Line, "c2", "Pinsker's bound √(KL/2)");
    chart.key(Key::Dash, "c5", "limit 1/(2√π)");
    let &(steps, value, error) = measured.last().expect("several");
    // The distance from the limit falls like 1/K; chance takes at most four standard errors (1 in 16,000).
    let passed = (value - limit).abs() < 0.1 / steps + 4.0 * error;
    let what =
        format!("at K = {steps} total variation × √K is {value:.4} ± {error:.4}; its limit {limit:.4}");
    Section {
        name: Experiment::OrnsteinUhlenbeck.name(),
        budget,
        title: "Euler's steps of an Ornstein–Uhlenbeck process".into(),
        blocks: vec![
            Block::Text(
                "The stationary process dX = −X dt + dB on [0, 1] and its discretisation by K steps. Total variation between \
                 the laws of their paths falls like K to the power −½, so the rate that the paper proves for any K-step \
                 transport cannot be bettered (`docs/theory.md`)."
                    .into(),
            ),
            Block::Charts(vec![chart]),
        ],
        checks: vec![Check { what, passed, must: true }],
        data: data.into(),
    }
}
