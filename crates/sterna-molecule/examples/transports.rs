//! What the closed-form transports gain on alanine dipeptide: `transports [iterations] [ladders] [masses]`.
//!
//! A small parallel tempering of its own, 4 chains from 1200 to 300 K on a geometric ladder with 5 leapfrog
//! steps: plain, with temperature scaling, and with the conditional affine transport. Prints rejection rates,
//! round trips per ladder, and energy and basins at 300 K, which no transport may change. Transports are fitted to earlier runs. With a third argument the moves
//! have the atoms' masses, otherwise unit masses.

#![expect(clippy::disallowed_methods, reason = "measures time")]

use std::time::Instant;
use sterna::call::Scratch;
use sterna::streams::{Phase, Streams};
use sterna::transport::{Flow, Interval};
use sterna::{Batch, Evaluation, Target};
use sterna_molecule::{
    Basin, ChainSamples, ConditionalAffine, Molecule, TemperatureScaling, Temperatures, alanine_dipeptide,
    dihedral,
};

const CHAINS: usize = 4;
const LEAPFROG_STEPS: usize = 5;
const PATH: Temperatures = Temperatures { reference: 1200.0, target: 300.0 };

/// Ladders of four chains; row = ladder · CHAINS + replica.
struct Ladders {
    molecule: Molecule,
    betas: [f64; CHAINS],
    /// log π^β = factor · log π, by chain.
    factors: [f64; CHAINS],
    x: Batch,
    now: Evaluation,
    chain: Vec<usize>,
    step: [f64; CHAINS],
    streams: Streams,
    iteration: u64,
}

/// Where a replica would go: point, log density, score.
type End = (Vec<f64>, f64, Vec<f64>);

#[derive(Default)]
struct Record {
    rejection: [f64; CHAINS - 1],
    proposals: [f64; CHAINS - 1],
    round_trips: usize,
    /// Sum over iterations of the energy at 300 K (kJ/mol), by ladder.
    energy: Vec<f64>,
    /// Visits at 300 K to each basin, by ladder.
    visits: Vec<[f64; 4]>,
    samples: [Vec<f64>; CHAINS],
}

impl Ladders {
    fn new(count: usize, seed: u64) -> Self {
        let molecule = alanine_dipeptide(PATH.target).expect("built in");
        let molecule = if std::env::args().len() > 3 { molecule.mass_weighted() } else { molecule };
        let temperatures: [f64; CHAINS] =
            std::array::from_fn(|n| 1200.0 * 0.25f64.powf(n as f64 / (CHAINS - 1) as f64));
        let x = Batch::from_vec(molecule.dim(), molecule.start().repeat(count * CHAINS));
        let mut now = Evaluation::zeros(x.rows(), x.dim());
        molecule.evaluate(&x, &mut now).expect("a valid batch");
        Self {
            betas: temperatures.map(|t| PATH.beta(t)),
            factors: temperatures.map(|t| PATH.target / t),
            chain: (0..x.rows()).map(|row| row % CHAINS).collect(),
            step: [0.002; CHAINS],
            streams: Streams::new(seed),
            iteration: 0,
            molecule,
            x,
            now,
        }
    }

    /// One proposal of Hamiltonian Monte Carlo on each row; returns acceptances by chain.
    fn explore(&mut self) -> [f64; CHAINS] {
        let (rows, dim) = (self.x.rows(), self.x.dim());
        let keys: Vec<u32> = (0..rows as u32).collect();
        let mut momentum = Batch::zeros(rows, dim);
        self.streams.normals(Phase::Local.number(0), self.iteration, &keys, &mut momentum);
        let mut x = self.x.clone();
        let mut at = self.now.clone();
        let kinetic = |p: &Batch, row: usize| 0.5 * p.row(row).iter().map(|p| p * p).sum::<f64>();
        let before: Vec<f64> = (0..rows).map(|row| kinetic(&momentum, row)).collect();
        for step in 0..=LEAPFROG_STEPS {
            for row in 0..rows {
                let chain = self.chain[row];
                let half = if step == 0 || step == LEAPFROG_STEPS { 0.5 } else { 1.0 };
                let kick = half * self.step[chain] * self.factors[chain];
                let p = momentum.row_mut(row);
                p.iter_mut().zip(at.score.row(row)).for_each(|(p, s)| *p += kick * s);
                if step < LEAPFROG_STEPS {
                    let x = x.row_mut(row);
                    x.iter_mut().zip(momentum.row(row)).for_each(|(x, p)| *x += self.step[chain] * p);
                }
            }
            if step < LEAPFROG_STEPS {
                self.molecule.evaluate(&x, &mut at).expect("a valid batch");
            }
        }
        let mut accepted = [0.0; CHAINS];
        for (row, before) in before.iter().enumerate() {
            let chain = self.chain[row];
            let change = self.factors[chain] * (at.log_density[row] - self.now.log_density[row]);
            let log_ratio = change + before - kinetic(&momentum, row);
            if self.streams.row(Phase::Local.number(1), self.iteration, row as u32).uniform().ln() < log_ratio
            {
                accepted[chain] += CHAINS as f64 / rows as f64;
                self.x.row_mut(row).copy_from_slice(x.row(row));
                self.now.log_density[row] = at.log_density[row];
                self.now.score.row_mut(row).copy_from_slice(at.score.row(row));
            }
        }
        accepted
    }

