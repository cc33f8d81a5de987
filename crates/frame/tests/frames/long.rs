//! After ten thousand frames, a frame costs the same as at the beginning, in countable events.

use std::collections::VecDeque;

use ash::vk;
use sublet::{AllocationCreateInfo, DefragmentationAlgorithm, MemoryUsage, sim};
use sublet_descriptors::BindPoint;
use sublet_frame::track::{Subresources, Use, steps};
use sublet_frame::{
    Buffer, Compactor, CompactorCreateInfo, FrameStatistics, Frames, Image, ImageData, ReadBack,
    StorageAccess, TransientImage,
};

use crate::fixture::{FrameFixture, buffer, image, image_info};
use crate::shaders::Program;

const FRAMES: usize = 10_000;
/// Frames counted together, after a warm-up.
const PERIOD: usize = 1_000;
const STORE: u64 = 1 << 16;
/// Two queues that support everything, and one of the compute family.
const QUEUES: u32 = 3;
const COMPUTE: BindPoint = BindPoint::Compute;

struct World {
    random: fastrand::Rng,
    /// Written and read piece by piece, and as a whole.
    store: Buffer,
    /// Written by the host, then read once by each family.
    given: Vec<Buffer>,
    picture: Image,
    transient: Vec<Image>,
    /// Created in one frame and dropped some frames later, to leave holes.
    passing: VecDeque<(Buffer, Image)>,
    reads: VecDeque<ReadBack>,
    compactor: Compactor,
}

impl World {
    fn new(frames: &Frames) -> Self {
        let info = image_info(vk::Format::R8G8B8A8_UNORM, (8, 8), 1, 1);
        let wanted = [0..=0, 1..=1, 2..=2].map(|steps| TransientImage { info, steps });
        let memory = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
        let info = CompactorCreateInfo {
            algorithm: DefragmentationAlgorithm::Full,
            max_moves_per_frame: 3,
            start_bytes: 0,
            start_heap_usage: 0.0,
            ..CompactorCreateInfo::new(frames.queue(0))
        };
        Self {
            random: fastrand::Rng::with_seed(17),
            store: buffer(frames, STORE),
            given: Vec::new(),
            picture: image(frames, &image_info(vk::Format::R8G8B8A8_UNORM, (8, 8), 3, 2)),
            transient: unsafe { frames.create_transient_images(&wanted, &memory) }.unwrap(),
            passing: VecDeque::new(),
            reads: VecDeque::new(),
            compactor: Compactor::new(info),
        }
    }

    fn piece(&mut self) -> u64 {
        self.random.u64(0..STORE / 64) * 64
    }

    fn frame(&mut self, frames: &mut Frames, program: &Program, number: usize) {
        frames.begin().unwrap();
        if number % 20 == 0 {
            self.compactor.request();
        }
        self.compactor.step(frames).unwrap();
        self.passing.push_back((
            buffer(frames, self.random.u64(1..8) * 512),
            image(frames, &image_info(vk::Format::R8G8B8A8_UNORM, (8, 8), 1, 1)),
        ));
        if self.passing.len() > 6 {
            self.passing.remove(self.random.usize(0..6));
        }
        self.given.clear();
        self.given.push(buffer(frames, 256));
        self.draw(frames, number);
        self.compute(frames, program);
        frames.end();
        while self.reads.len() > 4 {
            let read = self.reads.pop_front().unwrap();
            frames.wait(&read).unwrap();
            read.bytes().unwrap();
        }
    }

    fn draw(&mut self, frames: &Frames, number: usize) {
        let queue = frames.queue(0);
        let (mut first, mut second) = (frames.list(queue).unwrap(), frames.list(queue).unwrap());
        for _ in 0..8 {
            let at = self.piece();
            first.upload(&self.store, at, &[1; 64]).unwrap();
        }
        let (from, to) =
            (self.random.u64(0..STORE / 128) * 64, self.random.u64(STORE / 128..STORE / 64) * 64);
        let (passing, drawn) = self.passing.back().unwrap();
        first.copy_buffer(&self.store, &self.store, &[copy(from, to, 64)]).unwrap();
        first.fill_buffer(passing, 0..512, 7).unwrap();
        first.copy_buffer(passing, &self.store, &[copy(0, from, 64), copy(64, to, 64)]).unwrap();
        first.upload_image(&self.picture, &[ImageData::new(0, 0, &[number as u8; 256])]).unwrap();
        first.generate_mips(&self.picture).unwrap();
        let grey = vk::ClearColorValue { float32: [0.5; 4] };
        let part = Subresources::ALL.mips(self.random.u32(0..3)..3).layers(self.random.u32(0..2)..2);
        unsafe { second.clear_color(&self.picture, &part, grey) }.unwrap();
        unsafe { second.clear_color(drawn, &Subresources::ALL, grey) }.unwrap();
        for at in self.random.usize(0..3)..3 {
            unsafe { second.clear_color(&self.transient[at], &Subresources::ALL, grey) }.unwrap();
        }
        if number % 4 == 0 {
            unsafe { second.use_buffer(&self.store, 0..STORE, Use::VERTICES) }.unwrap();
        }
        unsafe { second.use_buffer(&self.given[0], 0..256, Use::VERTICES) }.unwrap();
        let at = self.random.u64(0..STORE / 64) * 64;
        self.reads.push_back(second.read_buffer(&self.store, at..at + 64).unwrap());
        frames.submit(queue, [first, second]).unwrap();
        // Dropped without a submission.
        drop(frames.list(frames.queue(1)).unwrap());
        let mut other = frames.list(frames.queue(1)).unwrap();
        other.update_buffer(&self.store, at, &[3; 64]).unwrap();
        frames.submit(frames.queue(1), [other]).unwrap();
    }

