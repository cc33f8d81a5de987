//! Uses of resources and parts of images.

use std::ops::{BitOr, Range};

use ash::vk;

use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stages};

/// All write accesses. Bits that this version of `ash` does not name count as reads.
pub(crate) const WRITES: Access = Access::from_raw(
    Access::SHADER_WRITE.as_raw()
        | Access::SHADER_STORAGE_WRITE.as_raw()
        | Access::COLOR_ATTACHMENT_WRITE.as_raw()
        | Access::DEPTH_STENCIL_ATTACHMENT_WRITE.as_raw()
        | Access::TRANSFER_WRITE.as_raw()
        | Access::HOST_WRITE.as_raw()
        | Access::MEMORY_WRITE.as_raw()
        | Access::VIDEO_DECODE_WRITE_KHR.as_raw()
        | Access::VIDEO_ENCODE_WRITE_KHR.as_raw()
        | Access::TRANSFORM_FEEDBACK_WRITE_EXT.as_raw()
        | Access::TRANSFORM_FEEDBACK_COUNTER_WRITE_EXT.as_raw()
        | Access::COMMAND_PREPROCESS_WRITE_NV.as_raw()
        | Access::ACCELERATION_STRUCTURE_WRITE_KHR.as_raw()
        | Access::MICROMAP_WRITE_EXT.as_raw()
        | Access::OPTICAL_FLOW_WRITE_NV.as_raw(),
);

const PRE_RASTERIZATION: Stages = Stages::from_raw(
    Stages::VERTEX_SHADER.as_raw()
        | Stages::TESSELLATION_CONTROL_SHADER.as_raw()
        | Stages::TESSELLATION_EVALUATION_SHADER.as_raw()
        | Stages::GEOMETRY_SHADER.as_raw()
        | Stages::TASK_SHADER_EXT.as_raw()
        | Stages::MESH_SHADER_EXT.as_raw(),
);

const GRAPHICS: Stages = Stages::from_raw(
    PRE_RASTERIZATION.as_raw()
        | Stages::PRE_RASTERIZATION_SHADERS.as_raw()
        | Stages::DRAW_INDIRECT.as_raw()
        | Stages::VERTEX_INPUT.as_raw()
        | Stages::INDEX_INPUT.as_raw()
        | Stages::VERTEX_ATTRIBUTE_INPUT.as_raw()
        | Stages::FRAGMENT_SHADER.as_raw()
        | Stages::EARLY_FRAGMENT_TESTS.as_raw()
        | Stages::LATE_FRAGMENT_TESTS.as_raw()
        | Stages::COLOR_ATTACHMENT_OUTPUT.as_raw(),
);

/// Stages that stand for several others.
const GROUPS: [(Stages, Stages); 4] = [
    (
        Stages::ALL_TRANSFER,
        Stages::from_raw(
            Stages::COPY.as_raw() | Stages::BLIT.as_raw() | Stages::RESOLVE.as_raw() | Stages::CLEAR.as_raw(),
        ),
    ),
    (
        Stages::VERTEX_INPUT,
        Stages::from_raw(Stages::INDEX_INPUT.as_raw() | Stages::VERTEX_ATTRIBUTE_INPUT.as_raw()),
    ),
    (Stages::PRE_RASTERIZATION_SHADERS, PRE_RASTERIZATION),
    (Stages::ALL_GRAPHICS, GRAPHICS),
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct AccessScope {
    pub(crate) stages: Stages,
    pub(crate) access: Access,
}

impl AccessScope {
    pub(crate) const NONE: Self = Self::new(Stages::NONE, Access::NONE);

    pub(crate) const fn new(stages: Stages, access: Access) -> Self {
        Self { stages, access }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.stages.is_empty()
    }

    /// Returns true if a barrier with this second scope also covers `other`.
    pub(crate) fn covers(self, other: Self) -> bool {
        (self.stages.contains(other.stages) && self.access.contains(other.access))
            || (!self.is_empty()
                && stages_cover(self.stages, other.stages)
                && access_covers(self.access, other.access))
    }
}

impl BitOr for AccessScope {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self::new(self.stages | other.stages, self.access | other.access)
    }
}

