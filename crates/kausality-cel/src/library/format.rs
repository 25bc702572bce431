//! Named formats of texts: `format.dns1123Label().validate(name)`.
//!
//! What is wrong with a text is said in other words than an API server does; whether anything is wrong, and in how many
//! ways, is the same.

use cel::common::types::CelOptional;
use cel::common::value::{CowVal, Val};

use super::{Kind, Outcome, Overload, STRINGS, function, member, opaque, plain, strings, text};

mod dates;
mod names;

const NAME: &str = "kubernetes.NamedFormat";
const FORMAT: Kind = Kind::Opaque(NAME);

pub(super) static OVERLOADS: &[Overload] = &[
    function("format.named", &[Kind::String], Kind::Optional(&FORMAT), |arguments| {
        let found = Format::named(text(&arguments, 0)?).map(|format| Box::new(format) as Box<dyn Val>);
        Ok(CowVal::owned(CelOptional::from(found)))
    }),
    function("format.byte", &[], FORMAT, |_| format(Format::Byte)),
    function("format.date", &[], FORMAT, |_| format(Format::Date)),
    function("format.datetime", &[], FORMAT, |_| format(Format::Datetime)),
    function("format.dns1035Label", &[], FORMAT, |_| format(Format::Dns1035Label)),
    function("format.dns1035LabelPrefix", &[], FORMAT, |_| format(Format::Dns1035LabelPrefix)),
    function("format.dns1123Label", &[], FORMAT, |_| format(Format::Dns1123Label)),
    function("format.dns1123LabelPrefix", &[], FORMAT, |_| format(Format::Dns1123LabelPrefix)),
    function("format.dns1123Subdomain", &[], FORMAT, |_| format(Format::Dns1123Subdomain)),
    function("format.dns1123SubdomainPrefix", &[], FORMAT, |_| format(Format::Dns1123SubdomainPrefix)),
    function("format.labelValue", &[], FORMAT, |_| format(Format::LabelValue)),
    function("format.qualifiedName", &[], FORMAT, |_| format(Format::QualifiedName)),
    function("format.uri", &[], FORMAT, |_| format(Format::Uri)),
    function("format.uuid", &[], FORMAT, |_| format(Format::Uuid)),
    member("validate", &[FORMAT, Kind::String], Kind::Optional(&STRINGS), |arguments| {
        let wrong = plain::<Format>(&arguments, 0)?.wrong_with(text(&arguments, 1)?);
        let wrong = (!wrong.is_empty()).then(|| Box::new(strings(wrong)) as Box<dyn Val>);
        Ok(CowVal::owned(CelOptional::from(wrong)))
    }),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// In base64.
    Byte,
    Date,
    Datetime,
    Dns1035Label,
    Dns1035LabelPrefix,
    Dns1123Label,
    Dns1123LabelPrefix,
    Dns1123Subdomain,
    Dns1123SubdomainPrefix,
    LabelValue,
    QualifiedName,
    Uri,
    Uuid,
}

opaque!(Format, NAME);

fn format<'b, 'v>(format: Format) -> Outcome<'b, 'v> {
    Ok(CowVal::owned(format))
}

impl Format {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "byte" => Self::Byte,
            "date" => Self::Date,
            "datetime" => Self::Datetime,
            "dns1035Label" => Self::Dns1035Label,
            "dns1035LabelPrefix" => Self::Dns1035LabelPrefix,
            "dns1123Label" => Self::Dns1123Label,
            "dns1123LabelPrefix" => Self::Dns1123LabelPrefix,
            "dns1123Subdomain" => Self::Dns1123Subdomain,
            "dns1123SubdomainPrefix" => Self::Dns1123SubdomainPrefix,
            "labelValue" => Self::LabelValue,
            "qualifiedName" => Self::QualifiedName,
            "uri" => Self::Uri,
            "uuid" => Self::Uuid,
            _ => return None,
        })
    }

    fn wrong_with(self, text: &str) -> Vec<String> {
        let unless = |valid: bool, wrong: &str| if valid { vec![] } else { vec![wrong.to_owned()] };
        match self {
            Self::Byte => unless(is_base64(text), "it is no base64"),
            Self::Date => unless(dates::is_date(text), "it is no date such as 2026-01-31"),
            Self::Datetime => {
                unless(dates::is_datetime(text), "it is no date with a time such as 2026-01-31T23:59:59Z")
            }
            Self::Dns1035Label => names::dns1035_label(text.as_bytes()),
            Self::Dns1035LabelPrefix => names::dns1035_label(&names::prefix(text)),
            Self::Dns1123Label => names::dns1123_label(text.as_bytes()),
            Self::Dns1123LabelPrefix => names::dns1123_label(&names::prefix(text)),
            Self::Dns1123Subdomain => names::dns1123_subdomain(text.as_bytes()),
            Self::Dns1123SubdomainPrefix => names::dns1123_subdomain(&names::prefix(text)),
            Self::LabelValue => names::label_value(text),
            Self::QualifiedName => names::qualified_name(text),
            Self::Uri => super::url::check(text).err().into_iter().collect(),
            Self::Uuid => unless(is_uuid(text), "it is no UUID such as 123e4567-e89b-12d3-a456-426614174000"),
        }
    }
}

/// With its padding, and not empty.
fn is_base64(text: &str) -> bool {
    let data = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let letters = data.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"+/".contains(&letter));
    letters && !text.is_empty() && text.len().is_multiple_of(4)
}

/// The hyphens may be left out, each of them.
fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (group, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.split_at_checked(length) {
            Some((digits, after)) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => rest = after,
            _ => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests;
