//! `draws.nc` read back, and what stays when it cannot be written. `tests/python/test_draws.py` has the
//! other readers.

use std::fs;
use std::path::Path;

use rust_hdf5::{Filter, H5File};
use sterna::records::Draws;
use sterna_run::draws_file::{Attribute, DrawsFile, DrawsFileError, EnsembleDraws, Numbers, Values, read};

/// Numbers that differ in every place, with some that are easy to lose.
fn ensembles(count: usize, draws: usize, dim: usize) -> Vec<Draws> {
    let number = |e: usize, i: usize| (i as f64 + 0.1).sin() * (e as f64 + 1.0).exp();
    (0..count)
        .map(|e| {
            let mut x: Vec<f64> = (0..draws * dim).map(|i| number(e, i)).collect();
            let special = [-0.0, f64::NAN, f64::NEG_INFINITY, 5e-324];
            x.iter_mut().zip(special).for_each(|(x, special)| *x = special);
            Draws {
                x,
                log_density: (0..draws).map(|i| -number(e, i).powi(2)).collect(),
                replica: (0..draws).map(|i| u32::MAX - ((i * 7 + e) % 10) as u32).collect(),
                ..Draws::default()
            }
        })
        .collect()
}

fn same_bits(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits()));
}

/// The only files in `folder`.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn reads_back_bit_for_bit() {
    // One chunk, several chunks with a partial last one, rows longer than a chunk.
    for (count, draws, dim) in
        [(1, 1, 1), (1, 10, 3), (4, 777, 5), (2, 40_001, 1), (3, 20_011, 7), (2, 3, 40_000)]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("draws.nc");
        let data = ensembles(count, draws, dim);
        DrawsFile::new(dim, &data)
            .statistic("energy", data.iter().map(|d| Values::Real(&d.log_density)))
            .statistic("steps", data.iter().map(|d| Values::Count(&d.replica)))
            .attribute("seed", u64::MAX)
            .attribute("target", "gmm")
            .attribute("target", "Gauß")
            .attribute("temperature", 0.1)
            .write(&path)
            .unwrap();
        assert_eq!(names(folder.path()), ["draws.nc"]);

        let file = H5File::open(&path).unwrap();
        let x = file.dataset("posterior/x").unwrap();
        assert_eq!(x.shape(), [count, draws, dim]);
        assert!(
            matches!(x.filters().unwrap()[..], [Filter { id: 2, .. }, Filter { id: 1, .. }]),
            "shuffle, deflate"
        );
        let all = |part: fn(&Draws) -> &[f64]| data.iter().flat_map(part).copied().collect::<Vec<_>>();
        same_bits(&x.read_raw().unwrap(), &all(|d| &d.x));
        let replica: Vec<i64> = data.iter().flat_map(|d| &d.replica).map(|&r| i64::from(r)).collect();
        for (reals, counts) in [("lp", "replica"), ("energy", "steps")] {
            let reals = file.dataset(&format!("sample_stats/{reals}")).unwrap();
            assert_eq!(reals.shape(), [count, draws]);
            same_bits(&reals.read_raw().unwrap(), &all(|d| &d.log_density));
            let counts = file.dataset(&format!("sample_stats/{counts}")).unwrap();
            assert_eq!(counts.read_raw::<i64>().unwrap(), replica);
        }
        for (group, scale, length) in [
            ("posterior", "chain", count),
            ("posterior", "draw", draws),
            ("posterior", "x_dim_0", dim),
            ("sample_stats", "chain", count),
            ("sample_stats", "draw", draws),
        ] {
            let scale = file.dataset(&format!("{group}/{scale}")).unwrap();
            assert_eq!(scale.read_raw::<i64>().unwrap(), (0..length as i64).collect::<Vec<_>>());
            assert_eq!(scale.attr("CLASS").unwrap().read_string().unwrap(), "DIMENSION_SCALE");
        }
        for group in ["posterior", "sample_stats"] {
            let group = file.root_group().group(group).unwrap();
            assert_eq!(group.attr_string("inference_library").unwrap(), "sterna");
            assert_eq!(group.attr_string("target").unwrap(), "Gauß");
        }
        assert_eq!(file.attr_string("inference_library_version").unwrap(), env!("CARGO_PKG_VERSION"));
    }
}

#[test]
fn the_same_draws_make_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let data = ensembles(2, 100, 3);
    let write = |name: &str| {
        let path = folder.path().join(name);
        DrawsFile::new(3, &data).attribute("seed", 1).write(&path).unwrap();
        fs::read(path).unwrap()
    };
    assert!(write("a.nc") == write("b.nc"));
}

#[test]
fn replaces_a_file_and_clears_what_a_crash_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("draws.nc");
    fs::write(folder.path().join("draws.nc.partial"), vec![7; 1 << 20]).unwrap();
    for draws in [500, 20] {
        DrawsFile::new(2, &ensembles(1, draws, 2)).write(&path).unwrap();
        assert_eq!(names(folder.path()), ["draws.nc"]);
        assert_eq!(H5File::open(&path).unwrap().dataset("posterior/x").unwrap().shape(), [1, draws, 2]);
    }
}

