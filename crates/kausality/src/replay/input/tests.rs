use super::*;

#[track_caller]
fn check(text: &str, expected: &[(u64, &str)]) {
    let mut documents = Documents::new(text.as_bytes());
    let mut found = Vec::new();
    while let Some(document) = documents.next_document().unwrap() {
        let bytes = document.bytes.unwrap_or_else(|why| why.into_bytes());
        found.push((document.line, String::from_utf8(bytes).unwrap()));
    }
    let found: Vec<(u64, &str)> = found.iter().map(|(line, text)| (*line, text.as_str())).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn one_document_a_line() {
    check(
        "{\"a\":1}\n{\"b\":\"}{\\\"\"}\r\n\n{\"c\":[]}",
        &[(1, "{\"a\":1}"), (2, "{\"b\":\"}{\\\"\"}"), (4, "{\"c\":[]}")],
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_document() {
    check("\u{feff}{\"a\":1}\n", &[(1, "{\"a\":1}")]);
}

#[test]
fn documents_over_several_lines() {
    check(
        "{\n  \"a\": {\n  }\n}\n{\n  \"b\": 1\n}\n",
        &[(1, "{\n  \"a\": {\n  }\n}"), (5, "{\n  \"b\": 1\n}")],
    );
}

#[test]
fn a_list_with_an_element_a_line() {
    check("[\n{\"a\":1},\n{\"b\":1}\n]\n", &[(2, "{\"a\":1}"), (3, "{\"b\":1}")]);
    check("[{\"a\":1},{\"b\":1}]", &[(1, "[{\"a\":1},{\"b\":1}]")]);
}

#[test]
fn a_truncated_line_costs_no_other() {
    check("{\"a\":{\n{\"b\":1}\n", &[(1, "{\"a\":{"), (2, "{\"b\":1}")]);
    check("{\"a\":\"cut\n{\"b\":1}\n", &[(1, "{\"a\":\"cut"), (2, "{\"b\":1}")]);
    check("nonsense\n{\"b\":1}\n", &[(1, "nonsense"), (2, "{\"b\":1}")]);
    check("{\"a\":1", &[(1, "{\"a\":1")]);
}

#[test]
fn a_giant_is_passed_over() {
    let giant = format!("{{\"a\":\"{}\"}}\n{{\"b\":1}}\n", "x".repeat(MAX_DOCUMENT));
    check(&giant, &[(1, "larger than 64 MiB: not read"), (2, "{\"b\":1}")]);
}

#[test]
fn folders_stand_for_their_recordings_in_order() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b.jsonl", "a.log", "notes.txt"] {
        std::fs::write(folder.path().join(name), "{}").unwrap();
    }
    let inputs = Input::all(&[folder.path().to_owned(), "-".into()]).unwrap();
    let names: Vec<String> = inputs.iter().map(Input::name).collect();
    let path = |name: &str| folder.path().join(name).display().to_string();
    assert_eq!(names, [path("a.log"), path("b.jsonl"), "-".to_owned()]);
    assert!(Input::all(&["does-not-exist".into()]).unwrap_err().to_string().contains("does not exist"));
    let empty = tempfile::tempdir().unwrap();
    assert!(Input::all(&[empty.path().to_owned()]).unwrap_err().to_string().contains("holds no recording"));
}
