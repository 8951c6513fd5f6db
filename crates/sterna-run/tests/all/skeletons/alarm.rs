//! An alarm: a condition on what a run found, and a message that names what was seen and what would help.

use sterna_run::alarms::{Alarm, Code};

/// How much more often one pair may reject than another before people should know.
const MOST: f64 = 4.0;

/// Rings where chains lie unevenly: one pair rejects much more often than another.
pub fn uneven_pairs(rejection_rates: &[f64]) -> Option<Alarm> {
    let by_rate = |a: &usize, b: &usize| rejection_rates[*a].total_cmp(&rejection_rates[*b]);
    let worst = (0..rejection_rates.len()).max_by(by_rate)?;
    let best = (0..rejection_rates.len()).min_by(by_rate)?;
    // Below a percent both are as good as they get, and their ratio is noise.
    let ratio = rejection_rates[worst] / rejection_rates[best].max(0.01);
    (ratio > MOST).then(|| Alarm {
        // In the tree: a line of the enum, and a section of this name in docs/alarms.md, which a test asks for.
        code: Code::from("uneven-pairs"),
        message: format!(
            "swaps between chains {worst} and {} are rejected {ratio:.1} times as often as those of the easiest pair; more \
             rounds of tuning (schedule.rounds) would even them out",
            worst + 1
        ),
    })
}

/// An alarm must ring, name the place and a cure; and it must stay silent on a sound run, however short.
#[test]
fn it_rings_with_place_and_cure_and_not_without_reason() {
    let alarm = uneven_pairs(&[0.1, 0.6, 0.1]).expect("it rings");
    assert!(alarm.message.contains("chains 1 and 2") && alarm.message.contains("schedule.rounds"));
    for silent in [&[0.3, 0.4, 0.35][..], &[0.0, 0.001], &[0.0, 0.0], &[0.5], &[]] {
        assert_eq!(uneven_pairs(silent), None, "{silent:?}");
    }
}
