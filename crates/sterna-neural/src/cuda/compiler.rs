//! Generated CUDA C, compiled at run time (NVRTC) to machine code of one GPU generation.

use std::ffi::{CStr, CString};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cudarc::nvrtc::{result, sys};

use super::search::find_compiler;
use crate::{Error, Result};

/// What every source begins with.
pub(super) const HEADER: &str = include_str!("kernels/header.cu");

/// Machine code of a source for compute capability `arch` (90 is Hopper).
pub(crate) fn compile(source: &str, arch: u32) -> Result<Vec<u8>> {
    find_compiler()?;
    // Kernels are launched while the one before still runs (`Gpu::launch`); products of tiles wait by themselves.
    let waits =
        |kernel: &str| ["wait_for_kernel_before();", "TiledProduct<"].iter().any(|w| kernel.contains(w));
    assert!(source.split("__global__").skip(1).all(waits), "every kernel waits for the one before");
    let wrong = |what: &str, why: String| Error::Cuda { what: what.into(), why };
    let text = CString::new(source).expect("source without zeros");
    let failed = |e: result::NvrtcError| wrong("the run-time compiler failed", format!("{e:?}"));
    let program = result::create_program(&text, Some(c"sterna.cu")).map_err(failed)?;
    // Hopper's own instructions are left out without the "a".
    let own = if arch == 90 { "a" } else { "" };
    let options = [
        format!("--gpu-architecture=sm_{arch}{own}"),
        "--std=c++17".into(),
        // Not every source uses all that the header offers.
        "-w".into(),
    ];
    // SAFETY: the program was just created and is destroyed below.
    unsafe {
        let compiled = result::compile_program(program, &options);
        let outcome = match compiled {
            Ok(()) => cubin(program).map_err(failed),
            Err(error) => {
                let log = result::get_program_log(program).unwrap_or_default();
                let log: Vec<u8> = log.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
                let log = String::from_utf8_lossy(&log).into_owned();
                Err(wrong("generated code did not compile", format!("{error:?} for sm_{arch}\n{log}")))
            }
        };
        let _ = result::destroy_program(program);
        outcome
    }
}

/// Machine code of several sources, compiled by all cores.
pub(crate) fn compile_all(sources: &[&str], arch: u32) -> Vec<Result<Vec<u8>>> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(sources.len()).max(1);
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<Vec<u8>>>>> = sources.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(source) = sources.get(i) else { return };
                    *done[i].lock().expect("no panic inside") = Some(compile(source, arch));
                }
            });
        }
    });
    done.into_iter().map(|d| d.into_inner().expect("no panic inside").expect("all were compiled")).collect()
}

/// The machine code of a compiled program.
///
/// # Safety
/// The program must be alive.
unsafe fn cubin(program: sys::nvrtcProgram) -> std::result::Result<Vec<u8>, result::NvrtcError> {
    let mut size = 0;
    // SAFETY: a compiled program; the buffer has the size it asks for.
    unsafe {
        sys::nvrtcGetCUBINSize(program, &mut size).result()?;
        let mut image = vec![0u8; size];
        sys::nvrtcGetCUBIN(program, image.as_mut_ptr().cast()).result()?;
        Ok(image)
    }
}

/// Version of the run-time compiler, if there is one.
pub(crate) fn version() -> Result<(i32, i32)> {
    find_compiler()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: plain out-parameters.
    let asked = unsafe { sys::nvrtcVersion(&mut major, &mut minor).result() };
    asked.map_err(|e| Error::Cuda { what: "the run-time compiler failed".into(), why: format!("{e:?}") })?;
    Ok((major, minor))
}

/// A C string's text.
pub(super) fn text(of: &CStr) -> String {
    of.to_string_lossy().into_owned()
}
