//! What an evaluation of a Stan model costs beyond BridgeStan's own function: `cargo bench -p sterna-run --bench stan_overhead -- MODEL.so
//! [DATA.json]`. Both are called in turn, in short blocks, so that whatever else the machine does falls on both alike.

use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::hint::black_box;
use std::time::Instant;
use sterna::{Batch, Evaluation, Target};
use sterna_run::stan::StanModel;
use sterna_run::targets::Data;

type Construct = unsafe extern "C" fn(*const c_char, c_uint, *mut *mut c_char) -> *mut c_void;
type Gradient = unsafe extern "C" fn(
    *const c_void,
    bool,
    bool,
    *const f64,
    *mut f64,
    *mut f64,
    *mut *mut c_char,
) -> c_int;

const BLOCKS: usize = 400;
const CALLS: usize = 50;

fn main() {
    // cargo adds one of its own.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let data = arguments.get(1).map(|path| std::fs::read_to_string(path).expect("data"));
    let given = data.clone().map(Data::Inline);
    let model = StanModel::load(arguments[0].as_ref(), given.as_ref(), 0, false).expect("a model");
    let dim = Target::dim(&model);
    // SAFETY: a library that BridgeStan made; its header says what these functions are, and the text lives through the call.
    let (gradient, instance, _library) = unsafe {
        let library = Library::new(&arguments[0]).expect("a library");
        let construct = *library.get::<Construct>("bs_model_construct").expect("a function");
        let gradient = *library.get::<Gradient>("bs_log_density_gradient").expect("a function");
        let text = CString::new(data.unwrap_or_default()).expect("JSON");
        (gradient, construct(text.as_ptr(), 0, std::ptr::null_mut()), library)
    };
    let x = Batch::from_vec(dim, (0..dim).map(|j| 0.1 * (j % 7) as f64).collect());
    let (mut out, mut raw) = (Evaluation::zeros(1, dim), Evaluation::zeros(1, dim));
    let mut best = [f64::INFINITY; 2];
    for _ in 0..BLOCKS {
        let clock = Instant::now();
        for _ in 0..CALLS {
            let (value, score) = (raw.log_density.as_mut_ptr(), raw.score.as_mut_slice().as_mut_ptr());
            let point = black_box(&x).as_slice().as_ptr();
            // SAFETY: as above; point and score have as many numbers as the model has free parameters.
            unsafe { gradient(instance, true, true, point, value, score, std::ptr::null_mut()) };
        }
        best[0] = best[0].min(clock.elapsed().as_secs_f64() / CALLS as f64);
        let clock = Instant::now();
        for _ in 0..CALLS {
            model.evaluate(black_box(&x), &mut out).expect("an evaluation");
        }
        best[1] = best[1].min(clock.elapsed().as_secs_f64() / CALLS as f64);
    }
    let same = raw.log_density[0].to_bits() == out.log_density[0].to_bits() && raw.score == out.score;
    let [raw, ours] = best.map(|seconds| 1e6 * seconds);
    println!(
        "dimension {dim}: {raw:.3} µs by BridgeStan, {ours:.3} µs here, {:+.3} µs; same bits: {same}",
        ours - raw
    );
}
