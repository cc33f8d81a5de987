//! Memory of sparse resources.
#![expect(unsafe_code, reason = "the functions have the C ABI, and call the next layer")]

use ash::vk;
use sublet::private::Operation;
use sublet::trace::ForeignMemoryFlags;

use super::{FAILED, next, slice};
use crate::device::WatchedDevice;
use crate::recording::{BLOCK_KEYS, ObjectKey, RecordFields, RecordedAccess};

pub(crate) unsafe extern "system" fn bind_sparse(
    queue: vk::Queue,
    count: u32,
    infos: *const vk::BindSparseInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    let (known, next) = next!(queue, bind_sparse, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(queue, count, infos, fence) });
    if result != vk::Result::SUCCESS || known.recording.is_none() {
        return result;
    }
    // SAFETY: V1.
    for info in unsafe { slice(infos, count) } {
        // SAFETY: V1.
        for bind in unsafe { slice(info.p_buffer_binds, info.buffer_bind_count) } {
            // SAFETY: V1.
            record_ranges(known, bind.buffer.into(), unsafe { slice(bind.p_binds, bind.bind_count) });
        }
        // SAFETY: V1.
        for bind in unsafe { slice(info.p_image_opaque_binds, info.image_opaque_bind_count) } {
            // SAFETY: V1.
            record_ranges(known, bind.image.into(), unsafe { slice(bind.p_binds, bind.bind_count) });
        }
        // SAFETY: V1.
        for bind in unsafe { slice(info.p_image_binds, info.image_bind_count) } {
            // SAFETY: V1.
            record_blocks(known, bind.image.into(), unsafe { slice(bind.p_binds, bind.bind_count) });
        }
    }
    result
}

/// Records one range of a resource. `bind` has the offset, the size, and the offset in the memory.
fn put_range(access: &mut RecordedAccess<'_>, key: ObjectKey, memory: vk::DeviceMemory, bind: [u64; 3]) {
    let memory = access.objects().note(memory, ForeignMemoryFlags::WAS_BOUND).unwrap_or(0);
    let [offset, size, memory_offset] = bind;
    access.update(key, |object| {
        object.sparse().bind(offset, size, memory, memory_offset);
        let numbers = [object.id, offset, size, memory, if memory == 0 { 0 } else { memory_offset }];
        Some(RecordFields::new(Operation::SparseBound, &numbers))
    });
}

fn record_ranges(known: &WatchedDevice, key: ObjectKey, binds: &[vk::SparseMemoryBind]) {
    known.record(|access| {
        for bind in binds {
            put_range(access, key, bind.memory, [bind.resource_offset, bind.size, bind.memory_offset]);
        }
    });
}

/// Records blocks of an image. Vulkan gives their position in texels, so each block gets a key instead of an offset,
/// and the size of the range is that of its blocks.
fn record_blocks(known: &WatchedDevice, key: ObjectKey, binds: &[vk::SparseImageMemoryBind]) {
    known.record(|access| {
        for bind in binds {
            let Some((extent, bytes)) = access.objects().with(key, |object| {
                let sparse = object.sparse();
                (sparse.extent, sparse.bytes)
            }) else {
                continue;
            };
            let blocks = [bind.extent.width, bind.extent.height, bind.extent.depth]
                .iter()
                .zip(extent)
                .map(|(&texels, block)| u64::from(texels.div_ceil(block.max(1))))
                .fold(1, u64::saturating_mul);
            let size = blocks.saturating_mul(bytes);
            put_range(access, key, bind.memory, [block_key(bind, extent), size, bind.memory_offset]);
        }
    });
}

/// A number for the position of a block: 5 bits for the level, 11 for the layer, 13 for z, and 17 each for y and x.
fn block_key(bind: &vk::SparseImageMemoryBind, extent: [u32; 3]) -> u64 {
    let at = |offset: i32, extent: u32| u64::from(offset.unsigned_abs() / extent.max(1));
    let [width, height, depth] = extent;
    let fields = [
        (u64::from(bind.subresource.mip_level), 5),
        (u64::from(bind.subresource.array_layer), 11),
        (at(bind.offset.z, depth), 13),
        (at(bind.offset.y, height), 17),
        (at(bind.offset.x, width), 17),
    ];
    BLOCK_KEYS | fields.iter().fold(0, |key, &(value, bits)| key << bits | value & ((1 << bits) - 1))
}
