//! What a decision must know: from watches, where they are good enough, else live.

use std::{sync::Arc, time::Duration};

use kausality_core::{
    Activity, Known, KnownParent, Namespace, Questions, ScaledObject, Summary, authority::Authority,
    questions, review::Request, summary::Owner,
};
use kube::{
    Api, Client,
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Cluster, Freshness, api};
use crate::{
    clock::left_until,
    grants::missing_rule,
    index::{Sight, summarise},
    kinds::{Kind, UnknownKind},
    namespaces,
};

/// How long a parent that has not shown up in its watch is waited for before it is read live.
const PATIENCE: Duration = Duration::from_millis(300);

/// How long a watch is given to show a change that was allowed here a moment ago: it is on its way, or has failed.
const WHILE: Duration = Duration::from_secs(1);

/// How long a live read may take.
const READ_DEADLINE: Duration = Duration::from_millis(1500);

impl Cluster {
    /// What a request's decision must know, if all of it is known here, as it mostly is.
    pub(crate) fn recollect(&self, request: &Request<'_>) -> Option<Known> {
        let Questions { parent: owner, scaled: None, namespace, authority: false } =
            questions(request, &self.settings())
        else {
            return None;
        };
        let parent = match &owner {
            Some(owner) => {
                let kind = self.kinds.seen(&owner.api_version, &owner.kind)?;
                let namespace = owner.namespace.as_deref().unwrap_or(&request.namespace);
                let namespace = if kind.namespaced { namespace } else { "" };
                match self.watched(&kind)?.look(namespace, &owner.name, &owner.uid) {
                    Sight::Here(summary) if !self.lately.is_under_way(&summary) => KnownParent::Found {
                        summary: self.pending.over(summary),
                        resource: kind.resource.plural.as_str().into(),
                    },
                    Sight::Departed => KnownParent::Gone,
                    Sight::Here(_) | Sight::Unseen | Sight::Blind => return None,
                }
            }
            None => KnownParent::None,
        };
        let namespace = namespace.and_then(|name| self.namespaces.get(&name));
        if let (KnownParent::Found { .. }, Some(owner)) = (&parent, &owner) {
            self.tell_of(owner, request, namespace.as_deref());
        }
        Some(self.beside(request, parent, None, namespace, Authority::Unasked))
    }

    /// What is known beside these.
    fn beside(
        &self,
        request: &Request<'_>,
        parent: KnownParent,
        scaled: Option<Result<Arc<Summary>, String>>,
        namespace: Option<Arc<Namespace>>,
        authority: Authority,
    ) -> Known {
        let of_parent = match &parent {
            KnownParent::Found { summary, .. } => self.activity_below(&summary.uid),
            _ => Activity::default(),
        };
        let stored = request.old_object.as_ref();
        Known {
            now: self.clock.now(),
            timed: true,
            parent,
            input: of_parent.input.clone(),
            below_parent: of_parent,
            below: stored.map(|stored| self.activity_below(&stored.metadata.uid)).unwrap_or_default(),
            hints: Vec::new(),
            scaled,
            namespace,
            exception: None,
            authority,
        }
    }

    /// Finds out what a request's decision must know, until the time is up. What could not be found out by then is
    /// unreadable.
    pub async fn know(&self, request: &Request<'_>, freshness: Freshness, until: Instant) -> Known {
        let Questions { parent, scaled, namespace, authority } = questions(request, &self.settings());
        let (has_parent, is_scale) = (parent.is_some(), scaled.is_some());
        let in_time = async {
            let scaled = match scaled {
                Some(target) => Some(self.scaled(&target, freshness).await),
                None => None,
            };
            let owner = match &scaled {
                Some(Ok(summary)) => summary.owner.clone(),
                Some(Err(_)) => None,
                None => parent,
            };
            let parent = match &owner {
                Some(owner) => self.parent(owner, &request.namespace, freshness).await,
                None => KnownParent::None,
            };
            (parent, scaled, owner)
        };
        let late = || "the API server did not answer in time".to_owned();
        let namespace = async {
            match namespace {
                Some(name) => self.namespace(&name, freshness, until).await,
                None => None,
            }
        };
        let (found, namespace) = tokio::join!(tokio::time::timeout_at(until, in_time), namespace);
        let (mut parent, scaled, owner) = found.unwrap_or_else(|_| {
            let parent = if has_parent { KnownParent::Unreadable(late()) } else { KnownParent::None };
            (parent, is_scale.then(|| Err(late())), None)
        });
        match (&mut parent, &owner) {
            (KnownParent::Unreadable(why), Some(owner)) => {
                if let Some(advice) = self.ask_for(owner, request, namespace.as_deref()) {
                    *why = format!("{why}: {advice}");
                }
            }
            // Whoever asks for what is live has asked for what was known before.
            (KnownParent::Found { .. }, Some(owner)) if freshness == Freshness::Cached => {
                self.tell_of(owner, request, namespace.as_deref());
            }
            _ => {}
        }
        let authority = self.authority(authority, request, until).await;
        self.beside(request, parent, scaled, namespace, authority)
    }

