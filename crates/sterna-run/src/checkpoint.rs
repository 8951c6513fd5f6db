//! `checkpoint/`: everything needed to go on, so written that a crash at any byte leaves what was there before.
//!
//! ```text
//! checkpoint/
//!   draws     all draws so far, only ever appended to; the state says how much of it counts
//!   state     magic, format, length, checksum; version, config, times; the run's own bytes. Replaced whole.
//!   lock      held while a program works on the folder; holds its process number
//! ```

use crate::config::{Config, Until};
use crate::error::JobError;
use crate::files::{checksum, write_whole};
use crate::summary::Times;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"STERNA\x1a\n";

/// Changes whenever the bytes of a state do.
pub const FORMAT: u32 = 11;

const HEADER: usize = 8 + 4 + 8 + 8;

/// What a checkpoint holds beside the run's own bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The program that wrote it: another one may make other bits.
    pub version: String,
    /// The resolved config as TOML.
    pub config: String,
    /// Seconds so far.
    pub times: Times,
    /// How much of the draws belongs to it.
    pub draws_bytes: u64,
}

/// A checkpoint as bytes.
pub fn encode(description: &Description, state: &[u8]) -> Vec<u8> {
    let description = serde_json::to_vec(description).expect("plain data");
    let mut out = Vec::with_capacity(HEADER + 8 + description.len() + state.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&((8 + description.len() + state.len()) as u64).to_le_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&(description.len() as u64).to_le_bytes());
    out.extend_from_slice(&description);
    out.extend_from_slice(state);
    let sum = checksum(&out[HEADER..]);
    out[HEADER - 8..HEADER].copy_from_slice(&sum.to_le_bytes());
    out
}

/// Takes a checkpoint apart, or says why it cannot be used.
pub fn decode(bytes: &[u8]) -> Result<(Description, &[u8]), String> {
    let number = |at: usize, length: usize| -> Option<u64> {
        let bytes = bytes.get(at..at + length)?;
        Some(bytes.iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b)))
    };
    if bytes.get(..8) != Some(MAGIC) {
        return Err("it was not written by this program".into());
    }
    let short = || "it is truncated".to_string();
    let format = number(8, 4).ok_or_else(short)?;
    if format != u64::from(FORMAT) {
        return Err(format!("it has format {format}, this program reads format {FORMAT}"));
    }
    let (length, sum) = (number(12, 8).ok_or_else(short)?, number(20, 8).ok_or_else(short)?);
    let body = &bytes[HEADER..];
    if (body.len() as u64) < length {
        return Err(format!("it is truncated: {} bytes of {length} are there", body.len()));
    }
    if body.len() as u64 > length || checksum(body) != sum {
        return Err("its contents do not match its checksum: it was damaged or edited".into());
    }
    let (length, rest) = body.split_at_checked(8).ok_or_else(short)?;
    let length = u64::from_le_bytes(length.try_into().expect("eight bytes"));
    let length = usize::try_from(length).map_err(|_| short())?;
    let (description, state) = rest.split_at_checked(length).ok_or_else(short)?;
    let description: Description =
        serde_json::from_slice(description).map_err(|e| format!("its description does not read ({e})"))?;
    let version = env!("CARGO_PKG_VERSION");
    if description.version != version {
        return Err(format!("it was written by sterna {}, this is {version}", description.version));
    }
    Ok((description, state))
}

/// The first field in which two configs differ in a way that could change a bit of the result.
///
/// Threads, checkpoints and limits change nothing. The number of iterations may grow, and goals may be others: they say where a run
/// ends, not what it does.
pub fn difference(ours: &Config, theirs: &Config) -> Option<String> {
    let table = |config: &Config| -> toml::Table {
        let mut config = config.clone();
        config.threads = 0;
        config.run.iterations = 0;
        config.run.until = Until::default();
        config.run.checkpoint_seconds = 0.0;
        config.run.memory_gib = 1.0;
        config.run.evaluation_seconds = None;
        toml::from_str(&config.to_toml()).expect("a config reads back")
    };
    first_difference("", &table(ours), &table(theirs))
}

fn first_difference(prefix: &str, ours: &toml::Table, theirs: &toml::Table) -> Option<String> {
    let mut keys: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let show = |v: Option<&toml::Value>| v.map_or("not given".to_string(), |v| v.to_string());
        match (ours.get(key), theirs.get(key)) {
            (Some(toml::Value::Table(a)), Some(toml::Value::Table(b))) => {
                if let Some(found) = first_difference(&format!("{prefix}{key}."), a, b) {
                    return Some(found);
                }
            }
            (a, b) if a == b => {}
            (a, b) => return Some(format!("{prefix}{key} is {} now, but was {}", show(a), show(b))),
        }
    }
    None
}

/// The folder `checkpoint/`, held by this process alone.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    _lock: File,
}

