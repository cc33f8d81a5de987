//! The page shows the snapshot's figures.

use std::collections::BTreeMap;

use sublet::DetailedStatistics;
use sublet_report::{Fragmentation, Page, Snapshot};

use crate::browser::Browser;
use crate::data::{Program, grouped};
use crate::{browser_or_return, open};

/// Returns the rows of a table, with the exact value behind each cell.
pub(crate) fn values(browser: &mut Browser, table: &str) -> Vec<Vec<String>> {
    let expression = format!(
        "[...document.querySelectorAll('#{table} tbody tr')].map((row) => [...row.cells].map((cell) => cell.dataset.value))"
    );
    serde_json::from_value(browser.eval(&expression)).unwrap()
}

/// Presses "Show more" until all rows are shown.
pub(crate) fn show_all(browser: &mut Browser, table: &str) {
    let more = format!("#{table} button.more");
    for _ in 0..20 {
        if !browser.is_visible(&more) {
            return;
        }
        browser.click(&more);
    }
    panic!("{table} never ends");
}

fn free(statistics: &DetailedStatistics) -> u64 {
    statistics.statistics.block_bytes - statistics.statistics.allocation_bytes
}

#[test]
fn the_sums_are_those_of_the_snapshot() {
    let mut browser = browser_or_return!("the_sums_are_those_of_the_snapshot");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "sums", &snapshot);
    let all = snapshot.statistics().total;
    let sums = all.statistics;
    assert!(sums.allocation_count > 80 && sums.block_count > 5, "{sums:?}");
    for (figure, bytes) in [
        ("reserved", sums.block_bytes),
        ("used", sums.allocation_bytes),
        ("free", free(&all)),
        ("largest-free", all.unused_range_size_max),
    ] {
        assert_eq!(
            browser.text(&format!("#figure-{figure} .detail")),
            format!("{} bytes", grouped(bytes)),
            "{figure}"
        );
    }
    assert_eq!(browser.text("#figure-allocations .value"), sums.allocation_count.to_string());
    assert_eq!(browser.text("#figure-blocks .value"), sums.block_count.to_string());
    let ranges = format!("{} free ranges", all.unused_range_count);
    assert_eq!(browser.text("#figure-scatter .detail"), ranges);
    let figures = snapshot.figures().total;
    let scatter = 100.0 * figures.scatter();
    assert!(scatter > 1.0 && scatter < 99.0);
    assert_eq!(browser.text("#figure-scatter .value"), format!("{scatter:.1} %"));
    let removable = format!("could free, in {} block", figures.removable_blocks);
    assert!(browser.text("#figure-removable .detail").starts_with(&removable), "{removable}");
    assert_eq!(browser.text("h1"), "sums");
    let device = &snapshot.device;
    assert_eq!(device.kind.as_deref(), Some("DISCRETE_GPU"));
    for fact in [device.name.as_deref().unwrap(), "discrete GPU", device.api_version.as_deref().unwrap()] {
        assert!(browser.text("#device").contains(fact), "{fact}");
    }
    browser.picture("sums");
    browser.assert_silent();
}

#[test]
fn a_heap_is_shown_with_size_budget_usage_and_own_blocks() {
    let mut browser = browser_or_return!("a_heap_is_shown_with_size_budget_usage_and_own_blocks");
    let mut snapshot = Program::in_use().snapshot();
    // Small enough that every bar has a measurable length and no two figures are equal.
    for (heap, size) in snapshot.heaps.iter_mut().zip([64 << 20, 16 << 20, 8 << 20]) {
        (heap.size, heap.budget, heap.usage) = (size, size / 8 * 7, size / 4 * 3);
    }
    open(&mut browser, "heaps", &snapshot);
    let statistics = snapshot.statistics();
    assert_eq!(browser.texts(".heap h3").len(), snapshot.heaps.len());
    for (at, heap) in snapshot.heaps.iter().enumerate() {
        let own = statistics.memory_heaps[at].statistics;
        let expected = [heap.size, heap.budget, heap.usage, own.block_bytes, own.allocation_bytes];
        let shown = browser.eval(&format!(
            "[...document.querySelectorAll('#heap-{at} .term')].map((term) => term.dataset.value)"
        ));
        let shown: Vec<String> = serde_json::from_value(shown).unwrap();
        assert_eq!(shown, expected.map(|bytes| bytes.to_string()), "heap {at}");
        let flags = browser.texts(&format!("#heap-{at} .flag"));
        let flags: Vec<&str> = flags.iter().map(String::as_str).filter(|flag| *flag != "no flags").collect();
        assert_eq!(flags, heap.flags.iter().map(|flag| &**flag).collect::<Vec<_>>());
        // The lengths of the bars match the figures.
        let parts = browser.eval(&format!(
            "['usage', 'reserved', 'used'].map((part) => document.querySelector('#heap-{at} .gauge .' + part)\
             .getBoundingClientRect().width / document.querySelector('#heap-{at} .gauge').getBoundingClientRect().width)"
        ));
        let parts: Vec<f64> = serde_json::from_value(parts).unwrap();
        for (part, bytes) in parts.iter().zip([heap.usage, own.block_bytes, own.allocation_bytes]) {
            let share = ratio(bytes, heap.size);
            assert!((part - share).abs() < 0.005, "{part} is drawn for {share} of heap {at}");
        }
        let mark = browser.eval(&format!(
            "parseFloat(document.querySelector('#heap-{at} .gauge .budget').style.left) / 100"
        ));
        let share = ratio(heap.budget, heap.size);
        assert!(
            (mark.as_f64().unwrap() - share).abs() < 0.005,
            "the budget of heap {at} is marked at {mark}"
        );
    }
    browser.assert_silent();
}

