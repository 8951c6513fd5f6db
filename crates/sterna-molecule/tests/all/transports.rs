//! Transports between temperatures: inverses, determinants, and twins that lack something and are caught.

mod densities;

use sterna::call::Scratch;
use sterna::transport::{Flow, Interval};
use sterna::{Batch, Evaluation, Target};
use sterna_molecule::{
    ChainSamples, ConditionalAffine, Densities, InnerMap, InternalCoordinates, Molecule, MoleculeError,
    Refined, TemperatureScaling, Temperatures, alanine_dipeptide,
};

const PATH: Temperatures = Temperatures { reference: 1200.0, target: 300.0 };

fn walk(molecule: &Molecule, beta: f64, seed: u64) -> Batch {
    crate::common::walk(molecule, PATH, beta, seed)
}

struct Fixture {
    molecule: Molecule,
    samples: Vec<(f64, Batch)>,
    scaling: TemperatureScaling,
    affine: ConditionalAffine,
    refined: Refined,
}

/// A map that uses all it is given: each torsion is turned by a function of itself, of the one before it (which has
/// moved already) and of the pair; each stiff coordinate is scaled and shifted by functions of a torsion at the upper end,
/// of the one before it, and of the pair.
struct Wavy {
    stiff: usize,
}

impl Wavy {
    fn factors(&self, pair: Interval, soft: &[f64], before: f64, k: usize) -> (f64, f64) {
        let width = pair.upper - pair.lower;
        let angle = soft[k % soft.len()];
        (0.1 * width * (angle.sin() + (20.0 * before).tanh()), 1e-3 * width * (2.0 * angle).cos())
    }

    /// How far a torsion turns, and the log of its slope: θ + c sin θ, |c| < 1.
    fn turn(pair: Interval, before: f64, angle: f64) -> (f64, f64) {
        let c = 0.4 * (pair.upper - pair.lower) * before.cos();
        (c * angle.sin(), (c * angle.cos()).ln_1p())
    }
}

/// The element before `k`.
fn before(values: &[f64], k: usize) -> f64 {
    if k == 0 { 0.0 } else { values[k - 1] }
}

impl InnerMap for Wavy {
    fn forward(
        &self,
        pairs: &[Interval],
        soft: &mut [f64],
        z: &mut [f64],
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        let torsions = soft.len() / pairs.len();
        let rows = soft.chunks_exact_mut(torsions).zip(z.chunks_exact_mut(self.stiff));
        for (i, (soft, z)) in rows.enumerate() {
            log_det[i] = 0.0;
            for k in 0..torsions {
                let (turn, log_slope) = Self::turn(pairs[i], before(soft, k), soft[k]);
                soft[k] += turn;
                log_det[i] += log_slope;
            }
            for k in 0..z.len() {
                let (scale, shift) = self.factors(pairs[i], soft, before(z, k), k);
                z[k] = z[k] * scale.exp() + shift;
                log_det[i] += scale;
            }
        }
        Ok(())
    }

    fn inverse(
        &self,
        pairs: &[Interval],
        soft: &mut [f64],
        z: &mut [f64],
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        let torsions = soft.len() / pairs.len();
        let rows = soft.chunks_exact_mut(torsions).zip(z.chunks_exact_mut(self.stiff));
        for (i, (soft, z)) in rows.enumerate() {
            log_det[i] = 0.0;
            for k in (0..z.len()).rev() {
                let (scale, shift) = self.factors(pairs[i], soft, before(z, k), k);
                z[k] = (z[k] - shift) * (-scale).exp();
                log_det[i] -= scale;
            }
            for k in (0..torsions).rev() {
                // The image is a contraction's fixed point.
                let image = soft[k];
                for _ in 0..100 {
                    soft[k] = image - Self::turn(pairs[i], before(soft, k), soft[k]).0;
                }
                log_det[i] -= Self::turn(pairs[i], before(soft, k), soft[k]).1;
            }
        }
        Ok(())
    }
}

