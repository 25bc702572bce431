//! Clients of this process that connect from within a node.
//!
//! A socket belongs to the network that the thread which makes it is in. So there are threads that enter the node's
//! network and stay there, and every call of a client runs on them.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use http::Request;
use kube::Client;
use kube::client::Body;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::runtime::{Builder, Handle, Runtime};

use super::machine::Machine;

/// How many threads make calls.
const THREADS: usize = 2;

/// Threads in the network of a node.
#[derive(Debug)]
pub(super) struct Network {
    /// Taken when dropped.
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Network {
    pub(super) fn of(machine: &Machine) -> Result<Self> {
        let path = machine.network();
        let network = Arc::new(File::open(&path).with_context(|| format!("opening {}", path.display()))?);
        let enter = move || {
            // There is nobody to give an error to here. `check` finds a thread that stayed outside.
            let _ = move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network));
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("node-network")
            .on_thread_start(enter)
            .enable_all()
            .build()
            .context("starting threads for the network of a node")?;
        let network = Self { handle: runtime.handle().clone(), runtime: Some(runtime) };
        check(&network.handle, &path)?;
        Ok(network)
    }

    /// Where tasks run inside.
    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// A client that connects from inside, wherever it is used.
    pub(super) fn client(&self, connect: impl FnOnce() -> Result<Client>) -> Result<Client> {
        // A client works on the runtime that it was made in.
        let _within = self.handle.enter();
        let (client, handle) = (connect()?, self.handle.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let client = client.clone();
            let call = handle.spawn(async move { client.send(request).await });
            async move { Ok::<_, tower::BoxError>(call.await??) }
        });
        Ok(Client::new(service, "default"))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // A runtime that is merely dropped waits for its threads, which tokio forbids in an async test.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Whether the threads are inside.
fn check(handle: &Handle, wanted: &Path) -> Result<()> {
    let wanted = std::fs::read_link(wanted).context("reading the network of the node")?;
    let (sender, receiver) = std::sync::mpsc::channel();
    handle.spawn(async move { sender.send(std::fs::read_link("/proc/thread-self/ns/net")) });
    let found = receiver.recv().context("asking a thread for its network")?.context("reading its network")?;
    ensure!(found == wanted, "threads could not enter the network of the node: only root can");
    Ok(())
}
