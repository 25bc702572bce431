//! Decides recorded requests one after the other, in the world that they themselves show.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use kausality_api::annotation::{APPROVALS, EXCEPTED};
use kausality_api::approval::{Approval, Entries};
use kausality_api::identity::UserHash;
use kausality_api::policy::Input;
use kausality_api::status::UnjudgedKind;
use kausality_core::{
    Activity, Decision, InputChange, Known, KnownParent, Review, Settings, Summary,
    annotations_bump_generation,
    authority::Authority,
    cause::Cause,
    class::Class,
    decide,
    decision::Effect,
    exceptions::changed_fields,
    gate::Resolution,
    inputs::{self, Changed},
    intent, is_bound_to_conflict, questions,
    review::{BadReview, Object, Operation, Request},
    summary::{ObjectId, group},
};
use kausality_fields::Path;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    around::{self, Around, Changes},
    overlay::{self, Overlay, Values},
    world::{Key, Stored, World},
};

/// The engine of a replay.
#[derive(Debug, Default)]
pub struct Engine {
    settings: Settings,
    world: World,
    clock: Option<Timestamp>,
    /// Whether the recording tells when things happened.
    timed: bool,
    /// What controllers have been seen to do, by the uid of the parent.
    below: HashMap<String, Activity>,
    /// What somebody asked for lately.
    changes: Changes,
}

/// A request, and what became of it.
#[derive(Debug)]
pub struct Judged {
    /// The request's uid.
    pub uid: String,
    /// What was done.
    pub operation: Operation,
    /// The object's apiVersion.
    pub api_version: String,
    /// The object's kind.
    pub kind: String,
    /// The object's namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The object's name; its `generateName` while it has none.
    pub name: String,
    /// The part of the object that was written to.
    pub subresource: String,
    /// What the API server generated the name from; empty if it did not.
    pub generate_name: String,
    /// Who did it.
    pub user: String,
    /// When, as far as the recording shows.
    pub at: Option<Timestamp>,
    /// What changes, of a drift.
    pub fields: Vec<Path>,
    /// The kind of its parent, and whether the parent's status tells how far its controller has got.
    pub parent: Option<(UnjudgedKind, bool)>,
    /// What else changed before it.
    pub around: Around,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a request.
#[derive(Debug)]
pub enum Outcome {
    /// It was decided.
    Decided(Box<Decision>),
    /// It cannot be judged from the recording, and why.
    Unjudged(String),
}

/// Where a review comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A webhook: objects are as they were before the write.
    Webhook,
    /// An audit log: the new object is as it was stored.
    Audit(Option<Timestamp>),
}

/// What a request was before Kausality's annotations were laid over it.
#[derive(Default)]
struct Before {
    /// Those of the stored object.
    overlay: Overlay,
    /// People's annotations, as recorded in the new object.
    recorded: Values,
}

/// The objects of a review, as text.
#[derive(Default, Deserialize)]
struct Texts<'a> {
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "oldObject")]
    old_object: Option<&'a RawValue>,
}

