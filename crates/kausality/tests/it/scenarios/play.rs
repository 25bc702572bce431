//! Plays a scenario, step by step.

use std::{collections::BTreeMap, sync::Arc};

use kausality_api::annotation::Suffix;
use kausality_testbed::eventually;
use serde_json::{Value, json};

use crate::scenarios::{
    format::{Calls, Count, Learn, Outcome, Scenario, Step},
    kinds::{Kind, Target},
    observe,
    plane::{Action, Answer, Audited, Call, PATIENCE, PatchType, Plane},
    value::{Learned, annotations, as_text, at, differences, fill, lay_over, user},
};

/// Manifests that scenarios start from, by name.
pub(crate) type Bases = BTreeMap<String, Value>;

/// A scenario that is being played.
pub(crate) struct Player<'a, P> {
    plane: &'a P,
    bases: &'a Bases,
    namespace: &'a str,
    learned: Learned,
    answers: Vec<Answer>,
    /// Where the audit log was when the scenario began, and when somebody last acted.
    began: usize,
    last: usize,
}

impl<'a, P: Plane> Player<'a, P> {
    pub(crate) fn new(plane: &'a P, bases: &'a Bases, scenario: &'a Scenario) -> Self {
        let namespace = scenario.name.as_str();
        let learned = Learned::from([("namespace".to_owned(), namespace.into())]);
        let began = plane.audited();
        Self { plane, bases, namespace, learned, answers: Vec::new(), began, last: began }
    }

    /// What it has learned.
    pub(crate) fn learned(self) -> Learned {
        self.learned
    }

    /// Goes on with what another has learned.
    pub(crate) fn knowing(mut self, learned: Learned) -> Self {
        self.learned = learned;
        self
    }

    /// Plays steps. An error says which one went otherwise than expected, and how.
    pub(crate) async fn play(&mut self, steps: &[Value]) -> Result<(), String> {
        for (number, step) in steps.iter().enumerate() {
            let step = fill(step, &self.learned);
            let read = serde_json::from_value(step.clone()).map_err(|error| error.to_string());
            let outcome = match read {
                Ok(read) => self.take(read).await,
                Err(error) => Err(error),
            };
            outcome.map_err(|wrong| format!("step {}: {step}\n    {wrong}", number + 1))?;
        }
        Ok(())
    }

    async fn take(&mut self, step: Step) -> Result<(), String> {
        if let Some(expect) = &step.expect {
            return self.act(&step, &expect.0).await;
        }
        if let (Some(text), Some(has)) = (step.wait.as_ref().or(step.check.as_ref()), &step.has) {
            let target = Target::parse(text, self.namespace)?;
            let look = async || {
                let object = self.plane.get(target).await?;
                let events = if has.events.is_some() { self.events(target).await? } else { Vec::new() };
                none_wrong(observe::object(object.as_ref(), &events, has))
            };
            return if step.wait.is_some() { within(look).await } else { look().await };
        }
        if let Some(learn) = &step.learn {
            for (name, learn) in learn {
                let value = within(async || self.find(learn).await).await?;
                self.learned.insert(name.clone(), value);
            }
        }
        if let Some(count) = &step.count {
            within(async || self.has_so_many(count).await).await?;
        }
        let from = if step.since_last { self.last } else { self.began };
        if let Some(calls) = &step.audited {
            let wanted = calls.times.unwrap_or(1);
            within(async || {
                let seen = self.calls(from, calls);
                if seen.len() >= wanted {
                    Ok(())
                } else {
                    Err(format!("{} such calls: {calls:?}", seen.len()))
                }
            })
            .await?;
        }
        if let Some(calls) = &step.never {
            let seen = self.calls(from, calls);
            if !seen.is_empty() {
                return Err(format!("never expected, but seen: {seen:#?}"));
            }
        }
        match &step.nowhere {
            Some(texts) => self.is_nowhere(texts).await,
            None => Ok(()),
        }
    }

    async fn act(&mut self, step: &Step, expected: &Outcome) -> Result<(), String> {
        let who = user(step.user.as_deref().unwrap_or_default());
        let (target, mut action) = self.action(step, step.with.as_ref()).await?;
        let target = Target::parse(&target, self.namespace)?;
        if let Action::Create(body) | Action::Patch { body, .. } = &mut action {
            suffixed(body, target);
        }
        let manager = step.manager.clone();
        let manager = manager.or_else(|| step.apply.is_some().then(|| "kubectl".to_owned()));
        let call = Call { action, dry_run: step.dry_run, field_manager: manager };
        self.last = self.plane.audited();
        if let Some(times) = step.at_once {
            return self.race(&who, target, &call, times, expected).await;
        }
        if !step.also.is_empty() {
            return self.meet(&who, target, call, step, expected).await;
        }
        let outcome = async || {
            let (answer, wrong) = self.outcome(&who, target, &call, expected).await?;
            if step.until { none_wrong(wrong).map(|()| (answer, Vec::new())) } else { Ok((answer, wrong)) }
        };
        let (answer, wrong) = if step.until { within(outcome).await? } else { outcome().await? };
        self.answers.push(answer);
        none_wrong(wrong)
    }

