//! The simple tests of cel-spec, as far as they need no protocol buffers.
//!
//! The vectors are in a Go module that the control plane for tests depends on, so that their version is pinned there.
//! Where that module is not, the test passes and says so. What is not as the vectors have it is listed in `misses.txt`,
//! each with its reason; a miss more or less fails the test.

use std::collections::BTreeMap;
use std::process::Command;

use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMapKey, CelNull, CelString, CelType, CelUInt,
};
use cel::common::value::Val;

mod textproto;

use super::*;
use crate::evaluate::Evaluation;
use textproto::{Message, Value as Field};

/// About protocol buffers alone, or about libraries that Kubernetes has not.
const LEFT_OUT: &[&str] = &[
    "bindings_ext",
    "block_ext",
    "dynamic",
    "encoders_ext",
    "enums",
    "math_ext",
    "proto2",
    "proto2_ext",
    "proto3",
    "type_deduction",
    "unknowns",
    "wrappers",
];

/// The words by which a test shows that it needs protocol buffers.
const PROTOBUF: &[&str] = &["TestAllTypes", "google.protobuf.", "cel.expr.conformance", "NullValue"];

#[test]
#[allow(clippy::print_stdout, reason = "the counts are for people")]
fn the_vectors_of_the_specification_are_met() {
    let listed: BTreeMap<&str, &str> = include_str!("conformance/misses.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(": ").unwrap_or_else(|| panic!("{line} has no reason")))
        .collect();
    let Some(files) = vectors() else {
        println!(
            "skipped: the Go module cel.dev/expr is not there (go mod download in control-plane/kubernetes)"
        );
        return;
    };
    let (mut passed, mut left_out) = (0, 0);
    let mut misses = BTreeMap::new();
    for (file, source) in files {
        let tests = Message::read(&source).unwrap_or_else(|error| panic!("{file}: {error}"));
        for section in tests.messages("section") {
            for test in section.messages("test") {
                let text = |message: &Message| message.text("name").unwrap_or_default();
                let name = format!("{file}/{}/{}", text(section), text(test));
                if LEFT_OUT.contains(&file.as_str()) || needs_protobuf(test) {
                    left_out += 1;
                    continue;
                }
                match met(test) {
                    Ok(()) => passed += 1,
                    Err(why) => {
                        misses.insert(name, why);
                    }
                }
            }
        }
    }
    println!("cel-spec: {passed} pass, {} miss, {left_out} left out", misses.len());
    let unlisted: Vec<_> = misses.iter().filter(|(name, _)| !listed.contains_key(name.as_str())).collect();
    let fixed: Vec<_> = listed.keys().filter(|name| !misses.contains_key(**name)).collect();
    assert!(
        unlisted.is_empty() && fixed.is_empty(),
        "not in the list: {unlisted:#?}\nmet, and in the list: {fixed:#?}"
    );
    assert!(passed > 500, "{passed}");
}

/// The files by name.
fn vectors() -> Option<Vec<(String, String)>> {
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../../control-plane/kubernetes");
    let mut command = Command::new("go");
    command.args(["list", "-m", "-f", "{{.Dir}}", "cel.dev/expr"]).current_dir(module);
    let output = command.env("GOFLAGS", "-mod=mod").env("GOPROXY", "off").output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    if !output.status.success() || folder.trim().is_empty() {
        return None;
    }
    let folder = std::path::Path::new(folder.trim()).join("tests/simple/testdata");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).ok()? {
        let path = entry.ok()?.path();
        if path.extension().is_some_and(|it| it == "textproto") {
            let name = path.file_stem()?.to_str()?.to_owned();
            files.push((name, std::fs::read_to_string(path).ok()?));
        }
    }
    files.sort();
    Some(files)
}

fn needs_protobuf(test: &Message) -> bool {
    let written = format!("{test:?}");
    let expression = test.text("expr").unwrap_or_default();
    PROTOBUF.iter().any(|word| expression.contains(word) || written.contains(word))
        || written.contains("object_value")
        || written.contains("message_type")
}

/// Whether a test comes out as it should.
fn met(test: &Message) -> Result<(), String> {
    let source = test.text("expr").unwrap_or_default();
    let found = evaluated(test, &source);
    if test.message("eval_error").is_some() || test.message("any_eval_errors").is_some() {
        return match found {
            Err(_) => Ok(()),
            Ok(value) => Err(format!("{source} is {value:?} and should be an error")),
        };
    }
    let expected = match test
        .message("value")
        .or_else(|| test.message("typed_result").and_then(|it| it.message("result")))
    {
        Some(value) => converted(value)?,
        None => Box::new(CelBool::from(true)),
    };
    match found {
        Err(error) => Err(format!("{source}: {error}")),
        Ok(value) if same(&*value, &*expected) => Ok(()),
        Ok(value) => Err(format!("{source} is {value:?} and should be {expected:?}")),
    }
}

