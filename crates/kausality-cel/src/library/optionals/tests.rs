use super::super::tests::{fail, hold};

#[test]
fn ends_of_lists() {
    hold(&[
        "[1, 2, 3].first().value() == 1 && [1, 2, 3].last().value() == 3",
        "!['a'].filter(x, x == 'b').first().hasValue() && ![].last().hasValue()",
    ]);
}

#[test]
fn unwrapping() {
    hold(&[
        "optional.unwrap([optional.of(1), optional.none(), optional.of(2)]) == [1, 2]",
        "[optional.none()].unwrapOpt() == [] && [optional.of('a')].unwrapOpt() == ['a']",
    ]);
    fail(&[("[1].unwrapOpt()", "is no optional value")]);
}

/// What `cel` has of them.
#[test]
fn mapping() {
    hold(&[
        "optional.of(2).optMap(x, x * 2).value() == 4 && !optional.none().optMap(x, x * 2).hasValue()",
        "optional.of(2).optFlatMap(x, optional.of(x + 1)).value() == 3",
        "{'a': {'b': 1}}.?a.?b.orValue(0) == 1 && {'a': {}}.?a.?b.orValue(0) == 0",
        "[1, ?optional.none()] == [1] && {?'a': optional.of(1)} == {'a': 1}",
        "optional.ofNonZeroValue('').or(optional.of('b')).value() == 'b'",
    ]);
}
