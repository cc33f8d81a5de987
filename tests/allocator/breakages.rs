//! Regression tests for faults that the test suite of VMA does not detect. Each was checked by mutation: the test fails
//! if the named part is broken. Hysteresis of mappings has no test, because mappings stay until `trim`.
//!
//! | broken part | test |
//! |---|---|
//! | conflicts of buffers and images about granularity | [`a_buffer_and_an_optimal_image_share_no_page`] |
//! | offsets at multiples of `nonCoherentAtomSize` | [`what_is_flushed_begins_at_an_atom`] |
//! | rounding of flushed ranges | [`a_flushed_range_is_rounded_outwards`] |
//! | progressive block sizes | [`blocks_double_up_to_the_preferred_size`] |
//! | dedicated above half a block | [`half_a_block_is_the_most_that_is_shared`] |
//! | `WITHIN_BUDGET` | [`within_the_budget_without_being_dedicated`] |
//! | `STRATEGY_MIN_OFFSET` | [`the_lowest_of_several_holes`] |
//! | a size above the heap's | [`the_driver_is_not_asked_for_more_than_a_heap`] |
//! | preferred flags | [`a_preferred_property_is_had_where_it_is_to_be_had`] |
//! | not-preferred flags | [`an_unwelcome_property_is_avoided_where_it_can_be`] |
//! | `AutoPreferHost` | [`host_memory_if_there_is_a_choice`] |
//! | `AutoPreferDevice` | [`device_memory_if_there_is_a_choice`] |
//! | `NEVER_ALLOCATE` | [`the_driver_is_never_asked`] |
//! | `DONT_BIND` | [`nothing_is_bound_that_was_not_to_be`] |
//! | the device-address flag | [`memory_has_an_address_where_it_needs_one`] |
//! | `VkMemoryDedicatedAllocateInfo` | [`the_driver_is_told_what_memory_is_dedicated_to`] |
//! | device memory callbacks | [`both_callbacks_are_called_for_both_kinds_of_memory`] |
//! | buffers of zero bytes | [`nothing_is_created_of_no_size`] |
//! | the limit on the number of memories, and the switch that disables it | [`super::debug`], [`super::limits`] |
//! | requirements of each element of a list of pages | [`each_page_has_its_own_requirements`] |
//! | errors of the driver are preserved | [`the_drivers_own_word_is_kept`] |
//! | near the budget, small allocations share blocks | [`near_the_budget_small_allocations_share_blocks`] |

use std::sync::{Arc, Mutex};

use ash::vk;
use sublet::device::{DeviceMemoryCallbacks, DeviceMemoryEvent};
use sublet::sim::{AllocateCall, Gpu};
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, AllocatorCreateFlags,
    AllocatorCreateInfo, CreateError, MemoryError, MemoryUsage, PoolCreateFlags, PoolCreateInfo,
};

use crate::common::*;

const STORAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::STORAGE_BUFFER;
const NONE: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::empty();

fn last_call(gpu: &Gpu) -> AllocateCall {
    gpu.take_log().pop().unwrap()
}

#[test]
fn a_buffer_and_an_optimal_image_share_no_page() {
    on_profiles(having(|profile| profile.limits.buffer_image_granularity > 1), |profile| {
        let fixture = Fixture::new(profile);
        let page = profile.limits.buffer_image_granularity;
        let info = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
        let mut buffers = Vec::new();
        let mut images = Vec::new();
        for _ in 0..8 {
            buffers.push(fixture.buffer(16, STORAGE, &info).unwrap());
            images.push(fixture.image(&square(4, vk::ImageUsageFlags::SAMPLED), &info).unwrap());
        }
        let pages = |memory: &sublet::Allocation| {
            let (first, end) = (memory.offset() / page, (memory.offset() + memory.size()).div_ceil(page));
            (first..end).map(|at| (memory.memory(), at)).collect::<Vec<_>>()
        };
        let linear: Vec<_> = buffers.iter().flat_map(|(_, memory)| pages(memory)).collect();
        let optimal: Vec<_> = images.iter().flat_map(|(_, memory)| pages(memory)).collect();
        assert!(linear.iter().all(|page| !optimal.contains(page)));
        buffers.into_iter().for_each(|buffer| fixture.destroy_buffer(buffer));
        images.into_iter().for_each(|image| fixture.destroy_image(image));
    });
}

