//! CRC-32 as in Ethernet, zip and PNG: polynomial 0x04C11DB7, reflected, initialised with ones, inverted at the end.

use sublet_engines::cast::index;

/// `TABLES[n][byte]` is the contribution of a byte to the checksum `n` bytes later, so that one step processes eight
/// bytes.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0_u32;
    while byte < 256 {
        let mut rest = byte;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { (rest >> 1) ^ 0xEDB8_8320 } else { rest >> 1 };
            bit += 1;
        }
        tables[0][index(byte)] = rest;
        byte += 1;
    }
    let mut later = 1;
    while later < 8 {
        byte = 0;
        while byte < 256 {
            let before = tables[later - 1][index(byte)];
            tables[later][index(byte)] = (before >> 8) ^ tables[0][index(before & 0xFF)];
            byte += 1;
        }
        later += 1;
    }
    tables
}

/// Returns the checksum of the concatenated pieces.
pub(crate) fn crc32(pieces: &[&[u8]]) -> u32 {
    !pieces.iter().fold(u32::MAX, |crc, piece| add(crc, piece))
}

fn add(mut crc: u32, bytes: &[u8]) -> u32 {
    let mut steps = bytes.chunks_exact(8);
    for step in &mut steps {
        let Ok(step) = <[u8; 8]>::try_from(step) else { continue };
        let [a, b, c, d] = crc.to_le_bytes();
        let of = |later: usize, byte: u8| TABLES[later][usize::from(byte)];
        crc = of(7, step[0] ^ a)
            ^ of(6, step[1] ^ b)
            ^ of(5, step[2] ^ c)
            ^ of(4, step[3] ^ d)
            ^ of(3, step[4])
            ^ of(2, step[5])
            ^ of(1, step[6])
            ^ of(0, step[7]);
    }
    steps
        .remainder()
        .iter()
        .fold(crc, |crc, &byte| TABLES[0][index((crc ^ u32::from(byte)) & 0xFF)] ^ (crc >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, as in the definition.
    fn slowly(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |crc, &byte| {
            (0..8).fold(
                crc ^ u32::from(byte),
                |crc, _| {
                    if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 }
                },
            )
        })
    }

    #[test]
    fn it_is_the_checksum_of_zip() {
        // The check value in catalogues of CRCs.
        assert_eq!(crc32(&[b"123456789"]), 0xCBF4_3926);
        assert_eq!(crc32(&[b"1234", b"", b"56789"]), 0xCBF4_3926);
        assert_eq!(crc32(&[]), 0);
    }

    #[test]
    fn eight_bytes_at_a_step_are_the_same_as_one() {
        let mut random = fastrand::Rng::with_seed(3);
        for length in 0..200 {
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            assert_eq!(crc32(&[&bytes]), slowly(&bytes), "{length}");
            let (one, other) = bytes.split_at(length / 3);
            assert_eq!(crc32(&[one, other]), slowly(&bytes), "{length}");
        }
    }
}
