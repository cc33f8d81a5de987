//! Sparse buffers with pages from the allocator, many per call.

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::{AllocatePagesError, Allocation, AllocationCreateInfo, CreateError, MemoryUsage};

use crate::common::*;

const PAGE: u64 = 64 * KIB;

fn has_sparse(profile: &Profile) -> bool {
    profile.features.sparse_binding
}

fn sparse(size: u64) -> vk::BufferCreateInfo<'static> {
    vk::BufferCreateInfo::default()
        .flags(vk::BufferCreateFlags::SPARSE_BINDING)
        .size(size)
        .usage(vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::TRANSFER_SRC)
}

fn create(gpu: &Gpu, size: u64) -> (vk::Buffer, vk::MemoryRequirements) {
    // SAFETY: the create-info is valid.
    let buffer = unsafe { gpu.device().create_buffer(&sparse(size), None) }.unwrap();
    // SAFETY: the buffer is live.
    (buffer, unsafe { gpu.device().get_buffer_memory_requirements(buffer) })
}

fn bind(gpu: &Gpu, buffer: vk::Buffer, binds: &[vk::SparseMemoryBind]) -> Result<(), vk::Result> {
    let of_buffer = [vk::SparseBufferMemoryBindInfo::default().buffer(buffer).binds(binds)];
    let info = [vk::BindSparseInfo::default().buffer_binds(&of_buffer)];
    // SAFETY: some binds are invalid on purpose. The simulated driver validates all of them before it binds any.
    unsafe { gpu.device().queue_bind_sparse(gpu.queue(), &info, vk::Fence::null()) }
}

fn page(at: u64, allocation: &Allocation) -> vk::SparseMemoryBind {
    vk::SparseMemoryBind::default()
        .resource_offset(at * PAGE)
        .size(PAGE)
        .memory(allocation.memory())
        .memory_offset(allocation.offset())
}

/// Records commands, submits them and waits until the device is idle.
fn run(gpu: &Gpu, record: impl FnOnce(vk::CommandBuffer)) {
    let device = gpu.device();
    // SAFETY: the queue family exists, and the pool is destroyed in this function.
    let pool = unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    // SAFETY: the pool is live.
    let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap()[0];
    // SAFETY: the command buffer is new.
    unsafe { device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()) }.unwrap();
    record(commands);
    // SAFETY: it is being recorded.
    unsafe { device.end_command_buffer(commands) }.unwrap();
    let commands = [commands];
    let submit = [vk::SubmitInfo::default().command_buffers(&commands)];
    // SAFETY: the command buffer is recorded.
    unsafe { device.queue_submit(gpu.queue(), &submit, vk::Fence::null()) }.unwrap();
    // SAFETY: the device is live.
    unsafe { device.device_wait_idle() }.unwrap();
    // SAFETY: the queue is idle.
    unsafe { device.destroy_command_pool(pool, None) };
}

/// Bytes written to the buffer are in its pages, at any place. A page that is bound elsewhere keeps its bytes.
#[test]
fn a_sparse_buffer_has_its_bytes_in_its_pages() {
    on_profiles(having(has_sparse), |profile| {
        let fixture = Fixture::new(profile);
        let (buffer, requirements) = create(&fixture.gpu, 8 * PAGE - 1);
        assert_eq!((requirements.size, requirements.alignment), (8 * PAGE, PAGE));
        let one = vk::MemoryRequirements { size: PAGE, ..requirements };
        let info = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
        let pages = fixture.allocator.allocate_memory_pages(&[one; 4], &[info]).unwrap();
        // The order of the binds differs from that of the pages' memory.
        let binds = [page(2, &pages[3]), page(0, &pages[1]), page(1, &pages[0])];
        bind(&fixture.gpu, buffer, &binds).unwrap();
        run(&fixture.gpu, |commands| {
            // SAFETY: the range is inside the buffer, and backed.
            unsafe {
                fixture.gpu.device().cmd_fill_buffer(commands, buffer, PAGE - 4, PAGE + 8, 0x0707_0707)
            };
        });
        let byte = |page: usize, at: u64| {
            let memory = pages[page].memory();
            fixture.read_memory(memory, pages[page].offset() + at, 1).unwrap()[0]
        };
        assert_eq!((byte(1, PAGE - 5), byte(1, PAGE - 4), byte(1, PAGE - 1)), (0, 7, 7));
        assert_eq!((byte(0, 0), byte(0, PAGE - 1)), (7, 7));
        assert_eq!((byte(3, 0), byte(3, 3), byte(3, 4)), (7, 7, 0));
        assert_eq!(byte(2, 0), 0, "it is bound nowhere");
        // Replaces the page in the middle and reads it together with its neighbours.
        bind(&fixture.gpu, buffer, &[page(1, &pages[2])]).unwrap();
        let host = with_flags(MemoryUsage::Auto, sublet::AllocationCreateFlags::HOST_ACCESS_RANDOM);
        let target = fixture.buffer(2 * PAGE, vk::BufferUsageFlags::TRANSFER_DST, &host).unwrap();
        run(&fixture.gpu, |commands| {
            let region = [vk::BufferCopy::default().src_offset(PAGE / 2).size(2 * PAGE)];
            // SAFETY: the range is inside the buffers, and backed.
            unsafe { fixture.gpu.device().cmd_copy_buffer(commands, buffer, target.0, &region) };
        });
        let (memory, offset) = (target.1.memory(), target.1.offset());
        let copied = fixture.read_memory(memory, offset, 2 * PAGE as usize).unwrap();
        let half = PAGE as usize / 2;
        assert_eq!((copied[half - 1], copied[half], copied[3 * half - 1], copied[3 * half]), (7, 0, 0, 7));
        fixture.gpu.assert_silent();
        fixture.destroy_buffer(target);
        // SAFETY: the queue is idle.
        unsafe { fixture.gpu.device().destroy_buffer(buffer, None) };
        fixture.free_all(pages);
    });
}

