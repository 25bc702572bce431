//! The source files of a crate, and the module that each of them is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use syn::{Expr, ExprLit, Item, ItemMod, Lit, Meta};

use super::{plain, test_only};
use crate::check::workspace::Member;

/// A file that is not for tests only.
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    /// The full path of its module, the name of the crate first.
    pub(super) module: Vec<String>,
    pub(super) ast: syn::File,
}

/// Reads the files of a crate: those that its modules lead to, and any other one under `src`, since it may be
/// included or become a module tomorrow.
pub(super) fn load(member: &Member, krate: &str) -> Result<Vec<SourceFile>> {
    let mut reader = Reader { files: Vec::new(), seen: BTreeSet::new() };
    for root in member.roots() {
        let directory = root.parent().unwrap_or(Path::new("")).to_path_buf();
        reader.read(root, vec![krate.to_owned()], &directory, false)?;
    }
    let mut others = rust_files(&member.sources())?;
    // A parent goes before its children: it knows which of them are tests.
    others.sort_by_key(|path| path.components().count());
    for path in others {
        if !reader.seen.contains(&path) {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let directory = path.with_extension("");
            reader.read(&path, vec![krate.to_owned(), stem], &directory, false)?;
        }
    }
    Ok(reader.files)
}

struct Reader {
    files: Vec<SourceFile>,
    /// Files that were read, those for tests among them.
    seen: BTreeSet<PathBuf>,
}

impl Reader {
    /// Reads a file and those of its child modules, which lie in `directory`.
    fn read(&mut self, path: &Path, module: Vec<String>, directory: &Path, in_test: bool) -> Result<()> {
        if !self.seen.insert(path.to_path_buf()) {
            return Ok(());
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let ast = syn::parse_file(&text).map_err(|error| {
            anyhow!("{}:{}: cannot be parsed: {error}", path.display(), error.span().start().line)
        })?;
        let in_test = in_test || test_only(&ast.attrs);
        self.children(&ast.items, path, &module, directory, in_test)?;
        if !in_test {
            self.files.push(SourceFile { path: path.to_path_buf(), module, ast });
        }
        Ok(())
    }

    fn children(
        &mut self,
        items: &[Item],
        file: &Path,
        module: &[String],
        directory: &Path,
        in_test: bool,
    ) -> Result<()> {
        for item in items {
            let Item::Mod(child) = item else { continue };
            let in_test = in_test || test_only(&child.attrs);
            let name = plain(&child.ident);
            let module = [module, std::slice::from_ref(&name)].concat();
            if let Some((_, items)) = &child.content {
                self.children(items, file, &module, &directory.join(&name), in_test)?;
            } else if let Some(path) = declared(child, file, directory) {
                // The children of `#[path]` files and of mod.rs lie beside them.
                let beside = explicit_path(child).is_some() || path.ends_with("mod.rs");
                let below = if beside {
                    path.parent().unwrap_or(directory).to_path_buf()
                } else {
                    directory.join(&name)
                };
                self.read(&path, module, &below, in_test)?;
            }
        }
        Ok(())
    }
}

/// The file that `mod name;` stands for. None if there is none: the compiler complains unless a `cfg`
/// excludes it.
fn declared(child: &ItemMod, file: &Path, directory: &Path) -> Option<PathBuf> {
    if let Some(path) = explicit_path(child) {
        let path = file.parent()?.join(path);
        return path.is_file().then_some(path);
    }
    let name = plain(&child.ident);
    [directory.join(format!("{name}.rs")), directory.join(name).join("mod.rs")]
        .into_iter()
        .find(|path| path.is_file())
}

fn explicit_path(child: &ItemMod) -> Option<String> {
    child.attrs.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}

fn rust_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !directory.is_dir() {
        return Ok(found);
    }
    let context = || format!("listing {}", directory.display());
    for entry in std::fs::read_dir(directory).with_context(context)? {
        let path = entry.with_context(context)?.path();
        if path.is_dir() {
            found.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
