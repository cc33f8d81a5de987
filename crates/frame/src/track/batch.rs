//! The barriers of one call.
#![forbid(unsafe_code)]

use ash::vk;
use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stages};

use super::id::{Raw, Rectangle, Resource};
use super::sync::Edge;

/// Barriers that go into one `vkCmdPipelineBarrier2`, or into one `vkCmdPipelineBarrier`.
///
/// Buffers get global memory barriers: drivers look at no range of a buffer, and equal ones are one. A buffer barrier
/// only changes the owner.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    memory: Vec<vk::MemoryBarrier2<'static>>,
    buffers: Vec<vk::BufferMemoryBarrier2<'static>>,
    images: Vec<vk::ImageMemoryBarrier2<'static>>,
}

/// How many of the last barriers are tried before a new one is made. Equal ones mostly come in a row.
const LOOKS: usize = 8;

impl Batch {
    /// No barriers.
    #[must_use]
    pub const fn new() -> Self {
        Self { memory: Vec::new(), buffers: Vec::new(), images: Vec::new() }
    }

    /// Whether there is nothing to record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.buffers.is_empty() && self.images.is_empty()
    }

    /// How many barriers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.len() + self.buffers.len() + self.images.len()
    }

    /// Global memory barriers.
    pub fn memory(&self) -> &[vk::MemoryBarrier2<'static>] {
        &self.memory
    }

    /// Buffers that change their owner.
    pub fn buffers(&self) -> &[vk::BufferMemoryBarrier2<'static>] {
        &self.buffers
    }

    /// Barriers of images.
    pub fn images(&self) -> &[vk::ImageMemoryBarrier2<'static>] {
        &self.images
    }

    /// What `vkCmdPipelineBarrier2` takes.
    pub fn dependency_info(&self) -> vk::DependencyInfo<'_> {
        vk::DependencyInfo::default()
            .memory_barriers(&self.memory)
            .buffer_memory_barriers(&self.buffers)
            .image_memory_barriers(&self.images)
    }

    pub(crate) fn clear(&mut self) {
        self.memory.clear();
        self.buffers.clear();
        self.images.clear();
    }

    /// Adds what `edge` asks of the points `start..end` of a resource.
    pub(crate) fn push(&mut self, resource: &Resource, start: u64, end: u64, edge: &Edge) {
        match resource.raw {
            Raw::Buffer { handle, .. } if edge.transforms() => self.buffers.push(
                vk::BufferMemoryBarrier2::default()
                    .buffer(handle)
                    .offset(start)
                    .size(end - start)
                    .src_stage_mask(edge.src.stages)
                    .src_access_mask(edge.src.access)
                    .dst_stage_mask(edge.dst.stages)
                    .dst_access_mask(edge.dst.access)
                    .src_queue_family_index(edge.families.0)
                    .dst_queue_family_index(edge.families.1),
            ),
            Raw::Buffer { .. } => self.push_memory(edge),
            Raw::Image { handle, shape } => {
                shape.rectangles(start, end, |rectangle| self.push_image(handle, rectangle, edge));
            }
        }
    }

    pub(crate) fn push_memory(&mut self, edge: &Edge) {
        let same = |barrier: &&mut vk::MemoryBarrier2<'_>| {
            barrier.src_stage_mask == edge.src.stages
                && barrier.src_access_mask == edge.src.access
                && barrier.dst_stage_mask == edge.dst.stages
                && barrier.dst_access_mask == edge.dst.access
        };
        if self.memory.iter_mut().rev().take(LOOKS).find(same).is_none() {
            self.memory.push(
                vk::MemoryBarrier2::default()
                    .src_stage_mask(edge.src.stages)
                    .src_access_mask(edge.src.access)
                    .dst_stage_mask(edge.dst.stages)
                    .dst_access_mask(edge.dst.access),
            );
        }
    }

    fn push_image(&mut self, image: vk::Image, rectangle: Rectangle, edge: &Edge) {
        let range = vk::ImageSubresourceRange {
            aspect_mask: rectangle.aspects,
            base_mip_level: rectangle.mips.start,
            level_count: rectangle.mips.end - rectangle.mips.start,
            base_array_layer: rectangle.layers.start,
            layer_count: rectangle.layers.end - rectangle.layers.start,
        };
        for barrier in self.images.iter_mut().rev().take(LOOKS) {
            if barrier.image == image && does(barrier, edge) && extend(&mut barrier.subresource_range, &range)
            {
                return;
            }
        }
        self.images.push(
            vk::ImageMemoryBarrier2::default()
                .image(image)
                .subresource_range(range)
                .old_layout(edge.layouts.0)
                .new_layout(edge.layouts.1)
                .src_stage_mask(edge.src.stages)
                .src_access_mask(edge.src.access)
                .dst_stage_mask(edge.dst.stages)
                .dst_access_mask(edge.dst.access)
                .src_queue_family_index(edge.families.0)
                .dst_queue_family_index(edge.families.1),
        );
    }

    /// Lets the barriers that change what is in `start..end` of an image also order `scope`.
    pub(crate) fn widen(
        &mut self,
        resource: &Resource,
        start: u64,
        end: u64,
        stages: Stages,
        access: Access,
    ) {
        let Raw::Image { handle, shape } = resource.raw else {
            return;
        };
        shape.rectangles(start, end, |rectangle| {
            for barrier in self.images.iter_mut().filter(|barrier| barrier.image == handle) {
                let range = &barrier.subresource_range;
                let meets = |base: u32, count: u32, with: &std::ops::Range<u32>| {
                    base < with.end && with.start < base + count
                };
                if range.aspect_mask.intersects(rectangle.aspects)
                    && meets(range.base_mip_level, range.level_count, &rectangle.mips)
                    && meets(range.base_array_layer, range.layer_count, &rectangle.layers)
                {
                    barrier.dst_stage_mask |= stages;
                    barrier.dst_access_mask |= access;
                }
            }
        });
    }

    /// The same for `vkCmdPipelineBarrier`, where synchronization2 is not enabled.
    ///
    /// That call has one pair of stage masks, which is the union of all; accesses stay with their barriers. Stages and
    /// accesses that only synchronization2 has become the narrowest older ones that hold them. Layouts stay as they
    /// are: do not use those that came with synchronization2.
    #[must_use]
    pub fn to_barrier1(&self) -> Batch1 {
        let mut old = Batch1::default();
        let mut mask = |src: Stages, dst: Stages| {
            old.src_stages |= old_stages(src);
            old.dst_stages |= old_stages(dst);
        };
        self.memory.iter().for_each(|barrier| mask(barrier.src_stage_mask, barrier.dst_stage_mask));
        self.buffers.iter().for_each(|barrier| mask(barrier.src_stage_mask, barrier.dst_stage_mask));
        self.images.iter().for_each(|barrier| mask(barrier.src_stage_mask, barrier.dst_stage_mask));
        if old.src_stages.is_empty() {
            old.src_stages = vk::PipelineStageFlags::TOP_OF_PIPE;
        }
        if old.dst_stages.is_empty() {
            old.dst_stages = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
        }
        for barrier in &self.memory {
            let (src, dst) = (old_access(barrier.src_access_mask), old_access(barrier.dst_access_mask));
            // Stages alone say what a barrier without accesses says.
            if !(src | dst).is_empty() {
                old.memory.push(vk::MemoryBarrier::default().src_access_mask(src).dst_access_mask(dst));
            }
        }
        old.buffers.extend(self.buffers.iter().map(|barrier| {
            vk::BufferMemoryBarrier::default()
                .buffer(barrier.buffer)
                .offset(barrier.offset)
                .size(barrier.size)
                .src_access_mask(old_access(barrier.src_access_mask))
                .dst_access_mask(old_access(barrier.dst_access_mask))
                .src_queue_family_index(barrier.src_queue_family_index)
                .dst_queue_family_index(barrier.dst_queue_family_index)
        }));
        old.images.extend(self.images.iter().map(|barrier| {
            vk::ImageMemoryBarrier::default()
                .image(barrier.image)
                .subresource_range(barrier.subresource_range)
                .old_layout(barrier.old_layout)
                .new_layout(barrier.new_layout)
                .src_access_mask(old_access(barrier.src_access_mask))
                .dst_access_mask(old_access(barrier.dst_access_mask))
                .src_queue_family_index(barrier.src_queue_family_index)
                .dst_queue_family_index(barrier.dst_queue_family_index)
        }));
        old
    }
}

