//! Lifetime scopes, which are freed at once.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::sync::OnceLock;

use super::Allocator;
use super::pools::MAX_BLOCK_SIZE;
use super::request::AllocationRequest;
use super::route::CandidateVisitor;
use crate::blocks::MemoryBlockVector;
use crate::create_info::PoolCreateInfo;
use crate::error::{AllocationError, CreatePoolError, ForeignHandle, MemoryError};
use crate::pool::{FreeScopeError, Pool, Scope, ScopeCreateInfo};
use crate::statistics::Statistics;
use sublet_engines::cast::index;

impl Allocator {
    /// Creates a lifetime scope. Allocates no device memory yet.
    ///
    /// # Errors
    /// [`CreatePoolError`] if the priority is not between 0 and 1, or the block size exceeds the limits of all heaps.
    pub fn create_scope(&self, info: &ScopeCreateInfo<'_>) -> Result<Scope, CreatePoolError> {
        let inner = &*self.inner;
        let ScopeCreateInfo { name, block_size, priority } = *info;
        if !(0.0..=1.0).contains(&priority) {
            return Err(CreatePoolError::Priority { priority });
        }
        // In a heap that is too small for such blocks, the scope uses the default size.
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

    /// Frees everything that was allocated in a scope, dedicated memory included, and frees its blocks. Returns the
    /// statistics of the freed memory.
    ///
    /// Allocations of the scope that the program still holds are rejected from now on, with [`ForeignHandle`]. They
    /// need not be freed, only dropped.
    ///
    /// # Errors
    /// [`FreeScopeError`] if the scope belongs to another allocator. It contains the scope, and nothing was changed.
    ///
    /// # Complexity
    /// O(blocks + dedicated allocations), with a driver call for each. The number of allocations in the blocks does not
    /// matter.
    ///
    /// # Safety
    /// 1. The device no longer uses any memory of the scope (VUID-vkFreeMemory-memory-00677).
    /// 2. Buffers and images that are bound to it were destroyed, or are not used again except to destroy them.
    /// 3. Its mappings are not used again: [`Mapping`](super::Mapping) guards that still live may only be dropped, and
    ///    mapped pointers are not accessed.
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

    /// Sums over all pools of a scope. Does not visit blocks.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the scope belongs to another allocator.
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

    /// Deactivates a pool with everything in it, without leak reports.
    fn retire(&self, pool: &Pool) -> Statistics {
        let Ok(vector) = self.pool_vector(pool) else { return Statistics::default() };
        let totals = vector.totals().into();
        // Before the memory is freed: checks of margins access the memory of every registered allocation.
        self.inner.debug.forget(pool.facts.vector, pool.generation);
        vector.retire(&self.inner.context);
        self.inner.pools.lock().free.push(pool.number());
        totals
    }

    /// Visits the scope's pool of a memory type. The first allocation creates the pool; the scope keeps it only if that
    /// allocation succeeds.
    pub(super) fn visit_scope<W: CandidateVisitor>(
        &self,
        visitor: &W,
        asked: &AllocationRequest<'_>,
        scope: &Scope,
        memory_type: u32,
    ) -> Result<W::Answer, AllocationError> {
        let visit = |pool: &Pool| self.visit_vector(visitor, asked, &pool.facts, self.vector_at(&pool.facts));
        if let Some(pool) = scope.pool(memory_type) {
            return visit(pool);
        }
        let info = self.scope_pool_info(scope, memory_type);
        if !W::ALLOCATES {
            // A query must not create the pool. A temporary vector gives the same answer.
            let facts = self
                .inner
                .new_pool_facts(&info)
                .expect("P2: what was checked when the scope was made is right for its pools");
            let vector = MemoryBlockVector::unused();
            vector.activate(&self.inner.context, facts.config, None)?;
            return self.visit_vector(visitor, asked, &facts, &vector);
        }
        // A pool without first blocks is rejected only if there are too many pools.
        let pool = self
            .make_pool(&info, Some(scope.number))
            .map_err(|_| AllocationError::Memory(MemoryError::TooManyAllocations { limit: u32::MAX }))?;
        let answer = visit(&pool);
        if answer.is_err() {
            self.retire(&pool);
            return answer;
        }
        let place = &scope.pools[index(memory_type)];
        let Err(second) = place.set(pool) else { return answer };
        // Another thread was faster. Retiring the second pool also frees the allocation in it.
        drop(answer);
        self.retire(&second);
        visit(place.get().expect("P3: a place that is taken has a pool"))
    }

    fn scope_pool_info<'s>(&self, scope: &'s Scope, memory_type: u32) -> PoolCreateInfo<'s> {
        let heap_size = self.inner.context.budgets.max_block_size(self.inner.context.heap_of(memory_type));
        let heap_size = heap_size.min(MAX_BLOCK_SIZE);
        PoolCreateInfo {
            // A heap that is too small for such blocks should not make the whole scope unusable.
            block_size: if scope.block_size > heap_size { 0 } else { scope.block_size },
            priority: scope.priority,
            name: scope.name.as_deref(),
            ..PoolCreateInfo::new(memory_type)
        }
    }
}
