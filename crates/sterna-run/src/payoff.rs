//! When does a fitted accelerator pay? Round trips per evaluation and per processor-second, with and without
//! what the accelerator cost to make, beside plain swaps on the same tuned ladder.

use crate::report::format::count;
use crate::summary::{Times, number};
use serde::{Deserialize, Serialize};
use sterna::estimates::round_trip_rate;
use sterna::run::{PlainStage, Results, Run};

/// Round trips for what they cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Yield {
    /// Round trips of all ladders per iteration.
    #[serde(deserialize_with = "number::one")]
    pub per_iteration: f64,
    /// Per target evaluation.
    #[serde(deserialize_with = "number::one")]
    pub per_evaluation: f64,
    /// Per second of a processor.
    #[serde(deserialize_with = "number::one")]
    pub per_processor_second: f64,
}

/// Round trips that were seen, and in how many iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Of all ladders.
    pub round_trips: u64,
    /// In so many iterations.
    pub iterations: u64,
}

/// The comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Payoff {
    /// Plain swaps on the same ladder with the same local moves.
    pub plain: Yield,
    /// Whether the plain round trips were counted, or are what their rejections predict.
    pub plain_counted: bool,
    /// The plain round trips.
    pub plain_seen: Seen,
    /// The accelerated sampler, its making left aside.
    pub sampling: Yield,
    /// The same with tuning, collecting and training counted in.
    pub everything: Yield,
    /// Cost of one target evaluation in this run, in seconds, with all that plain sampling does beside it.
    #[serde(deserialize_with = "number::one")]
    pub evaluation_cost_s: f64,
}

/// When the accelerator pays.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakEven {
    /// Cost of one target evaluation above which the accelerator pays for itself within this run; none if it
    /// never does.
    pub evaluation_cost_s: Option<f64>,
    /// Iterations after which it has paid for itself, at the present cost; none if it never does.
    pub iterations: Option<f64>,
}

/// Round trips that make a count of them trustworthy.
const ENOUGH: u64 = 20;

/// What the break-even is worked out from.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// Round trips per iteration: plain, accelerated.
    rate: [f64; 2],
    /// Target evaluations per iteration.
    evaluations: [f64; 2],
    /// Processor-seconds per iteration.
    seconds: [f64; 2],
    /// What the accelerator cost to make, beyond tuning, which both need: evaluations and processor-seconds.
    making: (f64, f64),
    /// Iterations of the run.
    iterations: f64,
}

impl Costs {
    /// Plain iterations that bring as many round trips as an accelerated one.
    fn worth(&self) -> f64 {
        self.rate[1] / self.rate[0]
    }

    /// How much dearer an evaluation must be (in seconds, negative if it may be cheaper) for the run to have
    /// cost no more than plain swaps with as many round trips:
    /// m + E δ + T (c₁ + e₁ δ) = T w (c₀ + e₀ δ).
    fn dearer(&self) -> Option<f64> {
        let (t, w) = (self.iterations, self.worth());
        let saved = t * (w * self.evaluations[0] - self.evaluations[1]) - self.making.0;
        let lost = self.making.1 + t * (self.seconds[1] - w * self.seconds[0]);
        (w > 1.0 && saved > 0.0).then(|| lost / saved)
    }

    /// Cost of one target evaluation, with what moves and swaps cost beside it: asking the target for its own time
    /// would be counted.
    fn evaluation(&self) -> f64 {
        self.seconds[0] / self.evaluations[0]
    }

    /// Round trips for what they cost: plain (0), accelerated (1).
    fn of(&self, k: usize) -> Yield {
        Yield {
            per_iteration: self.rate[k],
            per_evaluation: self.rate[k] / self.evaluations[k],
            per_processor_second: self.rate[k] / self.seconds[k],
        }
    }

    /// m = T (w c₀ − c₁). What makes no more round trips than plain swaps never pays, however their seconds compare: those
    /// of collecting samples are dearer than those of plain sampling.
    fn iterations_to_pay(&self) -> Option<f64> {
        let saved = self.worth() * self.seconds[0] - self.seconds[1];
        (self.worth() > 1.0 && saved > 0.0).then(|| self.making.1 / saved)
    }
}

/// Of a run whose accelerator was fitted; none otherwise, nor if an engine sampled: plain swaps were the cores', and
/// their seconds are not its.
pub(crate) fn payoff(run: &Run, results: &Results, times: &Times) -> Option<(Payoff, BreakEven)> {
    if run.samples_by_engine() {
        return None;
    }
    let plain = run.plain_stage()?;
    let fit = run.fit_report()?;
    let ladders = run.settings().ensembles as f64;
    let (rate, counted) = plain_rate(plain, results, ladders);
    if rate <= 0.0 || results.round_trips == 0 {
        return None;
    }
    let evaluations = results.evaluations + fit.target_evaluations;
    let made = (run.burn_in_iterations() + results.iterations) as f64;
    let costs = Costs {
        rate: [rate, results.round_trip_rate * ladders],
        evaluations: [
            plain.evaluations as f64 / plain.iterations as f64,
            results.sampling_evaluations as f64 / results.iterations as f64,
        ],
        seconds: [times.plain.processor_s / plain.iterations as f64, times.sampling.processor_s / made],
        making: (
            (evaluations - results.sampling_evaluations - plain.tuning_evaluations) as f64,
            times.collecting.processor_s + times.training.processor_s,
        ),
        iterations: results.iterations as f64,
    };
    let trips = results.round_trips as f64;
    let everything = Yield {
        per_iteration: costs.rate[1],
        per_evaluation: trips / evaluations as f64,
        per_processor_second: trips / times.processor_s(),
    };
    let payoff = Payoff {
        plain: costs.of(0),
        plain_counted: counted,
        plain_seen: Seen { round_trips: plain.round_trips, iterations: plain.iterations },
        sampling: costs.of(1),
        everything,
        evaluation_cost_s: costs.evaluation(),
    };
    let break_even = BreakEven {
        evaluation_cost_s: costs.dearer().map(|dearer| (costs.evaluation() + dearer).max(0.0)),
        iterations: costs.iterations_to_pay(),
    };
    Some((payoff, break_even))
}

