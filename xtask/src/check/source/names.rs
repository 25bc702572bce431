//! What a name means in a module: imports, aliases, globs and declared items.
//!
//! Where several meanings are possible (two functions that import different things under one name, two globs)
//! all are given: the caller asks whether any of them is forbidden.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{Item, Type, UseTree};

use super::{plain, test_only};
use crate::check::forbidden;

/// A path as it was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Written {
    /// It starts with `::`.
    pub(super) absolute: bool,
    pub(super) segments: Vec<String>,
}

impl Written {
    /// A path of a syntax tree, without its type parameters.
    pub(super) fn of(path: &syn::Path) -> Self {
        let segments = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
        Self { absolute: path.leading_colon.is_some(), segments }
    }

    fn then(&self, rest: &[String]) -> Self {
        Self { absolute: self.absolute, segments: [&self.segments, rest].concat() }
    }
}

/// One path that a `use` imports.
pub(super) struct Import {
    pub(super) target: Written,
    /// The name it is bound to; None for a glob.
    name: Option<String>,
    pub(super) span: Span,
}

/// The paths that a `use` imports.
pub(super) fn imports(item: &syn::ItemUse) -> Vec<Import> {
    let mut found = Vec::new();
    let start = Written { absolute: item.leading_colon.is_some(), segments: Vec::new() };
    flatten(&item.tree, &start, item.use_token.span, &mut found);
    found
}

fn flatten(tree: &UseTree, before: &Written, span: Span, found: &mut Vec<Import>) {
    let with = |ident: &syn::Ident| {
        // `use a::{self}` imports `a`.
        if ident == "self" && !before.segments.is_empty() {
            before.clone()
        } else {
            before.then(&[plain(ident)])
        }
    };
    match tree {
        UseTree::Path(path) => flatten(&path.tree, &with(&path.ident), path.ident.span(), found),
        UseTree::Name(name) => {
            let target = with(&name.ident);
            let bound = target.segments.last().cloned();
            found.push(Import { target, name: bound, span: name.ident.span() });
        }
        UseTree::Rename(rename) => {
            let bound = Some(plain(&rename.rename));
            found.push(Import { target: with(&rename.ident), name: bound, span: rename.ident.span() });
        }
        UseTree::Glob(_) => found.push(Import { target: before.clone(), name: None, span }),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, span, found)),
    }
}

#[derive(Default)]
struct Scope {
    aliases: BTreeMap<String, BTreeSet<Written>>,
    globs: BTreeSet<Written>,
    items: BTreeSet<String>,
}

/// The names of all modules that were read.
#[derive(Default)]
pub(super) struct Names {
    scopes: BTreeMap<Vec<String>, Scope>,
    /// Dependencies that a crate calls by another name: (crate, its name for it) -> the real name.
    renames: BTreeMap<(String, String), String>,
}

impl Names {
    /// Notes that a crate calls a dependency by another name.
    pub(super) fn rename(&mut self, krate: &str, name: &str, real: &str) {
        self.renames.insert((krate.to_owned(), name.to_owned()), real.to_owned());
    }

    /// Learns what a file imports and declares.
    pub(super) fn learn(&mut self, module: &[String], ast: &syn::File) {
        self.scopes.entry(module.to_vec()).or_default();
        Collector { names: self, module: module.to_vec() }.visit_file(ast);
    }

    /// The full paths that a written path may stand for, the name of the crate first.
    pub(super) fn resolve(&self, module: &[String], path: &Written) -> BTreeSet<Vec<String>> {
        let mut search = Search { names: self, seen: BTreeSet::new(), found: BTreeSet::new() };
        search.look_up(module, path, None);
        search.found
    }
}

struct Search<'a> {
    names: &'a Names,
    /// Globs may lead in circles.
    seen: BTreeSet<(Vec<String>, Vec<String>)>,
    found: BTreeSet<Vec<String>>,
}

