//! Models of Stan through BridgeStan's C functions: log density and score of the free parameters, and the values that the
//! model declares.
//!
//! A library holds one model; with data it becomes an instance, which nothing changes afterwards. Stan keeps the tape of
//! its derivatives apart for each thread if it was compiled with `STAN_THREADS`; calls of a library without it take turns.

pub mod compile;
mod interface;
mod names;

use crate::error::JobError;
use crate::problem::{Constrain, Problem, Says};
use crate::targets::Data;
use interface::{Functions, Instance};
use names::Names;
use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sterna::{Batch, Evaluation, Streams, Target};

/// Held while a library without threads works: such libraries may share a tape.
static TURN: Mutex<()> = Mutex::new(());

/// A model with its data.
///
/// Its log density is Stan's, without constants that the model's `~` drops and with the volume of the change to free
/// parameters. Where the model throws, it is NaN: a point that is rejected and counted, of which the model can tell why.
pub struct StanModel {
    functions: Functions,
    instance: *mut Instance,
    dim: usize,
    names: Names,
    /// How many of the values are of declared parameters; those of transformed ones and generated quantities follow.
    declared: usize,
    seed: u32,
    takes_turns: bool,
    path: PathBuf,
}

// SAFETY: an instance is not written to once it is made: all functions that are called take it as const. What they write
// to beside their results is the tape of derivatives, which is apart for each thread, or guarded by `TURN`.
unsafe impl Send for StanModel {}
// SAFETY: as above.
unsafe impl Sync for StanModel {}

fn wrong(path: &Path, what: impl std::fmt::Display) -> JobError {
    JobError::Config(format!("target.model = {:?}: {what}", path.display().to_string()))
}

impl StanModel {
    /// Loads a library and makes its model with data; its values are those of declared parameters, and of `all` that the
    /// model makes of them if it is asked to.
    pub fn load(path: &Path, data: Option<&Data>, seed: u32, all: bool) -> Result<Self, JobError> {
        let path = std::path::absolute(path).map_err(|error| {
            JobError::setting("target.model", format_args!("{path:?}"), error.to_string())
        })?;
        if !path.is_file() {
            return Err(wrong(&path, if path.is_dir() { "it is a folder" } else { "there is no such file" }));
        }
        let functions = Functions::load(&path).map_err(|what| wrong(&path, what))?;
        let instance = construct(&functions, &path, data, seed)?;
        let mut model = Self {
            functions,
            instance,
            dim: 0,
            names: Names::default(),
            declared: 0,
            seed,
            takes_turns: true,
            path,
        };
        let generated = all && model.functions.generates();
        // SAFETY: the instance was just made by the same library.
        (model.takes_turns, model.names) = unsafe {
            // Without a word about threads, it is taken to know none.
            let info = model.functions.model_info.map(|info| interface::text(info(instance)));
            let knows_threads = info.is_some_and(|info| info.contains("STAN_THREADS=true"));
            let names = interface::text((model.functions.param_names)(instance, all, generated));
            (!knows_threads, Names::parse(&names))
        };
        // SAFETY: as above.
        let [free, declared, values] = unsafe {
            let functions = &model.functions;
            let count = functions.param_num;
            [
                (functions.param_unc_num)(instance),
                count(instance, false, false),
                count(instance, all, generated),
            ]
        };
        model.dim = usize::try_from(free).unwrap_or(0);
        model.declared = usize::try_from(declared).unwrap_or(0);
        if usize::try_from(values) != Ok(model.names.order.len()) || model.declared > model.names.order.len()
        {
            return Err(wrong(&model.path, format_args!("it has {values} values, but not as many names")));
        }
        if model.dim == 0 || model.dim > Streams::MOST_NORMALS {
            let most = Streams::MOST_NORMALS;
            let what = format_args!("it has {free} free parameters: 1 to {most} can be sampled");
            return Err(wrong(&model.path, what));
        }
        Ok(model)
    }

    /// Free parameters.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// What is sampled: the free parameters, while draws and means are of the declared ones.
    pub fn problem(self) -> Problem {
        let model = Arc::new(self);
        let (parameters, says) = (model.names.parameters.clone(), model.clone());
        let says: Arc<Says> = Arc::new(move |point| says.says(point));
        Problem { says: Some(says), values: Some(model.clone()), ..Problem::shared(model) }.named(parameters)
    }

    /// What the model says at a point if it throws there.
    fn says(&self, point: &[f64]) -> Option<String> {
        let (mut log_density, mut score) = (0.0, vec![0.0; self.dim]);
        let mut message = ptr::null_mut();
        let _turn = self.turn();
        let code = self.gradient(point, &mut log_density, &mut score, &mut message);
        // SAFETY: a message is the library's own and freed once.
        let said = unsafe { self.functions.take(message) };
        (code != 0).then_some(said)
    }

