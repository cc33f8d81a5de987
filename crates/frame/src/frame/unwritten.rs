//! Reads of what was never written, for programs that look for them.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::track::{Recorder, ResourceId};

/// What is called with resources that are read and were never written.
pub type UnwrittenObserver = Arc<dyn Fn(ResourceId) + Send + Sync>;

/// What was written, as far as somebody wants to know.
pub(crate) struct Unwritten {
    observer: UnwrittenObserver,
    written: Mutex<HashSet<ResourceId>>,
}

impl Unwritten {
    pub(crate) fn new(observer: UnwrittenObserver) -> Self {
        Self { observer, written: Mutex::default() }
    }

    /// It was written, or may have been by somebody else, or the observer knows of it.
    pub(crate) fn mark(&self, resource: ResourceId) {
        self.written.lock().insert(resource);
    }

    /// It is gone.
    pub(crate) fn forget(&self, resource: ResourceId) {
        self.written.lock().remove(&resource);
    }

    /// Tells of what a list reads first, and of which nothing was written before. The lists of a submission come in their
    /// order.
    pub(crate) fn look_at(&self, list: &Recorder) {
        for (resource, use_) in list.first_uses() {
            let told = {
                let mut written = self.written.lock();
                let known = written.contains(&resource);
                // Each is told of once.
                if use_.reads || use_.writes {
                    written.insert(resource);
                }
                use_.reads && !known
            };
            if told {
                (self.observer)(resource);
            }
        }
    }
}
