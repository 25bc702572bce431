//! The fields of protobuf messages, from the tags of Go's types:
//! `Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"``.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context as _, Result};

/// Packages: module, folder, and the prefix of their definitions in OpenAPI.
const PACKAGES: [(&str, &str, &str); 16] = [
    ("api", "core/v1", "io.k8s.api.core.v1"),
    ("api", "apps/v1", "io.k8s.api.apps.v1"),
    ("api", "batch/v1", "io.k8s.api.batch.v1"),
    ("api", "rbac/v1", "io.k8s.api.rbac.v1"),
    ("api", "coordination/v1", "io.k8s.api.coordination.v1"),
    ("api", "events/v1", "io.k8s.api.events.v1"),
    ("api", "autoscaling/v1", "io.k8s.api.autoscaling.v1"),
    ("api", "autoscaling/v2", "io.k8s.api.autoscaling.v2"),
    ("api", "admissionregistration/v1", "io.k8s.api.admissionregistration.v1"),
    ("api", "authentication/v1", "io.k8s.api.authentication.v1"),
    ("api", "authorization/v1", "io.k8s.api.authorization.v1"),
    ("api", "policy/v1", "io.k8s.api.policy.v1"),
    ("api", "networking/v1", "io.k8s.api.networking.v1"),
    ("apimachinery", "pkg/apis/meta/v1", "io.k8s.apimachinery.pkg.apis.meta.v1"),
    (
        "apiextensions-apiserver",
        "pkg/apis/apiextensions/v1",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    ),
    ("kube-aggregator", "pkg/apis/apiregistration/v1", "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1"),
];

/// Types that are read in a way of their own.
const SPECIAL: [&str; 5] = [
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
];
const ROOTS: [&str; 1] = ["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"];

/// A type as a source names it: which package it is in, and what that imports.
#[derive(Clone)]
struct Place {
    package: &'static str,
    imports: HashMap<String, String>,
}

struct Field {
    number: u64,
    json: String,
    of: String,
    place: Place,
}

#[derive(Default)]
struct Source {
    structs: HashMap<String, Vec<Field>>,
    /// Types that are other names: of a string, a list, a map.
    aliases: HashMap<String, (String, Place)>,
}

/// The lines of `protobuf.json`, for these definitions and what they refer to.
pub(crate) fn messages<'a>(
    modules: &Path,
    version: &str,
    definitions: impl Iterator<Item = &'a String>,
) -> Result<BTreeMap<String, Vec<String>>> {
    let mut source = Source::default();
    for (module, folder, package) in PACKAGES {
        let folder = modules.join(format!("{module}@{version}")).join(folder);
        let entries = std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let made = name.contains("generated") || name.starts_with("zz_") || name.ends_with("_test.go");
            if name.ends_with(".go") && !made {
                source.read(&std::fs::read_to_string(&path)?, package);
            }
        }
    }
    let mut messages = BTreeMap::new();
    let mut wanted: Vec<String> = definitions.cloned().chain(ROOTS.map(str::to_owned)).collect();
    while let Some(name) = wanted.pop() {
        let Some(fields) = source.structs.get(&name).filter(|_| !messages.contains_key(&name)) else {
            continue;
        };
        let mut lines: Vec<(u64, String)> = Vec::new();
        for field in fields {
            let of = source.resolve(&field.of, &field.place);
            lines.push((field.number, line(field, &of)));
            wanted.extend(of.rsplit(' ').next().map(|of| of.trim_start_matches('!').to_owned()));
        }
        lines.sort();
        messages.insert(name, lines.into_iter().map(|(_, line)| line).collect());
    }
    Ok(messages)
}

fn line(field: &Field, of: &str) -> String {
    let mut options = field.json.split(',');
    let name = options.next().unwrap_or_default();
    let options: Vec<&str> = options.collect();
    // An empty struct is written in spite of omitempty, and a time as null.
    let time = (of.ends_with(".Time") || of.ends_with(".MicroTime")) && of.starts_with("io.");
    let omitted = options.contains(&"omitzero") || (options.contains(&"omitempty") && !time);
    let name = if options.contains(&"inline") { "-" } else { name };
    format!("{} {name}{} {of}", field.number, if omitted { "" } else { "+" })
}

