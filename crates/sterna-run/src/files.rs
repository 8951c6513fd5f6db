//! Files that are replaced whole: a crash leaves the old file or the new one, never half of one.

use crate::error::JobError;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Lets `write` make the file at a place beside `path`, brings it to disk and moves it there. What fails leaves nothing.
/// `refused` makes an error of what the system says.
pub fn replace<E>(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), E>,
    refused: impl FnOnce(io::Error) -> E,
) -> Result<(), E> {
    let beside = beside(path);
    let synced = || File::options().append(true).open(&beside)?.sync_all();
    let written =
        write(&beside).and_then(|()| synced().and_then(|()| rename(&beside, path)).map_err(refused));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".partial");
    beside.into()
}

/// Moves a file, and makes sure that the folder knows.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    // A new name is itself data of the folder.
    crate::platform::sync_folder(to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")));
    Ok(())
}

/// Replaces a file by these bytes.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), JobError> {
    replace(path, |beside| fs::write(beside, bytes), |e| e).map_err(JobError::file("write", path))
}

/// The same for a file that only watchers read: whole, but not forced to disk, which takes its time.
pub(crate) fn write_in_passing(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path);
    fs::write(&beside, bytes)?;
    fs::rename(&beside, path)
}

/// CRC-32: notices accidents and edits, not malice.
pub fn checksum(bytes: &[u8]) -> u64 {
    crc32fast::hash(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_leaves_the_old_file_and_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_whole(&path, b"old").unwrap();
        let refused = replace(
            &path,
            |beside| {
                File::create(beside)?;
                Err(io::Error::other("no"))
            },
            |e| e,
        );
        assert_eq!(refused.unwrap_err().to_string(), "no");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(
            write_whole(&folder.path().join("absent/file"), b"").unwrap_err().to_string().contains("absent")
        );
    }
}
