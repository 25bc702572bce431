//! As much of the API as the controllers need.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value, json};

use super::super::{
    Action, CONTROLLER_REVISIONS, CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, Delete, Event, JOBS, Key, NAMESPACES,
    NODES, PODS, Propagation, REPLICA_SETS, Read, Refusal, Resource, STATEFUL_SETS, Time, Write, object,
};

pub(super) static CLUSTERS: Resource =
    Resource::fixed("example.com", "v1", "eksclusters", "EKSCluster", true);
pub(super) static POOLS: Resource = Resource::fixed("example.com", "v1", "nodepools", "NodePool", true);
pub(super) static FLEETS: Resource = Resource::fixed("example.com", "v1", "fleets", "Fleet", false);
pub(super) static CONFIG_MAPS: Resource = Resource::fixed("", "v1", "configmaps", "ConfigMap", true);

/// All that is served.
pub(super) fn resources() -> [&'static Resource; 14] {
    [
        &DEPLOYMENTS,
        &REPLICA_SETS,
        &STATEFUL_SETS,
        &DAEMON_SETS,
        &CONTROLLER_REVISIONS,
        &JOBS,
        &CRON_JOBS,
        &PODS,
        &NODES,
        &NAMESPACES,
        &CLUSTERS,
        &POOLS,
        &FLEETS,
        &CONFIG_MAPS,
    ]
}

/// A write that was tried.
#[derive(Clone, Debug)]
pub(super) struct Tried {
    pub(super) user: String,
    pub(super) verb: &'static str,
    pub(super) resource: Resource,
    pub(super) before: Option<Arc<Value>>,
    pub(super) after: Option<Arc<Value>>,
    pub(super) refusal: Option<Refusal>,
}

/// Says no to a user's write.
type Guard = Box<dyn Fn(&str, &Write) -> Option<String>>;

#[derive(Default)]
pub(super) struct Api {
    pub(super) now: Time,
    objects: BTreeMap<Key, Arc<Value>>,
    /// What happened to each resource, for those who watch.
    pub(super) events: BTreeMap<Resource, Vec<Event>>,
    pub(super) log: Vec<Tried>,
    pub(super) guard: Option<Guard>,
    counter: u64,
}

impl Api {
    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    pub(super) fn list(&self, resource: &Resource) -> impl Iterator<Item = &Arc<Value>> {
        let of = resource.clone();
        let from = resource.key("", "");
        self.objects.range(from..).take_while(move |(key, _)| key.resource == of).map(|(_, it)| it)
    }

    pub(super) fn read(&self, read: &Read) -> Vec<Arc<Value>> {
        match read {
            Read::Object(key) => self.get(key).cloned().into_iter().collect(),
            Read::Collection { resource, namespace } => {
                self.list(resource).filter(|it| object::namespace(it) == namespace).cloned().collect()
            }
        }
    }

    pub(super) fn write(&mut self, user: &str, write: &Write) -> Result<Arc<Value>, Refusal> {
        let denial = self.guard.as_ref().and_then(|guard| guard(user, write));
        let before = self.get(&write.key).cloned();
        let result = match denial {
            Some(message) => Err(Refusal::Denied(message)),
            None => self.execute(write),
        };
        let verb = match write.action {
            Action::Create(_) => "CREATE",
            Action::Delete(_) => "DELETE",
            Action::Bind(_) => "BIND",
            Action::UpdateStatus(_) | Action::PatchStatus(_) => "STATUS",
            Action::Update(_) | Action::Patch(_) | Action::Finalize(_) => "UPDATE",
        };
        self.log.push(Tried {
            user: user.rsplit(':').next().unwrap_or_default().to_owned(),
            verb,
            resource: write.key.resource.clone(),
            before,
            after: result.as_ref().ok().cloned(),
            refusal: result.as_ref().err().cloned(),
        });
        result
    }

    fn execute(&mut self, write: &Write) -> Result<Arc<Value>, Refusal> {
        let resource = &write.key.resource;
        if let Action::Create(new) = &write.action {
            return self.create(resource, new.clone());
        }
        let stored = self.get(&write.key).cloned().ok_or(Refusal::NotFound)?;
        match &write.action {
            Action::Create(_) => unreachable!(),
            Action::Update(new) | Action::Finalize(new) => {
                same(&stored, new)?;
                let mut new = new.clone();
                if new["status"] != stored["status"] {
                    new["status"] = stored["status"].clone();
                }
                Ok(self.store(resource, &stored, new))
            }
            Action::UpdateStatus(new) => {
                same(&stored, new)?;
                let mut copy = (*stored).clone();
                copy["status"] = new["status"].clone();
                if resource.group != "example.com" && !new["metadata"]["annotations"].is_null() {
                    copy["metadata"]["annotations"] = new["metadata"]["annotations"].clone();
                }
                Ok(self.keep(resource, &stored, copy))
            }
            Action::Bind(binding) => {
                same(&stored, binding)?;
                if stored["spec"]["nodeName"].is_string() {
                    return Err(Refusal::Conflict);
                }
                let mut copy = (*stored).clone();
                copy["spec"]["nodeName"] = binding["target"]["name"].clone();
                Ok(self.keep(resource, &stored, copy))
            }
            Action::Patch(patch) => {
                same(&stored, patch)?;
                let mut copy = (*stored).clone();
                merge(&mut copy, patch);
                Ok(self.store(resource, &stored, copy))
            }
            Action::PatchStatus(patch) => {
                same(&stored, patch)?;
                let mut copy = (*stored).clone();
                merge(&mut copy["status"], &patch["status"]);
                Ok(self.keep(resource, &stored, copy))
            }
            Action::Delete(options) => self.delete(resource, &stored, options),
        }
    }

