use super::super::tests::{fail, hold};

#[test]
fn quantities() {
    hold(&[
        "isQuantity('1.3G') && isQuantity('1.3Gi') && isQuantity('10000k') && isQuantity('20') && isQuantity('20Mi')",
        "!isQuantity('1,3G') && !isQuantity('200K') && !isQuantity('Three') && !isQuantity('20Mo') && !isQuantity('10Mm')",
        "!isQuantity('') && !isQuantity(' 1') && !isQuantity('1 ') && !isQuantity('1.1.M') && !isQuantity('1e')",
        "isQuantity('1e3') && isQuantity('1E3') && isQuantity('1E') && isQuantity('1e-3') && !isQuantity('1e3k')",
        "isQuantity('-1') && isQuantity('+1') && !isQuantity('--1') && isQuantity('.5') && isQuantity('1.')",
        "isQuantity('1e9223372036854775807') && !isQuantity('1e9223372036854775808')",
    ]);
    fail(&[
        ("quantity('10Mo')", "is no quantity"),
        ("quantity('10Mm')", "the suffix"),
        ("quantity('200K')", "the suffix"),
        ("quantity('Three')", "is no quantity"),
    ]);
}

/// The documentation calls the last of these an error. The server does not.
#[test]
fn no_digits_are_zero() {
    hold(&[
        "quantity('-') == quantity('0')",
        "quantity('.') == quantity('0')",
        "quantity('Mi') == quantity('0')",
        "!isQuantity('.Ei') && !isQuantity('e-12')",
        "isQuantity('0Ei') && isQuantity('.0e-12') && isQuantity('0.e-12')",
    ]);
}

#[test]
fn suffixes() {
    hold(&[
        "quantity('1k').asInteger() == 1000 && quantity('1M').asInteger() == 1000000",
        "quantity('1G').asInteger() == 1000000000 && quantity('1T').asInteger() == 1000000000000",
        "quantity('1P').asInteger() == 1000000000000000 && quantity('1E').asInteger() == 1000000000000000000",
        "quantity('1Ki').asInteger() == 1024 && quantity('1Mi').asInteger() == 1048576",
        "quantity('1Gi').asInteger() == 1073741824 && quantity('1Ti').asInteger() == 1099511627776",
        "quantity('1Pi') == quantity('1024Ti') && quantity('1Ei') == quantity('1024Pi')",
        "quantity('1000m') == quantity('1') && quantity('1000u') == quantity('1m') && quantity('1000n') == quantity('1u')",
        "quantity('1e3') == quantity('1k') && quantity('1E3') == quantity('1k') && quantity('1e-3') == quantity('1m')",
        "quantity('1.5Gi') == quantity('1536Mi') && quantity('0.5Ki') == quantity('512')",
    ]);
}

#[test]
fn equality_is_of_value() {
    hold(&[
        "quantity('200M') == quantity('200M') && quantity('200M') != quantity('0.3G')",
        "quantity('200M') == quantity('0.2G') && quantity('0.2G') == quantity('200M')",
        "quantity('2M') == quantity('0.002G') && quantity('2000k') == quantity('2M') && quantity('0.002G') == quantity('2000k')",
        "quantity('0') == quantity('-0Mi') && quantity('1.000') == quantity('1')",
        "quantity('12345678901234567890') == quantity('12345678901234567.890k')",
    ]);
}

#[test]
fn order() {
    hold(&[
        "quantity('200M').compareTo(quantity('0.2G')) == 0",
        "quantity('50M').compareTo(quantity('50Mi')) == -1 && quantity('50Mi').compareTo(quantity('50M')) == 1",
        "quantity('150Mi').isGreaterThan(quantity('100Mi')) && !quantity('50Mi').isGreaterThan(quantity('100Mi'))",
        "quantity('50M').isLessThan(quantity('100M')) && !quantity('100M').isLessThan(quantity('50M'))",
        "quantity('-2').isLessThan(quantity('-1')) && quantity('-1').isLessThan(quantity('0'))",
        "quantity('99').isLessThan(quantity('100')) && quantity('1.01').isGreaterThan(quantity('1.001'))",
        "quantity('1e1000000000').isGreaterThan(quantity('9e999999999'))",
    ]);
}

