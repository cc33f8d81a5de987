//! Ordered faults happen, and no others.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use std::time::{Duration, Instant};

use super::*;

const HOST: vk::Result = vk::Result::ERROR_OUT_OF_HOST_MEMORY;
const DEVICE: vk::Result = vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;

fn try_allocate(gpu: &Gpu, size: u64) -> Result<(), vk::Result> {
    let info = vk::MemoryAllocateInfo::default().allocation_size(size);
    let memory = unsafe { gpu.device().allocate_memory(&info, None) }?;
    unsafe { gpu.device().free_memory(memory, None) };
    Ok(())
}

#[test]
fn the_nth_call_fails_and_no_other() {
    let gpu = simple();
    gpu.faults().fail_nth("vkAllocateMemory", 0, HOST).fail_nth("vkAllocateMemory", 2, DEVICE);
    let results: Vec<_> = (0..4).map(|_| try_allocate(&gpu, 64)).collect();
    assert_eq!(results, [Err(HOST), Ok(()), Err(DEVICE), Ok(())]);
    assert_eq!(gpu.calls("vkAllocateMemory"), 4);
    assert_eq!(gpu.calls("vkFreeMemory"), 2);
    assert_eq!(gpu.finish(), []);
}

#[test]
fn always_until_cleared() {
    let gpu = simple();
    gpu.faults().fail_always("vkCreateBuffer", HOST);
    let info = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    for _ in 0..3 {
        assert_eq!(unsafe { gpu.device().create_buffer(&info, None) }, Err(HOST));
    }
    assert_eq!(try_allocate(&gpu, 64), Ok(()));
    gpu.faults().clear();
    unsafe { gpu.device().destroy_buffer(storage(&gpu, 64), None) };
    assert_eq!(gpu.finish(), []);
}

#[test]
fn one_function_succeeds_again_after_a_cancel() {
    let gpu = simple();
    gpu.faults().fail_always("vkCreateBuffer", HOST).fail_always("vkAllocateMemory", DEVICE);
    gpu.faults().cancel("vkCreateBuffer");
    unsafe { gpu.device().destroy_buffer(storage(&gpu, 64), None) };
    assert_eq!(try_allocate(&gpu, 64), Err(DEVICE));
    assert_eq!(gpu.finish(), []);
}

#[test]
fn sizes_above_a_limit() {
    let gpu = simple();
    gpu.faults().fail_above(4096);
    assert_eq!(try_allocate(&gpu, 4096), Ok(()));
    assert_eq!(try_allocate(&gpu, 4097), Err(DEVICE));
    gpu.faults().clear();
    assert_eq!(try_allocate(&gpu, 4097), Ok(()));
    assert_eq!(gpu.finish(), []);
}

#[test]
fn aliases_of_a_function_are_one_function() {
    let gpu = simple();
    let device = gpu.device();
    gpu.faults().fail_nth("vkBindBufferMemory2KHR", 0, DEVICE);
    let (buffer, memory) = (storage(&gpu, 64), allocate(&gpu, 4096, 0));
    let bind = [vk::BindBufferMemoryInfo::default().buffer(buffer).memory(memory)];
    assert_eq!(unsafe { device.bind_buffer_memory2(&bind) }, Err(DEVICE));
    let khr = ash::khr::bind_memory2::Device::new(gpu.instance(), device);
    let bound = unsafe { (khr.fp().bind_buffer_memory2_khr)(device.handle(), 1, bind.as_ptr()) };
    assert_eq!(bound, vk::Result::SUCCESS);
    assert_eq!(gpu.calls("vkBindBufferMemory2"), 2);
    assert_eq!(gpu.calls("vkBindBufferMemory2KHR"), 2);
}

