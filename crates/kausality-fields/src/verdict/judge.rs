//! How verdicts are found.

use super::{Finding, Report, Status, Subject, Unknown, Verdict, secret};
use crate::attribution::{ANCIENT, Claims, Owner};
use crate::managed::Operation;
use crate::meaning;
use crate::path::{Path, Step};
use crate::places::{self, Place, Places};
use crate::redact::Cover;
use crate::schema::{Schema, TypeRef};
use crate::set::FieldSet;
use crate::typed::{Duplicates, Fault, Type};
use serde_json::Value;

pub(super) fn judge(subject: &Subject<'_>) -> Result<Report, Fault> {
    let (schema, deduced) = (Schema::deduced(), TypeRef::deduced());
    let of = subject.of.unwrap_or(Type::new(&schema, &deduced));
    let redaction = subject.redaction.with_passwords(subject.of, [subject.declared, subject.live]);
    let cover = Cover::of([subject.declared, subject.live], &redaction);
    let stored = cover.is_of_secret().then(|| secret::stored(subject.declared));
    let object = stored.as_deref().unwrap_or(subject.declared);
    of.validate(object, Duplicates::Refused)?;

    let owned = Owned::by(subject.manager, subject.claims, subject.live, subject.of);
    let ownable = |fields: &FieldSet| without_unowned(fields, &owned.fields, subject.status);
    let declared = ownable(&of.field_set(object)?);
    let (live_fields, misfit) = match of.field_set(subject.live) {
        Ok(fields) => (ownable(&fields), None),
        Err(fault) => (FieldSet::new(), Some(Unknown::Misfit(fault.to_string()))),
    };
    let judge = Judge {
        subject,
        cover: &cover,
        values: places::of(of, object)?,
        live: if misfit.is_none() { places::of(of, subject.live)? } else { Places::new() },
        declared,
        misfit,
        live_fields,
        owned,
    };
    Ok(judge.report())
}

/// Who owns what, seen from one manager.
pub(super) struct Owned<'a> {
    /// What the manager owns of the object itself.
    pub(super) fields: FieldSet,
    /// What each entry owns that can be read.
    all: Vec<(&'a Owner, FieldSet, Side)>,
    /// Why an owner may be missing.
    missing: Option<Unknown>,
    /// Why the manager itself may own more.
    missing_own: Option<Unknown>,
}

/// Whose an entry is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Own(Operation),
    Other,
}

impl<'a> Owned<'a> {
    pub(super) fn by(manager: &str, claims: &'a Claims, live: &Value, of: Option<Type<'_>>) -> Self {
        let version = live.get("apiVersion").and_then(Value::as_str);
        let secret = crate::redact::is_secret(live);
        let mut owned = Self {
            fields: FieldSet::new(),
            all: Vec::new(),
            missing: (claims.0.is_empty() && !live.is_null()).then_some(Unknown::Cleared),
            missing_own: None,
        };
        for claim in &claims.0 {
            let owner = &claim.owner;
            let side = match owner.manager == manager && owner.subresource.is_empty() {
                true => Side::Own(owner.operation),
                false => Side::Other,
            };
            match read(claim, version, of) {
                Ok(fields) => {
                    let fields = if secret { secret::stored_fields(&fields) } else { fields };
                    owned.take(owner, fields, side);
                }
                Err(unknown) => {
                    if side != Side::Other {
                        owned.missing_own = Some(unknown.clone());
                    }
                    owned.missing = Some(unknown);
                }
            }
        }
        owned
    }

    fn take(&mut self, owner: &'a Owner, fields: FieldSet, side: Side) {
        if side != Side::Other {
            self.fields = self.fields.union(&fields);
        }
        if owner.manager == ANCIENT && self.missing.is_none() {
            self.missing = Some(Unknown::Ancient);
        }
        self.all.push((owner, fields, side));
    }

    /// The entries that own a field.
    fn of(&self, path: &Path) -> impl Iterator<Item = (&'a Owner, Side)> {
        self.all.iter().filter(|(_, fields, _)| fields.has(path)).map(|(owner, _, side)| (*owner, *side))
    }

    fn is_below(&self, path: &Path) -> bool {
        self.all.iter().any(|(_, fields, _)| is_below(fields, path))
    }
}

/// The fields of a claim as they are under the type of today.
fn read(
    claim: &crate::attribution::Claim,
    version: Option<&str>,
    of: Option<Type<'_>>,
) -> Result<FieldSet, Unknown> {
    let entry = || claim.owner.identity().to_string();
    let fields = match &claim.fields {
        Ok(fields) => fields,
        Err(error) => return Err(Unknown::Unreadable(format!("{}: {error}", entry()))),
    };
    if version.is_some_and(|version| version != claim.owner.api_version) {
        return Err(Unknown::OtherVersion(entry()));
    }
    match of {
        Some(of) => {
            of.reconcile(fields.clone()).map_err(|fault| Unknown::Misfit(format!("{}: {fault}", entry())))
        }
        None => Ok(fields.clone()),
    }
}

