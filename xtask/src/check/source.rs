//! A pure crate calls no clock, environment, randomness or I/O of the standard library.
//!
//! The sources are parsed, so comments, strings and docs are of no interest. Then, as in a compiler,
//! [`files`] finds the modules, [`names`] learns what each of them imports and declares, and [`scan`]
//! resolves every path in the code against that and looks it up in the table of what is
//! [`forbidden`](super::forbidden). All pure crates are read together, so that a clock cannot be passed on by
//! one crate's `pub use` to another.
//!
//! It is a check against mistakes, not against malice: types are not inferred, so a clock behind a method or
//! a trait of another crate is not seen. The [dependency tree](super::tree) is the wall against those.

mod files;
mod names;
mod scan;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use syn::ext::IdentExt as _;
use syn::{Attribute, Ident, Meta};

use super::Violation;
use super::workspace::Workspace;
use files::SourceFile;
use names::Names;

/// Every use of something impure in the pure crates, tests aside.
pub(crate) fn violations(workspace: &Workspace) -> Result<Vec<Violation>> {
    let mut names = Names::default();
    let mut loaded = Vec::new();
    for member in workspace.pure() {
        let krate = member.name.replace('-', "_");
        for dependency in &member.dependencies {
            if let Some(rename) = &dependency.rename {
                names.rename(&krate, rename, &dependency.name.replace('-', "_"));
            }
        }
        loaded.extend(files::load(member, &krate)?);
    }
    Ok(violations_in(names, &loaded, |path| workspace.relative(path)))
}

fn violations_in(mut names: Names, files: &[SourceFile], place: impl Fn(&Path) -> String) -> Vec<Violation> {
    for file in files {
        names.learn(&file.module, &file.ast);
    }
    let mut found = BTreeSet::new();
    for file in files {
        found.extend(scan::violations(&place(&file.path), &names, &file.module, &file.ast));
    }
    found.into_iter().map(|(_, _, violation)| violation).collect()
}

/// A name without the `r#` that makes a keyword of it usable.
fn plain(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// Whether attributes say that what they stand on is compiled for tests only.
fn test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg")
                && attribute.parse_args::<Meta>().is_ok_and(|cfg| implies_test(&cfg)))
    })
}

/// Whether a `cfg` predicate can only hold in tests.
fn implies_test(cfg: &Meta) -> bool {
    let children = |list: &syn::MetaList| {
        list.parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated)
            .unwrap_or_default()
    };
    match cfg {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => children(list).iter().any(implies_test),
        Meta::List(list) if list.path.is_ident("any") => {
            let children = children(list);
            !children.is_empty() && children.iter().all(implies_test)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