#[test]
fn errors_name_the_path_and_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let data = ensembles(1, 5, 2);
    let file = DrawsFile::new(2, &data);

    let path = folder.path().join("missing").join("draws.nc");
    let error = file.write(&path).unwrap_err();
    assert!(matches!(error, DrawsFileError::Hdf5 { .. }));
    assert_eq!(
        error.to_string(),
        format!("cannot write {}: No such file or directory (os error 2)", path.display())
    );

    // Everything works but the last step: nothing of it may stay.
    let path = folder.path().join("draws.nc");
    fs::create_dir(&path).unwrap();
    let error = file.write(&path).unwrap_err();
    assert!(matches!(&error, DrawsFileError::File { path: named, .. } if *named == path), "{error}");
    assert_eq!(names(folder.path()), ["draws.nc"]);
}

#[test]
fn refuses_what_does_not_fit_and_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("draws.nc");
    fs::write(&path, "old").unwrap();
    let (a, b) = (ensembles(1, 5, 2), ensembles(1, 4, 2));
    let both = DrawsFile::new(2, a.iter().chain(&b));
    let one = DrawsFile::new(2, &a);
    let values = || Values::Real(&a[0].log_density);
    let none: [EnsembleDraws; 0] = [];
    for (file, message) in [
        (DrawsFile::new(2, none), "no draws to write: 0 ensembles, 0 draws, dimension 2"),
        (DrawsFile::new(2, &ensembles(1, 0, 2)), "no draws to write: 1 ensembles, 0 draws, dimension 2"),
        (both, "`lp` of ensemble 1 has 4 numbers, not 5"),
        (DrawsFile::new(3, &a), "`x` of ensemble 0 has 10 numbers, not 15"),
        (one.clone().statistic("energy", []), "statistic `energy` has 0 ensembles, the draws have 1"),
        (
            one.clone().statistic("energy", [Values::Count(&[1, 2])]),
            "`energy` of ensemble 0 has 2 numbers, not 5",
        ),
        (one.clone().statistic("lp", [values()]), "`lp` is in the file already"),
        (one.clone().statistic("e", [values()]).statistic("e", [values()]), "`e` is in the file already"),
        (
            one.clone().statistic("a/b", [values()]),
            "`a/b` cannot name a variable: use the letters a to z, digits and _",
        ),
        (
            DrawsFile::new(2, a.iter().chain(&a)).statistic("e", [values(), Values::Count(&a[0].replica)]),
            "statistic `e` changes its type at ensemble 1",
        ),
    ] {
        assert_eq!(file.write(&path).unwrap_err().to_string(), message);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }
    assert_eq!(names(folder.path()), ["draws.nc"]);
    assert_eq!(Attribute::from("a"), Attribute::Text("a".into()));
}

#[test]
fn what_was_before_sampling_has_groups_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("draws.nc");
    let known = |mut draws: Draws| {
        draws.acceptance = vec![0.5; draws.replica.len()];
        draws.diverging = vec![true; draws.replica.len()];
        draws
    };
    let data: Vec<Draws> = ensembles(2, 10, 3).into_iter().map(known).collect();
    let warmup: Vec<(Vec<u32>, Draws)> =
        ensembles(2, 4, 3).into_iter().map(|draws| (vec![2, 4, 6, 8], known(draws))).collect();
    DrawsFile::new(3, &data).after(&warmup).write(&path).unwrap();
    let columns = read(&path).unwrap();
    let of = |group: &str| {
        let shapes = columns.iter().filter(|column| column.group == group);
        shapes.map(|column| (column.name.as_str(), column.shape.clone())).collect::<Vec<_>>()
    };
    assert_eq!(of("posterior"), [("x", vec![2, 10, 3])]);
    assert_eq!(of("warmup_posterior"), [("x", vec![2, 4, 3])]);
    let names = ["lp", "replica", "acceptance_rate", "diverging"];
    assert_eq!(of("sample_stats"), names.map(|name| (name, vec![2, 10])));
    let named = names.into_iter().chain(["iteration"]).map(|name| (name, vec![2, 4])).collect::<Vec<_>>();
    assert_eq!(of("warmup_sample_stats"), named);
    let last = columns.last().unwrap();
    assert_eq!(last.values, Numbers::Count(vec![2, 4, 6, 8, 2, 4, 6, 8]));
    // Of another length than the draws it may be, but not than itself.
    let mut short = warmup.clone();
    short[1].1.log_density.pop();
    let refused = DrawsFile::new(3, &data).after(&short).write(&path);
    assert!(matches!(refused, Err(DrawsFileError::Length { ensemble: 1, found: 3, expected: 4, .. })));
    // Where nothing is known of it, there is no such group.
    DrawsFile::new(3, &data).after(&[]).write(&path).unwrap();
    assert_eq!(read(&path).unwrap().len(), 5);
}
