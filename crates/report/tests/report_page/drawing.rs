//! The map: positions and colours of chunks, the tooltip, and the inspector.

use sublet_report::{Block, Chunk, Snapshot, Vector};

use crate::browser::Browser;
use crate::data::{Program, grouped};
use crate::figures::ratio;
use crate::{browser_or_return, open};

/// Distance between two rows of blocks, and from the top of a row to the middle of its blocks, in pixels.
const ROW: f64 = 54.0;
const MIDDLE: f64 = 31.0;
/// Number of rows of one canvas.
const ROWS: usize = 20;

/// The position of a drawn block in the window.
struct Drawn {
    left: f64,
    middle: f64,
    width: f64,
}

/// Returns the block with the most chunks of a vector with full-width blocks, and its position. Each such block has its
/// own row.
fn fullest<'a>(browser: &mut Browser, snapshot: &'a Snapshot) -> (Drawn, &'a Vector, &'a Block) {
    let shown =
        snapshot.vectors.iter().filter(|vector| !vector.blocks.is_empty() || !vector.dedicated.is_empty());
    let blocks = (1..).zip(shown).flat_map(|(nth, vector)| {
        vector.blocks.iter().enumerate().map(move |(at, block)| (nth, vector, at, block))
    });
    // The block should have visible free memory too.
    let room = |block: &Block| {
        block.chunks.iter().any(|chunk| chunk.allocation.is_none() && chunk.size > block.size / 100)
    };
    let (nth, vector, at, block) =
        blocks.max_by_key(|(.., block)| (room(block), block.chunks.len())).unwrap();
    browser.click("input[name=scale][value=full] + span");
    // In the middle of the window, where nothing covers it.
    let place = browser.eval(&format!(
        "(() => {{ const c = document.querySelectorAll('.vector:nth-child({nth}) canvas')[{}]; \
         window.scrollBy(0, c.getBoundingClientRect().top + {} - window.innerHeight / 2); \
         const r = c.getBoundingClientRect(); return [r.left, r.top, r.width]; }})()",
        at / ROWS,
        u32::try_from(at % ROWS).unwrap() * 54,
    ));
    browser.scroll_by(0.0);
    let [left, top, width]: [f64; 3] = serde_json::from_value(place).unwrap();
    let row = f64::from(u32::try_from(at % ROWS).unwrap());
    (Drawn { left, middle: top + row * ROW + MIDDLE, width }, vector, block)
}

fn middle_of(drawn: &Drawn, block: &Block, chunk: &Chunk) -> (f64, f64) {
    let x = drawn.left + drawn.width * ratio(chunk.offset * 2 + chunk.size, block.size * 2);
    (x, drawn.middle)
}

/// Returns true if a chunk is wide enough to point at.
fn is_wide(drawn: &Drawn, block: &Block, chunk: &Chunk) -> bool {
    drawn.width * ratio(chunk.size, block.size) >= 5.0
}

/// Returns the colour of the canvas at a point, as "#rrggbb".
fn colour_at(browser: &mut Browser, (x, y): (f64, f64)) -> String {
    let colour = browser.eval(&format!(
        "(() => {{ const c = document.elementFromPoint({x}, {y}); const r = c.getBoundingClientRect(); \
         const p = Object.assign(document.createElement('canvas'), {{ width: 1, height: 1 }}).getContext('2d'); \
         p.drawImage(c, Math.floor({x} - r.left), Math.floor({y} - r.top), 1, 1, 0, 0, 1, 1); \
         return '#' + [...p.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((v) => v.toString(16).padStart(2, '0')).join(''); }})()"
    ));
    colour.as_str().unwrap().to_owned()
}

fn variable(browser: &mut Browser, name: &str) -> String {
    let value = browser
        .eval(&format!("getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()"));
    value.as_str().unwrap().to_owned()
}

/// Returns a point below the text of a chunk and above its lower edge.
fn below_text((x, y): (f64, f64)) -> (f64, f64) {
    (x, y + 10.0)
}

