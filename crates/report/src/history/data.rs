//! The data of a page: lists of numbers, one list for each property. `history.js` reads them.

use std::collections::HashMap;

use serde::Serialize;

use super::bursts::Burst;
use super::parts::{HeapBytes, HistoryMoment, NEVER};
use super::thin::{LeftOut, Thinned, sparse};
use super::{History, MOST_LIVE, MOST_PLACED};
use crate::cast::{index, narrow};
#[cfg(feature = "findings")]
use crate::findings::MemoryFinding;
use crate::snapshot::{Device, Heap, MemoryType, Vector};

/// The data that the script reads. Lists named `from` and `moment` hold differences to the element before.
#[derive(Debug, Serialize)]
pub(crate) struct HistoryData<'a> {
    device: &'a Device,
    heaps: &'a [Heap],
    types: &'a [MemoryType],
    /// Without blocks.
    vectors: &'a [Vector],
    calls: u64,
    duration: u64,
    moments: MomentColumns,
    memories: MemoryColumns,
    placed: PlacedColumns,
    /// Pairs of a kind and a usage.
    uses: Vec<(String, u64)>,
    texts: Vec<&'a str>,
    frames: FrameColumns,
    budgets: HeapColumns,
    driver: HeapColumns,
    is_foreign: bool,
    has_submissions: bool,
    #[cfg(feature = "findings")]
    findings: Option<&'a [MemoryFinding]>,
    failures: Vec<u32>,
    bursts: Vec<Burst>,
    left_out: Option<LeftOut>,
    hidden: HiddenColumns,
}

/// Differences to the moment before.
#[derive(Debug, Default, Serialize)]
struct MomentColumns {
    call: Vec<u64>,
    time: Vec<u64>,
}

#[derive(Debug, Default, Serialize)]
struct MemoryColumns {
    vector: Vec<u32>,
    number: Vec<u32>,
    name: Vec<u32>,
    size: Vec<u64>,
    dedicated: Vec<u8>,
    from: Vec<u32>,
    /// The number of moments from `from` on; 0 if it never ends.
    life: Vec<u32>,
}

#[derive(Debug, Default, Serialize)]
struct PlacedColumns {
    number: Vec<u64>,
    memory: Vec<u32>,
    offset: Vec<u64>,
    size: Vec<u64>,
    /// Indices in `uses`.
    what: Vec<u32>,
    /// Indices in `texts`, from 1.
    name: Vec<u32>,
    note: Vec<u32>,
    from: Vec<u32>,
    life: Vec<u32>,
}

#[derive(Debug, Default, Serialize)]
struct FrameColumns {
    moment: Vec<u32>,
    number: Vec<u64>,
}

#[derive(Debug, Default, Serialize)]
struct HeapColumns {
    moment: Vec<u32>,
    heap: Vec<u32>,
    bytes: Vec<u64>,
}

impl HeapColumns {
    fn new(all: &[HeapBytes], kept: &KeptMoments<'_>) -> Self {
        Self {
            moment: differences(all.iter().map(|it| kept.at(it.moment))),
            heap: all.iter().map(|it| it.heap).collect(),
            bytes: all.iter().map(|it| it.bytes).collect(),
        }
    }
}

#[derive(Debug, Default, Serialize)]
struct HiddenColumns {
    moment: Vec<u32>,
    heap: Vec<u32>,
    used: Vec<u64>,
    reserved: Vec<u64>,
}

/// Returns each number minus the one before. The numbers must not decrease.
fn differences(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut before = 0;
    numbers.map(|now| now.saturating_sub(std::mem::replace(&mut before, now))).collect()
}

/// The numbers of the kept moments.
struct KeptMoments<'a>(&'a [u32]);

impl KeptMoments<'_> {
    /// Returns the number of the first kept moment from this one on.
    fn at(&self, moment: u32) -> u32 {
        narrow(self.0.partition_point(|&kept| kept < moment))
    }

    fn life(&self, from: u32, to: u32) -> u32 {
        if to == NEVER { 0 } else { self.at(to).saturating_sub(self.at(from)) }
    }
}

