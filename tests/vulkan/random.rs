//! Long programs: many operations in any order, and many threads at once.

use ash::vk;
use sublet::{AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};
use sublet_examples::Random;

use crate::{Buffer, Fixture, Image, on_each_device};

const OPERATIONS: u32 = 10_000;

/// A live resource of a random program.
enum Live {
    /// Mapped, with the number in its first bytes.
    Host(Buffer, u64),
    Device(Buffer),
    Image(Image),
}

#[test]
fn ten_thousand_random_operations() {
    on_each_device(|fixture| {
        let mut random = Random::new(6);
        let mut live = Vec::new();
        for number in 0..u64::from(OPERATIONS) {
            // The count grows and shrinks in waves, so that blocks come and go.
            let growing = (number / 1_000) % 2 == 0;
            if live.is_empty() || (random.within(0..100) < if growing { 60 } else { 40 } && live.len() < 400)
            {
                live.push(create(fixture, &mut random, number));
            } else {
                destroy(fixture, live.swap_remove(random.index(live.len())));
            }
            match number % 1_000 {
                250 => fixture.allocator.validate(),
                500 => fixture.allocator.set_current_frame_index(number as u32),
                750 => drop(fixture.allocator.trim()),
                _ => {}
            }
        }
        fixture.allocator.validate();
        let count: u64 =
            fixture.allocator.memory_type_statistics().iter().map(|all| all.allocation_count).sum();
        assert_eq!(count, live.len() as u64);
        live.into_iter().for_each(|it| destroy(fixture, it));
    });
}

fn create(fixture: &Fixture<'_>, random: &mut Random, number: u64) -> Live {
    let size = match random.within(0..10) {
        0 => random.within(16..2_000_000),
        1..4 => random.within(16..100_000),
        _ => random.within(16..4_000),
    };
    let strategies =
        [Flags::empty(), Flags::STRATEGY_MIN_MEMORY, Flags::STRATEGY_MIN_TIME, Flags::STRATEGY_MIN_OFFSET];
    let strategy = strategies[random.index(strategies.len())];
    let dedicated = if random.within(0..50) == 0 { Flags::DEDICATED_MEMORY } else { Flags::empty() };
    let info = |flags| AllocationCreateInfo {
        flags: strategy | dedicated | flags,
        min_alignment: 1 << random_bits(number),
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    match random.within(0..6) {
        0 => Live::Image(
            fixture.image(&crate::resources::plain(8 << random.within(0..6)), &info(Flags::empty())),
        ),
        1..4 => {
            let mut buffer = fixture.buffer(
                size,
                vk::BufferUsageFlags::UNIFORM_BUFFER,
                &info(Flags::HOST_ACCESS_RANDOM | Flags::MAPPED),
            );
            // Both ends are marked. The size is at least that of two marks.
            fixture.allocator.copy_to_allocation(&number.to_le_bytes(), &mut buffer.1, 0).unwrap();
            fixture.allocator.copy_to_allocation(&number.to_le_bytes(), &mut buffer.1, size - 8).unwrap();
            buffer.1.set_user_data(size);
            Live::Host(buffer, number)
        }
        _ => Live::Device(fixture.buffer(size, vk::BufferUsageFlags::VERTEX_BUFFER, &info(Flags::empty()))),
    }
}

/// Returns an alignment exponent from 0 to 11 that depends on the number.
fn random_bits(number: u64) -> u32 {
    (number % 12) as u32
}

fn destroy(fixture: &Fixture<'_>, live: Live) {
    match live {
        Live::Host(buffer, number) => {
            let mut back = [0; 8];
            for offset in [0, buffer.1.user_data() - 8] {
                fixture.allocator.copy_from_allocation(&buffer.1, offset, &mut back).unwrap();
                assert_eq!(u64::from_le_bytes(back), number, "somebody else wrote here");
            }
            fixture.destroy(buffer);
        }
        Live::Device(buffer) => fixture.destroy(buffer),
        Live::Image(image) => fixture.destroy_image(image),
    }
}

#[test]
fn four_threads() {
    on_each_device(|fixture| {
        let allocator = fixture.allocator;
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                scope.spawn(move || {
                    let mut random = Random::new(thread);
                    let mut live: Vec<(Buffer, u64)> = Vec::new();
                    for number in 0..500 {
                        if live.len() < 20 || random.within(0..2) == 0 {
                            let size = random.within(16..60_000);
                            let buffer_info = vk::BufferCreateInfo::default()
                                .size(size)
                                .usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
                            let info = AllocationCreateInfo {
                                flags: Flags::HOST_ACCESS_RANDOM,
                                ..AllocationCreateInfo::new(MemoryUsage::Auto)
                            };
                            // SAFETY: the create-info is valid.
                            let (buffer, mut allocation) =
                                unsafe { allocator.create_buffer(&buffer_info, &info) }.unwrap();
                            let mark = thread << 32 | number;
                            allocator.copy_to_allocation(&mark.to_le_bytes(), &mut allocation, 0).unwrap();
                            live.push(((buffer, allocation), mark));
                        } else {
                            let ((buffer, allocation), mark) = live.swap_remove(random.index(live.len()));
                            let mut back = [0; 8];
                            allocator.copy_from_allocation(&allocation, 0, &mut back).unwrap();
                            assert_eq!(u64::from_le_bytes(back), mark, "another thread wrote here");
                            // SAFETY: the device never used it.
                            unsafe { allocator.destroy_buffer(buffer, allocation) }.unwrap();
                        }
                    }
                    for ((buffer, allocation), _) in live {
                        // SAFETY: the device never used it.
                        unsafe { allocator.destroy_buffer(buffer, allocation) }.unwrap();
                    }
                });
            }
        });
        assert!(fixture.allocator.memory_type_statistics().iter().all(|all| all.allocation_count == 0));
    });
}
