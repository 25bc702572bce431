use super::super::tests::{fail, hold};

#[test]
fn versions() {
    hold(&[
        "isSemver('1.0.0') && isSemver('0.1.0-alpha.1') && isSemver('1.2.3-beta.1+build.1') && isSemver('1.2.3+01')",
        "!isSemver('') && !isSemver('v1.0.0') && !isSemver('v1.0') && !isSemver('hello') && !isSemver('200K')",
        "!isSemver(' 1.0.0') && !isSemver('1. 0.0') && !isSemver('1.0.0 ') && !isSemver('01.01.01')",
        "!isSemver('1') && !isSemver('1.1') && !isSemver('1.2.3-') && !isSemver('1.2.3-a..b') && !isSemver('1.2.3+')",
        "!isSemver('1.2.3-01') && isSemver('1.2.3-0a') && !isSemver('1.2.3-a_b') && !isSemver('+1.2.3')",
        // Numbers have 64 bits.
        "isSemver('18446744073709551615.0.0') && !isSemver('18446744073709551616.0.0')",
        "!isSemver('1.2.3-18446744073709551616')",
    ]);
    fail(&[
        ("semver('v1.0')", "major.minor.patch"),
        ("semver('Three')", "major.minor.patch"),
        ("semver('1.a.0')", "\"a\" is no number"),
        ("semver('1.2.3-01')", "its pre-release"),
        ("semver('1.2.3+a_b')", "its build"),
    ]);
}

#[test]
fn lenient_versions() {
    hold(&[
        "isSemver('v1.0.0', true) && isSemver('1', true) && isSemver('1.1', true) && isSemver('01.01.01', true)",
        "!isSemver('', true) && !isSemver(' 1.0.0', true) && !isSemver('1. 0.0', true) && !isSemver('1.0.0 ', true)",
        "!isSemver('v1.0.0', false) && isSemver('1.0.0', false) && !isSemver('V1.0.0', true) && !isSemver('vv1', true)",
        "!isSemver('1.0-rc', true) && !isSemver('1+b', true) && isSemver('1.0.00-rc', true)",
        "semver('v01.01', true) == semver('1.1.0') && semver('v1.0.0', true) == semver('1.0.0')",
        "semver('00.00.00-a', true) == semver('0.0.0-a') && semver('010.1', true).major() == 10",
    ]);
    fail(&[("semver('1.0-rc', true)", "no pre-release"), ("semver('x', true)", "\"x\" is no number")]);
}

#[test]
fn parts() {
    hold(&[
        "semver('1.2.3').major() == 1",
        "semver('1.2.3').minor() == 2",
        "semver('1.2.3-rc.1').patch() == 3",
    ]);
}

#[test]
fn order() {
    hold(&[
        "semver('1.2.3') == semver('1.2.3') && semver('1.2.3') != semver('1.0.0')",
        "semver('1.2.3+a').compareTo(semver('1.2.3+b')) == 0 && semver('1.2.3').compareTo(semver('2.0.0')) == -1",
        "semver('1.2.3').compareTo(semver('0.1.2')) == 1",
        "semver('1.0.0').isLessThan(semver('1.2.3')) && !semver('1.0.0').isLessThan(semver('1.0.0'))",
        "semver('1.2.3').isGreaterThan(semver('1.0.0')) && !semver('1.0.0').isGreaterThan(semver('1.0.0'))",
        "semver('1.0.0-rc').isLessThan(semver('1.0.0')) && semver('1.0.0').isGreaterThan(semver('1.0.0-rc'))",
        "semver('1.0.0-alpha.9').isLessThan(semver('1.0.0-alpha.10')) && semver('1.0.0-9').isLessThan(semver('1.0.0-a'))",
        "semver('1.0.0-alpha').isLessThan(semver('1.0.0-alpha.1')) && semver('1.10.0').isGreaterThan(semver('1.9.0'))",
    ]);
}

/// Builds are nothing to equality, either.
#[test]
fn builds() {
    hold(&["semver('1.2.3+a') == semver('1.2.3+b')"]);
}
