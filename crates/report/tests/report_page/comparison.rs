//! Two snapshots on one page.

use std::collections::{BTreeMap, BTreeSet};

use sublet_report::{Comparison, Page, Snapshot};

use crate::browser::Browser;
use crate::browser_or_return;
use crate::data::{Program, grouped};
use crate::figures::{show_all, values};

fn ids(snapshot: &Snapshot) -> BTreeSet<&str> {
    snapshot.allocations().map(|found| found.entry.id.as_deref().unwrap()).collect()
}

/// Returns the sizes of allocations that only one of two snapshots has.
fn only_in(one: &Snapshot, other: &Snapshot) -> Vec<u64> {
    let known = ids(other);
    let new = one.allocations().filter(|found| !known.contains(found.entry.id.as_deref().unwrap()));
    let mut sizes: Vec<u64> = new.map(|found| found.size).collect();
    sizes.sort_unstable();
    sizes
}

fn sizes(browser: &mut Browser, table: &str) -> Vec<u64> {
    show_all(browser, table);
    let mut sizes: Vec<u64> = values(browser, table).iter().map(|row| row[1].parse().unwrap()).collect();
    sizes.sort_unstable();
    sizes
}

fn by_name(snapshot: &Snapshot) -> BTreeMap<String, (u64, i64)> {
    let mut sums = BTreeMap::new();
    for found in snapshot.allocations() {
        let sum: &mut (u64, i64) =
            sums.entry(found.entry.name.as_deref().unwrap_or_default().to_owned()).or_default();
        *sum = (sum.0 + found.size, sum.1 + 1);
    }
    sums
}

#[test]
fn new_gone_and_grown_are_listed() {
    let mut browser = browser_or_return!("new_gone_and_grown_are_listed");
    let mut program = Program::in_use();
    let before = program.snapshot();
    for at in [40, 31, 22, 13, 4] {
        program.free_buffer(at);
    }
    for number in 0..9 {
        program.named(300_000 + 5000 * number, if number < 5 { "castle mesh" } else { "loading screen" });
    }
    let now = program.snapshot();
    browser.open("comparison", &Page::new(&now).before(&before).title("After the menu").to_html());

    assert!(browser.is_visible("#comparison") && browser.is_visible("#compared"));
    let (new, gone) = (only_in(&now, &before), only_in(&before, &now));
    assert_eq!((new.len(), gone.len()), (9, 5));
    assert_eq!(sizes(&mut browser, "added"), new);
    assert_eq!(sizes(&mut browser, "gone"), gone);
    let sum = grouped(new.iter().sum());
    assert!(browser.text("#added .aside").contains(&format!("9 allocations with {sum} bytes")));

    // By name: before, now, change, and change of the count.
    let (was, is) = (by_name(&before), by_name(&now));
    show_all(&mut browser, "changed-names");
    let rows = values(&mut browser, "changed-names");
    let changed: BTreeSet<&String> =
        was.keys().chain(is.keys()).filter(|name| was.get(*name) != is.get(*name)).collect();
    assert_eq!(rows.iter().map(|row| &row[0]).collect::<BTreeSet<_>>(), changed);
    for row in rows {
        let (was, is) = (was.get(&row[0]).copied(), is.get(&row[0]).copied());
        let (was, is) = (was.unwrap_or_default(), is.unwrap_or_default());
        let change = i64::try_from(is.0).unwrap() - i64::try_from(was.0).unwrap();
        let expected = [was.0.to_string(), is.0.to_string(), change.to_string(), (is.1 - was.1).to_string()];
        assert_eq!(row[1..], expected, "{}", row[0]);
    }
    let sum = |snapshot: &Snapshot| grouped(snapshot.statistics().total.statistics.allocation_bytes);
    assert_eq!(browser.text("#figure-used .detail"), format!("{} bytes", sum(&now)));
    let bar = |which: &str| format!("#comparison-bars .change:nth-child(2) .bar.{which}");
    for (which, snapshot) in [("before", &before), ("now", &now)] {
        let title = browser.eval(&format!("document.querySelector('{}').title", bar(which)));
        assert!(title.as_str().unwrap().starts_with(&format!("{which}: {} of ", sum(snapshot))), "{title}");
    }
    browser.picture("comparison");
    browser.assert_silent();
}

