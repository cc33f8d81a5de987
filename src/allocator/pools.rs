//! Custom pools.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use super::recorded_call::RecordedCall;
use super::relief::ReliefNeed;
use super::{Allocator, AllocatorInner};
use crate::allocation::{Leak, ResourceKind};
use crate::blocks::{MemoryBlockVector, Visited};
use crate::create_info::{PoolCreateFlags, PoolCreateInfo};
use crate::error::{CreatePoolError, ForeignHandle};
use crate::pool::{BlockSizing, DestroyPoolError, NO_LIMIT, Pool, VectorConfig, VectorFacts};
use sublet_engines::Alignment;
use sublet_engines::ChunkInfo;
use sublet_engines::cast::{index, narrow};

/// Engines can count the units of a block up to this size.
pub(super) const MAX_BLOCK_SIZE: u64 = 1 << 63;

impl Allocator {
    /// Creates a pool, with its first blocks.
    ///
    /// # Errors
    /// [`CreatePoolError`] if the create-info is invalid or the first blocks cannot be allocated. Nothing is left
    /// behind.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// let info = PoolCreateInfo { block_size: 1 << 20, max_block_count: 2, name: Some("meshes"), ..PoolCreateInfo::new(0) };
    /// let pool = allocator.create_pool(&info)?;
    /// let requirements = vk::MemoryRequirements { size: 700_000, alignment: 256, memory_type_bits: !0 };
    /// let first = allocator.allocate_memory(&requirements, &AllocationCreateInfo::in_pool(&pool))?;
    /// let second = allocator.allocate_memory(&requirements, &AllocationCreateInfo::in_pool(&pool))?;
    /// let third = allocator.allocate_memory(&requirements, &AllocationCreateInfo::in_pool(&pool));
    /// assert!(matches!(third, Err(AllocationError::Full { block_count: 2, .. })));
    /// // SAFETY: nothing was ever bound to them.
    /// unsafe {
    ///     allocator.free_memory(first)?;
    ///     allocator.free_memory(second)?;
    ///     assert!(allocator.destroy_pool(pool)?.is_empty());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_pool(&self, info: &PoolCreateInfo<'_>) -> Result<Pool, CreatePoolError> {
        let pool = self.make_pool(info, None)?;
        self.record(RecordedCall::CreatePool(&pool, info));
        Ok(pool)
    }

    /// Creates a pool for the program, or for the scope with this number.
    pub(super) fn make_pool(
        &self,
        info: &PoolCreateInfo<'_>,
        scope: Option<u32>,
    ) -> Result<Pool, CreatePoolError> {
        let inner = &*self.inner;
        let mut facts = inner.new_pool_facts(info)?;
        facts.config.scope = scope;
        let config = facts.config;
        let defaults = narrow(inner.defaults.len());
        let number = {
            let mut pools = inner.pools.lock();
            match pools.free.pop() {
                Some(number) => number,
                None => {
                    let number = pools.next;
                    let next = number.checked_add(1).filter(|next| next.checked_add(defaults).is_some());
                    pools.next = next.ok_or(CreatePoolError::TooMany)?;
                    number
                }
            }
        };
        let vector = inner.pool_vectors.get_or_make(number, |_| MemoryBlockVector::unused());
        let activated = vector.ok_or(CreatePoolError::TooMany).and_then(|vector| {
            let need = ReliefNeed {
                memory_type: config.memory_type,
                bytes: config.block_size.saturating_mul(config.min_blocks.into()),
                count: config.min_blocks,
                within_budget: false,
                spares_reserved: false,
            };
            let activate = || vector.activate(&inner.context, config, info.name);
            inner.with_relief(need, activate, |&error| Some(error)).map_err(CreatePoolError::Memory)
        });
        match activated {
            Ok(generation) => Ok(Pool {
                allocator: inner.id,
                generation,
                number,
                facts: VectorFacts { vector: defaults + number, ..facts },
            }),
            Err(error) => {
                inner.pools.lock().free.push(number);
                Err(error)
            }
        }
    }

    /// Destroys a pool and returns the allocations that were still live in it. They must not be used any more.
    ///
    /// # Errors
    /// [`DestroyPoolError`] if the pool belongs to another allocator. It contains the pool, and nothing was changed.
    ///
    /// # Safety
    /// The device no longer uses any memory of the pool, and resources that are bound to it are not used again. Its
    /// mappings are not used again either: [`Mapping`](super::Mapping) guards that still live may only be dropped.
    pub unsafe fn destroy_pool(&self, pool: Pool) -> Result<Vec<Leak>, DestroyPoolError> {
        match self.pool_vector(&pool) {
            Ok(vector) if self.has_pool(&pool) => {
                self.record(RecordedCall::DestroyPool(&pool));
                // Before the memory is freed: checks of margins access the memory of every registered allocation.
                self.inner.debug.forget(pool.facts.vector, pool.generation);
                let leaks = self.inner.deactivate(pool.facts.vector, vector);
                self.inner.pools.lock().free.push(self.inner.pool_number(pool.facts.vector));
                Ok(leaks)
            }
            _ => Err(DestroyPoolError { pool }),
        }
    }

    /// Names a pool for statistics and leak reports; `None` removes the name.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the pool belongs to another allocator.
    pub fn set_pool_name(&self, pool: &Pool, name: Option<&str>) -> Result<(), ForeignHandle> {
        self.pool_vector(pool)?.set_pool_name(pool.generation, name)?;
        self.record(RecordedCall::SetPoolName(pool, name));
        Ok(())
    }

    /// The name of a pool.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the pool belongs to another allocator.
    pub fn pool_name(&self, pool: &Pool) -> Result<Option<Box<str>>, ForeignHandle> {
        Ok(self.pool_vector(pool)?.pool_name())
    }

    /// The constant properties of a pool.
    #[inline]
    pub(crate) fn pool_facts<'a>(&self, pool: &'a Pool) -> Result<&'a VectorFacts, ForeignHandle> {
        if pool.allocator == self.inner.id { Ok(&pool.facts) } else { Err(ForeignHandle::Pool) }
    }

    /// Returns true if the pool is live. `pool` may be a copy.
    pub(super) fn has_pool(&self, pool: &Pool) -> bool {
        self.pool_vector(pool).is_ok_and(|vector| vector.is_in_use(pool.generation))
    }

    pub(crate) fn pool_vector(&self, pool: &Pool) -> Result<&MemoryBlockVector, ForeignHandle> {
        self.inner.vector(self.pool_facts(pool)?.vector).ok_or(ForeignHandle::Pool)
    }
}

