//! `planish skill`: skill folders on disk, checked and put where coding agents look.

mod check;
mod install;

pub use check::leaks;

use super::Failure;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Check skill folders against the rules of the format
    Check(check::Args),
    /// Put a skill where coding agents look for it
    Install(install::InstallArgs),
    /// Take an installed skill away
    Uninstall(install::NameArgs),
    /// Bring back what was there before the last change of a skill
    Rollback(install::NameArgs),
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    match &args.command {
        Command::Check(args) => check::run(args),
        Command::Install(args) => install::install(args),
        Command::Uninstall(args) => install::uninstall(args),
        Command::Rollback(args) => install::roll_back(args),
    }
}
