//! The bytes that records are put in.
#![forbid(unsafe_code)]

use super::bytes::Put;

/// Bytes of a page. An index of 16 bits is always inside.
pub(super) const PAGE_BYTES: usize = 1 << 16;
/// A record that has no text and no list is shorter.
pub(super) const RECORD_BYTES: usize = 256;
/// Up to here a record without a text may begin.
pub(super) const LIMIT: usize = PAGE_BYTES - RECORD_BYTES;

pub(super) type Page = Box<[u8; PAGE_BYTES]>;

pub(super) fn new_page() -> Page {
    // By way of the heap: a page would not be good for a small stack.
    match vec![0; PAGE_BYTES].into_boxed_slice().try_into() {
        Ok(page) => page,
        Err(_) => Box::new([0; PAGE_BYTES]),
    }
}

/// Where the next byte goes. Whoever puts bytes has made sure that there is room: else they would begin at the start again.
pub(crate) struct Cursor<'a> {
    page: &'a mut [u8; PAGE_BYTES],
    at: u16,
}

impl<'a> Cursor<'a> {
    #[inline(always)]
    pub(super) fn new(page: &'a mut [u8; PAGE_BYTES], at: u16) -> Self {
        Self { page, at }
    }

    #[inline(always)]
    pub(super) fn at(&self) -> u16 {
        self.at
    }
}

impl Put for Cursor<'_> {
    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        // The compiler knows that the index is inside.
        self.page[usize::from(self.at)] = byte;
        self.at = self.at.wrapping_add(1);
    }

    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        let at = usize::from(self.at);
        if let Some(target) = self.page.get_mut(at..at.wrapping_add(bytes.len())) {
            target.copy_from_slice(bytes);
        }
        // There is room, so that the length fits as well.
        self.at = self.at.wrapping_add(u16::try_from(bytes.len()).unwrap_or(0));
    }
}