#[test]
fn chunks_are_drawn_to_scale_in_the_colours_of_their_kinds() {
    let mut browser = browser_or_return!("chunks_are_drawn_to_scale_in_the_colours_of_their_kinds");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "colours", &snapshot);
    browser.click("input[name=colour][value=kind] + span");
    let (drawn, _, block) = fullest(&mut browser, &snapshot);
    let kinds: Vec<String> = ["buffer", "image-optimal", "image-linear", "image-unknown", "unknown"]
        .map(|kind| variable(&mut browser, &format!("kind-{kind}")))
        .into();
    let mut seen = (0, 0);
    for chunk in block.chunks.iter().filter(|chunk| is_wide(&drawn, block, chunk)) {
        let colour = colour_at(&mut browser, below_text(middle_of(&drawn, block, chunk)));
        match &chunk.allocation {
            Some(entry) => {
                let kind = entry.kind.to_string().to_lowercase().replace('_', "-");
                assert_eq!(colour, variable(&mut browser, &format!("kind-{kind}")), "at {}", chunk.offset);
                seen.0 += 1;
            }
            None => {
                assert!(!kinds.contains(&colour), "free at {}, and {colour}", chunk.offset);
                seen.1 += 1;
            }
        }
        // The drawn width matches the size: the colour covers its first to last pixels.
        if chunk.allocation.is_some() {
            let x = |byte: u64| drawn.left + drawn.width * ratio(byte, block.size);
            for x in [x(chunk.offset) + 2.0, x(chunk.offset + chunk.size) - 3.0] {
                assert_eq!(colour_at(&mut browser, (x, drawn.middle + 10.0)), colour, "at {}", chunk.offset);
            }
        }
    }
    assert!(seen.0 > 5 && seen.1 > 0, "too few chunks to tell: {seen:?}");
    browser.assert_silent();
}

#[test]
fn the_same_name_has_the_same_colour() {
    let mut browser = browser_or_return!("the_same_name_has_the_same_colour");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "colours-of-names", &snapshot);
    browser.click("input[name=colour][value=name] + span");
    let (drawn, _, block) = fullest(&mut browser, &snapshot);
    let mut colours: Vec<(String, String)> = Vec::new();
    for chunk in block.chunks.iter().filter(|chunk| is_wide(&drawn, block, chunk)) {
        let Some(name) = chunk.allocation.as_ref().map(|entry| entry.name.as_deref().unwrap_or("")) else {
            continue;
        };
        let colour = colour_at(&mut browser, below_text(middle_of(&drawn, block, chunk)));
        if let Some((_, before)) = colours.iter().find(|(known, _)| known == name) {
            assert_eq!(&colour, before, "{name}");
        } else {
            colours.push((name.to_owned(), colour));
        }
    }
    let different: std::collections::BTreeSet<&String> = colours.iter().map(|(_, colour)| colour).collect();
    assert!(different.len() > 3, "{colours:?}");
    // The legend identifies the colours.
    let legend = browser.texts("#legend .key");
    for (name, _) in &colours {
        let shown = if name.is_empty() { "unnamed" } else { name };
        assert!(legend.iter().any(|key| key == shown), "{shown} in {legend:?}");
    }
    browser.picture("colours-of-names");
    browser.assert_silent();
}