    /// Records work for the other family.
    fn compute(&mut self, frames: &Frames, program: &Program) {
        let mut list = frames.list(frames.queue(2)).unwrap();
        unsafe { list.bind_pipeline(COMPUTE, program.pipeline, &program.layout) }.unwrap();
        let factor = 3_u32.to_le_bytes();
        unsafe { list.push_constants(COMPUTE, vk::ShaderStageFlags::COMPUTE, 0, &factor) }.unwrap();
        let at = self.random.u64(0..STORE / 512) * 256;
        for step in 0..2_u64 {
            list.bind_constants(COMPUTE, (0, 0), &1_u32).unwrap();
            let (from, to) = (at + step * STORE / 2, at + (1 - step) * STORE / 2);
            list.bind_buffer(COMPUTE, (0, 1, 0), &self.store, from..from + 256, StorageAccess::Read).unwrap();
            list.bind_buffer(COMPUTE, (0, 2, 0), &self.store, to..to + 256, StorageAccess::Write).unwrap();
            unsafe { list.dispatch([1, 1, 1]) }.unwrap();
        }
        let read = Use::storage_read(vk::PipelineStageFlags2::COMPUTE_SHADER);
        unsafe { list.use_buffer(&self.given[0], 0..256, read) }.unwrap();
        frames.submit(frames.queue(2), [list]).unwrap();
    }
}

fn copy(src_offset: u64, dst_offset: u64, size: u64) -> vk::BufferCopy {
    vk::BufferCopy { src_offset, dst_offset, size }
}

/// Counters of a period: tracker steps, frame statistics, and driver calls.
fn counts(fixture: &FrameFixture, before: &FrameStatistics) -> Vec<(&'static str, u64)> {
    let now = fixture.frames.as_ref().unwrap().statistics();
    let calls = fixture.gpu.call_counts().iter().map(|(_, count)| count).sum();
    vec![
        ("steps", steps() as u64),
        ("calls", calls),
        ("barrier calls", now.barrier_calls - before.barrier_calls),
        ("barriers", now.barriers - before.barriers),
        ("preambles", now.preambles - before.preambles),
        ("releases", now.releases - before.releases),
        ("waits", now.waits - before.waits),
        ("pools", now.pools),
        ("contexts", now.contexts),
        ("idle upload memory", now.upload_bytes),
        ("blocks", fixture.allocator.statistics().block_count),
        ("block bytes", fixture.allocator.statistics().block_bytes),
    ]
}

#[test]
fn late_frames_cost_the_same_as_early_ones() {
    let family = vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER;
    let profile = sim::Profile::by_name("lavapipe").unwrap();
    let gpu = sim::Gpu::builder(profile).queues(QUEUES - 1).family(family, 1).build();
    gpu.allow_aliasing(true);
    let mut fixture = FrameFixture::of(gpu, QUEUES);
    let program = Program::new(&fixture, vk::DescriptorType::UNIFORM_BUFFER);
    let mut world = World::new(fixture.frames());
    let mut periods = Vec::new();
    for period in 0..FRAMES / PERIOD {
        fixture.gpu.reset_calls();
        let (before, taken) = (fixture.frames().statistics(), steps() as u64);
        for frame in 0..PERIOD {
            world.frame(fixture.frames(), &program, period * PERIOD + frame);
        }
        let mut counts = counts(&fixture, &before);
        counts[0].1 -= taken;
        periods.push(counts);
    }
    let moves = world.compactor.statistics().moves;
    assert!(moves > 100, "only {moves} resources were moved");
    let (early, late) = (&periods[1], periods.last().unwrap());
    for ((name, early), (_, late)) in early.iter().zip(late) {
        // The used pieces are random.
        assert!(late * 10 <= early * 11, "{name}: {early} for {PERIOD} frames, then {late}\n{periods:#?}");
    }
    assert!(early[0].1 > 0 && early[5].1 > 0, "{early:?}");
    drop(world);
    fixture.frames().wait_idle().unwrap();
    program.destroy(&fixture);
}
