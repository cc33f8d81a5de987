//! Encodes and decodes numbers and texts.

use sublet_engines::cast::{host_size, widen};

/// A destination of bytes.
pub trait Put {
    /// Writes a byte.
    fn byte(&mut self, byte: u8);

    /// Writes bytes.
    fn bytes(&mut self, bytes: &[u8]);

    /// Writes a number as LEB128: seven bits per byte, lowest first; all bytes but the last have their highest bit set.
    #[inline(always)]
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.byte(value.to_le_bytes()[0]);
    }

    /// Writes the four bytes of a number.
    #[inline(always)]
    fn float(&mut self, value: f32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Writes a flag byte, and the number if there is one.
    #[inline]
    fn optional(&mut self, value: Option<u64>) {
        self.byte(value.is_some().into());
        if let Some(value) = value {
            self.number(value);
        }
    }

    /// Writes the number of bytes, and the bytes.
    #[inline(always)]
    fn text(&mut self, text: &str) {
        self.number(widen(text.len()));
        self.bytes(text.as_bytes());
    }

    /// Writes 0 for none; otherwise the number of bytes plus one, and the bytes.
    #[inline]
    fn optional_text(&mut self, text: Option<&str>) {
        match text {
            None => self.byte(0),
            Some(text) => {
                self.number(widen(text.len()) + 1);
                self.bytes(text.as_bytes());
            }
        }
    }
}

impl Put for Vec<u8> {
    fn byte(&mut self, byte: u8) {
        self.push(byte);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// The error of reading bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    /// The bytes end too early.
    TooFew,
    /// A number exceeds its range.
    Number,
    /// A text is not valid UTF-8.
    Text,
}

/// Reads bytes from the front of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Take<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Take<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the number of bytes that were read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(crate) fn rest(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Wrong> {
        let byte = *self.bytes.get(self.at).ok_or(Wrong::TooFew)?;
        self.at += 1;
        Ok(byte)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Wrong> {
        let end = self.at.checked_add(count).ok_or(Wrong::TooFew)?;
        let bytes = self.bytes.get(self.at..end).ok_or(Wrong::TooFew)?;
        self.at = end;
        Ok(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        self.bytes(N)?.try_into().map_err(|_| Wrong::TooFew)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Wrong> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if (bits << shift) >> shift != bits {
                return Err(Wrong::Number);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Wrong::Number)
    }

    pub(crate) fn small(&mut self) -> Result<u32, Wrong> {
        u32::try_from(self.number()?).map_err(|_| Wrong::Number)
    }

    pub(crate) fn float(&mut self) -> Result<f32, Wrong> {
        Ok(f32::from_le_bytes(self.array()?))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Wrong> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Wrong::Number),
        }
    }

    pub(crate) fn optional(&mut self) -> Result<Option<u64>, Wrong> {
        if self.flag()? { self.number().map(Some) } else { Ok(None) }
    }

    /// Reads a count, and as many elements. Each takes at least one byte, which bounds the reserved memory.
    pub(crate) fn list<V>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<V, Wrong>,
    ) -> Result<Vec<V>, Wrong> {
        let count = self.number()?;
        if count > widen(self.rest()) {
            return Err(Wrong::TooFew);
        }
        (0..count).map(|_| one(self)).collect()
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Wrong> {
        let count = self.number()?;
        self.text_of(count)
    }

    pub(crate) fn optional_text(&mut self) -> Result<Option<&'a str>, Wrong> {
        match self.number()?.checked_sub(1) {
            None => Ok(None),
            Some(count) => self.text_of(count).map(Some),
        }
    }

    fn text_of(&mut self, count: u64) -> Result<&'a str, Wrong> {
        let bytes = self.bytes(host_size(count).ok_or(Wrong::TooFew)?)?;
        std::str::from_utf8(bytes).map_err(|_| Wrong::Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_out_as_they_went_in() {
        for log2 in 0..64 {
            for value in [(1_u64 << log2) - 1, 1 << log2, (1 << log2) + 1, u64::MAX >> log2] {
                let mut bytes = Vec::new();
                bytes.number(value);
                let mut take = Take::new(&bytes);
                assert_eq!((take.number(), take.rest()), (Ok(value), 0));
            }
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_none() {
        assert_eq!(Take::new(&[0xFF; 11]).number(), Err(Wrong::Number));
        let mut most = [0xFF; 10];
        most[9] = 1;
        assert_eq!(Take::new(&most).number(), Ok(u64::MAX));
        most[9] = 2;
        assert_eq!(Take::new(&most).number(), Err(Wrong::Number));
        assert_eq!(Take::new(&[0x80; 4]).number(), Err(Wrong::TooFew));
        assert_eq!(Take::new(&[0xFF, 0xFF, 0xFF, 0xFF, 0x1F]).small(), Err(Wrong::Number));
    }

    #[test]
    fn texts_are_no_longer_than_what_is_there() {
        let mut bytes = Vec::new();
        bytes.number(u64::MAX);
        assert_eq!(Take::new(&bytes).text(), Err(Wrong::TooFew));
        assert_eq!(Take::new(&[2, 0xFF, 0xFE]).text(), Err(Wrong::Text));
        assert_eq!(Take::new(&[0]).optional_text(), Ok(None));
        assert_eq!(Take::new(&[1]).optional_text(), Ok(Some("")));
        assert_eq!(Take::new(&[3, b'o', b'k']).optional_text(), Ok(Some("ok")));
    }
}
