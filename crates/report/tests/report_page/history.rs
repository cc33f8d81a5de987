//! The page of a whole recording.

use std::collections::BTreeSet;
use std::path::Path;

use ash::vk;
use serde_json::json;
use sublet::trace::{
    Allocate, AllocationNumber, Event, GrantedMemory, Header, Needs, Record, Replay, Trace, Wanted,
};
use sublet::{Allocator, ResourceKind, sim};
use sublet_report::{Findings, History, Snapshot};

use crate::browser::Browser;
use crate::browser_or_return;
use crate::data::grouped;
use crate::watched::Watched;

fn recording(name: &str) -> Trace {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
    Trace::read(&std::fs::read(folder.join(format!("{name}.trace"))).unwrap()).unwrap()
}

/// Passes a new allocator like the recorded one to a closure.
fn with_allocator<R>(header: &Header, task: impl FnOnce(&Allocator) -> R) -> R {
    let gpu: sim::Gpu = header.simulated().build();
    let allocator = unsafe { Allocator::new(&header.create_info(&gpu)) }.unwrap();
    task(&allocator)
}

fn open(browser: &mut Browser, name: &str, trace: &Trace) {
    let mut history = with_allocator(&trace.header, |allocator| History::replayed(trace, allocator));
    history.title = Some(name.into());
    browser.open(name, &history.to_html());
}

/// Returns the snapshot after a number of calls, and the numbers of the live allocations.
fn after(trace: &Trace, calls: usize) -> (Snapshot, BTreeSet<u32>) {
    with_allocator(&trace.header, |allocator| {
        let mut replay = Replay::new(trace, allocator);
        let _ = (0..calls).take_while(|_| replay.step().is_some()).count();
        let numbers = trace.records[..calls].iter().filter_map(|record| record.event.allocation());
        let live = numbers.filter(|&number| replay.allocation(number).is_some());
        let live = live.map(|number| number.0).collect();
        (Snapshot::of(allocator), live)
    })
}

/// Returns the number of calls up to the selected moment, or to the earlier one.
fn calls(browser: &mut Browser, which: &str) -> usize {
    let expression = format!("page.history.call[page.timeline.selection.{which}]");
    usize::try_from(browser.eval(&expression).as_u64().unwrap()).unwrap()
}

/// Focuses the graph and presses a key, maybe with shift.
fn press(browser: &mut Browser, key: &str, shift: bool) {
    browser.eval("document.getElementById('graph').focus()");
    let modifiers = if shift { 8 } else { 0 };
    for kind in ["keyDown", "keyUp"] {
        browser.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "modifiers": modifiers }));
    }
    settle(browser);
}

/// Waits until the map shows the selection.
fn settle(browser: &mut Browser) {
    browser.wait_for("page.timer === null");
}

fn assert_shows(browser: &mut Browser, trace: &Trace, calls: usize) {
    let (snapshot, _) = after(trace, calls);
    let sums = snapshot.statistics().total.statistics;
    for (figure, bytes) in [("reserved", sums.block_bytes), ("used", sums.allocation_bytes)] {
        let shown = browser.text(&format!("#figure-{figure} .detail"));
        assert_eq!(shown, format!("{} bytes", grouped(bytes)), "{figure} after {calls} calls");
    }
    assert_eq!(browser.text("#figure-allocations .value"), grouped(sums.allocation_count), "{calls}");
    let scatter = 100.0 * snapshot.figures().total.scatter();
    if scatter > 1.0 && scatter < 99.0 {
        assert_eq!(browser.text("#figure-scatter .value"), format!("{scatter:.1} %"), "{calls}");
    }
}

