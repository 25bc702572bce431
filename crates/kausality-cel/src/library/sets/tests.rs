use super::super::tests::{fail, hold};

#[test]
fn containing() {
    hold(&[
        "sets.contains([], [])",
        "!sets.contains([], [1])",
        "sets.contains([1, 2, 3, 4], [2, 3])",
        "sets.contains([1, 2.0, 3u], [1.0, 2u, 3])",
        "!sets.contains(['a'], ['a', 'b'])",
        "sets.contains([[1], [2, 3]], [[2, 3.0]])",
        "!sets.contains([1, true, 'a'].map(x, dyn(x)), [dyn('true')])",
    ]);
}

#[test]
fn equivalence() {
    hold(&[
        "sets.equivalent([], [])",
        "sets.equivalent([1], [1, 1])",
        "sets.equivalent([1], [1u, 1.0])",
        "sets.equivalent([1, 2, 3], [3u, 2.0, 1])",
        "!sets.equivalent([1, 2], [1])",
        "!sets.equivalent([1], [1, 2])",
        "sets.equivalent([1.5, 0.5], [0.5, 1.5, 1.5])",
    ]);
}

#[test]
fn intersection() {
    hold(&[
        "!sets.intersects([1], [])",
        "sets.intersects([1], [1, 2])",
        "sets.intersects([[1], [2, 3]], [[1, 2], [2, 3.0]])",
        "!sets.intersects([{'a': 1}], [{'a': 2}])",
        "sets.intersects([{'a': 1}], [{'a': 1u}])",
    ]);
}

/// What is larger than an integer can be is compared as it is.
#[test]
fn numbers_at_the_edge() {
    hold(&[
        "sets.contains([18446744073709551615u], [18446744073709551615u])",
        "!sets.contains([-1], [18446744073709551615u])",
        "sets.contains([1e300], [1e300]) && !sets.contains([1e300], [1e301])",
        "sets.contains([9223372036854775807], [9223372036854775807])",
    ]);
}

#[test]
fn too_many_pairs() {
    let many = format!("'{}'.split(',').map(x, [x])", vec!["1"; 1100].join(","));
    fail(&[(&format!("sets.contains({many}, {many})"), "pairs of items")]);
    let scalars = format!("'{}'.split(',')", vec!["1"; 3000].join(","));
    hold(&[&format!("sets.equivalent({scalars}, {scalars})")]);
}
