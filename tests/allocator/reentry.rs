//! Reentrancy: a subscriber or a driver function calls the allocator that called it.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use ash::vk;
use sublet::device::VulkanFunctions;
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, PoolCreateInfo,
};

use crate::common::*;
use crate::said::listening;

thread_local! {
    /// The allocator that the hooks below call. The test hangs if a hook runs under one of its locks.
    static ASKED: RefCell<Option<Rc<Allocator>>> = const { RefCell::new(None) };
    static ANSWERS: Cell<u32> = const { Cell::new(0) };
    static FLUSH: Cell<Option<vk::PFN_vkFlushMappedMemoryRanges>> = const { Cell::new(None) };
    static ALLOCATE: Cell<Option<vk::PFN_vkAllocateMemory>> = const { Cell::new(None) };
    static FREE: Cell<Option<vk::PFN_vkFreeMemory>> = const { Cell::new(None) };
    static INVALIDATE: Cell<Option<vk::PFN_vkInvalidateMappedMemoryRanges>> = const { Cell::new(None) };
}

/// Queries statistics and trims, if there is an allocator.
fn ask() {
    ASKED.with_borrow(|asked| {
        if let Some(allocator) = asked {
            let _ = allocator.heap_budgets();
            let _ = allocator.calculate_statistics();
            allocator.trim();
            ANSWERS.set(ANSWERS.get() + 1);
        }
    });
}

/// Runs `test` with an allocator that the hooks call.
fn asked(gpu: &sublet::sim::Gpu, info: &AllocatorCreateInfo<'_>, test: impl FnOnce(&Allocator)) {
    let allocator = Rc::new(new_allocator(info).unwrap());
    ANSWERS.set(0);
    ASKED.set(Some(Rc::clone(&allocator)));
    test(&allocator);
    ASKED.set(None);
    drop(allocator);
    assert!(gpu.live().is_empty());
    gpu.assert_silent();
}

/// The output of a subscriber. Each line triggers a call of the allocator.
#[derive(Clone, Copy)]
struct Asking;