impl Fixture {
    /// Made once for all tests.
    fn get() -> &'static Self {
        static FIXTURE: std::sync::OnceLock<Fixture> = std::sync::OnceLock::new();
        FIXTURE.get_or_init(Self::new)
    }

    fn new() -> Self {
        let molecule = alanine_dipeptide(PATH.target).unwrap();
        let samples: Vec<(f64, Batch)> = [1200.0, 600.0, 300.0]
            .map(|t| PATH.beta(t))
            .map(|beta| (beta, walk(&molecule, beta, 3)))
            .to_vec();
        let chains: Vec<ChainSamples> =
            samples.iter().map(|(beta, points)| ChainSamples { beta: *beta, points }).collect();
        let scaling = TemperatureScaling::fit(&molecule, PATH, &chains).unwrap();
        let affine = ConditionalAffine::fit(&molecule, PATH, &chains).unwrap();
        let refined = Refined::new(affine.clone(), std::sync::Arc::new(Wavy { stiff: affine.stiff() }));
        Self { molecule, samples, scaling, affine, refined }
    }

    fn flows(&self) -> [(&'static str, &dyn Flow); 3] {
        [("scaling", &self.scaling), ("affine", &self.affine), ("refined", &self.refined)]
    }
}

fn rows_of(batch: &Batch, rows: std::ops::Range<usize>) -> Batch {
    Batch::from_vec(batch.dim(), batch.as_slice()[rows.start * batch.dim()..rows.end * batch.dim()].to_vec())
}

fn log_abs_det(mut a: Vec<Vec<f64>>) -> f64 {
    let n = a.len();
    let mut log_det = 0.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        log_det += a[k][k].abs().ln();
        let (top, rest) = a.split_at_mut(k + 1);
        for row in rest {
            let factor = row[k] / top[k][k];
            row[k..].iter_mut().zip(&top[k][k..]).for_each(|(x, t)| *x -= factor * t);
        }
    }
    log_det
}

/// log |det| of the flow at a point, by differences. The maps of torsions are piecewise affine: where a border lies
/// within the differences, which shows as a jump of the flow's own log |det|, there is no answer.
fn numerical_log_det(flow: &dyn Flow, pair: Interval, x: &[f64]) -> Option<f64> {
    let dim = x.len();
    let h = 1e-6;
    let mut rows = Vec::new();
    for c in 0..dim {
        for step in [-2.0, -1.0, 1.0, 2.0] {
            let mut moved = x.to_vec();
            moved[c] += step * h;
            rows.extend(moved);
        }
    }
    let mut rows = Batch::from_vec(dim, rows);
    let mut log_det = vec![0.0; 4 * dim];
    flow.forward(&vec![pair; 4 * dim], &mut rows, &mut log_det, &mut Scratch::default()).unwrap();
    let jump = |l: &[f64]| (l[0] - 2.0 * l[1] + 2.0 * l[2] - l[3]).abs() > 1e-6;
    if log_det.chunks(4).any(jump) {
        return None;
    }
    let slope = |c: usize, i: usize| {
        let at = |k: usize| rows.row(4 * c + k)[i];
        ((at(0) - at(3)) / 12.0 + (at(2) - at(1)) * 2.0 / 3.0) / h
    };
    Some(log_abs_det((0..dim).map(|c| (0..dim).map(|i| slope(c, i)).collect()).collect()))
}

/// The same flow with the change of log |∂x/∂q| left out.
struct WithoutJacobian<'a> {
    flow: &'a dyn Flow,
    molecule: &'a Molecule,
    internal: InternalCoordinates,
}

impl WithoutJacobian<'_> {
    fn log_jacobian(&self, x: &Batch) -> Vec<f64> {
        let mut cartesian = vec![0.0; x.rows() * 66];
        self.molecule.mean_free().to_cartesian(x.as_slice(), &mut cartesian);
        let (mut q, mut out) = (vec![0.0; x.rows() * 60], vec![0.0; x.rows()]);
        self.internal.to_internal(&cartesian, &mut q, &mut out);
        out
    }
}

impl Flow for WithoutJacobian<'_> {
    fn forward(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        let before = self.log_jacobian(x);
        self.flow.forward(pairs, x, log_det, scratch)?;
        let after = self.log_jacobian(x);
        log_det.iter_mut().zip(before.iter().zip(after)).for_each(|(l, (b, a))| *l -= a - b);
        Ok(())
    }
    fn inverse(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        self.flow.inverse(pairs, x, log_det, scratch)
    }
}

