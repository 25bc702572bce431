//! Serves a sandbox until it is interrupted, and writes a kubeconfig for kubectl.
//!
//! ```sh
//! cargo run -p kausality-sandbox --example serve -- /tmp/sandbox.kubeconfig
//! KUBECONFIG=/tmp/sandbox.kubeconfig kubectl get namespaces
//! ```

use anyhow::{Context as _, Result};
use kausality_sandbox::{Sandbox, User};

#[tokio::main]
async fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("usage: serve <where to write the kubeconfig>")?;
    let sandbox = Sandbox::default();
    let served = sandbox.serve("127.0.0.1:0".parse()?).await?;
    std::fs::write(&path, served.kubeconfig(&User::admin("admin")))?;
    std::future::pending::<()>().await;
    Ok(())
}