#[test]
fn what_is_flushed_begins_at_an_atom() {
    on_every_gpu(|fixture| {
        let atom = fixture.profile().limits.non_coherent_atom_size;
        for memory_type in fixture.types_with(HOST_VISIBLE, HOST_COHERENT | PROTECTED) {
            let all: Vec<_> =
                (1..9).map(|size| fixture.memory(size, 1, &in_type(memory_type)).unwrap()).collect();
            assert!(all.iter().all(|memory| memory.offset() % atom == 0));
            fixture.free_all(all);
        }
    });
}

#[test]
fn a_flushed_range_is_rounded_outwards() {
    on_every_gpu(|fixture| {
        let atom = fixture.profile().limits.non_coherent_atom_size;
        for memory_type in fixture.types_with(HOST_VISIBLE, HOST_COHERENT | PROTECTED) {
            let memory = fixture.memory(4 * atom, 1, &in_type_with(memory_type, Flags::MAPPED)).unwrap();
            let start = memory.mapped_pointer().unwrap().cast::<u8>();
            // The two bytes are the last of one atom and the first of the next.
            let at = 2 * atom - 1;
            let two = start.as_ptr().wrapping_add(at as usize);
            // SAFETY: both bytes are inside the allocation, which is mapped.
            unsafe { two.write_bytes(7, 2) };
            fixture.allocator.flush(&memory, at, 2).unwrap();
            // The simulated driver rejects ranges that are not whole atoms.
            fixture.gpu.assert_silent();
            let seen = fixture.read_memory(memory.memory(), memory.offset() + at, 2).unwrap();
            assert_eq!(seen, [7, 7]);
            fixture.free(memory);
        }
    });
}

#[test]
fn blocks_double_up_to_the_preferred_size() {
    on_every_profile(|profile| {
        let fixture =
            Fixture::with(Gpu::new(profile), &Options { large_block: 4 * MIB, ..Options::default() });
        for memory_type in fixture.types_with(NONE, PROTECTED | LAZY) {
            if fixture.heap_size(memory_type) <= GIB {
                continue;
            }
            fixture.gpu.log_allocations(true);
            let all: Vec<_> =
                (0..80).map(|_| fixture.memory(128 * KIB, 1, &in_type(memory_type)).unwrap()).collect();
            let sizes: Vec<_> = fixture.gpu.take_log().iter().map(|call| call.asked.size).collect();
            assert_eq!(sizes[..4], [MIB / 2, MIB, 2 * MIB, 4 * MIB]);
            assert!(sizes[4..].iter().all(|&size| size == 4 * MIB) && sizes.len() > 4);
            fixture.free_all(all);
        }
    });
}

#[test]
fn half_a_block_is_the_most_that_is_shared() {
    on_every_profile(|profile| {
        let fixture =
            Fixture::with(Gpu::new(profile), &Options { large_block: 4 * MIB, ..Options::default() });
        for memory_type in fixture.types_with(NONE, PROTECTED | LAZY) {
            let half = if fixture.heap_size(memory_type) <= GIB {
                fixture.block_size(memory_type) / 2
            } else {
                2 * MIB
            };
            let shared = fixture.memory(half, 1, &in_type(memory_type)).unwrap();
            let alone = fixture.memory(half + 1, 1, &in_type(memory_type)).unwrap();
            assert_eq!((shared.is_dedicated(), alone.is_dedicated()), (false, true));
            fixture.free_all([shared, alone]);
            fixture.allocator.trim();
        }
    });
}

