//! Drifts and objects as people name them: `e675`, `drift/e675380dcb6f9bf1`, `deployment/web`.

use anyhow::{Result, bail};
use kausality_api::{drift::Drift, text::plain};
use kausality_cluster::{Kinds, UnknownKind};

use super::{Entry, Scope};

/// What a person typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// A drift, by the beginning of its name.
    Id(String),
    /// The child or the parent of drifts.
    Object(ObjectName),
}

/// `KIND/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectName {
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// What drifts call themselves.
const OWN: [&str; 6] = ["drift", "drifts", "dr", "clusterdrift", "clusterdrifts", "cdr"];

impl Reference {
    /// Reads what was typed.
    ///
    /// # Errors
    /// If it is neither a name of a drift nor `KIND/NAME`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let id = match text.split_once('/') {
            None => text,
            Some((kind, name)) if is_own(kind) => name,
            Some(_) => return Ok(Self::Object(ObjectName::parse(text)?)),
        };
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.')) {
            bail!("{text:?} is neither the id of a drift nor KIND/NAME of a child or parent");
        }
        Ok(Self::Id(id.to_ascii_lowercase()))
    }

    /// Finds out what kind is meant.
    ///
    /// # Errors
    /// If the cluster cannot be asked.
    pub(crate) async fn resolve(self, kinds: &Kinds) -> Result<Wanted> {
        Ok(match self {
            Self::Id(id) => Wanted::Id(id),
            Self::Object(name) => Wanted::Object(name.resolve(kinds).await?),
        })
    }
}

/// Whether a kind is one of the ledger's own.
fn is_own(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    OWN.contains(&kind.strip_suffix(".kausality.io").unwrap_or(&kind))
}

impl ObjectName {
    /// Reads `KIND/NAME`.
    ///
    /// # Errors
    /// If it is something else.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match text.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self { kind: kind.to_owned(), name: name.to_owned() })
            }
            _ => bail!("{text:?} is not KIND/NAME, as deployment/web is"),
        }
    }

    /// Finds out what kind is meant. One that is not served any more is taken by its word: drifts outlive definitions.
    ///
    /// # Errors
    /// If the cluster cannot be asked.
    pub(crate) async fn resolve(self, kinds: &Kinds) -> Result<NamedObject> {
        let group = self.kind.split_once('.').map(|(_, group)| group.to_owned());
        let kind = match kinds.named(&self.kind).await {
            Ok(kind) => kind.resource.kind.clone(),
            Err(UnknownKind::NotServed(_)) => self.kind.split('.').next().unwrap_or_default().to_owned(),
            Err(error) => return Err(error.into()),
        };
        Ok(NamedObject { kind, group, name: self.name })
    }
}

/// An object by its kind, in any group unless one was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedObject {
    pub(crate) kind: String,
    pub(crate) group: Option<String>,
    pub(crate) name: String,
}

impl NamedObject {
    /// Whether it is this object.
    pub(crate) fn is(&self, api_version: &str, kind: &str, name: &str) -> bool {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.name == name
            && self.kind.eq_ignore_ascii_case(kind)
            && self.group.as_deref().is_none_or(|wanted| wanted == group)
    }

    /// Whether it is the child of a drift.
    pub(crate) fn is_child(&self, drift: &Drift) -> bool {
        let child = &drift.spec.child;
        self.is(&child.api_version, &child.kind, &child.name)
    }

    /// Whether it is the parent of a drift.
    pub(crate) fn is_parent(&self, drift: &Drift) -> bool {
        let parent = &drift.spec.parent;
        self.is(&parent.api_version, &parent.kind, &parent.name)
    }
}

impl std::fmt::Display for NamedObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&plain(&format!("{}/{}", self.kind, self.name)))
    }
}

/// What a reference means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The drift whose name begins so.
    Id(String),
    /// Drifts of this child or parent.
    Object(NamedObject),
}

impl Wanted {
    /// Those of the drifts that are meant; perhaps none.
    ///
    /// # Errors
    /// If an id means several.
    pub(crate) fn find(&self, entries: Vec<Entry>) -> Result<Vec<Entry>> {
        let name = |entry: &Entry| entry.drift.metadata.name.clone();
        Ok(match self {
            Self::Object(object) => {
                let is_it = |entry: &Entry| object.is_child(&entry.drift) || object.is_parent(&entry.drift);
                entries.into_iter().filter(is_it).collect()
            }
            Self::Id(id) => {
                let found: Vec<Entry> =
                    entries.into_iter().filter(|entry| name(entry).starts_with(id)).collect();
                if let Some(exact) = found.iter().find(|entry| name(entry) == *id) {
                    return Ok(vec![exact.clone()]);
                }
                if found.len() > 1 {
                    bail!("{}", ambiguous(id, &found));
                }
                found
            }
        })
    }

    /// The same, if any was found.
    ///
    /// # Errors
    /// If none was.
    pub(crate) fn found(&self, found: Vec<Entry>, scope: &Scope) -> Result<Vec<Entry>> {
        if found.is_empty() {
            let hint = match scope {
                Scope::Namespace(_) => ": name another namespace with -n, or look in all with -A",
                _ => "",
            };
            match self {
                Self::Id(id) => bail!("there is no drift {id:?} {scope}{hint}"),
                Self::Object(object) => bail!("there is no drift of {object} {scope}{hint}"),
            }
        }
        Ok(found)
    }
}

/// How many drifts are named where one was meant.
const SHOWN: usize = 5;

/// That several are meant, and which.
pub(super) fn ambiguous(name: &str, found: &[Entry]) -> String {
    let line = |entry: &Entry| {
        let Drift { metadata, spec, status, .. } = &entry.drift;
        plain(&format!("{} ({}, {})", metadata.name, spec.summary.child, status.state.as_str())).into_owned()
    };
    let shown: Vec<String> = found.iter().take(SHOWN).map(line).collect();
    let more = match found.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{name:?} means {} drifts: {}{more}", found.len(), shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_objects_are_told_apart() {
        for (text, expected) in [
            ("e675", "Id e675"),
            ("E675", "Id e675"),
            ("drift/e675", "Id e675"),
            ("drifts.kausality.io/e675", "Id e675"),
            ("cdr/e675", "Id e675"),
            ("deployment/web", "Object deployment web"),
            ("deploy.apps/web", "Object deploy.apps web"),
            ("", "error"),
            ("drift/", "error"),
            ("web server", "error"),
            ("a/b/c", "error"),
            ("/web", "error"),
            ("deployment/", "error"),
        ] {
            let shown = match Reference::parse(text) {
                Ok(Reference::Id(id)) => format!("Id {id}"),
                Ok(Reference::Object(object)) => format!("Object {} {}", object.kind, object.name),
                Err(_) => "error".to_owned(),
            };
            assert_eq!(shown, expected, "{text:?}");
        }
    }

    #[test]
    fn a_kind_is_of_any_group_unless_one_is_named() {
        let named = |group: Option<&str>| NamedObject {
            kind: "Bed".into(),
            group: group.map(str::to_owned),
            name: "a".into(),
        };
        assert!(named(None).is("garden.io/v1", "Bed", "a"));
        assert!(named(Some("garden.io")).is("garden.io/v2", "Bed", "a"));
        assert!(!named(Some("hotel.io")).is("garden.io/v1", "Bed", "a"));
        assert!(!named(None).is("garden.io/v1", "Bed", "b"));
        assert!(!named(None).is("garden.io/v1", "Bedroom", "a"));
    }
}
