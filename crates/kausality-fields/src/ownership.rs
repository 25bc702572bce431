//! Who owns what after an apply or an update.
//!
//! ```
//! use kausality_fields::ownership::{Force, Managers, Rules, Typed};
//! use kausality_fields::schema::{Schema, TypeRef};
//! use kausality_fields::typed::Type;
//! use serde_json::{Value, json};
//!
//! let (schema, of) = (Schema::deduced(), TypeRef::deduced());
//! let object = |value| Typed::new(value, Type::new(&schema, &of));
//! let rules = Rules::new();
//!
//! let config = json!({"spec": {"replicas": 3}});
//! let done = rules.apply(&object(&Value::Null), &object(&config), "v1", Managers::new(), &"helm", &Force::No)?;
//! let live = done.object.unwrap_or_default();
//!
//! let scaled = json!({"spec": {"replicas": 5}});
//! let managers = rules.update(&object(&live), &object(&scaled), "v1", done.managers, &"autoscaler")?;
//! assert_eq!(managers["autoscaler"].fields.to_string(), "spec.replicas");
//!
//! let again = rules.apply(&object(&scaled), &object(&config), "v1", managers, &"helm", &Force::No);
//! assert_eq!(again.unwrap_err().to_string(), "conflict with autoscaler: spec.replicas");
//! # Ok::<(), kausality_fields::ownership::OwnershipError<&str>>(())
//! ```

use crate::set::FieldSet;
use crate::typed::{Comparison, Type, same};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

mod convert;
mod error;
mod filter;
mod prune;

pub use convert::{Convert, NotConverted, SameInAllVersions};
pub use error::{Conflicts, OwnershipError};
pub use filter::Filter;

/// What each manager owns. A manager that owns nothing is not in it.
pub type Managers<Id> = BTreeMap<Id, Claim>;

/// What one manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The fields.
    pub fields: FieldSet,
    /// The version of the object that the fields are of.
    pub api_version: String,
    /// Whether they were applied, and not just written.
    pub applied: bool,
}

/// An object in some version, and its type in that version. It is taken to be valid.
#[derive(Debug, Clone)]
pub struct Typed<'s, 'v> {
    /// The object; null before it is created.
    pub value: Cow<'v, Value>,
    /// Its type.
    pub of: Type<'s>,
}

impl<'s, 'v> Typed<'s, 'v> {
    /// An object that is borrowed.
    pub fn new(value: &'v Value, of: Type<'s>) -> Self {
        Self { value: Cow::Borrowed(value), of }
    }

    fn owned(value: Value, of: Type<'s>) -> Self {
        Self { value: Cow::Owned(value), of }
    }

    fn field_set(&self) -> Result<FieldSet, crate::typed::Fault> {
        self.of.field_set(&self.value)
    }
}

/// Which fields of others an apply may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Force {
    /// None: each is a conflict.
    No,
    /// These, and what lies below them. Any other is a conflict.
    Paths(FieldSet),
    /// All.
    Yes,
}

/// What comes of an apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied<Id> {
    /// The object; `None` if it stays as it was, unless [`Rules::return_unchanged`] asks for it.
    pub object: Option<Value>,
    /// Who owns what.
    pub managers: Managers<Id>,
}

/// How ownership changes hands.
#[derive(Debug, Clone, Default)]
pub struct Rules<C = SameInAllVersions> {
    /// How objects are brought into other versions. Claims are in the version of whoever made them.
    pub versions: C,
    /// By version, the fields whose ownership is not kept: those that the request cannot write, such as the status.
    pub ignored: BTreeMap<String, Filter>,
    /// Whether an apply returns the object even if it stays as it was.
    pub return_unchanged: bool,
}

