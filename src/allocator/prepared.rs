//! Requests that are resolved once and allocated many times.

use std::panic::Location;

use ash::vk;

use super::request::{AllocationRequest, ORDINARY, Resource, flags_of};
use super::route::{MADE, Miss};
use super::{Allocator, events};
use crate::allocation::{Allocation, ResourceKind};
use crate::base::align::Alignment;
use crate::base::cast::index;
use crate::base::sync::Threading;
use crate::blocks::{Grant, VectorRequest, with_alignment};
use crate::create_info::{AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};
use crate::device::{BufferOrImage, Requirements};
use crate::error::{AllocationError, Contradiction, CreateError};
use crate::metadata::Strategy;
use crate::pool::{Pool, VectorFacts};

/// An [`AllocationCreateInfo`] whose memory type, block vector and flags are resolved, for a program that allocates with
/// it many times. An allocation with it is the one that the create-info itself would have got.
///
/// It belongs to the allocator that made it. If it names a pool it does not borrow it: once the pool is destroyed, the
/// request is refused. Any number of threads may use it at once.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// struct Meshes {
///     request: PreparedAllocation,
/// }
/// let meshes = Meshes { request: allocator.prepare(!0, &AllocationCreateInfo::new(MemoryUsage::GpuOnly))? };
/// let memory = allocator.allocate_prepared(&meshes.request, 65_536, 256)?;
/// assert_eq!(memory.size(), 65_536);
/// // SAFETY: nothing was ever bound to it.
/// unsafe { allocator.free_memory(memory) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PreparedAllocation {
    /// The number of the allocator that made it.
    allocator: u32,
    /// Without the pool and the name, which are beside it.
    info: AllocationCreateInfo<'static>,
    pool: Option<Pool>,
    name: Option<Box<str>>,
    /// Without size, alignment and handle.
    resource: Resource,
    shape: Shape,
    /// `None`: every allocation takes the slow path.
    resolved: Option<Resolved>,
}

/// What kind, usage and tiling of the resource were made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Memory,
    Buffer(vk::BufferUsageFlags2KHR),
    Image(vk::ImageUsageFlags, vk::ImageTiling),
}

/// What the fast path finds out anew for each plain request.
#[derive(Debug)]
struct Resolved {
    facts: VectorFacts,
    /// Without a size, and at the least alignment.
    request: VectorRequest,
    /// The flags of the allocation.
    flags: u8,
}

impl PreparedAllocation {
    /// The memory type that is tried first; `None` if only the allocation itself finds that out.
    #[must_use]
    pub fn memory_type_index(&self) -> Option<u32> {
        self.resolved.as_ref().map(|resolved| resolved.facts.config.memory_type)
    }

    /// The create-info that this was prepared from.
    fn info(&self) -> AllocationCreateInfo<'_> {
        AllocationCreateInfo { pool: self.pool.as_ref(), name: self.name.as_deref(), ..self.info }
    }

    /// The generation that the vector must have.
    #[inline(always)]
    fn generation(&self) -> Option<u32> {
        self.pool.as_ref().map(|pool| pool.generation)
    }

    /// Whether it resolves to the same for something of its usage with these requirements.
    #[inline(always)]
    fn suits(&self, requirements: &Requirements) -> bool {
        requirements.memory_type_bits == self.resource.requirements.memory_type_bits
            && !(requirements.prefers_dedicated | requirements.requires_dedicated)
    }
}

impl<T: Threading> Allocator<T> {
    /// Prepares requests for [`Self::allocate_prepared`], as [`Self::allocate_memory`] takes them one by one.
    /// `memory_type_bits` is that of their [`vk::MemoryRequirements`].
    ///
    /// # Errors
    /// The [`AllocationError`] that every allocation with `info` would get;
    /// [`PreparedInScope`](Contradiction::PreparedInScope) if it names a scope, which has no vector before its first
    /// allocation.
    ///
    /// ```
    /// # use sublet::*;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// let pool = allocator.create_pool(&PoolCreateInfo::new(0))?;
    /// let request = allocator.prepare(!0, &AllocationCreateInfo::in_pool(&pool))?;
    /// // SAFETY: nothing was allocated in it.
    /// unsafe { allocator.destroy_pool(pool) }?;
    /// assert_eq!(allocator.allocate_prepared(&request, 4096, 64).unwrap_err(), AllocationError::ForeignPool);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare(
        &self,
        memory_type_bits: u32,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<PreparedAllocation, AllocationError> {
        let requirements = Requirements { memory_type_bits, ..Requirements::default() };
        self.prepare_for(Resource::unknown(requirements), Shape::Memory, info)
    }

