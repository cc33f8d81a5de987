//! Sparse buffers: resources whose pages lie wherever the program puts them, `vkQueueBindSparse`.
//!
//! Pages are bound when the call is made, and not when the queue gets to it; its semaphores and its fence keep their
//! order.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;
use ash::vk::Handle as _;

use crate::execution::queue::{SubmitBatch, enqueue_nothing};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::format::SPARSE_PAGE as PAGE;
use crate::memory::bind::place;
use crate::objects::entry::{entries, on_queue};
use crate::objects::memory::BoundResource;
use crate::objects::resources::SparseRange;
use crate::objects::state::{DeviceObject, DeviceState};

entries! {
    Device result vk::PFN_vkQueueBindSparse = bind_sparse: core 0 "vkQueueBindSparse";
}

unsafe extern "system" fn bind_sparse(
    queue: vk::Queue,
    count: u32,
    p_infos: *const vk::BindSparseInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    on_queue(queue, "vkQueueBindSparse", |device| {
        refuse_if!(!device.features.sparse_binding => "VUID-vkQueueBindSparse-queuetype",
            "the feature sparseBinding is not enabled");
        // SAFETY: VUID-vkQueueBindSparse-pBindInfo-parameter.
        let infos = unsafe { chain::array(p_infos, count) };
        let mut batches = Vec::new();
        let mut binds = Vec::new();
        for info in infos {
            // SAFETY: VUID-vkQueueBindSparse-pBindInfo-parameter: a valid structure with a valid chain.
            let batch = unsafe {
                SubmitBatch::read(
                    device,
                    (info.p_wait_semaphores, info.wait_semaphore_count),
                    (std::ptr::null(), 0),
                    (info.p_signal_semaphores, info.signal_semaphore_count),
                    info.p_next,
                )
            };
            batches.push(batch?);
            refuse_if!(info.image_opaque_bind_count != 0 || info.image_bind_count != 0
                => "SUBLET-sparse-image",
                "images are bound, and the simulated device has no sparse images");
            // SAFETY: VUID-VkBindSparseInfo-pBufferBinds-parameter.
            let buffers = unsafe { chain::array(info.p_buffer_binds, info.buffer_bind_count) };
            for buffer in buffers {
                // SAFETY: VUID-VkSparseBufferMemoryBindInfo-pBinds-parameter.
                let pages = unsafe { chain::array(buffer.p_binds, buffer.bind_count) };
                binds.extend(pages.iter().map(|page| (buffer.buffer, *page)));
            }
        }
        let mut state = device.state.lock();
        // All pages are bound, or none.
        for (buffer, page) in &binds {
            check(device, &state, *buffer, page)?;
        }
        for (buffer, page) in &binds {
            state.bind_pages(device, *buffer, page);
        }
        drop(state);
        enqueue_nothing(device, queue, &batches, fence)
    })
}

fn check(
    device: &DeviceObject,
    state: &DeviceState,
    handle: vk::Buffer,
    page: &vk::SparseMemoryBind,
) -> Result<(), Broken> {
    let name = state.name(handle);
    let rule = "VUID-VkSparseBufferMemoryBindInfo-buffer-parameter";
    let buffer = state.known(device, handle, state.buffers.get(&handle), rule)?;
    refuse_if!(buffer.pages.is_none() => "SUBLET-not-sparse", "{name} was created without SPARSE_BINDING");
    let &vk::SparseMemoryBind { resource_offset, size, memory, memory_offset, .. } = page;
    let whole = buffer.requirements.size;
    refuse_if!(size == 0 => "VUID-VkSparseMemoryBind-size-01098", "size is 0");
    refuse_if!(resource_offset >= whole => "VUID-VkSparseMemoryBind-resourceOffset-01099",
        "resourceOffset is {resource_offset}, and {name} has {whole} bytes");
    refuse_if!(size > whole - resource_offset => "VUID-VkSparseMemoryBind-size-01100",
        "{size} bytes from {resource_offset} on, and {name} has {whole} bytes");
    refuse_if!(resource_offset % PAGE != 0 || size % PAGE != 0 => "SUBLET-sparse-page",
        "{size} bytes from {resource_offset} on are not whole pages of {PAGE} bytes");
    if memory.is_null() {
        return Ok(());
    }
    let memory_name = state.name(memory);
    let rule = "VUID-VkSparseMemoryBind-memory-parameter";
    let found = state.known(device, memory, state.memories.get(&memory), rule)?;
    let (bytes, kind) = (found.info.size, found.info.type_index);
    refuse_if!(memory_offset >= bytes => "VUID-VkSparseMemoryBind-memoryOffset-01101",
        "memoryOffset is {memory_offset}, and {memory_name} has {bytes} bytes");
    refuse_if!(size > bytes - memory_offset => "VUID-VkSparseMemoryBind-size-01102",
        "{size} bytes from {memory_offset} on, and {memory_name} has {bytes} bytes");
    let type_bits = buffer.requirements.type_bits;
    if kind >= 32 || type_bits & (1 << kind) == 0 || memory_offset % buffer.requirements.alignment != 0 {
        let text = format!(
            "{name} requires the types {type_bits:#b} and an alignment of {}, and is bound at {memory_offset} of {memory_name} of \
             type {kind}",
            buffer.requirements.alignment
        );
        return Err(("VUID-VkSparseMemoryBind-memory-01096", text));
    }
    Ok(())
}

impl DeviceState {
    /// Binds checked pages; NULL unbinds them.
    fn bind_pages(&mut self, device: &DeviceObject, handle: vk::Buffer, page: &vk::SparseMemoryBind) {
        let &vk::SparseMemoryBind { resource_offset, size, memory, memory_offset, .. } = page;
        self.unbind_pages(handle, resource_offset, size);
        if memory.is_null() {
            return;
        }
        let end = memory_offset + size;
        let binding = BoundResource { end, used_end: end, linear: true, alias: false };
        let name = self.label(handle);
        place(device, self, memory, memory_offset, handle.as_raw(), &name, binding);
        if let Some(pages) = self.buffers.get_mut(&handle).and_then(|buffer| buffer.pages.as_mut()) {
            pages.insert(resource_offset, SparseRange { size, memory, offset: memory_offset });
        }
    }
}
