//! The program on one process, or on several that `mpirun` or `srun` started: who speaks, and who only works.

use crate::Voice;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use sterna::exchange::{Alone, Exchange};
use sterna_run::JobError;

/// All processes of this run.
#[derive(Clone)]
pub struct Ranks {
    pub exchange: Arc<dyn Exchange>,
    /// Whether the work is over and ranks are leaving.
    over: Arc<AtomicBool>,
    #[cfg(feature = "mpi")]
    world: Option<Arc<sterna_mpi::World>>,
    /// Where a run was begun.
    #[cfg(feature = "mpi")]
    folder: Arc<std::sync::OnceLock<PathBuf>>,
    /// Whether it was said who has died.
    #[cfg(feature = "mpi")]
    mourned: Arc<AtomicBool>,
}

/// Does something on all ranks; the first one says what it came to, whichever that is by then.
pub fn on_all<T>(
    voice: Voice,
    work: impl FnOnce(&Ranks, Voice) -> Result<T, JobError>,
    told: impl FnOnce(Result<T, JobError>) -> ExitCode,
) -> ExitCode {
    let ranks = match Ranks::start() {
        Ok(ranks) => ranks,
        Err(error) => return told(Err(error)),
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| work(&ranks, voice)));
    let outcome = outcome.unwrap_or_else(|_| Err(JobError::Panicked("see above".into())));
    if let Err(error) = &outcome {
        ranks.exchange.fail(&format!("{}: {error}", ranks.exchange.name()));
    }
    ranks.over.store(true, Ordering::SeqCst);
    // Where the first one has ended well or badly, the code is its own.
    let failed = outcome.is_err();
    let code = match &outcome {
        _ if !ranks.speaks() => ExitCode::SUCCESS,
        Err(_) if ranks.mourn() => ExitCode::FAILURE,
        Err(error) if ranks.exchange.ranks() > 1 && is_of_one_rank(error) => {
            eprintln!("on {}:", ranks.exchange.name());
            told(outcome)
        }
        _ => told(outcome),
    };
    ranks.end(failed);
    code
}

/// Whether it failed here alone and does not say so: what is wrong with a config is wrong everywhere, and others give their names.
fn is_of_one_rank(error: &JobError) -> bool {
    error.exit_code() == 1 && !error.to_string().starts_with("rank ")
}

impl Ranks {
    /// One process.
    pub fn alone() -> Self {
        Self {
            exchange: Arc::new(Alone),
            over: Arc::default(),
            #[cfg(feature = "mpi")]
            world: None,
            #[cfg(feature = "mpi")]
            folder: Arc::default(),
            #[cfg(feature = "mpi")]
            mourned: Arc::default(),
        }
    }

    /// Whether the work is over: launchers send signals to those that leave last.
    pub fn are_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    pub fn is_first(&self) -> bool {
        self.exchange.rank() == 0
    }

    /// How much this rank says now.
    pub fn voice(&self, voice: Voice) -> Voice {
        match self.is_first() {
            true => voice,
            false => Voice { quiet: true, json: false },
        }
    }

    /// Of several folders that of the first rank, whose name may hold the time.
    pub fn folder(&self, own: PathBuf) -> Result<PathBuf, JobError> {
        let said = self.exchange.hear_first(own.to_str().unwrap_or_default().as_bytes())?;
        let said = String::from_utf8_lossy(&said);
        Ok(if said.is_empty() { own } else { PathBuf::from(&*said) })
    }

    /// What should be known of their number, where there is something. How many chains a ladder has may be found later.
    pub fn note(&self, ladders: usize, chains: Option<usize>) -> Option<String> {
        let (ranks, rows) = (self.exchange.ranks(), ladders.saturating_mul(chains?));
        (ranks > 1 && ranks > rows).then(|| {
            format!(
                "{ranks} ranks share {rows} rows, so {} of them have nothing to move: more ladders (chains.ensembles) use more",
                ranks - rows
            )
        })
    }
}

#[cfg(feature = "mpi")]
impl Ranks {
    /// Speaks with the others where a launcher started several; alone, MPI is not even begun.
    fn start() -> Result<Self, JobError> {
        if !sterna_mpi::World::is_launched() {
            return Ok(Self::alone());
        }
        let world = Arc::new(sterna_mpi::World::start()?);
        Ok(Self { exchange: world.clone(), world: Some(world), ..Self::alone() })
    }

    /// Whether the launcher passed on a wish to stop.
    pub fn is_asked_to_stop(&self) -> bool {
        self.world.as_ref().is_some_and(|world| world.is_asked_to_stop())
    }

    fn speaks(&self) -> bool {
        self.world.as_ref().is_none_or(|world| world.speaks())
    }

    /// A run begins in a folder, with which people go on if it does not end.
    pub fn begin_in(&self, folder: &Path) {
        let _ = self.folder.set(folder.to_owned());
    }

    /// Where a rank on this machine has died, the launcher ends all others within a second, unless they survive it: one of them says so, and
    /// how to go on.
    pub fn mind_the_fallen(&self) {
        let Some(world) = &self.world else { return };
        if world.fallen().is_empty() || world.survives() {
            return;
        }
        if !world.speaks() || !self.mourn() {
            // The one that speaks should not take this one for dead.
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        std::process::exit(1);
    }

    /// Says who has died, once, if nobody goes on without them; whether that is so.
    fn mourn(&self) -> bool {
        let Some(world) = &self.world else { return false };
        let fallen = world.fallen();
        if fallen.is_empty() || world.survives() {
            return false;
        }
        if self.mourned.swap(true, Ordering::SeqCst) {
            return true;
        }
        let how = self.folder.get().map_or(String::new(), |folder| {
            let folder = folder.display();
            format!(
                "\nwhat was checkpointed is safe; once the cause is gone, go on with: sterna resume {folder}"
            )
        });
        say_past_the_launcher(&format!("error: {} has died{how}\n", fallen.join(", ")));
        true
    }

    fn end(&self, failed: bool) {
        if let Some(world) = &self.world {
            world.end(u8::from(failed));
        }
    }
}

/// Says something while the launcher ends all ranks. It may drop what they say then, so that its own stderr is the better place, where it runs on
/// this machine.
#[cfg(feature = "mpi")]
fn say_past_the_launcher(text: &str) {
    use std::io::Write;
    let launcher = PathBuf::from(format!("/proc/{}", std::os::unix::process::parent_id()));
    let name = std::fs::read_to_string(launcher.join("comm")).unwrap_or_default();
    let is_known = ["mpirun", "mpiexec", "orterun", "prterun"].contains(&name.trim_end());
    let say =
        || std::fs::OpenOptions::new().append(true).open(launcher.join("fd/2"))?.write_all(text.as_bytes());
    if !is_known || say().is_err() {
        eprint!("{text}");
    }
}

#[cfg(not(feature = "mpi"))]
impl Ranks {
    /// There is but one; several would each take the folder for theirs.
    fn start() -> Result<Self, JobError> {
        if sterna_run::ranks::are_several() {
            return Err(JobError::Config(
                "mpirun started several processes, but this program was built without MPI: cargo install it with --features mpi".into(),
            ));
        }
        Ok(Self::alone())
    }

    pub fn is_asked_to_stop(&self) -> bool {
        false
    }

    fn speaks(&self) -> bool {
        true
    }

    pub fn begin_in(&self, _: &Path) {}

    pub fn mind_the_fallen(&self) {}

    fn mourn(&self) -> bool {
        false
    }

    fn end(&self, _: bool) {}
}