#[test]
fn a_recording_is_shown_at_its_peak_and_at_moments_that_keys_select() {
    let mut browser = browser_or_return!("a_recording_is_shown_at_its_peak_and_at_moments_that_keys_select");
    let trace = recording("level");
    open(&mut browser, "history", &trace);
    let peak = with_allocator(&trace.header, |allocator| Replay::new(&trace, allocator).finish().memory);
    let shown = browser.text("#figure-reserved .detail");
    assert_eq!(shown, format!("{} bytes", grouped(peak.peak_reserved_bytes)));
    let peak_calls = calls(&mut browser, "now");
    assert_shows(&mut browser, &trace, peak_calls);
    assert!(
        browser
            .text("#moment")
            .ends_with(&format!(" of {}", grouped(trace.records.len().try_into().unwrap())))
    );
    for key in ["ArrowLeft", "ArrowLeft", "Home", "ArrowRight", "End", "ArrowLeft", "PageUp"] {
        press(&mut browser, key, false);
        let calls = calls(&mut browser, "now");
        assert_shows(&mut browser, &trace, calls);
    }
    browser.click("#select-peak");
    settle(&mut browser);
    assert_eq!(calls(&mut browser, "now"), peak_calls);
    browser.picture("history");
    browser.assert_silent();
}

#[test]
fn two_moments_are_compared_by_the_numbers_of_allocations() {
    let mut browser = browser_or_return!("two_moments_are_compared_by_the_numbers_of_allocations");
    let trace = recording("defragment");
    open(&mut browser, "history-compared", &trace);
    assert!(!browser.is_visible("#comparison"));
    // From a third of the graph to its right part.
    let (x, y) = browser.middle("#graph .lane canvas");
    let width = browser.eval("document.getElementById('graph').clientWidth").as_f64().unwrap();
    browser.drag((x - width / 6.0, y), (x + width / 2.5, y));
    settle(&mut browser);
    let (before, now) = (calls(&mut browser, "before"), calls(&mut browser, "now"));
    assert!(before < now, "{before} {now}");
    let ((_, was), (_, is)) = (after(&trace, before), after(&trace, now));
    let rows = |table: &str| format!("document.querySelector('#{table}').dataset.rows");
    assert_eq!(browser.eval(&rows("added")), is.difference(&was).count().to_string());
    assert_eq!(browser.eval(&rows("gone")), was.difference(&is).count().to_string());
    assert!(is.intersection(&was).count() > 0 && was.difference(&is).count() > 0);
    let moved = browser.eval("Number(document.querySelector('#moved').dataset.rows)").as_u64().unwrap();
    assert!(moved > 0);
    assert!(!browser.text("#comparison").contains("a guess"));
    browser.search("is:moved");
    assert_eq!(browser.text("#found b"), format!("{moved} matches"));
    browser.picture("history-compared");
    browser.click("#select-one");
    settle(&mut browser);
    assert!(!browser.is_visible("#comparison") && !browser.is_visible("#snapshot-switch"));
    press(&mut browser, "ArrowLeft", true);
    assert!(browser.is_visible("#comparison"));
    press(&mut browser, "Escape", false);
    assert!(!browser.is_visible("#comparison"));
    browser.assert_silent();
}

#[test]
fn a_recording_fits_narrow_windows_in_light_and_dark() {
    let mut browser = browser_or_return!("a_recording_fits_narrow_windows_in_light_and_dark");
    let trace = recording("tour");
    for (width, scheme) in [(400, "light"), (400, "dark"), (1280, "dark")] {
        browser.resize(width, 1000);
        browser.prefer(scheme);
        open(&mut browser, "history-narrow", &trace);
        assert_eq!(browser.eval("document.documentElement.scrollWidth"), width);
        let graph = "[...document.querySelectorAll('#graph canvas')].every((canvas) => \
            Math.abs(canvas.getBoundingClientRect().width - document.getElementById('graph').clientWidth) < 2)";
        assert_eq!(browser.eval(graph), true, "{width}");
        browser.picture(&format!("history-{width}-{scheme}"));
    }
    press(&mut browser, "End", false);
    assert!(browser.text("#moment").contains("frame"), "{}", browser.text("#moment"));
    browser.assert_silent();
}