    /// [`Self::prepare`] for resources of one kind, as [`Self::allocate_memory_of_kind`] takes them one by one.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// Only resources of this kind are bound to memory that is allocated with the request.
    pub unsafe fn prepare_of_kind(
        &self,
        memory_type_bits: u32,
        kind: ResourceKind,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<PreparedAllocation, AllocationError> {
        let requirements = Requirements { memory_type_bits, ..Requirements::default() };
        self.prepare_for(Resource::of_kind(requirements, kind), Shape::Memory, info)
    }

    /// Prepares requests for buffers with the usage and the flags of `buffer_info`: for
    /// [`Self::create_prepared_buffer`]. As in
    /// [`find_memory_type_index_for_buffer_info`](Self::find_memory_type_index_for_buffer_info) the driver is asked, or
    /// a buffer is made and destroyed.
    ///
    /// # Errors
    /// The [`CreateError`] that every buffer with `info` would get.
    ///
    /// # Safety
    /// 1. `buffer_info` is valid for the device (VUID-vkCreateBuffer-pCreateInfo-parameter).
    /// 2. Only buffers are bound to memory that [`Self::allocate_prepared`] allocates with the request.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// let info = vk::BufferCreateInfo::default().size(1024).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
    /// // SAFETY: the create-info is valid, and the request is for such buffers.
    /// let request = unsafe { allocator.prepare_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
    /// for size in [256, 1024, 65_536] {
    ///     // SAFETY: the create-info is valid.
    ///     let (buffer, allocation) = unsafe { allocator.create_prepared_buffer(&request, &info.size(size)) }?;
    ///     // SAFETY: the device does not use it.
    ///     unsafe { allocator.destroy_buffer(buffer, allocation) }?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn prepare_buffer(
        &self,
        buffer_info: &vk::BufferCreateInfo<'_>,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<PreparedAllocation, CreateError> {
        // SAFETY: the caller's promise 1: `buffer_info` is valid for the device.
        let (requirements, usage) = unsafe { self.imagined_buffer(buffer_info) }?;
        let resource = Resource::buffer(requirements, vk::Buffer::null(), Some(usage));
        Ok(self.prepare_for(resource, Shape::Buffer(usage), info)?)
    }

