//! Simulates the device of a recording.

#![expect(unsafe_code, reason = "creates an allocator on a simulated device")]

use crate::allocator::{Allocator, AllocatorCreateInfo, DebugSettings, Tracking};
use crate::create_info::AllocatorCreateFlags as Flags;
use crate::error::CreateAllocatorError;
use crate::record::header::Header;
use sublet_sim::profiles::{FeaturesProfile, HeapProfile, KnownDevice, TypeProfile};
use sublet_sim::{Gpu, GpuBuilder, Profile};

impl Header {
    /// Returns a profile of the recorded device: its heaps, memory types, granularity, atom size and maximum number of
    /// allocations. Other properties come from the closest of [`profiles::ALL`](crate::sim::profiles::ALL). If that
    /// profile matches the recording, it is returned itself.
    ///
    /// The profile lives until the process ends. Equal devices share one.
    #[must_use]
    pub fn profile(&self) -> &'static Profile {
        let heap = |heap: &super::super::TraceHeap| HeapProfile { size: heap.size, flags: heap.flags };
        let kind = |kind: &super::super::TraceMemoryType| TypeProfile { flags: kind.flags, heap: kind.heap };
        let heaps: Vec<_> = self.heaps.iter().map(heap).collect();
        let types: Vec<_> = self.memory_types.iter().map(kind).collect();
        let has = |flag| self.flags.contains(flag);
        Profile::posing(&KnownDevice {
            name: &self.device_name,
            device_type: self.device_type,
            vendor_id: self.vendor_id,
            device_id: self.device_id,
            driver_version: self.driver_version,
            api_version: self.device_api_version,
            heaps: &heaps,
            types: &types,
            buffer_image_granularity: self.buffer_image_granularity,
            non_coherent_atom_size: self.non_coherent_atom_size,
            max_memory_allocation_count: self.max_memory_allocation_count,
            features: FeaturesProfile {
                memory_budget: has(Flags::EXT_MEMORY_BUDGET),
                memory_priority: has(Flags::EXT_MEMORY_PRIORITY),
                pageable_device_local_memory: has(Flags::EXT_PAGEABLE_DEVICE_LOCAL_MEMORY),
                device_coherent_memory: has(Flags::AMD_DEVICE_COHERENT_MEMORY),
                buffer_device_address: has(Flags::BUFFER_DEVICE_ADDRESS),
                maintenance4: has(Flags::KHR_MAINTENANCE4),
                maintenance5: has(Flags::KHR_MAINTENANCE5),
                ..FeaturesProfile::default()
            },
        })
    }

    /// Returns a simulated GPU with the recorded device's profile: see [`Self::profile`].
    #[must_use]
    pub fn simulated(&self) -> GpuBuilder {
        Gpu::builder(self.profile())
    }

    /// Returns the create-info of an allocator like the recorded one, on a simulated GPU. It has the recorded flags
    /// that the GPU supports, the block sizes and limits, and the debug settings that affect placement.
    ///
    /// ```
    /// # use sublet::{Allocator, trace::Header};
    /// # let header = Header::default();
    /// let gpu = header.simulated().build();
    /// // SAFETY: instance and device are live, and outlive the allocator.
    /// let allocator = unsafe { Allocator::new(&header.create_info(&gpu)) }?;
    /// # Ok::<(), sublet::CreateAllocatorError>(())
    /// ```
    #[must_use]
    pub fn create_info(&self, gpu: &Gpu) -> AllocatorCreateInfo<'_> {
        let info = AllocatorCreateInfo::for_gpu(gpu);
        let heaps = gpu.profile().heaps.len().min(self.heap_size_limits.len());
        let types = gpu.profile().types.len().min(self.block_sizes.len());
        // A hand-made header may have no version.
        let asked = if self.api_version == 0 { info.api_version } else { self.api_version };
        AllocatorCreateInfo {
            flags: (info.flags | Flags::KEEP_ONLY_LAST_BLOCK) & self.flags,
            api_version: asked.min(info.api_version),
            growth: self.growth,
            preferred_large_heap_block_size: self.preferred_large_heap_block_size,
            block_sizes: &self.block_sizes[..types],
            heap_size_limits: &self.heap_size_limits[..heaps],
            empty_blocks_kept: self.empty_blocks_kept,
            tracking: Tracking::from_bits_truncate(self.tracking),
            debug: DebugSettings {
                margin: self.margin,
                always_dedicated: self.always_dedicated,
                min_buffer_image_granularity: self.min_buffer_image_granularity,
                exceed_max_allocation_count: self.exceed_max_allocation_count,
                ..DebugSettings::default()
            },
            ..info
        }
    }

    /// Passes an allocator like the recorded one to a closure, on a simulated GPU like the recorded one. The GPU uses at
    /// most half of this machine's memory, because recordings come from anywhere.
    ///
    /// # Errors
    /// As [`Allocator::new`].
    ///
    /// ```
    /// # use sublet::trace::{Header, Replay, Trace};
    /// # let trace = Trace::default();
    /// let report = trace.header.with_allocator(|_gpu, allocator| Replay::new(&trace, allocator).finish())?;
    /// assert_eq!(report.refused, 0);
    /// # Ok::<(), sublet::CreateAllocatorError>(())
    /// ```
    pub fn with_allocator<R>(
        &self,
        task: impl FnOnce(&Gpu, &Allocator) -> R,
    ) -> Result<R, CreateAllocatorError> {
        let limit = sublet_sim::host_memory().map_or(u64::MAX, |bytes| bytes / 2);
        let gpu = self.simulated().memory_limit(limit).build();
        // SAFETY: instance and device are those of `gpu`, which is declared first and outlives the allocator, and the
        // flags are those that `create_info` takes from it.
        let allocator = unsafe { Allocator::new(&self.create_info(&gpu)) }?;
        Ok(task(&gpu, &allocator))
    }
}
