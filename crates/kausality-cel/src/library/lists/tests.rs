use super::super::tests::{fail, hold};

#[test]
fn sorted() {
    hold(&[
        "[1, 2, 3].isSorted()",
        "['a', 'b', 'b', 'c'].isSorted()",
        "![2.0, 1.0].isSorted()",
        "[1].isSorted() && [].isSorted()",
        "[false, true].isSorted() && ![true, false].isSorted()",
        "[duration('1s'), duration('1m')].isSorted()",
        "[timestamp('2025-01-01T00:00:00Z'), timestamp('2026-01-01T00:00:00Z')].isSorted()",
        "![b'b', b'a'].isSorted() && [1u, 2u].isSorted()",
        // What cannot be compared is in order.
        "[dyn('a'), dyn(1)].isSorted()",
    ]);
    fail(&[("[{1: 2}].isSorted()", "a map has no order"), ("[[1], [2]].isSorted()", "a list has no order")]);
}

#[test]
fn sums() {
    hold(&[
        "[1, 3].sum() == 4",
        "[1.0, 3.0].sum() == 4.0",
        "[1u, 3u].sum() == 4u",
        "[duration('1m'), duration('1s')].sum() == duration('1m1s')",
        "[].sum() == 0 && [].sum() == 0.0",
        "[{'weight': 0.25}, {'weight': 0.75}].map(x, x.weight).sum() == 1.0",
    ]);
    fail(&[
        ("['a', 'b'].sum()", "a string is no number"),
        ("[[1]].sum()", "a list is no number"),
        ("[dyn(1), dyn('a')].sum()", "add"),
        ("[9223372036854775807, 1].sum()", "verflow"),
    ]);
}

#[test]
fn extremes() {
    hold(&[
        "[1, 3].min() == 1 && [1, 3].max() == 3",
        "[1].min() == 1 && ([0] + []).min() == 0",
        "['b', 'a', 'c'].min() == 'a' && ['b', 'a', 'c'].max() == 'c'",
        "[false, true].max() && [2.5, 1.5].min() == 1.5",
        "[duration('1s'), duration('1m')].max() == duration('60s')",
        "[1, 2].max() < [3, 4].min()",
    ]);
    fail(&[
        ("[].min()", "min of an empty list"),
        ("[].max()", "max of an empty list"),
        ("[{1: 2}].max()", "a map has no order"),
    ]);
}

#[test]
fn indices() {
    hold(&[
        "[1, 2, 2, 3].indexOf(2) == 1",
        "['a', 'b', 'b', 'c'].lastIndexOf('b') == 2",
        "[1.0].indexOf(1.1) == -1 && [1.0].lastIndexOf(1.1) == -1",
        "[].indexOf('string') == -1",
        "[1, 2].indexOf(2.0) == 1",
        "[[1], [2]].indexOf([2]) == 1",
    ]);
}
