//! What differs between two sets of fields, without reading what they share.
//!
//! Both texts are walked side by side, key by key, and become steps only where they differ. The API server writes
//! equal sets as equal texts, so nearly all of it passes as bytes.

use super::Moves;
use crate::fieldsv1::{FieldsV1Error, FieldsV1Problem, MAX_DEPTH};
use crate::set::FieldSet;
use std::collections::BTreeMap;

/// What was gained and lost from one FieldsV1 to another. Both must be JSON.
pub(super) fn moves(before: &str, after: &str) -> Result<Moves, FieldsV1Error> {
    if before == after {
        return Ok(Moves::default());
    }
    if before == "{}" || after == "{}" {
        let [lost, gained] = [before, after].map(FieldSet::from_fields_v1);
        return Ok(Moves { gained: gained?, lost: lost? });
    }
    let mut walk = Walk::default();
    match walk.side_by_side(&mut Cursor::new(before), &mut Cursor::new(after)) {
        Ok(_) => {
            let Moves { gained, lost } = walk.moves;
            // Keys that are there twice, or are written in two ways, are one field.
            Ok(Moves { gained: gained.difference(&lost), lost: lost.difference(&gained) })
        }
        Err(Stop::Unusual) => {
            let [lost, gained] = [FieldSet::from_fields_v1(before)?, FieldSet::from_fields_v1(after)?];
            Ok(Moves { gained: gained.difference(&lost), lost: lost.difference(&gained) })
        }
        Err(Stop::Fault(error)) => Err(error),
    }
}

/// Why the texts cannot be walked side by side.
enum Stop {
    /// They are not written as the API server writes them. To read them as a whole says more.
    Unusual,
    Fault(FieldsV1Error),
}

impl From<FieldsV1Error> for Stop {
    fn from(error: FieldsV1Error) -> Self {
        Self::Fault(error)
    }
}

#[derive(Default)]
struct Walk<'a> {
    /// The keys from the root down.
    way: Vec<&'a str>,
    moves: Moves,
}

impl<'a> Walk<'a> {
    /// Walks two objects, and says of each whether it marks its place as a member.
    fn side_by_side(&mut self, before: &mut Cursor<'a>, after: &mut Cursor<'a>) -> Result<[bool; 2], Stop> {
        if self.way.len() > MAX_DEPTH {
            return Err(FieldsV1Error::from(FieldsV1Problem::TooDeep).into());
        }
        let (mut old, mut new) = (Marks::default(), Marks::default());
        let [mut old_key, mut new_key] = [before.open()?, after.open()?];
        while let (Some(old_one), Some(new_one)) = (old_key, new_key) {
            if old_one != new_one {
                break;
            }
            if old_one == "." {
                (old.dot, new.dot) = (true, true);
                before.skip()?;
                after.skip()?;
            } else {
                (old.parts, new.parts) = (true, true);
                self.step(old_one, before, after)?;
            }
            [old_key, new_key] = [before.next()?, after.next()?];
        }
        let mut rest: BTreeMap<&str, [Option<&'a str>; 2]> = BTreeMap::new();
        for (side, cursor, mut key, marks) in
            [(0, &mut *before, old_key, &mut old), (1, &mut *after, new_key, &mut new)]
        {
            while let Some(one) = key {
                let value = cursor.skip()?;
                if one == "." {
                    marks.dot = true;
                } else {
                    marks.parts = true;
                    if rest.entry(one).or_default()[side].replace(value).is_some() {
                        return Err(Stop::Unusual);
                    }
                }
                key = cursor.next()?;
            }
        }
        for (key, values) in rest {
            match values {
                [Some(old), Some(new)] if old == new => {}
                [Some(old), Some(new)] => self.step(key, &mut Cursor::new(old), &mut Cursor::new(new))?,
                [Some(old), None] => self.lose(key, old)?,
                [None, Some(new)] => self.gain(key, new)?,
                [None, None] => {}
            }
        }
        Ok([old.dot || !old.parts, new.dot || !new.parts])
    }

    fn step(&mut self, key: &'a str, before: &mut Cursor<'a>, after: &mut Cursor<'a>) -> Result<(), Stop> {
        self.way.push(key);
        let members = self.side_by_side(before, after)?;
        self.way.pop();
        match members {
            [true, false] => self.lose(key, "{}"),
            [false, true] => self.gain(key, "{}"),
            _ => Ok(()),
        }
    }

    fn lose(&mut self, key: &str, value: &str) -> Result<(), Stop> {
        let lost = self.read(key, value)?;
        lost.iter().for_each(|path| self.moves.lost.insert(&path));
        Ok(())
    }

    fn gain(&mut self, key: &str, value: &str) -> Result<(), Stop> {
        let gained = self.read(key, value)?;
        gained.iter().for_each(|path| self.moves.gained.insert(&path));
        Ok(())
    }

    /// The fields of one key and what is below it, from the root.
    fn read(&self, key: &str, value: &str) -> Result<FieldSet, FieldsV1Error> {
        let mut text = String::new();
        for step in self.way.iter().copied().chain([key]) {
            text.extend(["{\"", step, "\":"]);
        }
        text.push_str(value);
        text.extend(std::iter::repeat_n('}', self.way.len() + 1));
        FieldSet::from_fields_v1(&text)
    }
}

#[derive(Default)]
struct Marks {
    dot: bool,
    parts: bool,
}

/// A place in a text that is known to be JSON.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Enters an object: its first key, as it is written between its quotes.
    fn open(&mut self) -> Result<Option<&'a str>, Stop> {
        match self.peek() {
            Some(b'{') => {
                self.at += 1;
                self.next()
            }
            // Null, or what should not be there.
            _ => Err(Stop::Unusual),
        }
    }

    /// The next key of an object, or `None` at its end. What follows the key is next.
    fn next(&mut self) -> Result<Option<&'a str>, Stop> {
        loop {
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(None);
                }
                Some(b'"') => break,
                _ => return Err(Stop::Unusual),
            }
        }
        let start = self.at + 1;
        self.string();
        let key = self.text.get(start..self.at - 1).ok_or(Stop::Unusual)?;
        if !matches!(key.as_bytes(), [b'.'] | [b'f' | b'k' | b'v' | b'i', b':', ..]) {
            return Err(Stop::Unusual);
        }
        match self.peek() {
            Some(b':') => self.at += 1,
            _ => return Err(Stop::Unusual),
        }
        Ok(Some(key))
    }

    /// Passes over an object.
    fn skip(&mut self) -> Result<&'a str, Stop> {
        if self.peek() != Some(b'{') {
            return Err(Stop::Unusual);
        }
        let start = self.at;
        let mut open = 0usize;
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    self.string();
                    continue;
                }
                Some(b'{') => open += 1,
                Some(b'}') => open -= 1,
                Some(_) => {}
                None => return Err(Stop::Unusual),
            }
            self.at += 1;
            if open == 0 {
                return Ok(&self.text[start..self.at]);
            }
        }
    }

    /// Passes over a string.
    fn string(&mut self) {
        let bytes = self.text.as_bytes();
        self.at += 1;
        while let Some(byte) = bytes.get(self.at) {
            self.at += match byte {
                b'"' => break,
                b'\\' => 2,
                _ => 1,
            };
        }
        self.at += 1;
    }
}
