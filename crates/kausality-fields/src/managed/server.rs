//! What the API server does to an object and its entries.

use super::state::State;
use super::{Entry, Identity, ManagedError, Operation, cap, decode_value, last_applied};
use crate::ownership::{Claim, Convert, Force, OwnershipError, Rules, SameInAllVersions, Typed};
use crate::path::{Path, Step};
use crate::set::FieldSet;
use crate::typed::{Duplicates, Fault, Type, same};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

/// Who owns what was there before anybody applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The way to the entries of an object.
const ENTRIES: [&str; 2] = ["metadata", "managedFields"];

/// The API server, as far as it keeps the entries of one kind.
///
/// It does not validate, default or prune what is written: what goes in is what would be stored.
#[derive(Debug, Clone)]
pub struct Server<'s, C = SameInAllVersions> {
    /// The type of the objects.
    pub of: Type<'s>,
    /// How ownership changes hands. Fields that a request cannot write, such as the status of anything but a request
    /// for it, are to be ignored there.
    pub rules: Rules<C>,
    /// An object before it is created. For kinds that the API server was built with it is what Go writes of an empty
    /// one (`{"metadata":{},"spec":{"containers":null},"status":{}}`, which [`Type::empty`] comes close to); for
    /// custom resources it has only its `apiVersion` and `kind`. Fields that it has are not owned by who creates an
    /// object with them, only what is below them.
    pub empty: Value,
}

/// Who asks, for what part of the object, and when.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The name of the manager.
    pub manager: &'a str,
    /// The version in which it speaks of the object.
    pub api_version: &'a str,
    /// The part of the object; empty for the object itself.
    pub subresource: &'a str,
    /// The time, as the API server writes it (`2026-01-01T00:00:00Z`).
    pub time: &'a str,
}

/// An object and its entries.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    /// The object without its entries.
    pub object: Value,
    /// The entries in the order of the API server.
    pub entries: Vec<Entry>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerError {
    /// By the rules of ownership: there are conflicts, or an object is not of its type.
    Ownership(OwnershipError<Identity>),
    /// The entries of the object cannot be read.
    ManagedFields(ManagedError),
    /// What is applied is of another version than the request.
    WrongVersion(String),
    /// What is applied must not say who owns what.
    HasManagedFields,
}

impl Served {
    /// The object with its entries.
    pub fn to_value(&self) -> Value {
        let mut object = self.object.clone();
        if self.entries.is_empty() {
            return object;
        }
        if let Some(object) = object.as_object_mut() {
            let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Default::default()));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("managedFields".to_owned(), serde_json::json!(self.entries));
            }
        }
        object
    }
}

