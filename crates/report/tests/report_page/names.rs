//! Names that look like markup are shown as text.

use ash::vk;
use sublet::{AllocationCreateInfo, MemoryUsage};
use sublet_report::Page;

use crate::browser_or_return;
use crate::data::Program;
use crate::figures::values;

const HOSTILE: &[(&str, &str)] = &[
    ("</script><script>console.error('out')</script>", "</script><script>console.error('out')</script>"),
    ("<img src=x onerror=console.error(1)>", "<img src=x onerror=console.error(1)>"),
    ("\"quoted\" 'and' `so` ${1+1}", "\"quoted\" 'and' `so` ${1+1}"),
    ("two\nlines\tand a tab", "two\\nlines\\tand a tab"),
    ("\u{202e}turned round", "\\u{202e}turned round"),
    ("שלום עולם", "שלום עולם"),
    ("<!--", "<!--"),
    ("{{script}} {{nonce}}", "{{script}} {{nonce}}"),
    ("&lt;b&gt; &amp;", "&lt;b&gt; &amp;"),
    ("__proto__", "__proto__"),
    ("constructor", "constructor"),
    ("🏰 castle", "🏰 castle"),
];

#[test]
fn names_are_shown_as_text_whatever_they_look_like() {
    let mut browser = browser_or_return!("names_are_shown_as_text_whatever_they_look_like");
    let mut program = Program::new();
    for (number, (name, _)) in (1..).zip(HOSTILE) {
        program.named(number << 16, name);
    }
    let unnamed = AllocationCreateInfo::new(MemoryUsage::Auto);
    program.buffer(256, vk::BufferUsageFlags::VERTEX_BUFFER, &unnamed);
    let mut snapshot = program.snapshot();
    snapshot.device.name = Some("<b>GPU</b>".into());
    let before = snapshot.clone();
    let (title, leaks) = (HOSTILE[0].0, program.leave());
    let html = Page::new(&snapshot).before(&before).leaks(&leaks).title(title).to_html();
    browser.open("names-that-look-like-markup", &html);

    assert_eq!(browser.eval("document.title"), title);
    assert_eq!(browser.text("h1"), title);
    assert!(browser.text("#device").starts_with("<b>GPU</b>"));
    browser.click("input[name=colour][value=name] + span");
    for table in ["largest", "by-name", "leaks"] {
        crate::figures::show_all(&mut browser, table);
        let names: Vec<String> = values(&mut browser, table).into_iter().map(|row| row[0].clone()).collect();
        let shown = browser.texts(&format!("#{table} tbody td:first-child"));
        for (name, text) in HOSTILE {
            assert!(names.contains(&(*name).to_owned()), "{name} in {table}");
            assert!(shown.contains(&(*text).to_owned()), "{text} in {table}: {shown:?}");
        }
    }
    // Each name can be clicked to search for it, and is found.
    for at in 1..=HOSTILE.len() {
        browser.click(&format!("#by-name tbody tr:nth-child({at}) button"));
        assert!(browser.text("#found b").starts_with("1 match"), "{}", browser.text("#found"));
    }
    // No name became an element.
    for selector in ["img", "b b", "main script", "h1 *", "#device *"] {
        assert!(!browser.is_visible(selector), "{selector}");
    }
    assert_eq!(browser.eval("document.scripts.length"), 2);
    browser.eval("window.scrollTo(0, 0)");
    browser.picture("names-that-look-like-markup");
    browser.assert_silent();
}

#[test]
fn markup_that_gets_in_after_all_does_not_run() {
    let mut browser = browser_or_return!("markup_that_gets_in_after_all_does_not_run");
    let html = Page::new(&Program::new().snapshot()).to_html();
    // Simulates data that was written without escaping.
    let broken = html
        .replace("<main", "<script>document.title = 'broken into'</script><img src=x onerror=alert(1)><main");
    browser.open("markup-that-got-in", &broken);
    assert_eq!(browser.eval("document.title"), "Memory map");
    let complaints = browser.complaints();
    assert!(
        complaints.iter().any(|complaint| complaint.contains("Content Security Policy")),
        "{complaints:?}"
    );
    assert!(!complaints.iter().any(|complaint| complaint.contains("exception")), "{complaints:?}");
}
