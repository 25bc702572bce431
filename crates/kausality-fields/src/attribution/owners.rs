//! Who owns a field, whoever asks and however he names it.

use super::Owner;
use super::raw::{self, Entry};
use crate::fieldsv1::FieldsV1Error;
use crate::managed::{self, ManagedError};
use crate::path::{Path, Step};
use crate::set::{FieldSet, Node};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// All that is owned of an object: its `metadata.managedFields`, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims(pub Vec<Claim>);

/// What one entry owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The entry.
    pub owner: Owner,
    /// Its fields; an error if they cannot be read.
    pub fields: Result<FieldSet, FieldsV1Error>,
}

/// Who owns a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owners {
    /// Those who own the field, or parts of it, in order. Without any, nobody does.
    Of(Vec<Owner>),
    /// Nobody owns the field by name, but these own the nearest one above it. Whether this one with it, there is no
    /// telling without a type.
    Above {
        /// The field that they own.
        path: Path,
        /// The owners, in order.
        owners: Vec<Owner>,
    },
    /// It cannot be told, and why.
    Unknown(String),
}

/// How the ownership of one field changed hands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Handover {
    /// The field.
    pub path: Path,
    /// Who owned it before the request.
    pub before: Owners,
    /// Who owns it after.
    pub after: Owners,
}

/// `kubectl`, `nobody`, `helm, hpa (scale)`.
impl fmt::Display for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (owners, of) = match self {
            Self::Of(owners) => (owners, None),
            Self::Above { path, owners } => (owners, Some(path)),
            Self::Unknown(why) => return write!(f, "unknown ({why})"),
        };
        if owners.is_empty() {
            f.write_str("nobody")?;
        }
        for (nth, owner) in owners.iter().enumerate() {
            write!(f, "{}{}", if nth == 0 { "" } else { ", " }, owner.manager)?;
            if !owner.subresource.is_empty() {
                write!(f, " ({})", owner.subresource)?;
            }
        }
        of.map_or(Ok(()), |path| write!(f, " (of {path})"))
    }
}

/// `owned by kubectl, then by kube-controller-manager`.
impl fmt::Display for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.before == self.after {
            true => write!(f, "owned by {}", self.before),
            false => write!(f, "owned by {}, then by {}", self.before, self.after),
        }
    }
}

/// Who owned each of the given fields before a request and who does after, from the texts of
/// `metadata.managedFields` of `oldObject` and of `object`. Fields that are the same text in both are read once.
///
/// The paths may be those of a [`Diff`](crate::Diff), which is made without types: see [`Claims::owners`].
pub fn handovers<'p>(
    before: Option<&str>,
    after: Option<&str>,
    paths: impl IntoIterator<Item = &'p Path>,
) -> Result<Vec<Handover>, ManagedError> {
    let [before, after] = [raw::entries(before)?, raw::entries(after)?];
    let mut read = BTreeMap::new();
    let [before, after] = [Claims::of(&before, &mut read)?, Claims::of(&after, &mut read)?];
    let handover =
        |path: &Path| Handover { path: path.clone(), before: before.owners(path), after: after.owners(path) };
    Ok(paths.into_iter().map(handover).collect())
}

impl Claims {
    /// Reads the text of `metadata.managedFields`. Absent or null, there are no claims.
    pub fn read(list: Option<&str>) -> Result<Self, ManagedError> {
        Self::of(&raw::entries(list)?, &mut BTreeMap::new())
    }

    /// The claims of entries. Sets of fields that were read before are not read again.
    fn of<'a>(
        entries: &[Entry<'a>],
        read: &mut BTreeMap<&'a str, Result<FieldSet, FieldsV1Error>>,
    ) -> Result<Self, ManagedError> {
        let claim = |(nth, entry): (usize, &Entry<'a>)| {
            let fields = read.entry(entry.fields).or_insert_with(|| FieldSet::from_fields_v1(entry.fields));
            Ok(Claim { owner: entry.owner(nth)?, fields: fields.clone() })
        };
        entries.iter().enumerate().map(claim).collect::<Result<_, _>>().map(Self)
    }

