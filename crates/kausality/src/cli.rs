//! The command line.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{
    backend::Backend, controller::Controller, demo::Demo, diff::Diff, doctor::Doctor, install::Install,
    own::Own, plan::Plan, replay::Replay, uninstall::Uninstall, up::Up, webhook::Webhook, why::Why,
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
    Replay(Replay),
    Why(Why),
    Own(Box<Own>),
    Diff(Box<Diff>),
    Plan(Box<Plan>),
    Install(Box<Install>),
    Uninstall(Box<Uninstall>),
    Webhook(Box<Webhook>),
    Controller(Box<Controller>),
    Backend(Backend),
    Doctor(Box<Doctor>),
}

impl Cli {
    /// Runs the command that was given.
    ///
    /// # Errors
    /// Whatever keeps the command from doing its work.
    pub fn run(&self) -> Result<ExitCode> {
        match &self.command {
            Command::Demo(demo) => demo.run(),
            Command::Up(up) => up.run(),
            Command::Replay(replay) => replay.run(),
            Command::Why(why) => why.run(),
            Command::Own(own) => own.run(),
            Command::Diff(diff) => diff.run(),
            Command::Plan(plan) => plan.run(),
            Command::Install(install) => install.run(),
            Command::Uninstall(uninstall) => uninstall.run(),
            Command::Doctor(doctor) => doctor.run(),
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
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() { logs.init() } else { logs.json().init() }
}
