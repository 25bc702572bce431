//! As few fields as a rule may name, and no wider than need be.

use std::collections::BTreeSet;

use kausality_fields::Path;

/// How many fields a rule names at most, and how long each is: the definition of policies takes no more.
const MAX_FIELDS: usize = 32;
const MAX_LENGTH: usize = 1024;

/// The fields to name, so that all of these are within them. None, if there are too many that have nothing in common.
pub(super) fn fields(changed: &BTreeSet<Path>) -> Vec<String> {
    let mut fields: BTreeSet<Path> = changed.iter().map(fitting).collect();
    loop {
        fields = outermost(&fields);
        let deepest = fields.iter().map(|path| path.steps().len()).max().unwrap_or_default();
        match fields.len() {
            0..=MAX_FIELDS => return fields.iter().map(ToString::to_string).collect(),
            _ if deepest <= 1 => return Vec::new(),
            _ => {}
        }
        let up = |path: &Path| if path.steps().len() == deepest { above(path) } else { path.clone() };
        fields = fields.iter().map(up).collect();
    }
}

fn above(path: &Path) -> Path {
    let steps = path.steps();
    steps.iter().take(steps.len().saturating_sub(1)).cloned().collect()
}

/// The path, or as much of it as fits.
fn fitting(path: &Path) -> Path {
    let mut path = path.clone();
    while path.to_string().len() > MAX_LENGTH && path.steps().len() > 1 {
        path = above(&path);
    }
    path
}

/// Those that are not within another.
fn outermost(fields: &BTreeSet<Path>) -> BTreeSet<Path> {
    let within = |path: &Path| {
        (1..path.steps().len())
            .any(|length| fields.contains(&path.steps().iter().take(length).cloned().collect()))
    };
    fields.iter().filter(|path| !within(path)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use kausality_fields::Step;

    use super::*;

    fn path(text: &str) -> Path {
        text.split('.').map(|field| Step::Field(field.to_owned())).collect()
    }

    fn narrowed(paths: impl IntoIterator<Item = String>) -> Vec<String> {
        fields(&paths.into_iter().map(|text| path(&text)).collect())
    }

    #[test]
    fn what_lies_within_another_field_is_not_named() {
        let named = narrowed(["spec.a.b", "spec.a", "spec.ab", "spec.c"].map(ToOwned::to_owned));
        assert_eq!(named, ["spec.a", "spec.ab", "spec.c"]);
    }

    #[test]
    fn too_many_are_named_by_what_they_have_in_common() {
        let many = (0..40).map(|number| format!("spec.template.labels.l{number}"));
        assert_eq!(
            narrowed(many.clone().chain(["spec.size".to_owned()])),
            ["spec.size", "spec.template.labels"]
        );
        assert_eq!(narrowed(many.take(32)).len(), 32);
        assert_eq!(narrowed((0..40).map(|number| format!("f{number}"))), Vec::<String>::new());
    }

    #[test]
    fn what_is_too_long_is_named_by_where_it_is() {
        assert_eq!(narrowed([format!("data.{}", "x".repeat(2000))]), ["data"]);
    }
}
