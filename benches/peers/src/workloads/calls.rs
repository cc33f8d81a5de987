//! The calls beside the hot pairs, one a row.
#![forbid(unsafe_code)]

use super::Scale;
use crate::case::{Entry, Workload};
use crate::gpu::Driver;
use crate::peers::{Call, PeerKind, Shape};
use crate::script::{Kind, Phase, Request};

/// Who has such calls.
pub(crate) const CALLERS: [PeerKind; 2] = [PeerKind::Sublet, PeerKind::Vma];
/// What the names of all rows begin with.
pub(crate) const PREFIX: &str = "call-";
/// The device of the rows that need memory which is not coherent: the usual one has none.
const NON_COHERENT: &str = "arm-mali-g52";
/// Pairs of a round for which the numbers of calls are.
const PAIRS: usize = 5_000;

/// Name, title, call, and calls of a round.
type Row = (&'static str, &'static str, Call, usize);

const ROWS: [Row; 45] = [
    ("nothing", "nothing: what the measuring itself costs", Call::Nothing, 5_000),
    ("allocator", "allocator made and destroyed", Call::Allocator, 50),
    ("pool", "empty pool made and destroyed", Call::Pool, 500),
    ("dedicated", "dedicated allocation made and freed", Call::Dedicated, 500),
    ("refusal", "refusal: NEVER_ALLOCATE, one full block", Call::Refusal, 2_000),
    ("flags", "required and preferred flags, made and freed", Call::Flags, 2_000),
    ("upper", "upper address, made and freed", Call::Upper, 2_000),
    ("named", "made with a name and freed", Call::Named, 1_000),
    ("set-name", "name of an allocation set", Call::SetName, 2_000),
    ("info", "allocation info", Call::Info, 5_000),
    ("info-2", "allocation info 2", Call::Info2, 5_000),
    ("info-named", "allocation info 2, with a name", Call::InfoNamed, 5_000),
    ("budgets", "heap budgets", Call::Budgets, 2_000),
    ("budgets-extension", "heap budgets, VK_EXT_memory_budget", Call::BudgetsExtension, 2_000),
    ("budgets-pools", "heap budgets, 100 pools", Call::BudgetsPools, 500),
    ("frame", "current frame index set", Call::Frame, 5_000),
    ("frame-extension", "current frame index set, VK_EXT_memory_budget", Call::FrameExtension, 500),
    ("statistics", "statistics calculated, 1,000 live", Call::Statistics, 20),
    ("pool-statistics", "pool statistics, 1,000 live", Call::PoolStatistics, 2_000),
    ("pool-detailed", "pool statistics calculated, 1,000 live", Call::PoolDetailed, 20),
    ("text", "JSON, 1,000 live", Call::Text, 10),
    ("map", "JSON with the map, 1,000 live", Call::Map, 2),
    ("find-type", "memory type found", Call::FindType, 5_000),
    ("find-type-buffer", "memory type found for a buffer", Call::FindTypeBuffer, 2_000),
    ("find-type-image", "memory type found for an image", Call::FindTypeImage, 2_000),
    ("bind", "buffer bound", Call::Bind, 2_000),
    ("map-memory", "mapped and unmapped", Call::MapMemory, 2_000),
    ("flush-coherent", "flush, coherent memory", Call::FlushCoherent, 5_000),
    ("flush", "flush, non-coherent memory", Call::Flush, 2_000),
    ("invalidate", "invalidation, non-coherent memory", Call::Invalidate, 2_000),
    ("flush-many", "flush of 16 ranges, non-coherent memory", Call::FlushMany, 500),
    ("invalidate-many", "invalidation of 16 ranges, non-coherent memory", Call::InvalidateMany, 500),
    ("copy-to", "256 bytes copied to an allocation", Call::CopyTo, 2_000),
    ("copy-from", "256 bytes copied from an allocation", Call::CopyFrom, 2_000),
    ("defragment", "pool defragmented, 1,000 made, half freed", Call::Defragment, 1),
    ("block", "virtual block of 64 MiB made and destroyed", Call::Block, 500),
    ("block-large", "virtual block of 4 GiB made and destroyed", Call::BlockLarge, 200),
    ("block-allocate", "virtual block, one at a time", Call::BlockAllocate, 5_000),
    ("block-refusal", "virtual block, refusal, 1,000 live, fragmented", Call::BlockRefusal, 1_000),
    ("block-linear", "linear virtual block, one at a time", Call::BlockLinear, 5_000),
    ("block-upper", "linear virtual block, one at a time, upper address", Call::BlockUpper, 5_000),
    ("block-statistics", "virtual block, statistics, 1,000 live", Call::BlockStatistics, 5_000),
    ("block-detailed", "virtual block, statistics calculated, 1,000 live", Call::BlockDetailed, 50),
    ("block-clear", "virtual block of 1,000 live cleared", Call::BlockClear, 10),
    ("block-map", "virtual block, JSON with the map, 1,000 live", Call::BlockMap, 2),
];

/// Every row; a round makes the call so often, and every call checks what is answered.
pub(crate) fn calls(scale: &Scale) -> Vec<Workload> {
    let any = Request { size: 1, alignment: 1, kind: Kind::Memory };
    let workload = |&(id, title, call, times): &Row| {
        let times = (times * scale.pairs / PAIRS).max(1);
        let entry = |kind| Entry { kind, shape: Shape::Call(call, times), share: 1 };
        Workload {
            id: format!("{PREFIX}{id}"),
            title: title.to_owned(),
            peers: CALLERS.map(entry).into(),
            granularity: 1,
            slots: 1,
            before: vec![Phase::Reset],
            // What a round needs is made anew, and it is not what is measured.
            warm_up: Some(Box::new(|_| vec![Phase::Reset])),
            round: Box::new(move |_| vec![Phase::Replace(vec![(0, any); times])]),
            fewer_rounds: 1,
            thorough: false,
            reserves: false,
        }
    };
    ROWS.iter().map(workload).collect()
}

/// The driver for a row, where nobody asked for one.
pub(crate) fn driver(id: &str) -> Option<Driver> {
    let needs = ["flush", "invalidate", "flush-many", "invalidate-many"];
    let name = id.strip_prefix(PREFIX)?;
    needs.contains(&name).then_some(Driver::Null(NON_COHERENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = ROWS.iter().map(|row| row.0).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ROWS.len());
    }
}
