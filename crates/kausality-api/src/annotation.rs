//! The annotation names, and which of them belong to whom.

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
/// Hash of the intent at which the object was seen steady.
pub const SETTLED: &str = "kausality.io/settled";
/// The generation at which a controller last wrote status, for kinds that do not say it themselves.
pub const OBSERVED_GENERATION: &str = "kausality.io/observedGeneration";
/// Which rules of policies have let which child pass, where they do so for a time only.
pub const EXCEPTED: &str = "kausality.io/exceptions";

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
pub const SYSTEM: [&str; 8] =
    [TRACE, UPDATERS, CONTROLLERS, PHASE, INITIALIZED, SETTLED, OBSERVED_GENERATION, EXCEPTED];
/// Annotations that people write, beside `trace-*`.
pub const USER: [&str; 6] = [APPROVALS, REJECTIONS, FREEZE, SNOOZE, SNOOZE_UNTIL, MODE];

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
