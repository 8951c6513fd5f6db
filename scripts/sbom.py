#!/usr/bin/env python3
"""What a program or wheel is made of, as a software bill of materials (CycloneDX 1.5, JSON): scripts/sbom.py PACKAGE [TARGET] [FEATURE …].

Made of `cargo metadata` alone: what the lock file names for that target and those features, with licences, sources, checksums and who
needs whom. Tools that only run while it is built, and what tests need, are left out."""

import hashlib
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def metadata(package, target, features):
    features = [f"{package}/{feature}" for feature in features]
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    if features:
        command += ["--features", ",".join(features)]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def checksums():
    """SHA-256 of each package that comes from a registry, as Cargo.lock has it."""
    entries = (ROOT / "Cargo.lock").read_text().split("[[package]]")
    fields = [dict(re.findall(r'^(\w+) = "(.*)"$', entry, re.M)) for entry in entries]
    return {(entry["name"], entry["version"]): entry["checksum"] for entry in fields if "checksum" in entry}


def needed(found, root):
    """What is linked into a package: its dependencies and theirs, for each those that it needs."""
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    proc_macros = {package["id"] for package in found["packages"] if any("proc-macro" in target["kind"] for target in package["targets"])}
    edges, open_ones = {}, [root]
    while open_ones:
        one = open_ones.pop()
        if one in edges:
            continue
        linked = [dependency["pkg"] for dependency in nodes[one]["deps"] if any(kind["kind"] is None for kind in dependency["dep_kinds"])]
        edges[one] = sorted(set(linked) - proc_macros)
        open_ones += edges[one]
    return edges


def standard_library():
    """Rust's own, which no lock file names."""
    version = subprocess.run(["rustc", "--version"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()[1]
    licences = [{"expression": "MIT OR Apache-2.0"}]
    return {"type": "library", "bom-ref": f"rust-std@{version}", "name": "rust-std", "version": version, "licenses": licences}


def bill(package, target, features=()):
    """The bill of a package of this workspace."""
    found = metadata(package, target, features)
    packages = {one["id"]: one for one in found["packages"]}
    root = next(one["id"] for one in found["packages"] if one["name"] == package and one["source"] is None)
    edges, sums = needed(found, root), checksums()

    def reference(identity):
        return f"pkg:cargo/{packages[identity]['name']}@{packages[identity]['version']}"

    def component(identity):
        one = packages[identity]
        out = {
            "type": "application" if identity == root else "library",
            "bom-ref": reference(identity),
            "name": one["name"],
            "version": one["version"],
            "purl": reference(identity),
        }
        if one.get("description"):
            out["description"] = " ".join(one["description"].split())
        if one.get("license"):
            # `A/B` is how some still write `A OR B`.
            out["licenses"] = [{"expression": one["license"].replace("/", " OR ")}]
        if (one["name"], one["version"]) in sums:
            out["hashes"] = [{"alg": "SHA-256", "content": sums[one["name"], one["version"]]}]
        return out

    parts = sorted((component(one) for one in edges if one != root), key=lambda part: part["bom-ref"])
    parts.append(standard_library())
    # The same tree gives the same bytes: no time, and no random number.
    identity = hashlib.sha256("\n".join([target, *features, *(part["bom-ref"] for part in parts)]).encode()).hexdigest()
    dependencies = [{"ref": reference(one), "dependsOn": [reference(to) for to in all_of]} for one, all_of in edges.items()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{identity[:8]}-{identity[8:12]}-5{identity[13:16]}-8{identity[17:20]}-{identity[20:32]}",
        "version": 1,
        "metadata": {
            "component": component(root),
            "properties": [{"name": "target", "value": target}, {"name": "features", "value": ", ".join(features) or "default"}],
        },
        "components": parts,
        "dependencies": sorted(dependencies, key=lambda entry: entry["ref"]),
    }


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    package, target = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "x86_64-unknown-linux-gnu"
    print(json.dumps(bill(package, target, sys.argv[3:]), indent=1))
