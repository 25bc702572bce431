//! Why the API server refuses, in words that help.

use kausality_api::text::shorten;
use kausality_fields::{
    Path, Step,
    managed::{Request, Server},
    ownership::{Force, Rules},
    places::{self, Place, Places},
    typed::Type,
};
use kube::core::Status;
use serde_json::Value;

use super::{
    changes::essence,
    place,
    planned::{Problem, Why},
};

/// What is known of the object that was refused. Nothing of it is secret any more.
#[derive(Clone, Copy)]
pub(super) struct Refused<'a> {
    pub(super) live: Option<&'a Value>,
    pub(super) manifest: &'a Value,
    pub(super) of: Option<Type<'a>>,
    pub(super) manager: &'a str,
}

/// Characters of a message that are shown: the API server may quote whole objects.
const LONGEST: usize = 400;

/// What is wrong. There is always something.
pub(super) fn explain(status: &Status, object: Refused<'_>) -> Vec<Problem> {
    let message = status.message.as_str();
    let causes = status.details.iter().flat_map(|details| &details.causes);
    // `<nil>` is what rules that were not checked are said of: there are other causes then.
    let about_fields: Vec<_> = causes.filter(|cause| !matches!(cause.field.as_str(), "" | "<nil>")).collect();
    let kind = status.details.as_ref().map_or("", |details| details.kind.as_str());
    if status.code == 404 && kind == "namespaces" {
        return vec![Problem::new(Why::NoNamespace, format!("{message}, and the plan does not create it"))];
    }
    if message.contains("does not support dry run") {
        let help = "it must declare sideEffects None or NoneOnDryRun, or leave such objects alone";
        return vec![Problem::new(Why::NoDryRun, format!("{}: {help}", short(message)))];
    }
    if let Some(right) = missing_right(message).filter(|_| status.code == 403) {
        return vec![Problem::new(Why::Forbidden, right)];
    }
    if is_denial(message) {
        return vec![Problem::new(Why::Denied, short(message))];
    }
    if status.code == 422 && !about_fields.is_empty() {
        return about_fields.iter().map(|cause| field(&cause.field, &cause.message, object)).collect();
    }
    if let Some((_, complaints)) = message.split_once("failed to create typed patch object") {
        return undeclared(complaints, object);
    }
    if let Some((_, complaints)) = message.split_once("strict decoding error: ") {
        let complaint = |text: &str| Problem::new(Why::Invalid, short(text));
        return complaints.split(", ").map(complaint).collect();
    }
    let why = match status.code {
        400 | 422 => Why::Invalid,
        403 => Why::Denied,
        _ => Why::Failed,
    };
    let message = if message.is_empty() { status.reason.as_str() } else { message };
    vec![Problem::new(why, short(message))]
}

fn short(message: &str) -> String {
    shorten(message.trim(), LONGEST)
}

/// `… User "bob" cannot patch resource "deployments" in API group "apps" in the namespace "shop"`.
fn missing_right(message: &str) -> Option<String> {
    let (_, text) = message.split_once("User ")?;
    let (user, text) = text.split_once(" cannot ")?;
    let (verb, text) = text.split_once(" resource ")?;
    let mut words = text.split('"').skip(1).step_by(2);
    let (resource, group) = (words.next()?, words.next()?);
    let place = match words.next() {
        Some(namespace) if text.contains("in the namespace") => format!(" in namespace {namespace}"),
        _ => " at the cluster scope".to_owned(),
    };
    let dot = if group.is_empty() { "" } else { "." };
    let user = user.trim_matches('"');
    let why = match verb {
        "get" => "a plan compares with what is live",
        _ => "a dry-run takes the same rights as the apply",
    };
    Some(format!("{user} may not {verb} {resource}{dot}{group}{place}: {why}"))
}

/// Webhooks, policies, quotas and the like: whoever is asked about the request and not about its fields.
fn is_denial(message: &str) -> bool {
    ["denied the request", "denied request", "exceeded quota", "violates PodSecurity", "is being terminated"]
        .iter()
        .any(|sign| message.contains(sign))
}

