//! A snapshot as one HTML page.
//!
//! Text, style, script and data are in a single file. It needs no network and no other file, and its content policy
//! blocks both: see `page.html`.

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
#[cfg(test)]
#[cfg(not(loom))]
mod theme;

use std::borrow::Cow;
use std::ptr;

use serde::Serialize;

use super::words::file_and_line;
use super::{Comparison, Figures, Located, Matching, Snapshot};
use sublet::Leak;

const TEMPLATE: &str = include_str!("page.html");

/// The parts of the style sheet. The order matters: the parts for narrow windows and for print override the rest.
const STYLES: &[&str] = &[
    include_str!("theme.css"),
    include_str!("page.css"),
    include_str!("map.css"),
    include_str!("lists.css"),
    include_str!("timeline.css"),
    include_str!("media.css"),
];

/// The parts of the script, one subject each. While it loads, a part uses only the parts before it.
const SCRIPTS: &[&str] = &[
    "'use strict';\n",
    include_str!("text.js"),
    include_str!("flags.js"),
    include_str!("model.js"),
    include_str!("usage.js"),
    include_str!("history.js"),
    include_str!("search.js"),
    include_str!("colours.js"),
    include_str!("paint.js"),
    include_str!("map.js"),
    include_str!("describe.js"),
    include_str!("inspector.js"),
    include_str!("tables.js"),
    include_str!("comparison.js"),
    include_str!("graph.js"),
    include_str!("timeline.js"),
    include_str!("findings.js"),
    include_str!("page.js"),
];

/// A page about a [`Snapshot`]: heaps and budgets, every block drawn to scale, the largest allocations, sums by name
/// and by caller, fragmentation, and a search over everything. [`before`](Self::before) adds the changes since another
/// snapshot, [`leaks`](Self::leaks) the allocations that were never freed.
///
/// ```
/// use sublet_report::{Page, Snapshot};
///
/// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
/// let mesh = allocate(&allocator, "mesh", 4096);
/// let html: String = Page::new(&Snapshot::of(&allocator)).title("Level 3").to_html();
/// std::fs::write(std::env::temp_dir().join("level-3.html"), &html)?;
/// assert!(html.contains("<title>Level 3</title>"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "`to_html` makes the page"]
pub struct Page<'a> {
    now: &'a Snapshot,
    before: Option<&'a Snapshot>,
    leaks: &'a [Leak],
    title: Option<&'a str>,
}

impl<'a> Page<'a> {
    /// Creates a page for one snapshot. Its title is the snapshot's title, if it has one.
    pub fn new(now: &'a Snapshot) -> Self {
        Self { now, before: None, leaks: &[], title: None }
    }

    /// Adds a comparison with an earlier snapshot: bars for both, tables of new, freed and grown memory, and a switch
    /// to the earlier map. [`Comparison`] describes how allocations are matched.
    ///
    /// ```
    /// use sublet_report::{Page, Snapshot};
    ///
    /// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
    /// let before = Snapshot::of(&allocator);
    /// let mesh = allocate(&allocator, "mesh", 4096);
    /// let now = Snapshot::of(&allocator);
    /// let html = Page::new(&now).before(&before).to_html();
    /// assert!(html.contains(r#""before":{"format":"#));
    /// ```
    pub fn before(self, before: &'a Snapshot) -> Self {
        Self { before: Some(before), ..self }
    }

    /// Adds a table of allocations that were never freed.
    ///
    /// ```
    /// use sublet_report::{Page, Snapshot};
    ///
    /// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
    /// let _lost = allocate(&allocator, "forgotten", 4096);
    /// // At the end of the program:
    /// let snapshot = Snapshot::of(&allocator);
    /// let leaks = allocator.destroy();
    /// let html = Page::new(&snapshot).leaks(&leaks).to_html();
    /// assert!(html.contains(r#""leaks":[{"name":"forgotten","#));
    /// ```
    pub fn leaks(self, leaks: &'a [Leak]) -> Self {
        Self { leaks, ..self }
    }

    /// Sets the heading and the window title, instead of the snapshot's own title.
    pub fn title(self, title: &'a str) -> Self {
        Self { title: Some(title), ..self }
    }

    /// Returns the page as a complete HTML file. The same snapshots give the same text.
    ///
    /// # Complexity
    /// O(chunks).
    #[must_use]
    pub fn to_html(&self) -> String {
        let title = self.title.or(self.now.title.as_deref()).unwrap_or("Memory map");
        let data = Data {
            title,
            now: self.now,
            before: self.before,
            leaks: self.leaks.iter().map(LeakData::new).collect(),
            figures: self.now.figures(),
            figures_before: self.before.map(Snapshot::figures),
            comparison: self.before.map(|before| Differences::new(before, self.now)),
        };
        assemble(title, &data)
    }
}