impl Rules {
    /// The rules for kinds whose versions are all alike, with no field ignored.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<C> Rules<C> {
    /// Who owns what after `manager` wrote `new` in place of `live`.
    ///
    /// It takes whatever it changed or added from everybody else. What it removed belongs to nobody.
    pub fn update<'s, Id>(
        &self,
        live: &Typed<'s, '_>,
        new: &Typed<'s, '_>,
        version: &str,
        managers: Managers<Id>,
        manager: &Id,
    ) -> Result<Managers<Id>, OwnershipError<Id>>
    where
        C: Convert<'s>,
        Id: Ord + Clone,
    {
        let managers = self.reconciled(live, managers)?;
        let (mut managers, change) = self.settle(live, new, version, managers, manager, &Force::Yes)?;
        let owned = managers.remove(manager).map(|claim| claim.fields).unwrap_or_default();
        let fields = owned.difference(&change.removed).union(&change.modified).union(&change.added);
        let fields = self.kept(version, fields);
        if !fields.is_empty() {
            let claim = Claim { fields, api_version: version.to_owned(), applied: false };
            managers.insert(manager.clone(), claim);
        }
        Ok(managers)
    }

    /// The object, and who owns what, after `manager` applied `config` to `live`.
    ///
    /// It owns exactly what it applied, others may own the same. What it applied before and does not any more is
    /// removed if nobody else owns it. To change what others own is a conflict, unless it is forced.
    pub fn apply<'s, Id>(
        &self,
        live: &Typed<'s, '_>,
        config: &Typed<'s, '_>,
        version: &str,
        managers: Managers<Id>,
        manager: &Id,
        force: &Force,
    ) -> Result<Applied<Id>, OwnershipError<Id>>
    where
        C: Convert<'s>,
        Id: Ord + Clone,
    {
        let mut managers = self.reconciled(live, managers)?;
        let merged = Typed::owned(live.of.merge(&live.value, &config.value)?, live.of);
        let fields = self.kept(version, config.field_set()?);
        let claim = Claim { fields, api_version: version.to_owned(), applied: true };
        let last = managers.insert(manager.clone(), claim);
        let new = match last {
            Some(last) => prune::prune(&self.versions, merged, &managers, version, &last)?,
            None => merged,
        };
        let (managers, _) = self.settle(live, &new, version, managers, manager, force)?;
        let changed = self.return_unchanged || !same(&live.value, &new.value);
        Ok(Applied { object: changed.then(|| new.value.into_owned()), managers })
    }

    /// Takes from everybody but `manager` what it changed, and from all what is gone. Says what changed.
    fn settle<'s, Id>(
        &self,
        live: &Typed<'s, '_>,
        new: &Typed<'s, '_>,
        version: &str,
        managers: Managers<Id>,
        manager: &Id,
        force: &Force,
    ) -> Result<(Managers<Id>, Comparison), OwnershipError<Id>>
    where
        C: Convert<'s>,
        Id: Ord + Clone,
    {
        let change = self.compare(live, new, version)?;
        let mut changes = BTreeMap::from([(version.to_owned(), Some(change.clone()))]);
        let mut conflicts = BTreeMap::new();
        let mut left = Managers::new();
        for (id, claim) in managers {
            if id == *manager {
                left.insert(id, claim);
                continue;
            }
            let change = match changes.get(&claim.api_version) {
                Some(change) => change,
                None => {
                    let change = self.compare_in(live, new, &claim.api_version)?;
                    changes.entry(claim.api_version.clone()).or_insert(change)
                }
            };
            // A version that is gone takes the claims with it: nobody can say any more what they were about.
            let Some(change) = change else { continue };
            let written = change.modified.union(&change.added);
            let taken = claim.fields.intersection(&written);
            let refused = match force {
                Force::Yes => FieldSet::new(),
                Force::Paths(paths) => taken.recursive_difference(paths),
                Force::No => taken.clone(),
            };
            if !refused.is_empty() {
                conflicts.insert(id.clone(), refused);
            }
            let Claim { mut fields, api_version, applied } = claim;
            if !taken.is_empty() {
                fields = fields.difference(&taken);
            }
            if !change.removed.is_empty() {
                fields = fields.difference(&change.removed);
            }
            left.insert(id, Claim { fields, api_version, applied });
        }
        if !conflicts.is_empty() {
            return Err(OwnershipError::Conflicts(Conflicts(conflicts)));
        }
        left.retain(|_, claim| !claim.fields.is_empty());
        Ok((left, change))
    }

    /// What changed as seen from another version; `None` if there is no such version.
    fn compare_in<'s, Id>(
        &self,
        live: &Typed<'s, '_>,
        new: &Typed<'s, '_>,
        version: &str,
    ) -> Result<Option<Comparison>, OwnershipError<Id>>
    where
        C: Convert<'s>,
    {
        let Some(live) = convert::known(&self.versions, live, version)? else { return Ok(None) };
        let Some(new) = convert::known(&self.versions, new, version)? else { return Ok(None) };
        self.compare(&live, &new, version).map(Some)
    }

    fn compare<Id>(
        &self,
        live: &Typed<'_, '_>,
        new: &Typed<'_, '_>,
        version: &str,
    ) -> Result<Comparison, OwnershipError<Id>> {
        let change = live.of.compare(&live.value, &new.value)?;
        Ok(match self.ignored.get(version) {
            Some(filter) => change.map(|set| filter.of(set)),
            None => change,
        })
    }

    /// Of these fields, those whose ownership is kept.
    fn kept(&self, version: &str, fields: FieldSet) -> FieldSet {
        match self.ignored.get(version) {
            Some(filter) => filter.of(&fields),
            None => fields,
        }
    }

    /// Claims as they are under the types of today. Those of a version that is gone are dropped.
    fn reconciled<'s, Id>(
        &self,
        live: &Typed<'s, '_>,
        managers: Managers<Id>,
    ) -> Result<Managers<Id>, OwnershipError<Id>>
    where
        C: Convert<'s>,
        Id: Ord,
    {
        let mut reconciled = Managers::new();
        for (id, claim) in managers {
            if let Some(live) = convert::known(&self.versions, live, &claim.api_version)? {
                let Claim { fields, api_version, applied } = claim;
                let fields = live.of.reconcile(fields)?;
                reconciled.insert(id, Claim { fields, api_version, applied });
            }
        }
        Ok(reconciled)
    }
}

#[cfg(test)]
mod tests;
