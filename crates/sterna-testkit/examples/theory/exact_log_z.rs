//! P = Q: every swap accepted, log Z exact.

use crate::drawing::{Axis, Figure, Series, short};
use crate::paths::affine;
use plotters::prelude::SeriesLabelPosition;
use serde_json::{Value, json};
use std::sync::Arc;
use sterna::accelerator::Accelerator;
use sterna::accelerators::Identity;
use sterna::explorers::{Hmc, StepSizes};
use sterna::records::{PairRecord, SamplingRecord};
use sterna::streams::Streams;
use sterna::targets::Normal;
use sterna::{Sampler, Schedule, Workspace, iterate};
use sterna_testkit::moves::{exact_ensemble, sampler};
use sterna_testkit::{ExactLadder, GaussianLadder};

/// Weights of all pairs of `copies` ladders that start from exact draws.
fn sample(sampler: &Sampler, ladder: &dyn ExactLadder, copies: usize, iterations: u64) -> Vec<PairRecord> {
    let start = ladder.draw_ladder(&sampler.schedule, &Streams::new(501), copies);
    let mut ensemble = exact_ensemble(sampler, &start);
    let mut work = Workspace::new(&ensemble);
    let mut record = SamplingRecord::new(&ensemble, iterations, iterations);
    for t in 1..=iterations {
        iterate(t, &mut ensemble, sampler, &mut work, &mut record).expect("the sampler goes on");
    }
    record.counts.pairs
}

pub fn exact_log_z() -> (Value, Figure) {
    let (dim, chains, copies, iterations) = (5, 6, 24, 8192);
    let target = Normal::new(vec![0.6, 0.1, -0.4, -0.9, 1.2], vec![4.0, 0.5, 9.0, 1.5, 25.0]);
    let ladder = GaussianLadder::new(target);
    let schedule = Schedule::uniform(chains);
    let exact = ladder.log_z(1.0).expect("known");
    let local = || Hmc::with_sizes(1, 3, StepSizes::fixed(chains, dim, 0.2), 0.0);
    let members: [(&str, Arc<dyn Accelerator>); 3] = [
        ("parallel tempering", Arc::new(Identity)),
        ("affine map, 10% off", Arc::new(affine(&ladder, &schedule, dim, 1.1))),
        ("exact affine map", Arc::new(affine(&ladder, &schedule, dim, 1.0))),
    ];
    let mut rows = Vec::new();
    let mut series = Vec::new();
    let mut summary = String::new();
    for (i, (name, accelerator)) in members.into_iter().enumerate() {
        let mut sampler = sampler(ladder.path(), schedule.clone(), local(), Identity);
        sampler.accelerator = accelerator;
        sampler.streams = Streams::new(500);
        let pairs = sample(&sampler, &ladder, copies, iterations);
        let accepted: u64 = pairs.iter().map(|p| p.accepted).sum();
        let proposed: u64 = pairs.iter().map(|p| p.proposed).sum();
        let mut points = Vec::new();
        for power in 1..=13 {
            let t = 1usize << power;
            let (mut squares, mut largest): (f64, f64) = (0.0, 0.0);
            for copy in pairs.chunks_exact(chains - 1) {
                let works = copy.iter().map(|p| (&p.forward[..t / 2], &p.backward[..t / 2])).collect();
                let log_z = sterna::estimates::log_z(0.0, &[works]);
                squares += (log_z.geometric_mean - exact).powi(2);
                for estimate in [log_z.forward, log_z.backward, log_z.geometric_mean, log_z.bar] {
                    largest = largest.max((estimate - exact).abs());
                }
            }
            let root_mean_square = (squares / copies as f64).sqrt();
            points.push((t as f64, root_mean_square.max(1e-16)));
            rows.push(json!({
                "accelerator": name, "iterations": t, "root_mean_square_error": short(root_mean_square),
                "largest_error_of_all_estimators": short(largest),
            }));
            if i == 2 && power == 13 {
                summary = format!("exact map: {accepted} of {proposed} swaps accepted, error {largest:.1e}");
            }
        }
        series.push(Series::line(i, name, points.clone()));
        series.push(Series::dots(i, "", points));
    }
    let figure = Figure {
        title: "Error of log Z against iterations, 24 runs each: with P = Q it is rounding",
        x: Axis::log("iterations T", 2.0, 8192.0),
        y: Axis::log("root mean square error of log Z", 1e-16, 10.0),
        series,
        legend: SeriesLabelPosition::MiddleRight,
    };
    (json!({ "summary": summary, "log_z": short(exact), "rows": rows }), figure)
}
