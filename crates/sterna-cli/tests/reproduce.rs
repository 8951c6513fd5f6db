//! `sterna reproduce` as a program: results are kept and used again, and a planted fault is noticed.

use std::path::Path;
use std::process::{Command, Output};

fn reproduce(out: &Path, only: &str, fault: bool) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sterna"));
    command.args(["reproduce", "table-gmm", "--budget", "quick", "--only", only, "--out"]).arg(out);
    if fault {
        command.env("STERNA_PLANT_PRINTED_SIGN", "1");
    }
    command.output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_wrong_backward_sign_fails() {
    let folder = tempfile::tempdir().unwrap();
    // Plain swaps have no backward kernel; they are what accelerated ones are compared with.
    let plain = reproduce(folder.path(), "gmm-plain", false);
    assert!(plain.status.success(), "{}", text(&plain.stderr));
    let results = |name: &str| folder.path().join(format!("reproduction/quick/cells/{name}.json"));
    assert!(results("gmm-plain-n10-s1").exists());

    let sound = reproduce(folder.path(), "gmm-cmcd", false);
    assert!(sound.status.success(), "{}{}", text(&sound.stdout), text(&sound.stderr));
    assert!(text(&sound.stdout).contains("✓ CMCD-APT, K = 5 makes at least 3 times as many"));
    let page = std::fs::read_to_string(folder.path().join("reproduction.md")).unwrap();
    assert!(page.contains("| CMCD-APT, K = 5 |"), "{page}");

    // What is there is not run again.
    let again = reproduce(folder.path(), "gmm-cmcd", true);
    assert!(again.status.success() && again.stderr.is_empty(), "{}", text(&again.stderr));

    std::fs::remove_file(results("gmm-cmcd-k5-n10-s1")).unwrap();
    let faulty = reproduce(folder.path(), "gmm-cmcd", true);
    assert_eq!(faulty.status.code(), Some(1), "{}", text(&faulty.stdout));
    assert!(text(&faulty.stdout).contains("✗ CMCD-APT, K = 5 makes at least 3 times as many"));
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
