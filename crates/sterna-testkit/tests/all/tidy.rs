//! The tree itself: arrows between crates point one way, every file says what it holds, nothing names a machine.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Files of the tree with these endings, build outputs and hidden folders left out.
fn files(folder: &Path, endings: &[&str], out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "runs", "__pycache__"].contains(&name.as_str()) {
                files(&path, endings, out);
            }
        } else if endings.iter().any(|e| name.ends_with(e)) {
            out.push(path);
        }
    }
}

fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("\n[dependencies]").nth(1).unwrap_or("").split("\n[").next().unwrap_or("");
    let names =
        section.lines().filter_map(|l| l.split(['.', ' ', '=']).next()).filter(|n| n.starts_with("sterna"));
    names.map(str::to_string).collect()
}

#[test]
fn arrows_point_one_way() {
    let allowed: &[(&str, &[&str])] = &[
        ("sterna", &[]),
        ("sterna-neural", &["sterna"]),
        ("sterna-molecule", &["sterna"]),
        ("sterna-testkit", &["sterna"]),
        ("sterna-mpi", &["sterna"]),
        ("sterna-molecule-neural", &["sterna", "sterna-neural", "sterna-molecule"]),
        (
            "sterna-run",
            &["sterna", "sterna-neural", "sterna-molecule", "sterna-molecule-neural", "sterna-testkit"],
        ),
        ("sterna-cli", &["sterna", "sterna-mpi", "sterna-run", "sterna-testkit"]),
        ("sterna-python", &["sterna", "sterna-mpi", "sterna-run"]),
    ];
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let (_, may) =
            allowed.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("{name} is not on the map"));
        for dependency in dependencies(&manifest) {
            assert!(may.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn the_library_knows_no_files_and_no_clocks() {
    let mut sources = Vec::new();
    files(&root().join("crates/sterna/src"), &[".rs"], &mut sources);
    // Files of tests may print what they measured.
    for path in sources.iter().filter(|path| !path.ends_with("tests.rs")) {
        let text = fs::read_to_string(path).unwrap();
        for word in ["std::fs", "std::time", "std::net", "std::io", "println!"] {
            let used = text.lines().any(|l| l.contains(word) && !l.trim_start().starts_with("//"));
            assert!(!used, "{} uses {word}", path.display());
        }
    }
}

#[test]
fn members_of_a_family_do_not_see_each_other() {
    for family in ["targets", "explorers", "estimates"] {
        let mut members = Vec::new();
        files(&root().join("crates/sterna/src").join(family), &[".rs"], &mut members);
        for path in members {
            let text = fs::read_to_string(&path).unwrap();
            for other in
                ["targets", "explorers", "accelerators", "estimates"].iter().filter(|o| **o != family)
            {
                let sees =
                    text.lines().any(|l| l.starts_with("use ") && l.contains(&format!("crate::{other}")));
                assert!(!sees, "{} uses {other}", path.display());
            }
        }
    }
}

#[test]
fn every_file_says_what_it_holds() {
    let mut sources = Vec::new();
    files(&root().join("crates"), &[".rs"], &mut sources);
    assert!(sources.len() > 40);
    for path in sources {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//!"), "{} does not open with a //! line", path.display());
    }
}

/// Tests are modules of one binary a crate, `tests/all`; beside it lie files that bring an allocator of their own. A file that
/// `main.rs` does not name would never be run.
#[test]
fn every_test_file_is_built() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let tests = entry.unwrap().path().join("tests");
        let Ok(entries) = fs::read_dir(&tests) else { continue };
        let main = fs::read_to_string(tests.join("all/main.rs")).expect("tests/all/main.rs");
        let rust = |entries: fs::ReadDir| {
            entries.map(|e| e.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "rs"))
        };
        for path in rust(entries) {
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains("#[global_allocator]"), "{} belongs in tests/all", path.display());
        }
        for path in rust(fs::read_dir(tests.join("all")).unwrap()) {
            let name = path.file_stem().unwrap().to_string_lossy();
            let named = name == "main" || main.lines().any(|line| line == format!("mod {name};"));
            assert!(named, "{} is not named in main.rs", path.display());
        }
    }
}

/// Links in the documents lead somewhere.
#[test]
fn links_lead_somewhere() {
    let mut documents = Vec::new();
    files(&root(), &[".md"], &mut documents);
    for path in documents {
        // A document that is linked into a crate speaks from where it lies.
        let path = path.canonicalize().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            if !file.is_empty() && !file.contains("://") {
                let to = path.parent().unwrap().join(file);
                assert!(to.exists(), "{} links to {link}, which is not there", path.display());
            }
        }
    }
}

