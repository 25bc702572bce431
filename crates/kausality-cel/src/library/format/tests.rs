use super::super::tests::{fail, hold};

/// Texts that have a format, and texts that do not.
#[track_caller]
fn check(format: &str, valid: &[&str], invalid: &[&str]) {
    for text in valid {
        hold(&[&format!("!format.{format}().validate({text:?}).hasValue()")]);
    }
    for text in invalid {
        hold(&[&format!("format.{format}().validate({text:?}).value().size() > 0")]);
    }
}

#[test]
fn formats_have_names() {
    for name in [
        "byte",
        "date",
        "datetime",
        "dns1035Label",
        "dns1035LabelPrefix",
        "dns1123Label",
        "dns1123LabelPrefix",
        "dns1123Subdomain",
        "dns1123SubdomainPrefix",
        "labelValue",
        "qualifiedName",
        "uri",
        "uuid",
    ] {
        hold(&[&format!("format.named('{name}').value() == format.{name}()")]);
    }
    hold(&["!format.named('unknown').hasValue()", "format.uri() != format.uuid()"]);
    fail(&[("format.unknown()", "Undeclared")]);
}

#[test]
fn labels() {
    let (long, longer) = ("a".repeat(63), "a".repeat(64));
    check(
        "dns1123Label",
        &["my-label-name", "1", &long],
        &["contains a space", "", "-a", "a-", "A", "a.b", "ä", &longer],
    );
    check(
        "dns1035Label",
        &["my-label-name", "a", &long],
        &["contains a space", "", "1a", "a-", "A", "a.b", &longer],
    );
    check(
        "dns1123LabelPrefix",
        &["my-label-prefix-", "a", "a-", "a--"],
        &["contains a space-", "-", "", "A-b"],
    );
    check("dns1035LabelPrefix", &["my-label-prefix-", "a-", "1-"], &["contains a space-", "1a-", "-", "1"]);
}

#[test]
fn subdomains() {
    let (long, longer) = ("a".repeat(253), "a".repeat(254));
    let valid = ["apiextensions.k8s.io", "example.com", "a", &long];
    check("dns1123Subdomain", &valid, &["contains a space", "", "a..b", ".a", "a.", "a.-b", "A.b", &longer]);
    check("dns1123SubdomainPrefix", &["mysubdomain.prefix.-", "a.b-"], &["contains a space-", "a..b-", "-"]);
}

#[test]
fn names_and_values_of_labels() {
    let (long, longer) = ("a".repeat(63), "a".repeat(64));
    let valid = ["apiextensions.k8s.io/v1beta1", "my.name", "My_Name", "a/B", &long];
    check(
        "qualifiedName",
        &valid,
        &["contains a space", "", "/a", "a/", "a/b/c", "A/b", "-a", "a/-", &longer],
    );
    check(
        "labelValue",
        &["my-cool-label-Value", "", "1", "a_b.c-D", &long],
        &["a!", "-a", "a\n", "a-", "ä", &longer],
    );
}

/// As many lines as an API server has.
#[test]
fn all_that_is_wrong() {
    let longer = "A".repeat(64);
    hold(&[
        &format!("format.dns1123Label().validate('{longer}').value().size() == 2"),
        "format.qualifiedName().validate('').value().size() == 2",
        "format.qualifiedName().validate('A/').value().size() == 3",
        "format.dns1123Label().validate('a.b').value()[0].contains('dots')",
        "format.qualifiedName().validate('A/b').value()[0].startsWith('before the slash: ')",
    ]);
}

#[test]
fn dates() {
    let valid = ["2021-01-01", "2020-02-29", "2000-02-29", "0000-01-01", "2021-12-31"];
    let invalid =
        ["2020-01-32", "2021-02-29", "1900-02-29", "2021-13-01", "2021-00-01", "2021-01-00", "2021-1-1", ""];
    check("date", &valid, &invalid);
    check("date", &[], &["2021-04-31", "21-01-01", "2021-01-01 ", "2021/01/01", "2021-01-01T00:00:00Z"]);
    let valid = [
        "2021-01-01T00:00:00Z",
        "2021-01-01t23:59:59z",
        "2021-01-01T00:00:00.123Z",
        "2021-01-01T00:00:00+01:00",
    ];
    check(
        "datetime",
        &valid,
        &["2020-01-32T00:00:00Z", "2021-01-01", "2021-01-01T24:00:00Z", "2021-01-01T00:00:60Z"],
    );
    check(
        "datetime",
        &["2021-01-01T00:00:00,5-99:99"],
        &["2021-01-01T00:60:00Z", "2021-01-01T00:00Z", "T", "", "äöüt"],
    );
    check(
        "datetime",
        &[],
        &["2021-01-01T00:00:00", "2021-01-01T00:00:00.Z", "2021-01-01T00:00:00+0100", "2021-01-01 00:00:00Z"],
    );
}

#[test]
fn encodings() {
    check(
        "byte",
        &["aGVsbG8=", "YQ==", "abcd", "+/+/"],
        &["aGVsbG8", "", "a", "====", "a===", "ab=c", "_-__", "YQ==YQ=="],
    );
    let valid = [
        "123e4567-e89b-12d3-a456-426614174000",
        "123E4567E89B12D3A456426614174000",
        "123e4567e89b-12d3a456-426614174000",
    ];
    check(
        "uuid",
        &valid,
        &["", "123e4567", "123e4567--e89b-12d3-a456-426614174000", "g23e4567-e89b-12d3-a456-426614174000"],
    );
    check(
        "uuid",
        &[],
        &["123e4567-e89b-12d3-a456-4266141740000", "-123e4567-e89b-12d3-a456-426614174000", "123e456ä-e89b"],
    );
    check("uri", &["http://example.com", "/path"], &["../path", "", "https://a:b:c/"]);
}