impl<'s, C: Convert<'s>> Server<'s, C> {
    /// What is stored when `new` is written in place of `live`, or as a new object.
    pub fn update(
        &self,
        live: Option<&Value>,
        new: &Value,
        request: &Request<'_>,
    ) -> Result<Served, ServerError> {
        let entries = self.entries(live, new, request)?;
        Ok(Served { object: without_entries(new).into_owned(), entries })
    }

    /// The entries that are stored with `new` when it is written in place of `live`, or as a new object.
    pub fn entries(
        &self,
        live: Option<&Value>,
        new: &Value,
        request: &Request<'_>,
    ) -> Result<Vec<Entry>, ServerError> {
        let before = live.unwrap_or(&self.empty);
        let state = state_of_update(before, new, request);
        let uid = before.get("metadata").and_then(|metadata| metadata.get("uid")).and_then(Value::as_str);
        let exists = uid.is_some_and(|uid| !uid.is_empty());
        // Who has no entries has asked for none: they come back with the first apply.
        if state.managers.is_empty() && exists {
            return Ok(Vec::new());
        }
        let state = self.updated(before, new, state, request)?;
        Ok(settled(live, new, state.into_entries()))
    }

    /// What is stored when `config` is applied to `live`, or as a new object.
    pub fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        request: &Request<'_>,
        force: &Force,
    ) -> Result<Served, ServerError> {
        let before = live.unwrap_or(&self.empty);
        let entries = match entries_in(before) {
            Some(entries) => decode_value(entries).map_err(ServerError::ManagedFields)?,
            None => Vec::new(),
        };
        match config.get("apiVersion").and_then(Value::as_str) {
            Some(version) if version == request.api_version => {}
            other => return Err(ServerError::WrongVersion(other.unwrap_or_default().to_owned())),
        }
        if entries_in(config).is_some() {
            return Err(ServerError::HasManagedFields);
        }

        let before = without_entries(before);
        let mut state = State::of(entries);
        if state.managers.is_empty() {
            let first = Request { manager: BEFORE_FIRST_APPLY, ..*request };
            state = self.updated(&self.empty, &before, state, &first)?;
        }
        let attempt = self.applied(&before, config, state.clone(), request, force);
        let (mut object, state) = match attempt {
            Err(ServerError::Ownership(OwnershipError::Conflicts(mut conflicts)))
                if request.manager == last_applied::KUBECTL =>
            {
                let own =
                    last_applied::still_applied(self.of, &before, request.api_version).unwrap_or_default();
                conflicts.0.values_mut().for_each(|fields| *fields = fields.difference(&own));
                conflicts.0.retain(|_, fields| !fields.is_empty());
                if !conflicts.0.is_empty() {
                    return Err(ServerError::Ownership(OwnershipError::Conflicts(conflicts)));
                }
                self.applied(&before, config, state, request, &Force::Yes)?
            }
            attempt => attempt?,
        };
        if request.manager == last_applied::KUBECTL {
            last_applied::refresh(&mut object, config);
        }
        let entries = settled(live, &object, state.into_entries());
        Ok(Served { object, entries })
    }

    /// The entries after an update. What changed goes to whoever asked, in an entry that is as old as the request.
    fn updated(
        &self,
        live: &Value,
        new: &Value,
        mut state: State,
        request: &Request<'_>,
    ) -> Result<State, ServerError> {
        let of = self.of.hiding(&ENTRIES);
        let live = typed(live, of, Duplicates::Allowed)?;
        let new = typed(new, of, Duplicates::Allowed)?;
        // A name that no entry has, so that fields the manager owns already are seen to change hands too.
        let current = Identity {
            manager: String::new(),
            operation: Operation::Update,
            api_version: None,
            subresource: String::new(),
        };
        state.managers = self
            .rules
            .update(&live, &new, request.api_version, state.managers, &current)
            .map_err(ServerError::Ownership)?;
        strip(&mut state, &current);
        if let Some(claim) = state.managers.remove(&current) {
            let id = request.identity(Operation::Update);
            let fields = match state.managers.get(&id) {
                Some(previous) => claim.fields.union(&previous.fields),
                None => claim.fields,
            };
            state.times.insert(id.clone(), Some(request.time.to_owned()));
            state.managers.insert(id, Claim { fields, ..claim });
        }
        cap::cap(&mut state);
        Ok(state)
    }

    /// The object and its entries after an apply. An entry keeps its time if the object stays as it was.
    fn applied(
        &self,
        live: &Value,
        config: &Value,
        mut state: State,
        request: &Request<'_>,
        force: &Force,
    ) -> Result<(Value, State), ServerError> {
        let typed_live = typed(live, self.of, Duplicates::Allowed)?;
        let config = typed(config, self.of, Duplicates::Refused)?;
        let id = request.identity(Operation::Apply);
        let done = self
            .rules
            .apply(&typed_live, &config, request.api_version, state.managers, &id, force)
            .map_err(ServerError::Ownership)?;
        state.managers = done.managers;
        strip(&mut state, &id);
        if done.object.is_some() {
            state.times.insert(id, Some(request.time.to_owned()));
        }
        Ok((done.object.unwrap_or_else(|| live.clone()), state))
    }
}

impl Request<'_> {
    fn identity(&self, operation: Operation) -> Identity {
        Identity {
            manager: if self.manager.is_empty() { "unknown" } else { self.manager }.to_owned(),
            operation,
            api_version: (operation == Operation::Update).then(|| self.api_version.to_owned()),
            subresource: self.subresource.to_owned(),
        }
    }
}

pub(super) fn typed<'s, 'v>(
    value: &'v Value,
    of: Type<'s>,
    duplicates: Duplicates,
) -> Result<Typed<'s, 'v>, ServerError> {
    of.validate(value, duplicates)?;
    Ok(Typed::new(value, of))
}

