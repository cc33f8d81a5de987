//! The type lists of mutable descriptors, intercepted between the library and the driver.

use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use ash::vk;
use sublet::sim::{Gpu, profiles::Profile};
use sublet_descriptors::{
    DescriptorCounts, DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorKind, HeapArrays,
    HeapCreateInfo, HeapKind, SetStore, TransientSets, TransientSetsCreateInfo,
};

use crate::fixture::{IMAGE, STORAGE, UNIFORM};

/// The type of each pool size, and its list.
type Lists = Vec<(vk::DescriptorType, Vec<vk::DescriptorType>)>;

thread_local! {
    /// The pools of the test on this thread.
    static POOLS: RefCell<Vec<Lists>> = const { RefCell::new(Vec::new()) };
}

static REAL: OnceLock<vk::PFN_vkGetDeviceProcAddr> = OnceLock::new();

unsafe extern "system" fn lookup(device: vk::Device, name: *const c_char) -> vk::PFN_vkVoidFunction {
    // SAFETY: a name ends with a zero byte.
    if unsafe { CStr::from_ptr(name) } == c"vkCreateDescriptorPool" {
        let create: vk::PFN_vkCreateDescriptorPool = create;
        // SAFETY: the caller calls the function of this name with this type.
        return Some(unsafe {
            std::mem::transmute::<vk::PFN_vkCreateDescriptorPool, unsafe extern "system" fn()>(create)
        });
    }
    let real = *REAL.get().unwrap();
    // SAFETY: the caller upholds the same requirements.
    unsafe { real(device, name) }
}

/// # Safety
/// `first` points to `count` elements.
unsafe fn listed<'a, V>(first: *const V, count: u32) -> &'a [V] {
    match usize::try_from(count).unwrap() {
        0 => &[],
        // SAFETY: the caller ensures it.
        count => unsafe { std::slice::from_raw_parts(first, count) },
    }
}

unsafe extern "system" fn create(
    device: vk::Device,
    info: *const vk::DescriptorPoolCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    pool: *mut vk::DescriptorPool,
) -> vk::Result {
    // SAFETY: the create-info is valid.
    let asked = unsafe { &*info };
    // SAFETY: as above, and the array has this length.
    let sizes = unsafe { listed(asked.p_pool_sizes, asked.pool_size_count) };
    let mut lists: Lists = sizes.iter().map(|size| (size.ty, Vec::new())).collect();
    let mut next = asked.p_next.cast::<vk::BaseInStructure<'_>>();
    // SAFETY: a chain consists of such structures.
    while let Some(structure) = unsafe { next.as_ref() } {
        if structure.s_type == vk::StructureType::MUTABLE_DESCRIPTOR_TYPE_CREATE_INFO_EXT {
            // SAFETY: the structure has this type.
            let mutable = unsafe { &*next.cast::<vk::MutableDescriptorTypeCreateInfoEXT<'_>>() };
            let count = mutable.mutable_descriptor_type_list_count;
            // SAFETY: the array has this length.
            let of_sizes = unsafe { listed(mutable.p_mutable_descriptor_type_lists, count) };
            for ((_, types), list) in lists.iter_mut().zip(of_sizes) {
                // SAFETY: the array has this length.
                *types = unsafe { listed(list.p_descriptor_types, list.descriptor_type_count) }.to_vec();
            }
        }
        next = structure.p_next;
    }
    POOLS.with_borrow_mut(|pools| pools.push(lists));
    let lookup = *REAL.get().unwrap();
    // SAFETY: the name ends with a zero byte, and the device is live.
    let real = unsafe { lookup(device, c"vkCreateDescriptorPool".as_ptr()) }.unwrap();
    // SAFETY: the function of this name has this type.
    let real =
        unsafe { std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkCreateDescriptorPool>(real) };
    // SAFETY: the caller upholds the same requirements.
    unsafe { real(device, info, callbacks, pool) }
}

fn pools() -> Vec<Lists> {
    POOLS.take()
}

fn device(gpu: &Gpu) -> DescriptorDevice {
    let mut info = DescriptorDeviceCreateInfo::for_gpu(gpu);
    REAL.get_or_init(|| info.functions.get_device_proc_addr.unwrap());
    info.functions.get_device_proc_addr = Some(lookup);
    unsafe { DescriptorDevice::new(&info) }.unwrap()
}

#[test]
fn pools_of_transient_sets_name_the_types_that_the_program_has_named() {
    let builder = Gpu::builder(Profile::by_name("nvidia-h200").unwrap());
    let gpu = builder.extension("VK_EXT_mutable_descriptor_type").build();
    let device = device(&gpu);
    let mutable = vk::DescriptorType::MUTABLE_EXT;
    let counts = DescriptorCounts::new()
        .with(DescriptorKind::Mutable, 8)
        .with(DescriptorKind::Sampler, 2)
        .with(DescriptorKind::StorageBuffer, 3);
    for mutable_types in [vec![], vec![IMAGE], vec![UNIFORM, STORAGE, IMAGE]] {
        let info = TransientSetsCreateInfo {
            counts,
            min_pools: 1,
            mutable_types: mutable_types.clone(),
            ..Default::default()
        };
        let sets = TransientSets::new(&device, &info).unwrap();
        let made = pools();
        assert_eq!(made.len(), 1);
        for (kind, list) in &made[0] {
            let expected: &[_] = if *kind == mutable { &mutable_types } else { &[] };
            assert_eq!(list, expected, "{kind:?}");
        }
        assert!(made[0].len() == 3 && made[0].iter().any(|(kind, _)| *kind == mutable));
        unsafe { sets.destroy() };
    }
}

#[test]
fn the_pool_of_a_heap_of_one_array_names_what_its_slots_may_hold() {
    let gpu = Gpu::new(Profile::by_name("nvidia-h200").unwrap());
    let device = device(&gpu);
    let info =
        HeapCreateInfo { slots: 64, arrays: HeapArrays::One, ..HeapCreateInfo::new(HeapKind::Resource) };
    let store = SetStore::new(&device, &info).unwrap();
    let made = pools();
    let [(kind, list)] = made[0].as_slice() else { panic!("{made:?}") };
    assert_eq!((made.len(), *kind), (1, vk::DescriptorType::MUTABLE_EXT));
    assert!(list.len() > 2 && list.contains(&IMAGE) && list.contains(&STORAGE), "{list:?}");
    unsafe { store.destroy() };
}