/// The largest error of a flow's log-determinant at a few points.
fn worst_log_det(flow: &dyn Flow, points: &Batch) -> f64 {
    let pair = Interval { lower: 0.0, upper: 0.4 };
    let mut errors = Vec::new();
    for i in 0..8 {
        let mut x = rows_of(points, i..i + 1);
        let Some(expected) = numerical_log_det(flow, pair, x.row(0)) else { continue };
        let mut log_det = [0.0];
        flow.forward(&[pair], &mut x, &mut log_det, &mut Scratch::default()).unwrap();
        errors.push((log_det[0] - expected).abs());
    }
    assert!(errors.len() >= 4, "only {} points could be judged", errors.len());
    errors.into_iter().fold(0.0, f64::max)
}

#[test]
fn flows_invert_have_the_right_determinant_and_ignore_the_batch() {
    let fixture = Fixture::get();
    for (name, flow) in fixture.flows() {
        // Inverse, on pairs that were fitted and on others.
        for (beta, points) in &fixture.samples {
            let rows = 64;
            let pairs: Vec<Interval> = (0..rows)
                .map(|i| {
                    if i % 2 == 0 {
                        Interval { lower: *beta, upper: 1.0 }
                    } else {
                        Interval { lower: 0.1, upper: 0.7 }
                    }
                })
                .collect();
            let start = rows_of(points, 0..rows);
            let (mut x, mut there, mut back) = (start.clone(), vec![0.0; rows], vec![0.0; rows]);
            flow.forward(&pairs, &mut x, &mut there, &mut Scratch::default()).unwrap();
            let there_only = x.clone();
            flow.inverse(&pairs, &mut x, &mut back, &mut Scratch::default()).unwrap();
            for i in 0..rows {
                assert!(there[i].is_finite(), "{name}: {}", there[i]);
                assert!((there[i] + back[i]).abs() < 1e-8, "{name} row {i}: {} {}", there[i], back[i]);
                let error = x.row(i).iter().zip(start.row(i)).fold(0.0f64, |e, (a, b)| e.max((a - b).abs()));
                assert!(error < 1e-10, "{name} row {i}: {error}");
                let (mut alone, mut log_det) = (rows_of(&start, i..i + 1), [0.0]);
                flow.forward(&pairs[i..i + 1], &mut alone, &mut log_det, &mut Scratch::default()).unwrap();
                assert_eq!(alone.row(0), there_only.row(i), "{name} row {i}");
                assert_eq!(log_det[0].to_bits(), there[i].to_bits());
            }
        }
        let points = &fixture.samples[0].1;
        let error = worst_log_det(flow, points);
        assert!(error < 1e-5, "{name}: log |det| is wrong by {error}");
        let internal = InternalCoordinates::new(fixture.molecule.system()).unwrap();
        let broken = WithoutJacobian { flow, molecule: &fixture.molecule, internal };
        let error = worst_log_det(&broken, points);
        assert!(error > 1e-2, "{name}: the missing Jacobian went unnoticed ({error})");
    }
}

#[test]
fn transports_bring_neighbouring_temperatures_together() {
    let fixture = Fixture::get();
    // Mean acceptance probability of swaps between 1200 K and 600 K on fresh samples.
    let (hot, cold) = (PATH.beta(1200.0), PATH.beta(600.0));
    let (a, b) = (walk(&fixture.molecule, hot, 11), walk(&fixture.molecule, cold, 12));
    let rows = a.rows().min(b.rows());
    let pairs = vec![Interval { lower: hot, upper: cold }; rows];
    let density = |x: &Batch, beta: f64| {
        let mut out = Evaluation::zeros(x.rows(), x.dim());
        fixture.molecule.evaluate(x, &mut out).unwrap();
        out.log_density.iter().map(|l| l * PATH.target / PATH.at(beta)).collect::<Vec<f64>>()
    };
    let acceptance = |flow: Option<&dyn Flow>| {
        let (mut up, mut down) = (rows_of(&a, 0..rows), rows_of(&b, 0..rows));
        let (from_a, from_b) = (density(&up, hot), density(&down, cold));
        let (mut det_up, mut det_down) = (vec![0.0; rows], vec![0.0; rows]);
        if let Some(flow) = flow {
            flow.forward(&pairs, &mut up, &mut det_up, &mut Scratch::default()).unwrap();
            flow.inverse(&pairs, &mut down, &mut det_down, &mut Scratch::default()).unwrap();
        }
        let (to_a, to_b) = (density(&up, cold), density(&down, hot));
        let sum: f64 = (0..rows)
            .map(|i| {
                let delta = to_a[i] + det_up[i] - from_a[i] + to_b[i] + det_down[i] - from_b[i];
                delta.exp().min(1.0)
            })
            .sum();
        sum / rows as f64
    };
    let plain = acceptance(None);
    let scaling = acceptance(Some(&fixture.scaling));
    let affine = acceptance(Some(&fixture.affine));
    assert!(plain < 0.1 && scaling > 3.0 * plain && affine > 1.2 * scaling, "{plain} {scaling} {affine}");
}

