//! Pictures: well-formed, of bounded size, and to scale.

use roxmltree::{Document, Node};
use serde_json::{Value, json};
use sublet_report::{Snapshot, svg};

use super::kit::{NASTY, PROFILES, Program, small};

/// Parses a picture and checks what holds for every picture.
fn read(text: &str) -> Document<'_> {
    let document = Document::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let root = document.root_element();
    assert_eq!(
        (root.tag_name().name(), root.tag_name().namespace()),
        ("svg", Some("http://www.w3.org/2000/svg"))
    );
    let (width, height) = (number(root, "width"), number(root, "height"));
    assert_eq!(root.attribute("viewBox").unwrap(), format!("0 0 {width} {height}"));
    for node in root.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        assert!(["svg", "title", "style", "rect", "path", "text"].contains(&name), "{name}");
        if name == "rect" {
            let (x, y) = (number(node, "x"), number(node, "y"));
            assert!(x >= 0.0 && x + number(node, "width") <= width + 0.1, "{text}");
            assert!(y >= 0.0 && y + number(node, "height") <= height + 0.1);
        }
        if name == "text" {
            let (x, y) = (number(node, "x"), number(node, "y"));
            assert!((0.0..=width).contains(&x) && (0.0..=height).contains(&y));
        }
    }
    for outside in ["href", "url(", "@import", "@font-face", "<script", "<!"] {
        // Names may contain this, but only escaped.
        let found = text.match_indices(outside).any(|(at, _)| !text[..at].ends_with("&lt;"));
        assert!(!found, "{outside}");
    }
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "control characters");
    assert!(
        !text.contains(['\u{202e}', '\u{202d}', '\u{2067}', '\u{fffe}', '\u{ffff}']),
        "turns what follows"
    );
    document
}

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    let text = node.attribute(name).unwrap_or_else(|| panic!("{node:?} has no {name}"));
    text.parse().unwrap()
}

/// Returns rectangles of a class, or of classes that begin with it.
fn rects<'a>(document: &'a Document<'_>, class: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    let is_of = move |node: &Node<'_, '_>| {
        node.tag_name().name() == "rect"
            && node.attribute("class").unwrap_or("").split(' ').next() == Some(class)
    };
    document.descendants().filter(is_of)
}

fn titles(document: &Document<'_>) -> Vec<String> {
    let titled = document.descendants().filter(|node| node.tag_name().name() == "rect");
    titled
        .filter_map(|rect| rect.first_element_child())
        .map(|title| title.text().unwrap().to_owned())
        .collect()
}

fn words(document: &Document<'_>) -> String {
    let texts = document.descendants().filter(|node| node.tag_name().name() == "text");
    texts.filter_map(|node| node.text()).collect::<Vec<_>>().join("\n")
}

fn of(map: &Value) -> Snapshot {
    Snapshot::from_json(&map.to_string()).unwrap()
}

#[test]
fn pictures_are_well_formed_whatever_is_in_them() {
    for profile in PROFILES {
        let program = Program::busy(profile, 400);
        let mut snapshot = program.snapshot();
        for title in NASTY {
            snapshot.title = Some((*title).into());
            let text = svg(&snapshot);
            let document = read(&text);
            let shown = document.root_element().first_element_child().unwrap();
            assert_eq!(shown.tag_name().name(), "title");
        }
        program.finish();
    }
    let snapshot = Snapshot::from_json(include_str!("vma-3.3.json")).unwrap();
    read(&svg(&snapshot));
}

/// Names are shown as far as possible.
#[test]
fn names_come_out_as_they_are() {
    let mut map = small();
    let block = &mut map["vectors"][0]["blocks"][0];
    let chunks = NASTY.iter().zip(0_u64..).map(|(name, at)| {
        json!({ "offset": at * 100, "size": 100, "allocation": { "kind": "BUFFER", "usage": 0, "name": name } })
    });
    *block = json!({ "id": 0, "size": 1000, "map_count": 0, "chunks": chunks.collect::<Vec<_>>() });
    let text = svg(&of(&map));
    let titles = titles(&read(&text));
    for name in [NASTY[1], NASTY[2], NASTY[3], NASTY[6], NASTY[9]] {
        assert!(titles.iter().any(|title| title.starts_with(&format!("\u{2068}{name}\u{2069}\n"))), "{name}");
    }
    assert!(titles.iter().any(|title| title.contains("line break")), "on one line");
    assert!(titles.iter().any(|title| title.contains("\u{5e9}\u{5dc}\u{5d5}\u{5dd}")), "letters stay");
}