#[test]
fn within_the_budget_without_being_dedicated() {
    on_every_profile(|profile| {
        let gpu = Gpu::new(profile);
        let fixture = Fixture::with(
            Gpu::new(profile),
            &Options { large_block: 64 * MIB, ..Options::without_budget(&gpu) },
        );
        let memory_type = fixture.types()[0];
        let budget = fixture.heap_size(memory_type) / 5 * 4;
        let info = in_type_with(memory_type, Flags::WITHIN_BUDGET);
        let piece = fixture.heap_size(memory_type) / 100;
        let mut all = Vec::new();
        let error = loop {
            match fixture.memory(piece, 1, &info) {
                Ok(memory) => all.push(memory),
                Err(error) => break error,
            }
            assert!(all.len() < 100, "the budget was passed");
        };
        assert!(matches!(error, AllocationError::Memory(MemoryError::OverBudget { .. })), "{error:?}");
        assert!(fixture.gpu.live().memory_bytes_by_heap[fixture.heap_of(memory_type) as usize] <= budget);
        assert!(all.len() > 40);
        // A request without `WITHIN_BUDGET` succeeds.
        all.push(fixture.memory(piece, 1, &in_type(memory_type)).unwrap());
        fixture.free_all(all);
    });
}

#[test]
fn the_lowest_of_several_holes() {
    on_every_gpu(|fixture| {
        let pool_info = PoolCreateInfo {
            block_size: MIB,
            max_block_count: 1,
            flags: PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY,
            ..PoolCreateInfo::new(0)
        };
        let pool = fixture.pool(&pool_info).unwrap();
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        let mut all: Vec<_> =
            (0..16).map(|_| Some(fixture.memory(64 * KIB, 64 * KIB, &in_pool).unwrap())).collect();
        all.sort_by_key(|memory| memory.as_ref().map(sublet::Allocation::offset));
        // The order of the frees is mixed, so that it cannot determine the result.
        for at in [9, 3, 12, 5, 14] {
            fixture.free(all[at].take().unwrap());
        }
        let lowest = AllocationCreateInfo { flags: Flags::STRATEGY_MIN_OFFSET, ..in_pool };
        let mut found = Vec::new();
        for expected in [3, 5, 9, 12, 14] {
            let memory = fixture.memory(64 * KIB, 1, &lowest).unwrap();
            assert_eq!(memory.offset(), expected * 64 * KIB);
            found.push(memory);
        }
        fixture.free_all(all.into_iter().flatten().chain(found));
        fixture.destroy_pool(pool);
    });
}

#[test]
fn the_driver_is_not_asked_for_more_than_a_heap() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types() {
            let heap_size = fixture.heap_size(memory_type);
            for flags in [Flags::empty(), Flags::DEDICATED_MEMORY] {
                let error = fixture.memory(heap_size + 1, 1, &in_type_with(memory_type, flags)).unwrap_err();
                let AllocationError::Memory(MemoryError::HeapTooSmall { size, .. }) = error else {
                    panic!("{error:?}");
                };
                assert_eq!(size, heap_size + 1);
                assert_eq!(error.vk_result(), vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
            }
        }
        assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 0);
    });
}

/// Returns the properties of the memory type that a buffer would use.
fn properties_for(
    fixture: &Fixture,
    usage: vk::BufferUsageFlags,
    info: &AllocationCreateInfo<'_>,
) -> vk::MemoryPropertyFlags {
    let buffer_info = vk::BufferCreateInfo::default().size(64).usage(usage);
    // SAFETY: the create-info is valid.
    let found = unsafe { fixture.allocator.find_memory_type_index_for_buffer_info(&buffer_info, info) };
    fixture.properties(found.unwrap())
}

