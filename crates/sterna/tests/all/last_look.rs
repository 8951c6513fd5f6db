//! The last look finds a mode that no draw came near, and nothing where all was visited.

use std::sync::Arc;
use sterna::fitted::{Covariance, Found, Mixture, Shape, Starts, places};
use sterna::last_look::{LastLook, Seen, Weighty, normal_of};
use sterna::records::Draws;
use sterna::streams::{Phase, Streams};
use sterna::targets::Banana;
use sterna::{Batch, Counted, Evaluation, Result, Target};

/// Normals of these places and widths, equally weighted; whether it writes scores.
struct Humps(Vec<(f64, f64)>, bool);

impl Humps {
    const DIM: usize = 3;

    fn logs(&self, x: &[f64]) -> Vec<f64> {
        let log = |&(m, s): &(f64, f64)| {
            let square: f64 = x.iter().map(|x| (x - m) * (x - m)).sum();
            -0.5 * square / (s * s)
                - Self::DIM as f64 * (s * 2.506_628_274_631_000_5).ln()
                - (self.0.len() as f64).ln()
        };
        self.0.iter().map(log).collect()
    }
}

impl Target for Humps {
    fn dim(&self) -> usize {
        Self::DIM
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        for i in 0..x.rows() {
            let logs = self.logs(x.row(i));
            let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = logs.iter().map(|l| (l - top).exp()).sum();
            out.log_density[i] = top + sum.ln();
            if self.1 {
                for (j, x) in x.row(i).iter().enumerate() {
                    let pull = |(l, (m, s)): (&f64, &(f64, f64))| (l - top).exp() / sum * (m - x) / (s * s);
                    out.score.row_mut(i)[j] = logs.iter().zip(&self.0).map(pull).sum();
                }
            }
        }
        Ok(())
    }

    fn has_score(&self) -> bool {
        self.1
    }
}

/// Draws of some of the humps, in turn.
fn draws(target: &Humps, visited: &[usize]) -> Vec<Draws> {
    let mut out = Draws::default();
    for i in 0..900u32 {
        let (mean, width) = target.0[visited[i as usize % visited.len()]];
        let mut stream = Streams::new(5).row(Phase::Check, 0, i);
        let x: Vec<f64> = (0..Humps::DIM).map(|_| mean + width * stream.normal()).collect();
        let logs = target.logs(&x);
        out.log_density.push(logs.iter().map(|l| l.exp()).sum::<f64>().ln());
        out.x.extend(x);
    }
    vec![out]
}

fn look(target: Humps, visited: &[usize]) -> Seen {
    look_from(target, visited, &[])
}

/// The same where these points stood out before.
fn look_from(target: Humps, visited: &[usize], stood_out: &[[f64; Humps::DIM]]) -> Seen {
    let stood_out = places(&target, stood_out.iter().map(|x| x.to_vec()).collect()).unwrap();
    let (draws, share) = (draws(&target, visited), visited.len() as f64 / target.0.len() as f64);
    let counted = Arc::new(Counted::new(target));
    let seen = LastLook {
        target: counted.clone(),
        mixture: &normal_of(&draws, Humps::DIM).unwrap(),
        found: Found::default(),
        stood_out,
        begun: None,
        draws: &draws,
        covariance: Covariance::Dense,
        streams: Streams::new(3),
    }
    .look(4000, Weighty { log_z: share.ln(), share: 0.01, effective: 900.0 })
    .unwrap();
    assert_eq!(seen.evaluations, counted.evaluations());
    seen
}

#[test]
fn a_mode_that_no_draw_came_near_is_found_with_its_place_and_mass() {
    for has_score in [true, false] {
        let seen = look(Humps(vec![(0.0, 1.0), (8.0, 1.0)], has_score), &[0]);
        assert_eq!(seen.unvisited.len(), 1, "{seen:?}");
        let missed = &seen.unvisited[0];
        assert!(missed.mean.iter().all(|x| (x - 8.0).abs() < 0.1), "{missed:?}");
        assert!((missed.log_evidence + 2f64.ln()).abs() < 0.1, "{missed:?}");
    }
}

/// A third as wide, where few points fall.
#[test]
fn narrower_modes_are_found_too() {
    let seen = look(Humps(vec![(0.0, 1.0), (4.0, 0.3)], true), &[0]);
    assert!(seen.unvisited.iter().any(|o| (o.mean[0] - 4.0).abs() < 0.1), "{seen:?}");
}

/// Draws lie around it, and from the nearest of them the density only rises: they belong to the hill all the same.
#[test]
fn a_spike_on_a_hill_is_found_where_it_was_touched() {
    let humps = || Humps(vec![(0.0, 1.0), (1.0, 0.05)], true);
    let touched = [[1.1, 0.9, 1.1], [1.15, 1.0, 1.05]];
    let seen = look_from(humps(), &[0], &touched);
    assert_eq!(seen.unvisited.len(), 1, "{seen:?}");
    let missed = &seen.unvisited[0];
    assert!(missed.mean.iter().all(|x| (x - 1.0).abs() < 0.01), "{missed:?}");
    assert!((missed.log_evidence + 2f64.ln()).abs() < 0.1, "{missed:?}");
    // Where draws have been in it, or where there is none, nothing is missed.
    assert_eq!(look_from(humps(), &[0, 1], &touched).unvisited, []);
    assert_eq!(look_from(Humps(vec![(0.0, 1.0)], true), &[0], &touched).unvisited, []);
}

#[test]
fn nothing_is_missing_where_all_was_visited() {
    let humps = || vec![(0.0, 1.0), (8.0, 1.0), (-9.0, 0.5)];
    for target in [Humps(humps(), true), Humps(humps(), false)] {
        assert_eq!(look(target, &[0, 1, 2]).unvisited, []);
    }
    assert_eq!(look(Humps(vec![(3.0, 0.01)], true), &[0]).unvisited, []);
}