impl Engine {
    /// An engine that knows nothing yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { world: World::new(settings.policies.clone()), settings, ..Self::default() }
    }

    pub(super) fn world(&self) -> &World {
        &self.world
    }

    pub(super) fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// Decides a review and lets the world go on from there.
    ///
    /// # Errors
    /// If the bytes are no review.
    pub fn review(&mut self, bytes: &[u8], source: Source) -> Result<Judged, BadReview> {
        let mut review = Review::parse(bytes)?;
        let texts = texts(review.text);
        self.advance_clock(&review.request, source);
        let before = self.prepare(&mut review.request, &texts, source);

        let mut known = self.know(&review.request);
        let mut decision = decide(&review, &known.facts(&self.settings));
        let mut candidates = Vec::new();
        if decision.may_follow_input() {
            candidates = self.look_around(&review.request, &mut known, &decision);
            if known.input.is_some() || !known.hints.is_empty() {
                decision = decide(&review, &known.facts(&self.settings));
            }
        }
        if let Some(change) = self.clock.and_then(|at| Changed::of(&review.request, &decision, at)) {
            self.changes.note(&self.settings.policies, change);
        }
        if let (true, KnownParent::Found { summary, .. }) = (decision.carries_out, &known.parent)
            && !review.request.is_dry_run()
            && !is_bound_to_conflict(&review.request)
        {
            let user = UserHash::of(&review.request.user_info.username, &review.request.user_info.uid);
            let activity = self.below.entry(summary.uid.clone()).or_default();
            activity.note(user, known.now);
            activity.act_on(known.input.as_ref());
        }
        if !review.request.is_dry_run() && !is_bound_to_conflict(&review.request) {
            self.go_on(&review.request, &texts, &before, &decision, source);
        }
        let fields = match decision.cause {
            Some(Cause::Drift) => changed_fields(&review, &self.settings),
            _ => Vec::new(),
        };
        let parent = match &known.parent {
            KnownParent::Found { summary, resource } => {
                let kind = UnjudgedKind {
                    api_group: summary.id.group().to_owned(),
                    kind: summary.id.kind.clone(),
                    resource: resource.to_string(),
                    last_seen: known.now,
                };
                Some((kind, summary.shows_progress()))
            }
            _ => None,
        };
        let input = known.input.filter(|_| decision.cause != Some(Cause::Drift));
        let input = input.map(|input| {
            let group = input.object.group();
            (group.to_owned(), self.world.resource_of(group, &input.object.kind).to_string())
        });
        let around = Around { parent: around::parent(&known.parent), input, candidates };
        Ok(Judged { fields, parent, around, ..self.judged(&review.request, decision) })
    }

    /// Finds out what else changed, and how what came before a drift could be declared as inputs of the parent.
    fn look_around(
        &mut self,
        request: &Request<'_>,
        known: &mut Known,
        decision: &Decision,
    ) -> Vec<Vec<Input>> {
        let KnownParent::Found { summary, .. } = &known.parent else { return Vec::new() };
        if !self.timed {
            return Vec::new();
        }
        let mut parent = Summary::clone(summary);
        parent.whole = self.world.get(&key_of(&summary.id)).and_then(Stored::whole);
        let candidates = self.changes.look_around(request, &parent, &self.settings.policies, known, decision);
        known.input = self.above(&parent, known.now).or(known.input.take());
        candidates
    }

    /// What the owner of a parent is still about.
    fn above(&mut self, parent: &Summary, now: Timestamp) -> Option<InputChange> {
        let owner = self.world.parent(parent.owner.as_ref()?, &parent.id.namespace);
        let KnownParent::Found { summary, resource } = owner else { return None };
        let below = self.below.get(&summary.uid).cloned().unwrap_or_default();
        inputs::from_above(&self.settings, parent, (&summary, &resource), &below, now)
    }

    /// The time of a request is not in it: the newest write that it shows comes closest.
    fn advance_clock(&mut self, request: &Request<'_>, source: Source) {
        self.timed = matches!(source, Source::Audit(Some(_)));
        let shown = match source {
            Source::Audit(at) => at,
            Source::Webhook => [&request.object, &request.old_object]
                .into_iter()
                .flatten()
                .filter_map(|object| kausality_core::managers::last_write(&object.metadata))
                .max(),
        };
        self.clock = self.clock.max(shown);
    }

    /// Brings the world up to what the request shows, and the request's objects up to what Kausality would have
    /// written to them.
    fn prepare(&mut self, request: &mut Request<'_>, texts: &Texts<'_>, source: Source) -> Before {
        let mut before = Before::default();
        if request.sub_resource == "scale" {
            return before;
        }
        if request.kind.group == *request.resource.group {
            self.world.learn_kind(&request.kind.group, &request.kind.kind, &request.resource.resource);
        }
        if let Some(new) = &request.object {
            before.recorded = overlay::user(&new.metadata.annotations);
        }
        if let (Some(old), Some(text)) = (&mut request.old_object, texts.old_object) {
            before.overlay = self.world.sight(text.get(), old);
            if let Some(new) = &mut request.object {
                // Clients send back what they read.
                before.overlay.dress(&mut new.metadata.annotations);
            }
        }
        if let (Source::Audit(_), Some(old), Some(new)) = (source, &request.old_object, &mut request.object) {
            // An audit log shows only writes that succeeded, with the version that they led to.
            new.metadata.resource_version = old.metadata.resource_version.clone();
        }
        before
    }

    /// What is known for a request's decision.
    pub fn know(&mut self, request: &Request<'_>) -> Known {
        let asked = questions(request, &self.settings);
        let scaled = asked.scaled.as_ref().map(|target| {
            let stored = self.scaled_key(request).and_then(|key| self.world.summary(&key));
            let stored = stored.map(|mut summary| {
                if self.settings.exceptions.asks_for_child()
                    && let Some(object) = self.world.get(&key_of(&summary.id))
                {
                    Arc::make_mut(&mut summary).whole = object.whole();
                }
                summary
            });
            stored.ok_or_else(|| format!("{} {} is not in the recording", target.resource, target.name))
        });
        let owner = match &scaled {
            Some(Ok(summary)) => summary.owner.clone(),
            Some(Err(_)) => None,
            None => asked.parent,
        };
        let mut parent =
            owner.map_or(KnownParent::None, |owner| self.world.parent(&owner, &request.namespace));
        if let (true, KnownParent::Found { summary, .. }) =
            (self.settings.exceptions.asks_for_parent(), &mut parent)
            && let Some(stored) = self.world.get(&key_of(&summary.id))
        {
            Arc::make_mut(summary).whole = stored.whole();
        }
        let below = |uid: &str| self.below.get(uid).cloned().unwrap_or_default();
        let stored = request.old_object.as_ref();
        let below_parent = match &parent {
            KnownParent::Found { summary, .. } => below(&summary.uid),
            _ => Activity::default(),
        };
        Known {
            now: self.clock.unwrap_or(Timestamp::UNIX_EPOCH),
            timed: self.timed,
            input: below_parent.input.clone(),
            below_parent,
            below: stored.map(|stored| below(&stored.metadata.uid)).unwrap_or_default(),
            hints: Vec::new(),
            parent,
            scaled,
            namespace: asked.namespace.as_deref().and_then(|name| self.world.namespace(name)),
            exception: None,
            authority: Authority::Unasked,
        }
    }

    /// The object behind a `scale` request.
    fn scaled_key(&self, request: &Request<'_>) -> Option<Key> {
        Some(Key {
            group: request.resource.group.to_string(),
            kind: self.world.kind_of(&request.resource.group, &request.resource.resource)?.to_owned(),
            namespace: request.namespace.to_string(),
            name: request.name.to_string(),
        })
    }

    /// The recorded cluster let every request pass, so the world goes on with it; but what Kausality would
    /// have denied leaves none of its annotations.
    fn go_on(
        &mut self,
        request: &Request<'_>,
        texts: &Texts<'_>,
        before: &Before,
        decision: &Decision,
        source: Source,
    ) {
        let overlay = match decision.verdict.is_allowed() {
            true => before.overlay.after(request, &before.recorded, &decision.patch),
            false => before.overlay.clone(),
        };
        let new = request.object.as_ref().zip(texts.object);
        let old = request.old_object.as_ref().zip(texts.old_object);
        match (decision.class, old, new) {
            (Class::Scale, ..) => self.scale(request),
            (Class::Status, Some((old, old_text)), Some((new, new_text))) => {
                let written = match source {
                    Source::Webhook => Stored::new(old_text.get(), old, overlay).with_status(new.status),
                    Source::Audit(_) => Stored::new(new_text.get(), new, overlay),
                };
                self.world.write(Key::of(old), written);
            }
            (
                Class::Metadata | Class::Release | Class::Adopt | Class::Relabel | Class::Update | Class::Own,
                Some((old, _)),
                Some((new, text)),
            ) if request.sub_resource.is_empty() => {
                let generation = match source {
                    Source::Webhook => generation_after(old, new),
                    Source::Audit(_) => new.metadata.generation,
                };
                let written = Stored::new(text.get(), new, overlay).with_generation(generation);
                if is_released(new) {
                    self.world.remove(&Key::of(old));
                } else {
                    self.world.write(Key::of(old), written);
                }
            }
            (Class::Create | Class::Own, None, Some((new, text))) => {
                let generation = new.metadata.generation.or(Some(1));
                self.world.create(text.get(), new, overlay, generation);
            }
            (Class::Delete | Class::Own, Some((old, text)), None) => {
                self.delete(request, old, text.get(), before);
            }
            _ => {}
        }
        for effect in &decision.effects {
            self.follow(effect);
        }
    }

    fn scale(&mut self, request: &Request<'_>) {
        #[derive(Default, Deserialize)]
        struct Spec {
            #[serde(default)]
            replicas: i64,
        }
        let spec = request.object.as_ref().and_then(|object| object.intent.field("spec"));
        let spec: Option<Spec> = spec.and_then(|raw| serde_json::from_str(raw.get()).ok());
        if let Some(key) = self.scaled_key(request) {
            self.world.scale(&key, spec.unwrap_or_default().replicas);
        }
    }

    fn delete(&mut self, request: &Request<'_>, old: &Object<'_>, text: &str, before: &Before) {
        let key = Key::of(old);
        if outlives_deletion(request, old) {
            let dying = Stored::new(text, old, before.overlay.clone()).with_deletion();
            self.world.write(key, dying);
        } else {
            self.world.remove(&key);
        }
    }

    fn follow(&mut self, effect: &Effect) {
        match effect {
            Effect::ConsumeOnce { parent, annotations, .. } if annotations.contains_key(EXCEPTED) => {
                self.world.annotate(&key_of(parent), annotations);
            }
            Effect::ConsumeOnce { parent, approval, .. } => {
                let key = key_of(parent);
                let parent = self.world.summary(&key);
                let text = parent.and_then(|parent| parent.annotation(APPROVALS).map(ToOwned::to_owned));
                let left = text.as_deref().and_then(|text| without(text, approval));
                self.world.rewrite(&key, APPROVALS, text.as_deref(), left.as_deref());
            }
            Effect::RecordScale { object, annotations, .. } => {
                self.world.annotate(&key_of(object), annotations);
            }
            // What a status update shows went into its patch, too; what a child's request shows of its parent did not.
            Effect::RecordStatus { object, annotations, .. } => {
                self.world.annotate(&key_of(object), annotations);
            }
            Effect::Report(_) => {}
        }
    }

    fn judged(&self, request: &Request<'_>, decision: Decision) -> Judged {
        // A `scale` is about the object behind it.
        let scaled = self.scaled_key(request).filter(|_| request.sub_resource == "scale");
        let shown = request.old_object.as_ref().or(request.object.as_ref());
        let stored = scaled.as_ref().and_then(|key| self.world.summary(key));
        let api_version = match stored {
            Some(summary) => summary.id.api_version.clone(),
            None => shown.map(|object| object.api_version.to_string()).unwrap_or_default(),
        };
        let generate_name = shown.map(|object| object.metadata.generate_name.to_string()).unwrap_or_default();
        let name = match (&*request.name, shown) {
            ("", Some(object)) => object.metadata.any_name().to_owned(),
            (name, _) => name.to_owned(),
        };
        let outcome = match (&decision.resolution, decision.explanation.deciding()) {
            (Resolution::ParentUnreadable, _) => {
                let why = decision.explanation.steps().iter().find(|step| step.decided);
                Outcome::Unjudged(why.map(|step| step.finding.clone()).unwrap_or_default())
            }
            _ => Outcome::Decided(Box::new(decision)),
        };
        Judged {
            uid: request.uid.to_string(),
            operation: request.operation,
            api_version,
            kind: scaled.map_or_else(|| request.kind.kind.to_string(), |key| key.kind),
            namespace: request.namespace.to_string(),
            name,
            subresource: request.sub_resource.to_string(),
            generate_name,
            user: request.user().to_owned(),
            around: Around::default(),
            at: self.clock,
            fields: Vec::new(),
            parent: None,
            outcome,
        }
    }
}

