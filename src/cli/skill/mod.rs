//! `planish skill`: skill folders on disk, checked and put where coding agents look.

mod check;

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
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    match &args.command {
        Command::Check(args) => check::run(args),
    }
}