impl io::Write for Asking {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        ask();
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_subscriber_may_ask_while_leaks_are_reported() {
    listening(
        tracing::Level::DEBUG,
        || Asking,
        || {
            on_every_profile(|profile| {
                let gpu = sublet::sim::Gpu::new(profile);
                asked(&gpu, &create_info(&gpu), |allocator| {
                    let pool = allocator.create_pool(&PoolCreateInfo::new(0)).unwrap();
                    let requirements =
                        vk::MemoryRequirements { size: KIB, alignment: 64, memory_type_bits: !0 };
                    for flags in [Flags::empty(), Flags::DEDICATED_MEMORY] {
                        let info = AllocationCreateInfo { flags, ..AllocationCreateInfo::in_pool(&pool) };
                        let _lost = allocator.allocate_memory(&requirements, &info).unwrap();
                    }
                    // SAFETY: the device does not use its memory.
                    let leaks = unsafe { allocator.destroy_pool(pool) }.unwrap();
                    assert_eq!(leaks.len(), 2);
                    // One call for each of two allocations, one dedicated reason, two leaks and two frees.
                    assert_eq!(ANSWERS.get(), 7);
                });
            });
        },
    );
}

unsafe extern "system" fn flush(
    device: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    ask();
    // SAFETY: the caller upholds the same requirements.
    unsafe { FLUSH.get().unwrap()(device, count, ranges) }
}

unsafe extern "system" fn invalidate(
    device: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    ask();
    // SAFETY: the caller upholds the same requirements.
    unsafe { INVALIDATE.get().unwrap()(device, count, ranges) }
}

/// Another thread may call `trim` at any time. Here the call happens inside the driver's flush.
#[test]
fn a_trim_during_a_flush_does_not_unmap() {
    let flushed = |flags: vk::MemoryPropertyFlags| {
        flags.contains(HOST_VISIBLE) && !flags.intersects(HOST_COHERENT | PROTECTED | AMD_COHERENT)
    };
    on_profiles(having(|profile| profile.types.iter().any(|kind| flushed(kind.flags))), |profile| {
        let gpu = sublet::sim::Gpu::new(profile);
        let real = gpu.device().fp_v1_0();
        FLUSH.set(Some(real.flush_mapped_memory_ranges));
        INVALIDATE.set(Some(real.invalidate_mapped_memory_ranges));
        let functions = VulkanFunctions {
            flush_mapped_memory_ranges: Some(flush),
            invalidate_mapped_memory_ranges: Some(invalidate),
            ..create_info(&gpu).functions
        };
        let info = AllocatorCreateInfo { functions, ..create_info(&gpu) };
        asked(&gpu, &info, |allocator| {
            let kind = profile.types.iter().position(|kind| flushed(kind.flags)).unwrap();
            for flags in [Flags::empty(), Flags::DEDICATED_MEMORY] {
                let requirements =
                    vk::MemoryRequirements { size: KIB, alignment: 64, memory_type_bits: 1 << kind };
                let info = AllocationCreateInfo { flags, ..Default::default() };
                let mut pair = [(); 2].map(|()| allocator.allocate_memory(&requirements, &info).unwrap());
                for calls in 0..4_u32 {
                    for allocation in &mut pair {
                        // The memory is mapped now. The next `trim` unmaps it.
                        drop(allocator.map(allocation).unwrap());
                    }
                    let [one, other] = &pair;
                    let many = [(one, 0, 8), (other, 0, vk::WHOLE_SIZE)];
                    match calls {
                        0 => allocator.flush(one, 0, 8),
                        1 => allocator.invalidate(one, 0, 8),
                        2 => allocator.flush_many(&many),
                        _ => allocator.invalidate_many(&many),
                    }
                    .unwrap();
                    assert_eq!(ANSWERS.take(), 1);
                    gpu.assert_silent();
                }
                allocator.trim();
                assert_eq!(gpu.live().mapped, 0, "what the calls kept mapped is let go of");
                for allocation in pair {
                    // SAFETY: nothing was bound to it.
                    unsafe { allocator.free_memory(allocation) }.unwrap();
                }
            }
        });
    });
}

/// Begins a frame, if there is an allocator. This fetches the budgets.
fn begin_frame() {
    // After a failure, thread-local destructors run and the allocator is already gone.
    let _ = ASKED.try_with(|asked| {
        if let Some(allocator) = &*asked.borrow() {
            allocator.set_current_frame_index(0);
        }
    });
}

unsafe extern "system" fn allocate(
    device: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    memory: *mut vk::DeviceMemory,
) -> vk::Result {
    begin_frame();
    // SAFETY: the caller upholds the same requirements.
    unsafe { ALLOCATE.get().unwrap()(device, info, callbacks, memory) }
}

unsafe extern "system" fn free(
    device: vk::Device,
    memory: vk::DeviceMemory,
    callbacks: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the caller upholds the same requirements.
    unsafe { FREE.get().unwrap()(device, memory, callbacks) };
    begin_frame();
}

/// Another thread fetches the budgets while this one waits for the driver. Pending changes must not be lost from the
/// counters until the next fetch.
#[test]
fn budgets_fetched_during_an_allocation_miss_nothing() {
    on_profiles(having(|profile| profile.features.memory_budget), |profile| {
        let gpu = sublet::sim::Gpu::new(profile);
        let real = gpu.device().fp_v1_0();
        ALLOCATE.set(Some(real.allocate_memory));
        FREE.set(Some(real.free_memory));
        let functions = VulkanFunctions {
            allocate_memory: Some(allocate),
            free_memory: Some(free),
            ..create_info(&gpu).functions
        };
        let info = AllocatorCreateInfo { functions, flags: enabled(&gpu), ..create_info(&gpu) };
        asked(&gpu, &info, |allocator| {
            let heap = profile.types[0].heap as usize;
            let requirements = vk::MemoryRequirements { size: MIB, alignment: 64, memory_type_bits: 1 };
            let dedicated = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..Default::default() };
            let usage = || allocator.heap_budgets()[heap].usage;
            let before = usage();
            let [one, other] =
                [(); 2].map(|()| allocator.allocate_memory(&requirements, &dedicated).unwrap());
            assert_eq!(usage(), before + 2 * MIB);
            for (allocation, left) in [(one, MIB), (other, 0)] {
                // SAFETY: nothing was bound to it.
                unsafe { allocator.free_memory(allocation) }.unwrap();
                assert_eq!(usage(), before + left);
            }
        });
    });
}