impl Source {
    fn read(&mut self, text: &str, package: &'static str) {
        let mut place = Place { package, imports: HashMap::new() };
        let mut inside: Option<(String, Vec<Field>)> = None;
        for line in text.lines() {
            if let Some((name, fields)) = &mut inside {
                if line.starts_with('}') {
                    if !fields.is_empty() {
                        self.structs.insert(std::mem::take(name), std::mem::take(fields));
                    }
                    inside = None;
                } else {
                    fields.extend(field(line, &place));
                }
                continue;
            }
            if let Some(rest) = line.strip_prefix("type ") {
                let mut words = rest.split_whitespace();
                let (Some(name), Some(of)) = (words.next(), words.next()) else { continue };
                let name = format!("{package}.{name}");
                match of {
                    "struct" => inside = Some((name, Vec::new())),
                    of if is_alias(of) => {
                        self.aliases.insert(name, (of.to_owned(), place.clone()));
                    }
                    _ => {}
                }
            } else if let Some((before, rest)) = line.split_once("\"k8s.io/") {
                let path = format!("k8s.io/{}", rest.trim_end_matches('"'));
                let name = before.split_whitespace().last().filter(|word| *word != "import");
                let name = name.or_else(|| path.rsplit('/').next()).unwrap_or_default().to_owned();
                place.imports.insert(name, path);
            }
        }
    }

    /// A type as `protobuf.json` has it.
    fn resolve(&self, of: &str, place: &Place) -> String {
        let pointer = if of.starts_with('*') { "!" } else { "" };
        let of = of.trim_start_matches('*');
        let plain = |of: &str| self.resolve(of, place).trim_start_matches('!').to_owned();
        match of {
            "string" | "bool" => return format!("{pointer}{of}"),
            "int" | "int16" | "int32" | "int64" | "uint8" | "uint32" | "uint64" => {
                return format!("{pointer}int");
            }
            "float64" => return format!("{pointer}double"),
            "[]byte" => return format!("{pointer}bytes"),
            _ => {}
        }
        if let Some(element) = of.strip_prefix("[]") {
            return format!("list {}", plain(element));
        }
        if let Some((_, element)) = of.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
            return format!("map {}", plain(element));
        }
        let name = match of.split_once('.') {
            None => format!("{}.{of}", place.package),
            Some((alias, name)) => {
                let path = place.imports.get(alias).map(String::as_str).unwrap_or_default();
                format!("{}.{name}", package(path))
            }
        };
        if let Some((of, place)) = self.aliases.get(&name) {
            let of = self.resolve(of, place);
            let many = of.starts_with("list ") || of.starts_with("map ");
            return if many { of } else { format!("{pointer}{of}") };
        }
        let known = self.structs.contains_key(&name)
            || SPECIAL.contains(&name.as_str())
            || name.starts_with("io.k8s.apiextensions");
        if known { format!("{pointer}{name}") } else { format!("{pointer}string") }
    }
}

fn is_alias(of: &str) -> bool {
    of == "string" || of.starts_with("map[") || of.starts_with("[]") || of.starts_with("int")
}

/// `k8s.io/api/core/v1` → `io.k8s.api.core.v1`.
fn package(path: &str) -> String {
    let path = path.trim_start_matches("k8s.io/");
    format!("io.k8s.{}", path.replace('/', "."))
}

fn field(line: &str, place: &Place) -> Option<Field> {
    let line = Some(line.trim()).filter(|line| !line.starts_with("//"))?;
    let (declared, tags) = line.split_once('`')?;
    let tag = |name: &str| {
        let (_, rest) = tags.split_once(&format!("{name}:\""))?;
        rest.split_once('"').map(|(tag, _)| tag)
    };
    let number = tag("protobuf")?.split(',').nth(1)?.parse().ok()?;
    let of = declared.split_whitespace().last()?.to_owned();
    Some(Field { number, json: tag("json")?.to_owned(), of, place: place.clone() })
}
