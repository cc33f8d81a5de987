//! Frames on queues of several families. Command and queue functions do nothing here.
//!
//! A frame does not allocate host memory after the warm-up: lists, uploads, copies, states, submission and recycling. A
//! submission that fails after a release of another family returns `HalfDone`. Commands that a queue family does not
//! support are rejected.
#![allow(
    clippy::as_conversions,
    clippy::multiple_unsafe_ops_per_block,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    missing_docs,
    reason = "a test; what its unsafe code promises is the test's set-up"
)]

#[allow(unreachable_pub, dead_code, reason = "shared with other binaries")]
#[path = "../../../tests/shared/counting.rs"]
mod counting;

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

use ash::vk::{self, Handle as _};
use counting::count;
use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, sim};
use sublet_frame::{
    Buffer, Features, Frames, FramesCreateInfo, ImageData, ListError, OpenError, QueueInfo, SubmitError,
};

thread_local! {
    /// Number of submissions that the driver accepts before it rejects one.
    static TAKES: Cell<u64> = const { Cell::new(u64::MAX) };
}

unsafe extern "system" fn create_pool(
    _: vk::Device,
    _: *const vk::CommandPoolCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    pool: *mut vk::CommandPool,
) -> vk::Result {
    unsafe { pool.write(vk::CommandPool::from_raw(1)) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn destroy_pool(
    _: vk::Device,
    _: vk::CommandPool,
    _: *const vk::AllocationCallbacks<'_>,
) {
}

unsafe extern "system" fn reset_pool(
    _: vk::Device,
    _: vk::CommandPool,
    _: vk::CommandPoolResetFlags,
) -> vk::Result {
    vk::Result::SUCCESS
}

unsafe extern "system" fn allocate(
    _: vk::Device,
    _: *const vk::CommandBufferAllocateInfo<'_>,
    buffers: *mut vk::CommandBuffer,
) -> vk::Result {
    for at in 0..2 {
        unsafe { buffers.add(at).write(vk::CommandBuffer::from_raw(2)) };
    }
    vk::Result::SUCCESS
}

unsafe extern "system" fn begin(
    _: vk::CommandBuffer,
    _: *const vk::CommandBufferBeginInfo<'_>,
) -> vk::Result {
    vk::Result::SUCCESS
}

unsafe extern "system" fn end(_: vk::CommandBuffer) -> vk::Result {
    vk::Result::SUCCESS
}

unsafe extern "system" fn fill(_: vk::CommandBuffer, _: vk::Buffer, _: u64, _: u64, _: u32) {}

unsafe extern "system" fn copy(
    _: vk::CommandBuffer,
    _: vk::Buffer,
    _: vk::Buffer,
    _: u32,
    _: *const vk::BufferCopy,
) {
}

unsafe extern "system" fn barrier(_: vk::CommandBuffer, _: *const vk::DependencyInfo<'_>) {}

unsafe extern "system" fn submit(
    _: vk::Queue,
    _: u32,
    _: *const vk::SubmitInfo2<'_>,
    _: vk::Fence,
) -> vk::Result {
    let takes = TAKES.get();
    TAKES.set(takes.wrapping_sub(1));
    if takes == 0 { vk::Result::ERROR_OUT_OF_HOST_MEMORY } else { vk::Result::SUCCESS }
}

unsafe extern "system" fn wait(_: vk::Device, _: *const vk::SemaphoreWaitInfo<'_>, _: u64) -> vk::Result {
    vk::Result::SUCCESS
}

/// All submissions are done.
unsafe extern "system" fn counter(_: vk::Device, _: vk::Semaphore, value: *mut u64) -> vk::Result {
    unsafe { value.write(1 << 40) };
    vk::Result::SUCCESS
}

/// Two equal families, and one without graphics.
unsafe extern "system" fn families(
    _: vk::PhysicalDevice,
    count: *mut u32,
    properties: *mut vk::QueueFamilyProperties,
) {
    unsafe { count.write(3) };
    if !properties.is_null() {
        let compute = vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER;
        let family = |queue_flags| vk::QueueFamilyProperties {
            queue_flags,
            queue_count: 1,
            min_image_transfer_granularity: vk::Extent3D { width: 1, height: 1, depth: 1 },
            ..Default::default()
        };
        let both = vk::QueueFlags::GRAPHICS | compute;
        for (at, flags) in [both, both, compute].into_iter().enumerate() {
            unsafe { properties.add(at).write(family(flags)) };
        }
    }
}

fn quiet(name: &CStr) -> Option<*const c_void> {
    macro_rules! typed {
        ($pfn:ident, $function:expr) => {{
            // Callers of this name use this type.
            let typed: vk::$pfn = $function;
            typed as *const c_void
        }};
    }
    Some(match name.to_str().ok()? {
        "vkCreateCommandPool" => typed!(PFN_vkCreateCommandPool, create_pool),
        "vkDestroyCommandPool" => typed!(PFN_vkDestroyCommandPool, destroy_pool),
        "vkResetCommandPool" => typed!(PFN_vkResetCommandPool, reset_pool),
        "vkAllocateCommandBuffers" => typed!(PFN_vkAllocateCommandBuffers, allocate),
        "vkBeginCommandBuffer" => typed!(PFN_vkBeginCommandBuffer, begin),
        "vkEndCommandBuffer" => typed!(PFN_vkEndCommandBuffer, end),
        "vkCmdFillBuffer" => typed!(PFN_vkCmdFillBuffer, fill),
        "vkCmdCopyBuffer" => typed!(PFN_vkCmdCopyBuffer, copy),
        "vkCmdPipelineBarrier2" => typed!(PFN_vkCmdPipelineBarrier2, barrier),
        "vkQueueSubmit2" => typed!(PFN_vkQueueSubmit2, submit),
        "vkWaitSemaphores" => typed!(PFN_vkWaitSemaphores, wait),
        "vkGetPhysicalDeviceQueueFamilyProperties" => {
            typed!(PFN_vkGetPhysicalDeviceQueueFamilyProperties, families)
        }
        "vkGetSemaphoreCounterValue" => typed!(PFN_vkGetSemaphoreCounterValue, counter),
        _ => return None,
    })
}

/// Creates frames on a queue of each family, and buffers.
fn set_up(gpu: &sim::Gpu) -> (Frames, Vec<Buffer>) {
    let get = gpu.instance().fp_v1_0().get_device_proc_addr;
    let real = gpu.device().handle();
    let (get_instance, instance) = (gpu.entry().static_fn().get_instance_proc_addr, gpu.instance().handle());
    let lookup_instance = |name: &CStr| {
        quiet(name).unwrap_or_else(|| {
            let found = unsafe { get_instance(instance, name.as_ptr()) };
            found.map_or(std::ptr::null(), |found| found as *const c_void)
        })
    };
    let instance = unsafe { ash::Instance::load_with(lookup_instance, instance) };
    let lookup = |name: &CStr| {
        quiet(name).unwrap_or_else(|| {
            let found = unsafe { get(real, name.as_ptr()) };
            found.map_or(std::ptr::null(), |found| found as *const c_void)
        })
    };
    let device = unsafe { ash::Device::load_with(lookup, real) };
    let allocator = Arc::new(unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(gpu)) }.unwrap());
    let queues = [0, 1, 2].map(|family| QueueInfo { queue: gpu.queue(), family });
    let info = FramesCreateInfo {
        features: Features { synchronization2: true, timeline_semaphore: true, ..Features::default() },
        ..FramesCreateInfo::new(
            &instance,
            &device,
            gpu.physical_device(),
            vk::API_VERSION_1_3,
            &allocator,
            &queues,
        )
    };
    let frames = unsafe { Frames::new(&info) }.unwrap();
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let info = vk::BufferCreateInfo::default().size(4096).usage(usage);
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    let buffers = (0..8).map(|_| unsafe { frames.create_buffer(&info, &auto) }.unwrap()).collect();
    (frames, buffers)
}

#[test]
fn a_frame_does_not_allocate() {
    let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    let (mut frames, buffers) = set_up(&gpu);
    let region = [vk::BufferCopy { src_offset: 0, dst_offset: 1024, size: 512 }];
    let mut frame = || {
        frames.begin().unwrap();
        for queue in [frames.queue(0), frames.queue(1)] {
            let mut first = frames.list(queue).unwrap();
            let mut second = frames.list(queue).unwrap();
            // The writes of the other family.
            let other = vk::BufferCopy { src_offset: 1024, dst_offset: 2048, size: 512 };
            first.copy_buffer(&buffers[0], &buffers[1], &[other]).unwrap();
            for pair in buffers.windows(2) {
                first.upload(&pair[0], 0, &[1; 512]).unwrap();
                first.copy_buffer(&pair[0], &pair[1], &region).unwrap();
                second.fill_buffer(&pair[1], 64..128, 0).unwrap();
                second.copy_buffer(&pair[1], &pair[0], &region).unwrap();
            }
            frames.submit(queue, [first, second]).unwrap();
        }
        frames.end();
    };
    let before = count();
    for _ in 0..8 {
        frame();
    }
    assert!(count() > before, "the count does not count");
    let before = count();
    for _ in 0..100 {
        frame();
    }
    assert_eq!(count() - before, 0);
    let statistics = frames.statistics();
    assert!(statistics.waits >= 100, "queues wait for one another");
    assert!(statistics.releases >= 100, "families give their buffers away");
}

/// The second family reads a buffer that the first has written, which requires a release and a submission.
#[test]
fn a_submission_rejected_after_a_release_is_half_done() {
    for takes in [0, 1] {
        let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
        let (mut frames, buffers) = set_up(&gpu);
        let (first, second) = (frames.queue(0), frames.queue(1));
        frames.begin().unwrap();
        let mut list = frames.list(first).unwrap();
        list.fill_buffer(&buffers[0], 0..4096, 1).unwrap();
        frames.submit(first, [list]).unwrap();
        let copy = |frames: &Frames| {
            let mut list = frames.list(second).unwrap();
            let region = vk::BufferCopy { src_offset: 0, dst_offset: 0, size: 4096 };
            list.copy_buffer(&buffers[0], &buffers[1], &[region]).unwrap();
            list
        };
        let (list, other) = (copy(&frames), copy(&frames));
        TAKES.set(takes);
        let refused = frames.submit(second, [list]).unwrap_err();
        TAKES.set(u64::MAX);
        if takes == 0 {
            // The release was rejected: nothing has changed.
            assert!(matches!(refused, SubmitError::Driver(_)), "{refused:?}");
            frames.submit(second, [other]).unwrap();
            assert_eq!(frames.statistics().releases, 1);
        } else {
            assert!(matches!(refused, SubmitError::HalfDone(_)), "{refused:?}");
            let closed = frames.submit(second, [other]).unwrap_err();
            assert_eq!(closed, SubmitError::Lost);
            assert_eq!(frames.list(first).unwrap_err(), OpenError::Lost);
            for message in [closed.to_string(), OpenError::Lost.to_string()] {
                assert!(message.contains("`HalfDone`"), "{message}");
            }
        }
        // Earlier work finishes and is recycled.
        frames.wait_idle().unwrap();
        assert_eq!(frames.statistics().in_flight, 0);
        frames.end();
        frames.begin().unwrap();
    }
}

#[test]
fn graphics_commands_are_rejected_on_other_queues() {
    let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    let (frames, buffers) = set_up(&gpu);
    let info = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::D16_UNORM)
        .extent(vk::Extent3D { width: 1, height: 1, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(vk::ImageUsageFlags::TRANSFER_DST);
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    let image = unsafe { frames.create_image(&info, &auto) }.unwrap();
    let depth = ImageData { aspect: vk::ImageAspectFlags::DEPTH, ..ImageData::new(0, 0, &[0; 2]) };
    let mut list = frames.list(frames.queue(2)).unwrap();
    for refused in [
        list.bind_vertex_buffer(0, &buffers[0], 0),
        list.bind_index_buffer(&buffers[0], 0, true),
        list.upload_image(&image, &[depth]),
    ] {
        let needs = vk::QueueFlags::GRAPHICS;
        assert!(matches!(refused, Err(ListError::Queue { needs: n, .. }) if n == needs), "{refused:?}");
    }
}
