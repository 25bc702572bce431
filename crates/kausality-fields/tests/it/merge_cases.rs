//! The merge cases of structured-merge-diff's own tests, run as data.

use crate::smd;

use kausality_fields::ownership::{
    Convert, Filter, Force, Managers, NotConverted, OwnershipError, Rules, SameInAllVersions, Typed,
};
use kausality_fields::schema::{Schema, TypeRef};
use kausality_fields::typed::{Duplicates, Keys, Type};
use kausality_fields::{FieldSet, Path, Step};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Case {
    test: String,
    schema: String,
    type_name: String,
    converter: String,
    return_input_on_noop: bool,
    ignores: bool,
    steps: Vec<Operation>,
    expect_object: String,
    expect_managed: Option<BTreeMap<String, Expected>>,
    error: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Operation {
    op: String,
    manager: String,
    #[serde(rename = "APIVersion")]
    api_version: String,
    object: String,
    schema: Option<String>,
    conflicts: Option<Vec<String>>,
    error: Option<String>,
    live: Option<Value>,
    managers: Option<BTreeMap<String, Expected>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Expected {
    #[serde(rename = "APIVersion")]
    api_version: String,
    applied: bool,
    #[serde(rename = "FieldsV1")]
    fields_v1: Box<RawValue>,
}

#[test]
fn the_merge_cases_of_structured_merge_diff_hold() {
    let Some(lines) = smd::file("merge-cases.jsonl") else { return };
    let mut passed: BTreeMap<String, usize> = BTreeMap::new();
    let mut failed = Vec::new();
    for (nth, line) in lines.lines().enumerate() {
        let case: Case = serde_json::from_str(line).unwrap();
        let kind = format!("{} ignores={}", case.converter, case.ignores);
        match run(&case) {
            Ok(()) => *passed.entry(kind).or_default() += 1,
            Err(why) => failed.push(format!("line {}: {}: {why}", nth + 1, case.test)),
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n\n"));
    let expected = [
        ("*fixture.dummyConverter ignores=false", 108),
        ("*fixture.dummyConverter ignores=true", 4),
        ("merge_test.reliantFieldsConverter ignores=false", 1),
        ("merge_test.renamingConverter ignores=false", 126),
        ("merge_test.repeatingConverter ignores=false", 3),
        ("merge_test.repeatingConverter ignores=true", 3),
    ];
    assert_eq!(passed, expected.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect());
}

/// Which of the converters in those tests stands between versions.
#[derive(Clone, Copy)]
enum Converter<'s> {
    Same,
    Renaming(&'s Schema, &'s BTreeMap<String, TypeRef>),
    Repeating(&'s Schema, &'s TypeRef),
    Reliant(&'s Schema, &'s BTreeMap<String, TypeRef>),
}

impl<'s> Convert<'s> for Converter<'s> {
    fn convert<'v>(&self, object: &Typed<'s, 'v>, version: &str) -> Result<Typed<'s, 'v>, NotConverted> {
        let from = match object.of.reference() {
            TypeRef::Named(name, _) => name.as_str(),
            TypeRef::Inline(_) => "",
        };
        let typed = |value, schema, of| {
            let of = Type::new(schema, of);
            match of.validate(&value, Duplicates::Refused) {
                Ok(()) => Ok(Typed { value: Cow::Owned(value), of }),
                Err(fault) => Err(NotConverted::Failed(fault.to_string())),
            }
        };
        match self {
            Self::Same => SameInAllVersions.convert(object, version),
            Self::Renaming(schema, types) => {
                let rename = |name: &str| match name.strip_suffix(from) {
                    Some(stem) => format!("{stem}{version}"),
                    None => name.to_owned(),
                };
                typed(renamed(&object.value, &rename), schema, &types[version])
            }
            Self::Repeating(schema, of) => {
                let times = version.strip_prefix('v').and_then(|number| number.parse().ok());
                let times: usize = times.ok_or(NotConverted::MissingVersion)?;
                typed(repeated(&object.value, times), schema, of)
            }
            Self::Reliant(_, _) if from == version => Ok(object.clone()),
            Self::Reliant(schema, types) => {
                let (old, new) = match version {
                    "v1" => ("required_field_bar", "field_foo_rely_on_bar"),
                    "v2" => ("field_foo_rely_on_bar", "required_field_bar"),
                    _ => return Err(NotConverted::MissingVersion),
                };
                if version == "v1" && !object.value.to_string().contains(old) {
                    return Err(NotConverted::Failed("a required field is missing".to_owned()));
                }
                typed(renamed(&object.value, &|name| name.replace(old, new)), schema, &types[version])
            }
        }
    }
}

fn renamed(value: &Value, rename: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::Object(map) => {
            map.iter().map(|(name, value)| (rename(name), renamed(value, rename))).collect()
        }
        Value::Array(list) if list.is_empty() => Value::Null,
        Value::Array(list) => list.iter().map(|item| renamed(item, rename)).collect(),
        scalar => scalar.clone(),
    }
}