impl History {
    /// Returns the data of the page.
    pub(super) fn data(&self) -> HistoryData<'_> {
        self.data_of(MOST_PLACED)
    }

    /// Returns the data of a page that grows.
    pub(super) fn live_data(&self) -> HistoryData<'_> {
        self.data_of(MOST_LIVE)
    }

    /// Returns the data of a page with at most this many placements.
    pub(super) fn data_of(&self, most: usize) -> HistoryData<'_> {
        let mut thinned = self.thinned(most);
        let texts = self.used_texts(&mut thinned);
        let kept = KeptMoments(&thinned.moments);
        let (placed, uses) = placed_columns(&thinned, &kept);
        let at_kept = |burst: &Burst| Burst { from: kept.at(burst.from), to: kept.at(burst.to), ..*burst };
        HistoryData {
            device: &self.device,
            heaps: &self.heaps,
            types: &self.types,
            vectors: &self.vectors,
            calls: self.calls,
            duration: self.duration,
            moments: self.moment_columns(&kept),
            memories: memory_columns(&thinned, &kept),
            placed,
            uses,
            texts,
            frames: FrameColumns {
                moment: differences(sparse(&self.frames).map(|&(moment, _)| kept.at(moment))),
                number: sparse(&self.frames).map(|&(_, number)| number).collect(),
            },
            budgets: HeapColumns::new(&self.budgets, &kept),
            driver: HeapColumns::new(&self.driver, &kept),
            is_foreign: self.is_foreign,
            has_submissions: self.has_submissions,
            #[cfg(feature = "findings")]
            findings: self.findings.as_deref(),
            failures: differences(sparse(&self.failures).map(|&moment| kept.at(moment))),
            bursts: thinned.bursts.iter().map(at_kept).collect(),
            left_out: thinned.left_out,
            hidden: HiddenColumns {
                moment: differences(thinned.hidden.iter().map(|it| kept.at(it.moment))),
                heap: thinned.hidden.iter().map(|it| it.heap).collect(),
                used: thinned.hidden.iter().map(|it| it.used).collect(),
                reserved: thinned.hidden.iter().map(|it| it.reserved).collect(),
            },
        }
    }

    /// Returns the texts of the kept parts, and numbers them again in these.
    fn used_texts(&self, thinned: &mut Thinned) -> Vec<&str> {
        let all = self.texts.all();
        let (mut used, mut numbers) = (Vec::new(), vec![0_u32; all.len()]);
        let mut renumber = |number: &mut u32| {
            let Some(at) = number.checked_sub(1).map(index).filter(|&at| at < all.len()) else { return };
            if numbers[at] == 0 {
                used.push(&*all[at]);
                numbers[at] = narrow(used.len());
            }
            *number = numbers[at];
        };
        thinned.memories.iter_mut().for_each(|memory| renumber(&mut memory.name));
        for placed in &mut thinned.placed {
            renumber(&mut placed.name);
            renumber(&mut placed.note);
        }
        used
    }

    fn moment_columns(&self, kept: &KeptMoments<'_>) -> MomentColumns {
        let mut columns = MomentColumns::default();
        let mut before = HistoryMoment::default();
        for now in kept.0.iter().filter_map(|&moment| self.moments.get(index(moment))) {
            columns.call.push(now.call - before.call);
            columns.time.push(now.time - before.time);
            before = *now;
        }
        // A recording that has not begun has its first moment, too.
        if columns.call.is_empty() {
            columns = MomentColumns { call: vec![0], time: vec![0] };
        }
        columns
    }
}

fn memory_columns(thinned: &Thinned, kept: &KeptMoments<'_>) -> MemoryColumns {
    let all = &thinned.memories;
    MemoryColumns {
        vector: all.iter().map(|it| it.vector).collect(),
        number: all.iter().map(|it| it.number).collect(),
        name: all.iter().map(|it| it.name).collect(),
        size: all.iter().map(|it| it.size).collect(),
        dedicated: all.iter().map(|it| it.dedicated.into()).collect(),
        from: differences(all.iter().map(|it| kept.at(it.from))),
        life: all.iter().map(|it| kept.life(it.from, it.to)).collect(),
    }
}

fn placed_columns(thinned: &Thinned, kept: &KeptMoments<'_>) -> (PlacedColumns, Vec<(String, u64)>) {
    let mut columns = PlacedColumns::default();
    let mut uses = Vec::new();
    let mut numbers = HashMap::new();
    for it in &thinned.placed {
        let what = *numbers.entry((it.kind, it.usage)).or_insert_with(|| {
            uses.push((it.kind.to_string(), it.usage));
            narrow(uses.len() - 1)
        });
        columns.number.push(it.number);
        columns.memory.push(it.memory);
        columns.offset.push(it.offset);
        columns.size.push(it.size);
        columns.what.push(what);
        columns.name.push(it.name);
        columns.note.push(it.note);
        columns.life.push(kept.life(it.from, it.to));
    }
    columns.from = differences(thinned.placed.iter().map(|it| kept.at(it.from)));
    (columns, uses)
}