/// The entries that an update starts from: those that it brings, so that a client can correct them, else those that
/// are there. What cannot be read is as good as none.
fn state_of_update(live: &Value, new: &Value, request: &Request<'_>) -> State {
    let of = |object: &Value| {
        entries_in(object).and_then(|entries| decode_value(entries).ok()).unwrap_or_default()
    };
    if !request.subresource.is_empty() {
        return State::of(of(live));
    }
    if is_reset(new) {
        return State::default();
    }
    let brought = of(new);
    State::of(if brought.is_empty() { of(live) } else { brought })
}

/// Whether a client asks to forget who owns what: by no entry, or by a single one that says nothing.
fn is_reset(object: &Value) -> bool {
    let nothing = |entry: &Value| entry.as_object().is_some_and(|entry| entry.is_empty());
    match entries_in(object).and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([entry]) => nothing(entry),
        _ => false,
    }
}

fn entries_in(object: &Value) -> Option<&Value> {
    object.get(ENTRIES[0])?.get(ENTRIES[1]).filter(|entries| !entries.is_null())
}

fn without_entries(object: &Value) -> Cow<'_, Value> {
    let mut object = Cow::Borrowed(object);
    if object.pointer("/metadata/managedFields").is_some()
        && let Some(metadata) = object.to_mut().pointer_mut("/metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("managedFields");
    }
    object
}

/// Takes from an entry what is never owned.
fn strip(state: &mut State, id: &Identity) {
    if let Some(claim) = state.managers.get_mut(id) {
        claim.fields = claim.fields.difference(&NEVER_OWNED);
        if claim.fields.is_empty() {
            state.managers.remove(id);
        }
    }
}

static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    const METADATA: [&str; 9] = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let path = |names: &[&str]| names.iter().map(|name| Step::Field((*name).to_owned())).collect::<Path>();
    let top = ["apiVersion", "kind", "metadata"].into_iter().map(|name| path(&[name]));
    top.chain(METADATA.into_iter().map(|name| path(&["metadata", name]))).collect()
});

/// If nothing but times differs from what is there, what is there stays: a write that changes nothing leaves no trace.
fn settled(live: Option<&Value>, object: &Value, entries: Vec<Entry>) -> Vec<Entry> {
    let Some(live) = live.filter(|live| same_but_entries(live, object)) else { return entries };
    let Some(Ok(before)) = entries_in(live).map(decode_value) else { return entries };
    let alike = |(one, other): (&Entry, &Entry)| {
        let Entry { manager, operation, api_version, time: _, fields, subresource } = one;
        (manager, operation, api_version, fields, subresource)
            == (&other.manager, &other.operation, &other.api_version, &other.fields, &other.subresource)
    };
    let unchanged = before.len() == entries.len() && before.iter().zip(&entries).all(alike);
    if unchanged { before } else { entries }
}

/// Whether two objects are the same, whatever their entries.
fn same_but_entries(one: &Value, other: &Value) -> bool {
    let [Value::Object(one), Value::Object(other)] = [one, other] else { return same(one, other) };
    let within = |name: &str, one: &Value, other: &Value| match (one, other) {
        (Value::Object(one), Value::Object(other)) if name == ENTRIES[0] => {
            let kept = |(name, _): &(&String, &Value)| *name != ENTRIES[1];
            one.iter().filter(kept).count() == other.iter().filter(kept).count()
                && one
                    .iter()
                    .filter(kept)
                    .all(|(name, one)| other.get(name).is_some_and(|other| same(one, other)))
        }
        _ => same(one, other),
    };
    one.len() == other.len()
        && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| within(name, one, other)))
}

impl From<Fault> for ServerError {
    fn from(fault: Fault) -> Self {
        Self::Ownership(OwnershipError::Invalid(fault))
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ownership(error) => error.fmt(f),
            Self::ManagedFields(error) => error.fmt(f),
            Self::WrongVersion(version) => {
                write!(f, "what is applied is of version {version:?}, not of the request's")
            }
            Self::HasManagedFields => f.write_str("metadata.managedFields must not be applied"),
        }
    }
}

impl std::error::Error for ServerError {}