/// Returns the properties of each memory type that a buffer supports.
fn possible(fixture: &Fixture, usage: vk::BufferUsageFlags) -> Vec<vk::MemoryPropertyFlags> {
    let buffer_info = vk::BufferCreateInfo::default().size(64).usage(usage);
    // SAFETY: the create-info is valid.
    let buffer = unsafe { fixture.gpu.device().create_buffer(&buffer_info, None) }.unwrap();
    // SAFETY: the buffer is live.
    let bits = unsafe { fixture.gpu.device().get_buffer_memory_requirements(buffer) }.memory_type_bits;
    // SAFETY: the device does not use it.
    unsafe { fixture.gpu.device().destroy_buffer(buffer, None) };
    let fits = fixture.types().into_iter().filter(|memory_type| bits & (1 << memory_type) != 0);
    fits.map(|memory_type| fixture.properties(memory_type)).collect()
}

#[test]
fn a_preferred_property_is_had_where_it_is_to_be_had() {
    let tried = Mutex::new(0);
    on_every_gpu(|fixture| {
        for property in [DEVICE_LOCAL, HOST_VISIBLE, HOST_COHERENT, HOST_CACHED] {
            let there = possible(&fixture, STORAGE).iter().any(|it| it.contains(property));
            let plain = properties_for(&fixture, STORAGE, &AllocationCreateInfo::default());
            let info = AllocationCreateInfo { preferred_flags: property, ..Default::default() };
            assert_eq!(properties_for(&fixture, STORAGE, &info).contains(property), there);
            *tried.lock().unwrap() += u32::from(there && !plain.contains(property));
        }
    });
    assert!(*tried.lock().unwrap() > 10, "without the preference it would have been another type");
}

#[test]
fn an_unwelcome_property_is_avoided_where_it_can_be() {
    let tried = Mutex::new(0);
    on_every_gpu(|fixture| {
        let types = possible(&fixture, STORAGE);
        // `CpuCopy` prefers memory that is not device-local.
        let outside = types.iter().any(|it| !it.contains(DEVICE_LOCAL));
        let chosen = properties_for(&fixture, STORAGE, &AllocationCreateInfo::new(MemoryUsage::CpuCopy));
        assert_eq!(chosen.contains(DEVICE_LOCAL), !outside);
        *tried.lock().unwrap() += u32::from(outside && types.iter().any(|it| it.contains(DEVICE_LOCAL)));
        // Sequential writes avoid cached memory if another type with the same device locality exists.
        let write = with_flags(MemoryUsage::AutoPreferHost, Flags::HOST_ACCESS_SEQUENTIAL_WRITE);
        let chosen = properties_for(&fixture, STORAGE, &write);
        let as_near = |it: &&vk::MemoryPropertyFlags| {
            it.contains(HOST_VISIBLE) && it.contains(DEVICE_LOCAL) == chosen.contains(DEVICE_LOCAL)
        };
        let uncached = types.iter().filter(as_near).any(|it| !it.contains(HOST_CACHED));
        assert_eq!(chosen.contains(HOST_CACHED), !uncached);
    });
    assert!(*tried.lock().unwrap() > 3);
}

#[test]
fn host_memory_if_there_is_a_choice() {
    let tried = Mutex::new(0);
    on_every_gpu(|fixture| {
        let types = possible(&fixture, STORAGE);
        let outside = types.iter().any(|it| !it.contains(DEVICE_LOCAL));
        let chosen =
            properties_for(&fixture, STORAGE, &AllocationCreateInfo::new(MemoryUsage::AutoPreferHost));
        assert_eq!(chosen.contains(DEVICE_LOCAL), !outside);
        let plain = properties_for(&fixture, STORAGE, &AllocationCreateInfo::new(MemoryUsage::Auto));
        assert_eq!(plain.contains(DEVICE_LOCAL), types.iter().any(|it| it.contains(DEVICE_LOCAL)));
        *tried.lock().unwrap() += u32::from(chosen != plain);
    });
    assert!(*tried.lock().unwrap() > 3);
}

