//! Watches that feed indexes.

use std::sync::Arc;

use futures::{StreamExt, stream::BoxStream};
use kausality_core::{
    Summary,
    review::{Object, Text},
};
use kube::{
    Api, Client,
    core::{ApiResource, DynamicObject},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};

use crate::index::Index;

/// Feeds an index from a watch, for ever: errors are waited out, never passed on.
pub(crate) async fn feed(client: Client, index: Arc<Index>) {
    let resource = index.kind.resource.clone();
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let mut events: BoxStream<'_, Result<Event<DynamicObject>, watcher::Error>> =
        watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => index.begin(),
            Ok(Event::InitApply(object)) => with_summary(&object, &resource, |summary| index.arrive(summary)),
            Ok(Event::InitDone) => index.complete(),
            Ok(Event::Apply(object)) => with_summary(&object, &resource, |summary| index.apply(summary)),
            Ok(Event::Delete(object)) => with_summary(&object, &resource, |summary| index.remove(&summary)),
            Err(error) => {
                tracing::warn!(resource = %resource.plural, group = %resource.group, %error, "watch failed");
                index.fail();
            }
        }
    }
}

fn with_summary(object: &DynamicObject, resource: &ApiResource, then: impl FnOnce(Summary)) {
    match summarise(object, resource) {
        Ok(summary) => then(summary),
        Err(error) => tracing::warn!(resource = %resource.plural, %error, "an object could not be read"),
    }
}

/// Summarises an object. Items of a list do not say what they are; the kind that was asked for does.
pub(crate) fn summarise(
    object: &DynamicObject,
    resource: &ApiResource,
) -> Result<Summary, serde_json::Error> {
    let text = serde_json::to_string(object)?;
    let mut object = Object::parse(&text)?;
    object.api_version = Text::from(resource.api_version.as_str());
    object.kind = Text::from(resource.kind.as_str());
    Ok(Summary::of(&object))
}
