//! Updates of status and metadata: never gated, but nobody writes facts that are not theirs.

use kausality_api::{annotation::SETTLED, annotation::TRACE, identity::UserHash};

use super::Draft;
use crate::{
    actor::Actor,
    annotations::{self, Look, Writer, pairs},
    cause::Cause,
    child::{self, Child},
    class::{self, Class},
    decision::Effect,
    explain::Rule,
    facts::Facts,
    gate::Resolution,
    inputs,
    patch::Patch,
    reconciler::Reporter,
    review::{Object, Request},
    settle::Calm,
    trace,
};

impl Draft {
    /// Status updates: never gated, but they show who the controller is and how far it has got.
    pub(super) fn observe(
        &mut self,
        request: &Request<'_>,
        stored: &Object<'_>,
        sent: &Object<'_>,
        user: UserHash,
        facts: &Facts<'_>,
    ) {
        self.saw(Rule::Class, "a status update is observed, never gated");
        self.decided_by(Rule::Class);
        let child = Child::of(request).filter(|_| class::status_stores_metadata(&request.resource.group));
        if child.is_some_and(|child| self.washes_freeze(request, &child)) {
            return;
        }
        self.note_status(request, stored, sent, user, facts);
    }

    /// Records what a status shows.
    pub(super) fn note_status(
        &mut self,
        request: &Request<'_>,
        stored: &Object<'_>,
        sent: &Object<'_>,
        user: UserHash,
        facts: &Facts<'_>,
    ) {
        let Some(child) = Child::of(request) else { return };
        let policies = &facts.settings.policies;
        let rules = policies.status_rules(&request.resource.group, &request.resource.resource);
        let mut by_rules;
        let stored = if *stored.rules() == rules {
            stored
        } else {
            by_rules = stored.clone();
            by_rules.read_by(rules);
            &by_rules
        };
        let before = &stored.metadata.annotations;
        let mut wanted = annotations::stored(before);
        let reporter = Reporter::of(request, stored, sent, user);
        let controller = (reporter == Reporter::Controller).then_some(user);
        let (group, resource) = (&*request.resource.group, &*request.resource.resource);
        let look = Look {
            acts_on_inputs: inputs::acts_on_others(policies, group, resource),
            quiet: facts.settling(group, resource).quiet,
            calm: Calm { now: facts.timed.then_some(facts.now), last_change: facts.below.last, input: None },
            now: facts.now,
        };
        let observed = annotations::observe(&mut wanted, stored, sent, controller, &look);
        self.saw(
            Rule::Settled,
            match observed.busy {
                None => "in steady state: settled at this intent".to_owned(),
                Some(busy) => format!("not in steady state: {busy}"),
            },
        );
        self.saw(Rule::Phase, if observed.initialized { "initialized" } else { "initializing" });
        if reporter == Reporter::Person && self.decision.class == Class::Status {
            self.saw(Rule::Reconciler, "a person asks for something by way of the status: an origin");
            let (trace, _) = trace::of(trace::Source {
                request,
                class: Class::Status,
                child: &child,
                parent: None,
                input: None,
                cause: Some(Cause::Origin),
                resolution: &Resolution::Passed,
                labels: child.trace_labels(),
                now: facts.now,
            });
            wanted.insert(TRACE.to_owned(), trace.encode());
            wanted.remove(SETTLED);
            self.decision.cause = Some(Cause::Origin);
            self.decision.trace = Some(trace);
        }
        self.decision.patch = Patch::between(sent, &wanted);
        let new_facts = annotations::new_facts(&wanted, before);
        if !new_facts.is_empty() {
            self.decision.effects.push(Effect::RecordStatus {
                generation: child.generation,
                object: child.id,
                uid: child.uid.unwrap_or_default(),
                status: observed.reading,
                annotations: new_facts,
            });
        }
    }

    /// Updates that leave the intent alone: never gated, but nobody writes facts.
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
        if self.washes_freeze(request, &child) {
            return;
        }
        let mut writer = Writer::Free;
        if annotations::sender_matters(request) {
            if child.has_owner {
                self.identify(request, user, facts.parent.found(), &child);
            }
            writer = self.writer(&child, user, facts);
            self.writer = Some(writer);
        }
        self.keep(&child, stored, sent, writer);
    }

    /// A binding brings no annotations of ours to its Pod: nobody would have looked at them.
    pub(super) fn bind(&mut self, sent: &Object<'_>) {
        self.saw(Rule::Class, "a Pod is bound to a node: never gated");
        self.decided_by(Rule::Class);
        let mut patch = Patch::between(sent, &Default::default());
        let strays = sent.metadata.annotations.strays();
        patch.annotations.extend(strays.map(|key| (key.to_owned(), None)));
        if !patch.is_empty() {
            self.saw(Rule::Annotations, "those of Kausality are left out");
        }
        self.decision.patch = patch;
    }

    /// Leaves the annotations of an object whose intent is unchanged as they are, but for what people edit.
    pub(super) fn keep(&mut self, child: &Child<'_>, stored: &Object<'_>, sent: &Object<'_>, writer: Writer) {
        let (before, after) = (&stored.metadata.annotations, &sent.metadata.annotations);
        let mut wanted = annotations::kept(before, after, writer);
        if let (true, Some(generation)) =
            (child::annotations_bump_generation(child.id.group(), &child.id.kind), stored.metadata.generation)
        {
            let unchanged = before.same_others(after) && before.ours().eq(pairs(&wanted));
            if !unchanged {
                annotations::restamp(&mut wanted, generation, generation.saturating_add(1));
            }
        }
        if !wanted.keys().eq(annotations::stored(before).keys()) && writer == Writer::Controller {
            self.saw(Rule::Annotations, "its controller leaves out facts: they are not put back");
        }
        self.decision.patch = Patch::between(sent, &wanted);
    }

    /// Whether whoever acts reconciles the object or its parent.
    pub(super) fn writer(&self, child: &Child<'_>, user: UserHash, facts: &Facts<'_>) -> Writer {
        let reconciles = self.decision.actor == Some(Actor::Controller)
            || child.controllers().contains(user)
            || facts.below.users.contains(user);
        if reconciles { Writer::Controller } else { Writer::Free }
    }
}