    /// Whether whoever sends a request may decide about drifts, if that matters.
    pub(crate) async fn authority(&self, matters: bool, request: &Request<'_>, until: Instant) -> Authority {
        match matters {
            true => self.authorities.of(&self.client, request, until).await,
            false => Authority::Unasked,
        }
    }

    /// A namespace. Nothing is denied in one that has just been taken out of protection.
    async fn namespace(&self, name: &str, freshness: Freshness, until: Instant) -> Option<Arc<Namespace>> {
        if freshness == Freshness::Live {
            let read = async {
                let all = |client: &Client| Api::all_with(client.clone(), &namespaces::resource());
                self.get(all, name).await.ok().flatten().map(|object| namespaces::read(object).1)
            };
            let live = self.namespace_reads.share(name, read);
            if let Ok(Some(namespace)) = tokio::time::timeout_at(until, live).await {
                return Some(namespace);
            }
        }
        self.namespaces.get(name)
    }

    async fn scaled(&self, target: &ScaledObject, freshness: Freshness) -> Result<Arc<Summary>, String> {
        let kind = self.kinds.of_resource(&target.group, &target.resource).await;
        let kind = kind.map_err(|error| error.to_string())?;
        let whole = self.settings.load().exceptions.asks_for_child();
        match self.find(&kind, &target.namespace, &target.name, "", freshness, whole).await {
            Ok(Some(summary)) => Ok(summary),
            Ok(None) => Err(format!("{} {} does not exist", target.resource, target.name)),
            Err(why) => Err(why),
        }
    }