/// The flags of a resource have a role each, and the first one decides.
#[test]
fn usages_have_roles_and_their_colours() {
    let mut browser = browser_or_return!("usages_have_roles_and_their_colours");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "roles", &snapshot);
    for (kind, usage, role) in [
        ("BUFFER", 0x80, "vertex"),
        ("BUFFER", 0x42, "vertex"),
        ("BUFFER", 0x12, "uniform"),
        ("BUFFER", 0x22, "storage"),
        ("BUFFER", 0x122, "indirect"),
        ("BUFFER", 0x1, "staging"),
        ("BUFFER", 0x3, "staging"),
        ("BUFFER", 0x10_0020, "acceleration"),
        ("BUFFER", 0x2_0002, "buffer"),
        ("BUFFER", 0, "buffer"),
        ("IMAGE_OPTIMAL", 0x14, "attachment"),
        ("IMAGE_OPTIMAL", 0x24, "depth"),
        ("IMAGE_LINEAR", 0x6, "sampled"),
        ("IMAGE_OPTIMAL", 0xc, "storage-image"),
        ("IMAGE_UNKNOWN", 0x3, "image"),
        ("UNKNOWN", 0x80, "unknown"),
    ] {
        assert_eq!(browser.eval(&format!("roleFor('{kind}', {usage})")), role, "{kind} {usage:#x}");
    }
    assert_eq!(browser.eval("roleFor('BUFFER', 2 ** 40 + 0x80)"), "vertex");
    let (drawn, _, block) = fullest(&mut browser, &snapshot);
    for chunk in block.chunks.iter().filter(|chunk| is_wide(&drawn, block, chunk)) {
        let Some(entry) = &chunk.allocation else { continue };
        let colour = colour_at(&mut browser, below_text(middle_of(&drawn, block, chunk)));
        let role = browser.eval(&format!("roleFor('{}', {})", entry.kind, entry.usage));
        assert_eq!(colour, variable(&mut browser, &format!("role-{}", role.as_str().unwrap())));
    }
    browser.search("role:sampled");
    assert!(browser.text("#found b").ends_with("matches"));
    browser.assert_silent();
}

#[test]
fn what_does_not_match_fades() {
    let mut browser = browser_or_return!("what_does_not_match_fades");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "fading", &snapshot);
    browser.click("input[name=colour][value=kind] + span");
    browser.search("mesh");
    let (drawn, _, block) = fullest(&mut browser, &snapshot);
    let mut seen = (0, 0);
    for chunk in block.chunks.iter().filter(|chunk| is_wide(&drawn, block, chunk)) {
        let Some(entry) = &chunk.allocation else { continue };
        let kind = entry.kind.to_string().to_lowercase().replace('_', "-");
        let full = variable(&mut browser, &format!("kind-{kind}"));
        let colour = colour_at(&mut browser, below_text(middle_of(&drawn, block, chunk)));
        if entry.name.as_deref().is_some_and(|name| name.contains("mesh")) {
            assert_eq!(colour, full, "a match at {}", chunk.offset);
            seen.0 += 1;
        } else {
            assert_ne!(colour, full, "no match at {}", chunk.offset);
            seen.1 += 1;
        }
    }
    assert!(seen.0 > 1 && seen.1 > 1, "too few chunks to tell: {seen:?}");
    browser.assert_silent();
}

/// Returns labels and values of the facts in an element.
fn facts(browser: &mut Browser, element: &str) -> Vec<(String, String)> {
    let labels = browser.texts(&format!("{element} dt"));
    labels.into_iter().zip(browser.texts(&format!("{element} dd"))).collect()
}

fn fact(facts: &[(String, String)], label: &str) -> String {
    facts.iter().find(|(known, _)| known == label).map(|(_, value)| value.clone()).unwrap_or_default()
}

#[test]
fn pointing_at_a_chunk_tells_what_it_is() {
    let mut browser = browser_or_return!("pointing_at_a_chunk_tells_what_it_is");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "pointing", &snapshot);
    let (drawn, vector, block) = fullest(&mut browser, &snapshot);
    let mut seen = 0;
    for chunk in block.chunks.iter().filter(|chunk| is_wide(&drawn, block, chunk)) {
        browser.point_at(middle_of(&drawn, block, chunk));
        assert!(browser.is_visible("#tooltip"));
        let facts = facts(&mut browser, "#tooltip");
        assert!(fact(&facts, "Size").ends_with(&format!("{} bytes", grouped(chunk.size))), "{facts:?}");
        assert!(fact(&facts, "Offset").starts_with(&grouped(chunk.offset)), "{facts:?}");
        let place = fact(&facts, "In");
        assert!(place.starts_with(&format!("block {}", block.id)), "{place}");
        assert!(place.ends_with(&vector.memory_type.to_string()), "{place}");
        let Some(entry) = &chunk.allocation else {
            assert_eq!(browser.text("#tooltip .title"), "free");
            continue;
        };
        let title = browser.text("#tooltip .title");
        assert_eq!(title, format!("{}{}", entry.name.as_deref().unwrap_or("unnamed"), entry.kind));
        let usage = if entry.kind.to_string() == "BUFFER" { "TRANSFER_DST" } else { "SAMPLED" };
        assert!(fact(&facts, "Usage").contains(usage), "{facts:?}");
        assert_eq!(fact(&facts, "User data"), format!("{:#x}", entry.user_data.unwrap()));
        assert_eq!(fact(&facts, "Caller"), entry.caller.as_deref().unwrap());
        seen += 1;
    }
    assert!(seen > 5);
    browser.picture("pointing");
    browser.point_at((2.0, 2.0));
    assert!(!browser.is_visible("#tooltip"));
    browser.assert_silent();
}