/// Of the same type, and equal; and not a number is what it is.
fn same(one: &dyn Val, two: &dyn Val) -> bool {
    let nan = |it: &dyn Val| it.downcast_ref::<CelDouble>().is_some_and(|it| it.inner().is_nan());
    one.get_type().name() == two.get_type().name() && (one.equals(two) || nan(one) && nan(two))
}

struct Bound(Vec<(String, Object)>, Object);

impl Facts for Bound {
    fn get(&self, name: &str) -> &Object {
        self.0.iter().find(|(known, _)| known == name).map_or(&self.1, |(_, object)| object)
    }
}

fn evaluated(test: &Message, source: &str) -> Result<Box<dyn Val>, String> {
    let mut bound = Vec::new();
    for binding in test.messages("bindings") {
        let value = binding.message("value").and_then(|it| it.message("value")).ok_or("no value is bound")?;
        bound.push((binding.text("key").unwrap_or_default(), Object::from(converted(value)?)));
    }
    let declared = test.messages("type_env").filter_map(|it| Some((it.text("name")?, it.message("ident")?)));
    let mut variables: Vec<(&'static str, Type)> = Vec::new();
    for (name, ident) in declared {
        let of = ident.message("type").map_or(Type::Dyn, declared_type);
        variables.push((name.leak(), of));
    }
    for (name, _) in &bound {
        if !variables.iter().any(|(known, _)| known == name) {
            variables.push((name.clone().leak(), Type::Dyn));
        }
    }
    let environment = Environment::new(&variables).within(Environment::conditions().limits());
    let unchecked = test.text("disable_check").is_some_and(|it| it == "true");
    let expression =
        Expression::of_any(source, &environment, !unchecked).map_err(|fault| fault.to_string())?;
    let facts = Bound(bound, Object::null());
    let evaluation = Evaluation::new(&facts, 1_000_000);
    let value = evaluation.value(&expression.node, None).map_err(|error| error.to_string())?;
    Ok(value.into_owned())
}

fn declared_type(of: &Message) -> Type {
    match of.only() {
        Some(("primitive", Field::Word(word))) => match word.as_str() {
            "BOOL" => Type::Bool,
            "INT64" => Type::Int,
            "UINT64" => Type::Uint,
            "DOUBLE" => Type::Double,
            "STRING" => Type::String,
            "BYTES" => Type::Bytes,
            _ => Type::Dyn,
        },
        Some(("list_type", Field::Message(list))) => {
            Type::List(Box::new(list.message("elem_type").map_or(Type::Dyn, declared_type)))
        }
        Some(("map_type", Field::Message(map))) => {
            let of = |name: &str| Box::new(map.message(name).map_or(Type::Dyn, declared_type));
            Type::Map(of("key_type"), of("value_type"))
        }
        _ => Type::Dyn,
    }
}

fn converted(value: &Message) -> Result<Box<dyn Val>, String> {
    let number = |word: &str| word.parse::<f64>().map_err(|error| format!("{word}: {error}"));
    Ok(match value.only().ok_or("no value")? {
        ("null_value", _) => Box::new(CelNull),
        ("bool_value", Field::Word(word)) => Box::new(CelBool::from(word == "true")),
        ("int64_value", Field::Word(word)) => {
            Box::new(CelInt::from(word.parse::<i64>().map_err(|it| it.to_string())?))
        }
        ("uint64_value", Field::Word(word)) => {
            Box::new(CelUInt::from(word.parse::<u64>().map_err(|it| it.to_string())?))
        }
        ("double_value", Field::Word(word)) => Box::new(CelDouble::from(number(word)?)),
        ("string_value", Field::Text(text)) => {
            Box::new(CelString::from(String::from_utf8(text.clone()).map_err(|it| it.to_string())?))
        }
        ("bytes_value", Field::Text(text)) => Box::new(CelBytes::from(text.clone())),
        ("type_value", Field::Text(text)) => {
            Box::new(CelType::new(String::from_utf8_lossy(text).into_owned()))
        }
        ("list_value", Field::Message(list)) => {
            let items = list.messages("values").map(converted).collect::<Result<Vec<_>, _>>()?;
            Box::new(CelList::from(items))
        }
        ("map_value", Field::Message(map)) => {
            let mut entries = Vec::new();
            for entry in map.messages("entries") {
                let part = |name: &str| converted(entry.message(name).ok_or("an entry is not whole")?);
                let key = CelMapKey::try_from(part("key")?).map_err(|it| it.to_string())?;
                entries.push((key, part("value")?));
            }
            Box::new(crate::object::map(entries))
        }
        (other, _) => return Err(format!("{other} is not known here")),
    })
}
