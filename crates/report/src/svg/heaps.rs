//! Heaps and budgets.

use super::canvas::{Canvas, INNER, LEFT, width_of};
use crate::figures::share;
use crate::snapshot::Heap;
use crate::words::{bytes, flags};
use sublet::{DetailedStatistics, Statistics};

const GAP: f64 = 32.0;

/// Draws the heaps, two per row.
pub(super) fn draw(canvas: &mut Canvas, heaps: &[Heap], sums: &[DetailedStatistics]) {
    let width = if heaps.len() > 1 { (INNER - GAP) / 2.0 } else { INNER };
    let all: Vec<_> = heaps.iter().zip(sums).zip(0_u32..).collect();
    for pair in all.chunks(2) {
        canvas.skip(22.0);
        for (((heap, sums), number), at) in pair.iter().zip([0.0, 1.0]) {
            one(canvas, LEFT + at * (width + GAP), width, *number, heap, &sums.statistics);
        }
        canvas.skip(46.0);
    }
    if !heaps.is_empty() {
        let mut x = LEFT;
        canvas.skip(22.0);
        let words =
            [("g", "in use"), ("r", "free in our blocks"), ("o", "others'"), ("k", "rest of the heap")];
        for (class, word) in words {
            canvas.swatch(class, x);
            canvas.text("l", x + 17.0, word, INNER, 11.0);
            x += 17.0 + width_of(word, 11.0) + 18.0;
        }
        canvas.mark("x", x + 2.0, -11.0, 3.0);
        canvas.text("l", x + 10.0, "budget", INNER, 11.0);
        canvas.skip(6.0);
    }
}

fn one(canvas: &mut Canvas, x: f64, width: f64, number: u32, heap: &Heap, sums: &Statistics) {
    let name = format!("Heap {number}");
    canvas.text("s", x, &name, width, 15.0);
    let after = width_of(&name, 15.0) + 12.0;
    let words = if heap.flags.is_empty() { "host memory".to_owned() } else { flags(&heap.flags) };
    canvas.text("m", x + after, &words, width - after, 13.0);
    let all = heap.size.max(heap.budget).max(heap.usage).max(sums.block_bytes);
    let part = |bytes: u64| if bytes == 0 { 0.0 } else { (width * share(bytes, all)).clamp(2.0, width) };
    canvas.rect("k", x, 9.0, width, 16.0, 4.0);
    // Drawn from the largest to the smallest, each over the previous one.
    let others = heap.usage.saturating_sub(sums.block_bytes);
    for (class, bytes) in [
        ("o", sums.block_bytes.saturating_add(others)),
        ("r", sums.block_bytes),
        ("g", sums.allocation_bytes),
    ] {
        if bytes > 0 {
            canvas.rect(class, x, 9.0, part(bytes), 16.0, 4.0);
        }
    }
    canvas.mark("x", x + part(heap.budget).min(width - 1.0), 6.0, 28.0);
    let mut line = format!("{} in use, {} in blocks", bytes(sums.allocation_bytes), bytes(sums.block_bytes));
    if others > 0 {
        line.push_str(&format!(", {} others'", bytes(others)));
    }
    canvas.text_at("l", x, 41.0, &line);
    let limits = format!("budget {} of {}", bytes(heap.budget), bytes(heap.size));
    canvas.text_to("l", x + width, 41.0, &limits);
}
