//! Sets that the device may still use.

use ash::vk;
use sublet::descriptor::DescriptorSet;
use sublet::retire::Clock;

use crate::common::{Fixture, allocate, free};

/// A user of sets: one command buffer that is submitted repeatedly with another set.
struct Work<'a> {
    fixture: &'a Fixture,
    pipeline_layout: vk::PipelineLayout,
    pool: vk::CommandPool,
    buffer: (vk::Buffer, vk::DeviceMemory),
}

impl<'a> Work<'a> {
    fn new(fixture: &'a Fixture, layout: vk::DescriptorSetLayout) -> Self {
        let device = fixture.gpu.device();
        let layouts = [layout];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
        let pipeline_layout = unsafe { device.create_pipeline_layout(&info, None) }.unwrap();
        let pool =
            unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
        let info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
        let buffer = unsafe { device.create_buffer(&info, None) }.unwrap();
        let needs = unsafe { device.get_buffer_memory_requirements(buffer) };
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(needs.memory_type_bits.trailing_zeros());
        let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
        unsafe { device.bind_buffer_memory(buffer, memory, 0) }.unwrap();
        Self { fixture, pipeline_layout, pool, buffer: (buffer, memory) }
    }

    /// Writes the set. The driver reports this if a pending submission uses the set.
    fn write(&self, set: &DescriptorSet) {
        let info = [vk::DescriptorBufferInfo { buffer: self.buffer.0, offset: 0, range: 256 }];
        let write = vk::WriteDescriptorSet::default()
            .dst_set(set.handle())
            .descriptor_type(vk::DescriptorType::UNIFORM_BUFFER)
            .buffer_info(&info);
        unsafe { self.fixture.gpu.device().update_descriptor_sets(&[write], &[]) };
    }

    fn submit(&self, set: &DescriptorSet) {
        let device = self.fixture.gpu.device();
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap();
        unsafe { device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()) }.unwrap();
        let point = vk::PipelineBindPoint::COMPUTE;
        let sets = [set.handle()];
        unsafe { device.cmd_bind_descriptor_sets(commands[0], point, self.pipeline_layout, 0, &sets, &[]) };
        unsafe { device.end_command_buffer(commands[0]) }.unwrap();
        let info = vk::SubmitInfo::default().command_buffers(&commands);
        unsafe { device.queue_submit(self.fixture.gpu.queue(), &[info], vk::Fence::null()) }.unwrap();
    }

    fn finish(self) {
        let device = self.fixture.gpu.device();
        unsafe { device.device_wait_idle() }.unwrap();
        unsafe { device.destroy_command_pool(self.pool, None) };
        unsafe { device.destroy_pipeline_layout(self.pipeline_layout, None) };
        unsafe { device.destroy_buffer(self.buffer.0, None) };
        unsafe { device.free_memory(self.buffer.1, None) };
    }
}

#[test]
fn a_retired_set_is_given_to_nobody_before_its_submission_is_done() {
    for fixture in Fixture::all() {
        let layout = fixture.uniform();
        let sets = fixture.sets_in_pools_of(4);
        let work = Work::new(&fixture, layout.handle());
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        fixture.gpu.hold_submissions(true);
        // Each frame uses two sets. The oldest of three frames in flight completes.
        for frame in 0..20_u64 {
            let ticket = clock.open(timeline);
            for _ in 0..2 {
                let set = allocate(&sets, &layout);
                work.write(&set);
                work.submit(&set);
                unsafe { sets.retire(ticket, set) }.unwrap();
                sets.validate();
            }
            clock.submit(ticket, frame + 1).unwrap();
            if frame >= 3 {
                // The queue runs in order, so the oldest two submissions belong to the oldest frame.
                fixture.gpu.hold_submissions(false);
                fixture.gpu.hold_submissions(true);
                clock.completed(timeline, frame + 1);
                assert!(sets.collect(&clock).unwrap() > 0);
            } else {
                assert_eq!(sets.collect(&clock), Ok(0));
            }
        }
        fixture.gpu.hold_submissions(false);
        clock.idle();
        sets.collect(&clock).unwrap();
        assert_eq!(sets.statistics().retired_sets, 0);
        work.finish();
    }
}

#[test]
fn a_set_that_is_freed_too_early_would_be_reported() {
    // A precondition of the test above.
    let fixture = Fixture::new();
    let layout = fixture.uniform();
    let sets = fixture.sets_in_pools_of(1);
    let work = Work::new(&fixture, layout.handle());
    fixture.gpu.hold_submissions(true);
    let set = allocate(&sets, &layout);
    work.write(&set);
    work.submit(&set);
    free(&sets, set);
    let same = allocate(&sets, &layout);
    work.write(&same);
    free(&sets, same);
    // Another layout reuses the space, so the driver is called to free the set.
    let other = fixture.uniform();
    free(&sets, allocate(&sets, &other));
    fixture.gpu.hold_submissions(false);
    work.finish();
    let ids: Vec<_> = fixture.gpu.take_messages().iter().map(|message| message.vuid.to_string()).collect();
    assert!(ids.iter().any(|id| id.contains("UpdateDescriptorSets")), "{ids:?}");
    assert!(
        ids.iter().any(|id| {
            id == "VUID-vkResetDescriptorPool-descriptorPool-00313"
                || id == "VUID-vkFreeDescriptorSets-pDescriptorSets-00309"
        }),
        "{ids:?}"
    );
    drop(sets);
    fixture.gpu.take_messages();
}

