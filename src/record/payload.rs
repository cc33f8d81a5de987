//! The buffers that records are written into.

use super::bytes::Put;

/// Bytes of a payload. An index of 16 bits is always in bounds.
pub(super) const PAYLOAD_BYTES: usize = 1 << 16;
/// Every record without a text or a list is shorter.
pub(super) const RECORD_BYTES: usize = 256;
/// A record without a text may begin up to here.
pub(super) const LIMIT: usize = PAYLOAD_BYTES - RECORD_BYTES;

pub(super) type Payload = Box<[u8; PAYLOAD_BYTES]>;

pub(super) fn new_payload() -> Payload {
    // Made on the heap: a payload could overflow a small stack.
    match vec![0; PAYLOAD_BYTES].into_boxed_slice().try_into() {
        Ok(payload) => payload,
        Err(_) => Box::new([0; PAYLOAD_BYTES]),
    }
}

/// Where the next byte goes. The caller makes sure that there is room; otherwise the index would wrap to the start.
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
        // The compiler knows that the index is in bounds.
        self.payload[usize::from(self.at)] = byte;
        self.at = self.at.wrapping_add(1);
    }

    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        let at = usize::from(self.at);
        if let Some(target) = self.payload.get_mut(at..at.wrapping_add(bytes.len())) {
            target.copy_from_slice(bytes);
        }
        // There is room, so the length fits as well.
        self.at = self.at.wrapping_add(u16::try_from(bytes.len()).unwrap_or(0));
    }
}
