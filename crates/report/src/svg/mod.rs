//! A snapshot as a picture.

mod canvas;
mod heaps;
mod plan;
mod vectors;

use self::canvas::{Canvas, INNER, LEFT, width_of};
use self::plan::DrawingPlan;
use super::figures::{Fragmentation, Group, share};
use super::snapshot::Snapshot;
use super::words::{bytes, clean, count, percent};
use crate::cast::widen;
use sublet::Statistics;

/// Draws the snapshot as an SVG file, for a bug report or a README. It shows heaps with their budgets, then every
/// memory type and pool that is not empty. Blocks are to scale, and chunks are coloured by kind.
///
/// The file needs no font and no other file, is 1,200 units wide, and follows the reader's light or dark colour scheme.
/// Names are shown if they fit. The larger chunks have titles, for viewers that show them. All blocks of a memory type
/// or pool share one scale. Chunks narrower than two units are merged with their neighbours, and drawn paler the less
/// is in use. A file is at most about 2 MB and counts the parts that it omits. The same snapshot gives the same file.
///
/// # Complexity
/// O(n log n) for n chunks.
///
/// ```
/// use sublet_report::{Snapshot, svg};
///
/// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
/// let atlas = allocate(&allocator, "shadow <atlas>", 1 << 24);
/// let picture: String = svg(&Snapshot::of(&allocator));
/// assert!(picture.starts_with("<svg xmlns=") && picture.contains("shadow &lt;atlas&gt;"));
/// ```
#[must_use]
pub fn svg(snapshot: &Snapshot) -> String {
    let mut canvas = Canvas::new();
    let (statistics, figures) = (snapshot.statistics(), snapshot.figures());
    header(&mut canvas, snapshot, &statistics.total.statistics, &figures.total);
    heaps::draw(&mut canvas, &snapshot.heaps, &statistics.memory_heaps);
    let plan = DrawingPlan::new(snapshot);
    legend(&mut canvas, snapshot, &plan);
    vectors::draw(&mut canvas, snapshot, &plan, &figures.vectors);
    names(&mut canvas, snapshot);
    let title = snapshot.title.as_deref().unwrap_or("GPU memory");
    canvas.finish(title)
}

fn header(canvas: &mut Canvas, snapshot: &Snapshot, sums: &Statistics, figures: &Fragmentation) {
    let title = snapshot.title.as_deref().unwrap_or("GPU memory");
    canvas.skip(40.0);
    canvas.text("h", LEFT, clean(title).as_str(), 0.62 * INNER, 22.0);
    let used = format!("{} in use", bytes(sums.allocation_bytes));
    canvas.text_to_right("h", &used);
    canvas.skip(22.0);
    let device = &snapshot.device;
    let kind = device.kind.as_deref().map(|kind| kind.to_lowercase().replace('_', " ").replace("gpu", "GPU"));
    let kind = kind.map(|kind| if kind == "cpu" { "CPU".to_owned() } else { kind });
    let version = device.api_version.as_ref().map(|version| format!("Vulkan {version}"));
    let known = [device.name.as_deref().map(str::to_owned), kind, version];
    let line: Vec<String> = known.into_iter().flatten().map(|text| clean(&text)).collect();
    canvas.text("m", LEFT, &line.join(" \u{b7} "), 0.55 * INNER, 13.0);
    let blocks = snapshot.vectors.iter().map(|vector| vector.blocks.len()).sum::<usize>();
    let dedicated = snapshot.vectors.iter().map(|vector| vector.dedicated.len()).sum::<usize>();
    let line = [
        count(sums.allocation_count, "allocation"),
        format!("{}, {} dedicated", count(widen(blocks), "block"), widen(dedicated)),
        format!(
            "{} of the blocks free, {} of that scattered",
            percent(figures.free_share()),
            percent(figures.scatter())
        ),
    ];
    canvas.text_to_right("m", &line.join(" \u{b7} "));
    canvas.skip(20.0);
}

/// Draws the colour legend.
fn legend(canvas: &mut Canvas, snapshot: &Snapshot, plan: &DrawingPlan<'_>) {
    let mut found: Vec<(&str, &str)> = plan::KINDS
        .iter()
        .filter(|(kind, ..)| snapshot.allocations().any(|found| found.entry.kind == *kind))
        .map(|&(_, class, word)| (class, word))
        .collect();
    if found.is_empty() {
        return;
    }
    found.push(("k", "free"));
    if plan.has_crumbs {
        found.push(("u q2", "many small ones: paler is emptier"));
    }
    canvas.skip(26.0);
    let mut x = LEFT;
    for (class, word) in found {
        canvas.swatch(class, x);
        canvas.text("m", x + 18.0, word, INNER, 13.0);
        x += 18.0 + width_of(word, 13.0) + 22.0;
    }
    canvas.skip(8.0);
}

/// Draws the names with the most bytes.
fn names(canvas: &mut Canvas, snapshot: &Snapshot) {
    const LINES: usize = 8;
    let groups = Group::by_name(snapshot.allocations());
    let named = groups.iter().filter(|group| group.label.is_some()).count();
    if named == 0 {
        return;
    }
    canvas.skip(38.0);
    canvas.text("s", LEFT, "By name", INNER, 15.0);
    canvas.skip(8.0);
    let most = groups.iter().map(|group| group.bytes).max().unwrap_or(0);
    for group in groups.iter().take(LINES) {
        canvas.skip(20.0);
        let label = group.label.as_deref().map(clean);
        let (class, label) = match &label {
            Some(label) if !label.trim().is_empty() => ("t", label.as_str()),
            Some(_) => ("m", "(an empty name)"),
            None => ("m", "(without a name)"),
        };
        canvas.text(class, LEFT, label, 300.0, 13.0);
        let length = 560.0 * share(group.bytes, most);
        canvas.rect("w", LEFT + 316.0, -11.0, length.max(2.0), 14.0, 3.0);
        let line = format!("{} \u{b7} {}", bytes(group.bytes), count(group.count, "allocation"));
        canvas.text_to_right("m", &line);
    }
    if let Some(more) = groups.len().checked_sub(LINES).filter(|&more| more > 0) {
        canvas.skip(20.0);
        let rest: u64 = groups.iter().skip(LINES).map(|group| group.bytes).fold(0, u64::saturating_add);
        let more = count(widen(more), "more name");
        canvas.text("m", LEFT, &format!("and {more} with {}", bytes(rest)), INNER, 13.0);
    }
}
