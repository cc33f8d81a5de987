//! Allocators of descriptor sets.

mod bucketed;
mod gpu_descriptor;
mod raw;
mod sublet;

use ash::vk;

use crate::gpu::TestGpu;

pub(crate) use self::bucketed::Bucketed;
pub(crate) use self::gpu_descriptor::GpuDescriptor;
pub(crate) use self::raw::RawFree;
pub(crate) use self::sublet::Persistent;

/// Descriptor types and counts of a layout.
pub(crate) type LayoutCounts = &'static [(vk::DescriptorType, u32)];

/// Shapes of typical material and pass layouts. There are two layouts of each.
const SHAPES: [LayoutCounts; 4] = [
    &[(vk::DescriptorType::UNIFORM_BUFFER, 1), (vk::DescriptorType::COMBINED_IMAGE_SAMPLER, 4)],
    &[(vk::DescriptorType::UNIFORM_BUFFER, 1), (vk::DescriptorType::COMBINED_IMAGE_SAMPLER, 1)],
    &[(vk::DescriptorType::STORAGE_BUFFER, 3)],
    &[(vk::DescriptorType::UNIFORM_BUFFER, 2), (vk::DescriptorType::STORAGE_BUFFER, 1)],
];
/// Number of layouts.
pub(crate) const LAYOUTS: usize = 2 * SHAPES.len();

/// The layouts, which the peers address by index.
pub(crate) struct PeerLayouts<'a> {
    gpu: &'a TestGpu,
    handles: Vec<vk::DescriptorSetLayout>,
}

/// Returns the counts of a layout.
pub(crate) fn counts(layout: usize) -> LayoutCounts {
    SHAPES[layout % SHAPES.len()]
}

/// Returns the bindings of a layout.
fn bindings(layout: usize) -> Vec<vk::DescriptorSetLayoutBinding<'static>> {
    let of = |(number, &(kind, count)): (u32, &(vk::DescriptorType, u32))| {
        vk::DescriptorSetLayoutBinding::default()
            .binding(number)
            .descriptor_type(kind)
            .descriptor_count(count)
            .stage_flags(vk::ShaderStageFlags::ALL)
    };
    (0..).zip(counts(layout)).map(of).collect()
}

#[expect(unsafe_code, reason = "calls Vulkan")]
impl<'a> PeerLayouts<'a> {
    pub(crate) fn new(gpu: &'a TestGpu) -> Result<Self, String> {
        let mut layouts = Self { gpu, handles: Vec::new() };
        for layout in 0..LAYOUTS {
            let bindings = bindings(layout);
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
            // SAFETY: the device is live, and so are the create-info and everything that it points to.
            let made = unsafe { gpu.device().create_descriptor_set_layout(&info, None) };
            layouts.handles.push(made.map_err(|error| format!("vkCreateDescriptorSetLayout: {error}"))?);
        }
        Ok(layouts)
    }

    pub(crate) fn gpu(&self) -> &TestGpu {
        self.gpu
    }

    fn handle(&self, layout: usize) -> vk::DescriptorSetLayout {
        self.handles[layout]
    }
}

#[expect(unsafe_code, reason = "calls Vulkan")]
impl Drop for PeerLayouts<'_> {
    fn drop(&mut self) {
        for &layout in &self.handles {
            // SAFETY: it belongs to this device and is destroyed once. Sets made from it are gone, because they borrow
            // this value.
            unsafe { self.gpu.device().destroy_descriptor_set_layout(layout, None) };
        }
    }
}

/// An allocator of sets that are freed one by one. Nothing is ever submitted, so any set may be freed at any time.
pub(crate) trait SetPeer {
    /// The handle of the caller.
    type Set;

    fn allocate(&mut self, layout: usize) -> Option<Self::Set>;
    fn free(&mut self, set: Self::Set);
    /// Destroys everything. Returns an error if its state is wrong.
    fn finish(self) -> Result<(), String>;
}

/// Creates a pool for a number of sets, each with the counts `each`.
#[expect(unsafe_code, reason = "calls Vulkan")]
fn create_pool(
    device: &ash::Device,
    each: LayoutCounts,
    sets: u32,
    flags: vk::DescriptorPoolCreateFlags,
) -> Option<vk::DescriptorPool> {
    let of = |&(ty, count): &(vk::DescriptorType, u32)| vk::DescriptorPoolSize {
        ty,
        descriptor_count: count * sets,
    };
    let sizes: Vec<_> = each.iter().map(of).collect();
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(sets).pool_sizes(&sizes).flags(flags);
    // SAFETY: the device is live; sets and counts are not zero.
    unsafe { device.create_descriptor_pool(&info, None) }.ok()
}

/// Allocates one set, without the vector that ash creates for it.
#[inline]
#[expect(unsafe_code, reason = "calls Vulkan")]
fn allocate_set(
    device: &ash::Device,
    pool: vk::DescriptorPool,
    layout: vk::DescriptorSetLayout,
) -> Option<vk::DescriptorSet> {
    let layouts = [layout];
    let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
    let mut set = vk::DescriptorSet::null();
    // SAFETY: device, pool and layout are live, nothing else uses the pool, and it has space for the set.
    let result = unsafe { (device.fp_v1_0().allocate_descriptor_sets)(device.handle(), &info, &mut set) };
    (result == vk::Result::SUCCESS).then_some(set)
}

#[inline]
#[expect(unsafe_code, reason = "calls Vulkan")]
fn free_set(device: &ash::Device, pool: vk::DescriptorPool, set: vk::DescriptorSet) {
    // SAFETY: the set belongs to this pool, is freed once, and was never submitted; nothing else uses the pool. The
    // call cannot fail.
    let _ = unsafe { device.free_descriptor_sets(pool, &[set]) };
}

#[expect(unsafe_code, reason = "calls Vulkan")]
fn destroy_pool(device: &ash::Device, pool: vk::DescriptorPool) {
    // SAFETY: the pool is live, destroyed once, and nothing was ever submitted with its sets.
    unsafe { device.destroy_descriptor_pool(pool, None) };
}
