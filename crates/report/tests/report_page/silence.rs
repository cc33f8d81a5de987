//! Checks the tests themselves: they notice messages on the console and requests for files.

use sublet_report::{Page, Snapshot};

use crate::browser_or_return;

/// Returns an empty page with this code before its script's last call.
fn with(code: &str) -> String {
    let html = Page::new(&Snapshot::default()).to_html();
    let (head, tail) = html.rsplit_once("run();").unwrap();
    format!("{head}{code};run();{tail}")
}

#[test]
fn a_page_that_complains_is_heard() {
    let mut browser = browser_or_return!("a_page_that_complains_is_heard");
    for (name, code, complaint) in [
        ("silent", "", None),
        ("error", "console.error('a word')", Some("console.\"error\"")),
        ("warning", "console.warn('a word')", Some("console.\"warning\"")),
        ("exception", "setTimeout(() => nothing.there, 0)", Some("exception")),
        ("rejection", "Promise.reject(new Error('later'))", Some("exception")),
        ("request", "fetch('other.json').catch(() => {})", Some("Content Security Policy")),
        ("image", "new Image().src = 'file:///other.png'", Some("Content Security Policy")),
        (
            "handler",
            "document.body.setAttribute('onclick', 'x()'); document.body.click()",
            Some("Content Security Policy"),
        ),
    ] {
        browser.open(&format!("complains-{name}"), &with(code));
        match complaint {
            None => assert_eq!(browser.complaints(), [""; 0]),
            Some(part) => browser.wait_for_complaint(part),
        }
    }
    // Without its policy the page could request files. The tests would notice that too.
    let open =
        with("fetch('file:///other.json').catch(() => {})").replace("default-src 'none'", "default-src *");
    browser.open("complains-file", &open.replace("script-src", "connect-src file: *; script-src"));
    browser.wait_for_complaint("request for file:///other.json");
}
