//! The trace: the chain of hops from the origin of a change to the object that carries it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{annotation::TRACE_LABEL_PREFIX, approval::ApprovalMode, text::shorten};

/// How many hops a trace has at most.
pub const MAX_HOPS: usize = 32;
/// How many bytes a trace has at most, encoded.
pub const MAX_BYTES: usize = 16 * 1024;
/// How many labels a hop gets at most.
pub const MAX_LABELS: usize = 32;

const MAX_USER: usize = 256;
const MAX_NAME: usize = 253;
const MAX_REMARK: usize = 96;
const MAX_LABEL: usize = 256;
const MAX_LABELS_BYTES: usize = 4096;

/// One change of one object on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hop {
    /// The object's apiVersion.
    pub api_version: String,
    /// The object's kind.
    pub kind: String,
    /// The object's name; its `generateName` while it has none.
    pub name: String,
    /// The object's uid, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The generation that the change gave the object, for kinds that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Who sent the request.
    pub user: String,
    /// When, to the second.
    pub timestamp: Timestamp,
    /// The admission request.
    #[serde(default, rename = "requestUID", skip_serializing_if = "Option::is_none")]
    pub request_uid: Option<String>,
    /// The object's `kausality.io/trace-*` annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What let a drift pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<HopApproval>,
    /// Set if nobody asked for the change, and nobody approved it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drift: bool,
}

/// What let a drift pass, as a hop records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HopApproval {
    /// The mode of an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ApprovalMode>,
    /// The policy that approved, as `Kind/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Who approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The hops, origin first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Trace {
    hops: Vec<Hop>,
}

/// A trace that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON list of hops: {0}")]
pub struct BadTrace(String);

impl Trace {
    /// A new trace that starts with this hop.
    #[must_use]
    pub fn origin(hop: Hop) -> Self {
        Self { hops: vec![hop.bounded()] }
    }

    /// Reads an annotation.
    ///
    /// # Errors
    /// If it is no JSON list of hops.
    pub fn decode(text: &str) -> Result<Self, BadTrace> {
        serde_json::from_str(text).map_err(|error| BadTrace(error.to_string()))
    }

    /// Writes the annotation's value.
    #[must_use]
    pub fn encode(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// This trace with one hop more. The origin and the new hop are always kept; what lies between them
    /// goes, oldest first, where the whole would be too long.
    #[must_use]
    pub fn extended(mut self, hop: Hop) -> Self {
        self.hops.push(hop.bounded());
        while self.hops.len() > MAX_HOPS {
            self.hops.remove(1);
        }
        if self.hops.iter().map(Hop::most_bytes).sum::<usize>() <= MAX_BYTES {
            return self;
        }
        let mut bytes = self.encode().len();
        if bytes > MAX_BYTES {
            // Only hops that Kausality did not write can be longer than these bounds.
            self.hops = self.hops.into_iter().map(Hop::bounded).collect();
            bytes = self.encode().len();
        }
        while bytes > MAX_BYTES && self.hops.len() > 2 {
            let gone = self.hops.remove(1);
            bytes = bytes.saturating_sub(serde_json::to_string(&gone).map_or(0, |text| text.len()));
        }
        if bytes > MAX_BYTES {
            self.hops.iter_mut().for_each(|hop| hop.labels.clear());
        }
        self
    }

    /// As much of this trace as takes so many bytes: its origin, and the last hops before the end. Nothing, if not even the
    /// origin does.
    #[must_use]
    pub fn within(&self, bytes: usize) -> Option<Self> {
        if self.encode().len() <= bytes {
            return Some(self.clone());
        }
        let size =
            |hop: &Hop| serde_json::to_string(hop).map_or(usize::MAX, |text| text.len().saturating_add(1));
        let (origin, later) = self.hops.split_first()?;
        // Brackets; each hop pays for a comma.
        let mut room = bytes.saturating_sub(1);
        let mut origin = origin.clone().bounded();
        if size(&origin) > room {
            origin.labels.clear();
        }
        room = room.checked_sub(size(&origin))?;
        let last = |hop: &&Hop| match room.checked_sub(size(hop)) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        };
        let mut hops: Vec<Hop> = later.iter().rev().take_while(last).cloned().collect();
        hops.push(origin);
        hops.reverse();
        Some(Self { hops })
    }

    /// The hops, origin first.
    #[must_use]
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }
}

impl Hop {
    /// More bytes than it takes, encoded: each character may have to be escaped.
    fn most_bytes(&self) -> usize {
        const ESCAPED: usize = 6;
        const FIELDS: usize = 300;
        let Self { api_version, kind, name, uid, user, request_uid, labels, approval, .. } = self;
        let labels: usize = labels.iter().map(|(key, value)| key.len() + value.len() + 2).sum();
        let approval = approval.as_ref().map_or(0, |it| {
            let texts = [&it.policy, &it.by, &it.reason];
            texts.into_iter().flatten().map(String::len).sum::<usize>() + 50
        });
        let ids = [uid, request_uid].into_iter().flatten().map(String::len).sum::<usize>();
        let texts = api_version.len() + kind.len() + name.len() + user.len() + ids + labels + approval;
        texts * ESCAPED + FIELDS
    }

    /// This hop with no text longer than is useful, so that two hops always fit a trace.
    fn bounded(mut self) -> Self {
        bound(&mut self.user, MAX_USER);
        for text in [&mut self.api_version, &mut self.kind, &mut self.name] {
            bound(text, MAX_NAME);
        }
        for text in [&mut self.uid, &mut self.request_uid].into_iter().flatten() {
            bound(text, 36);
        }
        if let Some(approval) = &mut self.approval {
            for text in [&mut approval.policy, &mut approval.by, &mut approval.reason].into_iter().flatten() {
                bound(text, MAX_REMARK);
            }
        }
        let mut room = MAX_LABELS_BYTES;
        self.labels.retain(|key, value| {
            bound(value, MAX_LABEL);
            let size = serde_json::to_string(&(key, &*value)).map_or(usize::MAX, |text| text.len());
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        });
        self
    }
}

fn bound(text: &mut String, max: usize) {
    if text.len() > max {
        *text = shorten(text, max);
    }
    // A character takes up to six bytes in JSON, where it needs an escape.
    let encoded = |text: &str| serde_json::to_string(text).map_or(usize::MAX, |text| text.len());
    if text.len() > max / 3 && encoded(text) > 2 * max {
        *text = shorten(text, max / 3);
    }
}

/// The label that an annotation `kausality.io/trace-*` gives to a hop.
#[must_use]
pub fn label(annotation: &str) -> Option<&str> {
    annotation.strip_prefix(TRACE_LABEL_PREFIX).filter(|label| !label.is_empty())
}

#[cfg(test)]
mod tests;
