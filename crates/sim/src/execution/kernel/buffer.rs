//! The bytes that a shader sees behind a descriptor or an address.

use ash::vk;

use crate::execution::judge;
use crate::facts::arithmetic::{host_size, widen};
use crate::hazards::Actor;
use crate::objects::state::{DeviceObject, StoreRange};

/// The bytes behind a [`KernelBuffer`].
#[derive(Debug, Clone)]
pub(crate) enum BufferBytes {
    /// In device memory.
    Bytes {
        bytes: StoreRange,
        len: u64,
        writable: bool,
        /// The buffer, and where in it they begin, if a descriptor says so.
        of: Option<(vk::Buffer, u64)>,
    },
    /// In a descriptor set or in push descriptors: an inline uniform block.
    Inline(Vec<u8>),
    /// Nowhere; the reason has been reported.
    Nothing,
}

/// Bytes of a buffer that a shader reads and writes, as the device sees them: without what the host wrote and did not
/// flush, if the memory is not coherent. The result of [`Kernel::buffer`](crate::objects::kernels::Kernel::buffer) and
/// [`Kernel::memory`](crate::objects::kernels::Kernel::memory). Offsets and sizes are in bytes.
///
/// Access outside of the descriptor's range, or of the buffer, is reported as `SUBLET-descriptor-range`; it reads
/// zeroes and writes nothing.
///
/// ```
/// use sublet_sim::{Gpu, Kernel, KernelBuffer, profiles::Profile};
/// fn increment(buffer: &KernelBuffer<'_>) {
///     buffer.write_u32(0, buffer.read_u32(0) + 1);
/// }
/// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
/// gpu.set_kernel("count", |kernel: &mut Kernel<'_>| increment(&kernel.buffer(0, 0, 0)));
/// ```
pub struct KernelBuffer<'a> {
    pub(crate) device: &'a DeviceObject,
    pub(crate) entry_point: &'a str,
    /// Its name in messages.
    pub(crate) name: String,
    pub(crate) source: BufferBytes,
    /// The call and the stage that its accesses belong to, if hazards are looked for.
    pub(crate) actor: Option<(Actor, vk::ShaderStageFlags)>,
}

impl std::fmt::Debug for KernelBuffer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelBuffer")
            .field("name", &self.name)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl KernelBuffer<'_> {
    /// The bytes that the shader sees: the range of the descriptor, or the rest of the buffer after an address.
    pub fn len(&self) -> u64 {
        match &self.source {
            BufferBytes::Bytes { len, .. } => *len,
            BufferBytes::Inline(bytes) => widen(bytes.len()),
            BufferBytes::Nothing => 0,
        }
    }

    /// Returns whether there are no bytes, for example because the descriptor was reported.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies bytes out of the buffer.
    pub fn read(&self, offset: u64, to: &mut [u8]) {
        to.fill(0);
        if !self.contains(offset, to.len(), "read") {
            return;
        }
        self.judge(offset, to.len(), false);
        match &self.source {
            BufferBytes::Bytes { bytes, .. } => {
                if !bytes.store.read(bytes.offset + offset, to) {
                    self.report("SUBLET-transfer-failed", "there are no bytes behind it");
                }
            }
            BufferBytes::Inline(bytes) => {
                let from = host_size(offset).and_then(|start| bytes.get(start..start + to.len()));
                to.copy_from_slice(from.unwrap_or_default());
            }
            BufferBytes::Nothing => {}
        }
    }

    /// Copies bytes into the buffer.
    pub fn write(&self, offset: u64, from: &[u8]) {
        if !self.contains(offset, from.len(), "written") {
            return;
        }
        match &self.source {
            BufferBytes::Bytes { bytes, writable: true, .. } => {
                self.judge(offset, from.len(), true);
                if !bytes.store.write(bytes.offset + offset, from) {
                    self.report("SUBLET-transfer-failed", "there are no bytes behind it");
                }
            }
            BufferBytes::Bytes { .. } | BufferBytes::Inline(_) => {
                self.report("SUBLET-descriptor-read-only", "it is uniform, and is written to");
            }
            BufferBytes::Nothing => {}
        }
    }

    /// Reads four bytes as a little-endian number.
    pub fn read_u32(&self, offset: u64) -> u32 {
        let mut bytes = [0; 4];
        self.read(offset, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    /// Writes a number as four bytes, little-endian.
    pub fn write_u32(&self, offset: u64, value: u32) {
        self.write(offset, &value.to_le_bytes());
    }

    fn judge(&self, offset: u64, len: usize, write: bool) {
        if let (Some(actor), BufferBytes::Bytes { of: Some((buffer, start)), .. }) =
            (self.actor, &self.source)
        {
            let range = (start + offset, widen(len));
            judge::judge_shader(self.device, actor, *buffer, range, write);
        }
    }

    /// Returns whether bytes may be read or written. If not, it reports why, unless the whole source was reported
    /// before.
    fn contains(&self, offset: u64, len: usize, done: &str) -> bool {
        if matches!(self.source, BufferBytes::Nothing) {
            return false;
        }
        let inside = offset.checked_add(widen(len)).is_some_and(|end| end <= self.len());
        if !inside {
            let text = format!("{len} bytes from {offset} on are {done}, and there are {}", self.len());
            self.report("SUBLET-descriptor-range", &text);
        }
        inside
    }

    fn report(&self, rule: &'static str, text: &str) {
        self.device.report(rule, format!("{}: {}: {text}", self.entry_point, self.name));
    }
}