/// Returns true if `outer` includes every stage of `inner`, with groups expanded.
pub(crate) fn stages_cover(outer: Stages, inner: Stages) -> bool {
    if outer.contains(inner) || outer.contains(Stages::ALL_COMMANDS) {
        return true;
    }
    let whole =
        GROUPS.iter().rev().fold(
            outer,
            |stages, &(group, members)| {
                if stages.contains(group) { stages | members } else { stages }
            },
        );
    whole.contains(inner)
}

fn access_covers(outer: Access, inner: Access) -> bool {
    let mut whole = outer;
    if outer.contains(Access::MEMORY_READ) {
        whole |= inner & !WRITES;
    }
    if outer.contains(Access::MEMORY_WRITE) {
        whole |= inner & WRITES;
    }
    if outer.contains(Access::SHADER_READ) {
        whole |= Access::SHADER_SAMPLED_READ | Access::SHADER_STORAGE_READ;
    }
    if outer.contains(Access::SHADER_WRITE) {
        whole |= Access::SHADER_STORAGE_WRITE;
    }
    whole.contains(inner)
}

/// A use of a resource by a command: stages, accesses, image layout, and the owning queue family.
///
/// A command that uses one range in several ways declares them as one use: `a | b`. Buffers ignore the layout, so the
/// constants serve both.
///
/// ```
/// use ash::vk;
/// use sublet_frame::track::Use;
///
/// let read = Use::sampled(vk::PipelineStageFlags2::FRAGMENT_SHADER);
/// assert_eq!(read.layout, vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL);
/// assert!(!read.writes() && Use::COLOR_ATTACHMENT.writes());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "D3D12_RESOURCE_STATES")]
pub struct Use {
    /// The stages that use it.
    pub stages: Stages,
    /// The accesses of these stages.
    pub access: Access,
    /// The required layout. `UNDEFINED` keeps the current layout of an image.
    pub layout: vk::ImageLayout,
    /// The owner. `QUEUE_FAMILY_IGNORED` stands for the family of the list that records the use.
    pub family: u32,
    /// The use does not need the previous contents.
    pub discards: bool,
    /// The writes need no order among themselves.
    pub unordered: bool,
}

const SHADER_READ_ONLY: vk::ImageLayout = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;

