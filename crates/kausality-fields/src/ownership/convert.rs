//! One object in several versions.

use super::{OwnershipError, Typed};

/// Brings objects into other versions.
pub trait Convert<'s> {
    /// The object in another version, or in its own.
    fn convert<'v>(&self, object: &Typed<'s, 'v>, version: &str) -> Result<Typed<'s, 'v>, NotConverted>;
}

/// Why an object is not to be had in some version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotConverted {
    /// There is no such version, or not any more.
    MissingVersion,
    /// The conversion failed.
    Failed(String),
}

/// For kinds whose versions are all alike, or that have only one.
#[derive(Debug, Clone, Copy, Default)]
pub struct SameInAllVersions;

impl<'s> Convert<'s> for SameInAllVersions {
    fn convert<'v>(&self, object: &Typed<'s, 'v>, _: &str) -> Result<Typed<'s, 'v>, NotConverted> {
        Ok(object.clone())
    }
}

/// The object in another version; `None` if there is no such version.
pub(super) fn known<'s, 'v, Id>(
    versions: &impl Convert<'s>,
    object: &'v Typed<'s, '_>,
    version: &str,
) -> Result<Option<Typed<'s, 'v>>, OwnershipError<Id>> {
    let object = Typed::new(&object.value, object.of);
    match versions.convert(&object, version) {
        Ok(converted) => Ok(Some(converted)),
        Err(NotConverted::MissingVersion) => Ok(None),
        Err(NotConverted::Failed(reason)) => {
            Err(OwnershipError::Conversion { version: version.to_owned(), reason })
        }
    }
}