impl AllocatorInner {
    /// Validates a create-info and derives the vector's configuration.
    pub(super) fn new_pool_facts(&self, info: &PoolCreateInfo<'_>) -> Result<VectorFacts, CreatePoolError> {
        // If two fields are invalid, reports the same one as VMA.
        if info.max_block_count != 0 && info.min_block_count > info.max_block_count {
            return Err(CreatePoolError::BlockCounts {
                min: info.min_block_count,
                max: info.max_block_count,
            });
        }
        let memory_type = info.memory_type_index;
        let allowed = self.allowed_types;
        if memory_type >= u32::BITS || allowed & (1 << memory_type) == 0 {
            return Err(CreatePoolError::MemoryType { memory_type, allowed });
        }
        let alignment = info.min_allocation_alignment;
        let least = Alignment::of_both(alignment, 0).ok_or(CreatePoolError::Alignment { alignment })?;
        if !(0.0..=1.0).contains(&info.priority) {
            return Err(CreatePoolError::Priority { priority: info.priority });
        }
        let heap = self.context.heap_of(memory_type);
        let max = self.context.budgets.max_block_size(heap).min(MAX_BLOCK_SIZE);
        if info.block_size > max {
            return Err(CreatePoolError::BlockSize { block_size: info.block_size, max });
        }
        let fixed_block_size = info.block_size != 0;
        let block_size = if fixed_block_size {
            info.block_size
        } else {
            self.defaults[index(memory_type)].facts.config.block_size
        };
        let ignore_granularity = info.flags.contains(PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY);
        let config = VectorConfig {
            memory_type,
            algorithm: info.algorithm,
            block_size,
            sizing: match self.defaults[index(memory_type)].facts.config.sizing {
                _ if fixed_block_size => BlockSizing::Vma,
                sizing => sizing,
            },
            fixed_block_size,
            min_blocks: info.min_block_count,
            max_blocks: if info.max_block_count == 0 { NO_LIMIT } else { info.max_block_count },
            empty_blocks_kept: info.empty_blocks_kept,
            keeps_only_last: false,
            granularity: if ignore_granularity { Alignment::ONE } else { self.context.device.granularity },
            min_alignment: least.max(self.least_alignment(memory_type)),
            priority: info.priority,
            next: info.memory_allocate_next,
            scope: None,
        };
        Ok(VectorFacts {
            vector: 0,
            config,
            largest_shared: match (self.debug.settings.is_special(), fixed_block_size || config.is_limited())
            {
                (true, _) => 0,
                (false, true) => block_size,
                (false, false) => block_size / 2,
            },
            host: self.host_flags(memory_type),
        })
    }

    /// Deactivates a vector and returns the allocations that were still live in it.
    pub(super) fn deactivate(&self, number: u32, vector: &MemoryBlockVector) -> Vec<Leak> {
        if vector.totals().allocation_count == 0 {
            vector.retire(&self.context);
            return Vec::new();
        }
        let Some(config) = vector.config(None) else {
            return Vec::new();
        };
        let pool = vector.pool_name();
        let pool_number = self.defaults.get(index(number)).is_none().then(|| self.pool_number(number));
        let mut leaks = Vec::new();
        vector.deactivate(&self.context, &mut |visited| {
            let (annotation, size, offset, tag, dedicated) = match visited {
                Visited::Chunk {
                    chunk: ChunkInfo { offset, size, used: Some((_, tag)) },
                    annotation,
                    ..
                } => (annotation, size, offset, tag, false),
                Visited::Dedicated { size, tag, annotation, .. } => (Some(annotation), size, 0, tag, true),
                _ => return,
            };
            let annotation = annotation.cloned().unwrap_or_default();
            let leak = Leak {
                name: annotation.name,
                size,
                offset,
                kind: ResourceKind::of(tag),
                dedicated,
                memory_type_index: config.memory_type,
                pool: pool.clone(),
                pool_number,
                user_data: annotation.user_data,
                caller: annotation.caller,
            };
            leaks.push(leak);
        });
        // Emitted after the locks are released: a subscriber may call the allocator.
        for leak in &leaks {
            tracing::warn!(
                name: "allocation_leaked", target: "sublet::leak",
                allocation = leak.name.as_deref().unwrap_or("(unnamed)"),
                pool = match (&leak.pool, pool_number) {
                    (Some(pool), _) => pool,
                    (None, Some(_)) => "(unnamed)",
                    (None, None) => "(none)",
                },
                pool_number,
                size = leak.size, offset = leak.offset, kind = %leak.kind, dedicated = leak.dedicated,
                memory_type = config.memory_type,
                user_data = leak.user_data, caller = leak.caller.map(tracing::field::display),
                "allocation was never freed"
            );
        }
        leaks
    }
}
