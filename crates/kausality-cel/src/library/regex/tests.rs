use super::super::tests::{fail, hold};
use super::{MAX_SIZE, Pattern, Refused};

fn compile(pattern: &str) -> Result<Pattern, Refused> {
    Pattern::compile(pattern, MAX_SIZE)
}

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
}

/// What a pattern of Go finds in a text.
#[track_caller]
fn finds(pattern: &str, text: &str, expected: &[&str]) {
    let compiled = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    assert_eq!(compiled.find_all(text, usize::MAX).unwrap(), expected, "{pattern}");
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
    let refused = |pattern: &str| compile(pattern).unwrap_err().to_string();
    assert!(refused("((a{1,1000}){1,1000}){1,1000}").contains("too large"));
    assert!(refused(&"a".repeat(20 << 10)).contains("bytes are not supported"));
    assert!(refused(&format!("{}{}", "(".repeat(500), ")".repeat(500))).contains("illegal regex"));
    for pattern in [r"\pL{50}", r"(?i)[a-\x{10FFFF}]", r"(?i)\p{Any}", r"\p{is_Any}(?i:a)"] {
        assert_eq!(compile(pattern).err(), Some(Refused::TooLarge), "{pattern}");
    }
    for pattern in [r"\pL{20}", ".{1000}", r"(?i)\pL+[\pN\S\s]", r"(?i)[\x{0}-\x{FF}\D]", "[a-z]{1000}"] {
        let size = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}")).size();
        assert_eq!(Pattern::compile(pattern, size - 1).err(), Some(Refused::TooLarge), "{pattern}");
    }
    let error = compile("b").unwrap().find(&"a".repeat((4 << 20) + 1)).unwrap_err();
    assert!(error.contains("are not searched"), "{error}");
}

/// Letters such that no window of them is like another.
fn disorder(length: usize) -> String {
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if state >> 31 == 0 { 'a' } else { 'b' }
    };
    (0..length).map(|_| letter()).collect()
}

/// An automaton for this has a state for each window of the text.
#[test]
fn what_takes_long_is_given_up() {
    let pattern = compile("[ab]*a[ab]{500}c").unwrap();
    assert_eq!(pattern.is_match(&disorder(1000)), Ok(false));
    let error = pattern.is_match(&disorder(100_000)).unwrap_err();
    assert!(error.contains("takes too long"), "{error}");
}

/// Long texts are no problem as such.
#[test]
fn long_texts_are_searched() {
    let text = format!("{}1é2", "x".repeat(1 << 20));
    for (pattern, found) in
        [(r"\d+", vec!["1", "2"]), (r"\pL\d$", vec!["é2"]), ("y", vec![]), (r"\b1", vec![])]
    {
        let pattern = compile(pattern).unwrap();
        assert_eq!(pattern.find_all(&text, usize::MAX).unwrap(), found, "{pattern:?}");
        assert_eq!(pattern.is_match(&text), Ok(!found.is_empty()), "{pattern:?}");
    }
    // Nothing is found between the bytes of a character.
    let text = format!("{}é", "x".repeat(1 << 20));
    let pattern = compile("x*").unwrap();
    assert_eq!(pattern.find_all(&text, 3).unwrap(), [&"x".repeat(1 << 20), ""]);
}

/// Each of these matches is found by looking at all that follows.
#[test]
fn many_matches_are_given_up() {
    let pattern = compile("a.*b|a").unwrap();
    let text = "a".repeat(3_000);
    let error = pattern.find_all(&text, usize::MAX).unwrap_err();
    assert!(error.contains("give it a limit"), "{error}");
    assert_eq!(pattern.find_all(&text, 5).unwrap().len(), 5);
}
