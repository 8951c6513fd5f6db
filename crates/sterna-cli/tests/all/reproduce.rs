//! `sterna reproduce` as a program: results are kept and used again.

use std::path::Path;
use std::process::{Command, Output};

fn reproduce(out: &Path, only: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sterna"));
    command.args(["reproduce", "table-gmm", "--budget", "quick", "--only", only, "--out"]).arg(out);
    command.output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn results_are_kept_and_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let plain = reproduce(folder.path(), "gmm-plain");
    assert!(plain.status.success(), "{}", text(&plain.stderr));
    let results = || std::fs::read_to_string(folder.path().join("reproduction/quick.jsonl")).unwrap();
    assert!(results().contains("\"name\":\"gmm-plain-n10-s1\""));

    let sound = reproduce(folder.path(), "gmm-cmcd");
    assert!(sound.status.success(), "{}{}", text(&sound.stdout), text(&sound.stderr));
    assert!(text(&sound.stdout).contains("✓ CMCD-APT, K = 5 makes at least 9 times as many"));
    let page = std::fs::read_to_string(folder.path().join("reproduction.md")).unwrap();
    assert!(page.contains("| CMCD-APT, K = 5 |"), "{page}");

    // What is there is not run again.
    let before = results();
    let again = reproduce(folder.path(), "gmm-cmcd");
    assert!(again.status.success() && again.stderr.is_empty(), "{}", text(&again.stderr));
    assert_eq!(results(), before);
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, part) in [(&["table-gm"][..], "table-gmm"), (&["all", "--budget", "fast"], "quick")] {
        let out = Command::new(env!("CARGO_BIN_EXE_sterna"))
            .arg("reproduce")
            .args(arguments)
            .arg("--out")
            .arg(folder.path())
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(2));
        assert!(text(&out.stderr).contains(part), "{}", text(&out.stderr));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
