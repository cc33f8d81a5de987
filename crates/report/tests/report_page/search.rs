//! The search box: its matches, its counts, and the faded chunks.

use sublet_report::{Located, Snapshot};

use crate::browser::Browser;
use crate::data::{Program, grouped};
use crate::figures::{show_all, values};
use crate::{browser_or_return, open};

/// Returns count and bytes of the matches as shown; `None` without a search.
fn found(browser: &mut Browser) -> Option<String> {
    let text = browser.text("#found");
    (!text.is_empty()).then_some(text)
}

fn expect(browser: &mut Browser, snapshot: &Snapshot, query: &str, matches: impl Fn(&Located<'_>) -> bool) {
    let mut sizes: Vec<u64> =
        snapshot.allocations().filter(|found| matches(found)).map(|found| found.size).collect();
    browser.search(query);
    let text = found(browser).unwrap_or_else(|| panic!("{query}: nothing is shown"));
    let word = if sizes.len() == 1 { "1 match " } else { &format!("{} matches ", sizes.len()) };
    assert!(text.starts_with(word), "{query}: {text}, not {word}");
    let bytes = grouped(sizes.iter().sum());
    assert!(text.contains(&format!("({bytes} bytes)")), "{query}: {text}, not {bytes}");
    // The list shows the same matches.
    show_all(browser, "matches");
    let mut listed: Vec<u64> =
        values(browser, "matches").iter().map(|row| row[1].parse::<u64>().unwrap()).collect();
    listed.sort_unstable();
    sizes.sort_unstable();
    assert_eq!(listed, sizes, "{query}");
}

fn has(text: Option<&str>, part: &str) -> bool {
    text.is_some_and(|text| text.contains(part))
}

#[test]
fn a_search_finds_what_it_says() {
    let mut browser = browser_or_return!("a_search_finds_what_it_says");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "search", &snapshot);
    assert_eq!(found(&mut browser), None);
    assert!(!browser.is_visible("#matches"));

    let by_name = |part: &'static str| move |found: &Located<'_>| has(found.entry.name.as_deref(), part);
    expect(&mut browser, &snapshot, "mesh", by_name("mesh"));
    expect(&mut browser, &snapshot, "DRAGON", by_name("dragon"));
    expect(&mut browser, &snapshot, "\"river flow\"", by_name("river flow"));
    expect(&mut browser, &snapshot, "mesh castle", by_name("castle mesh"));
    expect(&mut browser, &snapshot, "mesh -castle", |found| {
        has(found.entry.name.as_deref(), "mesh") && !has(found.entry.name.as_deref(), "castle")
    });
    expect(&mut browser, &snapshot, "kind:image", |found| found.entry.kind.to_string().contains("IMAGE"));
    expect(&mut browser, &snapshot, "image_linear", |found| found.entry.kind.to_string() == "IMAGE_LINEAR");
    expect(&mut browser, &snapshot, "caller:data.rs", |found| has(found.entry.caller.as_deref(), "data.rs"));
    expect(&mut browser, &snapshot, "usage:vertex", |found| {
        found.entry.kind.to_string() == "BUFFER" && found.entry.usage & 0x80 != 0
    });
    expect(&mut browser, &snapshot, ">256K", |found| found.size > 256 << 10);
    expect(&mut browser, &snapshot, "<=64KiB", |found| found.size <= 64 << 10);
    expect(&mut browser, &snapshot, "0.1M..0.25M kind:buffer", |found| {
        found.size >= 104_858 && found.size <= 256 << 10 && found.entry.kind.to_string() == "BUFFER"
    });
    expect(&mut browser, &snapshot, "pool:streaming", |found| has(found.vector.name.as_deref(), "streaming"));
    expect(&mut browser, &snapshot, "is:dedicated", |found| found.block.is_none());
    expect(&mut browser, &snapshot, "is:unnamed", |found| found.entry.name.is_none());
    expect(&mut browser, &snapshot, "type:1", |found| found.vector.memory_type == 1);
    expect(&mut browser, &snapshot, "heap:0 block:0", |found| {
        found.vector.heap == 0 && found.block.is_some_and(|block| block.id == 0)
    });
    let one = snapshot.allocations().nth(5).unwrap();
    let id = one.entry.id.clone().unwrap();
    expect(&mut browser, &snapshot, &format!("id:{id}"), |found| has(found.entry.id.as_deref(), &id));
    let data = format!("{:#x}", 25_u64 << 40);
    expect(&mut browser, &snapshot, &format!("user:{data}"), |found| {
        found.entry.user_data.is_some_and(|user_data| format!("{user_data:#x}").contains(&data))
    });
    expect(&mut browser, &snapshot, "nobody is called this", |_| false);
    browser.picture("search");
    browser.search("");
    assert_eq!(found(&mut browser), None);
    assert!(!browser.is_visible("#matches"));
    browser.assert_silent();
}

#[test]
fn free_ranges_are_found_where_they_are_asked_for() {
    let mut browser = browser_or_return!("free_ranges_are_found_where_they_are_asked_for");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "free", &snapshot);
    let blocks = snapshot.vectors.iter().flat_map(|vector| &vector.blocks);
    let free = blocks.flat_map(|block| &block.chunks).filter(|chunk| chunk.allocation.is_none());
    let large: Vec<u64> = free.map(|chunk| chunk.size).filter(|size| *size > 100 << 10).collect();
    assert!(large.len() > 2);
    browser.search("is:free >100K");
    let expected = format!("{} matches", large.len());
    assert!(found(&mut browser).unwrap().starts_with(&expected), "{expected}");
    browser.assert_silent();
}

#[test]
fn keys_reach_the_search_and_leave_it() {
    let mut browser = browser_or_return!("keys_reach_the_search_and_leave_it");
    open(&mut browser, "keys", &Program::in_use().snapshot());
    browser.press("/");
    assert_eq!(browser.eval("document.activeElement.id"), "search");
    browser.press("d");
    assert_eq!(browser.eval("document.getElementById('search').value"), "d", "the stroke itself is no text");
    assert!(found(&mut browser).is_some());
    browser.press("Escape");
    assert_eq!(found(&mut browser), None);
    // A row of a table of sums searches for its group.
    browser.click("#by-name tbody tr:first-child button");
    assert!(found(&mut browser).is_some());
    let query = browser.eval("document.getElementById('search').value");
    assert!(query.as_str().unwrap().starts_with("name:") || query == "is:unnamed", "{query}");
    browser.assert_silent();
}

#[test]
fn a_colour_that_is_pressed_by_key_keeps_the_focus() {
    let mut browser = browser_or_return!("a_colour_that_is_pressed_by_key_keeps_the_focus");
    open(&mut browser, "focus", &Program::in_use().snapshot());
    browser.eval("document.querySelector('#legend button').focus()");
    browser.press(" ");
    assert!(found(&mut browser).is_some());
    assert_eq!(browser.eval("document.activeElement === document.querySelector('#legend button')"), true);
    browser.assert_silent();
}

#[test]
fn what_is_found_has_its_callers() {
    let mut browser = browser_or_return!("what_is_found_has_its_callers");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "callers-found", &snapshot);
    browser.search("castle");
    assert_eq!(browser.texts("#matches th").last().unwrap(), "Caller");
    let callers: Vec<&str> =
        snapshot.allocations().map(|found| found.entry.caller.as_deref().unwrap()).collect();
    let rows = values(&mut browser, "matches");
    assert!(rows.iter().all(|row| callers.contains(&row.last().unwrap().as_str())), "{rows:?}");
    browser.assert_silent();
}