#[test]
fn counts_are_sorted_and_can_be_reset() {
    let gpu = simple();
    assert_eq!(gpu.call_counts(), []);
    unsafe { gpu.device().destroy_buffer(storage(&gpu, 64), None) };
    unsafe { gpu.device().destroy_buffer(storage(&gpu, 64), None) };
    assert_eq!(gpu.call_counts(), [("vkCreateBuffer", 2), ("vkDestroyBuffer", 2)]);
    gpu.reset_calls();
    assert_eq!(gpu.calls("vkCreateBuffer"), 0);
}

#[test]
fn budgets_are_what_was_allocated_or_what_was_ordered() {
    let profile = ALL.iter().copied().find(|profile| profile.features.memory_budget).unwrap();
    let gpu = Gpu::builder(profile).api_version(vk::API_VERSION_1_1).build();
    let ask = || {
        let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut out = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
        unsafe { gpu.instance().get_physical_device_memory_properties2(gpu.physical_device(), &mut out) };
        (budget.heap_budget[0], budget.heap_usage[0])
    };
    let size = profile.heaps[0].size;
    let kind =
        crate::facts::arithmetic::narrow(profile.types.iter().position(|kind| kind.heap == 0).unwrap());
    assert_eq!(ask(), (size, 0));
    let memory = allocate(&gpu, 4096, kind);
    assert_eq!(ask(), (size, 4096));
    gpu.faults().set_budget(0, 1000, 900);
    assert_eq!(ask(), (1000, 900));
    gpu.faults().set_budget_beside(0, 1000, 900);
    assert_eq!(ask(), (1000, 4996));
    gpu.faults().clear();
    unsafe { gpu.device().free_memory(memory, None) };
    assert_eq!(ask(), (size, 0));
    assert_eq!(gpu.finish(), []);
}

#[test]
fn a_heap_that_is_full_refuses() {
    let gpu = simple();
    let size = gpu.profile().heaps[0].size;
    let half = allocate(&gpu, size / 2, 0);
    let rest = allocate(&gpu, size - size / 2, 0);
    assert_eq!(try_allocate(&gpu, 1), Err(DEVICE));
    assert_eq!(gpu.live().memory_bytes_by_heap, [size]);
    unsafe { gpu.device().free_memory(rest, None) };
    assert_eq!(try_allocate(&gpu, size - size / 2), Ok(()));
    unsafe { gpu.device().free_memory(half, None) };
    assert_eq!(gpu.finish(), []);
}

#[test]
fn a_slow_call_does_not_slow_other_calls() {
    let gpu = simple();
    let delay = Duration::from_millis(400);
    gpu.faults().delay("vkAllocateMemory", delay);
    let meanwhile = || {
        std::thread::scope(|scope| {
            gpu.reset_calls();
            let slow = scope.spawn(|| {
                let start = Instant::now();
                try_allocate(&gpu, 64).unwrap();
                assert!(start.elapsed() >= delay);
            });
            while gpu.calls("vkAllocateMemory") == 0 {
                std::thread::yield_now();
            }
            for _ in 0..10 {
                unsafe { gpu.device().destroy_buffer(storage(&gpu, 64), None) };
            }
            let went_on = !slow.is_finished();
            slow.join().unwrap();
            went_on
        })
    };
    // On a busy machine, the other calls may take as long. If they were held up, they would each time.
    assert!((0..10).any(|_| meanwhile()), "the other calls were held up");
    assert_eq!(gpu.finish(), []);
}

#[test]
#[should_panic(expected = "the simulated driver has no function vkAlocateMemory")]
fn a_misspelt_function() {
    simple().faults().fail_nth("vkAlocateMemory", 0, HOST);
}

#[test]
#[should_panic(expected = "vkFreeMemory returns no VkResult")]
fn a_function_that_cannot_fail() {
    simple().faults().fail_always("vkFreeMemory", HOST);
}

#[test]
#[should_panic(expected = "has no function vkNoSuchThing")]
fn a_count_of_nothing() {
    simple().calls("vkNoSuchThing");
}
