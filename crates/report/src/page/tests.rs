//! Tests of a page's text. `tests/report_page` tests it in a browser.
#![allow(clippy::unwrap_used, reason = "a test")]

use ash::vk;

use super::super::snapshot::{Dedicated, Entry, Heap, MemoryType, Vector};
use super::*;
use sublet::ResourceKind;

/// A snapshot with one dedicated allocation of this name.
fn named(name: &str) -> Snapshot {
    let entry = Entry {
        id: None,
        kind: ResourceKind::Buffer,
        usage: 0,
        name: Some(name.into()),
        user_data: None,
        caller: None,
    };
    let dedicated = Dedicated { size: 4096, map_count: None, allocation: entry };
    let vector = Vector {
        memory_type: 0,
        heap: 0,
        pool: None,
        name: None,
        algorithm: None,
        block_size: 0,
        blocks: Vec::new(),
        dedicated: vec![dedicated],
    };
    Snapshot {
        heaps: vec![Heap { size: 1 << 20, ..Heap::default() }],
        types: vec![MemoryType::default()],
        vectors: vec![vector],
        ..Snapshot::default()
    }
}

/// Returns the content of the data element.
fn data_of(html: &str) -> &str {
    let (_, rest) = html.split_once(r#"<script type="application/json" id="data">"#).unwrap();
    rest.split_once("</script>").unwrap().0
}

#[test]
fn the_data_is_read_back_as_it_was() {
    for name in
        ["</script><script>alert(1)</script>", "<!-- <script>", "{{style}}", "\u{2028}\"\\\n", "שלום", ""]
    {
        let snapshot = named(name);
        let html = Page::new(&snapshot).title(name).before(&snapshot).to_html();
        let data: serde_json::Value = serde_json::from_str(data_of(&html)).unwrap();
        assert_eq!(data["title"], name);
        for which in ["now", "before"] {
            let again = Snapshot::from_json(&data[which].to_string()).unwrap();
            assert_eq!(again, snapshot, "{which}");
        }
    }
}

#[test]
fn nothing_in_the_data_begins_an_element() {
    let html = Page::new(&named("</script><script>alert(1)</script><!--")).title("<b>\"&").to_html();
    assert!(!data_of(&html).contains('<'));
    assert_eq!(html.matches("<script").count(), 2, "the data and the script");
    assert!(html.contains("<title>&lt;b&gt;&quot;&amp;</title>"));
}

#[test]
fn the_page_has_no_place_left_to_fill_and_names_no_other_file() {
    let html = Page::new(&named("mesh")).to_html();
    let markup =
        html.replace(&SCRIPTS.join("\n"), "").replace(&STYLES.join("\n"), "").replace(data_of(&html), "");
    for word in ["{{", "}}", " src=", "href=\"h", "@import", "url("] {
        assert!(!markup.contains(word), "{word}");
    }
    for word in ["@import", "url(", "http:", "https:"] {
        assert!(STYLES.iter().all(|style| !style.contains(word)), "{word} in a style sheet");
    }
    for script in SCRIPTS {
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "fetch(",
            "import(",
            "</script",
        ] {
            assert!(!script.contains(word), "{word} in\n{script}");
        }
    }
    assert!(STYLES.iter().all(|style| !style.contains("</style")));
}

#[test]
fn only_the_pages_own_script_and_style_are_allowed_to_run() {
    let html = Page::new(&named("mesh")).to_html();
    let nonce = nonce(data_of(&html));
    let policy =
        format!("default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; base-uri 'none'");
    assert!(html.contains(&policy));
    assert!(
        html.contains(&format!("<script nonce=\"{nonce}\">"))
            && html.contains(&format!("<style nonce=\"{nonce}\">"))
    );
    assert_ne!(nonce, super::nonce(data_of(&Page::new(&named("mesh 2")).to_html())));
}

#[test]
fn the_same_snapshot_gives_the_same_page() {
    assert_eq!(Page::new(&named("mesh")).to_html(), Page::new(&named("mesh")).to_html());
}

#[test]
fn a_page_has_the_snapshots_title_unless_it_is_given_one() {
    let mut snapshot = named("mesh");
    assert!(Page::new(&snapshot).to_html().contains("<title>Memory map</title>"));
    snapshot.title = Some("Frame 7".into());
    assert!(Page::new(&snapshot).to_html().contains("<title>Frame 7</title>"));
    assert!(Page::new(&snapshot).title("Frame 8").to_html().contains("<title>Frame 8</title>"));
}

/// Returns the names of one list of `flags.js`, the lowest bit first.
fn names_in_script(list: &str) -> Vec<String> {
    let script = SCRIPTS.iter().find(|script| script.contains("const BUFFER_USAGE")).unwrap();
    let (_, rest) = script.split_once(&format!("const {list} = [")).unwrap();
    let (names, _) = rest.split_once(']').unwrap();
    names
        .split(',')
        .filter(|name| name.contains('\''))
        .map(|name| name.trim().trim_matches('\'').to_owned())
        .collect()
}

/// Returns a name of Vulkan's headers without its vendor suffix.
fn without_vendor(name: &str) -> String {
    let vendors = ["KHR", "EXT", "NV", "AMDX", "HUAWEI", "QCOM"];
    let vendor = vendors.iter().find_map(|vendor| name.strip_suffix(vendor)?.strip_suffix('_'));
    vendor.unwrap_or(name).to_owned()
}

#[test]
fn usages_are_called_what_the_headers_call_them() {
    let check = |list: &str, name_of: &dyn Fn(u32) -> String| {
        let names = names_in_script(list);
        assert!(names.len() > 20, "{list} has only {}", names.len());
        for bit in 0..32 {
            // Both show bits without a name as numbers.
            let known = without_vendor(&name_of(1 << bit));
            let known = if known.starts_with(|c: char| c.is_ascii_digit()) { "" } else { &known };
            let shown = names.get(usize::try_from(bit).unwrap()).map_or("", String::as_str);
            assert_eq!(shown, known, "bit {bit} of {list}");
        }
    };
    check("BUFFER_USAGE", &|bits| format!("{:?}", vk::BufferUsageFlags::from_raw(bits)));
    check("IMAGE_USAGE", &|bits| format!("{:?}", vk::ImageUsageFlags::from_raw(bits)));
}
