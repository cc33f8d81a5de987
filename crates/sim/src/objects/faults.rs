//! Faults that a test orders: failures, delays and budgets. Also the counts of calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ash::vk;
use parking_lot::{Condvar, Mutex, RwLock};

use crate::facts::arithmetic::index;

/// The ordered faults, and the count of calls of each entry point.
#[derive(Debug, Default)]
pub(crate) struct FaultState {
    /// By the first name of the entry point.
    counts: RwLock<HashMap<&'static str, AtomicU64>>,
    /// True if `orders` holds anything that [`FaultState::enter`] has to look at: most runs order nothing.
    armed: AtomicBool,
    orders: Mutex<Orders>,
    /// Notified when calls that were held may go on.
    released: Condvar,
}

#[derive(Debug, Default)]
pub(crate) struct Orders {
    calls: BTreeMap<&'static str, CallOrders>,
    pub(crate) above: Option<u64>,
    /// By heap.
    pub(crate) budgets: [Option<PosedBudget>; vk::MAX_MEMORY_HEAPS],
}

/// The orders for one entry point.
#[derive(Debug, Default)]
pub(crate) struct CallOrders {
    /// Failures that are still to come: the count of calls that succeed first, and the result.
    pub(crate) nth: Vec<(u64, vk::Result)>,
    pub(crate) always: Option<vk::Result>,
    pub(crate) delay: Option<Duration>,
    pub(crate) held: bool,
}

/// The budget and usage that a heap is to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PosedBudget {
    pub(crate) budget: u64,
    pub(crate) usage: u64,
    /// True if the usage of the GPU's own devices is added.
    pub(crate) adds_own: bool,
}

impl FaultState {
    /// Counts a call, waits while it is held, waits out its delay, and returns the failure that was ordered for it.
    pub(crate) fn enter(&self, call: &'static str) -> Option<vk::Result> {
        let known = self.counts.read().get(call).map(|count| count.fetch_add(1, Ordering::Relaxed));
        if known.is_none() {
            self.counts.write().entry(call).or_default().fetch_add(1, Ordering::Relaxed);
        }
        if !self.armed.load(Ordering::Acquire) {
            return None;
        }
        let (delay, fault) = {
            let mut orders = self.orders.lock();
            while orders.calls.get(call).is_some_and(|ordered| ordered.held) {
                self.released.wait(&mut orders);
            }
            let ordered = orders.calls.get_mut(call)?;
            (ordered.delay, ordered.fault())
        };
        // Outside of every lock: a slow call must not slow the calls of other threads.
        if let Some(delay) = delay {
            std::thread::sleep(delay);
        }
        fault
    }

    /// Returns whether an allocation of this size is to fail.
    pub(crate) fn refuses(&self, size: u64) -> bool {
        self.armed.load(Ordering::Acquire) && self.orders.lock().above.is_some_and(|above| size > above)
    }

    /// The budget that was ordered for a heap.
    pub(crate) fn budget(&self, heap: u32) -> Option<PosedBudget> {
        self.orders.lock().budgets.get(index(heap)).copied().flatten()
    }

    pub(crate) fn count(&self, call: &'static str) -> u64 {
        self.counts.read().get(call).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = self.counts.read();
        let each = counts.iter().map(|(call, count)| (*call, count.load(Ordering::Relaxed)));
        let mut counts: Vec<_> = each.filter(|&(_, count)| count > 0).collect();
        counts.sort_unstable();
        counts
    }

    pub(crate) fn reset_counts(&self) {
        self.counts.write().clear();
    }

    pub(crate) fn order(&self, change: impl FnOnce(&mut Orders)) {
        let mut orders = self.orders.lock();
        change(&mut orders);
        let idle = orders.calls.is_empty() && orders.above.is_none();
        self.armed.store(!idle, Ordering::Release);
        self.released.notify_all();
    }
}

impl Orders {
    /// Forgets the orders for an entry point.
    pub(crate) fn forget(&mut self, call: &'static str) {
        self.calls.remove(call);
    }

    /// Returns the orders for an entry point.
    pub(crate) fn of(&mut self, call: &'static str) -> &mut CallOrders {
        self.calls.entry(call).or_default()
    }
}

impl CallOrders {
    fn fault(&mut self) -> Option<vk::Result> {
        let mut fault = self.always;
        // Every order counts this call. The first that is due decides the result, and all that are due are used up.
        self.nth.retain_mut(|(left, result)| {
            if *left == 0 {
                fault.get_or_insert(*result);
                return false;
            }
            *left -= 1;
            true
        });
        fault
    }
}
