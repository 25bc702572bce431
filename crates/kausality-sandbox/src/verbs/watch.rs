//! Watching: what happens, as it happens.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::{Either, select};
use futures::stream;
use http::Response;
use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::answer::{self, Body};
use crate::call::Call;
use crate::controllers::Time;
use crate::conversion;
use crate::kinds::Definition;
use crate::metadata;
use crate::request::Form;
use crate::sandbox::Sandbox;
use crate::status::Failure;
use crate::store::selector::Selector;
use crate::store::signal::Changes;
use crate::store::{After, Compacted, Event};
use crate::verbs::metadata_of;

/// How often whoever wants bookmarks gets one, if nothing happens.
const BOOKMARK_SECONDS: u64 = 60;
/// How long a watch lasts that does not say it.
const DEFAULT_SECONDS: u64 = 1800;

/// A watch that is under way.
struct Watch {
    sandbox: Sandbox,
    definition: Arc<Definition>,
    selector: Selector,
    /// All, if it is `None`.
    namespace: Option<String>,
    form: Form,
    call: Call,
    bookmarks: bool,
    /// What has been seen.
    revision: u64,
    changed: Changes,
    /// What is to be sent.
    ready: VecDeque<Bytes>,
    end: Time,
    ended: bool,
    /// Whether a table has been sent, whose columns need not be told again.
    told_columns: bool,
}

impl Sandbox {
    pub(crate) fn watch(&self, call: &Call) -> Result<Response<Body>, Failure> {
        let definition = &call.definition;
        let mut fields = call.query.get("fieldSelector").to_owned();
        if !call.name.is_empty() {
            fields = format!("metadata.name={}", call.name);
        }
        let selector = Selector::parse(definition, call.query.get("labelSelector"), &fields)?;
        let from = call.query.get("resourceVersion");
        let from = match from {
            "" | "0" => None,
            from => Some(
                from.parse::<u64>()
                    .map_err(|_| Failure::bad_request(format!("resourceVersion: Invalid value: {from:?}")))?,
            ),
        };
        let initial = call.query.flag("sendInitialEvents");
        let bookmarks = call.query.flag("allowWatchBookmarks");
        if initial && !bookmarks {
            let message = "sendInitialEvents requires allowWatchBookmarks=true";
            return Err(Failure::new(422, "Invalid", message));
        }
        let seconds = call.query.number("timeoutSeconds").filter(|seconds| *seconds > 0);
        let mut state = self.state();
        let changed = state.store.subscribe(&definition.collection);
        let mut watch = Watch {
            sandbox: self.clone(),
            definition: Arc::clone(definition),
            selector,
            namespace: (!call.namespace.is_empty()).then(|| call.namespace.clone()),
            form: call.form,
            call: call.of(&call.namespace, &call.name),
            bookmarks,
            revision: state.store.revision(),
            changed,
            ready: VecDeque::new(),
            end: self.now().after_seconds(seconds.unwrap_or(DEFAULT_SECONDS)),
            ended: false,
            told_columns: false,
        };
        match from {
            Some(from) if !initial => {
                if let Err(Compacted(since)) = state.store.since(&definition.collection, from) {
                    return Err(Failure::expired(format!("too old resource version: {from} ({since})")));
                }
                watch.revision = from;
            }
            _ => {
                let current = state.store.list(&definition.collection, watch.namespace.as_deref());
                let revision = watch.revision;
                drop(state);
                for (_, object) in &current {
                    if watch.selector.matches(object) {
                        watch.send("ADDED", object);
                    }
                }
                if initial {
                    watch.bookmark(revision, true);
                }
            }
        }
        Ok(answer::stream(stream::unfold(watch, async |mut watch| {
            let next = watch.next().await?;
            Some((next, watch))
        })))
    }
}