impl Search<'_> {
    /// Looks a path up as seen from a module. `importing` is the name whose import is being followed: it does
    /// not mean itself.
    fn look_up(&mut self, module: &[String], path: &Written, importing: Option<&str>) {
        let mut segments = path.segments.as_slice();
        let mut start = module;
        let mut anchored = false;
        if !path.absolute {
            while let Some((first, rest)) = segments.split_first() {
                start = match first.as_str() {
                    "crate" => start.get(..1).unwrap_or(start),
                    "self" => start,
                    "super" => start.split_last().map_or(start, |(_, parent)| parent),
                    _ => break,
                };
                segments = rest;
                anchored = true;
            }
            if self.within(start, segments, importing) || anchored {
                return;
            }
        }
        self.external(module, segments);
    }

    /// Looks a path up among the names of a module. Says whether they surely decide it.
    fn within(&mut self, module: &[String], segments: &[String], importing: Option<&str>) -> bool {
        let (Some(scope), Some((first, rest))) = (self.names.scopes.get(module), segments.split_first())
        else {
            return false;
        };
        // A path that grows with each step goes in a circle, too.
        if segments.len() > 32 || !self.seen.insert((module.to_vec(), segments.to_vec())) {
            return false;
        }
        if let Some(targets) = scope.aliases.get(first).filter(|_| importing != Some(first)) {
            for target in targets {
                self.look_up(module, &target.then(rest), Some(first));
            }
            return true;
        }
        let child = [module, std::slice::from_ref(first)].concat();
        if self.names.scopes.contains_key(&child) {
            self.within(&child, rest, None);
            return true;
        }
        if scope.items.contains(first) {
            return true;
        }
        for glob in &scope.globs {
            self.look_up(module, &glob.then(segments), None);
        }
        false
    }

    /// Takes a path for one that starts with the name of a crate.
    fn external(&mut self, module: &[String], segments: &[String]) {
        let Some((first, rest)) = segments.split_first() else { return };
        let own = module.first().cloned().unwrap_or_default();
        let real = self.names.renames.get(&(own, first.clone())).unwrap_or(first);
        let real = if ["core", "alloc"].contains(&real.as_str()) { "std" } else { real };
        let root = [real.to_owned()];
        if self.names.scopes.contains_key(root.as_slice()) {
            self.within(&root, rest, None);
        } else {
            self.found.insert([root.as_slice(), rest].concat());
        }
    }
}

struct Collector<'a> {
    names: &'a mut Names,
    module: Vec<String>,
}

impl Collector<'_> {
    fn scope(&mut self) -> &mut Scope {
        self.names.scopes.entry(self.module.clone()).or_default()
    }

    fn alias(&mut self, name: String, target: Written) {
        self.scope().aliases.entry(name).or_default().insert(target);
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if test_only(super::scan::attributes(item)) {
            return;
        }
        match item {
            Item::Use(item) => {
                for Import { target, name, .. } in imports(item) {
                    match name {
                        Some(name) => self.alias(name, target),
                        // Reported where it is imported; else every name might come from it.
                        None if forbidden::item(&target.segments).is_some() => {}
                        None => _ = self.scope().globs.insert(target),
                    }
                }
            }
            Item::ExternCrate(item) => {
                let name = plain(item.rename.as_ref().map_or(&item.ident, |(_, rename)| rename));
                self.alias(name, Written { absolute: true, segments: vec![plain(&item.ident)] });
            }
            Item::Mod(item) => {
                self.module.push(plain(&item.ident));
                self.scope();
                visit::visit_item_mod(self, item);
                self.module.pop();
            }
            Item::Type(item) => match item.ty.as_ref() {
                // With parameters it is a type of its own: what it stands for is checked where it is
                // declared.
                Type::Path(ty)
                    if ty.qself.is_none() && ty.path.segments.iter().all(|s| s.arguments.is_none()) =>
                {
                    self.alias(plain(&item.ident), Written::of(&ty.path));
                }
                _ => _ = self.scope().items.insert(plain(&item.ident)),
            },
            item => {
                if let Some(name) = declared(item) {
                    self.scope().items.insert(name);
                }
                visit::visit_item(self, item);
            }
        }
    }
}

fn declared(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(plain(ident))
}
