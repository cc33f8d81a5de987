//! The layout of blocks and chunks.

use std::cmp::Reverse;

use super::canvas::INNER;
use crate::cast::widen;
use crate::figures::{float, share};
use crate::snapshot::{Block, Chunk, Dedicated, Entry, Snapshot, Vector};
use sublet::ResourceKind;

/// Chunks narrower than this are merged with their neighbours.
const CELL: f64 = 2.0;
/// Minimum width of a block.
const NARROWEST: f64 = 4.0;
/// Units between blocks of a row, and between dedicated allocations.
const GAP: f64 = 8.0;
const DEDICATED_GAP: f64 = 2.0;
/// Maximum numbers of rows: of blocks and of dedicated allocations per vector, and of all.
const ROWS: usize = 8;
const DEDICATED_ROWS: usize = 3;
const ALL_ROWS: usize = 80;
/// Candidate numbers of largest blocks per row. The plan uses the first that fits.
const COLUMNS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Maximum number of chunks with a title. The widest have one.
const TITLES: usize = 3000;

/// The kinds, each with its class and its name.
pub(super) const KINDS: &[(ResourceKind, &str, &str)] = &[
    (ResourceKind::Buffer, "b", "buffer"),
    (ResourceKind::ImageOptimal, "i", "image, optimal"),
    (ResourceKind::ImageLinear, "j", "image, linear"),
    (ResourceKind::ImageUnknown, "y", "image"),
    (ResourceKind::Unknown, "u", "memory"),
];

/// The layout of all vectors that are not empty.
pub(super) struct DrawingPlan<'a> {
    pub(super) parts: Vec<VectorPart<'a>>,
    /// The vectors that did not fit: their number, and the bytes of their blocks.
    pub(super) left_out: (u64, u64),
    /// True if some chunks are merged.
    pub(super) has_crumbs: bool,
    /// Minimum width of a chunk with a title.
    pub(super) title_from: f64,
}

/// One vector.
pub(super) struct VectorPart<'a> {
    pub(super) vector: &'a Vector,
    /// Its index in the snapshot.
    pub(super) index: usize,
    pub(super) rows: Vec<Vec<BlockBar<'a>>>,
    /// The blocks that did not fit: their number and their bytes.
    pub(super) left_out: (u64, u64),
}

/// A block or a dedicated allocation.
pub(super) struct BlockBar<'a> {
    pub(super) what: BarSubject<'a>,
    pub(super) x: f64,
    pub(super) width: f64,
    pub(super) cells: Vec<Cell<'a>>,
}

#[derive(Clone, Copy)]
pub(super) enum BarSubject<'a> {
    Block(&'a Block),
    Dedicated(&'a Dedicated),
}

/// A chunk in use, or merged small chunks.
pub(super) struct Cell<'a> {
    /// Distance from the left end of the bar.
    pub(super) x: f64,
    pub(super) width: f64,
    pub(super) class: &'static str,
    /// The used share in quarters, rounded up.
    pub(super) quarters: usize,
    /// The allocation with offset and size, if the cell is a single chunk.
    pub(super) one: Option<(&'a Entry, u64, u64)>,
}

impl BarSubject<'_> {
    fn size(&self) -> u64 {
        match self {
            Self::Block(block) => block.size,
            Self::Dedicated(dedicated) => dedicated.size,
        }
    }
}

impl<'a> DrawingPlan<'a> {
    pub(super) fn new(snapshot: &'a Snapshot) -> Self {
        let mut plan = Self { parts: Vec::new(), left_out: (0, 0), has_crumbs: false, title_from: 0.0 };
        let mut rows = 0;
        for (index, vector) in snapshot.vectors.iter().enumerate() {
            if vector.blocks.is_empty() && vector.dedicated.is_empty() {
                continue;
            }
            if rows >= ALL_ROWS {
                let bytes = vector.statistics().statistics.block_bytes;
                plan.left_out = (plan.left_out.0 + 1, plan.left_out.1.saturating_add(bytes));
                continue;
            }
            let part = VectorPart::new(vector, index, ROWS.min(ALL_ROWS - rows));
            rows += part.rows.len();
            plan.parts.push(part);
        }
        let cells = plan.parts.iter().flat_map(|part| &part.rows).flatten().flat_map(|bar| &bar.cells);
        plan.has_crumbs = cells.clone().any(|cell| cell.one.is_none());
        let mut widths: Vec<f64> = cells.filter(|cell| cell.one.is_some()).map(|cell| cell.width).collect();
        widths.sort_by(|a, b| b.total_cmp(a));
        plan.title_from = widths.get(TITLES).map_or(0.0, |width| width + 0.01);
        plan
    }
}

