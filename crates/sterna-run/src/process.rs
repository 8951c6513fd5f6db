//! What the system knows of processes.

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

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

/// What a signal that ended a process means, for people.
pub(crate) fn signal_name(signal: i32) -> &'static str {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_there_or_gone() {
        assert!(!is_gone(std::process::id()));
        // No process has the largest number there is, nor one that is none.
        assert!(is_gone(i32::MAX as u32) && is_gone(u32::MAX) && is_gone(0));
        assert!(!machine().is_empty());
        assert!(processor_s() > 0.0);
        assert_eq!(signal_name(11), " (a bad memory access)");
    }
}
