//! Objects cut down to what one manager owns of them.

use super::judge::Owned;
use super::{Subject, secret};
use crate::redact::Cover;
use crate::schema::{Schema, TypeRef};
use crate::set::FieldSet;
use crate::typed::{Fault, Keys, Type};
use serde_json::Value;
use std::borrow::Cow;

/// What is declared and what is there, both cut down to what the manager owns. Safe to show.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// What is declared.
    pub declared: Value,
    /// What is there.
    pub live: Value,
}

/// Of a value, only these fields, and those that tell the items of lists apart. To project twice is to project once.
pub fn project(of: Type<'_>, value: &Value, owned: &FieldSet) -> Result<Value, Fault> {
    of.extract(value, owned, Keys::Included)
}

impl Subject<'_> {
    /// Both objects, cut down to what the manager owns. Without a type, lists are kept or left out as a whole.
    pub fn projection(&self) -> Result<Projection, Fault> {
        let (schema, deduced) = (Schema::deduced(), TypeRef::deduced());
        let of = self.of.unwrap_or(Type::new(&schema, &deduced));
        let owned = Owned::by(self.manager, self.claims, self.live, self.of);
        let redaction = self.redaction.with_passwords(self.of, [self.declared, self.live]);
        let cover = Cover::of([self.declared, self.live], &redaction);
        let projected = |object: &Value| -> Result<Value, Fault> {
            let projected = project(of, object, &owned.fields)?;
            Ok(cover.object(projected))
        };
        let declared =
            if cover.is_of_secret() { secret::stored(self.declared) } else { Cow::Borrowed(self.declared) };
        Ok(Projection { declared: projected(&declared)?, live: projected(self.live)? })
    }
}
