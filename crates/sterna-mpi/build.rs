//! Compiles the shim with the MPI that is installed: `mpicc`, or what `MPICC` names. Without the feature `mpi` nothing is done.

use std::env;
use std::path::PathBuf;
use std::process::Command;

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script all it knows by variables")]
fn main() {
    println!("cargo::rerun-if-changed=src/shim.c");
    println!("cargo::rerun-if-env-changed=MPICC");
    if env::var_os("CARGO_FEATURE_MPI").is_none() {
        return;
    }
    let compiler = env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let (object, library) = (out.join("shim.o"), out.join("libsterna_mpi_shim.a"));
    said(
        Command::new(&compiler)
            .args(["-O2", "-fPIC", "-Wall", "-Wextra", "-c", "src/shim.c", "-o"])
            .arg(&object),
    );
    said(Command::new("ar").arg("crs").arg(&library).arg(&object));
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=sterna_mpi_shim");
    // Open MPI, MPICH and those made from it all tell what they would call.
    for word in said(Command::new(&compiler).arg("-show")).split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo::rustc-link-search=native={folder}");
        } else if let Some(name) = word.strip_prefix("-l") {
            println!("cargo::rustc-link-lib=dylib={name}");
        }
    }
}

/// What a command printed; the build ends where it failed.
fn said(command: &mut Command) -> String {
    let cure = "the feature `mpi` needs an MPI with its compiler: on Debian `apt-get install libopenmpi-dev openmpi-bin`, on a cluster \
                `module load openmpi`; MPICC names another compiler";
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} did not run: {error}; {cure}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {errors}; {cure}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
