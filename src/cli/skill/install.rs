//! `planish skill install|uninstall|rollback`: skills in the folders where coding agents look for them.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::super::export_skill::{self, FrontMatter};
use super::super::locate::Root;
use super::super::{Failure, exit, output};
use super::check::folder_of;
use crate::skill::{
    Client, DOCUMENT, Finding, InstallError, Mode, Outcome, Package, Scope, Site, SkillName, check,
};

#[derive(clap::Args)]
pub struct InstallArgs {
    /// Skill folder, or a run whose best skill is meant
    #[arg(value_name = "SKILLDIR|RUN")]
    skill: String,
    #[command(flatten)]
    root: Root,
    #[command(flatten)]
    front: FrontMatter,
    /// Clients that get a copy of their own besides .agents/skills and .claude/skills
    #[arg(long, value_name = "CLIENT", value_delimiter = ',')]
    client: Vec<Client>,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
pub struct NameArgs {
    /// Name of an installed skill
    name: String,
    #[command(flatten)]
    how: How,
}

/// Where, and how carefully.
#[derive(clap::Args)]
struct How {
    /// Project that the skill is for
    #[arg(long, value_name = "DIR", default_value = ".", conflicts_with = "user")]
    project: PathBuf,
    /// For all projects of this user
    #[arg(long)]
    user: bool,
    /// Replace what was changed, linked or installed by others; it is kept as a backup
    #[arg(long)]
    force: bool,
    /// Say what would be done and do nothing
    #[arg(long)]
    dry_run: bool,
    /// One JSON line per place
    #[arg(long)]
    json: bool,
}

impl How {
    fn site(&self) -> Result<Site, Failure> {
        let (base, scope) = match self.user {
            true => match std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()) {
                Some(home) => (home, Scope::User),
                None => return Err(Failure::usage("HOME is not set; name a folder with --project")),
            },
            false => (self.project.clone(), Scope::Project),
        };
        Ok(Site::new(&base, scope)?)
    }

    fn carry_out(
        &self,
        deed: impl FnOnce(&Site, Mode) -> Result<Vec<Outcome>, InstallError>,
    ) -> Result<u8, Failure> {
        let site = self.site()?;
        let mut step = || Ok(());
        let mode = match self.dry_run {
            true => Mode::Rehearsal { force: self.force },
            false => Mode::Real { force: self.force, step: &mut step },
        };
        let outcomes = deed(&site, mode)?;
        for outcome in &outcomes {
            if self.json {
                let mut row = json!(outcome);
                row["dry_run"] = json!(self.dry_run);
                output::json(&row)?;
            } else {
                self.tell(&site, outcome)?;
            }
        }
        Ok(exit::DONE)
    }

    fn tell(&self, site: &Site, outcome: &Outcome) -> Result<(), Failure> {
        let would = if self.dry_run { "would be " } else { "" };
        let mut line =
            format!("{would}{} {}", outcome.change.name(), site.base().join(&outcome.path).display());
        if let Some(backup) = &outcome.backup {
            line.push_str(&format!("; what was there is kept as {backup}"));
        }
        if let Some((link, target)) = &outcome.link {
            line.push_str(&format!("; {link} was a link to {target} and is a folder of its own now"));
        }
        output::line(&line)
    }
}

pub fn install(args: &InstallArgs) -> Result<u8, Failure> {
    let (name, package) = skill(args)?;
    let mut clients = Client::ALWAYS.to_vec();
    clients.extend(&args.client);
    args.how.carry_out(|site, mode| site.install(&name, &package, &clients, mode))
}

pub fn uninstall(args: &NameArgs) -> Result<u8, Failure> {
    let name = named(&args.name)?;
    args.how.carry_out(|site, mode| site.uninstall(&name, mode))
}

pub fn roll_back(args: &NameArgs) -> Result<u8, Failure> {
    let name = named(&args.name)?;
    args.how.carry_out(|site, mode| site.roll_back(&name, mode))
}

fn named(name: &str) -> Result<SkillName, Failure> {
    SkillName::parse(name).map_err(|error| Failure::usage(error.to_string()))
}

/// The skill that is meant: a folder with `SKILL.md`, else a run.
fn skill(args: &InstallArgs) -> Result<(SkillName, Package), Failure> {
    let folder = folder_of(Path::new(&args.skill));
    if !folder.join(DOCUMENT).exists() {
        let exported = export_skill::skill_of(&args.root.find(&args.skill)?, &args.front)?;
        export_skill::tell(&exported.findings);
        return Ok((exported.name, exported.package));
    }
    if args.front.is_given() {
        return Err(Failure::usage(format!(
            "{} has front matter of its own; --name, --description and --license are for runs",
            folder.display()
        )));
    }
    let checked = check(folder);
    let (errors, warnings): (Vec<Finding>, Vec<Finding>) =
        checked.findings.into_iter().partition(Finding::is_error);
    if !errors.is_empty() {
        let lines: Vec<String> =
            errors.iter().map(|finding| format!("{}/{finding}", folder.display())).collect();
        return Err(Failure::usage(lines.join("\n")));
    }
    export_skill::tell(&warnings);
    let package = Package::read(folder).map_err(|error| Failure::usage(error.to_string()))?;
    Ok((named(checked.name.as_deref().unwrap_or_default())?, package))
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        Self::usage(error.to_string())
    }
}
