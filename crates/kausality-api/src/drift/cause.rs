//! Drifts by their root cause: one controller that comes to want something else changes many children.
//!
//! Nothing in a cluster says that two drifts have the same reason. What can be seen is who acted and when: drifts of one
//! actor that were first seen shortly after each other are taken for one.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{Drift, short_user};

/// Drifts of one actor that were first seen this long after each other at most have one cause.
pub const GAP: SignedDuration = SignedDuration::from_mins(10);

/// How many fields a cause names.
const MAX_FIELDS: usize = 5;

/// Drifts that are taken to have one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// Who acted.
    pub user: String,
    /// The same for tables.
    pub actor: String,
    /// How many drifts there are.
    pub count: usize,
    /// How many of them are open.
    pub open: usize,
    /// Whose children changed, each once: `Deployment shop/web`.
    pub parents: BTreeSet<String>,
    /// The kinds of the children, and how many children there are of each.
    pub kinds: BTreeMap<String, usize>,
    /// What changed in most of the drifts, the most frequent first.
    pub fields: Vec<CommonField>,
    /// When the first of them was seen.
    pub first_seen: Timestamp,
    /// When one of them was last seen.
    pub last_seen: Timestamp,
    /// The drifts, in the order in which they were first seen.
    pub drifts: Vec<DriftKey>,
}

/// A field that changed in most drifts of a cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommonField {
    /// Where, with `[*]` for items of lists; or `create` or `delete`, where whole objects come and go.
    pub path: String,
    /// In how many of the drifts.
    pub count: usize,
}

/// Names a drift.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct DriftKey {
    /// Its namespace; empty for a `ClusterDrift`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl DriftKey {
    /// Names this drift.
    #[must_use]
    pub fn of(drift: &Drift) -> Self {
        Self { namespace: drift.metadata.namespace.clone(), name: drift.metadata.name.clone() }
    }
}

/// The causes of these drifts: those that were last seen most recently first.
#[must_use]
pub fn causes<'a>(drifts: impl IntoIterator<Item = &'a Drift>) -> Vec<Cause> {
    let mut by_user: BTreeMap<&str, Vec<&Drift>> = BTreeMap::new();
    for drift in drifts {
        by_user.entry(&drift.spec.request.user).or_default().push(drift);
    }
    let mut causes: Vec<Cause> =
        by_user.into_values().flat_map(split).filter_map(|one| cause(&one)).collect();
    causes.sort_by(|a, b| b.last_seen.cmp(&a.last_seen).then_with(|| a.user.cmp(&b.user)));
    causes
}

/// Drifts of one user, cut where nothing was seen for a while.
fn split(mut drifts: Vec<&Drift>) -> Vec<Vec<&Drift>> {
    drifts.sort_by_key(|drift| (drift.status.first_seen, DriftKey::of(drift)));
    let mut parts: Vec<Vec<&Drift>> = Vec::new();
    for drift in drifts {
        let last = parts.last().and_then(|part| part.last());
        let follows =
            last.is_some_and(|last| drift.status.first_seen.duration_since(last.status.first_seen) <= GAP);
        match parts.last_mut() {
            Some(part) if follows => part.push(drift),
            _ => parts.push(vec![drift]),
        }
    }
    parts
}

fn cause(drifts: &[&Drift]) -> Option<Cause> {
    let first = drifts.first()?;
    let child = |drift: &&Drift| {
        let child = drift.spec.child.clone();
        (child.kind, child.api_version, child.namespace, child.name)
    };
    let mut kinds = BTreeMap::new();
    for (kind, ..) in drifts.iter().map(child).collect::<BTreeSet<_>>() {
        *kinds.entry(kind).or_default() += 1;
    }
    let parent = |drift: &&Drift| {
        let parent = &drift.spec.parent;
        let separator = if parent.namespace.is_empty() { "" } else { "/" };
        format!("{} {}{separator}{}", parent.kind, parent.namespace, parent.name)
    };
    Some(Cause {
        user: first.spec.request.user.clone(),
        actor: short_user(&first.spec.request.user),
        count: drifts.len(),
        open: drifts.iter().filter(|drift| drift.status.state.is_open()).count(),
        parents: drifts.iter().map(parent).collect(),
        kinds,
        fields: common_fields(drifts),
        first_seen: first.status.first_seen,
        last_seen: drifts.iter().map(|drift| drift.status.last_seen).max()?,
        drifts: drifts.iter().map(|drift| DriftKey::of(drift)).collect(),
    })
}

/// What changed in more than half of the drifts.
fn common_fields(drifts: &[&Drift]) -> Vec<CommonField> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for drift in drifts {
        for path in changed(drift) {
            *counts.entry(path).or_default() += 1;
        }
    }
    let mut fields: Vec<CommonField> = counts
        .into_iter()
        .filter(|(_, count)| 2 * count > drifts.len())
        .map(|(path, count)| CommonField { path, count })
        .collect();
    fields.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.path.cmp(&b.path)));
    fields.truncate(MAX_FIELDS);
    fields
}

/// The fields that one drift changes, each once. All fields of an object that comes or goes say nothing.
fn changed(drift: &Drift) -> BTreeSet<String> {
    match drift.spec.request.operation.as_str() {
        "CREATE" => ["create".to_owned()].into(),
        "DELETE" => ["delete".to_owned()].into(),
        _ => drift.spec.changes.iter().map(|change| of_any_item(&change.path)).collect(),
    }
}

/// A path with `[*]` for every item of a list: containers have other names in every child. Names of fields that need quotes,
/// `["kubernetes.io/arch"]`, stay.
fn of_any_item(path: &str) -> String {
    let mut general = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, item)) = rest.split_once('[') {
        general.push_str(before);
        let end = end_of_item(item);
        let inside = item.get(..end).unwrap_or(item);
        if inside.starts_with('"') {
            general.push('[');
            general.push_str(inside);
            general.push(']');
        } else {
            general.push_str("[*]");
        }
        rest = item.get(end + 1..).unwrap_or_default();
    }
    general.push_str(rest);
    general
}

/// Where the bracket closes that was opened before this text. Brackets in quotes do not count.
fn end_of_item(item: &str) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (at, character) in item.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return at,
            _ => {}
        }
    }
    item.len()
}

#[cfg(test)]
mod tests;
