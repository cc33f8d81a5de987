//! Regression tests for faults that the test suite of VMA does not detect. Each was checked by mutation: the test fails
//! if the named part is broken. Most tests are in the file of their subject. Hysteresis of mappings has no test,
//! because mappings stay until `trim`.
//!
//! | broken part | test |
//! |---|---|
//! | conflicts of buffers and images about granularity | [`super::placement::pages_are_not_shared_between_kinds`] |
//! | offsets at multiples of `nonCoherentAtomSize` | [`super::placement::atoms_are_not_shared`] |
//! | rounding of flushed ranges | [`a_flushed_range_is_rounded_outwards`] |
//! | progressive block sizes | [`super::growth::blocks_grow_from_an_eighth_to_the_preferred_size`] |
//! | dedicated above half a block | [`super::dedicated::larger_than_half_a_block`] |
//! | `WITHIN_BUDGET` | [`super::limits::within_the_guessed_budget_on_every_way`] |
//! | `STRATEGY_MIN_OFFSET` | [`super::flags::min_offset_gives_the_lowest_place`] |
//! | a size above the heap's | [`super::limits::more_than_the_heap_has_is_not_asked_for`] |
//! | preferred flags | [`super::memory_type::transient_attachments_are_lazily_allocated`] |
//! | not-preferred flags | the unit tests of `memory_type` |
//! | `AutoPreferHost` | the unit tests of `memory_type` |
//! | `AutoPreferDevice` | the unit tests of `memory_type` |
//! | `NEVER_ALLOCATE` | [`super::limits::never_allocate_takes_only_what_is_there`] |
//! | `DONT_BIND` | [`super::flags::dont_bind_leaves_binding_to_the_program`] |
//! | the device-address flag | [`memory_has_an_address_where_it_needs_one`] |
//! | `VkMemoryDedicatedAllocateInfo` | [`the_driver_learns_what_memory_is_dedicated_to`] |
//! | device memory callbacks | [`super::callbacks::all_memory_is_reported`] |
//! | buffers of zero bytes | [`super::bad_input::sizes_and_alignments`] |
//! | the limit on the number of memories, and the switch that disables it | [`super::debug`], [`super::limits`] |
//! | requirements of each element of a list of pages | [`each_page_has_its_own_requirements`] |
//! | errors of the driver are preserved | [`the_drivers_own_word_is_kept`] |
//! | near the budget, small allocations share blocks | [`super::limits::over_the_budget_small_allocations_share_small_blocks`] |

use ash::vk;
use sublet::sim::{AllocateCall, Gpu};
use sublet::{AllocationCreateFlags as Flags, AllocationCreateInfo, AllocatorCreateFlags, MemoryUsage};

use crate::common::*;

const STORAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::STORAGE_BUFFER;
const NONE: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::empty();

fn last_call(gpu: &Gpu) -> AllocateCall {
    gpu.take_log().pop().unwrap()
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
fn the_driver_learns_what_memory_is_dedicated_to() {
    on_every_gpu(|fixture| {
        fixture.gpu.log_allocations(true);
        let has_extension = fixture.gpu.extensions().contains(&"VK_KHR_dedicated_allocation".to_owned());
        for can_alias in [false, true] {
            let alias = if can_alias { Flags::CAN_ALIAS } else { Flags::empty() };
            let alone = with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY | alias);
            let buffer = fixture.buffer(KIB, STORAGE, &alone).unwrap();
            let asked = last_call(&fixture.gpu).asked;
            let expected = if has_extension && !can_alias { buffer.0 } else { vk::Buffer::null() };
            assert_eq!((asked.dedicated_buffer, asked.dedicated_image), (expected, vk::Image::null()));
            fixture.destroy_buffer(buffer);
            let image = fixture.image(&square(64, vk::ImageUsageFlags::SAMPLED), &alone).unwrap();
            let asked = last_call(&fixture.gpu).asked;
            let expected = if has_extension && !can_alias { image.0 } else { vk::Image::null() };
            assert_eq!((asked.dedicated_buffer, asked.dedicated_image), (vk::Buffer::null(), expected));
            fixture.destroy_image(image);
        }
        let block = fixture.memory(KIB, 1, &AllocationCreateInfo::default()).unwrap();
        assert_eq!(last_call(&fixture.gpu).asked.dedicated_kind(), vk::ObjectType::UNKNOWN);
        fixture.free(block);
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