    /// Who owns a field.
    ///
    /// The path may be one that was found without types. Of the key of an item it may then know other parts than the
    /// API server (`[name=dns]` for `[port=53,protocol=UDP]`), or only the position: an item is taken to be the one
    /// whose key shares a part and differs in none. Where several are, or none, the owners of what is above answer.
    pub fn owners(&self, path: &Path) -> Owners {
        if let Some((owner, error)) =
            self.0.iter().find_map(|claim| claim.fields.as_ref().err().map(|error| (&claim.owner, error)))
        {
            return Owners::Unknown(format!("{}: {error}", owner.identity()));
        }
        let readable = self.0.iter().filter_map(|claim| Some((&claim.owner, claim.fields.as_ref().ok()?)));
        let looks: Vec<_> = readable.map(|(owner, fields)| (owner, Look::for_path(fields, path))).collect();
        let those = |wanted: &dyn Fn(&Look) -> bool| {
            let mut owners: Vec<Owner> =
                looks.iter().filter(|(_, look)| wanted(look)).map(|(owner, _)| (*owner).clone()).collect();
            owners.sort();
            owners
        };
        let owners = those(&|look| matches!(look, Look::Here));
        if !owners.is_empty() {
            return Owners::Of(owners);
        }
        let nearest = looks.iter().filter_map(|(_, look)| look.above()).max_by_key(|path| path.steps().len());
        if let Some(nearest) = nearest {
            let owners = those(&|look| look.above() == Some(nearest));
            return Owners::Above { path: nearest.clone(), owners };
        }
        match looks.iter().find_map(|(_, look)| look.ambiguous()) {
            Some(at) => {
                Owners::Unknown(format!("the item of {at} that is meant cannot be told without its type"))
            }
            None => Owners::Of(Vec::new()),
        }
    }
}

impl From<Vec<managed::Entry>> for Claims {
    fn from(entries: Vec<managed::Entry>) -> Self {
        let claim = |entry: managed::Entry| Claim {
            owner: Owner {
                manager: entry.manager,
                operation: entry.operation,
                subresource: entry.subresource,
                api_version: entry.api_version,
                time: entry.time,
            },
            fields: Ok(entry.fields),
        };
        Self(entries.into_iter().map(claim).collect())
    }
}

/// What one set says of a path.
enum Look {
    /// It is in the set, or something below it is.
    Here,
    /// The nearest member above it may be owned as a whole, or the way on from it cannot be told.
    Above(Path),
    /// It is in a list whose items go by other names.
    Ambiguous(Path),
    Nowhere,
}

impl Look {
    fn for_path(set: &FieldSet, path: &Path) -> Self {
        let mut set = set;
        let mut way = Path::default();
        let mut owned = None;
        for (nth, step) in path.steps().iter().enumerate() {
            let node = match find(set, step) {
                Ok(node) => node,
                Err(Missing::Absent) => return Self::Nowhere,
                Err(Missing::Ambiguous) => return owned.map_or(Self::Ambiguous(way), Self::Above),
            };
            way = way.join(node.step.clone());
            if nth + 1 == path.steps().len() {
                return Self::Here;
            }
            if node.below.is_empty() {
                return Self::Above(way);
            }
            if node.member {
                owned = Some(way.clone());
            }
            set = &node.below;
        }
        Self::Nowhere
    }

    fn above(&self) -> Option<&Path> {
        match self {
            Self::Above(path) => Some(path),
            _ => None,
        }
    }

    fn ambiguous(&self) -> Option<&Path> {
        match self {
            Self::Ambiguous(path) => Some(path),
            _ => None,
        }
    }
}

enum Missing {
    Absent,
    Ambiguous,
}

/// The node that a step leads to, by whatever name.
fn find<'s>(set: &'s FieldSet, step: &Step) -> Result<&'s Node, Missing> {
    let nodes = set.nodes();
    if let Ok(at) = nodes.binary_search_by(|node| node.step.cmp(step)) {
        return nodes.get(at).ok_or(Missing::Absent);
    }
    match step {
        // In a list that is owned item by item, a position or a set's member says nothing of keys.
        Step::Index(_) if nodes.iter().any(|node| !matches!(node.step, Step::Field(_))) => {
            Err(Missing::Ambiguous)
        }
        Step::Key(parts) => {
            let mut kin = nodes.iter().filter(|node| matches!(node.step, Step::Key(_)));
            let mut alike = kin.clone().filter(|node| are_alike(parts, &node.step));
            match (alike.next(), alike.next()) {
                (Some(node), None) => Ok(node),
                (Some(_), Some(_)) => Err(Missing::Ambiguous),
                // If the keys have parts in common, the item is just not there.
                (None, _) if kin.clone().all(|node| shares_a_name(parts, &node.step)) => Err(Missing::Absent),
                (None, _) => kin.next().map_or(Err(Missing::Absent), |_| Err(Missing::Ambiguous)),
            }
        }
        _ => Err(Missing::Absent),
    }
}

type Parts = [(std::borrow::Cow<'static, str>, crate::scalar::Scalar)];

/// The values that two keys have under the same names.
fn shared<'a>(parts: &'a Parts, step: &'a Step) -> impl Iterator<Item = bool> + 'a {
    let others = match step {
        Step::Key(others) => others.as_slice(),
        _ => &[],
    };
    parts.iter().filter_map(move |(name, value)| {
        others.iter().find(|(other, _)| other == name).map(|(_, other)| other == value)
    })
}

fn shares_a_name(parts: &Parts, step: &Step) -> bool {
    shared(parts, step).next().is_some()
}

fn are_alike(parts: &Parts, step: &Step) -> bool {
    shares_a_name(parts, step) && shared(parts, step).all(|same| same)
}
