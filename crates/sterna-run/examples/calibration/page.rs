//! What was found, as a table and as histograms.

use super::models::Model;
use super::simulations::{BARS, Calibration, DRAWS, Method};
use std::fmt::Write;

/// A method, a model, and how their simulations lie.
pub type Row = (Method, Model, Calibration);

/// The page, which shows the drawing beside it.
pub fn text(rows: &[Row], simulations: u64, seed: u64) -> String {
    let mut out = format!(
        "# Simulation-based calibration\n\n\
         Parameters are drawn from the prior, data from the parameters, and a short run samples the posterior: the rank of the parameters \
         among {DRAWS} of its draws is then even, whatever the posterior, and errors of means and of log Z, in their own standard errors, \
         have mean 0 and standard deviation 1 (Talts et al. 2018; evidence and means by quadrature). {simulations} simulations for each row, seed \
         {seed}:\n\n\
         ```sh\ncargo run --release -p sterna-run --example calibration -- docs/trust {simulations}\n```\n\n\
         Three models with prior N(0, I): `line` (y = θ₁ + θ₂ t + noise), `counts` (log rate 0.5 + 0.7 θ₁ + 0.5 θ₂ t) and `fold` (y = θ₁² + θ₂/2 + \
         noise, two modes). Transports are trained for each simulation, briefly and, but for `affine`, without guard: they need not help, and must not harm. \
         The last rows are twins with a fault.\n\n\
         ![Histograms of ranks]({})\n\n\
         | transport | model | p of ranks: θ₁ | θ₂ | log likelihood | z of means | z of log Z |\n|---|---|---|---|---|---|---|\n",
        "calibration.svg"
    );
    for (method, model, found) in rows {
        let [a, b, c] = found.p_ranks.map(p_value);
        let score = |(mean, sd): (f64, f64)| match mean.abs() < 1e4 {
            true => format!("{mean:+.2} ± {sd:.2}"),
            false => format!("{mean:+.0e} ± {sd:.0e}"),
        };
        let (means, log_z) = (score(found.means), score(found.log_z));
        let _ =
            writeln!(out, "| {} | {} | {a} | {b} | {c} | {means} | {log_z} |", method.name(), model.name());
    }
    let worst = |sound: bool| {
        let of = rows.iter().filter(|(method, ..)| matches!(method, Method::Sound(_)) == sound);
        of.map(|(.., found)| found.worst()).fold(1.0, f64::min)
    };
    let count = rows.iter().filter(|(method, ..)| matches!(method, Method::Sound(_))).count();
    let _ = writeln!(
        out,
        "\nThe smallest of the {} p-values of sound rows is {}; of the twins', {}.",
        5 * count,
        p_value(worst(true)),
        p_value(worst(false))
    );
    out
}

fn p_value(p: f64) -> String {
    match p {
        p if p >= 0.001 => format!("{p:.3}"),
        p if p > 1e-300 => format!("{p:.0e}"),
        _ => "below 1e-300".into(),
    }
}

const WIDTH: f64 = 150.0;
const HEIGHT: f64 = 56.0;
const LEFT: f64 = 190.0;

/// Histograms of the ranks of θ₁, a row for each method and a column for each model; the band holds 99% of even bars.
pub fn drawing(rows: &[Row], simulations: u64) -> String {
    let lines = rows.len().div_ceil(Model::ALL.len());
    let (width, height) = (LEFT + 3.0 * (WIDTH + 20.0), 30.0 + lines as f64 * (HEIGHT + 16.0));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Ranks of the first parameter among draws</title>\n\
         <desc>Even where all is right; the band holds 99 of 100 bars then.</desc>\n\
         <style>text{{fill:#444}}.bar{{fill:#3b6ea5}}.twin{{fill:#b5533c}}.band{{fill:#999;opacity:.3}}\
         @media(prefers-color-scheme:dark){{text{{fill:#ccc}}.bar{{fill:#7aa7d9}}.twin{{fill:#e08a72}}}}</style>\n"
    );
    let mean = simulations as f64 / BARS as f64;
    let band = 2.576 * (mean * (1.0 - 1.0 / BARS as f64)).sqrt();
    for (i, (method, model, found)) in rows.iter().enumerate() {
        let (line, column) = (i / Model::ALL.len(), i % Model::ALL.len());
        let (left, base) =
            (LEFT + column as f64 * (WIDTH + 20.0), 30.0 + line as f64 * (HEIGHT + 16.0) + HEIGHT);
        if line == 0 {
            let _ = writeln!(out, "<text x=\"{left}\" y=\"18\">{}</text>", model.name());
        }
        if column == 0 {
            let _ = writeln!(out, "<text x=\"0\" y=\"{:.0}\">{}</text>", base - HEIGHT / 2.0, method.name());
        }
        let class = if matches!(method, Method::Sound(_)) { "bar" } else { "twin" };
        // Twice the mean fills the height.
        let scale = HEIGHT / (2.0 * mean);
        let (top, tall) = (base - (mean + band) * scale, 2.0 * band * scale);
        let _ = writeln!(
            out,
            "<rect class=\"band\" x=\"{left}\" y=\"{top:.1}\" width=\"{WIDTH}\" height=\"{tall:.1}\"/>"
        );
        for (k, count) in found.histograms[0].iter().enumerate() {
            let tall = (*count as f64 * scale).min(HEIGHT);
            let (x, y, wide) =
                (left + k as f64 * WIDTH / BARS as f64, base - tall, WIDTH / BARS as f64 - 2.0);
            let _ = writeln!(
                out,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{tall:.1}\"/>"
            );
        }
    }
    out + "</svg>\n"
}
