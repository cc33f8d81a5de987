//! Windows of all widths: nothing is cut off or squeezed.

use crate::browser::Browser;
use crate::data::Program;
use crate::{browser_or_return, open};

/// Widths of a phone, a tablet, a laptop and a desktop, and 15 pixels less for a scroll bar.
const WIDTHS: [u32; 8] = [385, 400, 785, 800, 1265, 1280, 1905, 1920];

/// Returns the number of figures in each row of the sums.
fn rows(browser: &mut Browser) -> Vec<usize> {
    let tops =
        browser.eval("[...document.querySelectorAll('.figure')].map((e) => e.getBoundingClientRect().top)");
    let tops: Vec<f64> = serde_json::from_value(tops).unwrap();
    tops.chunk_by(|a, b| a == b).map(<[f64]>::len).collect()
}

/// Elements that overflow the window, or a box that would scroll sideways.
const OUTSIDE: &str = "(() => {
  const width = document.documentElement.clientWidth;
  const out = [...document.querySelectorAll('body *:not(.skip)')].filter((e) => e.getBoundingClientRect().right > width + 0.5);
  const scrolled = [...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth + 1);
  return [...out, ...scrolled].map((e) => `${e.tagName} ${e.id} ${e.className} ${e.textContent.slice(0, 40)}`);
})()";

/// Broken words in cells: texts of the page itself, and short names.
const BROKEN: &str = "[...document.querySelectorAll('td bdi, td span, th button')].flatMap((e) => [...e.childNodes]).filter((e) => {
  if (e.nodeType !== Node.TEXT_NODE) return false;
  return [...e.data.matchAll(/\\S+/g)].some((word) => {
    if (word[0].length > 14) return false;
    const range = document.createRange();
    range.setStart(e, word.index);
    range.setEnd(e, word.index + word[0].length);
    return new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1;
  });
}).map((e) => e.data)";

#[test]
fn every_width_shows_all_of_it() {
    let mut browser = browser_or_return!("every_width_shows_all_of_it");
    let snapshot = Program::in_use().snapshot();
    for width in WIDTHS {
        browser.resize(width, 1000);
        open(&mut browser, "widths", &snapshot);
        let none: [String; 0] = [];
        assert_eq!(browser.eval("document.documentElement.scrollWidth"), width);
        assert_eq!(browser.eval(OUTSIDE), serde_json::json!(none), "{width}");
        assert_eq!(browser.eval(BROKEN), serde_json::json!(none), "{width}");
        let expected: &[usize] = match width {
            ..=640 => &[2, 2, 2, 2],
            641..=1180 => &[4, 4],
            _ => &[8],
        };
        assert_eq!(rows(&mut browser), expected, "{width}");
        browser.picture(&format!("widths-{width}"));
    }
    browser.assert_silent();
}

/// A narrowed window shows the same as one that was always narrow.
#[test]
fn a_window_may_become_narrower() {
    let mut browser = browser_or_return!("a_window_may_become_narrower");
    browser.resize(1920, 1000);
    open(&mut browser, "narrower", &Program::in_use().snapshot());
    browser.resize(400, 1000);
    browser.wait_for("document.documentElement.scrollWidth === 400");
    browser.wait_for(&format!("{OUTSIDE}.length === 0"));
    browser.assert_silent();
}