/// Memory that the program allocated itself, with images, frames, a budget and resources that overlap.
#[test]
fn the_memory_of_a_foreign_program_is_shown() {
    let mut browser = browser_or_return!("the_memory_of_a_foreign_program_is_shown");
    let mut game = Watched::on("nvidia-rtx-5070-ti");
    let block = game.allocate(1, 8 << 20);
    let mesh = game.buffer(2 << 20, vk::BufferUsageFlags::VERTEX_BUFFER);
    game.bind(mesh, block, 0);
    game.event(Event::Presented);
    let target = game.image(1 << 20, vk::ImageUsageFlags::COLOR_ATTACHMENT);
    game.bind(target, block, 4 << 20);
    game.name(target, "scene colour");
    let alias = game.image(3 << 19, vk::ImageUsageFlags::SAMPLED);
    game.bind(alias, block, 9 << 19);
    game.event(Event::Budget { heap: 0, budget: 16 << 20, usage: 8 << 20 });
    game.event(Event::Presented);
    game.destroy(mesh);
    let mut history = History::of_foreign(&game.trace.header, &game.trace.records);
    history.title = Some("a game".into());
    browser.open("history-foreign", &history.to_html());
    // The peak has all of them. The image that overlaps begins where the other one ends.
    assert_eq!(browser.text("#figure-allocations .value"), "3");
    assert_eq!(
        browser.text("#figure-used .detail"),
        format!("{} bytes", grouped((2 << 20) + (1 << 20) + (1 << 20)))
    );
    assert!(browser.text("#moment").starts_with("At "), "{}", browser.text("#moment"));
    assert_eq!(browser.texts("#legend button"), ["Vertex, index", "Attachment", "Sampled", "Free"]);
    browser.search("\"scene colour\"");
    browser.click("#matches button.pick");
    let facts = browser.text("#inspector dl");
    for fact in ["1920 × 1080, R8G8B8A8_UNORM", &format!("resource {}", target.0), "Attachment"] {
        assert!(facts.contains(fact), "{fact}: {facts}");
    }
    assert!(browser.text("#graph .lane").contains("budget 16 MiB"));
    assert!(browser.text("#timeline-note").contains("a tick is a frame"));
    assert!(!browser.is_visible("#findings"), "it was not judged");
    press(&mut browser, "End", false);
    assert!(browser.text("#moment").contains("frame 1"), "{}", browser.text("#moment"));
    assert_eq!(browser.text("#figure-allocations .value"), "2");
    press(&mut browser, "Home", true);
    assert_eq!(browser.eval("document.querySelector('#added').dataset.rows"), "2");
    browser.picture("history-foreign");
    browser.assert_silent();
}

/// A budget without a line in the graph has no swatch of one. Programs without a window have no frames.
#[test]
fn the_legend_of_the_graph_names_only_what_is_there() {
    let mut browser = browser_or_return!("the_legend_of_the_graph_names_only_what_is_there");
    let mut game = Watched::on("nvidia-rtx-5070-ti");
    let block = game.allocate(1, 8 << 20);
    game.event(Event::Budget { heap: 0, budget: 8 << 30, usage: 8 << 20 });
    for _ in 0..3 {
        let mesh = game.buffer(2 << 20, vk::BufferUsageFlags::VERTEX_BUFFER);
        game.bind(mesh, block, 0);
        game.event(Event::Submitted { command_buffers: 1 });
        game.destroy(mesh);
    }
    let mut history = History::of_foreign(&game.trace.header, &game.trace.records);
    history.add_findings(&Findings::default());
    browser.open("history-legend", &history.to_html());
    assert!(browser.text("#graph .lane-title").ends_with("budget 8 GiB (above the graph)"));
    assert!(!browser.is_visible("#graph .term.limit"));
    assert!(browser.text("#timeline-note").contains("a tick is a submission"));
    browser.click("#select-end");
    assert!(browser.text("#moment").contains(", submission 2, "), "{}", browser.text("#moment"));
    assert!(browser.text("#findings-lead").starts_with("None: "));
    browser.assert_silent();
}

