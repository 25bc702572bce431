//! Watching an object for a while, to see whether managers take fields from each other.

use std::time::Duration;

use futures::{StreamExt, future::join_all};
use kausality_fields::{attribution::attribute, fight::Fights};
use kube::{
    Api,
    api::WatchParams,
    core::{DynamicObject, WatchEvent},
};

use super::compare::Judge;
use crate::{live::spinner, manifests::Manifest, target};

/// Before a watch that has ended is begun anew.
const PAUSE: Duration = Duration::from_secs(1);

/// Who took which fields of the objects within the time, which is the same for all.
pub(super) async fn all(judge: &Judge, manifests: &[Manifest], time: Duration) -> Vec<Fights> {
    let bar = spinner(format!("watching {} objects for {} s", manifests.len(), time.as_secs()));
    let fights = join_all(manifests.iter().map(|manifest| fights(judge, manifest, time))).await;
    bar.finish_and_clear();
    fights
}

/// What cannot be watched has no history.
async fn fights(judge: &Judge, manifest: &Manifest, time: Duration) -> Fights {
    let mut fights = Fights::default();
    // The time is up, or the watch has ended: either way this is what was seen.
    let _ = tokio::time::timeout(time, follow(judge, manifest, &mut fights)).await;
    fights
}

/// For ever, or until the object cannot be read. A watch ends now and then, which is no end of the story.
async fn follow(judge: &Judge, manifest: &Manifest, fights: &mut Fights) -> Option<()> {
    let place = judge.place(manifest).await.ok()?;
    let api: Api<DynamicObject> = target::api(&judge.server.client, &place.kind, &place.namespace);
    let name = manifest.text("/metadata/name");
    let parameters = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut before = api.get(name).await.ok()?;
    loop {
        let version = before.metadata.resource_version.clone().unwrap_or_default();
        if let Ok(events) = api.watch(&parameters, &version).await {
            let mut events = events.boxed();
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Modified(after) = event {
                    feed(fights, &before, &after);
                    before = after;
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
        let after = api.get(name).await.ok()?;
        feed(fights, &before, &after);
        before = after;
    }
}

fn feed(fights: &mut Fights, before: &DynamicObject, after: &DynamicObject) {
    let managed = |object: &DynamicObject| serde_json::to_string(&object.metadata.managed_fields).ok();
    let (old, new) = (managed(before), managed(after));
    if let Ok(attribution) = attribute(old.as_deref(), new.as_deref()) {
        fights.feed(&attribution);
    }
}