impl<'a> VectorPart<'a> {
    fn new(vector: &'a Vector, index: usize, rows: usize) -> Self {
        let mut dedicated: Vec<&Dedicated> = vector.dedicated.iter().collect();
        dedicated.sort_by_key(|dedicated| Reverse(dedicated.size));
        let dedicated: Vec<BarSubject<'a>> = dedicated.into_iter().map(BarSubject::Dedicated).collect();
        let blocks: Vec<BarSubject<'a>> = vector.blocks.iter().map(BarSubject::Block).collect();
        let largest = blocks.iter().chain(&dedicated).map(BarSubject::size).max().unwrap_or(0);
        let (mut in_blocks, mut alone) = ((Vec::new(), 0), (Vec::new(), 0));
        for columns in COLUMNS.map(f64::from) {
            let widest = (INNER - GAP * (columns - 1.0)) / columns;
            in_blocks = place(&blocks, largest, widest, GAP, rows);
            alone = place(&dedicated, largest, widest, DEDICATED_GAP, DEDICATED_ROWS);
            // Many small dedicated allocations do not reduce the scale of the blocks.
            let fits =
                if blocks.is_empty() { alone.1 == dedicated.len() } else { in_blocks.1 == blocks.len() };
            if fits {
                break;
            }
        }
        let rest = blocks[in_blocks.1..].iter().chain(&dedicated[alone.1..]);
        let bytes = rest.clone().map(BarSubject::size).fold(0, u64::saturating_add);
        let rows = in_blocks.0.into_iter().chain(alone.0);
        let rows = rows.map(|row| row.into_iter().map(bar).collect()).collect();
        Self { vector, index, rows, left_out: (widen(rest.count()), bytes) }
    }
}

/// A bar with its content, left end and width.
type PlacedBar<'a> = (BarSubject<'a>, f64, f64);

/// Fills rows from the left, with the widest bar `widest` wide. Returns the number of bars that fit.
fn place<'a>(
    all: &[BarSubject<'a>],
    largest: u64,
    widest: f64,
    gap: f64,
    rows: usize,
) -> (Vec<Vec<PlacedBar<'a>>>, usize) {
    let mut placed: Vec<Vec<PlacedBar<'a>>> = Vec::new();
    let mut x = INNER;
    for (at, &what) in all.iter().enumerate() {
        let width = (widest * share(what.size(), largest)).max(NARROWEST);
        // The tolerance keeps a bar that fits except for rounding.
        if x + width > INNER + 0.01 {
            if placed.len() == rows {
                return (placed, at);
            }
            placed.push(Vec::new());
            x = 0.0;
        }
        if let Some(row) = placed.last_mut() {
            row.push((what, x, width));
        }
        x += width + gap;
    }
    (placed, all.len())
}

fn bar((what, x, width): PlacedBar<'_>) -> BlockBar<'_> {
    let cells = match what {
        BarSubject::Block(block) => cells(&block.chunks, width / float(block.size.max(1))),
        BarSubject::Dedicated(dedicated) => {
            let entry = &dedicated.allocation;
            let one = Some((entry, 0, dedicated.size));
            vec![Cell { x: 0.0, width, class: class_of(entry.kind), quarters: 4, one }]
        }
    };
    BlockBar { what, x, width, cells }
}

fn class_of(kind: ResourceKind) -> &'static str {
    KINDS.iter().find(|&&(known, ..)| known == kind).map_or("u", |&(_, class, _)| class)
}

/// Adjacent chunks that are too small to draw alone.
#[derive(Default)]
struct Crumbs<'a> {
    start: u64,
    end: u64,
    /// Bytes in use by kind, in the order of [`KINDS`].
    used: [u64; 5],
    /// Number of allocations, and one of them.
    count: usize,
    one: Option<(&'a Entry, u64, u64)>,
}

impl<'a> Crumbs<'a> {
    fn add(&mut self, chunk: &'a Chunk) {
        if self.end == self.start {
            self.start = chunk.offset;
        }
        self.end = chunk.offset.saturating_add(chunk.size);
        if let Some(entry) = &chunk.allocation {
            let at = KINDS.iter().position(|&(kind, ..)| kind == entry.kind).unwrap_or(KINDS.len() - 1);
            self.used[at] = self.used[at].saturating_add(chunk.size);
            self.count += 1;
            self.one = Some((entry, chunk.offset, chunk.size));
        }
    }

    /// Returns the collected chunks as a cell, unless they are all free or empty.
    fn take(&mut self, scale: f64) -> Option<Cell<'a>> {
        let Self { start, end, used, count, one } = std::mem::take(self);
        let sum = used.iter().fold(0_u64, |sum, &bytes| sum.saturating_add(bytes));
        let all = end - start;
        if sum == 0 {
            return None;
        }
        let most = used.iter().zip(KINDS).max_by_key(|&(&bytes, _)| bytes);
        let quarters = [0.25, 0.5, 0.75].iter().filter(|&&limit| share(sum, all) > limit).count() + 1;
        Some(Cell {
            x: float(start) * scale,
            width: (float(all) * scale).max(0.5),
            class: most.map_or("u", |(_, &(_, class, _))| class),
            quarters,
            one: one.filter(|_| count == 1 && quarters == 4),
        })
    }
}

/// Returns the cells of a block at `scale` units per byte.
fn cells(chunks: &[Chunk], scale: f64) -> Vec<Cell<'_>> {
    let mut cells = Vec::new();
    let mut crumbs = Crumbs::default();
    for chunk in chunks {
        let width = float(chunk.size) * scale;
        if width < CELL {
            // A gap between chunks ends a cell. VMA's strings may have gaps.
            if crumbs.end != chunk.offset {
                cells.extend(crumbs.take(scale));
            }
            crumbs.add(chunk);
            if float(crumbs.end - crumbs.start) * scale >= CELL {
                cells.extend(crumbs.take(scale));
            }
            continue;
        }
        cells.extend(crumbs.take(scale));
        if let Some(entry) = &chunk.allocation {
            let one = Some((entry, chunk.offset, chunk.size));
            let x = float(chunk.offset) * scale;
            cells.push(Cell { x, width, class: class_of(entry.kind), quarters: 4, one });
        }
    }
    cells.extend(crumbs.take(scale));
    cells
}
