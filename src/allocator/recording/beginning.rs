//! The start of a recording: the allocator and its device, and the live objects.

use std::time::SystemTime;

use super::{AllocatorFacts, KnownScope};
use crate::allocation::ResourceKind;
use crate::allocator::AllocatorInner;
use crate::blocks::{Annotation, Visited, alignment_of};
use crate::create_info::PoolCreateFlags;
use crate::pool::VectorConfig;
use crate::record::encode::{self, Operation};
use crate::record::header::{Header, TraceHeap, TraceMemoryType};
use crate::record::raw::{Place, PoolPlace, RawExisting, RawPool, RawScope};
use crate::record::recorder::{Opening, fitting, length};
use sublet_engines::ChunkInfo;
use sublet_engines::cast::index;

impl AllocatorInner {
    pub(super) fn header(&self) -> Header {
        let device = &self.context.device;
        let &AllocatorFacts {
            api_version,
            flags,
            growth,
            preferred_large_heap_block_size,
            ref block_sizes,
            ref heap_size_limits,
            empty_blocks_kept,
        } = &self.recording.created;
        let properties = &device.properties;
        let program = std::env::current_exe().ok();
        let name = program.as_deref().and_then(std::path::Path::file_name).unwrap_or_default();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let device_name = properties.device_name_as_c_str().unwrap_or_default().to_string_lossy();
        let settings = &self.debug.settings;
        Header {
            library_version: env!("CARGO_PKG_VERSION").into(),
            program: name.to_string_lossy().into(),
            process: std::process::id(),
            started: now.as_secs(),
            device_name: device_name.into(),
            vendor_id: properties.vendor_id,
            device_id: properties.device_id,
            device_type: properties.device_type,
            driver_version: properties.driver_version,
            device_api_version: properties.api_version,
            heaps: device
                .memory_heaps()
                .iter()
                .map(|heap| TraceHeap { size: heap.size, flags: heap.flags })
                .collect(),
            memory_types: device
                .memory_types()
                .iter()
                .map(|of| TraceMemoryType { heap: of.heap_index, flags: of.property_flags })
                .collect(),
            buffer_image_granularity: properties.limits.buffer_image_granularity,
            non_coherent_atom_size: properties.limits.non_coherent_atom_size,
            max_memory_allocation_count: properties.limits.max_memory_allocation_count,
            api_version,
            flags,
            preferred_large_heap_block_size,
            heap_size_limits: heap_size_limits.to_vec(),
            empty_blocks_kept,
            tracking: self.tracking.bits(),
            margin: settings.margin,
            always_dedicated: settings.always_dedicated,
            min_buffer_image_granularity: settings.min_buffer_image_granularity,
            exceed_max_allocation_count: settings.exceed_max_allocation_count,
            block_sizes: block_sizes.to_vec(),
            growth,
            part: 0,
            opening_records: 0,
        }
    }

    /// Writes the live objects. Other threads that want to record wait meanwhile, without holding a lock. A new
    /// allocation may be written here and again by the thread that made it; readers handle that. An allocation that is
    /// about to be freed is still written. A call that has not seen the recording start may be missed.
    pub(super) fn record_what_lives(&self, opening: &Opening<'_>) {
        let scopes = self.recording.scopes.lock().clone();
        for (&number, KnownScope { block_size, priority, name }) in &scopes {
            let name = fitting(name.as_deref());
            let raw = RawScope { number, block_size: *block_size, priority: *priority, name };
            opening.record(Operation::CreateScope, length(name), |put| encode::scope(put, &raw));
        }
        for (number, vector) in self.numbered_vectors() {
            // Collected first, because nothing may be called while the vector is locked.
            let mut found = None;
            let mut allocations = Vec::new();
            vector.visit(&mut |visited| match visited {
                Visited::Vector { config, generation, name } => {
                    found = Some((*config, generation, name.map(Box::<str>::from)));
                }
                // Later records describe the outcome of the move, if any.
                Visited::Chunk { annotation: Some(Annotation { is_set_aside: true, .. }), .. } => {}
                Visited::Chunk {
                    chunk: ChunkInfo { offset, size, used: Some((key, tag)) },
                    shard,
                    annotation,
                } => {
                    allocations.push((
                        shard,
                        false,
                        key,
                        size,
                        alignment_of(tag, offset).get(),
                        tag,
                        annotation.cloned(),
                    ));
                }
                Visited::Dedicated { key, size, tag, annotation, .. } => {
                    allocations.push((
                        0,
                        true,
                        key,
                        size,
                        alignment_of(tag, 0).get(),
                        tag,
                        Some(annotation.clone()),
                    ));
                }
                Visited::Block { .. } | Visited::Chunk { .. } => {}
            });
            let Some((config, generation, name)) = found else { continue };
            let VectorConfig { memory_type, scope, .. } = config;
            if scope.is_some_and(|scope| !scopes.contains_key(&scope)) {
                // The scope is being freed, or was created after the recording began. Its new contents are recorded
                // when they are allocated.
                continue;
            }
            if scope.is_none() && index(number) >= self.defaults.len() {
                let ignores = config.granularity < self.context.device.granularity;
                let name = fitting(name.as_deref());
                let raw = RawPool {
                    memory_type_index: memory_type,
                    flags: if ignores {
                        PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY
                    } else {
                        PoolCreateFlags::empty()
                    },
                    algorithm: config.algorithm,
                    block_size: if config.fixed_block_size { config.block_size } else { 0 },
                    min_block_count: config.min_blocks,
                    max_block_count: config.max_block_count(),
                    empty_blocks_kept: config.empty_blocks_kept,
                    priority: config.priority,
                    min_allocation_alignment: config.min_alignment.get(),
                    name,
                    memory_allocate_next: config.next.is_some(),
                };
                let place = PoolPlace { vector: number, generation };
                opening.record(Operation::CreatePool, length(name), |put| encode::pool(put, place, &raw));
            }
            for (shard, dedicated, key, size, alignment, tag, annotation) in allocations {
                let annotation = annotation.unwrap_or_default();
                let name = fitting(annotation.name.as_deref());
                let raw = RawExisting {
                    place: Place { vector: number, generation, shard, dedicated, key: key.0.get() },
                    memory_type,
                    size,
                    alignment,
                    kind: ResourceKind::of(tag).number(),
                    usage: ResourceKind::usage_in(tag),
                    scope,
                    user_data: annotation.user_data,
                    name,
                };
                opening.record(Operation::Existing, length(name), |put| encode::existing(put, &raw));
            }
        }
    }
}
