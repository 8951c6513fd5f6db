//! A density of your own, sampled into a run folder. Started again, it goes on where it stopped. The book has it as
//! docs/book/rust-target.md.

use sterna::{Batch, Evaluation, Target};
use sterna_run::{Config, Job, JobError, Problem};

/// Two humps, at −2 and 2.
pub struct TwoHumps;

impl Target for TwoHumps {
    fn dim(&self) -> usize {
        1
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        for i in 0..x.rows() {
            let x = x.row(i)[0];
            out.log_density[i] = -(x * x - 4.0).powi(2);
            out.score.row_mut(i)[0] = -4.0 * x * (x * x - 4.0);
        }
        Ok(())
    }
}

fn main() -> Result<(), JobError> {
    let folder = std::env::args().nth(1).unwrap_or("runs/two-humps".into());
    let config = Config::parse("[chains]\ncount = 6\nensembles = 2\n[run]\niterations = 20000", &[])?;
    let problem = Problem::new(TwoHumps).called("two-humps");
    let summary = Job::start_or_resume(problem, config, &folder)?.run(&mut ())?;
    println!("log Z = {:.3} ± {:.3}", summary.log_z.bar, summary.log_z.standard_error);
    summary.alarms.iter().for_each(|alarm| println!("{}: {}", alarm.code, alarm.message));
    println!("{folder}/report.html");
    Ok(())
}
