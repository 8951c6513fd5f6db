//! The functions of `shim.c`, as Rust calls them: lengths are those of slices, and codes become errors.

use std::ffi::{CStr, c_char, c_int, c_void};

mod c {
    use super::*;

    unsafe extern "C" {
        pub fn sterna_mpi_start(rank: *mut c_int, ranks: *mut c_int) -> c_int;
        pub safe fn sterna_mpi_is_asked_to_stop() -> c_int;
        pub fn sterna_mpi_host(out: *mut c_char, room: c_int);
        pub fn sterna_mpi_cores(out: *mut [u64; 16]);
        pub fn sterna_mpi_meaning(code: c_int, out: *mut c_char, room: c_int);
        pub fn sterna_mpi_watch(processes: *const i64, count: c_int, shares: c_int);
        pub safe fn sterna_mpi_is_gone(process: i64) -> c_int;
        pub fn sterna_mpi_all(own: *const c_void, size: c_int, all: *mut c_void) -> c_int;
        pub fn sterna_mpi_gather(
            own: *const c_void,
            size: c_int,
            all: *mut c_void,
            sizes: *const c_int,
            places: *const c_int,
        ) -> c_int;
        pub fn sterna_mpi_gather_to_first(
            own: *const c_void,
            size: c_int,
            all: *mut c_void,
            sizes: *const c_int,
            places: *const c_int,
        ) -> c_int;
        pub fn sterna_mpi_from_first(bytes: *mut c_void, size: c_int) -> c_int;
        pub fn sterna_mpi_tell(to: c_int, kind: c_int, bytes: *const c_void, size: c_int) -> c_int;
        pub fn sterna_mpi_next(waits: c_int, from: *mut c_int, kind: *mut c_int, size: *mut c_int) -> c_int;
        pub fn sterna_mpi_hear(from: c_int, kind: c_int, bytes: *mut c_void, size: c_int) -> c_int;
        pub safe fn sterna_mpi_survives() -> c_int;
        pub fn sterna_mpi_regroup(
            lost: c_int,
            regrouped: *mut c_int,
            rank: *mut c_int,
            ranks: *mut c_int,
        ) -> c_int;
        pub fn sterna_mpi_end(failed: c_int);
        pub fn sterna_mpi_abort(code: c_int);
    }
}

/// Why a call of MPI came to nothing.
pub enum Fault {
    /// A rank is gone.
    Fallen,
    /// What MPI says.
    Said(String),
}

const ROOM: usize = 4096;

fn text(fill: impl FnOnce(*mut c_char, c_int)) -> String {
    let mut bytes = [0; ROOM];
    fill(bytes.as_mut_ptr().cast(), ROOM as c_int);
    CStr::from_bytes_until_nul(&bytes).map_or(String::new(), |text| text.to_string_lossy().into_owned())
}

/// MPI_SUCCESS is 0 by the standard.
fn checked(code: c_int) -> Result<(), Fault> {
    match code {
        0 => Ok(()),
        -1 => Err(Fault::Fallen),
        -2 => Err(Fault::Said("no memory is left for a message".into())),
        -3 => Err(Fault::Said("a message to a rank that is gone comes to no end".into())),
        // SAFETY: at most ROOM bytes are written, the last of them 0.
        code => Err(Fault::Said(text(|out, room| unsafe { c::sterna_mpi_meaning(code, out, room) }))),
    }
}

fn size(length: usize) -> c_int {
    c_int::try_from(length).expect("pieces are cut to fit")
}

/// Begins: this rank, and how many there are.
pub fn start() -> Result<(usize, usize), Fault> {
    let (mut rank, mut ranks) = (0, 0);
    // SAFETY: both are written before the call returns; it is made once, by `World::start`.
    checked(unsafe { c::sterna_mpi_start(&mut rank, &mut ranks) })?;
    Ok((rank as usize, ranks as usize))
}

pub fn is_asked_to_stop() -> bool {
    c::sterna_mpi_is_asked_to_stop() != 0
}

pub fn host() -> String {
    // SAFETY: at most ROOM bytes are written, the last of them 0.
    text(|out, room| unsafe { c::sterna_mpi_host(out, room) })
}

/// Which cores this process may use, a bit each.
pub fn cores() -> [u64; 16] {
    let mut cores = [0; 16];
    // SAFETY: sixteen words are written.
    unsafe { c::sterna_mpi_cores(&mut cores) }
    cores
}

/// Waits end when one of these processes is gone; sleep comes sooner in them where ranks share cores.
pub fn watch(processes: &[i64], share_cores: bool) {
    // SAFETY: they are copied before the call returns.
    unsafe { c::sterna_mpi_watch(processes.as_ptr(), size(processes.len()), c_int::from(share_cores)) }
}

