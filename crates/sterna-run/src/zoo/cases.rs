//! The cases of the zoo: densities with the defaults of users' targets, and settings and targets that once fooled the program.

use super::liars::{self, LIES};
use crate::error::JobError;
use crate::files::write_whole;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use sterna_testkit::zoo::{self, Density, Expectation, Specimen};

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A density, of this class.
    Density(zoo::Class),
    /// Components that can be exchanged.
    Switching,
    /// A molecule that falls apart.
    Molecule,
    /// A library that does not do what it should.
    Liar,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Density(zoo::Class::Easy) => "easy",
            Self::Density(zoo::Class::Modes) => "several modes",
            Self::Density(zoo::Class::Tails) => "heavy tails",
            Self::Density(zoo::Class::Funnels) => "funnels",
            Self::Density(zoo::Class::Ridges) => "ridges",
            Self::Density(zoo::Class::Edges) => "jumps and poles",
            Self::Density(zoo::Class::Lawless) => "not integrable",
            Self::Density(zoo::Class::Hidden) => "modes nobody can see",
            Self::Density(zoo::Class::Aside) => "kept aside",
            Self::Switching => "label switching",
            Self::Molecule => "molecules that dissociate",
            Self::Liar => "liars",
        })
    }
}

/// Where a target comes from.
#[derive(Clone)]
pub enum Source {
    /// A density in a program.
    Density(Arc<Density>),
    /// What the config says.
    Config,
    /// A library in C that lies: which lie, and how many coordinates.
    Liar(usize, usize),
    /// A molecule: its force field, and positions in nm.
    Molecule(&'static str, &'static str),
}

impl Source {
    /// Fields of the config that name files, once these are written.
    pub(super) fn overrides(
        &self,
        workplace: &Path,
        name: &str,
    ) -> Result<Vec<(&'static str, String)>, JobError> {
        let text = |path: &Path| format!("{:?}", path.display().to_string());
        Ok(match self {
            Self::Density(_) | Self::Config => Vec::new(),
            Self::Liar(lie, dim) => {
                let library = liars::compiled(workplace, name, *lie, *dim)?;
                vec![("target.kind", "library".into()), ("target.library", text(&library))]
            }
            Self::Molecule(system, positions) => {
                let file = |ending: &str, content: &str| {
                    let path = workplace.join(format!("{name}.{ending}"));
                    write_whole(&path, content.as_bytes())?;
                    Ok::<_, JobError>(text(&path))
                };
                vec![
                    ("target.kind", "molecule".into()),
                    ("target.system", file("xml", system)?),
                    ("target.positions", file("csv", positions)?),
                ]
            }
        })
    }
}

/// A target with its truth, and how it is run.
#[derive(Clone)]
pub struct Case {
    /// What it is called.
    pub name: &'static str,
    /// What it is about.
    pub class: Class,
    /// What it is.
    pub about: &'static str,
    /// The target.
    pub source: Source,
    /// What a user said beside it; nothing, for the defaults.
    pub config: &'static str,
    /// log ∫ π̃, where it is known.
    pub log_z: Option<f64>,
    /// Expectations that are known.
    pub expectations: Vec<Expectation>,
    /// Whether there is a law to be sampled.
    pub has_law: bool,
}

impl Case {
    fn of(specimen: &Specimen) -> Self {
        Self {
            name: specimen.name,
            class: Class::Density(specimen.class),
            about: specimen.about,
            source: Source::Density(specimen.density.clone()),
            config: "",
            log_z: specimen.log_z,
            expectations: specimen.expectations.clone(),
            has_law: specimen.has_law(),
        }
    }

    /// The same density under another name, with what a user said of it.
    fn with(specimen: &Specimen, name: &'static str, about: &'static str, config: &'static str) -> Self {
        Self { name, about, config, ..Self::of(specimen) }
    }

    /// Whether nothing was chosen by it.
    pub fn is_aside(&self) -> bool {
        self.class == Class::Density(zoo::Class::Aside)
    }

    /// Whether it belongs to the class in which no verdict can be right.
    pub fn is_hidden(&self) -> bool {
        self.class == Class::Density(zoo::Class::Hidden)
    }
}

/// A ladder as it was before references were fitted.
const OLD: &str =
    "[reference]\nkind = \"standard-normal\"\n[chains]\ncount = 10\n[run]\niterations = 20000\n";
const AFFINE: &str = "[accelerator]\nkind = \"affine\"\n";
const OLD_AFFINE: &str = "[reference]\nkind = \"standard-normal\"\n[chains]\ncount = 10\n[run]\niterations = 20000\n\
                          [accelerator]\nkind = \"affine\"\n";
const ONE_LADDER: &str = "[chains]\nensembles = 1\n";