    /// A Pod as the API server has it. One that does not exist has no owner, and nothing speaks against its eviction.
    pub(crate) async fn read_pod(
        &self,
        namespace: &str,
        name: &str,
        until: Instant,
    ) -> Result<Value, String> {
        let kind = self.kinds.of_resource("", "pods").await.map_err(|error| error.to_string())?;
        let read = self.get(|client| api(client, &kind, namespace), name);
        let read = tokio::time::timeout_at(until, read).await;
        match read.map_err(|_| "the API server did not answer in time".to_owned())? {
            Ok(Some(pod)) => serde_json::to_value(pod).map_err(|error| error.to_string()),
            Ok(None) => Ok(json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"namespace": namespace, "name": name}})),
            Err(why) => Err(why.of(&kind).to_string()),
        }
    }

    pub(crate) async fn parent(&self, owner: &Owner, namespace: &str, freshness: Freshness) -> KnownParent {
        let kind = match self.kinds.of_kind(&owner.api_version, &owner.kind).await {
            Ok(kind) => kind,
            // No object can be of a kind that is not served.
            Err(UnknownKind::NotServed(_)) => return KnownParent::Gone,
            Err(error) => return KnownParent::Unreadable(error.to_string()),
        };
        let namespace = owner.namespace.as_deref().unwrap_or(namespace);
        let namespace = if kind.namespaced { namespace } else { "" };
        let whole = self.settings.load().exceptions.asks_for_parent();
        match self.find(&kind, namespace, &owner.name, &owner.uid, freshness, whole).await {
            Ok(Some(summary)) => {
                KnownParent::Found { summary, resource: kind.resource.plural.as_str().into() }
            }
            Ok(None) => KnownParent::Gone,
            Err(why) => KnownParent::Unreadable(why),
        }
    }

    /// Finds an object: in its index if that will do, else live, and then `whole` if that is asked for. An empty uid means
    /// whichever has the name.
    async fn find(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        name: &str,
        uid: &str,
        freshness: Freshness,
        whole: bool,
    ) -> Result<Option<Arc<Summary>>, String> {
        if let (Freshness::Cached, Some(index)) = (freshness, self.watched(kind)) {
            let begun = Instant::now();
            let mut changes = index.changes();
            loop {
                match index.look(namespace, name, uid) {
                    Sight::Here(summary) if self.lately.is_under_way(&summary) => {
                        match left_until(begun + WHILE) {
                            Some(left) => changes.next(left).await,
                            None => {
                                self.lately.give_up(&summary, begun);
                                return Ok(Some(self.pending.over(summary)));
                            }
                        }
                    }
                    Sight::Here(summary) => return Ok(Some(self.pending.over(summary))),
                    Sight::Departed => return Ok(None),
                    Sight::Blind => break,
                    Sight::Unseen => {
                        let Some(left) = left_until(begun + PATIENCE) else { break };
                        changes.next(left).await;
                    }
                }
            }
        }
        let live = self.read(kind, namespace, name, whole).await.map_err(|why| why.to_string())?;
        let live = live.filter(|summary| uid.is_empty() || summary.uid == uid);
        if live.is_some() {
            // Anybody can name a kind.
            self.watch(kind);
        }
        Ok(live.map(|summary| self.pending.over(summary)))
    }

    /// Reads an object from the API server, all of it if `whole`, or hears from somebody who began to do so after this call.
    pub(crate) async fn read(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        whole: bool,
    ) -> Result<Option<Arc<Summary>>, Unread> {
        let ApiResource { api_version, plural, .. } = &kind.resource;
        let place = format!("{api_version}/{plural}/{namespace}/{name}/{whole}");
        self.reads.share(&place, self.read_now(kind, namespace, name, whole)).await
    }

    async fn read_now(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        whole: bool,
    ) -> Result<Option<Arc<Summary>>, Unread> {
        let object = self.get(|client| api(client, kind, namespace), name).await;
        self.grants.note(kind, matches!(&object, Err(Unread::Forbidden(_))));
        let Some(object) = object.map_err(|why| why.of(kind))? else { return Ok(None) };
        let rules = self.settings.load().policies.status_rules(&kind.resource.group, &kind.resource.plural);
        let mut summary =
            summarise(&object, &kind.resource, rules).map_err(|error| Unread::Failed(error.to_string()))?;
        if whole {
            summary.whole = serde_json::to_value(object).ok().map(Arc::new);
        }
        Ok(Some(Arc::new(summary)))
    }

    /// Reads an object where `api` says: on any connection, and, where that has died without a word, on a fresh one.
    pub(super) async fn get(
        &self,
        api: impl Fn(&Client) -> Api<DynamicObject>,
        name: &str,
    ) -> Result<Option<DynamicObject>, Unread> {
        let mut answer = tokio::time::timeout(READ_DEADLINE, api(&self.client).get_opt(name)).await;
        if answer.is_err() {
            answer = tokio::time::timeout(READ_DEADLINE, api(&self.fresh).get_opt(name)).await;
        }
        let late = || format!("the API server did not answer twice within {READ_DEADLINE:?}");
        let answer = answer.map_err(|_| Unread::Failed(late()))?;
        answer.map_err(|error| {
            if matches!(&error, kube::Error::Api(status) if status.code == 404) {
                // Not the object is missing, but its kind, or the version.
                self.kinds.expire();
            }
            match error {
                kube::Error::Api(status) if status.code == 403 => Unread::Forbidden(status.message),
                error => Unread::Failed(error.to_string()),
            }
        })
    }
}

/// Why something was not read.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// It is not allowed.
    #[error("{0}")]
    Forbidden(String),
    /// For this reason.
    #[error("{0}")]
    Failed(String),
}

impl Unread {
    /// The same of an object of this kind: what is forbidden says which right is missing.
    fn of(self, kind: &Kind) -> Self {
        match self {
            Self::Forbidden(_) => Self::Forbidden(missing_rule(kind)),
            failed @ Self::Failed(_) => failed,
        }
    }
}