#[test]
fn a_click_opens_the_inspector_and_keys_go_through_the_block() {
    let mut browser = browser_or_return!("a_click_opens_the_inspector_and_keys_go_through_the_block");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "inspector", &snapshot);
    assert!(!browser.is_visible("#inspector"));
    let (drawn, _, block) = fullest(&mut browser, &snapshot);
    let at = block.chunks.iter().position(|chunk| is_wide(&drawn, block, chunk)).unwrap();
    browser.click_at(middle_of(&drawn, block, &block.chunks[at]));
    let offset = |browser: &mut Browser| fact(&facts(browser, "#inspector"), "Offset");
    let shows = |text: &str, chunk: &Chunk| {
        let (first, _) = text.split_once(' ').unwrap();
        assert_eq!(first, grouped(chunk.offset));
    };
    shows(&offset(&mut browser), &block.chunks[at]);
    browser.press("ArrowRight");
    shows(&offset(&mut browser), &block.chunks[at + 1]);
    browser.click("#inspector button[title='Next chunk']");
    shows(&offset(&mut browser), &block.chunks[at + 2]);
    browser.press("ArrowLeft");
    shows(&offset(&mut browser), &block.chunks[at + 1]);
    // Shows the whole block, then zooms in step by step.
    browser.click("#inspector button[title='Show the whole block']");
    let whole = format!("0 – {}", grouped(block.size));
    assert_eq!(browser.text("#inspector .range"), whole);
    browser.press("+");
    assert!(browser.text("#inspector .range").contains("(50.0 % of it)"));
    browser.click("#inspector button[title='Zoom to the chosen chunk']");
    let close = browser.text("#inspector .range");
    assert!(close != whole && close.contains("of it"), "{close}");
    browser.picture("inspector");
    // The magnified view has tooltips too.
    let place = browser.middle("#inspector .magnified");
    browser.point_at(place);
    let size = fact(&facts(&mut browser, "#tooltip"), "Size");
    assert!(size.ends_with(&format!("{} bytes", grouped(block.chunks[at + 1].size))), "{size}");
    browser.press("Escape");
    assert!(!browser.is_visible("#inspector"));
    // A row of a table also selects.
    browser.click("#largest tbody tr:first-child button");
    let largest = snapshot.allocations().map(|found| found.size).max().unwrap();
    let size = fact(&facts(&mut browser, "#inspector"), "Size");
    assert!(size.ends_with(&format!("{} bytes", grouped(largest))), "{size}");
    browser.assert_silent();
}

#[test]
fn the_legend_turns_dark_with_the_map() {
    let mut browser = browser_or_return!("the_legend_turns_dark_with_the_map");
    browser.prefer("light");
    open(&mut browser, "turning-dark", &Program::in_use().snapshot());
    let colour = "document.querySelector('#legend .swatch').style.background";
    let light = browser.eval(colour);
    browser.prefer("dark");
    browser.wait_for(&format!("{colour} !== {light}"));
    browser.assert_silent();
}

