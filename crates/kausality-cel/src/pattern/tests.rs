#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use super::Pattern;

/// What a pattern of Go finds in a text.
#[track_caller]
fn finds(pattern: &str, text: &str, expected: &[&str]) {
    let regex = Pattern::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    let found: Vec<&str> = regex.regex().find_iter(text).map(|found| found.as_str()).collect();
    assert_eq!(found, expected, "{pattern}");
}

#[test]
fn short_classes_are_of_ascii() {
    finds(r"\d+", "12٣4", &["12", "4"]);
    finds(r"\D+", "12٣4", &["٣"]);
    finds(r"\w+", "aäb_1", &["a", "b_1"]);
    finds(r"[\w-]+", "a-b ä", &["a-b"]);
    finds(r"\s", "a\u{a0}b c\u{b}", &[" "]);
    finds(r"[^\s]+", "a b", &["a", "b"]);
    finds(r"[\D]", "1a", &["a"]);
    finds(r"\bä|\bb", "ä b", &["b"]);
    finds(r"a\Bä?", "aä ab", &["a"]);
}

#[test]
fn classes_have_no_operators() {
    finds("[[a]+", "[a]", &["[a"]);
    finds("[a&&b]+", "a&b", &["a&b"]);
    finds("[+--]+", "+,-.", &["+,-"]);
    finds("[a~~]+", "a~", &["a~"]);
    finds("[]a]+", "a]b", &["a]"]);
    finds("[^]a]+", "a]b", &["b"]);
    finds("[a-]+", "a-", &["a-"]);
    finds("[-a]+", "a-", &["a-"]);
    finds("[[:digit:]a]+", "1a[", &["1a"]);
    finds("[[:^digit:]]+", "1a", &["a"]);
    finds(r"[\]\-\\]+", r"]-\", &[r"]-\"]);
    finds(r"[\x41-\x{43}]+", "ABCD", &["ABC"]);
    finds(r"[\pN]+", "a1", &["1"]);
}

#[test]
fn other_syntax() {
    finds(r"\Qa.b\E.", "a.bc axbc", &["a.bc"]);
    finds(r"\Q(", "(", &["("]);
    finds("a{,2}", "a{,2}", &["a{,2}"]);
    finds("a{2}", "aaa", &["aa"]);
    finds("a{1,}b{0,1}", "aab", &["aab"]);
    finds("{}", "{}", &["{}"]);
    finds(r"\p{Greek}+\P{^Greek}", "αβγ", &["αβγ"]);
    finds(r"\101\x42\0", "AB\0", &["AB\0"]);
    finds("(?i)STRASSE", "strasse", &["strasse"]);
    finds("(?P<year>[0-9]{4})-(?<month>[0-9]{2})", "2026-11", &["2026-11"]);
    finds("(?s:.)(?m:^b$)", "a\nb\nc", &["\nb"]);
    finds("(?U)a+", "aa", &["a", "a"]);
    finds("# a&b~c-d", "# a&b~c-d", &["# a&b~c-d"]);
    finds(r"^a$|\Ab\z", "a", &["a"]);
}

#[test]
fn what_go_refuses_is_refused() {
    for pattern in [
        "a**",
        "a+*",
        "a{2}{3}",
        "a?{2}",
        "a{1001}",
        "a{2,1}",
        "*",
        "(?x)a",
        "(?u)a",
        r"\u0041",
        r"\1",
        r"\pX{",
        "[a",
        "[b-a]",
        "a)",
        r"a\",
        r"\x{110000}",
        r"\x4",
        r"\y",
        r"\<",
        r"[\y]",
        "[[:foo:]]",
        "(?=a)",
        "(?<!a)b",
        r"\_a\k",
    ] {
        // Only what is behind a backslash and no letter stands for itself.
        let refused = !matches!(pattern, r"\<");
        assert_eq!(Pattern::new(pattern).is_err(), refused, "{pattern}");
    }
}

#[test]
fn bad_and_huge_patterns_are_refused_in_one_line() {
    for (pattern, why) in [
        ("(foo", "unclosed group"),
        ("a{1001}", "more than 1000"),
        ("(((a{100}){100}){100}){100}", "stands for too much"),
        (&format!("{}{}", "(".repeat(500), ")".repeat(500)), "not a valid pattern"),
        (&"a".repeat(5000), "longer than"),
    ] {
        let error = Pattern::new(pattern).unwrap_err();
        assert!(error.contains(why) && !error.contains('\n'), "{error}");
    }
    // What is made while it is evaluated may be less.
    assert!(Pattern::new("(a{100}){50}").is_ok());
    assert!(Pattern::made("(a{100}){50}").is_err());
    assert!(Pattern::made("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$").is_ok());
}
