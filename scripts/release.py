#!/usr/bin/env python3
"""Builds what people download, into dist/: scripts/release.py [--out DIR] [--profile release] [--only TARGET …] [--no-wheels].

  sterna-VERSION-TARGET.tar.gz   the program with manual, completions and licences, for each of
      x86_64-unknown-linux-musl, aarch64-unknown-linux-musl   static: runs on any Linux, and loads no shared libraries
      x86_64-unknown-linux-gnu                                 loads Stan models, your libraries, CUDA; needs a glibc, named in its README
  sterna-VERSION-*.whl           Python wheels
  *.cdx.json                     what each is made of (CycloneDX)
  SHA256SUMS

One build for x86-64 serves every such processor: AVX-512, AVX2 or plain code is chosen at run time. Every program then samples the
same short runs, the one for aarch64 by qemu, and all draws must be the same bytes. Targets that rustup has not installed are left out,
with a word; so are wheels without maturin. With ziglang (`pip install ziglang`), the program for gnu and the wheels need glibc 2.17 alone."""

import argparse
import hashlib
import importlib.util
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import sbom

ROOT = pathlib.Path(__file__).resolve().parents[1]
STATIC = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"]
TARGETS = [*STATIC, "x86_64-unknown-linux-gnu"]
FEATURES = {"x86_64-unknown-linux-gnu": ["cuda"]}
SHELLS = ["bash", "zsh", "fish"]
# Plain swaps, a fitted reference, transports that are chosen, a trained network and a molecule.
RUNS = {
    "gmm": ["target.dim=5", "chains.count=6", "chains.ensembles=2"],
    "fitted": ["target.kind=banana", "reference.kind=fitted", "run.until.ess=200"],
    "auto": ["accelerator.kind=auto", "chains.count=5", "chains.ensembles=2", "training.collect=300", "run.iterations=6000"],
    "flow": ["target.kind=dw4", "chains.count=4", "accelerator.kind=flow", "network.layers=2", "network.width=16", "training.steps=60",
             "training.collect=400", "training.batch=64"],
    "molecule": ["target.kind=alanine-dipeptide", "chains.count=4", "accelerator.kind=affine", "training.collect=2000", "training.rounds=1"],
}
SHORT = ["schedule.rounds=3", "schedule.iterations=200", "run.iterations=500", "run.burn_in=50"]


def say(text):
    print(text, flush=True)


def run(command, **more):
    return subprocess.run([str(part) for part in command], check=True, **more)


def version():
    return re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.M)[1]


def installed_targets():
    listed = subprocess.run(["rustup", "target", "list", "--installed"], capture_output=True, text=True)
    return listed.stdout.split() if listed.returncode == 0 else [f"{platform.machine()}-unknown-linux-gnu"]


def has_zig():
    return importlib.util.find_spec("ziglang") is not None and shutil.which("cargo-zigbuild") is not None


def build(target, profile):
    """The program for a target, and where it lies."""
    environment = {**os.environ, f"CARGO_PROFILE_{profile.upper()}_STRIP": "symbols"}
    folder = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    command, named, more = ["build"], target, []
    if target.endswith("-gnu") and has_zig():
        # Symbols of that age are in every glibc that is still about.
        command, named = ["zigbuild"], f"{target}.2.17"
    if target.split("-")[0] != platform.machine():
        # Rust brings what static programs are linked with, and a linker for every processor. musl has no libdl apart: an empty one will do.
        environment[f"CARGO_TARGET_{target.upper().replace('-', '_')}_LINKER"] = "rust-lld"
        (folder / "empty").mkdir(parents=True, exist_ok=True)
        (folder / "empty" / "libdl.a").write_bytes(b"!<arch>\n")
        command, more = ["rustc"], ["--", "-L", f"native={folder / 'empty'}"]
    features = [part for feature in FEATURES.get(target, []) for part in ("--features", feature)]
    run(["cargo", *command, "--locked", "--profile", profile, "--target", named, "-p", "sterna-cli", "--bin", "sterna", *features, *more],
        cwd=ROOT, env=environment)
    return folder / target / ("debug" if profile == "dev" else profile) / "sterna"


def emulator(target):
    """What runs a program of that processor here: nothing, or qemu; None where there is none."""
    machine = target.split("-")[0]
    if machine == platform.machine():
        return []
    found = next((name for name in (f"qemu-{machine}-static", f"qemu-{machine}") if shutil.which(name)), None)
    return [found] if found else None


def needed_glibc(program):
    """The newest version of glibc's symbols that a program names; None where it names none."""
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", program.read_bytes())
    return max(((int(a), int(b)) for a, b in versions), default=None)


def draws_of(program, prefix, folder):
    """SHA-256 of the draws of every run."""
    out = {}
    for name, settings in RUNS.items():
        short = [] if name == "fitted" else SHORT
        settings = [part for setting in [*short, *settings] for part in ("--set", setting)]
        run([*prefix, program, "run", "--quiet", "--threads", 1, "--seed", 7, "--out", folder / name, *settings])
        out[name] = hashlib.sha256((folder / name / "draws.nc").read_bytes()).hexdigest()
    return out