struct Judge<'a, 's, 'v> {
    subject: &'a Subject<'a>,
    cover: &'a Cover<'a>,
    declared: FieldSet,
    values: Places<'s, 'v>,
    live: Places<'s, 'v>,
    live_fields: FieldSet,
    misfit: Option<Unknown>,
    owned: Owned<'a>,
}

impl Judge<'_, '_, '_> {
    fn report(&self) -> Report {
        let mut findings = Vec::new();
        for path in &self.declared.leaves() {
            let verdict = self.fought(&path).or_else(|| self.on_declared(&path));
            findings.extend(verdict.map(|verdict| self.finding(path, verdict)));
        }
        for path in &self.owned.fields.leaves() {
            if !self.declared.has(&path) && !is_below(&self.declared, &path) && !is_never_owned(&path) {
                let verdict = self.fought(&path).or_else(|| self.on_undeclared(&path));
                findings.extend(verdict.map(|verdict| self.finding(path, verdict)));
            }
        }
        findings.sort_by(|a, b| a.path.cmp(&b.path));
        let (mut unowned, mut foreign) = (FieldSet::new(), FieldSet::new());
        for path in &self.live_fields.leaves() {
            if self.declared.has(&path) || self.owned.fields.has(&path) || self.is_list_without_type(&path) {
                continue;
            }
            if self.owned.of(&path).next().is_some() {
                foreign.insert(&path);
            } else if self.owned.missing.is_none() {
                unowned.insert(&path);
            }
        }
        Report { findings, unowned, foreign }
    }

    fn fought(&self, path: &Path) -> Option<Verdict> {
        let fight = self.subject.fights.at(path)?;
        let takes_part = fight.managers.iter().any(|manager| manager == self.subject.manager);
        takes_part.then_some(Verdict::Fight(fight))
    }

    /// The verdict on a field that is declared; `None` if all is well.
    fn on_declared(&self, path: &Path) -> Option<Verdict> {
        let own = self.owned.fields.has(path);
        // To the API server null is as good as absent.
        let live = self.live.get(path).filter(|live| !live.value.is_null());
        let equal = self.values.get(path).is_some_and(|declared| agree(declared, live, own));
        let unknown = |reason: &Unknown| Some(Verdict::Unknown { reason: reason.clone(), equal });
        if let Some(misfit) = &self.misfit {
            return unknown(misfit);
        }
        if self.owned.missing == Some(Unknown::Cleared) {
            return unknown(&Unknown::Cleared);
        }
        if self.is_list_without_type(path) {
            return unknown(&Unknown::NoType);
        }
        let others: Vec<&Owner> =
            self.owned.of(path).filter(|(_, side)| *side == Side::Other).map(|(owner, _)| owner).collect();
        match (own, others.is_empty(), equal) {
            (true, true, true) => None,
            (true, false, true) => Some(Verdict::CoOwned),
            (true, true, false) => Some(Verdict::OwnDrift),
            (true, false, false) => Some(match self.on_others(path, &others, false) {
                Verdict::Delegated => Verdict::Delegated,
                _ => Verdict::OwnDrift,
            }),
            // Declared without parts, it has nothing that others could take.
            (false, false, true) if self.is_empty(path) => None,
            (false, false, equal) => Some(self.on_others(path, &others, equal)),
            (false, true, true) if live.is_none() => None,
            (false, true, _) => match (&self.owned.missing, live) {
                (Some(reason), Some(_)) => unknown(reason),
                _ if equal => Some(Verdict::Unowned),
                _ => Some(Verdict::OwnDrift),
            },
        }
    }

    /// Whether what is declared is an object or a list for others to have parts in, and no more.
    fn is_empty(&self, path: &Path) -> bool {
        let is_empty = |place: &Place<'_, '_>| place.value.is_null() || is_bare(&place.value);
        self.values.get(path).is_some_and(is_empty) && self.live.get(path).is_some_and(Place::is_separable)
    }

    /// The verdict on a declared field that only others own.
    fn on_others(&self, path: &Path, others: &[&Owner], equal: bool) -> Verdict {
        if let Some(reason) = &self.owned.missing_own {
            return Verdict::Unknown { reason: reason.clone(), equal };
        }
        // Whose changes these were is not known any more. They may have been the manager's own.
        if others.iter().all(|owner| owner.manager == ANCIENT) {
            return Verdict::Unknown { reason: Unknown::Ancient, equal };
        }
        let live = self.live.get(path).map(|place| &*place.value);
        let may = |owner: &&Owner| {
            self.subject.delegations.iter().any(|delegation| delegation.allows(path, &owner.manager, live))
        };
        if others.iter().all(may) { Verdict::Delegated } else { Verdict::Takeover { equal } }
    }

    /// The verdict on a field that the manager owns and does not declare.
    fn on_undeclared(&self, path: &Path) -> Option<Verdict> {
        // A list that is declared as a whole for want of a type has its verdict already, and so has what is to be of
        // another shape.
        if self.subject.of.is_none() && is_above(&self.declared, path) || self.is_in_whole(path) {
            return None;
        }
        if let Some(misfit) = &self.misfit {
            return Some(Verdict::Unknown { reason: misfit.clone(), equal: false });
        }
        // What is in an object or a list that was applied without parts stays, and holds it in place.
        let goes = self.is_alone(path) && !is_below(&self.live_fields, path);
        let removed = self.live.contains_key(path) && (goes || self.goes_with_item(path));
        match (&self.owned.missing, removed) {
            (Some(reason), true) if *reason != Unknown::Ancient => {
                Some(Verdict::Unknown { reason: reason.clone(), equal: false })
            }
            _ => Some(Verdict::Release { removed }),
        }
    }

    /// Whether the manager has applied a field, and nobody else owns it.
    fn is_alone(&self, path: &Path) -> bool {
        let mut owners = self.owned.of(path).peekable();
        owners.peek().is_some() && owners.all(|(_, side)| side == Side::Own(Operation::Apply))
    }

    /// Whether a field is in an item of a list that goes: with all that is in it, whoever owns that.
    fn goes_with_item(&self, path: &Path) -> bool {
        let is_declared = |item: &Path| self.declared.has(item) || is_below(&self.declared, item);
        way(path).any(|item| {
            matches!(item.steps().last(), Some(Step::Key(_) | Step::Value(_)))
                && !is_declared(&item)
                && self.is_alone(&item)
        })
    }

    /// Whether a field is part of one that is declared as a value without parts.
    fn is_in_whole(&self, path: &Path) -> bool {
        let is_whole = |place: &Place<'_, '_>| !place.value.is_null() && !place.is_separable();
        way(path).any(|above| self.values.get(&above).is_some_and(is_whole))
    }

    /// Whether a field is a list whose items have owners, which only a type could tell apart.
    fn is_list_without_type(&self, path: &Path) -> bool {
        let is_list = |places: &Places<'_, '_>| places.get(path).is_some_and(|place| place.value.is_array());
        self.subject.of.is_none()
            && (is_list(&self.values) || is_list(&self.live))
            && self.owned.is_below(path)
    }

    fn finding(&self, path: Path, verdict: Verdict) -> Finding {
        let shown = |places: &Places<'_, '_>| Some(self.cover.at(&path, &places.get(&path)?.value));
        // Only what was asked about: the parts that are owned one by one have verdicts of their own.
        let declared = if self.declared.has(&path) { shown(&self.values) } else { None };
        let mut owners: Vec<Owner> = self.owned.of(&path).map(|(owner, _)| owner.clone()).collect();
        owners.sort();
        Finding { verdict, declared, live: shown(&self.live), owners, path }
    }
}

