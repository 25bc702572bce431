//! One control plane for tests that can live side by side.

use std::sync::{Arc, Weak};

use anyhow::Result;
use tokio::sync::Mutex;

use crate::plane::ControlPlane;
use crate::skip::start_or_skip;

/// A control plane that the tests of this process share: started for the first, ended after the last that uses it.
///
/// For tests that keep to namespaces of their own. Skips as [`start_or_skip`] does.
pub async fn share_or_skip() -> Result<Option<Arc<ControlPlane>>> {
    static SHARED: Mutex<Weak<ControlPlane>> = Mutex::const_new(Weak::new());
    let mut shared = SHARED.lock().await;
    if let Some(plane) = shared.upgrade() {
        return Ok(Some(plane));
    }
    let plane = start_or_skip().await?.map(Arc::new);
    *shared = plane.as_ref().map(Arc::downgrade).unwrap_or_default();
    Ok(plane)
}
