//! gpu-descriptor, without the lock that its users need.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use ash::vk;
use gpu_descriptor::{DescriptorAllocator, DescriptorSet, DescriptorSetLayoutCreateFlags};
use gpu_descriptor_types::{
    CreatePoolError, DescriptorDevice, DescriptorPoolCreateFlags, DescriptorTotalCount, DeviceAllocationError,
};

use super::{PeerLayouts, SetPeer, counts};

/// gpu-descriptor's interface to the driver.
struct GpuDescriptorDevice<'a>(&'a ash::Device);

pub(crate) struct GpuDescriptor<'a> {
    layouts: &'a PeerLayouts<'a>,
    allocator: DescriptorAllocator<vk::DescriptorPool, vk::DescriptorSet>,
}

impl<'a> GpuDescriptor<'a> {
    pub(crate) fn new(layouts: &'a PeerLayouts<'a>) -> Self {
        Self { layouts, allocator: DescriptorAllocator::new(0) }
    }
}

fn total(layout: usize) -> DescriptorTotalCount {
    let mut total = DescriptorTotalCount::default();
    for &(kind, count) in counts(layout) {
        match kind {
            vk::DescriptorType::UNIFORM_BUFFER => total.uniform_buffer += count,
            vk::DescriptorType::STORAGE_BUFFER => total.storage_buffer += count,
            _ => total.combined_image_sampler += count,
        }
    }
    total
}

impl DescriptorDevice<vk::DescriptorSetLayout, vk::DescriptorPool, vk::DescriptorSet>
    for GpuDescriptorDevice<'_>
{
    unsafe fn create_descriptor_pool(
        &self,
        count: &DescriptorTotalCount,
        max_sets: u32,
        flags: DescriptorPoolCreateFlags,
    ) -> Result<vk::DescriptorPool, CreatePoolError> {
        let mut sizes = vec![
            (vk::DescriptorType::UNIFORM_BUFFER, count.uniform_buffer),
            (vk::DescriptorType::STORAGE_BUFFER, count.storage_buffer),
            (vk::DescriptorType::COMBINED_IMAGE_SAMPLER, count.combined_image_sampler),
        ];
        sizes.retain(|&(_, count)| count != 0);
        let of = |(ty, descriptor_count)| vk::DescriptorPoolSize { ty, descriptor_count };
        let sizes: Vec<_> = sizes.into_iter().map(of).collect();
        let flags = vk::DescriptorPoolCreateFlags::from_raw(flags.bits());
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(max_sets).pool_sizes(&sizes).flags(flags);
        // SAFETY: the device is live; sets and counts are not zero.
        let pool = unsafe { self.0.create_descriptor_pool(&info, None) };
        pool.map_err(|error| match error {
            vk::Result::ERROR_OUT_OF_HOST_MEMORY => CreatePoolError::OutOfHostMemory,
            vk::Result::ERROR_FRAGMENTATION => CreatePoolError::Fragmentation,
            _ => CreatePoolError::OutOfDeviceMemory,
        })
    }

    unsafe fn destroy_descriptor_pool(&self, pool: vk::DescriptorPool) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.destroy_descriptor_pool(pool, None) };
    }

    unsafe fn alloc_descriptor_sets<'l>(
        &self,
        pool: &mut vk::DescriptorPool,
        layouts: impl ExactSizeIterator<Item = &'l vk::DescriptorSetLayout>,
        sets: &mut impl Extend<vk::DescriptorSet>,
    ) -> Result<(), DeviceAllocationError> {
        let layouts: Vec<_> = layouts.copied().collect();
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(*pool).set_layouts(&layouts);
        // SAFETY: guaranteed by the caller.
        let made = unsafe { self.0.allocate_descriptor_sets(&info) };
        let made = made.map_err(|error| match error {
            vk::Result::ERROR_OUT_OF_HOST_MEMORY => DeviceAllocationError::OutOfHostMemory,
            vk::Result::ERROR_OUT_OF_POOL_MEMORY => DeviceAllocationError::OutOfPoolMemory,
            vk::Result::ERROR_FRAGMENTED_POOL => DeviceAllocationError::FragmentedPool,
            _ => DeviceAllocationError::OutOfDeviceMemory,
        })?;
        sets.extend(made);
        Ok(())
    }

    unsafe fn dealloc_descriptor_sets(
        &self,
        pool: &mut vk::DescriptorPool,
        sets: impl Iterator<Item = vk::DescriptorSet>,
    ) {
        let sets: Vec<_> = sets.collect();
        // SAFETY: guaranteed by the caller. The call cannot fail.
        let _ = unsafe { self.0.free_descriptor_sets(*pool, &sets) };
    }
}

impl SetPeer for GpuDescriptor<'_> {
    type Set = DescriptorSet<vk::DescriptorSet>;

    fn allocate(&mut self, layout: usize) -> Option<Self::Set> {
        let device = GpuDescriptorDevice(self.layouts.gpu().device());
        let (flags, handle) = (DescriptorSetLayoutCreateFlags::empty(), self.layouts.handle(layout));
        // SAFETY: the same device in all calls; flags and counts are the layout's.
        let made = unsafe { self.allocator.allocate(&device, &handle, flags, &total(layout), 1) };
        made.ok()?.pop()
    }

    fn free(&mut self, set: Self::Set) {
        let device = GpuDescriptorDevice(self.layouts.gpu().device());
        // SAFETY: the same device in all calls; nothing was ever submitted.
        unsafe { self.allocator.free(&device, [set]) };
    }

    fn finish(mut self) -> Result<(), String> {
        let device = GpuDescriptorDevice(self.layouts.gpu().device());
        // SAFETY: the same device in all calls.
        unsafe { self.allocator.cleanup(&device) };
        Ok(())
    }
}
