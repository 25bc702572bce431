//! Updates of status and metadata: never gated, but nobody writes annotations that are not theirs.

use kausality_api::identity::UserHash;

use super::Draft;
use crate::{
    actor::Actor,
    annotations::{self, Table, Writer, pairs},
    answer,
    child::{self, Child},
    decision::Effect,
    explain::Rule,
    facts::Facts,
    patch::Patch,
    review::{Annotations, Object, Request},
    summary::Summary,
};

impl Draft {
    /// Status updates: never gated, but they show who the controller is and how far it has got.
    pub(super) fn observe(
        &mut self,
        request: &Request<'_>,
        stored: &Object<'_>,
        sent: &Object<'_>,
        user: UserHash,
    ) {
        self.saw(Rule::Class, "a status update is observed, never gated");
        self.decided_by(Rule::Class);
        self.note_status(request, stored, sent, user);
    }

    /// Records what a status shows.
    pub(super) fn note_status(
        &mut self,
        request: &Request<'_>,
        stored: &Object<'_>,
        sent: &Object<'_>,
        user: UserHash,
    ) {
        let (before, after) = (&stored.metadata.annotations, &sent.metadata.annotations);
        let Table { mut wanted, .. } = annotations::updated(before, after, Writer::Bound(None));
        let observed = annotations::observe(&mut wanted, stored, sent, user);
        self.saw(
            Rule::Settled,
            match observed.busy {
                None => "in steady state: settled at this intent".to_owned(),
                Some(busy) => format!("not in steady state: {busy}"),
            },
        );
        self.saw(Rule::Phase, if observed.initialized { "initialized" } else { "initializing" });
        self.decision.patch = Patch::between(after, &wanted);
        let new_facts = annotations::new_facts(&wanted, before);
        if let (false, Some(child)) = (new_facts.is_empty(), Child::of(request)) {
            self.decision.effects.push(Effect::RecordStatus {
                generation: child.generation,
                object: child.id,
                uid: child.uid.unwrap_or_default(),
                status: observed.reading,
                annotations: new_facts,
            });
        }
    }

    /// Updates that leave the intent alone: never gated, but nobody writes annotations that are not theirs.
    pub(super) fn protect(
        &mut self,
        request: &Request<'_>,
        stored: &Object<'_>,
        sent: &Object<'_>,
        user: UserHash,
        facts: &Facts<'_>,
    ) {
        self.saw(Rule::Class, "the intent is unchanged: never gated");
        self.decided_by(Rule::Class);
        let Some(child) = Child::of(request) else { return };
        let mut writer = Writer::Free;
        if annotations::user_annotations_differ(request) {
            let parent = facts.parent.found();
            if child.has_owner {
                self.identify(request, user, parent, &child);
            }
            writer = self.writer(&child, user, parent);
        }
        self.keep(&child, stored, sent, writer);
    }

    /// Leaves the annotations of an object whose intent is unchanged as they are, but for what people edit.
    pub(super) fn keep(
        &mut self,
        child: &Child<'_>,
        stored: &Object<'_>,
        sent: &Object<'_>,
        writer: Writer<'_>,
    ) {
        let (before, after) = (&stored.metadata.annotations, &sent.metadata.annotations);
        let mut table = annotations::updated(before, after, writer);
        if let (true, Some(generation)) =
            (child::annotations_bump_generation(child.id.group(), &child.id.kind), stored.metadata.generation)
        {
            let unchanged = before.same_others(after) && before.ours().eq(pairs(&table.wanted));
            if !unchanged {
                annotations::restamp(&mut table.wanted, generation, generation.saturating_add(1));
            }
        }
        self.finish_annotations(after, table);
    }

    /// Whether whoever acts is bound to leave people's annotations alone.
    pub(super) fn writer<'a>(
        &self,
        child: &Child<'_>,
        user: UserHash,
        parent: Option<&'a Summary>,
    ) -> Writer<'a> {
        let reconciles = self.decision.actor == Some(Actor::Controller) || child.controllers().contains(user);
        if reconciles { Writer::Bound(parent) } else { Writer::Free }
    }

    pub(super) fn finish_annotations(&mut self, sent: &Annotations<'_>, mut table: Table) {
        // What is stored as it was sent was not ignored, as when a patched object comes a second time.
        table.ignored.retain(|key| sent.get(key) != table.wanted.get(key).map(String::as_str));
        if !table.ignored.is_empty() {
            let keys = table.ignored.join(", ");
            self.saw(Rule::Annotations, format!("a controller's change of {keys} is ignored"));
            self.warn(answer::ignored(&keys));
        }
        self.decision.patch = Patch::between(sent, &table.wanted);
    }
}