    /// Even–odd swaps, each replica moved by the flow first.
    fn swap(&mut self, flow: Option<&dyn Flow>, record: &mut Record) {
        let rows = self.x.rows();
        let parity = (self.iteration % 2) as usize;
        let mut moving: [(Vec<usize>, Vec<Interval>); 2] = Default::default();
        for row in 0..rows {
            let chain = self.chain[row];
            let up = chain % 2 == parity;
            let pair = if up { chain } else { chain.wrapping_sub(1) };
            if pair < CHAINS - 1 {
                let interval = Interval { lower: self.betas[pair], upper: self.betas[pair + 1] };
                moving[usize::from(!up)].0.push(row);
                moving[usize::from(!up)].1.push(interval);
            }
        }
        let mut log_weight = vec![0.0; rows];
        let mut ends: Vec<Option<End>> = vec![None; rows];
        for (down, (who, pairs)) in moving.iter().enumerate().filter(|(_, m)| !m.0.is_empty()) {
            let points: Vec<f64> = who.iter().flat_map(|&row| self.x.row(row).to_vec()).collect();
            let mut x = Batch::from_vec(self.x.dim(), points);
            let mut log_det = vec![0.0; who.len()];
            let mut at = Evaluation::zeros(who.len(), x.dim());
            if let Some(flow) = flow {
                let moved = if down == 0 {
                    flow.forward(pairs, &mut x, &mut log_det, &mut Scratch::default())
                } else {
                    flow.inverse(pairs, &mut x, &mut log_det, &mut Scratch::default())
                };
                moved.expect("a valid batch");
            }
            self.molecule.evaluate(&x, &mut at).expect("a valid batch");
            for (i, &row) in who.iter().enumerate() {
                let chain = self.chain[row];
                let other = if down == 0 { chain + 1 } else { chain - 1 };
                log_weight[row] = self.factors[other] * at.log_density[i] + log_det[i]
                    - self.factors[chain] * self.now.log_density[row];
                ends[row] = Some((x.row(i).to_vec(), at.log_density[i], at.score.row(i).to_vec()));
            }
        }
        for ladder in 0..rows / CHAINS {
            let holder = |chain: usize, s: &Self| {
                (ladder * CHAINS..(ladder + 1) * CHAINS)
                    .find(|&row| s.chain[row] == chain)
                    .expect("a permutation")
            };
            for pair in (parity..CHAINS - 1).step_by(2) {
                let (low, high) = (holder(pair, self), holder(pair + 1, self));
                let delta = log_weight[low] + log_weight[high];
                let mut stream =
                    self.streams.row(Phase::Swap, self.iteration, (ladder * CHAINS + pair) as u32);
                let acceptance = delta.exp().min(1.0);
                record.proposals[pair] += 1.0;
                record.rejection[pair] += 1.0 - if acceptance.is_nan() { 0.0 } else { acceptance };
                if stream.uniform().ln() < delta {
                    self.chain.swap(low, high);
                    for row in [low, high] {
                        if let Some((x, log_density, score)) = ends[row].take() {
                            self.x.row_mut(row).copy_from_slice(&x);
                            self.now.log_density[row] = log_density;
                            self.now.score.row_mut(row).copy_from_slice(&score);
                        }
                    }
                }
            }
        }
    }

    /// The paper's rule for step sizes: ×1.2 above an acceptance of 0.9, ÷1.2 below 0.8.
    fn adapt(&mut self, blocks: usize) {
        for _ in 0..blocks {
            let mut mean = [0.0; CHAINS];
            for _ in 0..50 {
                let accepted = self.explore();
                mean.iter_mut().zip(accepted).for_each(|(m, a)| *m += a / 50.0);
                self.swap(None, &mut Record::default());
                self.iteration += 1;
            }
            for (step, mean) in self.step.iter_mut().zip(mean) {
                if mean > 0.9 {
                    *step *= 1.2;
                } else if mean < 0.8 {
                    *step /= 1.2;
                }
            }
        }
    }

    fn fit(&self, samples: &[Vec<f64>; CHAINS]) -> (TemperatureScaling, ConditionalAffine) {
        let batches = samples.clone().map(|values| Batch::from_vec(self.x.dim(), values));
        let chains: Vec<ChainSamples> =
            self.betas.iter().zip(&batches).map(|(&beta, points)| ChainSamples { beta, points }).collect();
        let scaling = TemperatureScaling::fit(&self.molecule, PATH, &chains).expect("enough samples");
        let affine = ConditionalAffine::fit(&self.molecule, PATH, &chains).expect("enough samples");
        (scaling, affine)
    }

