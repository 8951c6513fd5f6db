//! Controlled diffusions of a molecule: their weights against an independent account, with a twin that lacks the Jacobian;
//! the same bits in any batch; and paths that leave the space of conformations.

use std::sync::{Arc, OnceLock};
use sterna::accelerator::{Accelerator, Direction, Journey};
use sterna::call::{Call, Rows, Scratch};
use sterna::path::{AnnealingPath, Points};
use sterna::streams::Streams;
use sterna::transport::Interval;
use sterna::{Batch, Result};
use sterna_molecule::{
    ChainSamples, ConditionalAffine, ControlledDiffusion, Densities, InternalCoordinates, Molecule,
    Standardised, Temperatures, TemperedPath, alanine_dipeptide,
};

const PATH: Temperatures = Temperatures { reference: 1200.0, target: 300.0 };
const RELAXATION: f64 = 0.05;

struct Fixture {
    molecule: Arc<Molecule>,
    path: TemperedPath,
    pair: Interval,
    /// Samples of the pair's lower and upper end.
    ends: [Batch; 2],
    coordinates: Arc<Standardised>,
}

impl Fixture {
    /// Made once for all tests.
    fn get() -> &'static Self {
        static FIXTURE: OnceLock<Fixture> = OnceLock::new();
        FIXTURE.get_or_init(|| {
            let molecule = Arc::new(alanine_dipeptide(PATH.target).unwrap().mass_weighted());
            let path = TemperedPath::new(molecule.clone(), PATH.reference).unwrap();
            let pair = Interval { lower: PATH.beta(600.0), upper: PATH.beta(378.0) };
            // Unweighted coordinates suit the walk's step; the fit does not care.
            let plain = alanine_dipeptide(PATH.target).unwrap();
            let ends = [pair.lower, pair.upper].map(|beta| {
                let points = crate::common::walk(&plain, PATH, beta, 4);
                let mut cartesian = vec![0.0; points.rows() * 66];
                plain.mean_free().to_cartesian(points.as_slice(), &mut cartesian);
                let mut out = Batch::zeros(points.rows(), 63);
                molecule.mean_free().to_mean_free(&cartesian, out.as_mut_slice());
                out
            });
            let samples = [(pair.lower, &ends[0]), (pair.upper, &ends[1])]
                .map(|(beta, points)| ChainSamples { beta, points });
            let affine = ConditionalAffine::fit(&molecule, PATH, &samples).unwrap();
            let coordinates = Arc::new(Standardised::fit(affine, &samples).unwrap());
            Self { molecule, path, pair, ends, coordinates }
        })
    }

    fn diffusion(&self, steps: usize, relaxation: f64) -> ControlledDiffusion {
        ControlledDiffusion::new(self.coordinates.clone(), steps, vec![relaxation]).unwrap()
    }

    /// Samples of the end where journeys in this direction start, evaluated there.
    fn start(&self, direction: Direction, rows: usize) -> Points {
        let (samples, beta) = match direction {
            Direction::Forward => (&self.ends[0], self.pair.lower),
            Direction::Backward => (&self.ends[1], self.pair.upper),
        };
        let mut points = Points::zeros(rows, samples.dim());
        (0..rows).for_each(|i| points.x.row_mut(i).copy_from_slice(samples.row(i * 7)));
        self.path.evaluate(&vec![beta; rows], &mut points).unwrap();
        points
    }

    fn travel(
        &self,
        accelerator: &dyn Accelerator,
        direction: Direction,
        points: &Points,
        rows: &[usize],
    ) -> Journey {
        let mut journey = Journey::new(rows.len(), points.x.dim());
        journey.begin(points, rows);
        let mut travellers = Rows::default();
        for (i, &row) in rows.iter().enumerate() {
            travellers.push_leaving(i, row as u32, 1, self.pair, direction);
        }
        accelerator
            .travel(
                direction,
                &Call::new(&self.path, &Streams::new(5), 1, &travellers),
                &mut journey,
                &mut Scratch::default(),
            )
            .unwrap();
        journey
    }

    /// z = L y solved for y.
    fn solve(&self, z: &[f64]) -> Vec<f64> {
        let [_, factor] = self.coordinates.parameters();
        let mut y = z.to_vec();
        for i in 0..y.len() {
            let row = &factor[i * (i + 1) / 2..(i + 1) * (i + 2) / 2];
            let dot: f64 = row[..i].iter().zip(&y).map(|(l, y)| l * y).sum();
            y[i] = (y[i] - dot) / row[i];
        }
        y
    }

    /// y + δ Lᵀ ∇_z log π.
    fn mean(&self, y: &[f64], gradient: &[f64]) -> Vec<f64> {
        let [_, factor] = self.coordinates.parameters();
        let n = y.len();
        let score = |j: usize| (j..n).map(|i| factor[i * (i + 1) / 2 + j] * gradient[i]).sum::<f64>();
        (0..n).map(|j| y[j] + RELAXATION * score(j)).collect()
    }

    /// log w of a journey of one step by the densities of standardised coordinates, which know nothing of the
    /// accelerator.
    fn weight(&self, lower: &[f64], upper: &[f64]) -> f64 {
        let affine = self.coordinates.affine();
        let one = |x: &[f64]| Batch::from_vec(x.len(), x.to_vec());
        let up = affine.journeys(&self.molecule, self.pair, true, &one(lower)).unwrap();
        let down = affine.journeys(&self.molecule, self.pair, false, &one(upper)).unwrap();
        let density = |beta: f64, soft: &[f64], z: &[f64]| {
            let mut out = Densities::default();
            affine.log_density(&self.molecule, &[self.pair.upper], &[beta], soft, z, &mut out);
            (out.log_density[0], out.stiff)
        };
        let (_, at_start) = density(self.pair.lower, &up.soft, &up.z);
        let (end, at_end) = density(self.pair.upper, &down.soft, &down.z);
        let (y0, y1) = (self.solve(&up.z), self.solve(&down.z));
        let square = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let there = square(&y1, &self.mean(&y0, &at_start));
        let back = square(&y0, &self.mean(&y1, &at_end));
        let variance = RELAXATION * (2.0 - RELAXATION);
        end - up.start[0] + (there - back) / (2.0 * variance)
    }

    /// The worst difference between an accelerator's weights and the independent ones.
    fn worst(&self, accelerator: &dyn Accelerator) -> f64 {
        let rows: Vec<usize> = (0..20).collect();
        let worst = [Direction::Forward, Direction::Backward].map(|direction| {
            let start = self.start(direction, 20);
            let journey = self.travel(accelerator, direction, &start, &rows);
            let differences = rows.iter().map(|&i| {
                let (a, b) = (start.x.row(i), journey.points.x.row(i));
                let (lower, upper) = if direction == Direction::Forward { (a, b) } else { (b, a) };
                (journey.log_weight[i] - self.weight(lower, upper)).abs()
            });
            differences.fold(0.0, f64::max)
        });
        worst[0].max(worst[1])
    }
}

