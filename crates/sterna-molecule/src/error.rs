//! What can be wrong with a molecule's files, each with the cure.

/// Why a system could not be read or built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoleculeError {
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something is wrong in a file.
    #[error("{path}: {error}")]
    In {
        /// The file.
        path: std::path::PathBuf,
        /// What it is.
        error: Box<MoleculeError>,
    },
    /// Moves that turn torsions, of a molecule that has none.
    #[error("the molecule has no soft torsion that moves could turn; leave explorer.torsion_moves at 0")]
    NoTorsion,
    /// The text is no XML, for example because it was cut off.
    #[error(
        "the System file is not well-formed XML ({0}); write it again with openmm.XmlSerializer.serialize(system)"
    )]
    Xml(#[from] roxmltree::Error),
    /// XML, but not of a System.
    #[error(
        "found <{found}> where a serialized System was expected; write one with openmm.XmlSerializer.serialize(system)"
    )]
    NotASystem {
        /// The root element, with its type.
        found: String,
    },
    /// A force that this crate does not compute.
    #[error(
        "the System has a {found}, which is not supported; supported are HarmonicBondForce, HarmonicAngleForce, \
         PeriodicTorsionForce and NonbondedForce without cutoff (CMMotionRemover is ignored). \
         Build the system in vacuum without it"
    )]
    UnknownForce {
        /// Type of the force.
        found: String,
    },
    /// Something in a supported force that this crate does not compute.
    #[error("{force}: {found} is not supported; {cure}")]
    Unsupported {
        /// The force, or `System`.
        force: String,
        /// What was found.
        found: String,
        /// What to do instead.
        cure: &'static str,
    },
    /// An element or attribute is missing.
    #[error("line {line}: <{element}> has no {missing}; the file may be damaged, serialize the system again")]
    Missing {
        /// Line of the file.
        line: u32,
        /// The element.
        element: String,
        /// The attribute or child that is missing.
        missing: String,
    },
    /// An attribute is not the number it should be.
    #[error("line {line}: {attribute}=\"{value}\" in <{element}> is not {expected}")]
    Number {
        /// Line of the file.
        line: u32,
        /// The element.
        element: String,
        /// The attribute.
        attribute: String,
        /// Its value.
        value: String,
        /// What it should have been.
        expected: &'static str,
    },
    /// A term names an atom that does not exist.
    #[error("{term} names atom {atom}, but the system has {atoms} atoms, numbered from 0")]
    AtomOutOfRange {
        /// The term.
        term: String,
        /// The atom it names.
        atom: usize,
        /// Number of atoms.
        atoms: usize,
    },
    /// A term names an atom twice.
    #[error("{term} names atom {atom} twice")]
    AtomTwice {
        /// The term.
        term: String,
        /// The atom.
        atom: usize,
    },
    /// A parameter that must be finite, or positive, is not.
    #[error("{term}: {parameter} = {value} is not {expected}")]
    Parameter {
        /// The term.
        term: String,
        /// Name of the parameter.
        parameter: &'static str,
        /// Its value.
        value: f64,
        /// What it should have been.
        expected: &'static str,
    },
    /// The number of nonbonded particles is not that of atoms.
    #[error("NonbondedForce lists {found} particles, but the system has {atoms} atoms")]
    ParticleCount {
        /// Particles listed.
        found: usize,
        /// Number of atoms.
        atoms: usize,
    },
    /// Positions that do not fit the molecule.
    #[error("{what} has {found} {unit}, but a molecule of {atoms} atoms needs {expected}")]
    PositionCount {
        /// Which positions.
        what: String,
        /// How many there are.
        found: usize,
        /// Of what.
        unit: &'static str,
        /// Number of atoms.
        atoms: usize,
        /// How many there should be.
        expected: usize,
    },
    /// Positions that cannot be read.
    #[error("{what}: {problem}")]
    Positions {
        /// Which positions.
        what: String,
        /// What is wrong with them, and the cure.
        problem: String,
    },
    /// A temperature that is not a positive number of kelvin.
    #[error("temperature = {0} K is not positive and finite")]
    Temperature(f64),
    /// The bond graph is not one molecule.
    #[error(
        "internal coordinates need one bonded molecule: atom {atom} is not connected to atom {root} by bonds; \
         use one molecule, or Cartesian moves"
    )]
    NotConnected {
        /// An atom out of reach.
        atom: usize,
        /// The atom where the search began.
        root: usize,
    },
    /// Too few atoms.
    #[error("found {found} atoms, but at least {needed} are needed")]
    TooFewAtoms {
        /// Atoms found.
        found: usize,
        /// Atoms needed.
        needed: usize,
    },
    /// A transport could not be fitted.
    #[error("cannot fit the transport: {0}")]
    Fit(String),
}

impl MoleculeError {
    /// The same with the name of the file where it is, if it has none yet.
    pub(crate) fn in_file(self, path: &std::path::Path) -> Self {
        match self {
            Self::Io { .. } | Self::In { .. } => self,
            error => Self::In { path: path.to_path_buf(), error: Box::new(error) },
        }
    }
}
