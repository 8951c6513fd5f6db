//! `cargo run --release`: the demo, or whatever the arguments say.

fn main() -> std::process::ExitCode {
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if arguments.len() == 1 {
        arguments.push("run".into());
    }
    sterna_cli::main_with(arguments.into_iter())
}
