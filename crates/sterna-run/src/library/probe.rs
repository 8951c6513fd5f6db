//! A library is first tried in a process of its own: if it crashes, ends that process, or never comes back, this one says so and
//! lives on.

use super::{LibraryTarget, wrong};
use crate::error::JobError;
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use sterna::Target;

/// The program that can be asked to load a library in a process of its own: see [`probe`].
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Says which program to start, with the arguments `probe-library PATH SYMBOL [DIM]`, before a library is
/// loaded here. Without one, libraries are loaded untried.
pub fn probe_with(program: PathBuf) {
    let _ = PROGRAM.set(program);
}

/// Time that loading and one evaluation may take.
const LIMIT: Duration = Duration::from_secs(30);

/// What the other process says on its way.
const LOADED: &str = "loaded";
const DONE: &str = "done";

/// What the other process does: says when the library is loaded, evaluates the origin, and says that this is done.
pub fn probe(path: &Path, symbol: &str, dim: Option<usize>) -> Result<(), JobError> {
    let target = LibraryTarget::open(path, symbol, dim)?;
    say(LOADED);
    // A failure at the origin is the target's business: it may be nowhere near its support.
    let origin = vec![0.0; target.dim()];
    target.function.call(&origin, &mut [0.0], &mut vec![0.0; origin.len()]);
    say(DONE);
    Ok(())
}

fn say(what: &str) {
    use std::io::Write;
    println!("{}", json!({what: true}));
    let _ = std::io::stdout().flush();
}

/// Tries a library elsewhere, where a program is known for it.
pub(super) fn try_elsewhere(path: &Path, symbol: &str, dim: Option<usize>) -> Result<(), JobError> {
    refuse_other_machines(path)?;
    let Some(program) = PROGRAM.get() else { return Ok(()) };
    let mut command = Command::new(program);
    command.arg("probe-library").arg(path).arg(symbol).args(dim.map(|d| d.to_string()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(JobError::file("start", program))?;
    let Heard { status, said, errors } = hear(child).map_err(JobError::file("listen to", program))?;
    let when = if said.contains(LOADED) { "when it evaluated the origin" } else { "when it was loaded" };
    let Some(status) = status else {
        let what = format!(
            "it did not come back within {} s {when}: an endless loop, or a lock that nobody opens; try it alone with \
             `sterna evaluate`",
            LIMIT.as_secs()
        );
        return Err(wrong(path, what));
    };
    if status.success() && said.contains(DONE) {
        return Ok(());
    }
    if let Some(signal) = crate::platform::ended_by(&status) {
        let what = format!("it crashed {when}, with {signal}");
        return Err(wrong(path, what + if errors.is_empty() { "" } else { ":\n" } + errors.trim_end()));
    }
    match errors.trim().strip_prefix("error: ") {
        Some(message) => Err(JobError::Config(message.into())),
        None => Err(wrong(
            path,
            format_args!(
                "it ended the whole program {when} ({status}): a library must return, not call exit(); answer -inf where a \
                 point has no density, or return a number other than 0"
            ),
        )),
    }
}

/// What the other process came to; no status if its time was over.
struct Heard {
    status: Option<ExitStatus>,
    said: String,
    errors: String,
}

/// Waits for a process, but not for ever.
#[expect(
    clippy::disallowed_methods,
    reason = "a pipe that nobody reads stops its writer, and the pool may be busy"
)]
fn hear(mut child: Child) -> std::io::Result<Heard> {
    let reader = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = from.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let said = reader(Box::new(child.stdout.take().expect("a pipe")));
    let errors = reader(Box::new(child.stderr.take().expect("a pipe")));
    let began = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if began.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(50));
    };
    Ok(Heard { status, said: said.join().unwrap_or_default(), errors: errors.join().unwrap_or_default() })
}

/// Names of machines, by their numbers in the header of a library.
const MACHINES: [(u16, &str); 7] = [
    (3, "x86"),
    (8, "mips"),
    (21, "powerpc64"),
    (22, "s390x"),
    (40, "arm"),
    (62, "x86_64"),
    (183, "aarch64"),
];
const RISC_V: (u16, &str) = (243, "riscv64");

/// A library for another kind of processor, or another system, is told by its first bytes.
fn refuse_other_machines(path: &Path) -> Result<(), JobError> {
    let mut header = [0; 20];
    let mut file = File::open(path).map_err(JobError::file("read", path))?;
    if file.read_exact(&mut header).is_err() {
        // Too short for a library: the loader says so.
        return Ok(());
    }
    match other_machine(&header) {
        Some(theirs) => Err(wrong(
            path,
            format_args!(
                "it was built for {theirs}, and this is {} on {}: compile it here",
                std::env::consts::ARCH,
                std::env::consts::OS
            ),
        )),
        None => Ok(()),
    }
}

/// What a library was built for, where that is not this machine.
fn other_machine(header: &[u8; 20]) -> Option<String> {
    let here = if cfg!(target_os = "linux") { "ELF" } else { "" };
    let kind = match header {
        [0x7f, b'E', b'L', b'F', ..] => "ELF",
        [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] => "macOS",
        [b'M', b'Z', ..] => "Windows",
        _ => return None,
    };
    if kind != "ELF" {
        return (here == "ELF").then(|| kind.to_string());
    }
    let bytes = [header[18], header[19]];
    let number = if header[5] == 2 { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) };
    let known = MACHINES.iter().chain([&RISC_V]).find(|(machine, _)| *machine == number);
    let theirs = known.map_or_else(|| format!("machine {number}"), |(_, name)| name.to_string());
    let bits = if header[4] == 1 { 32 } else { 64 };
    let same = theirs == std::env::consts::ARCH && bits == usize::BITS as usize;
    (!same).then(|| format!("{theirs} with {bits} bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(start: &[u8], machine: u16) -> [u8; 20] {
        let mut out = [0; 20];
        out[..start.len()].copy_from_slice(start);
        out[18..].copy_from_slice(&machine.to_le_bytes());
        out
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[test]
    fn libraries_of_other_machines_are_known_by_their_headers() {
        let elf = |machine| other_machine(&header(b"\x7fELF\x02\x01", machine));
        assert_eq!(elf(62), None);
        assert_eq!(elf(183).unwrap(), "aarch64 with 64 bits");
        assert_eq!(elf(999).unwrap(), "machine 999 with 64 bits");
        assert_eq!(other_machine(&header(b"\x7fELF\x01\x01", 3)).unwrap(), "x86 with 32 bits");
        assert_eq!(other_machine(&header(b"\xcf\xfa\xed\xfe", 0)).unwrap(), "macOS");
        assert_eq!(other_machine(&header(b"MZ", 0)).unwrap(), "Windows");
        // Not a library at all: the loader says so.
        assert_eq!(other_machine(&header(b"no library", 0)), None);
    }

    #[test]
    fn a_process_that_ends_is_heard() {
        let command = |text: &str| {
            let mut command = Command::new("sh");
            command.arg("-c").arg(text).stdout(Stdio::piped()).stderr(Stdio::piped());
            hear(command.spawn().unwrap()).unwrap()
        };
        let heard = command("echo loaded; echo wrong >&2; exit 3");
        assert_eq!(heard.status.and_then(|status| status.code()), Some(3));
        assert_eq!((heard.said.trim(), heard.errors.trim()), ("loaded", "wrong"));
    }
}