    /// The right to call a library that knows no threads; others need none.
    fn turn(&self) -> Option<MutexGuard<'static, ()>> {
        self.takes_turns.then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Log density and score at a point; not 0 where the model throws, and then with a message if there is room for one.
    ///
    /// # Panics
    /// If point or score are of another length than the model's: C would go beyond them.
    fn gradient(&self, x: &[f64], log_density: &mut f64, score: &mut [f64], said: *mut *mut c_char) -> c_int {
        assert!(x.len() == self.dim && score.len() == self.dim, "points have dimension {}", self.dim);
        // SAFETY: the slices have the lengths that BridgeStan promises to keep to, as just checked, and live through the
        // call; `said` is null or room for a message.
        unsafe {
            let (log_density, score) = (ptr::from_mut(log_density), score.as_mut_ptr());
            (self.functions.log_density_gradient)(
                self.instance,
                true,
                true,
                x.as_ptr(),
                log_density,
                score,
                said,
            )
        }
    }
}

/// The model with its data, or what Stan says against them.
fn construct(
    functions: &Functions,
    path: &Path,
    data: Option<&Data>,
    seed: u32,
) -> Result<*mut Instance, JobError> {
    let text = data.map(Data::text).transpose()?.unwrap_or_default();
    let text = CString::new(text).map_err(|_| {
        JobError::Config(
            "target.data holds a byte 0, which is no part of any JSON: is it another file?".into(),
        )
    })?;
    let mut message = ptr::null_mut();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the text lives through the call and there is room for a message.
    let instance = unsafe { (functions.model_construct)(text.as_ptr(), seed, &mut message) };
    if !instance.is_null() {
        return Ok(instance);
    }
    // SAFETY: a message is the library's own and freed once.
    let said = unsafe { functions.take(message) };
    let (with, cure) = match data {
        Some(data) => (format!("with target.data = {data}"), "give what the model's block `data` declares"),
        None => ("without data".into(), "give what its block `data` declares as target.data, a JSON file"),
    };
    Err(wrong(path, format_args!("the model cannot be made {with}; Stan says: {said}; {cure}")))
}

impl Target for StanModel {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        let found = if x.dim() == self.dim { out.score.dim() } else { x.dim() };
        if found != self.dim {
            return Err(sterna::Error::Dimension { what: "a point", found, expected: self.dim });
        }
        let _turn = self.turn();
        for row in 0..x.rows() {
            let (log_density, score) = (&mut out.log_density[row], out.score.row_mut(row));
            if self.gradient(x.row(row), log_density, score, ptr::null_mut()) != 0 {
                *log_density = f64::NAN;
                score.fill(0.0);
            }
        }
        Ok(())
    }
}

impl StanModel {
    /// Values in Stan's order, of declared parameters, and if asked for of transformed ones and of generated quantities. Whether
    /// the model did not throw.
    ///
    /// Random numbers of generated quantities follow from the point: the same draw has the same ones, whoever asks.
    fn write_values(&self, point: &[f64], [transformed, generated]: [bool; 2], values: &mut [f64]) -> bool {
        let mut call = |generator| {
            let (x, out, nothing) = (point.as_ptr(), values.as_mut_ptr(), ptr::null_mut());
            let constrain = self.functions.param_constrain;
            // SAFETY: the slices have the lengths that the library was asked for, as `constrain` has checked, and live through
            // the call; there is a generator where one is needed, and no message is asked for.
            unsafe { constrain(self.instance, transformed, generated, x, out, generator, nothing) == 0 }
        };
        match generated {
            true => self.functions.with_generator(seed_of(self.seed, point), call),
            false => call(ptr::null_mut()),
        }
    }
}

/// A seed for a point: FNV-1a of its bits.
fn seed_of(seed: u32, point: &[f64]) -> u32 {
    let words = std::iter::once(u64::from(seed)).chain(point.iter().map(|x| x.to_bits()));
    let bytes = words.flat_map(u64::to_le_bytes);
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    (hash >> 32) as u32 ^ hash as u32
}

impl Constrain for StanModel {
    fn values(&self) -> usize {
        self.names.order.len()
    }

    fn constrain(&self, point: &[f64], values: &mut [f64]) {
        assert!(
            point.len() == self.dim && values.len() == self.values(),
            "points have dimension {}",
            self.dim
        );
        let mut stans = vec![f64::NAN; values.len()];
        let _turn = self.turn();
        let all = stans.len() > self.declared;
        // What is generated may fail where parameters do not, and what is transformed too.
        let kept = [[all, all && self.functions.generates()], [all, false], [false, false]];
        let written = kept.into_iter().any(|kept| {
            stans.fill(f64::NAN);
            self.write_values(point, kept, &mut stans)
        });
        if !written {
            stans.fill(f64::NAN);
        }
        self.names.order.iter().zip(stans).for_each(|(&place, value)| values[place] = value);
    }
}

impl Drop for StanModel {
    fn drop(&mut self) {
        // SAFETY: made by the same library, and nobody holds it any more.
        unsafe { (self.functions.model_destruct)(self.instance) }
    }
}