#[test]
fn device_memory_if_there_is_a_choice() {
    let tried = Mutex::new(0);
    on_every_gpu(|fixture| {
        let staging = vk::BufferUsageFlags::TRANSFER_SRC;
        let types = possible(&fixture, staging);
        let write = |usage| with_flags(usage, Flags::HOST_ACCESS_SEQUENTIAL_WRITE);
        let near =
            types.iter().any(|it| it.contains(DEVICE_LOCAL | HOST_VISIBLE) && !it.contains(HOST_CACHED));
        let chosen = properties_for(&fixture, staging, &write(MemoryUsage::AutoPreferDevice));
        assert!(chosen.contains(HOST_VISIBLE));
        assert!(chosen.contains(DEVICE_LOCAL) || !near);
        let plain = properties_for(&fixture, staging, &write(MemoryUsage::Auto));
        let far =
            types.iter().any(|it| it.contains(HOST_VISIBLE) && !it.intersects(DEVICE_LOCAL | HOST_CACHED));
        assert!(!plain.contains(DEVICE_LOCAL) || !far);
        *tried.lock().unwrap() += u32::from(near && far && chosen != plain);
    });
    assert!(*tried.lock().unwrap() > 1);
}

#[test]
fn the_driver_is_never_asked() {
    on_every_gpu(|fixture| {
        let never = in_type_with(0, Flags::NEVER_ALLOCATE);
        fixture.memory(KIB, 1, &never).unwrap_err();
        assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 0);
        let first = fixture.memory(KIB, 1, &in_type(0)).unwrap();
        let mut all = vec![first];
        let piece = fixture.memory_size(&all[0]) / 8;
        while let Ok(memory) = fixture.memory(piece, 1, &never) {
            all.push(memory);
        }
        assert!(all.len() > 6);
        let large = fixture.block_size(0) / 2 + 1;
        fixture.memory(large, 1, &never).unwrap_err();
        assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 1);
        fixture.free_all(all);
    });
}

#[test]
fn nothing_is_bound_that_was_not_to_be() {
    on_every_gpu(|fixture| {
        let info = with_flags(MemoryUsage::Auto, Flags::DONT_BIND);
        let (buffer, memory) = fixture.buffer(KIB, STORAGE, &info).unwrap();
        let (image, image_memory) = fixture.image(&square(4, vk::ImageUsageFlags::SAMPLED), &info).unwrap();
        assert_eq!((fixture.gpu.calls("vkBindBufferMemory"), fixture.gpu.calls("vkBindImageMemory")), (0, 0));
        // SAFETY: the memory was allocated for the buffer, which is not bound.
        unsafe { fixture.allocator.bind_buffer_memory(&memory, 0, buffer) }.unwrap();
        // SAFETY: the memory was allocated for the image, which is not bound.
        unsafe { fixture.allocator.bind_image_memory(&image_memory, 0, image) }.unwrap();
        fixture.destroy_buffer((buffer, memory));
        fixture.destroy_image((image, image_memory));
    });
}

