//! Materials that are created and dropped while frames are in flight. Each is a few consecutive descriptors, which
//! shaders address by one number. The heap is a descriptor buffer, one set, or one set copy per frame, whichever suits
//! the device best. The program is the same for all three.
//!
//! `cargo run --release -p sublet-shader-examples --example descriptor_heap`

use std::collections::VecDeque;
use std::process::ExitCode;

use ash::vk;
use sublet::retire::Clock;
use sublet::{AllocationCreateInfo, Allocator, MemoryUsage};
use sublet_descriptors::{
    BindlessHeap, BindlessHeapCreateInfo, BindlessKind, BufferDescriptor, Descriptor, DescriptorDevice,
    DescriptorFeatures, DescriptorKind, HeapCreateInfo, HeapKind, OwnedRange, SlotState,
};
use sublet_examples::{Context, Frames, Result, Table, note};

const IN_FLIGHT: u32 = 3;
/// Few, so that the table below shows all of them.
const SLOTS: u32 = 24;
/// Bytes per descriptor.
const PIECE: u64 = 256;

fn main() -> ExitCode {
    sublet_examples::run(heaps)
}

fn heaps(context: &Context) -> Result<()> {
    // SAFETY: the context created instance and device, enabled what it reports, and outlives everything created here.
    let allocator = unsafe { Allocator::new(&context.allocator_info()) }?;
    // SAFETY: as above.
    let device = unsafe { DescriptorDevice::new(&context.descriptor_info()) }?;

    let mut usage = vk::BufferUsageFlags::STORAGE_BUFFER;
    let has_addresses = device.features().contains(DescriptorFeatures::BUFFER_DEVICE_ADDRESS);
    if has_addresses {
        usage |= vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    }
    let info = vk::BufferCreateInfo::default().size(PIECE * u64::from(SLOTS)).usage(usage);
    // SAFETY: the create-info is valid.
    let (buffer, memory) =
        unsafe { allocator.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
    let address = has_addresses.then(|| {
        let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
        // SAFETY: the buffer is live, was made for it, and the feature is enabled.
        unsafe { context.device().get_buffer_device_address(&info) }
    });
    let piece = |at: u32| {
        let piece = BufferDescriptor::new(buffer, PIECE * u64::from(at % SLOTS), PIECE);
        Descriptor::StorageBuffer(address.map_or(piece, |address| piece.with_buffer_address(address)))
    };

    let info = BindlessHeapCreateInfo::new(HeapKind::Resource);
    let info = BindlessHeapCreateInfo {
        heap: HeapCreateInfo {
            slots: SLOTS,
            types: &[DescriptorKind::StorageBuffer],
            name: "materials",
            ..info.heap
        },
        frames: IN_FLIGHT,
        defaults: &[piece(0)],
    };
    // SAFETY: the buffer outlives the heap.
    let heap = unsafe { BindlessHeap::create(&device, &allocator, &info) }?;
    note(match heap.kind() {
        BindlessKind::Buffer => "The heap is a descriptor buffer.",
        BindlessKind::Set => "The heap is one set, which is written while it is bound.",
        _ => "The heap is a copy of a set for each frame in flight.",
    });
    stream(context, &heap, piece)?;
    // SAFETY: `stream` has waited for the device.
    unsafe { heap.destroy() };
    // SAFETY: the device is idle.
    unsafe { allocator.destroy_buffer(buffer, memory) }?;
    let leaks = allocator.destroy();
    if leaks.is_empty() { Ok(()) } else { Err(format!("forgotten: {leaks:?}").into()) }
}

type Heap<'a> = BindlessHeap<&'a Allocator>;

/// Each frame creates a material of 1 to 5 descriptors, and drops it four frames later.
fn stream(context: &Context, heap: &Heap<'_>, piece: impl Fn(u32) -> Descriptor) -> Result<()> {
    let clock = Clock::new();
    let timeline = clock.add_timeline()?;
    let mut frames = Frames::new(context, IN_FLIGHT)?;
    let mut alive = VecDeque::new();
    let mut table = Table::new(&[">frame", ">descriptors", ">first index", ">largest free", "the heap"]);
    for frame in 0..12 {
        let slot = u32::try_from(frames.wait()?)?;
        let ticket = clock.begin_frame(timeline, slot);
        heap.collect(&clock)?;

        let material = OwnedRange::new(heap, 1 + frame * 3 % 5)?;
        for at in 0..material.count() {
            // SAFETY: the buffer is live, and no shader reads newly allocated slots yet.
            unsafe { heap.write(material.id(), at, &piece(frame + at)) }?;
        }
        table.row([&frame, &material.count(), &material.first(), &heap.largest_free(), &drawing(heap)]);
        alive.push_back(material);
        // SAFETY: the slot's fence was waited for, and the buffer is live.
        unsafe { heap.flush(slot) };
        // A program that draws binds the heap once per command buffer, with `BindlessHeap::cmd_bind`. Shaders get the
        // material's first index in push constants.
        frames.submit(|_, _| ())?;
        if alive.len() > 3 {
            // The owner drops the material. Its slots are reused when the device has completed this frame.
            drop(alive.pop_front());
        }
        // SAFETY: no later recording uses ranges that are dropped by now.
        unsafe { heap.retire_dropped(ticket) };
        clock.end_frame(ticket)?;
    }
    table.print();
    note("#: alive, -: waits for the device, .: free.");
    frames.wait_for_all()
}

fn drawing(heap: &Heap<'_>) -> String {
    let mut line = String::new();
    heap.walk(|run| {
        let signs = [(SlotState::Free, "."), (SlotState::Live, "#")];
        let sign = signs.iter().find(|(state, _)| *state == run.state).map_or("-", |&(_, sign)| sign);
        line += &sign.repeat(usize::try_from(run.count).unwrap_or(0));
    });
    line
}
