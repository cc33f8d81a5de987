//! Lifetime scopes: made, allocated in, counted, and freed at once.

use std::sync::OnceLock;

use super::Allocator;
use super::pools::MAX_BLOCK_SIZE;
use super::request::AllocationRequest;
use super::route::Way;
use crate::base::cast::index;
use crate::blocks::BlockVector;
use crate::create_info::PoolCreateInfo;
use crate::error::{AllocationError, CreatePoolError, ForeignHandle, MemoryError};
use crate::pool::{FreeScopeError, Pool, Scope, ScopeCreateInfo};
use crate::statistics::Statistics;

impl Allocator {
    /// Makes a lifetime scope. No memory is taken yet.
    ///
    /// # Errors
    /// [`CreatePoolError`] if the priority is not between 0 and 1, or the block size is more than any heap can hold.
    pub fn create_scope(&self, info: &ScopeCreateInfo<'_>) -> Result<Scope, CreatePoolError> {
        let inner = &*self.inner;
        let ScopeCreateInfo { name, block_size, priority } = *info;
        if !(0.0..=1.0).contains(&priority) {
            return Err(CreatePoolError::Priority { priority });
        }
        // In a heap that is too small for such a block, the scope will have none.
        let heaps = (0..).take(inner.context.device.memory_heaps().len());
        let max = heaps.map(|heap| inner.context.budgets.max_block_size(heap)).max().unwrap_or(0);
        if block_size > max {
            return Err(CreatePoolError::BlockSize { block_size, max });
        }
        let scope = Scope {
            allocator: inner.id,
            number: self.next_scope(),
            name: name.map(Box::from),
            block_size,
            priority,
            pools: inner.defaults.iter().map(|_| OnceLock::new()).collect(),
        };
        self.know_scope(&scope);
        Ok(scope)
    }

    /// Frees everything that was allocated in a scope, dedicated memory included, and gives its blocks back to the
    /// driver. Returns how much there was.
    ///
    /// Allocations of the scope that the program still holds are refused from now on, with [`ForeignHandle`]; they need
    /// not be freed, only dropped.
    ///
    /// # Errors
    /// [`FreeScopeError`] if the scope is another allocator's: it comes back, and nothing was changed.
    ///
    /// # Complexity
    /// O(blocks + dedicated allocations), each of which is a call of the driver. How many allocations share the blocks
    /// does not matter.
    ///
    /// # Safety
    /// 1. The device no longer uses any memory of the scope (VUID-vkFreeMemory-memory-00677).
    /// 2. Buffers and images that are bound to it were destroyed, or are not used again but to be destroyed.
    /// 3. Nor are mappings of it: [`Mapping`](super::Mapping) guards that still live may only be dropped, and mapped
    ///    pointers are not used again.
    pub unsafe fn free_scope(&self, scope: Scope) -> Result<Statistics, FreeScopeError> {
        if scope.allocator != self.inner.id {
            return Err(FreeScopeError { scope });
        }
        self.forget_scope(&scope);
        let mut freed = Statistics::default();
        for pool in scope.pools.into_iter().filter_map(OnceLock::into_inner) {
            freed.add(&self.retire(&pool));
        }
        tracing::debug!(
            name: "scope_freed", target: "sublet::scope",
            scope = scope.name.as_deref().unwrap_or("(unnamed)"),
            allocations = freed.allocation_count, bytes = freed.block_bytes,
            "scope freed"
        );
        Ok(freed)
    }

    /// Sums over all pools of a scope. Quick: nothing is walked.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the scope is another allocator's.
    pub fn scope_statistics(&self, scope: &Scope) -> Result<Statistics, ForeignHandle> {
        if scope.allocator != self.inner.id {
            return Err(ForeignHandle::Pool);
        }
        let mut all = Statistics::default();
        for pool in scope.pools.iter().filter_map(OnceLock::get) {
            all.add(&self.pool_statistics(pool)?);
        }
        Ok(all)
    }