/// The arguments of one `vkCmdPipelineBarrier`.
#[derive(Clone, Debug, Default)]
pub struct Batch1 {
    /// What is waited for.
    pub src_stages: vk::PipelineStageFlags,
    /// What waits.
    pub dst_stages: vk::PipelineStageFlags,
    /// Global memory barriers.
    pub memory: Vec<vk::MemoryBarrier<'static>>,
    /// Buffers that change their owner.
    pub buffers: Vec<vk::BufferMemoryBarrier<'static>>,
    /// Barriers of images.
    pub images: Vec<vk::ImageMemoryBarrier<'static>>,
}

/// Whether the barrier does to its part of an image what `edge` asks.
fn does(barrier: &vk::ImageMemoryBarrier2<'_>, edge: &Edge) -> bool {
    (barrier.old_layout, barrier.new_layout) == edge.layouts
        && (barrier.src_queue_family_index, barrier.dst_queue_family_index) == edge.families
        && (barrier.src_stage_mask, barrier.src_access_mask) == (edge.src.stages, edge.src.access)
        && (barrier.dst_stage_mask, barrier.dst_access_mask) == (edge.dst.stages, edge.dst.access)
}

/// Adds `more` to a range, if both are one range together.
fn extend(range: &mut vk::ImageSubresourceRange, more: &vk::ImageSubresourceRange) -> bool {
    let mips = |range: &vk::ImageSubresourceRange| (range.base_mip_level, range.level_count);
    let layers = |range: &vk::ImageSubresourceRange| (range.base_array_layer, range.layer_count);
    let aspects = range.aspect_mask == more.aspect_mask;
    if aspects
        && mips(range) == mips(more)
        && range.base_array_layer + range.layer_count == more.base_array_layer
    {
        range.layer_count += more.layer_count;
    } else if aspects
        && layers(range) == layers(more)
        && range.base_mip_level + range.level_count == more.base_mip_level
    {
        range.level_count += more.level_count;
    } else if !range.aspect_mask.intersects(more.aspect_mask)
        && mips(range) == mips(more)
        && layers(range) == layers(more)
    {
        range.aspect_mask |= more.aspect_mask;
    } else {
        return false;
    }
    true
}