#[test]
fn sums() {
    hold(&[
        "quantity('50k').add(quantity('20')) == quantity('50.02k') && quantity('50k').add(20) == quantity('50020')",
        "quantity('50k').sub(quantity('20')) == quantity('49.98k') && quantity('50k').sub(20) == quantity('49980')",
        "quantity('50k').add(20).sub(quantity('100k')).asInteger() == -49980",
        "quantity('50k').add(20).sub(quantity('100k')).sub(-50000) == quantity('20')",
        "quantity('50k') == quantity('50k').add(0)",
        "quantity('9999999999999999999').add(1) == quantity('1e19') && quantity('1e19').sub(1) == quantity('9999999999999999999')",
        "quantity('9223372036854775807').add(1) == quantity('9223372036854775808')",
        "quantity('1Ei').add(quantity('1n')).isGreaterThan(quantity('1Ei'))",
        "quantity('0').sub(-9223372036854775807 - 1) == quantity('9223372036854775808')",
        "quantity('1Pi').sub(quantity('1Pi')) == quantity('0') && sign(quantity('1Pi').sub(quantity('2Pi'))) == -1",
        "quantity('1Ei').sub(quantity('0.5Ei')) == quantity('512Pi')",
    ]);
    fail(&[("quantity('1e1000000000').add(1)", "more than 4096 digits")]);
}

#[test]
fn signs() {
    hold(&["sign(quantity('1m')) == 1 && sign(quantity('-1Ei')) == -1 && sign(quantity('0Ki')) == 0"]);
    fail(&[("quantity('1').sign()", "sign")]);
}

#[test]
fn integers() {
    hold(&[
        "quantity('50000000G').isInteger() && quantity('50k').isInteger() && quantity('50').isInteger()",
        "quantity('1.5k').isInteger() && quantity('1.5k').asInteger() == 1500 && quantity('0e400').asInteger() == 0",
        "quantity('-7').asInteger() == -7 && quantity('50k').asInteger() == 50000",
        "!quantity('9999999999999999999999999999999999999G').isInteger() && !quantity('1.5').isInteger()",
        // As they are written, not as they are.
        "!quantity('1.0').isInteger() && !quantity('1000m').isInteger() && !quantity('1.5Gi').isInteger()",
        "quantity('99Ti').isInteger() && !quantity('100Ti').isInteger() && !quantity('1Pi').isInteger()",
        "quantity('999999999999999999').isInteger() && !quantity('1000000000000000000').isInteger()",
        "!quantity('100Ti').sub(quantity('99Ti')).isInteger()",
    ]);
    fail(&[
        ("quantity('9999999999999999999999999999999999999G').asInteger()", "cannot convert value to integer"),
        ("quantity('500m').asInteger()", "cannot convert value to integer"),
        ("quantity('99E').asInteger()", "cannot convert value to integer"),
    ]);
}

#[test]
fn floats() {
    hold(&[
        "quantity('50.703k').asApproximateFloat() == 50703.0",
        "quantity('50k').sub(20000).asApproximateFloat() == 30000.0",
        "quantity('1500m').asApproximateFloat() == 1.5 && quantity('-1.5Gi').asApproximateFloat() == -1610612736.0",
        // Rounded as the server does it, to the last bit.
        "quantity('9999999999999999999999999999999999999G').asApproximateFloat() == 1.0000000000000001e+46",
        "quantity('12345678901234567890.123').asApproximateFloat() == 1.234567890123457e+19",
        "quantity('3.3Gi').asApproximateFloat() == 3.5433480192000003e+09 && quantity('7e-20').asApproximateFloat() == 1e-09",
        "quantity('7.7e40').asApproximateFloat() == 7.700000000000001e+40 && quantity('1.1').asApproximateFloat() == 1.1",
        "quantity('12345678901234567890e40').asApproximateFloat() == 1.234567890123457e+59",
        "quantity('1e400').asApproximateFloat() == double('Infinity')",
    ]);
}

/// Nothing is less than a nano, and nothing in powers of two is more than an int64.
#[test]
fn bounds() {
    hold(&[
        "quantity('0.1n') == quantity('1n') && quantity('1.1n') == quantity('2n') && quantity('-0.1n') == quantity('-1n')",
        "quantity('1e-100') == quantity('1n') && quantity('0.9999999999') == quantity('1')",
        "quantity('0e-100') == quantity('0')",
        "quantity('8Ei') == quantity('9223372036854775807') && quantity('-9Ei') == quantity('-9223372036854775807')",
        "quantity('8E').isLessThan(quantity('9E')) && quantity('99E') == quantity('99000P')",
    ]);
}
