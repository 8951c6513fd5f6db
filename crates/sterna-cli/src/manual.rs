//! What shells and `man` know of the program, made from its arguments.

use crate::{Cli, EXAMPLES};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use std::io::Write;
use std::path::Path;
use sterna_run::JobError;

/// The program with the commands that are for people.
fn told() -> Command {
    let whole = Cli::command();
    let all = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let told = Command::new("sterna").version(env!("CARGO_PKG_VERSION")).subcommands(all);
    let told = told.args(whole.get_arguments().cloned()).after_help(EXAMPLES);
    told.about(whole.get_about().cloned().unwrap_or_default())
}

/// Completions for a shell, on stdout.
pub fn completions(shell: Shell) {
    clap_complete::generate(shell, &mut told(), "sterna", &mut std::io::stdout());
}

/// The manual page on stdout: the program, then each command.
pub fn page() -> Result<(), JobError> {
    let mut all = Vec::new();
    let mut write = || -> std::io::Result<()> {
        let cli = told();
        let main = clap_mangen::Man::new(cli.clone());
        main.render_title(&mut all)?;
        main.render_name_section(&mut all)?;
        main.render_synopsis_section(&mut all)?;
        main.render_description_section(&mut all)?;
        main.render_options_section(&mut all)?;
        for command in cli.get_subcommands() {
            let name = format!("sterna {}", command.get_name());
            writeln!(all, ".SH {}", name.to_uppercase())?;
            let page = clap_mangen::Man::new(command.clone().display_name(name.clone()).bin_name(name));
            page.render_synopsis_section(&mut all)?;
            page.render_description_section(&mut all)?;
            page.render_options_section(&mut all)?;
        }
        main.render_extra_section(&mut all)?;
        main.render_version_section(&mut all)?;
        std::io::stdout().write_all(&all)
    };
    write().map_err(JobError::file("write", Path::new("stdout")))
}
