//! BridgeStan's C functions, of its version 2, as far as they are needed here. What a model can be sampled without may be missing:
//! makers of generators, a place for what it prints, a word about threads.

use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;

/// The version whose functions these are.
const MAJOR: c_int = 2;

/// A model with its data, as the library knows it.
#[repr(C)]
pub struct Instance {
    _private: [u8; 0],
}

type Print = unsafe extern "C" fn(text: *const c_char, size: usize);

/// The functions of a library. They stay in memory until the process ends: threads of the library's own, and what it keeps
/// for each of ours, may outlive any model.
pub struct Functions {
    pub model_construct: unsafe extern "C" fn(*const c_char, c_uint, *mut *mut c_char) -> *mut Instance,
    pub model_destruct: unsafe extern "C" fn(*mut Instance),
    pub model_info: Option<unsafe extern "C" fn(*const Instance) -> *const c_char>,
    pub param_names: unsafe extern "C" fn(*const Instance, bool, bool) -> *const c_char,
    pub param_num: unsafe extern "C" fn(*const Instance, bool, bool) -> c_int,
    pub param_unc_num: unsafe extern "C" fn(*const Instance) -> c_int,
    pub log_density_gradient: unsafe extern "C" fn(
        *const Instance,
        bool,
        bool,
        *const f64,
        *mut f64,
        *mut f64,
        *mut *mut c_char,
    ) -> c_int,
    pub param_constrain: unsafe extern "C" fn(
        *const Instance,
        bool,
        bool,
        *const f64,
        *mut f64,
        *mut c_void,
        *mut *mut c_char,
    ) -> c_int,
    free_error_msg: unsafe extern "C" fn(*mut c_char),
    /// Makers of generators, which generated quantities need.
    generators: Option<Generators>,
}

/// Makes a generator of a seed, and takes it away.
#[derive(Clone, Copy)]
struct Generators {
    construct: unsafe extern "C" fn(c_uint, *mut *mut c_char) -> *mut c_void,
    destruct: unsafe extern "C" fn(*mut c_void),
}

impl Functions {
    /// Loads a library, or says what is wrong with it.
    pub fn load(path: &Path) -> Result<Self, String> {
        let library = crate::library::loaded(path).map_err(|why| format!("cannot load it: {why}"))?;
        let library = ManuallyDrop::new(library);
        check_version(&library)?;
        // SAFETY: the version is the one whose header says what these functions are.
        let functions = unsafe {
            Self {
                model_construct: function(&library, "bs_model_construct")?,
                model_destruct: function(&library, "bs_model_destruct")?,
                model_info: function(&library, "bs_model_info").ok(),
                param_names: function(&library, "bs_param_names")?,
                param_num: function(&library, "bs_param_num")?,
                param_unc_num: function(&library, "bs_param_unc_num")?,
                log_density_gradient: function(&library, "bs_log_density_gradient")?,
                param_constrain: function(&library, "bs_param_constrain")?,
                free_error_msg: function(&library, "bs_free_error_msg")?,
                generators: generators(&library),
            }
        };
        hush(&library);
        Ok(functions)
    }

    /// Whether generated quantities can be had.
    pub fn generates(&self) -> bool {
        self.generators.is_some()
    }

    /// Calls with a generator of this seed, which is null where there is none.
    pub fn with_generator<T>(&self, seed: u32, call: impl FnOnce(*mut c_void) -> T) -> T {
        let Some(Generators { construct, destruct }) = self.generators else {
            return call(std::ptr::null_mut());
        };
        // SAFETY: no message is asked for; what was made is taken away once, by the same library.
        unsafe {
            let generator = construct(seed, std::ptr::null_mut());
            let out = call(generator);
            if !generator.is_null() {
                destruct(generator);
            }
            out
        }
    }

    /// Text of a message, in one line, which is given back to the library.
    ///
    /// # Safety
    /// The message must be null or the library's, and is gone afterwards.
    pub unsafe fn take(&self, message: *mut c_char) -> String {
        if message.is_null() {
            return "nothing".into();
        }
        // SAFETY: a message is a C string, and this the function that frees it.
        unsafe {
            let said = text(message);
            (self.free_error_msg)(message);
            said.split_whitespace().collect::<Vec<_>>().join(" ")
        }
    }
}

/// A model's `print` would be heard at every evaluation, and on stdout, where results go.
fn hush(library: &Library) {
    type Set = unsafe extern "C" fn(Option<Print>, *mut *mut c_char) -> c_int;
    // SAFETY: the version is the one whose header says what this function is; the callback lives as long as the program, and no
    // message is asked for.
    unsafe {
        if let Ok(set) = function::<Set>(library, "bs_set_print_callback") {
            set(Some(unheard), std::ptr::null_mut());
        }
    }
}

/// The makers of generators, where there are some.
///
/// # Safety
/// The library must be of the known version.
unsafe fn generators(library: &Library) -> Option<Generators> {
    // SAFETY: the version is the one whose header says what these functions are.
    unsafe {
        let construct = function(library, "bs_rng_construct").ok()?;
        Some(Generators { construct, destruct: function(library, "bs_rng_destruct").ok()? })
    }
}

/// A library of another version may mean something else by the same names.
fn check_version(library: &Library) -> Result<(), String> {
    const AGAIN: &str = "compile the model again with BridgeStan 2";
    // SAFETY: only the address is taken; by this name BridgeStan exports an int that never changes.
    let major = unsafe { library.get::<*const c_int>(b"bs_major_version\0") };
    let Ok(major) = major else {
        let exports = |name: &[u8]| {
            // SAFETY: nothing is done with it.
            unsafe { library.get::<*const c_void>(name) }.is_ok()
        };
        let constructs = exports(b"bs_model_construct\0") || exports(b"bs_construct\0");
        return Err(match constructs {
            true => format!("it was made by BridgeStan 1: {AGAIN}"),
            false if exports(b"sterna_evaluate\0") || exports(b"sterna_log_likelihood\0") => {
                "it is no model of Stan, but a density in C: say target.kind = \"library\" and target.library"
                    .into()
            }
            false => "it is no model that BridgeStan made: it exports no `bs_major_version`".into(),
        });
    };
    // SAFETY: as above.
    match unsafe { **major } {
        MAJOR => Ok(()),
        other => {
            Err(format!("it was made by BridgeStan {other}, whose functions are not known here: {AGAIN}"))
        }
    }
}

/// A function of the library.
///
/// # Safety
/// It must be of this type.
unsafe fn function<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: the caller knows the type.
    let found = unsafe { library.get::<T>(name.as_bytes()) };
    found.map(|found| *found).map_err(|_| format!("it exports no function `{name}`: is it whole?"))
}

extern "C" fn unheard(_: *const c_char, _: usize) {}

/// A C string.
///
/// # Safety
/// It must be null or one.
pub unsafe fn text(text: *const c_char) -> String {
    match text.is_null() {
        true => String::new(),
        // SAFETY: the caller says so.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    }
}
