//! Detection of reads from unwritten resources.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::track::{Recorder, ResourceId};

/// An observer of resources that are read before any write.
pub type UnwrittenObserver = Arc<dyn Fn(ResourceId) + Send + Sync>;

/// The resources that were written, if an observer is set.
pub(crate) struct Unwritten {
    observer: UnwrittenObserver,
    /// Protects the set; no lock is taken under it. Never held while the observer runs.
    written: Mutex<HashSet<ResourceId>>,
}

impl Unwritten {
    pub(crate) fn new(observer: UnwrittenObserver) -> Self {
        Self { observer, written: Mutex::default() }
    }

    /// Records that the resource was written, may have been written externally, or was reported.
    pub(crate) fn mark(&self, resource: ResourceId) {
        self.written.lock().insert(resource);
    }

    pub(crate) fn forget(&self, resource: ResourceId) {
        self.written.lock().remove(&resource);
    }

    /// Reports the resources that a list reads before any write. Call it for the lists of a submission in order.
    pub(crate) fn check_reads(&self, list: &Recorder) {
        for (resource, use_) in list.first_uses() {
            let report = {
                let mut written = self.written.lock();
                let known = written.contains(&resource);
                // Report each resource once.
                if use_.reads || use_.writes {
                    written.insert(resource);
                }
                use_.reads && !known
            };
            if report {
                (self.observer)(resource);
            }
        }
    }
}