#[test]
fn memory_has_an_address_where_it_needs_one() {
    on_profiles(having(|profile| profile.features.buffer_device_address), |profile| {
        let address = vk::MemoryAllocateFlags::DEVICE_ADDRESS.as_raw();
        for enabled_flag in [true, false] {
            let gpu = Gpu::new(profile);
            let without = AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS;
            let flags = if enabled_flag { enabled(&gpu) } else { enabled(&gpu) - without };
            let fixture = Fixture::with(gpu, &Options { flags: Some(flags), ..Options::default() });
            fixture.gpu.log_allocations(true);
            let expected = if enabled_flag { address } else { 0 };
            let memory = fixture.memory(KIB, 1, &AllocationCreateInfo::default()).unwrap();
            assert_eq!(last_call(&fixture.gpu).asked.flags, expected, "a block may hold such a buffer");
            fixture.free(memory);
            let alone = with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY);
            let plain = fixture.buffer(KIB, STORAGE, &alone).unwrap();
            assert_eq!(last_call(&fixture.gpu).asked.flags, 0, "this one needs none");
            fixture.destroy_buffer(plain);
            let image = fixture.image(&square(4, vk::ImageUsageFlags::SAMPLED), &alone).unwrap();
            assert_eq!(last_call(&fixture.gpu).asked.flags, 0, "images have none");
            fixture.destroy_image(image);
            if enabled_flag {
                let usage = STORAGE | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
                let addressed = fixture.buffer(KIB, usage, &alone).unwrap();
                assert_eq!(last_call(&fixture.gpu).asked.flags, address);
                fixture.destroy_buffer(addressed);
            }
        }
    });
}

#[test]
fn the_driver_is_told_what_memory_is_dedicated_to() {
    on_every_gpu(|fixture| {
        fixture.gpu.log_allocations(true);
        let told = fixture.gpu.extensions().contains(&"VK_KHR_dedicated_allocation".to_owned());
        for can_alias in [false, true] {
            let alias = if can_alias { Flags::CAN_ALIAS } else { Flags::empty() };
            let alone = with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY | alias);
            let buffer = fixture.buffer(KIB, STORAGE, &alone).unwrap();
            let asked = last_call(&fixture.gpu).asked;
            let expected = if told && !can_alias { buffer.0 } else { vk::Buffer::null() };
            assert_eq!((asked.dedicated_buffer, asked.dedicated_image), (expected, vk::Image::null()));
            fixture.destroy_buffer(buffer);
            let image = fixture.image(&square(64, vk::ImageUsageFlags::SAMPLED), &alone).unwrap();
            let asked = last_call(&fixture.gpu).asked;
            let expected = if told && !can_alias { image.0 } else { vk::Image::null() };
            assert_eq!((asked.dedicated_buffer, asked.dedicated_image), (vk::Buffer::null(), expected));
            fixture.destroy_image(image);
        }
        let block = fixture.memory(KIB, 1, &AllocationCreateInfo::default()).unwrap();
        assert_eq!(last_call(&fixture.gpu).asked.dedicated_kind(), vk::ObjectType::UNKNOWN);
        fixture.free(block);
    });
}

#[test]
fn both_callbacks_are_called_for_both_kinds_of_memory() {
    let counts = Arc::new(Mutex::new((0, 0)));
    let counted = Arc::clone(&counts);
    let gpu = Gpu::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let info = AllocatorCreateInfo {
        device_memory_callbacks: Some(DeviceMemoryCallbacks::new(move |event| {
            let (allocated, freeing) = &mut *counted.lock().unwrap();
            match event {
                DeviceMemoryEvent::Allocated { .. } => *allocated += 1,
                DeviceMemoryEvent::Freeing { .. } => *freeing += 1,
                _ => panic!("{event:?}"),
            }
        })),
        ..create_info(&gpu)
    };
    let fixture = hold(Fixture { allocator: new_allocator(&info).unwrap(), gpu });
    let block = fixture.memory(KIB, 1, &AllocationCreateInfo::default()).unwrap();
    assert_eq!(*counts.lock().unwrap(), (1, 0));
    let alone = fixture.memory(KIB, 1, &in_type_with(0, Flags::DEDICATED_MEMORY)).unwrap();
    assert_eq!(*counts.lock().unwrap(), (2, 0));
    fixture.free_all([block, alone]);
    fixture.allocator.trim();
    assert_eq!(*counts.lock().unwrap(), (2, 2));
}

