use super::*;

fn hash(text: &str) -> UserHash {
    UserHash::parse(text).unwrap()
}

#[test]
fn hashes_are_the_documented_ones() {
    for (name, uid, expected) in [
        ("system:serviceaccount:kube-system:deployment-controller", "", "1likq"),
        ("system:admin", "", "afodm"),
        ("", "system:admin", "afodm"),
        ("system:admin", "ignored-uid", "afodm"),
    ] {
        assert_eq!(UserHash::of(name, uid).to_string(), expected, "{name}/{uid}");
    }
}

#[test]
fn small_numbers_are_padded_on_the_left() {
    // Found by search: a name whose number has fewer than five digits would be rare, so the rule is
    // checked on every hash instead: five characters, base36.
    for n in 0..2000 {
        let text = UserHash::of(&format!("user-{n}"), "").to_string();
        assert_eq!(text.len(), 5, "{text}");
        assert_eq!(UserHash::parse(&text).map(|hash| hash.to_string()), Some(text));
    }
}

#[test]
fn lists_survive_garbage() {
    for (text, expected) in [
        ("", ""),
        ("1likq,afodm", "1likq,afodm"),
        (" 1likq , afodm ", "1likq,afodm"),
        ("1likq,1likq", "1likq"),
        ("1likq,TOOBIG,toolong,abc,áéíóú,afodm", "1likq,afodm"),
        ("aaaaa,bbbbb,ccccc,ddddd,eeeee,fffff", "aaaaa,bbbbb,ccccc,ddddd,eeeee"),
    ] {
        assert_eq!(Hashes::decode(text).encode(), expected, "{text:?}");
    }
}

#[test]
fn a_full_list_lets_the_least_recently_seen_go() {
    let none = Hashes::default();
    let mut list = Hashes::decode("aaaaa,bbbbb,ccccc,ddddd,eeeee");
    list.note(hash("aaaaa"), &none);
    assert_eq!(list.encode(), "bbbbb,ccccc,ddddd,eeeee,aaaaa");
    list.note(hash("fffff"), &none);
    assert_eq!(list.encode(), "ccccc,ddddd,eeeee,aaaaa,fffff");
}

#[test]
fn who_is_in_both_lists_stays() {
    let mut list = Hashes::decode("aaaaa,bbbbb,ccccc,ddddd,eeeee");
    list.note(hash("fffff"), &Hashes::decode("aaaaa,bbbbb"));
    assert_eq!(list.encode(), "aaaaa,bbbbb,ddddd,eeeee,fffff");
}

#[test]
fn who_was_seen_last_comes_last() {
    let mut list = Hashes::decode("aaaaa,bbbbb");
    list.note(hash("aaaaa"), &Hashes::default());
    assert_eq!(list.encode(), "bbbbb,aaaaa");
    assert!(list.same_members(&Hashes::decode("aaaaa,bbbbb")));
    assert!(!list.same_members(&Hashes::decode("aaaaa")));
}

#[test]
fn if_all_are_in_both_lists_nobody_goes() {
    let full = Hashes::decode("aaaaa,bbbbb,ccccc,ddddd,eeeee");
    let mut list = full.clone();
    list.note(hash("fffff"), &full);
    assert_eq!(list, full);
}
