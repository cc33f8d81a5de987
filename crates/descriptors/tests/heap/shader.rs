//! Shaders find the same descriptors at an index in every kind of store.

use ash::vk;
use sublet::sim::{Kernel, Profile, profiles};
use sublet_descriptors::{
    BufferStore, ClassicStore, DescriptorHeap, DescriptorKind, DescriptorRange, HeapArrays, HeapCreateInfo,
    HeapKind, HeapStore, HostHeap, HostHeapCreateInfo,
};

use crate::common::{Fixture, hold};

pub const POINT: vk::PipelineBindPoint = vk::PipelineBindPoint::COMPUTE;
pub const TYPES: &[DescriptorKind] = &[DescriptorKind::UniformBuffer, DescriptorKind::StorageBuffer];

/// `buffers[push.to] = uniforms[push.from] + 1`, with the bindings of both arrays.
fn kernel(kernel: &mut Kernel<'_>) {
    let word = |at: u32| {
        let mut bytes = [0; 4];
        kernel.read_push_constants(4 * at, &mut bytes);
        u32::from_le_bytes(bytes)
    };
    let value = kernel.buffer(0, word(1), word(0)).read_u32(0);
    kernel.buffer(0, word(3), word(2)).write_u32(0, value + 1);
}

/// A pipeline for a heap at set 0, which runs one command buffer at a time.
pub struct Shader<'a> {
    fixture: &'a Fixture,
    module: vk::ShaderModule,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    pool: vk::CommandPool,
}

impl<'a> Shader<'a> {
    pub fn new(fixture: &'a Fixture, heap: vk::DescriptorSetLayout, flags: vk::PipelineCreateFlags) -> Self {
        Self::of_heaps(fixture, &[heap], flags)
    }

    /// Creates a pipeline for several heaps, starting at set 0.
    pub fn of_heaps(
        fixture: &'a Fixture,
        layouts: &[vk::DescriptorSetLayout],
        flags: vk::PipelineCreateFlags,
    ) -> Self {
        let device = fixture.gpu.device();
        fixture.gpu.set_kernel("increment", kernel);
        let code = [0x0723_0203];
        let info = vk::ShaderModuleCreateInfo::default().code(&code);
        // SAFETY: simulated modules accept any SPIR-V.
        let module = unsafe { device.create_shader_module(&info, None) }.unwrap();
        let ranges =
            [vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: 16 }];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(layouts).push_constant_ranges(&ranges);
        let layout = unsafe { device.create_pipeline_layout(&info, None) }.unwrap();
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"increment");
        let infos = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout).flags(flags)];
        let made = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &infos, None) };
        let pipeline = made.unwrap()[0];
        let pool =
            unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
        Self { fixture, module, layout, pipeline, pool }
    }

    /// Submits one dispatch. `bind` binds the heap.
    pub fn run(&self, words: [u32; 4], bind: impl FnOnce(vk::CommandBuffer, vk::PipelineLayout)) {
        let device = self.fixture.gpu.device();
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap();
        unsafe { device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()) }.unwrap();
        bind(commands[0], self.layout);
        unsafe { device.cmd_bind_pipeline(commands[0], POINT, self.pipeline) };
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stage = vk::ShaderStageFlags::COMPUTE;
        unsafe { device.cmd_push_constants(commands[0], self.layout, stage, 0, &bytes) };
        unsafe { device.cmd_dispatch(commands[0], 1, 1, 1) };
        unsafe { device.end_command_buffer(commands[0]) }.unwrap();
        let submits = [vk::SubmitInfo::default().command_buffers(&commands)];
        unsafe { device.queue_submit(self.fixture.gpu.queue(), &submits, vk::Fence::null()) }.unwrap();
    }
}

impl Drop for Shader<'_> {
    fn drop(&mut self) {
        let device = self.fixture.gpu.device();
        unsafe { device.queue_wait_idle(self.fixture.gpu.queue()) }.unwrap();
        unsafe { device.destroy_command_pool(self.pool, None) };
        unsafe { device.destroy_pipeline(self.pipeline, None) };
        unsafe { device.destroy_pipeline_layout(self.layout, None) };
        unsafe { device.destroy_shader_module(self.module, None) };
    }
}

fn small(arrays: HeapArrays) -> HeapCreateInfo<'static> {
    HeapCreateInfo { slots: 8, types: TYPES, arrays, ..HeapCreateInfo::new(HeapKind::Resource) }
}

/// Describes 256 bytes at each of the two positions in two slots, the first as a uniform buffer.
pub fn fill<S: HeapStore>(
    fixture: &Fixture,
    heap: &DescriptorHeap<S>,
    from: u64,
    to: u64,
) -> DescriptorRange {
    let range = heap.allocate(2).unwrap();
    unsafe { heap.write(range.id(), 0, &fixture.uniform(from)) }.unwrap();
    unsafe { heap.write(range.id(), 1, &fixture.storage(to)) }.unwrap();
    range
}

/// The same with one call.
fn fill_at_once<S: HeapStore>(
    fixture: &Fixture,
    heap: &DescriptorHeap<S>,
    from: u64,
    to: u64,
) -> DescriptorRange {
    let range = heap.allocate(2).unwrap();
    let first =
        unsafe { heap.write_many(range.id(), 0, &[fixture.uniform(from), fixture.storage(to)]) }.unwrap();
    assert_eq!(first, range.first());
    range
}

