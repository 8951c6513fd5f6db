//! One GPU: memory, modules, launches and recorded graphs, over the driver's own interface.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};

use super::compiler::{compile_all, text};
use super::search::{find_compiler, find_driver};
use crate::{Error, Result};

/// The oldest driver that runs our code: CUDA 12.
const OLDEST_DRIVER: i32 = 12_000;
/// The oldest GPU generation: Ampere, whose matrix units the products use.
const OLDEST_ARCH: u32 = 80;

/// The oldest driver and GPU generation (Hopper) that launch a kernel while the one before it still runs, recorded too.
const EARLY_DRIVER: i32 = 12_030;
const EARLY_ARCH: u32 = 90;

/// A GPU in use by this process.
pub(crate) struct Gpu {
    context: sys::CUcontext,
    device: sys::CUdevice,
    stream: sys::CUstream,
    name: String,
    arch: u32,
    /// Whether kernels are launched early: all of ours wait by themselves (`kernels/header.cu`).
    early: bool,
    /// One at a time: recording a graph must not meet other threads' launches.
    busy: Mutex<()>,
    /// Machine code by source: equal kernels are compiled once.
    images: Mutex<HashMap<String, Arc<Vec<u8>>>>,
}

// SAFETY: handles of the driver may be used from any thread whose context is current.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (sm_{})", self.name, self.arch)
    }
}

fn failed(what: &str) -> impl FnOnce(DriverError) -> Error {
    let what = what.to_owned();
    move |error| {
        let named = |found: std::result::Result<&std::ffi::CStr, DriverError>| found.map(text).ok();
        let name = named(error.error_name()).unwrap_or_default();
        let why = match (error.0, named(error.error_string())) {
            (sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY, _) => {
                let (free, total) = result::mem_get_info().unwrap_or((0, 0));
                format!(
                    "out of memory: {} of {} MiB are free; a smaller training.batch or network needs less, and fewer chains.ensembles where sampling runs there",
                    free >> 20,
                    total >> 20
                )
            }
            (_, description) => format!("{name}: {}", description.unwrap_or_default()),
        };
        Error::Cuda { what, why }
    }
}

impl Gpu {
    /// The GPU of a number, from 0 and round again where there are fewer; CUDA_VISIBLE_DEVICES says which there are.
    pub fn open(number: usize) -> Result<Arc<Self>> {
        find_driver()?;
        let missing = |what: &str, why: String| Err(Error::Cuda { what: what.into(), why });
        if let Err(error) = result::init() {
            let version = driver_version();
            return missing(
                "the driver did not start",
                format!(
                    "{:?}; its version is {version}; is a GPU attached and its kernel module loaded?",
                    error.0
                ),
            );
        }
        let version = driver_version();
        if version < OLDEST_DRIVER {
            return missing(
                "the driver is too old",
                format!(
                    "it supports CUDA {}.{}, and 12.0 is needed (NVIDIA driver 525 or newer)",
                    version / 1000,
                    version % 1000 / 10
                ),
            );
        }
        find_compiler()?;
        let count = result::device::get_count().map_err(failed("counting GPUs"))?;
        if count == 0 {
            return missing("no GPU", "the driver sees none; CUDA_VISIBLE_DEVICES may hide them".into());
        }
        let device =
            result::device::get((number % count as usize) as i32).map_err(failed("opening the GPU"))?;
        let name = result::device::get_name(device).map_err(failed("opening the GPU"))?;
        // SAFETY: a valid device.
        let ask = |attribute| unsafe {
            result::device::get_attribute(device, attribute).map_err(failed("asking the GPU"))
        };
        let major = ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let arch = (10 * major + minor) as u32;
        if arch < OLDEST_ARCH {
            return missing(
                "the GPU is too old",
                format!("{name} is sm_{arch}, and sm_80 (Ampere) is needed"),
            );
        }
        // SAFETY: the context lives as long as this value; the stream is made within it.
        unsafe {
            let context = result::primary_ctx::retain(device).map_err(failed("opening the GPU"))?;
            result::ctx::set_current(context).map_err(failed("opening the GPU"))?;
            let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
                .map_err(failed("opening the GPU"))?;
            let (busy, images) = (Mutex::new(()), Mutex::default());
            let early = version >= EARLY_DRIVER && arch >= EARLY_ARCH;
            Ok(Arc::new(Self { context, device, stream, name, arch, early, busy, images }))
        }
    }

