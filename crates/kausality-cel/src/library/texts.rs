//! Functions of texts that `cel` has otherwise: searches from an offset.
//!
//! In Kubernetes, nothing is found at any offset, and beyond the end nothing else is.

use cel::ExecutionError;
use cel::common::types::CelInt;
use cel::common::value::CowVal;

use super::{Kind, Overload, failed, instead, int, plain, text};

const ARGUMENTS: &[Kind] = &[Kind::String, Kind::String, Kind::Int];

pub(super) static OVERLOADS: &[Overload] = &[
    instead("indexOf", ARGUMENTS, Kind::Int, |arguments| {
        int(search("indexOf", &arguments, |letters, wanted, offset| {
            let found = letters.get(offset..)?.windows(wanted.len()).position(|it| it == wanted)?;
            Some(found + offset)
        })?)
    }),
    instead("lastIndexOf", ARGUMENTS, Kind::Int, |arguments| {
        int(search("lastIndexOf", &arguments, |letters, wanted, offset| {
            let end = offset.saturating_add(wanted.len()).min(letters.len());
            letters.get(..end)?.windows(wanted.len()).rposition(|it| it == wanted)
        })?)
    }),
];

/// Where a text is in another, in letters; or -1.
fn search(
    name: &str,
    arguments: &[CowVal<'_, '_>],
    find: impl Fn(&[char], &[char], usize) -> Option<usize>,
) -> Result<i64, ExecutionError> {
    let offset = *plain::<CelInt>(arguments, 2)?.inner();
    let wanted: Vec<char> = text(arguments, 1)?.chars().collect();
    if wanted.is_empty() {
        return Ok(offset);
    }
    let at = usize::try_from(offset).map_err(|_| failed(name, "index out of range"))?;
    let letters: Vec<char> = text(arguments, 0)?.chars().collect();
    let found = if at < letters.len() { find(&letters, &wanted, at) } else { None };
    Ok(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fail, hold};

    #[test]
    fn searches_from_an_offset() {
        hold(&[
            "'hello mellow'.indexOf('ello', 2) == 7 && 'hello mellow'.indexOf('ello', 8) == -1",
            "'hello mellow'.lastIndexOf('ello', 6) == 1 && 'hello mellow'.lastIndexOf('ello', 0) == -1",
            "'hello'.lastIndexOf('lo', 4) == 3 && 'ääb'.indexOf('b', 1) == 2",
            "'hello'.indexOf('', 9) == 9 && 'hello'.lastIndexOf('', 9) == 9",
            "'hello'.indexOf('h', 9) == -1 && 'hello'.lastIndexOf('h', 9) == -1",
            "'a'.lastIndexOf('abc', 0) == -1",
        ]);
        fail(&[("'a'.indexOf('a', -1)", "out of range"), ("'a'.lastIndexOf('a', -1)", "out of range")]);
    }
}
