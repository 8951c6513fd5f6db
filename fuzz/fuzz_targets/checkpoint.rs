//! Bytes as a file of this kind: see `sterna_run::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    sterna_run::fuzz::checkpoint(data);
});
