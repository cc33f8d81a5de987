//! Pages with very many allocations.

use sublet_report::{Snapshot, Vector};

use crate::browser::Browser;
use crate::data::Program;
use crate::{browser_or_return, open};

/// Returns the milliseconds from loading to painting, as the page measured them.
fn drawn_in(browser: &mut Browser) -> f64 {
    let text = browser.eval("document.documentElement.dataset.drawnIn");
    text.as_str().unwrap().parse().unwrap()
}

fn many(count: u64) -> Program {
    let mut program = Program::on("nvidia-rtx-5070-ti", 64 << 20);
    for number in 0..count {
        program.named(256 + (number * 7919) % 60_000, &format!("thing {}", number % 900));
    }
    program
}

#[test]
fn ten_thousand_allocations_are_drawn_in_less_than_two_seconds() {
    let mut browser = browser_or_return!("ten_thousand_allocations_are_drawn_in_less_than_two_seconds");
    let mut program = many(11_500);
    for at in (0..10_500).rev().step_by(7) {
        program.free_buffer(at);
    }
    let snapshot = program.snapshot();
    let count = snapshot.statistics().total.statistics.allocation_count;
    assert_eq!(count, 10_000);
    open(&mut browser, "ten-thousand", &snapshot);
    let time = drawn_in(&mut browser);
    println!("10,000 allocations: {time} ms");
    assert!(time < 2000.0, "{time} ms");
    assert_eq!(browser.text("#figure-allocations .value"), "10,000");
    // Everything is painted and can be searched at once.
    assert_eq!(
        browser.eval("[...document.querySelectorAll('.vector canvas')].every((c) => c.width > 300)"),
        true
    );
    browser.search("\"thing 17\"");
    assert!(browser.text("#found b").ends_with("matches"));
    browser.picture("ten-thousand");
    browser.assert_silent();
}

#[test]
fn a_hundred_thousand_allocations_are_still_shown() {
    let mut browser = browser_or_return!("a_hundred_thousand_allocations_are_still_shown");
    let mut snapshot = many(10_000).snapshot();
    // Ten copies of the vector, as pools.
    let vector: Vector = snapshot.vectors.iter().find(|vector| !vector.blocks.is_empty()).unwrap().clone();
    for pool in 0..9 {
        let mut vector = vector.clone();
        vector.pool = Some(pool);
        let chunks = vector.blocks.iter_mut().flat_map(|block| &mut block.chunks);
        for entry in chunks.filter_map(|chunk| chunk.allocation.as_mut()) {
            entry.id = None;
        }
        snapshot.vectors.push(vector);
    }
    open(&mut browser, "hundred-thousand", &snapshot);
    println!("100,000 allocations: {} ms", drawn_in(&mut browser));
    assert_eq!(browser.text("#figure-allocations .value"), "100,000");
    browser.assert_silent();
}

#[test]
fn thousands_of_blocks_are_painted_when_they_come_near() {
    let mut browser = browser_or_return!("thousands_of_blocks_are_painted_when_they_come_near");
    let mut program = Program::in_use();
    program.named(1 << 20, "last");
    let mut snapshot: Snapshot = program.snapshot();
    let vector = snapshot.vectors.iter_mut().find(|vector| vector.blocks.len() > 1).unwrap();
    let (first, id) = (vector.blocks[0].clone(), vector.blocks.last().unwrap().id);
    for number in 1..=3000 {
        let mut block = first.clone();
        block.id = id + number;
        block
            .chunks
            .iter_mut()
            .filter_map(|chunk| chunk.allocation.as_mut())
            .for_each(|entry| entry.id = None);
        vector.blocks.push(block);
    }
    open(&mut browser, "thousands-of-blocks", &snapshot);
    browser.click("input[name=scale][value=full] + span");
    let painted = "[...document.querySelectorAll('.vector canvas')].filter((c) => c.width > 300).length";
    let all = "document.querySelectorAll('.vector canvas').length";
    let (some, all) = (browser.eval(painted).as_u64().unwrap(), browser.eval(all).as_u64().unwrap());
    assert!(some < all, "{some} of {all} canvases are in memory");
    // The last of them is painted when it scrolls into view.
    browser.eval("window.last = [...document.querySelectorAll('.vector canvas')].filter((c) => c.width <= 300).pop(); last.scrollIntoView()");
    browser.wait_for("last.width > 300");
    browser.assert_silent();
}