#[test]
fn nothing_is_created_of_no_size() {
    on_every_gpu(|fixture| {
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let error = fixture.buffer(0, STORAGE, &auto).unwrap_err();
        assert_eq!(error, CreateError::ZeroExtent);
        assert_eq!(error.vk_result(), vk::Result::ERROR_INITIALIZATION_FAILED);
        assert_eq!(fixture.memory(0, 1, &in_type(0)).unwrap_err(), AllocationError::ZeroSize);
        assert_eq!((fixture.gpu.calls("vkCreateBuffer"), fixture.gpu.calls("vkAllocateMemory")), (0, 0));
    });
}

#[test]
fn each_page_has_its_own_requirements() {
    on_every_gpu(|fixture| {
        let types = fixture.types_with(NONE, PROTECTED | LAZY);
        let requirements: Vec<_> = (0..12)
            .map(|at| vk::MemoryRequirements {
                size: (at + 1) * KIB,
                alignment: 1 << (at % 8 + 4),
                memory_type_bits: 1 << types[at as usize % types.len()],
            })
            .collect();
        let pages =
            fixture.allocator.allocate_memory_pages(&requirements, &[AllocationCreateInfo::default()]);
        let pages = pages.unwrap();
        assert_eq!(pages.len(), 12);
        for (page, wanted) in pages.iter().zip(&requirements) {
            assert_eq!((page.size(), page.offset() % wanted.alignment), (wanted.size, 0));
            assert_eq!(1 << page.memory_type_index(), wanted.memory_type_bits);
        }
        fixture.free_all(pages);
        // The same with one create-info per element.
        let infos: Vec<_> =
            (0..12).map(|user_data| AllocationCreateInfo { user_data, ..Default::default() }).collect();
        let pages = fixture.allocator.allocate_memory_pages(&requirements, &infos).unwrap();
        assert!(pages.iter().zip(0..).all(|(page, at)| page.user_data() == at));
        fixture.free_all(pages);
    });
}

#[test]
fn the_drivers_own_word_is_kept() {
    on_every_gpu(|fixture| {
        for result in [
            vk::Result::ERROR_DEVICE_LOST,
            vk::Result::ERROR_OUT_OF_HOST_MEMORY,
            vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
            vk::Result::ERROR_TOO_MANY_OBJECTS,
            vk::Result::ERROR_INVALID_EXTERNAL_HANDLE,
        ] {
            for flags in [Flags::empty(), Flags::DEDICATED_MEMORY] {
                fixture.gpu.faults().fail_always("vkAllocateMemory", result);
                let error = fixture.memory(KIB, 1, &in_type_with(0, flags)).unwrap_err();
                assert_eq!(driver_result(&error), Some(result));
                assert_eq!(error.vk_result(), result);
                let made = fixture.buffer(KIB, STORAGE, &with_flags(MemoryUsage::Auto, flags)).unwrap_err();
                assert_eq!((driver_result(&made), made.vk_result()), (Some(result), result));
                fixture.gpu.faults().clear();
            }
        }
    });
}

#[test]
fn near_the_budget_small_allocations_share_blocks() {
    on_profiles(having(|profile| profile.features.memory_budget), |profile| {
        let fixture = Fixture::new(profile);
        let memory_type = fixture.types()[0];
        let heap = fixture.heap_of(memory_type);
        // Other processes use the whole budget, and the allocator has read it.
        fixture.gpu.faults().set_budget(heap, 64 * MIB, 64 * MIB);
        fixture.allocator.set_current_frame_index(1);
        fixture.gpu.reset_calls();
        let all: Vec<_> =
            (0..64).map(|_| fixture.memory(4 * KIB, 1, &in_type(memory_type)).unwrap()).collect();
        assert!(fixture.gpu.calls("vkAllocateMemory") <= 4, "{}", fixture.gpu.calls("vkAllocateMemory"));
        assert!(all.iter().all(|memory| !memory.is_dedicated()));
        // The blocks are small.
        assert!(all.iter().all(|memory| fixture.memory_size(memory) <= fixture.block_size(memory_type) / 64));
        fixture.free_all(all);
    });
}
