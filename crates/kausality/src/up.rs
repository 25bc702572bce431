//! `kausality up`: a control plane on this machine, with Kausality in it.

use std::{io::Write, net::SocketAddr, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::Args;
use kausality_sandbox::{Served, User};

use crate::{embedded::Embedded, mode::ModeArgument};

/// Start a control plane on this machine, with Kausality in it: no cluster is needed.
///
/// It keeps everything in memory and forgets it at the end.
#[derive(Debug, Args)]
pub struct Up {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    bind_address: SocketAddr,

    /// Where to write the kubeconfig
    #[arg(long, default_value = "kausality.kubeconfig", value_name = "FILE")]
    kubeconfig: PathBuf,

    /// The mode where no annotation or policy says another
    #[arg(long, value_enum, default_value_t = ModeArgument::Enforce)]
    default_mode: ModeArgument,
}

impl Up {
    /// Runs the command until it is told to stop.
    ///
    /// # Errors
    /// If the address cannot be listened on, or the kubeconfig not written.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            let embedded = Embedded::start(self.default_mode.into()).await?;
            let served = serve(&embedded, self.bind_address, &self.kubeconfig).await?;
            let mut out = anstream::stdout();
            writeln!(out, "A control plane with Kausality runs at {}.", served.url)?;
            writeln!(out, "Talk to it: export KUBECONFIG={}", self.kubeconfig.display())?;
            writeln!(out, "Ctrl-C ends it, and it forgets everything.")?;
            tokio::signal::ctrl_c().await.context("cannot wait for Ctrl-C")?;
            std::fs::remove_file(&self.kubeconfig).context("cannot remove the kubeconfig")?;
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Serves it, and writes a kubeconfig of somebody who may do all.
pub(crate) async fn serve(embedded: &Embedded, address: SocketAddr, kubeconfig: &PathBuf) -> Result<Served> {
    let served = embedded.sandbox.serve(address).await?;
    let written = std::fs::write(kubeconfig, served.kubeconfig(&User::admin("admin")));
    written.with_context(|| format!("cannot write {}", kubeconfig.display()))?;
    Ok(served)
}
