//! A model's source becomes a library by an installed BridgeStan, which brings Stan's compiler and a Makefile.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Where BridgeStan is, as far as the program knows.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Says where BridgeStan is installed, for models whose config does not.
pub fn bridgestan_in(folder: PathBuf) {
    let _ = FOLDER.set(folder);
}

/// Lines of a failed compilation that a message shows.
const SHOWN: usize = 12;

/// Whether this is a model's source.
pub fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "stan")
}

/// The library of a source, `x_model.so` beside `x.stan`: as it is if it is newer, else made by the BridgeStan of this folder, or of the
/// one that the program knows.
pub fn compiled(source: &Path, bridgestan: Option<&Path>) -> Result<PathBuf, String> {
    let source = std::path::absolute(source).map_err(|error| error.to_string())?;
    let changed = std::fs::metadata(&source).and_then(|file| file.modified());
    let changed = changed.map_err(|error| format!("cannot read it: {error}"))?;
    let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let library = source.with_file_name(format!("{name}_model.so"));
    let made = std::fs::metadata(&library).and_then(|file| file.modified());
    if made.is_ok_and(|made| made >= changed) {
        return Ok(library);
    }
    let Some(folder) = bridgestan.or(FOLDER.get().map(PathBuf::as_path)) else {
        return Err(format!(
            "this is a model's source, and no BridgeStan is known to compile it: `pip install bridgestan` and import it once in Python, \
             or give its folder as target.bridgestan or in the environment as BRIDGESTAN, or compile the model elsewhere, in Python by bridgestan.compile_model({:?}, \
             make_args=[\"STAN_THREADS=true\"]), and give target.model = \"{name}_model.so\"",
            source.display().to_string()
        ));
    };
    if !folder.join("Makefile").is_file() {
        return Err(format!(
            "target.bridgestan = {:?} holds no Makefile: is it BridgeStan's folder?",
            folder.display().to_string()
        ));
    }
    make(folder, &library)?;
    Ok(library)
}

fn make(folder: &Path, library: &Path) -> Result<(), String> {
    let mut command = Command::new("make");
    command.arg("-C").arg(folder).arg("STAN_THREADS=true").arg(library).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("cannot start make to compile it: {error}"))?;
    if output.status.success() && library.is_file() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
    Err(format!("BridgeStan cannot compile it ({}):\n{shown}", output.status))
}
