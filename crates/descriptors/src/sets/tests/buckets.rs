//! Buckets that are reused.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk;

use crate::{
    DescriptorDevice, DescriptorDeviceCreateInfo, PersistentSets, PersistentSetsCreateInfo, SetLayout,
};
use sublet_sim::{Gpu, profiles::Profile};

#[test]
fn shapes_that_come_and_go_leave_their_buckets_to_others() {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    // SAFETY: instance and device are live, and outlive all objects of this test.
    let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }.unwrap();
    let sets = PersistentSets::new(&PersistentSetsCreateInfo::new(&device));
    for count in 1..50 {
        let bindings = [vk::DescriptorSetLayoutBinding::default()
            .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(count)];
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: the device is live, and the create-info is valid.
        let handle = unsafe { gpu.device().create_descriptor_set_layout(&info, None) }.unwrap();
        // SAFETY: the layout was created from this create-info.
        let layout = unsafe { SetLayout::new(handle, &info) }.unwrap();
        // SAFETY: the layout is live.
        let set = unsafe { sets.allocate(&layout) }.unwrap();
        // SAFETY: nothing was submitted.
        unsafe { sets.free(set) }.unwrap();
        sets.trim();
        sets.validate();
        assert_eq!(sets.registry.lock().used(), 1);
        // SAFETY: it is destroyed once, and its sets are freed.
        unsafe { gpu.device().destroy_descriptor_set_layout(handle, None) };
    }
    drop(sets);
    gpu.assert_silent();
}