impl Store {
    /// Takes hold of a run folder's `checkpoint/`, making it where it is missing.
    ///
    /// The system lets go of the lock when a process ends, however it ends: none is ever stale.
    pub fn open(run_folder: &Path) -> Result<Self, JobError> {
        let folder = run_folder.join("checkpoint");
        fs::create_dir_all(&folder).map_err(JobError::file("create", &folder))?;
        let path = folder.join("lock");
        let mut lock = File::options()
            .create(true)
            .read(true)
            .append(true)
            .open(&path)
            .map_err(JobError::file("open", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                return Err(JobError::Config(format!(
                    "process {} is at work in {}: wait for it or stop it, or choose another folder",
                    holder.trim(),
                    run_folder.display()
                )));
            }
            // Some network file systems cannot lock: two runs at once are then up to the user.
            Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(e)) => return Err(JobError::file("lock", path)(e)),
        }
        // For people; a full disk is noticed by the first checkpoint.
        let _ = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        Ok(Self { folder, _lock: lock })
    }

    fn state_path(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// Where the draws are.
    pub fn draws_path(&self) -> PathBuf {
        self.folder.join("draws")
    }

    /// Replaces the checkpoint.
    pub fn write(&self, description: &Description, state: &[u8]) -> Result<(), JobError> {
        write_whole(&self.state_path(), &encode(description, state))
    }

    /// The checkpoint, if there is one: its config, its times, and the run's own bytes.
    pub fn read(&self) -> Result<Option<(Description, Vec<u8>)>, JobError> {
        let path = self.state_path();
        let bytes = match fs::read(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(JobError::file("read", &path))?,
        };
        match decode(&bytes) {
            Ok((description, state)) => Ok(Some((description, state.to_vec()))),
            Err(reason) => Err(JobError::Config(format!(
                "the checkpoint {} cannot be used: {reason}; nothing was changed",
                path.display()
            ))),
        }
    }
}

/// Whether a folder holds a run: one that another must not overwrite.
pub fn is_taken(run_folder: &Path) -> bool {
    run_folder.join("summary.json").exists() || is_in(run_folder)
}

/// Whether a folder holds a checkpoint.
pub fn is_in(run_folder: &Path) -> bool {
    run_folder.join("checkpoint/state").exists()
}

/// Whether a run began in a folder; it may have stopped before its first checkpoint.
pub fn has_begun(run_folder: &Path) -> bool {
    run_folder.join("config.toml").exists() && (is_taken(run_folder) || run_folder.join("log.jsonl").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description() -> Description {
        Description {
            version: env!("CARGO_PKG_VERSION").into(),
            config: Config::default().to_toml(),
            times: Times::default(),
            draws_bytes: 7,
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let bytes = encode(&description(), b"the state");
        assert_eq!(decode(&bytes).unwrap(), (description(), &b"the state"[..]));
    }

    #[test]
    fn what_was_changed_is_refused_with_a_reason() {
        let bytes = encode(&description(), b"the state");
        for length in 0..bytes.len() {
            let reason = decode(&bytes[..length]).unwrap_err();
            assert!(
                reason.contains(if length < 8 { "not written" } else { "truncated" }),
                "{length}: {reason}"
            );
        }
        for place in 0..bytes.len() {
            let mut edited = bytes.clone();
            edited[place] ^= 0x10;
            assert!(decode(&edited).is_err(), "a change at {place} passed");
        }
        let mut other = bytes.clone();
        other[8] = 99;
        assert!(decode(&other).unwrap_err().contains("format 99"));
        let other = Description { version: "9.9.9".into(), ..description() };
        assert!(decode(&encode(&other, b"")).unwrap_err().contains("sterna 9.9.9"));
    }

    #[test]
    fn a_changed_config_is_named() {
        let ours = Config::default();
        let mut theirs = Config { threads: 5, ..Config::default() };
        theirs.run.iterations = 7;
        assert_eq!(difference(&ours, &theirs), None);
        theirs.explorer = crate::explorers::Hmc { leapfrog_steps: 6, ..Default::default() }.into();
        let found = difference(&ours, &theirs).unwrap();
        assert!(found.contains("explorer.leapfrog_steps is 5 now, but was 6"), "{found}");
        theirs.explorer = ours.explorer.clone();
        theirs.target = crate::targets::Gmm { dim: Some(3) }.into();
        assert!(difference(&ours, &theirs).unwrap().contains("target.dim is not given now, but was 3"));
    }

    #[test]
    fn two_programs_cannot_work_in_one_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = Store::open(folder.path()).unwrap();
        let message = Store::open(folder.path()).unwrap_err().to_string();
        assert!(message.contains(&std::process::id().to_string()), "{message}");
        drop(first);
        // A lock that was left behind is no hindrance.
        Store::open(folder.path()).unwrap();
    }
}