/// A package holds all that it is built from.
#[test]
fn sources_include_nothing_from_outside_their_crate() {
    let mut sources = Vec::new();
    files(&root().join("crates"), &[".rs"], &mut sources);
    for path in sources {
        let text = fs::read_to_string(&path).unwrap();
        let below = path.strip_prefix(root().join("crates")).unwrap().components().count() - 2;
        for included in text.split("include_").skip(1).filter_map(|rest| rest.split('"').nth(1)) {
            let up = included.split('/').filter(|part| *part == "..").count();
            assert!(up <= below, "{} includes {included}", path.display());
        }
    }
}

/// One function replaces files, so that each is whole and on disk before it has its name.
#[test]
fn jobs_write_files_in_one_place() {
    let mut sources = Vec::new();
    files(&root().join("crates/sterna-run/src"), &[".rs"], &mut sources);
    for path in sources.iter().filter(|path| !path.ends_with("files.rs")) {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for word in ["fs::write(", "fs::rename("] {
            assert!(!code.contains(word), "{} uses {word}: see files.rs", path.display());
        }
    }
}

/// Names of the tree's files and folders, from its root.
fn tree() -> Vec<String> {
    let mut all = Vec::new();
    files(&root(), &[""], &mut all);
    all.iter().map(|path| path.strip_prefix(root()).unwrap().to_string_lossy().into_owned()).collect()
}

/// A tree that can be looked through: results, data and documents that belong together are in one file; code has as many
/// files as it has ideas. Skipped where there is no git to ask.
#[test]
fn what_is_not_code_has_fewer_than_100_files() {
    let asked = std::process::Command::new("git").arg("-C").arg(root()).arg("ls-files").output();
    let Ok(answer) = asked else { return println!("skipped: there is no git") };
    if !answer.status.success() {
        return println!("skipped: this is no git repository");
    }
    let text = String::from_utf8_lossy(&answer.stdout);
    let code = [".rs", ".toml", ".py", ".pyi", ".c", ".h", ".cu", ".js", ".css", ".stan", ".ipynb"];
    let others: Vec<_> = text.lines().filter(|name| !code.iter().any(|end| name.ends_with(end))).collect();
    assert!(others.len() < 100, "{} files: {others:#?}", others.len());
}

/// What a document names between backticks is there: whole paths, or the end of one.
#[test]
fn documents_name_files_that_are_there() {
    let tree = tree();
    let there = |name: &str| {
        let name = name.trim_end_matches('/');
        let folder =
            |path: &str| path.starts_with(&format!("{name}/")) || path.contains(&format!("/{name}/"));
        tree.iter().any(|path| path == name || path.ends_with(&format!("/{name}")) || folder(path))
    };
    let documents = tree.iter().filter(|path| {
        let folder = Path::new(path).parent().and_then(Path::to_str).unwrap_or_default();
        path.ends_with(".md") && ["", "docs", "docs/book"].contains(&folder)
    });
    for document in documents {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
        let source = |name: &str| [".rs", ".cu", ".py", ".md", ".h"].iter().any(|end| name.ends_with(end));
        let ours = |name: &str| {
            ["crates/", "docs/", "tests/", "scripts/", "fuzz/"].iter().any(|f| name.starts_with(f))
        };
        for name in text.split('`').skip(1).step_by(2).filter(|name| plain(name)) {
            assert!(
                !(source(name) || ours(name)) || there(name),
                "{document} names {name}, which is not there"
            );
        }
    }
}

/// The map of ARCHITECTURE.md: folders of crates, and below them files and folders of their sources.
#[test]
fn the_map_is_true() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let map = text.split("```").nth(1).unwrap();
    let (mut folder, mut entries) = (String::new(), 0);
    for line in map.lines() {
        let depth = line.len() - line.trim_start().len();
        // One name, or several with commas between them.
        let mut words = line.split_whitespace();
        let mut names = Vec::from_iter(words.next());
        while names.last().is_some_and(|name| name.ends_with(',')) {
            names.extend(words.next());
        }
        for name in names.iter().map(|name| name.trim_end_matches(',')) {
            if depth == 2 && name.ends_with('/') {
                folder = format!("crates/{name}");
                assert!(root().join(&folder).is_dir(), "the map has {folder}");
            } else if depth == 4 {
                let path = root().join(&folder).join("src").join(name);
                assert!(path.exists(), "the map has {}", path.display());
                entries += 1;
            }
        }
    }
    assert!(entries > 30, "{entries} entries were read");
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(map.contains(&format!("  {name}/ ")), "the map lacks {name}");
    }
}
