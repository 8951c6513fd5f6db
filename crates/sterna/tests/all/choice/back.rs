//! Chains that moved in vain go back beside a second leg, which rests and shows few of its swaps.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sterna::acceleration::{
    Acceleration, Attempt, Choice, Collected, Fit, FitAffine, FitReport, Fitted, Fitting, Moved, Prospect,
    SwapsSeen, Verdict,
};
use sterna::paths::Geometric;
use sterna::run::{Run, Settings, Stage};
use sterna::targets::Normal;
use sterna::{Result, Schedule};

/// Affine maps, for which chains move to one pair more on the first leg, and back whatever is seen there.
#[derive(Default)]
struct Restless {
    looks: AtomicUsize,
    returns: AtomicUsize,
}

const MAPS: FitAffine = FitAffine { full: false };

fn chosen(fitted: Fitted, pairs: usize, moved: Option<Moved>) -> Fitted {
    let choice = Some(Choice { of_pair: vec![1; pairs], moved, ..Choice::default() });
    Fitted { report: FitReport { choice, ..FitReport::default() }, ..fitted }
}

impl Fit for Restless {
    fn collects(&self, _: u64, _: &Schedule, _: &Prospect) -> Attempt {
        Attempt::Collect(200)
    }

    fn begin(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        let pairs = collected.schedule.pairs();
        Ok(Box::new(Begun { pairs, maps: MAPS.begin(collected, earlier)? }))
    }

    fn rebuild(&self, record: &[u8]) -> Result<Fitted> {
        MAPS.rebuild(record)
    }

    fn follow(
        &self,
        fitted: &Fitted,
        from: &Schedule,
        seen: Option<&SwapsSeen>,
    ) -> Result<Option<(Schedule, Fitted)>> {
        if let Some(seen) = seen {
            // The leg that rests has nothing to say.
            assert_eq!((0..from.pairs()).position(|pair| !seen.knows(pair)), Some(from.target()));
            self.looks.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        let to = from.equalise_with(&vec![0.5; from.pairs()], from.target() + 2);
        let maps = MAPS.rebuild_at(&fitted.record, &to)?.expect("known anywhere");
        let moved = Moved { to: to.clone(), from: from.clone(), of_pair: vec![1; from.pairs()] };
        let fitted = chosen(maps, to.pairs(), Some(moved));
        Ok(Some((to, fitted)))
    }

    fn look_again(&self, fitted: &Fitted, schedule: &Schedule, seen: &SwapsSeen) -> Result<Verdict> {
        assert!((0..schedule.target()).all(|pair| seen.knows(pair)));
        let Some(Moved { from, .. }) = fitted.report.choice.clone().and_then(|choice| choice.moved) else {
            return Ok(Verdict::Here(fitted.clone()));
        };
        self.returns.fetch_add(1, Ordering::Relaxed);
        let fitted = chosen(MAPS.rebuild(&fitted.record)?, from.pairs(), None);
        Ok(Verdict::Back(from, fitted))
    }

    fn looks_again(&self) -> bool {
        true
    }
}

/// Maps under way, which will have been chosen.
struct Begun {
    pairs: usize,
    maps: Box<dyn Fitting>,
}

impl Fitting for Begun {
    fn progress(&self) -> (u64, u64) {
        self.maps.progress()
    }

    fn advance(&mut self, most: u64) -> Result<()> {
        self.maps.advance(most)
    }

    fn finish(self: Box<Self>) -> Result<Fitted> {
        Ok(chosen(self.maps.finish()?, self.pairs, None))
    }

    fn save(&self) -> Result<Vec<u8>> {
        self.maps.save()
    }

    fn restore(&mut self, saved: &[u8]) -> Result<()> {
        self.maps.restore(saved)
    }
}

#[test]
fn a_leg_that_rests_holds_nobody_back() {
    let ground = Arc::new(Geometric::from_standard_normal(Normal::isotropic(4, 400.0)));
    let restless = Arc::new(Restless::default());
    let settings = Settings { iterations: 200, until: None, ..Settings::fitted() };
    let mut run = Run::from_anchor(ground, settings, Acceleration::Fitted(restless.clone())).unwrap();
    let mut longest = 0;
    while run.progress().0 != Stage::Finished {
        if run.progress().0 == Stage::BurnIn {
            longest = run.progress().2;
        }
        run.advance(u64::MAX).unwrap();
    }
    let plain = run.plain_stage().unwrap();
    assert!(plain.every > 1 && plain.schedule.legs() == 2, "{plain:?}");
    let [looks, returns] = [&restless.looks, &restless.returns].map(|count| count.load(Ordering::Relaxed));
    assert_eq!((looks, returns, longest), (1, 1, 106));
    assert_eq!(run.sampler().schedule, plain.schedule);
    // All rests and waits as it did.
    let legs = run.records().next().unwrap().legs();
    assert_eq!((legs.every(), legs.alone()), (plain.every, plain.alone));
}