/// A twin whose densities forget that internal coordinates have a volume.
struct WithoutJacobian(ControlledDiffusion);

impl Accelerator for WithoutJacobian {
    fn steps(&self) -> usize {
        self.0.steps()
    }

    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let molecule = &Fixture::get().molecule;
        let internal = InternalCoordinates::new(molecule.system()).unwrap();
        let volumes = |x: &Batch| {
            let mut cartesian = vec![0.0; x.rows() * 66];
            molecule.mean_free().to_cartesian(x.as_slice(), &mut cartesian);
            let (mut q, mut log_volume) = (vec![0.0; x.rows() * 60], vec![0.0; x.rows()]);
            internal.to_internal(&cartesian, &mut q, &mut log_volume);
            log_volume
        };
        let before = volumes(&journey.points.x);
        self.0.travel(direction, call, journey, scratch)?;
        let after = volumes(&journey.points.x);
        for (i, weight) in journey.log_weight.iter_mut().enumerate() {
            *weight -= direction.log_weight(before[i], after[i]);
        }
        Ok(())
    }
}

#[test]
fn weights_are_those_of_an_independent_account() {
    let fixture = Fixture::get();
    let worst = fixture.worst(&fixture.diffusion(1, RELAXATION));
    assert!(worst < 1e-7, "weights are wrong by {worst}");
    let worst = fixture.worst(&WithoutJacobian(fixture.diffusion(1, RELAXATION)));
    assert!(worst > 1e-2, "the missing Jacobian went unnoticed ({worst})");
    // Another relaxation than the account's.
    let worst = fixture.worst(&fixture.diffusion(1, 1.2 * RELAXATION));
    assert!(worst > 1e-2, "the wrong noise went unnoticed ({worst})");
}

