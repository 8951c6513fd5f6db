//! `summary.json`: what a run found, for programs.

use crate::alarms::{Alarm, Evidence};
use crate::chemistry;
use crate::config::Config;
use crate::payoff::Payoff;
use serde_json::{Value, json};
use sterna::acceleration::FitReport;
use sterna::estimates::global_barrier;
use sterna::records::Draws;
use sterna::run::{Results, Run, Stage};

/// Seconds by stage: on the clock, and of processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Times {
    /// Tuning.
    pub tuning: Spent,
    /// Collecting samples for an accelerator.
    pub collecting: Spent,
    /// The part of it without an accelerator.
    pub plain: Spent,
    /// Training of transports.
    pub training: Spent,
    /// Burn-in and sampling.
    pub sampling: Spent,
}

/// Time spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Spent {
    /// Seconds on the clock.
    pub clock_s: f64,
    /// Seconds of processors, over all threads: what a busy machine does not change.
    pub processor_s: f64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.clock_s += more.clock_s;
        self.processor_s += more.processor_s;
    }
}

/// A run's results with all that tells where they came from.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The resolved config.
    pub config: Config,
    /// Whether the run went to its end.
    pub finished: bool,
    /// Dimension of the target.
    pub dim: usize,
    /// K.
    pub steps: usize,
    /// Estimates.
    pub results: Results,
    /// Seconds.
    pub times: Times,
    /// What training did, where a network was trained.
    pub training: Option<FitReport>,
    /// What chemists look at, where the target is a molecule.
    pub molecule: Option<chemistry::Observed>,
    /// When the accelerator pays, where one was fitted.
    pub payoff: Option<Payoff>,
    /// What a user should know.
    pub alarms: Vec<Alarm>,
}

impl Summary {
    /// `draws` of each ladder, or some of them evenly spread, are what alarms and chemists look at.
    pub(crate) fn new(config: &Config, steps: usize, run: &Run, times: &Times, draws: &[Draws]) -> Self {
        let results = run.results();
        let training = run.fit_report().filter(|report| report.steps > 0).cloned();
        let observed = chemistry::observe(config, &results.schedule, draws);
        // Fits in closed form have their own to say as well.
        let mut evidence = Evidence::new(run, &results, run.fit_report(), draws);
        if let Ok(Some(molecule)) = &observed {
            let log_density = evidence.draws.iter().map(|d| d.log_density.clone()).collect();
            evidence.features = vec![("log density".into(), log_density)];
            evidence.features.extend(molecule.series.iter().map(|s| (s.name.clone(), s.values.clone())));
        }
        let mut alarms = evidence.alarms();
        let replaced = run.engine_replaced().map(str::to_string);
        alarms.extend(replaced.map(|message| Alarm { code: "device-replaced".into(), message }));
        let molecule = match observed {
            Ok(molecule) => molecule,
            Err(error) => {
                let message = format!("nothing can be said about the molecule: {error}");
                alarms.push(Alarm { code: "molecule-unreadable".into(), message });
                None
            }
        };
        alarms.extend(molecule.iter().flat_map(chemistry::Observed::alarms));
        Self {
            config: config.clone(),
            steps,
            finished: run.progress().0 == Stage::Finished,
            dim: run.sampler().path.dim(),
            alarms,
            payoff: Payoff::new(run, &results, times),
            training,
            molecule,
            results,
            times: *times,
        }
    }

    /// Λ: the sum of the rejection rates.
    pub fn global_barrier(&self) -> f64 {
        global_barrier(&self.results.rejection_rates)
    }

    /// Independent draws that the worst coordinate is worth; of a molecule, the worst dihedral.
    pub fn smallest_effective_sample_size(&self) -> f64 {
        let dihedrals = self.molecule.as_ref().and_then(chemistry::Observed::smallest_effective_sample_size);
        dihedrals.unwrap_or_else(|| self.results.ess.iter().copied().fold(f64::INFINITY, f64::min))
    }

    /// R / (T τ̂): low means that local moves, not swaps, are the bottleneck.
    pub fn exploration_efficiency(&self) -> f64 {
        self.results.round_trip_rate / self.results.round_trip_rate_predicted
    }

    /// Round trips divided by evaluations per machine and swap, as the paper counts them: K + 1, and
    /// 2 for parallel tempering, which in truth needs none (errata E20).
    pub fn paper_normalised(&self) -> f64 {
        self.results.round_trips as f64 / (self.steps + 1).max(2) as f64
    }

    /// Round trips divided by all evaluations per machine and iteration, local moves included.
    pub fn honestly_normalised(&self) -> f64 {
        let r = &self.results;
        let replicas = (r.schedule.chains() * self.config.chains.ensembles) as f64;
        r.round_trips as f64 / (r.sampling_evaluations as f64 / (replicas * r.iterations as f64))
    }

    /// Points at which the target, and a network, were evaluated inside losses.
    fn training_evaluations(&self) -> (u64, u64) {
        self.training.as_ref().map_or((0, 0), |t| (t.target_evaluations, t.network_evaluations))
    }

    /// Points at which the network was evaluated in sampling: by the paper's count K + 1 for a controlled
    /// diffusion and 1 for a flow, for each journey of a pair that uses it.
    fn sampling_network_evaluations(&self) -> u64 {
        if self.config.accelerator.kind == "diffusion" {
            // The learned path counts for itself, swaps and local moves alike.
            return 0;
        }
        let each = if self.config.accelerator.kind == "flow" { 1 } else { self.steps as u64 + 1 };
        let iterations = self.results.iterations;
        // Pairs 1, 3, … are proposed in iterations 1, 3, …
        let proposals = |n: usize| if n.is_multiple_of(2) { iterations.div_ceil(2) } else { iterations / 2 };
        let plain = |n: usize| self.training.as_ref().is_some_and(|t| t.pairs.get(n).is_none_or(|p| p.plain));
        if self.training.is_none() && self.config.accelerator.transport.is_none() {
            return 0;
        }
        let pairs = (0..self.results.schedule.pairs()).filter(|&n| !plain(n));
        2 * each * self.config.chains.ensembles as u64 * pairs.map(proposals).sum::<u64>()
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(&self.to_value()).expect("plain data");
        text.push('\n');
        text
    }