#[test]
fn the_map_before_can_be_looked_at() {
    let mut browser = browser_or_return!("the_map_before_can_be_looked_at");
    let mut program = Program::in_use();
    let before = program.snapshot();
    program.free_buffer(3);
    program.named(3 << 20, "castle");
    program.named(3 << 20, "castle");
    let now = program.snapshot();
    browser.open("before-and-now", &Page::new(&now).before(&before).to_html());
    let matches = |browser: &mut Browser, query: &str| {
        browser.search(query);
        browser.text("#found b")
    };
    assert_eq!(matches(&mut browser, "is:new"), "2 matches");
    let drawn = |browser: &mut Browser| {
        let label = browser.eval("document.querySelector('.vector canvas').getAttribute('aria-label')");
        label.as_str().unwrap().to_owned()
    };
    let allocations = |snapshot: &Snapshot| {
        let first = snapshot.vectors.iter().find(|vector| !vector.blocks.is_empty()).unwrap();
        format!(", {} allocations, ", first.statistics().statistics.allocation_count)
    };
    assert_ne!(allocations(&before), allocations(&now));
    assert!(drawn(&mut browser).contains(&allocations(&now)));
    browser.click("input[name=snapshot][value=before] + span");
    assert!(drawn(&mut browser).contains(&allocations(&before)));
    let all = format!("{} matches", before.statistics().total.statistics.allocation_count);
    assert_eq!(matches(&mut browser, "is:used"), all);
    assert_eq!(matches(&mut browser, "is:gone"), "1 match");
    assert!(browser.texts("#legend .key").contains(&"Gone since".to_owned()));
    // A choice from a table is shown in the snapshot that has it.
    browser.click("#added tbody tr:first-child button");
    assert_eq!(browser.eval("document.querySelector('input[name=snapshot]:checked').value"), "now");
    assert!(browser.text("#inspector .title").starts_with("castle"));
    assert!(browser.texts("#legend .key").contains(&"New".to_owned()));
    browser.picture("before-and-now");
    browser.assert_silent();
}

#[test]
fn of_two_runs_allocations_are_recognised_by_their_places() {
    let mut browser = browser_or_return!("of_two_runs_allocations_are_recognised_by_their_places");
    let before = Program::in_use().snapshot();
    let mut program = Program::in_use();
    program.named(3 << 20, "castle");
    let mut now = program.snapshot();
    now.run = Some("another".into());
    browser.open("two-runs", &Page::new(&now).before(&before).to_html());
    assert_eq!(values(&mut browser, "changed-names").len(), 1);
    assert_eq!((sizes(&mut browser, "added"), sizes(&mut browser, "gone")), (vec![3 << 20], Vec::new()));
    assert!(browser.text("#added .aside").contains("a guess"));
    browser.assert_silent();
}

#[test]
fn a_pool_is_the_same_if_number_memory_type_and_name_are() {
    let mut browser = browser_or_return!("a_pool_is_the_same_if_number_memory_type_and_name_are");
    let before = Program::in_use().snapshot();
    let at = before.vectors.iter().position(|vector| vector.pool.is_some()).unwrap();
    let pool = &before.vectors[at];
    let (number, memory_type) = (pool.pool.unwrap(), pool.memory_type);
    let bytes = pool.statistics().statistics.allocation_bytes.to_string();
    let mut another_name = before.clone();
    another_name.vectors[at].name = Some("textures".into());
    let mut another_number = before.clone();
    another_number.vectors[at].pool = Some(number + 7);
    for (case, now, name) in
        [("another-name", another_name, "textures"), ("another-number", another_number, "streaming")]
    {
        let changes = Comparison::new(&before, &now).vectors;
        let gone_or_new = changes.iter().filter(|change| change.was_there != change.is_there).count();
        assert_eq!(gone_or_new, 2, "{case}");
        browser.open(case, &Page::new(&now).before(&before).to_html());
        let was = format!("Pool streaming (type {memory_type})");
        let is = format!("Pool {name} (type {memory_type})");
        let rows: Vec<[String; 3]> = values(&mut browser, "changed-vectors")
            .into_iter()
            .map(|row| [row[0].clone(), row[1].clone(), row[2].clone()])
            .collect();
        let nothing = || "0".to_owned();
        assert_eq!(rows, [[was.clone(), bytes.clone(), nothing()], [is.clone(), nothing(), bytes.clone()]]);
        let mut bars = browser.texts("#comparison-bars .change .label");
        bars.retain(|label| label.starts_with("Pool"));
        assert_eq!(bars, [was, is], "{case}");
    }
    browser.assert_silent();
}
