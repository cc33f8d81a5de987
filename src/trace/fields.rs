//! Decodes the fields of a chunk's payload: the counterpart of `record::encode`.

use ash::vk;

use super::asked::{Needs, Wanted};
use super::settings::PoolSettings;
use crate::allocation::ResourceKind;
use crate::create_info::{AllocationCreateFlags, MemoryUsage, PoolCreateFlags};
use crate::engine::Algorithm;
use crate::record::bytes::{Take, Wrong};
use crate::record::encode::{ALIGNMENT_OTHER, ALIGNMENT_ZERO, USUAL_GENERATION, USUAL_PRIORITY, bit};
use crate::record::raw::{Place, PoolPlace};
use sublet_engines::cast::host_size;

/// A request. `wanted` lacks pool and scope.
pub(super) struct RecordedRequest {
    pub(super) needs: Needs,
    pub(super) wanted: Wanted,
    pub(super) pool: Option<PoolPlace>,
    pub(super) scope: Option<u32>,
}

pub(super) fn asked(take: &mut Take<'_>) -> Result<RecordedRequest, Wrong> {
    let word = u32::from_le_bytes(take.array()?);
    if word & !bit::KNOWN != 0 {
        return Err(Wrong::Number);
    }
    let has = |bit| word & bit != 0;
    let mut needs = Needs {
        size: take.number()?,
        alignment: alignment(take)?,
        memory_type_bits: take.small()?,
        prefers_dedicated: has(bit::PREFERS_DEDICATED),
        requires_dedicated: has(bit::REQUIRES_DEDICATED),
        kind: kind(u64::from(word >> bit::KIND_SHIFT & 7))?,
        usage: 0,
        device_access: has(bit::ACCESS_KNOWN).then_some(has(bit::ACCESS)),
        device_address: has(bit::DEVICE_ADDRESS),
    };
    let mut small = |bit| if has(bit) { take.small() } else { Ok(0) };
    needs.usage = small(bit::RESOURCE_USAGE)?;
    let mut wanted = Wanted {
        flags: AllocationCreateFlags::from_bits_retain(small(bit::FLAGS)?),
        usage: one_of(MemoryUsage::ALL, u64::from(word >> bit::USAGE_SHIFT & 15))?,
        required_flags: vk::MemoryPropertyFlags::from_raw(small(bit::REQUIRED)?),
        preferred_flags: vk::MemoryPropertyFlags::from_raw(small(bit::PREFERRED)?),
        memory_type_bits: small(bit::TYPE_BITS)?,
        has_chain: has(bit::CHAIN),
        ..Wanted::default()
    };
    let pool = if has(bit::POOL) { Some(pool_place(take)?) } else { None };
    let scope = if has(bit::SCOPE) { Some(take.small()?) } else { None };
    wanted.priority = if has(bit::PRIORITY) { take.float()? } else { USUAL_PRIORITY };
    wanted.min_alignment = if has(bit::MIN_ALIGNMENT) { alignment(take)? } else { 0 };
    wanted.user_data = if has(bit::USER_DATA) { take.number()? } else { 0 };
    wanted.name = if has(bit::NAME) { Some(take.text()?.into()) } else { None };
    Ok(RecordedRequest { needs, wanted, pool, scope })
}

pub(super) fn place(take: &mut Take<'_>) -> Result<Place, Wrong> {
    let first = take.number()?;
    let vector = u32::try_from(first >> 2).map_err(|_| Wrong::Number)?;
    let dedicated = first & 2 != 0;
    let (generation, shard) =
        if first & 1 == 0 { (USUAL_GENERATION, 0) } else { (take.small()?, take.byte()?) };
    let key = u64::from(take.small()?) | u64::from(take.small()?) << 32;
    Ok(Place { vector, generation, shard, dedicated, key })
}

pub(super) fn pool_place(take: &mut Take<'_>) -> Result<PoolPlace, Wrong> {
    Ok(PoolPlace { vector: take.small()?, generation: take.small()? })
}

pub(super) fn pool_settings(take: &mut Take<'_>) -> Result<PoolSettings, Wrong> {
    Ok(PoolSettings {
        memory_type_index: take.small()?,
        flags: PoolCreateFlags::from_bits_retain(take.small()?),
        algorithm: one_of(&Algorithm::ALL, take.number()?)?,
        block_size: take.number()?,
        min_block_count: take.small()?,
        max_block_count: take.small()?,
        empty_blocks_kept: take.small()?,
        priority: take.float()?,
        min_allocation_alignment: alignment(take)?,
        memory_allocate_next: take.flag()?,
        name: name(take)?,
    })
}

pub(super) fn alignment(take: &mut Take<'_>) -> Result<u64, Wrong> {
    match take.byte()? {
        log2 @ ..64 => Ok(1 << log2),
        ALIGNMENT_ZERO => Ok(0),
        ALIGNMENT_OTHER => take.number(),
        _ => Err(Wrong::Number),
    }
}

pub(super) fn name(take: &mut Take<'_>) -> Result<Option<Box<str>>, Wrong> {
    Ok(take.optional_text()?.map(Box::from))
}

pub(super) fn kind(number: u64) -> Result<ResourceKind, Wrong> {
    one_of(&ResourceKind::ALL, number)
}

/// Returns the value for a number.
pub(super) fn one_of<V: Copy>(all: &[V], number: u64) -> Result<V, Wrong> {
    let known = host_size(number).and_then(|number| all.get(number));
    known.copied().ok_or(Wrong::Number)
}
