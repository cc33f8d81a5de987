//! Pages with very many allocations.

use std::collections::VecDeque;

use ash::vk;
use serde_json::json;
use sublet_report::{History, Snapshot, Vector};

use crate::browser::Browser;
use crate::data::Program;
use crate::watched::Watched;
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
fn ten_thousand_allocations_are_all_drawn() {
    let mut browser = browser_or_return!("ten_thousand_allocations_are_all_drawn");
    let mut program = many(11_500);
    for at in (0..10_500).rev().step_by(7) {
        program.free_buffer(at);
    }
    let snapshot = program.snapshot();
    let count = snapshot.statistics().total.statistics.allocation_count;
    assert_eq!(count, 10_000);
    open(&mut browser, "ten-thousand", &snapshot);
    println!("10,000 allocations: {} ms", drawn_in(&mut browser));
    assert_eq!(browser.text("#figure-allocations .value"), "10,000");
    // Everything is painted and can be searched.
    browser.wait_for("[...document.querySelectorAll('.vector canvas')].every((c) => c.width > 300)");
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

/// A recording of 200,000 buffers with names, half of them live at the end, and of 4,000 frames.
fn long_recording() -> History {
    let mut game = Watched::on("nvidia-rtx-5070-ti");
    let blocks: Vec<_> = (0..400).map(|_| game.allocate(0, 4 << 20)).collect();
    let mut live = VecDeque::new();
    for number in 0..200_000_u64 {
        if number >= 100_000 {
            game.destroy(live.pop_front().unwrap());
        }
        let buffer = game.buffer(1000 + number * 7919 % 7000, vk::BufferUsageFlags::VERTEX_BUFFER);
        let place = number % 100_000;
        game.bind(buffer, blocks[usize::try_from(place / 250).unwrap()], place % 250 * 16_384);
        game.name(buffer, &format!("thing {}", number % 5000));
        live.push_back(buffer);
        if number % 50 == 0 {
            game.event(sublet::trace::Event::Presented);
        }
    }
    History::of_foreign(&game.trace.header, &game.trace.records)
}

/// Returns the processor time of the page so far, in milliseconds.
fn processor_time(browser: &mut Browser) -> f64 {
    let found = browser.call("Performance.getMetrics", json!({}));
    let metrics = found["metrics"].as_array().unwrap();
    let task = metrics.iter().find(|metric| metric["name"] == "TaskDuration").unwrap();
    task["value"].as_f64().unwrap() * 1e3
}

/// Times depend on the machine, and are only printed.
#[test]
fn the_page_of_two_hundred_thousand_placements_is_bounded() {
    let mut browser = browser_or_return!("the_page_of_two_hundred_thousand_placements_is_bounded");
    browser.call("Performance.enable", json!({ "timeDomain": "threadTicks" }));
    let history = long_recording();
    assert_eq!(history.allocation_count(), 200_000);
    let html = history.to_html();
    println!("{} bytes", html.len());
    assert!(html.len() < 15_000_000, "{} bytes", html.len());
    assert!(history.to_json().len() < 2_000_000, "{} bytes", history.to_json().len());
    browser.open("two-hundred-thousand", &html);
    println!("drawn in {} ms, {:.0} of the processor", drawn_in(&mut browser), processor_time(&mut browser));
    assert_eq!(browser.text("#figure-allocations .value"), "100,000");
    for (before, now) in [("null", 0.9), ("null", 0.8), ("0.85", 0.95), ("null", 0.3), ("null", 0.9)] {
        let start = processor_time(&mut browser);
        browser.eval(&format!(
            "(() => {{ const at = (share) => share === null ? null : Math.round(page.history.last * share);
             page.timeline.select(at({before}), at({now})); }})()"
        ));
        browser.wait_for("page.timer === null");
        browser.settle();
        println!("selection of {before} and {now}: {:.0} ms", processor_time(&mut browser) - start);
    }
    // The map paints what is near the view, and the lists order what they show.
    let painted = "[...document.querySelectorAll('.vector canvas')].filter((c) => c.width > 300).length";
    let painted = browser.eval(painted).as_u64().unwrap();
    assert!(painted < 10, "{painted} canvases are in memory");
    let nodes = browser.eval("document.querySelectorAll('*').length").as_u64().unwrap();
    println!("{nodes} elements");
    assert!(nodes < 5_000, "{nodes} elements");
    browser.picture("two-hundred-thousand");
    browser.assert_silent();
}