#[test]
fn blocks_and_chunks_are_to_scale() {
    let mut map = small();
    map["vectors"][0]["dedicated"] = json!([]);
    map["vectors"][0]["blocks"] = json!([
        { "id": 0, "size": 1000, "map_count": 0, "chunks": [
            { "offset": 0, "size": 250, "allocation": { "kind": "BUFFER", "usage": 0, "name": "a" } },
            { "offset": 250, "size": 250, "allocation": null },
            { "offset": 500, "size": 500, "allocation": { "kind": "IMAGE_OPTIMAL", "usage": 0, "name": "b" } } ] },
        { "id": 1, "size": 500, "map_count": 0, "chunks": [{ "offset": 0, "size": 500, "allocation": null }] },
    ]);
    map["vectors"][1]["blocks"] = json!([]);
    let text = svg(&of(&map));
    let document = read(&text);
    let all = 1200.0 - 64.0;
    let blocks: Vec<_> = rects(&document, "k").filter(|rect| number(*rect, "height") == 30.0).collect();
    let at: Vec<_> = blocks.iter().map(|rect| (number(*rect, "x"), number(*rect, "width"))).collect();
    assert_eq!(at, [(32.0, all), (32.0, all / 2.0)]);
    let inside = |class: &str| -> Vec<(f64, f64)> {
        let chunks: Vec<_> = rects(&document, class).filter(|rect| number(*rect, "height") == 30.0).collect();
        chunks.iter().map(|rect| (number(*rect, "x"), number(*rect, "width"))).collect()
    };
    assert_eq!(inside("b"), [(32.0, all / 4.0 - 0.6)]);
    assert_eq!(inside("i"), [(32.0 + all / 2.0, all / 2.0 - 0.6)]);
    assert_eq!(titles(&document).len(), 2);
}

#[test]
fn heaps_show_what_is_in_use_and_the_budget() {
    let mut map = small();
    // Of 1000 bytes 164 are in blocks, 116 of them in use. Others use 236.
    map["heaps"][0]["usage"] = json!(400);
    let text = svg(&of(&map));
    let document = read(&text);
    let width = (1200.0 - 64.0 - 32.0) / 2.0;
    let near = |a: f64, b: f64| (a - b).abs() < 0.02;
    for (class, share) in [("g", 0.116), ("r", 0.164), ("o", 0.4)] {
        let bar = rects(&document, class).find(|rect| number(*rect, "height") == 16.0).unwrap();
        assert!(near(number(bar, "width"), width * share), "{class}");
    }
    let marks = document.descendants().filter(|node| node.attribute("class") == Some("x"));
    let first = marks.map(|node| node.attribute("d").unwrap()).next().unwrap();
    assert!(first.starts_with(&format!("M{} ", 32.0 + width * 0.8)), "{first}");
    let words = words(&document);
    assert!(words.contains("116 B in use, 164 B in blocks, 236 B others'"), "{words}");
    assert!(words.contains("budget 800 B of 1000 B"), "{words}");
}

#[test]
fn every_allocation_is_there_while_there_is_room() {
    let program = Program::busy("lavapipe", 25);
    let snapshot = program.snapshot();
    let text = svg(&snapshot);
    let document = read(&text);
    let titled = titles(&document).len();
    let large = snapshot.allocations().filter(|found| {
        let all = found.vector.blocks.iter().map(|block| block.size);
        let largest = all.chain(found.vector.dedicated.iter().map(|it| it.size)).max().unwrap();
        found.size * 1136 >= 2 * largest || found.block.is_none()
    });
    assert!(titled >= large.count() && titled > 5, "{titled}");
    program.finish();
}

/// A block of `count` chunks of `size` bytes, every second one in use.
fn comb(count: u64, size: u64) -> Value {
    let chunks: Vec<Value> = (0..count)
        .map(|at| {
            let entry = json!({ "kind": "BUFFER", "usage": 0, "name": format!("a name that is not short {at}") });
            json!({ "offset": at * size, "size": size, "allocation": if at % 2 == 0 { entry } else { Value::Null } })
        })
        .collect();
    json!({ "id": 0, "size": count * size, "map_count": 0, "chunks": chunks })
}

#[test]
fn what_is_too_small_to_see_is_drawn_together() {
    let mut map = small();
    map["vectors"][0]["blocks"] = json!([comb(20_000, 16)]);
    map["vectors"][0]["dedicated"] = json!([]);
    let text = svg(&of(&map));
    let document = read(&text);
    // Half of each cell is in use, which is the second of four shades.
    let shades: Vec<_> =
        document.descendants().filter(|node| node.attribute("class") == Some("b q2")).collect();
    assert_eq!(shades.len(), 1);
    let parts = shades[0].attribute("d").unwrap().matches('M').count();
    assert!((400..=568).contains(&parts), "{parts}");
    assert!(words(&document).contains("many small ones"));
    assert!(text.len() < 40_000, "{}", text.len());
}

