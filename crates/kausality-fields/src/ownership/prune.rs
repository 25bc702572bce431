//! The removal of what a manager applied before and does not apply any more.

use super::convert::known;
use super::{Claim, Convert, Managers, OwnershipError, Typed};
use crate::set::FieldSet;
use std::collections::BTreeMap;

/// The merged object without what the manager let go and nobody else holds on to.
///
/// It is first robbed of all that the manager had, then given back what anybody owns, then what it lost only because
/// something above it went.
pub(super) fn prune<'s, 'v, Id>(
    versions: &impl Convert<'s>,
    merged: Typed<'s, 'v>,
    managers: &Managers<Id>,
    version: &str,
    last: &Claim,
) -> Result<Typed<'s, 'v>, OwnershipError<Id>> {
    if last.fields.is_empty() {
        return Ok(merged);
    }
    let Some(before) = known(versions, &merged, &last.api_version)? else { return Ok(merged) };
    let let_go = before.of.with_declared_fields(&last.fields);
    let robbed = Typed::owned(before.of.remove(&before.value, &let_go)?, before.of);
    let pruned = give_back_owned(versions, &before, robbed, managers, &last.api_version)?;
    let pruned = give_back_dangling(versions, &before, &pruned, &let_go, &last.api_version)?;
    match known(versions, &pruned, version)? {
        Some(pruned) => Ok(Typed::owned(pruned.value.into_owned(), pruned.of)),
        None => Err(OwnershipError::Conversion {
            version: version.to_owned(),
            reason: "there is no such version".to_owned(),
        }),
    }
}

fn give_back_owned<'s, Id>(
    versions: &impl Convert<'s>,
    merged: &Typed<'s, '_>,
    pruned: Typed<'s, 'static>,
    managers: &Managers<Id>,
    first: &str,
) -> Result<Typed<'s, 'static>, OwnershipError<Id>> {
    let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
    for claim in managers.values() {
        let fields = owned.entry(&claim.api_version).or_default();
        *fields = fields.union(&claim.fields);
    }
    // The version the object is in comes first: a conversion may need what was robbed.
    let here = owned.remove(first).map(|fields| (first, fields));

    let mut merged = Typed::owned(merged.value.clone().into_owned(), merged.of);
    let mut pruned = pruned;
    for (version, owned) in here.into_iter().chain(owned) {
        let Some(converted) = known(versions, &merged, version)? else { continue };
        merged = Typed::owned(converted.value.into_owned(), converted.of);
        let Some(left) = known(versions, &pruned, version)? else { continue };
        let of = merged.of;
        let kept = of.with_declared_fields(&left.field_set()?).union(&of.with_declared_fields(&owned));
        let gone = of.with_declared_fields(&merged.field_set()?).difference(&kept);
        pruned = Typed::owned(of.remove(&merged.value, &gone)?, of);
    }
    Ok(pruned)
}

/// An item that was not the manager's stays, even if the list it is in was.
fn give_back_dangling<'s, Id>(
    versions: &impl Convert<'s>,
    merged: &Typed<'s, '_>,
    pruned: &Typed<'s, '_>,
    let_go: &FieldSet,
    version: &str,
) -> Result<Typed<'s, 'static>, OwnershipError<Id>> {
    let of = merged.of;
    let Some(pruned) = known(versions, pruned, version)? else {
        return Ok(Typed::owned(merged.value.clone().into_owned(), of));
    };
    let left = of.with_declared_fields(&pruned.field_set()?);
    let gone = of.with_declared_fields(&merged.field_set()?).difference(&left).intersection(let_go);
    Ok(Typed::owned(of.remove(&merged.value, &gone)?, of))
}
