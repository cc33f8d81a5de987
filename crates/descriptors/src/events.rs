//! Events about descriptor pools. They are emitted while no lock is held, because a subscriber may allocate sets.
//! Events under a lock are collected and emitted after it is released.

use std::cell::RefCell;

use super::pool::CreateDescriptorPoolError;
use sublet::device::DriverError;

/// The kind of a pool event.
#[derive(Debug)]
pub(super) enum PoolEventKind {
    /// The driver created the pool, in `nanoseconds`.
    Created { nanoseconds: u64 },
    /// The driver failed to create the pool.
    Refused(CreateDescriptorPoolError),
    /// The driver failed to allocate a set, although the counted capacity of the pool was sufficient.
    Exhausted(DriverError),
    /// The pool was destroyed.
    Destroyed,
}

/// See [`PoolEventKind`].
#[derive(Debug)]
pub(super) struct PoolEvent {
    pub(super) sets: u32,
    pub(super) descriptors: u64,
    pub(super) what: PoolEventKind,
}

thread_local! {
    /// The events that this thread collects while it holds a lock; `None` if it emits them at once.
    static KEPT: RefCell<Option<Vec<PoolEvent>>> = const { RefCell::new(None) };
}

/// Returns true if a subscriber is interested.
pub(super) fn is_heard() -> bool {
    tracing::enabled!(target: "sublet::descriptor", tracing::Level::DEBUG)
}

/// Emits the collected events on drop, even if the work under the lock panics.
struct Keeping;

impl Drop for Keeping {
    fn drop(&mut self) {
        let kept = KEPT.with_borrow_mut(Option::take);
        kept.unwrap_or_default().iter().for_each(PoolEvent::emit);
    }
}

/// Runs `work`, which takes and releases a lock, and then emits the events that occurred in it.
pub(super) fn after<R>(work: impl FnOnce() -> R) -> R {
    if !is_heard() {
        return work();
    }
    let is_outer = KEPT.with_borrow_mut(|kept| {
        let is_outer = kept.is_none();
        kept.get_or_insert_default();
        is_outer
    });
    let _keeping = is_outer.then_some(Keeping);
    work()
}

impl PoolEvent {
    /// Emits the event now, or after the current lock is released.
    #[cold]
    pub(super) fn happened(self) {
        if !is_heard() {
            return;
        }
        let now = KEPT.with_borrow_mut(|kept| match kept {
            Some(kept) => {
                kept.push(self);
                None
            }
            None => Some(self),
        });
        if let Some(events) = now {
            events.emit();
        }
    }

    fn emit(&self) {
        let Self { sets, descriptors, ref what } = *self;
        match what {
            PoolEventKind::Created { nanoseconds } => tracing::debug!(
                name: "descriptor_pool_created", target: "sublet::descriptor", sets, descriptors, nanoseconds,
                "descriptor pool created"
            ),
            PoolEventKind::Refused(error) => tracing::debug!(
                name: "descriptor_pool_refused", target: "sublet::descriptor", sets, descriptors, %error,
                "descriptor pool refused"
            ),
            PoolEventKind::Exhausted(error) => tracing::debug!(
                name: "descriptor_pool_exhausted", target: "sublet::descriptor", sets, descriptors,
                result = ?error.result,
                "a descriptor pool gives fewer sets than it was made for"
            ),
            PoolEventKind::Destroyed => tracing::debug!(
                name: "descriptor_pool_destroyed", target: "sublet::descriptor", sets, descriptors,
                "descriptor pool destroyed"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_hears_is_not_kept() {
        after(|| {
            PoolEvent { sets: 1, descriptors: 1, what: PoolEventKind::Destroyed }.happened();
            assert!(KEPT.with_borrow(Option::is_none));
        });
    }
}