/// Old bits keep their places in the new masks; these are the new ones, and what holds them.
const NEW_STAGES: [(Stages, vk::PipelineStageFlags); 7] = [
    (Stages::COPY, vk::PipelineStageFlags::TRANSFER),
    (Stages::BLIT, vk::PipelineStageFlags::TRANSFER),
    (Stages::RESOLVE, vk::PipelineStageFlags::TRANSFER),
    (Stages::CLEAR, vk::PipelineStageFlags::TRANSFER),
    (Stages::INDEX_INPUT, vk::PipelineStageFlags::VERTEX_INPUT),
    (Stages::VERTEX_ATTRIBUTE_INPUT, vk::PipelineStageFlags::VERTEX_INPUT),
    // Those of tessellation, geometry, tasks and meshes need features that may not be enabled.
    (Stages::PRE_RASTERIZATION_SHADERS, vk::PipelineStageFlags::ALL_GRAPHICS),
];

const NEW_ACCESSES: [(Access, vk::AccessFlags); 3] = [
    (Access::SHADER_SAMPLED_READ, vk::AccessFlags::SHADER_READ),
    (Access::SHADER_STORAGE_READ, vk::AccessFlags::SHADER_READ),
    (Access::SHADER_STORAGE_WRITE, vk::AccessFlags::SHADER_WRITE),
];

pub(crate) fn old_stages(stages: Stages) -> vk::PipelineStageFlags {
    let low = u32::try_from(stages.as_raw() & u64::from(u32::MAX)).unwrap_or(0);
    let mut old = vk::PipelineStageFlags::from_raw(low);
    let mut left = stages.as_raw() & !u64::from(u32::MAX);
    for (new, holder) in NEW_STAGES {
        if stages.contains(new) {
            old |= holder;
            left &= !new.as_raw();
        }
    }
    // A stage that has no older one.
    if left == 0 { old } else { vk::PipelineStageFlags::ALL_COMMANDS }
}

fn old_access(access: Access) -> vk::AccessFlags {
    let low = u32::try_from(access.as_raw() & u64::from(u32::MAX)).unwrap_or(0);
    let mut old = vk::AccessFlags::from_raw(low);
    let mut left = access.as_raw() & !u64::from(u32::MAX);
    for (new, holder) in NEW_ACCESSES {
        if access.contains(new) {
            old |= holder;
            left &= !new.as_raw();
        }
    }
    if left == 0 { old } else { vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE }
}
