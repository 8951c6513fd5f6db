//! Trajectories that molecular viewers open: DCD files, with a PDB file as topology.

use crate::{AtomLabel, Molecule};
use std::io::{self, Seek, SeekFrom, Write};

/// Writes a DCD trajectory (single precision, ångström, little-endian), as CHARMM, mdtraj and VMD read it.
///
/// ```
/// use sterna_molecule::DcdWriter;
///
/// let mut file = std::io::Cursor::new(Vec::new());
/// let mut trajectory = DcdWriter::new(&mut file, 2).unwrap();
/// trajectory.write(&[0.0, 0.0, 0.0, 0.1, 0.0, 0.0]).unwrap(); // two atoms, nm
/// trajectory.finish().unwrap();
/// assert_eq!(file.into_inner().len(), 92 + 92 + 12 + 3 * (8 + 2 * 4));
/// ```
pub struct DcdWriter<W: Write + Seek> {
    out: W,
    atoms: usize,
    frames: u32,
    frame: Vec<u8>,
}

impl<W: Write + Seek> DcdWriter<W> {
    /// Writes the header.
    pub fn new(mut out: W, atoms: usize) -> io::Result<Self> {
        let count = u32::try_from(atoms).map_err(io::Error::other)?;
        let mut header = b"CORD".to_vec();
        let mut control = [0u32; 20];
        control[1] = 1; // first step
        control[2] = 1; // steps between frames
        control[9] = 1f32.to_bits(); // time step
        control[19] = 24; // version of CHARMM whose layout this is
        header.extend(control.iter().flat_map(|word| word.to_le_bytes()));
        record(&mut out, &header)?;
        let mut title = 1u32.to_le_bytes().to_vec();
        title.extend(format!("{:<80}", "Sterna: conformations of a molecule").bytes());
        record(&mut out, &title)?;
        record(&mut out, &count.to_le_bytes())?;
        Ok(Self { out, atoms, frames: 0, frame: Vec::with_capacity(4 * atoms) })
    }

    /// One more conformation: 3n Cartesian coordinates in nm.
    ///
    /// # Panics
    /// If it is not of the right length.
    pub fn write(&mut self, x: &[f64]) -> io::Result<()> {
        assert_eq!(x.len(), 3 * self.atoms, "three coordinates per atom");
        for axis in 0..3 {
            self.frame.clear();
            for value in x.iter().skip(axis).step_by(3) {
                self.frame.extend(((10.0 * value) as f32).to_le_bytes());
            }
            record(&mut self.out, &self.frame)?;
        }
        self.frames += 1;
        Ok(())
    }

    /// Writes the number of frames where readers look for it.
    pub fn finish(mut self) -> io::Result<()> {
        for (offset, value) in [(8, self.frames), (8 + 3 * 4, self.frames)] {
            self.out.seek(SeekFrom::Start(offset))?;
            self.out.write_all(&value.to_le_bytes())?;
        }
        self.out.seek(SeekFrom::End(0))?;
        self.out.flush()
    }
}

/// Fortran's unformatted record: its length before and after.
fn record(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?.to_le_bytes();
    out.write_all(&length)?;
    out.write_all(bytes)?;
    out.write_all(&length)
}

impl Molecule {
    /// Writes a conformation (3n Cartesian coordinates, nm) as a PDB file with all bonds: also the topology of a DCD
    /// trajectory. Atoms without names get their number.
    ///
    /// # Panics
    /// If the conformation is not of the right length.
    pub fn write_pdb(&self, out: &mut impl Write, x: &[f64]) -> io::Result<()> {
        assert_eq!(x.len(), 3 * self.atoms(), "three coordinates per atom");
        for (i, p) in x.chunks(3).enumerate() {
            let unnamed = AtomLabel {
                name: format!("X{}", i + 1),
                residue: "MOL".into(),
                residue_number: 1,
                element: String::new(),
            };
            let label = self.topology().and_then(|t| t.atoms.get(i)).unwrap_or(&unnamed);
            // Names of elements with one letter begin in the second column.
            let name = if label.element.len() < 2 && label.name.len() < 4 {
                format!(" {:<3}", label.name)
            } else {
                format!("{:<4}", label.name)
            };
            let kind = if is_amino_acid(&label.residue) { "ATOM  " } else { "HETATM" };
            writeln!(
                out,
                "{kind}{:>5} {name:<4} {:<3} A{:>4}    {:>8.3}{:>8.3}{:>8.3}  1.00  0.00          {:>2}",
                i + 1,
                label.residue,
                label.residue_number,
                10.0 * p[0],
                10.0 * p[1],
                10.0 * p[2],
                label.element,
            )?;
        }
        writeln!(out, "TER")?;
        for bond in &self.system().bonds {
            writeln!(out, "CONECT{:>5}{:>5}", bond.atoms[0] + 1, bond.atoms[1] + 1)?;
        }
        writeln!(out, "END")
    }
}

fn is_amino_acid(residue: &str) -> bool {
    const NAMES: [&str; 20] = [
        "ALA", "ARG", "ASN", "ASP", "CYS", "GLN", "GLU", "GLY", "HIS", "ILE", "LEU", "LYS", "MET", "PHE",
        "PRO", "SER", "THR", "TRP", "TYR", "VAL",
    ];
    NAMES.contains(&residue)
}
