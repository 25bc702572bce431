//! What Kausality would have written to an object, laid over what the recording shows of it.

use std::collections::BTreeMap;

use kausality_api::annotation::{self, Owner};
use kausality_core::{
    patch::Patch,
    review::{Annotations, Request},
};

/// Annotations by name.
pub(crate) type Values = BTreeMap<String, String>;

/// The annotations of an object that are not as the recording shows them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    /// Kausality's own.
    system: Values,
    /// People's annotations that Kausality took back, pruned, carried along or used up. They hold for as long as
    /// the recording goes on showing what they replace.
    rewritten: BTreeMap<String, Rewritten>,
}

#[derive(Clone, Debug)]
struct Rewritten {
    shown: Option<String>,
    stored: Option<String>,
}

impl Overlay {
    /// The overlay of an object that is seen for the first time: its own system annotations.
    pub(crate) fn of(annotations: &Annotations<'_>) -> Self {
        Self { system: owned(annotations, Owner::System), rewritten: BTreeMap::new() }
    }

    /// The overlay after a request that was allowed with this patch. `recorded` are people's annotations as the
    /// recording shows them in the request's new object.
    pub(crate) fn after(&self, request: &Request<'_>, recorded: &Values, patch: &Patch) -> Self {
        let sent = request.object.as_ref().map(|object| &object.metadata.annotations);
        let mut after =
            Self { system: sent.map(system).unwrap_or_default(), rewritten: self.rewritten.clone() };
        after.rewritten.retain(|key, rewritten| rewritten.shown.as_ref() == recorded.get(key));
        for (key, value) in &patch.annotations {
            if annotation::owner(key) == Owner::User {
                let rewritten = Rewritten { shown: recorded.get(key).cloned(), stored: value.clone() };
                after.rewritten.insert(key.clone(), rewritten);
            }
        }
        after.set(&patch.annotations);
        after
    }

    /// Writes annotations of Kausality's own; `None` removes one.
    pub(crate) fn set<'a>(
        &mut self,
        annotations: impl IntoIterator<Item = (&'a String, &'a Option<String>)>,
    ) {
        for (key, value) in annotations {
            if annotation::owner(key) != Owner::System {
                continue;
            }
            match value {
                Some(value) => self.system.insert(key.clone(), value.clone()),
                None => self.system.remove(key),
            };
        }
    }

    /// Writes an annotation of people's: `before` is what it was, overlay included.
    pub(crate) fn rewrite(&mut self, key: &str, before: Option<&str>, after: Option<String>) {
        let shown = match self.rewritten.remove(key) {
            Some(rewritten) if rewritten.stored.as_deref() == before => rewritten.shown,
            _ => before.map(ToOwned::to_owned),
        };
        self.rewritten.insert(key.to_owned(), Rewritten { shown, stored: after });
    }

    /// Lays the overlay over annotations that the recording shows.
    pub(crate) fn dress(&self, annotations: &mut Annotations<'_>) {
        for key in annotation::SYSTEM {
            annotations.remove(key);
        }
        for (key, value) in &self.system {
            annotations.set(key.clone(), value.clone());
        }
        for (key, rewritten) in &self.rewritten {
            if annotations.get(key) == rewritten.shown.as_deref() {
                match &rewritten.stored {
                    Some(stored) => annotations.set(key.clone(), stored.clone()),
                    None => annotations.remove(key),
                }
            }
        }
    }
}

/// People's annotations of an object, as it shows them.
pub(crate) fn user(annotations: &Annotations<'_>) -> Values {
    owned(annotations, Owner::User)
}

fn system(annotations: &Annotations<'_>) -> Values {
    owned(annotations, Owner::System)
}

fn owned(annotations: &Annotations<'_>, whose: Owner) -> Values {
    (annotations.ours())
        .filter(|(key, _)| annotation::owner(key) == whose)
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}