/// Two materials use the same slots one after the other.
fn play<S: HeapStore>(
    fixture: &Fixture,
    shader: &Shader<'_>,
    heap: &DescriptorHeap<S>,
    binding: impl Fn(DescriptorKind) -> u32,
    bind: impl Fn(vk::CommandBuffer, vk::PipelineLayout),
) {
    let [uniforms, buffers] = [DescriptorKind::UniformBuffer, DescriptorKind::StorageBuffer].map(binding);
    for (at, value) in [(0, 7), (1, 10), (2, 20), (3, 30)] {
        fixture.put(at, value);
    }
    let words =
        |range: &DescriptorRange| [range.index(0).unwrap(), uniforms, range.index(1).unwrap(), buffers];
    // Preceding slots, so that the indices are not all zero.
    let others = heap.allocate(3).unwrap();
    let range = fill(fixture, heap, 0, 1);
    let first = range.first();
    shader.run(words(&range), &bind);
    assert_eq!([0, 1, 2, 3].map(|at| fixture.get(at)), [7, 8, 20, 30]);
    unsafe { heap.retire(fixture.done(), range) }.unwrap();
    heap.collect(&fixture.clock).unwrap();
    let again = fill_at_once(fixture, heap, 3, 2);
    assert_eq!(again.first(), first);
    shader.run(words(&again), &bind);
    assert_eq!([0, 1, 2, 3].map(|at| fixture.get(at)), [7, 8, 31, 30]);
    unsafe { heap.free(others) }.unwrap();
    fixture.gpu.assert_silent();
}

pub fn profiles(which: impl Fn(&Profile) -> bool) -> Vec<&'static str> {
    let found: Vec<_> =
        profiles::ALL.iter().filter(|profile| which(profile)).map(|profile| profile.name).collect();
    assert!(!found.is_empty(), "no profile is left to test on");
    found
}

#[test]
fn a_set_store_shows_shaders_what_was_written() {
    for name in profiles(|profile| profile.features.descriptor_indexing) {
        for arrays in [HeapArrays::Auto, HeapArrays::PerType] {
            let fixture = Fixture::new(name);
            let heap = fixture.set_heap(&small(arrays));
            let shader = Shader::new(&fixture, heap.store().layout(), vk::PipelineCreateFlags::empty());
            let binding = |kind| heap.store().binding(kind).unwrap();
            play(&fixture, &shader, &heap, binding, |commands, layout| {
                unsafe { heap.store().cmd_bind(commands, POINT, layout, 0) };
            });
        }
    }
}

#[test]
fn a_classic_store_shows_shaders_what_was_written() {
    for name in profiles(|_| true) {
        let fixture = Fixture::new(name);
        let defaults = [fixture.storage(5), fixture.uniform(5)];
        let info = small(HeapArrays::Auto);
        let store = unsafe { ClassicStore::new(&fixture.device, &info, 2, &defaults) }.unwrap();
        let heap = hold(DescriptorHeap::new(store));
        let shader = Shader::new(&fixture, heap.store().layout(), vk::PipelineCreateFlags::empty());
        let binding = |kind| heap.store().binding(kind).unwrap();
        let frame = std::cell::Cell::new(0);
        play(&fixture, &shader, &heap, binding, |commands, layout| {
            let now = frame.replace(frame.get() + 1);
            unsafe { heap.store().update(now) };
            unsafe { heap.store().cmd_bind(now, commands, POINT, layout, 0) };
        });
    }
}

#[test]
fn a_buffer_store_shows_shaders_what_was_written() {
    for name in profiles(|profile| profile.limits.descriptor_buffer.is_some()) {
        for arrays in [HeapArrays::Auto, HeapArrays::PerType] {
            let fixture = Fixture::new(name);
            let heap = fixture.buffer_heap(&small(arrays));
            let flags = vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT;
            let shader = Shader::new(&fixture, heap.store().layout(), flags);
            let binding = |kind| heap.store().binding(kind).unwrap();
            play(&fixture, &shader, &heap, binding, |commands, layout| {
                unsafe { BufferStore::cmd_bind_all(commands, &[heap.store()]) };
                unsafe { heap.store().cmd_set_offset(commands, POINT, layout, 0, 0) };
            });
        }
    }
}

#[test]
fn shaders_see_what_was_copied_from_host_memory() {
    let fixture = Fixture::new("nvidia-h200");
    let mut staging = HostHeap::new(&fixture.device, &HostHeapCreateInfo::default()).unwrap();
    assert!(staging.stride().is_some(), "they are bytes");
    let from = staging.allocate(2).unwrap();
    unsafe { staging.write(from.id(), 0, &fixture.uniform(2)) }.unwrap();
    unsafe { staging.write(from.id(), 1, &fixture.storage(3)) }.unwrap();
    for arrays in [HeapArrays::One, HeapArrays::PerType] {
        fixture.put(2, 40);
        fixture.put(3, 0);
        let heap = fixture.buffer_heap(&small(arrays));
        let flags = vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT;
        let shader = Shader::new(&fixture, heap.store().layout(), flags);
        let to = heap.allocate(5).unwrap();
        assert_eq!(unsafe { heap.copy_from(to.id(), 3, &staging, from.id()) }, Ok(2));
        let binding = |kind| heap.store().binding(kind).unwrap();
        let [uniforms, buffers] = [DescriptorKind::UniformBuffer, DescriptorKind::StorageBuffer].map(binding);
        let words = [to.index(3).unwrap(), uniforms, to.index(4).unwrap(), buffers];
        shader.run(words, |commands, layout| {
            unsafe { BufferStore::cmd_bind_all(commands, &[heap.store()]) };
            unsafe { heap.store().cmd_set_offset(commands, POINT, layout, 0, 0) };
        });
        assert_eq!((fixture.get(2), fixture.get(3)), (40, 41), "{arrays:?}");
    }
}
