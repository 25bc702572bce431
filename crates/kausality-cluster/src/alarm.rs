//! Says that something has changed, and not what: for those who then look at everything anyway.

use std::ops::ControlFlow;

use kube::{Api, core::DynamicObject};
use tokio::sync::Notify;

use crate::{
    feed::{Mirror, Which, feed_some},
    pulse::Pulse,
};

/// Watches objects, for ever, and tells whenever one has come, changed or gone; and when a watch begins anew, since
/// nobody knows what was missed.
pub async fn alarm(api: Api<DynamicObject>, which: Which, what: &str, told: &Notify) {
    feed_some(api, &which, what, &Pulse::default(), &Alarm(told)).await;
}

struct Alarm<'a>(&'a Notify);

impl Mirror for Alarm<'_> {
    fn begin(&self) {}

    fn arrive(&self, _: DynamicObject) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn complete(&self) {
        self.0.notify_one();
    }

    fn apply(&self, _: DynamicObject) -> ControlFlow<()> {
        self.0.notify_one();
        ControlFlow::Continue(())
    }

    fn remove(&self, _: DynamicObject) {
        self.0.notify_one();
    }
}
