//! A walk through the zoo: one seed of cases that take a moment each. `sterna zoo` runs all of them, with many seeds.

use sterna_run::zoo::{Class, cases, measure};
use sterna_testkit::zoo;

/// No wrong result is called sound, and no right one unsound.
fn walk(names: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let case = cases().into_iter().find(|case| case.name == *name).unwrap_or_else(|| panic!("{name}"));
        let outcome = measure(&case, 1, folder.path(), None);
        assert!(!outcome.fooled() && !outcome.false_alarm(), "{outcome:?}");
        assert_ne!(outcome.told.verdict, "panicked", "{outcome:?}");
    }
}

#[test]
fn easy_ones_and_modes_are_right() {
    walk(&["normal", "far-and-narrow", "laplace", "two-normals", "diagonal", "corners", "ring", "light"]);
}

#[test]
fn tails_funnels_and_ridges_are_right_or_told() {
    walk(&["student", "funnel-1", "banana", "needle", "half-space", "step", "pole", "staircase"]);
}

#[test]
fn what_once_fooled_the_program_does_so_no_more() {
    walk(&["two-normals-old", "funnel-5-old", "pole-old", "slow-old", "two-atoms", "loose-atom"]);
}

/// Nothing is sampled of what has no integral.
#[test]
fn what_has_no_law_is_refused() {
    walk(&["flat", "growing", "one-sided", "one-flat", "upwards"]);
}

/// Whatever a library does wrong is found before it is believed.
#[test]
fn no_liar_is_believed() {
    let liars: Vec<&str> =
        cases().iter().filter(|case| case.class == Class::Liar).map(|case| case.name).collect();
    walk(&liars);
}

/// Every class has its cases, so that no rate is one of nothing.
#[test]
fn classes_are_all_there() {
    let all = cases();
    for class in [
        Class::Density(zoo::Class::Easy),
        Class::Density(zoo::Class::Lawless),
        Class::Density(zoo::Class::Hidden),
        Class::Switching,
        Class::Molecule,
    ] {
        assert!(all.iter().filter(|case| case.class == class).count() >= 2, "{class}");
    }
    assert!(all.len() >= 55, "{}", all.len());
}
