//! The move written plainly, row by row, for the batched one to be held against; and its broken twins.

use super::*;

/// The move written plainly, row by row, with the library's random numbers, and with faults on demand.
#[derive(Debug)]
pub struct Plain {
    pub auto: Auto,
    pub fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Longer steps are not tried at the end.
    NoCheckAtTheEnd,
    /// The last step may change energy by anything.
    NoCheckOfTheLastStep,
    /// The base step follows the place, and no test knows.
    StepByThePlace,
    /// Steps are doubled on one side only.
    DoublingsByThePlace,
    /// The last kick goes the wrong way.
    WrongLastKick,
    /// Trajectories are longer on one side.
    LengthByThePlace,
    /// F instead of Fᵀ in the kick.
    NotTransposed,
    /// The bound follows the place.
    BoundByThePlace,
    /// The part is chosen by the place, and no test knows.
    PartByThePlace,
}

/// A row in motion.
#[derive(Clone)]
struct Particle {
    points: Points,
    momentum: Vec<f64>,
    part: Option<usize>,
}

impl Particle {
    fn log_joint(&self) -> f64 {
        self.points.log_density[0] - 0.5 * self.momentum.iter().map(|p| p * p).sum::<f64>()
    }
}

impl Plain {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// How likely each part is to be chosen at a point.
    fn choices(&self, parts: &Mixture, x: &[f64]) -> Vec<f64> {
        let log = |c: &Component| {
            let mut z: Vec<f64> = x.iter().zip(&c.mean).map(|(x, m)| x - m).collect();
            c.shape.solve(&mut z);
            0.5 * (c.weight.ln() - c.shape.log_volume() - 0.5 * z.iter().map(|z| z * z).sum::<f64>())
        };
        let logs: Vec<f64> = parts.components().iter().map(log).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logs.iter().map(|l| (l - top).exp()).sum();
        logs.iter().map(|l| (l - top).exp() / sum).collect()
    }

    fn kick(&self, shape: &Shape, particle: &mut Particle, step: f64) {
        let mut force = particle.points.score.row(0).to_vec();
        match self.fault {
            Some(Fault::NotTransposed) => shape.apply(&mut force),
            _ => shape.apply_transposed(&mut force),
        }
        particle.momentum.iter_mut().zip(&force).for_each(|(p, f)| *p += 0.5 * step * f);
    }

    fn leap(&self, call: &Call, i: usize, from: &Particle, step: f64) -> Result<Particle> {
        let shape = match (from.part, &self.auto.sizes.parts) {
            (Some(part), Some(parts)) => &parts.components()[part].shape,
            _ => &self.auto.sizes.shapes[call.rows.chain[i]],
        };
        let mut to = from.clone();
        self.kick(shape, &mut to, step);
        let mut velocity = to.momentum.clone();
        shape.apply(&mut velocity);
        to.points.x.row_mut(0).iter_mut().zip(&velocity).for_each(|(x, v)| *x += step * v);
        call.path.evaluate(&call.rows.beta[i..=i], &mut to.points)?;
        self.kick(shape, &mut to, if self.has(Fault::WrongLastKick) { -step } else { step });
        Ok(to)
    }

    /// Whether one step changes energy by at most `bound`.
    fn suits(&self, call: &Call, i: usize, from: &Particle, step: f64, bound: f64) -> Result<bool> {
        Ok((self.leap(call, i, from, step)?.log_joint() - from.log_joint()).abs() <= bound)
    }

    fn halvings(&self, call: &Call, i: usize, from: &Particle, step: f64, bound: f64) -> Result<Option<i32>> {
        for halvings in 0..=16 {
            if self.suits(call, i, from, step * 0.5f64.powi(halvings), bound)? {
                return Ok(Some(halvings));
            }
        }
        Ok(None)
    }

