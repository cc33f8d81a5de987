//! Pools: separate blocks.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, PoisonError};

use ash::prelude::VkResult;

use crate::alloc::{Alloc, PoolHandle};
use crate::allocator::Allocator;
use crate::info::PoolCreateInfo;
use crate::refused::{corrupted, misused, no_pool};
use crate::statistics::{DetailedStatistics, Statistics};

/// A pool, or the allocator's own blocks: see [`Allocator::default_pool`]. Dropping it destroys the pool and everything
/// in it.
#[derive(Debug)]
pub struct AllocatorPool {
    allocator: Arc<Allocator>,
    /// `None` for the allocator's own blocks.
    pool: Option<sublet::Pool>,
    name: Mutex<Option<CString>>,
}

impl Allocator {
    /// Creates a pool.
    ///
    /// The original interface is not `unsafe` here. The program must ensure that the chain of the create-info lives as
    /// long as the pool. When the pool is dropped, the device must no longer use anything in it.
    ///
    /// # Errors
    /// `ERROR_OUT_OF_DEVICE_MEMORY` if the first blocks cannot be allocated, `ERROR_FEATURE_NOT_PRESENT` if the memory
    /// type does not exist, `ERROR_INITIALIZATION_FAILED` for an invalid setting. Everything created before the failure
    /// is freed.
    pub fn create_pool(self: &Arc<Self>, create_info: &PoolCreateInfo<'_>) -> VkResult<AllocatorPool> {
        // SAFETY: the documentation requires it.
        let info = unsafe { create_info.to_sublet(self.has_priorities) };
        let pool = self.as_sublet().create_pool(&info).map_err(|error| no_pool(&error))?;
        Ok(AllocatorPool { allocator: Arc::clone(self), pool: Some(pool), name: Mutex::default() })
    }

    /// Returns the allocator's own blocks as a pool.
    pub fn default_pool(self: &Arc<Self>) -> AllocatorPool {
        AllocatorPool { allocator: Arc::clone(self), pool: None, name: Mutex::default() }
    }

    /// Returns the range of memory type indices.
    fn memory_types(&self) -> std::ops::Range<u32> {
        0..self.as_sublet().memory_properties().memory_type_count
    }
}

impl AllocatorPool {
    /// Returns Sublet's pool; `None` for the allocator's own blocks.
    pub fn as_sublet(&self) -> Option<&sublet::Pool> {
        self.pool.as_ref()
    }

    /// Sets or removes the name of the pool in statistics. The default pool has none.
    pub fn set_name(&self, name: Option<&CStr>) {
        let Some(pool) = &self.pool else { return };
        let text = name.map(CStr::to_string_lossy);
        if let Err(error) = self.allocator.as_sublet().set_pool_name(pool, text.as_deref()) {
            let _ = misused(&error.to_string());
        }
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name.map(CStr::to_owned);
    }

    /// Returns the name of the pool.
    pub fn name(&self) -> Option<CString> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the statistics that are always current.
    ///
    /// # Errors
    /// None.
    pub fn get_statistics(&self) -> VkResult<Statistics> {
        let allocator = self.allocator.as_sublet();
        let known = match &self.pool {
            Some(pool) => allocator.pool_statistics(pool).map_err(|error| misused(&error.to_string()))?,
            None => {
                let mut sum = sublet::Statistics::default();
                for memory_type in self.allocator.memory_types() {
                    sum.add(&allocator.default_statistics(memory_type).unwrap_or_default());
                }
                sum
            }
        };
        Ok(Statistics::from(&known))
    }

    /// Walks the pool and returns detailed statistics.
    ///
    /// # Errors
    /// None.
    pub fn calculate_statistics(&self) -> VkResult<DetailedStatistics> {
        let allocator = self.allocator.as_sublet();
        let known = match &self.pool {
            Some(pool) => {
                allocator.calculate_pool_statistics(pool).map_err(|error| misused(&error.to_string()))?
            }
            None => {
                let mut sum = sublet::DetailedStatistics::default();
                for memory_type in self.allocator.memory_types() {
                    sum.add(&allocator.calculate_default_statistics(memory_type).unwrap_or_default());
                }
                sum
            }
        };
        Ok(DetailedStatistics::from(&known))
    }

    /// Checks the margins.
    ///
    /// # Errors
    /// `ERROR_FEATURE_NOT_PRESENT` if there are no margins, `ERROR_UNKNOWN` if one is damaged.
    pub fn check_corruption(&self) -> VkResult<()> {
        let allocator = self.allocator.as_sublet();
        let checked = match &self.pool {
            Some(pool) => allocator.check_pool_corruption(pool),
            None => allocator.check_corruption(u32::MAX),
        };
        checked.map_err(|error| corrupted(&error))
    }
}

impl Drop for AllocatorPool {
    fn drop(&mut self) {
        let Some(pool) = self.pool.take() else { return };
        // SAFETY: the device no longer uses anything in the pool, as `create_pool` requires.
        match unsafe { self.allocator.as_sublet().destroy_pool(pool) } {
            Ok(leaks) if leaks.is_empty() => {}
            Ok(leaks) => {
                let allocations = leaks.len();
                tracing::error!(target: "vk_mem", allocations, "a pool goes before what is in it");
            }
            Err(error) => {
                let _ = misused(&error.to_string());
            }
        }
    }
}

impl Alloc for AllocatorPool {
    fn allocator(&self) -> &Allocator {
        &self.allocator
    }

    fn pool(&self) -> PoolHandle<'_> {
        PoolHandle(self.pool.as_ref())
    }
}
