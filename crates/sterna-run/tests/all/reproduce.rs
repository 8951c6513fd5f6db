//! `sterna reproduce` notices a fault that leaves sampling exact and takes away what it gains.

use std::path::Path;
use std::sync::Arc;
use sterna::acceleration::Acceleration;
use sterna::accelerator::Accelerator;
use sterna::accelerators::Gaussian;
use sterna::paths::Geometric;
use sterna::run::Run;
use sterna::targets::Gmm;
use sterna_neural::{Made, load_cmcd_steps, load_transport};
use sterna_run::reproduce::cell::Cell;
use sterna_run::reproduce::kept::measure;
use sterna_run::reproduce::plan::{Method, Problem, Row};
use sterna_run::reproduce::store::Store;
use sterna_run::reproduce::{Budget, Experiment};
use sterna_testkit::broken::PrintedSign;

/// Whether the page says that controlled diffusions gain what they must.
fn gains(store: &Store) -> bool {
    let section = Experiment::Table(Problem::Gmm).section(Budget::Quick, store);
    let check = section.checks.iter().find(|c| c.what.starts_with("CMCD-APT, K = 5 makes at least 9 times"));
    check.expect("both runs are there").passed
}

#[test]
fn the_printed_sign_of_the_way_back_fails_the_quick_table() {
    let folder = tempfile::tempdir().unwrap();
    let cell = |method, steps| Problem::Gmm.cell(Row { method, steps }, 10, 1, Budget::Quick);
    let (plain, cmcd) = (cell(Method::Plain, 0), cell(Method::Cmcd, 5));
    let mut store = Store::open(folder.path().join("quick")).unwrap();
    let at = |cell: &Cell| folder.path().join(&cell.name);
    for cell in [&plain, &cmcd] {
        store.add(measure(cell, &at(cell), &mut ()).unwrap()).unwrap();
    }
    assert!(gains(&store));

    // The same drift between the same chains, as it is and with the sign as printed.
    let file = at(&cmcd).join("run/transport.safetensors");
    let record = std::fs::read(&file).unwrap();
    let steps = || load_cmcd_steps(&record, "the transport").unwrap();
    let Made::Pairs { schedule, .. } = load_transport(record.clone(), "the transport").unwrap().made else {
        panic!("a controlled diffusion carries pairs")
    };
    let mut config = cmcd.config.clone();
    config.accelerator.use_transport(Some(file));
    let settings = config.settings(&config.problem().unwrap()).unwrap();
    let mut with = |accelerator: Arc<dyn Accelerator>| {
        let path = Arc::new(Geometric::from_standard_normal(Gmm::paper(10)));
        let acceleration = Acceleration::Kept(accelerator, schedule.clone());
        let mut run = Run::accelerated(path, settings.clone(), acceleration).unwrap();
        run.complete().unwrap();
        let mut measured = store.get(&cmcd).unwrap().clone();
        measured.summary.round_trips = run.round_trips();
        store.add(measured).unwrap();
        gains(&store)
    };
    // 1197 and 406 round trips, where plain swaps make 63.
    assert!(with(Arc::new(Gaussian { steps: steps() })));
    assert!(!with(Arc::new(Gaussian { steps: PrintedSign(steps()) })));
}

#[test]
fn results_in_the_docs_are_those_of_the_runs_that_are_asked_for() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduction");
    for (budget, experiments) in
        [(Budget::Standard, &Experiment::ALL[..]), (Budget::Full, &[Experiment::Table(Problem::Gmm)])]
    {
        let store = Store::open(docs.join(budget.name())).unwrap();
        for cell in experiments.iter().flat_map(|e| e.cells(budget)) {
            assert!(store.get(&cell).is_some(), "{}: {} must be run again", budget.name(), cell.name);
        }
    }
}
