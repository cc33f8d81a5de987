//! The barriers of one call.

use ash::vk;
use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stages};

use super::id::{IdContents, RawHandle, Rectangle};
use super::sync::Edge;

/// Barriers that go into one `vkCmdPipelineBarrier2`, or into one `vkCmdPipelineBarrier`.
///
/// Buffers get global memory barriers, because drivers ignore the range of a buffer barrier. Equal memory barriers are
/// merged. Buffer barriers are used only to transfer ownership.
#[derive(Clone, Debug, Default)]
pub struct BarrierBatch {
    memory: Vec<vk::MemoryBarrier2<'static>>,
    buffers: Vec<vk::BufferMemoryBarrier2<'static>>,
    images: Vec<vk::ImageMemoryBarrier2<'static>>,
}

/// Number of latest barriers to compare with before a new one is added. Equal barriers mostly follow each other.
const MERGE_WINDOW: usize = 8;

impl BarrierBatch {
    /// Creates an empty batch.
    #[must_use]
    pub const fn new() -> Self {
        Self { memory: Vec::new(), buffers: Vec::new(), images: Vec::new() }
    }

    /// Returns true if there is nothing to record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.buffers.is_empty() && self.images.is_empty()
    }

    /// Returns the number of barriers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.len() + self.buffers.len() + self.images.len()
    }

    /// Returns the global memory barriers.
    pub fn memory(&self) -> &[vk::MemoryBarrier2<'static>] {
        &self.memory
    }

    /// Returns the buffer barriers, which transfer ownership.
    pub fn buffers(&self) -> &[vk::BufferMemoryBarrier2<'static>] {
        &self.buffers
    }

    /// Returns the image barriers.
    pub fn images(&self) -> &[vk::ImageMemoryBarrier2<'static>] {
        &self.images
    }

    /// Returns the argument of `vkCmdPipelineBarrier2`.
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

    /// Adds a barrier for `edge` on the points `start..end` of a resource.
    pub(crate) fn push(&mut self, resource: &IdContents, start: u64, end: u64, edge: &Edge) {
        match resource.raw {
            RawHandle::Buffer { handle, .. } if edge.transforms() => self.buffers.push(
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
            RawHandle::Buffer { .. } => self.push_memory(edge),
            RawHandle::Image { handle, shape } => {
                shape.rectangles(start, end, |rectangle| {
                    // With maintenance9, a layer of a volume is a slice. REMAINING_ARRAY_LAYERS includes all slices.
                    let layer_count = if shape.has_one_layer() {
                        vk::REMAINING_ARRAY_LAYERS
                    } else {
                        rectangle.layers.end - rectangle.layers.start
                    };
                    self.push_image(handle, rectangle, layer_count, edge);
                });
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
        if self.memory.iter_mut().rev().take(MERGE_WINDOW).find(same).is_none() {
            self.memory.push(
                vk::MemoryBarrier2::default()
                    .src_stage_mask(edge.src.stages)
                    .src_access_mask(edge.src.access)
                    .dst_stage_mask(edge.dst.stages)
                    .dst_access_mask(edge.dst.access),
            );
        }
    }

    fn push_image(&mut self, image: vk::Image, rectangle: Rectangle, layer_count: u32, edge: &Edge) {
        let range = vk::ImageSubresourceRange {
            aspect_mask: rectangle.aspects,
            base_mip_level: rectangle.mips.start,
            level_count: rectangle.mips.end - rectangle.mips.start,
            base_array_layer: rectangle.layers.start,
            layer_count,
        };
        for barrier in self.images.iter_mut().rev().take(MERGE_WINDOW) {
            if barrier.image == image
                && matches_edge(barrier, edge)
                && extend(&mut barrier.subresource_range, &range)
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

    /// Extends the second scope of the barriers that overlap `start..end` of an image.
    pub(crate) fn widen(
        &mut self,
        resource: &IdContents,
        start: u64,
        end: u64,
        stages: Stages,
        access: Access,
    ) {
        let RawHandle::Image { handle, shape } = resource.raw else {
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

    /// Converts the batch for `vkCmdPipelineBarrier`, for devices without synchronization2.
    ///
    /// That call has one pair of stage masks: the union of all barriers. Accesses stay with their barriers. Stages and
    /// accesses that only synchronization2 has become the narrowest older ones that include them. Layouts are not
    /// converted: do not use layouts that synchronization2 added.
    #[must_use]
    pub fn to_barrier1(&self) -> BarrierBatch1 {
        let mut old = BarrierBatch1::default();
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
            // A barrier without accesses is fully described by the stage masks.
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
pub struct BarrierBatch1 {
    /// First synchronization scope.
    pub src_stages: vk::PipelineStageFlags,
    /// Second synchronization scope.
    pub dst_stages: vk::PipelineStageFlags,
    /// Global memory barriers.
    pub memory: Vec<vk::MemoryBarrier<'static>>,
    /// Buffer barriers, which transfer ownership.
    pub buffers: Vec<vk::BufferMemoryBarrier<'static>>,
    /// Image barriers.
    pub images: Vec<vk::ImageMemoryBarrier<'static>>,
}

/// Returns true if the barrier has the scopes, layouts and families of `edge`.
fn matches_edge(barrier: &vk::ImageMemoryBarrier2<'_>, edge: &Edge) -> bool {
    (barrier.old_layout, barrier.new_layout) == edge.layouts
        && (barrier.src_queue_family_index, barrier.dst_queue_family_index) == edge.families
        && (barrier.src_stage_mask, barrier.src_access_mask) == (edge.src.stages, edge.src.access)
        && (barrier.dst_stage_mask, barrier.dst_access_mask) == (edge.dst.stages, edge.dst.access)
}

/// Adds `more` to a range, if their union is a range.
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

/// Stages that only synchronization2 has, each with the older stage that includes it. Older bits keep their values in
/// the new masks.
const NEW_STAGES: [(Stages, vk::PipelineStageFlags); 7] = [
    (Stages::COPY, vk::PipelineStageFlags::TRANSFER),
    (Stages::BLIT, vk::PipelineStageFlags::TRANSFER),
    (Stages::RESOLVE, vk::PipelineStageFlags::TRANSFER),
    (Stages::CLEAR, vk::PipelineStageFlags::TRANSFER),
    (Stages::INDEX_INPUT, vk::PipelineStageFlags::VERTEX_INPUT),
    (Stages::VERTEX_ATTRIBUTE_INPUT, vk::PipelineStageFlags::VERTEX_INPUT),
    // `VERTEX_SHADER` and its successors would need the features of tessellation, geometry and mesh shaders.
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
    // A stage without an older equivalent.
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