    /// Prepares requests for images like that of `image_info`: for [`Self::create_prepared_image`]. As in
    /// [`find_memory_type_index_for_image_info`](Self::find_memory_type_index_for_image_info) the driver is asked, or an
    /// image is made and destroyed.
    ///
    /// # Errors
    /// The [`CreateError`] that every image with `info` would get.
    ///
    /// # Safety
    /// 1. `image_info` is valid for the device (VUID-vkCreateImage-pCreateInfo-parameter), and its tiling is not that of
    ///    a DRM modifier (VUID-VkDeviceImageMemoryRequirements-pCreateInfo-06776).
    /// 2. Only images with its tiling are bound to memory that [`Self::allocate_prepared`] allocates with the request.
    pub unsafe fn prepare_image(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<PreparedAllocation, CreateError> {
        if image_info.flags.contains(vk::ImageCreateFlags::DISJOINT) {
            return Err(CreateError::Disjoint);
        }
        // SAFETY: the caller's promise 1: `image_info` is valid for the device, and its tiling is not that of a DRM
        // modifier.
        let requirements =
            unsafe { self.device().requirements_for_image(image_info) }.map_err(CreateError::Resource)?;
        let (usage, tiling) = (image_info.usage, image_info.tiling);
        let resource = Resource::image(requirements, vk::Image::null(), Some((usage, tiling)));
        Ok(self.prepare_for(resource, Shape::Image(usage, tiling), info)?)
    }

    /// Checks and resolves what does not depend on size and alignment.
    fn prepare_for(
        &self,
        resource: Resource,
        shape: Shape,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<PreparedAllocation, AllocationError> {
        if info.scope.is_some() {
            return Err(Contradiction::PreparedInScope.into());
        }
        let memory_type_bits = resource.requirements.memory_type_bits;
        // The check takes size and alignment for right.
        let requirements =
            Requirements { size: 1, alignment: 1, memory_type_bits, ..Requirements::default() };
        let resource = Resource { requirements, handle: None, ..resource };
        let asked = AllocationRequest::checked(&resource, info)?;
        let facts = match info.pool {
            Some(pool) => self.facts_for(pool, memory_type_bits)?,
            None => {
                let (best, _) = self.inner.types.choose(&self.wish(&resource, info))?;
                &self.inner.defaults[index(best)].facts
            }
        };
        let is_lazy = info.pool.is_none() && info.usage == MemoryUsage::GpuLazilyAllocated;
        // Explicit properties send a plain request to the slow path, for the choice of a type, which is made here.
        let is_upper = info.flags.contains(Flags::UPPER_ADDRESS);
        let is_ordinary = info.name.is_none() && ORDINARY.contains(info.flags) && !is_lazy && !is_upper;
        let resolved = is_ordinary.then(|| {
            // Each allocation adds its own alignment to the tag.
            let request = VectorRequest { tag: resource.tag, ..asked.of_vector(facts) };
            Resolved { facts: *facts, request, flags: flags_of(info, facts, request.mapped) }
        });
        let pool = info.pool.map(|&Pool { allocator, generation, number, facts }| Pool {
            allocator,
            generation,
            number,
            facts,
        });
        Ok(PreparedAllocation {
            allocator: self.inner.id,
            info: AllocationCreateInfo {
                pool: None,
                scope: None,
                name: None,
                flags: info.flags,
                usage: info.usage,
                required_flags: info.required_flags,
                preferred_flags: info.preferred_flags,
                memory_type_bits: info.memory_type_bits,
                user_data: info.user_data,
                priority: info.priority,
                min_alignment: info.min_alignment,
            },
            pool,
            name: info.name.map(Box::from),
            resource,
            shape,
            resolved,
        })
    }
}

impl<T: Threading> Allocator<T> {
    /// Allocates memory as it was prepared. `size` and `alignment` are in bytes.
    ///
    /// # Errors
    /// See [`AllocationError`]; [`ForeignRequest`](AllocationError::ForeignRequest) if another allocator prepared
    /// `prepared`, and [`ForeignPool`](AllocationError::ForeignPool) if its pool was destroyed.
    ///
    /// # Complexity
    /// As [`Self::allocate_memory`], of which it leaves out the choice of a memory type and the checks of the
    /// create-info.
    #[inline]
    #[track_caller]
    pub fn allocate_prepared(
        &self,
        prepared: &PreparedAllocation,
        size: u64,
        alignment: u64,
    ) -> Result<Allocation, AllocationError> {
        match self.allocate_resolved(prepared, size, alignment) {
            Ok(allocation) => Ok(allocation),
            Err(miss) => self.allocate_unresolved(prepared, size, alignment, miss, Location::caller()),
        }
    }

    /// [`Self::make_up_for_prepared`] with a result. In line, so that the result is written once.
    #[inline(always)]
    fn allocate_unresolved(
        &self,
        prepared: &PreparedAllocation,
        size: u64,
        alignment: u64,
        miss: Miss<'_, T>,
        caller: &'static Location<'static>,
    ) -> Result<Allocation, AllocationError> {
        let requirements = Requirements { size, alignment, ..prepared.resource.requirements };
        let resource = Resource { requirements, ..prepared.resource };
        let mut made = None;
        self.make_up_for_prepared(prepared, resource, miss, caller, &mut made)?;
        Ok(made.expect(MADE))
    }

    /// Creates a buffer, allocates memory for it as it was prepared, and binds the two (unless
    /// [`DONT_BIND`](crate::AllocationCreateFlags::DONT_BIND)). Any buffer will do; one of another usage, or with other
    /// requirements, than those that the request was prepared for takes as long as with [`Self::create_buffer`].
    ///
    /// # Errors
    /// As [`Self::create_buffer`] and [`Self::allocate_prepared`]; nothing is left behind.
    ///
    /// # Safety
    /// `buffer_info` is valid for the device (VUID-vkCreateBuffer-pCreateInfo-parameter).
    #[track_caller]
    pub unsafe fn create_prepared_buffer(
        &self,
        prepared: &PreparedAllocation,
        buffer_info: &vk::BufferCreateInfo<'_>,
    ) -> Result<(vk::Buffer, Allocation), CreateError> {
        // SAFETY: the caller's promise: `buffer_info` is valid for the device.
        let (buffer, requirements, usage) = unsafe { self.bare_buffer(buffer_info) }?;
        let suits = prepared.shape == Shape::Buffer(usage) && prepared.suits(&requirements);
        let resource = || Resource::buffer(requirements, buffer, Some(usage));
        // SAFETY: the buffer was created just now and these are its requirements.
        unsafe { self.provide_prepared(buffer, &requirements, suits, resource, prepared, Location::caller()) }
    }

    /// Creates an image, allocates memory for it as it was prepared, and binds the two (unless
    /// [`DONT_BIND`](crate::AllocationCreateFlags::DONT_BIND)). Any image will do; one of another usage or tiling, or
    /// with other requirements, than those that the request was prepared for takes as long as with
    /// [`Self::create_image`].
    ///
    /// # Errors
    /// As [`Self::create_image`] and [`Self::allocate_prepared`]; nothing is left behind.
    ///
    /// # Safety
    /// `image_info` is valid for the device (VUID-vkCreateImage-pCreateInfo-parameter).
    #[track_caller]
    pub unsafe fn create_prepared_image(
        &self,
        prepared: &PreparedAllocation,
        image_info: &vk::ImageCreateInfo<'_>,
    ) -> Result<(vk::Image, Allocation), CreateError> {
        // SAFETY: the caller's promise: `image_info` is valid for the device.
        let (image, requirements) = unsafe { self.bare_image(image_info) }?;
        let (usage, tiling) = (image_info.usage, image_info.tiling);
        let suits = prepared.shape == Shape::Image(usage, tiling) && prepared.suits(&requirements);
        let resource = || Resource::image(requirements, image, Some((usage, tiling)));
        // SAFETY: the image was created just now and these are its requirements.
        unsafe { self.provide_prepared(image, &requirements, suits, resource, prepared, Location::caller()) }
    }

    /// Allocates and binds; destroys the resource if either fails. The slow path alone needs the `resource`.
    ///
    /// # Safety
    /// `handle` was created a moment ago, is not bound, and has these requirements, as `resource` does.
    #[inline(always)]
    unsafe fn provide_prepared<H: Copy + Into<BufferOrImage>>(
        &self,
        handle: H,
        requirements: &Requirements,
        suits: bool,
        resource: impl Fn() -> Resource,
        prepared: &PreparedAllocation,
        caller: &'static Location<'static>,
    ) -> Result<(H, Allocation), CreateError> {
        let answer = if suits {
            self.allocate_resolved(prepared, requirements.size, requirements.alignment)
        } else {
            Err(Miss::Unusual)
        };
        match answer {
            Ok(allocation) => {
                // SAFETY: the allocation was made for these requirements, and the caller's promise: `handle` is not
                // bound.
                unsafe { self.bind_new(handle.into(), &allocation, prepared.info.flags) }?;
                Ok((handle, allocation))
            }
            Err(miss) => {
                let mut made = None;
                let (handle_made, resource) = (handle.into(), resource());
                // SAFETY: the caller's promise: `handle` is not bound, and `resource` has its requirements.
                unsafe {
                    self.provide_prepared_slow(handle_made, resource, prepared, miss, caller, &mut made)
                }?;
                Ok((handle, made.expect(MADE)))
            }
        }
    }

    /// [`Self::provide_prepared`], off the fast path. As in [`Self::allocate_slow`] the allocation is put into `made`.
    ///
    /// # Safety
    /// As there.
    #[cold]
    #[inline(never)]
    unsafe fn provide_prepared_slow(
        &self,
        handle: BufferOrImage,
        resource: Resource,
        prepared: &PreparedAllocation,
        miss: Miss<'_, T>,
        caller: &'static Location<'static>,
        made: &mut Option<Allocation>,
    ) -> Result<(), CreateError> {
        let allocated = self.make_up_for_prepared(prepared, resource, miss, caller, made);
        // SAFETY: the allocation was made for these requirements, and the caller's promise: `handle` is not bound.
        unsafe { self.bind_made(handle, allocated, made, prepared.info.flags) }
    }

    /// [`Self::allocate_usual`] of a prepared request.
    #[inline(always)]
    fn allocate_resolved<'a>(
        &'a self,
        prepared: &'a PreparedAllocation,
        size: u64,
        alignment: u64,
    ) -> Result<Allocation, Miss<'a, T>> {
        if prepared.allocator != self.inner.id || self.inner.bookkeeping.any() {
            return Err(Miss::Unusual);
        }
        let Some(resolved) = &prepared.resolved else { return Err(Miss::Unusual) };
        let Resolved { facts, request, flags } = resolved;
        let Some(alignment) = Alignment::of_both(alignment, 0) else { return Err(Miss::Unusual) };
        // That of the prepared request is the least one.
        let alignment = request.alignment.max(alignment);
        let Some(vector) = self.inner.vector(facts.vector) else { return Err(Miss::Unusual) };
        if size.wrapping_sub(1) >= facts.largest_shared {
            return Err(Miss::Unusual);
        }
        if request.strategy != Strategy::Balanced {
            return Err(Miss::NotAtOnce((facts, vector)));
        }
        let tag = with_alignment(request.tag, alignment);
        let wanted = || VectorRequest { size, alignment, tag, ..*request };
        let hand_out = |granted: Option<Grant>| match granted {
            None => Err(Miss::NotAtOnce((facts, vector))),
            Some(grant) if request.mapped && !grant.mapped.is_mapped() => {
                Err(Miss::Unmapped(grant, (facts, vector)))
            }
            Some(grant) => Ok(self.granted(facts, grant, size, prepared.info.user_data, *flags)),
        };
        let home = vector.home();
        if home != 0 {
            return hand_out(vector.grant_in_shard(home, &wanted(), prepared.generation()));
        }
        hand_out(vector.grant(wanted, prepared.generation()))
    }

    /// [`Self::allocate_slow`] of a prepared request.
    #[cold]
    #[inline(never)]
    fn make_up_for_prepared(
        &self,
        prepared: &PreparedAllocation,
        resource: Resource,
        miss: Miss<'_, T>,
        caller: &'static Location<'static>,
        made: &mut Option<Allocation>,
    ) -> Result<(), AllocationError> {
        let info = prepared.info();
        let refused = if prepared.allocator != self.inner.id {
            Some(AllocationError::ForeignRequest)
        } else if prepared.pool.as_ref().is_some_and(|pool| !self.has_pool(pool)) {
            Some(AllocationError::ForeignPool)
        } else {
            None
        };
        if let Some(error) = refused {
            events::failed(&resource, &info, caller, &error);
            return Err(error);
        }
        let miss = match miss {
            // What does not suit is resolved anew.
            Miss::Unusual => {
                match self.allocate_usual::<false>(&resource, &info, self.inner.bookkeeping.any()) {
                    Ok(allocation) => {
                        *made = Some(allocation);
                        return Ok(());
                    }
                    Err(miss) => miss,
                }
            }
            miss => miss,
        };
        self.allocate_slow(resource, &info, miss, caller, made)
    }
}
