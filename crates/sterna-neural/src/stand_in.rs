//! A training on a GPU that fails on the way (out of memory, above all), and the CPU that then takes over.

use std::sync::Arc;

use sterna::acceleration::{Collected, Fit, Fitted, Fitting};
use sterna::path::AnnealingPath;

use crate::fit::Training;
use crate::{Compute, Error, Result};

/// The fit that `make` makes of these settings. Where they allow the CPU in place of a GPU, a training that the GPU
/// cannot go on with begins anew on the CPU, and an alarm says so.
///
/// # Errors
/// If `make` fails.
pub fn with_stand_in<F: Fit + 'static>(
    training: Training,
    make: impl Fn(Training) -> Result<F>,
) -> Result<Arc<dyn Fit>> {
    let first = Arc::new(make(training.clone())?);
    if !matches!(training.compute, Compute::Cuda { fall_back: true, .. }) {
        return Ok(first);
    }
    let stand_in = Arc::new(make(Training { compute: Compute::Cpu, ..training })?);
    Ok(Arc::new(WithStandIn { first, stand_in }))
}

struct WithStandIn {
    first: Arc<dyn Fit>,
    stand_in: Arc<dyn Fit>,
}

impl Fit for WithStandIn {
    fn on(&self, path: &Arc<dyn AnnealingPath>) -> Option<Arc<dyn Fit>> {
        let (first, stand_in) = (self.first.on(path)?, self.stand_in.on(path)?);
        Some(Arc::new(Self { first, stand_in }))
    }

    fn wants_scores(&self) -> bool {
        self.first.wants_scores()
    }

    fn begin(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> sterna::Result<Box<dyn Fitting>> {
        let begun = self.first.begin(collected.clone(), earlier);
        let stand_in = StandIn { fit: self.stand_in.clone(), collected, earlier: earlier.cloned() };
        let (fitting, replaced) = match begun {
            Ok(fitting) => (fitting, None),
            Err(error) => {
                let reason = failure_of_gpu(error)?;
                (stand_in.begin()?, Some(reason))
            }
        };
        Ok(Box::new(Watched { fitting, stand_in, replaced }))
    }

    fn rebuild(&self, record: &[u8]) -> sterna::Result<Fitted> {
        self.stand_in.rebuild(record)
    }
}

/// What the GPU says; any other error stays one.
fn failure_of_gpu(error: sterna::Error) -> sterna::Result<String> {
    match &error {
        sterna::Error::Transport(inner) if matches!(inner.downcast_ref(), Some(Error::Cuda { .. })) => {
            Ok(inner.to_string())
        }
        _ => Err(error),
    }
}

/// The same training on the CPU, not yet begun.
struct StandIn {
    fit: Arc<dyn Fit>,
    collected: Arc<Collected>,
    earlier: Option<Fitted>,
}

impl StandIn {
    fn begin(&self) -> sterna::Result<Box<dyn Fitting>> {
        self.fit.begin(self.collected.clone(), self.earlier.as_ref())
    }
}

struct Watched {
    fitting: Box<dyn Fitting>,
    stand_in: StandIn,
    /// Why the CPU took over, once it has.
    replaced: Option<String>,
}

impl Fitting for Watched {
    fn progress(&self) -> (u64, u64) {
        self.fitting.progress()
    }

    fn loss(&self) -> Option<f64> {
        self.fitting.loss()
    }