/// Below the top, keys become so many of their first letter, and everything else is lost.
fn repeated(value: &Value, times: usize) -> Value {
    fn below(value: &Value, times: usize) -> Value {
        match value {
            Value::Object(map) if !map.is_empty() => {
                map.iter().map(|(name, value)| (name[..1].repeat(times), below(value, times))).collect()
            }
            _ => Value::Null,
        }
    }
    match value {
        Value::Object(map) => {
            let first = map.iter().take(1).map(|(name, value)| match value {
                Value::Object(inner) if !inner.is_empty() => (name.clone(), below(value, times)),
                other => (name.clone(), other.clone()),
            });
            first.collect()
        }
        other => other.clone(),
    }
}

/// The data says that there is a filter, but not which. These are the ones of the tests it was taken from.
fn ignored(case: &Case) -> BTreeMap<String, Filter> {
    let path = |names: &[&str]| names.iter().map(|name| Step::Field((*name).to_owned())).collect::<Path>();
    let except = |version: &str, names: &[&str]| {
        (version.to_owned(), Filter::Except(FieldSet::from_iter([path(names)])))
    };
    if !case.ignores {
        return BTreeMap::new();
    }
    if case.converter == "*fixture.dummyConverter" {
        let field = if case.steps[0].object.contains("obj") { "obj" } else { "string" };
        return BTreeMap::from([except("v1", &[field])]);
    }
    if case.steps.len() == 3 {
        let versions = (1..=4).map(|n: usize| (format!("v{n}"), "c".repeat(n)));
        return versions.map(|(version, c)| except(&version, &["mapOfMapsRecursive", &c])).collect();
    }
    BTreeMap::from([except("v2", &["mapOfMapsRecursive", "c"])])
}

/// Schemas of a case by the step that brings them in, so that objects can borrow from all of them.
struct Stage {
    schema: Schema,
    types: BTreeMap<String, TypeRef>,
    fallback: TypeRef,
}

impl Stage {
    fn new(text: &str, fallback: &str) -> Self {
        let schema = smd::schema(text);
        let types =
            schema.types.keys().map(|name| (name.clone(), TypeRef::Named(name.clone(), None))).collect();
        Self { schema, types, fallback: TypeRef::Named(fallback.to_owned(), None) }
    }

    /// The type of a version, if the versions of the case have types of their own.
    fn of(&self, version: &str) -> Type<'_> {
        Type::new(&self.schema, self.types.get(version).unwrap_or(&self.fallback))
    }

    fn converter(&self, name: &str) -> Converter<'_> {
        match name {
            "*fixture.dummyConverter" => Converter::Same,
            "merge_test.renamingConverter" => Converter::Renaming(&self.schema, &self.types),
            "merge_test.repeatingConverter" => Converter::Repeating(&self.schema, &self.fallback),
            "merge_test.reliantFieldsConverter" => Converter::Reliant(&self.schema, &self.types),
            other => panic!("converter {other}"),
        }
    }
}

fn run(case: &Case) -> Result<(), String> {
    let mut stages = vec![Stage::new(&case.schema, &case.type_name)];
    let texts = case.steps.iter().filter_map(|step| step.schema.as_ref());
    stages.extend(texts.map(|schema| Stage::new(schema, &case.type_name)));
    let mut later = stages.iter();
    let mut stage = later.next().unwrap();

    let mut live: Option<Typed<'_, '_>> = None;
    let mut managers: Managers<String> = Managers::new();
    for (nth, step) in case.steps.iter().enumerate() {
        let at = |why: String| format!("step {nth} ({} by {}): {why}", step.op, step.manager);
        if step.schema.is_some() {
            stage = later.next().unwrap();
            let object = live.take().unwrap();
            let of = match object.of.reference() {
                TypeRef::Named(name, _) => stage.of(name),
                TypeRef::Inline(_) => stage.of(""),
            };
            of.validate(&object.value, Duplicates::Refused).map_err(|fault| at(fault.to_string()))?;
            live = Some(Typed { value: object.value, of });
        } else {
            let rules = Rules {
                versions: stage.converter(&case.converter),
                ignored: ignored(case),
                return_unchanged: case.return_input_on_noop,
            };
            let done = operate(&rules, stage, step, live.as_ref(), managers.clone());
            match (done, &step.error) {
                (Err(Failure::Fault(why)), Some(expected)) => {
                    // The words are our own, the place is not.
                    let place = expected.split(':').next().unwrap_or_default().trim_start_matches('.');
                    if !why.starts_with(place) || !case.error.contains(expected) {
                        return Err(at(format!("{why} instead of {expected}")));
                    }
                    return Ok(());
                }
                (_, Some(expected)) => return Err(at(format!("no fault instead of {expected}"))),
                (Err(Failure::Fault(why)), None) => return Err(at(why)),
                (Err(Failure::Conflicts(found)), None) => {
                    let mut expected = step.conflicts.clone().unwrap_or_default();
                    expected.sort();
                    if found != expected {
                        return Err(at(format!("conflicts {found:?} instead of {expected:?}")));
                    }
                }
                (Ok(_), None) if step.conflicts.as_ref().is_some_and(|conflicts| !conflicts.is_empty()) => {
                    return Err(at("no conflict".to_owned()));
                }
                (Ok((object, owners)), None) => {
                    live = Some(object);
                    managers = owners;
                }
            }
        }
        if let Some(expected) = &step.live {
            let found = live.as_ref().map_or(&Value::Null, |live| live.value.as_ref());
            if found != expected {
                return Err(at(format!("live {found} instead of {expected}")));
            }
        }
        if let Some(expected) = &step.managers {
            compare(&managers, expected, true).map_err(at)?;
        }
    }
    if let Some(expected) = &case.expect_managed {
        compare(&managers, expected, false)?;
    }
    let live = live.map_or(Value::Null, |live| live.value.into_owned());
    if !case.expect_object.is_empty() && case.converter == "*fixture.dummyConverter" {
        let expected = smd::yaml(&case.expect_object);
        if live != expected {
            return Err(format!("at last {live} instead of {expected}"));
        }
    }
    Ok(())
}

