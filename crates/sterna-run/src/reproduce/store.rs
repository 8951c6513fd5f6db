//! Where results of cells lie, and how those that lack are made: each in a process of its own, so that processor
//! time is its own, a crash takes nothing else with it, and a stop loses nothing.

use super::Watcher;
use super::cell::{Cell, MEMORY_GIB, Measured};
use super::kept::measure;
use super::results::{Machine, Results};
use crate::error::JobError;
use crate::files::{rename, write_whole};
use crate::job::Observer;
use crate::platform::apart_from_terminal;
use crate::report::format::duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Results of one budget, and the folder where more are made.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    results: Results,
}

impl Store {
    /// In this folder, which need not exist yet; its results lie beside it in a file of the same name.
    pub fn open(folder: PathBuf) -> Result<Self, JobError> {
        let results = Results::open(folder.with_extension("jsonl"))?;
        Ok(Self { folder, results })
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether there is any result.
    pub fn has_results(&self) -> bool {
        self.results.iter().next().is_some()
    }

    /// Notes on what machine and with how many runs at a time results are made.
    pub fn note_machine(&mut self, jobs: usize) -> Result<(), JobError> {
        let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = information.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": "));
        self.results.note_machine(Machine {
            processor: model.map_or("unknown", |m| m.1).into(),
            cores: std::thread::available_parallelism().map_or(1, |n| n.get()),
            gpu: gpu(),
            runs_at_a_time: jobs,
            sterna: env!("CARGO_PKG_VERSION").into(),
            system: std::env::consts::OS.into(),
        })
    }

    /// A sentence about the machine and the time that all results took.
    pub fn machine(&self, budget: &str) -> Option<String> {
        let machine = self.results.machine()?;
        let gpu = machine.gpu.as_ref().map(|gpu| format!("{gpu}, ")).unwrap_or_default();
        Some(format!(
            "**The {budget} budget** was spent on {} ({} cores, {gpu}{}) by sterna {}: {} runs, {} of processors in all.",
            machine.processor,
            machine.cores,
            machine.system,
            machine.sterna,
            self.results.iter().count(),
            duration(self.results.iter().map(|m| m.summary.time.processor.total()).sum()),
        ))
    }

    fn transport(&self, name: &str) -> PathBuf {
        self.folder.join("transports").join(format!("{name}.safetensors"))
    }

    fn workplace(&self, name: &str) -> PathBuf {
        self.folder.join("unfinished").join(name)
    }

    /// The result of that name, if there is one.
    pub fn named(&self, name: &str) -> Option<&Measured> {
        self.results.named(name)
    }

    /// The result of a cell, if there is one of just this cell.
    pub fn get(&self, cell: &Cell) -> Option<&Measured> {
        self.results.get(cell)
    }

    /// Adds a result.
    pub fn add(&mut self, measured: Measured) -> Result<(), JobError> {
        self.results.add(measured)
    }

    fn is_made(&self, cell: &Cell) -> bool {
        self.get(cell).is_some_and(Measured::is_whole)
    }

    /// Those of the wanted cells whose results lack something, and before them any whose transports they need; the longest
    /// first, so that none is left to run alone at the end.
    pub fn missing(&self, cells: &[Cell], wanted: impl Fn(&Cell) -> bool) -> Vec<Cell> {
        let lacking: Vec<&Cell> = cells.iter().filter(|c| wanted(c) && !self.is_made(c)).collect();
        let is_needed = |cell: &Cell| {
            lacking.iter().filter_map(|c| c.transport_of.as_ref()).any(|source| source.cell == cell.name)
        };
        let is_made = |cell: &Cell| self.get(cell).is_some() && self.transport(&cell.name).exists();
        let is_first = |cell: &Cell| is_needed(cell) && !is_made(cell);
        let mut out: Vec<Cell> =
            cells.iter().filter(|c| is_first(c) || lacking.contains(c)).cloned().collect();
        out.sort_by(|a, b| is_first(b).cmp(&is_first(a)).then(b.cost().total_cmp(&a.cost())));
        out
    }

    fn is_ready(&self, cell: &Cell, waiting: &[Cell], working: &[Work]) -> bool {
        let open = |name: &String| {
            waiting.iter().map(|c| &c.name).chain(working.iter().map(|w| &w.cell.name)).any(|n| n == name)
        };
        cell.transport_of.as_ref().is_none_or(|source| !open(&source.cell))
    }

    /// Makes all that lacks, `jobs` at a time, by this program itself. The watcher hears of each that ends.
    pub fn fill(
        &mut self,
        program: &Path,
        mut waiting: Vec<Cell>,
        jobs: usize,
        watcher: &mut dyn Watcher,
    ) -> Result<(), JobError> {
        let mut working: Vec<Work> = Vec::new();
        let mut asked_to_stop = false;
        while !(waiting.is_empty() && working.is_empty()) {
            while working.len() < jobs && !watcher.should_stop() {
                let next = waiting.iter().position(|c| self.is_ready(c, &waiting, &working));
                let Some(next) = next else { break };
                working.push(self.start(program, waiting.remove(next))?);
            }
            let mut failed = None;
            for index in (0..working.len()).rev() {
                let ended = working[index].child.try_wait();
                let Some(status) = ended.map_err(JobError::file("wait for", program))? else { continue };
                let work = working.remove(index);
                if status.success() {
                    watcher.ended(&self.collect(&work)?, work.begin.elapsed());
                } else if !watcher.should_stop() {
                    failed = Some(work.cell.name);
                }
            }
            if let Some(name) = failed {
                working.iter().for_each(Work::ask_to_stop);
                working.iter_mut().for_each(|w| drop(w.child.wait()));
                let folder = self.workplace(&name);
                return Err(JobError::Watched(format!("{name} failed; see {}", folder.display())));
            }
            if watcher.should_stop() && !asked_to_stop {
                asked_to_stop = true;
                working.iter().for_each(Work::ask_to_stop);
            }
            if watcher.should_stop() && working.is_empty() {
                return Err(JobError::Watched(
                    "stopped on request; the same command goes on where it was".into(),
                ));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn start(&self, program: &Path, cell: Cell) -> Result<Work, JobError> {
        let folder = self.workplace(&cell.name);
        let file = folder.join("cell.json");
        let text = serde_json::to_vec_pretty(&cell).expect("plain data");
        // What was begun for another cell of that name is of no use.
        if folder.exists() && fs::read(&file).ok().as_ref() != Some(&text) {
            fs::remove_dir_all(&folder).map_err(JobError::file("remove", &folder))?;
        }
        fs::create_dir_all(&folder).map_err(JobError::file("create", &folder))?;
        write_whole(&file, &text)?;
        let transport = cell.transport_of.as_ref().map(|source| self.transport(&source.cell));
        let mut command = Command::new(program);
        command.arg("measure-cell").arg(&folder).args(transport).stdin(Stdio::null()).stdout(Stdio::null());
        // A group of its own: a terminal's Ctrl-C reaches this program alone, which passes it on once.
        apart_from_terminal(&mut command);
        let child = command.spawn().map_err(JobError::file("start", program))?;
        Ok(Work { cell, child, begin: Instant::now() })
    }

    /// Moves what is kept of an ended run to its place, and lets the rest go.
    fn collect(&mut self, work: &Work) -> Result<Measured, JobError> {
        let name = &work.cell.name;
        let folder = self.workplace(name);
        let path = folder.join("result.json");
        let text = fs::read(&path).map_err(JobError::file("read", &path))?;
        let measured: Measured = serde_json::from_slice(&text)
            .map_err(|e| JobError::Config(format!("{}: {e}", path.display())))?;
        let transport = folder.join("run/transport.safetensors");
        if transport.exists() {
            let to = self.transport(name);
            let parent = to.parent().expect("a file in a folder");
            fs::create_dir_all(parent).map_err(JobError::file("create", parent))?;
            rename(&transport, &to).map_err(JobError::file("move the transport to", &to))?;
        }
        self.results.add(measured.clone())?;
        fs::remove_dir_all(&folder).map_err(JobError::file("remove", &folder))?;
        Ok(measured)
    }
}

/// The name of the GPU, if this program can use one.
#[cfg(feature = "cuda")]
fn gpu() -> Option<String> {
    Some(sterna_neural::Cuda::open(Default::default()).ok()?.name().to_string())
}

#[cfg(not(feature = "cuda"))]
fn gpu() -> Option<String> {
    None
}

struct Work {
    cell: Cell,
    child: Child,
    begin: Instant,
}

impl Work {
    /// It stops at a checkpoint.
    fn ask_to_stop(&self) {
        crate::platform::interrupt(self.child.id());
    }
}

/// What the child process does: runs the cell of a folder, or goes on with it, and writes its result there.
pub fn measure_cell(
    folder: &Path,
    transport: Option<&Path>,
    observer: &mut dyn Observer,
) -> Result<(), JobError> {
    // Nobody would collect the result if the parent were gone.
    crate::platform::end_with_parent();
    let path = folder.join("cell.json");
    let text = fs::read(&path).map_err(JobError::file("read", &path))?;
    let cell: Cell =
        serde_json::from_slice(&text).map_err(|e| JobError::Config(format!("{}: {e}", path.display())))?;
    let mut with_transport = cell.clone();
    with_transport.config.accelerator.use_transport(transport.map(Path::to_path_buf));
    with_transport.config.threads = 1;
    with_transport.config.run.memory_gib = MEMORY_GIB;
    let mut measured = measure(&with_transport, folder, observer)?;
    measured.cell = cell;
    let mut text = serde_json::to_vec(&measured).expect("plain data");
    text.push(b'\n');
    write_whole(&folder.join("result.json"), &text)
}
