//! Descriptor sets with arbitrary lifetimes, freed one by one.

/// The setup of the examples in this module: a simulated device, an allocator `sets`, and a layout with one uniform
/// buffer.
macro_rules! example_setup {
    () => {
        "# use ash::vk;
# use sublet::sim; use sublet_descriptors::*;
# let gpu = sim::Gpu::new(sim::Profile::by_name(\"nvidia-h200\").unwrap());
# let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
# let sets = PersistentSets::new(&PersistentSetsCreateInfo::new(&device));
# let bindings = [vk::DescriptorSetLayoutBinding::default()
#     .descriptor_type(vk::DescriptorType::UNIFORM_BUFFER).descriptor_count(1).stage_flags(vk::ShaderStageFlags::ALL)];
# let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
# let layout = unsafe { SetLayout::new(gpu.device().create_descriptor_set_layout(&info, None)?, &info) }?;"
    };
}

mod bucket;
mod error;
mod mask;
mod persistent;
mod set;
mod settings;
mod state;
mod statistics;
mod supply;
#[cfg(test)]
mod tests;

pub use self::error::AllocateDescriptorSetError;
pub use self::persistent::PersistentSets;
pub use self::set::{
    DescriptorSet, DescriptorSetId, DescriptorSetLeak, ForeignDescriptorSet, StaleDescriptorSet,
};
pub use self::settings::PersistentSetsCreateInfo;
pub use self::statistics::PersistentSetsStatistics;
