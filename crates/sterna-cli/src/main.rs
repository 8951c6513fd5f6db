//! The program `sterna`.

fn main() -> std::process::ExitCode {
    sterna_cli::main_with(std::env::args_os())
}