/// Each object of a finding leads to its place on the map, at a moment at which it is there.
#[test]
fn findings_lead_to_the_map() {
    let mut browser = browser_or_return!("findings_lead_to_the_map");
    let mut game = Watched::on("nvidia-rtx-5070-ti");
    let forgotten = game.allocate(1, 8 << 20);
    let block = game.allocate(1, 64 << 20);
    let mesh = game.buffer(1 << 20, vk::BufferUsageFlags::VERTEX_BUFFER);
    game.bind(mesh, block, 0);
    game.name(mesh, "</b>mesh");
    for _ in 0..4 {
        game.event(Event::Presented);
    }
    game.free(forgotten);
    game.event(Event::Presented);
    let mut history = History::of_foreign(&game.trace.header, &game.trace.records);
    history.add_findings(&Findings::of(&game.trace));
    history.title = Some("findings".into());
    browser.resize(400, 1000);
    browser.open("history-findings", &history.to_html());
    assert_eq!(browser.eval("document.documentElement.scrollWidth"), 400);
    let bound = "#findings-list li[data-kind=never-bound]";
    assert!(browser.text(&format!("{bound} p b")).starts_with("8 MiB"));
    browser.click("#select-end");
    settle(&mut browser);
    browser.click(&format!("{bound} .objects button"));
    assert!(browser.text("#inspector .where").starts_with(&format!("block {}", forgotten.0)));
    assert!(browser.text("#inspector .title").starts_with("free"));
    let empty = "#findings-list li[data-kind=nearly-empty]";
    assert!(browser.text(&format!("{empty} .objects")).contains(&format!("memory {}", block.0)));
    browser.click(&format!("{empty} .objects button"));
    assert!(browser.text("#inspector .where").starts_with(&format!("block {}", block.0)));
    browser.picture("history-findings");
    // Blocks of Sublet have their pool or memory type, and a number in it.
    let trace = recording("tour");
    let mut history = with_allocator(&trace.header, |allocator| History::replayed(&trace, allocator));
    history.add_findings(&Findings::of(&trace));
    browser.open("history-own-findings", &history.to_html());
    let label = browser.text(&format!("{empty} .objects button bdi"));
    let (pool, block) = label.rsplit_once(", ").unwrap();
    browser.click(&format!("{empty} .objects button"));
    let place = browser.text("#inspector .where");
    assert!(pool.starts_with("Pool ") && place.starts_with(block), "{label}: {place}");
    browser.assert_silent();
}

/// Names of a recording come from other programs.
#[test]
fn names_of_a_recording_are_text() {
    let mut browser = browser_or_return!("names_of_a_recording_are_text");
    let name = "</script><img src=x onerror=alert(1)>\u{202e}\n";
    let resource = Needs { size: 4096, kind: ResourceKind::Buffer, usage: 0x80, ..Needs::default() };
    let wanted = Wanted { name: Some(name.into()), ..Wanted::default() };
    let granted = GrantedMemory::default();
    let allocation = AllocationNumber(0);
    let event = Event::Allocate(Box::new(Allocate { allocation, resource, wanted, granted }));
    let header = recording("frames").header;
    let trace = Trace { header, records: vec![Record { event, ..Record::default() }], unknown_events: 0 };
    open(&mut browser, "history-names", &trace);
    let shown = "</script><img src=x onerror=alert(1)>\\u{202e}\\n";
    assert_eq!(browser.text("#largest button.pick"), shown);
    browser.click("#largest button.pick");
    assert_eq!(browser.text("#inspector .title bdi"), shown);
    assert!(browser.text("#inspector dl").contains("Vertex, index"));
    assert_eq!(browser.eval("document.images.length"), 0);
    browser.assert_silent();
}