    /// Takes a pool out of use with everything in it, of which nothing is said.
    fn retire(&self, pool: &Pool) -> Statistics {
        let Ok(vector) = self.pool_vector(pool) else { return Statistics::default() };
        let totals = vector.totals().into();
        // First: who looks at margins relies on the memory of those that it knows.
        self.inner.debug.forget(pool.facts.vector, pool.generation);
        vector.retire(&self.inner.context);
        self.inner.pools.lock().free.push(pool.number());
        totals
    }

    /// Looks for a place in the best memory type, as without a pool, but in the pools of a scope.
    pub(super) fn place_in_scope<W: Way>(
        &self,
        way: &W,
        asked: &AllocationRequest<'_>,
        scope: &Scope,
    ) -> Result<W::Answer, AllocationError> {
        if scope.allocator != self.inner.id {
            return Err(AllocationError::ForeignPool);
        }
        self.in_best_type::<W>(asked, |memory_type| {
            self.place_in_scope_s_type(way, asked, scope, memory_type)
        })
    }

    fn place_in_scope_s_type<W: Way>(
        &self,
        way: &W,
        asked: &AllocationRequest<'_>,
        scope: &Scope,
        memory_type: u32,
    ) -> Result<W::Answer, AllocationError> {
        if let Some(Pool { facts, .. }) = scope.pool(memory_type) {
            return self.place_in(way, asked, facts, self.vector_at(facts));
        }
        if W::TAKES {
            return self.place_in_new_pool(way, asked, scope, memory_type);
        }
        // The pool is not there yet, and shall not be for a look: one that nobody else sees does as well.
        let inner = &*self.inner;
        let facts = inner
            .new_pool_facts(&self.scope_pool_info(scope, memory_type))
            .expect("P2: what was checked when the scope was made is right for its pools");
        let vector = BlockVector::unused();
        vector.activate(&inner.context, facts.config, None)?;
        self.place_in(way, asked, &facts, &vector)
    }

    /// The first allocation of a scope in a memory type: the scope has the pool if there is something in it.
    fn place_in_new_pool<W: Way>(
        &self,
        way: &W,
        asked: &AllocationRequest<'_>,
        scope: &Scope,
        memory_type: u32,
    ) -> Result<W::Answer, AllocationError> {
        // A pool without first blocks is refused only if there are too many pools.
        let pool = self
            .make_pool(&self.scope_pool_info(scope, memory_type), Some(scope.number))
            .map_err(|_| AllocationError::Memory(MemoryError::TooManyAllocations { limit: u32::MAX }))?;
        let placed = self.place_in(way, asked, &pool.facts, self.vector_at(&pool.facts));
        let place = &scope.pools[index(memory_type)];
        match placed {
            Ok(answer) => match place.set(pool) {
                Ok(()) => Ok(answer),
                Err(second) => {
                    // Another thread was faster. What is in the second pool goes with it.
                    drop(answer);
                    self.retire(&second);
                    let Pool { facts, .. } = place.get().expect("P3: a place that is taken has a pool");
                    self.place_in(way, asked, facts, self.vector_at(facts))
                }
            },
            Err(error) => {
                self.retire(&pool);
                Err(error)
            }
        }
    }

    fn scope_pool_info<'s>(&self, scope: &'s Scope, memory_type: u32) -> PoolCreateInfo<'s> {
        let heap_size = self.inner.context.budgets.max_block_size(self.inner.context.heap_of(memory_type));
        let heap_size = heap_size.min(MAX_BLOCK_SIZE);
        PoolCreateInfo {
            // A heap that no such block fits in shall not make the whole scope useless.
            block_size: if scope.block_size > heap_size { 0 } else { scope.block_size },
            priority: scope.priority,
            name: scope.name.as_deref(),
            ..PoolCreateInfo::new(memory_type)
        }
    }
}
