//! Manifests from files: YAML or JSON, several to a file, folders of them, or standard input.

use std::{
    collections::HashSet,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// One object, and where it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The file, or `-`.
    pub file: String,
    /// The object.
    pub object: Value,
}

impl Manifest {
    /// A text of the object; empty if it has none.
    #[must_use]
    pub fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

/// All objects in files, in folders with their subfolders, or in standard input (`-`), in order.
///
/// # Errors
/// If something cannot be read, is no manifest, or nothing is found.
pub fn load(paths: &[PathBuf]) -> Result<Vec<Manifest>> {
    let mut found = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
            found.extend(parse("-", &text)?);
        } else if path.is_dir() {
            let files = folder(path, &ENDINGS)?;
            if files.is_empty() {
                bail!("{} holds no file that ends in .yaml, .yml or .json", path.display());
            }
            for file in files {
                found.extend(read(&file)?);
            }
        } else {
            found.extend(read(path)?);
        }
    }
    if found.is_empty() {
        bail!("no objects found: is the input empty?");
    }
    Ok(found)
}

/// The documents in a text; lists are taken apart.
///
/// # Errors
/// If it is no YAML.
pub fn documents(file: &str, text: &str) -> Result<Vec<Value>> {
    // JSON is YAML, but of JSON there may be more, and deeper.
    let json = text.trim_start().starts_with(['{', '[']).then(|| json(text).ok()).flatten();
    let documents = json.map_or_else(|| yaml(text), Ok).with_context(|| format!("{file} cannot be read"))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).flat_map(items).collect())
}

/// As kubectl reads YAML: `0644` is octal. What is wrong is not quoted: it may be a Secret.
fn yaml(text: &str) -> Result<Vec<Value>> {
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_documents: 100_000,
            max_nodes: 20_000_000,
            max_events: 50_000_000,
            max_total_scalar_bytes: 1 << 30,
        },
    };
    serde_saphyr::from_multiple_with_options(text, options).context("not YAML")
}

fn json(text: &str) -> Result<Vec<Value>> {
    let documents = serde_json::Deserializer::from_str(text).into_iter();
    Ok(documents.collect::<Result<_, _>>()?)
}

fn read(file: &Path) -> Result<Vec<Manifest>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    parse(&file.display().to_string(), &text)
}

fn parse(file: &str, text: &str) -> Result<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for object in documents(file, text)? {
        let manifest = Manifest { file: file.to_owned(), object };
        for field in ["/apiVersion", "/kind", "/metadata/name"] {
            if manifest.text(field).is_empty() {
                let name = [manifest.text("/kind"), manifest.text("/metadata/name")].join(" ");
                let field = field.trim_start_matches('/').replace('/', ".");
                bail!("{file}: an object ({}) has no {field}", name.trim());
            }
        }
        // They go into paths of requests, and must not lead anywhere else.
        for field in ["/metadata/name", "/metadata/namespace"] {
            let text = manifest.text(field);
            if matches!(text, "." | "..") || text.contains(['/', '%', '?', '#']) {
                bail!("{file}: {text:?} is no name");
            }
        }
        manifests.push(manifest);
    }
    Ok(manifests)
}

/// The files with these endings in a folder and its subfolders, in the order of their names. A folder to which several ways
/// lead is read once: links may go round in circles.
pub(crate) fn folder(path: &Path, endings: &[&str]) -> Result<Vec<PathBuf>> {
    walk(path, endings, &mut HashSet::new())
}

fn walk(path: &Path, endings: &[&str], seen: &mut HashSet<PathBuf>) -> Result<Vec<PathBuf>> {
    let context = || format!("cannot read {}", path.display());
    if !seen.insert(path.canonicalize().with_context(context)?) {
        return Ok(Vec::new());
    }
    let mut entries = std::fs::read_dir(path)
        .with_context(context)?
        .collect::<Result<Vec<_>, _>>()
        .with_context(context)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            files.extend(walk(&path, endings, seen)?);
        } else if path.extension().and_then(|end| end.to_str()).is_some_and(|end| endings.contains(&end)) {
            files.push(path);
        }
    }
    Ok(files)
}

/// The items of a list, or the document itself.
fn items(mut document: Value) -> Vec<Value> {
    let is_list = document.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items").filter(|_| is_list).map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => vec![document],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

    #[test]
    fn documents_lists_and_empty_ones() {
        let text = format!("---\n{A}---\n---\n{A}");
        let found = parse("f.yaml", &text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].text("/metadata/name"), "a");
        let items: Vec<Value> = found.into_iter().map(|manifest| manifest.object).collect();
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        assert_eq!(parse("f.json", &list).unwrap().len(), 2);
    }

    #[test]
    fn faults_say_where() {
        for (text, expected) in [
            ("a: [", "f.yaml cannot be read: not YAML"),
            ("apiVersion: v1\nkind: Pod\nmetadata: {name: a/status}", r#"f.yaml: "a/status" is no name"#),
            ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: 'b?'}", r#"f.yaml: "b?" is no name"#),
            ("kind: ConfigMap\nmetadata: {name: a}", "f.yaml: an object (ConfigMap a) has no apiVersion"),
            ("apiVersion: v1\nkind: ConfigMap", "f.yaml: an object (ConfigMap) has no metadata.name"),
        ] {
            let error = format!("{:#}", parse("f.yaml", text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn numbers_are_read_as_kubectl_reads_them() {
        let text = format!("{A}data: {{mode: 0644, port: 80, half: 0.5, octal: 0o17}}");
        let object = &parse("f.yaml", &text).unwrap()[0].object;
        assert_eq!(object["data"], serde_json::json!({"mode": 420, "port": 80, "half": 0.5, "octal": 15}));
    }

    #[test]
    fn a_fault_quotes_nothing() {
        let text = "apiVersion: v1\nkind: Secret\nstringData:\n  a: hunter2\n   b: hunter2\n";
        let error = format!("{:#}", parse("f.yaml", text).unwrap_err());
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn there_may_be_many() {
        let text = format!("---\n{A}").repeat(2000);
        assert_eq!(parse("f.yaml", &text).unwrap().len(), 2000);
        let deep = (0..100).fold("1".to_owned(), |inner, _| format!(r#"{{"a":{inner}}}"#));
        let json = format!(r#"{{"apiVersion":"v1","kind":"A","metadata":{{"name":"a"}},"spec":{deep}}}"#);
        assert_eq!(parse("f.json", &json).unwrap().len(), 1);
    }

    #[test]
    fn folders_are_read_in_order_with_their_subfolders() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        for (file, name) in [("c.yaml", "third"), ("b/x.yml", "second"), ("a.json", "first"), ("z.txt", "no")]
        {
            let text = A.replace("name: a", &format!("name: {name}"));
            std::fs::write(folder.path().join(file), text).unwrap();
        }
        let found = load(&[folder.path().to_owned()]).unwrap();
        let names: Vec<&str> = found.iter().map(|manifest| manifest.text("/metadata/name")).collect();
        assert_eq!(names, ["first", "second", "third"]);
    }

    #[test]
    #[cfg(unix)]
    fn links_that_go_round_in_circles_are_followed_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        std::fs::write(folder.path().join("b/x.yaml"), A).unwrap();
        std::os::unix::fs::symlink("..", folder.path().join("b/up")).unwrap();
        assert_eq!(super::folder(folder.path(), &["yaml"]).unwrap(), [folder.path().join("b/x.yaml")]);
    }
}
