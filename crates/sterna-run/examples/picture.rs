//! Draws the picture of the README: `cargo run --release -p sterna-run --example picture > docs/picture.svg`.
//!
//! 1,000 of 20,000 draws of GMM-50 by parallel tempering and by accelerated swaps with twelve chains, too few for the
//! former, beside exact draws.

use std::fmt::Write;
use sterna_run::{Config, sample};

const SIDE: f64 = 300.0;
const GAP: f64 = 40.0;

struct Panel {
    title: String,
    points: Vec<[f64; 2]>,
}

fn run(name: &str, accelerator: &[(&str, &str)]) -> Panel {
    let mut settings = vec![
        ("target.dim", "50"),
        ("chains.count", "12"),
        ("run.iterations", "20000"),
        ("run.thin", "20"),
        ("seed", "2"),
    ];
    settings.extend_from_slice(accelerator);
    let config = Config::parse("", &settings).expect("a valid config");
    let (run, summary) = sample(&config, &mut ()).expect("a built-in target");
    let draws = &run.records().next().expect("sampled").draws[0];
    let points = draws.x.chunks_exact(50).map(|x| [x[0], x[1]]).collect();
    Panel { title: format!("{name}: {} round trips", summary.swaps.round_trips), points }
}

fn main() {
    let exact = {
        let target = sterna::targets::Gmm::paper(50);
        let streams = sterna::Streams::new(3);
        let draw = |i: u32| {
            let mut x = vec![0.0; 50];
            sterna::Target::draw(&target, &mut streams.row(sterna::streams::Phase::Exact, 0, i), &mut x);
            [x[0], x[1]]
        };
        Panel { title: "exact draws".into(), points: (0..1000).map(draw).collect() }
    };
    let panels = [
        run("parallel tempering", &[]),
        run(
            "accelerated, K = 5",
            &[("accelerator.kind", "diffusion"), ("accelerator.score", "exact"), ("accelerator.steps", "5")],
        ),
        exact,
    ];
    let width = panels.len() as f64 * (SIDE + GAP) - GAP + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {h}\" font-family=\"sans-serif\" \
         font-size=\"15\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        h = SIDE + 50.0
    );
    for (i, panel) in panels.iter().enumerate() {
        let left = 10.0 + i as f64 * (SIDE + GAP);
        let _ = writeln!(svg, "<text x=\"{left}\" y=\"24\" fill=\"#222\">{}</text>", panel.title);
        let _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"36\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#999\"/>"
        );
        for [x, y] in &panel.points {
            let place = |v: f64| (v.clamp(-1.15, 1.15) / 1.15 + 1.0) * SIDE / 2.0;
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\" fill=\"#1667a8\" fill-opacity=\"0.45\"/>",
                left + place(*x),
                36.0 + SIDE - place(*y)
            );
        }
    }
    println!("{svg}</svg>");
}