impl Payoff {
    /// When it pays, in a sentence.
    pub fn sentence(&self, break_even: &BreakEven) -> String {
        let now = duration(self.evaluation_cost_s);
        let iterations = match break_even.iterations {
            Some(n) => format!(
                "At the present {now} an evaluation, the transport pays for itself after {} iterations",
                count(n.ceil() as u64)
            ),
            None if self.sampling.per_iteration <= self.plain.per_iteration => {
                return "Plain swaps make as many round trips as the transport: it does not pay.".into();
            }
            None => {
                format!("At the present {now} an evaluation, plain swaps make more round trips per second")
            }
        };
        let cost = match break_even.evaluation_cost_s {
            Some(0.0) => "within this run it pays at any cost of an evaluation".into(),
            Some(c) => format!("within this run it pays where an evaluation costs more than {}", duration(c)),
            None => "within this run it pays at no cost of an evaluation: it is too short".into(),
        };
        format!("{iterations}; {cost}.")
    }
}

/// Round trips per iteration of all ladders: counted where there were enough, else what the rejections predict
/// times the share of it that the accelerated run realised.
fn plain_rate(plain: &PlainStage, results: &Results, ladders: f64) -> (f64, bool) {
    if plain.round_trips >= ENOUGH {
        return (plain.round_trips as f64 / plain.iterations as f64, true);
    }
    let efficiency = (results.round_trip_rate / results.round_trip_rate_predicted).min(1.0);
    (ladders * efficiency * round_trip_rate(&plain.rejection_rates), false)
}

fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1e-6 => (1e9 * s, "ns"),
        s if s < 1e-3 => (1e6 * s, "µs"),
        s if s < 1.0 => (1e3 * s, "ms"),
        s => (s, "s"),
    };
    let decimals = if value < 10.0 { 1 } else { 0 };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs {
        rate: [0.01, 0.1],
        evaluations: [50.0, 60.0],
        seconds: [1e-5, 3e-5],
        making: (1e6, 7.0),
        iterations: 1e5,
    };

    #[test]
    fn the_break_even_balances_both_bills() {
        let bill = |dearer: f64| {
            let [plain, ours] = [0, 1].map(|k| COSTS.seconds[k] + COSTS.evaluations[k] * dearer);
            let plain = COSTS.iterations * COSTS.worth() * plain;
            let ours = COSTS.making.1 + COSTS.making.0 * dearer + COSTS.iterations * ours;
            ours / plain
        };
        assert!((bill(COSTS.dearer().unwrap()) - 1.0).abs() < 1e-12);
        let n = COSTS.iterations_to_pay().unwrap();
        let (plain, ours) = (n * COSTS.worth() * COSTS.seconds[0], COSTS.making.1 + n * COSTS.seconds[1]);
        assert!((plain / ours - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_never_pays_says_so() {
        let slow = Costs { rate: [0.1, 0.1], ..COSTS };
        assert_eq!(slow.dearer(), None);
        assert_eq!(slow.iterations_to_pay(), None);
        // Fewer round trips, whatever a plain iteration cost beside them.
        let worse = Costs { rate: [0.1, 0.05], seconds: [9e-5, 1e-5], evaluations: [90.0, 10.0], ..COSTS };
        assert_eq!((worse.dearer(), worse.iterations_to_pay()), (None, None));
        let short = Costs { iterations: 10.0, ..COSTS };
        assert_eq!(short.dearer(), None);
    }

    #[test]
    fn words() {
        let each = Yield { per_iteration: 0.1, per_evaluation: 1e-3, per_processor_second: 10.0 };
        let payoff = Payoff {
            plain: each,
            plain_counted: true,
            plain_seen: Seen { round_trips: 30, iterations: 300 },
            sampling: each,
            everything: each,
            evaluation_cost_s: 2e-6,
        };
        let pays = BreakEven { evaluation_cost_s: Some(0.0), iterations: Some(1_234_567.2) };
        let sentence = payoff.sentence(&pays);
        assert!(sentence.contains("2.0 µs") && sentence.contains("1,234,568 iterations"), "{sentence}");
        let never = BreakEven { evaluation_cost_s: None, iterations: None };
        assert!(payoff.sentence(&never).contains("does not pay"));
        let sampling = Yield { per_iteration: 0.2, ..each };
        assert!(Payoff { sampling, ..payoff }.sentence(&never).contains("too short"));
        assert_eq!(duration(1.23e-7), "123 ns");
        assert_eq!(duration(1.23e-6), "1.2 µs");
    }
}
