//! All that hangs on the operating system: processes, places in files, folders on disk. Elsewhere nothing asks which system it is.

pub(crate) use of_system::*;

#[cfg(unix)]
mod of_system {
    use rustix::process::{Pid, Signal, kill_process, test_kill_process};
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::FileExt;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::path::Path;
    use std::process::{Command, ExitStatus};

    /// Whether no process has this number.
    pub(crate) fn is_gone(process: u32) -> bool {
        // Any other refusal comes from a process that is there.
        pid(process).is_none_or(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
    }

    /// Asks a process to stop as Ctrl-C does.
    pub(crate) fn interrupt(process: u32) {
        if let Some(pid) = pid(process) {
            let _ = kill_process(pid, Signal::INT);
        }
    }

    fn pid(process: u32) -> Option<Pid> {
        Pid::from_raw(process.try_into().ok()?)
    }

    /// Has the system interrupt this process when its parent ends.
    pub(crate) fn end_with_parent() {
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::INT));
    }

    /// A group of its own: a terminal's Ctrl-C does not reach it.
    pub(crate) fn apart_from_terminal(command: &mut Command) {
        command.process_group(0);
    }

    /// The signal that ended a process, with what it means, for people.
    pub(crate) fn ended_by(status: &ExitStatus) -> Option<String> {
        let signal = status.signal()?;
        Some(format!("signal {signal}{}", meaning(signal)))
    }

    pub(super) fn meaning(signal: i32) -> &'static str {
        match Signal::from_named_raw(signal) {
            Some(Signal::SEGV | Signal::BUS) => " (a bad memory access)",
            Some(Signal::ABORT) => " (it gave up)",
            Some(Signal::FPE) => " (bad arithmetic)",
            Some(Signal::ILL) => " (an instruction that this processor does not know)",
            Some(Signal::KILL) => " (killed, perhaps for memory)",
            _ => "",
        }
    }

    /// This machine's name, so that a folder shared between machines is not misread.
    pub(crate) fn machine() -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    /// Seconds that all threads of this process have had of processors.
    pub(crate) fn processor_s() -> f64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
    }

    /// Fills a buffer from a place of a file.
    pub(crate) fn read_at(file: &File, buffer: &mut [u8], place: u64) -> io::Result<()> {
        file.read_exact_at(buffer, place)
    }

    /// Writes all bytes to a place of a file.
    pub(crate) fn write_at(file: &File, bytes: &[u8], place: u64) -> io::Result<()> {
        file.write_all_at(bytes, place)
    }

    /// Puts a folder's own data, the names in it, on disk. Not every file system can, and files are whole either way, so a
    /// refusal is no error.
    pub(crate) fn sync_folder(folder: &Path) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

/// What is not known there is said to be unknown; nothing of it changes a result.
#[cfg(windows)]
mod of_system {
    use std::fs::File;
    use std::io::{self, ErrorKind};
    use std::os::windows::fs::FileExt;
    use std::path::Path;
    use std::process::{Command, ExitStatus};

    /// Whether no process has this number: nobody is asked, so it counts as there.
    pub(crate) fn is_gone(_: u32) -> bool {
        false
    }

    /// Processes of no console in common cannot be asked.
    pub(crate) fn interrupt(_: u32) {}

    /// Not offered.
    pub(crate) fn end_with_parent() {}

    /// Not needed: nothing is passed on either.
    pub(crate) fn apart_from_terminal(_: &mut Command) {}

    /// There are no signals.
    pub(crate) fn ended_by(_: &ExitStatus) -> Option<String> {
        None
    }

    /// This machine's name.
    #[allow(clippy::disallowed_methods, reason = "a name is no part of a run's results")]
    pub(crate) fn machine() -> String {
        std::env::var("COMPUTERNAME").unwrap_or_else(|_| "this machine".into())
    }

    /// Not known.
    pub(crate) fn processor_s() -> f64 {
        f64::NAN
    }

    /// Fills a buffer from a place of a file.
    pub(crate) fn read_at(file: &File, mut buffer: &mut [u8], mut place: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            let count = file.seek_read(buffer, place)?;
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            (buffer, place) = (&mut buffer[count..], place + count as u64);
        }
        Ok(())
    }

    /// Writes all bytes to a place of a file.
    pub(crate) fn write_at(file: &File, mut bytes: &[u8], mut place: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = file.seek_write(bytes, place)?;
            if count == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            (bytes, place) = (&bytes[count..], place + count as u64);
        }
        Ok(())
    }

    /// Folders cannot be opened as files.
    pub(crate) fn sync_folder(_: &Path) {}
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn processes_are_there_or_gone() {
        assert!(!is_gone(std::process::id()));
        // No process has the largest number there is, nor one that is none.
        assert!(is_gone(i32::MAX as u32) && is_gone(u32::MAX) && is_gone(0));
        assert!(!machine().is_empty());
        assert!(processor_s() > 0.0);
        assert_eq!(of_system::meaning(11), " (a bad memory access)");
    }
}