impl Use {
    /// The source of `vkCmdCopyBuffer` and similar commands.
    pub const COPY_SOURCE: Self =
        Self::new(Stages::COPY, Access::TRANSFER_READ, vk::ImageLayout::TRANSFER_SRC_OPTIMAL);
    /// The destination of `vkCmdCopyBuffer` and similar commands.
    pub const COPY_TARGET: Self =
        Self::new(Stages::COPY, Access::TRANSFER_WRITE, vk::ImageLayout::TRANSFER_DST_OPTIMAL);
    /// The source of `vkCmdBlitImage`.
    pub const BLIT_SOURCE: Self =
        Self::new(Stages::BLIT, Access::TRANSFER_READ, vk::ImageLayout::TRANSFER_SRC_OPTIMAL);
    /// The destination of `vkCmdBlitImage`.
    pub const BLIT_TARGET: Self =
        Self::new(Stages::BLIT, Access::TRANSFER_WRITE, vk::ImageLayout::TRANSFER_DST_OPTIMAL);
    /// The destination of `vkCmdClearColorImage` and `vkCmdFillBuffer`.
    pub const CLEAR: Self =
        Self::new(Stages::CLEAR, Access::TRANSFER_WRITE, vk::ImageLayout::TRANSFER_DST_OPTIMAL);
    /// A color attachment that is loaded or blended, and stored.
    pub const COLOR_ATTACHMENT: Self = Self::new(
        Stages::COLOR_ATTACHMENT_OUTPUT,
        Access::from_raw(Access::COLOR_ATTACHMENT_READ.as_raw() | Access::COLOR_ATTACHMENT_WRITE.as_raw()),
        vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL,
    );
    /// A depth or stencil attachment that is tested and written.
    pub const DEPTH_ATTACHMENT: Self = Self::new(
        Stages::from_raw(Stages::EARLY_FRAGMENT_TESTS.as_raw() | Stages::LATE_FRAGMENT_TESTS.as_raw()),
        Access::from_raw(
            Access::DEPTH_STENCIL_ATTACHMENT_READ.as_raw() | Access::DEPTH_STENCIL_ATTACHMENT_WRITE.as_raw(),
        ),
        vk::ImageLayout::DEPTH_STENCIL_ATTACHMENT_OPTIMAL,
    );
    /// A vertex buffer.
    pub const VERTICES: Self = Self::buffer(Stages::VERTEX_ATTRIBUTE_INPUT, Access::VERTEX_ATTRIBUTE_READ);
    /// An index buffer.
    pub const INDICES: Self = Self::buffer(Stages::INDEX_INPUT, Access::INDEX_READ);
    /// The arguments of an indirect command.
    pub const INDIRECT: Self = Self::buffer(Stages::DRAW_INDIRECT, Access::INDIRECT_COMMAND_READ);
    /// A host read after a later fence or semaphore.
    pub const HOST_READ: Self = Self::new(Stages::HOST, Access::HOST_READ, vk::ImageLayout::GENERAL);
    /// Presentation of an image. The semaphore of the submission orders it.
    pub const PRESENT: Self = Self::new(Stages::NONE, Access::NONE, vk::ImageLayout::PRESENT_SRC_KHR);

    /// Creates a use of an image or buffer. Buffers ignore `layout`.
    #[must_use]
    pub const fn new(stages: Stages, access: Access, layout: vk::ImageLayout) -> Self {
        let family = vk::QUEUE_FAMILY_IGNORED;
        Self { stages, access, layout, family, discards: false, unordered: false }
    }

    /// Creates a use of a buffer.
    #[must_use]
    pub const fn buffer(stages: Stages, access: Access) -> Self {
        Self::new(stages, access, vk::ImageLayout::UNDEFINED)
    }

    /// A uniform buffer read by shaders.
    #[must_use]
    pub const fn uniform(stages: Stages) -> Self {
        Self::buffer(stages, Access::UNIFORM_READ)
    }

    /// A sampled image or uniform texel buffer read by shaders.
    #[must_use]
    pub const fn sampled(stages: Stages) -> Self {
        Self::new(stages, Access::SHADER_SAMPLED_READ, SHADER_READ_ONLY)
    }

    /// A storage buffer or image that shaders only read.
    #[must_use]
    pub const fn storage_read(stages: Stages) -> Self {
        Self::new(stages, Access::SHADER_STORAGE_READ, vk::ImageLayout::GENERAL)
    }

    /// A storage buffer or image that shaders only write.
    #[must_use]
    pub const fn storage_write(stages: Stages) -> Self {
        Self::new(stages, Access::SHADER_STORAGE_WRITE, vk::ImageLayout::GENERAL)
    }

    /// Transfers ownership to `family`: `QUEUE_FAMILY_EXTERNAL` or `QUEUE_FAMILY_FOREIGN_EXT`. The next use acquires it
    /// back.
    #[must_use]
    pub const fn release_to(family: u32, layout: vk::ImageLayout) -> Self {
        Self { family, ..Self::new(Stages::NONE, Access::NONE, layout) }
    }

    /// Returns the use, changed to discard the previous contents: a layout transition starts from `UNDEFINED`, and no
    /// other queue family has to release the resource.
    #[must_use]
    pub const fn discard(self) -> Self {
        Self { discards: true, ..self }
    }

    /// Returns the use, changed so that its writes need no order among themselves: they write different places, or
    /// their order does not matter. Equal uses in succession get no barrier between them.
    /// [`Recorder::storage_barrier`](super::Recorder::storage_barrier) requests one.
    #[must_use]
    #[doc(alias = "setEnableUavBarriersForTexture")]
    #[doc(alias = "setEnableUavBarriersForBuffer")]
    pub const fn unordered(self) -> Self {
        Self { unordered: true, ..self }
    }