#[test]
fn arrow_keys_go_through_the_map_without_a_mouse() {
    let mut browser = browser_or_return!("arrow_keys_go_through_the_map_without_a_mouse");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "keys-on-the-map", &snapshot);
    let is_shown = |vector: &&Vector| !vector.blocks.is_empty() || !vector.dedicated.is_empty();
    let shown: Vec<&Vector> = snapshot.vectors.iter().filter(is_shown).collect();
    let stops = browser.eval("document.querySelectorAll('#vectors [tabindex=\"0\"]').length");
    assert_eq!(stops, shown.len(), "one for each memory type and pool");
    let (at, vector) = shown.iter().enumerate().find(|(_, vector)| vector.blocks.len() > 1).unwrap();
    let focus = |browser: &mut Browser, at: usize| {
        browser.eval(&format!("document.querySelectorAll('.rows')[{at}].focus()"));
    };
    // Block and offset of the selection.
    let chosen = |browser: &mut Browser| {
        assert!(browser.is_visible("#inspector"));
        assert_eq!(browser.eval("document.activeElement.className"), "rows");
        let facts = facts(browser, "#inspector");
        let (place, offset) = (fact(&facts, "In"), fact(&facts, "Offset"));
        (place.split(',').next().unwrap().to_owned(), offset.split(' ').next().unwrap().to_owned())
    };
    let place = |block: &Block, chunk: &Chunk| (format!("block {}", block.id), grouped(chunk.offset));
    let (first, second) = (&vector.blocks[0], &vector.blocks[1]);

    focus(&mut browser, at);
    browser.press("ArrowRight");
    let start = first.chunks.iter().position(|chunk| chunk.allocation.is_some()).unwrap();
    assert_eq!(chosen(&mut browser), place(first, &first.chunks[start]));
    for chunk in &first.chunks[start + 1..] {
        browser.press("ArrowRight");
        assert_eq!(chosen(&mut browser), place(first, chunk));
    }
    // Moves past the end of the block, and back.
    browser.press("ArrowRight");
    assert_eq!(chosen(&mut browser), place(second, &second.chunks[0]));
    browser.press("ArrowLeft");
    assert_eq!(chosen(&mut browser), place(first, first.chunks.last().unwrap()));
    browser.press("Escape");
    assert!(!browser.is_visible("#inspector"));
    assert_eq!(browser.eval("document.activeElement.className"), "rows");

    // During a search it begins at the first match, and drops any other selection.
    let other =
        shown.iter().position(|other| other.blocks != vector.blocks && !other.blocks.is_empty()).unwrap();
    focus(&mut browser, other);
    browser.press("ArrowLeft");
    chosen(&mut browser);
    browser.search("river");
    focus(&mut browser, at);
    browser.press("ArrowRight");
    let is_match = |chunk: &Chunk| {
        let name = chunk.allocation.as_ref().and_then(|entry| entry.name.as_deref());
        name.is_some_and(|name| name.contains("river"))
    };
    let found = first.chunks.iter().position(is_match).unwrap();
    assert!(found > start, "not what is chosen anyway");
    assert_eq!(chosen(&mut browser), place(first, &first.chunks[found]));
    browser.picture("keys-on-the-map");
    browser.assert_silent();
}

#[test]
fn no_width_breaks_the_layout_in_light_or_dark() {
    let mut browser = browser_or_return!("no_width_breaks_the_layout_in_light_or_dark");
    let snapshot = Program::in_use().snapshot();
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        for width in [800, 1100, 1400, 1920, 2500] {
            browser.resize(width, 1000);
            open(&mut browser, "layout", &snapshot);
            browser.click("#largest tbody tr:first-child button");
            let over = browser.eval("document.documentElement.scrollWidth - window.innerWidth");
            assert!(over.as_f64().unwrap() <= 0.0, "{scheme}, {width}: {over} pixels too wide");
            browser.eval("window.scrollTo(0, 0)");
            browser.picture(&format!("layout-{scheme}-{width}"));
        }
    }
    // The window grows while the page is open, and the map uses the new space.
    browser.resize(1000, 900);
    browser.wait_for("document.querySelector('.vector canvas').getBoundingClientRect().width < 1000");
    browser.assert_silent();
}
