//! Ladders on a GPU as an engine of runs: state in, iterations, pages and state out.

use sterna::lanes::one::LN_TAU;

use sterna::engine::{Engine, Journal, Page};
use sterna::{Batch, Ensemble, Evaluation, even_odd};

use super::Cuda;
use super::coordinates::Coordinates;
use super::ladders::{LadderPlan, LadderSampler};
use crate::fit::into_library;
use crate::{Error, Result};

/// Iterations at most between two looks of the host.
const MOST_AT_ONCE: usize = 256;
/// Numbers at most that they may write.
const MOST_NUMBERS: usize = 1 << 22;

/// How far the GPU's log densities may be from the host's, relative to their size.
const TOLERANCE: f64 = 1e-6;

/// Carries out iterations on a GPU.
pub(crate) struct LadderEngine {
    sampler: LadderSampler,
    coordinates: Coordinates,
    room: u64,
    /// Whether the host's target was seen to be the one that is sampled here.
    checked: bool,
}

impl LadderEngine {
    /// For ladders of a plan, which is one in these coordinates.
    pub fn new(device: &Cuda, plan: LadderPlan, coordinates: Coordinates) -> Result<Self> {
        let page = Page { chains: plan.schedule.chains(), dim: plan.target.dim() };
        let room = (MOST_NUMBERS / (plan.ensembles * page.len())).clamp(1, MOST_AT_ONCE) as u64;
        Ok(Self { sampler: LadderSampler::logged(device, plan, room)?, coordinates, room, checked: false })
    }

    fn write_down(&mut self, done: u64, most: u64, from: &[&Ensemble], journal: &mut Journal) -> Result<()> {
        if !self.checked {
            self.check(from)?;
        }
        let iterations = most.min(self.room);
        self.sampler.go_on_from(done, from, &self.coordinates)?;
        self.sampler.advance(iterations)?;
        if let Some(log) = self.sampler.log() {
            log.read(iterations, journal)?;
        }
        self.sampler.read_points(&mut journal.x, &mut journal.target)?;
        self.coordinates.leave(&mut journal.x, &mut journal.target);
        self.coordinates.leave_journal(journal);
        let plan = self.sampler.plan();
        journal.moves = plan.moves as u32;
        journal.evaluations = (done + 1..=done + iterations).map(|t| evaluations(plan, t)).sum();
        Ok(())
    }

    /// Whether the run samples what this engine samples: the geometric path from the same normal to the same target.
    fn check(&mut self, ladders: &[&Ensemble]) -> Result<()> {
        let points = || {
            ladders
                .iter()
                .flat_map(|ensemble| (0..ensemble.points.rows()).map(move |row| (&ensemble.points, row)))
        };
        let dim = self.sampler.plan().target.dim();
        let x: Vec<f64> = points().flat_map(|(points, row)| points.x.row(row)).copied().collect();
        let mut x = Batch::from_vec(dim, x);
        let mut target = Evaluation::zeros(x.rows(), dim);
        self.coordinates.enter(&mut x, &mut target);
        let squares: Vec<f64> = x.iter_rows().map(|z| z.iter().map(|z| z * z).sum()).collect();
        self.sampler.set_points(&x)?;
        self.sampler.read_points(&mut x, &mut target)?;
        self.coordinates.leave(&mut x, &mut target);
        let log_volume = self.coordinates.frame().map_or(0.0, |frame| frame.log_volume());
        let near = |ours: f64, theirs: f64| {
            ours == theirs || !theirs.is_finite() || (ours - theirs).abs() <= TOLERANCE * (1.0 + theirs.abs())
        };
        let same = points().zip(&target.log_density).zip(squares).all(|(((points, row), &ours), squares)| {
            let log_reference = -0.5 * (squares + dim as f64 * LN_TAU) - log_volume;
            near(ours, points.target.log_density[row]) && near(log_reference, points.log_reference[row])
        });
        self.checked = same;
        if same {
            return Ok(());
        }
        let reason =
            "the run's path is not the geometric one from its reference to the target that the GPU was given";
        Err(Error::Config { field: "run.device", value: "cuda".into(), reason })
    }
}

/// Points at which iteration t evaluates the target: fresh draws, leapfrog steps, and steps of journeys.
fn evaluations(plan: &LadderPlan, t: u64) -> u64 {
    let pairs = plan.schedule.pairs();
    let plain = |pair: usize| plan.transport.as_ref().is_some_and(|t| t.plain.get(pair - 1) == Some(&true));
    let carried = even_odd(t, pairs).filter(|&pair| !plain(pair)).count();
    (plan.ensembles * (1 + plan.moves * plan.leapfrog_steps * pairs + 2 * carried * plan.steps())) as u64
}

impl Engine for LadderEngine {
    fn advance(
        &mut self,
        done: u64,
        most: u64,
        ladders: &[&Ensemble],
        journal: &mut Journal,
    ) -> sterna::Result<()> {
        self.write_down(done, most, ladders, journal).map_err(into_library)
    }
}