#[test]
fn a_frame_slot_that_is_never_used_again_keeps_no_set() {
    let (_kit, layout, sets) = Fixture::with_sets();
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let frame = |slot| {
        let ticket = clock.begin_frame(timeline, slot);
        sets.collect(&clock).unwrap();
        unsafe { sets.retire(ticket, allocate(&sets, &layout)) }.unwrap();
        clock.end_frame(ticket).unwrap();
    };
    (0..3).for_each(frame);
    // From here on, two frames are in flight.
    for number in 0..10 {
        frame(number % 2);
    }
    assert!(sets.statistics().retired_sets <= 2, "{:?}", sets.statistics());
}

#[test]
fn tickets_may_be_discarded_and_done_in_any_order() {
    let (_kit, layout, sets) = Fixture::with_sets();
    let clock = Clock::new();
    let (graphics, transfer) = (clock.add_timeline().unwrap(), clock.add_timeline().unwrap());
    let tickets = [clock.open(graphics), clock.open(transfer), clock.open(graphics), clock.open(graphics)];
    let ids = tickets.map(|ticket| {
        let set = allocate(&sets, &layout);
        let id = set.id();
        unsafe { sets.retire(ticket, set) }.unwrap();
        id
    });
    assert!(ids.iter().all(|&id| sets.set(id).is_err()));
    assert_eq!(sets.collect(&clock), Ok(0));
    clock.discard(tickets[2]).unwrap();
    assert_eq!(sets.collect(&clock), Ok(1));
    clock.submit(tickets[3], 1).unwrap();
    clock.submit(tickets[0], 2).unwrap();
    clock.submit(tickets[1], 9).unwrap();
    clock.completed(graphics, 1);
    assert_eq!(sets.collect(&clock), Ok(1), "submitted before one that was opened earlier");
    assert_eq!(sets.statistics().retired_sets, 2);
    clock.completed(transfer, 9);
    clock.completed(graphics, 2);
    assert_eq!(sets.collect(&clock), Ok(2));
    sets.validate();
}

#[test]
fn an_allocator_that_is_destroyed_takes_its_retired_sets_with_it() {
    let (_kit, layout, sets) = Fixture::with_sets();
    let clock = Clock::new();
    let ticket = clock.open(clock.add_timeline().unwrap());
    unsafe { sets.retire(ticket, allocate(&sets, &layout)) }.unwrap();
}

#[test]
fn sets_that_wait_for_another_clock_are_told_of() {
    let (_kit, layout, sets) = Fixture::with_sets();
    let (clock, another) = (Clock::new(), Clock::new());
    let own = clock.open(clock.add_timeline().unwrap());
    let foreign = another.open(another.add_timeline().unwrap());
    for ticket in [own, foreign, foreign] {
        unsafe { sets.retire(ticket, allocate(&sets, &layout)) }.unwrap();
    }
    clock.discard(own).unwrap();
    let told = sublet::retire::OtherClock { ticket: foreign, tickets: 1, collected: 1 };
    assert_eq!(sets.collect(&clock), Err(told));
    assert_eq!(sets.statistics().retired_sets, 2);
    another.discard(foreign).unwrap();
    assert_eq!(sets.collect(&another), Ok(2));
    assert_eq!(sets.collect(&clock), Ok(0));
}

/// Dropping is safe, so it destroys nothing that the device may use.
#[test]
fn an_allocator_that_is_dropped_leaves_pools_with_sets_that_may_be_in_use() {
    let fixture = Fixture::new();
    let layouts =
        [fixture.uniform(), fixture.layout(&[(sublet::descriptor::DescriptorKind::SampledImage, 3)])];
    let third = fixture.layout(&[(sublet::descriptor::DescriptorKind::Sampler, 2)]);
    let pools = || fixture.gpu.live().descriptor_pools;
    let clock = Clock::new();
    let ticket = clock.open(clock.add_timeline().unwrap());
    // One pool has a live set, one has a retired set, and one is empty.
    let sets = fixture.sets();
    let _alive = allocate(&sets, &layouts[0]);
    unsafe { sets.retire(ticket, allocate(&sets, &layouts[1])) }.unwrap();
    free(&sets, allocate(&sets, &third));
    assert_eq!(pools(), 3);
    drop(sets.release());
    assert_eq!(pools(), 2);
    // No set is in use, so all pools are destroyed.
    let sets = fixture.sets();
    let set = allocate(&sets, &layouts[0]);
    unsafe { sets.retire(ticket, set) }.unwrap();
    clock.discard(ticket).unwrap();
    sets.collect(&clock).unwrap();
    drop(sets.release());
    assert_eq!(pools(), 2);
    drop(fixture.release());
}
