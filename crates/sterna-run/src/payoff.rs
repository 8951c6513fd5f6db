//! When does a fitted accelerator pay? Round trips per evaluation and per processor-second, with and without
//! what the accelerator cost to make, beside plain swaps on the same tuned ladder.

use crate::summary::Times;
use serde_json::{Value, json};
use sterna::estimates::round_trip_rate;
use sterna::run::{PlainStage, Results, Run};

/// Round trips for what they cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yield {
    /// Round trips of all ladders per iteration.
    pub per_iteration: f64,
    /// Per target evaluation.
    pub per_evaluation: f64,
    /// Per second of a processor.
    pub per_processor_second: f64,
}

/// The comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Payoff {
    /// Plain swaps on the same ladder with the same local moves.
    pub plain: Yield,
    /// Whether the plain round trips were counted, or are what their rejections predict.
    pub plain_counted: bool,
    /// Plain round trips that were seen, and in how many iterations.
    pub plain_seen: (u64, u64),
    /// The accelerated sampler, its making left aside.
    pub sampling: Yield,
    /// The same with tuning, collecting and training counted in.
    pub everything: Yield,
    /// Cost of one target evaluation in this run, in seconds, with all that plain sampling does beside it.
    pub evaluation_cost_s: f64,
    /// Cost of one target evaluation above which the accelerator pays for itself within this run; none if it
    /// never does.
    pub break_even_cost_s: Option<f64>,
    /// Iterations after which it has paid for itself, at the present cost; none if it never does.
    pub break_even_iterations: Option<f64>,
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
        (saved > 0.0).then(|| lost / saved)
    }

    /// m = T (w c₀ − c₁).
    fn iterations_to_pay(&self) -> Option<f64> {
        let saved = self.worth() * self.seconds[0] - self.seconds[1];
        (saved > 0.0).then(|| self.making.1 / saved)
    }
}

impl Payoff {
    /// Of a run whose accelerator was fitted; none otherwise, nor if an engine sampled: plain swaps were the cores', and
    /// their seconds are not its.
    pub fn new(run: &Run, results: &Results, times: &Times) -> Option<Self> {
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
        let made = (run.settings().burn_in + results.iterations) as f64;
        let costs = Costs {
            rate: [rate, results.round_trip_rate * ladders],
            evaluations: [
                plain.evaluations as f64 / plain.iterations as f64,
                results.sampling_evaluations as f64 / results.iterations as f64,
            ],
            seconds: [times.plain.processor_s / plain.iterations as f64, times.sampling.processor_s / made],
            making: (
                (results.evaluations + fit.target_evaluations
                    - results.sampling_evaluations
                    - plain.tuning_evaluations) as f64,
                times.collecting.processor_s + times.training.processor_s,
            ),
            iterations: results.iterations as f64,
        };
        // With what moves and swaps cost beside it: asking the target for its own time would be counted.
        let cost = costs.seconds[0] / costs.evaluations[0];
        let of = |k: usize| Yield {
            per_iteration: costs.rate[k],
            per_evaluation: costs.rate[k] / costs.evaluations[k],
            per_processor_second: costs.rate[k] / costs.seconds[k],
        };
        let spent = times.tuning.processor_s
            + times.collecting.processor_s
            + times.training.processor_s
            + times.sampling.processor_s;
        let trips = results.round_trips as f64;
        Some(Self {
            plain: of(0),
            plain_counted: counted,
            plain_seen: (plain.round_trips, plain.iterations),
            sampling: of(1),
            everything: Yield {
                per_iteration: costs.rate[1],
                per_evaluation: trips / (results.evaluations + fit.target_evaluations) as f64,
                per_processor_second: trips / spent,
            },
            evaluation_cost_s: cost,
            break_even_cost_s: costs.dearer().map(|dearer| (cost + dearer).max(0.0)),
            break_even_iterations: costs.iterations_to_pay(),
        })
    }

    /// For `summary.json`.
    pub fn to_value(&self) -> Value {
        let of = |y: &Yield| {
            json!({
                "per_iteration": y.per_iteration,
                "per_evaluation": y.per_evaluation,
                "per_processor_second": y.per_processor_second,
            })
        };
        json!({
            "plain": of(&self.plain),
            "plain_counted": self.plain_counted,
            "plain_seen": {"round_trips": self.plain_seen.0, "iterations": self.plain_seen.1},
            "sampling": of(&self.sampling),
            "everything": of(&self.everything),
            "evaluation_cost_s": self.evaluation_cost_s,
        })
    }

    /// When it pays, in a sentence.
    pub fn sentence(&self) -> String {
        let now = duration(self.evaluation_cost_s);
        let iterations = match self.break_even_iterations {
            Some(n) => format!(
                "At the present {now} an evaluation, the transport pays for itself after {} iterations",
                count(n)
            ),
            None => {
                format!("At the present {now} an evaluation, plain swaps make more round trips per second")
            }
        };
        let cost = match self.break_even_cost_s {
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

fn count(n: f64) -> String {
    let digits = format!("{:.0}", n.ceil());
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
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
        let short = Costs { iterations: 10.0, ..COSTS };
        assert_eq!(short.dearer(), None);
    }

    #[test]
    fn words() {
        assert_eq!(duration(1.23e-7), "123 ns");
        assert_eq!(duration(1.23e-6), "1.2 µs");
        assert_eq!(count(1234567.2), "1,234,568");
        assert_eq!(count(12.0), "12");
    }
}