/// Sizes here are far below 2^53.
#[allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a quotient for a comparison with a tolerance"
)]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[test]
fn every_pool_and_memory_type_has_a_row_with_its_sums() {
    let mut browser = browser_or_return!("every_pool_and_memory_type_has_a_row_with_its_sums");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "vectors", &snapshot);
    let rows = values(&mut browser, "vectors-table");
    let mut expected = BTreeMap::new();
    for vector in
        snapshot.vectors.iter().filter(|vector| !vector.blocks.is_empty() || !vector.dedicated.is_empty())
    {
        let all = vector.statistics();
        let place = match (&vector.name, vector.pool) {
            (Some(name), Some(_)) => format!("Pool {name} (type {})", vector.memory_type),
            (None, Some(pool)) => format!("Pool {pool} (type {})", vector.memory_type),
            _ => format!("Memory type {}", vector.memory_type),
        };
        let mut row = vec![vector.blocks.len().to_string(), vector.dedicated.len().to_string()];
        row.push(all.statistics.allocation_count.to_string());
        for bytes in [all.statistics.block_bytes, all.statistics.allocation_bytes, free(&all)] {
            row.push(bytes.to_string());
        }
        row.push(all.unused_range_count.to_string());
        row.push(if all.unused_range_count == 0 { 0 } else { all.unused_range_size_max }.to_string());
        let figures = Fragmentation::of(vector);
        expected.insert(place, (row, figures));
    }
    assert_eq!(rows.len(), expected.len());
    assert!(rows.len() >= 3, "{rows:?}");
    for row in rows {
        let (sums, figures) = &expected[&row[0]];
        assert_eq!(&row[1..9], &sums[..], "{}", row[0]);
        let scatter: f64 = row[9].parse().unwrap();
        assert!((scatter - figures.scatter()).abs() < 1e-9, "{}: {scatter}", row[0]);
        assert_eq!(row[10..], [figures.empty_bytes.to_string(), figures.removable_bytes.to_string()]);
    }
    // Each vector is drawn under its name, flags and algorithm.
    assert_eq!(browser.texts(".vector h3").len(), expected.len());
    assert!(browser.texts(".vector h3").contains(&"Pool streaming".to_owned()));
    assert!(browser.texts(".vector header .aside").iter().any(|facts| facts.contains("Linear")));
    browser.assert_silent();
}

#[test]
fn the_largest_allocations_come_first() {
    let mut browser = browser_or_return!("the_largest_allocations_come_first");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "largest", &snapshot);
    let mut sizes: Vec<u64> = snapshot.allocations().map(|found| found.size).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let size_of = |row: &Vec<String>| row[1].parse::<u64>().unwrap();
    let shown: Vec<u64> = values(&mut browser, "largest").iter().map(size_of).collect();
    assert_eq!(shown[..], sizes[..shown.len()]);
    assert!(shown.len() < sizes.len(), "no need to show all of them at once");
    show_all(&mut browser, "largest");
    let shown: Vec<u64> = values(&mut browser, "largest").iter().map(size_of).collect();
    assert_eq!(shown, sizes);
    // Sorts by another column, and in reverse.
    browser.click("#largest th:first-child button");
    let names: Vec<String> = values(&mut browser, "largest").iter().map(|row| row[0].clone()).collect();
    assert!(names.is_sorted(), "{names:?}");
    browser.click("#largest th:first-child button");
    let names: Vec<String> = values(&mut browser, "largest").iter().map(|row| row[0].clone()).collect();
    assert!(names.iter().rev().is_sorted(), "{names:?}");
    browser.assert_silent();
}

/// Returns bytes and allocations by a word, with "" for allocations without one.
fn sums_by(snapshot: &Snapshot, word: impl Fn(&sublet_report::Entry) -> Option<&str>) -> Vec<[String; 3]> {
    let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for found in snapshot.allocations() {
        let sum = sums.entry(word(found.entry).unwrap_or_default()).or_default();
        *sum = (sum.0 + found.size, sum.1 + 1);
    }
    sums.iter()
        .map(|(word, (bytes, count))| [(*word).to_owned(), bytes.to_string(), count.to_string()])
        .collect()
}

