//! Memory types and pools with their blocks and chunks.

use std::collections::BTreeMap;

use super::canvas::{Canvas, INNER, LEFT, fitted, width_of};
use super::plan::{BarSubject, BlockBar, Cell, DrawingPlan, VectorPart};
use crate::cast::widen;
use crate::figures::{Fragmentation, share};
use crate::snapshot::{Block, Snapshot};
use crate::words::{bytes, clean, count, flags_of, percent, title};

/// Distance from the line above a row to its blocks, and their height, in units.
const LABEL: f64 = 6.0;
const HEIGHT: f64 = 30.0;

pub(super) fn draw(
    canvas: &mut Canvas,
    snapshot: &Snapshot,
    plan: &DrawingPlan<'_>,
    figures: &[Fragmentation],
) {
    if plan.parts.is_empty() {
        canvas.skip(38.0);
        canvas.text("m", LEFT, "No memory is allocated.", INNER, 13.0);
    }
    for part in &plan.parts {
        heading(canvas, snapshot, part, &figures[part.index]);
        let mut was_dedicated = false;
        for row in &part.rows {
            canvas.skip(18.0);
            if is_dedicated(row) && !was_dedicated {
                let sum = part.vector.dedicated.iter().map(|it| it.size).fold(0, u64::saturating_add);
                let number = widen(part.vector.dedicated.len());
                let line = format!("{} \u{b7} {}", count(number, "dedicated allocation"), bytes(sum));
                canvas.text("l", LEFT, &line, INNER, 11.0);
            }
            was_dedicated = is_dedicated(row);
            row.iter().for_each(|bar| draw_bar(canvas, bar, plan.title_from));
            canvas.skip(LABEL + HEIGHT);
        }
        let (blocks, size) = part.left_out;
        if blocks > 0 {
            canvas.skip(18.0);
            let line = format!(
                "and {} or dedicated allocations with {}, which are not drawn",
                count(blocks, "more block"),
                bytes(size)
            );
            canvas.text("m", LEFT, &line, INNER, 13.0);
        }
    }
    let (vectors, size) = plan.left_out;
    if vectors > 0 {
        canvas.skip(30.0);
        let line = format!(
            "and {} or pools with {}, which are not drawn",
            count(vectors, "more memory type"),
            bytes(size)
        );
        canvas.text("m", LEFT, &line, INNER, 13.0);
    }
}

fn heading(canvas: &mut Canvas, snapshot: &Snapshot, part: &VectorPart<'_>, figures: &Fragmentation) {
    let vector = part.vector;
    canvas.skip(36.0);
    let name = fitted(&title(vector), 0.4 * INNER, 15.0);
    canvas.text("s", LEFT, &name, INNER, 15.0);
    let after = width_of(&name, 15.0) * 1.06 + 14.0;
    let flags = flags_of(snapshot, vector.memory_type);
    let about = match vector.pool {
        Some(_) => format!("memory type {}, heap {} \u{b7} {flags}", vector.memory_type, vector.heap),
        None => format!("heap {} \u{b7} {flags}", vector.heap),
    };
    canvas.text("m", LEFT + after, &about, INNER - after - 320.0, 13.0);
    let sums = vector.statistics().statistics;
    let mut line = format!("{} of {} in use", bytes(sums.allocation_bytes), bytes(sums.block_bytes));
    if figures.free_ranges > 1 {
        line.push_str(&format!(" \u{b7} {} of the free scattered", percent(figures.scatter())));
    }
    canvas.text_to_right("m", &line);
}

fn draw_bar(canvas: &mut Canvas, bar: &BlockBar<'_>, title_from: f64) {
    let x = LEFT + bar.x;
    if let BarSubject::Block(block) = bar.what {
        canvas.text_at("l", x, 0.0, &label(block, bar.width + 4.0));
        canvas.rect("k", x, LABEL, bar.width, HEIGHT, 2.0);
    }
    // Cells without a title are merged into one shape per class.
    let mut shapes = BTreeMap::<(&str, usize), String>::new();
    for cell in &bar.cells {
        // A thin gap between neighbours.
        let width = if cell.width >= 3.0 { cell.width - 0.6 } else { cell.width };
        match cell.one {
            Some((entry, offset, size)) if cell.width >= title_from => {
                let name = entry.name.as_deref().map(clean);
                let name = name.as_deref().unwrap_or("(without a name)");
                // The isolate characters keep a right-to-left name in place.
                let mut title = format!("\u{2068}{name}\u{2069}\n{}, {}", entry.kind.text(), bytes(size));
                title.push_str(&format!(" ({size} bytes) at {offset}"));
                if let Some(caller) = &entry.caller {
                    title.push_str(&format!("\n{}", clean(caller)));
                }
                canvas.titled(cell.class, x + cell.x, LABEL, width, HEIGHT, &title);
                name_in(canvas, x, cell, entry.name.as_deref());
            }
            _ => {
                let path = shapes.entry((cell.class, cell.quarters)).or_default();
                canvas.piece(path, x + cell.x, LABEL, width, HEIGHT);
            }
        }
    }
    for ((class, quarters), path) in shapes {
        match quarters {
            4 => canvas.shape(class, &path),
            fewer => canvas.shape(&format!("{class} q{fewer}"), &path),
        }
    }
}

fn is_dedicated(row: &[BlockBar<'_>]) -> bool {
    row.iter().any(|bar| matches!(bar.what, BarSubject::Dedicated(_)))
}

/// Returns the longest label of a block that fits.
fn label(block: &Block, width: f64) -> String {
    let sums = block.statistics().statistics;
    let used = percent(share(sums.allocation_bytes, sums.block_bytes));
    let (id, size) = (block.id, bytes(block.size));
    let labels = [
        format!("block {id} \u{b7} {size} \u{b7} {used} in use"),
        format!("block {id} \u{b7} {size} \u{b7} {used}"),
        format!("block {id} \u{b7} {size}"),
        format!("block {id}"),
        id.to_string(),
    ];
    labels.into_iter().find(|label| width_of(label, 11.0) <= width).unwrap_or_default()
}

/// Draws the name if it is readable at this width.
fn name_in(canvas: &mut Canvas, x: f64, cell: &Cell<'_>, name: Option<&str>) {
    const SMALLEST: f64 = 42.0;
    if let Some(name) = name.filter(|_| cell.width >= SMALLEST) {
        let text = fitted(&clean(name), cell.width - 8.0, 11.0);
        if !text.trim().is_empty() {
            canvas.text_at("n", x + cell.x + 5.0, LABEL + 19.0, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of the five labels is shown from its exact width on.
    #[test]
    fn the_longest_label_that_fits_is_shown() {
        let block = Block { id: 12, size: 256 << 20, ..Block::default() };
        let labels = [
            "block 12 \u{b7} 256 MiB \u{b7} 0 % in use",
            "block 12 \u{b7} 256 MiB \u{b7} 0 %",
            "block 12 \u{b7} 256 MiB",
            "block 12",
            "12",
            "",
        ];
        assert_eq!(label(&block, f64::MAX), labels[0]);
        for (longer, shorter) in labels.iter().zip(&labels[1..]) {
            let width = width_of(longer, 11.0);
            assert_eq!(label(&block, width), *longer);
            assert_eq!(label(&block, width - 0.01), *shorter);
        }
    }
}
