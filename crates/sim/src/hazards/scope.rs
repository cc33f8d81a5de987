//! Stages and accesses: what the groups among them stand for, and which stages come before which.

use ash::vk;
use vk::AccessFlags2 as Access;
use vk::PipelineStageFlags2 as Stages;

/// One side of a dependency.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DependencyScope {
    /// The stages whose execution is ordered: in a first scope also those that come before, in a second one also those
    /// that come after.
    pub(crate) order: Stages,
    /// The stages whose accesses are meant: those that the program named.
    pub(crate) stages: Stages,
    pub(crate) access: Access,
}

impl DependencyScope {
    /// The first scope of a dependency: `srcStageMask` and `srcAccessMask`.
    pub(crate) fn first(stages: Stages, access: Access) -> Self {
        let mut named = stages_of(stages);
        if stages.contains(Stages::BOTTOM_OF_PIPE) {
            named = DEVICE;
        }
        Self { order: with_earlier(named), stages: named, access: accesses_of(access) }
    }

    /// Either side, without the order among the stages of a pipeline.
    pub(crate) fn named(stages: Stages, access: Access) -> Self {
        let named = stages_of(stages);
        Self { order: named, stages: named, access: accesses_of(access) }
    }

    /// The second scope of a dependency: `dstStageMask` and `dstAccessMask`.
    pub(crate) fn second(stages: Stages, access: Access) -> Self {
        let mut named = stages_of(stages);
        if stages.contains(Stages::TOP_OF_PIPE) {
            named = DEVICE;
        }
        Self { order: with_later(named), stages: named, access: accesses_of(access) }
    }
}

/// The flags of the first interface have the same bits in the second.
pub(crate) fn stages2(stages: vk::PipelineStageFlags) -> Stages {
    Stages::from_raw(u64::from(stages.as_raw()))
}

/// The flags of the first interface have the same bits in the second.
pub(crate) fn access2(access: vk::AccessFlags) -> vk::AccessFlags2 {
    vk::AccessFlags2::from_raw(u64::from(access.as_raw()))
}

/// The stages of `ALL_COMMANDS`: all but the host, and the two ends of the pipe, in which nothing happens.
const DEVICE: Stages = Stages::from_raw(
    !(Stages::HOST.as_raw() | Stages::TOP_OF_PIPE.as_raw() | Stages::BOTTOM_OF_PIPE.as_raw()),
);

/// The stages of a draw, in order.
const DRAW: [Stages; 12] = [
    Stages::DRAW_INDIRECT,
    Stages::from_raw(Stages::INDEX_INPUT.as_raw() | Stages::VERTEX_ATTRIBUTE_INPUT.as_raw()),
    Stages::VERTEX_SHADER,
    Stages::TESSELLATION_CONTROL_SHADER,
    Stages::TESSELLATION_EVALUATION_SHADER,
    Stages::GEOMETRY_SHADER,
    Stages::TRANSFORM_FEEDBACK_EXT,
    Stages::FRAGMENT_SHADING_RATE_ATTACHMENT_KHR,
    Stages::EARLY_FRAGMENT_TESTS,
    Stages::FRAGMENT_SHADER,
    Stages::LATE_FRAGMENT_TESTS,
    Stages::COLOR_ATTACHMENT_OUTPUT,
];
const DISPATCH: [Stages; 2] = [Stages::DRAW_INDIRECT, Stages::COMPUTE_SHADER];

/// Groups of stages, and what is in each. (`TRANSFER` and `VERTEX_INPUT` of the first interface are two of them.)
const GROUPS: [(Stages, &[Stages]); 4] = [
    (Stages::ALL_GRAPHICS, &DRAW),
    (Stages::ALL_TRANSFER, &[Stages::COPY, Stages::BLIT, Stages::RESOLVE, Stages::CLEAR]),
    (Stages::VERTEX_INPUT, &[Stages::INDEX_INPUT, Stages::VERTEX_ATTRIBUTE_INPUT]),
    (
        Stages::PRE_RASTERIZATION_SHADERS,
        &[
            Stages::VERTEX_SHADER,
            Stages::TESSELLATION_CONTROL_SHADER,
            Stages::TESSELLATION_EVALUATION_SHADER,
            Stages::GEOMETRY_SHADER,
        ],
    ),
];

/// Groups of accesses.
const ACCESS_GROUPS: [(Access, Access); 4] = [
    (Access::MEMORY_READ, Access::from_raw(!WRITES.as_raw())),
    (Access::MEMORY_WRITE, WRITES),
    (
        Access::SHADER_READ,
        Access::from_raw(Access::SHADER_SAMPLED_READ.as_raw() | Access::SHADER_STORAGE_READ.as_raw()),
    ),
    (Access::SHADER_WRITE, Access::SHADER_STORAGE_WRITE),
];

/// Every access that writes.
pub(crate) const WRITES: Access = Access::from_raw(
    Access::SHADER_WRITE.as_raw()
        | Access::SHADER_STORAGE_WRITE.as_raw()
        | Access::COLOR_ATTACHMENT_WRITE.as_raw()
        | Access::DEPTH_STENCIL_ATTACHMENT_WRITE.as_raw()
        | Access::TRANSFER_WRITE.as_raw()
        | Access::HOST_WRITE.as_raw()
        | Access::MEMORY_WRITE.as_raw(),
);

fn stages_of(stages: Stages) -> Stages {
    if stages.contains(Stages::ALL_COMMANDS) {
        return DEVICE;
    }
    let mut all = stages;
    for (group, members) in GROUPS {
        if stages.contains(group) {
            all |= members.iter().fold(Stages::NONE, |sum, &stage| sum | stage);
        }
    }
    all & (DEVICE | Stages::HOST)
}

fn accesses_of(access: Access) -> Access {
    let groups = ACCESS_GROUPS.iter().filter(|(group, _)| access.contains(*group));
    groups.fold(access, |all, (_, members)| all | *members)
}

fn with_later(stages: Stages) -> Stages {
    let mut all = stages;
    for pipeline in [&DRAW[..], &DISPATCH[..]] {
        let first = pipeline.iter().position(|stage| stages.intersects(*stage)).unwrap_or(pipeline.len());
        all |= pipeline.iter().skip(first + 1).fold(Stages::NONE, |sum, &stage| sum | stage);
    }
    all
}

fn with_earlier(stages: Stages) -> Stages {
    let mut all = stages;
    for pipeline in [&DRAW[..], &DISPATCH[..]] {
        let last = pipeline.iter().rposition(|stage| stages.intersects(*stage)).unwrap_or(0);
        all |= pipeline.iter().take(last).fold(Stages::NONE, |sum, &stage| sum | stage);
    }
    all
}