#[test]
fn a_look_is_the_same_each_time() {
    let again = || look(Humps(vec![(0.0, 1.0), (8.0, 1.0)], true), &[0]);
    assert_eq!(again(), again());
}

/// A banana that ends at a wall so many standard deviations out.
struct Walled(Banana, f64);

impl Target for Walled {
    fn dim(&self) -> usize {
        2
    }
    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        self.0.evaluate(x, out)?;
        for i in (0..x.rows()).filter(|&i| x.row(i)[0].abs() > self.1 * self.0.width()) {
            out.log_density[i] = f64::NEG_INFINITY;
        }
        Ok(())
    }
}

/// A banana that ends at a wall, and draws of it from which all farther out than `cut` standard deviations are left out.
fn along_a_banana(cut: f64, wall: f64) -> Seen {
    let target = Banana::new(2);
    let draw = |i: u32| {
        let (mut stream, mut x) = (Streams::new(6).row(Phase::Check, 0, i), [f64::INFINITY; 2]);
        while x[0].abs() > cut * target.width() {
            assert!(target.draw(&mut stream, &mut x));
        }
        x
    };
    let x: Vec<f64> = (0..3000).flat_map(draw).collect();
    let batch = Batch::from_vec(2, x.clone());
    let mut out = Evaluation::zeros(3000, 2);
    target.evaluate(&batch, &mut out).unwrap();
    let draws = [Draws { x, log_density: out.log_density, ..Draws::default() }];
    let one = Mixture::normal(vec![0.0; 2], Shape::Diagonal(vec![1.0; 2])).unwrap();
    let mixture = one.refit(&batch, 3000.0, Covariance::Dense).split(&batch, 3000.0, Covariance::Dense);
    assert!(mixture.components().len() > 3);
    LastLook {
        target: Arc::new(Walled(target, wall)),
        mixture: &mixture,
        found: Found::default(),
        stood_out: Vec::new(),
        begun: None,
        draws: &draws,
        covariance: Covariance::Dense,
        streams: Streams::new(3),
    }
    .look(4000, Weighty { log_z: 0.0, share: 0.01, effective: 3000.0 })
    .unwrap()
}

#[test]
fn a_tail_that_draws_do_not_reach_is_told() {
    assert_eq!(along_a_banana(1e9, 1e9).cut_tail, None);
    // Draws that end at a wall end where they should.
    assert_eq!(along_a_banana(1.5, 1.5).cut_tail, None);
    let tail = along_a_banana(1.5, 1e9).cut_tail.expect("an eighth of the law is missing");
    // P(x > 1.5) of a normal is 0.067; seen from the other coordinate, both ends are one.
    assert!((0.03..0.25).contains(&tail.share), "{tail:?}");
}

/// Two needles across each other: of one width and length, with one optimum where they cross.
struct Cross;

impl Target for Cross {
    fn dim(&self) -> usize {
        2
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        for i in 0..x.rows() {
            let needle = |along: f64, across: f64| {
                -0.5 * ((along / 4.0).powi(2) + (across / 0.1).powi(2))
                    - (2.0 * std::f64::consts::TAU * 0.4).ln()
            };
            let x = x.row(i);
            let (lying, standing) = (needle(x[0], x[1]), needle(x[1], x[0]));
            let top = lying.max(standing);
            out.log_density[i] = top + ((lying - top).exp() + (standing - top).exp()).ln();
        }
        Ok(())
    }

    fn has_score(&self) -> bool {
        false
    }
}

/// A look at draws of one of the needles, or of both in turn, with a reference like the first.
fn across(both: bool) -> Seen {
    let draw = |i: u32| {
        let mut stream = Streams::new(8).row(Phase::Check, 0, i);
        let (along, across) = (4.0 * stream.normal(), 0.1 * stream.normal());
        if both && i % 2 == 1 { [across, along] } else { [along, across] }
    };
    let x: Vec<f64> = (0..2000).flat_map(draw).collect();
    let mut out = Evaluation::zeros(2000, 2);
    Cross.evaluate(&Batch::from_vec(2, x.clone()), &mut out).unwrap();
    let draws = [Draws { x, log_density: out.log_density, ..Draws::default() }];
    LastLook {
        target: Arc::new(Cross),
        mixture: &Mixture::normal(vec![0.0; 2], Shape::Diagonal(vec![4.0, 0.1])).unwrap(),
        found: Found::default(),
        stood_out: Vec::new(),
        begun: Some(Starts { mean: &[0.0; 2], deviation: &[2.0; 2] }),
        draws: &draws,
        covariance: Covariance::Dense,
        streams: Streams::new(3),
    }
    .look(8000, Weighty { log_z: if both { 0.0 } else { -2f64.ln() }, share: 0.01, effective: 2000.0 })
    .unwrap()
}

/// Climbs from the other needle end where those from the first do, and so tell nothing of it.
#[test]
fn a_ridge_through_a_mode_that_is_known_is_told_by_its_mass() {
    let one = across(false);
    assert_eq!(one.unvisited, []);
    let missed = one.left_out.expect("half of the law is missing");
    // As much as what was sampled, but for what lies where they cross.
    assert!((0.6..1.4).contains(&missed.share) && missed.drawn < 0.05, "{missed:?}");
    // The reference may leave out what it likes, if draws do not.
    assert_eq!(across(true).left_out, None);
    assert_eq!(along_a_banana(1e9, 1e9).left_out, None);
    assert_eq!(look(Humps(vec![(0.0, 1.0), (4.0, 0.3)], true), &[0, 1]).left_out, None);
}
