//! A place in a JSON document, read with expectations.

use super::{Problem, SchemaError};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A value and where it is. The way there is kept in borrowed steps and written out only for an error.
///
/// `null` counts as absent, as it does to the API server.
#[derive(Clone, Copy)]
pub(super) struct Node<'p, 'd> {
    value: &'d Value,
    from: Option<(&'p Node<'p, 'd>, Step<'d>)>,
}

#[derive(Clone, Copy)]
enum Step<'d> {
    Member(&'d str),
    Item(usize),
}

impl<'p, 'd> Node<'p, 'd> {
    /// The document.
    pub(super) fn root(value: &'d Value) -> Self {
        Self { value, from: None }
    }

    pub(super) fn value(&self) -> &'d Value {
        self.value
    }

    /// The member of an object.
    pub(super) fn get<'n>(&'n self, name: &'d str) -> Result<Option<Node<'n, 'd>>, SchemaError> {
        let value = self.object()?.get(name).filter(|value| !value.is_null());
        Ok(value.map(|value| Node { value, from: Some((self, Step::Member(name))) }))
    }

    /// The member of an object that must have it.
    pub(super) fn require<'n>(&'n self, name: &'static str) -> Result<Node<'n, 'd>, SchemaError> {
        self.get(name)?.ok_or_else(|| self.error(Problem::Missing(name)))
    }

    /// The members of an object.
    pub(super) fn members<'n>(
        &'n self,
    ) -> Result<impl Iterator<Item = (&'d String, Node<'n, 'd>)>, SchemaError> {
        let members = self.object()?.iter();
        Ok(members.map(|(name, value)| (name, Node { value, from: Some((self, Step::Member(name))) })))
    }

    /// The items of a list.
    pub(super) fn items<'n>(&'n self) -> Result<impl Iterator<Item = Node<'n, 'd>>, SchemaError> {
        let items = self.value.as_array().ok_or_else(|| self.error(Problem::Expected("a list")))?;
        let item = |(index, value)| Node { value, from: Some((self, Step::Item(index))) };
        Ok(items.iter().enumerate().map(item))
    }

    pub(super) fn object(&self) -> Result<&'d Map<String, Value>, SchemaError> {
        self.value.as_object().ok_or_else(|| self.error(Problem::Expected("an object")))
    }

    pub(super) fn text(&self) -> Result<&'d str, SchemaError> {
        self.value.as_str().ok_or_else(|| self.error(Problem::Expected("a string")))
    }

    /// The text of a member; empty if it is absent.
    pub(super) fn text_of(&self, name: &'static str) -> Result<&'d str, SchemaError> {
        self.get(name)?.map_or(Ok(""), |member| member.text())
    }

    /// Whether a member is `true`; `false` if it is absent.
    pub(super) fn flag_of(&self, name: &'static str) -> Result<bool, SchemaError> {
        match self.get(name)? {
            None => Ok(false),
            Some(flag) => flag.value.as_bool().ok_or_else(|| flag.error(Problem::Expected("true or false"))),
        }
    }

    /// A problem of this place.
    pub(super) fn error(&self, problem: Problem) -> SchemaError {
        let mut place = String::new();
        self.point(&mut place);
        SchemaError { place, problem }
    }

    fn point(&self, place: &mut String) {
        let mut steps = Vec::new();
        let mut at = self;
        while let Some((from, step)) = &at.from {
            steps.push(*step);
            at = from;
        }
        for step in steps.into_iter().rev() {
            // Writing to a string cannot fail.
            let _ = match step {
                Step::Member(name) => write!(place, "/{}", name.replace('~', "~0").replace('/', "~1")),
                Step::Item(index) => write!(place, "/{index}"),
            };
        }
    }
}