    fn run(&mut self, iterations: u64, keep_every: u64, flow: Option<&dyn Flow>) -> Record {
        let ladders = self.x.rows() / CHAINS;
        let mut record =
            Record { energy: vec![0.0; ladders], visits: vec![[0.0; 4]; ladders], ..Record::default() };
        let mut cartesian = vec![0.0; 3 * self.molecule.atoms()];
        // 0: has not been at the reference; 1: at the reference last; 2: at the target since.
        let mut leg = vec![0; self.x.rows()];
        for t in 0..iterations {
            self.explore();
            if t % keep_every == keep_every - 1 {
                for row in 0..self.x.rows() {
                    record.samples[self.chain[row]].extend(self.x.row(row));
                }
            }
            self.swap(flow, &mut record);
            self.iteration += 1;
            for (row, &chain) in self.chain.iter().enumerate() {
                if chain == CHAINS - 1 {
                    self.molecule.mean_free().to_cartesian(self.x.row(row), &mut cartesian);
                    let basin =
                        Basin::of(dihedral(&cartesian, [4, 6, 8, 14]), dihedral(&cartesian, [6, 8, 14, 16]));
                    record.visits[row / CHAINS][basin as usize] += 1.0;
                    record.energy[row / CHAINS] -= self.now.log_density[row] * self.molecule.thermal_energy();
                }
            }
            for (leg, &chain) in leg.iter_mut().zip(&self.chain) {
                if chain == 0 {
                    record.round_trips += usize::from(*leg == 2);
                    *leg = 1;
                } else if chain == CHAINS - 1 && *leg == 1 {
                    *leg = 2;
                }
            }
        }
        record
    }
}

fn main() {
    let number =
        |i: usize, default: u64| std::env::args().nth(i).map_or(default, |a| a.parse().expect("a number"));
    let (iterations, count) = (number(1, 50_000), number(2, 4) as usize);
    let mut ladders = Ladders::new(8, 1);
    ladders.adapt(60);
    println!("step sizes {:.5?} at 1200 … 300 K", ladders.step);
    // Plain tempering crosses too rarely to see all forms: what is fitted to it makes better samples.
    let mut samples = ladders.run(20_000, 20, None).samples;
    for (round, iterations) in [20_000, 60_000].into_iter().enumerate() {
        let (_, affine) = ladders.fit(&samples);
        println!("round {round}: fitted to {} samples per chain", samples[0].len() / ladders.x.dim());
        samples = ladders.run(iterations, 20, Some(&affine)).samples;
    }
    let (scaling, affine) = ladders.fit(&samples);
    println!("fitted to {} samples per chain", samples[0].len() / ladders.x.dim());
    let flows: [(&str, Option<&dyn Flow>); 3] =
        [("plain", None), ("temperature scaling", Some(&scaling)), ("conditional affine", Some(&affine))];
    for (name, flow) in flows {
        let mut run = Ladders::new(count, 2);
        run.step = ladders.step;
        run.run(2000, 2001, None);
        let start = Instant::now();
        let record = run.run(iterations, iterations + 1, flow);
        let rejection: Vec<f64> = record.rejection.iter().zip(record.proposals).map(|(r, n)| r / n).collect();
        let inefficiency: f64 = rejection.iter().map(|r| r / (1.0 - r)).sum();
        let energies: Vec<f64> = record.energy.iter().map(|e| e / iterations as f64).collect();
        let (energy, energy_error) = mean_and_error(&energies);
        println!(
            "{name:20} rejection {rejection:.3?}, sum {:.2}; round trips per ladder {:.0} (predicted {:.0}); \
             {:.1} s\n    \
             at 300 K: energy {energy:.3} ± {energy_error:.3} kJ/mol",
            rejection.iter().sum::<f64>(),
            record.round_trips as f64 / count as f64,
            iterations as f64 / (2.0 + 2.0 * inefficiency),
            start.elapsed().as_secs_f64()
        );
        let share = |basin: Basin, all: &[Basin]| {
            let of = |visits: &[f64; 4]| {
                visits[basin as usize] / all.iter().map(|b| visits[*b as usize]).sum::<f64>()
            };
            let (mean, error) = mean_and_error(&record.visits.iter().map(of).collect::<Vec<f64>>());
            format!("{} {mean:.4} ± {error:.4}", basin.name())
        };
        let left = [Basin::C7eq, Basin::C5, Basin::Alpha];
        let shares: Vec<String> = left.iter().map(|&basin| share(basin, &left)).collect();
        println!("    {}, and given that φ < 0: {}", share(Basin::C7ax, &Basin::ALL), shares.join(", "));
    }
}

fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}
