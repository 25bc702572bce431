//! Looks at every path and macro in a file.

use proc_macro2::{Delimiter, Spacing, Span, TokenStream, TokenTree};
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{
    Arm, Attribute, Block, Expr, ExprPath, Field, ImplItem, Item, Lit, Macro, PathArguments, Stmt, Token,
    TraitItem, Type,
};

use super::names::{Names, Written, imports};
use super::{plain, test_only};
use crate::check::Violation;
use crate::check::forbidden::{self, Kind};

/// What is forbidden in a file, as (file, line, violation).
pub(super) fn violations(
    place: &str,
    names: &Names,
    module: &[String],
    ast: &syn::File,
) -> Vec<(String, usize, Violation)> {
    let mut scanner =
        Scanner { place, names, module: module.to_vec(), selves: Vec::new(), found: Vec::new() };
    scanner.visit_file(ast);
    scanner.found
}

/// The attributes of an item.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

struct Scanner<'a> {
    place: &'a str,
    names: &'a Names,
    module: Vec<String>,
    /// What `Self` means in the `impl` blocks around.
    selves: Vec<Option<Written>>,
    found: Vec<(String, usize, Violation)>,
}

impl Scanner<'_> {
    fn report(&mut self, span: Span, written: &str, meaning: &str, kind: Kind) {
        let line = span.start().line;
        let meaning = if meaning == written { String::new() } else { format!(" ({meaning})") };
        let violation = Violation {
            place: format!("{}:{line}", self.place),
            what: format!("`{written}`{meaning} {}", kind.what()),
            why: format!("the crate is pure, and {}", kind.why()),
            instead: kind.instead().to_owned(),
        };
        self.found.push((self.place.to_owned(), line, violation));
    }

    /// Checks a path in the code. `parameters` are the numbers of type parameters at its segments; None in an
    /// import, which does not choose a hasher yet.
    fn path(&mut self, span: Span, path: &Written, parameters: Option<&[usize]>) {
        let mut path = path.clone();
        if path.segments.first().is_some_and(|first| first == "Self")
            && let Some(Some(meant)) = self.selves.last()
        {
            path = Written {
                absolute: meant.absolute,
                segments: [&meant.segments, path.segments.get(1..).unwrap_or_default()].concat(),
            };
        }
        let hit = self.names.resolve(&self.module, &path).into_iter().find_map(|meaning| {
            let kind = forbidden::item(&meaning)
                .or_else(|| parameters.and_then(|parameters| forbidden::collection(&meaning, parameters)))?;
            Some((meaning, kind))
        });
        if let Some((meaning, kind)) = hit {
            self.report(span, &path.segments.join("::"), &meaning.join("::"), kind);
        }
    }

    fn macro_name(&mut self, span: Span, name: &str, tokens: &TokenStream) {
        let variable = tokens.clone().into_iter().next().and_then(|token| string(&token));
        if let Some(kind) = forbidden::macro_call(name, variable.as_deref()) {
            let call = variable
                .filter(|_| kind == Kind::Environment)
                .map_or(format!("{name}!"), |v| format!("{name}!({v:?})"));
            self.report(span, &call, &call, kind);
        }
    }

    /// Checks the arguments of a macro: as code where they are code, else as a heap of paths.
    fn arguments(&mut self, tokens: &TokenStream) {
        if let Ok(list) = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens.clone()) {
            list.iter().for_each(|argument| self.visit_expr(argument));
        } else if let Ok(statements) = Block::parse_within.parse2(tokens.clone()) {
            statements.iter().for_each(|statement| self.visit_stmt(statement));
        } else {
            self.heap(tokens);
        }
    }

    /// Checks every `a::b::c` and `name!` in tokens that are not Rust, such as `macro_rules!` and `json!`.
    fn heap(&mut self, tokens: &TokenStream) {
        let tokens: Vec<_> = tokens.clone().into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Group(group) => self.heap(&group.stream()),
                TokenTree::Ident(ident) if !follows(&tokens, at, &['.', '\'']) => {
                    let absolute = at.checked_sub(2).is_some_and(|before| colons(&tokens, before));
                    let mut segments = vec![plain(ident)];
                    while let (true, Some(TokenTree::Ident(next))) =
                        (colons(&tokens, at + 1), tokens.get(at + 3))
                    {
                        segments.push(plain(next));
                        at += 3;
                    }
                    match (tokens.get(at + 1), tokens.get(at + 2)) {
                        (Some(TokenTree::Punct(bang)), Some(TokenTree::Group(group)))
                            if bang.as_char() == '!' =>
                        {
                            let name = segments.last().cloned().unwrap_or_default();
                            self.macro_name(ident.span(), &name, &group.stream());
                        }
                        _ => self.path(ident.span(), &Written { absolute, segments }, Some(&[])),
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }
}

impl<'ast> Visit<'ast> for Scanner<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if test_only(attributes(item)) {
            return;
        }
        match item {
            Item::Use(item) => {
                for import in imports(item) {
                    self.path(import.span, &import.target, None);
                }
            }
            Item::Mod(item) => {
                self.module.push(plain(&item.ident));
                visit::visit_item_mod(self, item);
                self.module.pop();
            }
            Item::Impl(item) => {
                self.selves.push(path_of(&item.self_ty));
                visit::visit_item_impl(self, item);
                self.selves.pop();
            }
            item => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            ImplItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !test_only(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        let attributes: &[Attribute] = match item {
            TraitItem::Const(item) => &item.attrs,
            TraitItem::Fn(item) => &item.attrs,
            TraitItem::Type(item) => &item.attrs,
            TraitItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !test_only(attributes) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let attributes: &[Attribute] = match statement {
            Stmt::Local(local) => &local.attrs,
            Stmt::Macro(call) => &call.attrs,
            Stmt::Expr(Expr::Block(block), _) => &block.attrs,
            _ => &[],
        };
        if !test_only(attributes) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if !test_only(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        if !test_only(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parameters: Vec<_> =
            path.segments.iter().map(|segment| type_parameters(&segment.arguments)).collect();
        self.path(start(path), &Written::of(path), Some(&parameters));
        visit::visit_path(self, path);
    }

    fn visit_expr_path(&mut self, expression: &'ast ExprPath) {
        // `<Type>::function`: the type is a path of its own, and so is the whole.
        if let Some(qself) = expression.qself.as_ref().filter(|qself| qself.position == 0)
            && let Some(ty) = path_of(&qself.ty)
        {
            let function = Written::of(&expression.path).segments;
            let whole = Written { absolute: ty.absolute, segments: [ty.segments, function].concat() };
            self.path(start(&expression.path), &whole, None);
        }
        visit::visit_expr_path(self, expression);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        // An import may have renamed it.
        let written = Written::of(&call.path);
        let meanings = self.names.resolve(&self.module, &written);
        let own = written.segments.last().cloned().unwrap_or_default();
        let name = meanings.iter().filter_map(|meaning| meaning.last()).next().unwrap_or(&own);
        self.macro_name(start(&call.path), name, &call.tokens);
        self.arguments(&call.tokens);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        // `#[serde(default = "path")]` calls the path.
        if attribute.path().is_ident("serde")
            && let Ok(list) = attribute.meta.require_list()
        {
            for token in list.tokens.clone() {
                if let Some(Ok(path)) = string(&token).map(|text| syn::parse_str::<syn::Path>(&text)) {
                    let written = Written::of(&path);
                    if written.segments.len() > 1 {
                        self.path(token.span(), &written, Some(&[]));
                    }
                }
            }
        }
    }
}

fn start(path: &syn::Path) -> Span {
    path.segments.first().map_or_else(Span::call_site, |segment| segment.ident.span())
}

fn path_of(ty: &Type) -> Option<Written> {
    match ty {
        Type::Path(ty) if ty.qself.is_none() => Some(Written::of(&ty.path)),
        _ => None,
    }
}

fn type_parameters(arguments: &PathArguments) -> usize {
    match arguments {
        PathArguments::AngleBracketed(list) => {
            list.args.iter().filter(|argument| matches!(argument, syn::GenericArgument::Type(_))).count()
        }
        _ => 0,
    }
}

/// The value of a string literal, be it in the invisible brackets of a macro.
fn string(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Literal(literal) => match Lit::new(literal.clone()) {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            group.stream().into_iter().next().and_then(|token| string(&token))
        }
        _ => None,
    }
}

fn follows(tokens: &[TokenTree], at: usize, marks: &[char]) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    matches!(before, Some(TokenTree::Punct(punct)) if marks.contains(&punct.as_char()))
}

fn colons(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |token: Option<&TokenTree>| match token {
        Some(TokenTree::Punct(punct)) if punct.as_char() == ':' => Some(punct.spacing()),
        _ => None,
    };
    colon(tokens.get(at)) == Some(Spacing::Joint) && colon(tokens.get(at + 1)).is_some()
}
