//! What a test does where there is no control plane.

use anyhow::{Context as _, Result, bail};
use tokio::sync::OnceCell;

use crate::aloud::aloud;
use crate::binaries::Binaries;
use crate::folder::is_set;
use crate::plane::ControlPlane;

/// Set to anything but nothing or 0, a test without a control plane fails.
const REQUIRE: &str = "REQUIRE_CONTROL_PLANE";

/// Starts a control plane. Where there are no binaries for it, says so loudly and gives `None`: skip the test.
///
/// With `REQUIRE_CONTROL_PLANE=1` in the environment that is an error. That binaries which are there do not start is
/// an error always.
pub async fn start_or_skip() -> Result<Option<ControlPlane>> {
    match find_or_skip().await? {
        Some(binaries) => ControlPlane::start(&binaries).await.map(Some),
        None => Ok(None),
    }
}

/// Finds the binaries, or says loudly that there are none, as [`start_or_skip`] does.
pub async fn find_or_skip() -> Result<Option<Binaries>> {
    static FOUND: OnceCell<Option<Binaries>> = OnceCell::const_new();
    let find = async || {
        // It may take a while: cargo may have to build xtask.
        tokio::task::spawn_blocking(Binaries::find).await.context("looking for the binaries")?
    };
    let found = FOUND.get_or_try_init(find).await?;
    if found.is_some() {
        return Ok(found.clone());
    }
    if is_set(std::env::var_os(REQUIRE).as_deref()) {
        bail!("there is no control plane for tests, and {REQUIRE} is set. `make control-plane` provides it");
    }
    aloud(
        "SKIPPED",
        &format!(
            "there is no control plane for tests. `make control-plane` provides it. \
             ({REQUIRE}=1 makes this a failure.)"
        ),
    )?;
    Ok(None)
}
