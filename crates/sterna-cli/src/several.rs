//! Several runs: side by side, or joined into one result.

use crate::{Voice, print, show};
use std::path::{Path, PathBuf};
use sterna_run::JobError;

/// Runs side by side.
pub fn compare(folders: &[PathBuf], out: &Path, voice: Voice) -> Result<(), JobError> {
    let runs = sterna_run::compare::read(folders)?;
    sterna_run::files::write_whole(out, sterna_run::compare::page(&runs).as_bytes())?;
    if voice.json {
        println!("{:#}", serde_json::json!({"runs": runs, "page": out}));
    } else if !voice.quiet {
        print::compared(&runs);
        println!("\n{}", out.display());
    }
    Ok(())
}

/// Runs joined into one result.
pub fn merge(folders: &[PathBuf], out: PathBuf, voice: Voice) -> Result<(), JobError> {
    let summary = sterna_run::merge::merge(folders, &out)?;
    show(summary, out, voice).map(|_| ())
}