/// Either all pages are allocated, or none.
#[test]
fn pages_that_are_not_to_be_had() {
    on_profiles(having(has_sparse), |profile| {
        let fixture = Fixture::new(profile);
        let (buffer, requirements) = create(&fixture.gpu, GIB);
        let before = fixture.snapshot();
        let one = vk::MemoryRequirements { size: PAGE, ..requirements };
        let wrong = vk::MemoryRequirements { alignment: 3, ..one };
        let info = [AllocationCreateInfo::new(MemoryUsage::GpuOnly)];
        let error = fixture.allocator.allocate_memory_pages(&[one, one, wrong], &info).unwrap_err();
        assert!(matches!(error, AllocatePagesError::Element { index: 2, .. }), "{error:?}");
        fixture.allocator.trim();
        assert_eq!(fixture.snapshot().live, before.live);
        assert!(fixture.allocator.allocate_memory_pages(&[], &info).unwrap().is_empty());
        // SAFETY: the device does not use it.
        unsafe { fixture.gpu.device().destroy_buffer(buffer, None) };
    });
}

/// The simulated driver reports invalid binds and executes none of them.
#[test]
fn binds_that_break_a_rule() {
    on_profiles(having(has_sparse), |profile| {
        let fixture = Fixture::new(profile);
        let gpu = &fixture.gpu;
        let (buffer, requirements) = create(gpu, 4 * PAGE);
        let two = vk::MemoryRequirements { size: 2 * PAGE, ..requirements };
        let info = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
        let memory = fixture.allocator.allocate_memory(&two, &info).unwrap();
        let plain = fixture.buffer(PAGE, vk::BufferUsageFlags::TRANSFER_DST, &info).unwrap();
        let good = page(0, &memory);
        let whole = fixture.memory_size(&memory);
        let cases = [
            (good.size(0), "VUID-VkSparseMemoryBind-size-01098"),
            (good.resource_offset(4 * PAGE), "VUID-VkSparseMemoryBind-resourceOffset-01099"),
            (good.size(5 * PAGE), "VUID-VkSparseMemoryBind-size-01100"),
            (good.resource_offset(PAGE / 2), "SUBLET-sparse-page"),
            (good.size(PAGE / 2), "SUBLET-sparse-page"),
            (good.memory_offset(whole), "VUID-VkSparseMemoryBind-memoryOffset-01101"),
            (good.memory_offset(whole - PAGE / 2), "VUID-VkSparseMemoryBind-size-01102"),
            (good.memory_offset(memory.offset() + 256), "VUID-VkSparseMemoryBind-memory-01096"),
        ];
        let refused = Err(vk::Result::ERROR_VALIDATION_FAILED_EXT);
        for (wrong, vuid) in cases {
            assert_eq!(bind(gpu, buffer, &[good.resource_offset(PAGE), wrong]), refused, "{vuid}");
            let reports = gpu.take_messages();
            assert_eq!(reports.iter().map(|it| it.vuid).collect::<Vec<_>>(), [vuid]);
        }
        assert_eq!(bind(gpu, plain.0, &[good]), refused);
        assert_eq!(gpu.take_messages()[0].vuid, "SUBLET-not-sparse");
        // SAFETY: the call is invalid on purpose, and the simulated driver rejects it.
        let bound = unsafe { fixture.allocator.bind_buffer_memory(&memory, 0, buffer) };
        assert!(bound.is_err());
        assert_eq!(gpu.take_messages()[0].vuid, "VUID-vkBindBufferMemory-buffer-01030");
        // Two pages at the same memory.
        bind(gpu, buffer, &[good, good.resource_offset(PAGE)]).unwrap();
        assert_eq!(gpu.take_messages()[0].vuid, "SUBLET-overlap");
        // Unbinds a page, also in the middle of a larger range.
        bind(gpu, buffer, &[good.size(2 * PAGE)]).unwrap();
        let nothing = vk::DeviceMemory::null();
        bind(gpu, buffer, &[good.resource_offset(PAGE).memory(nothing)]).unwrap();
        run(gpu, |commands| {
            // SAFETY: the range is inside the buffer. One of its pages is unbound on purpose.
            unsafe { gpu.device().cmd_fill_buffer(commands, buffer, 0, 2 * PAGE, 1) };
        });
        assert_eq!(gpu.take_messages()[0].vuid, "SUBLET-transfer-failed");
        // Unbinds the first page, and the rest keeps its memory.
        bind(gpu, buffer, &[good.size(2 * PAGE)]).unwrap();
        bind(gpu, buffer, &[good.memory(nothing)]).unwrap();
        run(gpu, |commands| {
            // SAFETY: the range is inside the buffer, and backed.
            unsafe { gpu.device().cmd_fill_buffer(commands, buffer, PAGE, PAGE, 0x0909_0909) };
        });
        // SAFETY: no other thread uses the memory.
        let byte = |at| unsafe { gpu.read_memory(memory.memory(), memory.offset() + at, 1) }.unwrap()[0];
        assert_eq!((byte(PAGE - 1), byte(PAGE), byte(2 * PAGE - 1)), (0, 9, 9));
        gpu.assert_silent();
        // SAFETY: the queue is idle.
        unsafe { gpu.device().destroy_buffer(buffer, None) };
        fixture.destroy_buffer(plain);
        fixture.free(memory);
    });
}

