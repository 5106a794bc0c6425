//! `planish attach`: watch or steer a run here or on another machine; without any run, the workbench on the list of runs.

use std::sync::Arc;

use super::dump::{Dump, dump};
use super::locate::Root;
use super::present::{View, present};
use super::run::{Viewing, attach, options};
use super::screen::Screen;
use super::services::Here;
use super::{Failure, assembly, exit};
use crate::client::{Target, open};

#[derive(clap::Args)]
pub struct Args {
    /// Folder or name of the run, or `ssh://host/RUN`; without it the run at work, else the last one
    run: Option<String>,
    #[command(flatten)]
    root: Root,
    /// Watch only: give no commands
    #[arg(long)]
    read_only: bool,
    /// Lines instead of the workbench
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    screen: Screen,
    #[command(flatten)]
    dump: Dump,
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    let view = if args.dump.file.is_some() { View::Workbench } else { View::choose(args.plain, false) };
    let read_only = args.read_only || args.dump.file.is_some();
    let viewing = Viewing { screen: args.screen.clone(), ..Viewing::default() };
    let far = args.run.as_deref().and_then(Target::parse_ssh).transpose()?;
    if let Some(target) = far {
        let services = Arc::new(Here::new(&args.root.path, Some(target.clone())));
        let connection = open(target, options(view, read_only)).await?;
        if let Some(file) = &args.dump.file {
            return dump(connection, None, file, &args.dump, &args.screen).await;
        }
        return present(connection, view, None, services, args.read_only, &viewing).await;
    }
    let run = match &args.run {
        Some(run) => args.root.find(run)?,
        None => match args.root.latest() {
            Err(_) if view == View::Workbench && args.dump.file.is_none() && args.root.is_empty() => {
                return home(&args.root, args.read_only, &args.screen).await;
            }
            run => run?,
        },
    };
    if let Some(file) = &args.dump.file {
        let connection = open(Target::Folder(run.path().to_owned()), options(view, true)).await?;
        return dump(connection, Some(run.path()), file, &args.dump, &args.screen).await;
    }
    attach(run.path(), &args.root.path, view, args.read_only, &viewing).await
}

/// The workbench with no run attached.
pub async fn home(root: &Root, read_only: bool, screen: &Screen) -> Result<u8, Failure> {
    let services = Arc::new(Here::new(&root.path, None));
    assembly::workbench(None, None, services, read_only, screen.into()).await?;
    Ok(exit::DONE)
}
