//! The binder: a program stages descriptors by set and binding, and the binder binds stale sets at a draw or a
//! dispatch. See [`Binder`].

mod area;
mod bound;
mod bytes;
mod commit;
mod error;
mod layout;
mod life;
mod mask;
mod plan;
mod point;
mod source;
mod stage;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests;
mod writes;

pub use error::{CommitError, CreateBinderError, PipelineLayoutError, StageError, UseLayoutError};
pub use layout::PipelineLayoutInfo;
pub use stage::Unstaged;

use std::fmt;

use ash::vk;

use self::bound::BoundBuffers;
use self::point::BindPointState;
use self::source::BinderSource;
use super::device::DescriptorDevice;
use super::sizes::DescriptorSizes;
use super::transient::{CollectPoolsError, TransientSetsCreateInfo};
use sublet::retire::{ClockView, Ticket};
use sublet::upload::{AllocatorRef, FlushError};

/// The usages of descriptor pages.
const PAGE_USAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::RESOURCE_DESCRIPTOR_BUFFER_EXT.as_raw()
        | vk::BufferUsageFlags::SAMPLER_DESCRIPTOR_BUFFER_EXT.as_raw(),
);

/// A bind point of pipelines in a command buffer. Each has its own sets.
///
/// ```
/// use ash::vk;
/// use sublet_descriptors::BindPoint;
/// assert_eq!(BindPoint::Compute.to_vk(), vk::PipelineBindPoint::COMPUTE);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BindPoint {
    /// For draws.
    Graphics,
    /// For dispatches.
    Compute,
    /// For tracing rays.
    RayTracing,
}

/// The number of bind points.
const POINTS: usize = 3;

impl BindPoint {
    /// Returns the Vulkan value.
    #[inline]
    #[must_use]
    pub const fn to_vk(self) -> vk::PipelineBindPoint {
        match self {
            Self::Graphics => vk::PipelineBindPoint::GRAPHICS,
            Self::Compute => vk::PipelineBindPoint::COMPUTE,
            Self::RayTracing => vk::PipelineBindPoint::RAY_TRACING_KHR,
        }
    }
}

/// The parameters of a [`Binder`].
#[derive(Clone, Debug)]
pub struct BinderCreateInfo<'a> {
    /// The parameters of the set pools, for devices that bind sets.
    pub sets: TransientSetsCreateInfo,
    /// The size of a descriptor page in bytes, for descriptor buffers. A page should hold everything that one command
    /// buffer binds, because each further page must be bound again. Pages are smaller if the device's limits require
    /// it.
    pub page_size: u64,
    /// The maximum size of all descriptor pages together, in bytes.
    pub memory_limit: Option<u64>,
    /// The name in memory maps and leak reports.
    pub name: Option<&'a str>,
}

impl Default for BinderCreateInfo<'_> {
    /// Pages of 256 KiB: several thousand sets.
    fn default() -> Self {
        Self {
            sets: TransientSetsCreateInfo::default(),
            page_size: 256 << 10,
            memory_limit: None,
            name: None,
        }
    }
}