def note(target, program):
    """What a person should know of a program before it is used."""
    lines = [f"sterna {version()} for {target}", ""]
    glibc = needed_glibc(program)
    if target in STATIC:
        lines += ["Linked statically: it runs on any Linux of this processor. It loads no shared libraries, so no Stan models, no targets",
                  'of your own as libraries (`kind = "stan"`, `kind = "library"`), and no CUDA: for those, take the program for linux-gnu.']
    elif glibc:
        lines += [f"Needs glibc {glibc[0]}.{glibc[1]} or later (`ldd --version` says which there is)."]
    own = "init molecule" if target in STATIC else "init stan"
    lines += ["", "Put `sterna` on your path, `sterna.1` where `man` looks, and the file in completions/ where your shell does.",
              f"Begin with `sterna run`, or `sterna {own}`; the documentation is in the source, under docs/book.", ""]
    return "\n".join(lines)


def pack(target, program, prefix, out):
    """The archive, with the same bytes whenever it is made of the same files."""
    name = f"sterna-{version()}-{target}"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder) / name
        (folder / "completions").mkdir(parents=True)
        shutil.copy(program, folder / "sterna")
        for file in ("LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md", "CITATION.cff"):
            shutil.copy(ROOT / file, folder / file)
        (folder / "README").write_text(note(target, program))
        if prefix is not None:
            written = {"sterna.1": ["man"], **{f"completions/sterna.{shell}": ["completions", shell] for shell in SHELLS}}
            for file, arguments in written.items():
                (folder / file).write_bytes(run([*prefix, program, *arguments], capture_output=True).stdout)

        def plain(entry):
            entry.uid = entry.gid = entry.mtime = 0
            entry.uname = entry.gname = "root"
            return entry

        tar = out / f"{name}.tar"
        with tarfile.open(tar, "w") as archive:
            archive.add(folder, arcname=name, filter=plain)
    # -n: neither name nor time.
    run(["gzip", "-9", "-n", "-f", tar])
    (out / f"{name}.cdx.json").write_text(json.dumps(sbom.bill("sterna-cli", target, FEATURES.get(target, [])), indent=1) + "\n")


def programs(targets, profile, out):
    known, seen = installed_targets(), {}
    for target in targets:
        if target not in known:
            say(f"left out: {target} (rustup target add {target})")
            continue
        say(f"== {target} ==")
        program, prefix = build(target, profile), emulator(target)
        glibc = needed_glibc(program)
        say(f"{program.stat().st_size / 1e6:.1f} MB, " + (f"glibc {glibc[0]}.{glibc[1]}" if glibc else "static"))
        if target in STATIC and glibc:
            sys.exit(f"{program} is not static: it names symbols of glibc")
        pack(target, program, prefix, out)
        if prefix is None:
            say(f"not run: there is no qemu-{target.split('-')[0]}-static")
            continue
        with tempfile.TemporaryDirectory() as folder:
            seen[target] = draws_of(program, prefix, pathlib.Path(folder))
        say(f"its draws, by {' '.join(prefix) or 'this processor'}: " + ", ".join(f"{run} {bits[:12]}" for run, bits in seen[target].items()))
    differing = [name for name in RUNS if len({draws[name] for draws in seen.values()}) > 1]
    if differing:
        sys.exit(f"the programs draw different bits: {', '.join(differing)}")
    say(f"the same draws from {len(seen)} programs")


def wheels(profile, out):
    if importlib.util.find_spec("maturin") is None:
        return say("left out: wheels (pip install maturin)")
    # One wheel serves every Python from 3.10 on.
    portable = ["--zig", "--compatibility", "manylinux2014"] if has_zig() else []
    run([sys.executable, "-m", "maturin", "build", "--quiet", "--locked", "--profile", profile, "--out", out, "-i", sys.executable, *portable], cwd=ROOT)
    target = f"{platform.machine()}-unknown-linux-gnu"
    (out / f"sterna-{version()}-wheel.cdx.json").write_text(json.dumps(sbom.bill("sterna-python", target, ["cuda"]), indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--profile", choices=["release", "dev"], default="release")
    parser.add_argument("--only", nargs="+", choices=TARGETS, default=TARGETS, metavar="TARGET")
    parser.add_argument("--no-wheels", action="store_true")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    programs(arguments.only, arguments.profile, out)
    if not arguments.no_wheels:
        wheels(arguments.profile, out)
    files = sorted(file for file in out.iterdir() if file.name != "SHA256SUMS")
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (out / "SHA256SUMS").write_text("".join(sums))
    say(f"{len(files)} files in {out}; check them with: sha256sum -c SHA256SUMS")


if __name__ == "__main__":
    main()
