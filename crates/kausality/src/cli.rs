//! The command line.

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::{
    approve::Approve,
    backend::Backend,
    completions::{Completions, Man},
    controller::Controller,
    demo::Demo,
    diff::Diff,
    doctor::Doctor,
    drifts::Drifts,
    except::Except,
    freeze::{Freeze, Unfreeze},
    install::Install,
    output::program,
    own::Own,
    plan::Plan,
    policies::Policies,
    policy::Policy,
    reject::Reject,
    replay::Replay,
    show::Show,
    snooze::{Snooze, Unsnooze},
    trace::Trace,
    tui::Tui,
    unapprove::Unapprove,
    uninstall::Uninstall,
    up::Up,
    webhook::Webhook,
    why::Why,
};

/// Trace and gate changes of intent through the hierarchy of Kubernetes objects.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(Demo),
    Up(Up),
    Drifts(Box<Drifts>),
    Show(Box<Show>),
    Approve(Box<Approve>),
    Reject(Box<Reject>),
    Unapprove(Box<Unapprove>),
    Except(Box<Except>),
    Freeze(Box<Freeze>),
    Unfreeze(Box<Unfreeze>),
    Snooze(Box<Snooze>),
    Unsnooze(Box<Unsnooze>),
    Trace(Box<Trace>),
    Tui(Box<Tui>),
    Policies(Box<Policies>),
    Policy(Box<Policy>),
    Why(Box<Why>),
    Replay(Replay),
    Own(Box<Own>),
    Diff(Box<Diff>),
    Plan(Box<Plan>),
    Install(Box<Install>),
    Uninstall(Box<Uninstall>),
    Webhook(Box<Webhook>),
    Controller(Box<Controller>),
    Backend(Backend),
    Doctor(Box<Doctor>),
    Completions(Completions),
    Man(Man),
}

impl Cli {
    /// Reads the command line of this process, under the name that it was called by: it may be a plugin of kubectl.
    #[must_use]
    pub fn from_command_line() -> Self {
        let mut command = Self::named();
        let matches = command.get_matches_mut();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
    }

    fn named() -> clap::Command {
        Self::command().bin_name(program())
    }

    /// What the process exits with if the command fails: commands that compare or judge keep 1 for what they find.
    #[must_use]
    pub fn failure(&self) -> u8 {
        match &self.command {
            Command::Why(why) => 2 - u8::from(why.is_about_drift()),
            Command::Drifts(_)
            | Command::Show(_)
            | Command::Approve(_)
            | Command::Reject(_)
            | Command::Unapprove(_)
            | Command::Except(_)
            | Command::Freeze(_)
            | Command::Unfreeze(_)
            | Command::Snooze(_)
            | Command::Unsnooze(_)
            | Command::Trace(_)
            | Command::Tui(_)
            | Command::Policies(_)
            | Command::Completions(_)
            | Command::Man(_) => 1,
            _ => 2,
        }
    }

    /// Runs the command that was given.
    ///
    /// # Errors
    /// Whatever keeps the command from doing its work.
    pub fn run(&self) -> Result<ExitCode> {
        match &self.command {
            Command::Demo(demo) => demo.run(),
            Command::Up(up) => up.run(),
            Command::Drifts(drifts) => drifts.run(),
            Command::Show(show) => show.run(),
            Command::Approve(approve) => approve.run(),
            Command::Reject(reject) => reject.run(),
            Command::Unapprove(unapprove) => unapprove.run(),
            Command::Except(except) => except.run(),
            Command::Freeze(freeze) => freeze.run(),
            Command::Unfreeze(unfreeze) => unfreeze.run(),
            Command::Snooze(snooze) => snooze.run(),
            Command::Unsnooze(unsnooze) => unsnooze.run(),
            Command::Trace(trace) => trace.run(),
            Command::Tui(tui) => tui.run(),
            Command::Policies(policies) => policies.run(),
            Command::Policy(policy) => policy.run(),
            Command::Why(why) => why.run(),
            Command::Replay(replay) => replay.run(),
            Command::Own(own) => own.run(),
            Command::Diff(diff) => diff.run(),
            Command::Plan(plan) => plan.run(),
            Command::Install(install) => install.run(),
            Command::Uninstall(uninstall) => uninstall.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Completions(completions) => completions.run(Self::command()),
            Command::Man(man) => man.run(Self::command()),
            Command::Webhook(webhook) => {
                logs();
                webhook.run()
            }
            Command::Controller(controller) => {
                logs();
                controller.run()
            }
            Command::Backend(backend) => {
                logs();
                backend.run()
            }
        }
    }
}

/// Logs to standard error: as JSON where nobody reads along.
fn logs() {
    use std::io::IsTerminal;
    use tracing_subscriber::EnvFilter;
    let asked = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let mut filter = EnvFilter::try_new(if asked.is_empty() { "info" } else { &asked })
        .unwrap_or_else(|_| EnvFilter::new("info"));
    // It logs each call that failed as an error, although whoever made the call says so, tries again, and may expect it.
    if !asked.contains(CLIENT)
        && let Ok(silence) = format!("{CLIENT}=off").parse()
    {
        filter = filter.add_directive(silence);
    }
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() { logs.init() } else { logs.json().init() }
}

/// The client of the API server, as it is named in logs.
const CLIENT: &str = "kube_client";