/// What the API server says of a field that cannot change.
fn is_immutable(message: &str) -> bool {
    let message = message.to_lowercase();
    let forbids =
        message.contains("updates to") || message.contains("update") && message.contains("may not change");
    [
        "immutable",
        "may not change",
        "cannot change",
        "can not change",
        "cannot be changed",
        "may not be changed",
    ]
    .iter()
    .any(|sign| message.contains(sign))
        || forbids && message.contains("forbidden")
}

fn field(name: &str, message: &str, object: Refused<'_>) -> Problem {
    let wanted = wanted(object);
    let path = place::named(name, &wanted, object.of);
    if object.live.is_some() && is_immutable(message) {
        return Problem {
            why: Why::Immutable,
            message: format!(
                "cannot change: the object must be deleted and created again ({})",
                reason(message)
            ),
            wanted: differences(&path, &wanted, object),
            field: Some(path),
        };
    }
    Problem { why: Why::Invalid, field: Some(path), message: short(message), wanted: Vec::new() }
}

/// The complaint alone: what was wanted is shown apart, and may be a whole Pod.
fn reason(message: &str) -> &str {
    let (kind, rest) = message.split_once(": ").unwrap_or(("", message));
    match kind {
        "Invalid value" => rest.rsplit_once(": ").map_or(rest, |(_, reason)| reason),
        _ => rest,
    }
}

/// The object as it should be, without what the API server sets: it did not get that far.
fn wanted(object: Refused<'_>) -> Value {
    let applied = object.live.zip(object.of).and_then(|(live, of)| {
        let server = Server { of, rules: Rules::new(), empty: Value::Null };
        let api_version = object.manifest["apiVersion"].as_str().unwrap_or_default();
        // The time is of no interest.
        let request = Request { manager: object.manager, api_version, subresource: "", time: "" };
        server.apply(Some(live), object.manifest, &request, &Force::Yes).ok()
    });
    applied.map_or_else(|| object.manifest.clone(), |applied| applied.object)
}

type Difference = (Path, Option<Value>, Option<Value>);

/// What is wanted below a path that is not so; if there is nothing, since another field stands for it, what is wanted
/// around it.
fn differences(path: &Path, wanted: &Value, object: Refused<'_>) -> Vec<Difference> {
    let Some((live, of)) = object.live.zip(object.of) else { return Vec::new() };
    let (old, new) = (essence(live, false), essence(wanted, false));
    let Ok(found) = of.compare(&old, &new) else { return Vec::new() };
    let changed: Vec<Path> =
        found.added.union(&found.modified).union(&found.removed).leaves().iter().collect();
    let below = |steps: &[Step]| -> Vec<Difference> {
        let meant = changed.iter().filter(|other| other.steps().starts_with(steps));
        let at = |object| places::of(of, object).unwrap_or_default();
        let (olds, news) = (at(&old), at(&new));
        let value = |of: &Places<'_, '_>, path: &Path| of.get(path).map(Place::alone);
        meant.map(|path| (path.clone(), value(&olds, path), value(&news, path))).collect()
    };
    let ways = (0..=path.steps().len()).rev().filter_map(|length| path.steps().get(..length));
    ways.map(below).find(|found| !found.is_empty()).unwrap_or_default()
}

/// ` (default/web; apps/v1, Kind=Deployment): .spec.a: field not declared in schema`, or a line each after `errors:`.
fn undeclared(complaints: &str, object: Refused<'_>) -> Vec<Problem> {
    let complaints = complaints.split_once("): ").map_or(complaints, |(_, complaints)| complaints);
    let lines = complaints.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "errors:");
    let problem = |line: &str| match line.strip_prefix('.').and_then(|line| line.split_once(": ")) {
        Some((name, message)) => Problem {
            field: Some(place::named(name, object.manifest, object.of)),
            ..Problem::new(Why::Invalid, short(message))
        },
        None => Problem::new(Why::Invalid, short(line)),
    };
    lines.map(problem).collect()
}

#[cfg(test)]
mod tests;
