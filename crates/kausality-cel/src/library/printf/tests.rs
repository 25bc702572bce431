use super::super::tests::{fail, hold};

#[test]
fn texts() {
    hold(&[
        "'%s has %s'.format(['a', 1]) == 'a has 1' && '100%%'.format([]) == '100%'",
        "'%s %s %s'.format([true, null, 1u]) == 'true null 1' && '%s'.format([b'abc']) == 'abc'",
        "'%s'.format([duration('1h30m0.5s')]) == '5400.5s' && '%s'.format([int]) == 'int'",
        "'%s'.format([timestamp('2023-02-03T23:31:20.5+01:00')]) == '2023-02-03T23:31:20.5+01:00'",
        "'%s %s'.format([1000000.0, 123456789.0]) == '1e+06 1.23456789e+08' && '%s'.format([100000.0]) == '100000'",
        "'%s'.format([0.0001]) == '0.0001' && '%s'.format([0.00001]) == '1e-05' && '%s'.format([1e100]) == '1e+100'",
        "'%s'.format([duration('1ns')]) == '0.000000001s' && '%s'.format([duration('-1.5s')]) == '-1.5s'",
        "'%s'.format([1.5]) == '1.5' && '%s'.format([double('Infinity')]) == '+Inf' && '%s'.format([-0.25]) == '-0.25'",
    ]);
}

#[test]
fn lists_and_maps() {
    hold(&[
        "'%s'.format([['a', 'b\"\\n']]) == '[\"a\", \"b\\\\\"\\\\n\"]'",
        "'%s'.format([[1, 2]]) == '[1, 2]' && '%s'.format([[]]) == '[]' && '%s'.format([{}]) == '{}'",
        "'%s'.format([[1.5, dyn(b'x'), dyn(null), dyn(true)]]) == '[1.500000, b\"x\", null, true]'",
        "'%s'.format([[duration('1s')]]) == '[duration(\"1s\")]'",
        "'%s'.format([[timestamp('2023-02-03T23:31:20Z')]]) == '[timestamp(\"2023-02-03T23:31:20Z\")]'",
        "'%s'.format([{'b': [1], 'a': {'c': 2.0}}]) == '{\"a\":{\"c\":2.000000}, \"b\":[1]}'",
        "'%s'.format([['é\\u0301\\u200b\\x7f😀']]) == '[\"é\\u0301\\\\u200b\\\\x7f😀\"]'",
        "'%s'.format([{2: 'a', 1: 'b'}]) == '{1:\"b\", 2:\"a\"}' && '%s'.format([[double('NaN')]]) == '[\"NaN\"]'",
    ]);
}

#[test]
fn integers() {
    hold(&[
        "'%d %d'.format([42, -7]) == '42 -7' && '%d'.format([1000000]) == '1000000' && '%d'.format([5u]) == '5'",
        "'%b %b %b'.format([5, -5, true]) == '101 -101 1' && '%o'.format([-9]) == '-11' && '%o'.format([9u]) == '11'",
        "'%x %X %x'.format([255, 255, -255]) == 'ff FF -ff' && '%x'.format(['hi']) == '6869' && '%X'.format([b'\\xff']) == 'FF'",
    ]);
}

#[test]
fn floats() {
    hold(&[
        "'%f'.format([1.5]) == '1.500000' && '%.2f'.format([2.678]) == '2.68' && '%.0f'.format([2.5]) == '2'",
        "'%.3f'.format([10000.1234]) == '10,000.123' && '%.1f'.format([1234567.89]) == '1,234,567.9'",
        "'%.2f'.format([-0.001]) == '-0.00' && '%.2f'.format([0.005]) == '0.01' && '%.2f'.format([0.995]) == '0.99'",
        "'%.2f'.format([2.675]) == '2.67' && '%.1f'.format([999.96]) == '1,000.0' && '%f'.format([-0.0]) == '0.000000'",
        "'%.20f'.format([0.1]) == '0.10000000000000000555' && '%f'.format([1e22]).startsWith('10,000,000,000')",
        "'%f'.format(['NaN']) == 'NaN' && '%f'.format(['Infinity']) == '∞' && '%f'.format(['-Infinity']) == '-∞'",
        "'%e'.format([1052.032911275]) == '1.052033×10⁰³' && '%.2e'.format([1052.032911275]) == '1.052033×10⁰³'",
        "'%.16e'.format([1052.032911275]) == '   1.052033×10⁰³' && '%e'.format(['NaN']) == '   NaN'",
        "'%e'.format([0.00012]) == '1.200000×10⁻⁰⁴' && '%e'.format([-1234567.0]) == '-1.234567×10⁰⁶'",
        "'%e'.format([0.0]) == '0.000000×10⁰⁰' && '%e'.format([1.2345678901e-100]) == '1.234568×10⁻¹⁰⁰'",
    ]);
}

#[test]
fn mistakes() {
    fail(&[
        ("'%d'.format(['a'])", "%d cannot be used with a string"),
        ("'%d'.format([1.5])", "%d cannot be used with a double"),
        ("'%f'.format([1])", "%f cannot be used with a int"),
        ("'%e'.format(['a'])", "%e cannot be used with a string"),
        ("'%x'.format([true])", "%x cannot be used with a bool"),
        ("'%b'.format(['a'])", "%b cannot be used"),
        ("'%o'.format([true])", "%o cannot be used"),
        ("'%s %s'.format([1])", "more clauses than values"),
        ("'%a'.format([1])", "unrecognized formatting clause"),
        ("'%.a'.format([1])", "a precision is a number"),
        ("'%.1000f'.format([1.5])", "a precision is a number up to 100"),
        ("'%.2'.format([1.5])", "a precision without a clause"),
        ("'%'.format([1])", "a % at the end"),
        ("'%s'.format([optional.of(1)])", "%s cannot be used with a optional_type"),
        ("'%s'.format([[quantity('1')]])", "%s cannot be used with a kubernetes.Quantity"),
        ("(1).format([])", "want 'string'"),
    ]);
}
