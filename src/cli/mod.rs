//! The command line: one file per command, exit codes, and what goes to stdout and stderr.
//! Commands put modules together; they hold no rules of their own about runs.

mod assembly;
mod attach;
mod bridge;
mod compare;
mod ctl;
mod doctor;
mod dump;
mod estimate;
mod eval;
mod export_skill;
mod failure;
mod foreground;
mod host;
mod import;
mod import_config;
mod import_run;
mod json_lines;
mod keys;
mod launch;
mod locate;
mod ls;
mod mock_serve;
mod output;
mod present;
mod prompts;
mod replay;
mod report;
mod resume;
mod resume_from;
mod review;
mod run;
pub mod run_setup;
mod screen;
mod schema;
mod seed;
mod services;
mod settled;
mod skill;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use failure::{Failure, exit};

#[derive(Parser)]
#[command(
    name = "planish",
    version,
    about = "A terminal workbench that trains agents; without a command it shows the runs here",
    max_term_width = 100,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    root: locate::Root,
    #[command(flatten)]
    screen: screen::Screen,
}

#[derive(Subcommand)]
enum Command {
    /// Start (or continue) a run in a host process of its own and attach to it
    Run(run::Args),
    /// Watch or steer a run
    Attach(attach::Args),
    /// Continue a run that was stopped, cancelled or killed
    Resume(resume::Args),
    /// List the runs under the root
    Ls(ls::Args),
    /// Play a recorded run; needs no key, model or GPU
    Replay(replay::Args),
    /// Look at a run and steer it from scripts
    Ctl(ctl::Args),
    /// Turn a SkillOpt configuration into one of planish's own, or its output folder into a run
    Import(import::Args),
    /// Score a skill, or compare two, without training
    Eval(eval::Args),
    /// What a run came to, and where each line of its best skill came from
    Report(report::Args),
    /// Runs side by side: scores with intervals, and where their configurations differ
    Compare(compare::Args),
    /// Write the best skill of a run as a skill folder
    ExportSkill(export_skill::Args),
    /// Check skill folders, and put skills where coding agents look
    Skill(skill::Args),
    /// What a run would take: calls, tokens and money by stage, before anything is spent
    Estimate(estimate::Args),
    /// Check that this machine has what planish needs
    Doctor(doctor::Args),
    /// Print every configuration key with its type, default and meaning
    Schema(schema::Args),
    /// List every action of the workbench with its keys
    Keys(keys::Args),
    /// Serve scripted model replies on loopback, for tests
    MockServe(mock_serve::Args),
    /// The far end of `attach ssh://…`: a run's lines over stdio
    #[command(hide = true)]
    Bridge(bridge::Args),
    /// The process that owns a run (started by `run` and `resume`)
    #[command(hide = true)]
    Host(host::Args),
}

/// Parses the arguments, runs the command and reports its failure.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // A closed pipe is no reason to complain about help text.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::USAGE));
        }
    };
    let Some(command) = cli.command else { return without_command(&cli.root, &cli.screen) };
    let outcome = match command {
        Command::Run(args) => block_on(run::run(args)),
        Command::Attach(args) => block_on(attach::run(args)),
        Command::Resume(args) => block_on(resume::run(args)),
        Command::Ls(args) => ls::run(&args),
        Command::Replay(args) => block_on(replay::run(args)),
        Command::Ctl(args) => block_on(ctl::run(args)),
        Command::Import(args) => import::run(&args),
        Command::Eval(args) => block_on(eval::run(args)),
        Command::Estimate(args) => block_on(estimate::run(args)),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::ExportSkill(args) => export_skill::run(&args),
        Command::Skill(args) => skill::run(&args),
        Command::Doctor(args) => block_on(doctor::run(args)),
        Command::Schema(args) => schema::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::MockServe(args) => block_on(mock_serve::run(args)),
        Command::Bridge(args) => block_on(bridge::run(args)),
        Command::Host(args) => host::run(&args),
    };
    code(outcome)
}

fn code(outcome: Result<u8, Failure>) -> ExitCode {
    ExitCode::from(outcome.unwrap_or_else(Failure::report))
}

/// The workbench on the runs here; where there is no terminal for it, the help.
fn without_command(root: &locate::Root, screen: &screen::Screen) -> ExitCode {
    if present::View::choose(false, false) == present::View::Workbench {
        return code(block_on(attach::home(root, false, screen)));
    }
    // A closed pipe is no reason to complain about help text.
    let _ = Cli::command().print_help();
    ExitCode::from(exit::USAGE)
}

/// Runs a command on a runtime of its own, which is left without waiting for a blocked read of stdin.
fn block_on(command: impl Future<Output = Result<u8, Failure>>) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::run(format!("cannot start the async runtime: {error}")))?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_background();
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_argument_has_help() {
        fn check(command: &clap::Command) {
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
            }
            for command in command.get_subcommands() {
                assert!(command.get_about().is_some(), "{}", command.get_name());
                check(command);
            }
        }
        use clap::CommandFactory;
        check(&Cli::command());
    }
}
