//! `kausality completions` and `kausality man`: what shells and readers of manuals need.

use std::{io::Write, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;

/// Print completions for a shell.
///
/// bash: source <(kausality completions bash); zsh: kausality completions zsh > "${fpath[1]}/_kausality"; fish: kausality
/// completions fish | source
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: ShellArgument,
}

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ShellArgument {
    Bash,
    Zsh,
    Fish,
}

/// Print the manual page, or write one for each command.
#[derive(Debug, Args)]
pub struct Man {
    /// The folder to write a page for each command into
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Completions {
    /// Runs the command.
    ///
    /// # Errors
    /// If nobody reads along.
    pub fn run(&self, mut command: Command) -> Result<ExitCode> {
        let shell = match self.shell {
            ShellArgument::Bash => Shell::Bash,
            ShellArgument::Zsh => Shell::Zsh,
            ShellArgument::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "kausality", &mut script);
        std::io::stdout().lock().write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Man {
    /// Runs the command.
    ///
    /// # Errors
    /// If pages cannot be written.
    pub fn run(&self, command: Command) -> Result<ExitCode> {
        match &self.out {
            Some(folder) => {
                let place = || format!("cannot write manual pages into {}", folder.display());
                std::fs::create_dir_all(folder).with_context(place)?;
                clap_mangen::generate_to(command, folder).with_context(place)?;
            }
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(command).render(&mut page)?;
                std::io::stdout().lock().write_all(&page)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