#[test]
fn a_file_does_not_get_long() {
    // 10,000 chunks, each wide enough for a title and a name.
    let mut map = small();
    let blocks: Vec<Value> = (0..100)
        .map(|id| {
            let mut block = comb(100, 1 << 16);
            block["id"] = json!(id);
            block
        })
        .collect();
    map["vectors"][0]["blocks"] = json!(blocks);
    let text = svg(&of(&map));
    read(&text);
    assert!(text.len() < 1 << 20, "{}", text.len());
    // More blocks than rows, more pools than space, and even more dedicated allocations.
    let mut map = small();
    let mut vectors = vec![map["vectors"][0].clone()];
    let one =
        json!({ "size": 4096, "map_count": 0, "allocation": { "kind": "BUFFER", "usage": 0, "name": "d" } });
    vectors[0]["dedicated"] = json!(vec![one; 12_000]);
    let blocks: Vec<Value> = (0..5_000)
        .map(|id| {
            let mut block = comb(4, 100);
            block["id"] = json!(id);
            block
        })
        .collect();
    vectors[0]["blocks"] = json!(blocks);
    for pool in 0..100 {
        let mut vector = map["vectors"][1].clone();
        vector["pool"] = json!(pool);
        vector["blocks"] = json!([comb(500, 100)]);
        vectors.push(vector);
    }
    map["vectors"] = json!(vectors);
    let snapshot = of(&map);
    let text = svg(&snapshot);
    let document = read(&text);
    assert!(text.len() < 2 << 20, "{}", text.len());
    let words = words(&document);
    // The picture counts what it omits.
    let blocks = rects(&document, "k").filter(|rect| number(*rect, "height") == 30.0).count();
    let left_out = words.lines().find(|line| line.contains("more blocks")).unwrap();
    let number: String = left_out.split(' ').nth(1).unwrap().replace(',', "");
    assert!(number.parse::<u64>().unwrap() > 10_000, "{left_out}");
    assert!(blocks > 100);
    assert!(words.lines().any(|line| line.contains("more memory types or pools")), "{words}");
}

#[test]
fn many_dedicated_allocations_do_not_make_blocks_small() {
    let mut map = small();
    let one =
        json!({ "size": 1, "map_count": 0, "allocation": { "kind": "BUFFER", "usage": 0, "name": "d" } });
    map["vectors"][0]["dedicated"] = json!(vec![one; 5_000]);
    map["vectors"][0]["blocks"] = json!([comb(4, 100)]);
    let text = svg(&of(&map));
    let document = read(&text);
    let block = rects(&document, "k").find(|rect| number(*rect, "height") == 30.0).unwrap();
    assert_eq!(number(block, "width"), 1200.0 - 64.0);
}

#[test]
fn nothing_is_a_picture_too() {
    let program = Program::on("lavapipe");
    let text = svg(&program.snapshot());
    assert!(words(&read(&text)).contains("No memory is allocated."));
    let nothing = Snapshot::default();
    read(&svg(&nothing));
    program.finish();
}

#[test]
fn the_same_snapshot_makes_the_same_picture() {
    let program = Program::busy("nvidia-gtx-1060", 200);
    assert_eq!(svg(&program.snapshot()), svg(&program.snapshot()));
    program.finish();
}

/// Extreme sizes are drawn.
#[test]
fn absurd_sizes_are_drawn_as_well() {
    let mut map = small();
    let entry = json!({ "kind": "IMAGE_LINEAR", "usage": 0, "name": "huge" });
    map["heaps"][0] = json!({ "size": 0, "flags": [], "budget": u64::MAX, "usage": u64::MAX });
    map["vectors"][0]["blocks"] = json!([
        { "id": 0, "size": u64::MAX - 1000, "map_count": 0, "chunks": [
            { "offset": 0, "size": u64::MAX - 2000, "allocation": entry }] },
        { "id": 1, "size": 0, "map_count": 0, "chunks": [{ "offset": 0, "size": 0, "allocation": entry }] },
    ]);
    map["vectors"][0]["dedicated"] = json!([{ "size": 0, "allocation": entry }]);
    let text = svg(&of(&map));
    let document = read(&text);
    assert!(words(&document).contains("16 EiB"), "{}", words(&document));
    assert!(!text.contains("NaN") && !text.contains("inf"));
}
