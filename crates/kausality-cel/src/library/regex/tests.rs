use super::super::tests::{fail, hold};
use super::{KEPT, cached, compile, prepared};

#[test]
fn first_match() {
    hold(&[
        "'abc 123'.find('[0-9]+') == '123' && 'abc 123'.find('xyz') == ''",
        // The documentation says 123. But the first match is that of nothing, before the a.
        "'abc 123'.find('[0-9]*') == ''",
        "'aaa'.find('a+?') == 'a' && 'ab'.find('a|ab') == 'a'",
    ]);
    fail(&[("'a'.find('(')", "illegal regex"), ("'a'.find('a(?=b)')", "illegal regex")]);
}

#[test]
fn all_matches() {
    hold(&[
        "'123 abc 456'.findAll('[0-9]+') == ['123', '456'] && '123 abc 456'.findAll('[0-9]+', 1) == ['123']",
        "'123 abc 456'.findAll('xyz') == [] && '1 2'.findAll('[0-9]', 0) == [] && '1 2'.findAll('[0-9]', -1) == ['1', '2']",
        "'1, 2, 3, 4'.findAll('[0-9]+').map(x, int(x)).sum() == 10",
        "'aab'.findAll('a*') == ['aa', ''] && 'ä'.findAll('') == ['', '']",
    ]);
    let long = "a".repeat(100_001);
    fail(&[(&format!("'{long}'.findAll('a')"), "give it a limit")]);
    hold(&[&format!("'{long}'.findAll('a', 5).size() == 5")]);
}

/// What a pattern of Go finds in a text.
#[track_caller]
fn finds(pattern: &str, text: &str, expected: &[&str]) {
    let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    let found: Vec<&str> = regex.find_iter(text).map(|found| found.as_str()).collect();
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
        assert_eq!(compile(pattern).is_err(), refused, "{pattern}");
    }
}

#[test]
fn size_is_bounded() {
    assert!(compile("((a{1,1000}){1,1000}){1,1000}").unwrap_err().contains("too large"));
    assert!(compile(&"a".repeat(20 << 10)).unwrap_err().contains("bytes are not supported"));
    assert!(compile(&format!("{}{}", "(".repeat(500), ")".repeat(500))).is_err());
    let long = "a".repeat((4 << 20) + 1);
    let error = prepared("find", &long, "b").unwrap_err().to_string();
    assert!(error.contains("are not searched"), "{error}");
}

#[test]
fn compiled_expressions_are_kept_within_bounds() {
    for number in 0..3 * KEPT {
        cached(&format!("a{{{number}}}")).unwrap();
        cached("kept").unwrap();
    }
    super::COMPILED.with_borrow(|compiled| {
        assert_eq!(compiled.len(), KEPT);
        assert!(compiled.iter().any(|(pattern, _)| pattern == "kept"));
    });
}
