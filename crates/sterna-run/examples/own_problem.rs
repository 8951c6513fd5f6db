//! What a problem can say beyond its density: names of its parameters, a graph that networks train on, a reference and
//! observables. The book has it in docs/book/rust-target.md.

use sterna::{Batch, Evaluation, Target};
use sterna_neural::{GraphTarget, Value};
use sterna_run::{Config, Job, JobError, Parameter, Problem};

/// A hump at −2 and one at 2 along the first coordinate; the others are normal.
struct Humps;

impl Target for Humps {
    fn dim(&self) -> usize {
        3
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        for (i, x) in x.iter_rows().enumerate() {
            let u = x[0] * x[0] - 4.0;
            out.log_density[i] = -u * u - 0.5 * (x[1] * x[1] + x[2] * x[2]);
            out.score.row_mut(i).copy_from_slice(&[-4.0 * x[0] * u, -x[1], -x[2]]);
        }
        Ok(())
    }
}

impl GraphTarget for Humps {
    fn dim(&self) -> usize {
        3
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        let u = x.slice(0, 1).square() - 4.0;
        x.slice(1, 2).square().sum_cols() * -0.5 - u.square()
    }
}

fn main() -> Result<(), JobError> {
    let folder = std::env::args().nth(1).unwrap_or("runs/humps".into());
    let problem = Problem::new(Humps)
        .called("humps")
        .named([Parameter::scalar("mu"), Parameter::vector("theta", 2)])
        .with_graph(Humps)
        .observe("right", |x| f64::from(u8::from(x[0] > 0.0)));
    let config = Config::parse(
        "[chains]\ncount = 4\nensembles = 2\n[run]\niterations = 4000\n\
         [accelerator]\nkind = \"flow\"\n[training]\ncollect = 500\nsteps = 100",
        &[],
    )?;
    let summary = Job::start_or_resume(problem, config, &folder)?.run(&mut ())?;
    for quantity in summary.parameters.iter().chain(&summary.observables) {
        println!("{}: {:.3} ± {:.3}", quantity.name, quantity.mean, quantity.mcse);
    }
    Ok(())
}