#[test]
fn sums_by_name_and_by_caller_are_right() {
    let mut browser = browser_or_return!("sums_by_name_and_by_caller_are_right");
    let snapshot = Program::in_use().snapshot();
    open(&mut browser, "names", &snapshot);
    for (table, expected) in [
        ("by-name", sums_by(&snapshot, |entry| entry.name.as_deref())),
        ("by-caller", sums_by(&snapshot, |entry| entry.caller.as_deref())),
    ] {
        show_all(&mut browser, table);
        let mut rows: Vec<[String; 3]> = values(&mut browser, table)
            .into_iter()
            .map(|row| [row[0].clone(), row[1].clone(), row[2].clone()])
            .collect();
        assert!(rows.len() > 1, "{table}: {rows:?}");
        assert!(rows.is_sorted_by_key(|row| std::cmp::Reverse(row[1].parse::<u64>().unwrap())), "{table}");
        rows.sort();
        assert_eq!(rows, expected, "{table}");
    }
    browser.assert_silent();
}

#[test]
fn leaks_have_a_table_if_there_are_any() {
    let mut browser = browser_or_return!("leaks_have_a_table_if_there_are_any");
    let program = Program::in_use();
    let snapshot = program.snapshot();
    open(&mut browser, "no-leaks", &snapshot);
    assert!(!browser.is_visible("#leaks"));
    let leaks = program.leave();
    assert!(leaks.len() > 80);
    browser.open("leaks", &Page::new(&snapshot).leaks(&leaks).to_html());
    show_all(&mut browser, "leaks");
    let mut shown: Vec<(String, String, String)> = values(&mut browser, "leaks")
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone(), row[2].clone()))
        .collect();
    let mut expected: Vec<(String, String, String)> = leaks
        .iter()
        .map(|leak| {
            (
                leak.name.as_deref().unwrap_or_default().to_owned(),
                leak.size.to_string(),
                leak.kind.to_string(),
            )
        })
        .collect();
    shown.sort();
    expected.sort();
    assert_eq!(shown, expected);
    let sum: u64 = leaks.iter().map(|leak| leak.size).sum();
    assert!(browser.text("#leaks .aside").contains(&format!("with {} bytes", grouped(sum))));
    browser.assert_silent();
}

#[test]
fn an_allocator_that_holds_nothing_has_a_page_too() {
    let mut browser = browser_or_return!("an_allocator_that_holds_nothing_has_a_page_too");
    open(&mut browser, "nothing", &Program::new().snapshot());
    assert_eq!(browser.text("#figure-reserved .detail"), "0 bytes");
    assert_eq!(browser.text("#figure-allocations .value"), "0");
    assert!(browser.text("#empty-vectors").contains("memory type 0"));
    open(&mut browser, "not-even-heaps", &Snapshot::default());
    assert_eq!(browser.text("#device"), "device not known");
    browser.assert_silent();
}

#[test]
fn what_vma_has_written_has_a_page_too() {
    let mut browser = browser_or_return!("what_vma_has_written_has_a_page_too");
    let program = Program::in_use();
    let snapshot = Snapshot::from_json(&program.stats_string()).unwrap();
    assert!(snapshot.allocations().all(|found| found.entry.id.is_none()));
    browser.open("of-vma", &Page::new(&snapshot).before(&program.snapshot()).to_html());
    let sums = program.snapshot().statistics().total.statistics;
    assert_eq!(browser.text("#figure-used .detail"), format!("{} bytes", grouped(sums.allocation_bytes)));
    assert_eq!(browser.text("#figure-allocations .value"), sums.allocation_count.to_string());
    browser.search("mesh >1K");
    assert!(browser.text("#found b").ends_with("matches"));
    browser.click("#matches tbody tr:first-child button");
    assert!(browser.text("#inspector .title").contains("mesh"));
    browser.assert_silent();
}

#[test]
fn absurd_figures_of_a_driver_break_nothing() {
    let mut browser = browser_or_return!("absurd_figures_of_a_driver_break_nothing");
    let mut snapshot = Program::in_use().snapshot();
    snapshot.heaps[0].budget = u64::MAX;
    (snapshot.heaps[1].size, snapshot.heaps[1].usage) = (0, u64::MAX);
    let pool = snapshot.vectors.last_mut().unwrap();
    pool.blocks[0].size = 0;
    pool.blocks[0].chunks.clear();
    open(&mut browser, "absurd", &snapshot);
    browser.click("input[name=scale][value=full] + span");
    let outside = browser.eval(
        "[...document.querySelectorAll('.gauge > span')].filter((part) => \
         part.getBoundingClientRect().right > part.parentElement.getBoundingClientRect().right + 2).length",
    );
    assert_eq!(outside, 0, "no bar is longer than the one that it is a part of");
    assert!(!browser.text("main").contains("NaN"));
    // A block without details can be pointed at.
    let place = browser.middle(".vector:last-of-type canvas");
    for y in 0..10 {
        browser.point_at((place.0, place.1 - 54.0 + 12.0 * f64::from(y)));
    }
    browser.assert_silent();
}