#[test]
fn rows_without_an_image_stay_and_are_rejected() {
    let fixture = Fixture::get();
    // The mirror image: impropers far from their means, pushed beyond half a turn on the way to 1200 K.
    let start = fixture.molecule.start();
    let mirrored: Vec<f64> =
        start.iter().enumerate().map(|(i, x)| if i % 3 == 0 { -x } else { *x }).collect();
    let nothing = vec![0.0; 63];
    let all = Batch::from_vec(63, [mirrored, start.to_vec(), nothing, vec![f64::NAN; 63]].concat());
    for (name, flow) in fixture.flows() {
        let mut x = all.clone();
        let mut log_det = [0.0; 4];
        flow.inverse(
            &[Interval { lower: 0.0, upper: 1.0 }; 4],
            &mut x,
            &mut log_det,
            &mut Scratch::default(),
        )
        .unwrap();
        assert!(log_det[1].is_finite());
        for bad in [0, 2, 3] {
            assert_eq!(log_det[bad], f64::NEG_INFINITY, "{name} row {bad}");
            let same = x.row(bad).iter().zip(all.row(bad)).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{name} row {bad} was changed");
        }
    }
}

#[test]
fn other_molecules_have_sound_transports_too() {
    for reference in crate::common::references().into_iter().skip(1) {
        let start = &reference.conformations[0].positions;
        let molecule = Molecule::new(reference.system, start, PATH.target).unwrap().mass_weighted();
        let samples = [0.0, 1.0].map(|beta| (beta, walk(&molecule, beta, 5)));
        let chains = [0, 1].map(|i| ChainSamples { beta: samples[i].0, points: &samples[i].1 });
        let scaling = TemperatureScaling::fit(&molecule, PATH, &chains).unwrap();
        let affine = ConditionalAffine::fit(&molecule, PATH, &chains).unwrap();
        let flows: [&dyn Flow; 2] = [&scaling, &affine];
        for flow in flows {
            let pairs = vec![Interval { lower: 0.0, upper: 0.4 }; 32];
            let from = rows_of(&samples[0].1, 0..32);
            let (mut x, mut there, mut back) = (from.clone(), vec![0.0; 32], vec![0.0; 32]);
            flow.forward(&pairs, &mut x, &mut there, &mut Scratch::default()).unwrap();
            flow.inverse(&pairs, &mut x, &mut back, &mut Scratch::default()).unwrap();
            for i in 0..32 {
                let error = x.row(i).iter().zip(from.row(i)).fold(0.0f64, |e, (a, b)| e.max((a - b).abs()));
                assert!(error < 1e-9, "{}: {error}", reference.name);
                assert!((there[i] + back[i]).abs() < 1e-7, "{}", reference.name);
            }
            let error = worst_log_det(flow, &samples[0].1);
            assert!(error < 1e-5, "{}: log |det| is wrong by {error}", reference.name);
        }
    }
}

#[test]
fn parameters_make_the_same_transport() {
    let fixture = Fixture::get();
    let molecule = &fixture.molecule;
    let (scaling, affine) = (fixture.scaling.parameters(), fixture.affine.parameters());
    let copies: [Box<dyn Flow>; 2] = [
        Box::new(TemperatureScaling::from_parameters(molecule, PATH, &scaling).unwrap()),
        Box::new(ConditionalAffine::from_parameters(molecule, PATH, &affine).unwrap()),
    ];
    let pairs = vec![Interval { lower: 0.1, upper: 0.7 }; 40];
    for ((name, flow), copy) in fixture.flows().into_iter().zip(&copies) {
        let (mut x, mut y) = (rows_of(&fixture.samples[0].1, 0..40), rows_of(&fixture.samples[0].1, 0..40));
        let (mut a, mut b) = (vec![0.0; 40], vec![0.0; 40]);
        flow.forward(&pairs, &mut x, &mut a, &mut Scratch::default()).unwrap();
        copy.forward(&pairs, &mut y, &mut b, &mut Scratch::default()).unwrap();
        assert_eq!((x, a), (y, b), "{name}");
    }
    assert!(TemperatureScaling::from_parameters(molecule, PATH, &scaling[1..]).is_err());
    assert!(ConditionalAffine::from_parameters(molecule, PATH, &scaling).is_err());
    for bad in [vec![f64::NAN], vec![0.0], vec![2.0, 0.5, 0.4], vec![1e300], vec![]] {
        assert!(ConditionalAffine::from_parameters(molecule, PATH, &bad).is_err(), "{bad:?}");
    }
}