    /// Its name, as the driver gives it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Compute capability: 90 is Hopper.
    pub fn arch(&self) -> u32 {
        self.arch
    }

    /// Makes this GPU the calling thread's.
    pub fn enter(&self) -> Result<()> {
        // SAFETY: the context is alive.
        unsafe { result::ctx::set_current(self.context) }.map_err(failed("entering the GPU's context"))
    }

    /// `bytes` of memory, all zero.
    pub fn allocate(self: &Arc<Self>, bytes: usize) -> Result<Buffer> {
        self.enter()?;
        let bytes = bytes.max(16);
        // SAFETY: the pointer is owned by the buffer.
        unsafe {
            let pointer = result::malloc_sync(bytes)
                .map_err(failed(&format!("{} MiB of GPU memory", bytes.div_ceil(1 << 20))))?;
            let buffer = Buffer { gpu: self.clone(), pointer, bytes };
            result::memset_d8_async(pointer, 0, bytes, self.stream).map_err(failed("clearing memory"))?;
            Ok(buffer)
        }
    }

    /// Compiles a source and loads it.
    pub fn load(self: &Arc<Self>, source: &str) -> Result<Arc<Module>> {
        self.compile(&[source])?;
        let image = self.images()[source].clone();
        self.load_image(&image)
    }

    fn images(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Vec<u8>>>> {
        self.images.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Compiles sources side by side, those that are not known yet.
    pub fn compile(&self, sources: &[&str]) -> Result<()> {
        let mut new: Vec<&str> = Vec::new();
        for &source in sources {
            if !new.contains(&source) && !self.images().contains_key(source) {
                new.push(source);
            }
        }
        for (source, image) in new.iter().zip(compile_all(&new, self.arch)) {
            self.images().insert((*source).to_owned(), Arc::new(image?));
        }
        Ok(())
    }

    /// Loads machine code.
    fn load_image(self: &Arc<Self>, image: &[u8]) -> Result<Arc<Module>> {
        self.enter()?;
        // SAFETY: the image is a whole cubin.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) };
        let module = module.map_err(failed("loading generated code"))?;
        Ok(Arc::new(Module { gpu: self.clone(), module }))
    }

    /// Queues a kernel. `arguments` point to values of the kernel's parameter types.
    pub fn launch(&self, kernel: &Kernel, arguments: &mut [*mut c_void]) -> Result<()> {
        let [x, y] = kernel.blocks;
        let mut early = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = sys::CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: 1,
            blockDimX: kernel.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: kernel.shared as u32,
            hStream: self.stream,
            attrs: &mut early,
            numAttrs: u32::from(self.early),
        };
        // SAFETY: arguments match the generated signature, which is ours.
        unsafe {
            sys::cuLaunchKernelEx(&config, kernel.function, arguments.as_mut_ptr(), std::ptr::null_mut())
        }
        .result()
        .map_err(failed("launching a kernel"))
    }

    /// Queues a copy within the GPU's memory.
    pub fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: callers name parts of their own buffers.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream) }
            .map_err(failed("copying on the GPU"))
    }

    /// Waits until all that was queued is done.
    pub fn synchronise(&self) -> Result<()> {
        // SAFETY: our own stream.
        unsafe { result::stream::synchronize(self.stream) }.map_err(failed("running on the GPU"))
    }

    /// Records what `queue` queues, to be replayed as a whole.
    pub fn record(self: &Arc<Self>, queue: impl FnOnce() -> Result<()>) -> Result<Recording> {
        self.enter()?;
        let _alone = self.busy.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: begun and ended on our own stream; the graph is freed once instantiated.
        unsafe {
            result::stream::begin_capture(self.stream, mode).map_err(failed("recording a step"))?;
            let queued = queue();
            let graph = result::stream::end_capture(self.stream).map_err(failed("recording a step"));
            queued?;
            let graph = graph?;
            let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
            let instance = result::graph::instantiate(graph, flags).map_err(failed("recording a step"));
            let _ = result::graph::destroy(graph);
            Ok(Recording { gpu: self.clone(), instance: instance? })
        }
    }
}

