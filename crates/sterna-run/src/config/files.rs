//! Where a config's files are: beside it, or in the current folder, where older configs have them.

use std::path::{Path, PathBuf};

/// Where a file is.
#[derive(Debug, PartialEq)]
pub(super) enum Found {
    /// In the config's folder, or nowhere: that is where it should be.
    Beside(PathBuf),
    /// In the current folder, with what is to be said of that.
    Here(String),
}

/// Looks for a file that a config in this folder names.
pub(super) fn found(name: &Path, folder: &Path) -> Found {
    let there = folder.join(name);
    if there.exists() || !name.exists() {
        return Found::Beside(there);
    }
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    Found::Here(format!(
        "{} is not in the folder of the config, {}, but in the current one, and is taken from here; names in a config are relative \
         to its own folder",
        name.display(),
        folder.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests run in the folder of their crate.
    #[test]
    fn beside_the_config_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let name = Path::new("Cargo.toml");
        let Found::Here(note) = found(name, folder.path()) else { panic!("it is here") };
        assert!(note.contains("Cargo.toml is not in the folder of the config"), "{note}");
        std::fs::write(folder.path().join(name), "").unwrap();
        assert_eq!(found(name, folder.path()), Found::Beside(folder.path().join(name)));
        let nowhere = Path::new("nowhere.so");
        assert_eq!(found(nowhere, folder.path()), Found::Beside(folder.path().join(nowhere)));
        let absolute = folder.path().join(name);
        assert_eq!(found(&absolute, Path::new("")), Found::Beside(absolute.clone()));
    }
}
