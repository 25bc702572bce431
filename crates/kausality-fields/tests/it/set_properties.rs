//! What must hold for any sets of fields.

use kausality_fields::schema::{Schema, TypeRef};
use kausality_fields::typed::{Keys, Type};
use kausality_fields::{FieldSet, Path, Scalar, Step};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;

/// Small alphabets, so that sets often have something in common.
fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        Just(Scalar::Null),
        any::<bool>().prop_map(Scalar::Bool),
        (-2..20i128).prop_map(Scalar::Integer),
        Just(Scalar::Decimal("0.5".to_owned())),
        "[ab<\"\\\\ä\n]{0,2}".prop_map(Scalar::Text),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => "[ab.<\"\\\\:]{0,2}".prop_map(Step::Field),
        1 => btree_map("[ab]", scalar(), 1..3)
            .prop_map(|parts| Step::Key(parts.into_iter().map(|(name, value)| (name.into(), value)).collect())),
        1 => scalar().prop_map(Step::Value),
        1 => (0..3usize).prop_map(Step::Index),
    ]
}

fn paths() -> impl Strategy<Value = Vec<Path>> {
    vec(vec(step(), 1..4).prop_map(|steps| steps.into_iter().collect()), 0..8)
}

fn set() -> impl Strategy<Value = FieldSet> {
    paths().prop_map(|paths| paths.into_iter().collect())
}

fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from), "[ab]".prop_map(Value::from)];
    let tree = leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[abc]", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    });
    btree_map("[abc]", tree, 0..4).prop_map(|map| map.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_set_is_its_paths(paths in paths()) {
        let set: FieldSet = paths.iter().cloned().collect();
        prop_assert!(paths.iter().all(|path| set.has(path)));
        let mut sorted = paths;
        sorted.sort();
        sorted.dedup();
        prop_assert_eq!(&set.iter().collect::<Vec<_>>(), &sorted);
        prop_assert_eq!(set.len(), set.iter().count());
        prop_assert_eq!(set.is_empty(), sorted.is_empty());
        prop_assert_eq!(set.to_string().lines().count(), set.len());
    }

    #[test]
    fn text_is_read_as_it_was_written(set in set()) {
        let text = set.to_fields_v1();
        let read = FieldSet::from_fields_v1(&text);
        prop_assert_eq!(read.as_ref(), Ok(&set));
        prop_assert_eq!(read.unwrap_or_default().to_fields_v1(), text);
        let value = serde_json::to_value(&set).unwrap_or_default();
        prop_assert_eq!(serde_json::from_value::<FieldSet>(value).unwrap_or_default(), set);
    }

    #[test]
    fn no_text_is_too_strange_to_be_read_or_refused(text in "[\\{\\}\":,.fkvi\\[\\]a1 ]{0,24}") {
        let _ = FieldSet::from_fields_v1(&text);
    }

    #[test]
    fn the_algebra_of_sets_holds(a in set(), b in set(), c in set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.intersection(&b).intersection(&c), a.intersection(&b.intersection(&c)));
        prop_assert_eq!(a.intersection(&b.union(&c)), a.intersection(&b).union(&a.intersection(&c)));
        prop_assert_eq!(a.difference(&b.union(&c)), a.difference(&b).difference(&c));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&a).is_empty());
        prop_assert_eq!(a.union(&FieldSet::new()), a.clone());
        prop_assert_eq!(a.union(&a), a.clone());
        prop_assert_eq!(a.intersection(&a), a);
    }

    #[test]
    fn a_recursive_difference_has_nothing_below_the_other(a in set(), b in set()) {
        let is_below = |path: &Path| {
            (1..=path.steps().len()).any(|n| b.has(&path.steps().iter().take(n).cloned().collect()))
        };
        let expected: FieldSet = a.iter().filter(|path| !is_below(path)).collect();
        prop_assert_eq!(a.recursive_difference(&b), expected);
    }

    #[test]
    fn leaves_are_members_without_members_below(a in set()) {
        let all: Vec<Path> = a.iter().collect();
        let above = |path: &Path, other: &Path| other != path && other.steps().starts_with(path.steps());
        let expected: FieldSet = all.iter().filter(|path| !all.iter().any(|other| above(path, other))).cloned().collect();
        prop_assert_eq!(a.leaves(), expected);
    }

    #[test]
    fn a_prefix_comes_and_goes(a in set(), way in vec(step(), 0..3)) {
        let prefix: Path = way.into_iter().collect();
        prop_assert_eq!(a.clone().with_prefix(&prefix).without_prefix(&prefix), a);
    }

    /// Without a schema: what is compared, merged and extracted fits together.
    #[test]
    fn changes_are_between_the_fields_of_both(old in object(), new in object()) {
        let (schema, of) = (Schema::deduced(), TypeRef::deduced());
        let of = Type::new(&schema, &of);
        let fields = |value| of.field_set(value).unwrap_or_default();
        let change = of.compare(&old, &new).unwrap_or_default();
        prop_assert!(change.added.difference(&fields(&new)).is_empty());
        prop_assert!(change.removed.difference(&fields(&old)).is_empty());
        prop_assert!(of.compare(&old, &old).unwrap_or_default().is_empty());

        let merged = of.merge(&old, &new).unwrap_or_default();
        prop_assert!(of.compare(&merged, &of.merge(&merged, &new).unwrap_or_default()).unwrap_or_default().is_empty());

        let own = fields(&new).leaves();
        let extracted = of.extract(&new, &own, Keys::Included).unwrap_or_default();
        prop_assert_eq!(&extracted, &new);
        prop_assert_eq!(of.extract(&extracted, &own, Keys::Included).unwrap_or_default(), extracted);
    }
}
