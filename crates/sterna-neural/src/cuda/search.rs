//! Where CUDA's libraries are: on the loader's path, in a toolkit, or in pip's nvidia wheels.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{Error, Result};

/// Folders beyond the loader's own path that may hold the run-time compiler.
#[expect(clippy::disallowed_methods, reason = "where libraries lie on this machine changes no result")]
fn folders() -> Vec<PathBuf> {
    let mut all = Vec::new();
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        all.extend(std::env::var_os(variable).map(|root| PathBuf::from(root).join("lib64")));
    }
    all.push("/usr/local/cuda/lib64".into());
    // pip puts libraries beside its packages: nvidia/cu13/lib, nvidia/cuda_nvrtc/lib.
    let mut environments: Vec<PathBuf> = Vec::new();
    environments.extend(std::env::var_os("VIRTUAL_ENV").map(PathBuf::from));
    environments.extend(std::env::var_os("CONDA_PREFIX").map(PathBuf::from));
    if let Some(path) = std::env::var_os("PATH") {
        // …/bin/python3 lives in an environment whose packages are at …/lib.
        let with_python = std::env::split_paths(&path).filter(|bin| bin.join("python3").exists());
        environments.extend(with_python.filter_map(|bin| bin.parent().map(Path::to_path_buf)));
    }
    for environment in environments {
        for python in subfolders(&environment.join("lib"), "python3") {
            for packages in ["site-packages", "dist-packages"] {
                let nvidia = python.join(packages).join("nvidia");
                all.extend(subfolders(&nvidia, "cu").into_iter().map(|package| package.join("lib")));
            }
        }
    }
    all
}

/// Folders in a folder whose names begin with `prefix`, in order.
fn subfolders(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let begins = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)) && path.is_dir()
    };
    let mut found: Vec<_> = entries.flatten().map(|e| e.path()).filter(begins).collect();
    found.sort();
    found
}

/// Whether the driver's library can be loaded.
pub(super) fn find_driver() -> Result<()> {
    // SAFETY: loading the driver runs its initialisers, which is what it is made for.
    if unsafe { cudarc::driver::sys::is_culib_present() } {
        return Ok(());
    }
    Err(Error::Cuda {
        what: "no NVIDIA driver".into(),
        why: "looked for libcuda.so (libcuda.so.1) on the loader's path (LD_LIBRARY_PATH, /etc/ld.so.conf); \
              it comes with the GPU's driver"
            .into(),
    })
}

/// Finds the run-time compiler, wherever it is, so that later calls meet it already loaded.
pub(super) fn find_compiler() -> Result<()> {
    static FOUND: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        // SAFETY: as for the driver.
        if unsafe { cudarc::nvrtc::sys::is_culib_present() } {
            return Ok(());
        }
        let folders = folders();
        for folder in &folders {
            let Ok(entries) = std::fs::read_dir(folder) else { continue };
            let mut files: Vec<_> = entries.flatten().map(|e| e.path()).collect();
            files.sort();
            for file in files {
                let name = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
                if !name.starts_with("libnvrtc.so") {
                    continue;
                }
                // SAFETY: as above. Once loaded, the library is found by its name.
                if let Ok(library) = unsafe { libloading::Library::new(&file) } {
                    std::mem::forget(library);
                    // SAFETY: as above.
                    if unsafe { cudarc::nvrtc::sys::is_culib_present() } {
                        return Ok(());
                    }
                }
            }
        }
        let places: Vec<_> = folders.iter().map(|f| f.display().to_string()).collect();
        Err(format!(
            "looked for libnvrtc.so on the loader's path (LD_LIBRARY_PATH) and in {}; \
             `pip install nvidia-cuda-nvrtc` into the active environment is enough",
            places.join(", ")
        ))
    });
    found.clone().map_err(|why| Error::Cuda { what: "no run-time compiler (NVRTC)".into(), why })
}
