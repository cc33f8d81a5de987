//! Encodes the operation and the fields of one record. `sublet::trace` documents the format.

use sublet::private::{Operation, Put};

/// Names are cut at this number of bytes.
const LONGEST_TEXT: usize = 256;
/// Twelve numbers of at most ten bytes, or a name with three numbers, and the operation.
const CAPACITY: usize = 1 + 3 * 10 + LONGEST_TEXT;

/// At most `N` bytes. Bytes beyond the capacity are left out: no caller has so many.
#[derive(Debug)]
pub(super) struct FixedBytes<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> FixedBytes<N> {
    #[inline]
    pub(super) fn new() -> Self {
        Self { bytes: [0; N], length: 0 }
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl<const N: usize> Put for FixedBytes<N> {
    #[inline]
    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.byte(byte));
    }
}

/// The encoded operation and fields of a record, without its sequence number and its time.
#[derive(Debug)]
pub(crate) struct RecordFields(FixedBytes<CAPACITY>);

impl RecordFields {
    /// Encodes numbers.
    #[inline]
    pub(crate) fn new(operation: Operation, numbers: &[u64]) -> Self {
        let mut fields = FixedBytes::new();
        fields.byte(operation.code());
        for &number in numbers {
            fields.number(number);
        }
        Self(fields)
    }

    /// Encodes a name. `kind` is 0 for memory, 1 for a resource.
    pub(crate) fn named(kind: u64, id: u64, text: &str) -> Self {
        let mut fields = Self::new(Operation::Named, &[kind, id]);
        fields.0.text(&text[..floor_boundary(text, LONGEST_TEXT)]);
        fields
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
}

/// `str::floor_char_boundary`, which Rust 1.85 does not have.
fn floor_boundary(text: &str, most: usize) -> usize {
    if text.len() <= most {
        return text.len();
    }
    (0..=most).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_encoded() {
        let fields = RecordFields::new(Operation::Bound, &[1, 0, 300]);
        assert_eq!(fields.bytes(), [0x8B, 1, 0, 0xAC, 2]);
        assert_eq!(RecordFields::named(1, 2, "mesh").bytes(), b"\x8D\x01\x02\x04mesh");
        let long = RecordFields::named(1, u64::MAX, &"\u{e9}".repeat(300));
        assert_eq!(long.bytes().len(), 1 + 1 + 10 + 2 + 256);
        let image = RecordFields::new(Operation::ImageCreated, &[u64::MAX; 12]);
        assert_eq!(image.bytes().len(), 121, "an image fits");
    }
}