pub fn is_gone(process: i64) -> bool {
    c::sterna_mpi_is_gone(process) != 0
}

/// As many bytes from each rank, one after another in `all`.
pub fn all(own: &[u8], ranks: usize) -> Result<Vec<u8>, Fault> {
    let mut all = vec![0; own.len() * ranks];
    // SAFETY: there is room for the bytes of all ranks, which all bring as many.
    checked(unsafe { c::sterna_mpi_all(own.as_ptr().cast(), size(own.len()), all.as_mut_ptr().cast()) })?;
    Ok(all)
}

/// So many bytes of each rank, one after another, on all of them or on the first alone.
pub fn gather(own: &[u8], sizes: &[usize], receives: Receives) -> Result<Vec<u8>, Fault> {
    let mut places = vec![0; sizes.len()];
    for i in 1..sizes.len() {
        places[i] = places[i - 1] + size(sizes[i - 1]);
    }
    let total = if receives == Receives::Nothing { 0 } else { sizes.iter().sum() };
    let mut all = vec![0; total];
    let lengths: Vec<c_int> = sizes.iter().map(|length| size(*length)).collect();
    let call = match receives {
        Receives::AsAll => c::sterna_mpi_gather,
        Receives::AsFirst | Receives::Nothing => c::sterna_mpi_gather_to_first,
    };
    let (from, to) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
    // SAFETY: where bytes come in there is room for those of every rank, at places that follow from their numbers.
    checked(unsafe { call(from, size(own.len()), to, lengths.as_ptr(), places.as_ptr()) })?;
    Ok(all)
}

/// Who gets what is gathered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Receives {
    /// Every rank does.
    AsAll,
    /// This one alone.
    AsFirst,
    /// Another one.
    Nothing,
}

/// The first rank's bytes come to all others.
pub fn from_first(bytes: &mut [u8]) -> Result<(), Fault> {
    // SAFETY: all ranks bring as many bytes.
    checked(unsafe { c::sterna_mpi_from_first(bytes.as_mut_ptr().cast(), size(bytes.len())) })
}

/// What one rank tells another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// What it has to say.
    Words = 1,
    /// Why nothing more comes.
    Warning,
}

/// Bytes to another rank, which need not be heard before this returns.
pub fn tell(to: usize, kind: Told, bytes: &[u8]) -> Result<(), Fault> {
    // SAFETY: the bytes are copied before the call returns.
    checked(unsafe { c::sterna_mpi_tell(size(to), kind as c_int, bytes.as_ptr().cast(), size(bytes.len())) })
}

/// The next bytes that another rank tells this one, and which.
pub fn hear(waits: bool) -> Result<Option<(usize, Told, Vec<u8>)>, Fault> {
    let (mut from, mut kind, mut length) = (0, 0, 0);
    // SAFETY: all are written before the call returns, but for the last two where nobody tells anything.
    checked(unsafe { c::sterna_mpi_next(c_int::from(waits), &mut from, &mut kind, &mut length) })?;
    let Ok(rank) = usize::try_from(from) else { return Ok(None) };
    let mut bytes = vec![0; length as usize];
    // SAFETY: there is room for as many as come.
    checked(unsafe { c::sterna_mpi_hear(from, kind, bytes.as_mut_ptr().cast(), length) })?;
    let told = if kind == Told::Words as c_int { Told::Words } else { Told::Warning };
    Ok(Some((rank, told, bytes)))
}

/// Whether ranks that are left may go on without those that die.
pub fn survives() -> bool {
    c::sterna_mpi_survives() != 0
}

/// Those that are left go on without the dead, if any of them has `lost` one: this rank's new number, and how many there are now.
pub fn regroup(lost: bool) -> Result<Option<(usize, usize)>, Fault> {
    let (mut regrouped, mut rank, mut ranks) = (0, 0, 0);
    // SAFETY: all are written before the call returns, but for the last two where nobody died.
    checked(unsafe { c::sterna_mpi_regroup(c_int::from(lost), &mut regrouped, &mut rank, &mut ranks) })?;
    Ok((regrouped != 0).then_some((rank as usize, ranks as usize)))
}

pub fn end(failed: bool) {
    // SAFETY: MPI has begun; no call follows.
    unsafe { c::sterna_mpi_end(c_int::from(failed)) }
}

pub fn abort(code: i32) {
    // SAFETY: MPI has begun.
    unsafe { c::sterna_mpi_abort(code) }
}
