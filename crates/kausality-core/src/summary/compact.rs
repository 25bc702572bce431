//! A summary in as little memory as it can be: all of its text in one piece, and packed.
//!
//! Most of it is the trace, and that says what others say, too: what every trace looks like, and the name and the uid of
//! the object itself. A packer that knows these beforehand leaves less of it.

use jiff::Timestamp;
use kausality_api::annotation::{PREFIX, Suffix};
use lz4_flex::block;

use super::{ObjectId, Owner, Summary};
use crate::{intent::IntentHash, managers::StatusWrite, status::Reading};

/// What texts have in common, what they begin with last.
const COMMON: &str = concat!(
    r#"{"kubernetes.io/metadata.name":"app.kubernetes.io/managed-by":"app.kubernetes.io/component":"#,
    r#""app.kubernetes.io/instance":"app.kubernetes.io/part-of":"app.kubernetes.io/version":"app.kubernetes.io/name":"#,
    r#"kube-controller-manager approvals rejections freeze snooze observed-generation updaters initialized phase "#,
    r#"controllers settled trace[{"apiVersion":"apps/v1","kind":"Deployment","name":"","uid":"","generation":,"#,
    r#""user":"system:serviceaccount:kube-system:","timestamp":"2026-01-01T00:00:00Z","labels":{}},"#,
);

/// A [`Summary`] without the name of its object, for those who keep many, and know each by its name.
#[derive(Clone, Debug)]
pub struct Compact {
    generation: Option<i64>,
    deleting: bool,
    intent: IntentHash,
    status: Reading,
    /// To the second, as creation timestamps are.
    created: Option<i64>,
    suffix: Suffix,
    /// The uid after its length; how long the rest is; and the rest, packed: the version, then lists, each after its own
    /// length.
    text: Box<[u8]>,
}

impl From<&Summary> for Compact {
    fn from(summary: &Summary) -> Self {
        let mut rest = Writer::default();
        rest.put(&summary.resource_version);
        rest.count(summary.status_managers.len());
        summary.status_managers.iter().for_each(|manager| rest.put(manager));
        rest.count(summary.status_writes.len());
        for StatusWrite { manager, at } in &summary.status_writes {
            rest.put(manager);
            rest.put(&at.to_string());
        }
        rest.count(usize::from(summary.owner.is_some()));
        if let Some(Owner { api_version, kind, name, uid, namespace }) = &summary.owner {
            [api_version, kind, name, uid].into_iter().for_each(|part| rest.put(part));
            rest.count(usize::from(namespace.is_some()));
            namespace.iter().for_each(|namespace| rest.put(namespace));
        }
        rest.count(usize::from(summary.made_for.is_some()));
        summary.made_for.iter().for_each(|made_for| rest.put(made_for));
        rest.count(usize::from(summary.labels.is_some()));
        summary.labels.iter().for_each(|labels| rest.put(labels));
        rest.count(usize::from(summary.selector.is_some()));
        summary.selector.iter().for_each(|selector| rest.put(selector));
        let annotations =
            summary.annotations().filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value)));
        rest.count(annotations.clone().count());
        for (key, value) in annotations {
            rest.put(key);
            rest.put(value);
        }
        let mut text = Writer::default();
        text.put(&summary.uid);
        text.count(rest.0.len());
        text.0.extend(block::compress_with_dict(&rest.0, &known_beforehand(&summary.id, &summary.uid)));
        Self {
            generation: summary.generation,
            deleting: summary.deleting,
            intent: summary.intent,
            status: summary.status.clone(),
            created: summary.created.map(Timestamp::as_second),
            suffix: summary.suffix,
            text: text.0.into_boxed_slice(),
        }
    }
}

impl Compact {
    /// The uid of the object.
    #[must_use]
    pub fn uid(&self) -> &str {
        Reader(&self.text).next()
    }