fn texts(review: &str) -> Texts<'_> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow)]
        request: Texts<'a>,
    }
    serde_json::from_str::<Envelope<'_>>(review).map(|envelope| envelope.request).unwrap_or_default()
}

fn key_of(id: &ObjectId) -> Key {
    Key {
        group: id.group().to_owned(),
        kind: id.kind.clone(),
        namespace: id.namespace.clone(),
        name: id.name.clone(),
    }
}

fn without(text: &str, used: &Approval) -> Option<String> {
    let entries = Entries::<Approval>::decode(text);
    let place = entries.valid().find(|(_, approval)| *approval == used).map(|(place, _)| place)?;
    entries.without(place)
}

/// The generation that the API server gives to an object after admission.
fn generation_after(old: &Object<'_>, new: &Object<'_>) -> Option<i64> {
    let bumps = annotations_bump_generation(group(&old.api_version), &old.kind);
    let annotated = bumps && !same_annotations(old, new);
    let changed = annotated || !intent::same(&old.intent, &new.intent);
    old.metadata.generation.map(|generation| generation.saturating_add(i64::from(changed)))
}

fn same_annotations(old: &Object<'_>, new: &Object<'_>) -> bool {
    use kausality_api::annotation::{Owner, owner};
    let (old, new) = (&old.metadata.annotations, &new.metadata.annotations);
    let shown = |(key, _): &(&str, &str)| owner(key) != Owner::System;
    old.same_others(new) && old.ours().filter(shown).eq(new.ours().filter(shown))
}

/// Whether an update takes the last finalizer off an object that is being deleted, and so removes it.
fn is_released(new: &Object<'_>) -> bool {
    new.metadata.is_deleting() && new.metadata.finalizers.is_empty() && &*new.kind != "Pod"
}

/// Whether an object is still there after a DELETE: for its finalizers, for those that its propagation
/// policy adds, or, a running Pod, for its grace period.
fn outlives_deletion(request: &Request<'_>, old: &Object<'_>) -> bool {
    let options = request.options.clone().unwrap_or_default();
    if !old.metadata.finalizers.is_empty() || matches!(&*options.propagation_policy, "Foreground" | "Orphan")
    {
        return true;
    }
    &*old.kind == "Pod"
        && !old.metadata.is_deleting()
        && options.grace_period_seconds != Some(0)
        && is_bound(old)
}

/// Whether a Pod is on a node, where a kubelet must stop it.
fn is_bound(pod: &Object<'_>) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        #[serde(default)]
        node_name: String,
    }
    let spec = pod.intent.field("spec").and_then(|raw| serde_json::from_str::<Spec>(raw.get()).ok());
    spec.is_some_and(|spec| !spec.node_name.is_empty())
}
