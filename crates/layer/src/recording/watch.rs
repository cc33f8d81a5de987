//! A recording: its writers, its live objects and its files.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use sublet::private::Operation;
use sublet::trace::Header;

use super::fields::RecordFields;
use super::fork;
use super::history::LiveObject;
use super::objects::{LiveRecords, ObjectKey};
use super::parts::WatchParts;
use super::segment::WatchSegment;
use super::thread;
use super::writer::WatchWriter;
use crate::message::complain;

/// The recording of one device.
///
/// A thread that holds several locks took them in this order: `writers`, those of the writers, `parts` or a shard of
/// `objects`.
#[derive(Debug)]
pub(crate) struct WatchRecording {
    /// Distinguishes the recordings of this process.
    pub(super) number: u64,
    pub(super) counters: RecordCounters,
    started: Instant,
    objects: LiveRecords,
    writers: Mutex<WriterList>,
    parts: Mutex<WatchParts>,
    /// The newest file is full.
    full: AtomicBool,
    /// The recording has ended.
    ended: AtomicBool,
    /// The device is lost, and that is recorded.
    lost: AtomicBool,
    /// Names are recorded.
    names: bool,
    /// The generation of the process that created it.
    generation: u32,
}

/// The next numbers. All threads change them, so no other field is in their cache lines: each call reads those.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct RecordCounters {
    pub(super) sequence: AtomicU64,
    memories: AtomicU64,
    resources: AtomicU64,
}

#[derive(Debug, Default)]
struct WriterList {
    all: Vec<Arc<Mutex<WatchWriter>>>,
    /// Those whose threads ended.
    idle: Vec<Arc<Mutex<WatchWriter>>>,
}

/// A call that is being recorded.
pub(crate) struct RecordedAccess<'a> {
    recording: &'a WatchRecording,
    writer: &'a mut WatchWriter,
}

impl WatchRecording {
    /// Creates the file.
    pub(crate) fn create(path: &Path, header: Header, limit: u64, names: bool) -> io::Result<Arc<Self>> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        fork::count();
        Ok(Arc::new(Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            counters: RecordCounters {
                sequence: AtomicU64::new(1),
                memories: AtomicU64::new(1),
                resources: AtomicU64::new(1),
            },
            started: Instant::now(),
            objects: LiveRecords::new(),
            writers: Mutex::default(),
            parts: Mutex::new(WatchParts::create(path, header, limit)?),
            full: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            names,
            generation: fork::generation(),
        }))
    }

    /// Returns the nanoseconds since the recording began.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn names(&self) -> bool {
        self.names
    }

    /// Returns true in a child of `fork`: W5. Its locks may be held by threads that it does not have.
    #[inline]
    fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Records a call: `body` changes the live objects and writes records. No panic leaves this function.
    #[inline]
    pub(crate) fn record(self: &Arc<Self>, body: impl FnOnce(&mut RecordedAccess<'_>)) {
        if self.ended.load(Ordering::Relaxed) || self.is_inherited() {
            return;
        }
        let done = catch_unwind(AssertUnwindSafe(|| {
            thread::with_writer(self, |writer| body(&mut RecordedAccess { recording: self, writer }));
            if self.full.load(Ordering::Relaxed) {
                self.start_part();
            }
        }));
        if done.is_err() {
            self.fail("a panic, which is a bug of the layer");
        }
    }

    /// Records a call without objects.
    pub(crate) fn put(self: &Arc<Self>, operation: Operation, numbers: &[u64]) {
        self.record(|access| access.put(operation, numbers));
    }

    /// Records that the device is lost, once.
    #[cold]
    pub(crate) fn device_lost(self: &Arc<Self>) {
        if !self.lost.swap(true, Ordering::Relaxed) {
            self.put(Operation::DeviceLost, &[]);
        }
    }

    /// Calls `read` with a live object, without recording anything.
    pub(crate) fn look_up<R>(&self, key: ObjectKey, read: impl FnOnce(&mut LiveObject) -> R) -> Option<R> {
        if self.is_inherited() {
            return None;
        }
        self.objects.with(key, read)
    }

    /// Ends the recording of a destroyed device, and shortens its file.
    pub(crate) fn finish(self: &Arc<Self>) {
        if self.is_inherited() {
            return;
        }
        self.put(Operation::DeviceDestroyed, &[]);
        self.ended.store(true, Ordering::Relaxed);
        let list = self.writers.lock();
        drop(leave_segments(&list));
        // An error leaves zeros at the end of the file, which a reader skips.
        let _ = self.parts.lock().finish();
        self.objects.clear();
    }

    /// Ends the recording early. The records so far stay.
    #[cold]
    fn fail(&self, why: &str) {
        if !self.ended.swap(true, Ordering::Relaxed) {
            complain(&format!("the recording ends early: {why}"));
        }
    }

    pub(super) fn lease_writer(&self) -> Arc<Mutex<WatchWriter>> {
        let mut list = self.writers.lock();
        if let Some(writer) = list.idle.pop() {
            return writer;
        }
        let number = u32::try_from(list.all.len()).unwrap_or(u32::MAX);
        let writer = Arc::new(Mutex::new(WatchWriter::new(number)));
        list.all.push(Arc::clone(&writer));
        writer
    }

    pub(super) fn return_writer(&self, writer: Arc<Mutex<WatchWriter>>) {
        if !self.is_inherited() {
            self.writers.lock().idle.push(writer);
        }
    }

    /// Takes a segment for a writer. `None` if the recording has ended.
    pub(super) fn take_segment(&self) -> Option<WatchSegment> {
        match self.parts.lock().take() {
            Ok(taken) => {
                let (segment, full) = taken?;
                if full {
                    self.full.store(true, Ordering::Relaxed);
                }
                Some(segment)
            }
            Err(error) => {
                self.fail(&format!("its file does not grow: {error}"));
                None
            }
        }
    }

    /// Starts another file with the records of all live objects, while the other threads wait: W3.
    #[cold]
    fn start_part(&self) {
        let list = self.writers.lock();
        if !self.full.load(Ordering::Relaxed) {
            return;
        }
        let writers = leave_segments(&list);
        let mut records = 0;
        self.objects.for_each(|_, object| object.for_each(|_, _| records += 1));
        if let Err(error) = self.parts.lock().advance(records) {
            self.fail(&format!("another file cannot be started: {error}"));
        }
        let mut writer = WatchWriter::new(0);
        self.put_live_objects(&mut writer);
        // Otherwise the new part is incomplete, and the previous one is the best.
        if !self.ended.load(Ordering::Relaxed) {
            if let Err(error) = self.parts.lock().live_objects_end() {
                self.fail(&format!("a previous file cannot be removed: {error}"));
            }
        }
        self.full.store(false, Ordering::Relaxed);
        drop(writers);
    }

    /// Writes the records of all live objects: first what creates them, then what refers to others.
    fn put_live_objects(&self, writer: &mut WatchWriter) {
        const CREATED: [u8; 3] =
            [Operation::BufferCreated.code(), Operation::ImageCreated.code(), Operation::Requirements.code()];
        let pass_of = |key: ObjectKey, operation| match key.is_memory() {
            true => 1,
            false if CREATED.contains(&operation) => 0,
            false => 2,
        };
        for pass in 0..=2 {
            self.objects.for_each(|key, object| {
                object.for_each(|operation, record| {
                    if pass_of(key, operation) == pass {
                        writer.put_encoded(self, record);
                    }
                });
            });
        }
    }
}

