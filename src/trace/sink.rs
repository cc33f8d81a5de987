//! A sink in host memory.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

/// A sink that stores a trace in host memory, for tests and for programs that send it elsewhere. Clones share the
/// bytes.
///
/// ```
/// # use sublet::*;
/// # let (gpu, allocator) = sublet::doc_example();
/// let buffer = trace::TraceBuffer::new();
/// allocator.start_recording(buffer.clone())?;
/// allocator.trim();
/// allocator.stop_recording()?;
/// assert_eq!(trace::Trace::read(&buffer.bytes())?.records[0].event, trace::Event::Trim);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TraceBuffer(Arc<Mutex<Vec<u8>>>);

impl TraceBuffer {
    /// Creates an empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the bytes that were written so far.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().clone()
    }
}

impl io::Write for TraceBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
