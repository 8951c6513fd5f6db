//! A coin and a direction, written in their values: the whole program of docs/book/parameters.md.

use sterna::supports::{Constrained, Parameters, Support};
use sterna_run::{Config, Job, Problem};

fn main() -> Result<(), sterna_run::JobError> {
    let parameters = Parameters::new([
        ("heads", Support::Interval { lower: 0.0, upper: 1.0 }).into(),
        ("north", Support::Circle).into(),
    ])?;
    let density = Constrained::row_by_row(parameters, |values, gradient| {
        let (p, angle) = (values[0], values[1]);
        (gradient[0], gradient[1]) = (5.0 / p - 3.0 / (1.0 - p), -4.0 * (angle - 3.0).sin());
        5.0 * p.ln() + 3.0 * (1.0 - p).ln() + 4.0 * (angle - 3.0).cos()
    });
    let problem = Problem::constrained(density).called("coin").observe("odds", |x| x[0] / (1.0 - x[0]));
    let folder = std::env::args().nth(1).unwrap_or("runs/coin".into());
    let summary = Job::new(problem, Config::default(), folder)?.run(&mut ())?;
    println!("log Z = {:.3} ± {:.3}", summary.log_z.bar, summary.log_z.standard_error);
    Ok(())
}