/// Whether a field has the value that is declared.
fn agree(declared: &Place<'_, '_>, live: Option<&Place<'_, '_>>, owned: bool) -> bool {
    match live {
        // The API server leaves out what is empty or zero where the type allows it. Had somebody removed the field, it
        // would have no owner.
        None => declared.value.is_null() || (owned && is_zero(&declared.value)),
        Some(live) if is_bare(&declared.value) && declared.is_separable() => live.is_separable(),
        // Merged into an object or a list with parts, null leaves all of them.
        Some(live) if declared.value.is_null() => live.is_separable(),
        Some(live) => meaning::equal(declared.of, &declared.value, &live.value),
    }
}

/// Whether a value is an object or a list without anything in it.
fn is_bare(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        value => is_bare(value),
    }
}

/// Fields without those that nobody ever owns, and without a status that is written to by its own way.
fn without_unowned(fields: &FieldSet, owned: &FieldSet, written: Status) -> FieldSet {
    let status = Path::from_iter([Step::Field("status".to_owned())]);
    let writes_status = written == Status::WithTheRest || owned.has(&status) || is_below(owned, &status);
    let top = |path: &Path| match path.steps() {
        [Step::Field(name), ..] => name == "status",
        _ => false,
    };
    fields.iter().filter(|path| !is_never_owned(path) && (writes_status || !top(path))).collect()
}

/// Whether the API server leaves a field out of all ownership.
fn is_never_owned(path: &Path) -> bool {
    match path.steps() {
        [Step::Field(top)] => matches!(top.as_str(), "apiVersion" | "kind" | "metadata"),
        [Step::Field(top), Step::Field(field), ..] if top == "metadata" => matches!(
            field.as_str(),
            "name"
                | "namespace"
                | "creationTimestamp"
                | "selfLink"
                | "uid"
                | "clusterName"
                | "generation"
                | "managedFields"
                | "resourceVersion"
        ),
        _ => false,
    }
}

/// The paths on the way to a path, without itself.
fn way(path: &Path) -> impl Iterator<Item = Path> {
    (1..path.steps().len()).map(|length| path.steps().iter().take(length).cloned().collect())
}

/// Whether a set has something below a path.
fn is_below(set: &FieldSet, path: &Path) -> bool {
    let mut steps = path.steps().iter();
    steps.try_fold(set, |set, step| set.below(step)).is_some_and(|below| !below.is_empty())
}

/// Whether a set has a member on the way to a path.
fn is_above(set: &FieldSet, path: &Path) -> bool {
    let mut set = set;
    for step in path.steps() {
        if set.has_step(step) {
            return true;
        }
        match set.below(step) {
            Some(below) => set = below,
            None => return false,
        }
    }
    false
}