    /// The summary of the object, which has this name.
    #[must_use]
    pub fn unpack(&self, id: ObjectId) -> Summary {
        let mut text = Reader(&self.text);
        let uid = text.next();
        let length = text.count();
        // It was packed here, with the same object's name.
        let rest =
            block::decompress_with_dict(text.0, length, &known_beforehand(&id, uid)).unwrap_or_default();
        let mut text = Reader(&rest);
        Summary {
            whole: None,
            id,
            uid: uid.to_owned(),
            resource_version: text.next().to_owned(),
            generation: self.generation,
            deleting: self.deleting,
            intent: self.intent,
            status: self.status.clone(),
            created: self.created.and_then(|second| Timestamp::from_second(second).ok()),
            suffix: self.suffix,
            status_managers: (0..text.count()).map(|_| text.next().to_owned()).collect(),
            status_writes: (0..text.count())
                .filter_map(|_| {
                    let (manager, at) = (text.next().to_owned(), text.next().parse().ok()?);
                    Some(StatusWrite { manager, at })
                })
                .collect(),
            owner: (text.count() > 0).then(|| Owner {
                api_version: text.next().to_owned(),
                kind: text.next().to_owned(),
                name: text.next().to_owned(),
                uid: text.next().to_owned(),
                namespace: (text.count() > 0).then(|| text.next().to_owned()),
            }),
            made_for: (text.count() > 0).then(|| text.next().into()),
            labels: (text.count() > 0).then(|| text.next().into()),
            selector: (text.count() > 0).then(|| text.next().into()),
            annotations: (0..text.count())
                .map(|_| (format!("{PREFIX}{}", text.next()), text.next().to_owned()))
                .collect(),
        }
    }
}

/// What packer and unpacker know before they see the text.
fn known_beforehand(id: &ObjectId, uid: &str) -> Vec<u8> {
    [COMMON, &id.api_version, &id.kind, &id.namespace, &id.name, uid].concat().into_bytes()
}

/// Bits of a length in one byte; the highest says that more follow.
const BITS: u32 = 7;

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn put(&mut self, text: &str) {
        self.count(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn count(&mut self, mut number: usize) {
        while number >> BITS > 0 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= BITS;
        }
        self.0.push(number as u8);
    }
}

/// Reads what a [`Writer`] wrote.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn next(&mut self) -> &'a str {
        let length = self.count().min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        std::str::from_utf8(text).unwrap_or_default()
    }

    fn count(&mut self) -> usize {
        let mut number = 0;
        let mut shift = 0;
        while let Some((byte, rest)) = self.0.split_first() {
            self.0 = rest;
            number |= usize::from(byte & 0x7f) << shift;
            shift += BITS;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::Object;

    #[track_caller]
    fn check(text: &str) {
        let summary = Summary::of(&Object::parse(text).unwrap());
        let compact = Compact::from(&summary);
        assert_eq!(compact.uid(), summary.uid);
        assert_eq!(format!("{:?}", compact.unpack(summary.id.clone())), format!("{summary:?}"));
    }

    #[test]
    fn a_summary_comes_back_as_it_was() {
        check(r#"{"metadata": {"name": "a"}}"#);
        let long = "ä".repeat(40_000);
        check(&format!(
            r#"{{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {{"name": "web", "namespace": "shop", "uid": "7",
                "resourceVersion": "12", "generation": 3, "deletionTimestamp": "2026-01-01T00:00:00Z",
                "labels": {{"app": "web"}}, "annotations": {{"other": "x", "kausality.io/trace": "{long}",
                    "kausality.io/phase": "", "kausality.io/freeze": "true\u0000"}},
                "ownerReferences": [{{"apiVersion": "example.com/v1", "kind": "App", "name": "shop", "uid": "8", "controller": true}}],
                "managedFields": [{{"manager": "m", "subresource": "status", "time": "2026-01-01T00:00:00Z", "fieldsV1": {{"f:status": {{"f:observedGeneration": {{}}}}}}}},
                    {{"manager": "n", "fieldsV1": {{"f:status": {{"f:observedGeneration": {{}}}}}}}}]}},
                "spec": {{"replicas": 1, "selector": {{"matchLabels": {{"app": "web"}}}}}}, "status": {{"observedGeneration": 3}}}}"#
        ));
    }
}