    fn create(&mut self, resource: &Resource, mut new: Value) -> Result<Arc<Value>, Refusal> {
        self.counter += 1;
        if resource.namespaced {
            let home = self.get(&NAMESPACES.key("", object::namespace(&new))).ok_or(Refusal::NotFound)?;
            if object::deleting(home) {
                return Err(Refusal::Denied("the namespace is being terminated".into()));
            }
        }
        if object::name(&new).is_empty() {
            let name = format!("{}{:05}", object::text(&new["metadata"]["generateName"]), self.counter);
            new["metadata"]["name"] = json!(name);
        }
        if self.get(&resource.key_of(&new)).is_some() {
            return Err(Refusal::AlreadyExists);
        }
        new["metadata"]["uid"] = json!(format!("uid-{}", self.counter));
        new["metadata"]["generation"] = json!(1);
        new["metadata"]["creationTimestamp"] = json!(self.now.rfc3339());
        if *resource == PODS {
            new["status"] = json!({ "phase": "Pending" });
        } else if *resource == NAMESPACES {
            new["spec"] = json!({ "finalizers": ["kubernetes"] });
        } else if *resource == REPLICA_SETS {
            new["status"] = json!({ "replicas": 0 });
        }
        Ok(self.put(resource, new))
    }

    fn delete(
        &mut self,
        resource: &Resource,
        stored: &Value,
        options: &Delete,
    ) -> Result<Arc<Value>, Refusal> {
        let differs =
            |wanted: &Option<String>, has: &str| wanted.as_ref().is_some_and(|wanted| wanted != has);
        if differs(&options.uid, object::uid(stored))
            || differs(&options.resource_version, object::version(stored))
        {
            return Err(Refusal::Conflict);
        }
        let mut copy = stored.clone();
        let mut finalizers: Vec<_> =
            object::finalizers(stored).filter(|it| *it != "orphan" && *it != "foregroundDeletion").collect();
        match options.propagation {
            Some(Propagation::Orphan) => finalizers.push("orphan"),
            Some(Propagation::Foreground) => finalizers.push("foregroundDeletion"),
            Some(Propagation::Background) => {}
            None => finalizers = object::finalizers(stored).collect(),
        }
        copy["metadata"]["finalizers"] = json!(finalizers);
        if !object::deleting(stored) {
            copy["metadata"]["deletionTimestamp"] = json!(self.now.rfc3339());
        }
        if *resource == PODS {
            let graceful = stored["spec"]["nodeName"].is_string() && stored["status"]["phase"] == "Running";
            let grace = if graceful { options.grace_period_seconds.unwrap_or(30) } else { 0 };
            copy["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        }
        Ok(self.keep(resource, stored, copy))
    }

    /// Stores what may have changed the intent.
    fn store(&mut self, resource: &Resource, stored: &Value, mut new: Value) -> Arc<Value> {
        let annotations = |it: &Value| it["metadata"]["annotations"].clone();
        let by_annotations = *resource == DEPLOYMENTS && annotations(stored) != annotations(&new);
        if intent(stored) != intent(&new) || by_annotations {
            new["metadata"]["generation"] = json!(object::generation(stored) + 1);
        }
        self.keep(resource, stored, new)
    }

    /// Stores, or removes what waited for nothing else.
    fn keep(&mut self, resource: &Resource, stored: &Value, new: Value) -> Arc<Value> {
        let grace = object::int(&new["metadata"]["deletionGracePeriodSeconds"]);
        let held = object::finalizers(&new).next().is_some()
            || (*resource == NAMESPACES && !object::items(&new["spec"]["finalizers"]).is_empty());
        if object::deleting(&new) && !held && grace == 0 {
            let key = resource.key_of(&new);
            let last = self.stamp(new);
            self.objects.remove(&key);
            self.events.entry(resource.clone()).or_default().push(Event::Deleted(Arc::clone(&last)));
            return last;
        }
        if new == *stored { Arc::new(new) } else { self.put(resource, new) }
    }

    fn put(&mut self, resource: &Resource, new: Value) -> Arc<Value> {
        let new = self.stamp(new);
        self.objects.insert(resource.key_of(&new), Arc::clone(&new));
        self.events.entry(resource.clone()).or_default().push(Event::Applied(Arc::clone(&new)));
        new
    }

    fn stamp(&mut self, mut new: Value) -> Arc<Value> {
        self.counter += 1;
        new["metadata"]["resourceVersion"] = json!(self.counter.to_string());
        Arc::new(new)
    }
}

fn same(stored: &Value, sent: &Value) -> Result<(), Refusal> {
    let differs = |sent: &str, stored: &str| !sent.is_empty() && sent != stored;
    if differs(object::version(sent), object::version(stored))
        || differs(object::uid(sent), object::uid(stored))
    {
        return Err(Refusal::Conflict);
    }
    Ok(())
}

/// All but metadata and status.
pub(super) fn intent(object: &Value) -> Map<String, Value> {
    let fields = object.as_object().cloned().unwrap_or_default();
    fields.into_iter().filter(|(key, _)| key != "metadata" && key != "status").collect()
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}
