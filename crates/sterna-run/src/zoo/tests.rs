//! A few cells end to end; what judges them.

use super::*;
use crate::alarms::Verdict;

fn case(name: &str) -> Case {
    cases().into_iter().find(|case| case.name == name).unwrap()
}

#[test]
fn names_are_their_own() {
    let mut names: Vec<&str> = cases().iter().map(|case| case.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn a_wrong_result_is_told_from_a_right_one() {
    let told = |verdict: &str, off: f64, ess: f64| Told {
        off,
        ess,
        ..Told { verdict: verdict.into(), ..Told::refused(String::new()) }
    };
    let of = |name: &str, told: Told| Outcome::of(&case(name), 1, told);
    assert!(of("normal", told("sound", 3.9, 900.0)).is_right());
    assert!(of("normal", told("sound", 4.1, 900.0)).fooled());
    assert!(of("normal", told("sound", 1.0, 90.0)).fooled());
    assert!(of("normal", told("sound", f64::NAN, 900.0)).fooled());
    assert!(!of("normal", told("doubtful", 9.0, 900.0)).fooled());
    assert!(of("normal", told("unsound", 1.0, 900.0)).false_alarm());
    assert!(!of("normal", told("unsound", 9.0, 900.0)).false_alarm());
    assert!(!of("normal", told("doubtful", 1.0, 900.0)).false_alarm());
    // Nothing is right where there is no law, and a refusal is just what is wanted; elsewhere it is not.
    assert!(of("flat", told("sound", 1.0, 900.0)).fooled());
    assert!(!of("flat", Told::refused(String::new())).false_alarm());
    assert!(of("normal", Told::refused(String::new())).false_alarm());
}

#[test]
fn cells_are_run_kept_and_not_run_again() {
    struct Count(AtomicUsize);
    impl Keeper for Count {
        fn ended(&self, _: &Outcome, _: usize, _: usize) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let request = Request {
        seeds: 2,
        only: "laplace".into(),
        jobs: 2,
        out: folder.path().into(),
        again: false,
        keep: Some(folder.path().join("kept")),
    };
    let count = Count(AtomicUsize::new(0));
    let results = run(&request, &count).unwrap();
    assert_eq!((results.all().count(), count.0.load(Ordering::Relaxed)), (2, 2));
    assert!(
        results.all().all(|cell| cell.is_right() && cell.told.verdict == Verdict::Sound.name()),
        "{results:?}"
    );
    let again = run(&request, &count).unwrap();
    assert_eq!(
        (again.all().collect::<Vec<_>>(), count.0.load(Ordering::Relaxed)),
        (results.all().collect(), 2)
    );
    let kept = |file: &str| std::fs::read(folder.path().join("kept/laplace-2").join(file)).unwrap();
    let summary: crate::Summary = serde_json::from_slice(&kept("summary.json")).unwrap();
    assert!(summary.finished);
    // Rows of a ladder's number, three coordinates and a log density; rows of five.
    assert!(
        ["draws.f32", "weights.f32"].iter().all(|file| kept(file).len() > 2000 && kept(file).len() % 20 == 0)
    );
    let page = std::fs::read_to_string(folder.path().join("trust.md")).unwrap();
    assert!(page.contains("| `laplace` |") && page.contains("0 of 2 (0.0%)"), "{page}");
    let none = Request { only: "no such".into(), ..request };
    assert!(run(&none, &()).unwrap_err().to_string().contains("no such"));
}
