//! Many threads on one GPU, and many GPUs.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;

fn work(gpu: &Gpu, rounds: u64, seed: u64) {
    let device = gpu.device();
    for round in 0..rounds {
        let buffer = storage(gpu, 256 + round % 7 * 64);
        let needs = needs(gpu, buffer);
        let memory = allocate(gpu, needs.size, needs.memory_type_bits.trailing_zeros());
        unsafe { device.bind_buffer_memory(buffer, memory, 0) }.unwrap();
        let data = map(gpu, memory, 0, vk::WHOLE_SIZE).unwrap().cast::<u64>();
        unsafe { data.write(seed + round) };
        assert_eq!(unsafe { gpu.read_memory(memory, 0, 8) }.unwrap(), (seed + round).to_ne_bytes());
        unsafe { device.destroy_buffer(buffer, None) };
        unsafe { device.free_memory(memory, None) };
    }
}

#[test]
fn one_gpu_many_threads() {
    let gpu = simple();
    let (threads, rounds) = (4, 200);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let gpu = &gpu;
            scope.spawn(move || work(gpu, rounds, thread << 32));
        }
    });
    assert_eq!(gpu.calls("vkAllocateMemory"), threads * rounds);
    assert!(gpu.live().is_empty());
    assert_eq!(gpu.finish(), []);
}

#[test]
fn one_thread_per_gpu() {
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            scope.spawn(move || {
                for _ in 0..10 {
                    let gpu = simple();
                    if thread == 0 {
                        gpu.faults().fail_always("vkCreateImage", vk::Result::ERROR_DEVICE_LOST);
                        unsafe { gpu.device().unmap_memory(vk::DeviceMemory::null()) };
                        assert_eq!(reports(&gpu), ["VUID-vkUnmapMemory-memory-parameter"]);
                    } else {
                        unsafe { gpu.device().destroy_image(image(&gpu, 4), None) };
                    }
                    work(&gpu, 20, thread);
                    assert_eq!(gpu.finish(), []);
                }
            });
        }
    });
}

#[test]
fn a_heap_is_never_overdrawn() {
    let gpu = simple();
    let size = gpu.profile().heaps[0].size / 10;
    let got: u32 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let info = vk::MemoryAllocateInfo::default().allocation_size(size);
                    (0..5)
                        .map(|_| u32::from(unsafe { gpu.device().allocate_memory(&info, None) }.is_ok()))
                        .sum()
                })
            })
            .collect();
        threads.into_iter().map(|thread| -> u32 { thread.join().unwrap() }).sum()
    });
    assert_eq!(got, 10);
}
