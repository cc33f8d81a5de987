//! The page of `sublet_report` in a headless browser. It loads without a message on the console and without another
//! file. Its figures match the snapshot. Search, pointer and comparison work. It draws 10,000 allocations in time.
//!
//! The tests need Chromium (`SUBLET_BROWSER` names another browser of its kind). Without it the tests print a message
//! and pass. With `SUBLET_REQUIRE_VULKAN=1` they fail instead. The pages, and pictures of them, stay in
//! `target/tmp/report_page`.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "the tests call the allocator as programs do"
)]

mod browser;
mod comparison;
mod data;
mod drawing;
mod figures;
mod history;
mod large;
mod names;
mod search;
mod silence;
#[path = "../example/watched.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests")]
mod watched;
mod widths;

use browser::Browser;
use sublet_report::{Page, Snapshot};

/// Opens a browser with the page of this snapshot, or returns from the test if there is none.
#[macro_export]
macro_rules! browser_or_return {
    ($test:expr) => {
        match $crate::browser::start($test) {
            Some(browser) => browser,
            None => return,
        }
    };
}

/// Opens the plain page of a snapshot.
fn open(browser: &mut Browser, name: &str, snapshot: &Snapshot) {
    browser.open(name, &Page::new(snapshot).title(name).to_html());
}
