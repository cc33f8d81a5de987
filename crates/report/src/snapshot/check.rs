//! Validates a snapshot from a file.

use std::collections::BTreeSet;

use ash::vk;

use super::Snapshot;
use super::error::{FaultPosition, ReadSnapshotError, SnapshotFault};
use super::parts::{Block, Vector};
use crate::cast::index;

/// Returns the snapshot if it is consistent.
pub(super) fn checked(snapshot: Snapshot) -> Result<Snapshot, ReadSnapshotError> {
    heaps_and_types(&snapshot).map_err(|fault| fault.at(FaultPosition::default()))?;
    let (mut defaults, mut pools, mut ids) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut bytes = 0;
    for (at, vector) in snapshot.vectors.iter().enumerate() {
        let place = FaultPosition { vector: Some(at), ..FaultPosition::default() };
        let is_new = match vector.pool {
            Some(number) => pools.insert(number),
            None => defaults.insert(vector.memory_type),
        };
        if !is_new {
            return Err(SnapshotFault::VectorTwice.at(place));
        }
        type_and_heap(&snapshot, vector).map_err(|fault| fault.at(place))?;
        blocks(vector, place, &mut bytes)?;
    }
    for (heap, map) in snapshot.descriptor_heaps.iter().enumerate() {
        if let Some(slot) = map.fault() {
            return Err(SnapshotFault::Slots { heap, slot }.at(FaultPosition::default()));
        }
    }
    for found in snapshot.allocations() {
        if found.entry.id.as_deref().is_some_and(|id| !ids.insert(id)) {
            let block = found.block.map(|block| block.id);
            let place = FaultPosition { vector: Some(found.vector_index), block, offset: Some(found.offset) };
            return Err(SnapshotFault::AllocationTwice.at(place));
        }
    }
    Ok(snapshot)
}

fn heaps_and_types(snapshot: &Snapshot) -> Result<(), SnapshotFault> {
    let (heaps, types) = (snapshot.heaps.len(), snapshot.types.len());
    if heaps > vk::MAX_MEMORY_HEAPS {
        return Err(SnapshotFault::TooManyHeaps { heaps });
    }
    if types > vk::MAX_MEMORY_TYPES {
        return Err(SnapshotFault::TooManyTypes { types });
    }
    match snapshot.types.iter().find(|kind| index(kind.heap) >= heaps) {
        Some(kind) => Err(SnapshotFault::NoSuchHeap { heap: kind.heap, heaps }),
        None => Ok(()),
    }
}

fn type_and_heap(snapshot: &Snapshot, vector: &Vector) -> Result<(), SnapshotFault> {
    let (memory_type, heap) = (vector.memory_type, vector.heap);
    let Some(kind) = snapshot.types.get(index(memory_type)) else {
        return Err(SnapshotFault::NoSuchType { memory_type, types: snapshot.types.len() });
    };
    if kind.heap != heap {
        return Err(SnapshotFault::HeapOfAnotherType { heap, of_type: kind.heap });
    }
    Ok(())
}

/// Adds the bytes of the vector to the sum so far. Sums of validated sizes cannot overflow.
fn blocks(vector: &Vector, place: FaultPosition, bytes: &mut u64) -> Result<(), ReadSnapshotError> {
    let mut ids = BTreeSet::new();
    for block in &vector.blocks {
        let place = FaultPosition { block: Some(block.id), ..place };
        if !ids.insert(block.id) {
            return Err(SnapshotFault::BlockTwice.at(place));
        }
        *bytes = bytes.checked_add(block.size).ok_or_else(|| SnapshotFault::TooLarge.at(place))?;
        chunks(block, place)?;
    }
    for dedicated in &vector.dedicated {
        *bytes = bytes.checked_add(dedicated.size).ok_or_else(|| SnapshotFault::TooLarge.at(place))?;
    }
    Ok(())
}

fn chunks(block: &Block, place: FaultPosition) -> Result<(), ReadSnapshotError> {
    let mut end = 0;
    for chunk in &block.chunks {
        let place = FaultPosition { offset: Some(chunk.offset), ..place };
        if chunk.offset < end {
            return Err(SnapshotFault::Overlap { end_of_previous: end }.at(place));
        }
        end = match chunk.offset.checked_add(chunk.size) {
            Some(end) if end <= block.size => end,
            _ => {
                return Err(SnapshotFault::BeyondBlock { size: chunk.size, block_size: block.size }.at(place));
            }
        };
    }
    Ok(())
}