impl Watch {
    /// What is to be sent next; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            if self.ended {
                return None;
            }
            self.changed.latest();
            let events = self.sandbox.state().store.since(&self.definition.collection, self.revision);
            match events {
                Ok(events) => events.iter().for_each(|event| self.observe(event)),
                Err(Compacted(since)) => {
                    let message = format!("too old resource version: {} ({since})", self.revision);
                    self.emit("ERROR", &Failure::expired(message).to_value());
                    self.ended = true;
                }
            }
            if self.ready.is_empty() && !self.ended {
                self.wait().await;
            }
        }
    }

    /// Until something happens, a bookmark is due, or the time is over.
    async fn wait(&mut self) {
        let now = self.sandbox.now();
        let due = self.end.min(now.after_seconds(BOOKMARK_SECONDS));
        let timer = self.sandbox.clock().sleep_until(due);
        let happened = match select(Box::pin(self.changed.next()), timer).await {
            Either::Left(_) => true,
            Either::Right(_) => false,
        };
        if !happened {
            if self.bookmarks {
                let current = self.sandbox.state().store.revision();
                // Only what has been looked at may be promised.
                let seen = self.sandbox.state().store.since(&self.definition.collection, self.revision);
                if seen.is_ok_and(|events| events.is_empty()) {
                    self.revision = self.revision.max(current);
                    self.bookmark(self.revision, false);
                }
            }
            self.ended = self.sandbox.now() >= self.end;
        }
    }

    fn observe(&mut self, event: &Event) {
        self.revision = event.revision;
        if self.namespace.as_ref().is_some_and(|namespace| event.place.0 != *namespace) {
            return;
        }
        let was = event.before.as_ref().is_some_and(|before| self.selector.matches(before));
        match &event.after {
            After::Stored(object) => match (was, self.selector.matches(object)) {
                (true, true) => self.send("MODIFIED", object),
                (false, true) => self.send("ADDED", object),
                (true, false) => {
                    // What it was, at the revision at which it went out of sight.
                    let mut last = event.before.as_deref().cloned().unwrap_or_default();
                    metadata::take(&mut last, object, "resourceVersion");
                    self.send("DELETED", &Arc::new(last));
                }
                (false, false) => {}
            },
            After::Gone(last) if was => self.send("DELETED", last),
            After::Gone(_) => {}
        }
    }

    fn send(&mut self, kind: &str, stored: &Arc<Value>) {
        if let Some(from) = conversion::needed(&self.definition, stored) {
            let failure = conversion::refused(&self.definition, &from, conversion::NO_CONVERSION);
            self.emit("ERROR", &failure.to_value());
            self.ended = true;
            return;
        }
        let object = self.definition.serve(stored);
        match self.form {
            Form::Object => self.emit(kind, &object),
            Form::Metadata => self.emit(kind, &metadata_of(&object)),
            Form::Table => {
                let list = json!({"resourceVersion": metadata::version(&object)});
                let objects = [object];
                let mut table =
                    crate::table::of(&self.definition, &objects, list, self.sandbox.now(), &self.call);
                if self.told_columns {
                    table["columnDefinitions"] = Value::Null;
                }
                self.told_columns = true;
                self.emit(kind, &table);
            }
        }
    }

    fn bookmark(&mut self, revision: u64, initial: bool) {
        let mut object = json!({
            "kind": self.definition.kind, "apiVersion": self.definition.api_version(),
            "metadata": {"resourceVersion": revision.to_string()},
        });
        if initial {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        match self.form {
            Form::Object => {}
            Form::Metadata => object = metadata_of(&object),
            Form::Table => {
                object = json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": null,
                    "metadata": object["metadata"], "rows": []});
            }
        }
        self.emit("BOOKMARK", &object);
    }

    fn emit(&mut self, kind: &str, object: &Value) {
        #[derive(serde::Serialize)]
        struct Line<'a> {
            #[serde(rename = "type")]
            kind: &'a str,
            object: &'a Value,
        }
        let mut text = serde_json::to_vec(&Line { kind, object }).unwrap_or_default();
        text.push(b'\n');
        self.ready.push_back(text.into());
    }
}
