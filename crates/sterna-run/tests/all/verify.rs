//! `verify` passes on every built-in combination that needs no training, and fails on each planted fault.
//!
//! Each verdict raises a false alarm with probability 10⁻⁴ on a fresh seed; the seeds here are fixed.

use std::sync::Arc;
use sterna::accelerator::Accelerator;
use sterna::accelerators::{Cmcd, CmcdSteps, NormalDrift};
use sterna_run::config::{Config, TargetKind};
use sterna_run::verify::{Judge, combinations, verify_plan};
use sterna_run::{Problem, accelerators};
use sterna_testkit::broken::{Broken, Fault, Mismatched};

fn judge(text: &str) -> Judge {
    let short = [
        ("chains.count", "6"),
        ("chains.ensembles", "16"),
        ("schedule.rounds", "5"),
        ("schedule.iterations", "300"),
        ("training.collect", "200"),
        ("run.burn_in", "10"),
    ];
    let config = Config::parse(text, &short).unwrap();
    let problem = config.problem().unwrap();
    let plan = accelerators::plan(&problem, &config).unwrap();
    Judge::new(plan, &config.settings(&problem).unwrap()).unwrap()
}

#[test]
fn every_combination_is_sound() {
    for text in combinations() {
        let judge = judge(&text);
        let verdict = judge.verdict(judge.accelerator()).unwrap();
        assert!(verdict.passed(), "{text}\n{verdict}");
    }
}

const LADDERS: [&str; 4] = [
    "[target]\nkind = \"normal\"\ndim = 3\n[accelerator]\nkind = \"none\"",
    "[target]\nkind = \"normal\"\ndim = 3\nprecision = 40.0\n[accelerator]\nkind = \"affine\"",
    "[target]\nkind = \"normal\"\ndim = 3\n[accelerator]\nkind = \"cmcd\"\ndrift = \"exact\"\nsteps = 2",
    "[target]\nkind = \"gmm\"\ndim = 2\n[accelerator]\nkind = \"diffusion\"\nscore = \"exact\"\nsteps = 2",
];

#[test]
fn faulty_weights_and_end_points_are_caught() {
    for text in LADDERS {
        let judge = judge(text);
        for fault in [
            Fault::FlippedRatio,
            Fault::PrintedRatio,
            Fault::MissingJacobian(0.3),
            Fault::MissingConstant(0.3),
            Fault::NotANumber,
        ] {
            let verdict = judge.verdict(Arc::new(Broken { inner: judge.accelerator(), fault })).unwrap();
            assert!(!verdict.passed(), "{fault:?} went unnoticed:\n{text}\n{verdict}");
        }
    }
}

/// Kernels that do not belong together: other noise forward than backward, or the drift's sign lost.
#[test]
fn mismatched_kernels_are_caught() {
    let text = LADDERS[2];
    let TargetKind::Normal(normal) = Config::parse(text, &[]).unwrap().target else { panic!("no normal") };
    let normal = normal.normal().unwrap();
    let cmcd = |noise: f64, sign: f64| -> Arc<dyn Accelerator> {
        let drift = Arc::new(Signed { inner: NormalDrift::new(normal.clone()), sign });
        Arc::new(Cmcd { steps: CmcdSteps::linear(drift, 2, &[noise; 5]).unwrap() })
    };
    let judge = judge(text);
    let sound = judge.verdict(cmcd(0.05, 1.0)).unwrap();
    assert!(sound.passed(), "{sound}");
    for kernels in [[(0.05, 1.0), (0.08, 1.0)], [(0.05, 1.0), (0.05, -1.0)]] {
        let [forward, backward] = kernels.map(|(noise, sign)| cmcd(noise, sign));
        let verdict = judge.verdict(Arc::new(Mismatched { forward, backward })).unwrap();
        assert!(!verdict.passed(), "{kernels:?} went unnoticed\n{verdict}");
    }
}

struct Signed {
    inner: NormalDrift,
    sign: f64,
}

impl sterna::transport::Drift for Signed {
    fn drift(
        &self,
        pairs: &[sterna::transport::Interval],
        times: &[f64],
        x: &sterna::Batch,
        out: &mut sterna::Batch,
        scratch: &mut sterna::call::Scratch,
    ) -> sterna::Result<()> {
        self.inner.drift(pairs, times, x, out, scratch)?;
        out.as_mut_slice().iter_mut().for_each(|b| *b *= self.sign);
        Ok(())
    }
}

/// A score that is not the gradient.
#[test]
fn a_wrong_score_is_caught() {
    struct Wrong;
    impl sterna::Target for Wrong {
        fn dim(&self) -> usize {
            2
        }
        fn evaluate(&self, x: &sterna::Batch, out: &mut sterna::Evaluation) -> sterna::Result<()> {
            for i in 0..x.rows() {
                out.log_density[i] = -x.row(i).iter().map(|x| x * x).sum::<f64>();
                out.score.row_mut(i).iter_mut().zip(x.row(i)).for_each(|(s, x)| *s = -x);
            }
            Ok(())
        }
    }
    let config = Config::parse("", &[("chains.ensembles", "16"), ("schedule.rounds", "1")]).unwrap();
    let problem = Problem::new(Wrong);
    let plan = accelerators::plan(&problem, &config).unwrap();
    let verdict = verify_plan(plan, config.settings(&problem).unwrap(), |accelerator| accelerator).unwrap();
    assert!(verdict.violations.iter().any(|v| v.contains("the score is the gradient")), "{verdict}");
}
