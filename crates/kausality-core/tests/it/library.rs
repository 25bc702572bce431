//! The example of library mode says what its page shows.

#[path = "../../examples/library.rs"]
#[allow(dead_code, unreachable_pub, reason = "an example has a main function, too")]
mod example;

#[test]
fn the_page_shows_what_the_example_says() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/library.md");
    let page = std::fs::read_to_string(page).unwrap();
    let said = example::story().unwrap();
    let shown = said.iter().map(|line| format!("{line}\n")).collect::<String>();
    assert!(page.contains(&format!("```text\n{shown}```\n")), "docs/library.md does not show\n{shown}");
}
