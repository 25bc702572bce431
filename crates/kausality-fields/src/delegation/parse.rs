//! Delegations as people write them.

use super::{Delegation, Pattern};
use crate::meaning::Amount;
use crate::render;
use crate::scalar::Scalar;
use serde_json::Value;
use std::fmt;

/// Why a text is no delegation, and where it goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegationError {
    /// The text.
    pub text: String,
    /// The character at which it goes wrong, counted from zero.
    pub position: usize,
    /// What is wrong there.
    pub problem: &'static str,
}

/// The text, a caret below the character in question, and what is wrong with it.
impl fmt::Display for DelegationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, position, problem } = self;
        // What takes more than a line, or none, would put the caret in the wrong place.
        let shown: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        write!(
            f,
            "not a delegation (PATH=MANAGER or PATH=MANAGER:LOW..HIGH): {problem}\n  {shown}\n  {:position$}^",
            ""
        )
    }
}

impl std::error::Error for DelegationError {}

pub(super) fn delegation(text: &str) -> Result<Delegation, DelegationError> {
    Parser { text, at: 0 }.delegation().map_err(|Fault { at, problem }| DelegationError {
        text: text.to_owned(),
        position: text.char_indices().take_while(|(byte, _)| *byte < at).count(),
        problem,
    })
}

struct Fault {
    at: usize,
    problem: &'static str,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn delegation(mut self) -> Result<Delegation, Fault> {
        let pattern = self.path()?;
        if !self.eat('=') {
            return Err(self.fault("a path, then = and a manager: this is neither"));
        }
        let manager = self.manager()?;
        let (low, high) = if self.eat(':') { self.bounds()? } else { (None, None) };
        let manager = (manager != "*").then_some(manager);
        Ok(Delegation { text: self.text.to_owned(), pattern, manager, low, high })
    }

    fn path(&mut self) -> Result<Vec<Pattern>, Fault> {
        let mut pattern = Vec::new();
        loop {
            if self.eat('[') {
                pattern.push(self.brackets()?);
            } else if pattern.is_empty() || self.eat('.') {
                pattern.push(self.field()?);
            } else {
                return Ok(pattern);
            }
        }
    }

    fn field(&mut self) -> Result<Pattern, Fault> {
        let start = self.at;
        match self.take_while(|c| c == '*' || render::is_plain_field(c.encode_utf8(&mut [0; 4]))) {
            "" => Err(self.fault("the name of a field is missing; put one with other characters in [\"…\"]")),
            "*" => Ok(Pattern::AnyField),
            name if name.contains('*') => Err(Fault { at: start, problem: "* stands for a whole name only" }),
            name => Ok(Pattern::Field(name.to_owned())),
        }
    }

    /// What is in brackets, up to the closing one.
    fn brackets(&mut self) -> Result<Pattern, Fault> {
        let pattern = match self.rest().chars().next() {
            Some('*') => {
                self.at += 1;
                Pattern::AnyItem
            }
            Some('"') => Pattern::Quoted(self.quoted()?),
            Some('=') => {
                self.at += 1;
                Pattern::Value(self.scalar()?)
            }
            Some(c) if c.is_ascii_digit() => {
                let start = self.at;
                let index = self.take_while(|c| c.is_ascii_digit()).parse();
                Pattern::Index(index.map_err(|_| Fault { at: start, problem: "no list is that long" })?)
            }
            _ => self.key()?,
        };
        if self.eat(']') { Ok(pattern) } else { Err(self.fault("] is missing")) }
    }

    fn key(&mut self) -> Result<Pattern, Fault> {
        let mut parts = Vec::new();
        loop {
            let name = self.take_while(|c| render::is_plain_field(c.encode_utf8(&mut [0; 4])));
            if name.is_empty() {
                return Err(
                    self.fault("in brackets goes *, a key such as name=app, a position or a text in quotes")
                );
            }
            if !self.eat('=') {
                return Err(self.fault("= and a value are missing after the name of a key"));
            }
            parts.push((name.to_owned(), self.scalar()?));
            if !self.eat(',') {
                return Ok(Pattern::Key(parts));
            }
        }
    }

    /// A value as it is shown in a path: in quotes, or a word, which may be that of a number or a boolean.
    fn scalar(&mut self) -> Result<Scalar, Fault> {
        if self.rest().starts_with('"') {
            return self.quoted().map(Scalar::Text);
        }
        let word = self.take_while(|c| !matches!(c, ']' | ',' | '"'));
        if word.is_empty() {
            return Err(self.fault("a value is missing"));
        }
        let scalar = serde_json::from_str::<Value>(word).ok().and_then(|value| Scalar::or_null(&value));
        Ok(scalar.unwrap_or_else(|| Scalar::Text(word.to_owned())))
    }

    fn manager(&mut self) -> Result<String, Fault> {
        let manager = if self.rest().starts_with('"') {
            self.quoted()?
        } else {
            self.take_while(|c| c != ':').to_owned()
        };
        match self.rest().chars().next() {
            _ if manager.is_empty() => Err(self.fault("the name of a manager is missing (* for any)")),
            None | Some(':') => Ok(manager),
            Some(_) => Err(self.fault("only bounds may follow a manager: LOW..HIGH after a colon")),
        }
    }

    fn bounds(&mut self) -> Result<(Option<Amount>, Option<Amount>), Fault> {
        const SHAPE: &str =
            "bounds are LOW..HIGH; put the manager in quotes if the colon is part of its name";
        let start = self.at;
        let Some((low, high)) = self.rest().split_once("..") else { return Err(self.fault(SHAPE)) };
        let amount = |text: &str, at| match text {
            "" => Ok(None),
            text => Amount::parse(text)
                .map(Some)
                .ok_or(Fault { at, problem: "not a number, nor an amount such as 100m or 1Gi" }),
        };
        let (low, high) = (amount(low, start)?, amount(high, start + low.len() + 2)?);
        match (low, high) {
            (None, None) => Err(self.fault(SHAPE)),
            (Some(low), Some(high)) if low > high => {
                Err(self.fault("the lower bound is above the upper one: nothing is within"))
            }
            bounds => Ok(bounds),
        }
    }

    /// A JSON string.
    fn quoted(&mut self) -> Result<String, Fault> {
        let mut strings = serde_json::Deserializer::from_str(self.rest()).into_iter::<String>();
        match strings.next() {
            Some(Ok(text)) => {
                self.at += strings.byte_offset();
                Ok(text)
            }
            _ => Err(self.fault("the text in quotes does not end, or is no JSON string")),
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn eat(&mut self, c: char) -> bool {
        let there = self.rest().starts_with(c);
        self.at += if there { c.len_utf8() } else { 0 };
        there
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|c| !fits(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn fault(&self, problem: &'static str) -> Fault {
        Fault { at: self.at, problem }
    }
}