/// Binds descriptors: a program stages them by set and binding, and the binder binds stale sets at a draw or a
/// dispatch. It is made for one recording thread: [`Send`], not [`Sync`], no lock.
///
/// ```text
///   stage(set, binding, ..)      values are stored; no driver call
///   commit(commands, point)      of each set that is stale:
///       push descriptors         are pushed                                      vkCmdPushDescriptorSet[WithTemplate]
///       sets                     a new set is allocated, written, and bound      vkUpdateDescriptorSetWithTemplate, vkCmdBindDescriptorSets
///       descriptor buffers       bytes are copied into the bound page            vkGetDescriptorEXT, vkCmdSetDescriptorBufferOffsetsEXT
/// ```
///
/// The model of the [`DescriptorDevice`] decides between the last two. The staging code is the same for both, if the
/// descriptors of buffers have addresses.
///
/// - **A commit with nothing stale does nothing.** A set is stale if its staged content differs from the bound content.
///   Only stale sets are created again, and one call binds consecutive ones. Staging the same descriptors again creates
///   nothing.
/// - **Each bind point has its own** layout, staged descriptors and bound sets, as in Vulkan: a dispatch between two
///   draws does not affect the draws.
/// - **A change of the pipeline layout** keeps the bound sets that Vulkan keeps, and the staged descriptors of sets
///   with the same layout: see [`set_layout`](Self::set_layout).
/// - **The program's own sets**, persistent or bindless, replace staged descriptors: see
///   [`stage_set`](Self::stage_set), and [`stage_buffer`](Self::stage_buffer) for descriptor buffers.
/// - **One descriptor page is bound** at a time. When it is full, the binder binds another one and rebuilds all staged
///   sets there.
/// - The binder never writes descriptors that were not staged, and shaders must not use them.
///   [`first_unstaged`](Self::first_unstaged) finds them.
///
/// The sets and bytes of a binder live for one recording: it has [`flush`](Self::flush) and [`collect`](Self::collect),
/// like [`TransientSets`](super::TransientSets).
///
/// The constants of a draw need no descriptor of their own: stage a page of an
/// [`UploadArena`](sublet::upload::UploadArena) as a dynamic uniform buffer, and an offset for each draw. The set is
/// then created once for each page:
///
/// ```
/// use ash::vk;
/// use sublet_descriptors::{BindPoint, Binder, BinderCreateInfo, BufferDescriptor, Descriptor, DescriptorDevice};
/// use sublet_descriptors::{DescriptorDeviceCreateInfo, PipelineLayoutInfo, SetLayout};
/// use sublet::retire::Clock;
/// use sublet::upload::{UploadArena, UploadArenaCreateInfo};
/// use sublet::{Allocator, AllocatorCreateInfo, sim};
///
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let vulkan = gpu.device();
/// # let bindings = [vk::DescriptorSetLayoutBinding::default().descriptor_type(vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC)
/// #     .descriptor_count(1).stage_flags(vk::ShaderStageFlags::VERTEX)];
/// # let set_info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
/// # let set_handles = [unsafe { vulkan.create_descriptor_set_layout(&set_info, None) }?];
/// # let pipeline_info = vk::PipelineLayoutCreateInfo::default().set_layouts(&set_handles);
/// # let pipeline_layout = unsafe { vulkan.create_pipeline_layout(&pipeline_info, None) }?;
/// # let pool = unsafe { vulkan.create_command_pool(&Default::default(), None) }?;
/// # let commands_info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
/// # let commands = unsafe { vulkan.allocate_command_buffers(&commands_info) }?[0];
/// # unsafe { vulkan.begin_command_buffer(commands, &Default::default()) }?;
/// // SAFETY, here and below: the objects are live, belong together and outlive what is made from them.
/// let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// // Once, next to the pipeline layout: a description, which Vulkan cannot report.
/// let sets = [unsafe { SetLayout::new(set_handles[0], &set_info) }?];
/// let layout = unsafe { PipelineLayoutInfo::new(&device, pipeline_layout, &sets, &[]) }?;
///
/// // Once for each recording thread.
/// let mut binder = unsafe { Binder::new(&device, &allocator, &BinderCreateInfo::default()) }?;
/// let mut uploads = unsafe { UploadArena::new(&allocator, &UploadArenaCreateInfo::default()) }?;
/// let clock = Clock::new();
/// let timeline = clock.add_timeline()?;
///
/// let ticket = clock.open(timeline);
/// binder.begin(); // a new command buffer
/// binder.set_layout(BindPoint::Graphics, &layout)?;
/// for draw in 0..1000_u32 {
///     let matrix = [[draw as f32; 4]; 4];
///     let constants = uploads.write_value(&matrix, uploads.alignments().uniform)?;
///     let page = BufferDescriptor::new(constants.buffer, 0, 64);
///     binder.stage(BindPoint::Graphics, 0, 0, 0, &[Descriptor::UniformBufferDynamic(page)])?;
///     binder.stage_dynamic_offset(BindPoint::Graphics, 0, 0, 0, u32::try_from(constants.offset)?)?;
///     unsafe { binder.commit(commands, BindPoint::Graphics) }?;
///     // vkCmdDraw goes here.
/// }
/// // All draws use one set, each with its own offset.
/// assert_eq!(gpu.calls("vkAllocateDescriptorSets"), 1);
/// assert_eq!(gpu.calls("vkCmdBindDescriptorSets"), 1000);
///
/// binder.flush(ticket)?;
/// uploads.flush(ticket)?;
/// // vkQueueSubmit goes here, and signals 1.
/// clock.submit(ticket, 1)?;
/// # unsafe { vulkan.destroy_command_pool(pool, None) };
/// clock.completed(timeline, 1); // the result of vkGetSemaphoreCounterValue
/// binder.collect(&clock)?;
/// uploads.collect(&clock)?;
/// # drop((binder, uploads, layout));
/// # unsafe { vulkan.destroy_pipeline_layout(pipeline_layout, None) };
/// # unsafe { vulkan.destroy_descriptor_set_layout(set_handles[0], None) };
/// # drop((device, allocator));
/// # gpu.assert_silent();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Threads cannot share a binder:
///
/// ```compile_fail
/// fn shared<B: Sync>() {}
/// shared::<sublet_descriptors::Binder<&sublet::Allocator>>();
/// ```
#[doc(alias = "DynamicDescriptorHeap")]
pub struct Binder<A: AllocatorRef> {
    device: DescriptorDevice,
    points: [BindPointState; POINTS],
    source: BinderSource<A>,
    sizes: DescriptorSizes,
    /// The descriptor buffers that are bound in the command buffer.
    bound: BoundBuffers,
    /// The usages of the pages.
    usage: vk::BufferUsageFlags,
    /// The dynamic offsets of one call, kept for its capacity.
    offsets: Vec<u32>,
}

