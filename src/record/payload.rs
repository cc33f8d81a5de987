//! The buffers for records.

use super::bytes::Put;

/// The size of a payload. An index of 16 bits is always in bounds.
pub(super) const PAYLOAD_BYTES: usize = 1 << 16;
/// The upper bound of a record without texts and lists.
pub(super) const RECORD_BYTES: usize = 256;
/// The last position at which a record without a text may begin.
pub(super) const LIMIT: usize = PAYLOAD_BYTES - RECORD_BYTES;

pub(super) type Payload = Box<[u8; PAYLOAD_BYTES]>;

pub(super) fn new_payload() -> Payload {
    // Allocated on the heap, because a payload could overflow a small stack.
    match vec![0; PAYLOAD_BYTES].into_boxed_slice().try_into() {
        Ok(payload) => payload,
        Err(_) => Box::new([0; PAYLOAD_BYTES]),
    }
}

/// The write position. The caller ensures that there is space; otherwise the index would wrap to the start.
pub(crate) struct Cursor<'a> {
    payload: &'a mut [u8; PAYLOAD_BYTES],
    at: u16,
}

impl<'a> Cursor<'a> {
    #[inline(always)]
    pub(super) fn new(payload: &'a mut [u8; PAYLOAD_BYTES], at: u16) -> Self {
        Self { payload, at }
    }

    #[inline(always)]
    pub(super) fn at(&self) -> u16 {
        self.at
    }
}

impl Put for Cursor<'_> {
    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        // The type of the index lets the compiler omit the bounds check.
        self.payload[usize::from(self.at)] = byte;
        self.at = self.at.wrapping_add(1);
    }

    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        let at = usize::from(self.at);
        if let Some(target) = self.payload.get_mut(at..at.wrapping_add(bytes.len())) {
            target.copy_from_slice(bytes);
        }
        // The bytes fit, so the length does too.
        self.at = self.at.wrapping_add(u16::try_from(bytes.len()).unwrap_or(0));
    }
}
