//! The last bytes of `draws.nc`: a checksum of all before them, so that a reader of ours never sees a damaged file.
//!
//! HDF5 counts bytes from the front and passes over what follows its own. Its metadata has checksums too, but a reader can be led
//! astray by what these do not cover, or by one that was mended.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"STERNA\x1ad";

const LENGTH: u64 = 8 + 8;

/// Adds the seal to a file that is whole.
pub(super) fn seal(path: &Path) -> io::Result<()> {
    let mut file = File::options().read(true).append(true).open(path)?;
    let sum = checksum(&mut file)?;
    file.write_all(MAGIC)?;
    file.write_all(&sum.to_le_bytes())
}

/// Whether the file is as it was sealed; if not, in what way.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    let said = |error: io::Error| error.to_string();
    let mut file = File::open(path).map_err(said)?;
    let length = file.metadata().map_err(said)?.len();
    let body = length.checked_sub(LENGTH).ok_or("it is truncated")?;
    let mut end = [0; LENGTH as usize];
    file.seek(SeekFrom::Start(body)).and_then(|_| file.read_exact(&mut end)).map_err(said)?;
    if end[..8] != *MAGIC {
        return Err("it is truncated, or another program wrote it".into());
    }
    file.rewind().map_err(said)?;
    match checksum(&mut file.take(body)).map_err(said)?.to_le_bytes() == end[8..] {
        true => Ok(()),
        false => Err("it does not match its checksum: it was damaged or edited".into()),
    }
}

fn checksum(file: &mut impl Read) -> io::Result<u64> {
    let (mut sum, mut buffer) = (crc32fast::Hasher::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(sum.finalize().into()),
            count => sum.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_breaks_the_seal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"the draws").unwrap();
        assert!(check(&path).unwrap_err().contains("truncated"));
        seal(&path).unwrap();
        check(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for place in 0..whole.len() {
            let mut edited = whole.clone();
            edited[place] ^= 4;
            std::fs::write(&path, edited).unwrap();
            assert!(check(&path).is_err(), "a change at {place} passed");
            std::fs::write(&path, &whole[..place]).unwrap();
            assert!(check(&path).is_err(), "{place} bytes passed");
        }
    }
}