/// Locks all writers, and takes their segments away.
fn leave_segments(list: &WriterList) -> Vec<MutexGuard<'_, WatchWriter>> {
    let mut writers: Vec<_> = list.all.iter().map(|writer| writer.lock()).collect();
    for writer in &mut writers {
        writer.leave_segment();
    }
    writers
}

impl RecordedAccess<'_> {
    pub(crate) fn objects(&self) -> &LiveRecords {
        &self.recording.objects
    }

    /// Writes a record.
    #[inline]
    pub(crate) fn put(&mut self, operation: Operation, numbers: &[u64]) {
        self.put_fields(&RecordFields::new(operation, numbers));
    }

    #[inline]
    fn put_fields(&mut self, fields: &RecordFields) {
        self.writer.put(self.recording, fields);
    }

    /// Changes a live object, and writes the record that `change` returns. Does nothing if the object is unknown.
    pub(crate) fn update(
        &mut self,
        key: ObjectKey,
        change: impl FnOnce(&mut LiveObject) -> Option<RecordFields>,
    ) {
        if let Some(fields) = self.objects().with(key, change).flatten() {
            self.put_fields(&fields);
        }
    }

    /// Removes a live object, and writes the record that it ends. Does nothing if the object is unknown.
    pub(crate) fn end(&mut self, key: ObjectKey, operation: Operation) {
        if let Some(object) = self.objects().remove(key) {
            self.put(operation, &[object.id]);
        }
    }

    /// Returns the number of a new memory.
    pub(crate) fn next_memory(&self) -> u64 {
        self.recording.counters.memories.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number of a new buffer or image.
    pub(crate) fn next_resource(&self) -> u64 {
        self.recording.counters.resources.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a live object, and writes the record that creates it. `queryable` is true if its requirements may be
    /// queried before memory is bound.
    pub(crate) fn create(&mut self, key: ObjectKey, id: u64, queryable: bool, created: &RecordFields) {
        self.recording.objects.insert(key, LiveObject::new(id, queryable, created));
        self.put_fields(created);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_child_of_fork_leaves_the_file_of_its_parent() {
        let path = std::env::temp_dir().join(format!("sublet-fork-{}.trace", std::process::id()));
        let _ = fs::remove_file(&path);
        let recording = WatchRecording::create(&path, Header::default(), u64::MAX, true).unwrap();
        let mut recording = Arc::into_inner(recording).unwrap();
        recording.generation += 1;
        let recording = Arc::new(recording);
        let before = fs::read(&path).unwrap();
        recording.put(Operation::Presented, &[]);
        recording.finish();
        assert_eq!(fs::read(&path).unwrap(), before);
        fs::remove_file(&path).unwrap();
    }
}