impl<A: AllocatorRef> Binder<A> {
    /// Sets the pipeline layout for staging and binding at this bind point.
    ///
    /// As in Vulkan, sets before the first incompatible one stay bound. Other sets with the same set layout stay staged
    /// and are bound again; the rest is dropped.
    ///
    /// # Errors
    /// [`UseLayoutError`]. Nothing was changed.
    ///
    /// # Complexity
    /// O(1) if `layout` is already set, otherwise O(sets) and a comparison of the sets' layouts.
    #[inline]
    #[doc(alias = "ParseRootSignature")]
    #[doc(alias = "ParseGraphicsRootSignature")]
    #[doc(alias = "ParseComputeRootSignature")]
    pub fn set_layout(
        &mut self,
        point: BindPoint,
        layout: &PipelineLayoutInfo,
    ) -> Result<(), UseLayoutError> {
        if self.points[point.at()].layout.as_ref().is_some_and(|current| current.is_same(layout)) {
            return Ok(());
        }
        if !layout.is_of(&self.device) {
            return Err(UseLayoutError::Foreign { layout: layout.handle() });
        }
        if let BinderSource::Pages(pages) = &self.source {
            let (bytes, page_size) = (layout.buffer_bytes(), pages.page_size());
            if bytes > page_size {
                return Err(UseLayoutError::LargerThanPage { bytes, page_size });
            }
        }
        self.offsets.clear();
        self.offsets.reserve(layout.dynamics());
        self.points[point.at()].set_layout(layout);
        Ok(())
    }

    /// Begins a command buffer, or continues one after other code has bound sets in it. The binder treats all sets as
    /// unbound. Staged descriptors stay staged, and the next commit creates and binds their sets again.
    ///
    /// # Complexity
    /// O(staged sets).
    pub fn begin(&mut self) {
        self.bound = BoundBuffers::NOTHING;
        for point in &mut self.points {
            point.begin();
        }
    }

    /// Clears bound and staged descriptors, and the layout, at every bind point.
    ///
    /// # Complexity
    /// O(sets).
    pub fn forget(&mut self) {
        self.bound = BoundBuffers::NOTHING;
        for point in &mut self.points {
            point.forget();
        }
    }

    /// Ends a recording: keeps the results of commits since the last flush until `ticket` is done. Call it before the
    /// recording is submitted. Implies [`begin`](Self::begin).
    ///
    /// # Errors
    /// [`FlushError`] if the driver fails to flush the memory of the descriptors, or if the ticket belongs to another
    /// clock than the pending tickets. Nothing was changed, so the caller may retry.
    pub fn flush(&mut self, ticket: Ticket) -> Result<(), FlushError> {
        self.source.flush(ticket)?;
        self.begin();
        Ok(())
    }

    /// Frees the resources of completed recordings. Returns the number of pools or pages that became free. Call it once
    /// per frame.
    ///
    /// # Errors
    /// [`CollectPoolsError`] if the driver failed to reset a pool, or if something waits for another clock. The next
    /// call tries to reset the pool again.
    pub fn collect(&mut self, clock: &ClockView) -> Result<usize, CollectPoolsError> {
        self.source.collect(clock)
    }

    /// Checks the internal state for consistency, for tests and debugging. O(descriptors).
    ///
    /// # Panics
    /// If an invariant does not hold; the message names it.
    pub fn validate(&self) {
        for point in &self.points {
            point.validate();
        }
        if let BinderSource::Pages(pages) = &self.source {
            pages.validate();
        }
    }
}

impl<A: AllocatorRef> fmt::Debug for Binder<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stale = self.points.each_ref().map(BindPointState::stale);
        f.debug_struct("Binder").field("stale", &stale).finish_non_exhaustive()
    }
}