    /// What comes of a call, and what is wrong with that.
    async fn outcome(
        &self,
        who: &str,
        target: Target<'_>,
        call: &Call,
        expected: &Outcome,
    ) -> Result<(Answer, Vec<String>), String> {
        if !expected.audit.is_empty() {
            self.plane.cached(target).await?;
        }
        let answer = self.plane.call(who, target, call).await?;
        let mut wrong = observe::answer(&answer, expected);
        if wrong.is_empty() && !expected.audit.is_empty() {
            let audited = within(async || {
                let calls = self.plane.audit(self.last);
                calls.into_iter().find(|call| call.id == answer.audit_id).ok_or("it is not in the audit log")
            });
            wrong = observe::said(&*audited.await?, &expected.audit);
        }
        Ok((answer, wrong))
    }

    /// The same call many times at once.
    async fn race(
        &mut self,
        who: &str,
        target: Target<'_>,
        call: &Call,
        times: usize,
        expected: &Outcome,
    ) -> Result<(), String> {
        let calls = (0..times).map(|_| self.plane.call(who, target, call));
        let answers = futures::future::try_join_all(calls).await?;
        let (allowed, denied): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.is_allowed());
        let mut wrong: Vec<String> =
            denied.into_iter().flat_map(|answer| observe::answer(answer, expected)).collect();
        if Some(allowed.len()) != expected.allowed {
            wrong.push(format!("expected {:?} to be allowed, not {}", expected.allowed, allowed.len()));
        }
        self.answers.extend(answers);
        none_wrong(wrong)
    }

    /// Several users do the same at once, each with a body of their own.
    async fn meet(
        &mut self,
        who: &str,
        target: Target<'_>,
        call: Call,
        step: &Step,
        expected: &Outcome,
    ) -> Result<(), String> {
        let mut calls = vec![(who.to_owned(), call)];
        for (who, with) in &step.also {
            let (_, action) = self.action(step, Some(with)).await?;
            let call = Call { action, dry_run: step.dry_run, field_manager: step.manager.clone() };
            calls.push((user(who), call));
        }
        let calls = calls.iter().map(|(who, call)| self.plane.call(who, target, call));
        let answers = futures::future::try_join_all(calls).await?;
        let wrong = answers.iter().flat_map(|answer| observe::answer(answer, expected)).collect();
        self.answers.extend(answers);
        none_wrong(wrong)
    }

    async fn action(&self, step: &Step, with: Option<&Value>) -> Result<(String, Action), String> {
        let body = with.cloned().unwrap_or_default();
        let patch = |patch, body| Action::Patch { patch, subresource: step.subresource.clone(), body };
        let part = |name: &str, body| Action::Patch {
            patch: PatchType::Merge,
            subresource: Some(name.to_owned()),
            body,
        };
        Ok(if let Some(manifest) = &step.create {
            let (target, manifest) = self.manifest(manifest).await?;
            (target, Action::Create(manifest))
        } else if let Some(manifest) = &step.apply {
            let (target, manifest) = self.manifest(manifest).await?;
            (target, patch(PatchType::Apply, manifest))
        } else if let Some(target) = &step.patch {
            (target.clone(), patch(step.patch_type.unwrap_or_default(), body))
        } else if let Some(target) = &step.annotate {
            let body = json!({ "metadata": { "annotations": annotations(&body) } });
            (target.clone(), patch(PatchType::Merge, body))
        } else if let Some(target) = &step.scale {
            (target.clone(), part("scale", json!({ "spec": { "replicas": body } })))
        } else if let Some(target) = &step.status {
            (target.clone(), part("status", json!({ "status": body })))
        } else if let Some(target) = &step.delete {
            (target.clone(), Action::Delete { propagation: step.propagation.clone() })
        } else {
            return Err("nothing is done".to_owned());
        })
    }

    /// A manifest: its base, what is laid over it, and the short forms `name`, `owner` and `annotations`.
    async fn manifest(&self, short: &Value) -> Result<(String, Value), String> {
        let mut short = short.clone();
        let fields = short.as_object_mut().ok_or("a manifest is a mapping")?;
        let mut manifest = match fields.remove("base") {
            Some(base) => {
                let base = as_text(&base);
                self.bases.get(&base).cloned().ok_or_else(|| format!("there is no base {base:?}"))?
            }
            None => json!({}),
        };
        if let Some(name) = fields.remove("name") {
            lay_over(&mut manifest, &json!({ "metadata": { "name": name } }));
        }
        if let Some(given) = fields.remove("annotations") {
            lay_over(&mut manifest, &json!({ "metadata": { "annotations": annotations(&given) } }));
        }
        if let Some(owner) = fields.remove("owner") {
            let owner = self.owner(&as_text(&owner)).await?;
            lay_over(&mut manifest, &json!({ "metadata": { "ownerReferences": [owner] } }));
        }
        lay_over(&mut manifest, &short);
        let (kind, name) = (as_text(&manifest["kind"]), as_text(&manifest["metadata"]["name"]));
        Ok((format!("{kind}/{name}"), manifest))
    }

    /// A controller reference to `Kind/name`, or to `Kind/name@uid` if that is not the one that is there.
    async fn owner(&self, text: &str) -> Result<Value, String> {
        let (text, uid) = text.split_once('@').map_or((text, None), |(text, uid)| (text, Some(uid)));
        let target = Target::parse(text, self.namespace)?;
        let uid = match uid {
            Some(uid) => uid.into(),
            None => {
                let owner = self.plane.get(target).await?.ok_or_else(|| format!("{text} does not exist"))?;
                owner["metadata"]["uid"].clone()
            }
        };
        let Target { kind, name, .. } = target;
        Ok(json!({
            "apiVersion": kind.api_version, "kind": kind.name, "name": name, "uid": uid, "controller": true,
            "blockOwnerDeletion": true,
        }))
    }

    async fn find(&self, learn: &Learn) -> Result<Value, String> {
        let objects = match (&learn.of, &learn.kind) {
            (Some(target), _) => {
                self.plane.get(Target::parse(target, self.namespace)?).await?.into_iter().collect()
            }
            (None, Some(kind)) => self.plane.list(Kind::named(kind)?, self.namespace).await?,
            (None, None) => return Err("neither `of` nor `kind`".to_owned()),
        };
        let fits = |object: &&Value| differences(object, &learn.fields).is_empty();
        let found: Vec<&Value> = objects.iter().filter(fits).collect();
        match found.as_slice() {
            [one] => {
                at(one, &learn.field).cloned().ok_or_else(|| format!("{} is absent in {one}", learn.field))
            }
            _ => Err(format!("{} of {} objects fit: {}", found.len(), objects.len(), json!(objects))),
        }
    }

    async fn has_so_many(&self, count: &Count) -> Result<(), String> {
        let objects = self.plane.list(Kind::named(&count.kind)?, self.namespace).await?;
        let fit = objects.iter().filter(|object| differences(object, &count.fields).is_empty()).count();
        if fit == count.is {
            Ok(())
        } else {
            Err(format!("{fit} of {} fit: {}", objects.len(), json!(objects)))
        }
    }

    /// Kausality's events on an object. Those on objects without a namespace are in `default`.
    async fn events(&self, target: Target<'_>) -> Result<Vec<Value>, String> {
        let namespace = if target.kind.namespaced { self.namespace } else { "default" };
        let mut events = self.plane.list(Kind::named("Event")?, namespace).await?;
        events.retain(|event| {
            let about = &event["involvedObject"];
            event["reportingComponent"] == "kausality.io/webhook"
                && about["kind"] == target.kind.name
                && about["name"] == target.name
        });
        Ok(events)
    }

    fn calls(&self, from: usize, wanted: &Calls) -> Vec<Arc<Audited>> {
        let mut calls = self.plane.audit(from);
        calls.retain(|call| call.namespace == self.namespace && observe::is_among(call, wanted));
        calls
    }

    async fn is_nowhere(&self, texts: &[String]) -> Result<(), String> {
        let mut places = vec![("Kausality's log", self.plane.log())];
        for answer in &self.answers {
            places.push(("a warning", answer.warnings.join("\n")));
            if !answer.is_allowed() {
                places.push(("a denial", answer.body.to_string()));
            }
        }
        for (kind, place) in [("Event", "an event"), ("Drift", "a drift"), ("ClusterDrift", "a drift")] {
            for object in self.plane.list(Kind::named(kind)?, self.namespace).await? {
                places.push((place, object.to_string()));
            }
        }
        for call in self.plane.audit(self.began).iter().filter(|call| call.namespace == self.namespace) {
            places.push(("an audit entry", format!("{:?}", call.annotations)));
        }
        let found = texts.iter().flat_map(|text| {
            let places = places.iter().filter(move |(_, seen)| seen.contains(text.as_str()));
            places.map(move |(place, seen)| format!("{text:?} is in {place}: {seen}"))
        });
        none_wrong(found.collect())
    }
}

/// Gives facts that are sent the names that they have on their object.
fn suffixed(body: &mut Value, target: Target<'_>) {
    let Target { kind, namespace, name } = target;
    let generated = body["metadata"]["generateName"].as_str().unwrap_or(name).to_owned();
    let group = kind.api_version.split_once('/').map_or("", |(group, _)| group);
    let suffix = Suffix::of(group, kind.name, if kind.namespaced { namespace } else { "" }, &generated);
    let Some(annotations) = body.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    let sent = std::mem::take(annotations).into_iter();
    *annotations = sent.map(|(key, value)| (suffix.key(&key), value)).collect();
}

fn none_wrong(wrong: Vec<String>) -> Result<(), String> {
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n    ")) }
}

async fn within<T, E: std::fmt::Display>(look: impl AsyncFnMut() -> Result<T, E>) -> Result<T, String> {
    eventually(PATIENCE, "what is expected", look).await.map_err(|error| format!("{error:#}"))
}