fn driver_version() -> i32 {
    let mut version = 0;
    // SAFETY: a plain out-parameter.
    unsafe {
        let _ = sys::cuDriverGetVersion(&mut version);
    }
    version
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: nothing of ours is left in the context.
        unsafe {
            let _ = result::ctx::set_current(self.context);
            let _ = result::stream::destroy(self.stream);
            let _ = result::primary_ctx::release(self.device);
        }
    }
}

/// Memory of a GPU.
pub(crate) struct Buffer {
    gpu: Arc<Gpu>,
    pointer: sys::CUdeviceptr,
    bytes: usize,
}

impl Buffer {
    /// Where it begins.
    pub fn pointer(&self) -> u64 {
        self.pointer
    }

    /// Writes numbers from `offset` (in numbers) on.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn write<T: Copy>(&self, offset: usize, values: &[T]) -> Result<()> {
        let size = size_of::<T>();
        assert!((offset + values.len()) * size <= self.bytes, "writing beyond a buffer");
        self.gpu.enter()?;
        let to = self.pointer + (offset * size) as u64;
        // SAFETY: within the buffer. Pageable memory is copied before the call returns.
        unsafe { result::memcpy_htod_async(to, values, self.gpu.stream) }
            .map_err(failed("copying to the GPU"))
    }

    /// Reads numbers from `offset` (in numbers) on, once all that was queued is done.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn read<T: Copy>(&self, offset: usize, values: &mut [T]) -> Result<()> {
        let size = size_of::<T>();
        assert!((offset + values.len()) * size <= self.bytes, "reading beyond a buffer");
        self.gpu.enter()?;
        let from = self.pointer + (offset * size) as u64;
        // SAFETY: within the buffer; waited for below.
        unsafe { result::memcpy_dtoh_async(values, from, self.gpu.stream) }
            .map_err(failed("copying from the GPU"))?;
        self.gpu.synchronise()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: ours, and nothing queued uses it after the wait.
        unsafe {
            let _ = self.gpu.enter();
            let _ = self.gpu.synchronise();
            let _ = result::free_sync(self.pointer);
        }
    }
}

/// Loaded code.
pub(crate) struct Module {
    gpu: Arc<Gpu>,
    module: sys::CUmodule,
}

// SAFETY: as for `Gpu`.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// A kernel of the module with its launch: blocks, threads of a block, bytes of shared memory.
    pub fn kernel(
        self: &Arc<Self>,
        name: &str,
        blocks: [usize; 2],
        threads: usize,
        shared: usize,
    ) -> Result<Kernel> {
        self.gpu.enter()?;
        let symbol = CString::new(name).expect("a name");
        // SAFETY: the module is alive.
        let function = unsafe { result::module::get_function(self.module, symbol) };
        let function = function.map_err(failed("finding a kernel"))?;
        if shared > 48 << 10 {
            let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: a function of ours.
            unsafe { result::function::set_function_attribute(function, attribute, shared as i32) }
                .map_err(failed("asking for shared memory"))?;
        }
        let [x, y] = blocks.map(|b| b.max(1) as u32);
        Ok(Kernel { _module: self.clone(), function, blocks: [x, y], threads: threads as u32, shared })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: kernels hold the module, so none is left.
        unsafe {
            let _ = self.gpu.enter();
            let _ = self.gpu.synchronise();
            let _ = result::module::unload(self.module);
        }
    }
}

/// A kernel and how it is launched.
pub(crate) struct Kernel {
    _module: Arc<Module>,
    function: sys::CUfunction,
    blocks: [u32; 2],
    threads: u32,
    shared: usize,
}

// SAFETY: as for `Gpu`.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// Launches recorded as one graph.
pub(crate) struct Recording {
    gpu: Arc<Gpu>,
    instance: sys::CUgraphExec,
}

// SAFETY: as for `Gpu`.
unsafe impl Send for Recording {}

impl Recording {
    /// Queues all of it.
    pub fn replay(&self) -> Result<()> {
        // SAFETY: an instance of ours on our stream.
        unsafe { result::graph::launch(self.instance, self.gpu.stream) }.map_err(failed("running a step"))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // SAFETY: nothing replays it after the wait.
        unsafe {
            let _ = self.gpu.enter();
            let _ = self.gpu.synchronise();
            let _ = result::graph::exec_destroy(self.instance);
        }
    }
}

/// A kernel's argument.
pub(crate) fn argument<T>(value: &mut T) -> *mut c_void {
    (value as *mut T).cast()
}
