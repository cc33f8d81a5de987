//! CRC-32 as in Ethernet, zip and PNG: polynomial 0x04C11DB7, reflected, all ones at the start and inverted at the end.
#![forbid(unsafe_code)]

use crate::base::cast::index;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0_u32;
    while byte < 256 {
        let mut rest = byte;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { (rest >> 1) ^ 0xEDB8_8320 } else { rest >> 1 };
            bit += 1;
        }
        table[index(byte)] = rest;
        byte += 1;
    }
    table
}

/// The checksum of several pieces, as of one.
pub(crate) fn crc32(pieces: &[&[u8]]) -> u32 {
    let bytes = pieces.iter().copied().flatten();
    !bytes.fold(u32::MAX, |crc, &byte| TABLE[index((crc ^ u32::from(byte)) & 0xFF)] ^ (crc >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_checksum_of_zip() {
        // The check value that the catalogues of such checksums give.
        assert_eq!(crc32(&[b"123456789"]), 0xCBF4_3926);
        assert_eq!(crc32(&[b"1234", b"", b"56789"]), 0xCBF4_3926);
        assert_eq!(crc32(&[]), 0);
    }
}
