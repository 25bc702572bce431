//! Versions: `semver("1.2.3-rc.1")`.

use std::cmp::Ordering;

use cel::common::types::CelBool;
use cel::common::value::CowVal;

use super::{
    Arguments, Kind, Outcome, Overload, bool, failed, function, int, member, opaque, ordering, plain, text,
};

const NAME: &str = "kubernetes.Semver";
const SEMVER: Kind = Kind::Opaque(NAME);

pub(super) static OVERLOADS: &[Overload] = &[
    function("semver", &[Kind::String], SEMVER, |arguments| version(Version::parse(text(&arguments, 0)?))),
    function("semver", &[Kind::String, Kind::Bool], SEMVER, |arguments| version(lenient(&arguments)?)),
    function("isSemver", &[Kind::String], Kind::Bool, |arguments| {
        bool(Version::parse(text(&arguments, 0)?).is_ok())
    }),
    function("isSemver", &[Kind::String, Kind::Bool], Kind::Bool, |arguments| {
        bool(lenient(&arguments)?.is_ok())
    }),
    member("major", &[SEMVER], Kind::Int, |arguments| number(plain::<Version>(&arguments, 0)?.major)),
    member("minor", &[SEMVER], Kind::Int, |arguments| number(plain::<Version>(&arguments, 0)?.minor)),
    member("patch", &[SEMVER], Kind::Int, |arguments| number(plain::<Version>(&arguments, 0)?.patch)),
    member("isGreaterThan", &[SEMVER, SEMVER], Kind::Bool, |arguments| {
        bool(compared(&arguments)? == Ordering::Greater)
    }),
    member("isLessThan", &[SEMVER, SEMVER], Kind::Bool, |arguments| {
        bool(compared(&arguments)? == Ordering::Less)
    }),
    member("compareTo", &[SEMVER, SEMVER], Kind::Int, |arguments| ordering(compared(&arguments)?)),
];

/// A version, without its build: builds are not compared.
///
/// The crate `semver` is not used: it takes numbers in a pre-release that do not fit into 64 bits, which the server
/// refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    before: Vec<Identifier>,
}

opaque!(Version, NAME);

/// A part of a pre-release. Numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl Version {
    fn parse(text: &str) -> Result<Self, String> {
        let refused = |what: &str| format!("{text:?} is no semantic version: {what}");
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(refused("it should be of the form major.minor.patch"));
        };
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, before) =
            rest.split_once('-').map_or((rest, None), |(rest, before)| (rest, Some(before)));
        if build.is_some_and(|build| !build.split('.').all(is_identifier)) {
            return Err(refused("its build is not made of letters, digits and hyphens"));
        }
        let before =
            before.map(|before| before.split('.').map(Identifier::parse).collect()).unwrap_or(Some(vec![]));
        let before = before.ok_or_else(|| {
            refused(
                "its pre-release is not made of letters, digits and hyphens, or a number in it starts with 0",
            )
        })?;
        let number = |part: &str| {
            number_of(part).ok_or_else(|| refused(&format!("{part:?} is no number, or starts with 0")))
        };
        Ok(Self { major: number(major)?, minor: number(minor)?, patch: number(patch)?, before })
    }

    /// Reads what people write: with a `v` before it, without minor or patch version, with leading zeros.
    fn parse_lenient(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err(format!(
                "{text:?} is no semantic version: what is short has no pre-release and no build"
            ));
        }
        parts.resize(3, "0".to_owned());
        Self::parse(&parts.join("."))
    }
}

/// A part without leading zeros, but with one where a number should be.
fn without_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|letter: char| letter.is_ascii_digit()) {
        rest.to_owned()
    } else {
        format!("0{rest}")
    }
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'-')
}

fn number_of(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|digit| digit.is_ascii_digit());
    let padded = text.len() > 1 && text.starts_with('0');
    text.parse().ok().filter(|_| digits && !padded)
}

impl Identifier {
    fn parse(text: &str) -> Option<Self> {
        if text.bytes().all(|digit| digit.is_ascii_digit()) {
            number_of(text).map(Self::Number)
        } else {
            is_identifier(text).then(|| Self::Word(text.to_owned()))
        }
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |it: &Self| (it.major, it.minor, it.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.before.is_empty(), other.before.is_empty()) {
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                _ => self.before.cmp(&other.before),
            }
        })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn version<'b, 'v>(parsed: Result<Version, String>) -> Outcome<'b, 'v> {
    Ok(CowVal::owned(parsed.map_err(|error| failed("semver", error))?))
}

/// As the second argument asks for.
fn lenient(arguments: &Arguments<'_, '_>) -> Result<Result<Version, String>, cel::ExecutionError> {
    let text = text(arguments, 0)?;
    let lenient = *plain::<CelBool>(arguments, 1)?.inner();
    Ok(if lenient { Version::parse_lenient(text) } else { Version::parse(text) })
}

fn compared(arguments: &Arguments<'_, '_>) -> Result<Ordering, cel::ExecutionError> {
    Ok(plain::<Version>(arguments, 0)?.cmp(plain(arguments, 1)?))
}

/// What does not fit wraps around, as it does in the server.
fn number<'b, 'v>(number: u64) -> Outcome<'b, 'v> {
    int(number.cast_signed())
}

#[cfg(test)]
mod tests;
