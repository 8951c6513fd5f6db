//! What shells and `man` know of the program, made from its arguments.

use crate::{Cli, EXAMPLES};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use std::io::Write;

/// The program with the commands that are for people.
fn told() -> Command {
    let whole = Cli::command();
    let all = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let told = Command::new("sterna").version(env!("CARGO_PKG_VERSION")).subcommands(all);
    let told = told.args(whole.get_arguments().cloned()).after_help(EXAMPLES);
    told.about(whole.get_about().cloned().unwrap_or_default())
}

/// Completions for a shell.
pub fn completions(shell: Shell) -> String {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut told(), "sterna", &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The manual page: the program, then each command.
pub fn page() -> String {
    let mut out = Vec::new();
    write_page(&mut out).expect("memory takes what is written to it");
    String::from_utf8_lossy(&out).into_owned()
}

fn write_page(out: &mut Vec<u8>) -> std::io::Result<()> {
    let program = told();
    let main = Man::new(program.clone());
    main.render_title(out)?;
    main.render_name_section(out)?;
    main.render_synopsis_section(out)?;
    main.render_description_section(out)?;
    main.render_options_section(out)?;
    for command in program.get_subcommands() {
        let name = format!("sterna {}", command.get_name());
        writeln!(out, ".SH {}", name.to_uppercase())?;
        let page = Man::new(command.clone().display_name(name.clone()).bin_name(name));
        page.render_synopsis_section(out)?;
        page.render_description_section(out)?;
        page.render_options_section(out)?;
    }
    main.render_extra_section(out)?;
    main.render_version_section(out)
}
