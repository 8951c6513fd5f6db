//! What the tree depends on: licences, sources, duplicates and the oldest Rust, held to the lists of `deny.toml`.
//!
//! `cargo deny` reads the same lists and knows more; it takes minutes to build, and this takes none.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn cargo(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    let output =
        command.args(arguments).args(["--locked", "--offline"]).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What cargo says of every package that this platform may need.
fn metadata() -> Value {
    let host = Command::new("rustc").args(["--print", "host-tuple"]).output().unwrap();
    let host = String::from_utf8(host.stdout).unwrap();
    let text = cargo(&["metadata", "--format-version", "1", "--filter-platform", host.trim()]);
    serde_json::from_str(&text).unwrap()
}

/// Packages that are built with these features, ours left out. The metadata also name those of features nobody asked for.
fn packages(metadata: &Value) -> Vec<&Value> {
    let tree = cargo(&["tree", "--workspace", "--all-features", "--prefix", "none", "--format", "{p}"]);
    let built: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?.trim_start_matches('v')))
        })
        .collect();
    let all = metadata["packages"].as_array().unwrap().iter();
    all.filter(|p| {
        let [name, version] = ["name", "version"].map(|key| p[key].as_str().unwrap());
        !p["source"].is_null() && built.contains(&(name, version))
    })
    .collect()
}

fn deny() -> toml::Table {
    toml::from_str(&std::fs::read_to_string(root().join("deny.toml")).unwrap()).unwrap()
}

fn words(table: &toml::Table, section: &str, key: &str) -> Vec<String> {
    let list = table[section][key].as_array().unwrap();
    list.iter().map(|word| word.as_str().unwrap().to_string()).collect()
}

/// Whether an SPDX expression can be met with these licences: AND binds stronger than OR; `/` is an old OR.
fn met(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace('/', " OR ");
    // The one nested form that occurs is a bracket of alternatives beside others.
    if let Some((inner, rest)) = expression.strip_prefix('(').and_then(|e| e.split_once(')')) {
        return met(inner, allowed)
            && rest.split(" AND ").map(str::trim).filter(|l| !l.is_empty()).all(|l| met(l, allowed));
    }
    let one = |licence: &str| allowed.iter().any(|a| a == licence.trim());
    expression.split(" OR ").any(|choice| choice.split(" AND ").all(one))
}

#[test]
fn licences_are_on_the_list() {
    let (metadata, allowed) = (metadata(), words(&deny(), "licenses", "allow"));
    for package in packages(&metadata) {
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(met(licence, &allowed), "{}: {licence} is not in deny.toml", package["name"]);
    }
}

#[test]
fn licences_are_read_as_spdx_writes_them() {
    let allowed = ["MIT".to_string(), "Unicode-3.0".to_string()];
    for good in ["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
        assert!(met(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0", "none", ""] {
        assert!(!met(bad, &allowed), "{bad}");
    }
}

#[test]
fn sources_are_on_the_list() {
    let (metadata, allowed) = (metadata(), words(&deny(), "sources", "allow-registry"));
    for package in packages(&metadata) {
        let source = package["source"].as_str().unwrap().trim_start_matches("registry+");
        assert!(allowed.iter().any(|a| a == source), "{}: {source} is not in deny.toml", package["name"]);
    }
}

#[test]
fn no_crate_comes_in_two_versions() {
    let (metadata, skipped) = (metadata(), words(&deny(), "bans", "skip"));
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages(&metadata) {
        let (name, version) = (package["name"].as_str().unwrap(), package["version"].as_str().unwrap());
        versions.entry(name).or_default().push(version);
    }
    versions.retain(|name, versions| versions.len() > 1 && !skipped.iter().any(|s| s == name));
    assert!(versions.is_empty(), "{versions:?}");
}

/// The oldest Rust that is promised, as numbers.
fn version(text: &str) -> Vec<u32> {
    let mut parts: Vec<u32> = text.split('.').map(|part| part.parse().unwrap()).collect();
    parts.resize(3, 0);
    parts
}

/// Clippy's lint `incompatible_msrv` reads the same field and knows since when the standard library has what is used.
#[test]
fn nothing_needs_a_newer_rust_than_is_promised() {
    let metadata = metadata();
    let ours = "rust_version";
    let (own, others): (Vec<&Value>, Vec<&Value>) =
        metadata["packages"].as_array().unwrap().iter().partition(|p| p["source"].is_null());
    let promised = own[0][ours].as_str().expect("the workspace names its oldest Rust");
    for package in own {
        assert_eq!(package[ours].as_str(), Some(promised), "{} inherits it", package["name"]);
    }
    for package in others {
        if let Some(needed) = package[ours].as_str() {
            assert!(version(needed) <= version(promised), "{} needs Rust {needed}", package["name"]);
        }
    }
}
