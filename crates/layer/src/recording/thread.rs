//! The writers that a thread holds: one for each recording that it writes to.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::watch::WatchRecording;
use super::writer::WatchWriter;

/// The recordings that a thread remembers. Most programs have one device.
const REMEMBERED: usize = 8;

/// A writer that no other thread uses. Other threads lock it only to start another file.
#[derive(Debug)]
struct WriterLease {
    number: u64,
    recording: Weak<WatchRecording>,
    writer: Arc<Mutex<WatchWriter>>,
}

impl Drop for WriterLease {
    /// Leaves the writer to another thread.
    fn drop(&mut self) {
        if let Some(recording) = self.recording.upgrade() {
            recording.return_writer(Arc::clone(&self.writer));
        }
    }
}

thread_local! {
    static LEASES: RefCell<Vec<WriterLease>> = const { RefCell::new(Vec::new()) };
}

/// Calls `body` with the writer of this thread.
#[inline]
pub(super) fn with_writer(recording: &Arc<WatchRecording>, body: impl FnOnce(&mut WatchWriter)) {
    let mut body = Some(body);
    let _ = LEASES.try_with(|leases| {
        let Ok(mut leases) = leases.try_borrow_mut() else { return };
        let known = leases.iter().position(|lease| lease.number == recording.number);
        let lease = match known {
            Some(at) => leases.get(at),
            None => lease(recording, &mut leases),
        };
        if let (Some(lease), Some(body)) = (lease, body.take()) {
            body(&mut lease.writer.lock());
        }
    });
    // The thread is ending, and its variables are destroyed.
    if let Some(body) = body {
        let writer = recording.lease_writer();
        body(&mut writer.lock());
        recording.return_writer(writer);
    }
}

#[cold]
fn lease<'a>(recording: &Arc<WatchRecording>, leases: &'a mut Vec<WriterLease>) -> Option<&'a WriterLease> {
    leases.retain(|lease| lease.recording.strong_count() > 0);
    if leases.len() >= REMEMBERED {
        leases.remove(0);
    }
    leases.push(WriterLease {
        number: recording.number,
        recording: Arc::downgrade(recording),
        writer: recording.lease_writer(),
    });
    leases.last()
}
