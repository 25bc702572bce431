//! Loops of two variables.

use super::*;

fn hold(sources: &[&str]) {
    for source in sources {
        assert_eq!(holds(source), Ok(true), "{source}");
    }
}

/// Each of them does not compile, or cannot be evaluated.
fn fail(cases: &[(&str, &str)]) {
    for (source, words) in cases {
        let failure = match Expression::compile(source, Environment::policies()) {
            Err(fault) => fault.to_string(),
            Ok(expression) => expression.holds(&known()).unwrap_err().to_string(),
        };
        assert!(failure.contains(words), "{source}: {failure}");
    }
}

#[test]
fn all() {
    hold(&[
        "[1, 2, 3].all(i, v, i < v) && ![1, 1].all(i, v, i < v) && [].all(i, v, false)",
        "{'hello': 'world', 'hell': 'w'}.all(k, v, k.startsWith('hell') && v.startsWith('w'))",
        "!{'a': 1}.all(k, v, v > 1) && {}.all(k, v, false)",
        // An error is nothing if another item decides.
        "![0, 1].all(i, v, 1 / v > 1)",
    ]);
    fail(&[("[0, 1].all(i, v, 1 / v == 1)", "ivision by zero")]);
}

#[test]
fn exists() {
    hold(&[
        "[1, 2, 1].exists(i, v, i > 1 && v == 1) && ![1, 2].exists(i, v, i == v) && ![].exists(i, v, true)",
        "{'greeting': 'hello', 'farewell': 'goodbye'}.exists(k, v, k.startsWith('good') || v.endsWith('bye'))",
        "[0, 1].exists(i, v, 1 / v == 1)",
    ]);
}

#[test]
fn exists_one() {
    hold(&[
        "[1, 2, 1, 3, 1, 4].existsOne(i, v, i == 1 || v == 1) == false && [1, 1, 2].existsOne(i, v, i != v && v == 2) == false",
        "[5, 6].existsOne(i, v, v == 6) && [5, 6].exists_one(i, v, i == 0) && ![5, 5].existsOne(i, v, v == 5)",
        "{'a': 1, 'b': 2}.existsOne(k, v, v == 2 && k == 'b')",
    ]);
}

#[test]
fn lists() {
    hold(&[
        "[1, 2, 3].transformList(i, v, (i * v) + v) == [1, 4, 9]",
        "[1, 2, 3].transformList(i, v, i % 2 == 0, (i * v) + v) == [1, 9]",
        "{'greeting': 'hello'}.transformList(k, v, k + ' ' + v) == ['greeting hello']",
        "{'a': 1, 'b': 2}.transformList(k, v, v > 1, k) == ['b'] && [].transformList(i, v, v) == []",
    ]);
}

#[test]
fn maps() {
    hold(&[
        "[1, 2, 3].transformMap(i, v, (i * v) + v) == {0: 1, 1: 4, 2: 9}",
        "[1, 2, 3].transformMap(i, v, i % 2 == 0, (i * v) + v) == {0: 1, 2: 9}",
        "{'greeting': 'hello', 'a': 'b'}.transformMap(k, v, v + v) == {'greeting': 'hellohello', 'a': 'bb'}",
        "{}.transformMap(k, v, v) == {}",
        "{'greeting': 'hello', 'x': 'y'}.transformMapEntry(k, v, {v: k}) == {'hello': 'greeting', 'y': 'x'}",
        "['a', 'b'].transformMapEntry(i, v, i > 0, {v: i}) == {'b': 1} && [1].transformMapEntry(i, v, {}) == {}",
        "['a'].transformMapEntry(i, v, {v: 1, v + 'b': 2}) == {'a': 1, 'ab': 2}",
    ]);
    fail(&[
        ("{'a': 'x', 'b': 'x'}.transformMapEntry(k, v, {v: k}) == {}", "the same key twice"),
        ("[dyn(1), dyn(1u)].transformMapEntry(k, v, {v: k}) == {}", "the same key twice"),
        ("[1].transformMapEntry(i, v, dyn([i])) == {}", "no matching overload"),
    ]);
}

/// Each level has its own names, and the range is evaluated outside of them.
#[test]
fn names_are_of_their_level() {
    hold(&[
        "[[1, 2], [3]].all(i, row, row.all(j, v, v > i && row[j] == v))",
        "[[1, 2], [3]].transformList(i, row, row.transformList(j, v, i * 10 + j)) == [[0, 1], [10]]",
        "[[1], [2]].transformList(i, v, v.transformList(i, v, i + v)) == [[1], [2]]",
        "[1, 2].map(i, [i].transformList(j, v, v + i)) == [[2], [4]]",
        "{'a': {'b': 1}}.all(k, v, v.all(k, v, k == 'b' && v == 1) && k == 'a')",
        "[{'k': 1}].all(i, v, has(v.k) && v.k == 1)",
    ]);
}

#[test]
fn mistakes() {
    fail(&[
        ("[1].all(i, i, true)", "duplicate variable name: i"),
        ("[1].all(1, v, true)", "argument must be a simple name"),
        ("[1].transformList(i, v.w, true)", "argument must be a simple name"),
        ("'a'.all(i, v, true)", "cannot be range of a comprehension"),
        ("[1].all(i, v, v.w)", "does not support field selection"),
    ]);
    fail(&[("[1].all(i, v, true, true)", "undeclared reference")]);
}

/// Twice the items take about twice the time: none of them copies what it has so far.
#[test]
fn results_grow_in_place() {
    let list = format!("'{}'.split(',')", vec!["1"; 2000].join(","));
    hold(&[
        &format!("{list}.transformList(i, v, v).size() == 2000"),
        &format!("{list}.transformMap(i, v, v).size() == 2000"),
        &format!("{list}.transformMapEntry(i, v, {{i: v}}).size() == 2000"),
    ]);
}
