//! As few fields as a rule may name, and no wider than need be.

use std::collections::BTreeSet;

use kausality_api::exception::{MAX_FIELD, MAX_NAMED};

/// The fields to name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Narrowed {
    /// None, if there are too many that have nothing in common.
    pub(crate) fields: Vec<String>,
    /// Whether more is within them than was changed, since a rule can name no more fields, or none that are so long.
    pub(crate) widened: bool,
}

/// The fields to name, so that all of these are within them.
pub(crate) fn fields(changed: &BTreeSet<String>) -> Narrowed {
    let mut fields: BTreeSet<String> = changed.iter().map(|path| fitting(path)).collect();
    loop {
        fields = outermost(&fields);
        let deepest = fields.iter().map(|path| depth(path)).max().unwrap_or_default();
        if fields.len() <= MAX_NAMED {
            let widened = fields.iter().any(|field| !changed.contains(field));
            return Narrowed { fields: fields.into_iter().collect(), widened };
        }
        if deepest <= 1 {
            return Narrowed { fields: Vec::new(), widened: true };
        }
        let up = |path: &String| if depth(path) == deepest { above(path).to_owned() } else { path.clone() };
        fields = fields.iter().map(up).collect();
    }
}

/// Where the steps of a path after the first begin, as in `spec.containers[name=web].image`.
fn steps(path: &str) -> Vec<usize> {
    let (mut steps, mut inside, mut quoted, mut escaped) = (Vec::new(), false, false, false);
    for (at, letter) in path.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            ']' => inside = false,
            '[' | '.' if !inside => {
                inside = letter == '[';
                steps.extend((at > 0).then_some(at));
            }
            _ => {}
        }
    }
    steps
}

fn depth(path: &str) -> usize {
    steps(path).len() + 1
}

/// What a path lies in; the path itself, if that is the whole object.
fn above(path: &str) -> &str {
    steps(path).last().and_then(|last| path.get(..*last)).unwrap_or(path)
}

/// The path, or as much of it as fits.
fn fitting(path: &str) -> String {
    let mut path = path;
    while path.len() > MAX_FIELD && depth(path) > 1 {
        path = above(path);
    }
    path.to_owned()
}

/// Those that are not within another.
fn outermost(fields: &BTreeSet<String>) -> BTreeSet<String> {
    let within =
        |path: &&String| steps(path).iter().any(|at| path.get(..*at).is_some_and(|it| fields.contains(it)));
    fields.iter().filter(|path| !within(path)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowed(paths: impl IntoIterator<Item = String>) -> (Vec<String>, bool) {
        let Narrowed { fields, widened } = fields(&paths.into_iter().collect());
        (fields, widened)
    }

    #[test]
    fn what_lies_within_another_field_is_not_named() {
        let named = narrowed(["spec.a.b", "spec.a", "spec.ab", "spec.c"].map(ToOwned::to_owned));
        assert_eq!(named, (["spec.a", "spec.ab", "spec.c"].map(ToOwned::to_owned).to_vec(), false));
    }

    #[test]
    fn too_many_are_named_by_what_they_have_in_common() {
        let many = (0..40).map(|number| format!("spec.template.labels.l{number}"));
        assert_eq!(
            narrowed(many.clone().chain(["spec.size".to_owned()])),
            (vec!["spec.size".to_owned(), "spec.template.labels".to_owned()], true)
        );
        let (named, widened) = narrowed(many.take(32));
        assert_eq!((named.len(), widened), (32, false));
        assert_eq!(narrowed((0..40).map(|number| format!("f{number}"))), (Vec::new(), true));
    }

    #[test]
    fn items_and_names_in_quotes_are_one_step() {
        assert_eq!(above(r#"spec.list[name="a.b]c"].image"#), r#"spec.list[name="a.b]c"]"#);
        assert_eq!(above(r#"spec.list[name="a.b]c"]"#), "spec.list");
        assert_eq!(above(r#"data["a.b/\"c"]"#), "data");
        assert_eq!(above("spec"), "spec");
        let many = (0..40).map(|number| format!(r#"data["key.{number}"]"#));
        assert_eq!(narrowed(many), (vec!["data".to_owned()], true));
    }

    #[test]
    fn what_is_too_long_is_named_by_where_it_is() {
        assert_eq!(narrowed([format!("data.{}", "x".repeat(2000))]), (vec!["data".to_owned()], true));
    }
}