#[test]
fn rows_travel_alone_as_together_and_end_evaluated() {
    let fixture = Fixture::get();
    let diffusion = fixture.diffusion(3, RELAXATION);
    let rows: Vec<usize> = (0..21).collect();
    for direction in [Direction::Forward, Direction::Backward] {
        let start = fixture.start(direction, 21);
        let evaluations = fixture.path.evaluations();
        let together = fixture.travel(&diffusion, direction, &start, &rows);
        // Other tests may be at work on the same path.
        assert!(fixture.path.evaluations() - evaluations >= 3 * 21, "each step is counted");
        let mut fresh = together.points.clone();
        let mut betas = vec![0.0; 21];
        direction.ends(&[fixture.pair; 21], &mut betas);
        fixture.path.evaluate(&betas, &mut fresh).unwrap();
        assert_eq!(fresh.log_density, together.points.log_density);
        assert_eq!(fresh.score, together.points.score);
        for &i in &[0, 5, 20] {
            let alone = fixture.travel(&diffusion, direction, &start, &[i]);
            assert_eq!(alone.log_weight[0].to_bits(), together.log_weight[i].to_bits());
            assert_eq!(alone.points.x.row(0), together.points.x.row(i));
        }
    }
}

/// Steps far too long lead where there is no conformation: rejected, finite, and never a NaN.
#[test]
fn paths_without_a_conformation_are_rejected() {
    let fixture = Fixture::get();
    let diffusion = fixture.diffusion(8, 1.0);
    let rows: Vec<usize> = (0..40).collect();
    for (direction, rejected) in
        [(Direction::Forward, f64::NEG_INFINITY), (Direction::Backward, f64::INFINITY)]
    {
        let mut start = fixture.start(direction, 40);
        // A molecule without any extent has no internal coordinates.
        start.x.row_mut(3).fill(0.0);
        let journey = fixture.travel(&diffusion, direction, &start, &rows);
        assert_eq!(journey.log_weight[3], rejected);
        assert!(journey.log_weight.iter().all(|w| !w.is_nan()));
        assert!(journey.points.x.as_slice().iter().all(|x| x.is_finite()));
    }
}

#[test]
fn parameters_make_the_same_coordinates_and_wrong_ones_are_refused() {
    let fixture = Fixture::get();
    let parameters = fixture.coordinates.parameters();
    let again = Arc::new(Standardised::from_parameters(&fixture.molecule, PATH, &parameters).unwrap());
    let copy = ControlledDiffusion::new(again, 2, vec![RELAXATION]).unwrap();
    let start = fixture.start(Direction::Forward, 9);
    let rows: Vec<usize> = (0..9).collect();
    let [a, b] = [&fixture.diffusion(2, RELAXATION), &copy]
        .map(|diffusion| fixture.travel(diffusion, Direction::Forward, &start, &rows));
    assert_eq!((a.points.x, a.log_weight), (b.points.x, b.log_weight));
    let [affine, mut factor] = parameters;
    factor[0] = -1.0;
    assert!(Standardised::from_parameters(&fixture.molecule, PATH, &[affine.clone(), factor]).is_err());
    assert!(Standardised::from_parameters(&fixture.molecule, PATH, &[affine, vec![]]).is_err());
    for (steps, relaxation) in [(0, 0.1), (1, 0.0), (1, 1.1), (1, f64::NAN)] {
        assert!(ControlledDiffusion::new(fixture.coordinates.clone(), steps, vec![relaxation]).is_err());
    }
}