    fn to_value(&self) -> Value {
        let r = &self.results;
        let iterations_per_second = r.iterations as f64 / self.times.sampling.clock_s;
        let finite = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
        json!({
            "sterna": env!("CARGO_PKG_VERSION"),
            "finished": self.finished,
            "seed": self.config.seed,
            "target": {"kind": self.config.target.kind, "dim": self.dim},
            "chains": r.schedule.chains(),
            "pairs": r.schedule.pairs(),
            "ensembles": self.config.chains.ensembles,
            "iterations": r.iterations,
            "accelerator": {"kind": self.config.accelerator.kind, "steps": self.steps},
            "schedule": r.schedule.betas(),
            "rejection_rates": r.rejection_rates,
            "global_barrier": finite(self.global_barrier()),
            "local_barrier": {
                "beta": r.local_barrier.iter().map(|p| p.0).collect::<Vec<_>>(),
                "lambda": r.local_barrier.iter().map(|p| finite(p.1)).collect::<Vec<_>>(),
            },
            "round_trips": r.round_trips,
            "round_trip_rate": r.round_trip_rate,
            "round_trip_rate_predicted": finite(r.round_trip_rate_predicted),
            "exploration_efficiency": finite(self.exploration_efficiency()),
            "log_z": {
                "forward": finite(r.log_z.forward),
                "backward": finite(r.log_z.backward),
                "geometric_mean": finite(r.log_z.geometric_mean),
                "bar": finite(r.log_z.bar),
                "standard_error": finite(r.log_z.standard_error),
                "truth": r.log_z_truth,
                "pairs": r.log_z.pairs.iter().map(|p| json!({
                    "forward": finite(p.forward),
                    "backward": finite(p.backward),
                    "bar": finite(p.bar.log_ratio),
                    "overlap": finite(p.bar.overlap),
                    "crossing": finite(p.crooks.crossing),
                    "crossing_slope": finite(p.crooks.slope),
                })).collect::<Vec<_>>(),
            },
            "expectations": {
                "mean": r.means.iter().map(|m| finite(m.0)).collect::<Vec<_>>(),
                "standard_error": r.means.iter().map(|m| finite(m.1)).collect::<Vec<_>>(),
            },
            "ess": {
                "minimum": finite(self.smallest_effective_sample_size()),
                "coordinates": r.ess.iter().map(|&e| finite(e)).collect::<Vec<_>>(),
            },
            "evaluations": {
                "target": r.evaluations + self.training_evaluations().0,
                "sampling": r.sampling_evaluations,
                "training": self.training_evaluations().0,
                "network": self.training_evaluations().1
                    + self.sampling_network_evaluations()
                    + r.network_evaluations,
                "network_training": self.training_evaluations().1,
            },
            "training": self.training.as_ref().map(|t| json!({
                "steps": t.steps,
                "losses": t.losses.iter().map(|&l| finite(l)).collect::<Vec<_>>(),
                "fine_tuning_losses": t.fine_tuning_losses.iter().map(|&l| finite(l)).collect::<Vec<_>>(),
                "rejection_rates": t.pairs.iter().map(|p| finite(p.rejection)).collect::<Vec<_>>(),
                "plain_rejection_rates": t.pairs.iter().map(|p| finite(p.plain_rejection)).collect::<Vec<_>>(),
                "replaced": t.pairs.iter().map(|p| p.plain).collect::<Vec<_>>(),
            })),
            "compute_normalised_round_trips": {
                "paper": self.paper_normalised(),
                "all_evaluations": finite(self.honestly_normalised()),
                "per_second": finite(r.round_trips as f64 / self.times.sampling.clock_s),
            },
            "payoff": self.payoff.as_ref().map(Payoff::to_value),
            "break_even": self.payoff.as_ref().map(|p| json!({
                "evaluation_cost_s": p.break_even_cost_s,
                "iterations": p.break_even_iterations,
            })),
            "time": {
                "processor": {
                    "tuning_s": self.times.tuning.processor_s,
                    "collecting_s": self.times.collecting.processor_s,
                    "training_s": self.times.training.processor_s,
                    "sampling_s": self.times.sampling.processor_s,
                },
                "tuning_s": self.times.tuning.clock_s,
                "collecting_s": self.times.collecting.clock_s,
                "training_s": self.times.training.clock_s,
                "sampling_s": self.times.sampling.clock_s,
                "iterations_per_second": finite(iterations_per_second),
            },
            "explorer": {
                "acceptance": r.acceptance.iter().map(|&a| finite(a)).collect::<Vec<_>>(),
                "step_size": r.sizes.step_size,
            },
            "bad_densities": {
                "count": r.bad.0,
                "first": r.bad.1.as_ref().map(|b| json!({
                    "iteration": b.iteration, "chain": b.chain, "replica": b.replica,
                    "point": b.point.iter().map(|&x| finite(x)).collect::<Vec<_>>(),
                })),
            },
            "molecule": self.molecule.as_ref().map(chemistry::Observed::to_value),
            "alarms": self.alarms.iter().map(|a| json!({"code": a.code, "message": a.message})).collect::<Vec<_>>(),
        })
    }
}