enum Failure {
    Fault(String),
    Conflicts(Vec<String>),
}

fn operate<'s>(
    rules: &Rules<Converter<'s>>,
    stage: &'s Stage,
    step: &Operation,
    live: Option<&Typed<'s, 'static>>,
    managers: Managers<String>,
) -> Result<(Typed<'s, 'static>, Managers<String>), Failure> {
    let of = stage.of(&step.api_version);
    let value = smd::yaml(&step.object);
    let duplicates = if step.op == "Update" { Duplicates::Allowed } else { Duplicates::Refused };
    of.validate(&value, duplicates).map_err(|fault| Failure::Fault(fault.to_string()))?;

    let empty = Typed { value: Cow::Owned(Value::Null), of };
    let convert = |object: &Typed<'s, 'static>| {
        rules
            .versions
            .convert(object, &step.api_version)
            .map_err(|error| Failure::Fault(format!("{error:?}")))
    };
    let current = convert(live.unwrap_or(&empty))?;
    let version = step.api_version.as_str();
    let failure = |error: OwnershipError<String>| match error {
        OwnershipError::Conflicts(conflicts) => Failure::Conflicts(
            conflicts.iter().map(|(manager, path)| format!("{manager} {}", theirs(&path))).collect(),
        ),
        other => Failure::Fault(other.to_string()),
    };
    if step.op == "Update" {
        let new = Typed { value: Cow::Owned(value), of };
        let managers = rules.update(&current, &new, version, managers, &step.manager).map_err(failure)?;
        return Ok((new, managers));
    }
    let fault = |fault: kausality_fields::typed::Fault| Failure::Fault(fault.to_string());
    let value = match (step.op.as_str(), live) {
        ("ExtractApply", Some(_)) => {
            let set = managers.get(&step.manager).map(|claim| claim.fields.leaves()).unwrap_or_default();
            let extracted = of.extract(&current.value, &set, Keys::AsAsked).map_err(fault)?;
            of.merge(&extracted, &value).map_err(fault)?
        }
        _ => value,
    };
    let force = if step.op == "Apply" { Force::No } else { Force::Yes };
    let config = Typed { value: Cow::Owned(value), of };
    let done = rules.apply(&current, &config, version, managers, &step.manager, &force).map_err(failure)?;
    let object = done.object.map_or(current, |value| Typed { value: Cow::Owned(value), of });
    Ok((object, done.managers))
}

fn compare(
    found: &Managers<String>,
    expected: &BTreeMap<String, Expected>,
    applied: bool,
) -> Result<(), String> {
    let show = |manager: &String, version: &str, was_applied: bool, fields: String| {
        json!([manager, version, applied && was_applied, fields])
    };
    let found: Vec<_> = found
        .iter()
        .map(|(name, claim)| show(name, &claim.api_version, claim.applied, claim.fields.to_fields_v1()))
        .collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, claim)| show(name, &claim.api_version, claim.applied, compact(claim.fields_v1.get())))
        .collect();
    if found == expected { Ok(()) } else { Err(format!("managers {found:#?} instead of {expected:#?}")) }
}

/// The same bytes without the space that the data has between them.
fn compact(json: &str) -> String {
    let mut quoted = false;
    let mut escaped = false;
    let keep = |c: &char| {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
        quoted || !c.is_whitespace()
    };
    json.chars().filter(keep).collect()
}

/// A path in their notation.
fn theirs(path: &Path) -> String {
    let step = |step: &Step| match step {
        Step::Field(name) => format!(".{name}"),
        Step::Value(scalar) => format!("[={}]", quoted(scalar)),
        Step::Index(index) => format!("[{index}]"),
        Step::Key(parts) => {
            let parts: Vec<_> =
                parts.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
            format!("[{}]", parts.join(","))
        }
    };
    path.steps().iter().map(step).collect()
}

fn quoted(scalar: &kausality_fields::Scalar) -> String {
    match scalar {
        kausality_fields::Scalar::Text(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}