/// Sparse binds respect the queue's semaphores and fences.
#[test]
fn a_bind_signals_its_fence() {
    on_profiles(having(has_sparse), |profile| {
        let gpu = Gpu::new(profile);
        // SAFETY: the create-info is valid.
        let fence = unsafe { gpu.device().create_fence(&vk::FenceCreateInfo::default(), None) }.unwrap();
        gpu.hold_submissions(true);
        // SAFETY: the fence is new.
        unsafe { gpu.device().queue_bind_sparse(gpu.queue(), &[vk::BindSparseInfo::default()], fence) }
            .unwrap();
        // SAFETY: the fence is live.
        assert!(!unsafe { gpu.device().get_fence_status(fence) }.unwrap());
        gpu.run_pending();
        // SAFETY: the fence is live.
        assert!(unsafe { gpu.device().get_fence_status(fence) }.unwrap());
        // SAFETY: the device does not use it.
        unsafe { gpu.device().destroy_fence(fence, None) };
        assert_eq!(gpu.finish(), []);
    });
}

#[test]
fn sparse_resources_have_no_memory_of_one_piece() {
    on_every_gpu(|fixture| {
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        // SAFETY: the driver is not called.
        let buffer = unsafe { fixture.allocator.create_buffer(&sparse(PAGE), &auto) };
        assert_eq!(buffer.unwrap_err(), CreateError::Sparse);
        let info = square(16, vk::ImageUsageFlags::SAMPLED).flags(vk::ImageCreateFlags::SPARSE_BINDING);
        assert_eq!(fixture.image(&info, &auto).unwrap_err(), CreateError::Sparse);
        assert!(fixture.gpu.call_counts().is_empty(), "{:?}", fixture.gpu.call_counts());
        if !has_sparse(fixture.profile()) {
            // SAFETY: the call is invalid on purpose, and the simulated driver rejects it.
            assert!(unsafe { fixture.gpu.device().create_buffer(&sparse(PAGE), None) }.is_err());
            assert_eq!(fixture.gpu.take_messages()[0].vuid, "VUID-VkBufferCreateInfo-flags-00915");
            assert!(bind(&fixture.gpu, vk::Buffer::null(), &[]).is_err());
            assert_eq!(fixture.gpu.take_messages()[0].vuid, "VUID-vkQueueBindSparse-queuetype");
        }
    });
}
