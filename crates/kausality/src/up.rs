//! `kausality up`: a control plane on this machine, with Kausality in it.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use clap::Args;
use kausality_api::policy::QuietTime;
use kausality_sandbox::{Served, User};

use crate::{
    embedded::{Embedded, Setup, Way},
    mode::ModeArgument,
    webhook::interrupted,
};

/// Start a control plane on this machine, with Kausality in it: no cluster is needed.
///
/// It keeps everything in memory and forgets it at the end.
#[derive(Debug, Args)]
pub struct Up {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    bind_address: SocketAddr,

    /// Where to write a kubeconfig for it; it is removed at the end
    #[arg(long, default_value = "kausality.kubeconfig", value_name = "FILE")]
    write_kubeconfig: PathBuf,

    /// The mode where no annotation or policy says another
    #[arg(long, value_enum, default_value_t = ModeArgument::Enforce)]
    default_mode: ModeArgument,

    /// How long a parent must have been in steady state, with no change to its children, before a change counts as drift
    #[arg(long, default_value_t, value_name = "DURATION")]
    quiet_time: QuietTime,

    /// How Kausality is asked about changes
    #[arg(long, value_enum, default_value_t = Way::Library)]
    admission: Way,

    /// Let users do only what roles allow them; the administrator of the kubeconfig may do all
    #[arg(long)]
    rbac: bool,
}

impl Up {
    /// Runs the command until it is told to stop.
    ///
    /// # Errors
    /// If the address cannot be listened on, or the kubeconfig not written.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            let kubeconfig = Kubeconfig::claim(&self.write_kubeconfig)?;
            tokio::select! {
                ended = self.serve(kubeconfig) => ended?,
                () = interrupted() => {}
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    /// Serves, and does not come back.
    async fn serve(&self, kubeconfig: Kubeconfig) -> Result<()> {
        let embedded = Embedded::set_up(self.setup()).await?;
        let open = Open::new(&embedded, self.bind_address, kubeconfig).await?;
        let mut out = anstream::stdout();
        writeln!(out, "A control plane with Kausality runs at {}.", open.served.url)?;
        writeln!(out, "Talk to it: export KUBECONFIG={}", self.write_kubeconfig.display())?;
        writeln!(out, "Ctrl-C ends it, and it forgets everything.")?;
        std::future::pending().await
    }
}

impl Up {
    fn setup(&self) -> Setup {
        Setup {
            default_mode: self.default_mode.into(),
            quiet_time: self.quiet_time,
            admission: self.admission,
            rbac: self.rbac,
        }
    }
}

/// A file for a kubeconfig that is ours, and goes with us.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    file: File,
    path: PathBuf,
}

impl Kubeconfig {
    /// Makes the file, empty as yet, before anything else begins. One that is there is somebody's, and stays.
    pub(crate) fn claim(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = match options.open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!(
                "{} exists already: remove it if it is an old one, or name another with --write-kubeconfig",
                path.display()
            ),
            opened => opened.with_context(|| format!("cannot write {}", path.display()))?,
        };
        Ok(Self { file, path: path.to_owned() })
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            anstream::eprintln!("note: {} could not be removed: {error}", self.path.display());
        }
    }
}

/// A sandbox that others can reach, and the kubeconfig for it, which goes with it.
pub(crate) struct Open {
    pub(crate) served: Served,
    _kubeconfig: Kubeconfig,
}

impl Open {
    /// Serves it, and writes a kubeconfig of somebody who may do all.
    pub(crate) async fn new(
        embedded: &Embedded,
        address: SocketAddr,
        mut kubeconfig: Kubeconfig,
    ) -> Result<Self> {
        let served = embedded.sandbox.serve(address).await?;
        let written = kubeconfig.file.write_all(served.kubeconfig(&User::admin("admin")).as_bytes());
        written.with_context(|| format!("cannot write {}", kubeconfig.path.display()))?;
        Ok(Self { served, _kubeconfig: kubeconfig })
    }
}