/// The data of a recording's page.
#[cfg(feature = "trace")]
#[derive(Serialize)]
struct HistoryPage<'a, T> {
    title: &'a str,
    history: &'a T,
    leaks: [(); 0],
}

/// Returns the page of a whole recording. `history` is what `history.js` reads.
#[cfg(feature = "trace")]
pub(super) fn of_history(title: &str, history: &impl Serialize) -> String {
    assemble(title, &HistoryPage { title, history, leaks: [] })
}

/// Returns the page of a recording that grows. It may send requests to its own server.
#[cfg(feature = "trace")]
pub(super) fn of_live_history(title: &str, history: &impl Serialize) -> String {
    let data = HistoryPage { title, history, leaks: [] };
    assembled(title, &data, "; connect-src 'self'", include_str!("live.js"))
}

/// Fills the template of a page without requests.
fn assemble(title: &str, data: &impl Serialize) -> String {
    assembled(title, data, "", "")
}

/// Fills the template. `policy` is added to the content policy, and `more` to the script.
fn assembled(title: &str, data: &impl Serialize, policy: &str, more: &str) -> String {
    // Cannot fail, because all map keys are strings. Without `<`, nothing in the data can close its element. JSON
    // allows this escape anywhere in a string, and has no `<` outside of strings.
    let data = serde_json::to_string(data).unwrap_or_default().replace('<', "\\u003c");
    let (title, nonce) = (escaped(title), nonce(&data));
    let (style, script) = (STYLES.join("\n"), SCRIPTS.join("\n") + more);
    fill(TEMPLATE, |name| match name {
        "title" => &title,
        "nonce" => &nonce,
        "policy" => policy,
        "generator" => concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")),
        "style" => &style,
        "script" => &script,
        _ => &data,
    })
}

/// The data that the script reads: see `model.js`.
#[derive(Serialize)]
struct Data<'a> {
    title: &'a str,
    now: &'a Snapshot,
    before: Option<&'a Snapshot>,
    leaks: Vec<LeakData<'a>>,
    figures: Figures,
    figures_before: Option<Figures>,
    comparison: Option<Differences>,
}

/// The allocations of only one snapshot, as indices in the order of [`Snapshot::allocations`]. The script uses the same
/// order.
#[derive(Serialize)]
struct Differences {
    matching: Matching,
    new: Vec<usize>,
    gone: Vec<usize>,
}

impl Differences {
    fn new(before: &Snapshot, now: &Snapshot) -> Self {
        let Comparison { matching, new, gone, .. } = Comparison::new(before, now);
        Self { matching, new: places(now, &new), gone: places(before, &gone) }
    }
}

/// Returns the indices of `some` among all allocations of a snapshot. Both have the same order.
fn places(snapshot: &Snapshot, some: &[Located<'_>]) -> Vec<usize> {
    let mut some = some.iter().peekable();
    // Compares by address, because without ids two entries may be equal.
    let mut is_next = |all: &Located<'_>| some.next_if(|it| ptr::eq(it.entry, all.entry)).is_some();
    snapshot.allocations().enumerate().filter(|(_, found)| is_next(found)).map(|(at, _)| at).collect()
}

/// A leak with the member names of a snapshot.
#[derive(Serialize)]
struct LeakData<'a> {
    name: Option<&'a str>,
    kind: &'static str,
    size: u64,
    memory_type: u32,
    pool: Option<Cow<'a, str>>,
    user_data: Option<String>,
    caller: Option<String>,
}

impl<'a> LeakData<'a> {
    fn new(leak: &'a Leak) -> Self {
        Self {
            name: leak.name.as_deref(),
            kind: leak.kind.text(),
            size: leak.size,
            memory_type: leak.memory_type_index,
            pool: match (&leak.pool, leak.pool_number) {
                (Some(name), _) => Some(Cow::Borrowed(name)),
                (None, number) => number.map(|number| format!("Pool {number}").into()),
            },
            // A string, because numbers of JavaScript are exact only up to 2^53.
            user_data: leak.user_data.map(|user_data| format!("{user_data:#x}")),
            caller: leak.caller.map(file_and_line),
        }
    }
}

/// Replaces each `{{name}}` of the template. Does not search the inserted text, because the data may contain
/// `{{style}}`.
fn fill<'a>(template: &str, part: impl Fn(&str) -> &'a str) -> String {
    let mut page = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else { break };
        page.push_str(before);
        page.push_str(part(name));
        rest = after;
    }
    page.push_str(rest);
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the nonce that marks the page's own script and style, in case the data ever contains an element. It is a
/// hash of the data (FNV-1a), so a text cannot contain it without knowing its own hash.
fn nonce(data: &str) -> String {
    let hash = data.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}