    /// Returns true if the use writes.
    #[must_use]
    pub const fn writes(&self) -> bool {
        self.access.as_raw() & WRITES.as_raw() != 0
    }

    pub(crate) const fn scope(&self) -> AccessScope {
        AccessScope::new(self.stages, self.access)
    }

    pub(crate) fn written(&self) -> Access {
        self.access & WRITES
    }
}

/// Combines two uses by one command. Layout and family are those of the left operand.
impl BitOr for Use {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self {
            stages: self.stages | other.stages,
            access: self.access | other.access,
            discards: self.discards && other.discards,
            unordered: self.unordered && other.unordered,
            ..self
        }
    }
}

/// A part of an image: mips, layers and aspects. Subresources that the image does not have are ignored.
///
/// ```
/// use sublet_frame::track::Subresources;
///
/// let mip = Subresources::ALL.mips(2..3);
/// assert_eq!(mip.layers, Subresources::ALL.layers);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subresources {
    /// Levels of the mip chain.
    pub mips: Range<u32>,
    /// Layers of the array.
    pub layers: Range<u32>,
    /// Aspects. Those that the image does not have are ignored.
    pub aspects: vk::ImageAspectFlags,
}

impl Subresources {
    /// The whole image.
    pub const ALL: Self =
        Self { mips: 0..u32::MAX, layers: 0..u32::MAX, aspects: vk::ImageAspectFlags::from_raw(u32::MAX) };

    /// Restricts the part to these mips.
    #[must_use]
    pub fn mips(self, mips: Range<u32>) -> Self {
        Self { mips, ..self }
    }

    /// Restricts the part to these layers.
    #[must_use]
    pub fn layers(self, layers: Range<u32>) -> Self {
        Self { layers, ..self }
    }

    /// Restricts the part to these aspects.
    #[must_use]
    pub fn aspects(self, aspects: vk::ImageAspectFlags) -> Self {
        Self { aspects, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// VkPipelineStageFlagBits2 lists the members.
    #[test]
    fn a_group_of_stages_covers_its_members() {
        let shaders = [
            Stages::VERTEX_SHADER,
            Stages::TESSELLATION_CONTROL_SHADER,
            Stages::TESSELLATION_EVALUATION_SHADER,
            Stages::GEOMETRY_SHADER,
            Stages::TASK_SHADER_EXT,
            Stages::MESH_SHADER_EXT,
        ];
        let graphics = [
            Stages::DRAW_INDIRECT,
            Stages::VERTEX_INPUT,
            Stages::INDEX_INPUT,
            Stages::VERTEX_ATTRIBUTE_INPUT,
            Stages::PRE_RASTERIZATION_SHADERS,
            Stages::FRAGMENT_SHADER,
            Stages::EARLY_FRAGMENT_TESTS,
            Stages::LATE_FRAGMENT_TESTS,
            Stages::COLOR_ATTACHMENT_OUTPUT,
        ];
        for (group, members) in [
            (Stages::ALL_TRANSFER, &[Stages::COPY, Stages::BLIT, Stages::RESOLVE, Stages::CLEAR][..]),
            (Stages::VERTEX_INPUT, &[Stages::INDEX_INPUT, Stages::VERTEX_ATTRIBUTE_INPUT]),
            (Stages::PRE_RASTERIZATION_SHADERS, &shaders),
            (Stages::ALL_GRAPHICS, &shaders),
            (Stages::ALL_GRAPHICS, &graphics),
        ] {
            for &member in members {
                assert!(stages_cover(group, member), "{member:?} of {group:?}");
                assert!(!stages_cover(member, group), "{group:?} by {member:?}");
            }
            assert!(!stages_cover(group, Stages::COMPUTE_SHADER), "{group:?}");
        }
    }
}