#[test]
fn any_number_of_threads_makes_the_same_fit() {
    let Fixture { molecule, samples, scaling, affine, .. } = Fixture::get();
    let chains: Vec<ChainSamples> =
        samples.iter().map(|(beta, points)| ChainSamples { beta: *beta, points }).collect();
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let fit = || -> Result<_, MoleculeError> {
            let scaling = TemperatureScaling::fit(molecule, PATH, &chains)?;
            Ok((scaling.parameters(), ConditionalAffine::fit(molecule, PATH, &chains)?.parameters()))
        };
        assert!(pool.install(fit).unwrap() == (scaling.parameters(), affine.parameters()), "{threads}");
    }
}

#[test]
fn fits_that_cannot_be_are_refused() {
    let molecule = alanine_dipeptide(300.0).unwrap();
    let start = Batch::from_vec(63, molecule.start().to_vec());
    let one = [ChainSamples { beta: 0.0, points: &start }];
    assert!(TemperatureScaling::fit(&molecule, PATH, &[]).unwrap_err().to_string().contains("no samples"));
    assert!(
        ConditionalAffine::fit(&molecule, PATH, &one)
            .unwrap_err()
            .to_string()
            .contains("at least two chains")
    );
    let wrong = Batch::zeros(1, 66);
    let wrong = [ChainSamples { beta: 0.0, points: &wrong }];
    assert!(
        TemperatureScaling::fit(&molecule, PATH, &wrong).unwrap_err().to_string().contains("66 coordinates")
    );
    let cold = Temperatures { reference: 0.0, target: 300.0 };
    assert!(TemperatureScaling::fit(&molecule, cold, &one).is_err());
    let flow = TemperatureScaling::fit(&molecule, PATH, &one).unwrap();
    let pair = Interval { lower: 0.0, upper: 1.0 };
    assert!(flow.forward(&[pair], &mut Batch::zeros(1, 66), &mut [0.0], &mut Scratch::default()).is_err());
}

/// A map that does nothing leaves the affine transport.
struct Nothing;

impl InnerMap for Nothing {
    fn forward(
        &self,
        _: &[Interval],
        _: &mut [f64],
        _: &mut [f64],
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        log_det.fill(0.0);
        Ok(())
    }
    fn inverse(
        &self,
        _: &[Interval],
        _: &mut [f64],
        _: &mut [f64],
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        log_det.fill(0.0);
        Ok(())
    }
}

#[test]
fn a_map_that_does_nothing_leaves_the_affine_transport() {
    let fixture = Fixture::get();
    let refined = Refined::new(fixture.affine.clone(), std::sync::Arc::new(Nothing));
    let pair = Interval { lower: 0.1, upper: 0.6 };
    let start = rows_of(&fixture.samples[1].1, 0..11);
    type Direction = fn(&dyn Flow, &[Interval], &mut Batch, &mut [f64]) -> sterna::Result<()>;
    let directions: [Direction; 2] = [
        |flow, pairs, x, out| flow.forward(pairs, x, out, &mut Scratch::default()),
        |flow, pairs, x, out| flow.inverse(pairs, x, out, &mut Scratch::default()),
    ];
    for apply in directions {
        let run = |flow: &dyn Flow| {
            let (mut x, mut log_det) = (start.clone(), vec![0.0; 11]);
            apply(flow, &[pair; 11], &mut x, &mut log_det).unwrap();
            (x, log_det)
        };
        let ((x, log_det), (y, other)) = (run(&refined), run(&fixture.affine));
        assert!(x.as_slice().iter().zip(y.as_slice()).all(|(a, b)| (a - b).abs() < 1e-12));
        assert!(log_det.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-9));
    }
}