    fn advance(&mut self, most: u64) -> sterna::Result<()> {
        let Err(error) = self.fitting.advance(most) else { return Ok(()) };
        self.replaced = Some(failure_of_gpu(error)?);
        self.fitting = self.stand_in.begin()?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> sterna::Result<Fitted> {
        let mut fitted = self.fitting.finish()?;
        if let Some(reason) = self.replaced {
            let message = format!("training runs on the CPU: {reason}");
            fitted.report.alarms.push(("device-replaced".into(), message));
        }
        Ok(fitted)
    }

    /// The reason (none: empty), a zero, and the state of the training.
    fn save(&self) -> sterna::Result<Vec<u8>> {
        let reason = self.replaced.as_deref().unwrap_or_default().as_bytes();
        Ok([reason, &[0], &self.fitting.save()?].concat())
    }

    fn restore(&mut self, saved: &[u8]) -> sterna::Result<()> {
        let mut parts = saved.splitn(2, |&byte| byte == 0);
        let (Some(reason), Some(state)) = (parts.next(), parts.next()) else {
            return Err(sterna::BadState::OfFit("it holds no state of a training").into());
        };
        if !reason.is_empty() {
            self.replaced = Some(String::from_utf8_lossy(reason).into_owned());
            self.fitting = self.stand_in.begin()?;
        }
        self.fitting.restore(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna::Batch;
    use sterna::acceleration::FitReport;
    use sterna::accelerators::Identity;
    use sterna::schedule::Schedule;

    /// Ten steps, of which `most` can be made.
    struct Failing {
        most: u64,
        with: fn() -> Error,
    }

    struct Steps(u64, u64, fn() -> Error);

    impl Fit for Failing {
        fn begin(&self, _: Arc<Collected>, _: Option<&Fitted>) -> sterna::Result<Box<dyn Fitting>> {
            Ok(Box::new(Steps(0, self.most, self.with)))
        }
        fn rebuild(&self, _: &[u8]) -> sterna::Result<Fitted> {
            unreachable!("nobody asks")
        }
    }

    impl Fitting for Steps {
        fn progress(&self) -> (u64, u64) {
            (self.0, 10)
        }
        fn advance(&mut self, most: u64) -> sterna::Result<()> {
            let end = self.0.saturating_add(most).min(10);
            self.0 = end.min(self.1);
            if self.0 < end { Err(crate::into_library((self.2)())) } else { Ok(()) }
        }
        fn finish(self: Box<Self>) -> sterna::Result<Fitted> {
            let report = FitReport { steps: self.0, ..FitReport::default() };
            Ok(Fitted { accelerator: Arc::new(Identity), path: None, record: Arc::new([]), report })
        }
        fn save(&self) -> sterna::Result<Vec<u8>> {
            Ok(vec![0, self.0 as u8])
        }
        fn restore(&mut self, saved: &[u8]) -> sterna::Result<()> {
            self.0 = u64::from(saved[1]);
            Ok(())
        }
    }

    fn full() -> Error {
        Error::Cuda { what: "no room for 7 bytes".into(), why: "out of memory".into() }
    }

    fn begin(fall_back: bool, with: fn() -> Error) -> Box<dyn Fitting> {
        let training = Training {
            compute: Compute::Cuda { precision: Default::default(), fall_back },
            ..Training::default()
        };
        let on_cores = |training: &Training| training.compute == Compute::Cpu;
        let make = |training: Training| Ok(Failing { most: if on_cores(&training) { 10 } else { 4 }, with });
        let collected = Collected {
            scores: Vec::new(),
            round: 0,
            prospect: Default::default(),
            schedule: Schedule::uniform(2),
            samples: vec![],
            local_barrier: vec![],
            local_variance: Batch::zeros(0, 1),
        };
        with_stand_in(training, make).unwrap().begin(Arc::new(collected), None).unwrap()
    }

    fn completed(mut fitting: Box<dyn Fitting>) -> sterna::Result<FitReport> {
        while fitting.progress().0 < 10 {
            fitting.advance(3)?;
        }
        Ok(fitting.finish()?.report)
    }

    #[test]
    fn the_cpu_takes_over_where_it_may() {
        let report = completed(begin(true, full)).unwrap();
        assert_eq!(report.steps, 10);
        let [(name, message)] = &report.alarms[..] else { panic!("{:?}", report.alarms) };
        assert!(name == "device-replaced" && message.contains("no room for 7 bytes"), "{message}");
        assert!(completed(begin(false, full)).unwrap_err().to_string().contains("no room for 7 bytes"));
        let other = || Error::Dimension { expected: 1, given: 2 };
        assert!(completed(begin(true, other)).is_err(), "not the GPU's fault");
    }

    #[test]
    fn an_interrupted_training_stays_where_it_was() {
        for (steps, alarms) in [(1, 0), (2, 1)] {
            let mut fitting = begin(true, full);
            (0..steps).for_each(|_| fitting.advance(3).unwrap());
            let saved = fitting.save().unwrap();
            let mut restored = begin(true, full);
            restored.restore(&saved).unwrap();
            assert_eq!(restored.progress(), fitting.progress());
            assert_eq!(restored.finish().unwrap().report.alarms.len(), alarms);
        }
    }
}
