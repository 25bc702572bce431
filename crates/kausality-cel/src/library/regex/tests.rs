use super::super::tests::{fail, hold};

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
