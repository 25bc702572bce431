//! The annotation names, and which of them belong to whom.

use serde_json::Value;

/// Prefix of every annotation of ours.
pub const PREFIX: &str = "kausality.io/";

/// The causal chain, a JSON list of hops ([`crate::trace`]).
pub const TRACE: &str = "kausality.io/trace";
/// Hashes of the users who changed the object's intent ([`crate::identity`]).
pub const UPDATERS: &str = "kausality.io/updaters";
/// Hashes of the users who write the object's status ([`crate::identity`]).
pub const CONTROLLERS: &str = "kausality.io/controllers";
/// The lifecycle phase's high-water mark ([`crate::phase`]).
pub const PHASE: &str = "kausality.io/phase";
/// An older form of [`PHASE`]: `"true"` once initialized.
pub const INITIALIZED: &str = "kausality.io/initialized";
/// Hash of the intent at which the object was seen steady, and since when: `<hash>@<time>`.
pub const SETTLED: &str = "kausality.io/settled";
/// The generation at which a controller last wrote status, for kinds that do not say it themselves.
pub const OBSERVED_GENERATION: &str = "kausality.io/observedGeneration";
/// Which rules of policies have let which child pass, where they do so for a time only.
pub const EXCEPTED: &str = "kausality.io/exceptions";

/// Approvals for once that were used up a moment ago, each with the change that it let pass.
pub const USED: &str = "kausality.io/used";

/// Who wrote the annotations of people's on the object: people, or controllers, whose copies mean nothing.
pub const WRITERS: &str = "kausality.io/writers";

/// Drifts that may pass, a JSON list ([`crate::approval`]).
pub const APPROVALS: &str = "kausality.io/approvals";
/// Drifts that must not pass, a JSON list ([`crate::approval`]).
pub const REJECTIONS: &str = "kausality.io/rejections";
/// Stops every change of the object's children ([`crate::freeze`]).
pub const FREEZE: &str = "kausality.io/freeze";
/// Silences notifications ([`crate::snooze`]).
pub const SNOOZE: &str = "kausality.io/snooze";
/// An older form of [`SNOOZE`]: a bare timestamp.
pub const SNOOZE_UNTIL: &str = "kausality.io/snooze-until";
/// Log or enforce ([`crate::mode`]).
pub const MODE: &str = "kausality.io/mode";
/// Prefix of annotations that become labels of a trace hop: `trace-ticket` is the label `ticket`.
pub const TRACE_LABEL_PREFIX: &str = "kausality.io/trace-";

/// Annotations that only Kausality writes.
pub const SYSTEM: [&str; 10] =
    [TRACE, UPDATERS, CONTROLLERS, PHASE, INITIALIZED, SETTLED, OBSERVED_GENERATION, EXCEPTED, USED, WRITERS];
/// Annotations that people write, beside `trace-*`.
pub const USER: [&str; 6] = [APPROVALS, REJECTIONS, FREEZE, SNOOZE, SNOOZE_UNTIL, MODE];

/// Tells an object's own facts from copies of another's: the suffix of its system annotations, as in
/// `kausality.io/trace.k3v09fa`.
///
/// Controllers copy all annotations of a parent to its children, and some do so again whenever they differ. With one name
/// for all objects, such a copy would replace the child's own facts, and putting them back would make the controller copy
/// again, without end. Inside Kausality, facts have their plain names; the suffix is added and taken off where objects
/// are read and written.
///
/// ```
/// use kausality_api::annotation::{Suffix, TRACE};
///
/// let web = Suffix::of("apps", "Deployment", "shop", "web");
/// let key = web.key(TRACE);
/// assert_eq!(web.fact(&key), Some(TRACE));
/// assert_eq!(Suffix::of("apps", "ReplicaSet", "shop", "web-5d8").fact(&key), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suffix(u64);

const SUFFIX_LENGTH: u32 = 7;

impl Suffix {
    /// The suffix of an object. `name` is its `generateName` if it has one, since a CREATE with it is reviewed before the
    /// name is known.
    #[must_use]
    pub fn of(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        // FNV-1a: short, and the same everywhere. Nobody gains by a collision, since no one else can write these keys.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for part in [group, kind, namespace, name] {
            for byte in part.bytes().chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        Self(hash % 36_u64.pow(SUFFIX_LENGTH))
    }

    /// The suffix of an object that says what it is.
    #[must_use]
    pub fn of_object(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
        let name = match text("/metadata/generateName") {
            "" => text("/metadata/name"),
            generated => generated,
        };
        Self::of(group, text("/kind"), text("/metadata/namespace"), name)
    }

    /// The name under which an annotation of ours is stored on the object: facts with the suffix, all others as they are.
    #[must_use]
    pub fn key(self, name: &str) -> String {
        if owner(name) == Owner::System { format!("{name}.{self}") } else { name.to_owned() }
    }

    /// The plain name of one of the object's own facts, given the name under which it is stored.
    #[must_use]
    pub fn fact(self, key: &str) -> Option<&'static str> {
        let (name, suffix) = key.rsplit_once('.')?;
        let fact = SYSTEM.into_iter().find(|fact| *fact == name)?;
        (suffix.len() == SUFFIX_LENGTH as usize && self.to_string() == suffix).then_some(fact)
    }
}

impl std::fmt::Display for Suffix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = [b'0'; SUFFIX_LENGTH as usize];
        let mut rest = self.0;
        for digit in text.iter_mut().rev() {
            *digit = crate::identity::base36((rest % 36) as u32);
            rest /= 36;
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// Whose an annotation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Kausality's: what others write there is discarded.
    System,
    /// A person's: controllers cannot change it.
    User,
    /// Not one that Kausality knows.
    Foreign,
}

/// Says whose the annotation `key` is.
#[must_use]
pub fn owner(key: &str) -> Owner {
    let Some(rest) = key.strip_prefix(PREFIX) else { return Owner::Foreign };
    if SYSTEM.contains(&key) {
        Owner::System
    } else if USER.contains(&key) || rest.starts_with("trace-") {
        Owner::User
    } else {
        Owner::Foreign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_told_from_copies() {
        let (deployment, replica_set) =
            (Suffix::of("apps", "Deployment", "a", "web"), Suffix::of("apps", "ReplicaSet", "a", "web"));
        for fact in SYSTEM {
            let key = deployment.key(fact);
            assert_eq!(deployment.fact(&key), Some(fact), "{key}");
            assert_eq!(replica_set.fact(&key), None, "{key}");
            assert_eq!(deployment.fact(fact), None, "a plain name is nobody's");
            assert_eq!(owner(&key), Owner::Foreign, "{key}");
        }
        assert_eq!(deployment.key(FREEZE), FREEZE);
        // Names are told apart where they would run together, and namespaces count.
        assert_ne!(Suffix::of("", "A", "b", "c"), Suffix::of("", "A", "", "bc"));
        assert_ne!(Suffix::of("", "A", "b", "c"), Suffix::of("", "A", "d", "c"));
        assert_eq!(deployment.to_string().len(), 7);
    }

    #[test]
    fn each_name_has_one_owner() {
        for key in SYSTEM {
            assert_eq!(owner(key), Owner::System, "{key}");
        }
        for key in USER {
            assert_eq!(owner(key), Owner::User, "{key}");
        }
        assert_eq!(owner("kausality.io/trace-ticket"), Owner::User);
        assert_eq!(owner("kausality.io/probe"), Owner::Foreign);
        assert_eq!(owner("deployment.kubernetes.io/revision"), Owner::Foreign);
        assert_eq!(owner("evil.example.com/kausality.io/trace"), Owner::Foreign);
    }
}