    /// Where a row goes, if anywhere.
    fn move_row(
        &self,
        call: &Call,
        i: usize,
        start: &Particle,
        share: f64,
        [jitter, bound, accept, longer, whole, which]: [f64; 6],
    ) -> Result<Option<Particle>> {
        let chain = call.rows.chain[i];
        let (base, x) = (self.auto.sizes.step_size[chain], start.points.x.row(0)[0]);
        let most = (1.6 / base).round().clamp(1.0, 12.0);
        let mut leaps = 1 + (share * most) as usize;
        let many = f64::from(self.auto.sizes.doublings);
        let parts = self.auto.sizes.parts.as_ref().filter(|_| whole >= 0.125);
        let begun = parts.map(|parts| self.choices(parts, start.points.x.row(0)));
        let mut start = start.clone();
        start.part = begun.as_ref().map(|choices| {
            let below = |part: &usize| choices[..=*part].iter().sum::<f64>() > which;
            (0..choices.len()).find(below).expect("they sum to one")
        });
        let start = &start;
        let mut doublings = if longer < 0.25 && start.part.is_none() {
            ((1.0 - 4.0 * longer) * many).ceil() as i32
        } else {
            0
        };
        if self.has(Fault::DoublingsByThePlace) && x > 0.0 {
            doublings = 2;
        }
        let unit = if start.part.is_some() { self.auto.sizes.widening[chain] } else { 1.0 };
        let mut step = base * unit * (0.8 + 0.4 * jitter) * 2f64.powi(doublings);
        let mut bound = -ln(0.05 + 0.45 * bound);
        match self.fault {
            Some(Fault::StepByThePlace) => step *= if x > 0.0 { 1.0 } else { 0.6 },
            Some(Fault::LengthByThePlace) if x > 0.0 => leaps += 2,
            Some(Fault::BoundByThePlace) if x > 0.0 => bound *= 0.05,
            _ => {}
        }
        let Some(halvings) = self.halvings(call, i, start, step, bound)? else { return Ok(None) };
        let short = step * 0.5f64.powi(halvings);
        let mut here = start.clone();
        let mut last_error = 0.0;
        for _ in 0..leaps << (halvings - doublings).clamp(0, 2) {
            let next = self.leap(call, i, &here, short)?;
            last_error = (next.log_joint() - here.log_joint()).abs();
            here = next;
        }
        let sound_end = last_error <= bound || self.has(Fault::NoCheckOfTheLastStep);
        let mut log_ratio = here.log_joint() - start.log_joint();
        if let (Some(parts), Some(begun), Some(part)) = (parts, &begun, start.part)
            && !self.has(Fault::PartByThePlace)
        {
            log_ratio += ln(self.choices(parts, here.points.x.row(0))[part]) - ln(begun[part]);
        }
        if !sound_end || ln(accept) >= log_ratio || log_ratio.is_nan() {
            return Ok(None);
        }
        for longer in 0..halvings {
            let step = -step * 0.5f64.powi(longer);
            if !self.has(Fault::NoCheckAtTheEnd) && self.suits(call, i, &here, step, bound)? {
                return Ok(None);
            }
        }
        Ok(Some(here))
    }
}

fn ln(x: f64) -> f64 {
    struct Log(f64);
    impl sterna::lanes::Kernel for Log {
        type Output = f64;
        fn run<L: sterna::lanes::Lanes>(self) -> f64 {
            sterna::lanes::ln(L::splat(self.0)).to_array()[0]
        }
    }
    sterna::lanes::dispatch(Log(x))
}

impl Explorer for Plain {
    fn explore(
        &self,
        call: &Call,
        points: &mut Points,
        _moved: &mut Moved,
        _scratch: &mut Scratch,
    ) -> Result<()> {
        for _ in 0..self.auto.steps {
            let [momenta, uniforms, length] = [(); 3].map(|()| call.slots.take());
            let share = call.streams.row(length, call.iteration, 0).uniform();
            for (i, &row) in call.rows.row.iter().enumerate() {
                let mut start = Particle { points: Points::default(), momentum: Vec::new(), part: None };
                start.points.gather(points, &[row]);
                let mut noise = call.stream(momenta, i);
                start.momentum = (0..points.x.dim()).map(|_| noise.normal()).collect();
                let mut stream = call.stream(uniforms, i);
                let drawn = [(); 6].map(|()| stream.uniform());
                if let Some(end) = self.move_row(call, i, &start, share, drawn)? {
                    points.scatter(&[row], &end.points, |_| true);
                }
            }
        }
        Ok(())
    }
}