/// All of them; liars where there is a compiler for C.
///
/// ```
/// let cases = sterna_run::zoo::cases();
/// assert!(cases.iter().any(|case| case.name == "egg-crate" && case.config.is_empty()));
/// ```
pub fn cases() -> Vec<Case> {
    let specimens = zoo::specimens();
    let of = |name: &str| specimens.iter().find(|s| s.name == name).expect("a specimen of that name");
    let mut all: Vec<Case> = specimens.iter().map(Case::of).collect();
    all.extend([
        Case::with(of("banana"), "banana-affine", "the banana, kind = \"affine\"", AFFINE),
        Case::with(of("banana"), "banana-unit", "the banana, affine, from N(0, 1), unit masses", OLD_AFFINE),
        Case::with(of("rosenbrock"), "rosenbrock-affine", "Rosenbrock, kind = \"affine\"", AFFINE),
        Case::with(of("egg-crate"), "egg-crate-affine", "the egg crate, affine, from N(0, 1)", OLD_AFFINE),
        Case::with(of("egg-crate"), "egg-crate-old", "the egg crate, from N(0, 1)", OLD),
        Case::with(of("diagonal"), "diagonal-one", "two normals on the diagonal, one ladder", ONE_LADDER),
        Case::with(
            of("diagonal"),
            "diagonal-old",
            "two normals on the diagonal, one ladder from N(0, 1)",
            OLD,
        ),
        Case::with(of("funnel-5"), "funnel-5-old", "funnel of scale 5, one ladder from N(0, 1)", OLD),
        Case::with(of("pole"), "pole-old", "|x|^−0.9 e^(−x²/2), one ladder from N(0, 1)", OLD),
        Case::with(of("slow"), "slow-old", "1/√(1 + x²), one ladder from N(0, 1)", OLD),
        Case::with(
            of("two-normals"),
            "two-normals-old",
            "½ N(0, 1) + ½ N(10, 1), d = 5, one ladder from N(0, 1)",
            OLD,
        ),
    ]);
    all.extend(switching());
    all.extend(molecules());
    if liars::there_is_a_compiler() {
        all.extend(LIES.iter().map(liar));
    }
    all
}

/// Posteriors whose components can be exchanged: what that leaves as it is, is known by symmetry.
fn switching() -> Vec<Case> {
    let galaxies = |name, about, config| Case {
        name,
        class: Class::Switching,
        about,
        source: Source::Config,
        config,
        log_z: None,
        expectations: (0..3)
            .map(|k| {
                let lowest = move |x: &[f64]| x[k] <= x[0].min(x[1]).min(x[2]);
                Expectation::share(format!("P(mean {k} is the lowest)"), 1.0 / 3.0, lowest)
            })
            .collect(),
        has_law: true,
    };
    vec![
        galaxies(
            "galaxies",
            "velocities of galaxies, three normals: six equal modes",
            "[target]\nkind = \"galaxies\"\n",
        ),
        galaxies(
            "galaxies-33",
            "the same from N(0, 1), 33 chains",
            "[target]\nkind = \"galaxies\"\n[reference]\nkind = \"standard-normal\"\n[chains]\ncount = 33\n[run]\niterations = 10000\n",
        ),
        Case {
            name: "mrna",
            class: Class::Switching,
            about: "mRNA transfection: two equal modes",
            source: Source::Config,
            config: "[target]\nkind = \"mrna\"\n",
            log_z: None,
            expectations: vec![Expectation::share("P(beta < delta)", 0.5, |x| x[2] < x[3])],
            has_law: true,
        },
    ]
}

const NO_BONDS: &str = "<System type=\"System\" version=\"1\"><Particles><Particle mass=\"40\"/><Particle mass=\"40\"/></Particles>\
    <Constraints/><Forces><Force type=\"NonbondedForce\" method=\"0\" version=\"4\" cutoff=\"1\" ewaldTolerance=\".0005\" \
    rfDielectric=\"78.3\" switchingDistance=\"-1\" useSwitchingFunction=\"0\" dispersionCorrection=\"1\" alpha=\"0\" nx=\"0\" \
    ny=\"0\" nz=\"0\"><Particles><Particle eps=\"1\" q=\"0\" sig=\".34\"/><Particle eps=\"1\" q=\"0\" sig=\".34\"/></Particles>\
    <Exceptions/></Force></Forces></System>";

const ONE_LOOSE: &str = "<System type=\"System\" version=\"1\"><Particles><Particle mass=\"16\"/><Particle mass=\"16\"/><Particle \
    mass=\"40\"/></Particles><Constraints/><Forces><Force type=\"HarmonicBondForce\" usesPeriodic=\"0\" version=\"2\"><Bonds><Bond \
    d=\".12\" k=\"400000\" p1=\"0\" p2=\"1\"/></Bonds></Force><Force type=\"NonbondedForce\" method=\"0\" version=\"4\" cutoff=\"1\" \
    ewaldTolerance=\".0005\" rfDielectric=\"78.3\" switchingDistance=\"-1\" useSwitchingFunction=\"0\" dispersionCorrection=\"1\" \
    alpha=\"0\" nx=\"0\" ny=\"0\" nz=\"0\"><Particles><Particle eps=\".5\" q=\"0\" sig=\".3\"/><Particle eps=\".5\" q=\"0\" \
    sig=\".3\"/><Particle eps=\"1\" q=\"0\" sig=\".34\"/></Particles><Exceptions><Exception eps=\"0\" p1=\"0\" p2=\"1\" q=\"0\" \
    sig=\"1\"/></Exceptions></Force></Forces></System>";

fn molecules() -> Vec<Case> {
    let of = |name, about, system, positions| Case {
        name,
        class: Class::Molecule,
        about,
        source: Source::Molecule(system, positions),
        config: "[chains]\ncount = 4\n[run]\niterations = 5000\n",
        log_z: None,
        expectations: Vec::new(),
        has_law: false,
    };
    vec![
        of("two-atoms", "two atoms without a bond", NO_BONDS, "0,0,0,0.4,0,0\n"),
        of(
            "loose-atom",
            "a molecule of two atoms and a third that nothing holds",
            ONE_LOOSE,
            "0,0,0,0.12,0,0,0.5,0,0\n",
        ),
    ]
}

fn liar(lie: &liars::Lie) -> Case {
    Case {
        name: lie.name,
        class: Class::Liar,
        about: lie.about,
        source: Source::Liar(lie.number, lie.dim),
        config: "",
        log_z: lie.harmless.then_some(0.0),
        expectations: if lie.harmless { Expectation::normal(0, 0.0, 1.0) } else { Vec::new() },
        has_law: lie.harmless,
    }
}
